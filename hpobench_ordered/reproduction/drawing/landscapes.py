"""Figures of search spaces: where good configurations are, and where methods look."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered.analysis.optima import best_indices, visible_indices
from hpobench_ordered.objective import Direction
from hpobench_ordered.reporting.style import styles, tidy
from hpobench_ordered.reproduction.drawing.common import task_label
from hpobench_ordered.reproduction.evidence import Evidence, Landscape
from hpobench_ordered.reproduction.paper import Comparison, Drawing
from hpobench_ordered.space.parameters import Parameter

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure as Canvas

WIDE_RANGE = 10.0
"""Objectives whose largest value is so many times the smallest are coloured on a log scale."""

SHORT_RANGE = 1000.0
"""A log axis shorter than this factor has plain numbers as labels."""

WORST_ALIKE = 0.05
"""Share of the worst values that all get the darkest colour, which leaves more for the others."""

MARGIN = 0.04
"""Margin around the range of a hyperparameter, relative to its width."""


@dataclass(frozen=True, slots=True)
class Slice:
    """One row of landscapes: two hyperparameters of a benchmark on some tasks.

    Attributes:
        benchmark: Name of the benchmark.
        x: Hyperparameter on the horizontal axis.
        y: Hyperparameter on the vertical axis.
        tasks: The tasks, from 0.
        crosses: How many of the best configurations of each task are marked.
    """

    benchmark: str
    x: str
    y: str
    tasks: tuple[int, ...]
    crosses: int = 10


def landscapes(
    evidence: Evidence,
    _: Sequence[Comparison],
    *,
    slices: Sequence[Slice],
    common_scale: bool = True,
) -> Drawing:
    """Draw landscapes: configurations coloured by their value, the best on top and crossed.

    Args:
        evidence: The results.
        slices: The rows, as many tasks in each.
        common_scale: Whether the colours of a row mean the same in all its panels.
    """
    from matplotlib.figure import Figure

    columns = len(slices[0].tasks)
    width = 1.9 if common_scale else 2.8  # room for a colour bar at every panel
    size = (1.2 + width * columns, 0.4 + 1.9 * len(slices))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(slices), columns, squeeze=False, sharey="row")
    for row, item in zip(grid, slices, strict=True):
        panels = list(zip(row, item.tasks, strict=True))
        for group in [panels] if common_scale else [[panel] for panel in panels]:
            _draw_group(figure, group, evidence.landscape(item.benchmark), item)
        row[0].set_ylabel(f"{item.benchmark}\n{item.y}", fontsize=9)
    return Drawing(figure, _landscape_table(evidence, slices))


def _draw_group(
    figure: "Canvas", group: Sequence[tuple["Axes", int]], landscape: Landscape, item: Slice
) -> None:
    """Draw panels that share their colours, and a colour bar beside them."""
    objective = landscape.benchmark.objective
    norm = _colour_scale(landscape, [task for _, task in group])
    for axes, task in group:
        drawn = _draw_landscape(axes, landscape, item, task, norm)
    maximised = objective.direction is Direction.MAXIMIZE
    bar = figure.colorbar(
        drawn,
        ax=[axes for axes, _ in group],
        extend="min" if maximised else "max",
        pad=0.01,
        aspect=18,
    )
    bar.set_label(objective.name, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    _plain_ticks(bar.ax.yaxis, *bar.ax.get_ylim())


def _draw_landscape(
    axes: "Axes", landscape: Landscape, item: Slice, task: int, norm: "Normalize"
) -> "ScalarMappable":
    benchmark = landscape.benchmark
    x, y = landscape.column(item.x), landscape.column(item.y)
    seen = visible_indices(x, y, landscape.losses[task])
    values = landscape.objective[task][seen]
    bright_is_good = benchmark.objective.direction is Direction.MAXIMIZE
    colours: dict[str, Any] = {"norm": norm, "cmap": "viridis" if bright_is_good else "viridis_r"}
    drawn: ScalarMappable
    if landscape.is_complete:
        xs, column = np.unique(x[seen], return_inverse=True)
        ys, row = np.unique(y[seen], return_inverse=True)
        table = np.empty((len(ys), len(xs)))
        table[row, column] = values
        drawn = axes.pcolormesh(xs, ys, table, shading="nearest", rasterized=True, **colours)
    else:
        drawn = axes.scatter(x[seen], y[seen], c=values, s=9, lw=0, rasterized=True, **colours)
    _cross(axes, landscape, item, task)
    axes.set_xlabel(item.x, fontsize=9)
    axes.set_title(f"task {task_label(benchmark, task)}", fontsize=9)
    return drawn


def _cross(axes: "Axes", landscape: Landscape, item: Slice, task: int) -> None:
    """Mark the best configurations, and set up the axes."""
    space = landscape.benchmark.space
    x, y = landscape.column(item.x), landscape.column(item.y)
    best = best_indices(landscape.losses[task], item.crosses)
    axes.scatter(
        x[best], y[best], marker="X", c="black", s=42, edgecolors="white", linewidths=0.8, zorder=5
    )
    axes.set_xscale("log" if space[item.x].log else "linear")
    axes.set_yscale("log" if space[item.y].log else "linear")
    axes.set_xlim(*_limits(space[item.x]))
    axes.set_ylim(*_limits(space[item.y]))
    _plain_ticks(axes.xaxis, *axes.get_xlim())
    _plain_ticks(axes.yaxis, *axes.get_ylim())
    tidy(axes)


def _limits(parameter: Parameter) -> tuple[float, float]:
    """The whole range, and a margin."""
    low, high = parameter.lower, parameter.upper
    if parameter.log:
        factor = (high / low) ** MARGIN
        return low / factor, high * factor
    return low - MARGIN * (high - low), high + MARGIN * (high - low)


def _plain_ticks(axis: "Axis", low: float, high: float) -> None:
    """Plain numbers on a short log axis, where powers of ten are too few; no small ticks else."""
    from matplotlib.ticker import LogLocator, NullFormatter, NullLocator, StrMethodFormatter

    if axis.get_scale() != "log":
        return
    if high < SHORT_RANGE * low:
        steps = (1, 2, 5) if high < WIDE_RANGE**2 * low else (1,)
        axis.set_major_locator(LogLocator(subs=steps))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_minor_locator(NullLocator())  # hundreds of them take long to draw


def _colour_scale(landscape: Landscape, tasks: Sequence[int]) -> "Normalize":
    """Colours from the best value to a bad one; the few that are worse look the same."""
    from matplotlib.colors import LogNorm, Normalize

    losses = landscape.losses[list(tasks)]
    ends = landscape.benchmark.objective.losses(
        np.array([losses.min(), np.quantile(losses, 1 - WORST_ALIKE)])
    )
    lowest, highest = float(ends.min()), float(ends.max())
    kind = LogNorm if 0 < lowest * WIDE_RANGE < highest else Normalize
    return kind(lowest, highest)


def _landscape_table(evidence: Evidence, slices: Sequence[Slice]) -> "pd.DataFrame":
    """What is seen: one row a panel and point, crossed or not."""
    import pandas as pd

    frames = []
    for item in slices:
        landscape = evidence.landscape(item.benchmark)
        x, y = landscape.column(item.x), landscape.column(item.y)
        for task in item.tasks:
            losses = landscape.losses[task]
            seen = visible_indices(x, y, losses)
            columns = {
                "benchmark": item.benchmark,
                "surrogate": landscape.benchmark.surrogate,
                "task": task + 1,
                "x": item.x,
                "y": item.y,
                "x_value": x[seen],
                "y_value": y[seen],
                "objective": landscape.objective[task][seen],
                "crossed": np.isin(seen, best_indices(losses, item.crosses)),
            }
            frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


@dataclass(frozen=True, slots=True)
class View:
    """One column of sampling locations.

    Attributes:
        task: The task, from 0.
        trials: The first so many trials.
    """

    task: int
    trials: int


def locations(
    evidence: Evidence,
    comparisons: Sequence[Comparison],
    *,
    item: Slice,
    methods: Sequence[str],
    views: Sequence[View],
) -> Drawing:
    """Draw where methods evaluated, all seeds together, one row a method.

    Args:
        evidence: The results.
        comparisons: The comparison with the runs; none other is used.
        item: Benchmark, hyperparameters and number of crosses.
        methods: The methods, from top to bottom.
        views: The columns.
    """
    import pandas as pd
    from matplotlib.figure import Figure

    landscape = evidence.landscape(item.benchmark)
    looks = styles(methods)
    size = (0.8 + 2.1 * len(views), 0.8 + 1.5 * len(methods))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(methods), len(views), squeeze=False, sharex=True, sharey=True)
    frames = []
    for row, method in zip(grid, methods, strict=True):
        tried = evidence.configurations(item.benchmark, method)
        for axes, view in zip(row, views, strict=True):
            seen = tried[(tried["task"] == view.task) & (tried["trial"] <= view.trials)]
            _cross(axes, landscape, item, view.task)
            axes.plot(
                seen[item.x],
                seen[item.y],
                "o",
                c=looks[method].colour,
                ms=4,
                mew=0,
                alpha=0.4,
                zorder=6,
            )
            frames.append(seen[["seed", "task", "trial", item.x, item.y]].assign(method=method))
        row[0].set_ylabel(f"{method}\n{item.y}", fontsize=9)
    for axes, view in zip(grid[0], views, strict=True):
        what = "first evaluation" if view.trials == 1 else f"first {view.trials} evaluations"
        axes.set_title(f"task {task_label(landscape.benchmark, view.task)}\n{what}", fontsize=9)
    for axes in grid[-1]:
        axes.set_xlabel(item.x, fontsize=9)
    table = pd.concat(frames, ignore_index=True).drop_duplicates()
    return Drawing(figure, table.assign(task=table["task"] + 1))
