"""Search spaces of estimators, from the descriptions that users of other packages know."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from hpobench_ordered._typing import Config, ConfigLike, Value
from hpobench_ordered.errors import InvalidSpaceError
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
from hpobench_ordered.space.optuna_space import convert_distribution

EstimatorSpaceLike: TypeAlias = "SpaceLike | Sequence[Mapping[str, object]]"

ALTERNATIVE = "alternative"
"""Name of the hyperparameter that chooses among several dicts, by their numbers from 1."""
TAIL = 0.005
"""Share of a distribution that is left out at each end of its range."""

Description: TypeAlias = Parameter | Value
"""A hyperparameter, or the value of a constant."""


@dataclass(frozen=True)
class Alternative:
    """One dict of those that describe a search space.

    Attributes:
        described: The hyperparameters and constants by the names of the estimator's parameters.
        objects: The objects that choices and constants stand for, by name and text.
    """

    described: Mapping[str, Description]
    objects: Mapping[str, Mapping[Value, object]]

    @property
    def constants(self) -> dict[str, Any]:
        """The estimator's parameters that have one value."""
        constants: dict[str, Any] = {}
        for name, item in self.described.items():
            if _is_tunable(item):
                continue
            value = item.value(item.lower) if isinstance(item, Parameter) else item
            constants[name] = self.objects[name].get(value, value)
        return constants

    @property
    def size(self) -> float:
        """Number of distinct configurations; inf if a hyperparameter is a float."""
        return math.prod(i.size for i in self.described.values() if isinstance(i, Parameter))


@dataclass(frozen=True)
class EstimatorSpace:
    """A search space, and what its configurations stand for.

    Choices of a `SearchSpace` are text, booleans, numbers and None. Any other object, such as a
    tuple or an estimator, is represented there by its text.

    Attributes:
        space: The search space.
        size: Number of distinct configurations; inf if a hyperparameter is a float.
        objects: The objects by hyperparameter and text; none for choices that stand for
            themselves.
        names: Name of the estimator's parameter by hyperparameter, where they differ.
        constants: Parameters that have one value in an alternative, by its number; empty if there
            is no choice of alternatives.
    """

    space: SearchSpace
    size: float
    objects: Mapping[str, Mapping[Value, object]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[Value, Mapping[str, Any]] = field(default_factory=dict)

    def params(self, config: ConfigLike) -> dict[str, Any]:
        """Parameters of the estimator (`set_params`) for a configuration."""
        params: dict[str, Any] = {}
        for name, value in config.items():
            object_of_text = self.objects.get(name, {})
            params[self.names.get(name, name)] = object_of_text.get(value, value)
        if self.constants:
            number = params.pop(ALTERNATIVE)
            params |= self.constants[number]
        return params

    def sample_alternatives(self, rng: np.random.Generator) -> list[Config]:
        """Draw a configuration of each alternative; a single one if there is no choice of them."""
        n_alternatives = max(len(self.constants), 1)
        unit = rng.random((n_alternatives, self.space.dimension))
        if self.constants:  # the choice of an alternative is the first hyperparameter
            unit[:, 0] = (np.arange(n_alternatives) + 0.5) / n_alternatives
        return self.space.configs(self.space.decode(self.space.canonical(unit)))


def read_space(description: EstimatorSpaceLike) -> EstimatorSpace:
    """Read the search space of an estimator.

    Args:
        description: A search space or ConfigSpace's; or a dict from names of parameters to what
            `to_search_space` and `read_parameter` read; or a list of such dicts.

    Raises:
        EvaluationsError: It is of another type.
        InvalidSpaceError: A parameter cannot be read; the message says what is allowed.
    """
    is_of_configspace = hasattr(description, "to_serialized_dict")  # a mapping, too
    if _is_list_of_dicts(description):
        return _combine_alternatives([_read_alternative(item) for item in description])

    if isinstance(description, Mapping) and not is_of_configspace:
        alternative = _read_alternative(description)
        space = make_space(alternative.described)
        return EstimatorSpace(space, space.size, alternative.objects)
    space = to_search_space(description)
    return EstimatorSpace(space, space.size)


def _is_list_of_dicts(description: object) -> TypeGuard[Sequence[Mapping[str, object]]]:
    """Whether this is a list or tuple of at least one dict, and of nothing else."""
    if not isinstance(description, list | tuple) or not description:
        return False
    return all(isinstance(item, Mapping) for item in description)


def _read_alternative(description: Mapping[str, object]) -> Alternative:
    """Read one of the dicts from names of parameters to their descriptions."""
    described: dict[str, Description] = {}
    objects: dict[str, Mapping[Value, object]] = {}
    for name, values in description.items():
        described[name], objects[name] = read_parameter(name, values)
    return Alternative(described, objects)


def _combine_alternatives(alternatives: Sequence[Alternative]) -> EstimatorSpace:
    """Combine several dicts to a search space with a choice among them.

    A hyperparameter is active if one of its dicts is chosen. Those that are described alike in
    several dicts are one; others of the same name get the number of their dict behind the name.
    """
    numbers = range(1, len(alternatives) + 1)
    parameters: dict[str, Parameter] = {}
    rows_of_parameter: dict[str, list[int]] = {}
    objects: dict[str, Mapping[Value, object]] = {}
    names: dict[str, str] = {}
    for row, alternative in enumerate(alternatives):
        for name, item in alternative.described.items():
            if not _is_tunable(item):
                continue
            is_described_alike = parameters.get(name, item) == item
            own_name = name if is_described_alike else f"{name} ({numbers[row]})"
            names[own_name] = name
            objects[own_name] = alternative.objects[name]
            parameters[own_name] = replace(item, name=own_name)
            rows_of_parameter.setdefault(own_name, []).append(row)

    conditions: dict[str, Condition] = {}
    for name, rows in rows_of_parameter.items():
        conditions[name] = Compare(0, Comparison.IN, tuple(map(float, rows)))
    choice_of_alternative = Parameter.choice(ALTERNATIVE, tuple(numbers))
    return EstimatorSpace(
        SearchSpace([choice_of_alternative, *parameters.values()], conditions=conditions),
        size=sum(alternative.size for alternative in alternatives),
        objects=objects,
        names=names,
        constants={n: a.constants for n, a in zip(numbers, alternatives, strict=True)},
    )


def _is_tunable(item: Description) -> TypeGuard[Parameter]:
    """Whether this is a hyperparameter with several values."""
    return isinstance(item, Parameter) and item.size > 1


def read_parameter(name: str, values: Any) -> tuple[Parameter | Value, Mapping[Value, object]]:
    """Read a hyperparameter or a constant, and the objects that its choices stand for.

    Args:
        name: Name of the estimator's parameter.
        values: What `read_description` reads; an array or range of choices; or a distribution of
            SciPy, scikit-optimize or Optuna. Choices may be any objects.
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

    objects: Mapping[Value, object] = {}
    if isinstance(values, Mapping) and list(values) == [CHOICES]:
        objects = _find_objects(name, values[CHOICES])
        values = {CHOICES: [name_choice(name, choice) for choice in values[CHOICES]]}
    elif isinstance(values, list | tuple) and is_choices(values):
        objects = _find_objects(name, values)
        values = [name_choice(name, choice) for choice in values]
    return read_description(name, values), objects


def _find_objects(name: str, choices: Sequence[object]) -> dict[Value, object]:
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
    low, median, high = map(float, distribution.ppf([TAIL, 0.5, 1 - TAIL]))
    scale = LINEAR
    if 0 < low < high:
        position = (median - low) / (high - low)  # of the median: 0.5 in the middle of the range
        position_on_log_scale = math.log(median / low) / math.log(high / low)
        if abs(position_on_log_scale - 0.5) < abs(position - 0.5):
            scale = LOG
    is_discrete = hasattr(distribution, "pmf")
    return (int(low), int(high), scale) if is_discrete else (low, high, scale)


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
