"""Evaluations as they were made, before any surrogate.

Notation:
    n, d    evaluations of a task, hyperparameters
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.surrogates.base import StoredArray


@dataclass(frozen=True, eq=False)
class RawEvaluations:
    """Evaluations of one task as they were made, before any surrogate; its arrays are read-only.

    Attributes:
        values: Configurations as coded by `SearchSpace.values`, (n, d).
        objective: Objective values in the objective's own units, (n,).
        spread: Standard deviation over what each objective value is the mean of, such as folds;
            NaN where unknown, (n,).
        training: Number of the training that each evaluation was read from: several may share one,
            read after different numbers of rounds, (n,).

    Raises:
        ValueError: The shapes do not fit, there is no evaluation, or an objective value is not
            finite.
    """

    values: FloatArray = field(repr=False)
    objective: FloatArray = field(repr=False)
    spread: FloatArray = field(repr=False)
    training: IntArray = field(repr=False)

    def __post_init__(self) -> None:
        for name, kind in RAW_ARRAYS.items():
            array = np.array(getattr(self, name), dtype=kind, order="C")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        n = len(self.values)
        shapes = {self.objective.shape, self.spread.shape, self.training.shape}
        if self.values.ndim != 2 or n == 0 or shapes != {(n,)}:
            raise ValueError(f"shapes of evaluations do not fit: {self.values.shape}, {shapes}")
        if not np.isfinite(self.objective).all():
            raise ValueError("objective values must be finite")

    def __len__(self) -> int:
        return len(self.values)


def count_distinct(values: FloatArray) -> int:
    """Number of different configurations, (n, d) to a number; inactive values are equal."""
    return len(np.unique(comparable(values), axis=0))


def comparable(values: FloatArray) -> FloatArray:
    """Configurations (n, d) whose equal rows compare equal: NaN becomes infinite, -0 becomes 0."""
    return np.where(np.isnan(values), np.inf, values) + 0.0


RAW_ARRAYS: Mapping[str, type[np.generic]] = {
    "values": np.float64,
    "objective": np.float64,
    "spread": np.float64,
    "training": np.int64,
}
STORED_ARRAYS = {
    name: StoredArray(None, (kind,), may_be_nan=True) for name, kind in RAW_ARRAYS.items()
}
