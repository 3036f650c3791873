"""Tasks that are bowls on the unit square, with the optimum at (place, 1 - place)."""

from collections.abc import Sequence
from functools import cache
from typing import TypeVar

import numpy as np
from by_hand import UNIT_SQUARE, make_method, run_trials
from histories import minimised

from hpobench_ordered import Evaluations
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._model_based import ModelBased
from hpobench_ordered.methods.bo import BayesianOptimisation

M = TypeVar("M", bound=ModelBased)


def bowl(values: FloatArray, place: float) -> FloatArray:
    """Squared distance of points (n, 2) from the optimum, (place, 1 - place), shape (n,)."""
    optimum = [place, 1.0 - place]
    return ((values - optimum) ** 2).sum(axis=1)


def make_bowl_task(
    place: float, *, trials: int = 25, factor: float = 1.0, offset: float = 0.0, **context: float
) -> Evaluations:
    """Random evaluations of a bowl with its optimum at (place, 1 - place).

    Losses are multiplied by the factor, which makes a hill if it is negative, and the offset is
    added to them.
    """
    # The seed depends on the place, so that tasks of other places have other points.
    seed = [trials, int(1000 * place)]
    values = np.random.default_rng(seed).random((trials, 2))
    losses = factor * bowl(values, place=place) + offset
    name = f"{place} {factor}"
    return minimised(name, context, values, losses, UNIT_SQUARE)


def suggest_on_bowl(
    method: ModelBased, place: float, trials: int, factor: float = 1.0, offset: float = 0.0
) -> FloatArray:
    """Play a method on a bowl, and return its suggestions, shape (trials, 2)."""

    def compute_loss(values: FloatArray) -> FloatArray:
        return factor * bowl(values, place=place) + offset

    return run_trials(method, compute_loss, trials=trials)


@cache
def _regret_of_bo(seed: int, trials: int) -> float:
    """Lowest regret of `bo` on the bowl at 0.4; the lowest loss of a bowl is 0."""
    bo = make_method(BayesianOptimisation, seed=seed)
    suggestions = suggest_on_bowl(bo, place=0.4, trials=trials)
    return float(bowl(suggestions, place=0.4).min())


def compare_with_bo(
    kind: type[M], history: Sequence[Evaluations], *, trials: int
) -> tuple[list[M], float, float]:
    """Play a method and `bo`, with five seeds each, on the bowl at 0.4.

    The regret is the lowest loss of a run, as the lowest of the bowl is 0.

    Returns:
        The methods of the five runs, their median regret, and that of `bo`.
    """
    methods = [make_method(kind, history, seed=seed) for seed in range(5)]
    regrets = []
    for method in methods:
        suggestions = suggest_on_bowl(method, place=0.4, trials=trials)
        regrets.append(bowl(suggestions, place=0.4).min())
    regrets_of_bo = [_regret_of_bo(seed, trials) for seed in range(5)]
    return methods, float(np.median(regrets)), float(np.median(regrets_of_bo))
