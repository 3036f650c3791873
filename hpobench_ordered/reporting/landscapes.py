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

    Configurations = Callable[[Iterable[str]], pd.DataFrame]

MOST_BENCHMARKS = 2
"""So many benchmarks have landscapes, each of another family."""

MOST_SEEDS = 3
"""Evaluations of so many seeds make a landscape."""

GRID = (14, 18)
"""Rows and columns of cells."""

WORST = 0.8
"""Share of the cells that colours tell apart; the worst look the same."""

NO_HYPERPARAMETERS = frozenset({"key", "task", "trial", "value", "loss", "method", "seed"})


def chosen_benchmarks(items: Sequence[BenchmarkScores]) -> list[BenchmarkScores]:
    """The first benchmark of each of the first families, by the beginnings of their names."""
    families: dict[str, BenchmarkScores] = {}
    for item in items:
        name = item.benchmark.partition("@")[0].split("-")
        families.setdefault("-".join(name[:2] if len(name) > 2 else name[:1]), item)
    return list(families.values())[:MOST_BENCHMARKS]


def panels(
    item: BenchmarkScores,
    runs: "pd.DataFrame",
    configurations: "Configurations",
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
    identity = chosen[["key", "method", "seed"]]
    if not len(identity):
        return []
    # A hyperparameter of such a name could not be told from these.
    evaluations = configurations(identity["key"]).drop(columns=["method", "seed"], errors="ignore")
    evaluations = evaluations.merge(identity, on="key")
    count = len(item.tasks)
    places = sorted({0, count - 1})
    tasks = {item.tasks[place]: item.task_names[place] for place in places}
    evaluations = evaluations[evaluations["task"].isin(list(tasks))]
    axes = _axes(evaluations, list(tasks))
    if axes is None:
        return []
    leader = evaluations[(evaluations["method"] == methods[0]) & (evaluations["seed"] == seeds[0])]
    return [
        _panel(item, name, evaluations[evaluations["task"] == task], leader, task, axes)
        for task, name in tasks.items()
    ]


def _panel(
    item: BenchmarkScores,
    name: str,
    evaluations: "pd.DataFrame",
    leader: "pd.DataFrame",
    task: int,
    axes: tuple[Dimension, Dimension],
) -> Panel:
    import pandas as pd

    x, y = axes
    coded = {"x": x.coded(evaluations[x.name]), "y": y.coded(evaluations[y.name])}
    frame = pd.DataFrame(coded).assign(loss=evaluations["loss"].to_numpy()).dropna()
    values = lowest_in_cells(
        x.unit(frame["x"].to_numpy()),
        y.unit(frame["y"].to_numpy()),
        frame["loss"].to_numpy(),
        shape=GRID,
    )
    low, high = float(values.min()), float(np.quantile(values, WORST))
    sign = -1 if item.is_maximised else 1
    points = leader[leader["task"] == task]
    points = pd.DataFrame(
        {"x": x.coded(points[x.name]), "y": y.coded(points[y.name]), "trial": points["trial"]}
    )
    return Panel(
        title=f"{item.benchmark}, {name}",
        x=x,
        y=y,
        values=cells(sign * values, x, y),
        value="value",
        domain=(low, high) if sign > 0 else (-high, -low),
        maximised=item.is_maximised,
        crosses=frame.nsmallest(1, "loss"),
        points=points.dropna(),
    )


def _axes(evaluations: "pd.DataFrame", tasks: Sequence[int]) -> tuple[Dimension, Dimension] | None:
    """The two hyperparameters that explain most of the losses on these tasks.

    None where no two of them vary and are active together on each task.
    """
    names = [
        name
        for name in evaluations.columns
        if name not in NO_HYPERPARAMETERS and evaluations[name].nunique() > 1
    ]
    if len(names) < 2:
        return None
    dimensions = [Dimension.of_column(name, evaluations[name]) for name in names]
    coded = [d.unit(d.coded(evaluations[d.name])) for d in dimensions]
    places = np.stack(coded, axis=1)
    losses = evaluations["loss"].to_numpy(dtype=np.float64)
    on_task = [(evaluations["task"] == task).to_numpy() for task in tasks]
    shares = np.mean([explained_shares(places[on], losses[on]) for on in on_task], axis=0)
    for a, b in combinations(np.argsort(-shares, kind="stable"), 2):
        active = ~np.isnan(places[:, [a, b]]).any(axis=1)
        if all((active & on).any() for on in on_task):
            return dimensions[a], dimensions[b]
    return None
