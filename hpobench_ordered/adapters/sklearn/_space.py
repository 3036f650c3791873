"""Search spaces of estimators, from the descriptions that users of other packages know."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from hpobench_ordered._typing import Config, ConfigLike, Value
from hpobench_ordered.adapters._optuna_space import only_value_of, parameter_of
from hpobench_ordered.errors import InvalidSpaceError
from hpobench_ordered.space import Parameter, SearchSpace
from hpobench_ordered.space.conversion import LOG, SpaceLike, to_search_space

ADDRESS_TEXT = " at 0x"
"""Part of the text of objects without a text of their own; it differs in every process."""


@dataclass(frozen=True)
class EstimatorSpace:
    """A search space, and the objects that some of its choices stand for.

    Choices of a `SearchSpace` are text, booleans and numbers. Any other object, such as None, a
    tuple or an estimator, is represented there by its text.

    Attributes:
        space: The search space.
        objects: The objects by hyperparameter and text; none for choices that stand for
            themselves.
    """

    space: SearchSpace
    objects: Mapping[str, Mapping[Value, object]]

    def params(self, config: ConfigLike) -> dict[str, Any]:
        """Parameters of the estimator (`set_params`) for a configuration."""
        params: dict[str, Any] = {}
        for name, value in config.items():
            object_of_text = self.objects.get(name, {})
            params[name] = object_of_text.get(value, value)
        return params


def read_space(description: SpaceLike) -> EstimatorSpace:
    """Read the search space of an estimator.

    Args:
        description: A search space or ConfigSpace's; or a dict from names of parameters to what
            `read_parameter` reads, or to constants.

    Raises:
        EvaluationsError: It is of another type.
        InvalidSpaceError: A parameter cannot be read; the message says what is allowed.
    """
    is_of_configspace = hasattr(description, "to_serialized_dict")  # a mapping, too
    if is_of_configspace or not isinstance(description, Mapping):
        return EstimatorSpace(to_search_space(description), {})

    tunable: list[Parameter] = []
    constants: Config = {}
    objects: dict[str, Mapping[Value, object]] = {}
    for name, values in description.items():
        if isinstance(values, str | Real):
            constants[name] = values  # type: ignore[assignment]  # numbers of any type
            continue
        parameter, objects_of_choices = read_parameter(name, values)
        objects[name] = objects_of_choices
        if parameter.size > 1:  # number of different values
            tunable.append(parameter)
        else:
            constants[name] = only_value_of(parameter)
    return EstimatorSpace(SearchSpace(tunable, constants=constants), objects)


def read_parameter(name: str, values: Any) -> tuple[Parameter, Mapping[Value, object]]:
    """Read a hyperparameter, and the objects that its choices stand for.

    Args:
        name: Name of the estimator's parameter.
        values: (low, high) or (low, high, "log") for a range, of integers if both bounds are; a
            list, array or range of choices, which are ordered if they are increasing numbers; a
            distribution of SciPy (uniform, loguniform or randint), scikit-optimize or Optuna.
    """
    package = type(values).__module__.partition(".")[0]
    if package == "optuna":
        return parameter_of(name, values), {}
    if package == "skopt":
        values = _convert_skopt(name, values)
    elif package == "scipy":
        values = _convert_scipy(name, values)

    # A list is one of choices, but for [low, high, "log"], which is a range as the tuple is.
    is_list_of_range = isinstance(values, list) and len(values) == 3 and values[2] == LOG
    if isinstance(values, tuple) or is_list_of_range:
        return to_search_space({name: tuple(values)})[name], {}
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, list | range):
        return _read_choices(name, values)
    raise InvalidSpaceError(
        f"hyperparameter {name!r}: must be a range (low, high) or (low, high, {LOG!r}), a list of "
        "choices, a distribution of SciPy, scikit-optimize or Optuna, or a constant, but got "
        f"{values!r}"
    )


def _read_choices(name: str, choices: Sequence[object]) -> tuple[Parameter, Mapping[Value, object]]:
    """Read choices, which are ordered if they are increasing numbers."""
    values: list[Value] = []
    object_of_text: dict[Value, object] = {}
    for choice in choices:
        if isinstance(choice, str | bool | int | float):
            values.append(choice)
        else:
            text = _describe_object(name, choice)
            values.append(text)
            object_of_text[text] = choice
    parameter = Parameter.choice(name, tuple(values), ordered=_are_increasing_numbers(values))
    return parameter, object_of_text


def _are_increasing_numbers(values: Sequence[Value]) -> bool:
    """Whether all values are numbers, each larger than the one before."""
    numbers: list[float] = []
    for value in values:
        if isinstance(value, str | bool):
            return False
        numbers.append(value)
    return all(low < high for low, high in pairwise(numbers))


def _describe_object(name: str, choice: object) -> str:
    """Text of an object, which must be the same in every process: a history is read by it.

    It is the name of a function or class, else its `repr`, unless that has an address in memory.
    """
    text = getattr(choice, "__qualname__", None) or repr(choice)
    if ADDRESS_TEXT in text:
        raise InvalidSpaceError(
            f"hyperparameter {name!r}: the choice {text} needs a `__repr__` that describes it, as "
            "it is stored as text"
        )
    return str(text)


def _convert_scipy(name: str, distribution: Any) -> object:
    """Convert a frozen distribution of SciPy to a range."""
    # A distribution with fixed parameters has its family as `dist`; other objects have none.
    family = getattr(distribution, "dist", None)
    kind = getattr(family, "name", type(distribution).__name__)
    if kind == "uniform":
        return tuple(map(float, distribution.support()))
    if kind in ("loguniform", "reciprocal"):  # two names of one distribution
        return (*map(float, distribution.support()), LOG)
    if kind == "randint":
        return tuple(map(int, distribution.support()))  # both inclusive
    raise InvalidSpaceError(
        f"hyperparameter {name!r}: of SciPy's distributions only uniform, loguniform and randint "
        f"can be read, but got {kind}; give a range, such as (0.1, 10.0, {LOG!r})"
    )


def _convert_skopt(name: str, dimension: Any) -> object:
    """Convert a dimension of scikit-optimize to a range or choices."""
    kind = type(dimension).__name__
    if kind == "Categorical":
        return list(dimension.categories)
    if kind in ("Real", "Integer"):
        scale = (LOG,) if dimension.prior == "log-uniform" else ()
        return (dimension.low, dimension.high, *scale)
    raise InvalidSpaceError(
        f"hyperparameter {name!r}: of scikit-optimize's dimensions only Real, Integer and "
        f"Categorical can be read, but got {kind}"
    )
