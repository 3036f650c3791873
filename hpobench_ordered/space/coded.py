"""Configurations as arrays of coded values: validation, and the order of conditions.

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


def sort_by_activation(
    names: Sequence[str], conditions: Mapping[str, Condition], constants: Config
) -> tuple[int, ...]:
    """Columns of the hyperparameters, every parent before its children.

    Args:
        names: Names of the tunable hyperparameters, by column.
        conditions: Conditions by the name of the child.
        constants: Constants of the space.

    Raises:
        InvalidSpaceError: The child of a condition is not tunable, or conditions form a circle.
    """
    for child in conditions.keys() - set(names):
        kind = "constant" if child in constants else "unknown hyperparameter"
        raise InvalidSpaceError(f"a condition of {kind} {child!r} is not supported")

    parents_of: dict[int, set[int]] = {}
    for column, name in enumerate(names):
        parents_of[column] = parents(conditions[name]) if name in conditions else set()

    order: list[int] = []
    remaining = list(parents_of)
    while remaining:
        # Next come those whose parents are all in the order already.
        ready = [column for column in remaining if parents_of[column] <= set(order)]
        if not ready:
            circle = [names[column] for column in remaining]
            raise InvalidSpaceError(f"the conditions of {circle} depend on each other")
        order += ready
        remaining = [column for column in remaining if column not in ready]
    return tuple(order)


def check_coded(values: FloatArray, parameters: Sequence[Parameter]) -> None:
    """Check that an array has the shape and type of coded configurations, (n, d)."""
    if values.ndim != 2 or values.shape[1] != len(parameters):
        raise InvalidConfigError(
            f"an array of configurations must have shape (n, {len(parameters)}), one column for "
            f"each of {[p.name for p in parameters]}, but got {values.shape}"
        )
    is_numeric = values.dtype.kind in "fiu"  # floats, signed and unsigned integers
    if not is_numeric:
        raise InvalidConfigError(f"configurations must be numeric arrays, but got {values.dtype}")


def check_allowed(
    values: FloatArray, active: BoolArray | None, parameters: Sequence[Parameter]
) -> None:
    """Check that active values (n, d) are allowed; if `active` is None, all are active."""
    for j, parameter in enumerate(parameters):
        column = values[:, j]
        is_wrong = ~parameter.allows(column)
        if active is not None:
            is_wrong &= active[:, j]
        if is_wrong.any():
            first_wrong = int(np.argmax(is_wrong))
            raise InvalidConfigError(
                f"configuration {first_wrong}: {parameter.name} must be "
                f"{parameter.describe_coded()}, but got {column[first_wrong]!r}"
            )


def code_frame(
    frame: "DataFrame", parameters: Sequence[Parameter], conditions: Mapping[int, Condition | None]
) -> FloatArray:
    """Code the configurations in the rows of a table, shape (n, d).

    Args:
        frame: A column of native values for each hyperparameter. The column may be missing if the
            hyperparameter is inactive in all rows.
        parameters: The tunable hyperparameters, by column of the result.
        conditions: Their conditions by column, parents before their children.

    Raises:
        InvalidConfigError: A column is missing, or a value is not allowed.
    """
    coded = np.full((len(frame), len(parameters)), np.nan)
    active = np.ones(coded.shape, dtype=np.bool_)
    for j, condition in conditions.items():
        parameter = parameters[j]
        if condition is not None:
            active[:, j] = condition.holds(coded, active)  # its parents are coded already
        if parameter.name in frame.columns:
            coded[:, j] = parameter.code_column(frame[parameter.name].to_numpy(), active[:, j])
        elif active[:, j].any():
            raise InvalidConfigError(
                f"column {parameter.name!r} is missing: {parameter.describe()}"
            )
    return coded


def code_stored(frame: "DataFrame", parameters: Sequence[Parameter]) -> FloatArray:
    """Code configurations read from a store, shape (n, d), NaN where inactive.

    Args:
        frame: A column for each hyperparameter: numbers, or choices as text; where it is inactive,
            missing or a text that is no choice. There may be no column if it was never active.
        parameters: The tunable hyperparameters, by column of the result.
    """
    coded = np.full((len(frame), len(parameters)), np.nan)
    for j, parameter in enumerate(parameters):
        if parameter.name not in frame:  # never active: NaN in all rows
            continue
        column = frame[parameter.name]
        if parameter.choices:
            code_of = {str(choice): float(code) for code, choice in enumerate(parameter.choices)}
            as_text = column.astype(object).map(str, na_action="ignore")
            column = as_text.map(code_of)  # NaN for the text of no choice
        coded[:, j] = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return coded
