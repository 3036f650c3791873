"""What a model is told of each task: numbers that are given, or learned from its training data.

Notation: T tasks, the current one last; q numbers that describe a task; Psi (T, q) all of them;
z (size,) the parameters of what is learned.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.core.data import DataKind, TaskData

MOST = 5000
"""Points of each data set that a model looks at."""


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
    """Numbers that are known beforehand.

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
    """Embeddings of the tasks' training data, and the sizes of these.

    Args:
        data: Training data of each task, all with the same features.
        joint: Whether the joint distribution of a regression's features and labels is embedded, or
            the marginal and the conditional one side by side.
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
        self.width = self._map.size + 1

    def initial(self, rng: np.random.Generator) -> FloatArray:
        """Draw the networks' parameters, (size,)."""
        return self._map.initial(rng, self._features)

    def table(self, z: FloatArray) -> FloatArray:
        """Psi, (T, q)."""
        from hpobench_ordered.methods._distribution.embedding import embed

        learned = embed(self._map, z, *self._points)
        return np.hstack([learned, self._sizes[:, None]])

    def pull_back(self, z: FloatArray, slopes: FloatArray) -> FloatArray:
        """Derivatives of a function of Psi by z, (size,), from those by Psi, (T, q)."""
        from hpobench_ordered.methods._distribution.embedding import pull_back

        X, Y, w = self._points
        return pull_back(self._map, z, X, Y, w, np.ascontiguousarray(slopes[:, :-1]))

    @cached_property
    def _points(self) -> tuple[Any, Any, Any]:
        """Features (T, b, p), labels (T, b, c), weights (T, b); of at most `MOST` points each."""
        from hpobench_ordered.methods._networks import runtime

        T, most = len(self._data), min(MOST, max(map(len, self._data)))
        X = np.zeros((T, most, self._map.inputs))
        Y, w = np.zeros((T, most, self._map.labels)), np.zeros((T, most))
        for t, one in enumerate(self._data):
            n = min(most, len(one))
            rows = np.arange(n) * len(one) // n
            X[t, :n, : one.features.shape[1]] = standardised_features(one)[rows]
            Y[t, :n], w[t, :n] = _label_columns(one, self._map.labels)[rows], 1.0 / n
        return runtime.place(X), runtime.place(Y), runtime.place(w)


def standardised_features(data: TaskData) -> FloatArray:
    """Features of mean 0 and variance 1 (n, p); without labels as they are.

    Law et al. (2019), section 5: where there are no labels the scale may be what matters.
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
