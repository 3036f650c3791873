"""HyperBO: a Gaussian process with a prior that is pre-trained on the earlier tasks.

=========  ===========  ===========================================================================
symbol     shape        meaning
=========  ===========  ===========================================================================
n, p, q    scalars      evaluations of a task, features, basis functions of the mean
X, y       (n, p) (n,)  features and standardised losses of a task
Phi        (n, q)       basis functions: 1, u and u^2, with features u in [-1, 1]
b          (q,)         their weights, with a standard normal prior: the mean is Phi b
theta      (g + 2,)     log length scales, log signal variance, log noise variance
K          (n, n)       covariance of y, with the noise
=========  ===========  ===========================================================================

Over theta, the sum over tasks of minus the log marginal likelihood of y - Phi b is minimised, with
the best b for each theta. By the envelope theorem, its gradient is that for a fixed b.

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

BATCH = 50
"""Largest number of evaluations of an earlier task that the prior is fitted to, at random."""
TASKS = 40
"""Largest number of earlier tasks that it is fitted to, at random."""
STEPS = 50
"""Largest number of steps of the fit."""


@dataclass(frozen=True, eq=False, slots=True)
class Pretrained:
    """A prior: mean and covariance of the standardised losses of a task."""

    theta: FloatArray
    b: FloatArray

    @classmethod
    def fitted(
        cls, tasks: Sequence[tuple[FloatArray, FloatArray]], kernel: "Kernel"
    ) -> "Pretrained":
        """Fit the prior to features (n, p) and losses (n,) of several tasks."""
        from hpobench_ordered.methods._gp import compiled
        from hpobench_ordered.methods._gp.model import Priors, prior_arrays
        from hpobench_ordered.methods._gp.tasks import Fit, descend

        g = kernel.length_scales
        data = [
            (compiled.squared_differences(X, kernel.groups, g), np.column_stack([basis(X), y]))
            for X, y in tasks
        ]
        prior = prior_arrays(Priors(), g)

        def objective(theta: FloatArray) -> tuple[float, FloatArray]:
            value, gradient, _ = negative_log_likelihood(data, theta)
            away = prior.precision * (theta - prior.mean)
            return value + 0.5 * float(away @ (theta - prior.mean)), gradient + away

        start = Fit(prior.mean, np.diag(1.0 / (prior.precision + compiled.CURVATURE * len(data))))
        theta = descend(objective, start, prior, steps=STEPS).x
        return cls(theta, negative_log_likelihood(data, theta)[2])

    def mean(self, X: FloatArray) -> FloatArray:
        """Mean (m,) at features (m, p)."""
        mean: FloatArray = basis(X) @ self.b
        return mean


def basis(X: FloatArray) -> FloatArray:
    """Phi (m, q) of features (m, p) in [0, 1]."""
    centred = 2.0 * X - 1.0
    return np.concatenate([np.ones((len(X), 1)), centred, centred**2], axis=1)


def negative_log_likelihood(
    data: Sequence[tuple[FloatArray, FloatArray]], theta: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Minus log likelihood of all tasks and log prior of b, its gradient by theta, and b.

    Args:
        data: Squared differences (g, n, n), and Phi and y in columns (n, q + 1), of each task.
        theta: The hyperparameters, shape (g + 2,).
    """
    from scipy.linalg.lapack import dpotri, dpotrs  # made by f2py

    from hpobench_ordered.methods._gp import compiled, lapack

    q = data[0][1].shape[1] - 1
    products, parts = np.zeros((q + 1, q + 1)), []
    for S, columns in data:
        K, F = compiled.covariance(S, theta)
        positive, R = lapack.cholesky(K)
        if not positive:
            return math.inf, np.zeros(len(theta)), np.zeros(q)
        products += columns.T @ dpotrs(R.T, columns, lower=1)[0]
        parts.append((S, K, F, R, columns))
    b = np.linalg.solve(products[:q, :q] + np.eye(q), products[:q, q]).astype(np.float64)
    value, gradient, flat = 0.5 * float(b @ b), np.zeros(len(theta)), np.zeros(len(theta))
    for S, K, F, R, columns in parts:
        residuals = columns[:, q] - columns[:, :q] @ b
        alpha = compiled.solve(R, residuals)
        value += compiled.negative_log_posterior_from(residuals, R, alpha, theta, flat, flat)
        inverse = dpotri(R.T, lower=1)[0].T
        gradient -= compiled.likelihood_gradient(S, K, F, inverse, alpha, theta)
    return value, gradient, b


class HyperBO(FromSources):
    """Bayesian optimisation with a Gaussian process that was pre-trained on the earlier tasks.

    Mean, kernel and noise maximise the likelihood of the losses of all earlier tasks; they are not
    refitted on the current task. Its losses are shifted and scaled to the mean and variance that
    this prior expects for the evaluated configurations.
    """

    max_per_task = BATCH

    @cached_property
    def prior(self) -> Pretrained:
        """The prior."""
        chosen = np.sort(self.rng.permutation(len(self.sources))[:TASKS])
        return Pretrained.fitted([self.sources[i] for i in chosen], self.kernel)

    def fit_posterior(self, X: FloatArray, y: FloatArray) -> tuple[Predict, FloatArray]:
        """Condition on this task's evaluations."""
        from hpobench_ordered.methods._gp import compiled
        from hpobench_ordered.methods._gp.model import GaussianProcess

        theta, mean = self.prior.theta, self.prior.mean(X)
        K = compiled.cross_covariance(X, X, self.kernel.groups, theta, self.kernel.length_scales)
        y = in_units_of(mean, K + math.exp(theta[-1]) * np.eye(len(X)), y)
        self._process = GaussianProcess(X, y - mean, kernel=self.kernel, theta=theta)
        return self._predict, y

    def condition_on_pending(self, pending: FloatArray) -> Predict:
        """Condition also on pending evaluations."""
        self._process, _ = self._process.fantasised(pending)
        return self._predict

    def _predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, sd = self._process.predict(X)
        return mean + self.prior.mean(X), sd


def in_units_of(mean: FloatArray, covariance: FloatArray, y: FloatArray) -> FloatArray:
    """Shift and scale standardised losses (n,) to their expected mean and variance.

    The meaning of a standardised loss depends on which configurations were evaluated.

    Args:
        mean: Predicted mean of each loss, shape (n,).
        covariance: Covariance of these predictions, including noise, shape (n, n).
        y: The losses, of mean 0 and variance 1, shape (n,).
    """
    if not len(y):
        return y
    variance = mean.var() + covariance.trace() / len(y) - covariance.mean()
    units: FloatArray = mean.mean() + np.sqrt(max(variance, 0.0)) * y
    return units


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
