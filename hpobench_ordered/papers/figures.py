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
    """Draw the means of measures after every trial, with their errors.

    Each comparison is a row of panels, and each measure a column.

    Args:
        evidence: The results.
        comparisons: The comparisons.
        measures: The measures.
        by_task: Whether each task of a comparison has a row of its own.
        times: Whether a last column shows the methods' CPU times; not together with `by_task`.
        over_runs: Whether the paper takes each run, a task with a seed, as one sample. Ranks then
            have one standard deviation over runs instead of two standard errors over seeds.
    """
    import pandas as pd

    charts_of_row: dict[str, list[alt.TopLevelMixin]] = {}  # by the title of the row
    tables = []
    names = name_comparisons(comparisons)
    for comparison, name in zip(comparisons, names, strict=True):
        for measure in measures:
            if by_task:
                scores_of_label = evidence.measure_by_task(comparison, measure)
            else:
                scores_of_label = {"mean": evidence.measure(comparison, measure)}
            has_deviations = over_runs and measure is Measure.RANK
            for label, scores in scores_of_label.items():  # "mean", or the name of a task
                row_title = f"{name}, {label}"
                panel = mean_curves(scores, measure, name=row_title, deviations=has_deviations)
                charts_of_row.setdefault(row_title, []).append(panel.chart)
                tables.append(panel.data)
    if times:
        for comparison, name in zip(comparisons, names, strict=True):
            row_title = f"{name}, mean"
            panel = draw_times(evidence, comparison, name=row_title)
            charts_of_row[row_title].append(panel.chart)
            tables.append(panel.data)

    panels_of_rows = list(chain.from_iterable(charts_of_row.values()))
    samples = "runs" if over_runs else "seeds"
    has_same_methods = len({comparison.methods for comparison in comparisons}) == 1
    chart = paper_charts.arrange(
        panels_of_rows,
        columns=len(measures) + (1 if times else 0),
        title=f"after every trial, mean over {samples}",
        shared=has_same_methods,
    )
    data = pd.concat(tables, ignore_index=True)
    data = data.astype({"trial": "Int64"})  # rows of times have no trial
    return Content(data, chart)


def mean_curves(
    scores: Scores, measure: Measure, *, name: str, deviations: bool = False
) -> Content:
    """Draw the mean of a measure over tasks and seeds after every trial, one curve per method.

    The band around a curve is two standard errors over seeds to both sides.

    Args:
        scores: The values of the measure.
        measure: The measure.
        name: Title of the panel.
        deviations: Whether the band is one standard deviation over runs, to both sides, instead.
    """
    mean, two_standard_errors = mean_over_tasks(scores)  # (methods, trials) each
    half_width = deviation_over_runs(scores) if deviations else two_standard_errors
    low = mean - half_width
    high = mean + half_width
    if (mean >= 0).all():
        # The axis may be logarithmic. Bands that reach 0 would not be visible there.
        smallest_positive = mean[mean > 0].min(initial=np.inf)
        low = np.maximum(low, smallest_positive / 1.1)
    low = np.minimum(low, mean)  # a mean of 0 stays inside its band

    levels = {"method": scores.methods, "trial": range(1, mean.shape[-1] + 1)}
    data = cross_labels(levels, mean=mean, low=low, high=high)
    # The numbers name the panel as their benchmark.
    data = data.assign(benchmark=name, measure=measure.value)
    label = f"mean {measure.value}"  # title of the vertical axis
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
    """Average over tasks and seeds after every trial.

    Returns:
        The means, and two standard errors over seeds; both have the shape (methods, trials).
    """
    trials = range(1, scores.values.shape[-1] + 1)
    after_trials = [scores.over_tasks(trial=trial) for trial in trials]
    mean = np.stack([means.mean for means in after_trials], axis=-1)
    errors = np.stack([means.two_standard_errors for means in after_trials], axis=-1)
    return mean, errors


def deviation_over_runs(scores: Scores) -> FloatArray:
    """Compute standard deviations over runs, each of which is a task with a seed.

    Returns:
        The deviations, (methods, trials); NaN if there is only one run.
    """
    n_methods, n_seeds, n_tasks, n_trials = scores.values.shape
    n_runs = n_seeds * n_tasks
    if n_runs == 1:
        return np.full((n_methods, n_trials), np.nan)
    values_of_runs = scores.values.reshape(n_methods, n_runs, n_trials)
    return np.asarray(values_of_runs.std(axis=1, ddof=1))


def draw_times(evidence: Evidence, comparison: MethodComparison, *, name: str) -> Content:
    """Draw the mean CPU time, in ms, that each method of a comparison takes for a suggestion.

    `name` stands for the panel in the column `benchmark` of the data.
    """
    import pandas as pd

    methods = comparison.methods
    milliseconds = [evidence.milliseconds(comparison.benchmark, method) for method in methods]
    data = pd.DataFrame({"method": methods, "milliseconds": milliseconds})
    chart = paper_charts.times(data, methods=methods, title="time")
    return Content(data.assign(benchmark=name, measure="time"), chart)


def name_comparisons(comparisons: Comparisons) -> list[str]:
    """Name each comparison by its benchmark.

    If several comparisons are on the same benchmark, their names also tell their first methods.
    """
    benchmarks = [comparison.benchmark for comparison in comparisons]
    names = []
    for comparison in comparisons:
        name = comparison.benchmark
        is_shared = benchmarks.count(name) > 1
        if is_shared:
            name = f"{name}: {comparison.methods[0]} and others"
        names.append(name)
    return names
