"""Conversion of configurations from another search space to the current one.

Stoll et al. (2020): the strategy best-first begins with the best old configurations.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.differences import has_other_steps, recode
from hpobench_ordered.space.parameters import Parameter


def convert_history(
    history: Sequence[Evaluations], space: SearchSpace, rng: np.random.Generator
) -> list[Evaluations]:
    """Convert every task's evaluations to the current search space.

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
    converted = []
    for task in history:
        if task.is_on(space):
            converted.append(task)
        else:
            values = _convert_configurations(task.values, task.space, space, rng)
            converted.append(replace(task, values=values, space=space))
    return converted


def _convert_configurations(
    values: FloatArray, old: SearchSpace, new: SearchSpace, rng: np.random.Generator
) -> FloatArray:
    """Convert configurations of the old search space to the new one.

    A hyperparameter that only the new space has is drawn uniformly; so is a value that the old
    configuration does not have, or whose choice was removed.

    Args:
        values: Coded values of the configurations, shape (n, hyperparameters of the old space).
        old: The old search space.
        new: The new search space.
        rng: Draws new values.

    Returns:
        Coded values, NaN where a hyperparameter is inactive, shape (n, hyperparameters of the new
        space).
    """
    # Drawn for all values, but used only where no old value can be converted.
    drawn_units = rng.random((len(values), new.dimension))
    converted = np.empty_like(drawn_units)
    for j, parameter in enumerate(new.parameters):
        drawn = parameter.decode(drawn_units[:, j])
        if parameter.name in old.names:
            old_values = values[:, old.names.index(parameter.name)]
            transferred = _convert_values(old_values, old[parameter.name], parameter)
            converted[:, j] = np.where(np.isnan(transferred), drawn, transferred)
        else:
            converted[:, j] = drawn
    is_active = new.active(converted)
    converted[~is_active] = np.nan
    return converted


def _convert_values(values: FloatArray, old: Parameter, new: Parameter) -> FloatArray:
    """Convert values of one hyperparameter from its old range or choices to its new ones.

    A number outside of the new range, or between its steps, becomes the nearest number that the new
    hyperparameter has. Choices are matched by name.

    Args:
        values: Coded values of the old hyperparameter, NaN where it is inactive, shape (n,).
        old: The hyperparameter in the old search space.
        new: The hyperparameter in the new search space.

    Returns:
        Coded values of the new hyperparameter, (n,); NaN where it was inactive, or where its choice
        was removed.
    """
    if has_other_steps(old, new):
        steps = np.array(new.choices, dtype=np.float64)
        numbers = np.clip(_to_numbers(values, old), steps[0], steps[-1])
        return np.array([new.find_nearest_step(number) for number in numbers.tolist()])

    old_has_names = bool(old.choices) and not old.has_steps  # choices that are no numbers
    if new.choices or old_has_names:
        return recode(values, old, new)

    nearest_allowed = np.clip(_to_numbers(values, old), new.lower, new.upper)
    if new.is_discrete:
        return np.rint(nearest_allowed)
    return nearest_allowed


def _to_numbers(values: FloatArray, parameter: Parameter) -> FloatArray:
    """Compute the numbers (n,) that coded values (n,) stand for; NaN, inactive, stays NaN.

    Numbers are coded as they are. A hyperparameter that has steps lists them as its `choices`, and
    its coded values are their indices.
    """
    if not parameter.choices:
        return values
    steps = np.array([*parameter.choices, np.nan], dtype=np.float64)
    index_of_nan = len(parameter.choices)  # the last one
    indices = np.where(np.isnan(values), index_of_nan, values).astype(np.int64)
    return steps[indices]
