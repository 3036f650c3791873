"""Validation of JSON files, before their content is used."""

import math
import reprlib
from collections.abc import Callable, Mapping
from typing import Any

from hpobench_ordered.errors import InvalidSpaceError
from hpobench_ordered.space.space import SearchSpace

MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Exceptions that reading a malformed description may raise."""


def read_space(description: Mapping[str, Any]) -> SearchSpace:
    """Read a search space from ConfigSpace's JSON."""
    try:
        for item in description["hyperparameters"]:
            _check_item(item)
        return SearchSpace.from_json(description)
    except MALFORMED as error:
        reason = str(error) if isinstance(error, InvalidSpaceError) else repr(error)
        raise InvalidSpaceError(f"invalid description of a search space: {reason}") from None


def read_text(content: Mapping[str, Any], name: str) -> str:
    """Read the string under a name, else raise a `TypeError`."""
    if not isinstance(content[name], str):
        raise TypeError(f"{name} must be a string, but got {reprlib.repr(content[name])}")
    return str(content[name])


def read_whole_number(content: Mapping[str, Any], name: str) -> int:
    """Read the non-negative integer below 2^31 under a name, else raise a `TypeError`."""
    if type(content[name]) is not int or not 0 <= content[name] < 2**31:
        raise TypeError(f"{name} must be a whole number, but got {reprlib.repr(content[name])}")
    return int(content[name])


def read_numbers(content: Mapping[Any, Any]) -> dict[Any, float]:
    """Read numbers by name; raise a `TypeError` if one of them is not finite."""
    for name, value in content.items():
        if not is_number(value):
            raise TypeError(f"{name} must be a finite number, but got {reprlib.repr(value)}")
    return dict(content)


def is_number(value: object) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check_item(item: Mapping[str, Any]) -> None:
    """Check the types of the values in the JSON of a hyperparameter."""
    for key, (is_right, expected) in _EXPECTED.items():
        if key in item and not is_right(item[key]):
            raise TypeError(f"{key} must be {expected}, but got {reprlib.repr(item[key])}")


def _is_value(value: object) -> bool:
    return isinstance(value, str | bool) or is_number(value)


def _are_values(choices: object) -> bool:
    return isinstance(choices, list) and all(map(_is_value, choices))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_boolean(value: object) -> bool:
    return isinstance(value, bool)


_EXPECTED: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "name": (_is_text, "a string"),
    "lower": (is_number, "a finite number"),
    "upper": (is_number, "a finite number"),
    "log": (_is_boolean, "true or false"),
    "choices": (_are_values, "a list of values"),
    "value": (_is_value, "a value"),
}
"""What the keys of a hyperparameter's JSON may hold: a check, and its description."""
