"""The two models of all tasks: a Gaussian process, and Bayesian linear regression on a network.

Each is fitted by the marginal likelihood, together with the descriptions of the tasks; fits to more
evaluations continue from the last one. Law et al. (2019), sections 4.2 and 5; ADAM, which they use,
takes five to ten times as long as L-BFGS to the same likelihood.

========  ===============  ========================================================================
symbol    shape            meaning
========  ===============  ========================================================================
T         scalar           tasks, the current one last
N, p      scalar           evaluations of all tasks, features of a configuration
g         scalar           length scales of the configuration
q         scalar           numbers that describe a task
nu, s2    scalar           variances of signal and noise
alpha     scalar           precision of the weights of Bayesian linear regression
beta      scalar           precision of its noise
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
from hpobench_ordered.methods._blr.likelihood import compute_likelihood as compute_linear_likelihood
from hpobench_ordered.methods._distribution.descriptions import Descriptions
from hpobench_ordered.methods._distribution.kernels import matern32, matern32_gradient
from hpobench_ordered.methods._distribution.product_gp import (
    Hyperparameters,
    ProcessData,
    ProductGP,
    compute_likelihood,
)
from hpobench_ordered.methods._gp.compiled import cholesky
from hpobench_ordered.methods._model_based import ModelError
from hpobench_ordered.methods._products import exponentials, product

FIRST_EVALUATIONS, LATER_EVALUATIONS = 100, 10
"""Largest number of likelihoods in the first fit, and in each fit after a new evaluation."""
MIN_GAIN = 1e-3
"""Smallest gain of a step of the fit to continue, in nats per evaluation."""
MAX_LOSS = 1.0
"""Nats per evaluation above which a fit is poor; for pure noise they are 0.5."""
LOG_LENGTH = (-6.0, 8.0)
"""Bounds of the log length scales of the configuration."""
LOG_SIGNAL = (-6.0, 6.0)
"""Bounds of log nu."""
LOG_NOISE = (-12.0, 0.0)
"""Bounds of log s2."""
LOG_BETA = (-LOG_NOISE[1], -LOG_NOISE[0])
"""Bounds of log beta."""
TASK_PARAMETER = (-20.0, 20.0)
"""Bounds of the parameters of the tasks' covariance."""
INITIAL_LOG_NOISE = -3.0
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
        """Condition also on pending evaluations at X (k, p), as if they gave the posterior mean.

        Returns:
            The model, and these means, (k,).
        """
        ...


class JointModel(ABC):
    """A model of all tasks.

    Attributes:
        x: Its parameters, as fitted last.
        bounds: Smallest and largest value of each parameter, shaped as x.
    """

    x: FloatArray
    bounds: tuple[FloatArray, FloatArray]
    _is_fitted = False

    def fit(self, data: ProcessData) -> Posterior:
        """Fit all parameters, from where they are, and condition on the evaluations.

        Changes the parameters `x`. A first fit may take more steps than later ones, which start
        from its result.

        Args:
            data: The evaluations.

        Raises:
            ModelError: The fit fails or is poor.
        """

        def objective(x: FloatArray) -> tuple[float, FloatArray]:
            """Compute minus the log likelihood of parameters x, and its gradient by them.

            It is infinite, so that the search steps back, if a matrix has no Cholesky factor.
            """
            try:
                return self.value_and_gradient(data, x)
            except ModelError:
                return math.inf, np.zeros(len(x))

        n = len(data.y)
        # Later fits start from the last result and may compute the likelihood less often.
        evaluations = LATER_EVALUATIONS if self._is_fitted else FIRST_EVALUATIONS
        # `nll`, minus the log likelihood, is a sum over n evaluations, so that its smallest gain
        # and its largest value are proportional to n.
        nll, self.x = minimise(
            objective,
            self.x,
            self.bounds,
            evaluations=evaluations,
            tolerance=MIN_GAIN * n,
        )
        is_good = nll <= MAX_LOSS * n  # false if it is NaN
        if not is_good:
            raise ModelError(f"the fit is poor: {nll / n:.3g} nats per evaluation")
        self._is_fitted = True
        return self.condition(data)

    @abstractmethod
    def value_and_gradient(self, data: ProcessData, x: FloatArray) -> tuple[float, FloatArray]:
        """Compute minus the log marginal likelihood at parameters x, and its gradient by them."""

    @abstractmethod
    def condition(self, data: ProcessData) -> Posterior:
        """Condition on evaluations, with the parameters as they are."""


class TaskKernel(Protocol):
    """Covariance of the tasks, with parameters x (size,) of its own."""

    def initial(self, rng: np.random.Generator) -> FloatArray:
        """Draw the parameters to start from, (size,)."""
        ...

    def matrix(self, x: FloatArray) -> FloatArray:
        """Compute the covariance of the tasks, (T, T), from its parameters x."""
        ...

    def pull_back(self, x: FloatArray, slopes: FloatArray) -> FloatArray:
        """Turn derivatives of a function by the covariance into those by its parameters x, (size,).

        This is the chain rule.

        Args:
            x: The parameters, shape (size,).
            slopes: Derivatives of the function by the covariance, symmetric, shape (T, T).
        """
        ...


class DescribedTasks:
    """Matern-3/2 kernel of the tasks' descriptions, with a length scale for each number.

    The parameters are those of the descriptions and the log length scales, (q,).
    """

    def __init__(self, descriptions: Descriptions) -> None:
        """Start with nothing computed.

        Args:
            descriptions: What describes the tasks, by numbers that may depend on parameters.
        """
        self._descriptions = descriptions
        # The descriptions at the last parameters, divided by the length scales; see `_scale`.
        self._last_x: FloatArray | None = None
        self._last_scaled: FloatArray

    def initial(self, rng: np.random.Generator) -> FloatArray:
        """Draw the parameters to start from: of the descriptions, and log length scales.

        Each length scale is the root mean squared distance of the tasks from their mean, so that
        tasks are neither all alike nor all unrelated.
        """
        # Parameters of the descriptions, and the descriptions (T, q) that they give.
        z = self._descriptions.initial(rng)
        Psi = self._descriptions.table(z)
        squared_distances = np.square(Psi - Psi.mean(axis=0)).sum(axis=1)
        typical_distance = np.sqrt(squared_distances.mean()) or 1.0  # all may be the same
        # One length scale for each number that describes a task.
        log_lengths = np.full(self._descriptions.width, math.log(typical_distance))
        return np.concatenate([z, log_lengths])

    def matrix(self, x: FloatArray) -> FloatArray:
        """Compute the covariance of the tasks, (T, T), from its parameters x.

        It is the Matern-3/2 kernel of the tasks' descriptions.
        """
        U = self._scale(x)  # descriptions divided by their length scales
        covariance, _ = matern32(U, U)
        return covariance

    def pull_back(self, x: FloatArray, slopes: FloatArray) -> FloatArray:
        """Turn derivatives of a function by the covariance into those by its parameters x, (size,).

        This is the chain rule.

        Args:
            x: Parameters z of the descriptions Psi, and log length scales.
            slopes: Derivatives of the function by the covariance, symmetric, shape (T, T).
        """
        U = self._scale(x)  # Psi / exp(log_lengths), of which the covariance is the kernel
        _, decay = matern32(U, U)  # exp(-sqrt(3) r) with the distances r of rows of U
        by_U = matern32_gradient(U, decay, slopes)
        z, log_lengths = self._split(x)
        by_Psi = by_U / exponentials(log_lengths)
        by_log_lengths = -(by_U * U).sum(axis=0)
        return np.concatenate([self._descriptions.pull_back(z, by_Psi), by_log_lengths])

    def _split(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Split the parameters into those of the descriptions and the log length scales.

        The descriptions' `width` is how many numbers describe a task. Each has a length scale; the
        length scales come last.
        """
        z, log_lengths = np.split(x, [len(x) - self._descriptions.width])
        return z, log_lengths

    def _scale(self, x: FloatArray) -> FloatArray:
        """Divide the tasks' descriptions by the length scales, (T, q).

        They are computed once for each array x, as the covariance and its derivatives are asked
        for one by one.
        """
        if self._last_x is not x:
            z, log_lengths = self._split(x)
            self._last_x = x
            self._last_scaled = self._descriptions.table(z) / exponentials(log_lengths)
        return self._last_scaled


class FreeTasks:
    """L L^T with a learned lower triangle L of positive entries (appendix B.2).

    The parameters are the logarithms of the entries, row by row. Initially any two tasks have a
    correlation of a half.
    """

    def __init__(self, task_count: int) -> None:
        """Find the places of the lower triangle's entries, row by row."""
        self._rows, self._columns = np.tril_indices(task_count)
        self._task_count = task_count

    def initial(self, rng: np.random.Generator) -> FloatArray:
        """Compute the parameters to start from, (size,).

        Nothing is drawn; `rng` is part of the interface of task kernels.

        They are logarithms of the entries of the triangle L, row by row, for which the covariance
        L L^T has variances of 1 and correlations of a half.
        """
        shape = self._task_count, self._task_count
        half_correlated = np.full(shape, 0.5) + 0.5 * np.eye(self._task_count)
        _, upper = cholesky(half_correlated)
        # Entries of the lower factor L, row by row, at the places `_rows` and `_columns`.
        entries = upper.T[self._rows, self._columns]
        return np.array([math.log(entry) for entry in entries.tolist()])

    def matrix(self, x: FloatArray) -> FloatArray:
        """Compute the covariance of the tasks, L L^T, (T, T), from the logarithms x of L."""
        L = self._make_triangle(x)
        return product(L, L.T.copy())

    def pull_back(self, x: FloatArray, slopes: FloatArray) -> FloatArray:
        """Turn derivatives of a function by the covariance P = L L^T into those by x, (size,).

        This is the chain rule.

        Args:
            x: Logarithms of the entries of the triangle L, shape (size,).
            slopes: Derivatives of the function by P, symmetric, shape (T, T).
        """
        L = self._make_triangle(x)
        by_L = 2.0 * product(slopes, L)  # as the slopes are symmetric
        by_logarithms = by_L * L  # each entry of L is exp(its parameter)
        by_x: FloatArray = by_logarithms[self._rows, self._columns]  # places of the entries
        return by_x

    def _make_triangle(self, x: FloatArray) -> FloatArray:
        """Make the lower triangle L, (T, T), from the logarithms x of its entries, row by row.

        `_rows` and `_columns` are the places of the entries.
        """
        L = np.zeros((self._task_count, self._task_count))
        L[self._rows, self._columns] = exponentials(x)
        return L


def stack_bounds(
    *parts: tuple[tuple[float, float], int],
) -> tuple[FloatArray, FloatArray]:
    """Stack bounds of parameters.

    Args:
        parts: Smallest and largest value of some parameters, and their number.

    Returns:
        The smallest and the largest values.
    """
    lower = [np.full(count, lowest) for (lowest, _), count in parts]
    upper = [np.full(count, highest) for (_, highest), count in parts]
    return np.concatenate(lower), np.concatenate(upper)


class ProcessModel(JointModel):
    """A Gaussian process on configuration and task.

    The parameters are those of the covariance of the tasks, the log length scales of the
    configuration, log nu and log s2.

    Args:
        task_kernel: Covariance of the tasks.
        length_scales: Number of length scales of the configuration, g.
        rng: Draws the parameters to start from.
    """

    def __init__(
        self, task_kernel: TaskKernel, length_scales: int, rng: np.random.Generator
    ) -> None:
        """Set the parameters x to start from, and their bounds, in the same order."""
        self._task_kernel = task_kernel
        self._g = length_scales
        task_parameters = task_kernel.initial(rng)
        # Length scales and signal variance are 1 at first.
        log_lengths_and_signal = np.zeros(length_scales + 1)
        self.x = np.concatenate([task_parameters, log_lengths_and_signal, [INITIAL_LOG_NOISE]])
        # Lowest and highest value of some parameters, and how many there are.
        self.bounds = stack_bounds(
            (TASK_PARAMETER, len(task_parameters)),
            (LOG_LENGTH, length_scales),
            (LOG_SIGNAL, 1),
            (LOG_NOISE, 1),
        )

    def value_and_gradient(self, data: ProcessData, x: FloatArray) -> tuple[float, FloatArray]:
        """Compute minus the log marginal likelihood at parameters x, and its gradient by them.

        x has the parameters of the covariance of the tasks, then log length scales, log signal
        variance and log noise variance; so has the gradient.
        """
        task_parameters, theta = self._split(x)
        P = self._task_kernel.matrix(task_parameters)  # covariance of the tasks, (T, T)
        likelihood = compute_likelihood(data, theta, P)
        by_task_parameters = self._task_kernel.pull_back(task_parameters, likelihood.by_tasks)
        by_signal_and_noise = [likelihood.by_signal, likelihood.by_noise]
        gradient = np.concatenate([by_task_parameters, likelihood.by_length, by_signal_and_noise])
        return likelihood.nll, gradient

    def condition(self, data: ProcessData) -> ProductGP:
        """Condition on evaluations, with the parameters as they are.

        The process predicts the current task.
        """
        task_parameters, theta = self._split(self.x)
        P = self._task_kernel.matrix(task_parameters)  # covariance of the tasks, (T, T)
        current_task = len(P) - 1  # the last
        return ProductGP(data, theta, P, target=current_task)

    def similarities(self) -> FloatArray:
        """Compute the correlation of each earlier task with the current one, (T - 1,)."""
        task_parameters, _ = self._split(self.x)
        P = self._task_kernel.matrix(task_parameters)  # covariance of the tasks, current one last
        variances = np.diag(P)
        covariances = P[:-1, -1]
        similarities: FloatArray = covariances / np.sqrt(variances[:-1] * variances[-1])
        return similarities

    def _split(self, x: FloatArray) -> tuple[FloatArray, Hyperparameters]:
        """Split the parameters into those of the tasks' covariance and all others.

        The others are g log length scales and the logarithms of signal and noise variance.
        """
        lengths_end = len(x) - 2
        lengths_begin = lengths_end - self._g
        task_parameters, log_length, (log_signal, log_noise) = np.split(
            x, [lengths_begin, lengths_end]
        )
        return task_parameters, Hyperparameters(log_length, float(log_signal), float(log_noise))


class LinearModel(JointModel):
    """One Bayesian linear regression for all tasks, on a network of configuration and task.

    The parameters are those of the descriptions, those of the network, log alpha and log beta.

    Args:
        descriptions: What describes the tasks.
        feature_count: Features of a configuration, p.
        rng: Draws the parameters to start from.
    """

    def __init__(
        self, descriptions: Descriptions, feature_count: int, rng: np.random.Generator
    ) -> None:
        """Set the parameters x to start from, and their bounds, in the same order."""
        from hpobench_ordered.methods._networks.features import Network, pad_input_count

        self._descriptions = descriptions
        input_count = descriptions.width + feature_count
        self._network = Network(pad_input_count(input_count), HIDDEN)  # units of each layer
        task_parameters = descriptions.initial(rng)
        weights = self._network.initial(rng, input_count)
        network_end = len(task_parameters) + len(weights)
        self._ends = [len(task_parameters), network_end]  # where these two parts of x end

        # The precision of the noise, beta, is one over its variance.
        log_alpha, log_beta = 0.0, -INITIAL_LOG_NOISE
        self.x = np.concatenate([task_parameters, weights, [log_alpha, log_beta]])
        # Lowest and highest value of some parameters, and how many there are: only the precisions
        # are bounded.
        self.bounds = stack_bounds(
            ((-math.inf, math.inf), network_end), (LOG_ALPHA, 1), (LOG_BETA, 1)
        )

    def value_and_gradient(self, data: ProcessData, x: FloatArray) -> tuple[float, FloatArray]:
        """Compute minus the log marginal likelihood at parameters x, and its gradient by them.

        x has the parameters of the descriptions, then those of the network, then the logarithms of
        the precisions of its outputs' weights, alpha, and of the noise, beta; so has the gradient.
        """
        from hpobench_ordered.methods._networks.features import linearise

        # `_ends` is where the parameters of the descriptions and those of the network end.
        task_parameters, weights, (log_alpha, log_beta) = np.split(x, self._ends)
        Psi = self._descriptions.table(task_parameters)
        inputs = np.hstack([Psi[data.task], data.X])  # each evaluation with its task's description
        # Phi: features that the network computes; Psi: descriptions of the tasks, which come first.
        Phi, pull_back = linearise(self._network, weights, inputs, first=self._descriptions.width)
        likelihood = compute_linear_likelihood(Phi, data.y, np.array([log_alpha]), float(log_beta))

        by_weights, by_described_inputs = pull_back(likelihood.by_features)
        # A task's description is an input of each of its evaluations, which stand together, so its
        # derivatives are sums over them. The current task may have none yet.
        by_Psi = np.zeros(Psi.shape)
        present_tasks, first_rows = np.unique(data.task, return_index=True)
        by_Psi[present_tasks] = np.add.reduceat(by_described_inputs, first_rows, axis=0)
        by_task_parameters = self._descriptions.pull_back(task_parameters, by_Psi)
        by_precisions = [likelihood.by_alpha.sum(), likelihood.by_beta]
        return likelihood.rho, np.concatenate([by_task_parameters, by_weights, by_precisions])

    def condition(self, data: ProcessData) -> "LinearPosterior":
        """Condition on evaluations, with the parameters x as they are.

        x has the parameters of the descriptions, those of the network, log alpha and log beta, the
        precisions of weights and noise. The result predicts the current task.
        """
        from hpobench_ordered.methods._networks.features import compute_features

        # `_ends` is where the parameters of the descriptions and those of the network end.
        task_parameters, weights, (log_alpha, log_beta) = np.split(self.x, self._ends)
        Psi = self._descriptions.table(task_parameters)  # of all tasks; the current is last

        def current_task_features(X: FloatArray) -> FloatArray:
            """Compute the network's features of configurations X (m, p) on the current task.

            Psi (T, q) has the descriptions of all tasks, the current one last. The network's inputs
            are the task's description, then the features of the configuration.
            """
            psi = np.broadcast_to(Psi[-1], (len(X), self._descriptions.width))
            return compute_features(self._network, weights, np.hstack([psi, X]))

        inputs = np.hstack([Psi[data.task], data.X])  # each evaluation with its task's description
        Phi = compute_features(self._network, weights, inputs)
        precisions = Precisions(np.array([log_alpha]), float(log_beta))
        return LinearPosterior(Head(Phi, data.y, precisions), current_task_features)


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
        """Predict posterior mean (m,) and sd (m,) at features (m, p) on the current task."""
        return self.head.predict(self.features(X))

    def with_fantasies(self, X: FloatArray) -> "tuple[LinearPosterior, FloatArray]":
        """Condition also on pending evaluations at X (k, p), as if they gave the posterior mean.

        Returns:
            The model, and these means, (k,).
        """
        head, losses = self.head.with_fantasies(self.features(X))
        return LinearPosterior(head, self.features), losses
