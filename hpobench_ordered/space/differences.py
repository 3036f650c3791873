"""How a hyperparameter of a search space changed, as data and in words."""

import math
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

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


def recode(coded: FloatArray, old: Parameter, new: Parameter) -> FloatArray:
    """Convert codes (n,) of native values by `old` to codes (n,) of the same values by `new`.

    Codes of values that `new` does not allow are NaN, and NaN stays NaN.
    """
    codes = []
    for code in coded.tolist():
        codes.append(math.nan if math.isnan(code) else _code_or_nan(old.value(code), new))
    return np.array(codes, dtype=np.float64)


def allows(parameter: Parameter, value: Value) -> bool:
    """Whether a hyperparameter allows a native value."""
    return not math.isnan(_code_or_nan(value, parameter))


def _code_or_nan(value: Value, parameter: Parameter) -> float:
    """Code of a native value, NaN if it is not allowed."""
    try:
        return parameter.code(value)
    except InvalidConfigError:
        return math.nan


def find_changes(old: SearchSpace, new: SearchSpace, name: str) -> Iterator[Change]:
    """Yield the changes of a hyperparameter or constant of either space; none if it is the same."""
    before = _get_item(old, name)
    now = _get_item(new, name)
    if before is None:
        yield Change.ADDED
    elif now is None:
        yield Change.REMOVED
    elif isinstance(before, Parameter) and isinstance(now, Parameter):
        if before.kind is not now.kind:
            yield Change.TYPE
        if before.choices and now.choices:
            yield from _find_changes_of_choices(before, now)
        elif not before.choices and not now.choices:
            yield from _find_changes_of_numbers(before, now)
        if _condition_by_names(old, name) != _condition_by_names(new, name):
            yield Change.CONDITION
    elif isinstance(now, Parameter):
        yield Change.FREED
    elif isinstance(before, Parameter):
        yield Change.FIXED
    elif before != now:
        yield Change.VALUE


def _find_changes_of_choices(old: Parameter, new: Parameter) -> Iterator[Change]:
    common_in_old_order = [choice for choice in old.choices if allows(new, choice)]
    common_in_new_order = [choice for choice in new.choices if allows(old, choice)]
    if len(common_in_new_order) < len(new.choices):
        yield Change.CHOICES_ADDED
    if len(common_in_old_order) < len(old.choices):
        yield Change.CHOICES_REMOVED
    if old.kind is new.kind is Kind.ORDINAL and common_in_old_order != common_in_new_order:
        yield Change.REORDERED


def _find_changes_of_numbers(old: Parameter, new: Parameter) -> Iterator[Change]:
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
    """Describe in words the changes of a hyperparameter or constant, as `find_changes` finds them.

    Yields:
        Parts of sentences, such as "from 1 to 9, now from 1 to 20".
    """
    before = _get_item(old, name)
    now = _get_item(new, name)
    if not changes:
        return
    if before is None:
        yield f"new ({_describe_values(now)})"
    elif now is None:
        yield f"removed (was {_describe_values(before)})"
    elif isinstance(before, Parameter) and isinstance(now, Parameter):
        if set(changes) != {Change.CONDITION}:
            yield _describe_tuned(before, now, set(changes))
        if Change.CONDITION in changes:
            yield f"was {_describe_condition(old, name)}, now {_describe_condition(new, name)}"
    elif isinstance(before, Parameter) or isinstance(now, Parameter):
        yield f"was {_describe_values(before)}, now {_describe_values(now)}"
    else:
        yield f"{_describe_values(before)} before, now to {_format_value(now)}"


_TYPES: Mapping[Kind, str] = {
    Kind.FLOAT: " (a number)",
    Kind.INTEGER: " (an integer)",
    Kind.CATEGORICAL: " (without an order)",
    Kind.ORDINAL: " (in this order)",
}

_CHANGES_OF_THE_SET_OF_CHOICES = {Change.CHOICES_ADDED, Change.CHOICES_REMOVED, Change.CONDITION}


def _describe_tuned(old: Parameter, new: Parameter, changes: set[Change]) -> str:
    """Describe the changes of a hyperparameter that both spaces tune, except of its condition."""
    only_choices_differ = changes <= _CHANGES_OF_THE_SET_OF_CHOICES
    has_common_choice = any(allows(old, choice) for choice in new.choices)
    if only_choices_differ and has_common_choice:
        return _describe_changed_choices(old, new)

    texts = []
    for parameter in (old, new):
        text = _describe_values(parameter)
        if Change.SCALE in changes:
            text += f" on a {'log' if parameter.log else 'linear'} scale"
        if Change.TYPE in changes or Change.REORDERED in changes:
            text += _TYPES[parameter.kind]
        texts.append(text)
    return ", now ".join(texts)


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


_Item = Parameter | Value | None
"""A hyperparameter, the value of a constant, or None if the space has no such name."""


def _get_item(space: SearchSpace, name: str) -> _Item:
    return space[name] if name in space.names else space.constants.get(name)


def _condition_by_names(space: SearchSpace, name: str) -> object:
    """The condition of a hyperparameter by names and native values; None if it has none.

    Columns and codes, which the condition itself holds, differ between two spaces.
    """
    condition = space.conditions.get(name)
    if condition is None:
        return None
    by_name = {p.name: p for p in space.parameters}
    return condition_to_json(condition, name, by_name)


def _describe_condition(space: SearchSpace, name: str) -> str:
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


def _format_value(value: Value | None) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _enumerate(words: Sequence[str], conjunction: str) -> str:
    """Join words for a sentence, such as "a, b or c"."""
    *first_words, last_word = words
    if not first_words:
        return last_word
    return f"{', '.join(first_words)} {conjunction} {last_word}"
