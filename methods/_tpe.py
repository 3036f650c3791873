"""Kernel densities of good and of bad configurations: the model of TPE.

=======  =======  =============================================================================
symbol   shape    meaning
=======  =======  =============================================================================
n        scalar   configurations of a density
m        scalar   configurations to score
d        scalar   hyperparameters
x        (m, d)   configurations in the unit cube; inactive hyperparameters NaN
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

GOOD_SHARE = 0.15
"""Share of the configurations that are good."""
MIN_BANDWIDTH = 1e-3
"""Smallest bandwidth, in the unit cube."""
SAMPLING_WIDTH = 3.0
"""Factor of the bandwidths with which candidates are drawn."""
MIN_DENSITY = 1e-32
"""Lower bound of densities."""


@dataclass(frozen=True, eq=False, slots=True)
class Density:
    """A kernel density.

    Attributes:
        data: Its configurations in the unit cube, NaN where inactive, shape (n, d).
        choices: Number of choices of each hyperparameter, 0 for numbers, shape (d,).
        bandwidths: Shape (d,).
    """

    data: FloatArray
    choices: IntArray
    bandwidths: FloatArray

    @classmethod
    def fit(cls, data: FloatArray, choices: IntArray) -> Self:
        """Fit the density of configurations: choose bandwidths by the normal reference rule.

        Args:
            data: The configurations in the unit cube, NaN where inactive, shape (n, d).
            choices: Number of choices of each hyperparameter, 0 for numbers, shape (d,).
        """
        return cls(data, choices, choose_bandwidths(data, choices))

    def log(self, unit: FloatArray) -> FloatArray:
        """Compute the log density (m,) at configurations in the unit cube, (m, d).

        A density below `MIN_DENSITY` is replaced by `MIN_DENSITY`, so that its logarithm is finite.
        """
        return log_density(unit, self.data, self.choices, self.bandwidths)

    def sample(
        self, rng: np.random.Generator, m: int, *, width_factor: float = SAMPLING_WIDTH
    ) -> FloatArray:
        """Draw m configurations, each from the kernel around one that is chosen at random.

        A number is drawn from a normal distribution that is truncated to [0, 1] and `width_factor`
        times as wide as the kernel. A categorical keeps its choice with the probability 1 minus its
        bandwidth, and is drawn uniformly otherwise. A hyperparameter that is inactive, NaN, in the
        chosen configuration is drawn uniformly, too.

        Args:
            rng: Draws the configurations.
            m: Number of configurations.
            width_factor: Factor by which the bandwidths of numbers are multiplied.

        Returns:
            Points of the unit cube, shape (m, d), with a value also where a hyperparameter is
            inactive.
        """
        n, d = self.data.shape
        chosen_rows = rng.integers(n, size=m)
        centres = self.data[chosen_rows]  # NaN where inactive
        uniform = rng.random((m, d))
        keeps_choice = rng.random((m, d)) < 1.0 - self.bandwidths

        sd = width_factor * self.bandwidths
        numbers = invert_truncated_normal(uniform, centres, sd)
        # Every choice has an equal part of the unit interval, so that a uniform value draws one.
        choices = np.where(keeps_choice, centres, uniform)

        is_categorical = self.choices > 0
        drawn_if_active = np.where(is_categorical, choices, numbers)
        is_inactive = np.isnan(centres)
        drawn: FloatArray = np.where(is_inactive, uniform, drawn_if_active)
        return drawn


def invert_truncated_normal(
    probability: FloatArray, mean: FloatArray, sd: FloatArray
) -> FloatArray:
    """Compute quantiles of normal distributions that are truncated to [0, 1].

    At uniform random probabilities these are draws from the truncated distributions.

    Args:
        probability: Probabilities, shape (m, d).
        mean: Means before truncation, shape (m, d); where they are NaN, so is the result.
        sd: Standard deviations before truncation, shape (d,).

    Returns:
        The quantiles in [0, 1], shape (m, d).
    """
    # `ndtr` is the distribution function of the standard normal, and `ndtri` its inverse.
    probability_below_0 = ndtr((0.0 - mean) / sd)
    probability_below_1 = ndtr((1.0 - mean) / sd)
    truncated_probability = probability_below_1 - probability_below_0
    standard_quantiles = ndtri(probability_below_0 + probability * truncated_probability)
    # Clipped, as a quantile may lie outside by a rounding error.
    quantiles: FloatArray = np.clip(mean + sd * standard_quantiles, 0.0, 1.0)
    return quantiles


@dataclass(frozen=True, eq=False, slots=True)
class ParzenModel:
    """Densities of good and of bad configurations; their ratio is the score."""

    good: Density
    bad: Density

    @classmethod
    def fit(cls, unit: FloatArray, losses: FloatArray, choices: IntArray) -> Self:
        """Split evaluations into good and bad ones, and fit a density to each group.

        Good are the share `GOOD_SHARE` with the lowest losses, but at least d + 1 evaluations
        (Falkner et al. 2018), or half of all if they are too few for that. Of equal losses, the
        earlier ones count as lower.

        Args:
            unit: At least two configurations in the unit cube, shape (n, d).
            losses: Their losses, shape (n,).
            choices: Number of choices of each hyperparameter, 0 for numbers, shape (d,).
        """
        n, d = unit.shape
        smallest_good_count = min(d + 1, n // 2)
        good_count = max(smallest_good_count, int(GOOD_SHARE * n))
        best_first = np.argsort(losses, kind="stable")
        good_rows = best_first[:good_count]
        bad_rows = best_first[good_count:]
        return cls(
            good=Density.fit(unit[good_rows], choices),
            bad=Density.fit(unit[bad_rows], choices),
        )

    def score(self, unit: FloatArray) -> FloatArray:
        """Compute the log ratio (m,) of the good to the bad density at m configurations.

        Args:
            unit: The configurations in the unit cube, shape (m, d).
        """
        return self.good.log(unit) - self.bad.log(unit)


def count_needed_evaluations(dimension: int) -> int:
    """Count the evaluations needed for a model of `dimension` hyperparameters.

    The model has two densities, of good and of bad configurations. Each is fitted to at least
    dimension + 1 configurations.
    """
    needed_for_each_density = dimension + 1
    return 2 * needed_for_each_density


def choose_bandwidths(data: FloatArray, choices: IntArray) -> FloatArray:
    """Choose a kernel's bandwidth for each hyperparameter by the normal reference rule, (d,).

    The rule is h = 1.06 sd n^(-1 / (4 + d)), where sd is the standard deviation of the values of a
    number, or of the indices of a categorical's choices. The kernel of a number is a normal density
    with the standard deviation h; the kernel of a categorical keeps the choice of a configuration
    with the probability 1 - h. A bandwidth is at least `MIN_BANDWIDTH`.

    Args:
        data: Configurations in the unit cube, NaN where inactive, shape (n, d).
        choices: Number of choices of each hyperparameter, 0 for numbers, shape (d,).
    """
    n, d = data.shape
    is_categorical = choices > 0
    is_active = ~np.isnan(data)
    # At least 1, so that nothing is divided by 0.
    active_count = np.maximum(is_active.sum(axis=0), 1)
    mean = np.where(is_active, data, 0.0).sum(axis=0) / active_count
    squared_deviations = np.where(is_active, (data - mean) ** 2, 0.0)
    sd_of_unit_values = np.sqrt(squared_deviations.sum(axis=0) / active_count)

    # The unit values of a categorical with c choices are 1 / c apart and the indices are 1 apart,
    # so that the standard deviation of the indices is c times as large.
    indices_per_unit = np.where(is_categorical, choices, 1)
    shrinkage = max(n, 1) ** (-1.0 / (4.0 + d))  # also defined without configurations
    bandwidths = 1.06 * sd_of_unit_values * indices_per_unit * shrinkage

    # With the bandwidth (c - 1) / c all c choices are equally likely. A larger one would make the
    # configuration's own choice less likely than the others. Numbers have no such bound.
    share_of_other_choices = (indices_per_unit - 1.0) / indices_per_unit
    upper_bounds = np.where(is_categorical, share_of_other_choices, np.inf)
    bounded: FloatArray = np.minimum(np.maximum(bandwidths, MIN_BANDWIDTH), upper_bounds)
    return bounded


@compiled
def log_density(unit: FloatArray, data: FloatArray, choices: IntArray, h: FloatArray) -> FloatArray:
    """Compute the logarithm of a kernel density, (m,), at points of the unit cube, (m, d).

    The density is the mean of n terms, one for each configuration of `data`; a term is the product
    of the hyperparameters' kernels. As exponentials are slow, there is a single one for each term:
    the kernels of numbers, which are normal densities, add to its exponent and multiply its factor,
    and the kernels of categoricals multiply the factor.

    Args:
        unit: Where the density is computed, shape (m, d).
        data: Configurations of the density in the unit cube, NaN where inactive, shape (n, d).
        choices: Number of choices of each hyperparameter, 0 for numbers, shape (d,).
        h: Bandwidths, shape (d,).
    """
    m, d = unit.shape
    columns = unit.T.copy()  # contiguous, so that the loops over m are vectorised
    exponent = np.empty(m)
    factor = np.empty(m)
    total = np.zeros(m)
    for i in range(len(data)):
        exponent[:] = 0.0
        factor[:] = 1.0
        # Where a configuration has no value, NaN, a hyperparameter's kernel is uniform.
        for j in range(d):
            if choices[j] == 0:  # a number, whose prior density on [0, 1] is 1
                if not math.isnan(data[i, j]):
                    _multiply_by_normal(exponent, factor, columns[j], data[i, j], h[j])
            elif math.isnan(data[i, j]):
                _multiply_by_prior(factor, columns[j], choices[j])
            else:
                _multiply_by_choice(factor, columns[j], data[i, j], h[j], choices[j])
        for row in range(m):
            total[row] += factor[row] * math.exp(exponent[row])
    for row in range(m):  # densities have a lower bound, so that logarithms are finite
        total[row] = math.log(max(MIN_DENSITY, total[row] / len(data)))
    return total


@compiled
def _multiply_by_normal(
    exponent: FloatArray, factor: FloatArray, x: FloatArray, centre: float, h: float
) -> None:
    """Multiply terms (m,), factor * exp(exponent), by the normal kernel of a number at x (m,).

    Its mean is `centre` and its standard deviation h. Where x is inactive, NaN, the kernel is 1.
    Both arrays of the terms change in place. There is no branch, so that the compiler vectorises
    the loop.
    """
    norm = 1.0 / (h * math.sqrt(2.0 * math.pi))
    for row in range(len(x)):
        z = (x[row] - centre) / h
        exponent[row] -= 0.0 if math.isnan(z) else 0.5 * z * z
        factor[row] *= 1.0 if math.isnan(z) else norm


@compiled
def _multiply_by_prior(factor: FloatArray, x: FloatArray, c: int) -> None:
    """Multiply factors (m,) by 1 / c, the probability of each of c choices, in place.

    x (m,) is the unit value of the categorical. Where it is inactive, NaN, factors stay.
    """
    for row in range(len(x)):
        factor[row] /= 1 if math.isnan(x[row]) else c


@compiled
def _multiply_by_choice(factor: FloatArray, x: FloatArray, centre: float, h: float, c: int) -> None:
    """Multiply factors (m,) by the kernel of a categorical with c choices, in place.

    The choice at the unit value `centre` has the probability 1 - h, the others share the bandwidth
    h (Aitchison and Aitken 1976). x (m,) is the unit value of the categorical. Where it is
    inactive, NaN, factors stay.
    """
    probability_of_same = 1.0 - h
    probability_of_other = h / (c - 1)
    for row in range(len(x)):
        is_same = abs(x[row] - centre) * c < 0.5  # unit values of choices are 1 / c apart
        probability = probability_of_same if is_same else probability_of_other
        factor[row] *= 1.0 if math.isnan(x[row]) else probability
