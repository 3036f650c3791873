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
M         (n, n)      gradient of minus the log likelihood with respect to S
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
        """Draw an untrained network, and make a kernel on its outputs.

        Args:
            input_count: Number of inputs, without padding.
            rng: Draws the network's weights.
        """
        from hpobench_ordered.methods._networks.features import Network, pad_input_count

        phi = Network(pad_input_count(input_count), HIDDEN)  # units of each layer
        output_count = HIDDEN[-1]
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
        """Log length scale, log signal variance and log noise variance of the kernel, (3,).

        They are the last `THETA_SIZE` of the parameters x.
        """
        return self.x[-THETA_SIZE:]

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
        """Continue the training with steps of Adam, each on a random part of a random task.

        A step decreases minus the log likelihood of a batch. Its losses are multiplied by a random
        factor first, as the scale of a new task's losses is not known.

        Args:
            tasks: Features (n, p) and standardised losses (n,) of each task.
            rng: Draws the batches and the factors.
            steps: Number of steps.
            rate: Initial learning rate, with cosine decay to 0.
            max_log_scale: Largest absolute logarithm of the factor; without one it is 1.

        Returns:
            The trained kernel; this one stays as it is.
        """
        from hpobench_ordered.methods._gp.model import Priors, stack_priors

        bounds = stack_priors(Priors(), 1)  # of a kernel with one length scale
        x = self.x.copy()
        mean = np.zeros(len(x))  # running mean of the gradients
        square = np.zeros(len(x))  # running mean of their squares
        for step in range(steps):
            X, y = tasks[int(rng.integers(len(tasks)))]
            rows = rng.permutation(len(y))[:BATCH]
            scale = math.exp(rng.uniform(-max_log_scale, max_log_scale))
            _, gradient = negative_log_likelihood(self.phi, x, X[rows], scale * y[rows])

            mean = MEAN_DECAY * mean + (1.0 - MEAN_DECAY) * gradient
            square = SQUARE_DECAY * square + (1.0 - SQUARE_DECAY) * gradient**2
            # Both started at 0 and are too small by these factors at first.
            mean_correction = 1.0 - MEAN_DECAY ** (step + 1)
            square_correction = 1.0 - SQUARE_DECAY ** (step + 1)
            decayed_rate = 0.5 * rate * (1.0 + math.cos(math.pi * step / steps))
            decayed_rate *= math.sqrt(square_correction) / mean_correction
            x -= decayed_rate * mean / (np.sqrt(square) + EPSILON)
            # The kernel's hyperparameters stay in the box of `bo`'s priors.
            x[-THETA_SIZE:] = np.clip(x[-THETA_SIZE:], bounds.lower, bounds.upper)
        return DeepKernel(self.phi, x)


def output_kernel() -> "Kernel":
    """Make the kernel on the network's outputs, with one length scale for all of them."""
    from hpobench_ordered.methods._gp.model import Kernel

    output_count = HIDDEN[-1]  # units of the last layer
    group_of_output = np.zeros(output_count, dtype=np.int64)  # all have the only length scale
    return Kernel(group_of_output)


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
    from hpobench_ordered.methods._products import product

    weights = x[:-THETA_SIZE]
    theta = x[-THETA_SIZE:]
    # Outputs Phi (n, d), and the function that propagates a gradient back from Phi to the weights.
    Phi, pull_back = linearise(phi, weights, 2.0 * X - 1.0)
    S = compiled.squared_differences(Phi, output_kernel().groups, 1)  # squared distances (1, n, n)
    # The covariance K, and F = -2 dK / d r^2 with the scaled squared distances
    # r^2 = S exp(-2 theta[0]).
    K, F = compiled.covariance(S, theta)
    is_positive, R = compiled.cholesky(K)
    if not is_positive:
        raise ModelError("the covariance matrix is not numerically positive definite")
    alpha = compiled.solve(R, y)  # K^-1 y
    inverse = compiled.inverse_from_factor(R)
    flat = np.zeros(THETA_SIZE)  # mean and precision of no prior on theta
    value = compiled.negative_log_posterior_from(y, R, alpha, theta, flat, flat)

    # The gradient with respect to K is half of K^-1 - alpha alpha^T, and M that with respect to S.
    # F and the inverse are valid above the diagonal alone, as in `_gp.compiled`.
    minus_twice_grad_K = np.outer(alpha, alpha) - inverse
    M = 0.25 * math.exp(-2.0 * theta[0]) * minus_twice_grad_K * np.triu(F, 1)
    M += M.T
    # d|u - v|^2 / du is 2 (u - v), for each of the two places that the distance has in S.
    grad_outputs = 4.0 * (M.sum(axis=1)[:, None] * Phi - product(M, Phi))
    grad_weights, _ = pull_back(grad_outputs)
    grad_theta = -compiled.likelihood_gradient(S, K, F, inverse, alpha, theta)
    return value, np.concatenate([grad_weights, grad_theta])


class FSBO(FromSources):
    """Few-shot Bayesian optimisation: a deep kernel, trained on the earlier tasks.

    Network and kernel are trained once on batches of the earlier tasks and then, before every
    suggestion, for a few steps on the current one. The first trials are configurations that
    complement each other on the earlier tasks, according to their Gaussian processes.
    """

    @cached_property
    def trained_kernel(self) -> DeepKernel:
        """Network and kernel, trained on the evaluations of the earlier tasks.

        The losses of a step are multiplied by a random factor, at most exp(`MAX_LOG_SCALE`).
        """
        X, _ = self.sources[0]  # features and losses of a task; all have the same features
        untrained = DeepKernel.draw(X.shape[1], self.rng)
        return untrained.train(
            self.sources,
            self.rng,
            steps=TRAINING_STEPS,
            rate=LEARNING_RATE,
            max_log_scale=MAX_LOG_SCALE,
        )

    def initial_configurations(self) -> Sequence[Config]:
        """Choose configurations that are together good on the earlier tasks.

        Candidates are the best configuration of each earlier task, and `RANDOM_CANDIDATES` random
        ones. `INITIAL_TRIALS` are chosen greedily, to minimise the mean over the tasks of the
        lowest loss that is predicted for any of them. `_tasks` has the earlier tasks' evaluations,
        and `sources` the same as features and losses for models.
        """
        if not self._tasks:  # there is nothing to choose by
            return ()
        best = np.stack([task.values[task.losses.argmin()] for task in self._tasks])
        random = self.space.decode(self.region.sample_unit(self.rng, RANDOM_CANDIDATES))
        candidates = np.concatenate([best, random])
        # Equal configurations have one point in the unit cube, whatever their inactive values.
        unit = self.space.canonical(self.space.encode(candidates))
        X = self.features(unit)  # inputs of the network
        Phi = self.trained_kernel.features(X)  # its outputs, inputs of the process

        predicted_means = []  # losses of all candidates, for each task
        for task_X, task_y in self.sources:
            mean, _ = self.trained_kernel.condition(task_X, task_y).predict(Phi)
            predicted_means.append(mean)
        chosen = choose_portfolio(np.array(predicted_means), count=INITIAL_TRIALS)
        return self.space.configs(candidates[chosen])

    def fit_posterior(self, X: FloatArray, y: FloatArray) -> tuple[Predict, FloatArray]:
        """Continue the training on this task's evaluations, and condition a process on them.

        Sets the network with its kernel, `_deep_kernel`, and the process, `_process`.

        Args:
            X: Features of the evaluated configurations, shape (n, p); n may be 0.
            y: Their standardised losses, shape (n,).

        Returns:
            The prediction function, and the losses, which keep their units.
        """
        # Each time anew from the network and kernel of the earlier tasks, in fewer, smaller steps.
        self._deep_kernel = self.trained_kernel
        if len(y):
            self._deep_kernel = self._deep_kernel.train(
                [(X, y)], self.rng, steps=FINE_TUNING_STEPS, rate=FINE_LEARNING_RATE
            )
        self._process = self._deep_kernel.condition(X, y)
        return self._predict, y

    def condition_on_pending(self, pending_X: FloatArray) -> Predict:
        """Condition also on pending evaluations, as if they gave the posterior mean.

        Args:
            pending_X: Features of the pending configurations, shape (k, p).

        Returns:
            The prediction function, of the process that is conditioned.
        """
        # The process takes outputs of the network as inputs.
        pending_Phi = self._deep_kernel.features(pending_X)
        self._process, _ = self._process.with_fantasies(pending_Phi)
        return self._predict

    def _predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict mean (m,) and standard deviation (m,) of the loss at features X (m, p).

        The process, `_process`, takes the outputs of the network, which `_deep_kernel` computes, as
        its inputs.
        """
        return self._process.predict(self._deep_kernel.features(X))


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
