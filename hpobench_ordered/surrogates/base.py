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
        """The class of this kind, imported from its module; a value is MODULE:CLASS."""
        module, name = self.value.split(":")
        return cast("type[StoredSurrogate]", getattr(import_module(module), name))

    def from_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> "StoredSurrogate":
        """Build a surrogate of this kind; `ArtifactError` if arrays are missing or do not fit."""
        try:
            return self.surrogate_class.from_arrays(arrays)
        except (LookupError, TypeError, ValueError) as error:
            raise ArtifactError(
                f"the arrays are not those of a {self.name.lower()} surrogate: {error!r}"
            ) from error


def check_task(task: int, count: int) -> None:
    """Raise an `IndexError` unless a task is the index of one of `count` tasks."""
    if not 0 <= task < count:
        raise IndexError(f"task must be from 0 to {count - 1}, but got {task}")


class StoredSurrogate(ABC):
    """A surrogate that an artifact stores as arrays."""

    STORED_AS: ClassVar[SurrogateType]
    """The kind that rebuilds it from its arrays."""
    ARRAYS: ClassVar[Mapping[str, StoredArray]]
    """Its arrays by name."""

    @property
    def kind(self) -> SurrogateType:
        """What kind of model it is."""
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
        """See `Surrogate.predict`."""

    @abstractmethod
    def predict_one(self, row: FloatArray, task: int) -> float:
        """See `Surrogate.predict_one`."""

    def value_grid(self, task: int) -> tuple[float, float] | None:
        """Return the grid on which all predictions of a task lie; None if there is none.

        With a grid, predictions can be stored as whole numbers.

        Returns:
            Base and unit: every prediction is exactly base + unit * count, computed in double
            precision, with a whole number count. None, the default, if there is no grid.
        """
        return None

    @abstractmethod
    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All of the surrogate as arrays for an npz file without pickle."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Inverse of `to_arrays`."""

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[dict[str, NDArray[Any]]]]:
        """Pickle it as its arrays: everything else is computed from them again."""
        return type(self).from_arrays, (self.to_arrays(),)

    def check_covers(self, space: "SearchSpace") -> None:
        """Raise a `ValueError` unless the surrogate has a value for each configuration of a space.

        Most surrogates have a value for every configuration, so nothing is checked by default.
        """
        return


def load_stored(
    kind: SurrogateType, arrays: Mapping[str, NDArray[Any]], *, space: "SearchSpace", n_tasks: int
) -> StoredSurrogate:
    """Build a surrogate from arrays of unknown origin, and check that it fits a benchmark.

    Compiled kernels do not check bounds: types and dimensions are therefore checked first.

    Args:
        kind: Kind of the surrogate whose arrays they are.
        arrays: The arrays by name, as read from a file.
        space: Search space of the benchmark.
        n_tasks: Number of tasks of the benchmark.

    Raises:
        ValueError: The arrays are not those of a surrogate of this kind, space and number of tasks.
    """
    expected = dict(kind.surrogate_class.ARRAYS)  # types and dimensions, by name
    if kind is SurrogateType.PER_TASK:  # made of one surrogate a task, of another kind
        inner = SurrogateType[str(arrays["kind"])]
        if inner is SurrogateType.PER_TASK:
            raise ValueError("a task's surrogate must not be of kind PER_TASK")
        expected |= inner.surrogate_class.ARRAYS
    check_arrays(arrays, expected)

    model = kind.from_arrays(arrays)
    model.check_covers(space)
    if model.n_tasks != n_tasks or model.dimension != space.dimension:
        raise ValueError(
            f"it must have {n_tasks} tasks and {space.dimension} hyperparameters, but got "
            f"{model.n_tasks} and {model.dimension}"
        )
    return model
