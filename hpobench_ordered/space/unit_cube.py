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

MOST_LISTED = 4096
"""Largest number of values of an integer on a log scale whose unit values are tabulated."""


class UnitCube:
    """Codes values as unit vectors and back; conditions are by column, parents before children."""

    def __init__(
        self, parameters: Sequence[Parameter], conditions: Mapping[int, Condition]
    ) -> None:
        self._parameters, self._conditions = parameters, conditions
        self.lower: FloatArray = np.array([p.lower for p in parameters])
        self.upper: FloatArray = np.array([p.upper for p in parameters])
        self.is_discrete: BoolArray = np.array([p.is_discrete for p in parameters])
        self._low, high = np.array([p.span for p in parameters]).T
        self._width = high - self._low
        is_log: BoolArray = np.array([p.log for p in parameters])
        self._logs = np.flatnonzero(is_log)
        self._log_floats = np.flatnonzero(is_log & ~self.is_discrete)
        self._log_integers: list[int] = np.flatnonzero(is_log & self.is_discrete).tolist()
        self._bins = np.flatnonzero(~is_log & self.is_discrete)
        bounds = (self._low, self._width, self.lower, self.upper)
        self._bounds = [bound[self._bins, None] for bound in bounds]
        seen = set[int]().union(*map(parents, conditions.values()))
        self._decoded = sorted(seen.union(self._log_integers).difference(self._bins.tolist()))
        choices = np.array([len(p.choices) * (p.kind is Kind.CATEGORICAL) for p in parameters])
        widths = np.maximum(choices, 1)
        self._columns = np.repeat(np.arange(len(parameters)), widths)
        self._one_hot = np.flatnonzero(choices[self._columns])
        self._counts = choices[self._columns[self._one_hot], None]
        self._choices = np.concatenate([*map(np.arange, widths)])[self._one_hot, None]

    def encode(self, values: FloatArray) -> FloatArray:
        """Map values to the unit cube, shape (n, d) to (n, d); NaN stays NaN."""
        scaled = np.array(values)
        _replace(scaled, self._logs, log)
        unit: FloatArray = (scaled - self._low) / self._width
        return unit

    def decode(self, unit: FloatArray) -> FloatArray:
        """Map unit vectors to values, shape (n, d) to (n, d); inactive hyperparameters NaN."""
        values: FloatArray = self._low + unit * self._width
        _replace(values, self._log_floats, exp)
        _replace(values, self._log_integers, np.exp)
        np.rint(values, out=values, where=self.is_discrete)
        np.minimum(np.maximum(values, self.lower), self.upper, out=values)  # faster than clip
        if self._conditions:
            np.putmask(values, ~self.active(values), np.nan)
        return values

    def canonical(self, unit: FloatArray) -> FloatArray:
        """Unit vectors (n, d) as `SearchSpace.canonical` describes."""
        rows = np.array(unit.T, dtype=np.float64, order="C")
        values = np.empty_like(rows)  # filled for discrete hyperparameters and parents only
        low, width, lower, upper = self._bounds
        bins = np.rint(low + rows[self._bins] * width)
        values[self._bins] = bins = np.minimum(np.maximum(bins, lower), upper)
        rows[self._bins] = (bins - low) / width
        for j in self._decoded:
            values[j] = self._parameters[j].decode(rows[j])
        for j in self._log_integers:
            rows[j] = self._middle(j, values[j])
        if self._conditions:
            np.copyto(rows, np.nan, where=~self.active(values.T).T)
        return rows.T.copy()

    def active(self, values: FloatArray) -> BoolArray:
        """Whether each hyperparameter of each configuration is active, shape (n, d)."""
        active = np.ones_like(values, dtype=np.bool_)
        for j, condition in self._conditions.items():
            active[:, j] = condition.holds(values, active)
        return active

    def features(self, unit: FloatArray) -> FloatArray:
        """Features of canonical unit vectors, (n, d) to (n, p), see `SearchSpace.features`."""
        if not len(self._one_hot) and not self._conditions:
            return unit
        rows = unit.T[self._columns]
        if len(self._one_hot):
            bins = np.floor(rows[self._one_hot] * self._counts)
            rows[self._one_hot] = bins == self._choices
        if self._conditions:
            np.copyto(rows, INACTIVE_FEATURE, where=np.isnan(rows))
        return rows.T.copy()

    @cached_property
    def _middles(self) -> Mapping[int, FloatArray]:
        """Tables of unit values of integers on log scales with few values; NaN comes last."""
        listed = [j for j in self._log_integers if self._parameters[j].size <= MOST_LISTED]
        values = {j: np.arange(self.lower[j], self.upper[j] + 1) for j in listed}
        return {j: np.append(self._parameters[j].encode(x), np.nan) for j, x in values.items()}

    def _middle(self, j: int, values: FloatArray) -> FloatArray:
        """Unit values (n,) of values (n,) of an integer on a log scale."""
        if j not in self._middles:
            return self._parameters[j].encode(values)
        place = values - self.lower[j]
        place[np.isnan(place)] = -1
        unit: FloatArray = self._middles[j][place.astype(np.intp)]
        return unit


def _replace(
    array: FloatArray, columns: IntArray | list[int], function: Callable[[FloatArray], FloatArray]
) -> None:
    """Apply a function to some columns of an array (n, d), in place."""
    if len(columns):
        array[:, columns] = function(array[:, columns])
