"""The unit cube of a search space: whole arrays of configurations on their way to it and back.

What is computed is what `Parameter.encode` and `Parameter.decode` say of one hyperparameter.

Notation:
    n   number of configurations
    d   number of tunable hyperparameters
    p   number of model features
"""

from collections.abc import Sequence
from functools import cache
from types import ModuleType

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray
from hpobench_ordered.space.parameters import Kind, Parameter, exp, log

MOST_LISTED = 4096
"""Values that a discrete hyperparameter has at most for its unit values to be listed."""


@cache
def kernels() -> ModuleType:
    """The compiled loops, imported when first needed: importing numba takes long."""
    from hpobench_ordered.space import _kernels

    return _kernels


class UnitCube:
    """Codes values as unit vectors and back, all hyperparameters taken to be active.

    Attributes:
        lower: Smallest value of each hyperparameter, shape (d,).
        upper: Largest value, shape (d,).
        is_discrete: Whether it has finitely many values, shape (d,).
    """

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self._parameters = tuple(parameters)
        self.lower: FloatArray = np.array([p.lower for p in parameters])
        self.upper: FloatArray = np.array([p.upper for p in parameters])
        self.is_discrete: BoolArray = np.array([p.is_discrete for p in parameters])
        self._low, high = np.array([p.span for p in parameters]).T
        self._width = high - self._low
        is_log = np.array([p.log for p in parameters])
        self._logs = np.flatnonzero(is_log)
        self._log_floats = np.flatnonzero(is_log & ~self.is_discrete)
        self._log_integers = np.flatnonzero(is_log & self.is_discrete)
        self._integers = np.flatnonzero(self.is_discrete)
        is_listed = np.array([p.size <= MOST_LISTED for p in parameters])
        self._listed = np.flatnonzero(is_listed)
        self._others = np.flatnonzero(self.is_discrete & ~is_listed)
        levels = [np.arange(parameters[j].size) + self.lower[j] for j in self._listed]
        middles = [parameters[j].encode(x) for j, x in zip(self._listed, levels, strict=True)]
        self._middles = np.concatenate([np.empty(0), *middles])
        starts = np.cumsum([0, *map(len, levels)])[:-1]
        columns = (self._low, self._width, self.lower, self.upper, is_log)
        self._table = np.column_stack([*(x[self._listed] for x in columns), starts])
        is_categorical = [p.kind is Kind.CATEGORICAL for p in parameters]
        self._choices = np.where(is_categorical, self.upper + 1, 0).astype(np.int64)
        self._is_numeric = not any(is_categorical)

    def encode(self, values: FloatArray) -> FloatArray:
        """Map values to the unit cube, shape (n, d) to (n, d); NaN stays NaN."""
        if len(self._logs):
            values = values.copy()
            values[:, self._logs] = log(values[:, self._logs])
        return (values - self._low) / self._width

    def decode(self, unit: FloatArray) -> FloatArray:
        """Map unit vectors to values, shape (n, d) to (n, d); NaN stays NaN."""
        scaled = self._low + unit * self._width
        if len(self._log_floats):
            scaled[:, self._log_floats] = exp(scaled[:, self._log_floats])
        if len(self._log_integers):
            scaled[:, self._log_integers] = np.exp(scaled[:, self._log_integers])
        if len(self._integers):
            scaled[:, self._integers] = np.rint(scaled[:, self._integers])
        return np.minimum(np.maximum(scaled, self.lower), self.upper)  # faster than clip

    def snap(self, unit: FloatArray) -> FloatArray:
        """Snap discrete hyperparameters of unit vectors (n, d), in place, to the middle of bins.

        Returns:
            The values of the discrete ones, 0 of the others, shape (n, d).
        """
        values = np.zeros_like(unit)
        if len(self._listed):
            kernels().snap(unit, values, self._listed, self._table, self._middles)
        for j in self._others:
            values[:, j] = self._parameters[j].decode(unit[:, j])
            unit[:, j] = self._parameters[j].encode(values[:, j])
        return values

    def features(self, unit: FloatArray, *, is_conditional: bool) -> FloatArray:
        """Features of canonical unit vectors as `SearchSpace.features` says, (n, d) to (n, p)."""
        if self._is_numeric and not is_conditional:
            return unit
        features: FloatArray = kernels().features(np.ascontiguousarray(unit), self._choices)
        return features
