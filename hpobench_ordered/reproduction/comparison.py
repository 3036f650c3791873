"""Comparisons of methods, the basis of figures, tables and claims."""

from dataclasses import dataclass

from hpobench_ordered.protocols import Protocol


@dataclass(frozen=True, slots=True)
class Comparison:
    """Methods that are compared on one benchmark.

    The normalised score of each depends on all of them: 0 is the best one's final performance.
    Without a protocol they are run in the paper's setting; if one comparison of a benchmark names
    its protocol, all comparisons on that benchmark must.
    """

    benchmark: str
    methods: tuple[str, ...] = ()
    protocol: Protocol | None = None
