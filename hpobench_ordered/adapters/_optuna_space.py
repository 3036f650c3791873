"""Conversion between search spaces and Optuna's distributions."""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from hpobench_ordered._typing import Config, Value
from hpobench_ordered.errors import InvalidSpaceError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Kind, Parameter

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution


def distribution(parameter: Parameter) -> "BaseDistribution":
    """Optuna's distribution of a hyperparameter; that of an ordinal is categorical."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if parameter.choices:
        return CategoricalDistribution(parameter.choices)
    if parameter.kind is Kind.INTEGER:
        return IntDistribution(int(parameter.lower), int(parameter.upper), log=parameter.log)
    return FloatDistribution(parameter.lower, parameter.upper, log=parameter.log)


def suggest(trial: "Trial", parameter: Parameter) -> Value:
    """Let a trial suggest a value of a hyperparameter from its `distribution`."""
    name = parameter.name
    if parameter.choices:
        return cast("Value", trial.suggest_categorical(name, parameter.choices))
    if parameter.kind is Kind.INTEGER:
        lower, upper = int(parameter.lower), int(parameter.upper)
        number: float = trial.suggest_int(name, lower, upper, log=parameter.log)
    else:
        number = trial.suggest_float(name, parameter.lower, parameter.upper, log=parameter.log)
    return number


def define_by_run(space: SearchSpace, choose: Callable[[Parameter], Value]) -> Config:
    """Build a configuration: `choose` gives the active hyperparameters, parents before children."""
    coded = [math.nan] * space.dimension
    chosen: Config = {}
    for j, condition in space.ordered_conditions.items():
        parameter = space.parameters[j]
        if condition is None or condition.holds_for(coded):
            value = choose(parameter)
            coded[j] = parameter.code(value)
            chosen[parameter.name] = value
    return {name: chosen[name] for name in space.names if name in chosen} | space.constants


def suggest_config(trial: "Trial", space: SearchSpace) -> Config:
    """Let a trial suggest a configuration, only its active hyperparameters."""
    return define_by_run(space, lambda parameter: suggest(trial, parameter))


def space_of(distributions: "Mapping[str, BaseDistribution]") -> SearchSpace:
    """Convert Optuna's distributions: with a step to ordinals, of a single value to constants."""
    parameters = [parameter_of(name, dist) for name, dist in distributions.items()]
    return SearchSpace(
        [p for p in parameters if p.size > 1],
        constants={p.name: p.value(p.lower) for p in parameters if p.size == 1},
    )


def parameter_of(name: str, dist: "BaseDistribution") -> Parameter:
    """Convert a distribution to a hyperparameter; a single value becomes a choice."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(dist, CategoricalDistribution):
        return Parameter.choice(name, cast("tuple[Value, ...]", tuple(dist.choices)))
    if isinstance(dist, FloatDistribution | IntDistribution):
        return _number(name, dist)
    raise InvalidSpaceError(f"{name}: {type(dist).__name__} is not supported")


def joined(name: str, first: "BaseDistribution", other: "BaseDistribution") -> "BaseDistribution":
    """The smallest distribution that contains two; without steps they may differ in bounds."""
    from optuna.distributions import FloatDistribution, IntDistribution

    numbers = FloatDistribution | IntDistribution
    if isinstance(first, numbers) and isinstance(other, numbers) and type(first) is type(other):
        has_steps = any(d.step not in (None, 1) for d in (first, other))
        if first.log == other.log and not has_steps:
            low, high = min(first.low, other.low), max(first.high, other.high)
            return type(first)(low, high, log=first.log)
    raise InvalidSpaceError(f"{name!r} was suggested from {first} and from {other}")


def _number(name: str, dist: "FloatDistribution | IntDistribution") -> Parameter:
    from optuna.distributions import IntDistribution

    whole = isinstance(dist, IntDistribution)
    stepped = dist.step is not None and not (whole and dist.step == 1)
    if dist.low == dist.high:
        return Parameter.choice(name, (dist.low,))
    if not stepped:
        return Parameter.number(name, dist.low, dist.high, log=dist.log, integer=whole)
    step = cast("float", dist.step)
    count = round((dist.high - dist.low) / step)  # Optuna has adjusted the upper end to a step
    return Parameter.choice(
        name, tuple(min(dist.low + k * step, dist.high) for k in range(count + 1)), ordered=True
    )
