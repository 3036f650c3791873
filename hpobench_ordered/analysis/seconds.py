"""Measures over simulated seconds: after the evaluations that a run has finished by a time.

Each evaluation begins when the one before it has ended, and a method's own time does not count.

Notation:
    A   number of methods
    S   number of seeds
    T   number of tasks
    M   number of trials per task
    K   number of times
"""

from dataclasses import replace

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.analysis.samples import incumbents, mean_over_seeds
from hpobench_ordered.analysis.scores import Scores, ranks_by_seed
from hpobench_ordered.analysis.scoring import BenchmarkScores
from hpobench_ordered.errors import ExperimentError

BOUNDED_MEASURES = ("score", "regret", "regret_over_trials")
"""Measures, beside the rank, that have a worst possible value."""
NUMBER_OF_TIMES = 40
MAX_RATIO_OF_TIMES = 1e4
"""The last time is at most so many times the first one."""


def score_at_times(item: BenchmarkScores) -> tuple[BenchmarkScores, FloatArray]:
    """Score the runs on a benchmark at certain times instead of after each trial.

    Before its first evaluation has ended, a run has an infinite loss and the worst possible score
    and regret. After its last one it stays at its best value.

    Returns:
        The scores, which have a time where they usually have a trial, with the measures that have
        a worst value; and the times in seconds, (K,).

    Raises:
        ExperimentError: The seconds of evaluations are unknown.
    """
    if item.costs is None:
        raise ExperimentError(f"the seconds of evaluations are unknown on {item.benchmark}")
    ends_of_trials = np.cumsum(item.costs, axis=-1)
    times = _choose_times(ends_of_trials, item)
    has_ended = ends_of_trials[..., None] <= times  # (A, S, T, M, K)
    n_ended = has_ended.sum(axis=-2)

    losses = _take_last_ended(incumbents(item.losses), n_ended, before_first=np.inf)
    measures: dict[str, Scores] = {}
    for name in BOUNDED_MEASURES:
        over_trials = item.measures[name]
        worst = over_trials.possible[1]
        values = _take_last_ended(over_trials.values, n_ended, before_first=worst)
        measures[name] = replace(over_trials, values=values)
    measures["rank"] = ranks_by_seed(
        losses, item.methods, is_finished=item.is_finished, first_task=item.first_task
    )
    return replace(item, losses=losses, measures=measures), times


def _choose_times(ends_of_trials: FloatArray, item: BenchmarkScores) -> FloatArray:
    """Choose times in seconds, evenly spaced on a logarithmic axis, (K,).

    The first is when any run has ended its first trial. The last is when the quickest method has
    ended its last one, on average over seeds, on the task where that takes longest.

    Args:
        ends_of_trials: When each trial has ended, (A, S, T, M).
        item: Says which runs are finished, and which tasks count.
    """
    ends = ends_of_trials[:, :, item.first_task :].copy()
    ends[~item.is_finished] = np.nan
    ends_of_methods = mean_over_seeds(ends[..., -1])  # (A, T)
    last = ends_of_methods.min(axis=0).max()
    first = max(np.nanmin(ends[..., 0]), last / MAX_RATIO_OF_TIMES)
    return np.geomspace(first, last, NUMBER_OF_TIMES)


def _take_last_ended(
    over_trials: FloatArray, n_ended: IntArray, *, before_first: float
) -> FloatArray:
    """Take a quantity after the last trial that has ended by each time, (A, S, T, K).

    Args:
        over_trials: The quantity after each trial, (A, S, T, M); NaN where it is undefined.
        n_ended: How many trials have ended by each time, (A, S, T, K).
        before_first: The quantity while none has ended; it stays NaN where it is undefined.
    """
    last_ended = np.maximum(n_ended - 1, 0)
    taken = np.take_along_axis(over_trials, last_ended, axis=-1)
    is_before_first = (n_ended == 0) & ~np.isnan(taken)
    return np.where(is_before_first, before_first, taken)
