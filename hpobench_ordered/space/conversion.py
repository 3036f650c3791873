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

LOG = "log"  # third element of a tuple that describes a range on a log scale


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
    if hasattr(space, "to_serialized_dict"):
        return SearchSpace.from_configspace(space)
    if isinstance(space, Mapping):
        return _of_dict(space)
    raise EvaluationsError(
        "the search space must be a SearchSpace, ConfigSpace's ConfigurationSpace or a dict such "
        f"as {{'rate': (1e-4, 1.0, 'log')}}, but got {type(space).__name__}"
    )


def _of_dict(described: Mapping[str, object]) -> SearchSpace:
    constants: Config = {}
    parameters = []
    for name, what in described.items():
        if isinstance(name, str) and _is_value(what):
            constants[name] = cast("Value", what)
        else:
            parameters.append(_parameter(name, what))
    return SearchSpace(parameters, constants=constants)


def _parameter(name: object, what: object) -> Parameter:
    """Read a hyperparameter."""
    if isinstance(name, str) and isinstance(what, list) and all(map(_is_value, what)):
        return Parameter.choice(name, tuple(what))
    if isinstance(name, str) and isinstance(what, tuple) and what[2:] in ((), (LOG,)):
        bounds = what[:2]
        if len(bounds) == 2 and all(map(_is_number, bounds)):
            is_integer = all(isinstance(bound, Integral) for bound in bounds)
            return Parameter.number(name, *bounds, log=what[2:] == (LOG,), integer=is_integer)
    raise InvalidSpaceError(
        f"hyperparameter {name!r}: the name must be a string and the value a tuple (low, high) or "
        f"(low, high, {LOG!r}), a list of choices or a constant, but got {what!r}"
    )


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_value(value: object) -> bool:
    return isinstance(value, str | bool) or _is_number(value)
