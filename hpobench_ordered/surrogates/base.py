"""The interfaces of surrogates, and of those that are stored in artifacts.

Notation:
    d   number of hyperparameters
    T   number of tasks
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.arrays import StoredArray, check_arrays
from hpobench_ordered.errors import ArtifactError

if TYPE_CHECKING:
    from hpobench_ordered.space import SearchSpace


class SurrogateType(Enum):
    """Kinds of surrogates that are stored as arrays.

    Their classes are imported when they are used, since compiled kernels load slowly.

    Examples:
        >>> from hpobench_ordered.surrogates import SurrogateType
        >>> [kind.name for kind in SurrogateType]
        ['TABLE', 'NEAREST', 'FOREST', 'PER_TASK']
    """

    TABLE = "hpobench_ordered.surrogates.table:TableSurrogate"
    NEAREST = "hpobench_ordered.surrogates.nearest:NearestSurrogate"
    FOREST = "hpobench_ordered.surrogates.forest:ForestSurrogate"
    PER_TASK = "hpobench_ordered.surrogates.per_task:PerTaskSurrogate"

    @property
    def surrogate_class(self) -> "type[StoredSurrogate]":
        """The class of this kind, imported from its module when it is first used."""
        module_name, class_name = self.value.split(":")  # a value is MODULE:CLASS
        module = import_module(module_name)
        return cast("type[StoredSurrogate]", getattr(module, class_name))

    def from_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> "StoredSurrogate":
        """Build a surrogate of this kind from the arrays of its `to_arrays`, by name.

        Raises:
            ArtifactError: Arrays are missing, or do not fit together.
        """
        try:
            return self.surrogate_class.from_arrays(arrays)
        except (LookupError, TypeError, ValueError) as error:
            raise ArtifactError(
                f"the arrays are not those of a {self.name.lower()} surrogate: {error!r}"
            ) from error


class StoredSurrogate(ABC):
    """A surrogate that an artifact stores as arrays."""

    STORED_AS: ClassVar[SurrogateType]
    """The kind that rebuilds it from its arrays."""
    ARRAYS: ClassVar[Mapping[str, StoredArray]]
    """Its arrays by name."""

    @property
    def kind(self) -> SurrogateType:
        """Kind of the model that predicts, `STORED_AS` unless it combines several models."""
        return self.STORED_AS

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of hyperparameters, d."""

    @property
    @abstractmethod
    def n_tasks(self) -> int:
        """Number of tasks, T."""

    @abstractmethod
    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Predict the objective of configurations, coded values (n, d), on a task, (n,)."""

    @abstractmethod
    def predict_one(self, row: FloatArray, task: int) -> float:
        """Predict one configuration, shape (d,); equals `predict(row[None], task)[0]` exactly."""

    def value_grid(self, task: int) -> tuple[float, float] | None:
        """Return the evenly spaced grid on which all predictions of a task lie, if there is one.

        With a grid, predictions can be stored as whole numbers.

        Returns:
            Base and unit of the grid: every prediction is exactly base + unit * count, computed in
            double precision, where count is a whole number. None, the default, if predictions lie
            on no grid.
        """
        return None

    @abstractmethod
    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the whole surrogate as arrays, by name, for an npz file without pickle."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Build the surrogate from the arrays that `to_arrays` returns."""

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[dict[str, NDArray[Any]]]]:
        """Pickle the surrogate as its arrays: unpickling computes everything else from them."""
        return type(self).from_arrays, (self.to_arrays(),)

    def check_covers(self, space: "SearchSpace") -> None:
        """Raise a `ValueError` unless the surrogate has a value for each configuration of a space.

        By default nothing is checked, since most surrogates have a value for any configuration.
        """
        return


def load_stored(
    kind: SurrogateType, arrays: Mapping[str, NDArray[Any]], *, space: "SearchSpace", n_tasks: int
) -> StoredSurrogate:
    """Build a surrogate from arrays of unknown origin, and check that it fits a benchmark.

    Types and dimensions of the arrays are checked first, as compiled kernels do not check bounds.

    Args:
        kind: Kind of the surrogate.
        arrays: The arrays by name, as read from a file.
        space: Search space of the benchmark.
        n_tasks: Number of tasks of the benchmark.

    Raises:
        ValueError: The arrays are not those of a surrogate of this kind, space and number of tasks.
    """
    allowed_arrays = dict(kind.surrogate_class.ARRAYS)  # types and dimensions, by name
    if kind is SurrogateType.PER_TASK:  # has the arrays of one surrogate for each task, too
        kind_of_tasks = SurrogateType[str(arrays["kind"])]
        if kind_of_tasks is SurrogateType.PER_TASK:
            raise ValueError("a task's surrogate must not be of kind PER_TASK")
        allowed_arrays |= kind_of_tasks.surrogate_class.ARRAYS
    check_arrays(arrays, allowed_arrays)

    model = kind.from_arrays(arrays)
    model.check_covers(space)
    if model.n_tasks != n_tasks or model.dimension != space.dimension:
        raise ValueError(
            f"it must have {n_tasks} tasks and {space.dimension} hyperparameters, but got "
            f"{model.n_tasks} and {model.dimension}"
        )
    return model
