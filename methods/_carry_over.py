"""Configurations of another search space, carried over to the one at hand.

Stoll et al. (2020): the strategy best-first begins with the best configurations, carried over.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.differences import recoded


def carried_over(
    history: Sequence[Evaluations], space: SearchSpace, rng: np.random.Generator
) -> list[Evaluations]:
    """Code every task's evaluations by the search space at hand.

    Hyperparameters that both spaces tune keep their values, numbers the nearest one that is still
    allowed; all others, and what was a choice that is gone, are drawn uniformly from the new space.
    A hyperparameter that was a constant before is new. The losses are those measured on the old
    space.

    Args:
        history: Evaluations, oldest task first.
        space: The search space at hand.
        rng: Draws what is new; not used for evaluations that are on this space already.

    Returns:
        As many evaluations of as many tasks, in the same order.
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
    """Code the values (n, d_old) of the old space by the new one, shape (n, d)."""
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
