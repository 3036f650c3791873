"""Validation of JSON files of unknown origin, before their content is used.

Notation:
    d   number of hyperparameters
"""

import math
import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.errors import InvalidSpaceError
from hpobench_ordered.space.space import SearchSpace

MAX_HYPERPARAMETERS = 500
"""Largest number of hyperparameters in a stored search space: sorting them takes O(d^3) time."""

_NAMED = ("name", "type")
_NUMBERS = ("lower", "upper")


MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Exceptions that reading a malformed description may raise."""


def read_space(description: Mapping[str, Any]) -> SearchSpace:
    """Read a search space from ConfigSpace's JSON, and check that it can be sampled."""
    try:
        _check_items(description["hyperparameters"])
        space = SearchSpace.from_json(description)
        _check_drawing(space)
    except MALFORMED as error:
        why = str(error) if isinstance(error, InvalidSpaceError) else repr(error)
        raise InvalidSpaceError(f"invalid description of a search space: {why}") from None
    return space


def text_of(content: Mapping[str, Any], name: str) -> str:
    """The string under a name."""
    if not isinstance(content[name], str):
        raise TypeError(f"{name} must be a string, but got {reprlib.repr(content[name])}")
    return str(content[name])


def whole_number_of(content: Mapping[str, Any], name: str) -> int:
    """The non-negative integer under a name."""
    if type(content[name]) is not int or not 0 <= content[name] < 2**31:
        raise TypeError(f"{name} must be a whole number, but got {reprlib.repr(content[name])}")
    return int(content[name])


def numbers(content: Mapping[Any, Any]) -> dict[Any, float]:
    """Check that all values are finite numbers."""
    for name, value in content.items():
        if not is_number(value):
            raise TypeError(f"{name} must be a finite number, but got {reprlib.repr(value)}")
    return dict(content)


def is_number(value: object) -> bool:
    """Whether a value is a finite number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _check_items(items: object) -> None:
    if not isinstance(items, list) or len(items) > MAX_HYPERPARAMETERS:
        raise TypeError(f"hyperparameters must be a list of at most {MAX_HYPERPARAMETERS}")
    for item in items:
        _check_item(item)


def _check_item(item: Mapping[str, Any]) -> None:
    for name in _NAMED:
        text_of(item, name)
    for name in _NUMBERS:
        if name in item and not is_number(item[name]):
            raise TypeError(f"{name} must be a finite number, but got {reprlib.repr(item[name])}")
    if not isinstance(item.get("log", False), bool):
        raise TypeError(f"log must be true or false, but got {reprlib.repr(item['log'])}")
    choices = item.get("choices", item.get("sequence", []))
    if not isinstance(choices, list) or not all(_is_value(c) for c in choices):
        raise TypeError(f"choices must be a list of values, but got {reprlib.repr(choices)}")
    if item["type"] == "constant" and not _is_value(item["value"]):
        raise TypeError(f"a constant must be a value, but got {reprlib.repr(item['value'])}")


def _is_value(value: object) -> bool:
    return isinstance(value, str | bool) or is_number(value)


def _check_drawing(space: SearchSpace) -> None:
    """Decode the ends and the middle of all ranges, and encode them again."""
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        corners: FloatArray = np.repeat([[0.0], [0.5], [1.0]], space.dimension, axis=1)
        values = space.decode(space.canonical(corners))
        unit = space.encode(values)
    active = space.active(values)
    if not (np.isfinite(unit[active]).all() and np.isfinite(values[active]).all()):
        raise InvalidSpaceError("a range is too wide for floats")
    for config in space.configs(values):
        space.row(config)
    for name in space.names:
        space.describe_condition(name)
