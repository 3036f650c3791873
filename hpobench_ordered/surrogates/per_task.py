"""One surrogate per task: for tasks that were not evaluated on the same configurations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.arrays import StoredArray
from hpobench_ordered.data.surrogate import check_task
from hpobench_ordered.surrogates.base import StoredSurrogate, SurrogateType

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
            names_of_kinds = sorted(kind.name for kind in kinds)
            raise ValueError(
                f"tasks need surrogates of one kind, of one task each, but got {names_of_kinds}"
            )
        if len(dimensions) > 1:
            raise ValueError(f"surrogates must have one dimension, but got {sorted(dimensions)}")

    @property
    def kind(self) -> SurrogateType:
        """Kind of the tasks' surrogates, which all have the same."""
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

        The surrogate of each task must have this one task only, and cover the space.
        """
        for model in self.models:
            if model.n_tasks != 1:
                raise ValueError(f"a task's surrogate has {model.n_tasks} tasks")
            model.check_covers(space)

    def value_grid(self, task: int) -> tuple[float, float] | None:
        """Return the grid on which all predictions of a task lie; None if there is none.

        Returns:
            Base and unit: every prediction is base + unit * count with a whole number count.
        """
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
        """Return the whole surrogate as arrays, by name, which `from_arrays` reads.

        The array "kind" has the kind of the tasks' surrogates. Names of the other arrays are
        TASK/ARRAY, with the index of a task and the name of an array of its surrogate.
        """
        arrays: dict[str, NDArray[Any]] = {_KIND: np.array(self.kind.name)}
        for task, model in enumerate(self.models):
            for name, array in model.to_arrays().items():
                arrays[f"{task}/{name}"] = array
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Build the surrogate from the arrays that `to_arrays` returns.

        A malformed array, or one of a task that does not exist, raises a `ValueError` or a
        `LookupError`.
        """
        kind = SurrogateType[str(arrays[_KIND])]
        arrays_of_tasks: dict[int, dict[str, NDArray[Any]]] = {}
        for task_and_name in arrays.keys() - {_KIND}:  # such as "3/points"
            task_as_text, _, name = task_and_name.partition("/")
            arrays_of_task = arrays_of_tasks.setdefault(int(task_as_text), {})
            arrays_of_task[name] = arrays[task_and_name]

        models = []
        for task in range(len(arrays_of_tasks)):
            models.append(kind.from_arrays(arrays_of_tasks[task]))
        return cls(tuple(models))
