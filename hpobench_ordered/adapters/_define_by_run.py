"""Configurations built one hyperparameter at a time, parents before children."""

import math
from collections.abc import Callable

from hpobench_ordered._typing import Config, Value
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter


def define_by_run(space: SearchSpace, choose: Callable[[Parameter], Value]) -> Config:
    """Build a configuration: `choose` gives the active hyperparameters, parents before children.

    Constants are added; a value that does not fit raises an InvalidConfigError.
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
