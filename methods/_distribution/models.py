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
nu        scalar           variance of the signal
s2        (1,) or (T,)     variance of the noise, one for all tasks or one for each (footnote 4)
alpha     scalar           precision of the weights of Bayesian linear regression
beta      (1,) or (T,)     precision of its noise, one for all tasks or one for each
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

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.methods._blr.descent import minimise
from hpobench_ordered.methods._blr.heads import LOG_ALPHA_BOUNDS, Head, Precisions
from hpobench_ordered.methods._blr.likelihood import Likelihood
from hpobench_ordered.methods._blr.likelihood import compute_likelihood as compute_linear_likelihood
from hpobench_ordered.methods._distribution.descriptions import Descriptions
from hpobench_ordered.methods._distribution.kernels import matern32, matern32_gradient
from hpobench_ordered.methods._distribution.product_gp import (
    Hyperparameters,
    ProcessData,
    ProductGP,
    compute_likelihood,
    index_noise,
)
from hpobench_ordered.methods._gp.compiled import cholesky
from hpobench_ordered.methods._model_based import ModelError
from hpobench_ordered.methods._products import exponentials, product

FIRST_EVALUATIONS, LATER_EVALUATIONS = 100, 10
"""Largest number of likelihoods in the first fit, and in each fit after a new evaluation."""
MIN_GAIN = 1e-3
"""Smallest gain of a step of the fit to continue, in nats per evaluation."""
MAX_NATS_PER_EVALUATION = 1.0
"""Nats per evaluation above which a fit is poor; for pure noise they are 0.5."""
LOG_LENGTH_BOUNDS = (-6.0, 8.0)
"""Bounds of the log length scales of the configuration."""
LOG_SIGNAL_BOUNDS = (-6.0, 6.0)
"""Bounds of log nu."""
LOG_NOISE_BOUNDS = (-12.0, 0.0)
"""Bounds of log s2."""
LOG_BETA_BOUNDS = (-LOG_NOISE_BOUNDS[1], -LOG_NOISE_BOUNDS[0])
"""Bounds of log beta."""
TASK_PARAMETER_BOUNDS = (-20.0, 20.0)
"""Bounds of the parameters of the tasks' covariance, and of those of their descriptions."""
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
            """Compute minus the log likelihood at parameters x, and its gradient.

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
        is_good = nll <= MAX_NATS_PER_EVALUATION * n  # false if it is NaN
        if not is_good:
            raise ModelError(f"the fit is poor: {nll / n:.3g} nats per evaluation")
        self._is_fitted = True
        return self.condition(data)

    @abstractmethod
    def value_and_gradient(self, data: ProcessData, x: FloatArray) -> tuple[float, FloatArray]:
        """Compute minus the log marginal likelihood at parameters x, and its gradient."""

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

    def pull_back(self, x: FloatArray, grad_covariance: FloatArray) -> FloatArray:
        """Propagate a gradient back from the covariance to its parameters x, by the chain rule.

        Args:
            x: The parameters, shape (size,).
            grad_covariance: Gradient of some objective with respect to the covariance, symmetric,
                shape (T, T).

        Returns:
            Its gradient with respect to x, shape (size,).
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
        Psi = self._descriptions.describe(z)
        squared_distances = np.square(Psi - Psi.mean(axis=0)).sum(axis=1)
        typical_distance = np.sqrt(squared_distances.mean()) or 1.0  # 1 if all are the same
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

    def pull_back(self, x: FloatArray, grad_covariance: FloatArray) -> FloatArray:
        """Propagate a gradient back from the covariance to its parameters x, by the chain rule.

        Args:
            x: Parameters z of the descriptions Psi, and log length scales.
            grad_covariance: Gradient of some objective with respect to the covariance, symmetric,
                shape (T, T).

        Returns:
            Its gradient with respect to x, shape (size,).
        """
        U = self._scale(x)  # Psi / exp(log_lengths): the covariance is a kernel of its rows
        _, decay = matern32(U, U)  # exp(-sqrt(3) r) with the distances r of the rows
        grad_U = matern32_gradient(U, decay, grad_covariance)
        z, log_lengths = self._split(x)
        grad_Psi = grad_U / exponentials(log_lengths)
        grad_z = self._descriptions.pull_back(z, grad_Psi)
        grad_log_lengths = -(grad_U * U).sum(axis=0)  # as dU / d log_length is -U
        return np.concatenate([grad_z, grad_log_lengths])

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
            self._last_scaled = self._descriptions.describe(z) / exponentials(log_lengths)
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

    def pull_back(self, x: FloatArray, grad_covariance: FloatArray) -> FloatArray:
        """Propagate a gradient back from the covariance P = L L^T to x, by the chain rule.

        Args:
            x: Logarithms of the entries of the lower triangle L, row by row, shape (size,).
            grad_covariance: Gradient of some objective with respect to P, symmetric, shape (T, T).

        Returns:
            Its gradient with respect to x, shape (size,).
        """
        L = self._make_triangle(x)
        grad_L = 2.0 * product(grad_covariance, L)  # as the gradient for P is symmetric
        grad_log_L = grad_L * L  # as d L / d log L is L
        # `_rows` and `_columns` are the places of the entries of a lower triangle.
        grad_x: FloatArray = grad_log_L[self._rows, self._columns]
        return grad_x

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
    """Stack the bounds of a model's parameters, which come in parts with the same bounds.

    Args:
        parts: For each part, the smallest and largest value of its parameters, and their number.

    Returns:
        The smallest value of each parameter, and the largest.
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
        noise_count: 1 if all tasks have the same noise, else the number of tasks.
    """

    def __init__(
        self,
        task_kernel: TaskKernel,
        length_scales: int,
        rng: np.random.Generator,
        *,
        noise_count: int = 1,
    ) -> None:
        """Set the parameters x to start from, and their bounds.

        x has the parameters of the tasks' covariance, then the log length scales of configurations,
        the log signal variance and the log noise variances.
        """
        self._task_kernel = task_kernel
        self._noise_count = noise_count
        self._length_scale_count = length_scales
        task_parameters = task_kernel.initial(rng)
        log_lengths = np.zeros(length_scales)
        log_signal = 0.0
        log_noise = np.full(noise_count, INITIAL_LOG_NOISE)
        self.x = np.concatenate([task_parameters, log_lengths, [log_signal], log_noise])
        # The bounds of each part of x, and how many parameters it has.
        self.bounds = stack_bounds(
            (TASK_PARAMETER_BOUNDS, len(task_parameters)),
            (LOG_LENGTH_BOUNDS, length_scales),
            (LOG_SIGNAL_BOUNDS, 1),
            (LOG_NOISE_BOUNDS, noise_count),
        )

    def value_and_gradient(self, data: ProcessData, x: FloatArray) -> tuple[float, FloatArray]:
        """Compute minus the log marginal likelihood at parameters x, and its gradient.

        x has the parameters of the covariance of the tasks, then log length scales, log signal
        variance and log noise variances; so has the gradient.
        """
        task_parameters, theta = self._split(x)
        P = self._task_kernel.matrix(task_parameters)  # covariance of the tasks, (T, T)
        likelihood = compute_likelihood(data, theta, P)
        grad_task_parameters = self._task_kernel.pull_back(task_parameters, likelihood.grad_tasks)
        gradient = np.concatenate(
            [
                grad_task_parameters,
                likelihood.grad_length,
                [likelihood.grad_signal],
                likelihood.grad_noise,
            ]
        )
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

        The others come last: log length scales, log signal variance and log noise variances.
        """
        noise_begin = len(x) - self._noise_count
        lengths_end = noise_begin - 1  # one number, log nu, is between
        lengths_begin = lengths_end - self._length_scale_count
        task_parameters = x[:lengths_begin]
        log_length = x[lengths_begin:lengths_end]
        log_signal = float(x[lengths_end])
        return task_parameters, Hyperparameters(log_length, log_signal, log_noise=x[noise_begin:])


class LinearModel(JointModel):
    """One Bayesian linear regression for all tasks, on a network of configuration and task.

    The parameters are those of the descriptions, those of the network, log alpha and log beta.

    If each task t has its own noise, network outputs and losses of its evaluations are multiplied
    by sqrt(beta_t / beta_c), with the current task c. All evaluations then have the noise of c.

    Args:
        descriptions: What describes the tasks.
        feature_count: Features of a configuration, p.
        rng: Draws the parameters to start from.
        noise_count: 1 if all tasks have the same noise, else the number of tasks.
    """

    def __init__(
        self,
        descriptions: Descriptions,
        feature_count: int,
        rng: np.random.Generator,
        *,
        noise_count: int = 1,
    ) -> None:
        """Set the parameters x to start from, and their bounds.

        x has the parameters of the descriptions, then those of the network, log alpha and log beta,
        where alpha is the precision of the weights of the network's outputs, and beta those of the
        noise.
        """
        from hpobench_ordered.methods._networks.features import Network, pad_input_count

        self._descriptions = descriptions
        self._noise_count = noise_count
        input_count = descriptions.width + feature_count
        self._network = Network(pad_input_count(input_count), HIDDEN)
        task_parameters = descriptions.initial(rng)
        weights = self._network.initial(rng, input_count)
        self._descriptions_end = len(task_parameters)  # where this part of x ends
        self._network_end = self._descriptions_end + len(weights)

        log_alpha = 0.0
        # A precision is one over a variance.
        log_beta = np.full(noise_count, -INITIAL_LOG_NOISE)
        self.x = np.concatenate([task_parameters, weights, [log_alpha], log_beta])
        # The bounds of each part of x, and how many parameters it has.
        unbounded = (-math.inf, math.inf)
        self.bounds = stack_bounds(
            (TASK_PARAMETER_BOUNDS, len(task_parameters)),
            (unbounded, len(weights)),
            (LOG_ALPHA_BOUNDS, 1),
            (LOG_BETA_BOUNDS, noise_count),
        )

    def value_and_gradient(self, data: ProcessData, x: FloatArray) -> tuple[float, FloatArray]:
        """Compute minus the log marginal likelihood at parameters x, and its gradient.

        x has the parameters of the descriptions, then those of the network, then the logarithms of
        the precisions of its outputs' weights, alpha, and of the noise, beta; so has the gradient.
        """
        from hpobench_ordered.methods._networks.features import linearise

        task_parameters, weights, precisions, log_row_scales = self._split(x, data.task)
        Psi = self._descriptions.describe(task_parameters)  # a row for each task
        inputs = np.hstack([Psi[data.task], data.X])  # each evaluation with its task's description
        # Phi: outputs of the network. A gradient goes back to the weights and the first inputs.
        Phi, pull_back = linearise(self._network, weights, inputs, first=self._descriptions.width)
        row_scales = exponentials(log_row_scales)
        scaled_Phi = row_scales[:, None] * Phi
        scaled_y = row_scales * data.y
        likelihood = compute_linear_likelihood(
            scaled_Phi, scaled_y, precisions.log_alpha, precisions.log_beta
        )
        # The density of a loss is that of the scaled loss, times the scale.
        nll = likelihood.rho - float(log_row_scales.sum())

        grad_Phi = row_scales[:, None] * likelihood.grad_features
        grad_weights, grad_described_inputs = pull_back(grad_Phi)
        # A task's description is an input of each of its evaluations, whose rows stand together, so
        # its gradient is the sum over these rows. The current task may have none yet.
        grad_Psi = np.zeros(Psi.shape)
        present_tasks, first_rows = np.unique(data.task, return_index=True)
        grad_Psi[present_tasks] = np.add.reduceat(grad_described_inputs, first_rows, axis=0)
        grad_task_parameters = self._descriptions.pull_back(task_parameters, grad_Psi)
        grad_log_alpha = [likelihood.grad_alpha.sum()]
        grad_log_beta = self._pull_back_noise(data.task, scaled_Phi, scaled_y, likelihood)
        gradient = np.concatenate(
            [grad_task_parameters, grad_weights, grad_log_alpha, grad_log_beta]
        )
        return nll, gradient

    def _pull_back_noise(
        self, task: IntArray, scaled_Phi: FloatArray, scaled_y: FloatArray, likelihood: Likelihood
    ) -> FloatArray:
        """Compute the gradient of minus the log likelihood with respect to log beta.

        Multiplying all rows by c is the same as multiplying beta by c^2. So the derivative for the
        beta of a task is half the sum of those for the logarithms of its rows' scales. Each of
        these is the sum of gradient times value over the row, less 1 for the density of the loss.

        Args:
            task: Task of each evaluation, shape (N,).
            scaled_Phi: Scaled outputs of the network, shape (N, d).
            scaled_y: Scaled losses, shape (N,).
            likelihood: The likelihood of the scaled losses.
        """
        if self._noise_count == 1:
            return np.array([likelihood.grad_beta])
        grad_log_scales = (likelihood.grad_features * scaled_Phi).sum(axis=1)
        grad_log_scales += likelihood.grad_losses * scaled_y
        grad_log_scales -= 1.0
        grad_log_beta = np.zeros(self._noise_count)  # stays 0 for a task without evaluations
        np.add.at(grad_log_beta, task, 0.5 * grad_log_scales)
        return grad_log_beta

    def condition(self, data: ProcessData) -> "LinearPosterior":
        """Condition on evaluations, with the parameters x as they are.

        The result predicts the current task.
        """
        from hpobench_ordered.methods._networks.features import compute_features

        task_parameters, weights, precisions, log_row_scales = self._split(self.x, data.task)
        Psi = self._descriptions.describe(task_parameters)  # a row for each task
        current_description = Psi[-1]  # the current task comes last

        def current_task_features(X: FloatArray) -> FloatArray:
            """Compute the network's outputs for configurations of features X on the current task.

            The network's inputs are the task's description, then the features, (m, p).
            """
            shape = len(X), len(current_description)
            description_columns = np.broadcast_to(current_description, shape)
            return compute_features(self._network, weights, np.hstack([description_columns, X]))

        inputs = np.hstack([Psi[data.task], data.X])  # each evaluation with its task's description
        Phi = compute_features(self._network, weights, inputs)
        row_scales = exponentials(log_row_scales)
        # Pending evaluations are of the current task, whose rows have the scale 1.
        head = Head(row_scales[:, None] * Phi, row_scales * data.y, precisions)
        return LinearPosterior(head, current_task_features)

    def _split(
        self, x: FloatArray, task: IntArray
    ) -> tuple[FloatArray, FloatArray, Precisions, FloatArray]:
        """Split the parameters x: those of the descriptions, those of the network, precisions.

        Args:
            x: The parameters.
            task: Task of each evaluation, shape (N,).

        Returns:
            Parameters of the descriptions, those of the network, and the precisions on the current
            task. Last, the logarithm of the factor of each evaluation's network outputs and loss,
            (N,), after which its noise has the precision that the current task's has.
        """
        task_parameters = x[: self._descriptions_end]
        weights = x[self._descriptions_end : self._network_end]
        log_alpha = x[self._network_end : self._network_end + 1]
        log_beta = x[self._network_end + 1 :]
        current_log_beta = float(log_beta[-1])  # the current task is the last
        log_scales = 0.5 * (log_beta - current_log_beta)
        log_row_scales = log_scales[index_noise(task, self._noise_count)]
        return task_parameters, weights, Precisions(log_alpha, current_log_beta), log_row_scales


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
        # `features` computes what the head needs of configurations: outputs of a network.
        head, losses = self.head.with_fantasies(self.features(X))
        return LinearPosterior(head, self.features), losses
