"""Embeddings of data sets: a feature map of distributions, which is learned.

========  ===============  ========================================================================
symbol    shape            meaning
========  ===============  ========================================================================
T, b      scalar           tasks, points of each that are looked at
X, Y      (T, b, p or c)   features of the points; their labels, or of classes one-hot
w         (T, b)           weights of the points, 1 over the number of a task's points or 0: padding
phi_x     (T, b, a)        network of 20 and 10 units on the features
phi_y     (T, b, c')       the same on the labels of a regression; of classes one-hot
psi       (T, q)           embeddings
lambda    scalar           regularisation, learned
========  ===============  ========================================================================

Law et al. (2019), section 4.1: of the marginal distribution the mean embedding

    mu = sum_l w_l phi_x(x_l)

of the joint one C_YX = sum_l w_l phi_y(y_l) phi_x(x_l)^T, and of the conditional one

    C_Y|X = Phi_y^T (Phi_x Phi_x^T + s lambda I)^-1 Phi_x = C_YX (C_XX + lambda I)^-1

(the paper's lambda is s lambda here, of s points, so that it does not depend on how many are looked
at). Of classes it is C_YX, one mean a class times the class's share, and the shares.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._networks import runtime
from hpobench_ordered.methods._networks.features import Network
from hpobench_ordered.methods._networks.runtime import jax

HIDDEN, OUTPUTS = 20, 10
"""Units of the networks on features and labels."""
LOG_LAMBDA = -4.0
"""Where log lambda starts."""


class Embedded(Enum):
    """What of a distribution is embedded."""

    MARGINAL = "features alone"
    CONCATENATED = "features, and labels given the features"
    JOINT = "features and labels"
    CLASSES = "features and classes"


@dataclass(frozen=True, slots=True)
class Embedding:
    """The map from data sets to their embeddings; part of the key of a compiled program.

    Attributes:
        what: What is embedded.
        inputs: Number of features, padding included.
        labels: Columns of Y, c: the number of classes, or 1.
    """

    what: Embedded
    inputs: int
    labels: int

    @property
    def size(self) -> int:
        """Length of an embedding, q."""
        if self.what is Embedded.MARGINAL:
            return OUTPUTS
        if self.what is Embedded.CLASSES:
            return OUTPUTS * self.labels + self.labels
        return OUTPUTS * OUTPUTS + (OUTPUTS if self.what is Embedded.CONCATENATED else 0)

    def initial(self, rng: np.random.Generator, features: int) -> FloatArray:
        """Draw parameters: of both networks, and log lambda.

        Args:
            rng: Source of randomness.
            features: Features that are not padding.
        """
        of_x = self._on_features().initial(rng, features)
        of_y = self._on_labels().initial(rng, self.labels)
        return np.concatenate([of_x, of_y, [LOG_LAMBDA]])

    def __call__(self, z: Any, X: Any, Y: Any, w: Any) -> Any:
        """Embeddings (T, q) of data sets, as JAX traces it."""
        jnp = jax.numpy
        end = self._on_features().size
        phi_x = self._on_features()(z[:end], X)
        mean = jnp.einsum("tb,tba->ta", w, phi_x)
        if self.what is Embedded.MARGINAL:
            return mean
        is_class = self.what is Embedded.CLASSES
        phi_y = Y if is_class else self._on_labels()(z[end:-1], Y)
        joint = jnp.einsum("tb,tbc,tba->tca", w, phi_y, phi_x)
        if is_class:
            return jnp.concatenate([_flat(joint), jnp.einsum("tb,tbc->tc", w, Y)], axis=1)
        if self.what is Embedded.JOINT:
            return _flat(joint)
        within = jnp.einsum("tb,tba,tbd->tad", w, phi_x, phi_x)
        ridge = within + jnp.exp(z[-1]) * jnp.eye(OUTPUTS)
        conditional = _solved(ridge, joint.transpose(0, 2, 1)).transpose(0, 2, 1)
        return jnp.concatenate([mean, _flat(conditional)], axis=1)

    def _on_features(self) -> Network:
        return Network(self.inputs, (HIDDEN,), OUTPUTS)

    def _on_labels(self) -> Network:
        return Network(self.labels, (HIDDEN,), OUTPUTS)


def embed(of: Embedding, z: FloatArray, X: Any, Y: Any, w: Any) -> FloatArray:
    """Embeddings (T, q) of data sets."""
    return np.asarray(runtime.call(_embed, z, X, Y, w, static=(of,)))


def pull_back(
    of: Embedding, z: FloatArray, X: Any, Y: Any, w: Any, slopes: FloatArray
) -> FloatArray:
    """Derivatives of a function of the embeddings by z (size,), from those by them (T, q)."""
    return np.asarray(runtime.call(_pulled_back, z, X, Y, w, slopes, static=(of,)))


def _solved(A: Any, B: Any) -> Any:
    """A^-1 B (T, a, c) of positive definite A (T, a, a), by Gauss and Jordan's elimination.

    JAX's own goes through LAPACK, whose last bits depend on the processor.
    """
    both = jax.numpy.concatenate([A, B], axis=2)
    for i in range(A.shape[1]):
        row = both[:, i : i + 1] / both[:, i : i + 1, i : i + 1]
        both = (both - both[:, :, i : i + 1] * row).at[:, i : i + 1].set(row)
    return both[:, :, A.shape[1] :]


def _flat(matrices: Any) -> Any:
    return matrices.reshape(matrices.shape[0], -1)


def _embed(of: Embedding, z: Any, X: Any, Y: Any, w: Any) -> Any:
    return of(z, X, Y, w)


def _pulled_back(of: Embedding, z: Any, X: Any, Y: Any, w: Any, slopes: Any) -> Any:
    _, pull = jax.vjp(lambda z: of(z, X, Y, w), z)
    return pull(slopes)[0]
