"""Arrays of runs: from frames, the best trial so far, and independent samples.

Notation:
    A   number of methods
    S   number of seeds
    T   number of tasks
    M   number of trials per task
    n   number of samples: S or the number of tasks that count

A run that was not finished is NaN on all tasks; a quantity that a task does not have is NaN in all
runs of that task.
"""

import math
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.errors import ExperimentError

if TYPE_CHECKING:
    import pandas as pd


class Resampling(Enum):
    """What is resampled."""

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
) -> dict[str, FloatArray]:
    """Arrange columns of results on one benchmark as arrays (A, S, T, M), ascending."""
    import pandas as pd

    # Positions instead of a MultiIndex, which is slow for millions of trials.
    levels, places = [], []
    for key in ("method", "seed", "task", "trial"):
        codes, names = pd.factorize(results[key])
        names = pd.Index(list(names))
        levels.append(pd.Index(methods) if key == "method" else names.sort_values())
        places.append(levels[-1].get_indexer(names)[codes])
    shape = tuple(map(len, levels))
    chosen = places[0] >= 0  # other methods are left out
    positions = np.ravel_multi_index([place[chosen] for place in places], shape)
    counts = np.bincount(positions, minlength=math.prod(shape)).reshape(shape)
    _check_complete(counts, levels, allow_missing_runs=allow_missing_runs)
    arrays = {name: np.full(math.prod(shape), np.nan) for name in columns}
    for name, array in arrays.items():
        array[positions] = results[name].to_numpy(dtype=np.float64)[chosen]
    return {name: array.reshape(shape) for name, array in arrays.items()}


def _check_complete(
    counts: IntArray, levels: "Sequence[pd.Index[Any]]", *, allow_missing_runs: bool
) -> None:
    """Check that every trial occurs once; `counts` are numbers of rows, (A, S, T, M)."""
    if (counts > 1).any():
        raise ExperimentError("results of several benchmarks or protocols cannot be joined")
    lacks = counts == 0
    if allow_missing_runs:
        lacks &= ~lacks.all(axis=(2, 3), keepdims=True)
    if lacks.any():
        method, seed, task, trial = (
            level[place] for level, place in zip(levels, np.argwhere(lacks)[0], strict=True)
        )
        raise ExperimentError(
            f"results are incomplete: {lacks.sum()} trials are missing, such as {method}, "
            f"seed {seed}, task {task}, trial {trial}"
        )


def incumbents(losses: FloatArray) -> FloatArray:
    """Best loss so far along the last axis; shape as given."""
    return np.minimum.accumulate(losses, axis=-1)


def at_incumbents(quantity: FloatArray, losses: FloatArray) -> FloatArray:
    """A quantity, such as the regret, of the best trial so far; of equal losses, the first."""
    improves = np.ones(losses.shape, dtype=np.bool_)
    improves[..., 1:] = losses[..., 1:] < incumbents(losses)[..., :-1]
    places = np.where(improves, np.arange(losses.shape[-1]), 0)
    return np.take_along_axis(quantity, np.maximum.accumulate(places, axis=-1), axis=-1)


def finished_runs(values: FloatArray) -> BoolArray:
    """Whether each run has any value, shape (A, S), of a quantity of shape (A, S, T, ...)."""
    return np.asarray(~np.isnan(values).all(axis=tuple(range(2, values.ndim))))


def defined_tasks(values: FloatArray) -> BoolArray:
    """Whether each task has a quantity (A, S, T, ...) in every finished run, (T,)."""
    lacks = np.isnan(values)
    if not lacks.any():
        return np.ones(values.shape[2], dtype=np.bool_)
    finished = finished_runs(values)
    lacks = np.asarray(lacks.any(axis=tuple(range(3, values.ndim))))
    return np.asarray(~(lacks & finished[:, :, None]).any(axis=(0, 1)) & finished.any())


def mean_over_seeds(values: FloatArray, *, axis: int = 1) -> FloatArray:
    """Mean over the finished runs along the axis of seeds; NaN if no run is finished."""
    lacks = np.isnan(values)
    if lacks.size and not lacks.any():
        return np.asarray(values.mean(axis=axis))
    counts = (~lacks).sum(axis=axis)
    total = np.where(lacks, 0.0, values).sum(axis=axis)
    return np.asarray(total / np.where(counts > 0, counts, np.nan))


def independent_samples(
    values: FloatArray, resampling: Resampling, *, first_task: int = 0
) -> FloatArray:
    """Independent samples, (n, A, ...), of a quantity of shape (A, S, T, ...).

    Tasks on which the quantity is NaN in a finished run are left out; if none is left, the samples
    are NaN (seeds) or empty (tasks). Seeds that a method has not finished are NaN, and its mean on
    a task is over the seeds that it has finished. `first_task` 1 leaves out the task without
    history.
    """
    counted = values[:, :, first_task:]
    chosen = counted[:, :, defined_tasks(counted)]
    if resampling is Resampling.TASKS:
        return np.moveaxis(mean_over_seeds(chosen), 1, 0)
    if not chosen.shape[2]:
        return np.full((values.shape[1], values.shape[0], *values.shape[3:]), np.nan)
    return np.moveaxis(chosen.mean(axis=2), 1, 0)


def two_standard_errors(samples: FloatArray) -> FloatArray:
    """Twice the standard error of the mean over axis 1 (seeds) without NaN; NaN of one."""
    counts = (~np.isnan(samples)).sum(axis=1)
    with np.errstate(invalid="ignore"):  # infinite samples have no standard error
        squares = (samples - np.expand_dims(mean_over_seeds(samples), 1)) ** 2
    total = np.where(np.isnan(samples), 0.0, squares).sum(axis=1)
    counts = np.where(counts > 1, counts, np.nan)
    return np.asarray(2 * np.sqrt(total / (counts - 1)) / np.sqrt(counts))
