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
    """Codes values as unit vectors and back; conditions are by column, parents before children."""

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

        self._find_scales()  # sets the columns that `decode` and `canonical` treat alike
        self._lay_out_features()  # sets what `features` needs of each model feature

    def _find_scales(self) -> None:
        """Find the columns of each kind of scale, which `canonical` and `decode` treat alike."""
        is_log: BoolArray = np.array([p.log for p in self._parameters])
        self._logs = np.flatnonzero(is_log)
        self._log_floats = np.flatnonzero(is_log & ~self.is_discrete)
        self._log_integers: list[int] = np.flatnonzero(is_log & self.is_discrete).tolist()
        self._evenly_spaced = np.flatnonzero(~is_log & self.is_discrete)

        # `canonical` decodes all evenly spaced columns at once. One by one, it decodes integers on
        # log scales, and all other columns whose values conditions compare with something.
        parent_columns = set[int]().union(*map(parents, self._conditions.values()))
        one_by_one = parent_columns.union(self._log_integers)
        self._decoded_singly = sorted(one_by_one.difference(self._evenly_spaced.tolist()))

    def _lay_out_features(self) -> None:
        """Set which hyperparameter, and which choice of it, each feature stands for.

        A categorical hyperparameter has a feature for each of its choices, which is 1 for the
        chosen one and else 0 (one-hot). All others have one feature.
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
        """Map values to the unit cube, shape (n, d) to (n, d); NaN stays NaN."""
        scaled = np.array(values)  # a copy, changed in place
        _apply_to_columns(scaled, self._logs, log)
        unit: FloatArray = (scaled - self._low) / self._width
        return unit

    def decode(self, unit: FloatArray) -> FloatArray:
        """Map unit vectors to values, shape (n, d) to (n, d), with NaN where inactive."""
        values: FloatArray = self._low + unit * self._width
        _apply_to_columns(values, self._log_floats, exp)
        _apply_to_columns(values, self._log_integers, np.exp)  # faster; rounded in the next line
        np.rint(values, out=values, where=self.is_discrete)
        # A rounded value may be outside of the range. These two calls are faster than `np.clip`.
        np.minimum(np.maximum(values, self.lower), self.upper, out=values)
        if self._conditions:
            np.putmask(values, ~self.active(values), np.nan)
        return values

    def canonical(self, unit: FloatArray) -> FloatArray:
        """Snap discrete hyperparameters to the middle of their bins, set inactive ones to NaN.

        Shape (n, d) to (n, d). See `SearchSpace.canonical`.
        """
        # Arrays with a contiguous row for each hyperparameter are faster. Only the values of
        # discrete hyperparameters, and of those that conditions compare with, are computed.
        unit_rows = np.array(unit.T, dtype=np.float64, order="C")
        value_rows = np.empty_like(unit_rows)

        # All evenly spaced hyperparameters are decoded, rounded and encoded again at once. The unit
        # interval goes from `low` to `low + width`: half a step more on each side than the range
        # from `lower` to `upper`.
        even = self._evenly_spaced
        low, width = self._low[even, None], self._width[even, None]
        lower, upper = self.lower[even, None], self.upper[even, None]
        rounded = np.rint(low + unit_rows[even] * width)
        value_rows[even] = np.minimum(np.maximum(rounded, lower), upper)
        unit_rows[even] = (value_rows[even] - low) / width

        # Integers on log scales likewise; floats that conditions compare with are only decoded.
        for j in self._decoded_singly:
            value_rows[j] = self._parameters[j].decode(unit_rows[j])
        for j in self._log_integers:
            unit_rows[j] = self._encode_log_integer(j, value_rows[j])
        if self._conditions:
            np.copyto(unit_rows, np.nan, where=~self.active(value_rows.T).T)
        return unit_rows.T.copy()

    def active(self, values: FloatArray) -> BoolArray:
        """Whether each hyperparameter of each configuration is active, shape (n, d)."""
        active = np.ones_like(values, dtype=np.bool_)
        for j, condition in self._conditions.items():  # parents before their children
            active[:, j] = condition.holds(values, active)
        return active

    def features(self, unit: FloatArray) -> FloatArray:
        """Features of canonical unit vectors for a model, (n, d) to (n, p).

        Numbers stay as they are, categoricals are one-hot coded. See `SearchSpace.features`.
        """
        if not len(self._one_hot) and not self._conditions:
            return unit
        feature_rows: FloatArray = unit.T[self._column_of_feature]
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

        It has the unit value of each integer from the lower to the upper bound. A last entry NaN is
        for inactive hyperparameters. Integers with more than `MAX_TABULATED` values have no table.
        """
        tables = {}
        for j in self._log_integers:
            parameter = self._parameters[j]
            if parameter.size <= MAX_TABULATED:
                all_values = np.arange(parameter.lower, parameter.upper + 1)
                tables[j] = np.append(parameter.encode(all_values), np.nan)
        return tables

    def _encode_log_integer(self, j: int, values: FloatArray) -> FloatArray:
        """Encode the values of an integer on a log scale as unit values, (n,) to (n,).

        A table of all unit values is faster than logarithms. If the integer has too many values for
        a table, logarithms are computed.

        Args:
            j: Column of the integer.
            values: Its values, NaN where it is inactive, (n,).
        """
        if j not in self._unit_tables:
            return self._parameters[j].encode(values)
        # The table holds the unit values of lower, lower + 1, ..., upper and, last, NaN.
        place_in_table = values - self.lower[j]
        place_in_table[np.isnan(place_in_table)] = -1  # the index of the last entry
        unit: FloatArray = self._unit_tables[j][place_in_table.astype(np.intp)]
        return unit


def _apply_to_columns(
    array: FloatArray, columns: IntArray | list[int], function: Callable[[FloatArray], FloatArray]
) -> None:
    """Apply a function to some columns of an array (n, d), in place."""
    if len(columns):
        array[:, columns] = function(array[:, columns])
