"""Configurations built one hyperparameter at a time, parents before children."""

import math
from collections.abc import Callable

from hpobench_ordered._typing import Config, Value
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.conditions import parents
from hpobench_ordered.space.parameters import Parameter


def define_by_run(space: SearchSpace, choose: Callable[[Parameter], Value]) -> Config:
    """Build a configuration by choosing the values of its active hyperparameters alone.

    Args:
        space: The search space.
        choose: Chooses a value; called for every hyperparameter that is active given the values
            chosen before, in an order in which parents come before their children.

    Returns:
        The active hyperparameters, in the order of the space, and the constants.

    Raises:
        InvalidConfigError: A chosen value does not fit.
    """
    conditions = space.conditions
    coded = [math.nan] * space.dimension
    chosen: Config = {}
    for j in _parents_first(space):
        parameter = space.parameters[j]
        condition = conditions.get(parameter.name)
        if condition is None or condition.holds_for(coded):
            value = choose(parameter)
            coded[j] = parameter.code(value)
            chosen[parameter.name] = value
    return {name: chosen[name] for name in space.names if name in chosen} | space.constants


def _parents_first(space: SearchSpace) -> list[int]:
    """Columns of the hyperparameters, by the length of the longest chain of conditions."""
    conditions = space.conditions

    def depth(j: int) -> int:
        condition = conditions.get(space.names[j])
        return 0 if condition is None else 1 + max(map(depth, parents(condition)))

    return sorted(range(space.dimension), key=depth)
