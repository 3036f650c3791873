"""Codings: how a configuration becomes the features of a nearest-neighbour or forest surrogate.

Notation:
    n   number of configurations
    d   number of hyperparameters; values have their columns in the order of the search space
    p   number of features
    x   feature value, (raw - mean) / scale; raw is what the feature's kind says, or `inactive`
        where a hyperparameter it needs is inactive (NaN)

A coding is a table of numbers, stored with the surrogate and interpreted by its compiled kernels.
Fitting uses the same kernels, so that features are the same bits in fitting and in evaluation.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Self

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.space.parameters import Kind, Parameter
from hpobench_ordered.surrogates.feature_kinds import FeatureKind

if TYPE_CHECKING:
    from hpobench_ordered.space import SearchSpace

_TABLE_COLUMNS = 6
_LARGEST_FEATURE = 1e150  # squared distances of larger features overflow


@cache
def kernels() -> ModuleType:
    """The compiled kernels, imported on demand since importing numba takes long."""
    from hpobench_ordered.surrogates import _kernels

    return _kernels


_KINDS_OF_TWO = (FeatureKind.LOG_PRODUCT, FeatureKind.LOG_RATIO)


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature of a configuration, before standardisation as its kind says."""

    kind: FeatureKind
    column: int  # of the values
    operand: int = 0  # column of the second hyperparameter, or index of the choice
    inactive: float = 0.0  # raw value where it is inactive
    mean: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Check the numbers, which may come from a file."""
        if self.column < 0 or self.operand < 0:
            raise ValueError(f"columns and choices must be at least 0: {self}")
        if not (self.scale > 0 and math.isfinite(self.mean) and math.isfinite(self.inactive)):
            raise ValueError(f"mean and inactive must be finite, scale positive: {self}")


@dataclass(frozen=True)
class Coding:
    """An ordered list of features."""

    features: tuple[Feature, ...]

    def __post_init__(self) -> None:
        if not self.features:
            raise ValueError("a coding needs at least one feature")

    def __len__(self) -> int:
        return len(self.features)

    @cached_property
    def table(self) -> FloatArray:
        """The features as numbers, for kernels and storage, (p, 6), read-only."""
        # The compiled kernels read the columns in this order.
        rows = [(f.kind, f.column, f.operand, f.inactive, f.mean, f.scale) for f in self.features]
        table = np.array(rows, dtype=np.float64)
        table.flags.writeable = False
        return table

    @classmethod
    def from_table(cls, table: FloatArray) -> Self:
        """Build a coding from its `table`, one row a feature, (p, 6)."""
        if table.ndim != 2 or table.shape[1] != _TABLE_COLUMNS:
            raise ValueError(f"a coding must have {_TABLE_COLUMNS} columns, but got {table.shape}")
        features = []
        for kind, column, operand, inactive, mean, scale in table.tolist():  # all are floats
            feature_kind = FeatureKind(int(kind))
            features.append(Feature(feature_kind, int(column), int(operand), inactive, mean, scale))
        return cls(tuple(features))

    def encode(self, values: FloatArray) -> FloatArray:
        """Compute the features (n, p) of configurations, coded values (n, d), by compiled code."""
        features: FloatArray = kernels().encode(self.checked(values), self.table)
        return features

    def checked(self, values: FloatArray) -> FloatArray:
        """Return configurations, coded values, as the C-contiguous array that kernels expect.

        Raises:
            ValueError: They are not of shape (n, `width`) or wider; kernels do not check bounds.
        """
        values = np.ascontiguousarray(values, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] < self.width:
            raise ValueError(f"values need shape (n, {self.width}) or wider, got {values.shape}")
        return values

    @cached_property
    def width(self) -> int:
        """Number of leading columns of the values that the features need.

        A feature of two hyperparameters (`_KINDS_OF_TWO`: products, ratios) has the second's column
        as its `operand`.
        """
        columns = [feature.column for feature in self.features]
        second_columns = [
            feature.operand for feature in self.features if feature.kind in _KINDS_OF_TWO
        ]
        return 1 + max(columns + second_columns)

    def check_finite(self, space: "SearchSpace") -> None:
        """Check that every configuration of a space has finite features, not too large to square.

        Raises:
            ValueError: A feature may be infinite, or its square overflow.
        """
        if self.width != space.dimension:
            return  # refused by the caller, with both dimensions in the message
        for feature in self.features:
            columns = [feature.column]
            if feature.kind in _KINDS_OF_TWO:  # products and ratios have a second hyperparameter
                columns.append(feature.operand)
            parameters = [space.parameters[column] for column in columns]

            is_logarithm = feature.kind in (*_KINDS_OF_TWO, FeatureKind.LOG)
            if is_logarithm and any(parameter.lower <= 0 for parameter in parameters):
                raise ValueError(f"{feature} is a logarithm of what may be 0 or less")

            # Before it is standardised, a feature is a number of the configuration, or a logarithm
            # of one or two numbers, which is below 1000 for all floats: none exceeds the largest of
            # these bounds.
            bounds = [1e3]
            for parameter in parameters:
                bounds += [abs(parameter.lower), abs(parameter.upper)]
            largest = (max(bounds) + abs(feature.inactive) + abs(feature.mean)) / feature.scale
            if largest > _LARGEST_FEATURE:  # its square would exceed the largest float
                raise ValueError(f"{feature} overflows")

    def standardised(self, values: FloatArray) -> Self:
        """Return the same coding, with features that are standardised over values (n, d).

        Each feature then has mean 0 and standard deviation 1 (divided by n) on these values.
        """
        raw_features = [replace(feature, mean=0.0, scale=1.0) for feature in self.features]
        raw_values = type(self)(tuple(raw_features)).encode(values)
        means = raw_values.mean(axis=0).tolist()
        deviations = raw_values.std(axis=0).tolist()

        # A feature is (raw value - mean) / scale.
        features = []
        for feature, mean, deviation in zip(raw_features, means, deviations, strict=True):
            scale = deviation if deviation > 0 else 1.0  # a constant feature is only centred
            features.append(replace(feature, mean=mean, scale=scale))
        return type(self)(tuple(features))


def space_coding(
    space: "SearchSpace",
    *,
    log_scales: bool = True,
    products: Iterable[Sequence[str]] = (),
    ratios: Iterable[Sequence[str]] = (),
    also_raw: Iterable[str] = (),
) -> Coding:
    """Code a search space: a feature per number, one per choice of each categorical, and extras.

    Inactive numbers get the middle of their range, inactive categoricals zeros; the features of
    their parents tell that they are inactive.

    Args:
        space: The search space.
        log_scales: Whether log-scaled numbers are coded as logarithms.
        products: Pairs of numbers whose product's logarithm is a further feature.
        ratios: Pairs of numbers whose ratio's logarithm is a further feature.
        also_raw: Numbers that are a further feature as they are.
    """
    features: list[Feature] = []
    for column, parameter in enumerate(space.parameters):
        if parameter.kind is Kind.CATEGORICAL:
            for choice in range(len(parameter.choices)):
                features.append(Feature(FeatureKind.ONE_HOT, column, choice))
        else:
            features.append(_code_number(parameter, column, log=log_scales and parameter.log))

    # Where one of the two numbers is inactive, a product or ratio is that of the middles of both
    # ranges. On the log scale, a product is a sum and a ratio is a difference.
    column_of_name = {name: column for column, name in enumerate(space.names)}
    for first, second in products:
        middle = _find_middle(space[first], log=True) + _find_middle(space[second], log=True)
        columns = (column_of_name[first], column_of_name[second])
        features.append(Feature(FeatureKind.LOG_PRODUCT, *columns, inactive=middle))
    for first, second in ratios:
        middle = _find_middle(space[first], log=True) - _find_middle(space[second], log=True)
        columns = (column_of_name[first], column_of_name[second])
        features.append(Feature(FeatureKind.LOG_RATIO, *columns, inactive=middle))
    for name in also_raw:
        features.append(_code_number(space[name], column_of_name[name], log=False))
    return Coding(tuple(features))


def _code_number(parameter: Parameter, column: int, *, log: bool) -> Feature:
    """Make the feature of a number: the number itself, or its logarithm if `log` is set.

    Where the number is inactive, the feature is the middle of the range.
    """
    kind = FeatureKind.LOG if log else FeatureKind.IDENTITY
    return Feature(kind, column, inactive=_find_middle(parameter, log=log))


def _find_middle(parameter: Parameter, *, log: bool) -> float:
    """Find the middle of a range; if `log` is set, the middle between the bounds' logarithms."""
    if log:
        return (math.log(parameter.lower) + math.log(parameter.upper)) / 2
    return (parameter.lower + parameter.upper) / 2
