"""The two models of all tasks: a Gaussian process, and Bayesian linear regression on a network.

Each is fitted by the marginal likelihood, together with the descriptions of the tasks; fits to more
evaluations continue from the last one. Law et al. (2019), sections 4.2 and 5; ADAM, which they use,
takes five to ten times as long as L-BFGS to the same likelihood.

========  ===============  ========================================================================
symbol    shape            meaning
========  ===============  ========================================================================
T         scalar           tasks, the current one last
N, p      scalar           evaluations of all tasks, features of a configuration
q         scalar           numbers that describe a task
Psi       (T, q)           descriptions of the tasks
P         (T, T)           covariance of the tasks: Matern-3/2 of Psi, or L L^T
x                          all parameters, one after the other
========  ===============  ========================================================================
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._blr.descent import minimise
from hpobench_ordered.methods._blr.heads import LOG_ALPHA, Head, Precisions
from hpobench_ordered.methods._blr.likelihood import likelihood as linear_likelihood
from hpobench_ordered.methods._distribution.descriptions import Descriptions
from hpobench_ordered.methods._distribution.kernels import matern32, matern32_gradient
from hpobench_ordered.methods._distribution.product_gp import (
    Hyperparameters,
    Observations,
    ProductGP,
    likelihood,
)
from hpobench_ordered.methods._gp.compiled import cholesky
from hpobench_ordered.methods._model_based import ModelError
from hpobench_ordered.methods._products import exponentials, product

FIRST, AGAIN = 100, 10
"""Largest number of likelihoods in the first fit, and in each fit after a new evaluation."""
GAIN = 1e-3
"""Smallest gain of a step of the fit to continue, in nats per evaluation."""
POOR = 1.0
"""Nats per evaluation above which a fit is poor; for pure noise they are 0.5."""
LOG_LENGTH = (-6.0, 8.0)
LOG_SIGNAL = (-6.0, 6.0)
LOG_NOISE = (-12.0, 0.0)
LOG_BETA = (-LOG_NOISE[1], -LOG_NOISE[0])
"""Bounds of the log precision of the noise in Bayesian linear regression."""
NOISE_START = -3.0
"""log s2 before the fit. With the authors' 1e-5, whose losses are not standardised, a regression
starts at a million nats, from which a fit does not recover."""
HIDDEN = (50, 50, 50)
"""Tanh units of the network of Bayesian linear regression (section 5)."""


class Posterior(Protocol):
    """A model that is conditioned on evaluations."""

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean (m,) and standard deviation (m,) at features (m, p) on this task."""
        ...

    def with_fantasies(self, X: FloatArray) -> "tuple[Posterior, FloatArray]":
        """Condition also on pending evaluations; and the losses they are taken to give, (k,)."""
        ...


class JointModel(ABC):
    """A model of all tasks.

    Attributes:
        x: Its parameters, as fitted last.
    """

    x: FloatArray
    bounds: tuple[FloatArray, FloatArray]
    _fitted = False

    def fit(self, data: Observations) -> Posterior:
        """Fit all parameters, from where they are, and condition on the evaluations.

        Args:
            data: The evaluations.

        Raises:
            ModelError: The fit fails or is poor.
        """

        def objective(x: FloatArray) -> tuple[float, FloatArray]:
            try:
                return self.value_and_gradient(data, x)
            except ModelError:
                return math.inf, np.zeros(len(x))

        n = len(data.y)
        nll, self.x = minimise(
            objective,
            self.x,
            self.bounds,
            evaluations=AGAIN if self._fitted else FIRST,
            tolerance=GAIN * n,
        )
        if not nll <= POOR * n:
            raise ModelError(f"the fit is poor: {nll / n:.3g} nats per evaluation")
        self._fitted = True
        return self.conditioned(data)

    @abstractmethod
    def value_and_gradient(self, data: Observations, x: FloatArray) -> tuple[float, FloatArray]:
        """Minus log marginal likelihood at parameters x, and its gradient of their shape."""

    @abstractmethod
    def conditioned(self, data: Observations) -> Posterior:
        """Condition on evaluations, with the parameters as they are."""


class TaskKernel(Protocol):
    """Covariance of the tasks, with parameters."""

    def initial(self, rng: np.random.Generator) -> FloatArray:
        """Draw the parameters to start from, (size,)."""
        ...

    def matrix(self, x: FloatArray) -> FloatArray:
        """P, (T, T)."""
        ...

    def pull_back(self, x: FloatArray, slopes: FloatArray) -> FloatArray:
        """Derivatives of a function of P by x, (size,), from those by P, symmetric, (T, T)."""
        ...


class DescribedTasks:
    """Matern-3/2 kernel of the tasks' descriptions, with a length scale for each number."""

    def __init__(self, descriptions: Descriptions) -> None:
        self._of = descriptions
        self._last: tuple[FloatArray, FloatArray] | None = None

    def initial(self, rng: np.random.Generator) -> FloatArray:
        """Draw the descriptions' parameters, with length scales for which tasks differ."""
        z = self._of.initial(rng)
        table = self._of.table(z)
        typical = np.sqrt(np.square(table - table.mean(axis=0)).sum(axis=1).mean())
        return np.concatenate([z, np.full(self._of.width, math.log(typical or 1.0))])

    def matrix(self, x: FloatArray) -> FloatArray:
        """P, (T, T)."""
        return matern32(*[self._scaled(x)] * 2)[0]

    def pull_back(self, x: FloatArray, slopes: FloatArray) -> FloatArray:
        """Derivatives of a function of P by x, (size,), from those by P, symmetric, (T, T)."""
        U = self._scaled(x)
        _, decay = matern32(U, U)
        by_U = matern32_gradient(U, decay, slopes)
        z, log_length = np.split(x, [len(x) - self._of.width])
        by_z = self._of.pull_back(z, by_U / exponentials(log_length))
        return np.concatenate([by_z, -(by_U * U).sum(axis=0)])

    def _scaled(self, x: FloatArray) -> FloatArray:
        if self._last is None or self._last[0] is not x:  # P and its derivatives need the same
            z, log_length = np.split(x, [len(x) - self._of.width])
            self._last = x, self._of.table(z) / exponentials(log_length)
        return self._last[1]


class FreeTasks:
    """L L^T with a learned lower triangle L of positive entries (appendix B.2).

    Initially any two tasks have a correlation of a half.
    """

    def __init__(self, tasks: int) -> None:
        self._rows, self._columns = np.tril_indices(tasks)
        self._tasks = tasks

    def initial(self, rng: np.random.Generator) -> FloatArray:
        """Logarithms of the triangle's entries."""
        half = np.full((self._tasks, self._tasks), 0.5) + 0.5 * np.eye(self._tasks)
        _, upper = cholesky(half)
        return np.array([math.log(x) for x in upper.T[self._rows, self._columns].tolist()])

    def matrix(self, x: FloatArray) -> FloatArray:
        """P, (T, T)."""
        lower = self._lower(x)
        return product(lower, lower.T.copy())

    def pull_back(self, x: FloatArray, slopes: FloatArray) -> FloatArray:
        """Derivatives of a function of P by x, (size,), from those by P, symmetric, (T, T)."""
        lower = self._lower(x)
        by_x: FloatArray = (2.0 * product(slopes, lower) * lower)[self._rows, self._columns]
        return by_x

    def _lower(self, x: FloatArray) -> FloatArray:
        lower = np.zeros((self._tasks, self._tasks))
        lower[self._rows, self._columns] = exponentials(x)
        return lower


class ProcessModel(JointModel):
    """A Gaussian process on configuration and task.

    Args:
        tasks: Covariance of the tasks.
        length_scales: Number of length scales of the configuration, g.
        rng: Draws the parameters to start from.
    """

    def __init__(self, tasks: TaskKernel, length_scales: int, rng: np.random.Generator) -> None:
        self._tasks, self._g = tasks, length_scales
        own = tasks.initial(rng)
        self.x = np.concatenate([own, np.zeros(length_scales + 1), [NOISE_START]])
        free = np.full(len(own), 20.0)
        lower, upper = (
            np.concatenate([sign * free, np.full(length_scales, ell), [signal, noise]])
            for sign, ell, signal, noise in zip(
                (-1, 1), LOG_LENGTH, LOG_SIGNAL, LOG_NOISE, strict=True
            )
        )
        self.bounds = (lower, upper)

    def value_and_gradient(self, data: Observations, x: FloatArray) -> tuple[float, FloatArray]:
        """Minus log marginal likelihood at parameters x, and its gradient of their shape."""
        own, theta = self._split(x)
        of = likelihood(data, theta, self._tasks.matrix(own))
        by_own = self._tasks.pull_back(own, of.by_tasks)
        return of.nll, np.concatenate([by_own, of.by_length, [of.by_signal, of.by_noise]])

    def conditioned(self, data: Observations) -> ProductGP:
        """Condition on evaluations, with the parameters as they are."""
        own, theta = self._split(self.x)
        P = self._tasks.matrix(own)
        return ProductGP(data, theta, P, len(P) - 1)

    def similarities(self) -> FloatArray:
        """Correlation of each earlier task with the current one, (T - 1,)."""
        P = self._tasks.matrix(self._split(self.x)[0])
        similar: FloatArray = P[:-1, -1] / np.sqrt(np.diag(P)[:-1] * P[-1, -1])
        return similar

    def _split(self, x: FloatArray) -> tuple[FloatArray, Hyperparameters]:
        own, log_length, others = np.split(x, [len(x) - self._g - 2, len(x) - 2])
        return own, Hyperparameters(log_length, float(others[0]), float(others[1]))


class LinearModel(JointModel):
    """One Bayesian linear regression for all tasks, on a network of configuration and task.

    Args:
        descriptions: What describes the tasks.
        features: Features of a configuration, p.
        rng: Draws the parameters to start from.
    """

    def __init__(self, descriptions: Descriptions, features: int, rng: np.random.Generator) -> None:
        from hpobench_ordered.methods._networks.features import Network, padded_inputs

        self._of = descriptions
        used = descriptions.width + features
        self._network = Network(padded_inputs(used), HIDDEN)
        of_tasks, of_network = descriptions.initial(rng), self._network.initial(rng, used)
        self._sizes = [len(of_tasks), len(of_tasks) + len(of_network)]
        self.x = np.concatenate([of_tasks, of_network, [0.0, -NOISE_START]])
        free = np.full(self._sizes[1], np.inf)
        lower, upper = (
            np.concatenate([sign * free, [alpha, beta]])
            for sign, alpha, beta in zip((-1, 1), LOG_ALPHA, LOG_BETA, strict=True)
        )
        self.bounds = (lower, upper)

    def value_and_gradient(self, data: Observations, x: FloatArray) -> tuple[float, FloatArray]:
        """Minus log marginal likelihood at parameters x, and its gradient of their shape."""
        from hpobench_ordered.methods._networks.features import linearised

        z, weights, (log_alpha, log_beta) = np.split(x, self._sizes)
        table = self._of.table(z)
        inputs = np.hstack([table[data.task], data.X])
        Phi, pull_back = linearised(self._network, weights, inputs, first=self._of.width)
        of = linear_likelihood(Phi, data.y, np.array([log_alpha]), float(log_beta))
        by_weights, by_table = pull_back(of.by_features)
        slopes = np.zeros(table.shape)
        present, starts = np.unique(data.task, return_index=True)
        slopes[present] = np.add.reduceat(by_table, starts, axis=0)
        by_z = self._of.pull_back(z, slopes)
        return of.rho, np.concatenate([by_z, by_weights, [of.by_alpha.sum(), of.by_beta]])

    def conditioned(self, data: Observations) -> "LinearPosterior":
        """Condition on evaluations, with the parameters as they are."""
        from hpobench_ordered.methods._networks.features import compute_features

        z, weights, (log_alpha, log_beta) = np.split(self.x, self._sizes)
        table = self._of.table(z)

        def features(X: FloatArray) -> FloatArray:
            own = np.broadcast_to(table[-1], (len(X), self._of.width))
            return compute_features(self._network, weights, np.hstack([own, X]))

        Phi = compute_features(self._network, weights, np.hstack([table[data.task], data.X]))
        precisions = Precisions(np.array([log_alpha]), float(log_beta))
        return LinearPosterior(Head(Phi, data.y, precisions), features)


@dataclass(frozen=True, slots=True)
class LinearPosterior:
    """A regression that is conditioned on evaluations.

    Attributes:
        head: The regression.
        features: Its features (m, d) of those of configurations (m, p) on the current task.
    """

    head: Head
    features: Callable[[FloatArray], FloatArray]

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean (m,) and standard deviation (m,) at features (m, p) on this task."""
        return self.head.predict(self.features(X))

    def with_fantasies(self, X: FloatArray) -> "tuple[LinearPosterior, FloatArray]":
        """Condition also on pending evaluations; and the losses they are taken to give, (k,)."""
        head, losses = self.head.with_fantasies(self.features(X))
        return LinearPosterior(head, self.features), losses
