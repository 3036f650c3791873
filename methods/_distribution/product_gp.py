"""A Gaussian process over several tasks: a kernel of configurations times a matrix of tasks.

========  ===============  ========================================================================
symbol    shape            meaning
========  ===============  ========================================================================
N, T      scalar           evaluations of all tasks, tasks
X         (N, p)           features of the configurations
task      (N,)             task of each evaluation
y         (N,)             losses, standardised over all tasks
U         (N, p)           X divided by the length scales
P         (T, T)           covariance of the tasks
r         scalar           Euclidean distance of two rows of U
k         scalar           Matern-3/2, (1 + sqrt(3) r) exp(-sqrt(3) r)
nu, s2    scalar           variances of signal and noise
K         (N, N)           nu k(u_i, u_j) P[task_i, task_j] + s2 [i = j]
mu        scalar           constant mean: what maximises the likelihood, 1^T K^-1 y / 1^T K^-1 1
W         (N, N)           K^-1 - a a^T with a = K^-1 (y - mu): 2 d nll / d K
nll       scalar           minus log marginal likelihood without N/2 log(2 pi)
========  ===============  ========================================================================

Law et al. (2019), section 4.2 and appendix A.1. As dk/du_i = -3 exp(-sqrt(3) r) (u_i - u_j), with
symmetric G and M = G exp(-sqrt(3) r)

    d sum_ij G_ij k_ij / d u_i = -6 (u_i sum_j M_ij - sum_j M_ij u_j)

As mu maximises the likelihood, nll has no derivative by it.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dtrtrs

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.methods._model_based import ModelError

SQRT3 = math.sqrt(3.0)


@dataclass(frozen=True, eq=False, slots=True)
class Observations:
    """What a process is conditioned on.

    Attributes:
        X: Features of the configurations, shape (N, p).
        groups: Length scale that each feature belongs to, shape (p,).
        task: Task of each evaluation, ascending, shape (N,).
        y: Standardised losses, shape (N,).
    """

    X: FloatArray
    groups: IntArray
    task: IntArray
    y: FloatArray


@dataclass(frozen=True, eq=False, slots=True)
class Hyperparameters:
    """What a process is determined by, beside the covariance of the tasks.

    Attributes:
        log_length: Logarithms of the length scales, shape (g,).
        log_signal: Logarithm of nu.
        log_noise: Logarithm of s2.
    """

    log_length: FloatArray
    log_signal: float
    log_noise: float


@dataclass(frozen=True, eq=False, slots=True)
class Likelihood:
    """nll and its gradient.

    Attributes:
        nll: Minus log marginal likelihood.
        by_length: Its derivatives by the log length scales, shape (g,).
        by_signal: By log nu.
        by_noise: By log s2.
        by_tasks: By the covariance of the tasks, symmetric, shape (T, T).
    """

    nll: float
    by_length: FloatArray
    by_signal: float
    by_noise: float
    by_tasks: FloatArray


def matern32(U: FloatArray, V: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Matern-3/2 of rows of U (n, p) and V (m, p), and exp(-sqrt(3) r), each (n, m)."""
    squares = np.square(U).sum(axis=1)[:, None] + np.square(V).sum(axis=1) - 2.0 * U @ V.T
    if U is V:
        squares.flat[:: len(U) + 1] = 0.0
    scaled = SQRT3 * np.sqrt(np.maximum(squares, 0.0))
    decay = np.exp(-scaled)
    return (1.0 + scaled) * decay, decay


def matern32_gradient(U: FloatArray, decay: FloatArray, G: FloatArray) -> FloatArray:
    """Derivatives (n, p) of the sum of G k over all pairs by U (n, p), for symmetric G (n, n)."""
    M = G * decay
    gradient: FloatArray = -6.0 * (M.sum(axis=1)[:, None] * U - M @ U)
    return gradient


def likelihood(data: Observations, theta: Hyperparameters, P: FloatArray) -> Likelihood:
    """Compute nll and its gradient.

    Args:
        data: The evaluations.
        theta: Hyperparameters.
        P: Covariance of the tasks, shape (T, T).

    Raises:
        ModelError: K has no Cholesky factor.
    """
    of = _Factored(data, theta, P)
    inverse = dpotri(of.lower, lower=1)[0]
    inverse += np.tril(inverse, -1).T
    W = inverse - np.outer(of.weights, of.weights)
    noise, residuals = math.exp(theta.log_noise), data.y - of.mean
    by_kernel = 0.5 * math.exp(theta.log_signal) * W  # by k times P
    by_P = by_kernel * of.k
    starts = np.searchsorted(data.task, np.arange(len(P)))
    present = np.flatnonzero(np.bincount(data.task, minlength=len(P)))
    blocks = np.add.reduceat(
        np.add.reduceat(by_P, starts[present], axis=0), starts[present], axis=1
    )
    by_tasks = np.zeros(P.shape)
    by_tasks[np.ix_(present, present)] = blocks
    by_U = matern32_gradient(of.U, of.decay, by_kernel * of.between)
    by_length = np.zeros(len(theta.log_length))
    np.subtract.at(by_length, data.groups, (by_U * of.U).sum(axis=0))
    return Likelihood(
        nll=0.5 * float(residuals @ of.weights) + float(np.log(np.diag(of.lower)).sum()),
        by_length=by_length,
        by_signal=float((by_P * of.between).sum()),
        by_noise=0.5 * noise * float(np.trace(W)),
        by_tasks=by_tasks,
    )


class ProductGP:
    """A process that is conditioned on evaluations.

    Args:
        data: The evaluations.
        theta: Hyperparameters.
        P: Covariance of the tasks, shape (T, T).
        target: The task that is predicted.

    Raises:
        ModelError: K has no Cholesky factor.
    """

    def __init__(
        self, data: Observations, theta: Hyperparameters, P: FloatArray, target: int
    ) -> None:
        self._data, self._theta, self._P, self._target = data, theta, P, target
        self._of = _Factored(data, theta, P)

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean (m,) and standard deviation (m,), without noise, at features (m, p)."""
        signal = math.exp(self._theta.log_signal)
        k, _ = matern32(self._of.U, X / self._of.scales)
        cross = signal * k * self._P[self._data.task, self._target][:, None]
        solved = dtrtrs(self._of.lower, cross, lower=1)[0]
        variance = signal * self._P[self._target, self._target] - np.square(solved).sum(axis=0)
        mean = self._of.mean + cross.T @ self._of.weights
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def fantasised(self, X: FloatArray) -> tuple["ProductGP", FloatArray]:
        """Condition also on pending evaluations, as if they gave the posterior mean.

        Args:
            X: Features of the pending configurations, shape (k, p).

        Returns:
            The process, and the losses the pending evaluations are taken to give, (k,).
        """
        mean, _ = self.predict(X)
        data = self._data
        more = Observations(
            np.concatenate([data.X, X]),
            data.groups,
            np.concatenate([data.task, np.full(len(X), self._target)]),
            np.concatenate([data.y, mean]),
        )
        return ProductGP(more, self._theta, self._P, self._target), mean


class _Factored:
    """K and what follows from it: its factor, mu and K^-1 (y - mu)."""

    def __init__(self, data: Observations, theta: Hyperparameters, P: FloatArray) -> None:
        self.scales = np.exp(theta.log_length)[data.groups]
        self.U = data.X / self.scales
        self.k, self.decay = matern32(self.U, self.U)
        self.between = P[np.ix_(data.task, data.task)]
        K = math.exp(theta.log_signal) * self.k * self.between
        K.flat[:: len(K) + 1] += math.exp(theta.log_noise)
        if not np.isfinite(K).all():
            raise ModelError("the covariance matrix is not finite")
        self.lower, info = dpotrf(K, lower=1, clean=1)
        if info:
            raise ModelError("the covariance matrix is not numerically positive definite")
        both = dpotrs(self.lower, np.stack([data.y, np.ones(len(K))], axis=1), lower=1)[0]
        self.mean = float(both[:, 0].sum() / both[:, 1].sum())
        self.weights = both[:, 0] - self.mean * both[:, 1]
