"""The table of Hellan et al. (2023), computed and compared with the published numbers."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.papers.claims import Finding
from hpobench_ordered.papers.differences import (
    Estimate,
    improvement_in_mean,
    mean_over_tasks,
    reduction_in_standard_error,
)
from hpobench_ordered.papers.evidence import Comparisons, Evidence, Measure, MethodComparison
from hpobench_ordered.papers.paper import Content

REDUCTION = "reduction in standard error (%)"
IMPROVEMENT = "improvement in mean (%)"


def measure_downstream(
    evidence: Evidence, comparison: MethodComparison, *, pair: tuple[str, str], trial: int
) -> dict[str, FloatArray]:
    """Compare the objective values of two methods after a trial, on each task with history.

    Args:
        evidence: The results.
        comparison: A comparison that has both methods.
        pair: The method, and the baseline that it is compared with.
        trial: The trial, counted from 1.

    Returns:
        The quantities `REDUCTION` and `IMPROVEMENT`, in percent, (tasks,); NaN where undefined.
    """
    direction = evidence.benchmark(comparison.benchmark).objective.direction
    both = replace(comparison, methods=pair)
    values = evidence.measure(both, Measure.VALUE).values[..., trial - 1]
    method_values, baseline_values = values  # (seeds, tasks) each
    return {
        REDUCTION: reduction_in_standard_error(method_values, baseline_values),
        IMPROVEMENT: improvement_in_mean(method_values, baseline_values, direction=direction),
    }


def compare_downstream(
    evidence: Evidence,
    comparisons: Comparisons,
    *,
    pair: tuple[str, str],
    trial: int,
    published: Mapping[tuple[str, str], Estimate],
) -> Content:
    """Tabulate mean quantities over tasks beside those that the paper published.

    Args:
        evidence: The results.
        comparisons: The comparisons, one per benchmark.
        pair: The method, and the baseline that it is compared with.
        trial: The trial, counted from 1.
        published: The paper's numbers, by quantity and benchmark.

    Returns:
        A table with one row per benchmark and quantity.
    """
    import pandas as pd

    rows = []
    for comparison in comparisons:
        benchmark = comparison.benchmark
        measured = measure_downstream(evidence, comparison, pair=pair, trial=trial)
        for quantity, value_of_task in measured.items():
            ours = mean_over_tasks(value_of_task)
            theirs = published[quantity, benchmark]
            rows.append(
                {
                    "number": quantity,
                    "benchmark": benchmark,
                    "paper": theirs.value,
                    "paper_lower": theirs.lower,
                    "paper_upper": theirs.upper,
                    "here": ours.value,
                    "here_lower": ours.lower,
                    "here_upper": ours.upper,
                    "inside": theirs.contains(ours.value),
                }
            )
    return Content(pd.DataFrame(rows))


def find_whether_positive(
    evidence: Evidence,
    comparisons: Comparisons,
    quantity: str,
    *,
    pair: tuple[str, str],
    trial: int,
) -> list[Finding]:
    """Find on each benchmark whether a quantity is positive, on average over tasks.

    Args:
        evidence: The results.
        comparisons: The comparisons, one per benchmark.
        quantity: `REDUCTION` or `IMPROVEMENT`. It is positive where the method is better.
        pair: The method, and the baseline that it is compared with.
        trial: The trial, counted from 1.

    Returns:
        A finding for each benchmark, with a sample for each task: the value of the quantity.
    """
    findings = []
    for comparison in comparisons:
        quantities = measure_downstream(evidence, comparison, pair=pair, trial=trial)
        value_of_task = quantities[quantity]
        n_positive = np.count_nonzero(value_of_task > 0)
        n_defined = np.count_nonzero(np.isfinite(value_of_task))
        sentence = f"{quantity}, positive on {n_positive} of {n_defined} tasks"
        findings.append(
            Finding.from_samples(comparison.benchmark, sentence, value_of_task, number_format=".1f")
        )
    return findings
