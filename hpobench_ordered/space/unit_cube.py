"""Conversion of arrays of configurations to the unit cube and back.

Equivalent to `Parameter.encode` and `Parameter.decode` of each hyperparameter, but for all at once.
Arrays are transposed where that is faster, so that each hyperparameter is a contiguous row.

Notation:
    n   number of configurations
    d   number of tunable hyperparameters
    p   number of model features
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.space.conditions import Condition, parents
from hpobench_ordered.space.parameters import Kind, Parameter, exp, log

INACTIVE_FEATURE = 0.5
"""Model feature of an inactive numeric hyperparameter: the middle of its range."""

MAX_TABULATED = 4096
"""Largest number of values of an integer on a log scale whose unit values are tabulated."""


class UnitCube:
    """Converts arrays of configurations between coded values, unit vectors and model features."""

    def __init__(
        self, parameters: Sequence[Parameter], conditions: Mapping[int, Condition]
    ) -> None:
        """Compute, once for all calls, the arrays that coding and decoding need.

        Args:
            parameters: The d hyperparameters, by column.
            conditions: The conditions by the column of the child, parents before their children.
        """
        self._parameters = parameters
        self._conditions = conditions
        # Smallest and largest coded value of each hyperparameter, (d,).
        self.lower: FloatArray = np.array([p.lower for p in parameters])
        self.upper: FloatArray = np.array([p.upper for p in parameters])
        self.is_discrete: BoolArray = np.array([p.is_discrete for p in parameters])

        # `span` holds the two numbers that the unit interval maps to 0 and 1. On a log scale they
        # are logarithms. For a discrete hyperparameter they are half a step outside of the bounds,
        # so that all values have bins of the same width.
        self._low, high = np.array([p.span for p in parameters]).T  # (d,) each
        self._width = high - self._low

        self._group_columns()
        self._lay_out_features()

    def _group_columns(self) -> None:
        """Set the columns of each group of hyperparameters that are converted in the same way.

        `encode` treats `_logs` alike, `decode` floats and integers on log scales, and `canonical`
        all that are evenly spaced.
        """
        is_log: BoolArray = np.array([p.log for p in self._parameters])
        self._logs = np.flatnonzero(is_log)
        self._log_floats = np.flatnonzero(is_log & ~self.is_discrete)
        self._log_integers: list[int] = np.flatnonzero(is_log & self.is_discrete).tolist()
        # Integers without a log scale, and choices.
        self._evenly_spaced = np.flatnonzero(~is_log & self.is_discrete)

        # `canonical` decodes all evenly spaced columns at once. Others are decoded one by one:
        # integers on log scales, and parents, whose values conditions compare with something.
        parent_columns: set[int] = set()
        for condition in self._conditions.values():
            parent_columns |= parents(condition)
        needed_columns = parent_columns.union(self._log_integers)
        self._decoded_one_by_one = sorted(needed_columns.difference(self._evenly_spaced.tolist()))

    def _lay_out_features(self) -> None:
        """Set which hyperparameter, and which choice of it, each model feature stands for.

        A categorical hyperparameter has one feature for each of its choices, which is 1 if this
        choice was made, else 0 (one-hot). Any other hyperparameter has a single feature.
        """
        column_of_feature: list[int] = []  # column of the hyperparameter of each feature

        # Three numbers for each one-hot feature: its index among all features, the index of the
        # choice that it stands for, and the number of choices of its hyperparameter.
        one_hot: list[int] = []
        choice_of_one_hot: list[int] = []
        choice_count_of_one_hot: list[int] = []

        for column, parameter in enumerate(self._parameters):
            if parameter.kind is not Kind.CATEGORICAL:
                column_of_feature.append(column)
                continue
            choice_count = len(parameter.choices)
            for choice in range(choice_count):
                one_hot.append(len(column_of_feature))
                choice_of_one_hot.append(choice)
                choice_count_of_one_hot.append(choice_count)
                column_of_feature.append(column)

        self._column_of_feature = np.array(column_of_feature)
        self._one_hot = np.array(one_hot, dtype=np.int64)
        # `features` works on arrays with a row for each feature and a column for each
        # configuration. One column, (number of one-hot features, 1), serves all configurations.
        self._choice_of_one_hot = np.array(choice_of_one_hot, dtype=np.int64)[:, None]
        self._choice_count_of_one_hot = np.array(choice_count_of_one_hot, dtype=np.int64)[:, None]

    def encode(self, values: FloatArray) -> FloatArray:
        """Map coded values to the unit cube, shape (n, d) to (n, d); NaN stays NaN."""
        scaled = np.array(values)  # a copy, changed in place
        _apply_to_columns(scaled, self._logs, log)
        unit: FloatArray = (scaled - self._low) / self._width
        return unit

    def decode(self, unit: FloatArray) -> FloatArray:
        """Map unit vectors to coded values, shape (n, d) to (n, d), with NaN where inactive."""
        values: FloatArray = self._low + unit * self._width  # logarithms on log scales
        _apply_to_columns(values, self._log_floats, exp)
        # numpy's `exp` is faster. Its last bit depends on the processor, but integers are rounded.
        _apply_to_columns(values, self._log_integers, np.exp)
        np.rint(values, out=values, where=self.is_discrete)
        # Rounding may lead out of the range. These two calls are faster than `np.clip`.
        np.minimum(np.maximum(values, self.lower), self.upper, out=values)
        if self._conditions:
            np.putmask(values, ~self.active(values), np.nan)
        return values

    def canonical(self, unit: FloatArray) -> FloatArray:
        """Make unit vectors canonical, so that equal configurations have equal unit vectors.

        Discrete hyperparameters move to the middle of their bins, by being decoded and encoded
        again, and inactive ones become NaN. Shape (n, d) to (n, d).
        """
        # Computations are faster on arrays with a contiguous row for each hyperparameter. Values of
        # floats that no condition compares with something are not needed, and not computed.
        unit_rows = np.array(unit.T, dtype=np.float64, order="C")
        value_rows = np.empty_like(unit_rows)

        self._snap_evenly_spaced(unit_rows, value_rows)
        for column in self._decoded_one_by_one:
            value_rows[column] = self._parameters[column].decode(unit_rows[column])
        for column in self._log_integers:
            unit_rows[column] = self._encode_log_integer(column, value_rows[column])
        if self._conditions:
            is_active = self.active(value_rows.T).T
            np.copyto(unit_rows, np.nan, where=~is_active)
        return unit_rows.T.copy()

    def _snap_evenly_spaced(self, unit_rows: FloatArray, value_rows: FloatArray) -> None:
        """Decode all evenly spaced hyperparameters at once, round the values, and encode them.

        Args:
            unit_rows: Unit vectors, a row for each hyperparameter; changed in place, (d, n).
            value_rows: Receives the rounded values, (d, n).
        """
        rows = self._evenly_spaced
        # The unit interval stands for the interval from `low` to `low + width`, which is half a
        # step larger on each side than the range of values from `lower` to `upper`.
        low = self._low[rows, None]
        width = self._width[rows, None]
        lower = self.lower[rows, None]
        upper = self.upper[rows, None]
        rounded = np.rint(low + unit_rows[rows] * width)
        values = np.minimum(np.maximum(rounded, lower), upper)
        value_rows[rows] = values
        unit_rows[rows] = (values - low) / width

    def active(self, values: FloatArray) -> BoolArray:
        """Find out which hyperparameters of each configuration are active, shape (n, d)."""
        active = np.ones_like(values, dtype=np.bool_)
        # Parents come before their children: a child is inactive if its parent is.
        for column, condition in self._conditions.items():
            active[:, column] = condition.holds(values, active)
        return active

    def features(self, unit: FloatArray) -> FloatArray:
        """Compute features of canonical unit vectors for a model, (n, d) to (n, p).

        Categoricals are one-hot coded, and all other hyperparameters stay as they are. Inactive
        ones have the middle of their range, or zeros for each choice.
        """
        if not len(self._one_hot) and not self._conditions:
            return unit
        feature_rows: FloatArray = unit.T[self._column_of_feature]  # (p, n)
        if len(self._one_hot):
            # Choice number i of c has the unit values from i / c to (i + 1) / c. A feature is 1 if
            # its choice was made, else 0. NaN, of inactive hyperparameters, equals no choice.
            made_choices = np.floor(feature_rows[self._one_hot] * self._choice_count_of_one_hot)
            feature_rows[self._one_hot] = made_choices == self._choice_of_one_hot
        if self._conditions:
            np.copyto(feature_rows, INACTIVE_FEATURE, where=np.isnan(feature_rows))
        return feature_rows.T.copy()

    @cached_property
    def _unit_tables(self) -> Mapping[int, FloatArray]:
        """A table of unit values for each integer on a log scale, by column.

        A table has the unit value of each integer from the lower to the upper bound and, last, NaN
        for an inactive hyperparameter. Integers with more than `MAX_TABULATED` values have none.
        """
        tables = {}
        for column in self._log_integers:
            parameter = self._parameters[column]
            if parameter.size <= MAX_TABULATED:
                all_values = np.arange(parameter.lower, parameter.upper + 1)
                tables[column] = np.append(parameter.encode(all_values), np.nan)
        return tables

    def _encode_log_integer(self, column: int, values: FloatArray) -> FloatArray:
        """Encode the values of an integer on a log scale as unit values, (n,) to (n,).

        A table of all unit values is faster than logarithms. If the integer has too many values for
        a table, logarithms are computed.

        Args:
            column: Column of the integer.
            values: Its values, NaN where it is inactive, (n,).
        """
        if column not in self._unit_tables:
            return self._parameters[column].encode(values)
        # The table has the unit values of lower, lower + 1, ..., upper and, last, NaN.
        positions = values - self.lower[column]
        positions[np.isnan(positions)] = -1  # the last entry
        unit: FloatArray = self._unit_tables[column][positions.astype(np.intp)]
        return unit


def _apply_to_columns(
    array: FloatArray, columns: IntArray | list[int], function: Callable[[FloatArray], FloatArray]
) -> None:
    """Apply a function to some columns of an array (n, d), in place."""
    if len(columns):
        array[:, columns] = function(array[:, columns])
