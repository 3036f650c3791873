"""L-BFGS in a box, with the same bits on every processor.

scipy's version uses BLAS, whose order of summation depends on the processor. A fit of thousands of
parameters that is stopped early amplifies differences in the last bit, so networks would differ.

=========  ======  =============================================================================
symbol     shape   meaning
=========  ======  =============================================================================
k          scalar  parameters
x          (k,)    the point reached so far
value              of the objective at x
gradient   (k,)    its gradient at x
step       (k,)    from one point to the next
change     (k,)    of the gradient with a step
curvature  scalar  step^T change
=========  ======  =============================================================================

Nocedal and Wright (2006), Numerical Optimization: algorithms 7.4 (the direction) and 7.5.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray
from hpobench_ordered.methods._products import inner

MEMORY = 20
"""Number of last steps that the Hessian is estimated from."""
ARMIJO = 1e-4
"""Smallest gain of a step, as a share of the gain expected from the slope (Armijo's rule)."""
MIN_LENGTH = 1e-8
"""Length of a step at which the line search stops, relative to the first one tried."""
MIN_CURVATURE = 1e-10
"""Smallest cosine of the angle between a step and the change of the gradient to remember it."""

Objective = Callable[[FloatArray], tuple[float, FloatArray]]
"""Gives the value and the gradient (k,) at a point (k,)."""


class Step(NamedTuple):
    """A step that the estimate of the Hessian remembers.

    Attributes:
        step: Difference of two points that followed each other, shape (k,).
        change: Difference of the gradients there, shape (k,).
        curvature: step^T change, positive.
    """

    step: FloatArray
    change: FloatArray
    curvature: float


class Point(NamedTuple):
    """A point, with the objective's value and gradient there.

    Attributes:
        x: The point, shape (k,).
        value: Value of the objective.
        gradient: Its gradient, shape (k,).
    """

    x: FloatArray
    value: float
    gradient: FloatArray


def minimise(
    objective: Objective,
    x: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
    *,
    evaluations: int,
    tolerance: float,
) -> tuple[float, FloatArray]:
    """Minimise an objective in a box by L-BFGS, starting at x.

    The Hessian matrix is estimated from the last `MEMORY` steps (Nocedal and Wright 2006, algorithm
    7.5).

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
    start = np.clip(x, *bounds)
    point = Point(start, *objective(start))
    steps: deque[Step] = deque(maxlen=MEMORY)  # those that the Hessian is estimated from
    remaining = evaluations - 1
    while remaining > 0 and math.isfinite(point.value):
        direction = _find_direction(point, bounds, steps)
        trial, used = _search_line(objective, point, direction, bounds, evaluations=remaining)
        remaining -= used
        gain = point.value - trial.value
        if not gain > 0.0:  # even the shortest step gains nothing, or the value is NaN
            break

        step = trial.x - point.x
        change = trial.gradient - point.gradient
        curvature = inner(step, change)
        norms = math.sqrt(inner(step, step) * inner(change, change))
        # Steps of negative curvature would make the estimate of the Hessian indefinite, and its
        # directions lead upwards.
        if curvature > MIN_CURVATURE * norms:
            steps.append(Step(step, change, curvature))
        point = trial
        if gain < tolerance:
            break
    return point.value, point.x


def _search_line(
    objective: Objective,
    point: Point,
    direction: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
    *,
    evaluations: int,
) -> tuple[Point, int]:
    """Search a better point along a direction, with ever shorter steps.

    The first step is tried in full length, then shorter ones. The search ends with a step whose
    gain is at least the share `ARMIJO` of what the slope at the start promises, or when a step is
    shorter than `MIN_LENGTH`, relative to the first one.

    Args:
        objective: Value and gradient (k,) at a point (k,).
        point: Where the search starts.
        direction: The first step to try, shape (k,); steps that leave the box are projected to it.
        bounds: Lowest and highest values, shape (k,).
        evaluations: Largest number of evaluations of the objective.

    Returns:
        The last point tried, and the number of evaluations used. It is no better than the start if
        evaluations ran out or steps became too short.
    """
    length = 1.0
    used = 0
    while True:
        x = np.clip(point.x + length * direction, *bounds)
        value, gradient = objective(x)
        used += 1
        trial = Point(x, value, gradient)

        gain = point.value - trial.value
        expected_gain = -inner(point.gradient, x - point.x)  # if the slope were constant
        leads_down = expected_gain > 0.0  # the projection to the box may have turned the step
        if leads_down and gain >= ARMIJO * expected_gain:
            break

        length *= _choose_shortening(gain, expected_gain)
        is_too_short = length <= MIN_LENGTH
        if is_too_short or used == evaluations:
            break
    return trial, used


def _choose_shortening(gain: float, expected_gain: float) -> float:
    """Choose the factor by which a step that gained too little is shortened, from 0.1 to 0.5.

    It leads to the minimum of the parabola through the value and the slope at the start of the
    step and the value at its end. Where that value is not finite, or the parabola has no minimum,
    it is 0.1.

    Args:
        gain: How much lower the value is at the end of the step; negative if it is higher.
        expected_gain: The same if the slope stayed as it is at the start.
    """
    has_minimum = gain < expected_gain  # the parabola bends upwards
    if not math.isfinite(gain) or not has_minimum:
        return 0.1
    share_of_step = 0.5 * expected_gain / (expected_gain - gain)  # where the minimum is
    return min(max(share_of_step, 0.1), 0.5)


def _find_direction(
    point: Point, bounds: tuple[FloatArray, FloatArray], steps: Sequence[Step]
) -> FloatArray:
    """Compute the direction of descent: minus the inverse Hessian matrix times the gradient, (k,).

    The matrix is estimated from the last steps, without being stored, by the two-loop recursion
    (Nocedal and Wright 2006, algorithm 7.4): q is the gradient first, and in the end the product.
    Coordinates along which a descent would leave the box stay as they are. A `Step` holds the
    step, the change of the gradient over it, and the product of both, its curvature.

    Args:
        point: Where the direction starts.
        bounds: Lowest and highest values, shape (k,).
        steps: The last steps with the changes of the gradient, oldest first.
    """
    is_free = _can_descend(point, bounds)  # whether each coordinate may change
    q = np.where(is_free, point.gradient, 0.0)
    if not steps:  # nothing to estimate from: steepest descent, at most 1 long
        return -q / max(1.0, math.sqrt(inner(q, q)))

    weights = []  # of the steps, newest first
    for step, change, curvature in reversed(steps):
        weight = inner(step, q) / curvature
        weights.append(weight)
        q = q - weight * change

    # The first estimate, which the steps then refine: the identity matrix, scaled by the newest.
    _, change, curvature = steps[-1]
    q = q * (curvature / inner(change, change))

    for (step, change, curvature), weight in zip(steps, reversed(weights), strict=True):
        q = q + (weight - inner(change, q) / curvature) * step
    direction: FloatArray = -np.where(is_free, q, 0.0)
    return direction


def _can_descend(point: Point, bounds: tuple[FloatArray, FloatArray]) -> BoolArray:
    """Whether a descent from a point along each coordinate stays in the box, shape (k,).

    A descent goes against the gradient: where that is negative, the coordinate rises.
    """
    lower, upper = bounds
    stays_above = (point.x > lower) | (point.gradient < 0.0)
    stays_below = (point.x < upper) | (point.gradient > 0.0)
    can_descend: BoolArray = stays_above & stays_below
    return can_descend
