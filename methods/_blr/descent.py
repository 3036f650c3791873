"""L-BFGS in a box, with the same bits on every processor.

scipy's version uses BLAS, whose order of summation depends on the processor. A fit of thousands of
parameters that is stopped early amplifies differences in the last bit, so networks would differ.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray
from hpobench_ordered.methods._products import inner

MEMORY = 20
"""Number of last steps that the curvature is estimated from."""
ARMIJO = 1e-4
"""Smallest gain of a step, as a share of the gain expected from the slope (Armijo's rule)."""
SHORTEST = 1e-8
"""Step size at which the line search stops, relative to the first one."""

Objective = Callable[[FloatArray], tuple[float, FloatArray]]
Step = tuple[FloatArray, FloatArray, float]
"""A change of x, the change of the gradient with it, and their inner product."""


def minimise(
    objective: Objective,
    x: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
    *,
    evaluations: int,
    tolerance: float,
) -> tuple[float, FloatArray]:
    """Descend from x by projected L-BFGS (Nocedal and Wright 2006, algorithm 7.4).

    Args:
        objective: Value and gradient (k,) at a point (k,); the line search steps back from points
            where the value is infinite.
        x: Starting point, shape (k,).
        bounds: Lowest and highest values, shape (k,).
        evaluations: Largest number of evaluations of the objective.
        tolerance: Smallest gain of an iteration to continue.

    Returns:
        The lowest value and its location, which may be the starting point.
    """
    x = np.clip(x, *bounds)
    value, gradient = objective(x)
    steps: deque[Step] = deque(maxlen=MEMORY)
    left = evaluations - 1
    while left > 0 and math.isfinite(value):
        direction = _direction(gradient, _free(x, gradient, bounds), steps)
        length, gain = 1.0, -1.0
        while left > 0 and length > SHORTEST:
            trial = np.clip(x + length * direction, *bounds)
            new_value, new_gradient = objective(trial)
            left -= 1
            promised = -inner(gradient, trial - x)
            gain = value - new_value
            if gain >= ARMIJO * promised and promised > 0.0:
                break
            length *= _shortening(gain, promised)
        if not gain > 0.0:
            break
        step, change = trial - x, new_gradient - gradient
        curvature = inner(step, change)
        if curvature > 1e-10 * math.sqrt(inner(step, step) * inner(change, change)):
            steps.append((step, change, curvature))
        x, value, gradient = trial, new_value, new_gradient
        if gain < tolerance:
            break
    return value, x


def _free(x: FloatArray, gradient: FloatArray, bounds: tuple[FloatArray, FloatArray]) -> BoolArray:
    """Whether a descent along each coordinate stays in the box, shape (k,)."""
    lower, upper = bounds
    free: BoolArray = ((x > lower) | (gradient < 0.0)) & ((x < upper) | (gradient > 0.0))
    return free


def _direction(gradient: FloatArray, free: BoolArray, steps: Sequence[Step]) -> FloatArray:
    """Minus the inverse Hessian, estimated from the last steps, times the gradient (k,)."""
    q = np.where(free, gradient, 0.0)
    if not steps:
        return -q / max(1.0, math.sqrt(inner(q, q)))
    weights = []
    for step, change, curvature in reversed(steps):
        weights.append(inner(step, q) / curvature)
        q = q - weights[-1] * change
    _, change, curvature = steps[-1]
    q = q * (curvature / inner(change, change))
    for (step, change, curvature), weight in zip(steps, reversed(weights), strict=True):
        q = q + (weight - inner(change, q) / curvature) * step
    direction: FloatArray = -np.where(free, q, 0.0)
    return direction


def _shortening(gain: float, promised: float) -> float:
    """Factor that shortens a step to the minimum of the interpolating parabola, within bounds."""
    if not math.isfinite(gain) or gain >= promised:
        return 0.1
    return min(max(0.5 * promised / (promised - gain), 0.1), 0.5)
