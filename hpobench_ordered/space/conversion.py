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


def make_space(items: "Mapping[str, Parameter | Value]") -> SearchSpace:
    """Make a space of hyperparameters and constants.

    Args:
        items: A hyperparameter, or the value of a constant, by name. A hyperparameter with a single
            value becomes a constant.
    """
    parameters: list[Parameter] = []
    constants: Config = {}
    for name, item in items.items():
        if not isinstance(item, Parameter):
            constants[name] = item
        elif item.size > 1:
            parameters.append(item)
        else:
            only_value = item.value(item.lower)
            constants[name] = only_value
    return SearchSpace(parameters, constants=constants)


def read_description(name: object, description: object) -> "Parameter | Value":
    """Read the description of a hyperparameter, or of a constant.

    Args:
        name: Name of the hyperparameter.
        description: One of three. A range is a tuple (low, high), or a tuple or list (low, high,
            "log") or (low, high, "linear"); it is of integers if both bounds are. Choices are
            {"choices": [...]}, or any other list or tuple but a list of two numbers; they are
            ordered if they are increasing numbers. A constant is text, a number, a boolean or None.

    Returns:
        The hyperparameter, or the value of the constant.

    Raises:
        InvalidSpaceError: The description is none of these, or it may be a range as well as two
            choices.
    """
    if isinstance(name, str):
        if is_value(description):
            return cast("Value", description)
        if isinstance(description, tuple | list) and is_range(description):
            lower, upper, *scale = description  # `scale` is empty if it is left out
            is_log = scale == [LOG]
            is_integer = isinstance(lower, Integral) and isinstance(upper, Integral)
            return Parameter.number(name, lower, upper, log=is_log, integer=is_integer)
        if isinstance(description, tuple | list) and is_choices(description):
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
    values = tuple(cast("Sequence[Value]", choices))
    ordinal = Parameter.choice(name, values, ordered=True)
    are_increasing_numbers = ordinal.has_steps
    return ordinal if are_increasing_numbers else Parameter.choice(name, values)


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
    """Whether a tuple or list describes a range: (low, high, scale), or a tuple (low, high).

    A list of two numbers may be a range or two choices, so a list needs the scale.
    """
    bounds = description[:2]
    has_bounds = len(bounds) == 2 and all(map(_is_number, bounds))
    following_items = list(description[2:])
    has_scale = following_items in ([LOG], [LINEAR])
    needs_no_scale = isinstance(description, tuple) and not following_items
    return has_bounds and (has_scale or needs_no_scale)


def is_choices(description: Sequence[object]) -> bool:
    """Whether a tuple or list describes choices: all that is no range.

    Two numbers and another text are a tuple whose scale is misspelt, not three choices.
    """
    if is_range(description):
        return False
    has_bounds = len(description) == 3 and all(map(_is_number, description[:2]))
    has_misspelt_scale = has_bounds and isinstance(description[2], str)
    return not (isinstance(description, tuple) and has_misspelt_scale)


def name_choice(name: str, choice: object) -> Value:
    """Return the choice of a `SearchSpace` that stands for an object.

    Text, numbers, booleans and None stand for themselves. All other objects are named by a text: a
    class or a function by its name, a list like the tuple of its elements (since storages return
    tuples as lists), and others by their `repr`.

    Args:
        name: Name of the hyperparameter, for the message.
        choice: The object.

    Raises:
        InvalidSpaceError: The text contains the object's address, which differs in every process.
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
