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
    comparisons: Comparisons,
    *,
    reference: str,
    methods: Sequence[str],
) -> Content:
    """Draw speed-ups on all tasks by benchmark, with one panel per budget of the reference.

    The comparisons must have one old budget.
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


def by_reference_budget(
    evidence: Evidence,
    comparisons: Comparisons,
    *,
    reference: str,
    methods: Sequence[str],
    measure: str,
) -> Content:
    """Draw means of benchmarks by the reference's budget, with one panel per old budget."""
    table = speedup_table(evidence, comparisons, reference=reference)
    of_tasks = table[table["method"].isin(methods)]
    drawn = mean_over(of_tasks, measure, ["benchmark", "method", *BUDGETS])
    panel = "all old budgets"
    if drawn["old_budget"].nunique() > 1:
        panel = drawn["old_budget"].astype(str) + " trials before the adjustment"
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


def is_faster(
    evidence: Evidence,
    comparisons: Comparisons,
    method: str,
    others: Sequence[str],
    *,
    reference: str,
) -> list[Finding]:
    """Check that a method's mean speed-up over families is larger than those of others."""
    findings = []
    for subject, speedup in iter_family_means(evidence, comparisons, SPEEDUP, reference):
        parts = [compare_speedups(subject, speedup, method, other) for other in others]
        findings.append(find_weakest(parts))
    return findings


def is_level(
    evidence: Evidence, comparisons: Comparisons, method: str, *, factor: float, reference: str
) -> list[Finding]:
    """Check that a method and the reference are less than `factor` times as fast as each other."""
    findings = []
    for subject, speedup in iter_family_means(evidence, comparisons, SPEEDUP, reference):
        parts = [
            compare_speedups(subject, speedup, method, reference, allowed=factor),
            compare_speedups(subject, speedup, reference, method, allowed=factor),
        ]
        findings.append(find_weakest(parts))
    return findings


def compare_speedups(
    subject: str, speedup: "pd.DataFrame", method: str, other: str, *, allowed: float = 1.0
) -> Finding:
    """Compare the speed-ups of two methods: is the first `1 / allowed` times as fast, or more?

    The differences are of logarithms, family by family.

    Args:
        subject: The subject of the finding.
        speedup: Speed-ups over the reference; families are rows, methods columns.
        method: The first method.
        other: The second method.
        allowed: Factor by which the first method may be slower.
    """
    log_ratios = np.log(speedup[method] / speedup[other] * allowed).to_numpy()
    means = np.exp(np.log(speedup).mean())
    sentence = f"{method} {means[method]:.2f} times as fast"
    if means[other] != 1:
        sentence += f", {other} {means[other]:.2f}"
    if allowed != 1:
        sentence += f", allowed {allowed} times slower"
    return Finding.from_samples(subject, sentence, log_ratios, is_ratio=True)


def often_fails(
    evidence: Evidence, comparisons: Comparisons, method: str, *, share: float, reference: str
) -> list[Finding]:
    """Check that on average at least a share of a method's runs never reaches the reference.

    Errors are over families of benchmarks.
    """
    findings = []
    for subject, rate in iter_family_means(evidence, comparisons, FAILURE_RATE, reference):
        sentence = (
            f"{rate[method].mean():.0%} of the runs, {reference} {rate[reference].mean():.0%}, "
            f"asked {share:.0%}"
        )
        excess = (rate[method] - share).to_numpy()
        findings.append(Finding.from_samples(subject, sentence, excess, form=".0%"))
    return findings


def mean_over(table: "pd.DataFrame", measure: str, labels: Sequence[str]) -> "pd.DataFrame":
    """Return the mean of a measure for each combination of labels; speed-ups have geometric means.

    The rows are in the order in which the combinations first occur in the table.
    """
    is_geometric = measure == SPEEDUP
    values = np.log(table[measure]) if is_geometric else table[measure]
    means = table.assign(**{measure: values}).groupby([*labels], sort=False)[measure].mean()
    if is_geometric:
        means = np.exp(means)
    return means.reset_index()


def iter_family_means(
    evidence: Evidence, comparisons: Comparisons, measure: str, reference: str
) -> Iterator[tuple[str, "pd.DataFrame"]]:
    """Yield each pair of an old budget and one of the reference, with the means of families.

    A pair has a name such as "20 trials before, tpe with 10". Rows of means are families of
    benchmarks, columns are methods. A family's mean is over its benchmarks, whose means are over
    their tasks.
    """
    table = speedup_table(evidence, comparisons, reference=reference)
    subjects = f"{reference} with " + table["reference_budget"].astype(str)
    if table["old_budget"].nunique() > 1:
        subjects = table["old_budget"].astype(str) + " trials before, " + subjects
    table = table.assign(subject=subjects)
    of_benchmarks = mean_over(table, measure, ["benchmark", "method", "subject"])
    families = of_benchmarks["benchmark"].map(find_family)
    of_families = mean_over(
        of_benchmarks.assign(family=families), measure, ["family", "method", "subject"]
    )
    for subject, rows in of_families.groupby("subject", sort=False):
        yield str(subject), rows.pivot_table(index="family", columns="method", values=measure)


def find_family(benchmark: str) -> str:
    """Return the family of a benchmark; one without a family is its own."""
    return benchmark_spec(benchmark).family or benchmark


def _with_means(drawn: "pd.DataFrame", measure: str) -> "pd.DataFrame":
    """Return the values with a column of means, each that of a method in its group and panel."""
    labels = ["panel", "group", "method"]
    means = mean_over(drawn, measure, labels).rename(columns={measure: "mean"})
    return drawn.merge(means, on=labels)


def _old_budget(comparison: MethodComparison) -> int:
    """Return the number of trials before the adjustment."""
    assert isinstance(comparison.protocol, Adjustment)
    return comparison.protocol.first_trials
