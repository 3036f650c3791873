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

_Item = Parameter | Value | None
"""A hyperparameter, the value of a constant, or None if the space has no such name."""


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


def recoded(coded: FloatArray, old: Parameter, new: Parameter) -> FloatArray:
    """Convert codes (n,) of native values by `old` to codes (n,) of the same values by `new`."""
    codes = [math.nan if math.isnan(x) else _code(old.value(x), new) for x in coded.tolist()]
    return np.array(codes, dtype=np.float64)


def allows(parameter: Parameter, value: Value) -> bool:
    """Whether a hyperparameter allows a native value."""
    return not math.isnan(_code(value, parameter))


def changes(old: SearchSpace, new: SearchSpace, name: str) -> Iterator[Change]:
    """Changes of a hyperparameter or constant of either space; none if it is the same."""
    before, now = _item(old, name), _item(new, name)
    if before is None or now is None:
        yield Change.ADDED if before is None else Change.REMOVED
    elif isinstance(before, Parameter) and isinstance(now, Parameter):
        if before.kind is not now.kind:
            yield Change.TYPE
        if before.choices and now.choices:
            yield from _changes_of_choices(before, now)
        elif not before.choices and not now.choices:
            yield from _changes_of_numbers(before, now)
        if _condition(old, name) != _condition(new, name):
            yield Change.CONDITION
    elif isinstance(before, Parameter) or isinstance(now, Parameter):
        yield Change.FREED if isinstance(now, Parameter) else Change.FIXED
    elif before != now:
        yield Change.VALUE


def _changes_of_choices(old: Parameter, new: Parameter) -> Iterator[Change]:
    kept = [choice for choice in old.choices if allows(new, choice)]
    known = [choice for choice in new.choices if allows(old, choice)]
    if len(known) < len(new.choices):
        yield Change.CHOICES_ADDED
    if len(kept) < len(old.choices):
        yield Change.CHOICES_REMOVED
    if old.kind is new.kind is Kind.ORDINAL and kept != known:
        yield Change.REORDERED


def _changes_of_numbers(old: Parameter, new: Parameter) -> Iterator[Change]:
    grew = old.lower > new.lower or old.upper < new.upper
    shrank = old.lower < new.lower or old.upper > new.upper
    if grew and shrank:
        yield Change.MOVED
    elif grew or shrank:
        yield Change.GREW if grew else Change.SHRANK
    if old.log is not new.log:
        yield Change.SCALE


def in_words(
    old: SearchSpace, new: SearchSpace, name: str, became: Sequence[Change]
) -> Iterator[str]:
    """Describe in words how a hyperparameter or constant changed."""
    before, now = _item(old, name), _item(new, name)
    if not became:
        return
    if before is None:
        yield f"new ({_text(now)})"
    elif now is None:
        yield f"removed (was {_text(before)})"
    elif isinstance(before, Parameter) and isinstance(now, Parameter):
        if set(became) != {Change.CONDITION}:
            yield _tuned_in_words(before, now, set(became))
        if Change.CONDITION in became:
            yield f"was {_when(old, name)}, now {_when(new, name)}"
    elif isinstance(before, Parameter) or isinstance(now, Parameter):
        yield f"was {_text(before)}, now {_text(now)}"
    else:
        yield f"{_text(before)} before, now to {_plain(now)}"


_TYPES: Mapping[Kind, str] = {
    Kind.FLOAT: " (a number)",
    Kind.INTEGER: " (an integer)",
    Kind.CATEGORICAL: " (without an order)",
    Kind.ORDINAL: " (in this order)",
}


def _tuned_in_words(old: Parameter, new: Parameter, became: set[Change]) -> str:
    if became <= {Change.CHOICES_ADDED, Change.CHOICES_REMOVED, Change.CONDITION}:
        added = [_plain(c) for c in new.choices if not allows(old, c)]
        removed = [_plain(c) for c in old.choices if not allows(new, c)]
        if len(added) < len(new.choices):
            parts = [f"now also {_list(added, 'and')}"] * bool(added)
            return ", ".join(parts + [f"no longer {_list(removed, 'or')}"] * bool(removed))
    texts = []
    for parameter in (old, new):
        text = _text(parameter)
        if Change.SCALE in became:
            text += f" on a {'log' if parameter.log else 'linear'} scale"
        if became & {Change.TYPE, Change.REORDERED}:
            text += _TYPES[parameter.kind]
        texts.append(text)
    return ", now ".join(texts)


def _code(value: Value, parameter: Parameter) -> float:
    """Code of a native value, NaN if it is not allowed."""
    try:
        return parameter.code(value)
    except InvalidConfigError:
        return math.nan


def _item(space: SearchSpace, name: str) -> _Item:
    return space[name] if name in space.names else space.constants.get(name)


def _condition(space: SearchSpace, name: str) -> object:
    """A condition expressed by names and native values; None if there is none."""
    condition = space.conditions.get(name)
    by_name = {p.name: p for p in space.parameters}
    return None if condition is None else condition_to_json(condition, name, by_name)


def _when(space: SearchSpace, name: str) -> str:
    when = space.describe_condition(name)
    return f"active if {when}" if when else "always active"


def _text(item: _Item) -> str:
    """Values of a hyperparameter or constant, as part of a sentence."""
    if not isinstance(item, Parameter):
        return f"fixed to {_plain(item)}"
    if item.choices:
        return _list([_plain(choice) for choice in item.choices], "or")
    return f"from {_plain(item.value(item.lower))} to {_plain(item.value(item.upper))}"


def _plain(value: Value | None) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _list(words: Sequence[str], last: str) -> str:
    """Words such as "a, b or c"."""
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
