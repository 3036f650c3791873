"""The interface of surrogates, which benchmarks evaluate their tasks on."""

from typing import Protocol, runtime_checkable

from hpobench_ordered._typing import FloatArray


@runtime_checkable
class Surrogate(Protocol):
    """A regression model standing in for the real blackbox of all tasks of a benchmark.

    Immutable and picklable. Predictions depend on the configuration and the task alone: not on
    the batch a configuration is in, nor on threads, order or process.
    """

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Predict the objective of many configurations.

        Args:
            values: Validated native values as coded by `SearchSpace.values`, shape (n, d);
                categoricals as the index of the choice, inactive hyperparameters NaN.
            task: Index of the task in the benchmark.

        Returns:
            Objective values in the objective's own units, shape (n,).
        """
        ...

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Predict one configuration, shape (d,); equals `predict(row[None], task)[0]` exactly."""
        ...


def check_task(task: int, count: int) -> None:
    """Raise an `IndexError` unless `task` is the index of one of `count` tasks."""
    if not 0 <= task < count:
        raise IndexError(f"task must be from 0 to {count - 1}, but got {task}")
