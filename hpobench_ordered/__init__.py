"""Benchmarks, surrogates and methods for transfer hyperparameter optimisation."""

from hpobench_ordered.benchmark import Benchmark, Evaluations, Task
from hpobench_ordered.errors import HPOBenchOrderedError
from hpobench_ordered.experiment.api import Results, merge_stores, report, run
from hpobench_ordered.methods.base import Method, MethodSpec
from hpobench_ordered.objective import Direction, Objective
from hpobench_ordered.protocols import Adjustment, LeaveOneOut, Ordered
from hpobench_ordered.registry import list_benchmarks, list_methods, load
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.specs import BenchmarkSpec, SurrogateOption
from hpobench_ordered.suites import suite
from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.user_benchmarks import from_evaluations, save

__all__ = [
    "Adjustment",
    "Benchmark",
    "BenchmarkSpec",
    "Direction",
    "Evaluations",
    "HPOBenchOrderedError",
    "LeaveOneOut",
    "Method",
    "MethodSpec",
    "Objective",
    "Ordered",
    "Results",
    "SearchSpace",
    "SurrogateOption",
    "SurrogateType",
    "Task",
    "from_evaluations",
    "list_benchmarks",
    "list_methods",
    "load",
    "merge_stores",
    "report",
    "run",
    "save",
    "suite",
]
