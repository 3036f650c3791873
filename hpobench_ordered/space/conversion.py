"""Conversion of a user's search space: `SearchSpace`, ConfigSpace, or a dict of ranges."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, TypeAlias, cast

from hpobench_ordered._typing import Config, Value
from hpobench_ordered.errors import EvaluationsError, InvalidSpaceError
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.space.space import SearchSpace

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace

SpaceLike: TypeAlias = "SearchSpace | ConfigurationSpace | Mapping[str, object]"

LOG = "log"
"""Third element of a tuple that describes a range on a log scale."""


def to_search_space(space: "SpaceLike") -> SearchSpace:
    """Convert a description of a search space to a `SearchSpace`.

    Args:
        space: A `SearchSpace`, a ConfigSpace `ConfigurationSpace`, or a dict from names to
            descriptions: (low, high) or (low, high, "log") for a range, an integer range if both
            bounds are integers; a list for choices; a single value for a constant.

    Raises:
        EvaluationsError: The space is of none of these types.
        InvalidSpaceError: The dict does not describe a search space, or the ConfigSpace space uses
            an unsupported feature.
    """
    if isinstance(space, SearchSpace):
        return space
    if hasattr(space, "to_serialized_dict"):  # ConfigSpace's, recognised without importing it
        return SearchSpace.from_configspace(space)
    if isinstance(space, Mapping):
        return _read_dict(space)
    raise EvaluationsError(
        "the search space must be a SearchSpace, ConfigSpace's ConfigurationSpace or a dict such "
        f"as {{'rate': (1e-4, 1.0, 'log')}}, but got {type(space).__name__}"
    )


def _read_dict(descriptions: Mapping[str, object]) -> SearchSpace:
    """Read a search space from a dict as `to_search_space` describes it."""
    constants: Config = {}
    parameters = []
    for name, description in descriptions.items():
        if isinstance(name, str) and _is_value(description):
            constants[name] = cast("Value", description)
        else:  # of a name that is not text, too: `_read_parameter` says what is allowed
            parameters.append(_read_parameter(name, description))
    return SearchSpace(parameters, constants=constants)


def _read_parameter(name: object, description: object) -> Parameter:
    """Read a tunable hyperparameter: a list of choices, or a tuple that describes a range."""
    if isinstance(name, str):
        if isinstance(description, list) and all(map(_is_value, description)):
            return Parameter.choice(name, tuple(description))
        if isinstance(description, tuple) and is_range(description):
            lower, upper, *scale = description  # a scale, "log", may be left out
            is_integer = isinstance(lower, Integral) and isinstance(upper, Integral)
            return Parameter.number(name, lower, upper, log=scale == [LOG], integer=is_integer)
    raise InvalidSpaceError(
        f"hyperparameter {name!r}: the name must be a string and the value a tuple (low, high) or "
        f"(low, high, {LOG!r}), a list of choices or a constant, but got {description!r}"
    )


def is_range(description: tuple[object, ...]) -> bool:
    """Whether a tuple is (low, high) or (low, high, "log")."""
    bounds = description[:2]
    scale = description[2:]
    has_bounds = len(bounds) == 2 and all(map(_is_number, bounds))
    has_scale = scale in ((), (LOG,))  # a linear one needs no third element
    return has_bounds and has_scale


def _is_number(value: object) -> bool:
    """Whether a value is a number; booleans, which are integers in Python, are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_value(value: object) -> bool:
    """Whether a value may be a choice or a constant: text, a boolean or a number."""
    return isinstance(value, str | bool) or _is_number(value)
