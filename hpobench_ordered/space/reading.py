"""Validation of JSON files, before their content is used."""

import math
import reprlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from hpobench_ordered.errors import InvalidSpaceError
from hpobench_ordered.space.space import SearchSpace

MALFORMED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    msgspec.MsgspecError,
)
"""Exceptions that reading a malformed description may raise."""


def read_space(description: Mapping[str, Any]) -> SearchSpace:
    """Read a search space from its description in ConfigSpace's JSON format, and check it.

    The file may have been written by anybody. However malformed the description is, the error is
    an `InvalidSpaceError`.

    Raises:
        InvalidSpaceError: The description is malformed, or has a feature that is not supported.
    """
    try:
        for hyperparameter in description["hyperparameters"]:
            _check_types(hyperparameter)  # `from_json` does not check the types of values
        return SearchSpace.from_json(description)
    except MALFORMED as error:
        # A message such as KeyError's, which is only the key, says little without its type: `repr`
        # includes the type.
        reason = str(error) if isinstance(error, InvalidSpaceError) else repr(error)
        raise InvalidSpaceError(f"invalid description of a search space: {reason}") from None


def is_number(value: object) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check_types(hyperparameter: Mapping[str, Any]) -> None:
    """Raise a `TypeError` if a value in the JSON of a hyperparameter has a wrong type.

    `_CHECKS_BY_KEY` has for each key, such as "lower", a function that checks the type of the
    value, and the right type in words. Keys that the JSON lacks are not checked.
    """
    for key, (has_right_type, right_type) in _CHECKS_BY_KEY.items():
        if key in hyperparameter and not has_right_type(hyperparameter[key]):
            value = reprlib.repr(hyperparameter[key])
            raise TypeError(f"{key} must be {right_type}, but got {value}")


def _is_value(value: object) -> bool:
    """Whether a value may be a choice or a constant: text, a boolean, a finite number or None."""
    return value is None or isinstance(value, str | bool) or is_number(value)


def _is_list_of_values(choices: object) -> bool:
    """Whether an object is a list of values that may be choices."""
    return isinstance(choices, list) and all(map(_is_value, choices))


def _is_text(value: object) -> bool:
    """Whether a value is text."""
    return isinstance(value, str)


def _is_boolean(value: object) -> bool:
    """Whether a value is True or False."""
    return isinstance(value, bool)


_CHECKS_BY_KEY: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "name": (_is_text, "a string"),
    "lower": (is_number, "a finite number"),
    "upper": (is_number, "a finite number"),
    "log": (_is_boolean, "true or false"),
    "choices": (_is_list_of_values, "a list of values"),
    "value": (_is_value, "a value"),
}
"""For each key in a hyperparameter's JSON, a check of its value's type, and this type in words."""
