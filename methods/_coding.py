"""Compiled coding of many candidates: what `SearchSpace` does with arrays, in one pass.

=======  ======  ==================================================================================
symbol   shape   meaning
=======  ======  ==================================================================================
m        scalar  candidates
d        scalar  hyperparameters
p        scalar  model features
c        scalar  conditional hyperparameters
k        scalar  largest number of values of a parent
=======  ======  ==================================================================================

A *log integer* is an integer on a log scale: the unit values of its values are not evenly spaced,
so they are tabulated.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.runtime.compiling import compiled
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.conditions import Condition, parents
from hpobench_ordered.space.parameters import Kind, Parameter
from hpobench_ordered.space.unit_cube import INACTIVE_FEATURE, MAX_TABULATED


class Scales(NamedTuple):
    """How each hyperparameter is scaled to the unit interval; arrays of shape (d,) but `units`.

    Attributes:
        low: Value at 0, or its logarithm on a log scale.
        width: Value at 1, or its logarithm, minus `low`.
        lower: Smallest value.
        upper: Largest value.
        is_discrete: Whether the values are whole numbers: integers, ordinals and choices.
        is_log_integer: Whether it is an integer on a log scale.
        units: Unit values of all values of the log integers, one integer after the other.
        first_unit: Where those of each log integer begin in `units`.
    """

    low: FloatArray
    width: FloatArray
    lower: FloatArray
    upper: FloatArray
    is_discrete: BoolArray
    is_log_integer: BoolArray
    units: FloatArray
    first_unit: IntArray


class ConditionTables(NamedTuple):
    """When each conditional hyperparameter, a child, is active; parents come before children.

    Attributes:
        children: Columns of the children, shape (c,).
        parents: Column of the only parent of each, shape (c,).
        holds: Whether the condition holds for each value of the parent, ascending, shape (c, k).
        holds_if_parent_inactive: Whether it holds if the parent is inactive, shape (c,); it does if
            it is that the parent is not equal to a value.
    """

    children: IntArray
    parents: IntArray
    holds: BoolArray
    holds_if_parent_inactive: BoolArray


class Coder:
    """Codes candidates as `SearchSpace.canonical` and `SearchSpace.features` do, but faster.

    Values of log integers and of parents are tabulated. Spaces for which this is impossible, or
    with a condition on several hyperparameters, are left to `SearchSpace`.
    """

    def __init__(self, space: SearchSpace) -> None:
        """Tabulate what the compiled functions need of a search space, if that is possible.

        These are the scales of the hyperparameters, and when each conditional one is active.
        """
        self._space = space
        parameters = space.parameters
        # Condition of each conditional hyperparameter by its column, parents before children.
        conditions = {}
        for column, condition in space.ordered_conditions.items():
            if condition is not None:
                conditions[column] = condition

        self._choice_counts = count_choices(parameters)  # 0 where not categorical
        # A categorical has a feature for each choice, all others have one.
        self._feature_count = int(np.maximum(self._choice_counts, 1).sum())
        # Without conditions and categoricals, features are the points of the unit cube themselves.
        self._has_unit_features = not conditions and not self._choice_counts.any()

        self._is_tabulated = can_tabulate(parameters, list(conditions.values()))
        if self._is_tabulated:
            self._scales = tabulate_scales(parameters)
            self._conditions = tabulate_conditions(parameters, conditions)

    def canonical(self, unit: FloatArray) -> FloatArray:
        """Compute the points that represent configurations, as `SearchSpace.canonical` does.

        Discrete values move to the middle of their bins, and inactive hyperparameters become NaN.
        If the space could not be tabulated, `SearchSpace` itself computes them.

        Args:
            unit: Points of the unit cube, without NaN, shape (m, d).

        Returns:
            The points that represent the configurations, shape (m, d), C-contiguous.
        """
        if not self._is_tabulated:
            return self._space.canonical(unit)
        return _canonical(unit, self._scales, self._conditions)

    def features(self, unit: FloatArray) -> FloatArray:
        """Compute what `SearchSpace.features` does: a model's inputs (m, p) in [0, 1].

        Numbers are coded by their unit values, categoricals one-hot, with a column for each choice.
        Without categoricals and conditions, features are the unit values.

        Args:
            unit: Configurations in the unit cube, NaN where inactive, shape (m, d), C-contiguous.
        """
        if self._has_unit_features:
            return unit
        return _features(unit, self._choice_counts, self._feature_count)


def count_choices(parameters: Sequence[Parameter]) -> IntArray:
    """Count the choices of each categorical, shape (d,); 0 for numbers and ordinals."""
    counts = np.zeros(len(parameters), dtype=np.int64)
    for j, parameter in enumerate(parameters):
        if parameter.kind is Kind.CATEGORICAL:
            counts[j] = len(parameter.choices)
    return counts


def is_log_integer(parameter: Parameter) -> bool:
    """Whether a hyperparameter is an integer on a log scale."""
    return parameter.is_discrete and parameter.log


def list_values(parameter: Parameter) -> FloatArray:
    """List all coded values of a discrete hyperparameter, ascending.

    They are consecutive whole numbers: integers as they are, ordinals and choices by their index.
    """
    return np.arange(parameter.lower, parameter.upper + 1)


def can_tabulate(parameters: Sequence[Parameter], conditions: Sequence[Condition]) -> bool:
    """Whether compiled functions can code the space by tables.

    Two kinds of hyperparameters need a table of their values, which has `MAX_TABULATED` entries at
    most: integers on log scales, whose unit values are not evenly spaced, and parents, on which
    conditions depend. Each condition must have a single parent.
    """
    needing_tables = [parameter for parameter in parameters if is_log_integer(parameter)]
    for condition in conditions:
        parent_columns = list(parents(condition))
        if len(parent_columns) > 1:
            return False
        needing_tables.append(parameters[parent_columns[0]])
    return all(parameter.size <= MAX_TABULATED for parameter in needing_tables)


def tabulate_scales(parameters: Sequence[Parameter]) -> Scales:
    """Tabulate how each hyperparameter is scaled to the unit interval.

    Unit value u stands for the number `low + u * width`, or its logarithm on a log scale. The unit
    values of integers on log scales are tabulated, one hyperparameter after the other, as they are
    not evenly spaced.
    """
    # Values, or their logarithms on a log scale, at the unit values 0 and 1.
    spans = np.array([p.span for p in parameters])
    low, high = spans[:, 0], spans[:, 1]

    units_of_parameters = []
    for parameter in parameters:
        if is_log_integer(parameter):
            units_of_parameters.append(parameter.encode(list_values(parameter)))
        else:
            units_of_parameters.append(np.empty(0))  # computed where needed
    lengths = [len(units) for units in units_of_parameters]
    first_unit = np.cumsum([0, *lengths])[:-1]  # where each hyperparameter's unit values begin
    return Scales(
        low=low,
        width=high - low,
        lower=np.array([p.lower for p in parameters], dtype=np.float64),
        upper=np.array([p.upper for p in parameters], dtype=np.float64),
        is_discrete=np.array([p.is_discrete for p in parameters]),
        is_log_integer=np.array([is_log_integer(p) for p in parameters]),
        units=np.concatenate(units_of_parameters),
        first_unit=first_unit,
    )


def tabulate_conditions(
    parameters: Sequence[Parameter], conditions: dict[int, Condition]
) -> ConditionTables:
    """Tabulate for which values of its parent each conditional hyperparameter is active.

    Args:
        parameters: The hyperparameters.
        conditions: Condition of each child by its column, parents before children; each condition
            has one parent, which is discrete.
    """
    children = np.array(list(conditions), dtype=np.int64)
    parent_columns = [next(iter(parents(condition))) for condition in conditions.values()]
    values_of_parents = [list_values(parameters[j]).tolist() for j in parent_columns]
    longest = max((len(values) for values in values_of_parents), default=0)

    def holds_for(condition: Condition, parent_value: float) -> bool:
        """Whether a condition holds for a value of its parent; NaN stands for an inactive one."""
        # A condition takes a whole configuration, of which it uses the parent's value alone.
        configuration = [parent_value] * len(parameters)
        return condition.holds_for(configuration)

    # A row for each child; a column for each value of its parent, ascending.
    holds = np.zeros((len(conditions), longest), dtype=np.bool_)
    for row, condition, values in zip(holds, conditions.values(), values_of_parents, strict=True):
        for column, value in enumerate(values):
            row[column] = holds_for(condition, value)

    holds_if_inactive = [holds_for(condition, math.nan) for condition in conditions.values()]
    return ConditionTables(
        children=children,
        parents=np.array(parent_columns, dtype=np.int64),
        holds=holds,
        holds_if_parent_inactive=np.array(holds_if_inactive, dtype=np.bool_),
    )


@compiled
def move_centres(
    centres: FloatArray,
    steps: FloatArray,
    is_redrawn: BoolArray,
    drawn: FloatArray,
    lowest: FloatArray,
    highest: FloatArray,
    is_categorical: BoolArray,
) -> FloatArray:
    """Move configurations: numbers by a step within their bounds, categoricals by drawing anew.

    Args:
        centres: The configurations, used in turn, in the unit cube, shape (number of centres, d).
            Where they are NaN, inactive, the drawn value is used.
        steps: Steps of the numbers, shape (m, d).
        is_redrawn: Whether a categorical becomes the drawn value, shape (m, d).
        drawn: The drawn unit values, shape (m, d).
        lowest: Smallest unit value of each number, shape (d,).
        highest: Largest unit value of each number, shape (d,).
        is_categorical: Whether each hyperparameter is categorical, shape (d,).

    Returns:
        The moved configurations, points of the unit cube, shape (m, d).
    """
    moved = drawn.copy()
    for i in range(len(moved)):
        centre = centres[i % len(centres)]
        for j in range(moved.shape[1]):
            if math.isnan(centre[j]):
                continue  # the drawn value stays
            if is_categorical[j]:
                if not is_redrawn[i, j]:
                    moved[i, j] = centre[j]
            else:
                moved[i, j] = min(max(centre[j] + steps[i, j], lowest[j]), highest[j])
    return moved


@compiled
def _canonical(unit: FloatArray, scales: Scales, conditions: ConditionTables) -> FloatArray:
    """Compute the point of the unit cube that represents the configuration of each given point.

    Discrete values move to the middle of their bins, inactive ones become NaN. Within, arrays have
    a row for each hyperparameter, so that the loops over candidates are vectorised.

    Args:
        unit: The given points, shape (m, d).
        scales: How each hyperparameter is scaled to the unit interval.
        conditions: For which values of its parent each conditional hyperparameter, a child, is
            active; parents come before children.

    Returns:
        The points that represent them, shape (m, d).
    """
    unit_rows = unit.T.copy()
    # Coded values, filled for discrete hyperparameters alone, as all parents are.
    value_rows = np.empty(unit_rows.shape)
    for j in range(len(unit_rows)):
        if scales.is_discrete[j]:
            _round_to_bins(unit_rows[j], value_rows[j], j, scales)

    # A child that is not active becomes NaN, also as the parent of children that come later. Most
    # conditions do not hold for an inactive parent, but "is not equal to a value" does.
    for child in range(len(conditions.children)):
        parent_values = value_rows[conditions.parents[child]]
        smallest = scales.lower[conditions.parents[child]]
        child_units = unit_rows[conditions.children[child]]
        child_values = value_rows[conditions.children[child]]
        for i in range(len(parent_values)):
            if math.isnan(parent_values[i]):
                is_active = conditions.holds_if_parent_inactive[child]
            else:
                place = int(parent_values[i] - smallest)  # column of the parent's value
                is_active = conditions.holds[child, place]
            if not is_active:
                child_units[i] = np.nan
                child_values[i] = np.nan
    return unit_rows.T.copy()


@compiled
def _round_to_bins(units: FloatArray, values: FloatArray, j: int, scales: Scales) -> None:
    """Move unit values (m,) of discrete hyperparameter j to the middle of their bins, in place.

    The whole numbers that they stand for are written to `values` (m,). A log integer is an integer
    on a log scale.
    """
    # Decode. Unit 0 is `low` on the (log) scale, and unit 1 is `low + width`; `lower` and `upper`
    # are the smallest and largest whole number.
    low, width = scales.low[j], scales.width[j]
    for i in range(len(units)):
        values[i] = low + units[i] * width
    if scales.is_log_integer[j]:
        for i in range(len(units)):
            values[i] = np.exp(values[i])
    for i in range(len(units)):
        values[i] = min(max(np.rint(values[i]), scales.lower[j]), scales.upper[j])

    # Encode; unit values of log integers are not evenly spaced, so they are looked up.
    if scales.is_log_integer[j]:
        first = scales.first_unit[j]
        for i in range(len(units)):
            units[i] = scales.units[first + int(values[i] - scales.lower[j])]
    else:
        for i in range(len(units)):
            units[i] = (values[i] - low) / width


@compiled
def _features(unit: FloatArray, choice_counts: IntArray, feature_count: int) -> FloatArray:
    """Compute features (m, p), a model's inputs, of configurations in the unit cube.

    A number is one feature, a categorical is coded one-hot.

    Args:
        unit: The configurations, NaN where a hyperparameter is inactive, shape (m, d).
        choice_counts: Number of choices of each categorical, 0 for numbers, shape (d,).
        feature_count: p.
    """
    features = np.zeros((unit.shape[0], feature_count))
    for i in range(unit.shape[0]):
        column = 0
        for j in range(unit.shape[1]):
            x = unit[i, j]
            count = choice_counts[j]
            if count == 0:
                # Models need a number where x is NaN, inactive: the middle of the range.
                features[i, column] = INACTIVE_FEATURE if math.isnan(x) else x
                column += 1
            else:
                # Choice c has the unit value (c + 1/2) / count. If it is inactive, x is NaN and
                # all columns stay 0.
                if 0.0 <= x * count < count:
                    features[i, column + int(x * count)] = 1.0
                column += count
    return features
