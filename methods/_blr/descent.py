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

    Each iteration chooses a direction from the gradient and the last `MEMORY` steps, searches a
    lower value along it, and remembers the step (Nocedal and Wright 2006, algorithm 7.5).

    Args:
        objective: Computes value and gradient (k,) at a point (k,). Where the value is infinite,
            the search along a direction steps back.
        x: Starting point, shape (k,).
        bounds: Lowest and highest values, shape (k,) each.
        evaluations: Largest number of evaluations of the objective.
        tolerance: Smallest gain of an iteration to continue.

    Returns:
        The lowest value and its location, which may be the starting point.
    """
    start = np.clip(x, *bounds)
    point = Point(start, *objective(start))
    last_steps: deque[Step] = deque(maxlen=MEMORY)  # the oldest is dropped when it is full
    remaining = evaluations - 1
    while remaining > 0 and math.isfinite(point.value):
        direction = _find_direction(point, bounds, last_steps)
        trial, used = _search_line(objective, point, direction, bounds, evaluations=remaining)
        remaining -= used
        gain = point.value - trial.value
        has_gained = gain > 0.0  # not if the value is NaN
        if not has_gained:
            break

        _remember_step(last_steps, point, trial)
        point = trial
        if gain < tolerance:
            break
    return point.value, point.x


def _remember_step(last_steps: deque[Step], point: Point, next_point: Point) -> None:
    """Append the step from a point to the next one, if it can improve the estimate of the Hessian.

    The curvature along the step must be positive. Otherwise the estimate of the Hessian matrix
    would not be positive definite, and directions computed from it could lead upwards.

    Args:
        last_steps: The steps that the Hessian is estimated from, oldest first; changed in place.
        point: Where the step starts.
        next_point: Where it ends.
    """
    step = next_point.x - point.x
    change = next_point.gradient - point.gradient
    curvature = inner(step, change)
    norms = math.sqrt(inner(step, step) * inner(change, change))  # |step| |change|
    is_positive = curvature > MIN_CURVATURE * norms  # by more than rounding errors
    if is_positive:
        last_steps.append(Step(step, change, curvature))


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
        objective: Computes value and gradient (k,) at a point (k,).
        point: Where the search starts.
        direction: The first step to try, shape (k,). A step that leaves the box ends at the nearest
            point of the box.
        bounds: Lowest and highest values, shape (k,) each.
        evaluations: Largest number of evaluations of the objective.

    Returns:
        The last point tried, and the number of evaluations used. The point is no better than the
        start if evaluations ran out or steps became too short.
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
        leads_down = expected_gain > 0.0  # clipping to the box may have turned the step
        if leads_down and gain >= ARMIJO * expected_gain:
            break

        length *= _choose_shortening(gain, expected_gain)
        is_too_short = length <= MIN_LENGTH
        if is_too_short or used == evaluations:
            break
    return trial, used


def _choose_shortening(gain: float, expected_gain: float) -> float:
    """Choose the factor, from 0.1 to 0.5, by which a step that gained too little is shortened.

    The shortened step ends at the minimum of a parabola. The parabola has the objective's value and
    slope at the start of the step, and its value at the end. If the value at the end is not finite,
    or the parabola has no minimum, the factor is 0.1.

    Args:
        gain: The objective at the start minus the objective at the end of the step.
        expected_gain: What the gain would be if the slope at the start were constant.
    """
    has_minimum = gain < expected_gain  # the parabola bends upwards
    if not math.isfinite(gain) or not has_minimum:
        return 0.1
    # The parabola gains s expected_gain - s^2 (expected_gain - gain) after the share s of the step.
    # This is largest at the share
    share_of_step = 0.5 * expected_gain / (expected_gain - gain)
    return min(max(share_of_step, 0.1), 0.5)


def _find_direction(
    point: Point, bounds: tuple[FloatArray, FloatArray], last_steps: Sequence[Step]
) -> FloatArray:
    """Compute the direction of descent: minus the inverse Hessian matrix times the gradient, (k,).

    Coordinates along which a descent would leave the box stay as they are.

    Args:
        point: Where the direction starts.
        bounds: Lowest and highest values, shape (k,) each.
        last_steps: The steps that the Hessian is estimated from, oldest first.
    """
    is_free = _can_descend(point, bounds)  # whether each coordinate may change
    free_gradient = np.where(is_free, point.gradient, 0.0)
    if not last_steps:  # nothing to estimate from: steepest descent, by a step of length 1 at most
        length = math.sqrt(inner(free_gradient, free_gradient))
        return -free_gradient / max(1.0, length)
    direction: FloatArray = -np.where(
        is_free, _multiply_by_inverse_hessian(free_gradient, last_steps), 0.0
    )
    return direction


def _multiply_by_inverse_hessian(vector: FloatArray, last_steps: Sequence[Step]) -> FloatArray:
    """Multiply a vector (k,) by the inverse Hessian matrix as L-BFGS estimates it.

    The two-loop recursion (Nocedal and Wright 2006, algorithm 7.4) needs no matrix. The estimate
    begins with a multiple of the identity matrix; each step refines it so that it maps the
    change of the gradient over the step to the step itself.

    Args:
        vector: The vector.
        last_steps: The steps that the matrix is estimated from, at least one, oldest first.
    """
    product = vector  # q, then r in the book
    weights = []  # of the steps, newest first
    for step, change, curvature in reversed(last_steps):
        weight = inner(step, product) / curvature
        weights.append(weight)
        product = product - weight * change

    # The multiple of the identity matrix, scaled by the curvature of the newest step.
    _, newest_change, newest_curvature = last_steps[-1]
    product = product * (newest_curvature / inner(newest_change, newest_change))

    for (step, change, curvature), weight in zip(last_steps, reversed(weights), strict=True):
        correction = weight - inner(change, product) / curvature
        product = product + correction * step
    return product


def _can_descend(point: Point, bounds: tuple[FloatArray, FloatArray]) -> BoolArray:
    """Whether a descent from a point along each coordinate alone stays in the box, shape (k,).

    A descent goes against the gradient: it raises a coordinate whose derivative is negative, and
    lowers a coordinate whose derivative is positive.
    """
    lower, upper = bounds
    is_above_lower = point.x > lower
    is_below_upper = point.x < upper
    stays_above = is_above_lower | (point.gradient < 0.0)
    stays_below = is_below_upper | (point.gradient > 0.0)
    can_descend: BoolArray = stays_above & stays_below
    return can_descend
