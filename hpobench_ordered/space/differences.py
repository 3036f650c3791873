"""How a hyperparameter of a search space changed, as data and in words."""

import math
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import cast

import numpy as np

from hpobench_ordered._typing import FloatArray, Value
from hpobench_ordered.errors import InvalidConfigError
from hpobench_ordered.space.conditions import condition_to_json
from hpobench_ordered.space.parameters import Kind, Parameter
from hpobench_ordered.space.space import SearchSpace


class Change(Enum):
    """How a hyperparameter changed."""

    ADDED = "added"
    REMOVED = "removed"
    FIXED = "tuned before, a constant now"
    FREED = "a constant before, tuned now"
    VALUE = "another constant"
    TYPE = "another type"
    GREW = "range grew at one end or both"
    SHRANK = "range shrank at one end or both"
    MOVED = "range grew at one end and shrank at the other"
    SCALE = "changed from a log scale to a linear one, or from a linear one to a log scale"
    CHOICES_ADDED = "choices added"
    CHOICES_REMOVED = "choices removed"
    REORDERED = "ordered choices in another order"
    CONDITION = "active under another condition"


CHANGES_OF_RANGE = frozenset({Change.GREW, Change.SHRANK, Change.MOVED})
"""Changes that only affect ranges, so configurations are in range, clipped or left out."""


def recode(coded: FloatArray, old: Parameter, new: Parameter) -> FloatArray:
    """Translate the codes of a hyperparameter's values to those of its successor.

    Args:
        coded: Values as `old` codes them, NaN where inactive, shape (n,).
        old: The hyperparameter before it changed.
        new: The hyperparameter after it changed.

    Returns:
        The values as `new` codes them, NaN where inactive or not allowed by `new`, shape (n,). A
        number between two steps of `new` is moved to the nearest one.
    """
    recoded = []
    for code in coded.tolist():
        if math.isnan(code):
            recoded.append(math.nan)
        else:
            old_value = old.value(code)
            new_value = move_to_step(old_value, old, new)
            recoded.append(_code_or_nan(new_value, new))
    return np.array(recoded, dtype=np.float64)


def has_other_steps(old: Parameter, new: Parameter) -> bool:
    """Whether old numbers must be moved to the steps that a range has now.

    This is so if the range got steps, or if its steps were replaced: some were added and others
    removed. If steps were only added, all old numbers are steps; if steps were only removed, old
    numbers that are no steps any more are not moved.
    """
    if not new.has_steps:
        return False
    if not old.choices:  # a range without steps
        return True
    n_common = len([choice for choice in new.choices if allows(old, choice)])
    were_only_added = n_common == len(old.choices)
    were_only_removed = n_common == len(new.choices)
    return old.has_steps and not (were_only_added or were_only_removed)


def move_to_step(value: Value, old: Parameter, new: Parameter) -> Value:
    """Move a number to the nearest step if a range has other steps now, see `has_other_steps`.

    A number that is outside of the steps by a whole step or more is not moved.

    Args:
        value: Native value of the hyperparameter before it changed.
        old: The hyperparameter before it changed.
        new: The hyperparameter after it changed.
    """
    if not has_other_steps(old, new):
        return value
    number = float(cast("float", value))
    code_of_step = new.find_nearest_step(number)  # NaN if the number is too far outside
    return value if math.isnan(code_of_step) else new.value(code_of_step)


def allows(parameter: Parameter, value: Value) -> bool:
    """Whether a hyperparameter allows a native value."""
    return not math.isnan(_code_or_nan(value, parameter))


def _code_or_nan(value: Value, parameter: Parameter) -> float:
    """Code a native value; NaN if the hyperparameter does not allow it."""
    try:
        return parameter.code(value)
    except InvalidConfigError:
        return math.nan


def find_changes(old: SearchSpace, new: SearchSpace, name: str) -> Iterator[Change]:
    """Yield how a hyperparameter or constant of either space changed; nothing if it did not.

    Args:
        old: The search space before.
        new: The search space after.
        name: Name of a hyperparameter or constant of one of them or both.
    """
    # Each is a `Parameter` if tuned, a value if constant, `ABSENT` if the space lacks the name.
    before = _get_item(old, name)
    now = _get_item(new, name)
    if before is ABSENT:
        yield Change.ADDED
    elif now is ABSENT:
        yield Change.REMOVED
    elif isinstance(before, Parameter) and isinstance(now, Parameter):
        yield from _find_changes_of_values(before, now)
        condition_before = _name_condition(old, name)
        condition_now = _name_condition(new, name)
        if condition_before != condition_now:
            yield Change.CONDITION
    elif isinstance(now, Parameter):
        yield Change.FREED
    elif isinstance(before, Parameter):
        yield Change.FIXED
    elif before != now:  # two constants
        yield Change.VALUE


def _find_changes_of_values(old: Parameter, new: Parameter) -> Iterator[Change]:
    """Yield how the type and the values of a hyperparameter changed.

    If a range became choices, or choices became a range, only the change of the type is yielded.
    """
    if old.kind is not new.kind:
        yield Change.TYPE
    if old.choices and new.choices:
        yield from _find_changes_of_choices(old, new)
    elif not old.choices and not new.choices:
        yield from _find_changes_of_numbers(old, new)


def _find_changes_of_choices(old: Parameter, new: Parameter) -> Iterator[Change]:
    """Yield how the choices of a categorical or ordinal hyperparameter changed."""
    common_in_old_order = [choice for choice in old.choices if allows(new, choice)]
    common_in_new_order = [choice for choice in new.choices if allows(old, choice)]
    if len(common_in_new_order) < len(new.choices):
        yield Change.CHOICES_ADDED
    if len(common_in_old_order) < len(old.choices):
        yield Change.CHOICES_REMOVED
    if old.kind is new.kind is Kind.ORDINAL and common_in_old_order != common_in_new_order:
        yield Change.REORDERED


def _find_changes_of_numbers(old: Parameter, new: Parameter) -> Iterator[Change]:
    """Yield how the range and the scale of a float or an integer changed."""
    grew = old.lower > new.lower or old.upper < new.upper
    shrank = old.lower < new.lower or old.upper > new.upper
    if grew and shrank:
        yield Change.MOVED
    elif grew:
        yield Change.GREW
    elif shrank:
        yield Change.SHRANK
    if old.log is not new.log:
        yield Change.SCALE


def describe_changes(
    old: SearchSpace, new: SearchSpace, name: str, changes: Sequence[Change]
) -> Iterator[str]:
    """Describe in words how a hyperparameter or constant changed.

    Args:
        old: The search space before.
        new: The search space after.
        name: Name of the hyperparameter or constant.
        changes: Its changes, as `find_changes` yields them.

    Yields:
        Parts of sentences, such as "from 1 to 9, now from 1 to 20".
    """
    if not changes:
        return
    # Each is a `Parameter` if tuned, a value if constant, `ABSENT` if the space lacks the name.
    before = _get_item(old, name)
    now = _get_item(new, name)
    if before is ABSENT:
        yield f"new ({_describe_values(now)})"
    elif now is ABSENT:
        yield f"removed (was {_describe_values(before)})"
    elif isinstance(before, Parameter) and isinstance(now, Parameter):
        changes_of_values = set(changes) - {Change.CONDITION}
        if changes_of_values:
            yield _describe_changes_of_values(before, now, changes_of_values)
        if Change.CONDITION in changes:
            yield f"was {_describe_condition(old, name)}, now {_describe_condition(new, name)}"
    elif isinstance(before, Parameter) or isinstance(now, Parameter):
        yield f"was {_describe_values(before)}, now {_describe_values(now)}"
    else:  # two constants: "fixed to 1 before, now to 2"
        yield f"{_describe_values(before)} before, now to {_format_value(now)}"


_TYPES: Mapping[Kind, str] = {
    Kind.FLOAT: " (a number)",
    Kind.INTEGER: " (an integer)",
    Kind.CATEGORICAL: " (without an order)",
    Kind.ORDINAL: " (in this order)",
}


def _describe_changes_of_values(old: Parameter, new: Parameter, changes: set[Change]) -> str:
    """Describe how the values of a hyperparameter changed that is tuned in both spaces.

    Args:
        old: The hyperparameter before.
        new: The hyperparameter after.
        changes: Its changes, at least one, without that of its condition.

    Returns:
        All values before and now, such as "from 1 to 9, now from 1 to 20". If some choices
        remained, it only says which choices were added and removed.
    """
    only_choices_differ = changes <= {Change.CHOICES_ADDED, Change.CHOICES_REMOVED}
    has_common_choice = any(allows(old, choice) for choice in new.choices)
    if only_choices_differ and has_common_choice:
        return _describe_changed_choices(old, new)

    descriptions = []
    for parameter in (old, new):
        description = _describe_values(parameter)
        if Change.SCALE in changes:
            scale = "log" if parameter.log else "linear"
            description += f" on a {scale} scale"
        if Change.TYPE in changes or Change.REORDERED in changes:
            description += _TYPES[parameter.kind]
        descriptions.append(description)
    return ", now ".join(descriptions)


def _describe_changed_choices(old: Parameter, new: Parameter) -> str:
    """Describe which choices were added and removed, such as "now also a, no longer b or c"."""
    added = [_format_value(choice) for choice in new.choices if not allows(old, choice)]
    removed = [_format_value(choice) for choice in old.choices if not allows(new, choice)]
    parts = []
    if added:
        parts.append(f"now also {_enumerate(added, 'and')}")
    if removed:
        parts.append(f"no longer {_enumerate(removed, 'or')}")
    return ", ".join(parts)


class Absent(Enum):
    """Stands for a name that a space does not have, as None may be the value of a constant."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT
_Item = Parameter | Value | Absent
"""A hyperparameter, the value of a constant, or `ABSENT` if the space has no such name."""


def _get_item(space: SearchSpace, name: str) -> _Item:
    """Return the hyperparameter or the value of the constant of a name.

    The result is `ABSENT` if the space has neither.
    """
    if name in space.names:
        return space[name]
    return space.constants.get(name, ABSENT)


def _name_condition(space: SearchSpace, name: str) -> object:
    """Convert the condition of a hyperparameter to names, so that it can be compared.

    A `Condition` has columns and codes, which depend on its search space. The result has names and
    native values, as ConfigSpace's JSON. It is None if the hyperparameter has no condition.
    """
    condition = space.conditions.get(name)
    if condition is None:
        return None
    by_name = {parameter.name: parameter for parameter in space.parameters}
    return condition_to_json(condition, name, by_name)


def _describe_condition(space: SearchSpace, name: str) -> str:
    """Describe when a hyperparameter is active, as part of a sentence."""
    condition = space.describe_condition(name)
    return f"active if {condition}" if condition else "always active"


def _describe_values(item: _Item) -> str:
    """Describe the values of a hyperparameter or constant, as part of a sentence."""
    if not isinstance(item, Parameter):
        return f"fixed to {_format_value(item)}"
    if item.choices:
        return _enumerate([_format_value(choice) for choice in item.choices], "or")
    lower = _format_value(item.value(item.lower))
    upper = _format_value(item.value(item.upper))
    return f"from {lower} to {upper}"


def _format_value(value: Value | Absent) -> str:
    """Format a native value; a float has at most six significant digits."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _enumerate(words: Sequence[str], conjunction: str) -> str:
    """Join words for a sentence, such as "a, b or c"."""
    *first_words, last_word = words
    if not first_words:  # a single word
        return last_word
    return f"{', '.join(first_words)} {conjunction} {last_word}"
