"""Speed-ups over a method without transfer, after a change of the search space.

Figures and checks take a comparison for each benchmark and number of trials before the adjustment,
the *old budget*. The reference is in one comparison per benchmark: it does not use the old step, so
its runs are the same for all old budgets. Means of speed-ups are geometric, those of failure rates
arithmetic; means over benchmarks are of the means over their tasks.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered.analysis.curves import cross_labels
from hpobench_ordered.analysis.differences import Estimate, mean_over_tasks
from hpobench_ordered.analysis.speedup import speedups
from hpobench_ordered.experiment.protocols import Adjustment
from hpobench_ordered.papers.evidence import Evidence, MethodComparison
from hpobench_ordered.papers.paper import (
    Check,
    Drawing,
    Finding,
    Outcome,
    combine_outcomes,
    decide,
)
from hpobench_ordered.reporting import charts

if TYPE_CHECKING:
    import pandas as pd

SPEEDUP = "speedup"
FAILURE_RATE = "failure_rate"
AXIS_TITLES = {SPEEDUP: "speed-up over {}", FAILURE_RATE: "share of the runs that fail"}

ALL = "all"
"""Label of the mean over benchmarks."""

BUDGETS = ["old_budget", "reference_budget"]
SUBJECT = "subject"


def speedup_table(
    evidence: Evidence, comparisons: Sequence[MethodComparison], *, reference: str
) -> "pd.DataFrame":
    """Speed-ups over a reference, and failure rates of all methods.

    One row per old budget, benchmark, method, task and budget of the reference.
    """
    import pandas as pd

    reference_losses = {}
    for comparison in comparisons:
        if reference in comparison.methods:
            only_reference = replace(comparison, methods=(reference,))
            reference_losses[comparison.benchmark] = evidence.losses(only_reference)

    tables = []
    for comparison in comparisons:
        others = tuple(method for method in comparison.methods if method != reference)
        if not others:
            continue
        losses = evidence.losses(replace(comparison, methods=others))
        with_reference = np.concatenate([reference_losses[comparison.benchmark], losses])
        result = speedups(with_reference, (reference, *others), reference=reference)
        number_of_tasks = result.values.shape[1]
        levels: dict[str, Sequence[Any]] = {
            "old_budget": [_old_budget(comparison)],
            "benchmark": [comparison.benchmark],
            "method": result.methods,
            "task": range(1, number_of_tasks + 1),
            "reference_budget": result.budgets,
        }
        columns = {SPEEDUP: result.values, FAILURE_RATE: result.failure_rates}
        tables.append(cross_labels(levels, **columns))
    return pd.concat(tables, ignore_index=True)


def speedups_by_benchmark(
    evidence: Evidence,
    comparisons: Sequence[MethodComparison],
    *,
    reference: str,
    methods: Sequence[str],
) -> Drawing:
    """Speed-ups on every task by benchmark, after one old budget; a panel per reference budget."""
    import pandas as pd

    table = speedup_table(evidence, comparisons, reference=reference)
    of_tasks = table[table["method"].isin(methods)]
    of_benchmarks = mean_over(of_tasks, SPEEDUP, ["benchmark", "method", *BUDGETS])
    drawn = pd.concat([of_tasks, of_benchmarks.assign(benchmark=ALL)], ignore_index=True)
    drawn = drawn.assign(
        panel=f"{reference} with " + drawn["reference_budget"].astype(str) + " trials",
        group=drawn["benchmark"],
        value=drawn[SPEEDUP],
    )
    chart = charts.strips(
        _with_means(drawn, SPEEDUP),
        x="benchmark",
        y=AXIS_TITLES[SPEEDUP].format(reference),
        log=True,
        columns=1,
        size=(860, 190),
    )
    return Drawing(chart, table)


def by_reference_budget(
    evidence: Evidence,
    comparisons: Sequence[MethodComparison],
    *,
    reference: str,
    methods: Sequence[str],
    measure: str,
) -> Drawing:
    """The means of benchmarks by budget of the reference, a panel an old budget."""
    table = speedup_table(evidence, comparisons, reference=reference)
    of_tasks = table[table["method"].isin(methods)]
    drawn = mean_over(of_tasks, measure, ["benchmark", "method", *BUDGETS])
    panel = "all old budgets"
    if drawn["old_budget"].nunique() > 1:
        panel = drawn["old_budget"].astype(str) + " trials before the adjustment"
    drawn = drawn.assign(panel=panel, group=drawn["reference_budget"], value=drawn[measure])
    chart = charts.strips(
        _with_means(drawn, measure),
        x=f"trials of {reference}",
        y=AXIS_TITLES[measure].format(reference),
        log=measure == SPEEDUP,
        columns=3,
        size=(270, 220),
    )
    return Drawing(chart, table)


def average_speedup(
    method: str, decide_speedup: Callable[[Estimate], Outcome], *, reference: str
) -> Check:
    """A method's mean speed-up over benchmarks ± two standard errors satisfies a condition."""

    def check(evidence: Evidence, comparisons: Sequence[MethodComparison]) -> list[Finding]:
        means = _means_of_benchmarks(evidence, comparisons, SPEEDUP, reference)
        means = means[means["method"] == method]
        findings = []
        for subject, rows in means.groupby(SUBJECT, sort=False):
            log_estimate = mean_over_tasks(np.log(rows[SPEEDUP].to_numpy()))
            ends = [log_estimate.value, log_estimate.lower, log_estimate.upper]
            estimate = Estimate(*np.exp(ends).tolist())
            measured = f"{estimate.value:.2f}"
            if not math.isnan(estimate.lower):
                measured += f" ({estimate.lower:.2f} to {estimate.upper:.2f})"
            findings.append(Finding(str(subject), measured, decide_speedup(estimate)))
        return findings

    return check


def fastest(method: str, others: Sequence[str], *, reference: str) -> Check:
    """A method's mean speed-up over benchmarks is larger than those of the others.

    Differences of the logarithms are paired by benchmark, as speed-ups are of all seeds together.
    """

    def check(evidence: Evidence, comparisons: Sequence[MethodComparison]) -> list[Finding]:
        means = _means_of_benchmarks(evidence, comparisons, SPEEDUP, reference)
        findings = []
        for subject, rows in means.groupby(SUBJECT, sort=False):
            speedups = rows.pivot_table(index="benchmark", columns="method", values=SPEEDUP)
            logarithms = np.log(speedups)
            outcomes = []
            for other in others:
                lag = mean_over_tasks((logarithms[other] - logarithms[method]).to_numpy())
                outcomes.append(decide(lag.value, lag.value - lag.lower))
            mean_of_method = np.exp(logarithms.mean())
            measured = ", ".join(f"{name} {mean_of_method[name]:.2f}" for name in (method, *others))
            findings.append(Finding(str(subject), measured, combine_outcomes(outcomes)))
        return findings

    return check


def often_fails(method: str, *, share: float, reference: str) -> Check:
    """At least a share of a method's runs never reaches the reference, on average.

    Errors are those of the mean over benchmarks.
    """

    def check(evidence: Evidence, comparisons: Sequence[MethodComparison]) -> list[Finding]:
        means = _means_of_benchmarks(evidence, comparisons, FAILURE_RATE, reference)
        findings = []
        for subject, rows in means.groupby(SUBJECT, sort=False):
            rates = rows.pivot_table(index="benchmark", columns="method", values=FAILURE_RATE)
            rate = mean_over_tasks(rates[method].to_numpy())
            rate_of_reference = rates[reference].mean()
            measured = f"{rate.value:.0%} of the runs, {reference} {rate_of_reference:.0%}"
            outcome = decide(share - rate.value, rate.value - rate.lower)
            findings.append(Finding(str(subject), measured, outcome))
        return findings

    return check


def mean_over(table: "pd.DataFrame", measure: str, labels: Sequence[str]) -> "pd.DataFrame":
    """Means of a measure by label, in the order of the labels; of speed-ups geometric ones."""
    is_geometric = measure == SPEEDUP
    values = np.log(table[measure]) if is_geometric else table[measure]
    means = table.assign(**{measure: values}).groupby([*labels], sort=False)[measure].mean()
    if is_geometric:
        means = np.exp(means)
    return means.reset_index()


def _means_of_benchmarks(
    evidence: Evidence, comparisons: Sequence[MethodComparison], measure: str, reference: str
) -> "pd.DataFrame":
    """Means over tasks by benchmark, method and subject, which names the budgets."""
    table = speedup_table(evidence, comparisons, reference=reference)
    subjects = f"{reference} with " + table["reference_budget"].astype(str)
    if table["old_budget"].nunique() > 1:
        subjects = table["old_budget"].astype(str) + " trials before, " + subjects
    return mean_over(table.assign(**{SUBJECT: subjects}), measure, ["benchmark", "method", SUBJECT])


def _with_means(drawn: "pd.DataFrame", measure: str) -> "pd.DataFrame":
    """The values with a column of their means."""
    labels = ["panel", "group", "method"]
    means = mean_over(drawn, measure, labels).rename(columns={measure: "mean"})
    return drawn.merge(means, on=labels)


def _old_budget(comparison: MethodComparison) -> int:
    assert isinstance(comparison.protocol, Adjustment)
    return comparison.protocol.first_trials
