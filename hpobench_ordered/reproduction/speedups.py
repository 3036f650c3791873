"""Speed-ups over a method without transfer, after a change of the search space.

Figures and checks take a comparison for each benchmark and number of trials before the adjustment,
the *old budget*. The reference is in one comparison per benchmark: it does not use the old step, so
its runs are the same for all old budgets. Means of speed-ups are geometric, those of failure rates
arithmetic; means over benchmarks are of the means over their tasks.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered import plotting
from hpobench_ordered.analysis.curves import cross_labels
from hpobench_ordered.analysis.differences import Estimate, mean_over_tasks
from hpobench_ordered.analysis.speedup import speedups
from hpobench_ordered.protocols import Adjustment
from hpobench_ordered.reproduction.evidence import Comparison, Evidence
from hpobench_ordered.reproduction.paper import Check, Drawing, Finding

if TYPE_CHECKING:
    import pandas as pd

SPEEDUP, FAILURE_RATE = "speedup", "failure_rate"
TITLES = {SPEEDUP: "speed-up over {}", FAILURE_RATE: "share of the runs that fail"}
ALL = "all"
"""Label of the mean over benchmarks."""

STEP = ["old_budget", "reference_budget"]
SUBJECT = "subject"


def speedup_table(
    evidence: Evidence, comparisons: Sequence[Comparison], *, reference: str
) -> "pd.DataFrame":
    """Speed-ups over a reference, and failure rates of all methods."""
    import pandas as pd

    with_reference = {item.benchmark: item for item in comparisons if reference in item.methods}
    frames = []
    for item in comparisons:
        others = tuple(method for method in item.methods if method != reference)
        if not others:
            continue
        base = replace(with_reference[item.benchmark], methods=(reference,))
        losses = [evidence.losses(one) for one in (base, replace(item, methods=others))]
        found = speedups(np.concatenate(losses), (reference, *others), reference=reference)
        levels: dict[str, Sequence[Any]] = {
            "old_budget": [_old_budget(item)],
            "benchmark": [item.benchmark],
            "method": found.methods,
            "task": range(1, found.values.shape[1] + 1),
            "reference_budget": found.budgets,
        }
        columns = {SPEEDUP: found.values, FAILURE_RATE: found.failure_rates}
        frames.append(cross_labels(levels, **columns))
    return pd.concat(frames, ignore_index=True)


def speedups_by_benchmark(
    evidence: Evidence, comparisons: Sequence[Comparison], *, reference: str, methods: Sequence[str]
) -> Drawing:
    """Speed-ups on every task by benchmark, after one old budget; a panel per reference budget."""
    import pandas as pd

    table = speedup_table(evidence, comparisons, reference=reference)
    tasks = table[table["method"].isin(methods)]
    means = mean_over(tasks, SPEEDUP, ["benchmark", "method", *STEP])
    shown = pd.concat([tasks, means.assign(benchmark=ALL)], ignore_index=True)
    shown = shown.assign(
        panel=f"{reference} with " + shown["reference_budget"].astype(str) + " trials",
        group=shown["benchmark"],
        value=shown[SPEEDUP],
    )
    title = TITLES[SPEEDUP].format(reference)
    chart = plotting.strips(
        _with_means(shown, SPEEDUP), x="benchmark", y=title, log=True, columns=1, size=(860, 190)
    )
    return Drawing(chart, table)


def by_reference_budget(
    evidence: Evidence,
    comparisons: Sequence[Comparison],
    *,
    reference: str,
    methods: Sequence[str],
    measure: str,
) -> Drawing:
    """The means of benchmarks by budget of the reference, a panel an old budget."""
    table = speedup_table(evidence, comparisons, reference=reference)
    tasks = table[table["method"].isin(methods)]
    shown = mean_over(tasks, measure, ["benchmark", "method", *STEP])
    panel = "all old budgets"
    if shown["old_budget"].nunique() > 1:
        panel = shown["old_budget"].astype(str) + " trials before the adjustment"
    shown = shown.assign(panel=panel, group=shown["reference_budget"], value=shown[measure])
    chart = plotting.strips(
        _with_means(shown, measure),
        x=f"trials of {reference}",
        y=TITLES[measure].format(reference),
        log=measure == SPEEDUP,
        columns=3,
        size=(270, 220),
    )
    return Drawing(chart, table)


def average_speedup(method: str, holds: Callable[[Estimate], bool], *, reference: str) -> Check:
    """A method's mean speed-up over benchmarks ± two standard errors satisfies a condition."""

    def check(evidence: Evidence, comparisons: Sequence[Comparison]) -> list[Finding]:
        means = _by_benchmark(evidence, comparisons, SPEEDUP, reference)
        findings = []
        for subject, group in means[means["method"] == method].groupby(SUBJECT, sort=False):
            logs = mean_over_tasks(np.log(group[SPEEDUP].to_numpy()))
            found = Estimate(*np.exp([logs.value, logs.lower, logs.upper]).tolist())
            measured = f"{found.value:.2f}"
            if not math.isnan(found.lower):
                measured += f" ({found.lower:.2f} to {found.upper:.2f})"
            findings.append(Finding(str(subject), measured, holds(found)))
        return findings

    return check


def fastest(method: str, others: Sequence[str], *, reference: str) -> Check:
    """A method's mean speed-up over benchmarks is larger than those of the others."""

    def check(means: Mapping[str, float]) -> tuple[str, bool]:
        measured = ", ".join(f"{name} {means[name]:.2f}" for name in (method, *others))
        return measured, means[method] > max(means[name] for name in others)

    return _on_averages(check, SPEEDUP, reference)


def often_fails(method: str, *, share: float, reference: str) -> Check:
    """At least a share of a method's runs never reaches the reference, on average."""

    def check(means: Mapping[str, float]) -> tuple[str, bool]:
        measured = f"{means[method]:.0%} of the runs, {reference} {means[reference]:.0%}"
        return measured, means[method] >= share

    return _on_averages(check, FAILURE_RATE, reference)


def mean_over(table: "pd.DataFrame", measure: str, labels: Sequence[str]) -> "pd.DataFrame":
    """Means of a measure by label, in the order of the labels."""
    is_geometric = measure == SPEEDUP
    values = np.log(table[measure]) if is_geometric else table[measure]
    means = table.assign(**{measure: values}).groupby([*labels], sort=False)[measure].mean()
    return (np.exp(means) if is_geometric else means).reset_index()


def _on_averages(
    check: Callable[[Mapping[str, float]], tuple[str, bool]], measure: str, reference: str
) -> Check:
    """Check means over benchmarks of their means over tasks, by method, for each subject."""

    def checked(evidence: Evidence, comparisons: Sequence[Comparison]) -> list[Finding]:
        table = _by_benchmark(evidence, comparisons, measure, reference)
        means = mean_over(table, measure, ["method", SUBJECT]).groupby(SUBJECT, sort=False)
        return [
            Finding(str(subject), *check(rows.set_index("method")[measure].to_dict()))
            for subject, rows in means
        ]

    return checked


def _by_benchmark(
    evidence: Evidence, comparisons: Sequence[Comparison], measure: str, reference: str
) -> "pd.DataFrame":
    """Means over tasks by benchmark, method and subject, which names the budgets."""
    table = speedup_table(evidence, comparisons, reference=reference)
    subjects = f"{reference} with " + table["reference_budget"].astype(str)
    if table["old_budget"].nunique() > 1:
        subjects = table["old_budget"].astype(str) + " trials before, " + subjects
    return mean_over(table.assign(**{SUBJECT: subjects}), measure, ["benchmark", "method", SUBJECT])


def _with_means(shown: "pd.DataFrame", measure: str) -> "pd.DataFrame":
    """The values with a column of their means."""
    where = ["panel", "group", "method"]
    means = mean_over(shown, measure, where).rename(columns={measure: "mean"})
    return shown.merge(means, on=where)


def _old_budget(comparison: Comparison) -> int:
    assert isinstance(comparison.protocol, Adjustment)
    return comparison.protocol.first_trials
