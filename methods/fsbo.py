"""FSBO: a Gaussian process on features that a network learned on the earlier tasks.

========  ==========  =============================================================================
symbol    shape       meaning
========  ==========  =============================================================================
n, p      scalars     evaluations of a batch, features of a configuration
d         scalar      outputs of the network
X, y      (n, p) (n,) features in [0, 1] and standardised losses
Phi       (n, d)      outputs of the network at the inputs 2 X - 1
theta     (3,)        log length scale, log signal variance, log noise variance
x         (size,)     parameters: those of the network, then theta
S         (1, n, n)   squared distances of the rows of Phi
K, F      (n, n)      covariance of y and its slopes, as in `_gp.compiled`
alpha     (n,)        K^-1 y
========  ==========  =============================================================================

Wistuba and Grabocka (2021), sections 3 and 4.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.data.extras import NEURAL
from hpobench_ordered.methods._model_based import ModelError
from hpobench_ordered.methods._sources import FromSources, Predict
from hpobench_ordered.methods.base import MethodKind, MethodSpec
from hpobench_ordered.methods.zero_shot import choose_portfolio

if TYPE_CHECKING:
    from hpobench_ordered.methods._gp.model import GaussianProcess, Kernel
    from hpobench_ordered.methods._networks.features import Network

HIDDEN = (32, 32)
"""Tanh units of each layer; the last one gives the features."""
THETA_SIZE = 3
"""Number of hyperparameters of the kernel, which come last among the parameters."""
BATCH = 50
"""Largest number of evaluations in a batch, all of one task."""
TRAINING_STEPS, FINE_TUNING_STEPS = 1000, 100
"""Number of steps on the earlier tasks, and on the current one before each suggestion."""
LEARNING_RATE, FINE_LEARNING_RATE = 0.01, 0.001
"""Initial learning rate, with cosine decay to 0."""
INITIAL_TRIALS = 5
"""Number of trials of the initial design."""
RANDOM_CANDIDATES = 500
"""The initial design is chosen from this many random configurations and the earlier tasks' best."""
MAX_LOG_SCALE = math.log(2.0)
"""The losses of a batch are multiplied by a random factor; its logarithm is at most this, or at
least minus this."""
MEAN_DECAY, SQUARE_DECAY, EPSILON = 0.9, 0.999, 1e-8
"""Adam: decay of the running means of gradients and of their squares, and epsilon."""


@dataclass(frozen=True, eq=False, slots=True)
class DeepKernel:
    """A network and the kernel on its outputs.

    Attributes:
        phi: The network.
        x: Parameters of the network, then theta, shape (size,).
    """

    phi: "Network"
    x: FloatArray

    @classmethod
    def draw(cls, input_count: int, rng: np.random.Generator) -> "DeepKernel":
        """Draw the random weights of an untrained network, and make a kernel on its outputs.

        Args:
            input_count: Number of inputs, without padding.
            rng: Draws the network's weights.
        """
        from hpobench_ordered.methods._networks.features import Network, pad_input_count

        phi = Network(pad_input_count(input_count), HIDDEN)  # units of each layer
        output_count = HIDDEN[-1]  # units of the last layer
        # Outputs lie in [-1, 1], so that two configurations have a distance of about the root of
        # the number of outputs.
        log_length_scale = 0.5 * math.log(output_count)
        # Standardised losses have variance 1, of which about 2 % is noise.
        log_signal_variance = 0.0
        log_noise_variance = -4.0
        theta = [log_length_scale, log_signal_variance, log_noise_variance]
        weights = phi.initial(rng, input_count)
        return cls(phi, np.concatenate([weights, theta]))

    @property
    def theta(self) -> FloatArray:
        """Log length scale, log signal variance and log noise variance of the kernel, (3,)."""
        return self.x[-THETA_SIZE:]  # the network's weights come before

    def features(self, X: FloatArray) -> FloatArray:
        """Compute the network's outputs (m, d), which are the inputs of the kernel.

        Args:
            X: Features of configurations, in [0, 1], shape (m, p).
        """
        from hpobench_ordered.methods._networks.features import compute_features

        weights = self.x[:-THETA_SIZE]  # the kernel's parameters come last
        inputs = 2.0 * X - 1.0  # in [-1, 1]
        return compute_features(self.phi, weights, inputs)

    def condition(self, X: FloatArray, y: FloatArray) -> "GaussianProcess":
        """Condition a Gaussian process on the network's outputs and losses of a task.

        Args:
            X: Features of configurations, in [0, 1], shape (n, p).
            y: Their standardised losses, shape (n,).
        """
        from hpobench_ordered.methods._gp.model import GaussianProcess

        return GaussianProcess(self.features(X), y, kernel=output_kernel(), theta=self.theta)

    def train(
        self,
        tasks: Sequence[tuple[FloatArray, FloatArray]],
        rng: np.random.Generator,
        *,
        steps: int,
        rate: float,
        max_log_scale: float = 0.0,
    ) -> "DeepKernel":
        """Train the network and its kernel further, by steps of Adam on random batches.

        A batch holds evaluations of one task. A step decreases minus the log likelihood of their
        losses, which are multiplied by a random factor before, as the scale of a new task's losses
        is not known.

        Args:
            tasks: Features (n, p) and standardised losses (n,) of each task.
            rng: Draws the batches and the factors.
            steps: Number of steps.
            rate: Initial learning rate, with cosine decay to 0.
            max_log_scale: Largest absolute value of the factor's logarithm; with 0 the losses stay
                as they are.

        Returns:
            The trained network and kernel; those of this object stay as they are.
        """
        from hpobench_ordered.methods._gp.model import Priors, stack_priors

        priors = stack_priors(Priors(), 1)  # of a kernel with one length scale
        x = self.x.copy()  # weights of the network, then theta
        adam = Adam(len(x))
        for step in range(steps):
            X, y = tasks[int(rng.integers(len(tasks)))]
            batch_rows = rng.permutation(len(y))[:BATCH]
            loss_factor = math.exp(rng.uniform(-max_log_scale, max_log_scale))
            _, gradient = negative_log_likelihood(
                self.phi, x, X[batch_rows], loss_factor * y[batch_rows]
            )

            decayed_rate = 0.5 * rate * (1.0 + math.cos(math.pi * step / steps))
            x -= adam.compute_step(gradient, decayed_rate)
            # The kernel's hyperparameters stay within the bounds that they have in `bo`.
            x[-THETA_SIZE:] = np.clip(x[-THETA_SIZE:], priors.lower, priors.upper)
        return DeepKernel(self.phi, x)


class Adam:
    """Computes the steps of Adam (Kingma and Ba 2015), a method of stochastic gradient descent.

    Args:
        size: Number of parameters.
    """

    def __init__(self, size: int) -> None:
        """Start before the first step."""
        # Running means of the gradients and of their squares, (size,).
        self._mean = np.zeros(size)
        self._mean_of_squares = np.zeros(size)
        self._step_count = 0

    def compute_step(self, gradient: FloatArray, rate: float) -> FloatArray:
        """Compute the step to subtract from the parameters, (size,).

        It is the running mean of the gradients times the learning rate, divided by the root of the
        running mean of their squares.

        Args:
            gradient: Gradient at the parameters, shape (size,).
            rate: Learning rate of this step.
        """
        self._step_count += 1
        self._mean = MEAN_DECAY * self._mean + (1.0 - MEAN_DECAY) * gradient
        self._mean_of_squares = (
            SQUARE_DECAY * self._mean_of_squares + (1.0 - SQUARE_DECAY) * gradient**2
        )
        # Running means start at 0, so that they are too small by these factors at first.
        mean_bias = 1.0 - MEAN_DECAY**self._step_count
        square_bias = 1.0 - SQUARE_DECAY**self._step_count
        corrected_rate = rate * (math.sqrt(square_bias) / mean_bias)
        return corrected_rate * self._mean / (np.sqrt(self._mean_of_squares) + EPSILON)


def output_kernel() -> "Kernel":
    """Make the kernel on the network's outputs, with one length scale for all of them."""
    from hpobench_ordered.methods._gp.model import Kernel

    output_count = HIDDEN[-1]  # units of the last layer
    # A kernel is made from the index of each input's length scale.
    length_scale_of_output = np.zeros(output_count, dtype=np.int64)
    return Kernel(length_scale_of_output)


def negative_log_likelihood(
    phi: "Network", x: FloatArray, X: FloatArray, y: FloatArray
) -> tuple[float, FloatArray]:
    """Compute minus the log marginal likelihood of losses, and its gradient.

    Args:
        phi: The network.
        x: All parameters, shape (size,): those of the network, then theta, the kernel's log length
            scale, log signal variance and log noise variance.
        X: Features of the configurations, in [0, 1], shape (n, p).
        y: Standardised losses, shape (n,).

    Returns:
        The value, and the gradient (size,).

    Raises:
        ModelError: The covariance matrix has no Cholesky factor.
    """
    from hpobench_ordered.methods._gp import compiled
    from hpobench_ordered.methods._networks.features import linearise

    weights = x[:-THETA_SIZE]
    theta = x[-THETA_SIZE:]
    inputs = 2.0 * X - 1.0  # in [-1, 1]
    # Outputs Phi (n, d), and the function that propagates a gradient back from Phi to the weights.
    Phi, pull_back = linearise(phi, weights, inputs)
    S = compiled.squared_differences(Phi, output_kernel().groups, 1)  # squared distances (1, n, n)
    K, F = compiled.covariance(S, theta)  # and its slopes F, which the gradients need
    is_positive, R = compiled.cholesky(K)
    if not is_positive:
        raise ModelError("the covariance matrix is not numerically positive definite")
    alpha = compiled.solve(R, y)  # K^-1 y
    K_inverse = compiled.inverse_from_factor(R)

    value = compiled.negative_log_likelihood(y, R, alpha)
    grad_outputs = compute_output_gradient(Phi, F, K_inverse, alpha, theta)
    grad_weights, _ = pull_back(grad_outputs)
    grad_theta = -compiled.likelihood_gradient(S, K, F, K_inverse, alpha, theta)
    return value, np.concatenate([grad_weights, grad_theta])


def compute_output_gradient(
    Phi: FloatArray, F: FloatArray, K_inverse: FloatArray, alpha: FloatArray, theta: FloatArray
) -> FloatArray:
    """Compute the gradient (n, d) of minus the log likelihood with respect to the outputs Phi.

    By the chain rule: the likelihood depends on the covariance matrix K, which depends on the
    squared distances S of the outputs, with r^2 = S / length_scale^2.

    Args:
        Phi: Outputs of the network, shape (n, d).
        F: Slopes -2 dK / d(r^2) of the covariance, shape (n, n); valid above the diagonal alone.
        K_inverse: Inverse of K, shape (n, n); valid on and above the diagonal alone.
        alpha: K^-1 y, shape (n,).
        theta: Log length scale, log signal variance and log noise variance.
    """
    from hpobench_ordered.methods._products import product

    # With respect to K the gradient is (K^-1 - alpha alpha^T) / 2.
    minus_twice_grad_K = np.outer(alpha, alpha) - K_inverse
    # With respect to S: dK / dS is -F / (2 length_scale^2).
    inverse_squared_length_scale = math.exp(-2.0 * theta[0])
    grad_S = 0.25 * inverse_squared_length_scale * minus_twice_grad_K * np.triu(F, 1)
    grad_S += grad_S.T
    # With respect to Phi: the squared distance of rows u and v has the gradient 2 (u - v) with
    # respect to u, and occurs twice in S.
    weighted_rows = grad_S.sum(axis=1)[:, None] * Phi
    weighted_other_rows = product(grad_S, Phi)
    gradient: FloatArray = 4.0 * (weighted_rows - weighted_other_rows)
    return gradient


class FSBO(FromSources):
    """Few-shot Bayesian optimisation: a deep kernel, trained on the earlier tasks.

    Network and kernel are trained once on batches of the earlier tasks and then, before every
    suggestion, for a few steps on the current one. The first trials are configurations that
    complement each other on the earlier tasks, according to their Gaussian processes.
    """

    @cached_property
    def trained_kernel(self) -> DeepKernel:
        """Network and kernel, trained once on the evaluations of all earlier tasks.

        The losses of each batch are multiplied by a random factor, whose logarithm is at most
        `MAX_LOG_SCALE` in absolute value, as the scale of a new task's losses is not known.
        """
        X_of_first_task, _ = self.sources[0]  # all tasks have the same features
        input_count = X_of_first_task.shape[1]
        untrained = DeepKernel.draw(input_count, self.rng)
        return untrained.train(
            self.sources,
            self.rng,
            steps=TRAINING_STEPS,
            rate=LEARNING_RATE,
            max_log_scale=MAX_LOG_SCALE,
        )

    def initial_configurations(self) -> Sequence[Config]:
        """Choose `INITIAL_TRIALS` configurations that complement each other on the earlier tasks.

        The candidates are the best configuration of each earlier task, and random ones. They are
        chosen one by one, so that the lowest loss predicted for any of the chosen ones is as low as
        possible on average over the tasks.
        """
        if not self._tasks:  # no evaluations of earlier tasks
            return ()
        candidates = self._draw_initial_candidates()  # coded values
        # The point of the unit cube that represents each configuration.
        unit = self.space.canonical(self.space.encode(candidates))
        Phi = self.trained_kernel.features(self.features(unit))  # outputs of the network

        predicted_losses = []  # of all candidates, (m,), on each task
        for task_X, task_y in self.sources:
            process = self.trained_kernel.condition(task_X, task_y)
            mean, _ = process.predict(Phi)
            predicted_losses.append(mean)
        chosen_rows = choose_portfolio(np.array(predicted_losses), count=INITIAL_TRIALS)
        return self.space.configs(candidates[chosen_rows])

    def _draw_initial_candidates(self) -> FloatArray:
        """Join the best configuration of each earlier task and `RANDOM_CANDIDATES` random ones.

        Returns:
            Coded values, shape (m, number of hyperparameters).
        """
        best_of_tasks = np.stack([task.values[task.losses.argmin()] for task in self._tasks])
        random_units = self.region.sample_unit(self.rng, RANDOM_CANDIDATES)
        return np.concatenate([best_of_tasks, self.space.decode(random_units)])

    def fit_posterior(self, X: FloatArray, y: FloatArray) -> tuple[Predict, FloatArray]:
        """Fine-tune the network on this task's evaluations, and condition a process on them.

        Sets the network with its kernel, `_deep_kernel`, and the Gaussian process, `_process`.

        Args:
            X: Features of the evaluated configurations, shape (n, p); n may be 0.
            y: Their standardised losses, shape (n,).

        Returns:
            The prediction function, and y, as predictions are on its scale.
        """
        # Every time it starts from what the earlier tasks have taught, not from the last time.
        self._deep_kernel = self.trained_kernel
        if len(y) > 0:
            self._deep_kernel = self._deep_kernel.train(
                [(X, y)], self.rng, steps=FINE_TUNING_STEPS, rate=FINE_LEARNING_RATE
            )
        self._process = self._deep_kernel.condition(X, y)
        return self._predict, y

    def condition_on_pending(self, pending_X: FloatArray) -> Predict:
        """Condition the process also on pending evaluations, as if they gave its posterior mean.

        Args:
            pending_X: Features of the pending configurations, shape (k, p).

        Returns:
            The prediction function of the process that is conditioned on both.
        """
        # The process takes outputs of the network as inputs.
        pending_Phi = self._deep_kernel.features(pending_X)
        self._process, _ = self._process.with_fantasies(pending_Phi)
        return self._predict

    def _predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict mean (m,) and standard deviation (m,) of the loss at features X (m, p).

        The network maps the features to its outputs, which are the inputs of the Gaussian process.
        """
        outputs = self._deep_kernel.features(X)
        return self._process.predict(outputs)


SPECS = (
    MethodSpec(
        name="fsbo",
        method=FSBO,
        summary="Deep kernel trained on all earlier tasks, then fine-tuned on this one.",
        source=(
            "Wistuba and Grabocka (2021), sections 3 and 4: batches of 50, scaled losses, initial "
            f"design of {INITIAL_TRIALS}; its network of {HIDDEN} tanh units is ours"
        ),
        min_history=1,
        changed_spaces=True,
        extras=(NEURAL,),
        kind=MethodKind.NETWORK,
    ),
)
