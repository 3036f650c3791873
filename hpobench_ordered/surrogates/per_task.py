"""One surrogate per task: for tasks that were not evaluated on the same configurations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.arrays import StoredArray
from hpobench_ordered.surrogates.base import StoredSurrogate, SurrogateType, check_task

if TYPE_CHECKING:
    from hpobench_ordered.space import SearchSpace

_KIND = "kind"


@dataclass(frozen=True, eq=False)
class PerTaskSurrogate(StoredSurrogate):
    """Surrogates of one kind, one per task."""

    STORED_AS = SurrogateType.PER_TASK
    ARRAYS = {_KIND: StoredArray(0, (np.str_,))}  # noqa: RUF012  # a ClassVar in the base class

    models: tuple[StoredSurrogate, ...]

    def __post_init__(self) -> None:
        """Check that the tasks' surrogates are of one kind and of one search space."""
        if not self.models:
            raise ValueError("at least one task needs a surrogate")
        kinds = {model.STORED_AS for model in self.models}
        dimensions = {model.dimension for model in self.models}
        if len(kinds) > 1 or SurrogateType.PER_TASK in kinds:
            names = sorted(kind.name for kind in kinds)
            raise ValueError(
                f"tasks need surrogates of one kind, of one task each, but got {names}"
            )
        if len(dimensions) > 1:
            raise ValueError(f"surrogates must have one dimension, but got {sorted(dimensions)}")

    @property
    def kind(self) -> SurrogateType:
        """Kind of the tasks' surrogates."""
        return self.models[0].STORED_AS

    @property
    def dimension(self) -> int:
        """Number of hyperparameters, d."""
        return self.models[0].dimension

    @property
    def n_tasks(self) -> int:
        """Number of tasks, T."""
        return len(self.models)

    def check_covers(self, space: "SearchSpace") -> None:
        """Raise a `ValueError` unless every configuration of a space has a value.

        That is checked for the surrogate of each task, which must have this one task only.
        """
        for model in self.models:
            if model.n_tasks != 1:
                raise ValueError(f"a task's surrogate has {model.n_tasks} tasks")
            model.check_covers(space)

    def value_grid(self, task: int) -> tuple[float, float] | None:
        """Return the grid on which the predictions of the task's surrogate lie; None if none."""
        check_task(task, len(self.models))
        # The model has this one task, which is its number 0.
        return self.models[task].value_grid(0)

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Predict the objective of many configurations, shape (n, d) to (n,)."""
        check_task(task, len(self.models))
        model = self.models[task]
        # The model has this one task, which is its number 0.
        return model.predict(values, 0)

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Predict one configuration, shape (d,); equals `predict(row[None], task)[0]` exactly."""
        check_task(task, len(self.models))
        model = self.models[task]
        # The model has this one task, which is its number 0.
        return model.predict_one(row, 0)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the surrogates' kind (named `_KIND`), and the arrays of each, named TASK/ARRAY."""
        arrays: dict[str, NDArray[Any]] = {_KIND: np.array(self.kind.name)}
        for task, model in enumerate(self.models):
            arrays |= {f"{task}/{name}": array for name, array in model.to_arrays().items()}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Inverse of `to_arrays`: the kind of all surrogates, and arrays named TASK/ARRAY."""
        kind = SurrogateType[str(arrays[_KIND])]
        arrays_of_tasks: dict[int, dict[str, NDArray[Any]]] = {}
        for key in arrays.keys() - {_KIND}:  # all but the kind
            task, _, name = key.partition("/")
            arrays_of_tasks.setdefault(int(task), {})[name] = arrays[key]
        models = [kind.from_arrays(arrays_of_tasks[task]) for task in range(len(arrays_of_tasks))]
        return cls(tuple(models))
