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
from hpobench_ordered.data.arrays import StoredArray, read_only
from hpobench_ordered.surrogates.base import StoredSurrogate, SurrogateType, check_task
from hpobench_ordered.surrogates.coding import Coding, kernels

if TYPE_CHECKING:
    pass

LEAF = 255
"""Stored feature of a leaf."""
_ARRAYS = ("nodes", "feature", "threshold", "codes", "offset", "step")


@dataclass(frozen=True, slots=True)
class TaskMix:
    """A task's prediction from two outputs: (1 - weight) * output low + weight * output high.

    Attributes:
        low: Index of the output below the task, such as that of a smaller training fraction.
        high: Index of the output above it; the same as `low` if the task is an output itself.
        weight: Weight of the output `high`, from 0 to 1.
    """

    low: int
    high: int
    weight: float = 0.0


def interpolate(fitted: Sequence[float], contexts: Sequence[float]) -> tuple[TaskMix, ...]:
    """Find the two outputs of a forest that each task lies between, for linear interpolation.

    Args:
        fitted: Context of each output, such as its training fraction, increasing.
        contexts: Context of each task, within those of the outputs.

    Returns:
        For each task, the outputs below and above it, and the weight of the latter.
    """
    if any(a >= b for a, b in pairwise(fitted)):
        raise ValueError(f"contexts of outputs must increase, but got {list(fitted)}")
    mixes = []
    for context in contexts:
        if not fitted[0] <= context <= fitted[-1]:
            raise ValueError(f"{context} must be within {fitted[0]} to {fitted[-1]}")
        high = int(np.searchsorted(fitted, context))  # first output at or above the task
        if fitted[high] == context:
            mixes.append(TaskMix(high, high))
        else:
            low = high - 1
            weight_of_high = (context - fitted[low]) / (fitted[high] - fitted[low])
            mixes.append(TaskMix(low, high, weight_of_high))
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
    # The trees as the compiled kernels for batches and for single rows take them.
    _trees_for_batch: tuple[NDArray[Any], ...] = field(init=False, repr=False)
    _trees_for_row: tuple[NDArray[Any], ...] = field(init=False, repr=False)
    _mixes: tuple[tuple[int, int, float], ...] = field(init=False, repr=False)  # `tasks` as tuples

    def __post_init__(self) -> None:
        """Check the arrays, and link the nodes of trees as the compiled kernels need them."""
        for name in _ARRAYS:  # names of the fields that are arrays
            stored_type = self.ARRAYS[name].types[0]
            setattr(self, name, read_only(getattr(self, name), stored_type))
        self._check_nodes()
        self._check_thresholds_and_outputs()

        # Root of each tree, both children of each node, and the number of each leaf.
        roots, child, leaf = _link_nodes(self.nodes, self.feature)
        # Kernels index the arrays by node, so leaves need a feature and a threshold, too. Both are
        # 0 there and never used.
        is_inner = self.feature != LEAF
        threshold = np.zeros(self.feature.shape, dtype=np.float32)
        threshold[is_inner] = self.threshold
        feature = np.where(is_inner, self.feature, 0).astype(np.uint8)
        # A value is offset + step * (mean of the codes over trees), which equals
        # offset + (step / number of trees) * (sum of the codes).
        units = np.stack((self.offset, self.step / len(roots)), axis=1)

        # The arguments of the two compiled kernels, in the kernels' order. Only the kernel for
        # batches needs the depth of each tree.
        trees = (self.coding.table, feature, threshold, child, roots)
        leaves = (leaf, self.codes, units)
        self._trees_for_batch = (*trees, _measure_depths(roots, child), *leaves)
        self._trees_for_row = (*trees, *leaves)
        self._mixes = tuple((mix.low, mix.high, mix.weight) for mix in self.tasks)

    def _check_nodes(self) -> None:
        """Raise a `ValueError` unless the nodes are whole trees, stored depth first.

        `nodes` has the number of nodes of each tree, `feature` what each node splits on (`LEAF` in
        leaves), `codes` a column for each leaf.
        """
        n_leaves = self.codes.shape[1]
        is_leaf = self.feature == LEAF
        last_nodes = np.cumsum(self.nodes) - 1  # index of each tree's last node
        lacks_nodes = len(self.nodes) == 0 or self.nodes.min() < 1
        if lacks_nodes or last_nodes[-1] != len(self.feature) - 1:
            raise ValueError("the numbers of nodes do not add up")

        # Read depth first, a tree is complete once it has one leaf more than inner nodes, so the
        # surplus of leaves is k for the first time after k trees.
        surplus = np.maximum.accumulate(np.cumsum(np.where(is_leaf, 1, -1)))
        n_trees = np.arange(1, len(self.nodes) + 1)
        completed_at = np.searchsorted(surplus, n_trees)
        if is_leaf.sum() != n_leaves or not np.array_equal(completed_at, last_nodes):
            raise ValueError("the nodes are not whole trees, stored depth first")

    def _check_thresholds_and_outputs(self) -> None:
        """Raise a `ValueError` unless thresholds, features and outputs fit the nodes and tasks.

        `threshold` has one number for each inner node, `codes` a row for each output and a column
        for each leaf. `_check_nodes` has checked that the trees are whole.
        """
        n_outputs, n_leaves = self.codes.shape
        is_leaf = self.feature == LEAF
        # A tree has one inner node less than leaves.
        if self.threshold.shape != (n_leaves - len(self.nodes),):
            raise ValueError("every inner node needs one threshold")
        if self.feature[~is_leaf].max(initial=0) >= len(self.coding):
            raise ValueError("a node splits on a feature that the coding does not have")
        if not self.offset.shape == self.step.shape == (n_outputs,):
            raise ValueError("every output needs one offset and one step")
        for mix in self.tasks:
            if not (0 <= mix.low < n_outputs and 0 <= mix.high < n_outputs):
                raise ValueError("a task refers to an output that does not exist")

    @property
    def dimension(self) -> int:
        """Number of hyperparameters, d."""
        return self.coding.width

    @property
    def n_tasks(self) -> int:
        """Number of tasks, T."""
        return len(self.tasks)

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Predict the objective of many configurations, shape (n, d) to (n,).

        A compiled kernel walks down the trees, and interpolates between the two outputs that the
        task lies between.
        """
        low_output, high_output, weight_of_high = self._mix(task)
        values = self.coding.checked(values)
        predictions: FloatArray = kernels().forest_predict(
            values, *self._trees_for_batch, low_output, high_output, weight_of_high
        )
        return predictions

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Predict one configuration, shape (d,); equals `predict(row[None], task)[0]` exactly.

        A compiled kernel walks down the trees, and interpolates between the two outputs that the
        task lies between.
        """
        low_output, high_output, weight_of_high = self._mix(task)
        if row.shape[0] < self.coding.width:  # kernels do not check bounds
            raise ValueError(f"a row needs {self.coding.width} values, but got {row.shape}")
        prediction: float = kernels().forest_predict_one(
            row, *self._trees_for_row, low_output, high_output, weight_of_high
        )
        return prediction

    def value_grid(self, task: int) -> tuple[float, float] | None:
        """Return the grid on which all predictions of a task lie; None if there is none.

        If the task is an output itself, a prediction is base + unit * (sum of codes over trees).
        Predictions of a task between two outputs lie on no grid.

        Returns:
            The base and the unit.
        """
        low, high, _ = self._mix(task)
        is_between_outputs = low != high
        if is_between_outputs:
            return None
        return float(self.offset[high]), float(self.step[high] / len(self.nodes))

    def _mix(self, task: int) -> tuple[int, int, float]:
        """Return how the value of a task is mixed from the outputs of the forest, as numbers.

        Returns:
            The indices of the two outputs that the task lies between, and the weight of the second
            one. Both indices are the same if the task is an output itself.
        """
        check_task(task, len(self._mixes))
        return self._mixes[task]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all of the forest as arrays, which `from_arrays` reads.

        These are the coding, the trees (`_ARRAYS`), and for each task the two outputs that it lies
        between with the weight of the second.
        """
        return {
            "coding": self.coding.table,
            **{name: getattr(self, name) for name in _ARRAYS},
            "task_outputs": np.array([(m.low, m.high) for m in self.tasks], dtype=np.int32),
            "task_weights": np.array([m.weight for m in self.tasks], dtype=np.float64),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Inverse of `to_arrays`: builds the forest from its coding, trees and tasks."""
        coding = Coding.from_table(arrays["coding"])
        trees = {name: arrays[name] for name in _ARRAYS}  # fields that are stored as they are

        # A task lies between two outputs of the forest.
        outputs_of_tasks = arrays["task_outputs"].tolist()
        weights = arrays["task_weights"].tolist()
        tasks = []
        for (low, high), weight in zip(outputs_of_tasks, weights, strict=True):
            tasks.append(TaskMix(low, high, weight))
        return cls(coding=coding, tasks=tuple(tasks), **trees)


def _link_nodes(
    nodes: NDArray[np.int32], feature: NDArray[np.uint8]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
    """Link the nodes of trees that are stored one after the other, each depth first.

    Args:
        nodes: Number of nodes of each tree, (t,).
        feature: Feature that each node splits on, `LEAF` in leaves, (q,).

    Returns:
        Root of each tree (t,); left and right child of node i at 2 i and 2 i + 1 (2 q,); number of
        each leaf among all leaves (q,).
    """
    is_leaf = feature == LEAF
    numbers = np.arange(len(feature))

    # Nodes are stored depth first: the left child of a node comes right after it, and the right
    # child after the whole left subtree. The right child is found by counting, at each node, how
    # many subtrees are still to be read. A leaf lowers this number by one. An inner node raises it
    # by one, as it adds two subtrees and ends one. After the left subtree the number is again that
    # of the node itself. So the right child is the next node with the same number.
    changes = np.where(is_leaf, -1, 1)
    n_missing = np.concatenate(([0], np.cumsum(changes)[:-1]))  # the first tree's root counts as 0
    order = np.argsort(n_missing, kind="stable")  # nodes of the same number are adjacent here
    next_of_same_number = np.zeros(len(feature), dtype=np.int64)
    next_of_same_number[order[:-1]] = order[1:]

    # Leaves are their own children, so that a walk stays there.
    left_child = np.where(is_leaf, numbers, numbers + 1)
    right_child = np.where(is_leaf, numbers, next_of_same_number)
    children = np.stack((left_child, right_child), axis=1)

    roots = np.concatenate(([0], np.cumsum(nodes)[:-1]))
    leaf_numbers = np.cumsum(is_leaf) - is_leaf
    return (
        roots.astype(np.uint32),
        children.ravel().astype(np.uint32),
        leaf_numbers.astype(np.uint32),
    )


def _measure_depths(roots: NDArray[np.uint32], child: NDArray[np.uint32]) -> IntArray:
    """Measure the depth of each tree, (t,), by walking down all trees level by level.

    Args:
        roots: Root of each tree, ascending, (t,).
        child: Left and right child of node i at 2 i and 2 i + 1; leaves are their own, (2 q,).
    """
    depths = np.zeros(len(roots), dtype=np.int64)
    children = child.reshape(-1, 2)
    level = roots
    while True:
        is_leaf = children[level, 0] == level
        level = level[~is_leaf]
        if len(level) == 0:
            return depths
        trees = np.searchsorted(roots, level, side="right") - 1  # that the nodes belong to
        depths[trees] += 1  # adds 1 to each tree once, even if it has several nodes on this level
        level = children[level].ravel()
