"""Compiled kernels of the nearest-neighbour and forest surrogates.

All are in one file, since numba's cache only looks at the file of the outermost function: after a
change of a kernel in another file its callers would not be compiled again. A batch is evaluated row
by row with the code for single rows, so that a result depends on its row alone.

Notation:
    n, d    configurations, hyperparameters
    p       features
    m, b    stored points of a nearest-neighbour surrogate, blocks they are sorted into
    table   a coding, (p, 6): one row per feature, whose columns `encode_row` names
    q, l    nodes and leaves of all trees of a forest together
    t       trees of a forest
    K       outputs of a forest
"""

import math

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.runtime.compiling import compiled
from hpobench_ordered.surrogates.feature_kinds import FeatureKind

IDENTITY = int(FeatureKind.IDENTITY)
LOG = int(FeatureKind.LOG)
LOG_PRODUCT = int(FeatureKind.LOG_PRODUCT)
LOG_RATIO = int(FeatureKind.LOG_RATIO)

LANES = 4  # features unrolled, see `box_distances`
BLOCK = 1024  # rows that go through a tree together, whose features fit into the first cache


@compiled
def encode_row(row: FloatArray, table: FloatArray, x: NDArray[np.floating]) -> None:
    """Write the features of one configuration (d,) into x (p,), rounded to the type of x.

    A row of `table` (p, 6) says how one feature is computed, then standardised. NaN in the
    configuration marks an inactive hyperparameter.
    """
    for j in range(table.shape[0]):
        kind = int(table[j, 0])  # a `FeatureKind`
        value = row[int(table[j, 1])]  # of the hyperparameter in that column
        operand = table[j, 2]  # column of a second hyperparameter, or code of a choice
        if_inactive = table[j, 3]  # the feature, before it is standardised
        mean = table[j, 4]
        scale = table[j, 5]

        if math.isnan(value):
            raw = if_inactive
        elif kind == IDENTITY:
            raw = value
        elif kind == LOG:
            raw = math.log(value)
        elif kind == LOG_PRODUCT:
            other = row[int(operand)]
            raw = if_inactive if math.isnan(other) else math.log(value) + math.log(other)
        elif kind == LOG_RATIO:
            other = row[int(operand)]
            raw = if_inactive if math.isnan(other) else math.log(value) - math.log(other)
        else:  # the indicator of a choice
            raw = 1.0 if value == operand else 0.0
        x[j] = (raw - mean) / scale


@compiled
def encode(values: FloatArray, table: FloatArray) -> FloatArray:
    """Compute features (n, p) of configurations (n, d).

    `table` (p, 6) is the coding: row j says how feature j is computed, see `encode_row`.
    """
    features = np.empty((values.shape[0], table.shape[0]))
    for i in range(values.shape[0]):
        encode_row(values[i], table, features[i])
    return features


@compiled
def box_distances(x: FloatArray, lower: FloatArray, upper: FloatArray, total: FloatArray) -> None:
    """Compute the squared distance of x (p,) to each of b boxes, and write it into `total`, (b,).

    `lower` and `upper`, (p, b), are the corners of the boxes. A point in a box has the distance 0.

    Each pass of the outer loop adds the squares of the next four features; the first pass
    overwrites `total`. Four features are written out, not looped over, so that the compiler
    vectorises the loop over boxes. The number p of features is a multiple of four.

    The distance to a box never exceeds that to a point in it, even after rounding: terms are summed
    in the same order as in `point_distances`, and rounding is monotone. So the search can skip
    boxes that are further away than a point.
    """
    for j in range(0, x.shape[0], LANES):
        x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
        for k in range(lower.shape[1]):
            d0 = max(lower[j, k] - x0, x0 - upper[j, k], 0.0)
            d1 = max(lower[j + 1, k] - x1, x1 - upper[j + 1, k], 0.0)
            d2 = max(lower[j + 2, k] - x2, x2 - upper[j + 2, k], 0.0)
            d3 = max(lower[j + 3, k] - x3, x3 - upper[j + 3, k], 0.0)
            partial = d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3
            total[k] = partial if j == 0 else total[k] + partial


@compiled
def point_distances(
    x: FloatArray, points: FloatArray, begin: int, size: int, total: FloatArray
) -> None:
    """Compute the squared distances of x (p,) to some points, and write them into `total`.

    A column of `points`, (p, m), is a point. Distances to the `size` points from column `begin` on
    are written into the first `size` places of `total`.

    Each pass of the outer loop adds the squares of the next four features; the first pass
    overwrites `total`. Four features are written out, not looped over, so that the compiler
    vectorises the loop over points. The number p of features is a multiple of four.
    """
    for j in range(0, x.shape[0], LANES):
        x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
        for i in range(size):
            d0 = points[j, begin + i] - x0
            d1 = points[j + 1, begin + i] - x1
            d2 = points[j + 2, begin + i] - x2
            d3 = points[j + 3, begin + i] - x3
            partial = d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3
            total[i] = partial if j == 0 else total[i] + partial


@compiled
def nearest_point(
    x: FloatArray,
    points: FloatArray,
    order: IntArray,
    starts: IntArray,
    lower: FloatArray,
    upper: FloatArray,
    bounds: FloatArray,
    distances: FloatArray,
) -> int:
    """Find the point that is nearest to x (p,), and return its original index.

    Of equally near points it is the lowest index. Points are sorted into b blocks of neighbours. A
    block is skipped if its bounding box is further away than the nearest point found so far;
    usually two or three blocks are searched.

    Args:
        x: Features of a configuration, (p,); p is a multiple of four.
        points: Features of the points, block by block, a column each, (p, m).
        order: Original index of each point, (m,).
        starts: First point of each block and, last, m, (b + 1,).
        lower: Smallest features in each block, (p, b).
        upper: Largest features in each block, (p, b).
        bounds: Room for the distance to each block's box, (b,).
        distances: Room for the distances to the points of a block, as many as the largest has.
    """
    blocks = lower.shape[1]
    box_distances(x, lower, upper, bounds)
    nearest_block = 0
    for k in range(1, blocks):
        if bounds[k] < bounds[nearest_block]:
            nearest_block = k

    best: float = math.inf
    best_index: int = points.shape[1]  # above every index
    # Turn -1 searches the nearest block, as its best distance rules out most of the others. The
    # other turns search the blocks in order, in the same loop so that the search is written once.
    for turn in range(-1, blocks):
        k = nearest_block if turn < 0 else turn
        # Not >=: a point at the same distance may have a lower index.
        if turn >= 0 and (k == nearest_block or bounds[k] > best):
            continue

        begin = starts[k]
        size = starts[k + 1] - begin
        point_distances(x, points, begin, size, distances)
        for i in range(size):
            if distances[i] <= best:
                if distances[i] < best or order[begin + i] < best_index:
                    best_index = order[begin + i]
                best = distances[i]
    return best_index


@compiled
def nearest(
    values: FloatArray,
    table: FloatArray,
    points: FloatArray,
    order: IntArray,
    starts: IntArray,
    lower: FloatArray,
    upper: FloatArray,
) -> IntArray:
    """Find for each configuration the nearest point, and return the points' original indices, (n,).

    Args:
        values: The configurations, (n, d).
        table: The coding, a row for each feature of a configuration.
        points: The features of the m points, sorted into b blocks of neighbours, (p, m). Features
            that the coding does not have are zeros.
        order: Index of each point before they were sorted, (m,).
        starts: Index of the first point of each block, with m after the last block, (b + 1,).
        lower: Smallest features in each block, (p, b).
        upper: Largest features in each block, (p, b).
    """
    original_indices = np.empty(values.shape[0], dtype=np.int64)
    x = np.zeros(points.shape[0])  # features beyond the coding's stay 0
    # Room for the numbers of one search: of each block, and of each point of the largest block.
    bounds = np.empty(lower.shape[1])
    distances = np.empty(np.max(starts[1:] - starts[:-1]))
    for i in range(values.shape[0]):
        encode_row(values[i], table, x)
        original_indices[i] = nearest_point(
            x, points, order, starts, lower, upper, bounds, distances
        )
    return original_indices


@compiled
def forest_predict(
    values: FloatArray,
    table: FloatArray,
    feature: NDArray[np.uint8],
    threshold: NDArray[np.float32],
    child: NDArray[np.uint32],
    roots: NDArray[np.uint32],
    depths: IntArray,
    leaf: NDArray[np.uint32],
    codes: NDArray[np.uint16],
    units: FloatArray,
    low: int,
    high: int,
    weight: float,
) -> FloatArray:
    """Predict the objective of configurations, (n,), by interpolation between two outputs.

    A tree's leaf has a code for each output, a whole number. The prediction of an output is a
    linear function of the sum of these codes over all trees.

    All rows of a block take as many steps as the tree is deep. This is faster than to stop at a
    leaf, since the processor cannot predict when a row reaches one. A row that is at a leaf stays
    there, as a leaf's children are the leaf itself.

    Args:
        values: The configurations, (n, d).
        table: The coding, (p, 6).
        feature: Index of the feature that a node compares; any in leaves, (q,).
        threshold: What it is compared with; any in leaves, (q,).
        child: Node after node i: at 2 i if the feature is at most the threshold, at 2 i + 1 if it
            is greater; in leaves both are i, (2 q,).
        roots: First node of each tree, (t,).
        depths: Depth of each tree, (t,).
        leaf: Number of each leaf among the l leaves; any in other nodes, (q,).
        codes: Value of each output in each leaf, as a whole number, (K, l).
        units: Columns offset and factor: an output's value is offset + factor * (sum of its codes
            over trees), (K, 2).
        low: Index of an output, such as that of the training fraction below the task's.
        high: Index of another output, such as that of the fraction above it.
        weight: Weight of `high`, from 0 to 1; `low` has the rest.
    """
    n = values.shape[0]
    predictions = np.empty(n)
    x = np.empty((min(n, BLOCK), table.shape[0]), dtype=np.float32)
    nodes = np.empty(x.shape[0], dtype=np.uint32)
    sums = np.empty((2, x.shape[0]), dtype=np.int64)
    for begin in range(0, n, BLOCK):
        size = min(BLOCK, n - begin)
        for i in range(size):
            encode_row(values[begin + i], table, x[i])
        sums[:] = 0
        for tree in range(roots.shape[0]):
            nodes[:] = roots[tree]
            for _ in range(depths[tree]):
                for i in range(size):
                    # Unsigned: numba checks signed indices for negative ones.
                    node = np.uint64(nodes[i])
                    greater = np.uint64(x[i, np.uint64(feature[node])] > threshold[node])
                    nodes[i] = child[np.uint64(2) * node + greater]
            for i in range(size):
                number = leaf[nodes[i]]
                sums[0, i] += codes[low, number]
                sums[1, i] += codes[high, number]
        for i in range(size):
            predictions[begin + i] = mix(sums[0, i], sums[1, i], units, low, high, weight)
    return predictions


@compiled
def forest_predict_one(
    row: FloatArray,
    table: FloatArray,
    feature: NDArray[np.uint8],
    threshold: NDArray[np.float32],
    child: NDArray[np.uint32],
    roots: NDArray[np.uint32],
    leaf: NDArray[np.uint32],
    codes: NDArray[np.uint16],
    units: FloatArray,
    low: int,
    high: int,
    weight: float,
) -> float:
    """Predict one configuration (d,): as `forest_predict`, but every tree stops at its leaf.

    Args:
        row: The configuration, (d,).
        table: The coding, (p, 6).
        feature: Index of the feature that a node compares; any in leaves, (q,).
        threshold: What it is compared with; any in leaves, (q,).
        child: Node after node i: at 2 i if the feature is at most the threshold, at 2 i + 1 if it
            is greater; in leaves both are i, (2 q,).
        roots: First node of each tree, (t,).
        leaf: Number of each leaf; any in other nodes, (q,).
        codes: Value of each output in each leaf, as a whole number, (K, l).
        units: Columns offset and factor from an output's sum of codes to its value, (K, 2).
        low: Index of an output.
        high: Index of another output.
        weight: Weight of `high`, from 0 to 1; `low` has the rest.
    """
    x = np.empty(table.shape[0], dtype=np.float32)
    encode_row(row, table, x)
    sum_low = 0
    sum_high = 0
    for tree in range(roots.shape[0]):
        node = np.uint64(roots[tree])
        while True:
            # Unsigned: numba checks signed indices for negative ones.
            greater = np.uint64(x[np.uint64(feature[node])] > threshold[node])
            following = np.uint64(child[np.uint64(2) * node + greater])
            if following == node:  # a leaf, whose children are itself
                break
            node = following
        sum_low += codes[low, leaf[node]]
        sum_high += codes[high, leaf[node]]
    return mix(sum_low, sum_high, units, low, high, weight)


@compiled
def mix(
    sum_low: int, sum_high: int, units: FloatArray, low: int, high: int, weight: float
) -> float:
    """Interpolate between the predictions of two outputs of a forest.

    A forest's leaves store the values of its K outputs as whole numbers, codes. The sum of the
    codes of all trees' leaves, times a factor and plus an offset, is the output's prediction.

    Args:
        sum_low: Sum of the codes of output `low`.
        sum_high: Sum of the codes of output `high`.
        units: Columns offset and factor: an output's value is offset + factor * sum, (K, 2).
        low: Index of the output, such as a training fraction, below the task.
        high: Index of the output above the task.
        weight: Weight of `high`, from 0 to 1; `low` has the rest.
    """
    value_low: float = units[low, 0] + units[low, 1] * sum_low
    value_high: float = units[high, 0] + units[high, 1] * sum_high
    return (1.0 - weight) * value_low + weight * value_high
