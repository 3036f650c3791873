"""The landscape of a benchmark in its two most telling hyperparameters, and where methods looked.

Notation:
    n   number of evaluations
    d   number of hyperparameters
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.analysis.landscape import explained_shares
from hpobench_ordered.reporting.drawings.dimensions import Dimension
from hpobench_ordered.reporting.drawings.drawing import Drawing, Subject
from hpobench_ordered.reporting.drawings.landscapes import draw_landscapes
from hpobench_ordered.reporting.scoring import BenchmarkScores

if TYPE_CHECKING:
    import pandas as pd

    Configurations = Callable[[Iterable[str]], pd.DataFrame]

MOST_SEEDS = 5
"""Evaluations of so many seeds make a landscape."""

NO_HYPERPARAMETERS = frozenset({"key", "task", "trial", "value", "loss", "method", "seed"})
"""Columns of evaluations that are none."""


def landscape(
    item: BenchmarkScores, runs: "pd.DataFrame", configurations: "Configurations"
) -> Drawing | None:
    """Draw where the compared methods looked on the first, the middle and the last task.

    Args:
        item: Scores of the benchmark.
        runs: Its finished runs: key, method and seed.
        configurations: Gives the configurations of runs by their keys.

    Returns:
        The drawing; None of a benchmark without two hyperparameters that vary and are active
        together.
    """
    seeds = item.seed_numbers[:MOST_SEEDS]
    chosen = runs[runs["seed"].isin(seeds) & runs["method"].isin(item.methods)]
    identity = chosen[["key", "method", "seed"]]
    # A hyperparameter of such a name could not be told from these.
    evaluations = configurations(chosen["key"]).drop(columns=["method", "seed"], errors="ignore")
    evaluations = evaluations.merge(identity, on="key")
    count = len(item.task_names)
    tasks = sorted({0, (count - 1) // 2, count - 1})
    evaluations = evaluations[evaluations["task"].isin(tasks)]
    axes = _axes(evaluations, tasks)
    if axes is None:
        return None
    return draw_landscapes(Subject.of(item), evaluations, *axes, tasks=tasks, seed=seeds[0])


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
    places = np.stack([d.places(evaluations[d.name]) for d in dimensions], axis=1)
    losses = evaluations["loss"].to_numpy(dtype=np.float64)
    on_task = [(evaluations["task"] == task).to_numpy() for task in tasks]
    shares = np.mean([explained_shares(places[on], losses[on]) for on in on_task], axis=0)
    for a, b in combinations(np.argsort(-shares, kind="stable"), 2):
        active = ~np.isnan(places[:, [a, b]]).any(axis=1)
        if all((active & on).any() for on in on_task):
            return dimensions[a], dimensions[b]
    return None
