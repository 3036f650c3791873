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
    """What the likelihood needs of a task.

    Attributes:
        S: Squared differences of its features, shape (g, n, n).
        Phi: Basis functions, shape (n, q).
        y: Standardised losses, shape (n,).
    """

    S: FloatArray
    Phi: FloatArray
    y: FloatArray


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

        A prior has the hyperparameters theta of the covariance, log length scales and log variances
        of signal and noise, and the weights b of the mean's basis functions. For a given theta, the
        best b can be computed; theta maximises the tasks' likelihood times a prior of its own.

        Args:
            tasks: Features (n, p) and standardised losses (n,) of each task.
            kernel: Which feature has which length scale.
        """
        from hpobench_ordered.methods._gp import compiled
        from hpobench_ordered.methods._gp.model import Priors, stack_priors
        from hpobench_ordered.methods._gp.tasks import Fit, descend

        g = kernel.length_scales  # their number
        fitted_tasks = []
        for X, y in tasks:
            S = compiled.squared_differences(X, kernel.groups, g)  # of all pairs of rows
            fitted_tasks.append(FittedTask(S, compute_basis(X), y))
        prior = stack_priors(Priors(), g)  # means and precisions of theta

        def objective(theta: FloatArray) -> tuple[float, FloatArray]:
            """Compute minus the log posterior of theta, up to a constant, and its gradient.

            The likelihood is that of all tasks, and the prior of theta is normal.
            """
            # The third result, the best weights b for this theta, is not needed here.
            minus_log_likelihood, gradient, _ = negative_log_likelihood(fitted_tasks, theta)
            distance = theta - prior.mean
            prior_gradient = prior.precision * distance
            minus_log_prior = 0.5 * float(prior_gradient @ distance)
            return minus_log_likelihood + minus_log_prior, gradient + prior_gradient

        # Quasi-Newton steps start with a guess of the second derivatives: the prior's, and a
        # typical number for each task's likelihood.
        curvature = prior.precision + compiled.CURVATURE * len(fitted_tasks)
        inverse_hessian = np.diag(1.0 / curvature)
        start = Fit(prior.mean, inverse_hessian)
        theta = descend(objective, start, prior, steps=MAX_STEPS).x
        _, _, b = negative_log_likelihood(fitted_tasks, theta)
        return cls(theta, b)

    def mean(self, X: FloatArray) -> FloatArray:
        """Compute the prior mean of the losses, (m,), at features X (m, p) in [0, 1].

        It is a sum of basis functions with the weights b.
        """
        mean: FloatArray = compute_basis(X) @ self.b
        return mean


def compute_basis(X: FloatArray) -> FloatArray:
    """Compute the mean's basis functions, 1, u and u^2 with u = 2 X - 1, (m, 2 p + 1).

    Args:
        X: Features in [0, 1], shape (m, p).
    """
    u = 2.0 * X - 1.0
    return np.concatenate([np.ones((len(X), 1)), u, u**2], axis=1)


def negative_log_likelihood(
    tasks: Sequence[FittedTask], theta: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Compute minus the log likelihood of all tasks and the log prior of b, with the best b.

    A task's losses have the mean Phi b, of q basis functions Phi with weights b, and the
    covariance K. The best b is (I + sum Phi^T K^-1 Phi)^-1 sum Phi^T K^-1 y, with sums over tasks.

    Args:
        tasks: The tasks.
        theta: Log length scales, log signal variance and log noise variance, shape (g + 2,).

    Returns:
        The value, its gradient with respect to theta, and b. The value is inf if a covariance
        matrix has no Cholesky factor.
    """
    from scipy.linalg.lapack import dpotri, dpotrs  # made by f2py

    from hpobench_ordered.methods._gp import compiled, lapack

    q = tasks[0].Phi.shape[1]
    products = np.zeros((q + 1, q + 1))  # sum of [Phi y]^T K^-1 [Phi y]
    covariances = []
    for task in tasks:
        K, F = compiled.covariance(task.S, theta)  # and slopes F, which the gradient needs
        is_positive, R = lapack.cholesky(K)
        if not is_positive:
            return math.inf, np.zeros(len(theta)), np.zeros(q)
        columns = np.column_stack([task.Phi, task.y])
        solved_columns, _ = dpotrs(R.T, columns, lower=1)  # K^-1 [Phi y]
        products += columns.T @ solved_columns
        covariances.append((K, F, R))
    Phi_Phi, Phi_y = products[:q, :q], products[:q, q]
    b = np.linalg.solve(Phi_Phi + np.eye(q), Phi_y).astype(np.float64)

    value = 0.5 * float(b @ b)  # of the standard normal prior of b
    gradient = np.zeros(len(theta))
    # The compiled function includes a prior of theta, which a precision of 0 removes.
    flat = np.zeros(len(theta))
    for task, (K, F, R) in zip(tasks, covariances, strict=True):
        residuals = task.y - task.Phi @ b
        alpha = compiled.solve(R, residuals)  # K^-1 (y - Phi b)
        value += compiled.negative_log_posterior_from(residuals, R, alpha, theta, flat, flat)
        lower_triangle, _ = dpotri(R.T, lower=1)
        inverse = lower_triangle.T  # K^-1, of which the upper triangle is valid
        # b depends on theta, but adds nothing to the gradient, as it is the best for this theta.
        gradient -= compiled.likelihood_gradient(task.S, K, F, inverse, alpha, theta)
    return value, gradient, b


class HyperBO(FromSources):
    """Bayesian optimisation with a Gaussian process that was pre-trained on the earlier tasks.

    Mean, kernel and noise maximise the likelihood of the losses of all earlier tasks; they are not
    refitted on the current task. Its losses are shifted and scaled to the mean and variance that
    this prior expects for the evaluated configurations.
    """

    max_per_task = MAX_PER_TASK

    @cached_property
    def prior(self) -> Prior:
        """The prior, fitted to at most `MAX_TASKS` earlier tasks, drawn at random.

        `sources` has features (n, p) and standardised losses (n,) of each earlier task.
        """
        chosen = np.sort(self.rng.permutation(len(self.sources))[:MAX_TASKS])
        return Prior.fit([self.sources[i] for i in chosen], self.kernel)

    def fit_posterior(self, X: FloatArray, y: FloatArray) -> tuple[Predict, FloatArray]:
        """Condition the prior on this task's evaluations.

        A process is conditioned on their residuals, the losses minus the prior mean. Before, the
        losses, which were standardised among themselves, are rescaled to the mean and variance that
        the prior expects of these configurations.

        Args:
            X: Features of the evaluated configurations, shape (n, p).
            y: Their standardised losses, shape (n,).

        Returns:
            The prediction function, and the losses (n,) as the prior expects them.
        """
        from hpobench_ordered.methods._gp import compiled
        from hpobench_ordered.methods._gp.model import GaussianProcess

        theta = self.prior.theta  # log length scales, log signal and log noise variance
        mean = self.prior.mean(X)
        # Covariance without noise; `groups` are the features' length scales.
        K = compiled.cross_covariance(X, X, self.kernel.groups, theta, self.kernel.length_scales)
        noise = math.exp(theta[-1]) * np.eye(len(X))
        y = rescale_losses(y, mean, K + noise)
        self._process = GaussianProcess(X, y - mean, kernel=self.kernel, theta=theta)
        return self._predict, y

    def condition_on_pending(self, pending_X: FloatArray) -> Predict:
        """Condition also on pending evaluations, as if they gave the posterior mean.

        Args:
            pending_X: Features of the pending configurations, shape (k, p).

        Returns:
            The prediction function.
        """
        # Also gives the losses that are assumed, which are not needed.
        self._process, _ = self._process.with_fantasies(pending_X)
        return self._predict

    def _predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict mean (m,) and standard deviation (m,) of the loss at features X (m, p).

        The process, `_process`, models the residuals, the losses minus the prior mean.
        """
        residual_mean, sd = self._process.predict(X)
        return residual_mean + self.prior.mean(X), sd


def rescale_losses(y: FloatArray, mean: FloatArray, covariance: FloatArray) -> FloatArray:
    """Shift and scale standardised losses (n,) to the mean and variance that are expected of them.

    Standardised losses always have mean 0 and variance 1. But losses of configurations that are
    predicted to be good should be low, and those of similar configurations should vary little.

    Args:
        y: The losses, of mean 0 and variance 1, shape (n,).
        mean: Predicted mean of each loss, shape (n,).
        covariance: Covariance of these predictions, including noise, shape (n, n).
    """
    if not len(y):
        return y
    # The variance among n losses that is expected of a draw from the prediction: the variance of
    # the means, plus the mean of the variances, minus the part that shifts all losses alike.
    mean_of_variances = covariance.trace() / len(y)
    variance_of_average_loss = covariance.mean()
    expected_variance = mean.var() + mean_of_variances - variance_of_average_loss
    rescaled: FloatArray = mean.mean() + np.sqrt(max(expected_variance, 0.0)) * y
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
