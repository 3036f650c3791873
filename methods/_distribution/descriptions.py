"""Descriptions of tasks for a model: given numbers, or embeddings learned from training data.

Notation: T tasks, the current one last; q numbers that describe a task; Psi (T, q) all of them;
z (size,) the parameters of the embedding.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.core.data import DataKind, TaskData

if TYPE_CHECKING:
    from hpobench_ordered.methods._distribution.embedding import Points

Linearised = tuple[FloatArray, Callable[[FloatArray], FloatArray]]
"""Embeddings (T, q), and a function from derivatives by them to derivatives by z, (size,)."""

MOST = 5000
"""Largest number of points of each data set that a model uses."""


class Descriptions(Protocol):
    """Numbers that describe each task."""

    width: int
    """How many numbers describe a task, q."""

    def initial(self, rng: np.random.Generator) -> FloatArray:
        """Draw the parameters to start from, (size,)."""
        ...

    def table(self, z: FloatArray) -> FloatArray:
        """Psi, (T, q)."""
        ...

    def pull_back(self, z: FloatArray, slopes: FloatArray) -> FloatArray:
        """Derivatives of a function of Psi by z, (size,), from those by Psi, (T, q)."""
        ...


class Given:
    """Given descriptions.

    Args:
        table: Psi, shape (T, q).
    """

    def __init__(self, table: FloatArray) -> None:
        self.width = table.shape[1]
        self._table = table

    def initial(self, rng: np.random.Generator) -> FloatArray:
        """No parameters, (0,)."""
        return np.empty(0)

    def table(self, z: FloatArray) -> FloatArray:
        """Psi, (T, q)."""
        return self._table

    def pull_back(self, z: FloatArray, slopes: FloatArray) -> FloatArray:
        """No derivatives, (0,)."""
        return np.empty(0)


class Learned:
    """Embeddings of the tasks' training data, with the sizes of the data sets.

    Args:
        data: Training data of each task, all with the same features.
        joint: Whether the joint distribution of a regression's features and labels is embedded;
            otherwise the marginal and the conditional one are concatenated.
    """

    def __init__(self, data: Sequence[TaskData], *, joint: bool) -> None:
        from hpobench_ordered.methods._distribution.embedding import Embedded, Embedding
        from hpobench_ordered.methods._networks.features import padded_inputs

        kind, self._features = data[-1].kind, data[-1].features.shape[1]
        classes = 1
        if kind is DataKind.CLASSIFICATION:
            what = Embedded.CLASSES
            classes = 1 + max(int(one.labels.max()) for one in data if one.labels is not None)
        elif kind is DataKind.UNSUPERVISED:
            what = Embedded.MARGINAL
        else:
            what = Embedded.JOINT if joint else Embedded.CONCATENATED
        self._map = Embedding(what, padded_inputs(self._features), classes)
        self._data = data
        self._sizes = relative_sizes(data)
        self._last: tuple[FloatArray, Linearised] | None = None
        self.width = self._map.size + 1

    def initial(self, rng: np.random.Generator) -> FloatArray:
        """Draw the networks' parameters, (size,)."""
        return self._map.initial(rng, self._features)

    def table(self, z: FloatArray) -> FloatArray:
        """Psi, (T, q)."""
        return np.hstack([self._linearised(z)[0], self._sizes[:, None]])

    def pull_back(self, z: FloatArray, slopes: FloatArray) -> FloatArray:
        """Derivatives of a function of Psi by z, (size,), from those by Psi, (T, q)."""
        return self._linearised(z)[1](slopes[:, :-1])

    def _linearised(self, z: FloatArray) -> Linearised:
        if self._last is None or not np.array_equal(self._last[0], z):  # the two need the same
            self._last = z, self._map.linearised(z, self._points)
        return self._last[1]

    @cached_property
    def _points(self) -> "Points":
        """Features and labels of at most `MOST` points of each task."""
        from hpobench_ordered.methods._distribution.embedding import Points

        counts = [min(MOST, len(one)) for one in self._data]
        X = np.zeros((sum(counts), self._map.inputs))
        labels, begin = [], 0
        for one, n in zip(self._data, counts, strict=True):
            rows = np.arange(n) * len(one) // n
            X[begin : begin + n, : self._features] = standardised_features(one)[rows]
            labels.append(_label_columns(one, self._map.labels)[rows])
            begin += n
        return Points(X, np.concatenate(labels), counts)


def standardised_features(data: TaskData) -> FloatArray:
    """Features with mean 0 and variance 1, (n, p); unchanged if there are no labels.

    Law et al. (2019), section 5: without labels, the scale may be important.
    """
    if data.kind is DataKind.UNSUPERVISED:
        return data.features
    centred = data.features - data.features.mean(axis=0)
    spread = np.sqrt(np.square(centred).mean(axis=0))
    standardised: FloatArray = centred / np.where(spread > 0.0, spread, 1.0)
    return standardised


def relative_sizes(data: Sequence[TaskData]) -> FloatArray:
    """Numbers of points as shares of the largest, (T,)."""
    sizes = np.array([float(len(one)) for one in data])
    shares: FloatArray = sizes / sizes.max()
    return shares


def _label_columns(data: TaskData, classes: int) -> FloatArray:
    """Labels as the embedding takes them: in [0, 1], or one-hot; (n, classes or 1)."""
    if data.labels is None:
        return np.zeros((len(data), 1))
    if data.kind is DataKind.CLASSIFICATION:
        return np.eye(classes)[data.labels.astype(np.int64)]
    low, high = data.labels.min(), data.labels.max()
    columns: FloatArray = ((data.labels - low) / (high - low if high > low else 1.0))[:, None]
    return columns
