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
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.data.arrays import StoredArray, copy_read_only
from hpobench_ordered.data.surrogate import check_task
from hpobench_ordered.surrogates.base import StoredSurrogate, SurrogateType
from hpobench_ordered.surrogates.coding import Coding, load_kernels

LEAF = 255
"""Stored feature of a leaf."""
_TREE_ARRAYS = ("nodes", "feature", "threshold", "codes", "offset", "step")
"""Names of the fields of `ForestSurrogate` that are arrays, and are stored as they are."""


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


def find_task_mixes(fitted: Sequence[float], contexts: Sequence[float]) -> tuple[TaskMix, ...]:
    """Find the two outputs of a forest that each task lies between, for linear interpolation.

    Args:
        fitted: Context of each output, such as its training fraction, increasing.
        contexts: Context of each task, within those of the outputs.

    Returns:
        For each task, the outputs below and above it, and the weight of the latter.
    """
    if any(context >= next_context for context, next_context in pairwise(fitted)):
        raise ValueError(f"contexts of outputs must increase, but got {list(fitted)}")
    mixes = []
    for context in contexts:
        if not fitted[0] <= context <= fitted[-1]:
            raise ValueError(f"{context} must be within {fitted[0]} to {fitted[-1]}")
        high = int(np.searchsorted(fitted, context))  # first output at or above the task
        if fitted[high] == context:
            mixes.append(TaskMix(high, high))  # the task is an output itself
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
    # Arguments of the compiled kernels for batches and for single rows, in the kernels' order.
    _trees_for_batch: tuple[NDArray[Any], ...] = field(init=False, repr=False)
    _trees_for_row: tuple[NDArray[Any], ...] = field(init=False, repr=False)
    # For each task: low output, high output, weight of the high one; plain numbers for kernels.
    _mixes: tuple[tuple[int, int, float], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the arrays, and prepare the arguments of the compiled kernels.

        Raises:
            ValueError: The arrays are not those of whole trees, or do not fit together.
        """
        for name in _TREE_ARRAYS:
            (stored_type,) = self.ARRAYS[name].types
            setattr(self, name, copy_read_only(getattr(self, name), stored_type))
        self._check_nodes()
        self._check_thresholds_and_outputs()

        roots, children, leaf_numbers = _link_nodes(self.nodes, self.feature)
        feature, threshold = self._spread_over_nodes()
        # A value is offset + step * (mean of the codes over trees), which equals
        # offset + (step / number of trees) * (sum of the codes).
        offset_and_factor = np.stack((self.offset, self.step / len(roots)), axis=1)

        trees = (self.coding.table, feature, threshold, children, roots)
        leaves = (leaf_numbers, self.codes, offset_and_factor)
        # In a batch all rows take as many steps as the tree is deep; a single row stops at a leaf.
        depths = _measure_depths(roots, children)
        self._trees_for_batch = (*trees, depths, *leaves)
        self._trees_for_row = (*trees, *leaves)
        self._mixes = tuple((mix.low, mix.high, mix.weight) for mix in self.tasks)

    def _spread_over_nodes(self) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Return the feature and the threshold of every node, (q,) each.

        Kernels index both arrays by node. Leaves need neither, and have zeros.
        """
        is_inner = self.feature != LEAF
        feature = np.where(is_inner, self.feature, 0).astype(np.uint8)
        threshold = np.zeros(self.feature.shape, dtype=np.float32)
        threshold[is_inner] = self.threshold  # stored for inner nodes only
        return feature, threshold

    def _check_nodes(self) -> None:
        """Raise a `ValueError` unless the nodes are whole trees, stored depth first.

        `nodes` has the number of nodes of each tree, `feature` what each node splits on (`LEAF` in
        leaves), and `codes` a column for each leaf.
        """
        last_nodes = np.cumsum(self.nodes) - 1  # index of each tree's last node
        lacks_nodes = len(self.nodes) == 0 or self.nodes.min() < 1
        if lacks_nodes or last_nodes[-1] != len(self.feature) - 1:
            raise ValueError("the numbers of nodes do not add up")

        # Read depth first, a tree is complete as soon as it has one leaf more than inner nodes. So
        # k trees are complete where leaves outnumber inner nodes by k for the first time.
        is_leaf = self.feature == LEAF
        leaves_minus_inner_nodes = np.cumsum(np.where(is_leaf, 1, -1))  # up to each node
        n_complete_trees = np.maximum.accumulate(leaves_minus_inner_nodes)
        n_trees = np.arange(1, len(self.nodes) + 1)
        nodes_that_complete = np.searchsorted(n_complete_trees, n_trees)  # the k-th tree

        n_leaves = self.codes.shape[1]
        if is_leaf.sum() != n_leaves or not np.array_equal(nodes_that_complete, last_nodes):
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
        low_output, high_output, weight_of_high = self._get_mix(task)
        values = self.coding.to_kernel_input(values)
        predictions: FloatArray = load_kernels().forest_predict(
            values, *self._trees_for_batch, low_output, high_output, weight_of_high
        )
        return predictions

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Predict one configuration, shape (d,); equals `predict(row[None], task)[0]` exactly.

        A compiled kernel walks down the trees, and interpolates between the two outputs that the
        task lies between.
        """
        low_output, high_output, weight_of_high = self._get_mix(task)
        if row.shape[0] < self.coding.width:  # kernels do not check bounds
            raise ValueError(f"a row needs {self.coding.width} values, but got {row.shape}")
        prediction: float = load_kernels().forest_predict_one(
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
        low_output, high_output, _ = self._get_mix(task)
        is_between_outputs = low_output != high_output
        if is_between_outputs:
            return None
        output = high_output
        n_trees = len(self.nodes)
        return float(self.offset[output]), float(self.step[output] / n_trees)

    def _get_mix(self, task: int) -> tuple[int, int, float]:
        """Return the two outputs that a task lies between, and the weight of the second one.

        Outputs are indices. Both are the same if the task is an output itself.
        """
        check_task(task, len(self._mixes))
        return self._mixes[task]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all of the forest as arrays, which `from_arrays` reads.

        These are the coding, the trees, and for each task the two outputs that it lies between,
        with the weight of the second.
        """
        trees = {name: getattr(self, name) for name in _TREE_ARRAYS}
        outputs_of_tasks = [(mix.low, mix.high) for mix in self.tasks]
        weights = [mix.weight for mix in self.tasks]
        return {
            "coding": self.coding.table,
            **trees,
            "task_outputs": np.array(outputs_of_tasks, dtype=np.int32),
            "task_weights": np.array(weights, dtype=np.float64),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Build the forest from the arrays that `to_arrays` returns: coding, trees and tasks."""
        coding = Coding.from_table(arrays["coding"])
        trees = {name: arrays[name] for name in _TREE_ARRAYS}

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
    node_numbers = np.arange(len(feature))

    # Depth first, the left child comes right after its parent. Leaves are their own children, so
    # that a walk down the tree stays there.
    left_children = np.where(is_leaf, node_numbers, node_numbers + 1)
    right_children = np.where(is_leaf, node_numbers, _find_right_children(is_leaf))
    children = np.stack((left_children, right_children), axis=1)

    roots = np.concatenate(([0], np.cumsum(nodes)[:-1]))
    leaf_numbers = np.cumsum(is_leaf) - is_leaf  # the number of leaves before each node
    return (
        roots.astype(np.uint32),
        children.ravel().astype(np.uint32),
        leaf_numbers.astype(np.uint32),
    )


def _find_right_children(is_leaf: BoolArray) -> IntArray:
    """Find the right child of each inner node, in trees that are stored depth first.

    The right child of a node comes after the whole left subtree. It is found by counting how many
    subtrees are still to be read when the walk reaches a node. A leaf lowers this number by one. An
    inner node raises it by one, as it adds two subtrees and is one itself. At the right child, the
    whole left subtree has been read, and the number is one less than at the left child: that of the
    parent. So the right child is the next node with the same number as its parent.

    Args:
        is_leaf: Whether each node is a leaf, (q,).

    Returns:
        Index of each node's right child, (q,); entries of leaves mean nothing.
    """
    changes = np.where(is_leaf, -1, 1)
    n_unread = np.concatenate(([0], np.cumsum(changes)[:-1]))  # relative to the first root
    # Sorted by this number, nodes of the same number come one after the other, in their order. So
    # the next node with the same number is the one that follows in this sequence.
    sorted_nodes = np.argsort(n_unread, kind="stable")
    next_of_same_number = np.zeros(len(is_leaf), dtype=np.int64)
    next_of_same_number[sorted_nodes[:-1]] = sorted_nodes[1:]
    return next_of_same_number


def _measure_depths(roots: NDArray[np.uint32], children: NDArray[np.uint32]) -> IntArray:
    """Measure the depth of each tree, (t,), by walking down all trees level by level.

    Args:
        roots: Root of each tree, ascending, (t,).
        children: Left and right child of node i at 2 i and 2 i + 1; leaves are their own children,
            (2 q,).
    """
    depths = np.zeros(len(roots), dtype=np.int64)
    children_of_node = children.reshape(-1, 2)
    level = roots  # nodes at the same depth, of all trees
    while True:
        is_leaf = children_of_node[level, 0] == level
        inner_nodes = level[~is_leaf]
        if len(inner_nodes) == 0:
            return depths
        # Nodes of a tree are numbered from its root on. Every tree with inner nodes on this level
        # has one more level; the assignment counts the tree once, even if it has several of them.
        trees_with_inner_nodes = np.searchsorted(roots, inner_nodes, side="right") - 1
        depths[trees_with_inner_nodes] += 1
        level = children_of_node[inner_nodes].ravel()
