"""FSBO: a Gaussian process on features that a network learned on the earlier tasks.

========  ==========  =============================================================================
symbol    shape       meaning
========  ==========  =============================================================================
n, d      scalars     evaluations of a batch, outputs of the network
X, y      (n, p) (n,) inputs in [-1, 1] and standardised losses
Phi       (n, d)      outputs of the network
theta     (3,)        log length scale, log signal variance, log noise variance
x         (size,)     parameters: those of the network, then theta
K, F      (n, n)      covariance of y and its slopes, as in `_gp.compiled`
M         (n, n)      derivative of minus the log likelihood by the squared distances of Phi
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
from hpobench_ordered.core.extras import NEURAL
from hpobench_ordered.methods._model_based import ModelError
from hpobench_ordered.methods._sources import FromSources, Predict
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.zero_shot import choose_portfolio

if TYPE_CHECKING:
    from hpobench_ordered.methods._gp.model import GaussianProcess, Kernel
    from hpobench_ordered.methods._networks.features import Network

HIDDEN = (32, 32)
"""Tanh units of each layer; the last one gives the features."""
BATCH = 50
"""Largest number of evaluations in a batch, all of one task."""
STEPS, FINE_STEPS = 1000, 100
"""Number of steps on the earlier tasks, and on the current one before each suggestion."""
RATE, FINE_RATE = 0.01, 0.001
"""Initial learning rate, with cosine decay to 0."""
START = 5
"""Trials of the initial design."""
CANDIDATES = 500
"""Random configurations that the initial design is chosen from, and the earlier tasks' best."""
SCALED = math.log(2.0)
"""Largest absolute logarithm of the random factor that the losses of a batch are multiplied by."""
FAST, SLOW, SMALLEST = 0.9, 0.999, 1e-8
"""Adam: decay of the running means of gradients and of their squares, and epsilon."""


@dataclass(frozen=True, eq=False, slots=True)
class DeepKernel:
    """A network and the kernel on its outputs."""

    phi: "Network"
    x: FloatArray

    @classmethod
    def initial(cls, inputs: int, rng: np.random.Generator) -> "DeepKernel":
        """Draw a network with a number of inputs."""
        from hpobench_ordered.methods._networks.features import Network, padded_inputs

        phi = Network(padded_inputs(inputs), HIDDEN)
        theta = [0.5 * math.log(HIDDEN[-1]), 0.0, -4.0]  # outputs lie in [-1, 1]
        return cls(phi, np.concatenate([phi.initial(rng, inputs), theta]))

    def features(self, X: FloatArray) -> FloatArray:
        """Outputs of the network (m, d) at features (m, p) of configurations, in [0, 1]."""
        from hpobench_ordered.methods._networks.features import compute_features

        return compute_features(self.phi, self.x[:-3], 2.0 * X - 1.0)

    def process(self, X: FloatArray, y: FloatArray) -> "GaussianProcess":
        """Condition the process on features (n, p) of configurations and losses (n,)."""
        from hpobench_ordered.methods._gp.model import GaussianProcess

        return GaussianProcess(self.features(X), y, kernel=kernel(), theta=self.x[-3:])

    def trained(
        self,
        tasks: Sequence[tuple[FloatArray, FloatArray]],
        rng: np.random.Generator,
        *,
        steps: int,
        rate: float,
        scaled: float = 0.0,
    ) -> "DeepKernel":
        """Continue with steps of Adam, each on a random part of a random task.

        Args:
            tasks: Features (n, p) and standardised losses (n,) of each task.
            rng: Draws the batches.
            steps: Number of steps.
            rate: Initial learning rate.
            scaled: Largest absolute logarithm of the random factor of the losses.
        """
        from hpobench_ordered.methods._gp.model import Priors, stack_priors

        bounds = stack_priors(Priors(), 1)
        x, mean, square = self.x.copy(), np.zeros(len(self.x)), np.zeros(len(self.x))
        for step in range(steps):
            X, y = tasks[int(rng.integers(len(tasks)))]
            rows = rng.permutation(len(y))[:BATCH]
            factor = math.exp(rng.uniform(-scaled, scaled))
            _, gradient = negative_log_likelihood(
                self.phi, x, 2.0 * X[rows] - 1.0, factor * y[rows]
            )
            mean = FAST * mean + (1.0 - FAST) * gradient
            square = SLOW * square + (1.0 - SLOW) * gradient**2
            length = 0.5 * rate * (1.0 + math.cos(math.pi * step / steps))
            length *= math.sqrt(1.0 - SLOW ** (step + 1)) / (1.0 - FAST ** (step + 1))
            x -= length * mean / (np.sqrt(square) + SMALLEST)
            x[-3:] = np.clip(x[-3:], bounds.lower, bounds.upper)
        return DeepKernel(self.phi, x)


def kernel() -> "Kernel":
    """The kernel, with one length scale for all outputs."""
    from hpobench_ordered.methods._gp.model import Kernel

    return Kernel(np.zeros(HIDDEN[-1], dtype=np.int64))


def negative_log_likelihood(
    phi: "Network", x: FloatArray, X: FloatArray, y: FloatArray
) -> tuple[float, FloatArray]:
    """Minus log marginal likelihood of losses, and its gradient, of the shape of x."""
    from hpobench_ordered.methods._gp import compiled
    from hpobench_ordered.methods._networks.features import linearised
    from hpobench_ordered.methods._products import product

    theta, flat = x[-3:], np.zeros(3)
    Phi, pull = linearised(phi, x[:-3], X)
    S = compiled.squared_differences(Phi, kernel().groups, 1)
    K, F = compiled.covariance(S, theta)
    positive, R = compiled.cholesky(K)
    if not positive:
        raise ModelError("the covariance matrix is not numerically positive definite")
    alpha = compiled.solve(R, y)
    inverse = compiled.inverse_from_factor(R)
    M = 0.25 * math.exp(-2.0 * theta[0]) * (np.outer(alpha, alpha) - inverse) * np.triu(F, 1)
    M += M.T
    by_outputs = 4.0 * (M.sum(axis=1)[:, None] * Phi - product(M, Phi))
    by_theta = -compiled.likelihood_gradient(S, K, F, inverse, alpha, theta)
    value = compiled.negative_log_posterior_from(y, R, alpha, theta, flat, flat)
    return value, np.concatenate([pull(by_outputs)[0], by_theta])


class FSBO(FromSources):
    """Few-shot Bayesian optimisation: a deep kernel, trained on the earlier tasks.

    Network and kernel are trained once on batches of the earlier tasks and then, before every
    suggestion, for a few steps on the current one. The first trials are configurations that
    complement each other on the earlier tasks, according to their Gaussian processes.
    """

    @cached_property
    def trained(self) -> DeepKernel:
        """Network and kernel, trained on the earlier tasks."""
        untrained = DeepKernel.initial(self.sources[0][0].shape[1], self.rng)
        return untrained.trained(self.sources, self.rng, steps=STEPS, rate=RATE, scaled=SCALED)

    def initial_configurations(self) -> Sequence[Config]:
        """Choose configurations greedily to minimise the mean of each task's lowest prediction."""
        if not self._tasks:
            return ()
        best = np.stack([task.values[task.losses.argmin()] for task in self._tasks])
        drawn = self.space.decode(self.region.sample_unit(self.rng, CANDIDATES))
        values = np.concatenate([best, drawn])
        X = self.features(self.space.canonical(self.space.encode(values)))
        Phi = self.trained.features(X)
        predicted = [self.trained.process(*task).predict(Phi)[0] for task in self.sources]
        return self.space.configs(values[choose_portfolio(np.array(predicted), count=START)])

    def fit_posterior(self, X: FloatArray, y: FloatArray) -> tuple[Predict, FloatArray]:
        """Continue the training on this task and condition on its evaluations."""
        here = [(X, y)]
        self._deep = self.trained
        if len(y):
            self._deep = self._deep.trained(here, self.rng, steps=FINE_STEPS, rate=FINE_RATE)
        self._process = self._deep.process(X, y)
        return self._predict, y

    def condition_on_pending(self, pending: FloatArray) -> Predict:
        """Condition also on pending evaluations."""
        self._process, _ = self._process.with_fantasies(self._deep.features(pending))
        return self._predict

    def _predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self._process.predict(self._deep.features(X))


SPECS = (
    MethodSpec(
        name="fsbo",
        method=FSBO,
        summary="Deep kernel trained on all earlier tasks, then fine-tuned on this one.",
        source=(
            "Wistuba and Grabocka (2021), sections 3 and 4: batches of 50, scaled losses, initial "
            f"design of {START}; its network of {HIDDEN} tanh units is ours"
        ),
        min_history=1,
        changed_spaces=True,
        extras=(NEURAL,),
    ),
)
