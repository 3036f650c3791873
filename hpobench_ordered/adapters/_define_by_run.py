"""Configurations built one hyperparameter at a time, parents before children."""

import math
from collections.abc import Callable

from hpobench_ordered._typing import Config, Value
from hpobench_ordered.space import SearchSpace
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
    coded = [math.nan] * space.dimension
    chosen: Config = {}
    for j, condition in space.ordered_conditions.items():
        parameter = space.parameters[j]
        if condition is None or condition.holds_for(coded):
            value = choose(parameter)
            coded[j] = parameter.code(value)
            chosen[parameter.name] = value
    return {name: chosen[name] for name in space.names if name in chosen} | space.constants
