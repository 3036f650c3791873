"""1-nearest neighbour among stored evaluations, under a declared coding.

Notation:
    m   number of stored configurations
    T   number of tasks
    p   number of features of the coding
    b   number of blocks of neighbouring configurations

The neighbour is exact in Euclidean distance between float64 features; among equally near ones the
one stored first counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.surrogates.base import StoredArray, StoredSurrogate, SurrogateType
from hpobench_ordered.surrogates.coding import Coding, kernels, space_coding

if TYPE_CHECKING:
    from hpobench_ordered.space import SearchSpace

POINTS_PER_BLOCK = 32
_LANES = 4  # of `_kernels`, which takes too long to import here


@dataclass(frozen=True, eq=False)
class NearestSurrogate(StoredSurrogate):
    """The evaluation of the most similar stored configuration.

    Attributes:
        coding: Features in which configurations are compared.
        points: Features of the stored configurations, shape (m, p).
        targets: Their evaluations in the objective's own units, shape (m, T).
    """

    STORED_AS = SurrogateType.NEAREST
    ARRAYS = dict.fromkeys(("coding", "points", "targets"), StoredArray(2, (np.float64,)))

    coding: Coding
    points: FloatArray
    targets: FloatArray
    _blocks: "_Blocks" = field(init=False, repr=False)

    def __post_init__(self) -> None:
        points, targets = _frozen(self.points), _frozen(self.targets)
        if points.shape[1:] != (len(self.coding),) or not len(points):
            raise ValueError(
                f"points need shape (m, {len(self.coding)}), m > 0, not {points.shape}"
            )
        if targets.ndim != 2 or len(targets) != len(points):
            raise ValueError(f"targets need shape ({len(points)}, T), not {targets.shape}")
        if not (np.isfinite(points).all() and np.isfinite(targets).all()):
            raise ValueError("points and targets must be finite")
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "targets", targets)
        object.__setattr__(self, "_blocks", _Blocks.of(points))

    def __reduce__(self) -> tuple[type[Self], tuple[Coding, FloatArray, FloatArray]]:
        return type(self), (self.coding, self.points, self.targets)

    @classmethod
    def from_evaluations(cls, values: FloatArray, targets: FloatArray, *, coding: Coding) -> Self:
        """Store evaluations.

        Args:
            values: Configurations, native values with inactive ones NaN, shape (m, d).
            targets: Their evaluations on every task, shape (m, T).
            coding: Features in which configurations are compared.
        """
        return cls(coding, coding.encode(values), targets)

    @property
    def dimension(self) -> int:
        """Number of hyperparameters, d."""
        return self.coding.width

    @property
    def n_tasks(self) -> int:
        """Number of tasks, T."""
        return int(self.targets.shape[1])

    def check_covers(self, space: "SearchSpace") -> None:
        """Check that no configuration has a feature that is not a number."""
        self.coding.check_finite(space)

    def known_values(self, task: int, space: "SearchSpace") -> FloatArray:
        """The stored evaluations of a task."""
        values: FloatArray = self.targets[:, task]
        return values

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Predict the objective of many configurations, shape (n, d) to (n,)."""
        self._check_task(task)
        values = np.ascontiguousarray(values, dtype=np.float64)
        self.coding.check(values)
        index = self._nearest(values)
        predictions: FloatArray = self.targets[index, task]
        return predictions

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Predict one configuration, shape (d,); equals `predict(row[None], task)[0]` exactly."""
        self._check_task(task)
        if row.shape[0] < self.coding.width:
            raise ValueError(f"a row needs {self.coding.width} values, got {row.shape}")
        return float(self.targets[self._nearest(row[None])[0], task])

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return coding, points and targets as arrays for an npz file without pickle."""
        return {"coding": self.coding.table, "points": self.points, "targets": self.targets}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Build the surrogate from `to_arrays`' result."""
        return cls(Coding.from_table(arrays["coding"]), arrays["points"], arrays["targets"])

    def _nearest(self, values: FloatArray) -> IntArray:
        index: IntArray = kernels().nearest(values, self.coding.table, *self._blocks)
        return index

    def _check_task(self, task: int) -> None:
        if not 0 <= task < self.targets.shape[1]:
            raise IndexError(f"task {task} is not one of 0..{self.targets.shape[1] - 1}")


def authors_coding(space: "SearchSpace", values: FloatArray) -> Coding:
    """Code configurations as the authors do: raw values, standardised, no log scales.

    Distances are then dominated by the upper ends of log-scaled ranges. It reproduces the numbers
    of Hellan et al. (2023), appendix B; `log_coding` is the better one.

    Args:
        space: The search space.
        values: Stored configurations, whose mean and population deviation standardise, (m, d).
    """
    return space_coding(space, log_scales=False).standardised(values)


def log_coding(space: "SearchSpace", values: FloatArray) -> Coding:
    """Code configurations with the log scales of the space, standardised over `values` (m, d)."""
    return space_coding(space).standardised(values)


class _Blocks(NamedTuple):
    """Points sorted into blocks of neighbours; see `_kernels.nearest_point` for its arrays."""

    points: FloatArray
    order: IntArray
    starts: IntArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def of(cls, points: FloatArray) -> Self:
        """Halve the points (m, p) along their most spread feature until blocks are small."""
        order, starts = np.arange(len(points)), np.array([0, len(points)])
        while np.diff(starts).max() > POINTS_PER_BLOCK:
            for begin, end in pairwise(starts):
                members = points[order[begin:end]]
                # Mean absolute deviation: a range follows outliers, of which raw values are full.
                spread = np.abs(members - members.mean(axis=0)).mean(axis=0)
                ranks = np.argsort(members[:, np.argmax(spread)], kind="stable")
                order[begin:end] = order[begin:end][ranks]
            starts = np.insert(starts, range(1, len(starts)), (starts[:-1] + starts[1:]) // 2)
        padding = -points.shape[1] % _LANES
        padded = np.pad(points[order], ((0, 0), (0, padding)))
        lower = np.minimum.reduceat(padded, starts[:-1])
        upper = np.maximum.reduceat(padded, starts[:-1])
        columns = (np.ascontiguousarray(array.T) for array in (padded, lower, upper))
        blocked, low, high = columns
        return cls(blocked, order, starts, low, high)


def _frozen(array: FloatArray) -> FloatArray:
    copy = np.array(array, dtype=np.float64, order="C")
    copy.flags.writeable = False
    return copy
