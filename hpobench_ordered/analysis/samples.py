"""What counts as one sample: a seed or a task.

Notation:
    A   number of methods
    S   number of seeds
    T   number of tasks
    M   number of trials per task
    n   number of samples: S or the number of tasks that count

A run that was not finished is NaN on all tasks; a quantity that a task does not have is NaN in all
runs of that task.
"""

from enum import Enum

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray


class Resampling(Enum):
    """What would be drawn anew if an experiment were repeated.

    SEEDS: The tasks stay, the seeds are others: would another set of seeds give the same figure? A
        sample is one seed's mean over tasks, so that whatever a method carries from task to task
        stays within a sample.
    TASKS: The tasks are others: would other tasks like these give the same figure? A sample is one
        task's mean over seeds. Tasks are taken as independent; those of one ordered benchmark
        resemble their neighbours, and intervals over them alone are too narrow.
    """

    SEEDS = "seeds"
    TASKS = "tasks"


def finished_runs(values: FloatArray) -> BoolArray:
    """Whether each run has any value, shape (A, S), of a quantity of shape (A, S, T, ...)."""
    return np.asarray(~np.isnan(values).all(axis=tuple(range(2, values.ndim))))


def defined_tasks(values: FloatArray) -> BoolArray:
    """Whether each task has the quantity in every finished run, shape (T,).

    Args:
        values: Quantity of every run, shape (A, S, T, ...).
    """
    lacks = np.isnan(values)
    if not lacks.any():
        return np.ones(values.shape[2], dtype=np.bool_)
    finished = finished_runs(values)
    lacks = np.asarray(lacks.any(axis=tuple(range(3, values.ndim))))
    return np.asarray(~(lacks & finished[:, :, None]).any(axis=(0, 1)) & finished.any())


def mean_over_seeds(values: FloatArray, *, axis: int = 1) -> FloatArray:
    """Mean over the finished runs along the axis of seeds; NaN where there are none."""
    lacks = np.isnan(values)
    if not lacks.any():
        return np.asarray(values.mean(axis=axis))
    counts = (~lacks).sum(axis=axis)
    total = np.where(lacks, 0.0, values).sum(axis=axis)
    return np.asarray(total / np.where(counts > 0, counts, np.nan))


def samples_of(values: FloatArray, resampling: Resampling, *, first_task: int = 0) -> FloatArray:
    """Independent samples of a quantity.

    Args:
        values: Quantity of every run, shape (A, S, T, ...).
        resampling: What counts as a sample.
        first_task: First task that counts, from 0; 1 leaves out the task without history.

    Returns:
        The samples, shape (n, A, ...). Tasks on which the quantity is NaN in a finished run are
        left out; if none is left, there are S of NaN or no samples at all. Seeds that a method has
        not finished are NaN; its mean on a task is over the seeds that it has finished.
    """
    counted = values[:, :, first_task:]
    chosen = counted[:, :, defined_tasks(counted)]
    if resampling is Resampling.TASKS:
        return np.moveaxis(mean_over_seeds(chosen), 1, 0)
    if not chosen.shape[2]:
        return np.full((values.shape[1], values.shape[0], *values.shape[3:]), np.nan)
    return np.moveaxis(chosen.mean(axis=2), 1, 0)
