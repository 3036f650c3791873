"""A part of a search space: hyperparameters are held fixed, or have narrower ranges.

A condition may become simpler in a part: it always holds, never holds, or compares with fewer
values. While conditions are resolved, their parents have their columns in the whole space, and
values their codes in the part.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from hpobench_ordered._typing import Config, Value
from hpobench_ordered.errors import InvalidConfigError, InvalidSpaceError
from hpobench_ordered.space.conditions import Compare, Comparison, Condition, Connective
from hpobench_ordered.space.differences import recode
from hpobench_ordered.space.parameters import NO_DEFAULT, Kind, Parameter
from hpobench_ordered.space.space import SearchSpace

Restriction = Value | tuple[float, float] | list[Value]
"""What is left of a hyperparameter: a value, a range of numbers, or some of its choices."""


def restrict_space(space: SearchSpace, restrictions: Mapping[str, Restriction]) -> SearchSpace:
    """Make the part of a search space that is left when hyperparameters are restricted.

    Conditions are resolved: a hyperparameter that can never be active in the part is left out, and
    one that always is has no condition.

    Args:
        space: The whole space.
        restrictions: By name, the value at which a hyperparameter is fixed, and which becomes a
            constant; a narrower range (lower, upper); or a list of the choices that are left.

    Raises:
        InvalidSpaceError: An unknown hyperparameter, a value that the whole space does not allow,
            an empty range, or nothing is left to tune.
    """
    _check_names(space, restrictions)
    whole_and_left: list[_Restricted] = []
    for parameter in space.parameters:
        left: Parameter | _Fixed = parameter
        if parameter.name in restrictions:
            left = _restrict_parameter(parameter, restrictions[parameter.name])
        whole_and_left.append(_Restricted(parameter, left))

    # Parents come before their children, whose conditions depend on whether parents are active.
    for column, condition in space.ordered_conditions.items():
        if condition is not None:
            whole_and_left[column].is_active = _resolve_condition(condition, whole_and_left)

    constants: Config = dict(space.constants)
    parameters: list[Parameter] = []
    column_in_part: dict[int, int] = {}
    for column, restricted in enumerate(whole_and_left):
        if restricted.is_active is False:
            continue
        if isinstance(restricted.left, _Fixed):
            constants[restricted.whole.name] = restricted.left.value
        else:
            column_in_part[column] = len(parameters)
            parameters.append(restricted.left)
    if not parameters:
        raise InvalidSpaceError("nothing is left to tune: all hyperparameters are fixed")

    conditions = {}
    for column in column_in_part:
        restricted = whole_and_left[column]
        if not isinstance(restricted.is_active, bool):
            conditions[restricted.whole.name] = _renumber(restricted.is_active, column_in_part)
    return SearchSpace(parameters, conditions=conditions, constants=constants)


def adapt_restrictions(
    restrictions: Mapping[str, Restriction], space: SearchSpace
) -> dict[str, Restriction]:
    """Adapt restrictions to another search space, such as that before an adjustment.

    Args:
        restrictions: The restrictions, as `restrict_space` takes them.
        space: The other space, which need not tune the same hyperparameters.

    Returns:
        Of each restriction the values that the other space allows. A restriction is left out if the
        other space does not tune the hyperparameter, or allows none of the values.
    """
    adapted: dict[str, Restriction] = {}
    for name, restriction in restrictions.items():
        if name not in space.names:
            continue
        parameter = space[name]
        if isinstance(restriction, list):
            choices = [choice for choice in restriction if _allows_value(parameter, choice)]
            if choices and parameter.choices:
                adapted[name] = choices
        elif isinstance(restriction, tuple):
            lower = max(restriction[0], parameter.lower)
            upper = min(restriction[1], parameter.upper)
            if lower < upper and not parameter.choices:
                adapted[name] = (lower, upper)
        elif _allows_value(parameter, restriction):
            adapted[name] = restriction
    return adapted


def describe_restrictions(restrictions: Mapping[str, Restriction]) -> str:
    """Describe restrictions in words, such as "kernel = radial; cost from 0.1 to 10"."""
    descriptions = []
    for name, restriction in restrictions.items():
        if isinstance(restriction, tuple):
            lower, upper = restriction
            descriptions.append(f"{name} from {lower} to {upper}")
        elif isinstance(restriction, list):
            descriptions.append(f"{name} in {', '.join(map(str, restriction))}")
        else:
            descriptions.append(f"{name} = {restriction}")
    return "; ".join(descriptions)


@dataclass(frozen=True)
class _Fixed:
    """A hyperparameter that has one value."""

    value: Value


@dataclass
class _Restricted:
    """A hyperparameter, and what is left of it in the part.

    Attributes:
        whole: The hyperparameter in the whole space.
        left: The hyperparameter in the part.
        is_active: Whether it is always active in the part, or never; or its condition there.
    """

    whole: Parameter
    left: Parameter | _Fixed
    is_active: Condition | bool = True


def _check_names(space: SearchSpace, restrictions: Mapping[str, Restriction]) -> None:
    """Raise an `InvalidSpaceError` unless the space tunes all hyperparameters of these names."""
    for name in restrictions:
        try:
            space[name]
        except InvalidConfigError as error:  # its message suggests the nearest name
            raise InvalidSpaceError(str(error)) from None


def _allows_value(parameter: Parameter, value: Value) -> bool:
    """Whether a hyperparameter may have a value."""
    try:
        parameter.code(value)
    except InvalidConfigError:
        return False
    return True


def _restrict_parameter(parameter: Parameter, restriction: Restriction) -> Parameter | _Fixed:
    """Fix a hyperparameter, or restrict its range or choices.

    Raises:
        InvalidSpaceError: The hyperparameter does not allow this, or no value is left.
    """
    try:
        if isinstance(restriction, list):
            return _select_choices(parameter, restriction)
        if isinstance(restriction, tuple):
            return _narrow_range(parameter, restriction)
        return _Fixed(parameter.value(parameter.code(restriction)))
    except InvalidConfigError as error:  # its message says what is allowed
        raise InvalidSpaceError(str(error)) from None


def _select_choices(parameter: Parameter, choices: list[Value]) -> Parameter | _Fixed:
    """Restrict a hyperparameter to some of its choices, which keep their order."""
    if not parameter.choices:
        raise InvalidSpaceError(
            f"{parameter.name} is {parameter.describe()}: give a range (lower, upper) or a value, "
            f"but not the list {choices!r}"
        )
    if not choices:
        raise InvalidSpaceError(f"{parameter.name}: no choice is left")
    codes = sorted({parameter.code(choice) for choice in choices})
    selected = tuple(parameter.value(code) for code in codes)
    if len(selected) == 1:
        return _Fixed(selected[0])
    is_ordered = parameter.kind is Kind.ORDINAL
    # The default is kept if it is still a choice.
    is_default_left = parameter.code(cast(Value, parameter.default)) in codes
    default = parameter.default if is_default_left else NO_DEFAULT
    return Parameter.choice(parameter.name, selected, ordered=is_ordered, default=default)


def _narrow_range(parameter: Parameter, bounds: tuple[float, ...]) -> Parameter:
    """Restrict a number to a range within its own."""
    if parameter.choices:
        raise InvalidSpaceError(
            f"{parameter.name} is {parameter.describe()}: give a list of choices or a value, but "
            f"not the range {bounds!r}"
        )
    if len(bounds) != 2:
        raise InvalidSpaceError(f"{parameter.name}: a range is (lower, upper), but got {bounds!r}")
    lower = parameter.code(bounds[0])
    upper = parameter.code(bounds[1])
    if lower >= upper:
        raise InvalidSpaceError(
            f"{parameter.name}: the range {bounds!r} is empty; a value alone holds it fixed"
        )
    is_default_left = lower <= parameter.code(cast(Value, parameter.default)) <= upper
    default = parameter.default if is_default_left else NO_DEFAULT
    return replace(parameter, lower=lower, upper=upper, default=default)


def _resolve_condition(condition: Condition, restricted: list[_Restricted]) -> Condition | bool:
    """Find out whether a condition always holds in the part, or never, or what is left of it."""
    if isinstance(condition, Compare):
        return _resolve_comparison(condition, restricted[condition.parent])
    # One part that holds decides an "or", and one that does not decides an "and".
    decisive = condition.connective is Connective.OR
    remaining: list[Condition] = []
    for part in condition.parts:
        resolved = _resolve_condition(part, restricted)
        if not isinstance(resolved, bool):
            remaining.append(resolved)
        elif resolved is decisive:
            return decisive
    if not remaining:
        return not decisive
    if len(remaining) == 1:
        return remaining[0]
    return replace(condition, parts=tuple(remaining))


def _resolve_comparison(condition: Compare, parent: _Restricted) -> Condition | bool:
    """Resolve a comparison with a parent, whose own condition is resolved already.

    Raises:
        InvalidSpaceError: It would have to hold only where the parent is inactive.
    """
    is_unequal = condition.comparison is Comparison.NOT_EQUAL  # holds where the parent is inactive
    if parent.is_active is False:
        return is_unequal
    on_first_column = replace(condition, parent=0)
    codes_of_parent = _list_representative_codes(condition, parent)
    holds = [on_first_column.holds_for([code]) for code in codes_of_parent]
    if all(holds):
        return True if is_unequal else parent.is_active
    if not any(holds):
        if is_unequal and parent.is_active is not True:
            raise InvalidSpaceError(
                f"{parent.whole.name} cannot be restricted in this way: another hyperparameter "
                "would be active only where it is not, which no condition describes"
            )
        return False

    assert isinstance(parent.left, Parameter), "a comparison with a fixed value is decided"
    if parent.left.choices and not is_unequal:
        codes = tuple(np.flatnonzero(holds).astype(np.float64).tolist())
        comparison = Comparison.EQUAL if len(codes) == 1 else Comparison.IN
        return Compare(condition.parent, comparison, codes)
    if condition.comparison in (Comparison.LESS, Comparison.GREATER):
        return condition  # with a number, whose code is the same in the part
    recoded = recode(np.array(condition.coded), parent.whole, parent.left)
    allowed_codes = recoded[~np.isnan(recoded)]
    return replace(condition, coded=tuple(allowed_codes.tolist()))


def _list_representative_codes(condition: Compare, parent: _Restricted) -> list[float]:
    """List codes of the parent, as in the whole space, that show when a comparison holds.

    It always holds in the part if it does for all of them, and never if it does for none.
    """
    left = parent.left
    if isinstance(left, _Fixed):
        return [parent.whole.code(left.value)]
    if left.choices:
        return [parent.whole.code(choice) for choice in left.choices]
    if condition.comparison in (Comparison.LESS, Comparison.GREATER):
        return [left.lower, left.upper]
    # Some numbers of the range may be compared with, and all others differ from these.
    other_number = math.inf
    is_allowed = left.allows(np.array(condition.coded))
    allowed_codes = np.array(condition.coded)[is_allowed]
    return [*allowed_codes.tolist(), other_number]


def _renumber(condition: Condition, column_in_part: Mapping[int, int]) -> Condition:
    """Replace the columns of parents in the whole space by those in the part."""
    if isinstance(condition, Compare):
        return replace(condition, parent=column_in_part[condition.parent])
    parts = tuple(_renumber(part, column_in_part) for part in condition.parts)
    return replace(condition, parts=parts)
