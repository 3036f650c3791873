"""Forests of regression trees with several outputs: compact arrays, compiled evaluation.

Notation:
    n, d    configurations, hyperparameters
    p       features of the coding
    K       outputs: tasks with evaluations; every leaf has a value for each
    T       tasks, each an output or linear between two
    t       trees
    q, l    nodes and leaves of all trees together; every tree has one leaf more than inner nodes

Trees are stored depth first, a node's left child right after it, so that the positions of the
leaves determine the shape. An output is offset + step * code, averaged over the trees, with integer
codes from 0 to 65535 in the leaves. Sums of codes are exact; predictions are off by at most half a
step, 1/131070 of the output's range.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.files.arrays import StoredArray, read_only
from hpobench_ordered.surrogates.base import StoredSurrogate, SurrogateType, check_task
from hpobench_ordered.surrogates.coding import Coding, kernels

if TYPE_CHECKING:
    from hpobench_ordered.space import SearchSpace

LEAF = 255
"""Stored feature of a leaf."""
_ARRAYS = ("nodes", "feature", "threshold", "codes", "offset", "step")


@dataclass(frozen=True, slots=True)
class TaskMix:
    """A task's prediction from the outputs: (1 - weight) * low + weight * high."""

    low: int
    high: int
    weight: float = 0.0


def interpolate(fitted: Sequence[float], contexts: Sequence[float]) -> tuple[TaskMix, ...]:
    """Place tasks linearly between the outputs fitted at increasing contexts."""
    if any(a >= b for a, b in pairwise(fitted)):
        raise ValueError(f"contexts of outputs must increase, but got {list(fitted)}")
    mixes = []
    for context in contexts:
        if not fitted[0] <= context <= fitted[-1]:
            raise ValueError(f"{context} must be within {fitted[0]} to {fitted[-1]}")
        high = int(np.searchsorted(fitted, context))
        if fitted[high] == context:
            mixes.append(TaskMix(high, high))
        else:
            span = fitted[high] - fitted[high - 1]
            mixes.append(TaskMix(high - 1, high, (context - fitted[high - 1]) / span))
    return tuple(mixes)


@dataclass(eq=False)
class ForestSurrogate(StoredSurrogate):
    """An average of regression trees, stored one after the other, each depth first."""

    STORED_AS = SurrogateType.FOREST
    ARRAYS = {  # noqa: RUF012  # declared a ClassVar by the base class
        "coding": StoredArray(2, (np.float64,)),
        "nodes": StoredArray(1, (np.int32,)),
        "feature": StoredArray(1, (np.uint8,)),
        "threshold": StoredArray(1, (np.float32,)),
        "codes": StoredArray(2, (np.uint16,)),
        "offset": StoredArray(1, (np.float64,)),
        "step": StoredArray(1, (np.float64,)),
        "task_outputs": StoredArray(2, (np.int32,)),
        "task_weights": StoredArray(1, (np.float64,)),
    }

    coding: Coding
    nodes: NDArray[np.int32]  # number of nodes of each tree, (t,)
    feature: NDArray[np.uint8]  # split on by each node, `LEAF` in leaves, (q,)
    threshold: NDArray[np.float32]  # of inner nodes; x <= threshold goes left, (l - t,)
    codes: NDArray[np.uint16]  # of each output in each leaf, (K, l)
    offset: FloatArray  # value of code 0, (K,)
    step: FloatArray  # value from one code to the next, (K,)
    tasks: tuple[TaskMix, ...]  # T of them
    _batch: tuple[NDArray[Any], ...] = field(init=False, repr=False)
    _one: tuple[NDArray[Any], ...] = field(init=False, repr=False)
    _mixes: tuple[tuple[int, int, float], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            array = read_only(getattr(self, name), self.ARRAYS[name].types[0])
            setattr(self, name, array)
        self._check()
        roots, child, leaf = _links(self.nodes, self.feature)
        inner = self.feature != LEAF
        threshold = np.zeros(self.feature.shape, dtype=np.float32)
        threshold[inner] = self.threshold
        feature = np.where(inner, self.feature, 0).astype(np.uint8)
        units = np.stack((self.offset, self.step / len(roots)), axis=1)
        before = (self.coding.table, feature, threshold, child, roots)
        after = (leaf, self.codes, units)
        self._batch = (*before, _depths(roots, child), *after)
        self._one = (*before, *after)
        mixes = tuple((mix.low, mix.high, mix.weight) for mix in self.tasks)
        self._mixes = mixes

    def _check(self) -> None:
        outputs, leaves = self.codes.shape
        is_leaf = self.feature == LEAF
        # Read depth first, a tree is complete once it has one leaf more than inner nodes.
        surplus = np.maximum.accumulate(np.cumsum(np.where(is_leaf, 1, -1)))
        ends = np.cumsum(self.nodes) - 1
        if not len(self.nodes) or self.nodes.min() < 1 or ends[-1] != len(self.feature) - 1:
            raise ValueError("the numbers of nodes do not add up")
        completed = np.searchsorted(surplus, np.arange(1, len(ends) + 1))
        if is_leaf.sum() != leaves or not np.array_equal(completed, ends):
            raise ValueError("the nodes are not whole trees, stored depth first")
        if self.threshold.shape != (leaves - len(self.nodes),):
            raise ValueError("every inner node needs one threshold")
        if self.feature[~is_leaf].max(initial=0) >= len(self.coding):
            raise ValueError("a node splits on a feature that the coding does not have")
        if not self.offset.shape == self.step.shape == (outputs,):
            raise ValueError("every output needs one offset and one step")
        if any(not (0 <= m.low < outputs and 0 <= m.high < outputs) for m in self.tasks):
            raise ValueError("a task refers to an output that does not exist")

    @property
    def dimension(self) -> int:
        """Number of hyperparameters, d."""
        return self.coding.width

    @property
    def n_tasks(self) -> int:
        """Number of tasks, T."""
        return len(self.tasks)

    def check_covers(self, space: "SearchSpace") -> None:
        """See `StoredSurrogate.check_covers`."""
        if not all(0 <= mix.weight <= 1 for mix in self.tasks):
            raise ValueError("weights of outputs must be between 0 and 1")
        highest = self.offset + self.step * np.iinfo(np.uint16).max
        if not np.isfinite(highest).all():
            raise ValueError("a forest's values overflow")

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Predict the objective of many configurations, shape (n, d) to (n,)."""
        mix = self._mix(task)
        values = self.coding.checked(values)
        predictions: FloatArray = kernels().forest_predict(values, *self._batch, *mix)
        return predictions

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Predict one configuration, shape (d,); equals `predict(row[None], task)[0]` exactly."""
        mix = self._mix(task)
        if row.shape[0] < self.coding.width:
            raise ValueError(f"a row needs {self.coding.width} values, but got {row.shape}")
        prediction: float = kernels().forest_predict_one(row, *self._one, *mix)
        return prediction

    def _mix(self, task: int) -> tuple[int, int, float]:
        check_task(task, len(self._mixes))
        return self._mixes[task]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """See `StoredSurrogate.to_arrays`."""
        return {
            "coding": self.coding.table,
            **{name: getattr(self, name) for name in _ARRAYS},
            "task_outputs": np.array([(m.low, m.high) for m in self.tasks], dtype=np.int32),
            "task_weights": np.array([m.weight for m in self.tasks], dtype=np.float64),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Inverse of `to_arrays`."""
        outputs, weights = arrays["task_outputs"].tolist(), arrays["task_weights"].tolist()
        pairs = zip(outputs, weights, strict=True)
        tasks = tuple(TaskMix(low, high, weight) for (low, high), weight in pairs)
        stored = {name: arrays[name] for name in _ARRAYS}
        return cls(coding=Coding.from_table(arrays["coding"]), tasks=tasks, **stored)


def _links(
    nodes: NDArray[np.int32], feature: NDArray[np.uint8]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
    """Roots (t,), children (2 q,) and leaf numbers (q,) for `_kernels.forest_predict`."""
    is_leaf = feature == LEAF
    # Number of subtrees still to be read before a node: the right child is the first node after the
    # parent with the parent's number, as the left subtree has then been read.
    missing = np.concatenate(([0], np.cumsum(np.where(is_leaf, -1, 1))[:-1]))
    order = np.argsort(missing, kind="stable")
    following = np.zeros(len(feature), dtype=np.int64)
    following[order[:-1]] = order[1:]
    numbers = np.arange(len(feature))
    child = np.stack(
        (np.where(is_leaf, numbers, numbers + 1), np.where(is_leaf, numbers, following)), axis=1
    )
    roots = np.concatenate(([0], np.cumsum(nodes)[:-1]))
    leaf = np.cumsum(is_leaf) - is_leaf
    return roots.astype(np.uint32), child.ravel().astype(np.uint32), leaf.astype(np.uint32)


def _depths(roots: NDArray[np.uint32], child: NDArray[np.uint32]) -> IntArray:
    """Depth of each tree, (t,)."""
    depths = np.zeros(len(roots), dtype=np.int64)
    pairs = child.reshape(-1, 2)
    level = roots
    while True:
        level = level[pairs[level, 0] != level]
        if not len(level):
            return depths
        depths[np.searchsorted(roots, level, side="right") - 1] += 1
        level = pairs[level].ravel()
