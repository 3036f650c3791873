"""Gaussian process regression of losses: priors, fit, prediction behind one interface.

Up to `COMPILED_LIMIT` observations everything runs in `compiled`; above, LAPACK's blocked
factorisations are faster and `lapack` takes over. Both give the same numbers up to rounding.

Notation as in `compiled`: features X (n, p), standardised losses y (n,), theta (g + 2,) the log
length scales, log signal variance and log noise variance.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.errors import HPOBenchOrderedError
from hpobench_ordered.methods._gp import compiled

COMPILED_LIMIT = 64
MAX_ITERATIONS = 50
TOLERANCE = 1e-2  # nats of log posterior; suggestions do not get better with a smaller one


class ModelError(HPOBenchOrderedError):
    """The model cannot be fitted: no Cholesky factor, or a value that is not finite."""


@dataclass(frozen=True, slots=True)
class LogPrior:
    """Normal prior on the logarithm of a hyperparameter, cut off at bounds.

    Attributes:
        mean: Mean of the logarithm.
        sd: Standard deviation of the logarithm; inf for a flat prior.
        lower: Smallest logarithm allowed.
        upper: Largest logarithm allowed.
    """

    mean: float
    sd: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Priors:
    """Priors on the hyperparameters, for features in [0, 1] and losses of mean 0 and variance 1.

    With some 25 observations the likelihood alone is often flat or largest at a bound, which
    loses on smooth objectives. These priors are weak: a length scale between 0.1 and 5, a signal
    variance between 0.14 and 7, a noise variance between 5e-5 and 0.14 are each within two
    standard deviations. Length scales beyond the upper bound switch a hyperparameter off. The
    noise cannot vanish: its bound keeps K's condition number below 1e12 for a thousand
    observations, repeated ones included, so that no further jitter is needed.

    Attributes:
        length_scale: Prior of every length scale.
        signal: Prior of the signal variance.
        noise: Prior of the noise variance.
    """

    length_scale: LogPrior = LogPrior(mean=-0.35, sd=1.0, lower=-5.0, upper=5.0)
    signal: LogPrior = LogPrior(mean=0.0, sd=1.0, lower=-5.0, upper=5.0)
    noise: LogPrior = LogPrior(mean=-6.0, sd=2.0, lower=-14.0, upper=0.0)

    def _each(self, length_scales: int) -> list[LogPrior]:
        return [self.length_scale] * length_scales + [self.signal, self.noise]

    def mean(self, length_scales: int) -> FloatArray:
        """Mean of theta, shape (g + 2,) for g length scales."""
        return np.array([prior.mean for prior in self._each(length_scales)])

    def precision(self, length_scales: int) -> FloatArray:
        """Precision of theta, shape (g + 2,)."""
        return np.array([1.0 / prior.sd**2 for prior in self._each(length_scales)])

    def bounds(self, length_scales: int) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds of theta, each of shape (g + 2,)."""
        priors = self._each(length_scales)
        return np.array([p.lower for p in priors]), np.array([p.upper for p in priors])


class GaussianProcess:
    """A zero-mean Gaussian process with Matern-5/2 kernel, conditioned on observations.

    Args:
        X: Features of the observations, shape (n, p), C-contiguous.
        y: Their losses, standardised, shape (n,).
        groups: Length scale that each feature column belongs to, shape (p,), values 0 to g - 1.
        theta: Log length scales, log signal variance, log noise variance, shape (g + 2,).

    Raises:
        ModelError: The covariance matrix has no Cholesky factor.
    """

    def __init__(
        self, X: FloatArray, y: FloatArray, *, groups: IntArray, theta: FloatArray
    ) -> None:
        S = compiled.squared_differences(X, groups, len(theta) - 2)
        self._condition(X, y, groups, theta, S)

    @classmethod
    def fitted(
        cls,
        X: FloatArray,
        y: FloatArray,
        *,
        groups: IntArray,
        starts: Sequence[FloatArray],
        priors: Priors,
    ) -> "GaussianProcess":
        """Condition on observations at the hyperparameters of highest posterior density found.

        Args:
            X: Features of the observations, shape (n, p), C-contiguous.
            y: Their losses, standardised, shape (n,).
            groups: Length scale that each feature column belongs to, shape (p,).
            starts: Values of theta to climb from; the best end counts, the first among equals.
            priors: Priors and bounds.

        Raises:
            ModelError: No start leads to a finite log posterior.
        """
        g = len(starts[0]) - 2
        lower, upper = priors.bounds(g)
        mean, precision = priors.mean(g), priors.precision(g)
        S = compiled.squared_differences(X, groups, g)
        fit = _route(len(y)).fit
        ends = [
            fit(S, y, start, lower, upper, mean, precision, MAX_ITERATIONS, TOLERANCE)
            for start in starts
        ]
        theta, value = min(ends, key=lambda end: end[1])
        if not math.isfinite(value):
            raise ModelError(f"the log posterior of the hyperparameters is {-value}")
        process = cls.__new__(cls)
        process._condition(X, y, groups, theta, S)
        return process

    def _condition(
        self, X: FloatArray, y: FloatArray, groups: IntArray, theta: FloatArray, S: FloatArray
    ) -> None:
        K, _ = compiled.covariance(S, theta)
        positive, self._R = _route(len(y)).cholesky(K)
        if not positive:
            raise ModelError("the covariance matrix is not numerically positive definite")
        self._X, self._y, self._groups = X, y, groups
        self._alpha = compiled.solve(self._R, y)
        self.theta = theta

    def log_marginal_likelihood(self) -> float:
        """Log marginal likelihood of the observations."""
        flat = np.zeros(len(self.theta))
        return -compiled.negative_log_posterior_from(
            self._y, self._R, self._alpha, self.theta, flat, flat
        )

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and standard deviation of the noise-free function.

        Args:
            X: Features, shape (m, p), C-contiguous.

        Returns:
            Mean (m,) and standard deviation (m,); 0 where the variance is lost in rounding.
        """
        mean, variance = _route(len(self._y)).predict(
            self._X, self._R, self._alpha, X, self._groups, self.theta
        )
        return mean, np.sqrt(np.maximum(variance, 0.0))


def standardise(losses: FloatArray) -> FloatArray:
    """Shift and scale losses (n,) to mean 0 and variance 1; all zeros if they are all equal.

    The smallest loss is subtracted first and the range divided out, so that large offsets lose no
    more digits than they must; halves, so that the range of any finite losses is finite.
    """
    halves = losses / 2.0 - losses.min() / 2.0
    spread = halves.max()
    if not spread > 0.0:
        return np.zeros(len(losses))
    scaled = halves / spread
    scaled -= scaled.mean()
    standardised: FloatArray = scaled / scaled.std()
    return standardised


def _route(n: int) -> ModuleType:
    """The module whose `cholesky`, `fit` and `predict` are the faster ones for n observations."""
    if n <= COMPILED_LIMIT:
        return compiled
    from hpobench_ordered.methods._gp import lapack

    return lapack
