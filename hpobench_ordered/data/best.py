"""Best known values: random search on the surrogate, refined around the best configurations.

In a small finite search space, all configurations are evaluated instead.
"""

from collections.abc import Iterator

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.objective import Objective
from hpobench_ordered.data.surrogate import Surrogate
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Kind

DRAWS = 200_000
"""Random configurations, the same for all tasks."""
NOT_OPTIMAL = (
    f"Best known values are the best of {DRAWS} random configurations, the fitted ones and a local "
    "refinement, on the forest itself; a longer search may find better ones."
)
INCUMBENTS = 64
"""Each round starts from this many best configurations."""
NEIGHBOURS = 32
"""Each round makes this many new configurations around each of them."""
STEPS = tuple(0.2 * 0.5**k for k in range(10))
"""Standard deviation of a move in the unit cube, round by round."""


def find_best_values(
    surrogate: Surrogate,
    space: SearchSpace,
    objective: Objective,
    *,
    n_tasks: int,
    start: FloatArray | None = None,
    draws: int = DRAWS,
) -> list[float]:
    """Find the best value of each task, in the objective's units.

    It is the optimum if there are at most `DRAWS` configurations, and else the result of a search
    with a fixed seed; the arguments are those of `search_best_values`.
    """
    is_small = space.size <= DRAWS and not space.conditions
    if is_small:
        return find_optima(surrogate, space, objective, n_tasks=n_tasks)
    same_in_every_process = np.random.default_rng(0)
    search = search_best_values(
        surrogate,
        space,
        objective,
        n_tasks=n_tasks,
        rng=same_in_every_process,
        start=start,
        draws=draws,
    )
    return list(search)


def find_optima(
    surrogate: Surrogate, space: SearchSpace, objective: Objective, *, n_tasks: int
) -> list[float]:
    """Evaluate all configurations of a finite search space, and return each task's best value.

    The space has N configurations of d hyperparameters, and no conditions. The codes of a
    hyperparameter's values are consecutive integers, beginning with its `lower`.
    """
    numbers_of_values = [int(parameter.size) for parameter in space.parameters]
    lowest = np.array([parameter.lower for parameter in space.parameters], dtype=np.float64)

    # Each row counts, for one configuration, how far its values are above the lowest, (N, d).
    places = np.indices(numbers_of_values).reshape(space.dimension, -1).T
    all_configs = lowest + places

    best_values = []
    for task in range(n_tasks):
        objective_values = surrogate.predict(all_configs, task)
        losses = objective.losses(objective_values)  # minimised, whatever the objective's direction
        best_row = losses.argmin()
        best_values.append(float(objective_values[best_row]))
    return best_values


def search_best_values(
    surrogate: Surrogate,
    space: SearchSpace,
    objective: Objective,
    *,
    n_tasks: int,
    rng: np.random.Generator,
    start: FloatArray | None = None,
    draws: int = DRAWS,
) -> Iterator[float]:
    """Search the best value of each task, and yield it in the objective's units.

    For each task the search evaluates random configurations and those of `start`. In each of ten
    rounds it then moves the `INCUMBENTS` best ones at random, and continues with the best of the
    old and the moved ones. Moves become shorter from round to round.

    Args:
        surrogate: Evaluates configurations.
        space: The search space.
        objective: Whether small or large values are good.
        n_tasks: Number of tasks of the surrogate.
        rng: Draws configurations and moves.
        start: Configurations, coded values (k, d), which no value found is worse than.
        draws: Number of random configurations, the same for all tasks.
    """
    candidates = space.decode(space.sample_unit(rng, draws))
    if start is not None:
        candidates = np.concatenate([start, candidates])

    for task in range(n_tasks):
        losses = objective.losses(surrogate.predict(candidates, task))
        incumbents, incumbent_losses = _select_best(candidates, losses)
        for step in STEPS:
            moved = _move_at_random(space, incumbents, step, rng)
            moved_losses = objective.losses(surrogate.predict(moved, task))
            incumbents, incumbent_losses = _select_best(
                np.concatenate([incumbents, moved]),
                np.concatenate([incumbent_losses, moved_losses]),
            )

        # Best first; as values they are in the objective's units, and large ones may be good.
        incumbent_values = objective.values(incumbent_losses)
        yield float(incumbent_values[0])


def _select_best(configurations: FloatArray, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Select the `INCUMBENTS` configurations of lowest loss; of equally good ones the first.

    Args:
        configurations: Coded values, (n, d).
        losses: Their losses, (n,).

    Returns:
        The selected configurations and their losses, best first.
    """
    rows = np.argsort(losses, kind="stable")[:INCUMBENTS]
    return configurations[rows], losses[rows]


def _move_at_random(
    space: SearchSpace, configurations: FloatArray, step: float, rng: np.random.Generator
) -> FloatArray:
    """Make `NEIGHBOURS` random variants of each configuration, (n `NEIGHBOURS`, d).

    A variant differs in about half of the hyperparameters. Numbers move by a Gaussian step in the
    unit cube; categoricals and inactive hyperparameters are drawn anew.

    Args:
        space: The search space.
        configurations: Coded values, NaN where inactive, (n, d).
        step: Standard deviation of a step.
        rng: Draws which hyperparameters change, and how.
    """
    unit = np.repeat(space.encode(configurations), NEIGHBOURS, axis=0)
    is_inactive = np.isnan(unit)
    is_categorical = np.array(
        [parameter.kind is Kind.CATEGORICAL for parameter in space.parameters]
    )

    drawn_anew = rng.random(unit.shape)
    moved = np.clip(unit + step * rng.standard_normal(unit.shape), 0.0, 1.0)
    changed = np.where(is_categorical | is_inactive, drawn_anew, moved)

    # Inactive ones always get a value: they may become active when another hyperparameter changes.
    is_changed = (rng.random(unit.shape) < 0.5) | is_inactive
    # Where they stay inactive, decoding makes them NaN again.
    return space.decode(np.where(is_changed, changed, unit))
