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
from hpobench_ordered.data.arrays import read_only
from hpobench_ordered.surrogates.base import check_task

X = TypeVar("X", float, FloatArray)
"""A number, or an array of them."""

CELLS = 4096
"""Cells of the grid on which minima of a Forrester function are bracketed."""
HALVINGS = 60
"""Bisections of a bracket: beyond double precision."""


@dataclass(eq=False)
class _Coefficients:
    """A function with three coefficients a task, (T, 3)."""

    coefficients: FloatArray
    _abc_of_tasks: tuple[tuple[float, float, float], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the coefficients, and store them as numbers, too, for single predictions."""
        coefficients = read_only(self.coefficients)
        if coefficients.shape[1:] != (3,) or not np.isfinite(coefficients).all():
            raise ValueError(f"coefficients must be finite, (T, 3), but got {coefficients.shape}")
        self.coefficients = coefficients
        self._abc_of_tasks = tuple(map(tuple, coefficients.tolist()))

    def __reduce__(self) -> tuple[type[Self], tuple[FloatArray]]:
        return type(self), (self.coefficients,)

    def _coefficients_of(self, task: int) -> tuple[float, float, float]:
        """Return the coefficients a, b and c of a task, after checking its index."""
        check_task(task, len(self._abc_of_tasks))
        return self._abc_of_tasks[task]


class ForresterSurrogate(_Coefficients):
    """f(x) = (a x - 2)^2 sin(b x - 4) + c on [0, 1]."""

    dimension: ClassVar[int] = 1

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Compute (a x - 2)^2 sin(b x - 4) + c for many configurations x, shape (n, 1) to (n,)."""
        a, b, c = self._coefficients_of(task)
        x = np.asarray(values, dtype=np.float64)[:, 0]
        # One by one, as in `predict_one`, which must give the same bits: numpy may round the sines
        # of an array differently.
        sines = np.array([math.sin(phase) for phase in (b * x - 4.0).tolist()])
        return _forrester_value(x, sines, a, c)

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Compute the value of one configuration, shape (1,).

        It equals `predict(row[None], task)[0]` to the last bit.
        """
        a, b, c = self._coefficients_of(task)
        x = float(row[0])
        return _forrester_value(x, math.sin(b * x - 4.0), a, c)

    def minima(self) -> list[float]:
        """List the minimum of every task, slightly (about 1e-12) below all values of `predict`.

        Twice a bound of the rounding error is subtracted from the lowest value at the local minima,
        so that no rounded value can be below the minimum.
        """
        minima = []
        for task, (a, b, c) in enumerate(self._abc_of_tasks):  # the coefficients of each task
            candidates = _find_local_minima(a, b)
            lowest = float(self.predict(candidates[:, None], task).min())
            # Twice the bound: the lowest value may be too high, and any other one too low.
            minima.append(lowest - 2.0 * _rounding_error_bound(a, b, c))
        return minima


class QuadraticSurrogate(_Coefficients):
    """f(x) = a x'x + b 1'x + c on [-10, 10]^5, computed as a sum of squares.

    With h = b / (2 a), f(x) = a sum_j (x_j + h)^2 + c - d b^2 / (4 a). Rounding is monotone, so no
    computed value is below the last two terms, the minimum.
    """

    dimension: ClassVar[int] = 5

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Compute a x'x + b 1'x + c for many configurations x, shape (n, 5) to (n,)."""
        a, b, c = self._coefficients_of(task)
        columns = list(np.asarray(values, dtype=np.float64).T)  # one array a hyperparameter
        return _quadratic_value(columns, a, b, c)

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Compute the value of one configuration, shape (5,).

        It equals `predict(row[None], task)[0]` to the last bit.
        """
        a, b, c = self._coefficients_of(task)
        coordinates: list[float] = row.tolist()
        return _quadratic_value(coordinates, a, b, c)

    def minima(self) -> list[float]:
        """List the minimum of every task, at x_j = -b / (2 a).

        That is within the bounds -10 and 10 where |b| <= 20 a.
        """
        return [_quadratic_minimum(self.dimension, a, b, c) for a, b, c in self._abc_of_tasks]


def _forrester_value(x: X, sine: X, a: float, c: float) -> X:
    """Compute a Forrester function (a x - 2)^2 sin(b x - 4) + c from x and sin(b x - 4), `sine`."""
    amplitude = a * x - 2.0
    return amplitude * amplitude * sine + c


def _rounding_error_bound(a: float, b: float, c: float) -> float:
    """Compute how far a computed value of a Forrester function may be from the exact one, at most.

    The function is q^2 sin(w) + c with the amplitude q = a x - 2 and the phase w = b x - 4, for x
    in [0, 1]. A rounding changes a number by a share of u = 2^-53 at most. With A = |a| + 2, which
    |q| does not exceed, errors of the function are at most, in units of u:

        A^2 (2 |b| + 4)  from w: |b| by the product, |b| + 4 by the difference
        A^2 2            from the sine, which is off by a unit in the last place
        A^2 4            from q: |a| by the product, A by the difference, 2 A in all; q is squared
        A^2 2            from the two products in q q sin(w)
        A^2 + |c|        from the sum
    """
    largest_amplitude = abs(a) + 2.0
    multiple_of_square = 2.0 * abs(b) + (4.0 + 2.0 + 4.0 + 2.0 + 1.0)
    bound_in_roundoffs = largest_amplitude**2 * multiple_of_square + abs(c)
    return bound_in_roundoffs * 2.0**-53


def _quadratic_value(columns: Sequence[X], a: float, b: float, c: float) -> X:
    """Compute the quadratic function f(x) = sum_j (a x_j^2 + b x_j) + c.

    With the square completed it is f(x) = a sum_j (x_j - m)^2 + minimum, where m = -b / (2 a) is
    each coordinate of the minimum. In this form no rounded value is below the minimum.

    `columns` has the value of each coordinate x_j: numbers for one configuration, arrays (n,) for n
    of them, like the result.
    """
    offset = b / (2.0 * a)  # -m
    distances = [x + offset for x in columns]  # x_j - m
    squared_distance = distances[0] * distances[0]
    for distance in distances[1:]:
        squared_distance = squared_distance + distance * distance
    return a * squared_distance + _quadratic_minimum(len(columns), a, b, c)


def _quadratic_minimum(d: int, a: float, b: float, c: float) -> float:
    """Compute the minimum of a x'x + b 1'x + c over x in d dimensions."""
    return c - d * b * b / (4.0 * a)


def _find_local_minima(a: float, b: float) -> FloatArray:
    """Find points close to every local minimum of a Forrester function on [0, 1], shape (m,).

    The function is (a x - 2)^2 sin(b x - 4), up to a constant. Local minima of a grid of `CELLS`
    cells are refined by `HALVINGS` bisections on the sign of the derivative. The grid's own minima
    are returned too, since a minimum may be at an end of the interval.
    """
    grid = np.linspace(0.0, 1.0, CELLS + 1)
    values = (a * grid - 2.0) ** 2 * np.sin(b * grid - 4.0)
    padded = np.pad(values, 1, constant_values=np.inf)  # neighbours of the two ends
    is_minimum = (values <= padded[:-2]) & (values <= padded[2:])
    cells = np.flatnonzero(is_minimum)

    # A minimum lies between the neighbours of a grid point; bisection halves this interval.
    low = grid[np.maximum(cells - 1, 0)]
    high = grid[np.minimum(cells + 1, CELLS)]
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        is_rising = _forrester_slope(middle, a, b) > 0.0
        low = np.where(is_rising, low, middle)
        high = np.where(is_rising, middle, high)
    return np.concatenate([grid[cells], low, high])


def _forrester_slope(x: FloatArray, a: float, b: float) -> FloatArray:
    """Compute the derivative of q^2 sin(w) with q = a x - 2 and w = b x - 4.

    It is q (2 a sin(w) + b q cos(w)).
    """
    amplitude = a * x - 2.0
    phase = b * x - 4.0
    slope: FloatArray = amplitude * (2.0 * a * np.sin(phase) + b * amplitude * np.cos(phase))
    return slope
