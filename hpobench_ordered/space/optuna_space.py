"""Conversion between search spaces and Optuna's distributions."""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from hpobench_ordered._typing import Config, Value
from hpobench_ordered.errors import InvalidSpaceError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.conversion import make_space, text_of_choice
from hpobench_ordered.space.parameters import Kind, Parameter

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution


def make_distribution(parameter: Parameter) -> "BaseDistribution":
    """Convert a hyperparameter to Optuna's distribution; an ordinal becomes categorical."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if parameter.choices:
        return CategoricalDistribution(parameter.choices)
    if parameter.kind is Kind.INTEGER:
        return IntDistribution(int(parameter.lower), int(parameter.upper), log=parameter.log)
    return FloatDistribution(parameter.lower, parameter.upper, log=parameter.log)


def suggest(trial: "Trial", parameter: Parameter) -> Value:
    """Let a trial suggest a value of a hyperparameter, as from `make_distribution`."""
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
    """Build a configuration by choosing its active hyperparameters, parents before children.

    Args:
        space: The search space.
        choose: Chooses the value of a hyperparameter.

    Returns:
        The active hyperparameters, in the order of the space, and the constants.
    """
    codes = [math.nan] * space.dimension  # of the values chosen so far; NaN where inactive
    chosen: Config = {}
    for column, condition in space.ordered_conditions.items():  # parents before children
        parameter = space.parameters[column]
        is_active = condition is None or condition.holds_for(codes)
        if is_active:
            value = choose(parameter)
            codes[column] = parameter.code(value)
            chosen[parameter.name] = value

    in_order_of_space = {name: chosen[name] for name in space.names if name in chosen}
    return in_order_of_space | space.constants


def suggest_config(trial: "Trial", space: SearchSpace) -> Config:
    """Let a trial suggest a configuration, only its active hyperparameters."""
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
    """Get the value of a hyperparameter that has only one."""
    return parameter.value(parameter.lower)


def convert_distribution(name: str, distribution: "BaseDistribution") -> Parameter:
    """Convert a distribution to a hyperparameter; a single value becomes a choice.

    Raises:
        InvalidSpaceError: The distribution is neither categorical nor of numbers.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(distribution, CategoricalDistribution):
        choices = [text_of_choice(name, choice) for choice in distribution.choices]
        return Parameter.choice(name, tuple(choices))
    if isinstance(distribution, FloatDistribution | IntDistribution):
        return _convert_numbers(name, distribution)
    raise InvalidSpaceError(f"{name}: {type(distribution).__name__} is not supported")


def merge_distributions(
    name: str, first: "BaseDistribution", second: "BaseDistribution"
) -> "BaseDistribution":
    """Merge two ranges of numbers to the smallest range that contains both.

    It has no steps, unless both have the same.

    Raises:
        InvalidSpaceError: One is not of numbers, or they differ in their scale or type.
    """
    from optuna.distributions import FloatDistribution, IntDistribution

    error = InvalidSpaceError(f"{name!r} was suggested from {first} and from {second}")
    of_numbers = FloatDistribution | IntDistribution
    if not isinstance(first, of_numbers) or not isinstance(second, of_numbers):
        raise error
    if type(first) is not type(second) or first.log != second.log:
        raise error

    low = min(first.low, second.low)
    high = max(first.high, second.high)
    has_same_steps = first.step == second.step and first.low == second.low
    if not has_same_steps:
        return type(first)(low, high, log=first.log)
    return type(first)(low, high, log=first.log, step=first.step)


def _has_steps(distribution: "FloatDistribution | IntDistribution") -> bool:
    """Whether a range leaves out numbers, or integers, between its ends.

    Optuna gives a range without steps the step None if it is of floats, and 1 if it is of integers.
    """
    from optuna.distributions import IntDistribution

    step_of_whole_range = 1 if isinstance(distribution, IntDistribution) else None
    return bool(distribution.step != step_of_whole_range)


def _convert_numbers(name: str, distribution: "FloatDistribution | IntDistribution") -> Parameter:
    """Convert a range of numbers; one with steps becomes an ordinal."""
    from optuna.distributions import IntDistribution

    low, high = distribution.low, distribution.high
    if low == high:
        return Parameter.choice(name, (low,))

    if not _has_steps(distribution):
        is_integer = isinstance(distribution, IntDistribution)
        return Parameter.number(name, low, high, log=distribution.log, integer=is_integer)

    step = cast("float", distribution.step)
    number_of_steps = round((high - low) / step)  # Optuna has moved the upper end to a step
    # Rounding may take the last value above the upper end.
    values = [min(low + k * step, high) for k in range(number_of_steps + 1)]
    return Parameter.choice(name, tuple(values), ordered=True)
