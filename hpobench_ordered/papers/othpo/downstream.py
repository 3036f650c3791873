"""The table of Hellan et al. (2023), computed and compared with the published numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hpobench_ordered.analysis.differences import (
    Estimate,
    improvement_in_mean,
    mean_over_tasks,
    reduction_in_standard_error,
)
from hpobench_ordered.papers.evidence import Evidence, Measure, MethodComparison
from hpobench_ordered.papers.paper import Entry

REDUCTION = "reduction in standard error (%)"
IMPROVEMENT = "improvement in mean (%)"


def downstream(
    evidence: Evidence,
    comparisons: Sequence[MethodComparison],
    *,
    method: str,
    baseline: str,
    trial: int,
    published: Mapping[tuple[str, str], Estimate],
) -> list[Entry]:
    """Compare the objective of two methods in its own units, on the tasks with history."""
    entries = []
    for comparison in comparisons:
        benchmark = comparison.benchmark
        direction = evidence.benchmark(benchmark).objective.direction
        both = replace(comparison, methods=(method, baseline))
        values = evidence.measure(both, Measure.VALUE).values[..., trial - 1]
        method_values, baseline_values = values  # (S, T) each
        measured = {
            REDUCTION: reduction_in_standard_error(method_values, baseline_values),
            IMPROVEMENT: improvement_in_mean(method_values, baseline_values, direction=direction),
        }
        for row, value_of_task in measured.items():
            estimate = mean_over_tasks(value_of_task)
            entries.append(Entry(row, benchmark, published[row, benchmark], estimate))
    return entries
