"""Gaussian process regression of losses: priors, fit, prediction behind one interface.

Up to `COMPILED_LIMIT` observations everything runs in `compiled`; above, LAPACK's blocked
factorisations are faster and `lapack` takes over. Both give the same numbers up to rounding.

Notation as in `compiled`: features X (n, p), standardised losses y (n,), theta (g + 2,) the log
length scales, log signal variance and log noise variance.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from types import ModuleType

import numpy as np
from scipy.linalg.lapack import dpotri, dtrtrs  # made by f2py

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.methods._gp import compiled
from hpobench_ordered.methods._model_based import ModelError

COMPILED_LIMIT = 64
"""Largest number of observations of a process that is computed without LAPACK."""
MAX_ITERATIONS = 50
"""Largest number of iterations of a fit."""
SAMPLED_JITTER = 1e-6
"""Variance added to sampled values, as a share of the signal variance, against rounding errors."""
TOLERANCE = 1e-2
"""Smallest gain of an iteration of a fit to continue, in nats of log posterior; suggestions do not
get better with a smaller one."""


@dataclass(frozen=True, slots=True)
class LogPrior:
    """Truncated normal prior on the logarithm of a hyperparameter.

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


@dataclass(frozen=True, eq=False)
class Kernel:
    """A Matern-5/2 kernel with one length scale for each hyperparameter.

    Attributes:
        groups: Index of the length scale of each feature, from 0 to g - 1, shape (p,). The features
            of a categorical, one for each choice, share one.
    """

    groups: IntArray

    @cached_property
    def length_scales(self) -> int:
        """Number of length scales, g."""
        return int(self.groups.max()) + 1


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


@dataclass(frozen=True, slots=True)
class TaskPriors:
    """Priors on the hyperparameters of a process over several tasks, see `tasks`.

    Attributes:
        base: Priors of what `bo` has as well.
        memory: Prior of l_t, in distances from a task to the next.
        novelty: Prior of h; the correlation of any two tasks is lower by a factor exp(-h).
        scale: Prior of every task's scale.
        level: Prior variance of a task's level, c.
    """

    base: Priors = Priors()
    memory: LogPrior = LogPrior(mean=math.log(50.0), sd=2.0, lower=-2.0, upper=6.0)
    novelty: LogPrior = LogPrior(mean=-2.0, sd=1.5, lower=-7.0, upper=3.0)
    scale: LogPrior = LogPrior(mean=0.0, sd=0.5, lower=-4.0, upper=4.0)
    level: float = 4.0


@dataclass(frozen=True, slots=True)
class PriorArrays:
    """Normal priors on hyperparameters, as arrays with an entry for each hyperparameter.

    Attributes:
        mean: Means.
        precision: One over the variances; 0 for a flat prior.
        lower: Smallest values allowed.
        upper: Largest values allowed.
    """

    mean: FloatArray
    precision: FloatArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def stack(cls, priors: Sequence[LogPrior]) -> "PriorArrays":
        """Stack the priors of single hyperparameters as arrays, in their order."""
        return cls(
            mean=np.array([prior.mean for prior in priors]),
            precision=np.array([1.0 / prior.sd**2 for prior in priors]),
            lower=np.array([prior.lower for prior in priors]),
            upper=np.array([prior.upper for prior in priors]),
        )


@cache
def stack_priors(priors: Priors, length_scales: int) -> PriorArrays:
    """Stack the priors of a process's hyperparameters theta as arrays.

    They are ordered as theta: log length scales, all with the same prior, log signal variance, log
    noise variance.

    Args:
        priors: The priors.
        length_scales: Number of length scales.
    """
    priors_of_length_scales = [priors.length_scale] * length_scales
    return PriorArrays.stack([*priors_of_length_scales, priors.signal, priors.noise])


class GaussianProcess:
    """A zero-mean Gaussian process with a Matern-5/2 kernel, conditioned on observations.

    Args:
        X: Features of the observations, shape (n, p), C-contiguous.
        y: Their losses, standardised, shape (n,).
        kernel: The kernel.
        theta: Its hyperparameters and the noise, shape (g + 2,).

    Raises:
        ModelError: The covariance matrix has no Cholesky factor.
    """

    def __init__(self, X: FloatArray, y: FloatArray, *, kernel: Kernel, theta: FloatArray) -> None:
        """Condition on losses y (n,) at features X (n, p), by factorising their covariance.

        theta has the log length scales, log signal variance and log noise variance.
        """
        self.theta = theta
        self._kernel = kernel
        self._length_scale_count = kernel.length_scales
        self._X = X
        self._y = y

        noise_variance = math.exp(theta[-1])
        K = compiled.cross_covariance(X, X, kernel.groups, theta, self._length_scale_count)
        K.flat[:: len(y) + 1] += noise_variance  # on the diagonal

        # What predictions need of the covariance K: its upper Cholesky factor R, with K = R^T R,
        # and alpha = K^-1 y.
        module = _choose_faster_module(len(y))
        is_positive_definite, self._R = module.cholesky(K)
        if not is_positive_definite:
            raise ModelError("the covariance matrix is not numerically positive definite")
        self._alpha = compiled.solve(self._R, y)

    @classmethod
    def fit(
        cls,
        X: FloatArray,
        y: FloatArray,
        *,
        kernel: Kernel,
        starts: Sequence[FloatArray],
        priors: Priors,
    ) -> "GaussianProcess":
        """Fit the hyperparameters, by their posterior density, and condition on observations.

        The hyperparameters theta, of shape (g + 2,), are log length scales, log signal variance and
        log noise variance.

        Args:
            X: Features of the observations, shape (n, p), C-contiguous.
            y: Their losses, standardised, shape (n,).
            kernel: The kernel.
            starts: Starting points of theta; the best result is used, and the first of equal ones.
            priors: Priors and bounds.

        Raises:
            ModelError: No start leads to a finite log posterior.
        """
        length_scale_count = kernel.length_scales
        prior = stack_priors(priors, length_scale_count)
        # Squared differences of all pairs of rows of X, (g, n, n). They do not depend on theta, so
        # they are computed once.
        S = compiled.squared_differences(X, kernel.groups, length_scale_count)

        best_theta = starts[0]
        lowest_value = math.inf
        module = _choose_faster_module(len(y))
        for start in starts:
            theta, value = module.fit(  # the value is minus the log posterior of theta
                S,
                y,
                start,
                prior.lower,
                prior.upper,
                prior.mean,
                prior.precision,
                MAX_ITERATIONS,
                TOLERANCE,
            )
            if value < lowest_value:
                best_theta = theta
                lowest_value = value
        if not math.isfinite(lowest_value):
            raise ModelError(f"the log posterior of the hyperparameters is {-lowest_value}")
        return cls(X, y, kernel=kernel, theta=best_theta)

    def log_marginal_likelihood(self) -> float:
        """Compute the log marginal likelihood of the observations, for these hyperparameters."""
        return -compiled.negative_log_likelihood(self._y, self._R, self._alpha)

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict the noise-free function at new features, from the observations.

        Args:
            X: Features, shape (m, p), C-contiguous.

        Returns:
            Posterior mean (m,) and standard deviation (m,); 0 if the variance is below rounding
            errors.
        """
        module = _choose_faster_module(len(self._y))
        mean, variance = module.predict(
            self._X,  # features of the observations
            self._R,  # upper Cholesky factor of their covariance K
            self._alpha,  # K^-1 y with their losses y
            X,
            self._kernel.groups,
            self.theta,
            self._length_scale_count,
        )
        # Rounding may give a variance below 0.
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def sample(self, X: FloatArray, normal: FloatArray) -> FloatArray:
        """Sample the noise-free function at m points, jointly, shape (samples, m).

        A sample is the posterior mean plus normal numbers times the Cholesky factor of the
        posterior covariance.

        Args:
            X: Features of the points, shape (m, p), C-contiguous.
            normal: Standard normal numbers, shape (samples, m).

        Raises:
            ModelError: The covariance matrix has no Cholesky factor.
        """
        mean, covariance = self._predict_jointly(X)
        # Against rounding errors: a small share of the signal variance is added to the diagonal.
        log_signal_variance = self.theta[self._length_scale_count]
        covariance.flat[:: len(X) + 1] += SAMPLED_JITTER * math.exp(log_signal_variance)

        module = _choose_faster_module(len(X))
        is_positive_definite, R = module.cholesky(covariance)
        if not is_positive_definite:
            raise ModelError("the covariance matrix is not numerically positive definite")
        sampled: FloatArray = mean + normal @ R
        return sampled

    def _predict_jointly(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict the posterior mean (m,) and covariance (m, m) of the noise-free function.

        The covariance is the prior covariance minus what the observations explain,
        cross^T K^-1 cross = |R^-T cross|^2, with the covariance K = R^T R of the observations
        (Rasmussen and Williams 2006, equation 2.24).

        Args:
            X: Features of m points, shape (m, p), C-contiguous.
        """
        groups = self._kernel.groups
        g = self._length_scale_count
        cross = compiled.cross_covariance(self._X, X, groups, self.theta, g)  # (n, m)
        mean = self._alpha @ cross

        solved, _ = dtrtrs(self._R.T, cross, lower=1)  # R^-T cross, (n, m)
        prior_covariance = compiled.cross_covariance(X, X, groups, self.theta, g)
        covariance: FloatArray = prior_covariance - solved.T @ solved
        return mean, covariance

    def predict_leave_one_out(self) -> tuple[FloatArray, FloatArray]:
        """Predict each observation from all others, with the same hyperparameters.

        Rasmussen and Williams (2006), equation 5.12: this needs only the inverse of the
        covariance K of all observations, and no further fit. With alpha = K^-1 y, the mean for
        observation i is y_i - alpha_i / (K^-1)_ii and the variance 1 / (K^-1)_ii. This variance
        includes the noise, whose variance is subtracted.

        Returns:
            Mean (n,) and standard deviation (n,) of the noise-free function.
        """
        inverse, _ = dpotri(self._R.T, lower=1)  # lower triangle of K^-1, from its factor R
        inverse_diagonal = np.diag(inverse)
        mean: FloatArray = self._y - self._alpha / inverse_diagonal
        noise_variance = math.exp(self.theta[-1])
        variance = 1.0 / inverse_diagonal - noise_variance
        # Rounding may give a variance below 0.
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def with_fantasies(self, pending: FloatArray) -> tuple["GaussianProcess", FloatArray]:
        """Condition also on pending evaluations, as if they gave the posterior mean.

        The mean stays as it is, and the standard deviation shrinks around them ("kriging believer",
        Ginsbourger, Le Riche and Carraro 2010). The hyperparameters are not fitted again.

        Args:
            pending: Features of the pending configurations, shape (k, p), C-contiguous.

        Returns:
            The new process, and the losses that the pending evaluations are assumed to give, (k,).

        Raises:
            ModelError: The covariance matrix has no Cholesky factor.
        """
        assumed_losses, _ = self.predict(pending)
        X = np.concatenate([self._X, pending])
        y = np.concatenate([self._y, assumed_losses])
        process = GaussianProcess(X, y, kernel=self._kernel, theta=self.theta)
        return process, assumed_losses


def standardise(losses: FloatArray) -> FloatArray:
    """Shift and scale finite losses (n,) to mean 0 and variance 1; zeros if they are all equal."""
    return compiled.standardise(losses)


def _choose_faster_module(n: int) -> ModuleType:
    """Choose the module whose `cholesky`, `fit` and `predict` are faster for n observations.

    `compiled` is faster for few, up to `COMPILED_LIMIT`, and `lapack` for many. Their results are
    the same up to rounding.
    """
    if n <= COMPILED_LIMIT:
        return compiled
    from hpobench_ordered.methods._gp import lapack  # scipy's optimiser loads slowly

    return lapack
