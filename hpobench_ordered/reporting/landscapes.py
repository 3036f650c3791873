"""Landscapes: a benchmark in its two most telling hyperparameters, and where the leader looked.

Notation:
    n   number of evaluations
    d   number of hyperparameters
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.analysis.landscape import explained_shares, lowest_in_cells
from hpobench_ordered.analysis.scoring import BenchmarkScores
from hpobench_ordered.plotting.landscapes import Dimension, Panel, cells

if TYPE_CHECKING:
    import pandas as pd

Configurations = Callable[[Iterable[str]], "pd.DataFrame"]

MOST_SEEDS = 3
"""Evaluations of so many seeds make a landscape."""

GRID = (14, 18)
"""Rows and columns of cells."""

WORST = 0.8
"""Share of the cells that colours tell apart; the worst look the same."""

NO_HYPERPARAMETERS = frozenset({"key", "task", "trial", "value", "loss", "method", "seed"})


def panels(
    item: BenchmarkScores,
    runs: "pd.DataFrame",
    configurations: Configurations,
    methods: Sequence[str],
) -> list[Panel]:
    """Landscapes of the first and the last task.

    Args:
        item: Scores of the benchmark.
        runs: All runs, as `Overview.runs`.
        configurations: Gives the configurations of runs by their keys.
        methods: Methods whose evaluations make the landscape; the first one's points are drawn.

    Returns:
        A panel a task; none of a benchmark without two hyperparameters that vary and are active
        together.
    """
    of_item = (runs["benchmark"] == item.benchmark) & (runs["surrogate"] == item.surrogate)
    of_item &= (runs["protocol"] == item.protocol) & (runs["state"] == "done")
    seeds = item.seed_numbers[:MOST_SEEDS]
    chosen = runs[of_item & runs["seed"].isin(seeds) & runs["method"].isin(methods)]
    if not len(chosen):
        return []
    # A hyperparameter of such a name could not be told from these.
    evaluations = configurations(chosen["key"]).drop(columns=["method", "seed"], errors="ignore")
    evaluations = evaluations.merge(chosen[["key", "method", "seed"]], on="key")
    places = sorted({0, len(item.tasks) - 1})
    by_task = [evaluations[evaluations["task"] == item.tasks[place]] for place in places]
    axes = _axes(by_task)
    titles = [f"{item.benchmark}, {item.task_names[place]}" for place in places]
    return [
        _panel(title, tried, methods[0], *axes, maximised=item.is_maximised)
        for title, tried in zip(titles, by_task, strict=True)
        if axes is not None
    ]


def _panel(
    title: str, tried: "pd.DataFrame", leader: str, x: Dimension, y: Dimension, *, maximised: bool
) -> Panel:
    placed = tried.assign(x=x.coded(tried[x.name]), y=y.coded(tried[y.name]))
    placed = placed.dropna(subset=["x", "y", "loss"])
    values = lowest_in_cells(
        x.unit(placed["x"].to_numpy()),
        y.unit(placed["y"].to_numpy()),
        placed["loss"].to_numpy(),
        shape=GRID,
    )
    low, high = float(values.min()), float(np.quantile(values, WORST))
    sign = -1 if maximised else 1
    run = placed[(placed["method"] == leader) & (placed["seed"] == placed["seed"].min())]
    return Panel(
        title=title,
        x=x,
        y=y,
        values=cells(sign * values, x, y),
        value="value",
        domain=(-high, -low) if maximised else (low, high),
        maximised=maximised,
        crosses=placed.nsmallest(1, "loss"),
        points=run[["x", "y", "trial"]],
    )


def _axes(by_task: "Sequence[pd.DataFrame]") -> tuple[Dimension, Dimension] | None:
    """The two hyperparameters that explain most of the losses on these tasks.

    None where no two of them vary and are active together on each task.
    """
    import pandas as pd

    joined = pd.concat(by_task)
    varying = [name for name in joined.columns if joined[name].nunique() > 1]
    names = [name for name in varying if name not in NO_HYPERPARAMETERS]
    if len(names) < 2:
        return None
    dimensions = [Dimension.of_column(name, joined[name]) for name in names]
    places, shares = [], []
    for tried in by_task:
        units = [one.unit(one.coded(tried[one.name])) for one in dimensions]
        places.append(np.stack(units, axis=1))
        shares.append(explained_shares(places[-1], tried["loss"].to_numpy(dtype=np.float64)))
    for a, b in combinations(np.argsort(-np.mean(shares, axis=0), kind="stable"), 2):
        if all((~np.isnan(units[:, [a, b]])).all(axis=1).any() for units in places):
            return dimensions[a], dimensions[b]
    return None
