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
    """Sort the columns of hyperparameters so that every parent comes before its children.

    A child is a hyperparameter with a condition, which compares the values of its parents.

    Args:
        names: Names of the tunable hyperparameters, by column.
        conditions: Conditions by the name of the child.
        constants: Constants of the space.

    Returns:
        The columns in the new order.

    Raises:
        InvalidSpaceError: The child of a condition is not tunable, or conditions form a circle.
    """
    for child in conditions:
        if child not in names:
            kind = "constant" if child in constants else "unknown hyperparameter"
            raise InvalidSpaceError(f"a condition of {kind} {child!r} is not supported")

    parents_of_column: dict[int, set[int]] = {}
    for column, name in enumerate(names):
        parents_of_column[column] = parents(conditions[name]) if name in conditions else set()

    order: list[int] = []
    remaining = list(range(len(names)))
    while remaining:
        # A column can come next if all its parents are in the order already.
        ready = [column for column in remaining if parents_of_column[column] <= set(order)]
        if not ready:
            names_in_circle = [names[column] for column in remaining]
            raise InvalidSpaceError(f"the conditions of {names_in_circle} depend on each other")
        order += ready
        remaining = [column for column in remaining if column not in ready]
    return tuple(order)


def check_coded(values: FloatArray, parameters: Sequence[Parameter]) -> None:
    """Check that an array has the shape (n, d) and a numeric type, as coded configurations have.

    Raises:
        InvalidConfigError: The shape or the type is another one.
    """
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
    """Check that the hyperparameters allow all values of configurations that are active.

    Args:
        values: Coded values, (n, d).
        active: Whether each value is active, (n, d); None if all are.
        parameters: The hyperparameters, by column.

    Raises:
        InvalidConfigError: A value is not allowed; the message names the first one.
    """
    for column, parameter in enumerate(parameters):
        values_of_parameter = values[:, column]
        is_wrong = ~parameter.allows(values_of_parameter)
        if active is not None:
            is_wrong &= active[:, column]
        if is_wrong.any():
            first_wrong_row = int(np.argmax(is_wrong))
            raise InvalidConfigError(
                f"configuration {first_wrong_row}: {parameter.name} must be "
                f"{parameter.describe_coded()}, but got {values_of_parameter[first_wrong_row]!r}"
            )


def code_frame(
    frame: "DataFrame", parameters: Sequence[Parameter], conditions: Mapping[int, Condition | None]
) -> FloatArray:
    """Code the configurations in the rows of a table, shape (n, d).

    Args:
        frame: A column of native values for each hyperparameter. The column may be missing if the
            hyperparameter is inactive in all rows.
        parameters: The tunable hyperparameters, by column of the result.
        conditions: The condition of each hyperparameter by its column, None for one that is always
            active; parents before their children.

    Raises:
        InvalidConfigError: A column is missing, or a value is not allowed.
    """
    coded = np.full((len(frame), len(parameters)), np.nan)
    active = np.ones(coded.shape, dtype=np.bool_)
    for column, condition in conditions.items():
        parameter = parameters[column]
        if condition is not None:
            # The columns of its parents are coded already.
            active[:, column] = condition.holds(coded, active)
        if parameter.name in frame.columns:
            native_values = frame[parameter.name].to_numpy()
            coded[:, column] = parameter.code_column(native_values, active[:, column])
        elif active[:, column].any():
            raise InvalidConfigError(
                f"column {parameter.name!r} is missing: {parameter.describe()}"
            )
    return coded


def code_stored(frame: "DataFrame", parameters: Sequence[Parameter]) -> FloatArray:
    """Code configurations that were read from a store, shape (n, d), NaN where inactive.

    Args:
        frame: A column for each hyperparameter, of numbers, or of choices as text. Where the
            hyperparameter is inactive, the cell is missing, or the text of no choice. A
            hyperparameter that is never active may have no column.
        parameters: The tunable hyperparameters, by column of the result.
    """
    coded = np.full((len(frame), len(parameters)), np.nan)
    for column, parameter in enumerate(parameters):
        if parameter.name not in frame:  # never active: NaN in all rows
            continue
        cells = frame[parameter.name]
        if parameter.choices:
            code_of_text = {}
            for code, choice in enumerate(parameter.choices):
                code_of_text[str(choice)] = float(code)
            texts = cells.astype(object).map(str, na_action="ignore")  # missing cells stay missing
            cells = texts.map(code_of_text)  # NaN for the text of no choice
        coded[:, column] = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    return coded
