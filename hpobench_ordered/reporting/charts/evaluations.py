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
    """Load a benchmark that was scored, to evaluate it for a landscape.

    Returns:
        The benchmark; None if it cannot be loaded here, if its content is not that of the benchmark
        that was scored, or if it trains a model for every value, which takes too long.
    """
    with suppress(HPOBenchOrderedError):  # a report without this landscape is better than none
        spec = benchmark_spec(BenchmarkIdentity.parse(item.benchmark).id)
        is_quick = not spec.option(item.surrogate).trains
        # The identity contains a hash of the content.
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
    # Hyperparameters that are called "method" or "seed" make way for the labels of runs.
    tried = configurations(chosen["key"]).drop(columns=["method", "seed"], errors="ignore")
    return tried.merge(chosen[["key", "method", "seed"]], on="key")


def choose_axes(
    benchmark: Benchmark,
    tried_on_tasks: "Sequence[pd.DataFrame]",
    x: str | None = None,
    y: str | None = None,
) -> tuple[str, str] | None:
    """Choose the two hyperparameters of a landscape: those that explain most of the losses.

    Args:
        benchmark: The benchmark.
        tried_on_tasks: Evaluations on each of some tasks, as `evaluations` gives.
        x: The hyperparameter of the horizontal axis, if it is decided already.
        y: The hyperparameter of the vertical axis, if it is decided already.

    Returns:
        Names of both. None if all evaluations of a task failed, or if no two hyperparameters are
        active together, in one configuration, on every task.

    Raises:
        UnknownNameError: There is no hyperparameter of that name.
    """
    space = benchmark.space
    for name in (x, y):
        if name is not None and name not in space.names:
            raise UnknownNameError("hyperparameter", name, space.names)

    # A failed evaluation has an infinite loss.
    if any(np.isinf(tried["loss"]).all() for tried in tried_on_tasks):
        return None

    units_of_tasks = []  # configurations as unit vectors
    shares_of_tasks = []  # the share of the losses that each hyperparameter explains
    for tried in tried_on_tasks:
        unit = space.encode(code_stored(tried, space.parameters))
        losses = tried["loss"].to_numpy(dtype=np.float64)
        units_of_tasks.append(unit)
        shares_of_tasks.append(explained_shares(unit, losses))
    mean_shares = np.mean(shares_of_tasks, axis=0)
    most_explaining_first = np.argsort(-mean_shares, kind="stable")

    # Take the first possible pair. The pairs of the best hyperparameter with all others come first.
    for a, b in permutations(most_explaining_first, 2):
        agrees_with_x = x in (None, space.names[a])
        agrees_with_y = y in (None, space.names[b])
        if not (agrees_with_x and agrees_with_y):
            continue
        if all(_are_active_together(unit, a, b) for unit in units_of_tasks):
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
    """Average the objective over some values of all hyperparameters but two, on a grid of these.

    Args:
        task: The task.
        others: Configurations as unit vectors, (n, d), from which the other hyperparameters get
            their values. The average is over these n configurations.
        names: The two hyperparameters, those of the horizontal and of the vertical axis.

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

    # Each point of the grid gets a copy of all configurations, with its own values of the two.
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
    best = int(tried["loss"].to_numpy().argmin())  # index of its row
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
        # Evaluations in which one of the two hyperparameters is inactive have no place.
        points=placed.loc[is_of_run, ["x", "y", "trial", "value"]].dropna(subset=["x", "y"]),
    )
