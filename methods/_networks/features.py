"""Feature maps: functions of a configuration with parameters, and their derivatives.

======  =========  ================================================================
symbol  shape      meaning
======  =========  ================================================================
m       scalar     configurations
p       scalar     inputs: features of a configuration and of its task, and padding
d       scalar     basis functions
X       (m, p)     inputs
Phi     (m, d)     features, one row phi(x) a configuration
z       (size,)    all parameters of the map, one after the other
======  =========  ================================================================

A map is a small immutable object, because it is part of the key of a compiled program.
"""

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
BLOCKS = (64, 256, 1024)
"""Configurations whose features are computed together."""
CACHED = 12_800
"""Numbers of a layer that are computed together: they stay in the cache, and memory is reused."""


class FeatureMap(Hashable, Protocol):
    """Interface of feature maps, which are hashable, so that programs can be compiled for them."""

    @property
    def inputs(self) -> int:
        """Number of inputs, padding included, p."""
        ...

    @property
    def features(self) -> int:
        """Number of basis functions, d."""
        ...

    def initial(self, rng: np.random.Generator, inputs: int) -> FloatArray:
        """Draw parameters (size,), given the number of inputs without padding."""
        ...

    def __call__(self, z: Any, X: Any) -> Any:
        """Features (m, d) of inputs X (m, p), as JAX traces it."""
        ...


@dataclass(frozen=True, slots=True)
class Network:
    """Layers of tanh units, then linear outputs if any; what comes last are the features.

    Attributes:
        inputs: Number of inputs, padding included, p.
        hidden: Units of each layer.
        outputs: Number of linear outputs; None: the last layer's units are the features.
    """

    inputs: int
    hidden: tuple[int, ...]
    outputs: int | None = None

    @property
    def features(self) -> int:
        """Number of basis functions, d."""
        return self.hidden[-1] if self.outputs is None else self.outputs

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum((rows + 1) * columns for rows, columns in self._shapes())

    def initial(self, rng: np.random.Generator, inputs: int) -> FloatArray:
        """Draw weights of variance 1 / in, 2 / in of the first layer, and biases of 1, (size,).

        With inputs in [-1, 1], units then bend at different inputs, and their sums vary about as
        quickly as losses do. With biases 0 all features would be odd functions.

        Args:
            rng: Source of randomness.
            inputs: Inputs that are not padding; the weights of the others are 0.
        """
        parts = []
        for layer, (rows, columns) in enumerate(self._shapes()):
            used, variance = (inputs, 2.0) if layer == 0 else (rows, 1.0)
            weights = np.zeros((rows, columns))
            weights[:used] = (variance / used) ** 0.5 * rng.standard_normal((used, columns))
            parts += [weights.ravel(), rng.standard_normal(columns)]
        return np.concatenate(parts)

    def __call__(self, z: Any, X: Any) -> Any:
        """Features (m, d) of inputs X (m, p)."""
        for layer, (weights, biases) in enumerate(self._weights(z)):
            X = X @ weights + biases
            if layer < len(self.hidden):
                X = jax.numpy.tanh(X)
        return X

    def _shapes(self) -> Iterator[tuple[int, int]]:
        """Inputs and outputs of each layer."""
        last = () if self.outputs is None else (self.outputs,)
        return pairwise((self.inputs, *self.hidden, *last))

    def linearised(self, z: FloatArray, X: FloatArray, first: int) -> tuple[FloatArray, "PullBack"]:
        """As the function `linearised`, in blocks of rows that stay in the cache."""
        if X.shape[1] < self.inputs:
            X = _padded(X, len(X), self.inputs)
        rows = max(4, CACHED // max(self.hidden) // 4 * 4)
        blocks = [slice(begin, begin + rows) for begin in range(0, len(X), rows)]
        layers = [self._layers(z, X[block]) for block in blocks]

        def pull(slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
            by_z, by_first = np.zeros(len(z)), np.empty((len(X), first))
            for block, outputs in zip(blocks, layers, strict=True):
                by_first[block] = self._pulled_back(z, outputs, slopes[block], by_z, first)
            return by_z, by_first

        return np.concatenate([np.empty((0, self.features)), *(one[-1] for one in layers)]), pull

    def _layers(self, z: FloatArray, X: FloatArray) -> list[FloatArray]:
        """Inputs (m, p) of the network and outputs of each layer, the last ones its features."""
        outputs = [X]
        for layer, (weights, biases) in enumerate(self._weights(z)):
            outputs.append(product(outputs[-1], weights))
            outputs[-1] += biases
            if layer < len(self.hidden):
                tanh_in_place(outputs[-1])
        return outputs

    def _pulled_back(
        self,
        z: FloatArray,
        layers: Sequence[FloatArray],
        slopes: FloatArray,
        by_z: FloatArray,
        first: int,
    ) -> FloatArray:
        """Add derivatives by z (size,) from those by features, (m, d); those by inputs, (m, first).

        Whatever the blocks, sums have the same order.
        """
        weights, sums = self._weights(z), self._weights(by_z)
        for layer in reversed(range(len(weights))):
            if layer < len(self.hidden):
                slopes = backpropagate_tanh(slopes, layers[layer + 1])
            by_weights, by_biases = sums[layer]
            add_transposed_product(by_weights, layers[layer], slopes)
            add_transposed_product(by_biases[None], np.ones((len(slopes), 1)), slopes)
            rows = weights[layer][0] if layer else weights[0][0][:first]
            slopes = product(slopes, rows.T.copy())
        return slopes

    def _weights(self, z: Any) -> list[tuple[Any, Any]]:
        """Weights (i, o) and biases (o,) of each layer."""
        parts, begin = [], 0
        for rows, columns in self._shapes():
            end = begin + rows * columns
            parts.append((z[begin:end].reshape(rows, columns), z[end : end + columns]))
            begin = end + columns
        return parts


@dataclass(frozen=True, slots=True)
class RandomKitchenSinks:
    """Random Fourier features of a Gaussian kernel (Rahimi and Recht 2007, algorithm 1).

    phi(x) = sqrt(2 / d) cos(U x / sigma + b) with entries of U standard normal and of b uniform on
    [0, 2 pi]: phi(x)^T phi(x') is close to exp(-|x - x'|^2 / (2 sigma^2)). The parameters are log
    sigma, U and b; only sigma is learned.

    Attributes:
        inputs: Number of inputs, padding included, p.
        features: Number of basis functions, d.
    """

    inputs: int
    features: int

    def initial(self, rng: np.random.Generator, inputs: int) -> FloatArray:
        """Draw parameters (1 + p d + d,); sigma is a typical distance of points in [-1, 1]^p.

        Args:
            rng: Source of randomness.
            inputs: Inputs that are not padding; the frequencies of the others are 0.
        """
        U = np.zeros((self.inputs, self.features))
        U[:inputs] = rng.standard_normal((inputs, self.features))
        b = 2.0 * np.pi * rng.random(self.features)
        return np.concatenate([[0.5 * np.log(inputs / 1.5)], U.ravel(), b])

    def __call__(self, z: Any, X: Any) -> Any:
        """Features (m, d) of inputs X (m, p)."""
        drawn = jax.lax.stop_gradient(z[1:])
        U = drawn[: -self.features].reshape(self.inputs, self.features)
        phases = X @ U * jax.numpy.exp(-z[0]) + drawn[-self.features :]
        return (2.0 / self.features) ** 0.5 * jax.numpy.cos(phases)


def padded_inputs(inputs: int) -> int:
    """Number of inputs with padding."""
    return -(-max(inputs, 1) // INPUT_MULTIPLE) * INPUT_MULTIPLE


def rounded(count: int) -> int:
    """The next power of two, 0 of 0: shapes are rounded up to it, to compile few programs."""
    return 1 << (count - 1).bit_length() if count else 0


def compute_features(phi: FeatureMap, z: FloatArray, X: FloatArray) -> FloatArray:
    """Features (m, d) of inputs X (m, at most p), to which the padding is added."""
    if isinstance(phi, Network):
        return linearised(phi, z, X)[0]
    Phi = np.empty((len(X), phi.features))
    for rows, size in _blocks(len(X)):
        block = _padded(X[rows], size, phi.inputs)
        whole = np.asarray(runtime.call(_features, z, block, static=(phi,)))
        Phi[rows] = whole[: len(Phi[rows])]  # JAX would compile a program for each length
    return Phi


PullBack = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""From derivatives of a function by the features, (m, d), those by the map's parameters, (size,),
summed over all rows, and by the first inputs, (m, first)."""


def linearised(
    phi: FeatureMap, z: FloatArray, X: FloatArray, *, first: int = 0
) -> tuple[FloatArray, PullBack]:
    """Features (m, d), and a function that propagates derivatives back to parameters and inputs.

    Args:
        phi: The feature map.
        z: Its parameters, shape (size,).
        X: Inputs, shape (m, at most p).
        first: Number of inputs, from the first, to propagate to.
    """
    if isinstance(phi, Network):
        return phi.linearised(z, X, first)
    return compute_features(phi, z, X), lambda slopes: _by_jax(phi, z, X, slopes, first)


def _by_jax(
    phi: FeatureMap, z: FloatArray, X: FloatArray, slopes: FloatArray, first: int
) -> tuple[FloatArray, FloatArray]:
    by_z, by_first = np.zeros(len(z)), np.empty((len(X), first))
    for rows, size in _blocks(len(X)):
        block, slope = _padded(X[rows], size, phi.inputs), _padded(slopes[rows], size, phi.features)
        parts = runtime.call(_pulled_back, z, block, slope, static=(phi, first))
        by_z += np.asarray(parts[0])
        by_first[rows] = np.asarray(parts[1])[: len(by_first[rows])]
    return by_z, by_first


def _blocks(m: int) -> Iterator[tuple[slice, int]]:
    """Rows that are computed together, and how many with padding: few sizes, few programs."""
    begin = 0
    while begin < m:
        size = next((size for size in BLOCKS if size >= m - begin), BLOCKS[-1])
        yield slice(begin, begin + size), size
        begin += size


def _padded(rows: FloatArray, count: int, width: int) -> FloatArray:
    padded = np.zeros((count, width))
    padded[: len(rows), : rows.shape[1]] = rows
    return padded


def _features(phi: FeatureMap, z: Any, X: Any) -> Any:
    return phi(z, X)


def _pulled_back(phi: FeatureMap, first: int, z: Any, X: Any, slopes: Any) -> Any:
    def features(z: Any, head: Any) -> Any:
        return phi(z, jax.numpy.concatenate([head, X[:, first:]], axis=1))

    _, pull = jax.vjp(features, z, X[:, :first])
    return pull(slopes)
