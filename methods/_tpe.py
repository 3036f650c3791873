"""Kernel densities of good and of bad configurations: the model of TPE.

=======  =======  =============================================================================
symbol   shape    meaning
=======  =======  =============================================================================
n        scalar   configurations of a density
m        scalar   configurations to score
d        scalar   hyperparameters
x        (m, d)   configurations, unit vectors; inactive hyperparameters NaN
x_i      (n, d)   configurations that the density is fitted to
c        (d,)     number of choices; 0 for numbers and ordinals
h        (d,)     bandwidths
=======  =======  =============================================================================

The density at x is the mean over i of the product over the hyperparameters that are active in x of

    exp(-(x - x_i)^2 / (2 h^2)) / (h sqrt(2 pi))          a number or an ordinal
    1 - h if x = x_i, else h / (c - 1)                    a choice (Aitchison and Aitken 1976)
    1, or 1 / c of a choice                               if it is inactive in x_i: the prior

with h = 1.06 s n^(-1 / (4 + d)), the normal reference rule, where s is the standard deviation of
the x_i, for choices that of their indices. h is at least `MIN_BANDWIDTH`, and for choices at most
(c - 1) / c, where all are equally likely.

Bergstra et al. (2011), section 4; settings of Falkner et al. (2018) and Stoll et al. (2020).
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtr, ndtri

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.runtime.compiling import compiled

GOOD = 0.15
"""Share of the configurations that are good."""
MIN_BANDWIDTH = 1e-3
WIDER = 3.0
"""Factor of the bandwidths with which candidates are drawn."""
LOWEST = 1e-32
"""Lower bound of densities."""


@dataclass(frozen=True, eq=False, slots=True)
class Density:
    """A kernel density.

    Attributes:
        data: Its configurations, unit vectors, shape (n, d).
        choices: Number of choices of each hyperparameter, 0 for numbers, shape (d,).
        bandwidths: Shape (d,).
    """

    data: FloatArray
    choices: IntArray
    bandwidths: FloatArray

    @classmethod
    def fit(cls, data: FloatArray, choices: IntArray) -> Self:
        """Density of configurations, with bandwidths by the normal reference rule."""
        return cls(data, choices, bandwidths(data, choices))

    def log(self, unit: FloatArray) -> FloatArray:
        """Logarithm of the density, or of `LOWEST`, at unit vectors (m, d); shape (m,)."""
        return log_density(unit, self.data, self.choices, self.bandwidths)

    def sample(self, rng: np.random.Generator, m: int, *, wider: float = WIDER) -> FloatArray:
        """Draw around randomly chosen configurations, shape (m, d).

        Numbers are drawn from a normal distribution truncated to [0, 1], `wider` times as wide as
        the kernel. A choice is kept with probability 1 - h, and otherwise drawn uniformly.
        Hyperparameters that are inactive in the chosen configuration are drawn from the prior.
        """
        (n, d), h = self.data.shape, self.bandwidths
        centres = self.data[rng.integers(n, size=m)]
        uniform, stays = rng.random((m, d)), rng.random((m, d))
        missing, wide = np.isnan(centres), wider * h
        low, high = ndtr((0.0 - centres) / wide), ndtr((1.0 - centres) / wide)
        numbers = np.clip(centres + wide * ndtri(low + uniform * (high - low)), 0.0, 1.0)
        of_choice = np.where(stays < 1.0 - h, centres, uniform)
        drawn: FloatArray = np.where(
            missing, uniform, np.where(self.choices > 0, of_choice, numbers)
        )
        return drawn


@dataclass(frozen=True, eq=False, slots=True)
class ParzenModel:
    """Densities of good and of bad configurations; their ratio is the score."""

    good: Density
    bad: Density

    @classmethod
    def fit(cls, unit: FloatArray, losses: FloatArray, choices: IntArray) -> Self:
        """Split evaluations and fit both densities.

        The share `GOOD` with the lowest losses is good, at least d + 1 and at most half of the
        evaluations; of equal losses the first.

        Args:
            unit: At least two configurations, unit vectors, shape (n, d).
            losses: Shape (n,).
            choices: c, shape (d,).
        """
        n, d = unit.shape
        count = max(min(d + 1, n // 2), int(GOOD * n))
        order = np.argsort(losses, kind="stable")
        return cls(*(Density.fit(unit[rows], choices) for rows in (order[:count], order[count:])))

    def score(self, unit: FloatArray) -> FloatArray:
        """Logarithm of the ratio of the densities at unit vectors (m, d); shape (m,)."""
        return self.good.log(unit) - self.bad.log(unit)


def count_needed_evaluations(dimension: int) -> int:
    """Number of evaluations needed for a model of `dimension` hyperparameters."""
    return 2 * (dimension + 1)


def bandwidths(data: FloatArray, choices: IntArray) -> FloatArray:
    """Bandwidths h (d,) of configurations (n, d) by the normal reference rule."""
    n, d = data.shape
    active = ~np.isnan(data)
    count = np.maximum(active.sum(axis=0), 1)
    mean = np.where(active, data, 0.0).sum(axis=0) / count
    squares = np.where(active, (data - mean) ** 2, 0.0).sum(axis=0) / count
    indices = np.where(choices > 0, choices, 1)  # choices are multiples of 1 / c apart
    h = 1.06 * np.sqrt(squares) * indices * n ** (-1.0 / (4.0 + d))
    highest = np.where(choices > 0, (indices - 1.0) / indices, np.inf)
    bounded: FloatArray = np.minimum(np.maximum(h, MIN_BANDWIDTH), highest)
    return bounded


@compiled
def log_density(unit: FloatArray, data: FloatArray, choices: IntArray, h: FloatArray) -> FloatArray:
    """Logarithm of the density (m,); see `Density.log`."""
    (m, d), n = unit.shape, len(data)
    columns, exponent, kernel, total = unit.T.copy(), np.empty(m), np.empty(m), np.zeros(m)
    for i in range(n):
        exponent[:], kernel[:] = 0.0, 1.0
        for j in range(d):
            x, centre, c = columns[j], data[i, j], choices[j]
            if c == 0 and not math.isnan(centre):
                norm = 1.0 / (h[j] * math.sqrt(2.0 * math.pi))
                for row in range(
                    m
                ):  # NaN is not equal to itself; without a branch it is vectorised
                    z = (x[row] - centre) / h[j]
                    exponent[row] -= 0.0 if math.isnan(z) else 0.5 * z * z
                    kernel[row] *= 1.0 if math.isnan(z) else norm
            elif c > 0 and math.isnan(centre):
                for row in range(m):
                    kernel[row] /= 1 if math.isnan(x[row]) else c
            elif c > 0:
                same, other = 1.0 - h[j], h[j] / (c - 1)
                for row in range(m):
                    factor = same if abs(x[row] - centre) * c < 0.5 else other
                    kernel[row] *= 1.0 if math.isnan(x[row]) else factor
        for row in range(m):
            total[row] += kernel[row] * math.exp(exponent[row])
    for row in range(m):
        total[row] = math.log(max(LOWEST, total[row] / n))
    return total
