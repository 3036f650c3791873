"""What a model is told of each task: numbers that are given, or learned from its training data.

Notation: T tasks, the current one last; q numbers that describe a task; Psi (T, q) all of them;
z (size,) the parameters of what is learned.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data import DataKind, TaskData

BATCH = 1000
"""Points of each data set that a step of the fit looks at (Law et al. 2019, section 5)."""
MOST = 5000
"""Points of each data set that a fitted model looks at."""


class Descriptions(Protocol):
    """Numbers that describe each task."""

    width: int
    """How many numbers describe a task, q."""

    def initial(self, rng: np.random.Generator) -> FloatArray:
        """Draw the parameters to start from, (size,)."""
        ...

    def draw(self, rng: np.random.Generator | None) -> None:
        """Look at another part of the data; without a generator at all of them."""
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

    def draw(self, rng: np.random.Generator | None) -> None:
        """Nothing to look at."""

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
        self._points = [standardised_features(one) for one in data]
        self._labels = [_label_columns(one, classes) for one in data]
        self._sizes = relative_sizes(data)
        self.width = self._map.size + 1
        self._batch: tuple[Any, Any, Any] | None = None
        self._whole: tuple[Any, Any, Any] | None = None

    def initial(self, rng: np.random.Generator) -> FloatArray:
        """Draw the networks' parameters, (size,)."""
        return self._map.initial(rng, self._features)

    def draw(self, rng: np.random.Generator | None) -> None:
        """Look at other points, at most `BATCH` of each task; without a generator at `MOST`."""
        from hpobench_ordered.methods._networks import runtime

        is_whole = rng is None or max(map(len, self._points)) <= BATCH
        if is_whole and self._whole is not None:
            self._batch = self._whole
            return
        most = min(MOST if rng is None else BATCH, max(map(len, self._points)))
        T = len(self._points)
        X = np.zeros((T, most, self._map.inputs))
        Y, w = np.zeros((T, most, self._map.labels)), np.zeros((T, most))
        for t, (points, labels) in enumerate(zip(self._points, self._labels, strict=True)):
            n = min(most, len(points))
            rows = np.arange(n)
            if rng is not None and len(points) > n:
                rows = rng.integers(len(points), size=n)
            X[t, :n, : self._features], Y[t, :n], w[t, :n] = points[rows], labels[rows], 1.0 / n
        self._batch = (runtime.place(X), runtime.place(Y), runtime.place(w))
        if is_whole:
            self._whole = self._batch

    def table(self, z: FloatArray) -> FloatArray:
        """Psi, (T, q)."""
        from hpobench_ordered.methods._distribution.embedding import embed

        learned = embed(self._map, z, *self._looked_at)
        return np.hstack([learned, self._sizes[:, None]])

    def pull_back(self, z: FloatArray, slopes: FloatArray) -> FloatArray:
        """Derivatives of a function of Psi by z, (size,), from those by Psi, (T, q)."""
        from hpobench_ordered.methods._distribution.embedding import pull_back

        X, Y, w = self._looked_at
        return pull_back(self._map, z, X, Y, w, np.ascontiguousarray(slopes[:, :-1]))

    @property
    def _looked_at(self) -> tuple[Any, Any, Any]:
        if self._batch is None:
            self.draw(None)
            assert self._batch is not None
        return self._batch


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
