"""Benchmarks, surrogates and methods for ordered transfer hyperparameter optimisation."""

from hpobench_ordered.benchmark import Benchmark, Direction, Evaluations, Objective, Task
from hpobench_ordered.errors import HPOBenchOrderedError
from hpobench_ordered.experiment.api import Results, report, run
from hpobench_ordered.methods.base import Method, MethodSpec
from hpobench_ordered.protocols import Ordered
from hpobench_ordered.registry import (
    BenchmarkSpec,
    SurrogateOption,
    list_benchmarks,
    list_methods,
    load,
)
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.suites import suite

__all__ = [
    "Benchmark",
    "BenchmarkSpec",
    "Direction",
    "Evaluations",
    "HPOBenchOrderedError",
    "Method",
    "MethodSpec",
    "Objective",
    "Ordered",
    "Results",
    "SearchSpace",
    "SurrogateOption",
    "Task",
    "list_benchmarks",
    "list_methods",
    "load",
    "report",
    "run",
    "suite",
]
