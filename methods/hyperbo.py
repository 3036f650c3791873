"""HyperBO: a Gaussian process with a prior that is pre-trained on the earlier tasks.

=========  ===========  ===========================================================================
symbol     shape        meaning
=========  ===========  ===========================================================================
n, p, q    scalars      evaluations of a task, features, basis functions of the mean
g          scalar       length scales
X, y       (n, p) (n,)  features and standardised losses of a task
Phi        (n, q)       basis functions: 1, u and u^2, with features u in [-1, 1]
b          (q,)         their weights, with a standard normal prior: the mean is Phi b
theta      (g + 2,)     log length scales, log signal variance, log noise variance
S          (g, n, n)    squared differences of features, as in `_gp.compiled`
K          (n, n)       covariance of y, with the noise
F          (n, n)       slopes of the kernel, as in `_gp.compiled`
R          (n, n)       upper Cholesky factor of K
alpha      (n,)         K^-1 (y - Phi b)
=========  ===========  ===========================================================================

Over theta, the sum over tasks of minus the log marginal likelihood of y - Phi b is minimised, with
the best b for each theta:

    b = (I + sum Phi^T K^-1 Phi)^-1 sum Phi^T K^-1 y        sums over tasks

By the envelope theorem, the gradient with respect to theta is that for a fixed b.

Wang et al. (2024), section 4: pre-training by the likelihood of all tasks.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._sources import FromSources, Predict
from hpobench_ordered.methods.base import MethodSpec

if TYPE_CHECKING:
    from hpobench_ordered.methods._gp.model import Kernel

MAX_PER_TASK = 50
"""The prior is fitted to at most this many evaluations of a task; they are drawn at random."""
MAX_TASKS = 40
"""The prior is fitted to at most this many earlier tasks; they are drawn at random."""
MAX_STEPS = 50
"""Largest number of steps of the fit."""


@dataclass(frozen=True, eq=False, slots=True)
class FittedTask:
    """A task as the likelihood uses it.

    Attributes:
        S: Squared differences of its features for each length scale, shape (g, n, n).
        Phi: Basis functions of the mean at its configurations, shape (n, q).
        y: Standardised losses, shape (n,).
    """

    S: FloatArray
    Phi: FloatArray
    y: FloatArray

    @classmethod
    def prepare(cls, X: FloatArray, y: FloatArray, kernel: "Kernel") -> "FittedTask":
        """Compute what does not change during the fit from features (n, p) and losses (n,)."""
        from hpobench_ordered.methods._gp import compiled

        S = compiled.squared_differences(X, kernel.groups, kernel.length_scales)
        return cls(S=S, Phi=compute_basis(X), y=y)


@dataclass(frozen=True, eq=False, slots=True)
class Prior:
    """Prior mean and covariance of the standardised losses of a task.

    Attributes:
        theta: Hyperparameters of the covariance, shape (g + 2,).
        b: Weights of the mean's basis functions, shape (q,).
    """

    theta: FloatArray
    b: FloatArray

    @classmethod
    def fit(cls, tasks: Sequence[tuple[FloatArray, FloatArray]], kernel: "Kernel") -> "Prior":
        """Fit the prior to the evaluations of several tasks.

        A prior has the hyperparameters theta of the covariance, which are log length scales and log
        variances of signal and noise, and the weights b of the mean's basis functions. Theta
        maximises the likelihood of all tasks times a normal density of its own, `theta_prior`. For
        each theta the best b is computed.

        Args:
            tasks: Features (n, p) and standardised losses (n,) of each task.
            kernel: Which feature has which length scale.
        """
        from hpobench_ordered.methods._gp import compiled
        from hpobench_ordered.methods._gp.model import Priors, stack_priors
        from hpobench_ordered.methods._gp.tasks import Fit, descend

        fitted_tasks = [FittedTask.prepare(X, y, kernel) for X, y in tasks]
        theta_prior = stack_priors(Priors(), kernel.length_scales)

        def objective(theta: FloatArray) -> tuple[float, FloatArray]:
            """Compute minus the log posterior of theta, up to a constant, and its gradient."""
            # The third result, the best weights b for this theta, is not needed here.
            minus_log_likelihood, gradient, _ = negative_log_likelihood(fitted_tasks, theta)
            distance = theta - theta_prior.mean
            prior_gradient = theta_prior.precision * distance
            minus_log_prior = 0.5 * float(prior_gradient @ distance)
            return minus_log_likelihood + minus_log_prior, gradient + prior_gradient

        # Quasi-Newton steps start with a guess of the second derivatives: those of the log prior,
        # and a typical number for each task's log likelihood.
        curvature = theta_prior.precision + compiled.CURVATURE * len(fitted_tasks)
        inverse_hessian = np.diag(1.0 / curvature)
        start = Fit(theta_prior.mean, inverse_hessian)
        theta = descend(objective, start, theta_prior, steps=MAX_STEPS).x
        _, _, b = negative_log_likelihood(fitted_tasks, theta)
        return cls(theta, b)

    def predict_mean(self, X: FloatArray) -> FloatArray:
        """Compute the prior mean of the losses, (m,), at features X (m, p) in [0, 1].

        It is the sum of the basis functions times their weights b.
        """
        mean: FloatArray = compute_basis(X) @ self.b
        return mean


def compute_basis(X: FloatArray) -> FloatArray:
    """Compute the basis functions of the prior mean: a constant, and each feature and its square.

    Args:
        X: Features in [0, 1], shape (m, p).

    Returns:
        The basis functions, shape (m, 2 p + 1), of the features scaled to [-1, 1].
    """
    constant = np.ones((len(X), 1))
    scaled = 2.0 * X - 1.0
    return np.concatenate([constant, scaled, scaled**2], axis=1)


def negative_log_likelihood(
    tasks: Sequence[FittedTask], theta: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Compute minus the log of the tasks' likelihood times the prior of b, for the best b.

    A task's losses have the mean Phi b, of q basis functions Phi with weights b, and the
    covariance K, which depends on theta. The prior of b is standard normal.

    Args:
        tasks: The tasks.
        theta: Log length scales, log signal variance and log noise variance, shape (g + 2,).

    Returns:
        The value, its gradient with respect to theta, and the best b for this theta. The value is
        inf, and the others are 0, if a covariance matrix has no Cholesky factor.
    """
    from hpobench_ordered.methods._gp import compiled

    covariances = []
    for task in tasks:
        covariance = FactoredCovariance.compute(task, theta)
        if covariance is None:
            q = task.Phi.shape[1]
            return math.inf, np.zeros(len(theta)), np.zeros(q)
        covariances.append(covariance)
    b = find_best_weights(tasks, covariances)

    value = 0.5 * float(b @ b)  # minus the log prior of b, up to a constant
    gradient = np.zeros(len(theta))
    for task, covariance in zip(tasks, covariances, strict=True):
        K, F, R = covariance.K, covariance.F, covariance.R
        residuals = task.y - task.Phi @ b
        alpha = compiled.solve(R, residuals)  # K^-1 (y - Phi b)
        value += compiled.negative_log_likelihood(residuals, R, alpha)
        # b depends on theta, but adds nothing to the gradient, as it is the best for this theta.
        gradient -= compiled.likelihood_gradient(task.S, K, F, covariance.invert(), alpha, theta)
    return value, gradient, b


@dataclass(frozen=True, eq=False, slots=True)
class FactoredCovariance:
    """Covariance matrix of a task's losses.

    Attributes:
        K: The matrix, shape (n, n); valid on and above the diagonal alone.
        F: Its slopes, which the gradient of the likelihood needs, shape (n, n).
        R: Its upper Cholesky factor, K = R^T R, shape (n, n).
    """

    K: FloatArray
    F: FloatArray
    R: FloatArray

    @classmethod
    def compute(cls, task: FittedTask, theta: FloatArray) -> "FactoredCovariance | None":
        """Compute the covariance for hyperparameters theta; None if it has no Cholesky factor."""
        from hpobench_ordered.methods._gp import compiled, lapack

        K, F = compiled.covariance(task.S, theta)
        is_positive, R = lapack.cholesky(K)
        return cls(K=K, F=F, R=R) if is_positive else None

    def solve(self, columns: FloatArray) -> FloatArray:
        """Compute K^-1 times columns (n, k)."""
        from scipy.linalg.lapack import dpotrs  # made by f2py

        solution: FloatArray
        solution, _ = dpotrs(self.R.T, columns, lower=1)
        return solution

    def invert(self) -> FloatArray:
        """Compute K^-1, (n, n); valid on and above the diagonal alone."""
        from scipy.linalg.lapack import dpotri  # made by f2py

        lower_triangle: FloatArray
        lower_triangle, _ = dpotri(self.R.T, lower=1)
        return lower_triangle.T


def find_best_weights(
    tasks: Sequence[FittedTask], covariances: Sequence[FactoredCovariance]
) -> FloatArray:
    """Find the weights b (q,) of the mean's basis functions that maximise the likelihood.

    They are (I + sum Phi^T K^-1 Phi)^-1 sum Phi^T K^-1 y, with sums over tasks. The unit matrix I
    comes from the standard normal prior of b.

    Args:
        tasks: The tasks.
        covariances: The covariance K of each task's losses.
    """
    q = tasks[0].Phi.shape[1]
    # The sums for all columns of Phi and for y, as the last column, are computed together.
    sum_of_products = np.zeros((q + 1, q + 1))
    for task, covariance in zip(tasks, covariances, strict=True):
        columns = np.column_stack([task.Phi, task.y])  # (n, q + 1)
        sum_of_products += columns.T @ covariance.solve(columns)
    Phi_K_Phi = sum_of_products[:q, :q]
    Phi_K_y = sum_of_products[:q, q]
    return np.linalg.solve(Phi_K_Phi + np.eye(q), Phi_K_y).astype(np.float64)


class HyperBO(FromSources):
    """Bayesian optimisation with a Gaussian process that was pre-trained on the earlier tasks.

    Mean, kernel and noise maximise the likelihood of the losses of all earlier tasks; they are not
    refitted on the current task. Its losses are shifted and scaled to the mean and variance that
    this prior expects for the evaluated configurations.
    """

    max_per_task = MAX_PER_TASK

    @cached_property
    def prior(self) -> Prior:
        """The prior, fitted once to at most `MAX_TASKS` earlier tasks, drawn at random."""
        drawn_indices = self.rng.permutation(len(self.sources))[:MAX_TASKS]
        # Features and standardised losses of the drawn tasks, in the order of the tasks.
        drawn_tasks = [self.sources[i] for i in np.sort(drawn_indices)]
        return Prior.fit(drawn_tasks, self.kernel)

    def fit_posterior(self, X: FloatArray, y: FloatArray) -> tuple[Predict, FloatArray]:
        """Condition the prior on this task's evaluations.

        Before, their losses are rescaled to the mean and variance that the prior expects of these
        configurations. A Gaussian process, `_process`, then models the residuals: the rescaled
        losses minus the prior mean.

        Args:
            X: Features of the evaluated configurations, shape (n, p).
            y: Their standardised losses, shape (n,).

        Returns:
            The prediction function, and the rescaled losses (n,), as predictions are on their
            scale.
        """
        from hpobench_ordered.methods._gp import compiled
        from hpobench_ordered.methods._gp.model import GaussianProcess

        theta = self.prior.theta
        prior_mean = self.prior.predict_mean(X)
        covariance_without_noise = compiled.cross_covariance(
            X, X, self.kernel.groups, theta, self.kernel.length_scales
        )
        noise_variance = math.exp(theta[-1])
        covariance = covariance_without_noise + noise_variance * np.eye(len(X))
        rescaled_losses = rescale_losses(y, prior_mean, covariance)
        residuals = rescaled_losses - prior_mean
        self._process = GaussianProcess(X, residuals, kernel=self.kernel, theta=theta)
        return self._predict, rescaled_losses

    def condition_on_pending(self, pending_X: FloatArray) -> Predict:
        """Condition the process also on pending evaluations, as if they gave its posterior mean.

        Args:
            pending_X: Features of the pending configurations, shape (k, p).

        Returns:
            The prediction function of the process that is conditioned on both.
        """
        # The second result, the means that are assumed, is not needed.
        self._process, _ = self._process.with_fantasies(pending_X)
        return self._predict

    def _predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict mean (m,) and standard deviation (m,) of the loss at features X (m, p).

        The process, `_process`, models the residuals, which are the losses minus the prior mean.
        """
        mean_of_residual, sd = self._process.predict(X)
        mean = mean_of_residual + self.prior.predict_mean(X)
        return mean, sd


def rescale_losses(y: FloatArray, mean: FloatArray, covariance: FloatArray) -> FloatArray:
    """Shift and scale standardised losses to the mean and variance that a prior expects of them.

    Standardised losses always have mean 0 and variance 1. But the losses of configurations that are
    predicted to be good should be low, and those of similar configurations should vary little.

    Args:
        y: The losses, of mean 0 and variance 1, shape (n,).
        mean: Prior mean of each loss, shape (n,).
        covariance: Prior covariance of the losses, including noise, shape (n, n).

    Returns:
        The rescaled losses, shape (n,).
    """
    if len(y) == 0:
        return y
    # The sample variance that is expected of n losses drawn from the prior: the variance of their
    # means, plus the mean of their variances, minus the variance of their average.
    mean_of_variances = covariance.trace() / len(y)
    variance_of_average = covariance.mean()
    expected_variance = mean.var() + mean_of_variances - variance_of_average
    expected_sd = np.sqrt(max(expected_variance, 0.0))  # rounding may make the variance negative
    rescaled: FloatArray = mean.mean() + expected_sd * y
    return rescaled


SPECS = (
    MethodSpec(
        name="hyperbo",
        method=HyperBO,
        summary="bo with a prior mean and kernel fitted to all earlier tasks.",
        source=(
            "Wang et al. (2024), section 4: pre-training by likelihood; its mean is here quadratic "
            "in each hyperparameter, its kernel Matern-5/2"
        ),
        min_history=1,
        changed_spaces=True,
    ),
)
