"""Tasks as objectives of other packages."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from hpobench_ordered._typing import ConfigLike
from hpobench_ordered.data.benchmark import Task
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.space.optuna_space import suggest_config

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace
    from optuna import Trial


def objective_function(task: Task) -> Callable[[ConfigLike], float]:
    """Make a function of a task; it can be pickled.

    Returns:
        A function of a configuration, a mapping, that returns the loss, to be minimised.
    """
    return partial(_loss, task)


def configspace_problem(task: Task) -> "tuple[ConfigurationSpace, Callable[..., float]]":
    """Make the problem of a task for optimisers on ConfigSpace, such as SMAC.

    Returns:
        The search space, and a target function of a configuration (ConfigSpace's or a mapping) and
        a seed, which has no effect, that returns the loss.
    """
    return task.space.to_configspace(), partial(_loss, task)


def optuna_objective(task: Task) -> "Callable[[Trial], float]":
    """Make an objective for an Optuna study of either direction.

    A study that minimises gets the loss, one that maximises gets the negative loss: the best trial
    is the best one in both. These are the objective's own units if the study's direction is the
    task's. A trial without a study, such as Optuna's `FixedTrial`, gets the loss.

    The trial suggests only the active hyperparameters, ordinals as categoricals: the study's
    `best_params` are a configuration.
    """
    return partial(_trial_value, task)


def _loss(task: Task, config: ConfigLike, seed: int = 0) -> float:
    """Evaluate a task; SMAC passes a seed, which has no effect, as tasks are deterministic."""
    return task.objective.loss(task.evaluate(config))


def _trial_value(task: Task, trial: "Trial") -> float:
    """Evaluate a task on the configuration that a trial suggests, for the study's direction."""
    loss = _loss(task, suggest_config(trial, task.space))
    study = getattr(trial, "study", None)  # a FixedTrial has none
    if study is None:
        return loss
    # The factor between losses and values is 1 or -1: negative losses are maximised.
    return Direction.of(study.direction.name.lower()).sign * loss
