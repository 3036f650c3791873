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
def load_kernels() -> ModuleType:
    """Import the module of compiled kernels, on demand since importing numba takes long."""
    from hpobench_ordered.surrogates import _kernels

    return _kernels


_KINDS_OF_TWO = (FeatureKind.LOG_PRODUCT, FeatureKind.LOG_RATIO)


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature of a configuration: (raw value - mean) / scale.

    Attributes:
        kind: How the raw value is computed from one or two hyperparameters.
        column: Column of the hyperparameter in coded values.
        operand: For kinds of two hyperparameters, the column of the second one. For a one-hot
            feature, the index of the choice for which its raw value is 1. Other kinds do not use
            it.
        inactive: Raw value in a configuration where one of the hyperparameters is inactive, and so
            has no value.
        mean: Mean of the raw values.
        scale: Standard deviation of the raw values.
    """

    kind: FeatureKind
    column: int
    operand: int = 0
    inactive: float = 0.0
    mean: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Check the numbers, which may have been read from a malformed file.

        Raises:
            ValueError: `column` or `operand`, which are indices, are negative; or features
                (raw value - mean) / scale would be infinite or not defined.
        """
        if self.column < 0 or self.operand < 0:
            raise ValueError(f"column and operand must be at least 0: {self}")
        is_standardisable = self.scale > 0 and math.isfinite(self.mean)
        if not (is_standardisable and math.isfinite(self.inactive)):
            raise ValueError(f"mean and inactive must be finite, scale positive: {self}")

    @property
    def columns(self) -> tuple[int, ...]:
        """Columns of the one or two hyperparameters that the feature is computed from."""
        if self.kind in _KINDS_OF_TWO:
            return self.column, self.operand
        return (self.column,)


@dataclass(frozen=True)
class Coding:
    """An ordered list of features."""

    features: tuple[Feature, ...]

    def __post_init__(self) -> None:
        """Raise a `ValueError` if there is no feature."""
        if not self.features:
            raise ValueError("a coding needs at least one feature")

    def __len__(self) -> int:
        """Return the number of features, p."""
        return len(self.features)

    @cached_property
    def table(self) -> FloatArray:
        """The features as numbers, one row each, for kernels and storage; read-only, (p, 6).

        Compiled kernels read the columns in this order: kind, column, operand, inactive, mean,
        scale.
        """
        rows = []
        for feature in self.features:
            numbers = (feature.kind, feature.column, feature.operand)
            rows.append((*numbers, feature.inactive, feature.mean, feature.scale))
        table = np.array(rows, dtype=np.float64)
        table.flags.writeable = False
        return table

    @classmethod
    def from_table(cls, table: FloatArray) -> Self:
        """Build a coding from its `table`, one row a feature, (p, 6)."""
        if table.ndim != 2 or table.shape[1] != _TABLE_COLUMNS:
            raise ValueError(f"a coding must have {_TABLE_COLUMNS} columns, but got {table.shape}")
        features = []
        for kind, column, operand, inactive, mean, scale in table.tolist():
            # All numbers of the table are floats, also those that stand for whole numbers.
            feature_kind = FeatureKind(int(kind))
            features.append(Feature(feature_kind, int(column), int(operand), inactive, mean, scale))
        return cls(tuple(features))

    def encode(self, values: FloatArray) -> FloatArray:
        """Compute the features (n, p) of configurations, coded values (n, d), by compiled code."""
        features: FloatArray = load_kernels().encode(self.to_kernel_input(values), self.table)
        return features

    def to_kernel_input(self, values: FloatArray) -> FloatArray:
        """Return coded values of configurations as the array that compiled kernels expect.

        It is C-contiguous, of type float64. Its shape is checked, since kernels do not check
        bounds.

        Raises:
            ValueError: The shape is not (n, `width`) or wider.
        """
        values = np.ascontiguousarray(values, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] < self.width:
            raise ValueError(f"values need shape (n, {self.width}) or wider, got {values.shape}")
        return values

    @cached_property
    def width(self) -> int:
        """Number of hyperparameters that a configuration must have for the features."""
        last_column = max(max(feature.columns) for feature in self.features)
        return last_column + 1

    def check_finite(self, space: "SearchSpace") -> None:
        """Check that every configuration of a space has finite features, not too large to square.

        Raises:
            ValueError: A feature may be infinite, or its square overflow.
        """
        if self.width != space.dimension:
            return  # the caller refuses this, with both dimensions in its message
        for feature in self.features:
            parameters = [space.parameters[column] for column in feature.columns]
            is_logarithm = feature.kind in (*_KINDS_OF_TWO, FeatureKind.LOG)
            if is_logarithm and any(parameter.lower <= 0 for parameter in parameters):
                raise ValueError(f"{feature} is a logarithm of what may be 0 or less")

            # A feature is (raw value - mean) / scale, or (inactive - mean) / scale.
            largest_raw = _bound_raw_values(parameters)
            largest = (largest_raw + abs(feature.inactive) + abs(feature.mean)) / feature.scale
            if largest > _LARGEST_FEATURE:  # its square would exceed the largest float
                raise ValueError(f"{feature} overflows")

    def standardise(self, values: FloatArray) -> Self:
        """Return a copy of the coding whose features are standardised over configurations.

        On these configurations, coded values (n, d), each feature has the mean 0 and the standard
        deviation 1 (divided by n). A constant feature is 0.
        """
        raw_features = [replace(feature, mean=0.0, scale=1.0) for feature in self.features]
        raw_values = type(self)(tuple(raw_features)).encode(values)
        means = raw_values.mean(axis=0).tolist()
        deviations = raw_values.std(axis=0).tolist()

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
    """Make the coding of a search space, whose features are not standardised.

    A number has one feature, and a categorical has an indicator of each choice. Inactive numbers
    are coded as the middle of their range and inactive categoricals as zeros, since the features of
    the hyperparameters in their conditions tell that they are inactive.

    Args:
        space: The search space.
        log_scales: Whether log-scaled numbers are coded as logarithms.
        products: Names of pairs of numbers. The logarithm of each product is a further feature.
        ratios: Names of pairs of numbers. The logarithm of each ratio is a further feature.
        also_raw: Names of numbers that are a further feature as they are, without a logarithm.
    """
    features: list[Feature] = []
    for column, parameter in enumerate(space.parameters):
        if parameter.kind is Kind.CATEGORICAL:
            for choice in range(len(parameter.choices)):
                features.append(Feature(FeatureKind.ONE_HOT, column, choice))
        else:
            features.append(_code_number(parameter, column, log=log_scales and parameter.log))

    # The logarithm of a product is a sum, and that of a ratio a difference. Where one of the two
    # numbers is inactive, both are taken to be in the middle of their log-scaled ranges.
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


def _bound_raw_values(parameters: Iterable[Parameter]) -> float:
    """Return a bound of the absolute raw value of a feature of one or two hyperparameters.

    A raw value is a hyperparameter itself, its logarithm, or the sum or difference of the
    logarithms of two.
    """
    # The logarithm of any positive float is between -745 and 710.
    bound_of_two_logarithms = 2e3
    bounds = [bound_of_two_logarithms]
    for parameter in parameters:
        bounds += [abs(parameter.lower), abs(parameter.upper)]
    return max(bounds)


def _code_number(parameter: Parameter, column: int, *, log: bool) -> Feature:
    """Make the feature of a number: the number itself, or its logarithm if `log` is set.

    Where the number is inactive, the raw value is the middle of the range.
    """
    kind = FeatureKind.LOG if log else FeatureKind.IDENTITY
    return Feature(kind, column, inactive=_find_middle(parameter, log=log))


def _find_middle(parameter: Parameter, *, log: bool) -> float:
    """Compute the middle between the bounds; if `log` is set, between the bounds' logarithms."""
    if log:
        return (math.log(parameter.lower) + math.log(parameter.upper)) / 2
    return (parameter.lower + parameter.upper) / 2
