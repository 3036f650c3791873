"""Tables of papers, computed and compared with the published numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hpobench_ordered.analysis.differences import (
    Estimate,
    improvement_in_mean,
    mean_over_tasks,
    reduction_in_standard_error,
)
from hpobench_ordered.reproduction.evidence import Comparison, Evidence, Measure
from hpobench_ordered.reproduction.paper import Entry

REDUCTION = "reduction in standard error (%)"
IMPROVEMENT = "improvement in mean (%)"


def downstream(
    evidence: Evidence,
    comparisons: Sequence[Comparison],
    *,
    method: str,
    baseline: str,
    trial: int,
    published: Mapping[tuple[str, str], Estimate],
) -> list[Entry]:
    """Compare the objective of two methods in its own units, on the tasks with history."""
    entries = []
    for comparison in comparisons:
        name = comparison.benchmark
        both = replace(comparison, methods=(method, baseline))
        tested, reference = evidence.measured(both, Measure.VALUE).values[..., trial - 1]
        direction = evidence.benchmark(name).objective.direction
        measured = {
            REDUCTION: reduction_in_standard_error(tested, reference),
            IMPROVEMENT: improvement_in_mean(tested, reference, direction=direction),
        }
        entries += [
            Entry(row, name, published[row, name], mean_over_tasks(per_task))
            for row, per_task in measured.items()
        ]
    return entries
