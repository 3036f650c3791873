"""Training data of tasks, for methods that use them as context."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.identity import hash_arrays, hash_json
from hpobench_ordered.data.remote import RemoteFile
from hpobench_ordered.errors import EvaluationsError, UnknownNameError


class DataKind(Enum):
    """What is learned from the data."""

    REGRESSION = "regression"
    CLASSIFICATION = "classification"
    UNSUPERVISED = "unsupervised"


@dataclass(eq=False, slots=True)
class TaskData:
    """The data set that a task's model is trained on.

    Attributes:
        features: Features of the points, shape (n, p).
        labels: Their labels, shape (n,): numbers, or the index of the class; None if unlabelled.
        kind: What is learned from it: "regression", "classification", "unsupervised", or a
            `DataKind`.

    All arrays are read-only copies.

    Raises:
        UnknownNameError: No such kind.
        EvaluationsError: No points, arrays of another shape or not finite, labels that are missing
            or not allowed, or classes that are not whole numbers from 0.

    Examples:
        >>> import numpy as np
        >>> import hpobench_ordered as hbo
        >>> from hpobench_ordered.data import DataKind, TaskData
        >>> TaskData(np.zeros((5, 2)), np.arange(5.0), DataKind.REGRESSION)
        TaskData(5 points, 2 features, regression)
    """

    features: FloatArray
    labels: FloatArray | None
    kind: DataKind

    def __post_init__(self) -> None:
        """Check the kind and the arrays, and copy the arrays; `kind` may be given by its name."""
        if not isinstance(self.kind, DataKind):
            kinds = [kind.value for kind in DataKind]
            if self.kind not in kinds:
                raise UnknownNameError("kind of data", self.kind, kinds)
            self.kind = DataKind(self.kind)
        self.features = _copy_numbers("features", self.features)
        self._copy_labels()

    def _copy_labels(self) -> None:
        """Check the labels, and replace them by a read-only copy.

        Raises:
            EvaluationsError: Unsupervised data have labels, other data have none, or labels are
                wrong.
        """
        if self.kind is DataKind.UNSUPERVISED:
            if self.labels is not None:
                raise EvaluationsError("data for unsupervised must have no labels, but got some")
            return
        if self.labels is None:
            raise EvaluationsError(f"data for {self.kind.value} must have labels, but got None")

        n_points = len(self.features)
        labels = _copy_numbers("labels", self.labels, (n_points,))
        is_class = (labels >= 0) & (labels == np.floor(labels))
        if self.kind is DataKind.CLASSIFICATION and not is_class.all():
            first_wrong = labels[~is_class][0]
            raise EvaluationsError(f"classes must be whole numbers from 0, but got {first_wrong:g}")
        self.labels = labels

    def __len__(self) -> int:
        """Return the number of points, n."""
        return len(self.features)

    @property
    def digest(self) -> str:
        """Hash of the kind, the features and the labels, shortened to 16 hexadecimal digits."""
        arrays = [self.features]
        if self.labels is not None:
            arrays.append(self.labels)
        description = f"{self.kind.value} {self.features.shape}"
        return hash_arrays(*arrays, description=description)[:16]

    def __repr__(self) -> str:
        """Describe the data by their size and kind."""
        n_points, n_features = self.features.shape
        return f"TaskData({n_points} points, {n_features} features, {self.kind.value})"


def _copy_numbers(name: str, numbers: object, shape: tuple[int, ...] | None = None) -> FloatArray:
    """Copy numbers into a read-only array.

    Args:
        name: What they are, for the message: "features" or "labels".
        numbers: The numbers.
        shape: Shape that the array must have; None allows any shape (n, p) that is not empty.

    Raises:
        EvaluationsError: They are no numbers, not finite, or of another shape.
    """
    try:
        array = np.array(numbers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        hint = ""
        if name == "labels":
            hint = "; np.unique(labels, return_inverse=True)[1] numbers classes"
        raise EvaluationsError(f"{name} must be an array of numbers: {error}{hint}") from None

    requirement = f"{name} must be finite numbers, shape {shape or '(n, p)'}"
    is_allowed_matrix = shape is None and array.ndim == 2 and array.size > 0
    if array.shape != shape and not is_allowed_matrix:
        raise EvaluationsError(f"{requirement}, but got an array of shape {array.shape}")
    if not np.isfinite(array).all():
        raise EvaluationsError(f"{requirement}, but got some that are not finite")
    array.flags.writeable = False
    return array


@dataclass(frozen=True, slots=True)
class DataSource:
    """Where the training data of a benchmark's tasks are.

    Attributes:
        load: Loads those of a task, by its index, None where it has none; called only for methods
            that ask for them.
        files: What must be fetched first; empty for generated data.

    Examples:
        >>> from hpobench_ordered.benchmarks.registry import benchmark_spec
        >>> source = benchmark_spec("distbo-toy").data
        >>> source.missing, len(source.load(0))
        ((), 500)
    """

    load: Callable[[int], TaskData | None]
    files: tuple[RemoteFile, ...] = ()

    @property
    def missing(self) -> tuple[RemoteFile, ...]:
        """The files that are still to be fetched."""
        return tuple(file for file in self.files if not file.is_fetched)

    @property
    def content(self) -> str:
        """Hash of the names and the hashes of the files; empty if there are none."""
        names_and_hashes = [(file.name, file.sha256 or file.first_hash) for file in self.files]
        return hash_json(names_and_hashes) if names_and_hashes else ""
