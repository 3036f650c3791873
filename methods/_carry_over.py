"""Conversion of configurations from another search space to the current one.

Stoll et al. (2020): the strategy best-first begins with the best old configurations.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.differences import recoded


def convert_history(
    history: Sequence[Evaluations], space: SearchSpace, rng: np.random.Generator
) -> list[Evaluations]:
    """Code every task's evaluations by the current search space.

    Hyperparameters that both spaces tune keep their values, or get the nearest allowed number. All
    others, and removed choices, are drawn uniformly from the new space. A hyperparameter that was a
    constant before counts as new. The losses remain those measured on the old space.

    Args:
        history: Evaluations, oldest task first.
        space: The current search space.
        rng: Draws new values; not used for evaluations that are on this space already.

    Returns:
        The same evaluations in the same order, on the current search space.
    """
    return [
        task
        if task.is_on(space)
        else replace(task, values=_carried(task.values, task.space, space, rng), space=space)
        for task in history
    ]


def _carried(
    values: FloatArray, old: SearchSpace, new: SearchSpace, rng: np.random.Generator
) -> FloatArray:
    """Convert values (n, d_old) of the old space to values of the new one, (n, d)."""
    drawn = rng.random((len(values), new.dimension))
    carried = np.empty_like(drawn)
    for j, parameter in enumerate(new.parameters):
        same = np.full(len(values), np.nan)
        if parameter.name in old.names:
            before, same = old[parameter.name], values[:, old.names.index(parameter.name)]
            if before.choices or parameter.choices:
                same = recoded(same, before, parameter)
            else:
                nearest = np.clip(same, parameter.lower, parameter.upper)
                same = np.rint(nearest) if parameter.is_discrete else nearest
        carried[:, j] = np.where(np.isnan(same), parameter.decode(drawn[:, j]), same)
    carried[~new.active(carried)] = np.nan
    return carried
