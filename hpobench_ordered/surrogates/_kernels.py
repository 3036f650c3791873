"""Compiled kernels of the nearest-neighbour and forest surrogates.

All in one file: numba's cache looks only at the file of the outermost function, so a kernel
elsewhere could change without its callers being compiled again. Rows are evaluated one after the
other by the same code alone and in batches; results depend on nothing but the row.

Notation:
    n, d    configurations, hyperparameters
    p       features
    m       stored points of a nearest-neighbour surrogate
    q       nodes of a binary tree
    table   a coding: one row a feature, (kind, column, operand, inactive, mean, scale), (p, 6)
"""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.surrogates.coding import FeatureKind

IDENTITY = int(FeatureKind.IDENTITY)
LOG = int(FeatureKind.LOG)
LOG_PRODUCT = int(FeatureKind.LOG_PRODUCT)

MAX_DEPTH = 64  # of a k-d tree: more than 2^64 points do not fit into memory


@njit(cache=True)
def encode_row(row: FloatArray, table: FloatArray, x: NDArray[np.floating]) -> None:
    """Write the features of one configuration (d,) into x (p,), rounded to the type of x."""
    for j in range(table.shape[0]):
        kind = int(table[j, 0])
        value = row[int(table[j, 1])]
        if math.isnan(value):
            raw = table[j, 3]
        elif kind == IDENTITY:
            raw = value
        elif kind == LOG:
            raw = math.log(value)
        elif kind == LOG_PRODUCT:
            other = row[int(table[j, 2])]
            raw = table[j, 3] if math.isnan(other) else math.log(value) + math.log(other)
        else:
            raw = 1.0 if value == table[j, 2] else 0.0
        x[j] = (raw - table[j, 4]) / table[j, 5]


@njit(cache=True)
def encode(values: FloatArray, table: FloatArray) -> FloatArray:
    """Features (n, p) of configurations (n, d)."""
    features = np.empty((values.shape[0], table.shape[0]))
    for i in range(values.shape[0]):
        encode_row(values[i], table, features[i])
    return features


@njit(cache=True)
def box_distance(x: FloatArray, box: FloatArray) -> float:
    """Squared distance of x (p,) to a box (2, p): lower and upper corner.

    Summed in the order of `squared_distance`, and rounding is monotone: the result never exceeds
    the computed distance of a point in the box.
    """
    total = 0.0
    for j in range(x.shape[0]):
        outside = max(box[0, j] - x[j], x[j] - box[1, j], 0.0)
        total += outside * outside
    return total


@njit(cache=True)
def squared_distance(x: FloatArray, point: FloatArray) -> float:
    """Squared Euclidean distance of x (p,) and a point (p,)."""
    total = 0.0
    for j in range(x.shape[0]):
        difference = x[j] - point[j]
        total += difference * difference
    return total


@njit(cache=True)
def nearest_point(
    x: FloatArray,
    points: FloatArray,
    order: IntArray,
    starts: IntArray,
    boxes: FloatArray,
    stack: IntArray,
    bounds: FloatArray,
) -> int:
    """Original index of the point nearest to x (p,); among equals the lowest.

    The k-d tree is complete: node k has the children 2k + 1 and 2k + 2, its leaves come last.

    Args:
        x: Features, (p,).
        points: Stored points, those of a leaf together, (m, p).
        order: Original index of each stored point, (m,).
        starts: Where the points of each leaf begin, and m, (leaves + 1,).
        boxes: Bounding box of each node's points, (q, 2, p).
        stack: Scratch, nodes still to visit.
        bounds: Scratch, their distances.
    """
    first_leaf = starts.shape[0] - 2
    best, best_index = math.inf, points.shape[0]
    height = 1
    stack[0], bounds[0] = 0, 0.0
    while height > 0:
        height -= 1
        if bounds[height] > best:  # where equal, a lower index may be found
            continue
        node = stack[height]
        while node < first_leaf:
            left, right = 2 * node + 1, 2 * node + 2
            to_left, to_right = box_distance(x, boxes[left]), box_distance(x, boxes[right])
            if to_left <= to_right:
                node, other, bound = left, right, to_right
            else:
                node, other, bound = right, left, to_left
            if bound <= best:
                stack[height], bounds[height] = other, bound
                height += 1
        for i in range(starts[node - first_leaf], starts[node - first_leaf + 1]):
            distance = squared_distance(x, points[i])
            if distance < best or (distance == best and order[i] < best_index):
                best, best_index = distance, order[i]
    return best_index


@njit(cache=True)
def nearest(
    values: FloatArray,
    table: FloatArray,
    points: FloatArray,
    order: IntArray,
    starts: IntArray,
    boxes: FloatArray,
) -> IntArray:
    """Original indices (n,) of the points nearest to configurations (n, d)."""
    found = np.empty(values.shape[0], dtype=np.int64)
    x = np.empty(table.shape[0])
    stack, bounds = np.empty(MAX_DEPTH, dtype=np.int64), np.empty(MAX_DEPTH)
    for i in range(values.shape[0]):
        encode_row(values[i], table, x)
        found[i] = nearest_point(x, points, order, starts, boxes, stack, bounds)
    return found


@njit(cache=True)
def nearest_one(
    row: FloatArray,
    table: FloatArray,
    points: FloatArray,
    order: IntArray,
    starts: IntArray,
    boxes: FloatArray,
) -> int:
    """Original index of the point nearest to one configuration (d,)."""
    x = np.empty(table.shape[0])
    encode_row(row, table, x)
    stack, bounds = np.empty(MAX_DEPTH, dtype=np.int64), np.empty(MAX_DEPTH)
    return nearest_point(x, points, order, starts, boxes, stack, bounds)
