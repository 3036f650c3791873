"""Best known values: random search on the surrogate, refined around the best configurations."""

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
"""Best configurations that a round starts from."""
NEIGHBOURS = 32
"""New configurations around each of them, per round."""
STEPS = tuple(0.2 * 0.5**k for k in range(10))
"""Standard deviation of a move in the unit cube, round by round."""


def best_known(
    surrogate: Surrogate,
    space: SearchSpace,
    objective: Objective,
    *,
    n_tasks: int,
    rng: np.random.Generator,
    known: FloatArray | None = None,
    draws: int = DRAWS,
) -> Iterator[float]:
    """Yield the best value on each task that a search finds, in the objective's units.

    It is at least as good as those of the `known` configurations, coded values (k, d).

    The best `INCUMBENTS` random and known configurations are moved by Gaussian steps in the unit
    cube, shorter from round to round; each round keeps the best of old and new. Losses are values
    of the objective to be minimised: the values themselves or, if large values are good, their
    negatives.
    """
    drawn = space.decode(space.sample_unit(rng, draws))
    candidates = drawn if known is None else np.concatenate([known, drawn])
    for task in range(n_tasks):
        losses = objective.losses(surrogate.predict(candidates, task))
        best, best_losses = _select_best(candidates, losses)
        for step in STEPS:  # standard deviation of moves, shorter from round to round
            moved = _sample_neighbours(space, best, step, rng)
            losses = objective.losses(surrogate.predict(moved, task))
            best, best_losses = _select_best(
                np.concatenate([best, moved]), np.concatenate([best_losses, losses])
            )

        best_values = objective.values(best_losses)
        yield float(best_values[0])


def _select_best(values: FloatArray, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Select the `INCUMBENTS` configurations of lowest loss; of equal ones the first.

    Args:
        values: Configurations, coded values, (n, d).
        losses: Their losses, (n,).

    Returns:
        The configurations and their losses, best first.
    """
    order = np.argsort(losses, kind="stable")[:INCUMBENTS]
    return values[order], losses[order]


def _sample_neighbours(
    space: SearchSpace, values: FloatArray, step: float, rng: np.random.Generator
) -> FloatArray:
    """Move each configuration `NEIGHBOURS` times, in about half of its hyperparameters.

    Numbers move by a Gaussian step in the unit cube, of standard deviation `step`; categoricals and
    inactive hyperparameters are drawn anew. Values are coded, (n, d) to (n `NEIGHBOURS`, d).
    """
    unit = np.repeat(space.encode(values), NEIGHBOURS, axis=0)
    is_inactive = np.isnan(unit)
    is_categorical = np.array([p.kind is Kind.CATEGORICAL for p in space.parameters])

    drawn_anew = rng.random(unit.shape)
    moved = np.clip(unit + step * rng.standard_normal(unit.shape), 0.0, 1.0)
    moved = np.where(is_categorical | is_inactive, drawn_anew, moved)

    # Inactive ones always get a value: they may become active when another hyperparameter changes.
    is_changed = (rng.random(unit.shape) < 0.5) | is_inactive
    return space.decode(np.where(is_changed, moved, unit))
