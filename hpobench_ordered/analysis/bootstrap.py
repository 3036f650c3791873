"""Confidence intervals of means over few seeds or tasks, by the studentised bootstrap.

Notation:
    n       number of samples: seeds or tasks
    K       number of means that are estimated at once
    B       number of resamples
    x[i]    sample i of one mean
    m, e    mean of x, and its standard error s / sqrt(n), where s has the divisor n - 1
    m*, e*  the same of n samples drawn from x with replacement
    t*      (m* - m) / e*
    q(p)    quantile p of t*, limited to [-c, 0] or [0, c]
    t(p)    quantile p of Student's distribution with n - 1 degrees of freedom
    c       2 t(0.975)

    interval  [m - q(0.975) e, m - q(0.025) e]

Source: Efron and Tibshirani (1993), An Introduction to the Bootstrap, section 12.5 (bootstrap-t).
docs/statistics.md has the measured coverage beside that of Student's and the percentile interval,
and why fewer than 5 samples have no interval; `docs/experiments/interval_coverage.py` measures it.

Three changes to the source. Resamples that hardly vary (samples with ties, or with one outlier)
have arbitrarily large t*, so q is limited to twice Student's quantile, which costs next to no
coverage. Above 500 samples Student's interval is used, whose coverage is then right for skewed
data, too. Ends outside of the possible values (a mean rank below 1) are clipped to them.

All means are resampled at once, a hundred times faster than one by one by `scipy.stats.bootstrap`.
"""

import copy
import math
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray

TAIL = 0.025  # probability on either side of an interval of 95 %
MIN_SAMPLES_OF_INTERVAL = 5
MAX_SAMPLES_TO_RESAMPLE = 500  # more samples get Student's interval
MAX_QUANTILE_RATIO = 2.0  # largest quantile q, in units of Student's t(p): c = 2 t(0.975)
MAX_RATIOS_AT_ONCE = 60_000  # of t*; so many stay in a processor's cache, twice as fast as more
MIN_RELATIVE_VARIANCE = 1e-12  # a resample that varies less is treated as if it varied so much


@dataclass(frozen=True, slots=True)
class Intervals:
    """Means and their 95 % confidence intervals, NaN with too few samples."""

    mean: FloatArray
    lower: FloatArray  # of the same shape, as is upper
    upper: FloatArray
    samples: int  # number of samples n behind each mean


def mean_intervals(
    samples: FloatArray,
    *,
    rng: np.random.Generator,
    resamples: int = 1999,
    possible: tuple[float, float] = (-math.inf, math.inf),
) -> Intervals:
    """Average samples, and compute the interval of each mean.

    Args:
        samples: Independent samples along the first axis, shape (samples, ...). All means are
            resampled together; to compare two methods, pass their differences. NaN samples are left
            out of their own mean and interval only.
        rng: Random generator of the resamples.
        resamples: Number of resamples B, at least 39: of fewer, quantile 0.025 is not defined.
        possible: The lowest and the highest possible value; ends are clipped to them.

    Returns:
        Intervals of shape (...). A mean of NaN, or of too few samples, has ends of NaN.
    """
    n_samples = len(samples)
    if not n_samples:
        nothing = np.full(samples.shape[1:], np.nan)
        return Intervals(nothing, nothing, nothing, 0)

    flat = samples.reshape(n_samples, -1)  # (samples, means)
    rng_before = copy.deepcopy(rng)
    # Mean, lower and upper end, (3, means).
    mean_and_ends = np.stack(_mean_and_ends(flat, rng, resamples))

    has_sample = ~np.isnan(flat)
    is_incomplete = has_sample.any(axis=0) & ~has_sample.all(axis=0)
    if is_incomplete.any():
        # From the generator as it was: the draws must not depend on which means are complete.
        incomplete = np.flatnonzero(is_incomplete)
        _fill_incomplete_means(mean_and_ends, flat, incomplete, rng_before, resamples)

    mean, lower, upper = mean_and_ends.reshape(3, *samples.shape[1:])
    return Intervals(mean, np.clip(lower, *possible), np.clip(upper, *possible), n_samples)


def _fill_incomplete_means(
    mean_and_ends: FloatArray,
    flat: FloatArray,
    incomplete: IntArray,
    rng: np.random.Generator,
    resamples: int,
) -> None:
    """Compute the means of columns that lack samples, each from the samples that it has.

    Columns that lack the same samples are resampled together.

    Args:
        mean_and_ends: Mean, lower and upper end of each column, (3, means); filled in place.
        flat: Samples, NaN where one is lacking, (samples, means).
        incomplete: Indices of the columns that lack some samples.
        rng: Random generator. Each set of columns draws from a copy of it, so that the intervals
            of one set do not depend on which other sets there are.
        resamples: Number of resamples B.
    """
    is_present = ~np.isnan(flat[:, incomplete])  # (samples, incomplete columns)
    # A pattern is which of the samples a column has; columns of the same pattern go together.
    patterns, pattern_of_column = np.unique(is_present, axis=1, return_inverse=True)
    pattern_of_column = pattern_of_column.ravel()  # numpy 2.0 returns two axes
    for number, has_sample in enumerate(patterns.T):
        columns = incomplete[pattern_of_column == number]
        complete_samples = flat[has_sample][:, columns]
        same_rng = copy.deepcopy(rng)
        mean_and_ends[:, columns] = _mean_and_ends(complete_samples, same_rng, resamples)


def draw_weights(n_samples: int, *, rng: np.random.Generator, resamples: int) -> FloatArray:
    """Draw resamples of n samples, as weights of the samples, (resamples, samples).

    A weight is how often the sample was drawn, divided by n, so that each row sums to 1. Intervals
    of fewer than `MIN_SAMPLES_OF_INTERVAL` or more than `MAX_SAMPLES_TO_RESAMPLE` samples need no
    resamples: the result then has no rows.
    """
    if not MIN_SAMPLES_OF_INTERVAL <= n_samples <= MAX_SAMPLES_TO_RESAMPLE:
        resamples = 0
    equal_probabilities = np.full(n_samples, 1 / n_samples)
    return rng.multinomial(n_samples, equal_probabilities, size=resamples) / n_samples


def _mean_and_ends(
    samples: FloatArray, rng: np.random.Generator, resamples: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Average samples, and compute both ends of the 95 % intervals of the means, (means,) each.

    An end of an interval is the mean minus a quantile times the standard error of the mean. The
    quantiles are those of resamples (bootstrap-t), or, with more than `MAX_SAMPLES_TO_RESAMPLE`
    samples, those of Student's t. With fewer than `MIN_SAMPLES_OF_INTERVAL` samples the ends are
    NaN.

    Args:
        samples: Samples, (samples, means).
        rng: Random generator of the resamples.
        resamples: Number of resamples.
    """
    from scipy.special import stdtrit

    n_samples, n_means = samples.shape
    if n_samples < MIN_SAMPLES_OF_INTERVAL:
        no_ends = np.full(n_means, np.nan)
        return samples.mean(axis=0), no_ends, no_ends

    # Quantile 0.975 of Student's t; as that is symmetric about 0, its negative is quantile 0.025.
    student_quantile = float(stdtrit(n_samples - 1, 1 - TAIL))
    upper_quantile = np.full(n_means, student_quantile)
    lower_quantile = -upper_quantile
    with np.errstate(invalid="ignore"):  # infinite samples have no interval
        mean = samples.mean(axis=0)
        standard_error = samples.std(axis=0, ddof=1) / np.sqrt(n_samples)

        weights = draw_weights(n_samples, rng=rng, resamples=resamples)
        is_resampled = len(weights) > 0
        if is_resampled:  # quantiles replace Student's, but are at most twice as large
            limit = MAX_QUANTILE_RATIO * student_quantile
            lower_quantile, upper_quantile = _studentised_quantiles(samples, weights, limit)

        # If the mean is too high by as much as the upper quantile of its error, the true value is
        # the lower end. So the upper quantile gives the lower end, and the lower one the upper end.
        lower_end = mean - upper_quantile * standard_error
        upper_end = mean - lower_quantile * standard_error
        return mean, lower_end, upper_end


def _studentised_quantiles(
    samples: FloatArray, weights: FloatArray, limit: float
) -> tuple[FloatArray, FloatArray]:
    """Compute quantiles 0.025 and 0.975 of the studentised ratio t* over resamples, (means,) each.

    t* is the error of a resample's mean in units of its standard error. Resamples that hardly vary
    have arbitrarily large t*, so that the absolute quantiles are limited. The lower quantile is at
    most 0 and the upper one at least 0, so that the interval contains the mean. Both are NaN for a
    mean of samples with NaN.

    Args:
        samples: Samples, (samples, means).
        weights: Weights of the samples in the resamples, (resamples, samples).
        limit: Largest absolute quantile.
    """
    n_resamples = len(weights)
    n_means = samples.shape[1]
    rank = _find_rank_of_tail(n_resamples)
    # Indices among the t* of one mean in ascending order: the rank from below, and from above.
    lower_index = rank - 1
    upper_index = n_resamples - rank

    lower_quantile = np.empty(n_means)
    upper_quantile = np.empty(n_means)
    # Means are taken in blocks, whose ratios fit into a processor's cache.
    block_size = max(1, MAX_RATIOS_AT_ONCE // n_resamples)
    for start in range(0, n_means, block_size):
        block = slice(start, start + block_size)
        ratios = _studentised_ratios(samples[:, block], weights)  # t*, (means, resamples)
        # Faster than sorting: only the ratios at these two indices get to their sorted places.
        ratios.partition((lower_index, upper_index), axis=1)
        lower_quantile[block] = np.clip(ratios[:, lower_index], -limit, 0)
        upper_quantile[block] = np.clip(ratios[:, upper_index], 0, limit)
    return lower_quantile, upper_quantile


def _find_rank_of_tail(n_resamples: int) -> int:
    """Find which t* of B resamples is quantile 0.025: its rank from below, counted from 1.

    Quantile p is the t* of rank (B + 1) p, rounded down; by symmetry, quantile 1 - p has this rank
    from above. For usual B, such as 1999, the product is a whole number, 50. Adding 1e-9 keeps a
    rounding error, such as 49.9999999, from making the rank too low.
    """
    rank = int((n_resamples + 1) * TAIL + 1e-9)
    return max(rank, 1)


def _studentised_ratios(samples: FloatArray, weights: FloatArray) -> FloatArray:
    """Compute the studentised ratio t* of every resample, (means, resamples).

    The mean of a resample has an error: its difference from the mean of all samples. The ratio t*
    is this error divided by the standard error of the resample's mean.

    Samples are standardised first, to mean 0 and standard deviation 1, which does not change t*.
    The mean of a resample is then itself the error. Arrays of shape (means, resamples) are large,
    and are therefore reused for later results (`out`).

    Args:
        samples: Samples, (samples, means).
        weights: Weights of the samples in the resamples, (resamples, samples).
    """
    centred = samples - samples.mean(axis=0)
    scale = centred.std(axis=0)
    standardised = centred / np.where(scale == 0, 1, scale)

    # Mean and mean square of each resample, (means, resamples).
    errors = standardised.T @ weights.T
    mean_squares = (standardised**2).T @ weights.T

    # The variance of the n values in a resample, with divisor n. It may be 0, if all n values are
    # the same sample, and is then raised a little.
    variances = np.subtract(mean_squares, errors**2, out=mean_squares)
    np.maximum(variances, MIN_RELATIVE_VARIANCE, out=variances)
    # The variance of their mean, s^2 / n with the divisor n - 1 in s^2, is this over n - 1.
    variances /= len(samples) - 1
    standard_errors = np.sqrt(variances, out=variances)
    ratios = np.divide(errors, standard_errors, out=errors)
    return np.asarray(ratios)
