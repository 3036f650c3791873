"""Compiled coding of many candidates: what the search space says of arrays, in one pass.

Notation:
    m   number of candidates
    d   number of hyperparameters
    p   number of model features
    c   number of conditional hyperparameters
    k   number of values of a hyperparameter
"""

import math

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.runtime.compiling import compiled
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.conditions import parents
from hpobench_ordered.space.parameters import Kind
from hpobench_ordered.space.unit_cube import INACTIVE_FEATURE, MOST_LISTED


class Coder:
    """Codes candidates as `SearchSpace.canonical` and `SearchSpace.features` do, but faster.

    Values of discrete hyperparameters are listed. Spaces of which that cannot be done, or with a
    condition on a continuous hyperparameter or on several ones, are left to `SearchSpace`.
    """

    def __init__(self, space: SearchSpace) -> None:
        self._space, parameters = space, space.parameters
        low, high = np.array([p.span for p in parameters]).T
        lower, upper = np.array([(p.lower, p.upper) for p in parameters]).T
        integers = [p if p.is_discrete and p.log else None for p in parameters]
        found = {j: (c, [*parents(c)]) for j, c in space.ordered_conditions.items() if c}
        listed = {p for p in integers if p}.union(parameters[x[0]] for _, x in found.values())
        self._is_listed = all(p.size <= MOST_LISTED for p in listed)
        self._is_listed &= all(len(x) == 1 for _, x in found.values())
        self._counts = np.array([len(p.choices) * (p.kind is Kind.CATEGORICAL) for p in parameters])
        self._columns = int(np.maximum(self._counts, 1).sum())
        self._is_unit = not found and not self._counts.any()
        if not self._is_listed:
            return
        middles = [p.encode(np.arange(p.lower, p.upper + 1)) if p else low[:0] for p in integers]
        starts = np.cumsum([0, *map(len, middles)])[:-1]
        column = np.array([x[0] for _, x in found.values()], dtype=np.int64)
        levels = [np.arange(lower[j], upper[j] + 1).tolist() for j in column]
        holds = np.zeros((len(found), max(map(len, levels), default=0)), dtype=np.bool_)
        for row, values, (condition, _) in zip(holds, levels, found.values(), strict=True):
            row[: len(values)] = [condition.holds_for([x] * len(parameters)) for x in values]
        unknown = [np.nan] * len(parameters)
        without = np.array([c.holds_for(unknown) for c, _ in found.values()], dtype=np.bool_)
        discrete = np.array([p.is_discrete for p in parameters])
        bounds = (low, high - low, lower, upper)
        conditional = (np.array([*found], dtype=np.int64), column, holds, without)
        logs = np.array([p is not None for p in integers])
        self._tables = (*bounds, discrete, logs, np.concatenate(middles), starts, *conditional)

    def canonical(self, unit: FloatArray) -> FloatArray:
        """`SearchSpace.canonical` of unit vectors (m, d) without NaN, C-contiguous."""
        if not self._is_listed:
            return self._space.canonical(unit)
        return _canonical(unit, *self._tables)

    def features(self, unit: FloatArray) -> FloatArray:
        """`SearchSpace.features` of canonical unit vectors (m, d), C-contiguous."""
        return unit if self._is_unit else _features(unit, self._counts, self._columns)


@compiled
def moved(
    centres: FloatArray,
    sd: FloatArray,
    share: FloatArray,
    chances: FloatArray,
    normal: FloatArray,
    redrawn: BoolArray,
    lowest: FloatArray,
    highest: FloatArray,
    is_categorical: BoolArray,
    drawn: FloatArray,
) -> FloatArray:
    """Unit vectors (m, d) some steps from centres.

    Args:
        centres: Taken in turns, shape (k, d).
        sd: Standard deviation of the steps of each, shape (m,).
        share: Share of the numbers that move, shape (m,).
        chances: Numbers of which this is less than the share do, shape (m, d).
        normal: Standard normal numbers, shape (m, d).
        redrawn: Which are drawn anew if categorical; NaN is in any case, shape (m, d).
        lowest: Least value of each number, shape (d,).
        highest: Largest value, shape (d,).
        is_categorical: Which are not numbers, shape (d,).
        drawn: What those drawn anew become, shape (m, d).
    """
    result = drawn.copy()
    for i in range(len(result)):
        centre = centres[i % len(centres)]
        for j in range(result.shape[1]):
            x = centre[j]
            if is_categorical[j]:
                if not math.isnan(x) and not redrawn[i, j]:
                    result[i, j] = x
            elif not math.isnan(x):
                step = sd[i] * normal[i, j] if chances[i, j] < share[i] else 0.0
                result[i, j] = min(max(x + step, lowest[j]), highest[j])
    return result


@compiled
def _canonical(
    unit: FloatArray,
    low: FloatArray,
    width: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    discrete: BoolArray,
    logs: BoolArray,
    middles: FloatArray,
    starts: IntArray,
    children: IntArray,
    parents: IntArray,
    holds: BoolArray,
    without: BoolArray,
) -> FloatArray:
    """Canonical unit vectors (m, d).

    Args:
        unit: Unit vectors, shape (m, d).
        low: Values at 0, on the scale of the hyperparameter, shape (d,).
        width: Those at 1 minus those at 0, shape (d,).
        lower: Smallest values, shape (d,).
        upper: Largest values, shape (d,).
        discrete: Which are discrete, shape (d,).
        logs: Which of these have a log scale, shape (d,).
        middles: Unit values of the values of those, one after the other.
        starts: Where each begins there, shape (d,).
        children: The conditional ones, parents before children, shape (c,).
        parents: Their parents, shape (c,).
        holds: Whether the condition holds by the parent's value, shape (c, k).
        without: Whether it holds where the parent is inactive, shape (c,).
    """
    rows = unit.T.copy()  # so that the loops over candidates are vectorised
    values = np.empty(rows.shape)
    for j in range(len(rows)):
        row, value = rows[j], values[j]
        if discrete[j]:
            for i in range(len(row)):
                value[i] = low[j] + row[i] * width[j]
            if logs[j]:
                for i in range(len(row)):
                    value[i] = np.exp(value[i])
            for i in range(len(row)):
                value[i] = min(max(np.rint(value[i]), lower[j]), upper[j])
                row[i] = (value[i] - low[j]) / width[j]
            if logs[j]:
                for i in range(len(row)):
                    row[i] = middles[starts[j] + int(value[i] - lower[j])]
    for c in range(len(children)):
        row, value = rows[children[c]], values[children[c]]
        parent, first = values[parents[c]], lower[parents[c]]
        for i in range(len(row)):
            x = parent[i]
            if not (without[c] if math.isnan(x) else holds[c, int(x - first)]):
                row[i] = value[i] = np.nan
    return rows.T.copy()


@compiled
def _features(unit: FloatArray, counts: IntArray, columns: int) -> FloatArray:
    """Features (m, p) of canonical unit vectors (m, d) with so many choices (d,), 0 of a number."""
    result = np.zeros((unit.shape[0], columns))
    for i in range(unit.shape[0]):
        column = 0
        for j in range(unit.shape[1]):
            x, count = unit[i, j], counts[j]
            if count == 0:
                result[i, column] = INACTIVE_FEATURE if math.isnan(x) else x
                column += 1
                continue
            if 0.0 <= x * count < count:
                result[i, column + int(x * count)] = 1.0
            column += count
    return result
