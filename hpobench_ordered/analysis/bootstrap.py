"""Confidence intervals of means over few seeds or tasks, by the studentised bootstrap.

Notation:
    n       number of samples: seeds or tasks
    K       number of means that are estimated at once
    B       number of resamples
    x[i]    sample i of one mean
    m, e    mean of x, and its standard error s / sqrt(n), where s has the divisor n - 1
    m*, e*  the same of n samples drawn from x with replacement
    t*      (m* - m) / e*
    q(p)    quantile p of t*, limited to between -c and 0 or 0 and c
    t(p)    quantile p of Student's distribution with n - 1 degrees of freedom
    c       2 t(0.975)

    interval  [m - q(0.975) e, m - q(0.025) e]

Source: Efron and Tibshirani (1993), An Introduction to the Bootstrap, section 12.5 (bootstrap-t).
The plain percentile interval is too narrow for few samples (Hesterberg 2015, What teachers should
know about the bootstrap: of 10 normal ones, 89 % in the place of 95 %), and Student's covers less
than its 95 % where data are skewed, as regrets are. What this one covers, in %, by number of
samples (`tests/performance/interval_coverage.py` measures it):

    n                        5     10     20     50
    normal                 94.7   95.1   94.8   94.9
    gamma, skewness 1      94.1   95.0   94.6   94.9
    lognormal, 1.75        93.4   93.8   94.0   94.9
    exponential, 2         92.6   94.1   94.6   94.7
    lognormal, 6.2         87.9   90.7   91.8   93.6
    uniform                95.4   97.1   96.9   95.9
    rank on one task       90.7   98.9   95.6   96.6
    mean rank, 3 tasks     94.2   95.5   95.5   95.1

No interval covers well where nearly all samples are alike and a few far off, such as the seeds on a
single task that runs either solve or do not; means over several tasks are near to normal.

Fewer than 5 samples have no interval. Of 4 it covers 85 % for the rank of a method of three on one
task, as 14 % of such samples are all alike, and of 3 samples 74 %; Student's is no better. Where it
does cover, it says little: of 3 and 4 samples it reaches 4.3 and 2.0 standard deviations of the
samples to either side, of 5, 10 and 20 it is 1.5, 0.7 and 0.5. Ends outside of the possible values
(a mean rank below 1) are moved to the nearest of them, which costs no coverage.

What is added to the source: resamples that hardly vary (samples with ties, or with one outlier)
have any t*, even an infinite one, and so q is limited to twice Student's quantile, which costs next
to no coverage. Student's interval itself is used where n > 500, as it then covers what it says of
skewed data, too. All means are resampled at once, a hundred times as fast as one by one with
`scipy.stats.bootstrap`.
"""

import copy
import math
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import FloatArray

TAIL = 0.025  # on either side of an interval of 95 %
FEWEST = 5  # samples that have an interval
MOST = 500  # samples that are resampled
LIMIT = 2.0  # of quantiles, in units of Student's
CHUNK = 4_000_000  # numbers held at a time
CONSTANT = 1e-12  # relative variance below which a resample counts as constant


@dataclass(frozen=True, slots=True)
class Intervals:
    """Means and their 95 % confidence intervals.

    Attributes:
        mean: The means, of any shape.
        lower: Lower ends, same shape; NaN with fewer than `FEWEST` samples.
        upper: Upper ends, same shape; NaN with fewer than `FEWEST` samples.
        samples: Number of samples n behind each mean.
    """

    mean: FloatArray
    lower: FloatArray
    upper: FloatArray
    samples: int


def mean_intervals(
    samples: FloatArray,
    *,
    rng: np.random.Generator,
    resamples: int = 1999,
    possible: tuple[float, float] = (-math.inf, math.inf),
) -> Intervals:
    """Means over samples, each with its interval.

    Args:
        samples: Independent samples along the first axis, shape (n, ...). All means are resampled
            together; to compare two methods, pass their differences. A mean is over the samples
            that are not NaN, and its interval does not depend on those that others lack.
        rng: Source of randomness; the same one gives the same intervals.
        resamples: Number of resamples B, at least 39.
        possible: The lowest and the highest possible value; ends are clipped to them.

    Returns:
        Intervals of shape (...). A mean of NaN, or of fewer than `FEWEST` samples, has ends of NaN.
    """
    count = len(samples)
    if not count:
        nothing = np.full(samples.shape[1:], np.nan)
        return Intervals(nothing, nothing, nothing, 0)
    flat = samples.reshape(count, -1)
    before = copy.deepcopy(rng)
    ends = np.stack(_ends(flat, rng, resamples))
    known = ~np.isnan(flat)
    incomplete = np.flatnonzero(known.any(axis=0) & ~known.all(axis=0))
    if len(incomplete):
        patterns, which = np.unique(known[:, incomplete], axis=1, return_inverse=True)
        for place, pattern in enumerate(patterns.T):
            columns = incomplete[which.ravel() == place]  # numpy 2.0 returns two axes
            part = flat[pattern][:, columns]
            ends[:, columns] = _ends(part, copy.deepcopy(before), resamples)
    mean, lower, upper = ends.reshape(3, *samples.shape[1:])
    return Intervals(mean, np.clip(lower, *possible), np.clip(upper, *possible), count)


def draw_weights(count: int, *, rng: np.random.Generator, resamples: int) -> FloatArray:
    """Share of every sample in every resample, shape (B, n); B is 0 for too few or many samples."""
    if not FEWEST <= count <= MOST:
        resamples = 0
    return rng.multinomial(count, np.full(count, 1 / count), size=resamples) / count


def _ends(
    flat: FloatArray, rng: np.random.Generator, resamples: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, lower and upper end of the columns of samples (n, K)."""
    from scipy.special import stdtrit

    count = len(flat)
    if count < FEWEST:
        nothing = np.full(flat.shape[1], np.nan)
        return flat.mean(axis=0), nothing, nothing
    above = np.full(flat.shape[1], float(stdtrit(count - 1, 1 - TAIL)))
    below = -above
    with np.errstate(invalid="ignore"):  # infinite samples have no interval
        mean, error = flat.mean(axis=0), flat.std(axis=0, ddof=1) / np.sqrt(count)
        weights = draw_weights(count, rng=rng, resamples=resamples)
        if len(weights):
            below, above = _studentised_quantiles(flat, weights, LIMIT * above[0])
        return mean, mean - above * error, mean - below * error


def _studentised_quantiles(
    samples: FloatArray, weights: FloatArray, limit: float
) -> tuple[FloatArray, FloatArray]:
    """Quantiles of t* on either side, shape (K,) each; NaN where samples are.

    Args:
        samples: x, shape (n, K).
        weights: Share of every sample in every resample, shape (B, n).
        limit: c.
    """
    resamples, width = len(weights), samples.shape[1]
    # The order statistics of rank (B + 1) p, of which no interpolation is needed for usual B.
    rank = max(int((resamples + 1) * TAIL + 1e-9), 1)
    places = (rank - 1, resamples - rank)
    below, above = np.empty(width), np.empty(width)
    step = max(1, CHUNK // resamples)
    for start in range(0, width, step):
        part = slice(start, start + step)
        ratios = _studentised(samples[:, part], weights)
        ratios.partition(places, axis=1)
        below[part] = np.clip(ratios[:, places[0]], -limit, 0)
        above[part] = np.clip(ratios[:, places[1]], 0, limit)
    return below, above


def _studentised(samples: FloatArray, weights: FloatArray) -> FloatArray:
    """t* of every resample, shape (K, B), from samples (n, K) and weights (B, n)."""
    centred = samples - samples.mean(axis=0)
    scale = centred.std(axis=0)
    standardised = centred / np.where(scale == 0, 1, scale)
    means = standardised.T @ weights.T
    variances = (standardised**2).T @ weights.T
    variances -= means**2
    np.maximum(variances, CONSTANT, out=variances)
    variances /= len(samples) - 1
    np.sqrt(variances, out=variances)
    means /= variances
    return np.asarray(means)
