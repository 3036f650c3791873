"""Conformance suites: the contract of every benchmark and every method.

    check_benchmark("my-benchmark")
    check_method("my-method")                # or a subclass of Method
    check_degenerate_input("my-method")      # constant, infinite, repeated or no evaluations
    check_beats_random_search("my-method")   # of methods that learn

raise `ConformanceError` with the first thing that is wrong. Third-party packages call them in
their own tests.
"""

from hpobench_ordered.testing._require import ConformanceError
from hpobench_ordered.testing.benchmarks import check_benchmark
from hpobench_ordered.testing.degenerate import check_degenerate_input
from hpobench_ordered.testing.methods import check_beats_random_search, check_method

__all__ = [
    "ConformanceError",
    "check_beats_random_search",
    "check_benchmark",
    "check_degenerate_input",
    "check_method",
]
