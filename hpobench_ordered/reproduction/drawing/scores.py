"""Figures of normalised scores: bars by task, points by task, curves over trials."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis import Scores
from hpobench_ordered.reporting.bars import draw_bars
from hpobench_ordered.reporting.style import legend_below, styles, tidy
from hpobench_ordered.reproduction.drawing.common import heading, score_table, task_label
from hpobench_ordered.reproduction.evidence import FIRST_WITH_HISTORY, Evidence
from hpobench_ordered.reproduction.paper import Comparison, Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPREAD = 0.36
"""Width over which the points of a task are laid out side by side; tasks are 1 apart."""


def bars(
    evidence: Evidence,
    comparisons: Sequence[Comparison],
    *,
    trial: int,
    tops: Mapping[str, float],
    tasks: Mapping[str, Sequence[int]],
) -> Drawing:
    """Draw bars by task after a trial, one row a benchmark.

    Args:
        evidence: The results.
        comparisons: The comparisons, from top to bottom; all their methods are shown.
        trial: The trial, counted from 1.
        tops: Upper end of the plotted range by benchmark.
        tasks: Tasks to show by benchmark, from 0; the table lists all.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 1.0 + 2.0 * len(comparisons)), layout="constrained")
    panels = figure.subplots(len(comparisons), 1, squeeze=False)[:, 0]
    looks = styles({method for comparison in comparisons for method in comparison.methods})
    for axes, comparison in zip(panels, comparisons, strict=True):
        name = comparison.benchmark
        shown = tasks[name]
        scores = evidence.scores(comparison)
        draw_bars(axes, scores, looks=looks, trial=trial, tasks=shown, top=tops[name])
        labels = [task_label(evidence.benchmark(name), task) for task in shown]
        axes.set_xticks(range(len(shown)), labels)
        axes.set_title(heading(evidence, name), fontsize=10, loc="left")
        axes.set_ylabel(f"normalised score\nafter trial {trial}", fontsize=9)
    panels[-1].set_xlabel("task", fontsize=9)
    legend_below(figure, columns=4)
    return Drawing(figure, score_table(evidence, comparisons, trials=[trial]))


def points(
    evidence: Evidence,
    comparisons: Sequence[Comparison],
    *,
    trials: Sequence[int],
    methods: Sequence[str],
    columns: int,
) -> Drawing:
    """Draw points with two standard errors on every task with history.

    Panels go by trial, and within a trial by benchmark, row by row.

    Args:
        evidence: The results.
        comparisons: The comparisons.
        trials: The trials, counted from 1.
        methods: The methods to show.
        columns: Panels in a row.
    """
    from matplotlib.figure import Figure

    cases = [(trial, comparison) for trial in trials for comparison in comparisons]
    rows = -(-len(cases) // columns)
    figure = Figure(figsize=(2.6 * columns, 0.9 + 2.1 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, (trial, comparison) in zip(grid.flat, cases, strict=False):
        _draw_points(axes, evidence.scores(comparison), trial, methods)
        axes.set_title(heading(evidence, comparison.benchmark), fontsize=9, loc="left")
    for row, axes in enumerate(grid[:, 0]):
        axes.set_ylabel(f"score after trial {cases[row * columns][0]}", fontsize=9)
    for axes in grid[-1]:
        axes.set_xlabel("task", fontsize=9)
    legend_below(figure)
    return Drawing(figure, score_table(evidence, comparisons, trials=trials, methods=methods))


def _draw_points(axes: "Axes", scores: Scores, trial: int, methods: Sequence[str]) -> None:
    from matplotlib.ticker import MaxNLocator

    mean = scores.mean[:, FIRST_WITH_HISTORY:, trial - 1]
    errors = scores.two_standard_errors[:, FIRST_WITH_HISTORY:, trial - 1]
    numbers = np.arange(mean.shape[1]) + FIRST_WITH_HISTORY + 1
    looks = styles(methods)
    for place, (method, look) in enumerate(looks.items()):
        a = scores.methods.index(method)
        offset = (place / max(1, len(looks) - 1) - 0.5) * SPREAD
        axes.errorbar(
            numbers + offset,
            mean[a],
            np.nan_to_num(errors[a]),
            fmt=look.marker,
            color=look.colour,
            ms=4.5,
            lw=1,
            mec="black",
            mew=0.3,
            label=method,
        )
    # Errors may run out of the frame: they would press the means together otherwise.
    chosen = [scores.methods.index(method) for method in looks]
    top = 1.15 * max(1.0, float(np.nanmax(mean[chosen], initial=0)))
    axes.set_ylim(-0.04 * top, top)
    axes.set_xlim(numbers[0] - 0.7, numbers[-1] + 0.7)
    axes.grid(axis="y", lw=0.3)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(axes)


def curves(
    evidence: Evidence,
    comparisons: Sequence[Comparison],
    *,
    tasks: Mapping[str, Sequence[int]],
    top: float,
) -> Drawing:
    """Draw the mean score over trials, one row a benchmark, one panel a task.

    Args:
        evidence: The results.
        comparisons: The comparisons; all their methods are shown.
        tasks: Tasks to show by benchmark, from 0, as many for each; the table lists all.
        top: Upper end of the plotted range.
    """
    from matplotlib.figure import Figure

    columns = max(len(tasks[comparison.benchmark]) for comparison in comparisons)
    size = (2.1 * columns, 1.0 + 2.0 * len(comparisons))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(comparisons), columns, squeeze=False, sharex=True)
    for row, comparison in zip(grid, comparisons, strict=True):
        name = comparison.benchmark
        scores = evidence.scores(comparison)
        for axes, task in zip(row, tasks[name], strict=True):
            _draw_curves(axes, scores.methods, scores.mean[:, task], top)
            axes.set_title(f"task {task_label(evidence.benchmark(name), task)}", fontsize=9)
        row[0].set_ylabel(f"{name}\nnormalised score", fontsize=9)
    for axes in grid[-1]:
        axes.set_xlabel("trial", fontsize=9)
    legend_below(figure, columns=4)
    trials = range(1, evidence.scores(comparisons[0]).values.shape[-1] + 1)
    return Drawing(figure, score_table(evidence, comparisons, trials=trials))


def _draw_curves(axes: "Axes", methods: Sequence[str], mean: FloatArray, top: float) -> None:
    trials = np.arange(1, mean.shape[-1] + 1)
    for method, look in styles(methods).items():
        curve = mean[methods.index(method)]
        axes.plot(trials, curve, look.line, color=look.colour, lw=1.3, label=method)
    axes.set_xscale("log")
    axes.set_xticks([1, 3, 10, 25], ["1", "3", "10", "25"])
    axes.minorticks_off()
    axes.set_ylim(0, min(top, 1.05 * float(np.nanmax(mean, initial=1.0))))
    axes.grid(lw=0.3)
    tidy(axes)


def rank_curves(
    evidence: Evidence, comparisons: Sequence[Comparison], *, methods: Sequence[str]
) -> Drawing:
    """Draw mean ranks over trials with two standard errors, one panel a benchmark.

    Args:
        evidence: The results.
        comparisons: The comparisons; ranks are among all their methods.
        methods: The methods to show.
    """
    import pandas as pd
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * len(comparisons), 3.1), layout="constrained")
    panels = figure.subplots(1, len(comparisons), squeeze=False, sharey=True)[0]
    frames = []
    for axes, comparison in zip(panels, comparisons, strict=True):
        ranks = evidence.ranks(comparison)
        trials = np.arange(1, ranks.mean.shape[-1] + 1)
        for method, look in styles(methods).items():
            mean = ranks.of(method)
            errors = ranks.two_standard_errors[ranks.methods.index(method)]
            axes.plot(
                trials, mean, look.line, color=look.colour, marker=look.marker, ms=4, label=method
            )
            axes.fill_between(trials, mean - errors, mean + errors, color=look.colour, alpha=0.15)
            columns = {"trial": trials, "mean_rank": mean, "two_standard_errors": errors}
            labels = {"benchmark": comparison.benchmark, "method": method}
            frames.append(pd.DataFrame(labels | columns))
        axes.set_title(heading(evidence, comparison.benchmark), fontsize=10, loc="left")
        axes.set_xlabel("trial", fontsize=9)
        axes.grid(lw=0.3)
        tidy(axes)
    panels[0].set_ylabel(f"mean rank of {len(comparisons[0].methods)} methods", fontsize=9)
    legend_below(figure)
    return Drawing(figure, pd.concat(frames, ignore_index=True))
