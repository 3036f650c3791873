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
"""Scale s of the weights of the first layer, of those after it and of the output."""
NOISE_MEAN, NOISE_SD = -6.0, 1.0
"""Mean and standard deviation of nu: losses of variance 1 have hardly any noise."""
SAMPLING = Sampling(step_size=0.03, friction=0.05, batch=32, samples=20, thinning=20)
"""With the step size of the paper's code, 0.01, so few steps would hardly leave the start."""
FIRST_BURN_IN, LATER_BURN_IN = 6, 1
"""Rounds of 400 steps before samples are taken, of the first fit and of later ones."""
INPUT_MULTIPLE = 8
"""Inputs are padded with zeros to a multiple of this."""
INPUTS_PER_BLOCK = 256
"""Number of configurations that are predicted together: their layers stay in the cache."""
UNIFORM_SCALE = 12.0**0.5
"""Factor that gives numbers spread evenly over [0, 1] a variance of 1."""


class BayesianNetwork:
    """A network whose posterior is sampled by one chain, which later fits continue.

    Args:
        input_count: Number of inputs without padding.
        rng: Source of all randomness.
    """

    def __init__(self, input_count: int, rng: np.random.Generator) -> None:
        """Start without a chain; the first fit starts it."""
        self._rng = rng
        self._input_count = input_count
        # Inputs are padded with zeros to a multiple of `INPUT_MULTIPLE`.
        padded_count = math.ceil(max(input_count, 1) / INPUT_MULTIPLE) * INPUT_MULTIPLE
        # Inputs of each layer and, last, outputs of the last one.
        self._widths = np.array([padded_count, *HIDDEN, 1])
        # State of the chain after the last fit; None before the first fit.
        self._chain: Chain | None = None
        # Samples of the parameters from the last fit, (samples, D).
        self._samples: FloatArray = np.empty((0, self._count_parameters()))

    def _count_parameters(self) -> int:
        """Count the parameters, D: weights and biases of all layers, and one of the noise."""
        widths: list[int] = self._widths.tolist()
        # A weight for each pair of an input and a unit, and a bias for each unit.
        layer_sizes = [(inputs + 1) * units for inputs, units in pairwise(widths)]
        return sum(layer_sizes) + 1

    def fit(self, X: FloatArray, y: FloatArray) -> None:
        """Sample the posterior of the parameters; the samples are kept for `predict`.

        The first fit starts a chain of samples at a draw from the prior, which is standard normal.
        Later fits continue it, so that few steps are needed before samples are taken.

        Args:
            X: Inputs in [0, 1], shape (n, inputs without padding).
            y: Standardised losses, shape (n,).
        """
        chain = self._chain
        burn_in = LATER_BURN_IN  # rounds of steps before samples are taken
        if chain is None:  # the first fit
            burn_in = FIRST_BURN_IN
            position = self._rng.standard_normal(self._count_parameters())
            chain = Chain.start(position)

        # What `_compute_gradient` needs besides the parameters and the rows of a mini-batch.
        data = (self._widths, self._scale_inputs(X), y)
        self._chain, self._samples = sample(
            _compute_gradient,
            chain,
            data,
            len(y),
            self._rng,
            sampling=SAMPLING,
            burn_in=burn_in,
        )

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict losses without noise: mean and standard deviation over the posterior's samples.

        The samples of the network's parameters come from the last fit.

        Args:
            X: Inputs in [0, 1], shape (m, inputs without padding).

        Returns:
            Mean (m,) and standard deviation (m,).
        """
        scaled_X = self._scale_inputs(X)
        outputs_of_samples = []
        for parameters in self._samples:
            outputs_of_samples.append(_compute_outputs(parameters, self._widths, scaled_X))
        outputs = np.stack(outputs_of_samples)  # (samples, m)
        return outputs.mean(axis=0), outputs.std(axis=0)

    def _scale_inputs(self, X: FloatArray) -> FloatArray:
        """Standardise inputs, scale them for the first layer, and pad them with zeros, (m, p).

        The weights of a layer are its parameters times a factor. For the first layer the inputs are
        multiplied by the factor instead: here once, instead of at every step of the chain.

        Args:
            X: Inputs in [0, 1], shape (m, inputs without padding).
        """
        weight_scale = FIRST_SCALE / self._input_count**0.5
        padded_count = self._widths[0]
        scaled = np.zeros((len(X), padded_count))
        # Inputs that are spread evenly over [0, 1] get mean 0 and variance 1 by (X - 1/2) sqrt(12).
        scaled[:, : self._input_count] = (X - 0.5) * UNIFORM_SCALE * weight_scale
        return scaled


@compiled
def _weight_scale(widths: IntArray, layer: int) -> float:
    """Compute the factor by which a layer's parameters are multiplied to give its weights.

    It is `INNER_SCALE` or, for the output, `LAST_SCALE`, divided by the square root of the layer's
    number of inputs. For the first layer it is 1: `_scale_inputs` has already multiplied the inputs
    by the factor.

    Args:
        widths: Inputs of each layer and, last, outputs of the last one.
        layer: Index of the layer.
    """
    if layer == 0:
        return 1.0
    is_last = layer == len(widths) - 2  # as `widths` has one number more than there are layers
    scale = LAST_SCALE if is_last else INNER_SCALE
    input_count = widths[layer]
    factor: float = scale / input_count**0.5
    return factor


@compiled
def _compute_layers(z: FloatArray, widths: IntArray, X: FloatArray) -> list[FloatArray]:
    """Compute all layers: the inputs X, the outputs of each layer (m, units), the output (m, 1).

    Args:
        z: Parameters, shape (D,): weights, then biases of one layer after the other.
        widths: Inputs of each layer and, last, outputs of the last one.
        X: Inputs as from `_scale_inputs`, shape (m, p).
    """
    layers = [X]
    begin = 0  # of the layer's parameters in z
    for layer in range(len(widths) - 1):
        inputs, units = widths[layer], widths[layer + 1]
        weights_end = begin + inputs * units
        biases_end = weights_end + units
        # The prior of the parameters z is standard normal; the weights are scaled instead.
        weights = _weight_scale(widths, layer) * z[begin:weights_end].reshape(inputs, units)
        outputs = product(layers[layer], weights)
        outputs += z[weights_end:biases_end]
        is_last = layer == len(widths) - 2
        if not is_last:  # the network's output is linear
            tanh_in_place(outputs)
        layers.append(outputs)
        begin = biases_end
    return layers


@compiled
def _compute_outputs(z: FloatArray, widths: IntArray, X: FloatArray) -> FloatArray:
    """Compute the network's output (m,) at m configurations, in blocks that stay in the cache.

    Args:
        z: Parameters, shape (D,).
        widths: Inputs of each layer and, last, outputs of the last one.
        X: Inputs as from `_scale_inputs`, shape (m, p).
    """
    outputs = np.empty(len(X))
    for begin in range(0, len(X), INPUTS_PER_BLOCK):
        block = X[begin : begin + INPUTS_PER_BLOCK]
        last_layer = _compute_layers(z, widths, block)[-1]  # of one unit, shape (rows, 1)
        outputs[begin : begin + INPUTS_PER_BLOCK] = last_layer[:, 0]
    return outputs


@compiled
def _compute_gradient(
    z: FloatArray, widths: IntArray, X: FloatArray, y: FloatArray, rows: IntArray
) -> FloatArray:
    """Compute the gradient (D,) of the energy, estimated on a mini-batch.

    The energy is minus the log posterior of the parameters z, up to a constant: for the errors of
    n evaluations and the log noise variance nu it is

        sum of squared errors / (2 exp(nu)) + n nu / 2 + |z|^2 / 2.

    Args:
        z: Parameters, shape (D,): weights, then biases of one layer after the other, and last that
            of the noise.
        widths: Inputs of each layer and, last, outputs of the last one.
        X: Inputs of all evaluations as from `_scale_inputs`, shape (n, p).
        y: Their losses, shape (n,).
        rows: Evaluations of the mini-batch.
    """
    layers = _compute_layers(z, widths, X[rows])
    n = len(y)
    errors = layers[-1] - y[rows].reshape(-1, 1)
    batch_weight = n / len(rows)  # the mini-batch stands for all evaluations
    gradient = z.copy()  # of the prior, |z|^2 / 2

    nu = NOISE_MEAN + NOISE_SD * z[-1]  # the last parameter belongs to the noise
    precision = math.exp(-nu)
    scaled_squares = batch_weight * np.sum(errors * errors) * precision
    # d energy / d nu is (n - scaled squares) / 2.
    gradient[-1] += NOISE_SD * 0.5 * (n - scaled_squares)

    # Backwards through the layers.
    # The gradient with respect to a layer's sums, before tanh; the last layer has no tanh.
    grad_sums = batch_weight * precision * errors
    end = len(z) - 1
    for layer in range(len(widths) - 2, -1, -1):
        inputs, units = widths[layer], widths[layer + 1]
        begin = end - (inputs + 1) * units  # of the layer's parameters in z
        weights_end = end - units
        scale = _weight_scale(widths, layer)
        grad_weights = np.zeros((inputs, units))
        add_transposed_product(grad_weights, layers[layer], grad_sums)
        gradient[begin:weights_end] += scale * grad_weights.reshape(-1)
        gradient[weights_end:end] += grad_sums.sum(axis=0)
        if layer > 0:  # the network's own inputs need no gradient
            transposed_weights = scale * z[begin:weights_end].reshape(inputs, units).T.copy()
            grad_inputs = product(grad_sums, transposed_weights)
            grad_sums = backpropagate_tanh(grad_inputs, layers[layer])
        end = begin
    return gradient
