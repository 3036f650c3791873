"""Compiled loops over whole arrays of configurations in the unit cube.

Notation:
    n, d    configurations, hyperparameters
    c       hyperparameters whose values are listed
    m       steps of deciding conditions
    p       model features
"""

import math

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.runtime.compiling import compiled
from hpobench_ordered.space.conditions import Step

EQUAL, NOT_EQUAL, LESS, GREATER, AND, OR, ACTIVE = (int(step) for step in Step)

INACTIVE_FEATURE = 0.5
"""Model feature of an inactive numeric hyperparameter: the middle of its range."""


@compiled
def decide(row: FloatArray, steps: FloatArray, stack: BoolArray, is_active: BoolArray) -> None:
    """Write which hyperparameters of a configuration (d,) are active to `is_active` (d,).

    Args:
        row: The configuration's values, shape (d,).
        steps: How to decide it, see `Step`, shape (m, 3).
        stack: Room for the steps, shape (m,).
        is_active: True everywhere.
    """
    top = -1
    for k in range(steps.shape[0]):
        step, j, number = int(steps[k, 0]), int(steps[k, 1]), steps[k, 2]
        if step == ACTIVE:
            is_active[j] = stack[top]
            top -= 1
        elif step == AND:
            top -= 1
            stack[top] = stack[top] and stack[top + 1]
        elif step == OR:
            top -= 1
            stack[top] = stack[top] or stack[top + 1]
        else:
            top += 1
            x = row[j]
            if step == NOT_EQUAL:
                stack[top] = not (is_active[j] and x == number)
            elif step == EQUAL:
                stack[top] = is_active[j] and x == number
            elif step == LESS:
                stack[top] = is_active[j] and x < number
            else:
                stack[top] = is_active[j] and x > number


@compiled
def active(values: FloatArray, steps: FloatArray) -> BoolArray:
    """Whether each hyperparameter of coded values (n, d) is active, by steps (m, 3)."""
    result = np.ones(values.shape, dtype=np.bool_)
    stack = np.empty(steps.shape[0], dtype=np.bool_)
    for i in range(values.shape[0]):
        decide(values[i], steps, stack, result[i])
    return result


@compiled
def make_canonical(
    unit: FloatArray,
    values: FloatArray,
    columns: IntArray,
    table: FloatArray,
    middles: FloatArray,
    steps: FloatArray,
) -> None:
    """Snap discrete hyperparameters to the middle of their bins, set inactive ones to NaN.

    Args:
        unit: Unit vectors, changed in place, shape (n, d).
        values: Coded values of other parents of conditions; those of `columns` are written here;
            shape (n, d).
        columns: The discrete hyperparameters whose values are listed, shape (c,).
        table: Of each the lower end and width of the unit interval, smallest and largest value,
            whether it is on a log scale, and where its values begin in `middles`; shape (c, 6).
        middles: Unit values of all values of all of `columns`, one after the other.
        steps: How to decide which are active, see `Step`, shape (m, 3).
    """
    for k in range(columns.shape[0]):
        j = columns[k]
        low, width, lower, upper = table[k, 0], table[k, 1], table[k, 2], table[k, 3]
        is_log, first = table[k, 4] > 0.0, int(table[k, 5])
        for i in range(unit.shape[0]):
            scaled = low + unit[i, j] * width
            value = np.rint(math.exp(scaled) if is_log else scaled)
            values[i, j] = min(max(value, lower), upper)
            if not math.isnan(value):
                unit[i, j] = middles[first + int(values[i, j] - lower)]
    if steps.shape[0]:
        is_active = active(values, steps)
        for i in range(unit.shape[0]):
            for j in range(unit.shape[1]):
                unit[i, j] = unit[i, j] if is_active[i, j] else math.nan


@compiled
def features(unit: FloatArray, choices: IntArray) -> FloatArray:
    """Model features (n, p) of canonical unit vectors (n, d).

    Args:
        unit: Canonical unit vectors, shape (n, d).
        choices: Number of choices of each categorical, 0 of other hyperparameters, shape (d,).
    """
    columns = np.sum(np.maximum(choices, 1))
    result = np.zeros((unit.shape[0], columns))
    for i in range(unit.shape[0]):
        first = 0
        for j in range(unit.shape[1]):
            x, count = unit[i, j], choices[j]
            if count == 0:
                result[i, first] = INACTIVE_FEATURE if math.isnan(x) else x
            elif 0.0 <= x * count < count:
                result[i, first + int(x * count)] = 1.0
            first += max(count, 1)
    return result
