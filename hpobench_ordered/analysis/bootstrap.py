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
and why fewer than 5 samples have no interval; `tests/performance/interval_coverage.py` measures it.

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

from hpobench_ordered._typing import FloatArray

TAIL = 0.025  # on either side of an interval of 95 %
FEWEST = 5  # samples that have an interval
MOST = 500  # samples that are resampled
LIMIT = 2.0  # of quantiles, in units of Student's
CHUNK = 4_000_000  # numbers held at a time
CONSTANT = 1e-12  # relative variance below which a resample counts as constant


@dataclass(frozen=True, slots=True)
class Intervals:
    """Means and their 95 % confidence intervals, NaN with fewer than `FEWEST` samples."""

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
    """Means over samples, each with its interval.

    Args:
        samples: Independent samples along the first axis, shape (n, ...). All means are resampled
            together; to compare two methods, pass their differences. NaN samples are left out of
            their own mean and interval only.
        rng: Random generator of the resamples.
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
    """Weight of each sample in each resample, (B, n); B is 0 if n is too small or too large."""
    if not FEWEST <= count <= MOST:
        resamples = 0
    return rng.multinomial(count, np.full(count, 1 / count), size=resamples) / count


def _ends(
    flat: FloatArray, rng: np.random.Generator, resamples: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, lower and upper end, (K,) each, of samples (n, K)."""
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
    """Both quantiles q, (K,) each, of x (n, K), from weights (B, n) and limit c; NaN where x is."""
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
