"""Learned embeddings of data sets.

========  ===============  ========================================================================
symbol    shape            meaning
========  ===============  ========================================================================
T         scalar           tasks
s, b      scalar           points of a task, of all tasks
p, c      scalar           features of a point, columns of its labels
X, Y      (b, p) (b, c)    features of the points; their labels, or classes one-hot
w         scalar           weight of a task's points, 1 / s
Phi_x     (b, a)           network of 20 and 10 units on the features, rows phi_x
Phi_y     (b, c')          the same on the labels of a regression; of classes one-hot
psi       (q,)             embedding of a task
lambda    scalar           regularisation, learned
z         (size,)          parameters: those of both networks, and log lambda
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
from hpobench_ordered.methods._networks.features import Network, linearise
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

    def task_slices(self) -> list[slice]:
        """Return the rows of each task's points in X and Y, which have one task after another."""
        ends = np.cumsum(self.counts).tolist()
        return [slice(begin, end) for begin, end in pairwise([0, *ends])]


@dataclass(frozen=True, slots=True)
class Embedding:
    """The map from data sets to their embeddings.

    Attributes:
        embedded: What is embedded.
        inputs: Number of features, padding included.
        labels: Columns of Y, c: the number of classes, or 1.
    """

    embedded: Embedded
    inputs: int
    labels: int

    @property
    def size(self) -> int:
        """Length of an embedding, q: the sum of the sizes of its parts.

        `OUTPUTS` is the number of outputs of the networks on features and on labels.
        """
        mu_size = OUTPUTS  # mean of the network's outputs
        matrix_size = OUTPUTS * OUTPUTS  # mean of their products with those for the labels
        class_means_size = self.labels * OUTPUTS  # `labels` is the number of classes
        class_shares_size = self.labels
        sizes = {
            Embedded.MARGINAL: mu_size,
            Embedded.JOINT: matrix_size,
            Embedded.CONCATENATED: mu_size + matrix_size,
            Embedded.CLASSES: class_means_size + class_shares_size,
        }
        return sizes[self.embedded]

    def initial(self, rng: np.random.Generator, feature_count: int) -> FloatArray:
        """Draw the parameters z to start from: those of both networks, and log lambda.

        The networks are on features and on labels; lambda is the regularisation, at first
        exp(`LOG_LAMBDA`).

        Args:
            rng: Source of randomness.
            feature_count: Number of features that are not padding.
        """
        x_parameters = self._x_network().initial(rng, feature_count)
        y_parameters = self._y_network().initial(rng, self.labels)
        return np.concatenate([x_parameters, y_parameters, [LOG_LAMBDA]])

    def linearise(
        self, z: FloatArray, points: Points
    ) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
        """Compute the embeddings of data sets, and how derivatives by them become those by z.

        Args:
            z: Parameters, shape (size,).
            points: The data sets.

        Returns:
            The embeddings (T, q), and a function from derivatives by them, (T, q), to those by z,
            (size,).
        """
        # z: parameters of the network on the features, of that on the labels, and log lambda.
        x_size = self._x_network().size
        Phi_x, pull_back_x = linearise(self._x_network(), z[:x_size], points.X)
        Phi_y = points.Y
        pull_back_y = None  # without a network on the labels
        if self.embedded in {Embedded.CONCATENATED, Embedded.JOINT}:
            Phi_y, pull_back_y = linearise(self._y_network(), z[x_size:-1], points.Y)

        slices = points.task_slices()
        ridge = np.exp(z[-1])  # lambda
        # Means over the points of each task, from which its embedding follows.
        tasks = [_TaskMoments(Phi_x[rows], Phi_y[rows], ridge) for rows in slices]
        embeddings = np.stack([task.embed(self.embedded) for task in tasks])

        def pull_back(slopes: FloatArray) -> FloatArray:
            """Turn derivatives by the embeddings (T, q) into those by z (size,), by the chain rule.

            z has the parameters of the network on the features, `x_size` of them, then those of the
            network on the labels, then log lambda. Phi_x and Phi_y, the outputs of both networks,
            have the points of all tasks; each task has a slice of the rows.
            """
            by_z = np.zeros(len(z))
            by_Phi_x = np.empty(Phi_x.shape)
            by_Phi_y = np.empty(Phi_y.shape)
            for rows, task, task_slopes in zip(slices, tasks, slopes, strict=True):
                by_x, by_y, by_log_lambda = task.pull_back(self.embedded, task_slopes)
                by_Phi_x[rows] = by_x
                by_Phi_y[rows] = by_y
                by_z[-1] += by_log_lambda  # all tasks have the same lambda

            # A network's second result, derivatives by its inputs, is not needed.
            by_z[:x_size], _ = pull_back_x(by_Phi_x)
            if pull_back_y is not None:  # else labels are used as they are
                by_z[x_size:-1], _ = pull_back_y(by_Phi_y)
            return by_z

        return embeddings, pull_back

    def _x_network(self) -> Network:
        """Make the network on the features, without its parameters."""
        return Network(self.inputs, (HIDDEN,), OUTPUTS)

    def _y_network(self) -> Network:
        """Make the network on the labels of a regression, without its parameters."""
        return Network(self.labels, (HIDDEN,), OUTPUTS)


class _TaskMoments:
    """Moments of the points of one task: means of network outputs and of their products."""

    def __init__(self, Phi_x: FloatArray, Phi_y: FloatArray, ridge: float) -> None:
        """Compute the mean of the products of both networks' outputs at s points.

        Args:
            Phi_x: Outputs of the network on the features, shape (s, a).
            Phi_y: Outputs of the network on the labels, or classes one-hot, shape (s, c').
            ridge: Regularisation of a conditional embedding, lambda.
        """
        self._Phi_x = Phi_x
        self._Phi_y = Phi_y
        self._ridge = ridge
        self._w = 1.0 / len(Phi_x)  # weight of a point in a mean
        # The mean of phi_y phi_x^T over the points.
        self._C_yx: FloatArray = self._w * transposed_product(Phi_y, Phi_x)

    def embed(self, embedded: Embedded) -> FloatArray:
        """Compute the embedding, (q,).

        It consists of the mean mu of Phi_x, of the matrix C_yx, the mean of phi_y phi_x^T, or of
        the conditional matrix C_yx (C_xx + lambda I)^-1, as `embedded` says. `_w` is the weight of
        a point in a mean, one over their number, and `_ridge` is lambda. Phi_x has `OUTPUTS`
        columns.
        """
        mu: FloatArray = self._w * self._Phi_x.sum(axis=0)
        if embedded is Embedded.MARGINAL:
            return mu
        if embedded is Embedded.JOINT:
            return self._C_yx.ravel()
        if embedded is Embedded.CLASSES:
            class_shares = self._w * self._Phi_y.sum(axis=0)
            return np.concatenate([self._C_yx.ravel(), class_shares])

        C_xx = self._w * transposed_product(self._Phi_x, self._Phi_x)  # mean of phi_x phi_x^T
        A = C_xx + self._ridge * np.eye(OUTPUTS)
        # `pull_back` uses both matrices again.
        self._A_inverse = _inverse(A)
        self._conditional = product(self._C_yx, self._A_inverse)
        return np.concatenate([mu, self._conditional.ravel()])

    def pull_back(
        self, embedded: Embedded, slopes: FloatArray
    ) -> tuple[FloatArray, FloatArray, float]:
        """Turn derivatives by the embedding (q,) into those by Phi_x, Phi_y and log lambda.

        This is the chain rule for `embed`, which must have been called before. The embedding has
        these parts, one after the other, of which a matrix is flattened row by row:

            MARGINAL       mu
            CONCATENATED   mu, C_yx A^-1
            JOINT          C_yx
            CLASSES        C_yx, shares of the classes

        Phi_x (s, a) and Phi_y (s, c') are outputs of the networks on features and labels at s
        points, a = `OUTPUTS`. mu (a,) is the mean of Phi_x, C_yx (c', a) the mean of phi_y phi_x^T,
        C_xx (a, a) that of phi_x phi_x^T, and A = C_xx + lambda I.

        With derivatives G by C_yx A^-1, those by C_yx are G A^-1 and those by A are
        -(C_yx A^-1)^T G A^-1. A mean has the weight `_w` = 1 / s for each point, which is only
        multiplied at the end.

        Args:
            embedded: Which parts the embedding has.
            slopes: Derivatives by the embedding, shape (q,).

        Returns:
            Derivatives by Phi_x, (s, a), by Phi_y, (s, c'), and by log lambda.
        """
        by_x = np.zeros(self._Phi_x.shape)
        by_y = np.zeros(self._Phi_y.shape)
        by_log_lambda = 0.0
        if embedded in {Embedded.MARGINAL, Embedded.CONCATENATED}:
            by_mu = slopes[:OUTPUTS]
            by_x += by_mu  # every point adds to the mean alike
        if embedded is Embedded.MARGINAL:
            return self._w * by_x, by_y, by_log_lambda

        # The matrix comes first before the shares of classes, else last. The shares depend on no
        # parameters and need no derivatives.
        size = self._C_yx.size
        by_flat_matrix = slopes[:size] if embedded is Embedded.CLASSES else slopes[-size:]
        by_matrix = by_flat_matrix.reshape(self._C_yx.shape)

        by_C_yx = by_matrix  # of JOINT and CLASSES, whose matrix is C_yx itself
        if embedded is Embedded.CONCATENATED:
            by_C_yx = product(by_matrix, self._A_inverse)
            by_A = -transposed_product(self._conditional, by_C_yx)  # `_conditional` is C_yx A^-1
            by_log_lambda = self._ridge * float(np.trace(by_A))  # as A has lambda on the diagonal
            by_x += product(self._Phi_x, by_A + by_A.T)  # as C_xx is the mean of phi_x phi_x^T

        # As C_yx is the mean of phi_y phi_x^T.
        by_x += product(self._Phi_y, by_C_yx)
        by_y = product(self._Phi_x, by_C_yx.T.copy())
        return self._w * by_x, self._w * by_y, by_log_lambda


def _inverse(A: FloatArray) -> FloatArray:
    """Invert positive definite A (a, a), with the same bits on every processor, unlike LAPACK."""
    _, R = cholesky(A)  # A = R^T R; it always exists, as lambda is added to A's diagonal
    inverse = inverse_from_factor(R)  # the upper triangle alone
    mirror_upper_triangle(inverse)
    return inverse
