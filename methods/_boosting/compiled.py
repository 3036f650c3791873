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
rows        (p, n)          observations, those of a node together, ascending in each column
depths      (T,)            depth of each tree
columns     (T, 2^D - 1)    column each inner node splits on
thresholds  (T, 2^D - 1)    observations below go left, others right; inf where a node is a leaf
leaves      (T, 2^D)        what a leaf adds to the score
==========  ==============  =======================================================================

Trees are perfect binary trees: the children of node k are 2 k + 1 and 2 k + 2. A node that is not
split sends everything left, and what it adds stands in the leftmost leaf below it; prediction takes
as many steps as the tree is deep, without a branch.

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
BLOCK = 64  # observations predicted together: they stay in the first-level cache


class Settings(NamedTuple):
    """Settings of the boosting; the defaults are XGBoost's.

    Attributes:
        rounds: Number of trees, T.
        depth: Greatest depth of a tree, D.
        learning_rate: Factor of what every leaf adds.
        l2: Penalty on the squared value of a leaf, lambda.
        min_weight: Least H of a leaf.
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
        X: Features.
        y: Targets.
        rows: Observations in ascending order of each column.
        start: The constant.
        logistic: Whether the loss is logistic; it is half the squared error otherwise.
        settings: Settings of the boosting.

    Returns:
        depths, columns, thresholds and leaves.
    """
    n, inner = X.shape[0], 2**settings.depth - 1
    depths = np.zeros(settings.rounds, np.int64)
    columns = np.zeros((settings.rounds, inner), np.int64)
    thresholds = np.full((settings.rounds, inner), np.inf)
    leaves = np.zeros((settings.rounds, inner + 1))
    score = np.full(n, start)
    g, h = np.empty(n), np.ones(n)
    grown = np.empty_like(rows)
    side, spare = np.empty(n, np.bool_), np.empty(n, np.int64)
    for t in range(settings.rounds):
        if logistic:
            _logistic_derivatives(score, y, g, h)
        else:
            for i in range(n):
                g[i] = score[i] - y[i]
        grown[:] = rows
        tree = (columns[t], thresholds[t], leaves[t])
        depths[t] = _grow(X, g, h, grown, (side, spare), tree, score, settings)
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
    """Scores (m,) of features X (m, p)."""
    score = np.full(X.shape[0], start)
    reached = np.empty(BLOCK, np.int64)
    for begin in range(0, X.shape[0], BLOCK):
        end = min(begin + BLOCK, X.shape[0])
        block = reached[: end - begin]
        for t in range(depths.shape[0]):
            tree = (columns[t], thresholds[t], leaves[t])
            _add(X[begin:end], depths[t], tree, block, score[begin:end])
    return score


@compiled
def _add(
    X: FloatArray,
    depth: int,
    tree: tuple[IntArray, FloatArray, FloatArray],
    node: IntArray,
    score: FloatArray,
) -> None:
    """Add one tree's leaves to the scores (m,) of X (m, p); node (m,) is space to work with."""
    columns, thresholds, leaves = tree
    node[:] = 0
    for _ in range(depth):
        for i in range(X.shape[0]):
            k = node[i]
            node[i] = 2 * k + 1 + (X[i, columns[k]] >= thresholds[k])
    first, width = 2**depth - 1, leaves.shape[0] // 2**depth
    for i in range(X.shape[0]):
        score[i] += leaves[(node[i] - first) * width]


@compiled
def _logistic_derivatives(score: FloatArray, y: FloatArray, g: FloatArray, h: FloatArray) -> None:
    """Write the derivatives of log(1 + exp(score)) - y score to g and h (n,)."""
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
    space: tuple[BoolArray, IntArray],
    tree: tuple[IntArray, FloatArray, FloatArray],
    score: FloatArray,
    settings: Settings,
) -> int:
    """Grow one tree level by level, add its leaves to the score, and return its depth.

    Args:
        X: Features.
        g: First derivatives.
        h: Second derivatives.
        rows: All observations, ascending in each column; reordered here.
        space: Two arrays (n,) to work with.
        tree: Columns, thresholds and leaves of this tree, written here.
        score: Updated here.
        settings: Settings of the boosting.
    """
    columns, thresholds, leaves = tree
    ends = np.zeros((columns.shape[0] + leaves.shape[0], 2), np.int64)  # of each node's rows
    ends[0, 1] = X.shape[0]
    depth = 0
    for level in range(settings.depth + 1):
        first, width = 2**level - 1, 2 ** (settings.depth - level)
        for node in range(first, 2 * first + 1):
            begin, end = ends[node]
            if begin == end:
                continue
            G, H = _sums(g, h, rows[0, begin:end])
            column, at = -1, begin
            if level < settings.depth:
                column, at = _best_split(X, g, h, rows, begin, end, G, H, settings)
            if column < 0:
                value = -settings.learning_rate * G / (H + settings.l2)
                leaves[(node - first) * width] = value
                for i in rows[0, begin:end]:
                    score[i] += value
                continue
            columns[node] = column
            thresholds[node] = _between(
                X[rows[column, at - 1], column], X[rows[column, at], column]
            )
            _divide(rows, begin, at, end, column, space)
            ends[2 * node + 1] = begin, at
            ends[2 * node + 2] = at, end
            depth = level + 1
    return depth


@compiled
def _sums(g: FloatArray, h: FloatArray, rows: IntArray) -> tuple[float, float]:
    """G and H of the observations `rows`."""
    G = H = 0.0
    for i in rows:
        G += g[i]
        H += h[i]
    return G, H


@compiled
def _best_split(
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
    """Column and position of the best split of rows[:, begin:end]; -1 if there is none.

    Of equally good splits, that of the first column at the highest position is used, as in XGBoost.
    """
    best, column, at = G * G / (H + settings.l2) + MIN_GAIN, -1, begin
    least = settings.min_weight
    if end - begin < 2 or H < 2.0 * least:  # noqa: SIM300 (no constant)
        return column, at
    for c in range(X.shape[1]):
        ordered = rows[c]
        above = X[ordered[end - 1], c]
        G_right = H_right = 0.0
        for s in range(end - 1, begin, -1):
            G_right += g[ordered[s]]
            H_right += h[ordered[s]]
            below, value = X[ordered[s - 1], c], above
            above = below
            H_left = H - H_right
            if below == value or min(H_left, H_right) < least:
                continue
            G_left = G - G_right
            a, b = H_left + settings.l2, H_right + settings.l2
            total = (G_left * G_left * b + G_right * G_right * a) / (a * b)
            if total > best * (1.0 + TIE):
                best, column, at = total, c, s
    return column, at


@compiled
def _between(below: float, above: float) -> float:
    """The middle of two values, or the upper one if they are neighbouring floats."""
    middle = 0.5 * (below + above)
    return middle if middle > below else above


@compiled
def _divide(
    rows: IntArray,
    begin: int,
    at: int,
    end: int,
    column: int,
    space: tuple[BoolArray, IntArray],
) -> None:
    """Put the observations rows[column, begin:at] first in every column, keeping their order."""
    goes_right, right = space
    for i in rows[column, begin:at]:
        goes_right[i] = False
    for i in rows[column, at:end]:
        goes_right[i] = True
    for c in range(rows.shape[0]):
        ordered = rows[c]
        left, moved = begin, 0
        for s in range(begin, end):
            i = ordered[s]
            # Both are written to avoid a branch; the next step overwrites one of them.
            ordered[left] = i
            right[moved] = i
            moved += goes_right[i]
            left += not goes_right[i]
        ordered[at:end] = right[:moved]
