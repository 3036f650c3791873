"""1-nearest neighbour among stored evaluations, under a declared coding.

Notation:
    m   number of stored configurations
    T   number of tasks
    p   number of features of the coding
    b   number of blocks of neighbouring configurations

The neighbour is exact in Euclidean distance between float64 features; of ties the first stored.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.data.arrays import StoredArray, read_only
from hpobench_ordered.surrogates.base import StoredSurrogate, SurrogateType, check_task
from hpobench_ordered.surrogates.coding import Coding, kernels, space_coding

if TYPE_CHECKING:
    from hpobench_ordered.space import SearchSpace

POINTS_PER_BLOCK = 32
_LANES = 4  # of `_kernels`, which takes too long to import here


@dataclass(eq=False)
class NearestSurrogate(StoredSurrogate):
    """The evaluation of the most similar stored configuration."""

    STORED_AS = SurrogateType.NEAREST
    ARRAYS = dict.fromkeys(("coding", "points", "targets"), StoredArray(2, (np.float64,)))

    coding: Coding
    points: FloatArray  # features of the stored configurations, (m, p)
    targets: FloatArray  # in the objective's own units, (m, T)
    _blocks: "_Blocks" = field(init=False, repr=False)  # `points` sorted for the search

    def __post_init__(self) -> None:
        """Check the arrays, and sort the points into blocks for the search."""
        points, targets = read_only(self.points), read_only(self.targets)
        if points.shape[1:] != (len(self.coding),) or not len(points):
            raise ValueError(
                f"points need shape (m, {len(self.coding)}), m > 0, but got {points.shape}"
            )
        if targets.ndim != 2 or len(targets) != len(points):
            raise ValueError(f"targets need shape ({len(points)}, T), but got {targets.shape}")
        if not (np.isfinite(points).all() and np.isfinite(targets).all()):
            raise ValueError("points and targets must be finite")
        self.points = points
        self.targets = targets
        self._blocks = _Blocks.of(points)

    @classmethod
    def from_evaluations(cls, values: FloatArray, targets: FloatArray, *, coding: Coding) -> Self:
        """Store configurations (m, d), NaN where inactive, with their objective values (m, T)."""
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
        """Raise a `ValueError` unless every configuration of a space has finite features.

        With those, distances are finite, so that there is a nearest stored configuration, whose
        value is finite, too.
        """
        self.coding.check_finite(space)

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Predict the objective of many configurations, shape (n, d) to (n,)."""
        check_task(task, self.targets.shape[1])
        nearest_rows = self._find_nearest(self.coding.checked(values))  # as an array for kernels
        predictions: FloatArray = self.targets[nearest_rows, task]
        return predictions

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Predict one configuration, shape (d,); equals `predict(row[None], task)[0]` exactly."""
        check_task(task, self.targets.shape[1])
        if row.shape[0] < self.coding.width:
            raise ValueError(f"a row needs {self.coding.width} values, but got {row.shape}")
        nearest_row = self._find_nearest(row[None])[0]
        return float(self.targets[nearest_row, task])

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """See `StoredSurrogate.to_arrays`."""
        return {"coding": self.coding.table, "points": self.points, "targets": self.targets}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Inverse of `to_arrays`."""
        return cls(Coding.from_table(arrays["coding"]), arrays["points"], arrays["targets"])

    def _find_nearest(self, values: FloatArray) -> IntArray:
        """Find for configurations (n, d) the rows of the nearest stored ones in `targets`, (n,).

        A compiled kernel computes the features of `values` by the table of the coding. It compares
        them with the stored points, which `_blocks` holds sorted into blocks of neighbours with
        their bounding boxes, so that few points need to be searched.
        """
        coding_table = self.coding.table  # one row a feature
        nearest_rows: IntArray = kernels().nearest(values, coding_table, *self._blocks)
        return nearest_rows


def authors_coding(space: "SearchSpace", values: FloatArray) -> Coding:
    """Make the coding of Hellan et al. (2023), appendix B: raw values, standardised over `values`.

    `values` are configurations, (m, d). Without log scales the upper ends of log-scaled ranges
    dominate distances: `log_coding` is better.
    """
    return space_coding(space, log_scales=False).standardised(values)


def log_coding(space: "SearchSpace", values: FloatArray) -> Coding:
    """Make the coding with the log scales of the space, standardised over `values` (m, d)."""
    return space_coding(space).standardised(values)


class _Blocks(NamedTuple):
    """Points sorted into blocks of neighbours; see `_kernels.nearest_point`."""

    points: FloatArray
    order: IntArray
    starts: IntArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def of(cls, points: FloatArray) -> Self:
        """Sort points (m, p) into blocks of at most `POINTS_PER_BLOCK` neighbours.

        Each block is sorted by its most spread feature and cut in the middle. This is repeated
        until all blocks are small enough, so their number is a power of two.
        """
        order = np.arange(len(points))  # original indices of the points, block by block
        starts = np.array([0, len(points)])  # first place of each block in `order` and, last, m
        while np.diff(starts).max() > POINTS_PER_BLOCK:
            for begin, end in pairwise(starts):
                order[begin:end] = _sort_by_most_spread_feature(points, order[begin:end])
            middles = (starts[:-1] + starts[1:]) // 2
            starts = np.insert(starts, range(1, len(starts)), middles)

        # Kernels compute `_LANES` features at once, so features that are always 0 are added until
        # their number is a multiple of `_LANES`.
        n_missing_features = -points.shape[1] % _LANES
        padded = np.pad(points[order], ((0, 0), (0, n_missing_features)))
        lower = np.minimum.reduceat(padded, starts[:-1])  # of each block, (b, p)
        upper = np.maximum.reduceat(padded, starts[:-1])
        return cls(
            points=np.ascontiguousarray(padded.T),
            order=order,
            starts=starts,
            lower=np.ascontiguousarray(lower.T),
            upper=np.ascontiguousarray(upper.T),
        )


def _sort_by_most_spread_feature(points: FloatArray, rows: IntArray) -> IntArray:
    """Sort some rows of `points` (m, p) by the feature that varies most among them."""
    features = points[rows]
    # The spread is the mean absolute deviation, as raw values often have outliers.
    spread = np.abs(features - features.mean(axis=0)).mean(axis=0)
    ascending = np.argsort(features[:, np.argmax(spread)], kind="stable")
    return rows[ascending]
