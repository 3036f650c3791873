"""Curves over trials that several papers show, drawn by `reporting.charts`.

A figure's function takes the results and the comparisons of the figure, from top to bottom, and the
paper's choices. Figures of one paper alone stand in that paper's folder.
"""

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.curves import cross_labels
from hpobench_ordered.analysis.scores import Scores
from hpobench_ordered.papers import charts as paper_charts
from hpobench_ordered.papers.evidence import Comparisons, Evidence, Measure, MethodComparison
from hpobench_ordered.papers.paper import Content
from hpobench_ordered.reporting import charts

if TYPE_CHECKING:
    import altair as alt

PANEL = (300, 230)
"""Width and height of a large panel, in pixels."""


def progress(
    evidence: Evidence,
    comparisons: Comparisons,
    *,
    measures: Sequence[Measure] = (Measure.REGRET, Measure.RANK),
    by_task: bool = False,
    times: bool = False,
    over_runs: bool = False,
) -> Content:
    """Draw means after every trial with two standard errors: one row of panels per comparison.

    Args:
        evidence: The results.
        comparisons: The comparisons.
        measures: Measures, a column of panels each.
        by_task: Whether each task has a row of its own.
        times: Whether a last column shows the methods' own time.
        over_runs: Whether errors are over runs and not over seeds; ranks then have one standard
            deviation.
    """
    import pandas as pd

    charts_of_row: dict[str, list[alt.TopLevelMixin]] = {}
    tables = []
    names = name_comparisons(comparisons)
    for comparison, name in zip(comparisons, names, strict=True):
        for measure in measures:
            if by_task:
                scores_of_part = evidence.measure_by_task(comparison, measure)
            else:
                scores_of_part = {"mean": evidence.measure(comparison, measure)}
            has_deviations = over_runs and measure is Measure.RANK
            for part, scores in scores_of_part.items():
                row = f"{name}, {part}"
                panel = mean_curves(scores, measure, name=row, deviations=has_deviations)
                charts_of_row.setdefault(row, []).append(panel.chart)
                tables.append(panel.data)
    if times:
        for comparison, name in zip(comparisons, names, strict=True):
            row = f"{name}, mean"
            panel = draw_times(evidence, comparison, name=row)
            charts_of_row[row].append(panel.chart)
            tables.append(panel.data)

    has_same_methods = len({comparison.methods for comparison in comparisons}) == 1
    chart = paper_charts.beside(
        list(chain.from_iterable(charts_of_row.values())),
        columns=len(measures) + times,
        title=f"after every trial, mean over {'runs' if over_runs else 'seeds'}",
        shared=has_same_methods,
    )
    data = pd.concat(tables, ignore_index=True)
    data = data.astype({"trial": "Int64"})  # rows of times have no trial
    return Content(data, chart)


def mean_curves(
    scores: Scores, measure: Measure, *, name: str, deviations: bool = False
) -> Content:
    """Draw one panel of `progress`: means over tasks and seeds with two standard errors.

    Args:
        scores: What is measured.
        measure: What it is.
        name: Title of the panel.
        deviations: Whether to show one standard deviation over seeds and tasks instead.
    """
    mean, errors = mean_over_tasks(scores)
    if deviations:
        errors = deviation_over_runs(scores)
    low = mean - errors
    if (mean >= 0).all():  # keep bands visible on a logarithmic axis
        smallest_positive = mean[mean > 0].min(initial=np.inf)
        low = np.maximum(low, smallest_positive / 1.1)

    levels = {"method": scores.methods, "trial": range(1, mean.shape[-1] + 1)}
    data = cross_labels(levels, mean=mean, low=np.minimum(low, mean), high=mean + errors)
    data = data.assign(benchmark=name, measure=measure.value)
    label = f"mean {measure.value}"
    chart = charts.curves(
        data.assign(measure=label),
        measure=label,
        methods=scores.methods,
        ends=False,
        size=PANEL,
        title=name,
    )
    return Content(data, chart)


def mean_over_tasks(scores: Scores) -> tuple[FloatArray, FloatArray]:
    """Return means over tasks and seeds, and two standard errors over seeds, (A, M) each."""
    trials = range(1, scores.values.shape[-1] + 1)
    after_trials = [scores.over_tasks(trial=trial) for trial in trials]
    mean = np.stack([means.mean for means in after_trials], axis=-1)
    errors = np.stack([means.two_standard_errors for means in after_trials], axis=-1)
    return mean, errors


def deviation_over_runs(scores: Scores) -> FloatArray:
    """Return standard deviations over runs, (A, M); NaN if there is one run.

    A run is a task with a seed.
    """
    number_of_methods, *_, number_of_trials = scores.values.shape
    runs = scores.values.reshape(number_of_methods, -1, number_of_trials)
    if runs.shape[1] == 1:
        return np.full((number_of_methods, number_of_trials), np.nan)
    return np.asarray(runs.std(axis=1, ddof=1))


def draw_times(evidence: Evidence, comparison: MethodComparison, *, name: str) -> Content:
    """Draw the mean CPU time that each method of a comparison takes for a suggestion."""
    import pandas as pd

    methods = comparison.methods
    milliseconds = [evidence.milliseconds(comparison.benchmark, method) for method in methods]
    data = pd.DataFrame({"method": methods, "milliseconds": milliseconds})
    chart = paper_charts.times(data, methods=methods, title="time")
    return Content(data.assign(benchmark=name, measure="time"), chart)


def name_comparisons(comparisons: Comparisons) -> list[str]:
    """Name each comparison by its benchmark, and by its first method where several have that."""
    benchmarks = [comparison.benchmark for comparison in comparisons]
    names = []
    for comparison in comparisons:
        name = comparison.benchmark
        if benchmarks.count(name) > 1:
            name = f"{name}: {comparison.methods[0]} and others"
        names.append(name)
    return names
