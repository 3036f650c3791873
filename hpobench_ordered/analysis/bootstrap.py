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
    c       2 t(1 - alpha / 2)

    interval  [m - q(1 - alpha / 2) e, m - q(alpha / 2) e]

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

No interval covers well where nearly all samples are alike and a few far off, such as the seeds on a
single task that runs either solve or do not; means over several tasks are near to normal.

What is added to the source: resamples that hardly vary (samples with ties, or with one outlier)
have any t*, even an infinite one, and so q is limited to twice Student's quantile, which costs next
to no coverage. Student's interval itself is used where n < 4, as there are hardly any different
resamples, and where n > 500, as it then covers what it says of skewed data, too.
"""

import copy
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.samples import Resampling, samples_of
from hpobench_ordered.errors import ExperimentError

FEWEST, MOST = 4, 500  # samples that are resampled
LIMIT = 2.0
CHUNK = 4_000_000  # numbers held at a time
# Variance, relative to that of all samples, below which a resample counts as constant.
CONSTANT = 1e-12


@dataclass(frozen=True, slots=True)
class Intervals:
    """Means and their confidence intervals.

    Attributes:
        mean: The means, of any shape.
        lower: Lower ends, same shape; NaN with a single sample.
        upper: Upper ends, same shape; NaN with a single sample.
        samples: Number of samples n behind each mean.
        confidence: Nominal coverage, such as 0.95.
    """

    mean: FloatArray
    lower: FloatArray
    upper: FloatArray
    samples: int
    confidence: float


def interval_over(
    values: FloatArray,
    resampling: Resampling,
    *,
    rng: np.random.Generator,
    first_task: int = 0,
    confidence: float = 0.95,
    resamples: int = 1999,
) -> Intervals:
    """Mean of a quantity over seeds and tasks, with its interval over either.

    Args:
        values: Quantity of every run, such as regrets or scores, shape (A, S, T, M) or (A, S, T).
            Tasks on which it is NaN anywhere are left out of all means.
        resampling: Whether seeds or tasks are the samples.
        rng: Source of randomness; the same one gives the same intervals.
        first_task: First task that counts, from 0; 1 leaves out the task without history.
        confidence: Nominal coverage.
        resamples: Number of resamples B.

    Returns:
        Intervals of shape (A, M) or (A,).

    Raises:
        ExperimentError: The confidence or the number of resamples is out of range.
    """
    samples = samples_of(values, resampling, first_task=first_task)
    return mean_intervals(samples, rng=rng, confidence=confidence, resamples=resamples)


def mean_intervals(
    samples: FloatArray,
    *,
    rng: np.random.Generator,
    confidence: float = 0.95,
    resamples: int = 1999,
) -> Intervals:
    """Means over samples, each with its interval.

    Args:
        samples: Independent samples along the first axis, shape (n, ...). All means are resampled
            together; to compare two methods, pass their differences. A mean is over the samples
            that are not NaN, and its interval does not depend on those that others lack.
        rng: Source of randomness; the same one gives the same intervals.
        confidence: Nominal coverage.
        resamples: Number of resamples B.

    Returns:
        Intervals of shape (...). A mean of NaN, or of a single sample, has ends of NaN.

    Raises:
        ExperimentError: The confidence or the number of resamples is out of range.
    """
    _check(confidence, resamples)
    count = len(samples)
    if count < 2:
        nothing = np.full(samples.shape[1:], np.nan)
        mean = samples[0] if count else nothing
        return Intervals(mean, nothing, nothing, count, confidence)
    flat = samples.reshape(count, -1)
    before = copy.deepcopy(rng)
    ends = np.stack(_ends(flat, rng, confidence, resamples))
    known = ~np.isnan(flat)
    incomplete = np.flatnonzero(known.any(axis=0) & ~known.all(axis=0))
    if len(incomplete):
        patterns, which = np.unique(known[:, incomplete], axis=1, return_inverse=True)
        for place, pattern in enumerate(patterns.T):
            columns = incomplete[which == place]
            part = flat[pattern][:, columns]
            ends[:, columns] = _ends(part, copy.deepcopy(before), confidence, resamples)
    mean, lower, upper = (end.reshape(samples.shape[1:]) for end in ends)
    return Intervals(mean, lower, upper, count, confidence)


def draw_weights(count: int, *, rng: np.random.Generator, resamples: int = 1999) -> FloatArray:
    """Share of every sample in every resample, shape (B, n); no resamples of too few or many."""
    if not FEWEST <= count <= MOST:
        resamples = 0
    return rng.multinomial(count, np.full(count, 1 / count), size=resamples) / count


def _ends(
    flat: FloatArray, rng: np.random.Generator, confidence: float, resamples: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, lower and upper end of the columns of samples (n, K)."""
    from scipy.special import stdtrit

    count = len(flat)
    if count < 2:
        nothing = np.full(flat.shape[1], np.nan)
        return flat[0], nothing, nothing
    student = float(stdtrit(count - 1, (1 + confidence) / 2))
    below = np.full(flat.shape[1], -student)
    with np.errstate(invalid="ignore"):  # infinite samples, which have no interval
        mean, error = flat.mean(axis=0), flat.std(axis=0, ddof=1) / np.sqrt(count)
        above = -below
        if FEWEST <= count <= MOST:
            weights = draw_weights(count, rng=rng, resamples=resamples)
            below, above = _studentised_quantiles(flat, weights, confidence, limit=LIMIT * student)
        return mean, mean - above * error, mean - below * error


def _check(confidence: float, resamples: int) -> None:
    if not 0 < confidence < 1:
        raise ExperimentError(f"a confidence lies between 0 and 1, as 0.95 does, not {confidence}")
    fewest = int(np.ceil(2 / (1 - confidence))) - 1
    if resamples < fewest:
        raise ExperimentError(
            f"{resamples} resamples are too few for a confidence of {confidence}: "
            f"at least {fewest} are needed, and 1999 are usual"
        )


def _studentised_quantiles(
    samples: FloatArray, weights: FloatArray, confidence: float, *, limit: float
) -> tuple[FloatArray, FloatArray]:
    """Quantiles of t* on either side.

    Args:
        samples: x, shape (n, K).
        weights: Share of every sample in every resample, shape (B, n).
        confidence: Nominal coverage 1 - alpha.
        limit: c.

    Returns:
        q(alpha / 2) and q(1 - alpha / 2), shape (K,) each; NaN where samples are.
    """
    width = samples.shape[1]
    resamples = len(weights)
    # The order statistics of rank (B + 1) p, of which no interpolation is needed for usual B.
    rank = max(int((resamples + 1) * (1 - confidence) / 2 + 1e-9), 1)
    places = (rank - 1, resamples - rank)
    below, above = np.empty(width), np.empty(width)
    step = max(1, CHUNK // resamples)
    for start in range(0, width, step):
        part = slice(start, start + step)
        ratios = _studentised(_standardised(samples[:, part]), weights)
        ratios.partition(places, axis=1)
        below[part] = np.clip(ratios[:, places[0]], -limit, 0)
        above[part] = np.clip(ratios[:, places[1]], 0, limit)
    return below, above


def _standardised(samples: FloatArray) -> FloatArray:
    """Samples with mean 0 and variance 1, with the divisor n; 0 where they are constant."""
    centred = samples - samples.mean(axis=0)
    scale = centred.std(axis=0)
    return np.asarray(centred / np.where(scale == 0, 1, scale))


def _studentised(standardised: FloatArray, weights: FloatArray) -> FloatArray:
    """t* of every resample, shape (K, B), from samples (n, K) and weights (B, n)."""
    means = standardised.T @ weights.T
    variances = (standardised**2).T @ weights.T
    variances -= means**2
    np.maximum(variances, CONSTANT, out=variances)
    variances /= len(standardised) - 1
    np.sqrt(variances, out=variances)
    means /= variances
    return means
