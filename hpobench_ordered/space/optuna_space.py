"""Conversion between search spaces and Optuna's distributions."""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from hpobench_ordered._typing import Config, Value
from hpobench_ordered.errors import InvalidSpaceError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.conversion import make_space, name_choice
from hpobench_ordered.space.parameters import Kind, Parameter

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution


def suggest(trial: "Trial", parameter: Parameter) -> Value:
    """Let Optuna's trial suggest a native value of a hyperparameter.

    The trial uses the same distribution as `Parameter.to_optuna` makes.
    """
    name = parameter.name
    if parameter.choices:
        return cast("Value", trial.suggest_categorical(name, parameter.choices))
    if parameter.kind is Kind.INTEGER:
        lower = int(parameter.lower)
        upper = int(parameter.upper)
        return cast("int", trial.suggest_int(name, lower, upper, log=parameter.log))
    number = trial.suggest_float(name, parameter.lower, parameter.upper, log=parameter.log)
    return cast("float", number)


def build_config(space: SearchSpace, choose: Callable[[Parameter], Value]) -> Config:
    """Build a configuration by choosing a value for each active hyperparameter.

    Parents are chosen before their children, whose conditions compare the parents' values.

    Args:
        space: The search space.
        choose: Chooses the native value of a hyperparameter.

    Returns:
        The active hyperparameters, in the order of the space, and the constants.
    """
    codes = [math.nan] * space.dimension  # of the values chosen so far; NaN where inactive
    chosen: Config = {}
    for column, condition in space.ordered_conditions.items():
        parameter = space.parameters[column]
        is_active = condition is None or condition.holds_for(codes)
        if is_active:
            value = choose(parameter)
            codes[column] = parameter.code(value)
            chosen[parameter.name] = value

    in_order_of_space = {name: chosen[name] for name in space.names if name in chosen}
    return in_order_of_space | space.constants


def suggest_config(trial: "Trial", space: SearchSpace) -> Config:
    """Let Optuna's trial suggest a configuration: its active hyperparameters, and constants.

    Args:
        trial: The trial of a study, as Optuna passes it to an objective.
        space: The search space.

    Examples:
        >>> import optuna
        >>> import hpobench_ordered as hbo
        >>> from hpobench_ordered.tuning import suggest_config
        >>> space = hbo.load("openml-svm").space
        >>> trial = optuna.trial.FixedTrial({"kernel": "linear", "cost": 1.0, "degree": 3})
        >>> suggest_config(trial, space)  # the linear kernel has no degree
        {'kernel': 'linear', 'cost': 1.0}
    """
    return build_config(space, lambda parameter: suggest(trial, parameter))


def convert_distributions(distributions: "Mapping[str, BaseDistribution]") -> SearchSpace:
    """Convert Optuna's distributions to a search space.

    Distributions with a step become ordinals, those of a single value constants.
    """
    parameters: dict[str, Parameter] = {}
    for name, distribution in distributions.items():
        parameters[name] = convert_distribution(name, distribution)
    return make_space(parameters)


def get_only_value(parameter: Parameter) -> Value:
    """Return the value of a hyperparameter that has only one value."""
    return parameter.value(parameter.lower)


def convert_distribution(name: str, distribution: "BaseDistribution") -> Parameter:
    """Convert Optuna's distribution to a hyperparameter.

    A range of numbers with steps becomes an ordinal, and a range of one number a single choice.

    Raises:
        InvalidSpaceError: The distribution is neither categorical nor of numbers.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(distribution, CategoricalDistribution):
        choices = [name_choice(name, choice) for choice in distribution.choices]
        return Parameter.choice(name, tuple(choices))
    if isinstance(distribution, FloatDistribution | IntDistribution):
        return _convert_numbers(name, distribution)
    raise InvalidSpaceError(f"{name}: {type(distribution).__name__} is not supported")


def merge_distributions(
    name: str, first: "BaseDistribution", second: "BaseDistribution"
) -> "BaseDistribution":
    """Merge two ranges of numbers to the smallest range that contains both.

    The merged range has steps only if both ranges have the same steps.

    Args:
        name: Name of the hyperparameter, for the message.
        first: A range.
        second: Another range.

    Raises:
        InvalidSpaceError: One is not of numbers, or they differ in their scale or type.
    """
    from optuna.distributions import FloatDistribution, IntDistribution

    error = InvalidSpaceError(f"{name!r} was suggested from {first} and from {second}")
    types_of_numbers = FloatDistribution | IntDistribution
    if not isinstance(first, types_of_numbers) or not isinstance(second, types_of_numbers):
        raise error
    if type(first) is not type(second) or first.log != second.log:
        raise error

    make_range = type(first)
    low = min(first.low, second.low)
    high = max(first.high, second.high)
    has_same_steps = first.step == second.step and first.low == second.low
    if has_same_steps:
        return make_range(low, high, log=first.log, step=first.step)
    return make_range(low, high, log=first.log)


def _has_steps(distribution: "FloatDistribution | IntDistribution") -> bool:
    """Whether a range allows only some of the floats, or of the integers, between its ends."""
    from optuna.distributions import IntDistribution

    # Optuna gives a range of all integers the step 1, and a range of all floats the step None.
    step_without_gaps = 1 if isinstance(distribution, IntDistribution) else None
    return bool(distribution.step != step_without_gaps)


def _convert_numbers(name: str, distribution: "FloatDistribution | IntDistribution") -> Parameter:
    """Convert Optuna's range of numbers to a hyperparameter.

    A range with steps becomes an ordinal, and a single number becomes a choice.
    """
    from optuna.distributions import IntDistribution

    low, high = distribution.low, distribution.high
    if low == high:
        return Parameter.choice(name, (low,))

    if not _has_steps(distribution):
        is_integer = isinstance(distribution, IntDistribution)
        return Parameter.number(name, low, high, log=distribution.log, integer=is_integer)

    step = cast("float", distribution.step)
    n_steps = round((high - low) / step)  # Optuna has moved the upper end to a step
    values = []
    for k in range(n_steps + 1):
        # Rounding may take the last value above the upper end.
        values.append(min(low + k * step, high))
    return Parameter.choice(name, tuple(values), ordered=True)
