"""Functions in closed form: the families of Horvath et al. (2021), section 5, and their minima.

Notation:
    T, n, d     tasks, configurations, hyperparameters
    a, b, c     coefficients of a task
    q, w        amplitude a x - 2 and phase b x - 4 of a Forrester function: f = q^2 sin(w) + c
    u           unit roundoff, 2^-53

Single rows and batches use the same sums and products, which give the same bits for numbers and for
arrays. Sines do not, and are computed one by one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self, TypeVar

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.arrays import copy_read_only
from hpobench_ordered.data.surrogate import check_task

X = TypeVar("X", float, FloatArray)
"""A number, or an array of them."""

GRID_CELLS = 4096
"""The minima of a Forrester function are searched on a grid of so many cells."""
BISECTIONS = 60
"""Steps of a bisection: more than double precision can resolve."""


@dataclass(eq=False)
class _Coefficients:
    """A function with three coefficients a task, (T, 3)."""

    coefficients: FloatArray
    # The rows of `coefficients` as plain numbers, with which single predictions are faster.
    _abc_of_tasks: tuple[tuple[float, float, float], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the coefficients, and store them as plain numbers, too, for single predictions."""
        coefficients = copy_read_only(self.coefficients)
        if coefficients.shape[1:] != (3,) or not np.isfinite(coefficients).all():
            raise ValueError(f"coefficients must be finite, (T, 3), but got {coefficients.shape}")
        self.coefficients = coefficients
        self._abc_of_tasks = tuple((a, b, c) for a, b, c in coefficients.tolist())

    def __reduce__(self) -> tuple[type[Self], tuple[FloatArray]]:
        """Pickle the coefficients alone: unpickling calls the class with them, checks included."""
        return type(self), (self.coefficients,)

    def _get_coefficients(self, task: int) -> tuple[float, float, float]:
        """Return the coefficients a, b and c of a task, after checking its index."""
        check_task(task, len(self._abc_of_tasks))
        return self._abc_of_tasks[task]


class ForresterSurrogate(_Coefficients):
    """f(x) = (a x - 2)^2 sin(b x - 4) + c on [0, 1]."""

    dimension: ClassVar[int] = 1

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Compute (a x - 2)^2 sin(b x - 4) + c for many configurations x, shape (n, 1) to (n,)."""
        a, b, c = self._get_coefficients(task)
        x = np.asarray(values, dtype=np.float64)[:, 0]
        phases = b * x - 4.0
        # One by one, as in `predict_one`, which must give the same bits: numpy may round the sines
        # of an array differently.
        sines = np.array([math.sin(phase) for phase in phases.tolist()])
        return _compute_forrester(x, sines, a, c)

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Compute the value of one configuration, shape (1,).

        It equals `predict(row[None], task)[0]` to the last bit.
        """
        a, b, c = self._get_coefficients(task)
        x = float(row[0])
        phase = b * x - 4.0
        return _compute_forrester(x, math.sin(phase), a, c)

    def minima(self) -> list[float]:
        """Return a lower bound of the values of every task, about 1e-12 below the exact minimum.

        `predict` rounds, so that some of its values may be slightly below the exact minimum. The
        bound is below these, too, so that no configuration is better than the best known value.
        """
        bounds = []
        for task, (a, b, c) in enumerate(self._abc_of_tasks):
            local_minima = _find_local_minima(a, b)  # configurations x
            lowest_value = float(self.predict(local_minima[:, None], task).min())
            # Twice the error: `lowest_value` may be too high, and the value elsewhere too low.
            largest_error = _bound_rounding_error(a, b, c)
            bounds.append(lowest_value - 2.0 * largest_error)
        return bounds


class QuadraticSurrogate(_Coefficients):
    """f(x) = a x'x + b 1'x + c on [-10, 10]^5, computed as a sum of squares.

    With h = b / (2 a), f(x) = a sum_j (x_j + h)^2 + c - d b^2 / (4 a). Rounding is monotone, so no
    computed value is below the last two terms, the minimum.
    """

    dimension: ClassVar[int] = 5

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Compute a x'x + b 1'x + c for many configurations x, shape (n, 5) to (n,)."""
        a, b, c = self._get_coefficients(task)
        coordinates = list(np.asarray(values, dtype=np.float64).T)  # five arrays, (n,) each
        return _compute_quadratic(coordinates, a, b, c)

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Compute the value of one configuration, shape (5,).

        It equals `predict(row[None], task)[0]` to the last bit.
        """
        a, b, c = self._get_coefficients(task)
        coordinates: list[float] = row.tolist()
        return _compute_quadratic(coordinates, a, b, c)

    def minima(self) -> list[float]:
        """Return the minimum of every task, the value where all x_j = -b / (2 a).

        This configuration is within the bounds -10 and 10 if |b| <= 20 a, which the benchmark's
        coefficients satisfy.
        """
        minima = []
        for a, b, c in self._abc_of_tasks:
            minima.append(_compute_quadratic_minimum(self.dimension, a, b, c))
        return minima


def _compute_forrester(x: X, sine: X, a: float, c: float) -> X:
    """Compute the Forrester function (a x - 2)^2 sin(b x - 4) + c.

    `x` and `sine`, which is sin(b x - 4), are numbers for one configuration, or arrays for many.
    """
    amplitude = a * x - 2.0
    return amplitude * amplitude * sine + c


def _bound_rounding_error(a: float, b: float, c: float) -> float:
    """Compute the largest rounding error that a value of a Forrester function can have.

    The function is q^2 sin(w) + c with the amplitude q = a x - 2 and the phase w = b x - 4, for x
    in [0, 1]. Each operation changes its result by at most the share u = 2^-53 of this result. The
    errors of the steps add up. With A = |a| + 2, the largest possible |q|, each step's error
    changes the function by at most the following multiple of u:

        phase       A^2 (2 |b| + 4)  the product is off by |b|, the difference by |b| + 4
        sine        A^2 2            it is off by one unit in the last place
        amplitude   A^2 4            q is off by 2 A, and it is squared
        products    A^2 2            there are two in q q sin(w)
        sum         A^2 + |c|        this is the largest possible result
    """
    largest_amplitude = abs(a) + 2.0
    # The phase has 2 |b| + 4, the other steps have 2, 4, 2 and 1, each times the squared amplitude.
    error_in_squares = 2.0 * abs(b) + (4.0 + 2.0 + 4.0 + 2.0 + 1.0)
    error_in_units = largest_amplitude**2 * error_in_squares + abs(c)
    unit_roundoff = 2.0**-53
    return error_in_units * unit_roundoff


def _compute_quadratic(coordinates: Sequence[X], a: float, b: float, c: float) -> X:
    """Compute the quadratic function f(x) = sum_j (a x_j^2 + b x_j) + c.

    With the square completed it is f(x) = a sum_j (x_j - m)^2 + minimum, where m = -b / (2 a) is
    each coordinate of the minimum. In this form no rounded value is below the minimum.

    Args:
        coordinates: The coordinates x_j: numbers for one configuration, or arrays (n,) for n
            configurations. The result is of the same type.
        a: Coefficient of the squares, positive.
        b: Coefficient of the coordinates.
        c: Constant.
    """
    minus_m = b / (2.0 * a)
    distances = [x + minus_m for x in coordinates]  # x_j - m
    # A loop, since Python's and numpy's sums may add numbers in different orders.
    squared_distance = distances[0] * distances[0]
    for distance in distances[1:]:
        squared_distance = squared_distance + distance * distance
    minimum = _compute_quadratic_minimum(len(coordinates), a, b, c)
    return a * squared_distance + minimum


def _compute_quadratic_minimum(d: int, a: float, b: float, c: float) -> float:
    """Compute the lowest value of a x'x + b 1'x + c over all x with d coordinates."""
    return c - d * b * b / (4.0 * a)


def _find_local_minima(a: float, b: float) -> FloatArray:
    """Find points close to every local minimum of a Forrester function on [0, 1], shape (m,).

    The function is (a x - 2)^2 sin(b x - 4); its constant does not move the minima. The points of
    a fine grid that are lower than their neighbours are refined by bisection.
    """
    grid = np.linspace(0.0, 1.0, GRID_CELLS + 1)
    values = (a * grid - 2.0) ** 2 * np.sin(b * grid - 4.0)
    # Beyond the two ends of the interval the function counts as infinite.
    padded = np.pad(values, 1, constant_values=np.inf)
    left_neighbours = padded[:-2]
    right_neighbours = padded[2:]
    is_grid_minimum = (values <= left_neighbours) & (values <= right_neighbours)
    grid_minima = np.flatnonzero(is_grid_minimum)  # indices of grid points

    # A minimum lies between the neighbours of a grid point. Where the function rises in the middle
    # of this interval, the minimum is in the left half, otherwise in the right half.
    low = grid[np.maximum(grid_minima - 1, 0)]
    high = grid[np.minimum(grid_minima + 1, GRID_CELLS)]
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        is_rising = _compute_forrester_slope(middle, a, b) > 0.0
        low = np.where(is_rising, low, middle)
        high = np.where(is_rising, middle, high)
    # Grid points are returned, too, since bisection does not find a minimum at an end of [0, 1].
    return np.concatenate([grid[grid_minima], low, high])


def _compute_forrester_slope(x: FloatArray, a: float, b: float) -> FloatArray:
    """Compute the derivative of the Forrester function q^2 sin(w) at points x.

    With the amplitude q = a x - 2 and the phase w = b x - 4, the derivative is
    2 a q sin(w) + b q^2 cos(w) = q (2 a sin(w) + b q cos(w)).
    """
    amplitude = a * x - 2.0
    phase = b * x - 4.0
    slope: FloatArray = amplitude * (2.0 * a * np.sin(phase) + b * amplitude * np.cos(phase))
    return slope
