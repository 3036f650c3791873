"""Landscapes of evaluations, in the two hyperparameters that explain most of the losses."""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.analysis.landscape import colour_ends, explained_shares, lowest_in_cells
from hpobench_ordered.analysis.scoring import GROUP, BenchmarkScores
from hpobench_ordered.errors import UnknownNameError
from hpobench_ordered.plotting.landscapes import Dimension, Panel, cells

if TYPE_CHECKING:
    import pandas as pd

Configurations = Callable[[Iterable[str]], "pd.DataFrame"]
"""Gives the configurations of runs by their keys, as `Store.configurations`."""

CELLS = 18
"""Cells along an axis of numbers."""

WORST_ALIKE = 0.2
"""Share of the cells, the worst ones, that look the same."""

NO_HYPERPARAMETERS = frozenset({"key", "task", "trial", "value", "loss", "method", "seed"})


def evaluations(
    item: BenchmarkScores,
    runs: "pd.DataFrame",
    configurations: Configurations,
    *,
    methods: Collection[str],
    seeds: Collection[int],
) -> "pd.DataFrame":
    """Evaluations of finished runs of some methods and seeds on a benchmark.

    Columns method, seed, task, trial, value, loss and the hyperparameters; `runs` as
    `Overview.runs`.
    """
    chosen = runs[runs["state"] == "done"]
    for label in GROUP:
        chosen = chosen[chosen[label] == getattr(item, label)]
    chosen = chosen[chosen["method"].isin(methods) & chosen["seed"].isin(seeds)]
    # A hyperparameter with one of these names would be ambiguous.
    tried = configurations(chosen["key"]).drop(columns=["method", "seed"], errors="ignore")
    return tried.merge(chosen[["key", "method", "seed"]], on="key")


def telling_axes(
    by_task: "Sequence[pd.DataFrame]", x: str | None = None, y: str | None = None
) -> tuple[Dimension, Dimension] | None:
    """The two hyperparameters that explain most of the losses on some tasks, unless named.

    None where no two of them vary and are active together on each task.
    """
    import pandas as pd

    joined = pd.concat(by_task)
    names = [name for name in joined.columns if name not in NO_HYPERPARAMETERS]
    for name in (x, y):
        if name is not None and name not in names:
            raise UnknownNameError("hyperparameter", name, names)
    names = [name for name in names if joined[name].nunique() > 1 or name in (x, y)]
    axes = [Dimension.of_column(name, joined[name]) for name in names]
    if len(axes) < 2:
        return None
    places = [
        np.stack([axis.unit(axis.coded(tried[axis.name])) for axis in axes], axis=1)
        for tried in by_task
    ]
    shares = [
        explained_shares(units, tried["loss"].to_numpy(dtype=np.float64))
        for units, tried in zip(places, by_task, strict=True)
    ]
    for a, b in permutations(np.argsort(-np.mean(shares, axis=0), kind="stable"), 2):
        are_wanted = x in (None, names[a]) and y in (None, names[b])
        if are_wanted and all((~np.isnan(u[:, [a, b]])).all(axis=1).any() for u in places):
            return axes[a], axes[b]
    return None


def evaluated(
    title: str,
    tried: "pd.DataFrame",
    axes: tuple[Dimension, Dimension],
    *,
    method: str,
    seed: int,
    maximised: bool,
) -> Panel:
    """The best of all evaluations of a task in every cell, crossed, and the points of one run."""
    x, y = axes
    placed = tried.assign(x=x.coded(tried[x.name]), y=y.coded(tried[y.name]))
    placed = placed.dropna(subset=["x", "y", "loss"])
    lowest = lowest_in_cells(
        x.unit(placed["x"].to_numpy()),
        y.unit(placed["y"].to_numpy()),
        placed["loss"].to_numpy(),
        shape=(len(y.choices) or CELLS, len(x.choices) or CELLS),
    )
    run = placed[(placed["method"] == method) & (placed["seed"] == seed)]
    return Panel(
        title,
        x,
        y,
        values=cells(-lowest if maximised else lowest, x, y),
        value="value",
        domain=colour_ends(lowest, maximised=maximised, alike=WORST_ALIKE),
        maximised=maximised,
        crosses=placed.nsmallest(1, "loss"),
        points=run[["x", "y", "trial", "value"]],
    )
