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

To *pull back* derivatives is to compute those of a function of the features by the parameters, from
those by the features: reverse-mode differentiation.
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
"""Function from derivatives by the features, (m, d), to those by the parameters, (size,), summed
over all rows, and by the first inputs, (m, first)."""


class FeatureMap(Hashable, Protocol):
    """Interface of feature maps, which are hashable, so that programs can be compiled for them."""

    @property
    def input_count(self) -> int:
        """Number of inputs, padding included, p."""
        ...

    @property
    def feature_count(self) -> int:
        """Number of features, d."""
        ...

    def initial(self, rng: np.random.Generator, used_inputs: int) -> FloatArray:
        """Draw parameters (size,), given the number of inputs without padding."""
        ...

    def __call__(self, z: Any, X: Any) -> Any:
        """Compute features (m, d) of inputs X (m, p), as JAX traces it."""
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
        """Number of features, d."""
        return self.hidden[-1] if self.outputs is None else self.outputs

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum((rows + 1) * columns for rows, columns in self._shapes())

    def initial(self, rng: np.random.Generator, used_inputs: int) -> FloatArray:
        """Draw weights of variance 1 / in, 2 / in of the first layer, and biases of 1, (size,).

        With inputs in [-1, 1], units then bend at different inputs, and their sums vary about as
        quickly as losses do. With biases 0 all features would be odd functions.

        Args:
            rng: Source of randomness.
            used_inputs: Number of inputs that are not padding; the weights of the others are 0.
        """
        parts = []
        for layer, (rows, columns) in enumerate(self._shapes()):
            is_first = layer == 0
            used_rows = used_inputs if is_first else rows
            sd = ((2.0 if is_first else 1.0) / used_rows) ** 0.5
            weights = np.zeros((rows, columns))
            weights[:used_rows] = sd * rng.standard_normal((used_rows, columns))
            biases = rng.standard_normal(columns)
            parts += [weights.ravel(), biases]
        return np.concatenate(parts)

    def __call__(self, z: Any, X: Any) -> Any:
        """Compute features (m, d) of inputs X (m, p)."""
        for layer, (weights, biases) in enumerate(self._split_parameters(z)):
            X = X @ weights + biases
            if self._has_tanh(layer):
                X = jax.numpy.tanh(X)
        return X

    def linearise(self, z: FloatArray, X: FloatArray, first: int) -> tuple[FloatArray, PullBack]:
        """Compute features (m, d), and make a function that pulls back derivatives.

        Both work on blocks of rows, whose layers stay in the cache.

        Args:
            z: Parameters, shape (size,).
            X: Inputs, shape (m, at most p).
            first: Number of inputs, from the first, to propagate derivatives to.
        """
        if X.shape[1] < self.input_count:
            X = _pad(X, len(X), self.input_count)
        rows_per_block = max(4, CACHED_NUMBERS // max(self.hidden) // 4 * 4)
        blocks = []
        for begin in range(0, len(X), rows_per_block):
            blocks.append(slice(begin, begin + rows_per_block))
        layers_of_blocks = [self._compute_layers(z, X[block]) for block in blocks]
        no_features = np.empty((0, self.feature_count))
        Phi = np.concatenate([no_features, *(layers[-1] for layers in layers_of_blocks)])

        def pull_back(slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
            """Propagate the derivatives of a function by the features, (m, d), backwards.

            Returns:
                Its derivatives by the parameters z, (size,), and by the first inputs, (m, first).
            """
            by_z = np.zeros(len(z))
            by_inputs = np.empty((len(X), first))
            for block, layers in zip(blocks, layers_of_blocks, strict=True):
                by_inputs[block] = self._add_pulled_back(z, layers, slopes[block], by_z, first)
            return by_z, by_inputs

        return Phi, pull_back

    def _shapes(self) -> Iterator[tuple[int, int]]:
        """Yield the number of inputs and of outputs of each layer."""
        widths = [self.input_count, *self.hidden]
        if self.outputs is not None:
            widths.append(self.outputs)
        return pairwise(widths)

    def _has_tanh(self, layer: int) -> bool:
        """Whether the outputs of a layer go through tanh."""
        return layer < len(self.hidden)

    def _split_parameters(self, z: Any) -> list[tuple[Any, Any]]:
        """Split z into weights (in, out) and biases (out,) of each layer, which are views."""
        parts = []
        begin = 0
        for rows, columns in self._shapes():
            weights_end = begin + rows * columns
            biases_end = weights_end + columns
            weights = z[begin:weights_end].reshape(rows, columns)
            parts.append((weights, z[weights_end:biases_end]))
            begin = biases_end
        return parts

    def _compute_layers(self, z: FloatArray, X: FloatArray) -> list[FloatArray]:
        """Compute the outputs of each layer, after the inputs X (m, p); the last are Phi."""
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
        slopes: FloatArray,
        by_z: FloatArray,
        first: int,
    ) -> FloatArray:
        """Propagate derivatives by the features of a block of rows back through the layers.

        Args:
            z: Parameters, shape (size,).
            layers: Inputs and outputs of all layers, as from `_compute_layers`.
            slopes: Derivatives by the features, shape (m, d).
            by_z: Derivatives by z, to which those of this block are added, shape (size,).
            first: Number of inputs, from the first, to propagate to.

        Returns:
            Derivatives by the first inputs, shape (m, first).
        """
        parameters = self._split_parameters(z)
        by_parameters = self._split_parameters(by_z)
        for layer in reversed(range(len(parameters))):
            if self._has_tanh(layer):
                slopes = backpropagate_tanh(slopes, layers[layer + 1])
            by_weights, by_biases = by_parameters[layer]
            # Sums over the rows, added to the views by_weights and by_biases of by_z. This product
            # sums in the same order whatever the blocks.
            add_transposed_product(by_weights, layers[layer], slopes)
            add_transposed_product(by_biases[None], np.ones((len(slopes), 1)), slopes)
            weights, _ = parameters[layer]
            if layer == 0:
                weights = weights[:first]
            slopes = product(slopes, weights.T.copy())
        return slopes


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
        """Draw parameters (1 + p d + d,); sigma is a typical distance of points in [-1, 1]^p.

        Args:
            rng: Source of randomness.
            used_inputs: Number of inputs that are not padding; the frequencies of the others are 0.
        """
        U = np.zeros((self.input_count, self.feature_count))
        U[:used_inputs] = rng.standard_normal((used_inputs, self.feature_count))
        b = 2.0 * np.pi * rng.random(self.feature_count)
        log_sigma = 0.5 * np.log(used_inputs / 1.5)
        return np.concatenate([[log_sigma], U.ravel(), b])

    def __call__(self, z: Any, X: Any) -> Any:
        """Compute features (m, d) of inputs X (m, p)."""
        log_sigma = z[0]
        not_learned = jax.lax.stop_gradient(z[1:])
        U = not_learned[: -self.feature_count].reshape(self.input_count, self.feature_count)
        b = not_learned[-self.feature_count :]
        phases = X @ U * jax.numpy.exp(-log_sigma) + b
        return (2.0 / self.feature_count) ** 0.5 * jax.numpy.cos(phases)


def pad_input_count(used_inputs: int) -> int:
    """Return the number of inputs with padding."""
    return math.ceil(max(used_inputs, 1) / INPUT_MULTIPLE) * INPUT_MULTIPLE


def round_up_to_power_of_two(count: int) -> int:
    """Return the next power of two, 0 for 0: shapes are rounded up, to compile few programs."""
    return 1 << (count - 1).bit_length() if count else 0


def compute_features(phi: FeatureMap, z: FloatArray, X: FloatArray) -> FloatArray:
    """Compute features (m, d) of inputs X (m, at most p), to which the padding is added."""
    if isinstance(phi, Network):
        Phi, _ = linearise(phi, z, X)
        return Phi
    Phi = np.empty((len(X), phi.feature_count))
    for rows, padded_size in _iter_blocks(len(X)):
        block = _pad(X[rows], padded_size, phi.input_count)
        padded_Phi = np.asarray(runtime.call(_trace_features, z, block, static=(phi,)))
        Phi[rows] = padded_Phi[: len(Phi[rows])]  # JAX would compile a program for each length
    return Phi


def linearise(
    phi: FeatureMap, z: FloatArray, X: FloatArray, *, first: int = 0
) -> tuple[FloatArray, PullBack]:
    """Compute features (m, d), and make a function that pulls back derivatives.

    Args:
        phi: The feature map.
        z: Its parameters, shape (size,).
        X: Inputs, shape (m, at most p).
        first: Number of inputs, from the first, to propagate derivatives to.
    """
    if isinstance(phi, Network):
        return phi.linearise(z, X, first)
    return compute_features(phi, z, X), lambda slopes: _pull_back_by_jax(phi, z, X, slopes, first)


def _pull_back_by_jax(
    phi: FeatureMap, z: FloatArray, X: FloatArray, slopes: FloatArray, first: int
) -> tuple[FloatArray, FloatArray]:
    """Compute derivatives by the map's parameters and inputs from those by its features.

    JAX computes them block by block, as it would compile a program for each number of rows.

    Args:
        phi: The feature map.
        z: Its parameters, shape (size,).
        X: Inputs, shape (m, at most p).
        slopes: Derivatives by the features, shape (m, d).
        first: Number of inputs, from the first, to propagate derivatives to.

    Returns:
        Derivatives by z, summed over all rows, (size,), and by the first inputs, (m, first).
    """
    by_z, by_inputs = np.zeros(len(z)), np.empty((len(X), first))
    for rows, padded_size in _iter_blocks(len(X)):
        block = _pad(X[rows], padded_size, phi.input_count)
        block_slopes = _pad(slopes[rows], padded_size, phi.feature_count)
        by_z_of_block, by_inputs_of_block = runtime.call(
            _trace_pull_back, z, block, block_slopes, static=(phi, first)
        )
        by_z += np.asarray(by_z_of_block)
        by_inputs[rows] = np.asarray(by_inputs_of_block)[: len(by_inputs[rows])]
    return by_z, by_inputs


def _iter_blocks(m: int) -> Iterator[tuple[slice, int]]:
    """Yield rows that are computed together, and their number with padding.

    There are few such numbers, so that few programs are compiled.
    """
    begin = 0
    while begin < m:
        sufficient_sizes = [size for size in BLOCK_SIZES if size >= m - begin]
        size = sufficient_sizes[0] if sufficient_sizes else BLOCK_SIZES[-1]
        yield slice(begin, begin + size), size
        begin += size


def _pad(rows: FloatArray, count: int, width: int) -> FloatArray:
    """Pad a matrix with zeros to the shape (count, width)."""
    padded = np.zeros((count, width))
    padded[: len(rows), : rows.shape[1]] = rows
    return padded


def _trace_features(phi: FeatureMap, z: Any, X: Any) -> Any:
    """Compute features, as JAX traces it."""
    return phi(z, X)


def _trace_pull_back(phi: FeatureMap, first: int, z: Any, X: Any, slopes: Any) -> Any:
    """Pull back derivatives by the features to z and to the first inputs, as JAX traces it."""

    def compute_from(z: Any, first_inputs: Any) -> Any:
        """Compute features as a function of what derivatives are taken by."""
        return phi(z, jax.numpy.concatenate([first_inputs, X[:, first:]], axis=1))

    _, pull_back = jax.vjp(compute_from, z, X[:, :first])
    return pull_back(slopes)
