"""One Gaussian process over several tasks that differ in level and scale, and drift.

The covariance is that of `compiled`, coupled by tasks. With one task and no levels this is the
process of `model`, to which the kernels below belong; `model` alone is compiled as a whole for few
observations.

==========  ==============  =======================================================================
symbol      shape           meaning
==========  ==============  =======================================================================
T           scalar          tasks; the current one comes last
n, m        scalars         observations of all tasks, candidates on the current one
g           scalar          length scales
counts      (T,)            observations of each task; those of a task stand together
y           (n,)            losses, each task's by a centre and a unit of its own
D           (T, T)          distances of tasks
theta       (g + 3,)        log length scales, log signal variance s, log memory l_t, log noise
                            variance v
a           (T,)            log scales of the tasks
x           (g + 3 + T,)    theta and a
z           (n,)            y exp(-a) of its task
B           (T, T)          s exp(-D / l_t)
c           scalar          prior variance of a task's level
M           (n, n)          Matern-5/2 correlation of the configurations
K           (n, n)          B M + c [same task] + v I: the covariance of z
==========  ==============  =======================================================================

The correlation of tasks decays with their distance, as in time-varying Gaussian process bandits
(Bogunovic, Scarlett and Cevher 2016, Time-Varying Gaussian Process Bandit Optimization, section 2).
Levels are integrated out.
Matrices of all observations are upper triangles, as in `compiled`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.linalg.lapack import dpotri, dtrtrs  # made by f2py

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.methods._gp import compiled, lapack
from hpobench_ordered.methods._gp.model import Kernel, PriorArrays, TaskPriors
from hpobench_ordered.methods._model_based import ModelError

TOLERANCE = 3e-2
"""Smallest gain of a step of the fit to continue, in nats of log posterior."""
DESCENDING = 1e-4
"""Smallest gain of a step, as a share of the gain expected from the slope (Armijo's rule)."""
SHORTEST = 1e-3
"""Fraction of a step at which the line search stops."""


@cache
def stack_task_priors(priors: TaskPriors, length_scales: int, tasks: int) -> PriorArrays:
    """The priors of x as arrays, for g length scales and T tasks."""
    base = priors.base
    each = [base.length_scale] * length_scales
    each += [base.signal, priors.memory, base.noise] + [priors.scale] * tasks
    return PriorArrays(
        mean=np.array([prior.mean for prior in each]),
        precision=np.array([1.0 / prior.sd**2 for prior in each]),
        lower=np.array([prior.lower for prior in each]),
        upper=np.array([prior.upper for prior in each]),
    )


@dataclass(frozen=True, eq=False, slots=True)
class Observations:
    """Observations of several tasks.

    Attributes:
        X: Features, shape (n, p), C-contiguous.
        y: Losses, shape (n,).
        counts: Observations of each task, shape (T,).
        distances: Distances of tasks, D, shape (T, T).
        kernel: The length scales' columns.
        level: Prior variance of a level, c.
    """

    X: FloatArray
    y: FloatArray
    counts: IntArray
    distances: FloatArray
    kernel: Kernel
    level: float

    @property
    def g(self) -> int:
        """Number of length scales."""
        return self.kernel.length_scales

    def scaled(self, x: FloatArray) -> FloatArray:
        """z, shape (n,)."""
        z: FloatArray = self.y * np.repeat(np.exp(-x[self.g + 3 :]), self.counts)
        return z

    def spread(self, of_tasks: FloatArray) -> FloatArray:
        """Expand a matrix of pairs of tasks (T, T) to pairs of observations, (n, n)."""
        return of_tasks.repeat(self.counts, axis=0).repeat(self.counts, axis=1)

    def by_tasks(self, of_pairs: FloatArray) -> FloatArray:
        """Sum a matrix of pairs of observations (n, n) over pairs of tasks, (T, T)."""
        some = np.flatnonzero(self.counts)
        starts = (np.cumsum(self.counts) - self.counts)[some]
        sums = np.zeros((len(self.counts), len(self.counts)))
        blocks = np.add.reduceat(np.add.reduceat(of_pairs, starts, axis=0), starts, axis=1)
        sums[np.ix_(some, some)] = blocks
        return sums


def coupling(x: FloatArray, distances: FloatArray, g: int) -> FloatArray:
    """B, (T, T)."""
    B: FloatArray = np.exp(x[g] - distances * math.exp(-x[g + 1]))
    return B


def negative_log_posterior(
    observed: Observations, S: FloatArray, x: FloatArray, prior: PriorArrays
) -> tuple[float, FloatArray]:
    """Minus log posterior of x, up to a constant, and its gradient, shaped as x.

    The likelihood is that of y and not of z, which scales could make arbitrarily likely.

    Args:
        observed: The observations.
        S: Squared differences of their features, shape (g, n, n).
        x: The hyperparameters.
        prior: Their priors.
    """
    g, noise = observed.g, math.exp(x[observed.g + 2])
    unit = np.concatenate([x[:g], [0.0, x[g + 2]]])
    M, F = compiled.covariance(S, np.concatenate([x[:g], [0.0, -math.inf]]))
    B = coupling(x, observed.distances, g)
    shared = observed.spread(B)
    F *= shared
    K = shared * M
    K += observed.spread(observed.level * np.eye(len(B)))
    K.flat[:: len(K) + 1] += noise
    positive, R = lapack.cholesky(K)
    if not positive:
        return math.inf, np.zeros(len(x))
    z = observed.scaled(x)
    alpha = compiled.solve(R, z)
    value = compiled.negative_log_posterior_from(z, R, alpha, x, prior.mean, prior.precision)
    value += float(observed.counts @ x[g + 3 :])
    inverse = dpotri(R.T, lower=1)[0].T
    of_kernel = compiled.likelihood_gradient(S, K, F, inverse, alpha, unit)
    by_pairs = (np.outer(alpha, alpha) - inverse) * M  # M's lower triangle is 0
    by_pairs.flat[:: len(K) + 1] *= 0.5
    by_tasks = observed.by_tasks(by_pairs) * B
    gradient = np.empty(len(x))
    gradient[:g] = of_kernel[:g]
    gradient[g] = by_tasks.sum()
    gradient[g + 1] = np.vdot(by_tasks, observed.distances) * math.exp(-x[g + 1])
    gradient[g + 2] = of_kernel[g + 1]
    ends = np.cumsum(observed.counts)
    sums = np.concatenate([[0.0], np.cumsum(alpha * z)])
    gradient[g + 3 :] = sums[ends] - sums[ends - observed.counts] - observed.counts
    return value, prior.precision * (x - prior.mean) - gradient


@dataclass(frozen=True, eq=False, slots=True)
class Fit:
    """Result of a fit of the hyperparameters, from which a later fit can continue.

    Attributes:
        x: The hyperparameters.
        H: Estimate of the inverse Hessian matrix of the objective.
    """

    x: FloatArray
    H: FloatArray

    @classmethod
    def start(cls, observed: Observations, prior: PriorArrays) -> "Fit":
        """The mean of the priors, and a guess of the curvature there."""
        curvature = prior.precision + compiled.CURVATURE
        curvature[observed.g + 3 :] += 2.0 * observed.counts  # a sum of squares, exp(-2 a)
        return cls(prior.mean, np.diag(1.0 / curvature))


def descend(
    objective: Callable[[FloatArray], tuple[float, FloatArray]],
    start: Fit,
    prior: PriorArrays,
    *,
    steps: int,
) -> Fit:
    """Minimise by projected BFGS, as `compiled.fit` does, from where an earlier fit ended.

    Raises:
        ModelError: The objective is not finite at the start.
    """
    x, H = np.clip(start.x, prior.lower, prior.upper), start.H.copy()
    value, gradient = objective(x)
    if not math.isfinite(value):
        raise ModelError(f"the log posterior of the hyperparameters is {-value}")
    for _ in range(steps):
        direction = downhill(H, x, gradient, prior)
        slope = float(direction @ gradient)
        if slope > -TOLERANCE * 0.1:
            break
        length = 1.0
        while True:
            trial = np.clip(x + length * direction, prior.lower, prior.upper)
            new_value, new_gradient = objective(trial)
            if new_value <= value + DESCENDING * length * slope or length < SHORTEST:
                break
            length *= 0.3
        if not new_value < value:
            break
        compiled.update_inverse_hessian(H, trial - x, new_gradient - gradient)
        gain = value - new_value
        x, value, gradient = trial, new_value, new_gradient
        if gain < TOLERANCE:
            break
    return Fit(x, H)


def downhill(H: FloatArray, x: FloatArray, gradient: FloatArray, prior: PriorArrays) -> FloatArray:
    """Quasi-Newton step among the coordinates that are not held by their bounds, shaped as x."""
    held = ((x <= prior.lower) & (gradient > 0.0)) | ((x >= prior.upper) & (gradient < 0.0))
    step = np.where(held, 0.0, -H @ np.where(held, 0.0, gradient))
    longest = float(np.abs(step).max())
    return step if longest <= compiled.MAX_STEP else step * (compiled.MAX_STEP / longest)


def fit_hyperparameters(
    observed: Observations, priors: TaskPriors, start: Fit | None, *, steps: int
) -> Fit:
    """Fit the hyperparameters by their posterior density.

    Args:
        observed: The observations.
        priors: The priors.
        start: Where an earlier fit ended; None for the mean of the priors.
        steps: Steps at most.

    Raises:
        ModelError: The covariance matrix has no Cholesky factor at the start.
    """
    prior = stack_task_priors(priors, observed.g, len(observed.counts))
    S = compiled.squared_differences(observed.X, observed.kernel.groups, observed.g)
    return descend(
        lambda x: negative_log_posterior(observed, S, x, prior),
        start or Fit.start(observed, prior),
        prior,
        steps=steps,
    )


class TaskProcess:
    """The Gaussian process, conditioned on observations, on the current task.

    Args:
        observed: The observations.
        x: The hyperparameters.

    Raises:
        ModelError: The covariance matrix has no Cholesky factor.
    """

    def __init__(self, observed: Observations, x: FloatArray) -> None:
        self._set(observed, x)
        unit = self._unit
        K = compiled.cross_covariance(observed.X, observed.X, *unit) * observed.spread(self._B)
        K += observed.spread(observed.level * np.eye(len(self._B)))
        K.flat[:: len(K) + 1] += math.exp(x[observed.g + 2])
        positive, R = lapack.cholesky(K)
        if not positive:
            raise ModelError("the covariance matrix is not numerically positive definite")
        self._L = R.T
        self._alpha = compiled.solve(R, observed.scaled(x))

    def _set(self, observed: Observations, x: FloatArray) -> None:
        g = observed.g
        self.observed, self.x = observed, x
        self._B = coupling(x, observed.distances, g)
        self._unit = (observed.kernel.groups, np.append(x[:g], 0.0), g)

    def _cross(self, X: FloatArray) -> FloatArray:
        """Covariance (n, m) of the observations and the current task at features (m, p)."""
        observed = self.observed
        cross = compiled.cross_covariance(observed.X, X, *self._unit)
        cross *= np.repeat(self._B[-1], observed.counts)[:, None]
        cross[len(cross) - observed.counts[-1] :] += observed.level
        return cross

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and standard deviation of the noise-free z of the current task.

        Args:
            X: Features, shape (m, p), C-contiguous.

        Returns:
            Mean (m,) and standard deviation (m,); 0 where the variance is lost in rounding.
        """
        cross = self._cross(X)
        mean = self._alpha @ cross
        solved = lapack.solve_forward(self._L, cross)
        variance = self._B[-1, -1] + self.observed.level - np.einsum("ji,ji->j", solved, solved)
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def scale_current_losses(self) -> FloatArray:
        """The z of the current task, in the order of its observations."""
        z = self.observed.scaled(self.x)
        return z[len(z) - self.observed.counts[-1] :]

    def with_fantasies(self, pending: FloatArray) -> tuple["TaskProcess", FloatArray]:
        """Condition also on pending evaluations of the current task, as in `model`.

        Args:
            pending: Features of the pending configurations, shape (k, p), C-contiguous.

        Returns:
            The process, and the z that the pending evaluations are taken to give, (k,).

        Raises:
            ModelError: The covariance matrix has no Cholesky factor.
        """
        mean, _ = self.predict(pending)
        y = np.append(self.observed.y, mean * math.exp(self.x[-1]))
        return self.with_observations(pending, y), mean

    def with_observations(self, X: FloatArray, y: FloatArray) -> "TaskProcess":
        """Condition also on further observations of the current task.

        Rows are appended to the Cholesky factor, which takes O(n^2) instead of O(n^3) time.

        Args:
            X: Their features, shape (k, p), C-contiguous.
            y: Losses of all observations, shape (n + k,); earlier ones may have changed.

        Raises:
            ModelError: The covariance matrix has no Cholesky factor.
        """
        before, g = self.observed, self.observed.g
        n, k = len(before.X), len(X)
        among = compiled.cross_covariance(X, X, *self._unit) * self._B[-1, -1] + before.level
        among.flat[:: k + 1] += math.exp(self.x[g + 2])
        rows = dtrtrs(self._L, self._cross(X), lower=1)[0].T  # (k, n)
        positive, corner = lapack.cholesky(among - rows @ rows.T)
        if not positive:
            raise ModelError("the covariance matrix is not numerically positive definite")
        counts = before.counts.copy()
        counts[-1] += k
        process = object.__new__(TaskProcess)
        observed = replace(before, X=np.concatenate([before.X, X]), y=y, counts=counts)
        process._set(observed, self.x)
        process._L = np.zeros((n + k, n + k), order="F")
        process._L[:n, :n], process._L[n:, :n], process._L[n:, n:] = self._L, rows, corner.T
        process._alpha = compiled.solve(process._L.T, observed.scaled(self.x))
        return process
