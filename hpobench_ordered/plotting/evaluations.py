"""Landscapes of evaluations, in the two hyperparameters that explain most of the losses."""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.landscape import colour_ends, explained_shares
from hpobench_ordered.analysis.scoring import GROUP, BenchmarkScores
from hpobench_ordered.core.benchmark import Benchmark, Task
from hpobench_ordered.core.identity import BenchmarkIdentity
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.errors import HPOBenchOrderedError, UnknownNameError
from hpobench_ordered.plotting.landscapes import Dimension, Panel, cells
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.space.coded import code_stored

if TYPE_CHECKING:
    import pandas as pd

Configurations = Callable[[Iterable[str]], "pd.DataFrame"]
"""Gives the configurations of runs by their keys, as `Store.configurations`."""

CELLS = 24
"""Cells along an axis; fewer where a hyperparameter has fewer values."""

WORST_ALIKE = 0.2
"""Share of the cells, the worst ones, that look the same."""


def drawable(item: BenchmarkScores) -> Benchmark | None:
    """The benchmark of some scores; None if it is not here, or trains a model for every value."""
    with suppress(HPOBenchOrderedError):
        spec = benchmark_spec(BenchmarkIdentity.parse(item.benchmark).id)
        is_quick = not spec.option(item.surrogate).trains
        if is_quick and spec.identity(item.surrogate) == item.benchmark:
            return spec.load(item.surrogate)
    return None


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
    benchmark: Benchmark,
    by_task: "Sequence[pd.DataFrame]",
    x: str | None = None,
    y: str | None = None,
) -> tuple[str, str] | None:
    """The two hyperparameters that explain most of the losses on some tasks, unless named.

    None where no two of them are active together on each task.
    """
    space = benchmark.space
    for name in (x, y):
        if name is not None and name not in space.names:
            raise UnknownNameError("hyperparameter", name, space.names)
    places = [space.encode(code_stored(tried, space.parameters)) for tried in by_task]
    shares = [
        explained_shares(unit, tried["loss"].to_numpy(dtype=np.float64))
        for unit, tried in zip(places, by_task, strict=True)
    ]
    for a, b in permutations(np.argsort(-np.mean(shares, axis=0), kind="stable"), 2):
        are_wanted = x in (None, space.names[a]) and y in (None, space.names[b])
        if are_wanted and all((~np.isnan(u[:, [a, b]])).all(axis=1).any() for u in places):
            return space.names[a], space.names[b]
    return None


def plane(task: Task, others: FloatArray, names: Sequence[str]) -> FloatArray:
    """Mean objective over the values of two hyperparameters, shape (gy, gx).

    All others are those of some configurations, unit vectors (n, d), which means are over; NaN
    where one of the two is never active.
    """
    space = task.space
    places = [space.names.index(name) for name in names]
    counts = [int(min(space[name].size, CELLS)) for name in names]
    x, y = ((np.arange(count) + 0.5) / count for count in counts)
    unit = np.broadcast_to(others, (len(y), len(x), *others.shape)).copy()
    unit[..., places[0]], unit[..., places[1]] = x[:, None], y[:, None, None]
    canonical = space.canonical(unit.reshape(-1, space.dimension))
    inactive = np.isnan(canonical[:, places]).any(axis=1)
    values = np.ma.array(task.evaluate_many(space.decode(canonical)), mask=inactive)
    return np.asarray(values.reshape(unit.shape[:3]).mean(axis=-1).filled(np.nan))


def evaluated(
    title: str, task: Task, tried: "pd.DataFrame", names: tuple[str, str], method: str, seed: int
) -> Panel:
    """The objective around the best of all evaluations of a task, crossed, and those of one run."""
    space, objective = task.space, task.objective
    coded = code_stored(tried, space.parameters)
    best = int(tried["loss"].to_numpy().argmin())
    others = space.encode(coded[[best]])
    means = plane(task, np.where(np.isnan(others), 0.5, others), names)
    x, y = (Dimension.of_parameter(space[name]) for name in names)
    placed = tried[["method", "seed", "trial", "value"]].assign(
        x=coded[:, space.names.index(x.name)], y=coded[:, space.names.index(y.name)]
    )
    run = placed[(placed["method"] == method) & (placed["seed"] == seed)]
    maximised = objective.direction is Direction.MAXIMIZE
    return Panel(
        title,
        x,
        y,
        values=cells(means, x, y),
        value=objective.name,
        domain=colour_ends(objective.losses(means), maximised=maximised, alike=WORST_ALIKE),
        maximised=maximised,
        crosses=placed.iloc[[best]],
        points=run[["x", "y", "trial", "value"]].dropna(),
    )
