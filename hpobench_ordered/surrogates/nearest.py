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
from hpobench_ordered.data.arrays import StoredArray, copy_read_only
from hpobench_ordered.data.surrogate import check_task
from hpobench_ordered.surrogates.base import StoredSurrogate, SurrogateType
from hpobench_ordered.surrogates.coding import Coding, load_kernels, space_coding

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
        points, targets = copy_read_only(self.points), copy_read_only(self.targets)
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
        self._blocks = _sort_into_blocks(points)

    @classmethod
    def from_evaluations(cls, values: FloatArray, targets: FloatArray, *, coding: Coding) -> Self:
        """Build a surrogate that stores evaluations.

        Args:
            values: Configurations, coded values, NaN where inactive, (m, d).
            targets: Their objective values on each task, (m, T).
            coding: How features are computed, in which distances are measured.
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
        """Raise a `ValueError` unless every configuration of a space has finite features.

        With those, distances are finite, so that there is a nearest stored configuration, whose
        value is finite, too.
        """
        self.coding.check_finite(space)

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Predict the objective of many configurations, shape (n, d) to (n,)."""
        check_task(task, self.targets.shape[1])
        nearest_rows = self._find_nearest(self.coding.to_kernel_input(values))
        predictions: FloatArray = self.targets[nearest_rows, task]
        return predictions

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Predict one configuration, shape (d,); equals `predict(row[None], task)[0]` exactly."""
        check_task(task, self.targets.shape[1])
        if row.shape[0] < self.coding.width:  # kernels do not check bounds
            raise ValueError(f"a row needs {self.coding.width} values, but got {row.shape}")
        nearest_row = self._find_nearest(row[None])[0]
        return float(self.targets[nearest_row, task])

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return coding, stored features and targets as arrays, which `from_arrays` reads."""
        return {"coding": self.coding.table, "points": self.points, "targets": self.targets}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Build the surrogate from the arrays that `to_arrays` returns."""
        return cls(Coding.from_table(arrays["coding"]), arrays["points"], arrays["targets"])

    def _find_nearest(self, values: FloatArray) -> IntArray:
        """Find the stored configuration that is nearest to each configuration.

        A compiled kernel computes features, and compares them with those of stored configurations.

        Args:
            values: Configurations, coded values, (n, d).

        Returns:
            Rows of the nearest stored configurations in `points` and `targets`, (n,).
        """
        blocks = self._blocks  # the stored features, sorted so that few need to be compared
        nearest_rows: IntArray = load_kernels().nearest(
            values,
            self.coding.table,
            blocks.points,
            blocks.order,
            blocks.starts,
            blocks.lower,
            blocks.upper,
        )
        return nearest_rows


def authors_coding(space: "SearchSpace", values: FloatArray) -> Coding:
    """Make the coding of Hellan et al. (2023), appendix B, which ignores the space's log scales.

    Features are the raw values, standardised over the configurations `values`, (m, d). The upper
    ends of log-scaled ranges dominate distances between such features: `log_coding` is better.
    """
    return space_coding(space, log_scales=False).standardise(values)


def log_coding(space: "SearchSpace", values: FloatArray) -> Coding:
    """Make the coding with the log scales of the space, standardised over `values` (m, d)."""
    return space_coding(space).standardise(values)


class _Blocks(NamedTuple):
    """Points sorted into b blocks of neighbours, as `_kernels.nearest_point` searches them.

    Attributes:
        points: Features of the points, block by block, a column each, (p, m).
        order: Original index of each point, (m,).
        starts: First point of each block and, last, the number of points m, (b + 1,).
        lower: Smallest features in each block, (p, b).
        upper: Largest features in each block, (p, b).
    """

    points: FloatArray
    order: IntArray
    starts: IntArray
    lower: FloatArray
    upper: FloatArray


def _sort_into_blocks(points: FloatArray) -> _Blocks:
    """Sort points (m, p) into blocks of at most `POINTS_PER_BLOCK` neighbours.

    Each block is sorted by its most spread feature and cut in the middle. This is repeated until
    all blocks are small enough, so their number is a power of two.
    """
    order = np.arange(len(points))  # original indices of the points, block by block
    starts = np.array([0, len(points)])  # first place of each block in `order` and, last, m
    while np.diff(starts).max() > POINTS_PER_BLOCK:
        for begin, end in pairwise(starts):
            order[begin:end] = _sort_by_most_spread_feature(points, order[begin:end])
        # The middle of each block becomes the start of a new one.
        middles = (starts[:-1] + starts[1:]) // 2
        places_after_starts = range(1, len(starts))
        starts = np.insert(starts, places_after_starts, middles)

    # Kernels compute `_LANES` features at once, so features that are always 0 are added until
    # their number is a multiple of `_LANES`.
    n_missing_features = -points.shape[1] % _LANES
    padded = np.pad(points[order], ((0, 0), (0, n_missing_features)))
    first_rows = starts[:-1]  # `reduceat` reduces the rows from each of these to the next
    lower = np.minimum.reduceat(padded, first_rows)  # (b, p)
    upper = np.maximum.reduceat(padded, first_rows)
    return _Blocks(
        points=np.ascontiguousarray(padded.T),
        order=order,
        starts=starts,
        lower=np.ascontiguousarray(lower.T),
        upper=np.ascontiguousarray(upper.T),
    )


def _sort_by_most_spread_feature(points: FloatArray, rows: IntArray) -> IntArray:
    """Sort some rows of `points` (m, p) by the feature that varies most among these rows."""
    features = points[rows]
    # The spread is the mean absolute deviation, which outliers change less than the variance.
    deviations = np.abs(features - features.mean(axis=0))
    most_spread = np.argmax(deviations.mean(axis=0))  # index of a feature
    ascending = np.argsort(features[:, most_spread], kind="stable")
    return rows[ascending]
