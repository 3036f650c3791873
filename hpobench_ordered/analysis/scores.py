"""Scores of methods, and the normalised score of Hellan et al. (2023), section 5.3.

Notation:
    A   number of methods
    S   number of seeds (replications)
    T   number of tasks
    M   number of trials per task

    L[a, t, m]  mean over seeds of the best loss method a found on task t in its first m trials
    score = 100 (L[a, t, m] - L_best[t, M]) / (L_RS[t, M] - L_best[t, M])

where L_best is the best mean among the compared methods and L_RS random search's, both after all
M trials: 0 is the best method's final performance, 100 random search's; lower is better.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.samples import (
    Resampling,
    defined_tasks,
    finished_runs,
    mean_over_seeds,
    samples_of,
)
from hpobench_ordered.errors import ExperimentError

if TYPE_CHECKING:
    import pandas as pd

RANDOM_SEARCH = "random-search"


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of several methods on the tasks of one benchmark: normalised ones, regrets, ranks.

    Attributes:
        methods: Names of the methods, length A.
        values: Score of every seed, shape (A, S, T, M); NaN on tasks where there is none, and in
            runs that were not finished.
    """

    methods: tuple[str, ...]
    values: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Mean over the seeds that each method has, shape (A, T, M)."""
        return mean_over_seeds(self.values)

    @property
    def two_standard_errors(self) -> FloatArray:
        """Twice the standard error of the mean over seeds, shape (A, T, M)."""
        return two_standard_errors(self.values)

    def over_tasks(self, *, trial: int, first_task: int = 0) -> "TaskMean":
        """Mean over tasks after a trial.

        Args:
            trial: The trial, counted from 1.
            first_task: First task that counts, from 0; 1 leaves out the task without history.
        """
        values = self.values[..., trial - 1]
        per_seed = samples_of(values, Resampling.SEEDS, first_task=first_task).T
        return TaskMean(
            mean=mean_over_seeds(per_seed),
            two_standard_errors=two_standard_errors(per_seed),
            defined=int(defined_tasks(values[:, :, first_task:]).sum()),
            tasks=values.shape[2] - first_task,
        )


@dataclass(frozen=True, slots=True)
class TaskMean:
    """Mean score over tasks.

    Attributes:
        mean: Mean over tasks and seeds, shape (A,); NaN if the score is defined on no task.
        two_standard_errors: Twice its standard error over seeds, shape (A,).
        defined: Number of tasks on which the score is defined, and which the mean is over.
        tasks: Number of tasks.
    """

    mean: FloatArray
    two_standard_errors: FloatArray
    defined: int
    tasks: int


def two_standard_errors(samples: FloatArray) -> FloatArray:
    """Twice the standard error of the mean over axis 1 (seeds), of those that are not NaN.

    NaN with a single seed.
    """
    counts = (~np.isnan(samples)).sum(axis=1)
    with np.errstate(invalid="ignore"):  # infinite samples, which have no error
        squares = (samples - np.expand_dims(mean_over_seeds(samples), 1)) ** 2
    total = np.where(np.isnan(samples), 0.0, squares).sum(axis=1)
    counts = np.where(counts > 1, counts, np.nan)
    return np.asarray(2 * np.sqrt(total / (counts - 1)) / np.sqrt(counts))


def incumbents(losses: FloatArray) -> FloatArray:
    """Best loss so far along the last axis; shape as given."""
    return np.minimum.accumulate(losses, axis=-1)


def of_incumbents(quantity: FloatArray, losses: FloatArray) -> FloatArray:
    """A quantity of the best trial so far, such as its regret.

    Args:
        quantity: Of every trial, along the last axis.
        losses: Losses of the trials, shape as the quantity; of equal ones the first is the best.
    """
    improves = np.ones(losses.shape, dtype=np.bool_)
    improves[..., 1:] = losses[..., 1:] < incumbents(losses)[..., :-1]
    places = np.where(improves, np.arange(losses.shape[-1]), 0)
    return np.take_along_axis(quantity, np.maximum.accumulate(places, axis=-1), axis=-1)


def normalised_scores(
    losses: FloatArray, methods: Sequence[str], *, reference: str = RANDOM_SEARCH
) -> Scores:
    """Normalise the losses of several methods on the same tasks and seeds.

    Args:
        losses: Loss of every trial, shape (A, S, T, M); NaN in runs that were not finished.
        methods: Names of the methods, length A.
        reference: The method that scores 100 after all trials.

    Returns:
        Scores; NaN on tasks where the reference ends best of all methods, or so near to it that
        scores overflow.

    Raises:
        ExperimentError: The reference is not among the methods.
    """
    if reference not in methods:
        raise ExperimentError(
            f"the normalised score compares with {reference!r}, which is not among {list(methods)}"
        )
    best = incumbents(losses)
    final = mean_over_seeds(best[..., -1])
    lowest = final.min(axis=0)
    span = final[list(methods).index(reference)] - lowest
    span = np.where(span > 0, span, np.nan)
    with np.errstate(over="ignore"):
        values = 100 * (best - lowest[:, None]) / span[:, None]
    lacks = ~np.isfinite(values).all(axis=3) & finished_runs(losses)[:, :, None]
    values[:, :, lacks.any(axis=(0, 1))] = np.nan
    return Scores(methods=tuple(methods), values=values)


def loss_array(results: "pd.DataFrame", methods: Sequence[str]) -> FloatArray:
    """Arrange the losses on one benchmark as an array, shape (A, S, T, M); as `trial_arrays`."""
    return trial_arrays(results, methods, ["loss"])["loss"]


def trial_arrays(
    results: "pd.DataFrame",
    methods: Sequence[str],
    columns: Sequence[str],
    *,
    allow_missing_runs: bool = False,
) -> dict[str, FloatArray]:
    """Arrange the results on one benchmark as arrays.

    Args:
        results: One row a trial, as `Store.read` gives, of one benchmark, surrogate and protocol.
        methods: Names of the methods, in the order of the first axis; others are left out.
        columns: Names of columns of numbers, such as "loss".
        allow_missing_runs: Whether a method may lack some seeds, which are then NaN.

    Returns:
        By column an array, shape (A, S, T, M); seeds and tasks ascending.

    Raises:
        ExperimentError: The methods were not all run on the same seeds, tasks and trials.
    """
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
    if (counts > 1).any():
        raise ExperimentError("results of several benchmarks or protocols cannot be joined")
    lacks = counts == 0
    if allow_missing_runs:
        lacks &= ~lacks.all(axis=(2, 3), keepdims=True)
    missing = np.flatnonzero(lacks)
    if len(missing):
        first = np.unravel_index(missing[0], shape)
        method, seed, task, trial = (
            level[int(place)] for level, place in zip(levels, first, strict=True)
        )
        raise ExperimentError(
            f"results are incomplete: {len(missing)} trials are missing, such as {method}, "
            f"seed {seed}, task {task}, trial {trial}"
        )
    arrays = {}
    for column in columns:
        array = np.full(math.prod(shape), np.nan)
        array[positions] = results[column].to_numpy(dtype=np.float64)[chosen]
        arrays[column] = array.reshape(shape)
    return arrays
