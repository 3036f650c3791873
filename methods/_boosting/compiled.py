"""Compiled kernels of the boosted trees: fit, prediction.

All compiled code called by compiled code is in this file, as numba's cache checks only the file of
the outermost function. Sums are sequential, so results depend only on the input.

==========  ==============  =======================================================================
symbol      shape           meaning
==========  ==============  =======================================================================
n, p        scalars         observations, feature columns
T, D        scalars         trees (rounds), their greatest depth
X           (n, p)          features
y           (n,)            targets; 0 and 1 for the logistic loss
score       (n,)            prediction so far: of the target, or of the log odds of y = 1
g, h        (n,)            first and second derivative of the loss in the score
G, H        scalars         sums of g and h over a node's observations
rows        (p, n)          observations, those of a node together, ascending in each column; a
                            node's are rows[:, begin:end]
depths      (T,)            depth of each tree
columns     (T, 2^D - 1)    column that each inner node splits on
thresholds  (T, 2^D - 1)    observations below go left, others right; inf where a node is a leaf
leaves      (T, 2^D)        value that a leaf adds to the score
==========  ==============  =======================================================================

Trees are perfect binary trees: the children of node k are 2 k + 1 and 2 k + 2. A node that is not
split sends everything left, and its value stands in the leftmost leaf below it; prediction takes as
many steps as the tree is deep, without a branch.

The value of a leaf is -G / (H + l2). A split replaces G^2 / (H + l2) of the node by the sum of the
same over its two children, and gains if that is more.

Formulas: Chen and Guestrin (2016), XGBoost: a scalable tree boosting system, equations 4 to 7.
"""

import math
from typing import NamedTuple

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.runtime.compiling import compiled

MIN_GAIN = 1e-6
"""Smallest increase of the sum of G^2 / (H + l2) over nodes for a split, as in XGBoost."""
TIE = 1e-10
"""Relative difference below which two splits are equally good; larger than rounding errors."""
MIN_CURVATURE = 1e-16
"""Smallest second derivative, so that no H is 0."""
OBSERVATIONS_PER_BLOCK = 64
"""Number of observations predicted together: they stay in the first-level cache."""


class Settings(NamedTuple):
    """Settings of the boosting; the defaults are XGBoost's.

    Attributes:
        rounds: Number of trees, T.
        depth: Greatest depth of a tree, D.
        learning_rate: Factor of the value of every leaf.
        l2: Penalty on the squared value of a leaf, lambda.
        min_weight: Smallest H of a leaf.
    """

    rounds: int = 100
    depth: int = 6
    learning_rate: float = 0.3
    l2: float = 1.0
    min_weight: float = 1.0


@compiled
def fit(
    X: FloatArray,
    y: FloatArray,
    rows: IntArray,
    start: float,
    logistic: bool,
    settings: Settings,
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Boost trees, starting from a constant score.

    Args:
        X: Features, shape (n, p).
        y: Targets, 0 and 1 for the logistic loss, shape (n,).
        rows: Indices of the observations in ascending order of each column, shape (p, n).
        start: The constant, which the trees add to.
        logistic: Whether the loss is logistic; it is half the squared error otherwise.
        settings: Settings of the boosting: T trees, D levels deep at most.

    Returns:
        Depth of each tree (T,), column and threshold of each inner node (T, 2^D - 1), and values
        of the leaves (T, 2^D).
    """
    n = X.shape[0]
    inner_nodes = 2**settings.depth - 1  # of a whole tree
    depths = np.zeros(settings.rounds, np.int64)
    columns = np.zeros((settings.rounds, inner_nodes), np.int64)
    thresholds = np.full((settings.rounds, inner_nodes), np.inf)
    leaves = np.zeros((settings.rounds, inner_nodes + 1))

    score = np.full(n, start)
    g = np.empty(n)  # first derivatives of the loss in the score
    h = np.ones(n)  # second derivatives, which are 1 for squared errors
    tree_rows = np.empty_like(rows)
    scratch = (np.empty(n, np.bool_), np.empty(n, np.int64))  # working space
    for t in range(settings.rounds):  # one tree each
        if logistic:
            _logistic_derivatives(score, y, g, h)
        else:
            for i in range(n):
                g[i] = score[i] - y[i]
        tree_rows[:] = rows  # a copy, as growing reorders them
        tree = (columns[t], thresholds[t], leaves[t])  # views, which are written to
        depths[t] = _grow(X, g, h, tree_rows, scratch, tree, score, settings)
    return depths, columns, thresholds, leaves


@compiled
def predict(
    X: FloatArray,
    start: float,
    depths: IntArray,
    columns: IntArray,
    thresholds: FloatArray,
    leaves: FloatArray,
) -> FloatArray:
    """Compute scores (m,), the sums of all trees.

    They are computed for blocks of observations that stay in the processor's cache while all trees
    are applied to them.

    Args:
        X: Features, shape (m, p).
        start: Constant that the trees add to.
        depths: Depth of each tree, shape (T,).
        columns: Column that each inner node splits on, shape (T, 2^D - 1).
        thresholds: Observations below go left, shape (T, 2^D - 1).
        leaves: Values that leaves add, shape (T, 2^D).
    """
    score = np.full(X.shape[0], start)
    node_of_block = np.empty(OBSERVATIONS_PER_BLOCK, np.int64)  # working space of `_add_leaves`
    for begin in range(0, X.shape[0], OBSERVATIONS_PER_BLOCK):
        end = min(begin + OBSERVATIONS_PER_BLOCK, X.shape[0])
        node = node_of_block[: end - begin]
        for t in range(depths.shape[0]):
            tree = (columns[t], thresholds[t], leaves[t])
            # Leaves are added to this part of `score`, in place.
            _add_leaves(X[begin:end], depths[t], tree, node, score[begin:end])
    return score


@compiled
def _add_leaves(
    X: FloatArray,
    depth: int,
    tree: tuple[IntArray, FloatArray, FloatArray],
    node: IntArray,
    score: FloatArray,
) -> None:
    """Add to the scores of observations the leaves that they reach in one tree, in place.

    The children of node k are 2 k + 1 and 2 k + 2. A node that is not split has an infinite
    threshold: everything goes left, down to the leaf that holds its value. So all observations
    take as many steps as the tree is deep, without a branch.

    Args:
        X: Features of the observations, shape (m, p).
        depth: Depth of the tree.
        tree: Its columns, thresholds and leaves.
        node: Working space for the node that each observation has reached, shape (m,).
        score: The scores, shape (m,).
    """
    columns, thresholds, leaves = tree
    node[:] = 0
    for _ in range(depth):
        for i in range(X.shape[0]):
            k = node[i]
            goes_right = X[i, columns[k]] >= thresholds[k]
            node[i] = 2 * k + 1 + goes_right

    first_node = 2**depth - 1  # of the level that was reached
    # `leaves` has room for a tree of the greatest depth. Above that depth, a node has several
    # leaves below it, and the leftmost of them holds its value.
    leaves_per_node = leaves.shape[0] // 2**depth
    for i in range(X.shape[0]):
        score[i] += leaves[(node[i] - first_node) * leaves_per_node]


@compiled
def _logistic_derivatives(score: FloatArray, y: FloatArray, g: FloatArray, h: FloatArray) -> None:
    """Write the first and second derivative of the logistic loss in the score to g and h, (n,).

    The loss of targets y (n,), 0 or 1, is log(1 + exp(score)) - y score. Second derivatives are at
    least `MIN_CURVATURE`, as they are divided by.
    """
    for i in range(score.shape[0]):
        probability = 1.0 / (1.0 + math.exp(-score[i]))
        g[i] = probability - y[i]
        h[i] = max(probability * (1.0 - probability), MIN_CURVATURE)


@compiled
def _grow(
    X: FloatArray,
    g: FloatArray,
    h: FloatArray,
    rows: IntArray,
    scratch: tuple[BoolArray, IntArray],
    tree: tuple[IntArray, FloatArray, FloatArray],
    score: FloatArray,
    settings: Settings,
) -> int:
    """Grow one tree level by level, add its leaves to the score, and return its depth.

    The children of node k are 2 k + 1 and 2 k + 2. With the sums G and H of g and h over its
    observations, the value of a leaf is -G / (H + l2) times the learning rate. It is written to the
    leftmost leaf below the node in a tree of the greatest depth, which prediction arrives at.

    Args:
        X: Features, shape (n, p).
        g: First derivatives of the loss in the score, shape (n,).
        h: Second derivatives, shape (n,).
        rows: All observations, ascending in each column, shape (p, n). They are reordered here, so
            that a node's observations stand together: rows[:, begin:end].
        scratch: Two arrays (n,) to work with.
        tree: Column and threshold of each inner node of this tree, and value of each leaf, written
            here.
        score: Sum of the trees so far, shape (n,), updated here.
        settings: Settings of the boosting.
    """
    columns, thresholds, leaves = tree
    node_count = columns.shape[0] + leaves.shape[0]
    ends = np.zeros((node_count, 2), np.int64)  # begin and end of each node's rows
    ends[0, 1] = X.shape[0]
    depth = 0
    for level in range(settings.depth + 1):
        first_node = 2**level - 1
        leaves_per_node = 2 ** (settings.depth - level)
        for node in range(first_node, 2 * first_node + 1):
            begin, end = ends[node]
            if begin == end:  # no such node, as its parent is a leaf
                continue
            # Sums of g and h over the node's observations, which rows of any column list.
            G, H = _sum_derivatives(g, h, rows[0, begin:end])
            column, split = -1, begin  # column -1: not split
            if level < settings.depth:
                column, split = _find_best_split(X, g, h, rows, begin, end, G, H, settings)

            if column < 0:  # a leaf
                value = -settings.learning_rate * G / (H + settings.l2)
                leaves[(node - first_node) * leaves_per_node] = value
                for i in rows[0, begin:end]:
                    score[i] += value
                continue

            last_left, first_right = rows[column, split - 1], rows[column, split]
            columns[node] = column
            thresholds[node] = _threshold_between(X[last_left, column], X[first_right, column])
            _partition(rows, begin, split, end, column, scratch)
            ends[2 * node + 1] = begin, split
            ends[2 * node + 2] = split, end
            depth = level + 1
    return depth


@compiled
def _sum_derivatives(g: FloatArray, h: FloatArray, rows: IntArray) -> tuple[float, float]:
    """Sum first derivatives g and second derivatives h of the loss over observations `rows`.

    The sums are sequential, so that they do not depend on the processor.
    """
    G = H = 0.0
    for i in rows:
        G += g[i]
        H += h[i]
    return G, H


@compiled
def _find_best_split(
    X: FloatArray,
    g: FloatArray,
    h: FloatArray,
    rows: IntArray,
    begin: int,
    end: int,
    G: float,
    H: float,
    settings: Settings,
) -> tuple[int, int]:
    """Find the best split of a node's observations, rows[:, begin:end].

    A split replaces G^2 / (H + l2) of the node by the sum of the same over its two children, and
    is better the larger that sum is. Each child needs an H of at least `settings.min_weight`. Of
    equally good splits, the one of the first column at the highest position is used, as in XGBoost.

    Args:
        X: Features, shape (n, p).
        g: First derivatives of the loss, shape (n,).
        h: Second derivatives of the loss, shape (n,).
        rows: Observations, ascending in each column, shape (p, n).
        begin: Position of the node's first observation.
        end: Position after its last one.
        G: Sum of g over the node's observations.
        H: Sum of h over the node's observations.
        settings: Settings of the boosting.

    Returns:
        The column, -1 if there is no split, and the position of the first observation of
        rows[column] that goes right.
    """
    best_quality = G * G / (H + settings.l2) + MIN_GAIN
    best_column, best_split = -1, begin
    min_weight = settings.min_weight
    # Two children need two observations, and enough weight for both.
    if end - begin < 2 or H < 2.0 * min_weight:  # noqa: SIM300 (no constant)
        return best_column, best_split

    for column in range(X.shape[1]):
        # Observations move one by one from the left to the right child, largest value first.
        ordered = rows[column]
        value_right = X[ordered[end - 1], column]
        G_right = H_right = 0.0
        for split in range(end - 1, begin, -1):
            G_right += g[ordered[split]]
            H_right += h[ordered[split]]
            value_left = X[ordered[split - 1], column]
            value_here = value_right
            value_right = value_left  # of the next position
            H_left = H - H_right
            # Equal values cannot be separated, and a child needs the smallest weight.
            if value_left == value_here or min(H_left, H_right) < min_weight:
                continue

            G_left = G - G_right
            weight_left = H_left + settings.l2
            weight_right = H_right + settings.l2
            # G_left^2 / weight_left + G_right^2 / weight_right with one division
            numerator = G_left * G_left * weight_right + G_right * G_right * weight_left
            quality = numerator / (weight_left * weight_right)
            if quality > best_quality * (1.0 + TIE):  # more than a rounding error better
                best_quality, best_column, best_split = quality, column, split
    return best_column, best_split


@compiled
def _threshold_between(below: float, above: float) -> float:
    """Choose a threshold that separates two values: their middle.

    Observations below it go left. The middle of neighbouring floats is rounded to one of them, so
    that the upper value is used.
    """
    middle = 0.5 * (below + above)
    return middle if middle > below else above


@compiled
def _partition(
    rows: IntArray,
    begin: int,
    split: int,
    end: int,
    column: int,
    scratch: tuple[BoolArray, IntArray],
) -> None:
    """Divide a node's observations between its children, in every column, keeping their order.

    Args:
        rows: All observations, ascending in each column, shape (p, n). Those of the node are at
            `begin` to `end` in every column, and are reordered there, in place: those that go left
            first.
        begin: Position of the node's first observation.
        split: Position of the first observation that goes right, in the column that is split.
        end: Position after the node's last observation.
        column: The column that is split.
        scratch: Working space, shape (n,) each.
    """
    goes_right, right = scratch  # by observation; the observations that go right, in order
    for i in rows[column, begin:split]:
        goes_right[i] = False
    for i in rows[column, split:end]:
        goes_right[i] = True

    for c in range(rows.shape[0]):
        ordered = rows[c]
        next_left = begin  # position of the next observation that goes left
        right_count = 0
        for position in range(begin, end):
            i = ordered[position]
            # Without a branch, which would be slow: the observation is written to both places, and
            # only the place where it belongs is kept; the next step overwrites the other.
            ordered[next_left] = i
            right[right_count] = i
            right_count += goes_right[i]
            next_left += not goes_right[i]
        ordered[split:end] = right[:right_count]
