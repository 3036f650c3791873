"""Raw evaluations, from which surrogates are made.

Notation:
    n, d    evaluations of a task, hyperparameters
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.data.arrays import StoredArray, read_only


@dataclass(eq=False)
class RawEvaluations:
    """Raw evaluations of one task, read-only; several may come from one training, by rounds."""

    values: FloatArray = field(repr=False)  # as in `SearchSpace.values`, (n, d)
    objective: FloatArray = field(repr=False)  # finite, in its own units, (n,)
    spread: FloatArray = field(repr=False)  # standard deviation over, e.g., folds, or NaN, (n,)
    training: IntArray = field(repr=False)  # number of the training, (n,)

    def __post_init__(self) -> None:
        for name, kind in RAW_ARRAYS.items():
            setattr(self, name, read_only(getattr(self, name), kind))
        n = len(self.values)
        shapes = {self.objective.shape, self.spread.shape, self.training.shape}
        has_right_shapes = self.values.ndim == 2 and shapes == {(n,)}
        if n == 0 or not has_right_shapes:
            raise ValueError(
                f"shapes must be (n, d) for values and (n,) else, n above 0, but got "
                f"{self.values.shape} and {shapes}"
            )
        if not np.isfinite(self.objective).all():
            raise ValueError("objective values must be finite")

    def __len__(self) -> int:
        return len(self.values)


def count_distinct(values: FloatArray) -> int:
    """Number of distinct configurations (n, d), inactive values being equal."""
    return len(np.unique(make_comparable(values), axis=0))


def make_comparable(values: FloatArray) -> FloatArray:
    """Change configurations, (n, d), so that equal ones are equal numbers.

    NaN, of inactive hyperparameters, becomes infinite; -0 becomes 0 by adding 0.
    """
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
