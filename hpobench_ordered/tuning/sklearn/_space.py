"""Search spaces of estimators, from the descriptions that users of other packages know."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from hpobench_ordered._typing import Config, ConfigLike, Value
from hpobench_ordered.errors import EvaluationsError, InvalidSpaceError
from hpobench_ordered.space import Parameter, SearchSpace
from hpobench_ordered.space.conditions import Compare, Comparison, Condition
from hpobench_ordered.space.conversion import (
    CHOICES,
    LINEAR,
    LOG,
    SpaceLike,
    is_choices,
    is_value,
    make_space,
    name_choice,
    read_description,
    to_search_space,
)
from hpobench_ordered.space.optuna_space import convert_distribution, get_only_value

EstimatorSpaceLike: TypeAlias = "SpaceLike | Sequence[Mapping[str, object]]"
Description: TypeAlias = Parameter | Value
"""A hyperparameter, or the value of a constant."""
Objects: TypeAlias = Mapping[Value, object]
"""The objects that choices of a hyperparameter stand for, by the text of each."""
ObjectsByName: TypeAlias = Mapping[str, Objects]
Params: TypeAlias = dict[str, Any]
"""Parameters of an estimator."""

ALTERNATIVE = "alternative"
"""Name of the hyperparameter that chooses among several dicts, by their numbers from 1."""
TAIL = 0.005
"""Share of a distribution that is left out at each end of its range."""


@dataclass(frozen=True)
class EstimatorSpace:
    """A search space, and what its configurations stand for.

    Choices of a `SearchSpace` are text, booleans, numbers and None. Any other object, such as a
    tuple or an estimator, is represented there by its text.

    Attributes:
        space: The search space.
        size: Number of distinct configurations; inf if a hyperparameter is a float.
        objects: The objects by hyperparameter; none for choices that stand for themselves.
        names: Name of the estimator's parameter by hyperparameter, where they may differ.
        constants: The estimator's parameters that have one value in an alternative, by its number;
            empty if there are no alternatives.
    """

    space: SearchSpace
    size: float
    objects: ObjectsByName
    names: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[Value, Params] = field(default_factory=dict)

    def params(self, config: ConfigLike) -> Params:
        """Parameters of the estimator (`set_params`) for a configuration."""
        params: Params = {}
        for name, value in config.items():
            object_of_text = self.objects.get(name, {})
            name_of_estimator = self.names.get(name, name)
            params[name_of_estimator] = object_of_text.get(value, value)
        if self.constants:
            number = params.pop(ALTERNATIVE)
            params |= self.constants[number]
        return params

    def sample_alternatives(self, rng: np.random.Generator) -> list[Config]:
        """Draw a configuration of each alternative; a single one if there are no alternatives."""
        n_alternatives = max(len(self.constants), 1)
        unit = rng.random((n_alternatives, self.space.dimension))
        if self.constants:
            # The choice of an alternative is the first hyperparameter.
            middles_of_bins = (np.arange(n_alternatives) + 0.5) / n_alternatives
            unit[:, 0] = middles_of_bins
        values = self.space.decode(self.space.canonical(unit))
        return self.space.configs(values)


@dataclass(frozen=True)
class Alternative:
    """One of several dicts that describe a search space together.

    Attributes:
        number: Its number, from 1.
        parameters: The hyperparameters by the names of the estimator's parameters.
        constants: The estimator's parameters that have one value.
        objects: The objects by the names of the estimator's parameters.
    """

    number: int
    parameters: Mapping[str, Parameter]
    constants: Params
    objects: ObjectsByName

    @property
    def size(self) -> float:
        """Number of distinct configurations; inf if a hyperparameter is a float."""
        size = 1.0
        for parameter in self.parameters.values():
            size *= parameter.size
        return size


@dataclass(frozen=True)
class SharedParameter:
    """A hyperparameter of one or several alternatives.

    Attributes:
        parameter: The hyperparameter, with its name in the search space.
        name_of_estimator: Name of the estimator's parameter.
        objects: The objects that its choices stand for.
        numbers: Numbers of the alternatives that have it.
    """

    parameter: Parameter
    name_of_estimator: str
    objects: Objects
    numbers: list[int] = field(default_factory=list)

    @property
    def condition(self) -> Condition:
        """The condition that one of its alternatives is chosen."""
        column_of_choice = 0
        codes = tuple(number - 1.0 for number in self.numbers)
        return Compare(column_of_choice, Comparison.IN, codes)


def read_space(description: EstimatorSpaceLike) -> EstimatorSpace:
    """Read the search space of an estimator.

    Args:
        description: A search space or ConfigSpace's; or a dict from names of parameters to what
            `to_search_space` and `read_parameter` read; or a list of such dicts.

    Raises:
        EvaluationsError: It is of another type.
        InvalidSpaceError: A parameter cannot be read; the message says what is allowed.
    """
    if isinstance(description, list | tuple):
        alternatives: list[Alternative] = []
        for number, item in enumerate(description, start=1):
            alternatives.append(_read_alternative(number, item))
        return _combine_alternatives(alternatives)

    objects: ObjectsByName = {}
    is_of_configspace = hasattr(description, "to_serialized_dict")  # a mapping, too
    if isinstance(description, Mapping) and not is_of_configspace:
        described, objects = _read_dict(description)
        space = make_space(described)
    else:
        space = to_search_space(description)
    return EstimatorSpace(space, space.size, objects)


def _read_dict(
    description: Mapping[str, object],
) -> tuple[Mapping[str, Description], ObjectsByName]:
    """Read hyperparameters and constants, and the objects that they stand for, by name."""
    described: dict[str, Description] = {}
    objects: dict[str, Objects] = {}
    for name, values in description.items():
        described[name], objects[name] = read_parameter(name, values)
    return described, objects


def _read_alternative(number: int, description: Mapping[str, object]) -> Alternative:
    """Read one of several dicts, whose number is from 1.

    Raises:
        EvaluationsError: It is no dict.
    """
    if not isinstance(description, Mapping):
        raise EvaluationsError(
            "a list as search space must have dicts as its elements, but got "
            f"{type(description).__name__}"
        )
    described, objects = _read_dict(description)
    parameters: dict[str, Parameter] = {}
    constants: Params = {}
    for name, item in described.items():
        if isinstance(item, Parameter) and item.size > 1:
            parameters[name] = item
        else:
            value = get_only_value(item) if isinstance(item, Parameter) else item
            constants[name] = objects[name].get(value, value)
    return Alternative(number, parameters, constants, objects)


def _combine_alternatives(alternatives: Sequence[Alternative]) -> EstimatorSpace:
    """Combine several dicts to a search space with a choice among them.

    A hyperparameter is active if one of its dicts is chosen.
    """
    constants: dict[Value, Params] = {}
    size = 0.0
    for alternative in alternatives:
        constants[alternative.number] = alternative.constants
        size += alternative.size

    parameters = [Parameter.choice(ALTERNATIVE, tuple(constants))]
    conditions: dict[str, Condition] = {}
    objects: dict[str, Objects] = {}
    names: dict[str, str] = {}
    for name, shared in _share_parameters(alternatives).items():
        parameters.append(shared.parameter)
        conditions[name] = shared.condition
        objects[name] = shared.objects
        names[name] = shared.name_of_estimator

    return EstimatorSpace(
        space=SearchSpace(parameters, conditions=conditions),
        size=size,
        objects=objects,
        names=names,
        constants=constants,
    )


def _share_parameters(alternatives: Sequence[Alternative]) -> Mapping[str, SharedParameter]:
    """Find out which alternatives share a hyperparameter; by its name in the search space.

    A hyperparameter that several alternatives describe alike is one. If a later alternative
    describes it otherwise, that is another one, with the number of the alternative in its name.
    """
    shared: dict[str, SharedParameter] = {}
    for alternative in alternatives:
        for name, parameter in alternative.parameters.items():
            own_name = name
            if name in shared and shared[name].parameter != parameter:
                own_name = f"{name} ({alternative.number})"
            if own_name not in shared:
                shared[own_name] = SharedParameter(
                    parameter=replace(parameter, name=own_name),
                    name_of_estimator=name,
                    objects=alternative.objects[name],
                )
            shared[own_name].numbers.append(alternative.number)
    return shared


def read_parameter(name: str, values: Any) -> tuple[Description, Objects]:
    """Read a hyperparameter or a constant, and the objects that its choices stand for.

    Args:
        name: Name of the estimator's parameter.
        values: What `read_description` reads; an array or range of choices; or a distribution of
            SciPy, scikit-optimize or Optuna. Choices may be any objects. A list of two numbers is
            two choices, as in scikit-learn.
    """
    package = type(values).__module__.partition(".")[0]
    if package == "optuna":
        choices = getattr(values, "choices", ())  # of a categorical distribution
        return convert_distribution(name, values), _find_objects(name, choices)
    if package == "skopt":
        values = _convert_skopt(name, values)
    elif package == "scipy":
        values = _convert_scipy(name, values)
    elif isinstance(values, np.ndarray | range):
        values = {CHOICES: np.asarray(values).tolist()}
    elif isinstance(values, list | tuple) and is_choices(values):
        values = {CHOICES: values}

    objects: Objects = {}
    if isinstance(values, Mapping) and list(values) == [CHOICES]:
        objects = _find_objects(name, values[CHOICES])
        values = {CHOICES: [name_choice(name, choice) for choice in values[CHOICES]]}
    return read_description(name, values), objects


def _find_objects(name: str, choices: Sequence[object]) -> Objects:
    """The objects among choices, by the text that stands for each."""
    return {name_choice(name, choice): choice for choice in choices if not is_value(choice)}


def _convert_scipy(name: str, distribution: Any) -> object:
    """Convert a distribution of SciPy to a range."""
    # A distribution with fixed parameters has its family as `dist`; other objects have none.
    family = getattr(distribution, "dist", distribution)
    kind = getattr(family, "name", type(distribution).__name__)
    if kind == "uniform":
        return tuple(map(float, distribution.support()))
    if kind in ("loguniform", "reciprocal"):  # two names of one distribution
        return (*map(float, distribution.support()), LOG)
    if kind == "randint":
        return tuple(map(int, distribution.support()))  # both inclusive
    if hasattr(distribution, "ppf"):
        return _choose_range(distribution)
    raise InvalidSpaceError(
        f"hyperparameter {name!r}: of SciPy's distributions only those of one number with "
        f"quantiles (`ppf`) can be read, but got {kind}; give a range, such as (0.1, 10.0, {LOG!r})"
    )


def _choose_range(distribution: Any) -> tuple[float, float, str]:
    """Choose the range of a distribution: its middle 99 %, on a linear or a log scale.

    Methods search a range evenly on its scale. So the scale is the one whose middle is nearer to
    the median, half of the distribution being on each side of it: a log scale for an exponential
    distribution, for example.
    """
    low = float(distribution.ppf(TAIL))
    median = float(distribution.median())
    high = float(distribution.ppf(1 - TAIL))
    scale = LINEAR
    if 0 < low < high:
        middle = (low + high) / 2
        distance = abs(median - middle) / (high - low)
        middle_of_log_scale = math.sqrt(low * high)
        log_distance = abs(math.log(median / middle_of_log_scale)) / math.log(high / low)
        if log_distance < distance:
            scale = LOG
    is_discrete = hasattr(distribution, "pmf")
    if is_discrete:
        return int(low), int(high), scale
    return low, high, scale


def _convert_skopt(name: str, dimension: Any) -> object:
    """Convert a dimension of scikit-optimize to a range or choices."""
    kind = type(dimension).__name__
    if kind == "Categorical":
        return {CHOICES: list(dimension.categories)}
    if kind in ("Real", "Integer"):
        scale = LOG if dimension.prior == "log-uniform" else LINEAR
        return (dimension.low, dimension.high, scale)
    raise InvalidSpaceError(
        f"hyperparameter {name!r}: of scikit-optimize's dimensions only Real, Integer and "
        f"Categorical can be read, but got {kind}"
    )
