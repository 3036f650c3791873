"""Feature maps: functions of a configuration with parameters, and their derivatives.

=======  =======  =================================================================================
symbol   shape    meaning
=======  =======  =================================================================================
m        scalar   configurations
p        scalar   inputs: features of a configuration and of its task, and padding
d        scalar   features that the map computes: its outputs
X        (m, p)   inputs
Phi      (m, d)   features, one row phi(x) a configuration
z        (size,)  all parameters of the map, one after the other
=======  =======  =================================================================================

A map is a small immutable object, because it is part of the key of a compiled program.

To *pull back* a gradient is to propagate it from the features back to the parameters, by the chain
rule: reverse-mode differentiation.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._networks import runtime
from hpobench_ordered.methods._networks.runtime import jax
from hpobench_ordered.methods._products import (
    add_transposed_product,
    backpropagate_tanh,
    product,
    tanh_in_place,
)

INPUT_MULTIPLE = 8
"""Inputs are padded with zeros to a multiple of this, so that spaces share compiled programs."""
BLOCK_SIZES = (64, 256, 1024)
"""Numbers of configurations whose features are computed together by JAX."""
CACHED_NUMBERS = 12_800
"""Numbers of a layer that are computed together: they stay in the cache, and memory is reused."""

PullBack = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Propagates a gradient back from the features, (m, d), to the parameters, (size,), summed over all
rows, and to the first inputs, (m, first)."""


class FeatureMap(Hashable, Protocol):
    """Interface of feature maps, which are hashable, so that programs can be compiled for them."""

    @property
    def input_count(self) -> int:
        """Number of inputs, p, including zeros that pad them to a multiple of 8."""
        ...

    @property
    def feature_count(self) -> int:
        """Number of features that the map computes, d."""
        ...

    def initial(self, rng: np.random.Generator, used_inputs: int) -> FloatArray:
        """Draw parameters z (size,) to start from.

        Args:
            rng: Source of randomness.
            used_inputs: Number of inputs that are not padding.
        """
        ...

    def __call__(self, z: Any, X: Any) -> Any:
        """Compute features (m, d) of inputs X (m, p) with parameters z (size,), all JAX's arrays.

        JAX calls it once, with placeholders for the arrays, to compile it.
        """
        ...


@dataclass(frozen=True, slots=True)
class Network:
    """Layers of tanh units, then linear outputs if any; what comes last are the features.

    Attributes:
        input_count: Number of inputs, padding included, p.
        hidden: Units of each layer.
        outputs: Number of linear outputs; None: the last layer's units are the features.
    """

    input_count: int
    hidden: tuple[int, ...]
    outputs: int | None = None

    @property
    def feature_count(self) -> int:
        """Number of features, d: the linear outputs or, without any, the last layer's units."""
        return self.hidden[-1] if self.outputs is None else self.outputs

    @property
    def size(self) -> int:
        """Number of parameters: weights, and a bias for each unit of each layer."""
        return sum((inputs + 1) * units for inputs, units in self._shapes())

    def initial(self, rng: np.random.Generator, used_inputs: int) -> FloatArray:
        """Draw normal weights and biases of all layers to start from, (size,).

        The variances of a unit's weights sum to 1, in the first layer to 2: with inputs in [-1, 1],
        features then vary about as quickly with a configuration as losses do. Biases have the
        variance 1, so that units bend at different inputs.

        Args:
            rng: Source of randomness.
            used_inputs: Number of inputs that are not padding; the weights of the others are 0.
        """
        parts = []
        for layer, (inputs, units) in enumerate(self._shapes()):
            is_first = layer == 0
            varying_inputs = used_inputs if is_first else inputs  # padding is always 0
            variance_of_unit = 2.0 if is_first else 1.0  # sum over the unit's weights
            variance_of_weight = variance_of_unit / varying_inputs
            sd = variance_of_weight**0.5
            weights = np.zeros((inputs, units))
            weights[:varying_inputs] = sd * rng.standard_normal((varying_inputs, units))
            biases = rng.standard_normal(units)
            parts += [weights.ravel(), biases]  # as `_split_parameters` expects them
        return np.concatenate(parts)

    def __call__(self, z: Any, X: Any) -> Any:
        """Compute features (m, d) of inputs X (m, p) with parameters z (size,): JAX's arrays.

        They are the outputs of the last layer. Each layer multiplies the outputs of the layer below
        by its weights and adds its biases; all but linear outputs then go through tanh.
        """
        outputs = X
        for layer, (weights, biases) in enumerate(self._split_parameters(z)):
            outputs = outputs @ weights + biases
            if self._has_tanh(layer):
                outputs = jax.numpy.tanh(outputs)
        return outputs

    def linearise(self, z: FloatArray, X: FloatArray, first: int) -> tuple[FloatArray, PullBack]:
        """Compute features, and make the function that propagates a gradient back from them.

        Both work on blocks of rows, whose layers stay in the cache.

        Args:
            z: Parameters, shape (size,).
            X: Inputs, shape (m, at most p); padding is added.
            first: Number of inputs, from the first, to which a gradient is propagated, too.

        Returns:
            Features (m, d), and the function.
        """
        if X.shape[1] < self.input_count:
            X = _pad(X, len(X), self.input_count)
        blocks = self._choose_blocks(len(X))
        layers_of_blocks = [self._compute_layers(z, X[block]) for block in blocks]
        features_of_blocks = [layers[-1] for layers in layers_of_blocks]
        no_features = np.empty((0, self.feature_count))  # numpy cannot concatenate an empty list
        Phi = np.concatenate([no_features, *features_of_blocks])

        def pull_back(grad_features: FloatArray) -> tuple[FloatArray, FloatArray]:
            """Propagate a gradient back from the features, (m, d), block by block of the m rows.

            Returns:
                The gradient with respect to the parameters z, (size,), and to the first inputs,
                (m, first).
            """
            grad_z = np.zeros(len(z))
            grad_inputs = np.empty((len(X), first))
            for block, layers in zip(blocks, layers_of_blocks, strict=True):
                # This adds the block's part to `grad_z`.
                grad_inputs[block] = self._add_pulled_back(
                    z, layers, grad_features[block], grad_z, first
                )
            return grad_z, grad_inputs

        return Phi, pull_back

    def _choose_blocks(self, m: int) -> list[slice]:
        """Divide m rows into blocks, of as many rows as the cache holds of the widest layer.

        Blocks have a multiple of 4 rows: only then do `add_transposed_product`'s sums over the rows
        of all blocks have one order, whatever the size of blocks.
        """
        fours_in_cache = CACHED_NUMBERS // max(self.hidden) // 4
        rows_per_block = max(4, fours_in_cache * 4)
        return [slice(begin, begin + rows_per_block) for begin in range(0, m, rows_per_block)]

    def _shapes(self) -> Iterator[tuple[int, int]]:
        """Yield the number of inputs and the number of units of each layer.

        The units of a layer are the inputs of the next one.
        """
        widths = [self.input_count, *self.hidden]
        if self.outputs is not None:
            widths.append(self.outputs)
        return pairwise(widths)

    def _has_tanh(self, layer: int) -> bool:
        """Whether a layer's outputs go through tanh: all but linear outputs, which come last."""
        return layer < len(self.hidden)

    def _split_parameters(self, z: Any) -> list[tuple[Any, Any]]:
        """Split parameters z (size,) into the weights and biases of each layer.

        They lie in z layer by layer, the weights before the biases.

        Returns:
            Weights (inputs, units) and biases (units,) of each layer. They are views of z: what is
            added to them is added to z.
        """
        layers = []
        begin = 0
        for inputs, units in self._shapes():
            weights_end = begin + inputs * units
            biases_end = weights_end + units
            weights = z[begin:weights_end].reshape(inputs, units)
            biases = z[weights_end:biases_end]
            layers.append((weights, biases))
            begin = biases_end
        return layers

    def _compute_layers(self, z: FloatArray, X: FloatArray) -> list[FloatArray]:
        """Compute all layers: first the inputs X (m, p), then each layer's outputs (m, units).

        The outputs of the last layer are the features (m, d).

        Args:
            z: Parameters, shape (size,).
            X: Inputs, shape (m, p).
        """
        layers = [X]
        for layer, (weights, biases) in enumerate(self._split_parameters(z)):
            outputs = product(layers[-1], weights)
            outputs += biases
            if self._has_tanh(layer):
                tanh_in_place(outputs)
            layers.append(outputs)
        return layers

    def _add_pulled_back(
        self,
        z: FloatArray,
        layers: Sequence[FloatArray],
        grad_features: FloatArray,
        grad_z: FloatArray,
        first: int,
    ) -> FloatArray:
        """Propagate the gradient of a block of rows back through the layers; add to `grad_z`.

        A layer's sums are its inputs times its weights plus its biases; its outputs are tanh of
        the sums or, of linear outputs, the sums themselves.

        Args:
            z: Parameters, shape (size,).
            layers: Inputs X (m, p), then the outputs of each layer, as from `_compute_layers`.
            grad_features: Gradient with respect to the features, shape (m, d).
            grad_z: Gradient with respect to z, to which this block's is added, shape (size,).
            first: Number of inputs, from the first, to which a gradient is propagated, too.

        Returns:
            The gradient with respect to the first inputs, shape (m, first).
        """
        parameters = self._split_parameters(z)
        grad_parameters = self._split_parameters(grad_z)  # views: additions to them change grad_z
        ones = np.ones((len(grad_features), 1))  # a product with them sums over the rows
        grad_outputs = grad_features
        for layer in reversed(range(len(parameters))):
            layer_inputs = layers[layer]
            layer_outputs = layers[layer + 1]
            if self._has_tanh(layer):
                grad_sums = backpropagate_tanh(grad_outputs, layer_outputs)
            else:
                grad_sums = grad_outputs

            # This product sums in the same order however the rows are divided into blocks.
            grad_weights, grad_biases = grad_parameters[layer]
            add_transposed_product(grad_weights, layer_inputs, grad_sums)
            add_transposed_product(grad_biases[None], ones, grad_sums)

            weights, _ = parameters[layer]
            if layer == 0:  # of the network's own inputs, only the first need a gradient
                weights = weights[:first]
            grad_outputs = product(grad_sums, weights.T.copy())  # of the layer below, or of X
        return grad_outputs


@dataclass(frozen=True, slots=True)
class RandomKitchenSinks:
    """Random Fourier features of a Gaussian kernel (Rahimi and Recht 2007, algorithm 1).

    phi(x) = sqrt(2 / d) cos(U x / sigma + b) with entries of U standard normal and of b uniform on
    [0, 2 pi]: phi(x)^T phi(x') is close to exp(-|x - x'|^2 / (2 sigma^2)). The parameters are log
    sigma, U and b; only sigma is learned.

    Attributes:
        input_count: Number of inputs, padding included, p.
        feature_count: Number of features, d.
    """

    input_count: int
    feature_count: int

    def initial(self, rng: np.random.Generator, used_inputs: int) -> FloatArray:
        """Draw parameters: log sigma, the frequencies U (p, d), and the phases b (d,), joined.

        sigma, the length scale, is the root mean square distance of two random points of the cube
        [-1, 1]^used_inputs: along each coordinate, the mean square distance is 2/3.

        Args:
            rng: Source of randomness.
            used_inputs: Number of inputs that are not padding; the frequencies of the others are 0.
        """
        U = np.zeros((self.input_count, self.feature_count))
        U[:used_inputs] = rng.standard_normal((used_inputs, self.feature_count))
        b = 2.0 * np.pi * rng.random(self.feature_count)
        mean_square_distance = used_inputs / 1.5  # 2/3 along each
        log_sigma = 0.5 * np.log(mean_square_distance)
        return np.concatenate([[log_sigma], U.ravel(), b])

    def __call__(self, z: Any, X: Any) -> Any:
        """Compute features sqrt(2 / d) cos(X U / sigma + b) of inputs, (m, d).

        Args:
            z: log sigma, frequencies U (p, d) and phases b (d,), joined. Only sigma is learned.
            X: Inputs, shape (m, p).
        """
        d = self.feature_count
        log_sigma = z[0]
        # The gradient with respect to U and b is 0, so that they stay as they were drawn.
        U_and_b = jax.lax.stop_gradient(z[1:])
        U = U_and_b[:-d].reshape(self.input_count, d)
        b = U_and_b[-d:]
        phases = X @ U * jax.numpy.exp(-log_sigma) + b
        return (2.0 / d) ** 0.5 * jax.numpy.cos(phases)


def pad_input_count(used_inputs: int) -> int:
    """Round a number of inputs up to a multiple of `INPUT_MULTIPLE`; 0 inputs become one multiple.

    Inputs are padded with zeros to this number, so that spaces share compiled programs.
    """
    return math.ceil(max(used_inputs, 1) / INPUT_MULTIPLE) * INPUT_MULTIPLE


def round_up_to_power_of_two(count: int) -> int:
    """Return the smallest power of two that is at least `count`; 0 for 0.

    JAX compiles a program for each shape: sizes are rounded up, so that there are few.
    """
    if count == 0:
        return 0
    exponent = (count - 1).bit_length()  # the smallest with 2^exponent >= count
    return 1 << exponent


def compute_features(phi: FeatureMap, z: FloatArray, X: FloatArray) -> FloatArray:
    """Compute the features (m, d) of inputs.

    Args:
        phi: The feature map, of p inputs.
        z: Its parameters, shape (size,).
        X: Inputs, shape (m, at most p); padding with zeros is added.
    """
    if isinstance(phi, Network):  # computed without JAX
        Phi, _ = linearise(phi, z, X)
        return Phi

    # JAX computes block by block, as it compiles a program for each number of rows.
    Phi = np.empty((len(X), phi.feature_count))
    for rows, padded_row_count in _iter_blocks(len(X)):
        padded_X = _pad(X[rows], padded_row_count, phi.input_count)
        padded_Phi = np.asarray(runtime.call(_trace_features, z, padded_X, static=(phi,)))
        row_count = len(Phi[rows])  # without the padding
        Phi[rows] = padded_Phi[:row_count]
    return Phi


def linearise(
    phi: FeatureMap, z: FloatArray, X: FloatArray, *, first: int = 0
) -> tuple[FloatArray, PullBack]:
    """Compute features, and make the function that propagates a gradient back from them.

    Args:
        phi: The feature map.
        z: Its parameters, shape (size,).
        X: Inputs, shape (m, at most p).
        first: Number of inputs, from the first, to which a gradient is propagated, too.

    Returns:
        Features (m, d), and a function. From the gradient of an objective with respect to the
        features, (m, d), it computes those with respect to z, (size,), and to the first inputs,
        (m, first).
    """
    if isinstance(phi, Network):
        return phi.linearise(z, X, first)

    def pull_back(grad_features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Propagate a gradient back from the features, (m, d), to z and the first inputs."""
        return _pull_back_by_jax(phi, z, X, grad_features, first)

    return compute_features(phi, z, X), pull_back


def _pull_back_by_jax(
    phi: FeatureMap, z: FloatArray, X: FloatArray, grad_features: FloatArray, first: int
) -> tuple[FloatArray, FloatArray]:
    """Propagate a gradient back from a map's features to its parameters and its first inputs.

    This is done block by block, padded to one of few numbers of rows: JAX compiles a program for
    each number.

    Args:
        phi: The feature map.
        z: Its parameters, shape (size,).
        X: Inputs, shape (m, at most p).
        grad_features: Gradient with respect to the features, shape (m, d).
        first: Number of inputs, from the first, to which the gradient is propagated.

    Returns:
        The gradient with respect to z, summed over all rows, (size,), and to the first inputs,
        (m, first).
    """
    grad_z = np.zeros(len(z))
    grad_inputs = np.empty((len(X), first))
    for rows, padded_row_count in _iter_blocks(len(X)):
        padded_X = _pad(X[rows], padded_row_count, phi.input_count)
        padded_grad_features = _pad(grad_features[rows], padded_row_count, phi.feature_count)
        grad_z_of_block, padded_grad_inputs = runtime.call(
            _trace_pull_back, z, padded_X, padded_grad_features, static=(phi, first)
        )
        grad_z += np.asarray(grad_z_of_block)  # padding has the gradient 0 and adds nothing
        row_count = len(grad_inputs[rows])  # without the padding
        grad_inputs[rows] = np.asarray(padded_grad_inputs)[:row_count]
    return grad_z, grad_inputs


def _iter_blocks(m: int) -> Iterator[tuple[slice, int]]:
    """Divide m rows into blocks, and choose to how many rows JAX pads each block.

    JAX compiles a program for each number of rows, so only the few `BLOCK_SIZES` are used: the
    smallest that holds all remaining rows, or else the largest.

    Yields:
        The rows of a block, and their number with padding.
    """
    begin = 0
    while begin < m:
        remaining = m - begin
        sufficient_sizes = [size for size in BLOCK_SIZES if size >= remaining]
        size = sufficient_sizes[0] if sufficient_sizes else BLOCK_SIZES[-1]
        yield slice(begin, begin + size), size
        begin += size


def _pad(matrix: FloatArray, row_count: int, column_count: int) -> FloatArray:
    """Append zeros to the rows and columns of a matrix, to the shape (row_count, column_count)."""
    padded = np.zeros((row_count, column_count))
    padded[: len(matrix), : matrix.shape[1]] = matrix
    return padded


def _trace_features(phi: FeatureMap, z: Any, X: Any) -> Any:
    """Compute features (m, d) of inputs X (m, p) with parameters z (size,), for JAX to compile.

    Compiled programs are found again by the function object. So this function is defined once, at
    the top of the module, and not anew in each call.
    """
    return phi(z, X)


def _trace_pull_back(phi: FeatureMap, first: int, z: Any, X: Any, grad_features: Any) -> Any:
    """Propagate a gradient back from the features (m, d) to z (size,) and the first inputs of X.

    JAX calls it once, with placeholders for the arrays, to compile it.

    Args:
        phi: The feature map.
        first: Number of inputs, from the first, to which the gradient is propagated.
        z: Parameters of the map.
        X: Inputs, shape (m, p).
        grad_features: Gradient with respect to the features.

    Returns:
        The gradients with respect to z, and to the first inputs, (m, first).
    """

    def compute_from(z: Any, first_inputs: Any) -> Any:
        """Compute features as a function of the parameters z and the first inputs of X alone."""
        other_inputs = X[:, first:]
        return phi(z, jax.numpy.concatenate([first_inputs, other_inputs], axis=1))

    # `vjp` gives the features, and the function that propagates a gradient back from them.
    _, pull_back = jax.vjp(compute_from, z, X[:, :first])
    return pull_back(grad_features)
