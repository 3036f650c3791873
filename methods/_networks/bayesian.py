"""A Bayesian neural network for regression: prior, posterior samples, prediction.

=========  ============  ==========================================================================
symbol     shape         meaning
=========  ============  ==========================================================================
n, m       scalars       evaluations, configurations to predict
p          scalar        inputs, padding included
X          (n, p)        inputs, in [0, 1]
y          (n,)          standardised losses
z          (D,)          parameters of the network, then that of the noise: all standard normal
W, c       (i, o), (o,)  weights and biases of a layer of o units: W = s z / sqrt(i), c = z
f(x)       scalar        output of the network
nu         scalar        log of the noise variance: NOISE_MEAN + NOISE_SD z
=========  ============  ==========================================================================

    U(z) = sum_i (y_i - f(x_i))^2 / (2 exp(nu)) + n nu / 2 + |z|^2 / 2

Springenberg et al. (2016), section 3: the noise is learned, and the prediction is the mean and the
variance of f over samples of the posterior. All parameters have the same prior, a standard normal
distribution, and the weights are scaled instead: as the paper's sampler works elementwise, this
suits it, and functions vary as much whatever the width of the network (Neal 1996, chapter 2).
"""

import math
from itertools import pairwise

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.methods._networks.sghmc import Chain, Sampling, sample
from hpobench_ordered.methods._products import (
    add_transposed_product,
    backpropagate_tanh,
    product,
    tanh_in_place,
)
from hpobench_ordered.runtime.compiling import compiled

HIDDEN = (50, 50, 50)
"""Units of tanh layers."""
FIRST, INNER, LAST = 0.5, 5.0, 1.0
"""s of the first layer, of those after it and of the output."""
NOISE_MEAN, NOISE_SD = -6.0, 1.0
"""Mean and standard deviation of nu: losses of variance 1 have hardly any noise."""
SAMPLING = Sampling(step_size=0.03, friction=0.05, batch=32, samples=20, thinning=20)
"""With the step size of the paper's code, 0.01, so few steps would hardly leave the start."""
FIRST_BURN_IN, BURN_IN = 6, 1
"""Rounds of 400 steps before samples are taken, of the first fit and of later ones."""
INPUT_MULTIPLE = 8
"""Inputs are padded with zeros to a multiple of this."""
BLOCK = 256
"""Configurations that are predicted together."""
WIDTH = 12.0**0.5
"""Factor that gives numbers spread evenly over [0, 1] a variance of 1."""


class BayesianNetwork:
    """A network whose posterior is sampled by one chain, which later fits continue."""

    def __init__(self, inputs: int, rng: np.random.Generator) -> None:
        self._rng, self._inputs = rng, inputs
        p = -(-max(inputs, 1) // INPUT_MULTIPLE) * INPUT_MULTIPLE
        self._widths = np.array([p, *HIDDEN, 1])
        self._chain: Chain | None = None

    def fit(self, X: FloatArray, y: FloatArray) -> None:
        """Sample the posterior.

        Args:
            X: Inputs, shape (n, inputs).
            y: Standardised losses, shape (n,).
        """
        first = self._chain is None
        if self._chain is None:
            size = sum((i + 1) * o for i, o in pairwise(self._widths.tolist())) + 1
            self._chain = Chain.at(self._rng.standard_normal(size))
        self._chain, self._samples = sample(
            _gradient,
            self._chain,
            (self._widths, self._scaled(X), y),
            len(y),
            self._rng,
            sampling=SAMPLING,
            burn_in=FIRST_BURN_IN if first else BURN_IN,
        )

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean (m,) and standard deviation (m,) of the function at inputs (m, inputs)."""
        X = self._scaled(X)
        outputs = np.stack([_outputs(z, self._widths, X) for z in self._samples])
        return outputs.mean(axis=0), outputs.std(axis=0)

    def _scaled(self, X: FloatArray) -> FloatArray:
        """Inputs (m, p) of the first layer: of mean 0 and variance 1 over [0, 1], and padding."""
        scaled = np.zeros((len(X), self._widths[0]))
        scaled[:, : self._inputs] = (X - 0.5) * WIDTH * (FIRST / self._inputs**0.5)
        return scaled


@compiled
def _scale(widths: IntArray, layer: int) -> float:
    """Factor of a layer's z in its weights; that of the first layer is in the inputs."""
    s = INNER if layer < len(widths) - 2 else LAST
    return s / widths[layer] ** 0.5 if layer else 1.0


@compiled
def _layers(z: FloatArray, widths: IntArray, X: FloatArray) -> list[FloatArray]:
    """Inputs of each layer and, last, the output, each (m, i), at scaled inputs (m, p)."""
    inputs, begin = [X], 0
    for layer in range(len(widths) - 1):
        i, o = widths[layer], widths[layer + 1]
        outputs = product(
            inputs[layer], _scale(widths, layer) * z[begin : begin + i * o].reshape(i, o)
        )
        begin += (i + 1) * o
        outputs += z[begin - o : begin]
        if layer < len(widths) - 2:
            tanh_in_place(outputs)
        inputs.append(outputs)
    return inputs


@compiled
def _outputs(z: FloatArray, widths: IntArray, X: FloatArray) -> FloatArray:
    """Compute f (m,) at scaled inputs (m, p), in blocks that stay in the cache."""
    f = np.empty(len(X))
    for begin in range(0, len(X), BLOCK):
        rows = X[begin : begin + BLOCK]
        f[begin : begin + BLOCK] = _layers(z, widths, rows)[-1][:, 0]
    return f


@compiled
def _gradient(
    z: FloatArray, widths: IntArray, X: FloatArray, y: FloatArray, rows: IntArray
) -> FloatArray:
    """Gradient (D,) of the energy, from a mini-batch of the scaled inputs (n, p)."""
    layers, n = _layers(z, widths, X[rows]), len(y)
    errors, weight = layers[-1] - y[rows].reshape(-1, 1), n / len(rows)
    gradient, nu = z.copy(), NOISE_MEAN + NOISE_SD * z[-1]
    precision = math.exp(-nu)
    gradient[-1] += NOISE_SD * 0.5 * (n - weight * np.sum(errors * errors) * precision)
    slopes, end = weight * precision * errors, len(z) - 1
    for layer in range(len(widths) - 2, -1, -1):
        i, o = widths[layer], widths[layer + 1]
        scale, begin = _scale(widths, layer), end - (i + 1) * o
        by_weights = np.zeros((i, o))
        add_transposed_product(by_weights, layers[layer], slopes)
        gradient[begin : end - o] += scale * by_weights.reshape(-1)
        gradient[end - o : end] += slopes.sum(axis=0)
        if layer:
            weights = scale * z[begin : end - o].reshape(i, o).T.copy()
            slopes = backpropagate_tanh(product(slopes, weights), layers[layer])
        end = begin
    return gradient
