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
classes it is C_YX, the mean of each class times the class's share, and the shares. The joint one is
also described by the mean embedding of pairs [x, y], where the label is one of the features.

If G is the gradient of a function with respect to C_Y|X, that with respect to C_YX is G A^-1, and
that with respect to C_XX and lambda I is -C_Y|X^T G A^-1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._distribution.parts import Embedded
from hpobench_ordered.methods._gp.compiled import cholesky, inverse_from_factor
from hpobench_ordered.methods._networks.features import Network, linearise
from hpobench_ordered.methods._products import mirror_upper_triangle, product, transposed_product

HIDDEN_UNITS, OUTPUT_UNITS = 20, 10
"""Units of the networks on features and labels."""
INITIAL_LOG_LAMBDA = -4.0
"""Initial value of log lambda."""


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
        input_count: Number of features, padding included.
        label_width: Columns of Y, c: the number of classes, or 1.
    """

    embedded: Embedded
    input_count: int
    label_width: int

    @property
    def size(self) -> int:
        """Length of an embedding, q: the sum of the sizes of its parts.

        There is a network on the features of a point, and one on its label, with `OUTPUT_UNITS`
        outputs each. Classes have no network.
        """
        mean_size = OUTPUT_UNITS  # mean of the outputs for the features
        product_size = OUTPUT_UNITS * OUTPUT_UNITS  # mean of products of both networks' outputs
        class_count = self.label_width
        class_means_size = class_count * OUTPUT_UNITS  # the mean of each class
        class_shares_size = class_count  # the share of each class
        sizes = {
            Embedded.MARGINAL: mean_size,
            Embedded.PAIRS: mean_size,
            Embedded.CONDITIONAL: product_size,
            Embedded.JOINT: product_size,
            Embedded.CONCATENATED: mean_size + product_size,
            Embedded.CLASSES: class_means_size + class_shares_size,
        }
        return sizes[self.embedded]

    def initial(self, rng: np.random.Generator, feature_count: int) -> FloatArray:
        """Draw the parameters z to start from.

        They are those of the network on the features, those of the network on the labels, and the
        log of the regularisation lambda.

        Args:
            rng: Source of randomness.
            feature_count: Number of features that are not padding.
        """
        x_parameters = self._x_network().initial(rng, feature_count)
        y_parameters = self._y_network().initial(rng, self.label_width)
        return np.concatenate([x_parameters, y_parameters, [INITIAL_LOG_LAMBDA]])

    def linearise(
        self, z: FloatArray, points: Points
    ) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
        """Compute the embeddings of data sets, and how a gradient propagates back from them.

        Args:
            z: Parameters, shape (size,).
            points: The data sets.

        Returns:
            The embeddings (T, q), and the function that propagates a gradient with respect to them,
            (T, q), back to the parameters z, (size,).
        """
        # z: parameters of the network on the features, of that on the labels, and log lambda.
        x_size = self._x_network().size
        Phi_x, pull_back_x = linearise(self._x_network(), z[:x_size], points.X)
        Phi_y = points.Y
        pull_back_y = None  # without a network on the labels
        if self.embedded in {Embedded.CONDITIONAL, Embedded.CONCATENATED, Embedded.JOINT}:
            Phi_y, pull_back_y = linearise(self._y_network(), z[x_size:-1], points.Y)

        slices = points.task_slices()
        ridge = np.exp(z[-1])  # lambda
        # Means over the points of each task, from which its embedding follows.
        tasks = [_TaskMoments(Phi_x[rows], Phi_y[rows], ridge) for rows in slices]
        embeddings = np.stack([task.embed(self.embedded) for task in tasks])

        def pull_back(grad_embeddings: FloatArray) -> FloatArray:
            """Propagate a gradient back from the embeddings (T, q) to z (size,), by the chain rule.

            It goes from a task's embedding to the outputs of both networks at the task's points,
            Phi_x of the features and Phi_y of the labels, and from there to the networks'
            parameters. z has those of the first network, `x_size` of them, then those of the
            second one, then log lambda.
            """
            grad_z = np.zeros(len(z))
            grad_Phi_x = np.empty(Phi_x.shape)
            grad_Phi_y = np.empty(Phi_y.shape)
            # `rows` are those of the task's points in Phi_x and Phi_y.
            for rows, task, grad_embedding in zip(slices, tasks, grad_embeddings, strict=True):
                grad_x, grad_y, grad_log_lambda = task.pull_back(self.embedded, grad_embedding)
                grad_Phi_x[rows] = grad_x
                grad_Phi_y[rows] = grad_y
                grad_z[-1] += grad_log_lambda  # all tasks have the same lambda

            # A network's second result, the gradient of its inputs, is not needed.
            grad_z[:x_size], _ = pull_back_x(grad_Phi_x)
            if pull_back_y is not None:  # else labels are used as they are
                grad_z[x_size:-1], _ = pull_back_y(grad_Phi_y)
            return grad_z

        return embeddings, pull_back

    def _x_network(self) -> Network:
        """Make the network on the features, without its parameters."""
        return Network(self.input_count, (HIDDEN_UNITS,), OUTPUT_UNITS)

    def _y_network(self) -> Network:
        """Make the network on the labels of a regression, without its parameters."""
        return Network(self.label_width, (HIDDEN_UNITS,), OUTPUT_UNITS)


class _TaskMoments:
    """Moments of the points of one task: means of network outputs and of their products."""

    def __init__(self, Phi_x: FloatArray, Phi_y: FloatArray, ridge: float) -> None:
        """Compute the mean of the products of both networks' outputs at a task's s points.

        Args:
            Phi_x: Outputs of the network on the features, a row for each point, (s, x_outputs).
            Phi_y: Outputs of the network on the labels, or classes one-hot, shape (s, y_outputs).
            ridge: Regularisation of a conditional embedding, lambda.
        """
        self._Phi_x = Phi_x
        self._Phi_y = Phi_y
        self._ridge = ridge
        self._w = 1.0 / len(Phi_x)  # weight of a point in a mean
        # The mean over the points of the outer product phi_y phi_x^T, (y_outputs, x_outputs).
        self._C_yx: FloatArray = self._w * transposed_product(Phi_y, Phi_x)

    def embed(self, embedded: Embedded) -> FloatArray:
        """Compute the embedding, (q,), of the part of the distribution that `embedded` says.

        It consists of means over the points, each with the weight `_w`, one over their number.
        phi_x and phi_y are the outputs of both networks at a point; matrices are flattened row by
        row.

            MARGINAL       mu, the mean of phi_x
            JOINT          C_yx, the mean of phi_y phi_x^T
            PAIRS          mu, where the label is one of the features x
            CLASSES        C_yx, and the shares of the classes, the mean of phi_y
            CONDITIONAL    C_yx (C_xx + lambda I)^-1, with C_xx the mean of phi_x phi_x^T
            CONCATENATED   mu, and what CONDITIONAL embeds

        For the last two, sets `_A_inverse`, which is (C_xx + lambda I)^-1, and `_conditional`,
        which is C_yx `_A_inverse`: the gradient in `pull_back` needs them.
        """
        mu: FloatArray = self._w * self._Phi_x.sum(axis=0)
        if embedded in {Embedded.MARGINAL, Embedded.PAIRS}:
            return mu
        if embedded is Embedded.JOINT:
            return self._C_yx.ravel()
        if embedded is Embedded.CLASSES:
            class_shares = self._w * self._Phi_y.sum(axis=0)
            return np.concatenate([self._C_yx.ravel(), class_shares])

        C_xx = self._w * transposed_product(self._Phi_x, self._Phi_x)  # mean of phi_x phi_x^T
        A = C_xx + self._ridge * np.eye(OUTPUT_UNITS)
        self._A_inverse = _inverse(A)
        self._conditional = product(self._C_yx, self._A_inverse)
        if embedded is Embedded.CONDITIONAL:
            return self._conditional.ravel()
        return np.concatenate([mu, self._conditional.ravel()])

    def pull_back(
        self, embedded: Embedded, grad_embedding: FloatArray
    ) -> tuple[FloatArray, FloatArray, float]:
        """Propagate a gradient back from the embedding (q,) to Phi_x, Phi_y and log lambda.

        This is the chain rule for `embed`, which must have been called before. The embedding has
        these parts, one after the other, of which a matrix is flattened row by row:

            MARGINAL       mu
            PAIRS          mu
            CONDITIONAL    C_yx A^-1
            CONCATENATED   mu, C_yx A^-1
            JOINT          C_yx
            CLASSES        C_yx, shares of the classes

        Phi_x (s, a) and Phi_y (s, c') are outputs of the networks on features and labels at s
        points, a = `OUTPUT_UNITS`. mu (a,) is the mean of Phi_x, C_yx (c', a) the mean of
        phi_y phi_x^T, C_xx (a, a) that of phi_x phi_x^T, and A = C_xx + lambda I.

        With a gradient G with respect to C_yx A^-1, that with respect to C_yx is G A^-1, and that
        with respect to A is -(C_yx A^-1)^T G A^-1. A mean has the weight `_w` = 1 / s for each
        point, which is only multiplied at the end.

        Args:
            embedded: Which parts the embedding has.
            grad_embedding: Gradient with respect to the embedding, shape (q,).

        Returns:
            Gradients with respect to Phi_x, (s, a), Phi_y, (s, c'), and log lambda.
        """
        grad_x = np.zeros(self._Phi_x.shape)
        grad_y = np.zeros(self._Phi_y.shape)
        grad_log_lambda = 0.0
        if embedded in {Embedded.MARGINAL, Embedded.PAIRS, Embedded.CONCATENATED}:
            grad_mu = grad_embedding[:OUTPUT_UNITS]
            grad_x += grad_mu  # every point adds to the mean alike
        if embedded in {Embedded.MARGINAL, Embedded.PAIRS}:
            return self._w * grad_x, grad_y, grad_log_lambda

        # The matrix is followed by the shares of classes, if there are any, else it is the last
        # part. The shares depend on no parameters and have no gradient.
        size = self._C_yx.size
        if embedded is Embedded.CLASSES:
            grad_flat_matrix = grad_embedding[:size]
        else:
            grad_flat_matrix = grad_embedding[-size:]
        grad_matrix = grad_flat_matrix.reshape(self._C_yx.shape)

        grad_C_yx = grad_matrix  # of JOINT and CLASSES, whose matrix is C_yx itself
        if embedded in {Embedded.CONDITIONAL, Embedded.CONCATENATED}:
            grad_C_yx = product(grad_matrix, self._A_inverse)
            # `_conditional` is C_yx A^-1, with A = C_xx + lambda I.
            grad_A = -transposed_product(self._conditional, grad_C_yx)
            grad_log_lambda = self._ridge * float(np.trace(grad_A))
            # As C_xx is the mean of phi_x phi_x^T.
            grad_x += product(self._Phi_x, grad_A + grad_A.T)

        # As C_yx is the mean of phi_y phi_x^T.
        grad_x += product(self._Phi_y, grad_C_yx)
        grad_y = product(self._Phi_x, grad_C_yx.T.copy())
        return self._w * grad_x, self._w * grad_y, grad_log_lambda


def _inverse(A: FloatArray) -> FloatArray:
    """Invert positive definite A (a, a), with the same bits on every processor, unlike LAPACK."""
    _, R = cholesky(A)  # A = R^T R; it always exists, as lambda is added to A's diagonal
    inverse = inverse_from_factor(R)  # the upper triangle alone
    mirror_upper_triangle(inverse)
    return inverse
