"""A Bayesian neural network for regression: prior, posterior samples, prediction.

=========  ============  ==========================================================================
symbol     shape         meaning
=========  ============  ==========================================================================
n, m       scalars       evaluations, configurations to predict
p          scalar        inputs, padding included
D          scalar        parameters
widths     (layers + 1,) inputs of each layer, then outputs of the last: p, 50, 50, 50, 1
X          (n, p)        inputs, in [0, 1]
y          (n,)          standardised losses
z          (D,)          parameters of the network, then that of the noise: all standard normal
W, c       (i, o), (o,)  weights and biases of a layer of i inputs and o units: W = s z / sqrt(i),
                         c = z, where z are the layer's parameters and s is a scale of the layer
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
FIRST_SCALE, INNER_SCALE, LAST_SCALE = 0.5, 5.0, 1.0
"""s of the first layer, of those after it and of the output."""
NOISE_MEAN, NOISE_SD = -6.0, 1.0
"""Mean and standard deviation of nu: losses of variance 1 have hardly any noise."""
SAMPLING = Sampling(step_size=0.03, friction=0.05, batch=32, samples=20, thinning=20)
"""With the step size of the paper's code, 0.01, so few steps would hardly leave the start."""
FIRST_BURN_IN, LATER_BURN_IN = 6, 1
"""Rounds of 400 steps before samples are taken, of the first fit and of later ones."""
INPUT_MULTIPLE = 8
"""Inputs are padded with zeros to a multiple of this."""
BLOCK = 256
"""Number of configurations that are predicted together."""
UNIFORM_SCALE = 12.0**0.5
"""Factor that gives numbers spread evenly over [0, 1] a variance of 1."""


class BayesianNetwork:
    """A network whose posterior is sampled by one chain, which later fits continue."""

    def __init__(self, input_count: int, rng: np.random.Generator) -> None:
        self._rng, self._input_count = rng, input_count
        padded_count = math.ceil(max(input_count, 1) / INPUT_MULTIPLE) * INPUT_MULTIPLE
        self._widths = np.array([padded_count, *HIDDEN, 1])
        self._chain: Chain | None = None

    def fit(self, X: FloatArray, y: FloatArray) -> None:
        """Sample the posterior.

        Args:
            X: Inputs in [0, 1], shape (n, inputs without padding).
            y: Standardised losses, shape (n,).
        """
        burn_in = LATER_BURN_IN
        if self._chain is None:
            burn_in = FIRST_BURN_IN
            layer_sizes = [(i + 1) * o for i, o in pairwise(self._widths.tolist())]
            size = sum(layer_sizes) + 1  # and the noise
            self._chain = Chain.start(self._rng.standard_normal(size))
        self._chain, self._samples = sample(
            _gradient,
            self._chain,
            (self._widths, self._scale_inputs(X), y),
            len(y),
            self._rng,
            sampling=SAMPLING,
            burn_in=burn_in,
        )

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean (m,) and standard deviation (m,) of f at inputs (m, inputs without padding)."""
        scaled = self._scale_inputs(X)
        outputs = np.stack([_outputs(z, self._widths, scaled) for z in self._samples])
        return outputs.mean(axis=0), outputs.std(axis=0)

    def _scale_inputs(self, X: FloatArray) -> FloatArray:
        """Scale inputs to mean 0 and variance 1 over [0, 1], and pad them, (m, p).

        They are also multiplied by the factor of the first layer's z in its weights.
        """
        weight_scale = FIRST_SCALE / self._input_count**0.5
        scaled = np.zeros((len(X), self._widths[0]))
        scaled[:, : self._input_count] = (X - 0.5) * UNIFORM_SCALE * weight_scale
        return scaled


@compiled
def _weight_scale(widths: IntArray, layer: int) -> float:
    """Compute the factor by which a layer's parameters z are multiplied to give its weights.

    It is s / sqrt(i) for a layer of i inputs. For the first layer it is 1, because `_scale_inputs`
    multiplies the inputs by its factor, once for all steps.
    """
    if layer == 0:
        return 1.0
    s = INNER_SCALE if layer < len(widths) - 2 else LAST_SCALE
    scale: float = s / widths[layer] ** 0.5
    return scale


@compiled
def _compute_layers(z: FloatArray, widths: IntArray, X: FloatArray) -> list[FloatArray]:
    """Compute the inputs of each layer and, last, the output, each (m, i).

    Args:
        z: Parameters, shape (D,).
        widths: Inputs of each layer, then outputs of the last.
        X: Scaled inputs, shape (m, p).
    """
    layers, begin = [X], 0
    for layer in range(len(widths) - 1):
        i, o = widths[layer], widths[layer + 1]
        weights_end = begin + i * o
        biases_end = weights_end + o
        weights = _weight_scale(widths, layer) * z[begin:weights_end].reshape(i, o)
        outputs = product(layers[layer], weights)
        outputs += z[weights_end:biases_end]
        if layer < len(widths) - 2:
            tanh_in_place(outputs)
        layers.append(outputs)
        begin = biases_end
    return layers


@compiled
def _outputs(z: FloatArray, widths: IntArray, X: FloatArray) -> FloatArray:
    """Compute the network's output (m,) at scaled inputs X (m, p), for parameters z (D,).

    Inputs are taken in blocks that stay in the cache. `widths` has the inputs of each layer, then
    the outputs of the last.
    """
    f = np.empty(len(X))
    for begin in range(0, len(X), BLOCK):
        rows = X[begin : begin + BLOCK]
        f[begin : begin + BLOCK] = _compute_layers(z, widths, rows)[-1][:, 0]
    return f


@compiled
def _gradient(
    z: FloatArray, widths: IntArray, X: FloatArray, y: FloatArray, rows: IntArray
) -> FloatArray:
    """Compute the gradient (D,) of the energy, estimated on a mini-batch.

    The energy is minus the log posterior of the parameters z, up to a constant: for the errors of
    n evaluations and the log noise variance nu it is

        sum of squared errors / (2 exp(nu)) + n nu / 2 + |z|^2 / 2.

    Args:
        z: Parameters, shape (D,).
        widths: Inputs of each layer, then outputs of the last.
        X: Scaled inputs of all evaluations, shape (n, p).
        y: Their losses, shape (n,).
        rows: Evaluations of the mini-batch.
    """
    layers = _compute_layers(z, widths, X[rows])
    n = len(y)
    errors = layers[-1] - y[rows].reshape(-1, 1)
    batch_weight = n / len(rows)
    gradient = z.copy()  # of the prior, |z|^2 / 2

    nu = NOISE_MEAN + NOISE_SD * z[-1]  # the last parameter is that of the noise
    precision = math.exp(-nu)
    scaled_squares = batch_weight * np.sum(errors * errors) * precision
    gradient[-1] += NOISE_SD * 0.5 * (n - scaled_squares)

    # Backwards through the layers; z has the weights and then the biases of one after the other.
    slopes = batch_weight * precision * errors  # by the outputs of the layer
    end = len(z) - 1
    for layer in range(len(widths) - 2, -1, -1):
        i, o = widths[layer], widths[layer + 1]
        begin = end - (i + 1) * o
        weights_end = end - o
        scale = _weight_scale(widths, layer)
        by_weights = np.zeros((i, o))
        add_transposed_product(by_weights, layers[layer], slopes)
        gradient[begin:weights_end] += scale * by_weights.reshape(-1)
        gradient[weights_end:end] += slopes.sum(axis=0)
        if layer:  # derivatives by the inputs of the first one are not needed
            transposed_weights = scale * z[begin:weights_end].reshape(i, o).T.copy()
            by_outputs = product(slopes, transposed_weights)
            slopes = backpropagate_tanh(by_outputs, layers[layer])
        end = begin
    return gradient
