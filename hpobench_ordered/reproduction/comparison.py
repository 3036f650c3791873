"""Comparisons of methods, which figures, tables and claims of papers are made from."""

from dataclasses import dataclass

from hpobench_ordered.protocols import Protocol


@dataclass(frozen=True, slots=True)
class Comparison:
    """Methods that are compared with each other on one benchmark.

    The normalised score of each depends on all of them: 0 is the best one's final performance.
    Without a protocol they are run as the paper's setting says; if one comparison of a benchmark
    names its protocol, all comparisons on that benchmark must.
    """

    benchmark: str
    methods: tuple[str, ...] = ()
    protocol: Protocol | None = None
