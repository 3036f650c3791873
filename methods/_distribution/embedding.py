"""Learned embeddings of data sets.

========  ===============  ========================================================================
symbol    shape            meaning
========  ===============  ========================================================================
T, b      scalar           tasks, points of all of them that are used
X, Y      (b, p or c)      features of the points; their labels, or of classes one-hot
w         scalar           weight of a task's points, 1 over their number
phi_x     (b, a)           network of 20 and 10 units on the features
phi_y     (b, c')          the same on the labels of a regression; of classes one-hot
psi       (T, q)           embeddings
lambda    scalar           regularisation, learned
========  ===============  ========================================================================

Law et al. (2019), section 4.1: of the marginal distribution the mean embedding

    mu = sum_l w phi_x(x_l)

of the joint one C_YX = sum_l w phi_y(y_l) phi_x(x_l)^T, and of the conditional one

    C_Y|X = Phi_y^T (Phi_x Phi_x^T + s lambda I)^-1 Phi_x = C_YX A^-1,     A = C_XX + lambda I

(the paper's lambda is s lambda here, with s points, so that its effect does not depend on s). For
classes it is C_YX, the mean of each class times the class's share, and the shares.

If a function of the embeddings has derivatives G by C_Y|X, those by C_YX are G A^-1 and those by
C_XX and lambda I are -C_Y|X^T G A^-1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._gp.compiled import cholesky, inverse_from_factor
from hpobench_ordered.methods._networks.features import Network, linearised
from hpobench_ordered.methods._products import mirror_upper_triangle, product, transposed_product

HIDDEN, OUTPUTS = 20, 10
"""Units of the networks on features and labels."""
LOG_LAMBDA = -4.0
"""Initial value of log lambda."""


class Embedded(Enum):
    """Part of a distribution that is embedded."""

    MARGINAL = "features alone"
    CONCATENATED = "features, and labels given the features"
    JOINT = "features and labels"
    CLASSES = "features and classes"


@dataclass(frozen=True, eq=False, slots=True)
class Points:
    """Data sets, one after the other.

    Attributes:
        X: Features of the points, shape (b, p).
        Y: Their labels, or classes one-hot, shape (b, c).
        counts: Number of points of each task, (T,).
    """

    X: FloatArray
    Y: FloatArray
    counts: Sequence[int]

    def of_tasks(self) -> list[slice]:
        """Where the points of each task are."""
        return [slice(*ends) for ends in pairwise([0, *np.cumsum(self.counts).tolist()])]


@dataclass(frozen=True, slots=True)
class Embedding:
    """The map from data sets to their embeddings.

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

    def linearised(
        self, z: FloatArray, points: Points
    ) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
        """Embeddings (T, q) of data sets, and how derivatives by them become those by z.

        Args:
            z: Parameters, shape (size,).
            points: The data sets.

        Returns:
            The embeddings, and a function from derivatives by them, (T, q), to those by z, (size,).
        """
        end = self._on_features().size
        has_network = self.what in {Embedded.CONCATENATED, Embedded.JOINT}
        phi_x, by_features = linearised(self._on_features(), z[:end], points.X)
        phi_y, by_labels = points.Y, None
        if has_network:
            phi_y, by_labels = linearised(self._on_labels(), z[end:-1], points.Y)
        tasks = [_Task(phi_x[at], phi_y[at], np.exp(z[-1])) for at in points.of_tasks()]

        def pull(slopes: FloatArray) -> FloatArray:
            by_x, by_y = np.empty(phi_x.shape), np.empty(phi_y.shape)
            by_z = np.zeros(len(z))
            for at, task, slope in zip(points.of_tasks(), tasks, slopes, strict=True):
                by_x[at], by_y[at], by_lambda = task.pulled_back(self.what, slope)
                by_z[-1] += by_lambda
            by_z[:end] = by_features(by_x)[0]
            if by_labels is not None:
                by_z[end:-1] = by_labels(by_y)[0]
            return by_z

        return np.stack([task.embedding(self.what) for task in tasks]), pull

    def _on_features(self) -> Network:
        return Network(self.inputs, (HIDDEN,), OUTPUTS)

    def _on_labels(self) -> Network:
        return Network(self.labels, (HIDDEN,), OUTPUTS)


class _Task:
    """Moments of the points of one task: phi_x (s, a), phi_y (s, c'), and lambda."""

    def __init__(self, phi_x: FloatArray, phi_y: FloatArray, ridge: float) -> None:
        self._x, self._y, self._ridge = phi_x, phi_y, ridge
        self._w = 1.0 / len(phi_x)
        self._joint: FloatArray = self._w * transposed_product(phi_y, phi_x)

    def embedding(self, what: Embedded) -> FloatArray:
        """The embedding, (q,)."""
        mean: FloatArray = self._w * self._x.sum(axis=0)
        if what is Embedded.MARGINAL:
            return mean
        if what is Embedded.JOINT:
            return self._joint.ravel()
        if what is Embedded.CLASSES:
            return np.concatenate([self._joint.ravel(), self._w * self._y.sum(axis=0)])
        within = self._w * transposed_product(self._x, self._x)
        self._inverse = _inverse(within + self._ridge * np.eye(OUTPUTS))
        self._conditional = product(self._joint, self._inverse)
        return np.concatenate([mean, self._conditional.ravel()])

    def pulled_back(
        self, what: Embedded, slopes: FloatArray
    ) -> tuple[FloatArray, FloatArray, float]:
        """Derivatives by phi_x, phi_y and log lambda, from those by the embedding (q,)."""
        by_x, by_y, by_lambda = np.zeros(self._x.shape), np.zeros(self._y.shape), 0.0
        joint = None if what is Embedded.MARGINAL else slopes[-self._joint.size :]
        if what is Embedded.CLASSES:
            joint = slopes[: self._joint.size]
        if what in {Embedded.MARGINAL, Embedded.CONCATENATED}:
            by_x += slopes[:OUTPUTS]
        if joint is not None:
            by_joint = joint.reshape(self._joint.shape)
            if what is Embedded.CONCATENATED:
                by_joint = product(by_joint, self._inverse)
                by_A = -transposed_product(self._conditional, by_joint)
                by_lambda = self._ridge * float(np.trace(by_A))
                by_x += product(self._x, by_A + by_A.T)
            by_x += product(self._y, by_joint)
            by_y = product(self._x, by_joint.T.copy())
        return self._w * by_x, self._w * by_y, by_lambda


def _inverse(A: FloatArray) -> FloatArray:
    """Inverse of positive definite A (a, a), by sums of one order on every processor."""
    _, R = cholesky(A)
    inverse = inverse_from_factor(R)
    mirror_upper_triangle(inverse)
    return inverse
