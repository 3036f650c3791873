"""Descriptions of tasks for a model: fixed numbers, or embeddings learned from training data.

=======  =======  =================================================================================
symbol   shape    meaning
=======  =======  =================================================================================
T        scalar   tasks, the current one last
q        scalar   numbers that describe a task
Psi      (T, q)   descriptions of the tasks
z        (size,)  parameters of the descriptions
=======  =======  =================================================================================
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.task_data import DataKind, TaskData
from hpobench_ordered.methods._distribution.parts import Embedded

if TYPE_CHECKING:
    from hpobench_ordered.methods._distribution.embedding import Points

Linearised = tuple[FloatArray, Callable[[FloatArray], FloatArray]]
"""Embeddings (T, q), and the function that propagates a gradient back from them to z, (size,)."""

MAX_POINTS = 5000
"""Largest number of points of each data set that a model uses."""


class Descriptions(Protocol):
    """Numbers that describe each task."""

    width: int
    """How many numbers describe a task, q."""

    def initial(self, rng: np.random.Generator) -> FloatArray:
        """Draw the descriptions' parameters z to start from, (size,)."""
        ...

    def describe(self, z: FloatArray) -> FloatArray:
        """Compute the descriptions, q numbers for each task, (T, q), from their parameters z."""
        ...

    def pull_back(self, z: FloatArray, grad_descriptions: FloatArray) -> FloatArray:
        """Propagate a gradient back from the descriptions to the parameters, by the chain rule.

        Args:
            z: The parameters, shape (size,).
            grad_descriptions: Gradient of some objective with respect to the descriptions, (T, q).

        Returns:
            Its gradient with respect to z, shape (size,).
        """
        ...


class FixedDescriptions:
    """Descriptions without parameters.

    Args:
        Psi: The descriptions, shape (T, q).
    """

    def __init__(self, Psi: FloatArray) -> None:
        """Store the descriptions of the tasks: a row of q numbers for each."""
        self._Psi = Psi
        _, q = Psi.shape
        self.width = q

    def initial(self, rng: np.random.Generator) -> FloatArray:
        """Return no parameters to start from, (0,): fixed descriptions have none to draw."""
        return np.empty(0)

    def describe(self, z: FloatArray) -> FloatArray:
        """Return the descriptions of the tasks, (T, q), for z without any parameter."""
        return self._Psi

    def pull_back(self, z: FloatArray, grad_descriptions: FloatArray) -> FloatArray:
        """Return an empty gradient, (0,): fixed descriptions have no parameters."""
        return np.empty(0)


class LearnedDescriptions:
    """Embeddings of the tasks' training data, with the sizes of the data sets.

    Args:
        data: Training data of each task, all with the same features.
        of_regression: What is embedded of a regression's features and labels.
    """

    def __init__(self, data: Sequence[TaskData], *, of_regression: Embedded) -> None:
        """Choose what of the data is embedded, by their kind, which is the same for all tasks.

        It is CLASSES, the distribution of features and classes, for classes; MARGINAL, that of the
        features, without labels; and `of_regression` for numeric labels.
        """
        from hpobench_ordered.methods._distribution.embedding import Embedding
        from hpobench_ordered.methods._networks.features import pad_input_count

        current = data[-1]
        self._feature_count = current.features.shape[1]
        class_count = 1
        if current.kind is DataKind.CLASSIFICATION:
            embedded = Embedded.CLASSES
            all_labels = [task.labels for task in data if task.labels is not None]
            # The classes of all tasks are numbered from 0.
            class_count = 1 + max(int(labels.max()) for labels in all_labels)
        elif current.kind is DataKind.UNSUPERVISED:
            embedded = Embedded.MARGINAL
        else:
            embedded = of_regression
        if embedded is Embedded.PAIRS:
            self._feature_count += 1  # the label is a feature, too

        padded_feature_count = pad_input_count(self._feature_count)  # as networks expect
        self._embedding = Embedding(embedded, padded_feature_count, class_count)
        self._data = data
        self._sizes = compute_relative_sizes(data)  # as shares of the largest, (T,)
        # How many numbers describe a task: its embedding, and the size of its data.
        self.width = self._embedding.size + 1
        # What `_linearise` returned last, and for which z: a fit asks for the descriptions and
        # then, at the same z, for a gradient.
        self._last_z: FloatArray | None = None
        self._last_linearised: Linearised

    def initial(self, rng: np.random.Generator) -> FloatArray:
        """Draw the embedding's parameters to start from, (size,).

        They are the parameters of its networks, and the log of the regularisation lambda.
        """
        return self._embedding.initial(rng, self._feature_count)

    def describe(self, z: FloatArray) -> FloatArray:
        """Compute the descriptions, (T, q), from the embedding's parameters z.

        They are the embeddings and, last, the sizes of the data sets as shares of the largest.
        """
        embeddings, _ = self._linearise(z)
        return np.hstack([embeddings, self._sizes[:, None]])

    def pull_back(self, z: FloatArray, grad_descriptions: FloatArray) -> FloatArray:
        """Propagate a gradient back from the descriptions to the parameters, by the chain rule.

        Args:
            z: Parameters of the embedding, shape (size,).
            grad_descriptions: Gradient of some objective with respect to the descriptions, (T, q).

        Returns:
            Its gradient with respect to z, shape (size,).
        """
        _, pull_back_embeddings = self._linearise(z)
        # The last column of the descriptions, the sizes of the data, does not depend on z.
        grad_embeddings = grad_descriptions[:, :-1]
        return pull_back_embeddings(grad_embeddings)

    def _linearise(self, z: FloatArray) -> Linearised:
        """Compute the embeddings of the tasks' data, and how a gradient propagates back from them.

        If z is the same as in the last call, the last results are returned.

        Returns:
            Embeddings (T, q - 1), and the function that propagates a gradient with respect to them
            back to the parameters z, (size,).
        """
        if self._last_z is None or not np.array_equal(self._last_z, z):
            self._last_z = z
            self._last_linearised = self._embedding.linearise(z, self._points)
        return self._last_linearised

    @cached_property
    def _points(self) -> "Points":
        """Features and labels of at most `MAX_POINTS` evenly spaced points of each task.

        Features are padded with zeros to the number that the embedding expects, and labels are
        coded in as many columns as it expects.
        """
        from hpobench_ordered.methods._distribution.embedding import Points

        counts = [min(MAX_POINTS, len(task)) for task in self._data]
        features = []
        labels = []
        for task, count in zip(self._data, counts, strict=True):
            rows = np.arange(count) * len(task) // count  # evenly spaced
            task_features = standardise_features(task)[rows]
            task_labels = _code_labels(task, self._embedding.label_width)[rows]
            if self._embedding.embedded is Embedded.PAIRS:
                task_features = np.hstack([task_features, task_labels])
            features.append(task_features)
            labels.append(task_labels)

        X = np.zeros((sum(counts), self._embedding.input_count))
        X[:, : self._feature_count] = np.concatenate(features)
        return Points(X, np.concatenate(labels), counts)


def standardise_features(data: TaskData) -> FloatArray:
    """Scale features (n, p) to mean 0 and variance 1; leave them if there are no labels.

    Law et al. (2019), section 5: without labels, the scale may be important.
    """
    if data.kind is DataKind.UNSUPERVISED:
        return data.features
    centred = data.features - data.features.mean(axis=0)
    sd = np.sqrt(np.square(centred).mean(axis=0))
    standardised: FloatArray = centred / np.where(sd > 0.0, sd, 1.0)
    return standardised


def compute_relative_sizes(data: Sequence[TaskData]) -> FloatArray:
    """Compute the numbers of points as shares of the largest, (T,)."""
    sizes = np.array([float(len(task)) for task in data])
    shares: FloatArray = sizes / sizes.max()
    return shares


def _code_labels(data: TaskData, class_count: int) -> FloatArray:
    """Code labels for the embedding: numbers scaled to [0, 1], (n, 1), or classes one-hot.

    Without labels there is one column of 0, and equal numbers all become 0.

    Args:
        data: Training data of a task, n points.
        class_count: Number of classes of all tasks: the columns of one-hot classes.
    """
    if data.labels is None:
        return np.zeros((len(data), 1))
    if data.kind is DataKind.CLASSIFICATION:
        one_hot_of_class = np.eye(class_count)
        return one_hot_of_class[data.labels.astype(np.int64)]
    lowest, highest = data.labels.min(), data.labels.max()
    width = highest - lowest if highest > lowest else 1.0
    scaled: FloatArray = (data.labels - lowest) / width
    return scaled[:, None]
