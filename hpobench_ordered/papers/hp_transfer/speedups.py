"""Speed-ups over a method without transfer, after a change of the search space.

Figures and checks take a comparison for each benchmark and number of trials before the adjustment,
the *old budget*. The reference is in one comparison per benchmark: it does not use the old step, so
its runs are the same for all old budgets. Means of speed-ups are geometric, those of failure rates
arithmetic; means over benchmarks are of the means over their tasks.

Benchmarks of one family, such as `fcn-a` and `fcn-b`, are evaluated on the same tables or models,
so that methods differ alike on them. Findings therefore have one sample for each family.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered.analysis.curves import cross_labels
from hpobench_ordered.analysis.speedup import speedups
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.experiment.protocols import Adjustment
from hpobench_ordered.papers import charts as paper_charts
from hpobench_ordered.papers.claims import Finding, find_weakest
from hpobench_ordered.papers.evidence import Comparisons, Evidence, MethodComparison
from hpobench_ordered.papers.paper import Content

if TYPE_CHECKING:
    import pandas as pd

SPEEDUP = "speedup"
FAILURE_RATE = "failure_rate"
AXIS_TITLES = {SPEEDUP: "speed-up over {}", FAILURE_RATE: "share of the runs that fail"}

ALL = "all"
"""Label of the mean over benchmarks."""

BUDGETS = ["old_budget", "reference_budget"]


def speedup_table(
    evidence: Evidence, comparisons: Comparisons, *, reference: str
) -> "pd.DataFrame":
    """Tabulate the speed-ups of all methods over a reference, and their failure rates.

    The table has a row for each old budget, benchmark, method, task and budget of the reference.

    Args:
        evidence: The results.
        comparisons: The comparisons: one per benchmark that has the reference, and any number of
            others.
        reference: The method without transfer.
    """
    import pandas as pd

    reference_losses = {}  # by benchmark, (1, seeds, tasks, trials)
    for comparison in comparisons:
        if reference in comparison.methods:
            only_reference = replace(comparison, methods=(reference,))
            reference_losses[comparison.benchmark] = evidence.losses(only_reference)

    tables = []
    for comparison in comparisons:
        others = tuple(method for method in comparison.methods if method != reference)
        if not others:
            continue
        losses_of_others = evidence.losses(replace(comparison, methods=others))
        losses = np.concatenate([reference_losses[comparison.benchmark], losses_of_others])
        result = speedups(losses, (reference, *others), reference=reference)
        number_of_tasks = result.values.shape[1]  # (methods, tasks, budgets)
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


def draw_speedups_by_benchmark(
    evidence: Evidence,
    comparisons: Comparisons,
    *,
    reference: str,
    methods: Sequence[str],
) -> Content:
    """Draw the speed-ups on all tasks, grouped by benchmark, with a panel per reference budget.

    A last group, `ALL`, has the means of benchmarks as points. All comparisons must have the same
    old budget.
    """
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
    chart = paper_charts.strips(
        _with_means(drawn, SPEEDUP),
        x="benchmark",
        y=AXIS_TITLES[SPEEDUP].format(reference),
        log=True,
        columns=1,
        size=(860, 190),
    )
    return Content(table, chart)


def draw_means_by_reference_budget(
    evidence: Evidence,
    comparisons: Comparisons,
    *,
    reference: str,
    methods: Sequence[str],
    measure: str,
) -> Content:
    """Draw the means of benchmarks, grouped by the reference's budget, with a panel per old budget.

    Args:
        evidence: The results.
        comparisons: As for `speedup_table`.
        reference: The method without transfer.
        methods: The methods that are drawn.
        measure: `SPEEDUP` or `FAILURE_RATE`.
    """
    table = speedup_table(evidence, comparisons, reference=reference)
    of_tasks = table[table["method"].isin(methods)]
    drawn = mean_over(of_tasks, measure, ["benchmark", "method", *BUDGETS])
    if drawn["old_budget"].nunique() > 1:
        panel = drawn["old_budget"].astype(str) + " trials before the adjustment"
    else:  # the methods do not use the old step: their runs are the same for all old budgets
        panel = "all old budgets"
    drawn = drawn.assign(panel=panel, group=drawn["reference_budget"], value=drawn[measure])
    chart = paper_charts.strips(
        _with_means(drawn, measure),
        x=f"trials of {reference}",
        y=AXIS_TITLES[measure].format(reference),
        log=measure == SPEEDUP,
        columns=3,
        size=(270, 220),
    )
    return Content(table, chart)


def find_whether_faster(
    evidence: Evidence,
    comparisons: Comparisons,
    method: str,
    others: Sequence[str],
    *,
    reference: str,
) -> list[Finding]:
    """Find whether a method's mean speed-up over families is larger than that of each other method.

    There is a finding for each pair of budgets, on the other method that speaks least for it.
    """
    findings = []
    for budgets, speedup in iter_family_means(evidence, comparisons, SPEEDUP, reference):
        findings_on_others = [compare_speedups(budgets, speedup, method, other) for other in others]
        findings.append(find_weakest(findings_on_others))
    return findings


def find_whether_about_as_fast(
    evidence: Evidence, comparisons: Comparisons, method: str, *, factor: float, reference: str
) -> list[Finding]:
    """Find whether a method and the reference are about equally fast.

    They are if neither is `factor` times as fast as the other, or faster. So two comparisons must
    turn out right for each pair of budgets: the method must not be much slower, and not much
    faster. The finding is on the one that speaks less for the claim.
    """
    findings = []
    for budgets, speedup in iter_family_means(evidence, comparisons, SPEEDUP, reference):
        not_much_slower = compare_speedups(budgets, speedup, method, reference, allowed=factor)
        not_much_faster = compare_speedups(budgets, speedup, reference, method, allowed=factor)
        findings.append(find_weakest([not_much_slower, not_much_faster]))
    return findings


def compare_speedups(
    budgets: str, speedup: "pd.DataFrame", method: str, other: str, *, allowed: float = 1.0
) -> Finding:
    """Find whether a method is faster than another, or at most `allowed` times slower.

    The finding is on the logarithm of the ratio of their speed-ups, family by family.

    Args:
        budgets: Both budgets in words, the subject of the finding.
        speedup: Speed-ups over the reference; families are rows, methods columns.
        method: The method.
        other: The method that it is compared with.
        allowed: Factor by which the method may be slower; 1 if it must be faster.
    """
    ratios = speedup[method] / speedup[other]
    log_ratios = np.log(ratios * allowed).to_numpy()
    means = np.exp(np.log(speedup).mean())  # geometric means over families, by method
    sentence = f"{method} {means[method]:.2f} times as fast"
    if means[other] != 1:  # the speed-up of the reference over itself is 1
        sentence += f", {other} {means[other]:.2f}"
    if allowed != 1:
        sentence += f", allowed {allowed} times slower"
    return Finding.from_samples(budgets, sentence, log_ratios, is_ratio=True)


def find_whether_often_failing(
    evidence: Evidence, comparisons: Comparisons, method: str, *, share: float, reference: str
) -> list[Finding]:
    """Find whether at least a share of a method's runs never gets as far as the reference.

    There is a finding for each pair of budgets, with a sample for each family of benchmarks: the
    mean share over its tasks, minus the share that is asked for.
    """
    findings = []
    for budgets, rate in iter_family_means(evidence, comparisons, FAILURE_RATE, reference):
        sentence = (
            f"{rate[method].mean():.0%} of the runs, {reference} {rate[reference].mean():.0%}, "
            f"asked {share:.0%}"
        )
        excess = (rate[method] - share).to_numpy()  # positive: fails more often than asked
        findings.append(Finding.from_samples(budgets, sentence, excess, number_format=".0%"))
    return findings


def mean_over(table: "pd.DataFrame", measure: str, labels: Sequence[str]) -> "pd.DataFrame":
    """Average a measure over the rows of a table with the same labels.

    Args:
        table: The table.
        measure: `SPEEDUP`, whose means are geometric, or `FAILURE_RATE`.
        labels: The columns of labels.

    Returns:
        A row for each combination of labels, in the order in which these occur in the table first,
        with the columns of labels and that of the measure.
    """
    is_geometric = measure == SPEEDUP
    if is_geometric:
        table = table.assign(**{measure: np.log(table[measure])})
    means = table.groupby([*labels], sort=False)[measure].mean()
    if is_geometric:
        means = np.exp(means)
    return means.reset_index()  # the labels become columns


def iter_family_means(
    evidence: Evidence, comparisons: Comparisons, measure: str, reference: str
) -> Iterator[tuple[str, "pd.DataFrame"]]:
    """Yield the means of families for each pair of an old budget and a budget of the reference.

    A pair comes as words, such as "20 trials before, tpe with 10", and a table of means, whose rows
    are families of benchmarks and whose columns are methods. A family's mean is over its
    benchmarks, whose means are over their tasks.
    """
    table = speedup_table(evidence, comparisons, reference=reference)
    budgets = f"{reference} with " + table["reference_budget"].astype(str)
    if table["old_budget"].nunique() > 1:
        budgets = table["old_budget"].astype(str) + " trials before, " + budgets
    table = table.assign(budgets=budgets)

    means_of_benchmarks = mean_over(table, measure, ["benchmark", "method", "budgets"])
    families = means_of_benchmarks["benchmark"].map(find_family)
    means_of_families = mean_over(
        means_of_benchmarks.assign(family=families), measure, ["family", "method", "budgets"]
    )
    for words, rows in means_of_families.groupby("budgets", sort=False):
        yield str(words), rows.pivot_table(index="family", columns="method", values=measure)


def find_family(benchmark: str) -> str:
    """Find the family of a benchmark; a benchmark without one is a family by itself."""
    return benchmark_spec(benchmark).family or benchmark


def _with_means(drawn: "pd.DataFrame", measure: str) -> "pd.DataFrame":
    """Add the column `mean`: in each row the mean of its method in its group and panel."""
    labels = ["panel", "group", "method"]
    means = mean_over(drawn, measure, labels).rename(columns={measure: "mean"})
    return drawn.merge(means, on=labels)


def _old_budget(comparison: MethodComparison) -> int:
    """Return the old budget: how many trials a comparison has before the adjustment."""
    assert isinstance(comparison.protocol, Adjustment)
    return comparison.protocol.first_trials
