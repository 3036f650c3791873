"""Arrays of runs: from frames, the best trial so far, and independent samples.

Notation:
    A   number of methods
    S   number of seeds
    T   number of tasks
    M   number of trials per task
    n   number of samples: S or the number of tasks that count

A loss is never NaN: that of a failed evaluation is infinite, and a mask tells which runs are
finished. Measures of runs that are not finished are NaN on all tasks; a measure that a task does
not have is NaN in all runs of that task.
"""

import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.errors import ExperimentError

if TYPE_CHECKING:
    import pandas as pd


class Resampling(Enum):
    """The samples that an interval is over, which the bootstrap resamples."""

    SEEDS = "seeds"
    """Seeds, by their means over tasks: would another set of seeds give the same figure?"""
    TASKS = "tasks"
    """Tasks, by their means over seeds: would other tasks like these give the same figure? Tasks of
    one ordered benchmark are not independent, and intervals over them alone are too narrow."""


def trial_arrays(
    results: "pd.DataFrame",
    methods: Sequence[str],
    columns: Sequence[str],
    *,
    allow_missing_runs: bool = False,
) -> tuple[dict[str, FloatArray], BoolArray]:
    """Arrange columns of results on one benchmark as arrays (methods, seeds, tasks, trials).

    Args:
        results: One row per trial, in any order.
        methods: The methods, in the order of the first axis; rows of others are left out. Seeds,
            tasks and trials are in ascending order.
        columns: The columns to arrange.
        allow_missing_runs: Whether all trials of a run may be missing.

    Returns:
        An array for each column; and which runs are finished, (methods, seeds). The columns are
        infinite in others.

    Raises:
        ExperimentError: A trial is missing or occurs twice.
    """
    import pandas as pd

    # Positions along each axis instead of a MultiIndex, which is slow for millions of trials.
    labels_of_axes: list[pd.Index[Any]] = []
    positions_along_axes = []
    for key in ("method", "seed", "task", "trial"):
        codes, uniques = pd.factorize(results[key])  # a row's name is uniques[code of the row]
        names = pd.Index(list(uniques))
        labels = pd.Index(methods) if key == "method" else names.sort_values()
        labels_of_axes.append(labels)
        position_of_code = labels.get_indexer(names)  # -1: not among the labels
        positions_along_axes.append(position_of_code[codes])

    shape = tuple(map(len, labels_of_axes))
    size = math.prod(shape)
    is_chosen = positions_along_axes[0] >= 0  # rows of the methods
    chosen_positions = [positions[is_chosen] for positions in positions_along_axes]
    flat_positions = np.ravel_multi_index(chosen_positions, shape)

    n_rows = np.bincount(flat_positions, minlength=size).reshape(shape)
    is_finished = np.asarray(n_rows.any(axis=(2, 3)))
    _check_complete(n_rows, labels_of_axes, allow_missing_runs=allow_missing_runs)

    arrays = {}
    for column in columns:
        flat = np.full(size, np.inf)
        flat[flat_positions] = results[column].to_numpy(dtype=np.float64)[is_chosen]
        arrays[column] = flat.reshape(shape)
    return arrays, is_finished


def _check_complete(
    n_rows: IntArray, labels_of_axes: "Sequence[pd.Index[Any]]", *, allow_missing_runs: bool
) -> None:
    """Raise an `ExperimentError` unless every trial has exactly one row of the results.

    Args:
        n_rows: Number of rows of each trial, (methods, seeds, tasks, trials).
        labels_of_axes: Methods, seeds, tasks and trials, for the message.
        allow_missing_runs: Whether all trials of a run may be missing.
    """
    # On one benchmark under one protocol, no trial occurs twice.
    if (n_rows > 1).any():
        raise ExperimentError("results of several benchmarks or protocols cannot be joined")

    is_missing = n_rows == 0
    if allow_missing_runs:  # trials of a run that is missing as a whole do not count as missing
        is_missing_run = is_missing.all(axis=(2, 3), keepdims=True)
        is_missing &= ~is_missing_run
    if not is_missing.any():
        return

    first_missing = np.argwhere(is_missing)[0]
    method, seed, task, trial = (
        labels[position] for labels, position in zip(labels_of_axes, first_missing, strict=True)
    )
    raise ExperimentError(
        f"results are incomplete: {is_missing.sum()} trials are missing, such as {method}, "
        f"seed {seed}, task {task}, trial {trial}"
    )


def incumbents(losses: FloatArray) -> FloatArray:
    """Find the lowest loss up to each trial, (..., trials)."""
    return np.minimum.accumulate(losses, axis=-1)


def at_incumbents(quantity: FloatArray, losses: FloatArray) -> FloatArray:
    """Take a quantity, such as the regret, from the best trial so far, (..., trials).

    Of trials with equal losses, the first is the best.

    Args:
        quantity: The quantity of every trial, (..., trials).
        losses: The loss of every trial, (..., trials).
    """
    is_improvement = np.ones(losses.shape, dtype=np.bool_)
    is_improvement[..., 1:] = losses[..., 1:] < incumbents(losses)[..., :-1]

    # The best trial so far is the latest one that improved on all before it.
    trials = np.arange(losses.shape[-1])
    improving_trials = np.where(is_improvement, trials, 0)
    best_trials = np.maximum.accumulate(improving_trials, axis=-1)
    return np.take_along_axis(quantity, best_trials, axis=-1)


def replace_failures(trials: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Give every failed evaluation the quantities of the worst evaluation that has not failed.

    The worst evaluation is the one of highest finite loss that any method met on the same task. A
    mean of losses is then finite, and failures never make it lower. Trials of unfinished runs look
    like failures, and are replaced, too.

    Args:
        trials: The "loss" of every trial and perhaps other quantities, (methods, seeds, tasks,
            trials) each.

    Returns:
        The quantities by name. They are NaN on tasks of which all evaluations failed.
    """
    has_failed = np.isinf(trials["loss"])
    if not has_failed.any():
        return dict(trials)

    replaced = {name: quantity.copy() for name, quantity in trials.items()}
    for task in range(has_failed.shape[2]):
        has_failed_on_task = has_failed[:, :, task]
        losses_on_task = np.where(has_failed_on_task, -np.inf, trials["loss"][:, :, task])
        worst = np.unravel_index(losses_on_task.argmax(), losses_on_task.shape)
        for name, quantity in trials.items():
            replacement = np.nan if has_failed_on_task.all() else quantity[:, :, task][worst]
            replaced[name][:, :, task][has_failed_on_task] = replacement
    return replaced


def finished_runs(values: FloatArray) -> BoolArray:
    """Whether each run is finished, (methods, seeds).

    A run that is not finished has NaN on all tasks.

    Args:
        values: A measure of every run, such as the regret, (methods, seeds, tasks, ...).
    """
    axes_within_run = tuple(range(2, values.ndim))
    return np.asarray(~np.isnan(values).all(axis=axes_within_run))


def defined_tasks(values: FloatArray) -> BoolArray:
    """Find the tasks on which a measure is defined, (tasks,).

    Runs that are not finished have NaN on all tasks, and are ignored. If any other run has NaN on a
    task, the measure is undefined there. If no run is finished, it is defined on no task.

    Args:
        values: The measure of every run, (methods, seeds, tasks, ...).
    """
    is_nan = np.isnan(values)
    if not is_nan.any():
        return np.ones(values.shape[2], dtype=np.bool_)

    is_unfinished = is_nan.all(axis=2, keepdims=True)  # (methods, seeds, 1, ...)
    is_undefined = is_nan & ~is_unfinished
    axes_but_tasks = tuple(axis for axis in range(values.ndim) if axis != 2)
    is_undefined_task = is_undefined.any(axis=axes_but_tasks)
    return np.asarray(~is_undefined_task & ~is_unfinished.all())


def mean_over_seeds(values: FloatArray, *, axis: int = 1) -> FloatArray:
    """Average values over seeds, leaving out NaN, which unfinished runs have.

    Args:
        values: The values, with seeds along one axis.
        axis: The axis of the seeds, which the result lacks.

    Returns:
        The means; NaN where all seeds are NaN.
    """
    is_nan = np.isnan(values)
    is_complete = is_nan.size > 0 and not is_nan.any()
    if is_complete:  # the usual case, which is faster
        return np.asarray(values.mean(axis=axis))

    total = np.where(is_nan, 0.0, values).sum(axis=axis)
    n_finished = (~is_nan).sum(axis=axis)
    divisor = np.where(n_finished > 0, n_finished, np.nan)
    return np.asarray(total / divisor)


def independent_samples(
    values: FloatArray, resampling: Resampling, *, first_task: int = 0
) -> FloatArray:
    """Make independent samples: means over tasks for each seed, or means over seeds for each task.

    Args:
        values: The quantity, (methods, seeds, tasks, ...). Tasks on which it is NaN in a finished
            run are left out.
        resampling: Whether seeds or tasks are the samples.
        first_task: First task that counts, from 0; 1 leaves out the task without history.

    Returns:
        Samples, (samples, methods, ...). A seed that a method has not finished is NaN. A method's
        mean on a task is over the seeds that it has finished. If no task is left, samples of seeds
        are NaN, and there are no samples of tasks.
    """
    counting = values[:, :, first_task:]
    defined = counting[:, :, defined_tasks(counting)]
    if resampling is Resampling.TASKS:
        task_means = mean_over_seeds(defined)  # (methods, tasks, ...)
        return np.moveaxis(task_means, 1, 0)

    n_methods, n_seeds, n_defined_tasks = defined.shape[:3]
    if n_defined_tasks == 0:
        return np.full((n_seeds, n_methods, *values.shape[3:]), np.nan)
    seed_means = defined.mean(axis=2)  # (methods, seeds, ...)
    return np.moveaxis(seed_means, 1, 0)


def two_standard_errors(samples: FloatArray) -> FloatArray:
    """Compute twice the standard error of the mean over seeds, which are along axis 1.

    The result lacks that axis. Seeds that are NaN are left out; the result is NaN where fewer than
    two seeds are left.
    """
    is_nan = np.isnan(samples)
    with np.errstate(invalid="ignore"):  # infinite samples have no standard error
        squares = (samples - np.expand_dims(mean_over_seeds(samples), 1)) ** 2
    sum_of_squares = np.where(is_nan, 0.0, squares).sum(axis=1)

    n_seeds = (~is_nan).sum(axis=1)
    n_seeds = np.where(n_seeds > 1, n_seeds, np.nan)  # one seed has no standard deviation
    standard_deviation = np.sqrt(sum_of_squares / (n_seeds - 1))
    return np.asarray(2 * standard_deviation / np.sqrt(n_seeds))
