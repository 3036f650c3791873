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
        self._parameters = parameters
        self._conditions = conditions
        # Smallest and largest value of each column (d,), in its own units.
        self.lower: FloatArray = np.array([p.lower for p in parameters])
        self.upper: FloatArray = np.array([p.upper for p in parameters])
        self.is_discrete: BoolArray = np.array([p.is_discrete for p in parameters])

        # A parameter's span are the numbers that 0 and 1 of the unit interval stand for: logarithms
        # on log scales, and half a step beyond the bounds of discrete hyperparameters.
        self._low, high = np.array([p.span for p in parameters]).T  # (d,) each
        self._width = high - self._low

        self._find_scales()  # sets the columns that `decode` and `canonical` treat alike
        self._lay_out_features()  # sets what `features` needs of each model feature

    def _find_scales(self) -> None:
        """Set the columns of each kind of scale; `canonical` and `decode` treat each kind alike."""
        is_log: BoolArray = np.array([p.log for p in self._parameters])
        self._logs = np.flatnonzero(is_log)
        self._log_floats = np.flatnonzero(is_log & ~self.is_discrete)
        self._log_integers: list[int] = np.flatnonzero(is_log & self.is_discrete).tolist()
        self._evenly_spaced = np.flatnonzero(~is_log & self.is_discrete)

        # `canonical` decodes evenly spaced ones together, and these one by one: integers on log
        # scales, and all others whose values it needs, as conditions compare with them.
        parent_columns = set[int]().union(*map(parents, self._conditions.values()))
        one_by_one = parent_columns.union(self._log_integers)
        self._decoded_singly = sorted(one_by_one.difference(self._evenly_spaced.tolist()))

    def _lay_out_features(self) -> None:
        """Set which hyperparameter each feature is of and, if it is one-hot coded, which choice.

        A categorical hyperparameter has a feature for each choice (one-hot), all others have one
        feature.
        """
        column_of_feature: list[int] = []  # its hyperparameter, by position in the space

        # Of the one-hot features alone: index among all features, index of the choice that it
        # stands for, and number of choices of its hyperparameter.
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
        # `features` has a row for each feature and a column for each configuration. These have one
        # column, (number of one-hot features, 1), which holds for all configurations.
        self._choice_of_one_hot = np.array(choice_of_one_hot, dtype=np.int64)[:, None]
        self._choice_count_of_one_hot = np.array(choice_count_of_one_hot, dtype=np.int64)[:, None]

    def encode(self, values: FloatArray) -> FloatArray:
        """Map values to the unit cube, shape (n, d) to (n, d); NaN stays NaN."""
        scaled = np.array(values)  # a copy, changed in place
        _apply_to_columns(scaled, self._logs, log)
        unit: FloatArray = (scaled - self._low) / self._width
        return unit

    def decode(self, unit: FloatArray) -> FloatArray:
        """Map unit vectors to values, shape (n, d) to (n, d); inactive hyperparameters NaN."""
        values: FloatArray = self._low + unit * self._width
        _apply_to_columns(values, self._log_floats, exp)
        _apply_to_columns(values, self._log_integers, np.exp)  # faster; rounded in the next line
        np.rint(values, out=values, where=self.is_discrete)
        # Rounding may leave the range. Two calls are faster than clip.
        np.minimum(np.maximum(values, self.lower), self.upper, out=values)
        if self._conditions:
            np.putmask(values, ~self.active(values), np.nan)
        return values

    def canonical(self, unit: FloatArray) -> FloatArray:
        """Snap discrete hyperparameters to the middle of their bins, set inactive ones to NaN.

        Shape (n, d) to (n, d). See `SearchSpace.canonical`.
        """
        # A row for each hyperparameter, contiguous, which is faster. Values are needed, and filled
        # in, only for discrete hyperparameters and those that conditions compare with.
        unit_rows = np.array(unit.T, dtype=np.float64, order="C")
        value_rows = np.empty_like(unit_rows)

        # Evenly spaced ones all at once: decode, round, and encode again. 0 and 1 of the unit
        # interval stand for `low` and `low + width`, half a step beyond `lower` and `upper`.
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
            # Of c choices, number i has the unit values from i / c to (i + 1) / c. A feature is 1
            # if its choice is the one that was made; NaN, of an inactive one, equals no choice.
            made_choices = np.floor(feature_rows[self._one_hot] * self._choice_count_of_one_hot)
            feature_rows[self._one_hot] = made_choices == self._choice_of_one_hot
        if self._conditions:
            np.copyto(feature_rows, INACTIVE_FEATURE, where=np.isnan(feature_rows))
        return feature_rows.T.copy()

    @cached_property
    def _unit_tables(self) -> Mapping[int, FloatArray]:
        """Unit values of all values of each integer on a log scale, by column.

        A table has NaN, for inactive hyperparameters, last. Integers with more values than
        `MAX_TABULATED` have no table.
        """
        tables = {}
        for j in self._log_integers:
            parameter = self._parameters[j]
            if parameter.size <= MAX_TABULATED:
                all_values = np.arange(parameter.lower, parameter.upper + 1)
                tables[j] = np.append(parameter.encode(all_values), np.nan)
        return tables

    def _encode_log_integer(self, j: int, values: FloatArray) -> FloatArray:
        """Encode values (n,) of column j, an integer on a log scale, as unit values (n,).

        Looking them up in a table is faster than calculating logarithms.
        """
        if j not in self._unit_tables:  # too many values for a table
            return self._parameters[j].encode(values)
        place = values - self.lower[j]  # in a table of lower, lower + 1, ..., upper, NaN
        place[np.isnan(place)] = -1  # its last entry
        unit: FloatArray = self._unit_tables[j][place.astype(np.intp)]
        return unit


def _apply_to_columns(
    array: FloatArray, columns: IntArray | list[int], function: Callable[[FloatArray], FloatArray]
) -> None:
    """Apply a function to some columns of an array (n, d), in place."""
    if len(columns):
        array[:, columns] = function(array[:, columns])
