"""The unit cube of a search space: whole arrays of configurations on their way to it and back.

What is computed is what `Parameter.encode` and `Parameter.decode` say of one hyperparameter.

Notation:
    n   number of configurations
    d   number of tunable hyperparameters
    p   number of model features
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from types import ModuleType

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.space.conditions import Condition, all_steps, parents
from hpobench_ordered.space.parameters import Kind, Parameter, exp, log

MOST_LISTED = 4096
"""Values that a discrete hyperparameter has at most for its unit values to be listed."""


@cache
def kernels() -> ModuleType:
    """The compiled loops, imported when first needed: importing numba takes long."""
    from hpobench_ordered.space import _kernels

    return _kernels


@lru_cache(maxsize=64)
def unit_cube(
    parameters: tuple[Parameter, ...], conditions: tuple[tuple[int, Condition], ...]
) -> "UnitCube":
    """The unit cube of a space: those of the tasks of a run are copies, equal to each other."""
    return UnitCube(parameters, dict(conditions))


class UnitCube:
    """Codes values as unit vectors and back.

    Args:
        parameters: The hyperparameters.
        conditions: Those of the conditional ones, by column, parents before their children.

    Attributes:
        lower: Smallest value of each hyperparameter, shape (d,).
        upper: Largest value, shape (d,).
        is_discrete: Whether it has finitely many values, shape (d,).
    """

    def __init__(
        self, parameters: Sequence[Parameter], conditions: Mapping[int, Condition]
    ) -> None:
        self._parameters = tuple(parameters)
        self.lower: FloatArray = np.array([p.lower for p in parameters])
        self.upper: FloatArray = np.array([p.upper for p in parameters])
        self.is_discrete: BoolArray = np.array([p.is_discrete for p in parameters])
        self._low, high = np.array([p.span for p in parameters]).T
        self._width = high - self._low
        is_log: BoolArray = np.array([p.log for p in parameters])
        self._logs = np.flatnonzero(is_log)
        self._log_floats = np.flatnonzero(is_log & ~self.is_discrete)
        self._log_integers = np.flatnonzero(is_log & self.is_discrete)
        self._steps = all_steps(conditions)
        self._parents = set[int]().union(*map(parents, conditions.values()))
        is_listed = np.array([p.size <= MOST_LISTED for p in parameters])
        self._listed = np.flatnonzero(is_listed)
        self._others = set(np.flatnonzero(self.is_discrete & ~is_listed).tolist())
        listed = [p for p in parameters if p.size <= MOST_LISTED]
        middles = [p.encode(p.lower + np.arange(p.size)) for p in listed]
        self._middles = np.concatenate([np.empty(0), *middles])
        starts = np.cumsum([0, *map(len, middles)])[:-1]
        columns = (self._low, self._width, self.lower, self.upper, is_log)
        self._table = np.column_stack([*(x[self._listed] for x in columns), starts])
        is_categorical = [p.kind is Kind.CATEGORICAL for p in parameters]
        self._choices = np.where(is_categorical, self.upper + 1, 0).astype(np.int64)
        self._is_numeric = not any(is_categorical)

    def encode(self, values: FloatArray) -> FloatArray:
        """Map values to the unit cube, shape (n, d) to (n, d); NaN stays NaN."""
        scaled = np.array(values)
        _replace(scaled, self._logs, log)
        unit: FloatArray = (scaled - self._low) / self._width
        return unit

    def decode(self, unit: FloatArray) -> FloatArray:
        """Map unit vectors to values, shape (n, d) to (n, d); inactive hyperparameters NaN."""
        scaled = self._low + unit * self._width
        _replace(scaled, self._log_floats, exp)
        _replace(scaled, self._log_integers, np.exp)
        scaled = np.where(self.is_discrete, np.rint(scaled), scaled)
        values: FloatArray = np.minimum(np.maximum(scaled, self.lower), self.upper)
        if len(self._steps):
            np.putmask(values, ~self.active(values), np.nan)
        return values

    def canonical(self, unit: FloatArray) -> FloatArray:
        """Snap discrete ones to the middle of their bins, set inactive ones to NaN, (n, d)."""
        unit = np.array(unit, dtype=np.float64, order="C")
        values = np.zeros_like(unit)
        for j in self._others | self._parents.difference(self._listed):
            values[:, j] = self._parameters[j].decode(unit[:, j])
        for j in self._others:
            unit[:, j] = self._parameters[j].encode(values[:, j])
        tables = (self._listed, self._table, self._middles, self._steps)
        kernels().make_canonical(unit, values, *tables)
        return unit

    def active(self, values: FloatArray) -> BoolArray:
        """Tell which hyperparameters of each configuration are active, shape (n, d)."""
        active: BoolArray = kernels().active(values, self._steps)
        return active

    def features(self, unit: FloatArray) -> FloatArray:
        """Features of canonical unit vectors as `SearchSpace.features` says, (n, d) to (n, p)."""
        if self._is_numeric and not len(self._steps):
            return unit
        features: FloatArray = kernels().features(np.ascontiguousarray(unit), self._choices)
        return features


def _replace(
    array: FloatArray, columns: IntArray, function: Callable[[FloatArray], FloatArray]
) -> None:
    """Replace columns of an array (n, d) by a function of them."""
    if len(columns):
        array[:, columns] = function(array[:, columns])
