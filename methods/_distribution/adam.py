"""ADAM (Kingma and Ba 2015), algorithm 1."""

import math
from collections.abc import Callable

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._model_based import ModelError

RATE = 0.005
"""Law et al. (2019), section 5."""
DECAY = (0.9, 0.999)
SMALL = 1e-8
PATIENCE, GAIN = 25, 0.5
"""The descent has converged when so many steps did not bring so many nats."""

Objective = Callable[[FloatArray], tuple[float, FloatArray]]


def descend(
    objective: Objective, x: FloatArray, bounds: tuple[FloatArray, FloatArray], *, steps: int
) -> FloatArray:
    """Descend from x until that brings no more.

    Args:
        objective: Value and gradient (k,) at a point (k,); it may be another one at each call, such
            as of another part of the data, and raises `ModelError` where there is none.
        x: Where to start, shape (k,).
        bounds: Lowest and highest values, shape (k,).
        steps: Steps at most.

    Returns:
        The last point that has a value; the start if even that has none.
    """
    first, second = np.zeros(len(x)), np.zeros(len(x))
    last, lowest, since = x, math.inf, 0
    for step in range(1, steps + 1):
        try:
            value, gradient = objective(x)
        except ModelError:
            return last
        if not math.isfinite(value) or not np.isfinite(gradient).all():
            return last
        lowest, since = (value, 0) if value < lowest - GAIN else (lowest, since + 1)
        if since >= PATIENCE:
            break
        last = x
        first += (1.0 - DECAY[0]) * (gradient - first)
        second += (1.0 - DECAY[1]) * (gradient**2 - second)
        mean, square = first / (1.0 - DECAY[0] ** step), second / (1.0 - DECAY[1] ** step)
        x = np.clip(x - RATE * mean / (np.sqrt(square) + SMALL), *bounds)
    return x
