"""Configurations as arrays: validation, and the order in which conditions are evaluated.

Notation:
    n   number of configurations
    d   number of tunable hyperparameters
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import BoolArray, Config, FloatArray
from hpobench_ordered.errors import InvalidConfigError, InvalidSpaceError
from hpobench_ordered.space.conditions import Condition, parents
from hpobench_ordered.space.parameters import Parameter

if TYPE_CHECKING:
    from pandas import DataFrame


def activation_order(
    names: Sequence[str], conditions: Mapping[str, Condition], constants: Config
) -> tuple[int, ...]:
    """Indices of the hyperparameters, every parent before its children."""
    for child in conditions.keys() - set(names):
        what = "constant" if child in constants else "unknown hyperparameter"
        raise InvalidSpaceError(f"a condition of {what} {child!r} is not supported")
    order: list[int] = []
    remaining = list(range(len(names)))
    while remaining:
        ready = [
            j
            for j in remaining
            if names[j] not in conditions or parents(conditions[names[j]]) <= set(order)
        ]
        if not ready:
            circle = [names[j] for j in remaining]
            raise InvalidSpaceError(f"the conditions of {circle} depend on each other")
        order += ready
        remaining = [j for j in remaining if j not in ready]
    return tuple(order)


def check_coded(values: FloatArray, parameters: Sequence[Parameter]) -> None:
    """Check that an array has the shape and type of coded configurations, (n, d)."""
    if values.ndim != 2 or values.shape[1] != len(parameters):
        raise InvalidConfigError(
            f"an array of configurations must have shape (n, {len(parameters)}), one column for "
            f"each of {[p.name for p in parameters]}, but got {values.shape}"
        )
    if values.dtype.kind not in "fiu":
        raise InvalidConfigError(f"configurations must be numeric arrays, but got {values.dtype}")


def check_allowed(
    values: FloatArray, active: BoolArray | None, parameters: Sequence[Parameter]
) -> None:
    """Check that active values are allowed; if `active` is None, all are active."""
    for j, parameter in enumerate(parameters):
        column = values[:, j]
        bad = ~parameter.allows(column)
        if active is not None:
            bad &= active[:, j]
        if bad.any():
            i = int(np.argmax(bad))
            raise InvalidConfigError(
                f"configuration {i}: {parameter.name} must be {parameter.describe_coded()}, "
                f"but got {column[i]!r}"
            )


def code_frame(
    frame: "DataFrame", parameters: Sequence[Parameter], conditions: Mapping[int, Condition | None]
) -> FloatArray:
    """Code the rows of a table, (n, d)."""
    coded = np.full((len(frame), len(parameters)), np.nan)
    active = np.ones(coded.shape, dtype=np.bool_)
    for j, condition in conditions.items():
        parameter = parameters[j]
        if condition is not None:
            active[:, j] = condition.holds(coded, active)
        if parameter.name in frame.columns:
            coded[:, j] = parameter.code_column(frame[parameter.name].to_numpy(), active[:, j])
        elif active[:, j].any():
            raise InvalidConfigError(
                f"column {parameter.name!r} is missing: {parameter.describe()}"
            )
    return coded


def code_stored(frame: "DataFrame", parameters: Sequence[Parameter]) -> FloatArray:
    """Code configurations of a store, in which choices are text: (n, d), NaN where inactive."""
    coded = np.full((len(frame), len(parameters)), np.nan)
    for j, parameter in enumerate(parameters):
        if parameter.name in frame:
            column = frame[parameter.name]
            if parameter.choices:
                codes = {str(choice): float(k) for k, choice in enumerate(parameter.choices)}
                column = column.astype(str).map(codes)
            coded[:, j] = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return coded
