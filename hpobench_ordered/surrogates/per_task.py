"""One surrogate a task: for tasks that were not evaluated on the same configurations.

Notation:
    n, d    configurations, hyperparameters
    T       tasks
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.surrogates import Surrogate, SurrogateType

_KIND = "kind"


class SingleTask(Surrogate, Protocol):
    """A surrogate of one task, which is task 0, that knows its dimension."""

    @property
    def dimension(self) -> int:
        """Number of hyperparameters, d."""
        ...


@dataclass(frozen=True, eq=False)
class PerTaskSurrogate:
    """Surrogates of one kind, each of one task.

    Attributes:
        models: One a task, T of them.

    Raises:
        ValueError: There are none, they are not of one stored kind, or their dimensions differ.
    """

    models: tuple[SingleTask, ...]
    _predict_one: tuple[Callable[[FloatArray, int], float], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.models:
            raise ValueError("at least one task needs a surrogate")
        kinds, dimensions = set(map(_kind, self.models)), {m.dimension for m in self.models}
        if len(kinds) > 1 or SurrogateType.PER_TASK in kinds:
            names = sorted(kind.name for kind in kinds)
            raise ValueError(
                f"the tasks need surrogates of one kind, of one task each, got {names}"
            )
        if len(dimensions) > 1:
            raise ValueError(f"the tasks' surrogates have dimensions {sorted(dimensions)}")
        # A look-up less in what is called most.
        object.__setattr__(self, "_predict_one", tuple(m.predict_one for m in self.models))

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[SingleTask, ...]]]:
        return type(self), (self.models,)

    @property
    def kind(self) -> SurrogateType:
        """Kind of every one of them."""
        return _kind(self.models[0])

    @property
    def dimension(self) -> int:
        """Number of hyperparameters, d."""
        return self.models[0].dimension

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Predict the objective of many configurations, shape (n, d) to (n,).

        Raises:
            IndexError: There is no such task.
            ValueError: The values have the wrong shape.
        """
        self._check_task(task)
        return self.models[task].predict(values, 0)

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Predict one configuration, shape (d,); equals `predict(row[None], task)[0]` exactly."""
        self._check_task(task)
        return self._predict_one[task](row, 0)

    def _check_task(self, task: int) -> None:
        if not 0 <= task < len(self.models):
            raise IndexError(f"task {task} is not one of 0..{len(self.models) - 1}")

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return their kind, and the arrays of each by the names TASK/ARRAY."""
        arrays: dict[str, NDArray[Any]] = {_KIND: np.array(self.kind.name)}
        for task, model in enumerate(self.models):
            arrays |= {f"{task}/{name}": array for name, array in model.to_arrays().items()}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Build the surrogate from `to_arrays`' result.

        Raises:
            ArtifactError: An array is missing or does not fit the others.
        """
        try:
            kind = SurrogateType[str(arrays[_KIND])]
            parts: dict[int, dict[str, NDArray[Any]]] = {}
            for key in arrays.keys() - {_KIND}:
                task, _, name = key.partition("/")
                parts.setdefault(int(task), {})[name] = arrays[key]
            models = [kind.from_arrays(parts[task]) for task in range(len(parts))]
            return cls(tuple(cast("list[SingleTask]", models)))
        except (KeyError, ValueError) as error:
            raise ArtifactError(f"the arrays are not a surrogate a task: {error}") from error


def _kind(model: Surrogate) -> SurrogateType:
    """The kind whose class a surrogate is of.

    Raises:
        ValueError: It is none of the kinds that are stored.
    """
    return SurrogateType(f"{type(model).__module__}:{type(model).__qualname__}")
