"""Conversion of a user's search space: `SearchSpace`, ConfigSpace, or a dict of ranges.

A dict means the same in Python and in a JSON file, which has no tuples.
"""

from collections.abc import Mapping, Sequence
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
"""Third element of a description of a range on a log scale."""
LINEAR = "linear"
"""Third element of a description of any other range; a tuple may do without."""
CHOICES = "choices"
"""Key of a description of choices, which a list of two numbers needs."""
ADDRESS_TEXT = " at 0x"
"""Part of the text of objects without a text of their own; it differs in every process."""


def to_search_space(space: "SpaceLike") -> SearchSpace:
    """Convert a description of a search space to a `SearchSpace`.

    Args:
        space: A `SearchSpace`, a ConfigSpace `ConfigurationSpace`, or a dict from names to
            descriptions, as `read_description` reads them.

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
        return make_space({name: read_description(name, item) for name, item in space.items()})
    raise EvaluationsError(
        "the search space must be a SearchSpace, ConfigSpace's ConfigurationSpace or a dict such "
        f"as {{'rate': (1e-4, 1.0, 'log')}}, but got {type(space).__name__}"
    )


def make_space(described: "Mapping[str, Parameter | Value]") -> SearchSpace:
    """Make a space of hyperparameters and constants, by their names.

    A hyperparameter with a single value is a constant, too.
    """
    parameters: list[Parameter] = []
    constants: Config = {}
    for name, item in described.items():
        if not isinstance(item, Parameter):
            constants[name] = item
        elif item.size > 1:
            parameters.append(item)
        else:
            constants[name] = item.value(item.lower)
    return SearchSpace(parameters, constants=constants)


def read_description(name: object, description: object) -> "Parameter | Value":
    """Read the description of a hyperparameter, or of a constant.

    Args:
        name: Name of the hyperparameter.
        description: A range: (low, high), or (low, high, "log") or (low, high, "linear"), which may
            be a list, of integers if both bounds are. Choices: a list, unless it has two numbers,
            or {"choices": [...]}; they are ordered if they are increasing numbers. A constant:
            text, a number, a boolean or None.

    Returns:
        The hyperparameter, or the value of the constant.

    Raises:
        InvalidSpaceError: It is none of these, or may be a range or two choices.
    """
    if isinstance(name, str):
        if is_value(description):
            return cast("Value", description)
        if isinstance(description, tuple | list) and is_range(description):
            lower, upper, *scale = description  # a scale may be left out
            is_integer = isinstance(lower, Integral) and isinstance(upper, Integral)
            return Parameter.number(name, lower, upper, log=scale == [LOG], integer=is_integer)
        if isinstance(description, list):
            _check_is_unambiguous(name, description)
            return make_choice(name, description)
        if isinstance(description, Mapping) and list(description) == [CHOICES]:
            return make_choice(name, description[CHOICES])
    raise InvalidSpaceError(
        f"hyperparameter {name!r}: the name must be text, and the description a range (low, high) "
        f"or (low, high, {LOG!r}), a list of choices or a constant, but got {description!r}"
    )


def make_choice(name: str, choices: Sequence[object]) -> Parameter:
    """Make a hyperparameter of choices, which are ordered if they are increasing numbers."""
    values = cast("Sequence[Value]", choices)
    as_ordered = Parameter.choice(name, tuple(values), ordered=True)
    return as_ordered if as_ordered.has_steps else Parameter.choice(name, tuple(values))


def _check_is_unambiguous(name: str, choices: Sequence[object]) -> None:
    """Raise an `InvalidSpaceError` for a list of two numbers, which may be the ends of a range."""
    if len(choices) == 2 and all(map(_is_number, choices)):
        low, high = choices
        raise InvalidSpaceError(
            f"hyperparameter {name!r}: [{low!r}, {high!r}] may be a range or two choices: write "
            f'[{low!r}, {high!r}, "{LINEAR}"] for the range, {{"{CHOICES}": [{low!r}, {high!r}]}} '
            "for the choices"
        )


def is_range(description: Sequence[object]) -> bool:
    """Whether a tuple or list is (low, high) or (low, high, scale); a list needs the scale."""
    bounds = description[:2]
    scale = list(description[2:])
    has_bounds = len(bounds) == 2 and all(map(_is_number, bounds))
    scales = [[LOG], [LINEAR]]
    if isinstance(description, tuple):
        scales.append([])
    return has_bounds and scale in scales


def text_of_choice(name: str, choice: object) -> Value:
    """The choice of a `SearchSpace` that stands for an object: itself, or its text.

    A list and a tuple have the same text, as storages return lists of tuples; a class or function
    has its name.

    Raises:
        InvalidSpaceError: The text of the object differs in every process.
    """
    if is_value(choice):
        return cast("Value", choice)
    if isinstance(choice, list | tuple):
        return str(tuple(choice))
    text = str(getattr(choice, "__qualname__", None) or repr(choice))
    if ADDRESS_TEXT in text:
        raise InvalidSpaceError(
            f"hyperparameter {name!r}: the choice {text} needs a `__repr__` that describes it, as "
            "it is stored as text"
        )
    return text


def is_value(value: object) -> bool:
    """Whether a value may be a choice or a constant: text, a boolean, a number or None."""
    return value is None or isinstance(value, str | bool) or _is_number(value)


def _is_number(value: object) -> bool:
    """Whether a value is a number; booleans, which are integers in Python, are not."""
    return isinstance(value, Real) and not isinstance(value, bool)
