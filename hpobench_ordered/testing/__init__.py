"""Conformance suites: the contract of every benchmark and every method.

    check_benchmark("my-benchmark")
    check_method("my-method")                # or a subclass of Method
    check_degenerate_input("my-method")      # constant, infinite, repeated or no evaluations
    check_beats_random_search("my-method")   # for methods that learn

Each raises a `ConformanceError` that describes the first violation. In a test module, a subclass of
`BenchmarkConformance` or `MethodConformance` has one test per property.
"""

from hpobench_ordered.testing._require import ConformanceError
from hpobench_ordered.testing.benchmarks import BenchmarkConformance, check_benchmark
from hpobench_ordered.testing.degenerate import check_degenerate_input
from hpobench_ordered.testing.methods import (
    MethodConformance,
    check_beats_random_search,
    check_method,
)

__all__ = [
    "BenchmarkConformance",
    "ConformanceError",
    "MethodConformance",
    "check_beats_random_search",
    "check_benchmark",
    "check_degenerate_input",
    "check_method",
]
