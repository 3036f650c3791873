"""Tasks that are bowls on the unit square, with the optimum at (place, 1 - place)."""

import numpy as np
from by_hand import SQUARE, play
from histories import minimised

from hpobench_ordered import Evaluations
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._model_based import ModelBased


def bowl(values: FloatArray, place: float) -> FloatArray:
    return ((values - [place, 1.0 - place]) ** 2).sum(axis=1)


def source(
    place: float, *, trials: int = 25, factor: float = 1.0, offset: float = 0.0
) -> Evaluations:
    """Random evaluations of a bowl; with a negative factor it is a hill."""
    values = np.random.default_rng([trials, int(1000 * place)]).random((trials, 2))
    losses = factor * bowl(values, place) + offset
    return minimised(f"{place} {factor}", {}, values, losses, SQUARE)


def played(method: ModelBased, place: float, trials: int, factor: float = 1.0) -> FloatArray:
    """What a method asks for on a bowl."""
    return play(method, lambda values: factor * bowl(values, place), trials)
