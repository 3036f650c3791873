"""A Gaussian process over several tasks: a kernel of configurations times a matrix of tasks.

========  ===============  ========================================================================
symbol    shape            meaning
========  ===============  ========================================================================
N, T      scalar           evaluations of all tasks, tasks
p, g, m   scalar           features, length scales, configurations to predict
X         (N, p)           features of the configurations
task      (N,)             task of each evaluation
y         (N,)             losses, standardised over all tasks
U         (N, p)           X divided by the length scales
P         (T, T)           covariance of the tasks
r         scalar           Euclidean distance of two rows of U
k         scalar           Matern-3/2, (1 + sqrt(3) r) exp(-sqrt(3) r)
nu        scalar           variance of the signal
s2        (1,) or (T,)     variance of the noise, one for all tasks or one for each
K         (N, N)           nu k(u_i, u_j) P[task_i, task_j] + s2 [i = j]
mu        scalar           constant mean: what maximises the likelihood, 1^T K^-1 y / 1^T K^-1 1
W         (N, N)           K^-1 - a a^T with a = K^-1 (y - mu): 2 d nll / d K
nll       scalar           minus log marginal likelihood without N/2 log(2 pi)
========  ===============  ========================================================================

Law et al. (2019), section 4.2 and appendix A.1. As dk/du_i = -3 exp(-sqrt(3) r) (u_i - u_j), with
symmetric G and M = G exp(-sqrt(3) r)

    d sum_ij G_ij k_ij / d u_i = -6 (u_i sum_j M_ij - sum_j M_ij u_j)

As mu maximises the likelihood, d nll / d mu is 0.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotri

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.methods._distribution.kernels import (
    forward,
    likelihood_gradient,
    matern32,
)
from hpobench_ordered.methods._gp import compiled, lapack
from hpobench_ordered.methods._gp.model import COMPILED_LIMIT
from hpobench_ordered.methods._model_based import ModelError
from hpobench_ordered.methods._products import exponentials, product, sum_log_diagonal


@dataclass(frozen=True, eq=False, slots=True)
class ProcessData:
    """Evaluations that a process is conditioned on.

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
    """Hyperparameters of a process, beside the covariance of the tasks.

    Attributes:
        log_length: Logarithms of the length scales, shape (g,).
        log_signal: Logarithm of nu.
        log_noise: Logarithm of s2, one for all tasks (1,) or one for each (T,).
    """

    log_length: FloatArray
    log_signal: float
    log_noise: FloatArray


@dataclass(frozen=True, eq=False, slots=True)
class ProcessLikelihood:
    """nll and its gradient.

    Attributes:
        nll: Minus log marginal likelihood.
        grad_length: Its gradient with respect to the log length scales, shape (g,).
        grad_signal: With respect to log nu.
        grad_noise: With respect to log s2, shaped as it.
        grad_tasks: With respect to the covariance of the tasks, symmetric, shape (T, T).
    """

    nll: float
    grad_length: FloatArray
    grad_signal: float
    grad_noise: FloatArray
    grad_tasks: FloatArray


def index_noise(task: IntArray, noise_count: int) -> IntArray:
    """Return which noise each evaluation has, (N,): the only one, or that of its task.

    Args:
        task: Task of each evaluation, shape (N,).
        noise_count: 1 if all tasks have the same noise, else the number of tasks.
    """
    return task if noise_count > 1 else np.zeros_like(task)


def compute_likelihood(
    data: ProcessData, theta: Hyperparameters, P: FloatArray
) -> ProcessLikelihood:
    """Compute minus the log marginal likelihood of the losses y, and its gradient.

    Without its constant it is (y - mu)^T K^-1 (y - mu) / 2 + log det K / 2. The gradient
    does not depend on how the mean mu changes, as mu maximises the likelihood.

    Args:
        data: The evaluations.
        theta: Hyperparameters.
        P: Covariance of the tasks, shape (T, T).

    Raises:
        ModelError: The covariance K of the evaluations has no Cholesky factor.
    """
    factored = _Factored(data, theta, P)
    grad_P, grad_column_lengths, W_diagonal = likelihood_gradient(
        factored.U,  # features divided by the length scales
        data.task,
        P,
        factored.k,  # Matern-3/2 correlations of the rows of U
        factored.decay,  # exp(-sqrt(3) r) with their distances r
        factored.inverse(),  # K^-1
        factored.weights,  # K^-1 (y - mu)
    )
    # These are derivatives of 2 nll / nu, with minus the log likelihood nll and the signal variance
    # nu. Multiplied by nu / 2 they are derivatives of nll.
    half_signal = 0.5 * math.exp(theta.log_signal)
    grad_length = np.zeros(len(theta.log_length))
    # A length scale may belong to several features.
    np.add.at(grad_length, data.groups, half_signal * grad_column_lengths)

    residuals = data.y - factored.mean
    # K is linear in nu and in P, so the derivative for log nu follows from those for P; the noise
    # is on the diagonal of K, so that its derivative is a sum over the evaluations that have it.
    squares = float(np.sum(residuals * factored.weights))  # (y - mu)^T K^-1 (y - mu)
    noise_count = len(theta.log_noise)
    noise_index = index_noise(data.task, noise_count)
    # 0 for a task without evaluations.
    W_sums = np.bincount(noise_index, weights=W_diagonal, minlength=noise_count)
    return ProcessLikelihood(
        nll=0.5 * squares + sum_log_diagonal(factored.R),  # half the log determinant of K = R^T R
        grad_length=grad_length,
        grad_signal=half_signal * float(np.sum(grad_P * P)),
        grad_noise=0.5 * exponentials(theta.log_noise) * W_sums,
        grad_tasks=half_signal * grad_P,
    )


class ProductGP:
    """A multi-task Gaussian process with given hyperparameters, conditioned on evaluations.

    Args:
        data: The evaluations.
        theta: Hyperparameters.
        P: Covariance of the tasks, shape (T, T).
        target: Index of the task to predict.

    Raises:
        ModelError: K has no Cholesky factor.
    """

    def __init__(
        self, data: ProcessData, theta: Hyperparameters, P: FloatArray, target: int
    ) -> None:
        """Factorise the covariance of the evaluations, which predictions need.

        The covariance of two evaluations is a kernel of their configurations, with hyperparameters
        theta, times the covariance of their tasks, an entry of P (T, T). Predictions are for the
        task with index `target`.
        """
        self._data = data
        self._theta = theta
        self._P = P
        self._target = target
        self._factored = _Factored(data, theta, P)

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict losses of the target task, without noise, at features X (m, p).

        The covariance of two losses is the signal variance, times the Matern-3/2 correlation of
        their configurations, times the covariance of their tasks, an entry of P.

        Returns:
            Posterior mean (m,) and standard deviation (m,).
        """
        factored = self._factored  # what follows from the N evaluations: features, losses y
        signal_variance = math.exp(self._theta.log_signal)
        # U has the evaluations' features divided by their length scales, `scales`.
        correlations, _ = matern32(factored.U, X / factored.scales)  # (N, m)
        # Of the task of each evaluation and the task to predict, (N,).
        task_covariance = self._P[self._data.task, self._target]
        cross = signal_variance * correlations * task_covariance[:, None]  # (N, m)
        # The posterior mean is mu + cross^T K^-1 (y - mu), with the constant prior mean mu and the
        # covariance K of the evaluations.
        mean = factored.mean + product(factored.weights[None], cross)[0]

        prior_variance = signal_variance * self._P[self._target, self._target]
        solved = factored.solve_forward(cross)  # R^-T cross, (N, m), with K = R^T R
        explained_variance = np.square(solved).sum(axis=0)  # diagonal of cross^T K^-1 cross
        variance = prior_variance - explained_variance
        # Rounding may give a variance below 0.
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def with_fantasies(self, X: FloatArray) -> tuple["ProductGP", FloatArray]:
        """Condition also on pending evaluations, as if they gave the posterior mean.

        The hyperparameters and the covariance of the tasks stay as they are.

        Args:
            X: Features of the pending configurations, shape (k, p).

        Returns:
            The process, and the losses that pending evaluations are assumed to give, (k,).
        """
        mean, _ = self.predict(X)
        data = self._data
        pending_task = np.full(len(X), self._target)  # they are of the task that is predicted
        with_pending = ProcessData(
            np.concatenate([data.X, X]),
            data.groups,
            np.concatenate([data.task, pending_task]),
            np.concatenate([data.y, mean]),
        )
        return ProductGP(with_pending, self._theta, self._P, self._target), mean


class _Factored:
    """K, its Cholesky factor, and what follows from it.

    Attributes:
        scales: Length scale of each feature, shape (p,).
        U: Features divided by the length scales, shape (N, p).
        k: Correlation of the configurations, shape (N, N).
        decay: exp(-sqrt(3) r), shape (N, N).
        R: Upper Cholesky factor of K, shape (N, N).
        mean: mu.
        weights: K^-1 (y - mu), shape (N,).

    Raises:
        ModelError: K has no Cholesky factor.
    """

    def __init__(self, data: ProcessData, theta: Hyperparameters, P: FloatArray) -> None:
        """Compute the covariance K of the evaluations, and factorise it.

        It is the signal variance, times the Matern-3/2 correlation k of configurations, times the
        covariance P (T, T) of their tasks, with the variance of the noise added on the diagonal.
        """
        # Features of one hyperparameter, a group, have one length scale.
        self.scales = exponentials(theta.log_length)[data.groups]
        self.U = data.X / self.scales
        self.k, self.decay = matern32(self.U, self.U)
        task_covariance = P[np.ix_(data.task, data.task)]  # of each pair of evaluations, (N, N)
        K = math.exp(theta.log_signal) * self.k * task_covariance
        noise_index = index_noise(data.task, len(theta.log_noise))
        K.flat[:: len(K) + 1] += exponentials(theta.log_noise)[noise_index]  # the diagonal

        # Compiled code is faster for few evaluations, LAPACK for many.
        self._is_small = len(K) <= COMPILED_LIMIT
        cholesky = compiled.cholesky if self._is_small else lapack.cholesky
        is_positive, self.R = cholesky(K)
        if not is_positive:
            raise ModelError("the covariance matrix is not numerically positive definite")

        solved_y = compiled.solve(self.R, data.y)  # K^-1 y
        solved_ones = compiled.solve(self.R, np.ones(len(K)))  # K^-1 1
        # The mean with the highest likelihood, 1^T K^-1 y / 1^T K^-1 1.
        self.mean = float(solved_y.sum() / solved_ones.sum())
        self.weights = solved_y - self.mean * solved_ones

    def inverse(self) -> FloatArray:
        """Compute K^-1 (N, N) from the Cholesky factor R of K; only the upper triangle is valid."""
        if self._is_small:  # compiled code is faster for few evaluations, LAPACK for many
            return compiled.inverse_from_factor(self.R)

        # LAPACK reads memory by columns: to it, R^T in memory is a lower triangle, and so is its
        # result. Transposing costs nothing.
        lower_triangle, _ = dpotri(self.R.T, lower=1)
        upper_triangle: FloatArray = lower_triangle.T
        return upper_triangle

    def solve_forward(self, B: FloatArray) -> FloatArray:
        """Solve R^T S = B for S (N, m), with B (N, m) and the upper Cholesky factor R of K."""
        if self._is_small:  # compiled code is faster for few evaluations, BLAS for many
            return forward(self.R, B)

        # BLAS reads arrays by columns, so that only transposed ones, R^T and B^T, are passed
        # without a copy. It is told to solve the transposed equation S^T R = B^T: R, the transpose
        # (trans_a) of the lower triangle R^T, stands on the right (side=1) of the unknown S^T.
        solution: FloatArray = dtrsm(1.0, self.R.T, B.T, side=1, lower=1, trans_a=1).T
        return solution
