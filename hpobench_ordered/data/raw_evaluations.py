"""Raw evaluations, from which surrogates are made.

Notation:
    n, d    evaluations of a task, hyperparameters
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.data.arrays import StoredArray, copy_read_only


@dataclass(eq=False)
class RawEvaluations:
    """Raw evaluations of one task, read-only.

    Several evaluations may be of one training, such as those after each epoch.

    Attributes:
        values: Configurations as coded by `SearchSpace.values`, (n, d).
        objective: Objective values in their own units, finite, (n,).
        spread: Standard deviation of each objective value, such as over folds; NaN if it is not
            known, (n,).
        training: Number of the training that each evaluation is of, (n,).
    """

    values: FloatArray = field(repr=False)
    objective: FloatArray = field(repr=False)
    spread: FloatArray = field(repr=False)
    training: IntArray = field(repr=False)

    def __post_init__(self) -> None:
        """Copy the arrays, and raise a `ValueError` unless their shapes and numbers are right."""
        for name, kind in RAW_ARRAYS.items():
            setattr(self, name, copy_read_only(getattr(self, name), kind))
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
        """Return the number of evaluations."""
        return len(self.values)


def count_distinct(values: FloatArray) -> int:
    """Count the distinct configurations among coded values (n, d)."""
    distinct_rows = np.unique(make_comparable(values), axis=0)
    return len(distinct_rows)


def make_comparable(values: FloatArray) -> FloatArray:
    """Change coded values (n, d) so that equal configurations have equal numbers and bytes.

    NaN, which marks inactive hyperparameters and differs from itself, becomes infinity, and -0.0
    becomes 0.0.
    """
    without_nan = np.where(np.isnan(values), np.inf, values)
    return without_nan + 0.0  # changes -0.0 to 0.0


RAW_ARRAYS: Mapping[str, type[np.generic]] = {
    "values": np.float64,
    "objective": np.float64,
    "spread": np.float64,
    "training": np.int64,
}
STORED_ARRAYS = {
    name: StoredArray(None, (kind,), may_be_nan=True) for name, kind in RAW_ARRAYS.items()
}
