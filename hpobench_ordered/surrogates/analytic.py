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
from hpobench_ordered.files.arrays import read_only
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
    _rows: tuple[tuple[float, float, float], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        coefficients = read_only(self.coefficients)
        if coefficients.shape[1:] != (3,) or not np.isfinite(coefficients).all():
            raise ValueError(f"coefficients must be finite, (T, 3), but got {coefficients.shape}")
        self.coefficients = coefficients
        self._rows = tuple(map(tuple, coefficients.tolist()))

    def __reduce__(self) -> tuple[type[Self], tuple[FloatArray]]:
        return type(self), (self.coefficients,)

    def _of(self, task: int) -> tuple[float, float, float]:
        check_task(task, len(self._rows))
        return self._rows[task]


class ForresterSurrogate(_Coefficients):
    """f(x) = (a x - 2)^2 sin(b x - 4) + c on [0, 1]."""

    dimension: ClassVar[int] = 1

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Values of many configurations, shape (n, 1) to (n,)."""
        a, b, c = self._of(task)
        x = np.asarray(values, dtype=np.float64)[:, 0]
        # numpy may round the sine of an array differently from that of a number.
        sines = np.array([math.sin(phase) for phase in (b * x - 4.0).tolist()])
        return _forrester(x, sines, a, c)

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Value of one configuration, shape (1,); equals `predict(row[None], task)[0]` exactly."""
        a, b, c = self._of(task)
        x = float(row[0])
        return _forrester(x, math.sin(b * x - 4.0), a, c)

    def minima(self) -> list[float]:
        """Minimum of every task: below all computed values, by about 1e-12.

        Each minimum on a grid is bracketed and refined by bisection on the sign of the derivative.
        Twice a bound of the rounding error is subtracted from the lowest value: with A = |a| + 2 >=
        |q|, it is u A^2 (2 |b| + 4) for the phase, u A^2 (2 + 4 + 2) for sine, amplitude and
        products, and u (A^2 + |c|) for the sum.
        """
        best = []
        for task, (a, b, c) in enumerate(self._rows):
            candidates = _stationary(a, b)
            lowest = float(self.predict(candidates[:, None], task).min())
            bound = (abs(a) + 2.0) ** 2 * (2.0 * abs(b) + 13.0) + abs(c)
            best.append(lowest - 2.0 * bound * 2.0**-53)
        return best


class QuadraticSurrogate(_Coefficients):
    """f(x) = a x'x + b 1'x + c on [-10, 10]^5, computed as a sum of squares.

    With h = b / (2 a), f(x) = a sum_j (x_j + h)^2 + c - d b^2 / (4 a). Rounding is monotone, so no
    computed value is below the last two terms, the minimum.
    """

    dimension: ClassVar[int] = 5

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Values of many configurations, shape (n, 5) to (n,)."""
        columns = np.asarray(values, dtype=np.float64).T
        return _quadratic(list(columns), *self._of(task))

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Value of one configuration, shape (5,); equals `predict(row[None], task)[0]` exactly."""
        columns: list[float] = row.tolist()
        return _quadratic(columns, *self._of(task))

    def minima(self) -> list[float]:
        """Minimum of every task, at x_j = -b / (2 a), which is inside where |b| <= 20 a."""
        return [_lowest(self.dimension, *row) for row in self._rows]


def _forrester(x: X, sine: X, a: float, c: float) -> X:
    amplitude = a * x - 2.0
    return amplitude * amplitude * sine + c


def _quadratic(columns: Sequence[X], a: float, b: float, c: float) -> X:
    half = b / (2.0 * a)
    shifted = [x + half for x in columns]
    total = shifted[0] * shifted[0]
    for x in shifted[1:]:
        total = total + x * x
    return a * total + _lowest(len(columns), a, b, c)


def _lowest(d: int, a: float, b: float, c: float) -> float:
    return c - d * b * b / (4.0 * a)


def _stationary(a: float, b: float) -> FloatArray:
    """The grid's and the refined minima of a Forrester function, ends included, (m,)."""
    grid = np.linspace(0.0, 1.0, CELLS + 1)
    values = np.pad((a * grid - 2.0) ** 2 * np.sin(b * grid - 4.0), 1, constant_values=np.inf)
    lowest = np.flatnonzero((values[1:-1] <= values[:-2]) & (values[1:-1] <= values[2:]))
    low, high = grid[np.maximum(lowest - 1, 0)], grid[np.minimum(lowest + 1, CELLS)]
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        amplitude, phase = a * middle - 2.0, b * middle - 4.0
        slope = amplitude * (2.0 * a * np.sin(phase) + b * amplitude * np.cos(phase))
        low, high = np.where(slope > 0.0, low, middle), np.where(slope > 0.0, middle, high)
    return np.concatenate([grid[lowest], low, high])
