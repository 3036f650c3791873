"""What counts as one sample: a seed or a task.

Notation:
    A   number of methods
    S   number of seeds
    T   number of tasks
    M   number of trials per task
    n   number of samples: S or the number of tasks that count
"""

from enum import Enum

import numpy as np

from hpobench_ordered._typing import FloatArray


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


def samples_of(values: FloatArray, resampling: Resampling, *, first_task: int = 0) -> FloatArray:
    """Independent samples of a quantity.

    Args:
        values: Quantity of every run, shape (A, S, T, ...).
        resampling: What counts as a sample.
        first_task: First task that counts, from 0; 1 leaves out the task without history.

    Returns:
        The samples, shape (n, A, ...). Tasks on which the quantity is NaN for any method, seed or
        trial are left out of all; without any left, there are S of NaN or none at all.
    """
    counted = values[:, :, first_task:]
    others = tuple(axis for axis in range(counted.ndim) if axis != 2)
    chosen = counted[:, :, ~np.isnan(counted).any(axis=others)]
    if resampling is Resampling.TASKS:
        return np.moveaxis(chosen.mean(axis=1), 1, 0)
    if not chosen.shape[2]:
        return np.full((values.shape[1], values.shape[0], *values.shape[3:]), np.nan)
    return np.moveaxis(chosen.mean(axis=2), 1, 0)
