"""Landscapes of evaluations, in the two hyperparameters that explain most of the losses."""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.landscape import colour_ends, explained_shares
from hpobench_ordered.analysis.scoring import GROUP_COLUMNS, BenchmarkScores
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.data.benchmark import Benchmark, Task
from hpobench_ordered.data.identity import BenchmarkIdentity
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.errors import HPOBenchOrderedError, UnknownNameError
from hpobench_ordered.reporting.charts.landscapes import Dimension, Panel, cells
from hpobench_ordered.space.coded import code_stored

if TYPE_CHECKING:
    import pandas as pd

Configurations = Callable[[Iterable[str]], "pd.DataFrame"]
"""Gives the configurations of runs by their keys, as `Store.configurations`."""

MAX_CELLS = 24
"""Cells along an axis; fewer where a hyperparameter has fewer values."""

SHARE_OF_ALIKE_CELLS = 0.2
"""Share of the cells, the worst ones, that look the same."""


def load_drawable(item: BenchmarkScores) -> Benchmark | None:
    """Load the benchmark that scores are of, to evaluate it for a landscape.

    Returns:
        The benchmark; None if it cannot be loaded here, has other content than the one that was
        scored, or trains a model for every value, which takes too long.
    """
    with suppress(HPOBenchOrderedError):  # a report without this landscape is better than none
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
    """Read the evaluations of finished runs of some methods and seeds on a benchmark.

    Args:
        item: Scores of the benchmark.
        runs: One row per run of any benchmark, as `Overview.runs`.
        configurations: Reads the configurations of runs.
        methods: The methods.
        seeds: The seeds.

    Returns:
        Columns method, seed, task, trial, value, loss, the key of the run, and the hyperparameters.
    """
    chosen = runs[runs["state"] == "done"]
    for label in GROUP_COLUMNS:  # the benchmark, its surrogate and the protocol
        chosen = chosen[chosen[label] == getattr(item, label)]
    chosen = chosen[chosen["method"].isin(methods) & chosen["seed"].isin(seeds)]
    # The labels of runs replace hyperparameters of these names, which would be ambiguous.
    tried = configurations(chosen["key"]).drop(columns=["method", "seed"], errors="ignore")
    return tried.merge(chosen[["key", "method", "seed"]], on="key")


def choose_axes(
    benchmark: Benchmark,
    by_task: "Sequence[pd.DataFrame]",
    x: str | None = None,
    y: str | None = None,
) -> tuple[str, str] | None:
    """Choose the two hyperparameters of a landscape: those that explain most of the losses.

    Args:
        benchmark: The benchmark.
        by_task: Evaluations on each of some tasks, as `evaluations` gives.
        x: The hyperparameter of the horizontal axis, if it is decided already.
        y: That of the vertical axis.

    Returns:
        Names of both; None if no two such hyperparameters are active together on each task, or all
        evaluations of a task failed.

    Raises:
        UnknownNameError: There is no hyperparameter of that name.
    """
    space = benchmark.space
    for name in (x, y):
        if name is not None and name not in space.names:
            raise UnknownNameError("hyperparameter", name, space.names)

    if any(np.isinf(tried["loss"]).all() for tried in by_task):
        return None

    units = [space.encode(code_stored(tried, space.parameters)) for tried in by_task]
    shares_of_tasks = [
        explained_shares(unit, tried["loss"].to_numpy(dtype=np.float64))
        for unit, tried in zip(units, by_task, strict=True)
    ]
    most_explaining_first = np.argsort(-np.mean(shares_of_tasks, axis=0), kind="stable")
    for a, b in permutations(most_explaining_first, 2):
        agrees_with_x = x in (None, space.names[a])
        agrees_with_y = y in (None, space.names[b])
        if not (agrees_with_x and agrees_with_y):
            continue
        if all(_are_active_together(unit, a, b) for unit in units):
            return space.names[a], space.names[b]
    return None


def _are_active_together(unit: FloatArray, a: int, b: int) -> bool:
    """Whether hyperparameters a and b are both active in at least one configuration.

    Args:
        unit: Configurations as unit vectors, (n, d), NaN where a hyperparameter is inactive.
        a: Index of one hyperparameter.
        b: Index of the other.
    """
    is_active = ~np.isnan(unit[:, [a, b]])
    return bool(is_active.all(axis=1).any())


def mean_over_others(task: Task, others: FloatArray, names: tuple[str, str]) -> FloatArray:
    """Average the objective at each value of two hyperparameters over the values of all others.

    Args:
        task: The task.
        others: Configurations as unit vectors, (n, d), whose values all other hyperparameters get,
            one configuration after the other.
        names: Hyperparameters of the horizontal and the vertical axis.

    Returns:
        Means of the evaluations that do not fail, (gy, gx), for gy values along the vertical and gx
        along the horizontal axis; NaN where one of the two hyperparameters is inactive with all of
        the others' values, or all evaluations fail.
    """
    space = task.space
    name_x, name_y = names
    column_x = space.names.index(name_x)
    column_y = space.names.index(name_y)
    x = _middles_of_cells(space[name_x].size)
    y = _middles_of_cells(space[name_y].size)

    unit = np.broadcast_to(others, (len(y), len(x), *others.shape)).copy()  # (gy, gx, n, d)
    unit[..., column_x] = x[:, None]
    unit[..., column_y] = y[:, None, None]
    canonical = space.canonical(unit.reshape(-1, space.dimension))  # NaN where inactive

    is_inactive = np.isnan(canonical[:, [column_x, column_y]]).any(axis=1)
    values = task.evaluate_many(space.decode(canonical))
    is_left_out = is_inactive | ~np.isfinite(values)
    remaining_values = np.ma.array(values, mask=is_left_out).reshape(unit.shape[:3])
    return np.asarray(remaining_values.mean(axis=-1).filled(np.nan))


def _middles_of_cells(n_values: float) -> FloatArray:
    """Compute the middles of equal cells along an axis from 0 to 1, (cells,).

    There is one cell for each value of the hyperparameter, but at most `MAX_CELLS`.

    Args:
        n_values: Number of values of the hyperparameter, infinite for a continuous one.
    """
    n_cells = int(min(n_values, MAX_CELLS))
    return (np.arange(n_cells) + 0.5) / n_cells


def make_panel(
    title: str, task: Task, tried: "pd.DataFrame", names: tuple[str, str], method: str, seed: int
) -> Panel:
    """Make a panel of the objective around the best evaluation of a task, which has a cross.

    Args:
        title: Title of the panel.
        task: The task.
        tried: All its evaluations, as `evaluations` gives.
        names: Hyperparameters of the horizontal and the vertical axis.
        method: The method whose evaluations are drawn as points.
        seed: The seed of its run.
    """
    space = task.space
    objective = task.objective
    coded = code_stored(tried, space.parameters)
    best = int(tried["loss"].to_numpy().argmin())
    best_unit = space.encode(coded[[best]])
    # Hyperparameters that are inactive in the best one may be active elsewhere: at mid-range there.
    best_unit = np.where(np.isnan(best_unit), 0.5, best_unit)
    means = mean_over_others(task, best_unit, names)

    x = Dimension.of_parameter(space[names[0]])
    y = Dimension.of_parameter(space[names[1]])
    placed = tried[["method", "seed", "trial", "value"]].assign(
        x=coded[:, space.names.index(x.name)], y=coded[:, space.names.index(y.name)]
    )
    is_of_run = (placed["method"] == method) & (placed["seed"] == seed)
    maximised = objective.direction is Direction.MAXIMIZE
    colour_domain = colour_ends(
        objective.losses(means), maximised=maximised, alike=SHARE_OF_ALIKE_CELLS
    )
    return Panel(
        title,
        x,
        y,
        values=cells(means, x, y),
        value=objective.name,
        domain=colour_domain,
        maximised=maximised,
        crosses=placed.iloc[[best]],
        # Without those in which one of the two is inactive, which have no place.
        points=placed.loc[is_of_run, ["x", "y", "trial", "value"]].dropna(subset=["x", "y"]),
    )
