"""Curves over trials as tidy frames: one row per number, with its labels.

`curves`, the measures over the trials; `curves_over_seconds`, over simulated seconds; `attained`,
the levels that shares of the runs attain.

Notation:
    A   number of methods
    T   number of tasks
    M   number of trials
    n   number of runs of one method, on all tasks
    H   number of fractions of runs

    z[i, m]  normalised regret of run i after trial m
    F(h, m)  fraction of runs of which z[i, m] is at most h: the empirical attainment function
    Q(f, m)  lowest h with F(h, m) >= f: the level that a fraction f of the runs attains

Source of F: Grunert da Fonseca, Fonseca and Hall (2001), Inferential performance assessment of
stochastic optimisers and the attainment function, section 3, with the trial as first objective.
"""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup
from hpobench_ordered.analysis.leaderboard import (
    ALL,
    MEASURES,
    benchmark_intervals,
    overall_intervals,
)
from hpobench_ordered.analysis.samples import (
    Resampling,
    defined_tasks,
    independent_samples,
    mean_over_seeds,
)
from hpobench_ordered.analysis.scoring import BenchmarkScores, group_by_protocol
from hpobench_ordered.analysis.seconds import score_at_times
from hpobench_ordered.errors import ExperimentError

if TYPE_CHECKING:
    import pandas as pd

MEASURES_OF_CURVES = ("score", "regret", "rank", "value")

QUARTILES = (0.25, 0.5, 0.75)

Labels = dict[str, Sequence[Any]]
"""Values of each label, by its name."""
LABEL_COLUMNS = ("protocol", "benchmark", "surrogate", "task", "method", "measure")


def curves(
    scores: Sequence[BenchmarkScores],
    *,
    measures: Sequence[str] = MEASURES_OF_CURVES,
    tasks: bool = True,
) -> "pd.DataFrame":
    """Average measures after every trial.

    Args:
        scores: Scores by benchmark.
        measures: Names of the measures; those that are defined nowhere are left out.
        tasks: Whether to have the curves of every task as well, which have no intervals.

    Returns:
        Columns `protocol`, `benchmark` ("all" for all benchmarks together, as in `leaderboard`),
        `surrogate`, `task` ("" for the mean over the tasks that count), `method`, `measure`,
        `trial`, `mean`, and the ends of the 95 % interval over seeds, `low` and `high`, NaN where
        there are none: of single tasks, and in the objective's own units. All but numbers are
        categories. Measures in the objective's own units have no curve of all benchmarks.
    """
    import pandas as pd

    frames: list[pd.DataFrame] = []
    for items in group_by_protocol(scores).values():
        frames += _overall_curves(BenchmarkGroup.for_means(items), measures)
        for item in items:
            frames += _benchmark_curves(item, measures, tasks=tasks)
    joined = _concatenate(frames, [*LABEL_COLUMNS, "trial", "mean", "low", "high"])
    categories = {name: pd.CategoricalDtype(joined[name].unique()) for name in LABEL_COLUMNS}
    return joined.astype(categories)


def curves_over_seconds(
    scores: Sequence[BenchmarkScores], *, measures: Sequence[str] = ("rank", "regret")
) -> "pd.DataFrame":
    """Average measures over simulated seconds, on each benchmark where these are known.

    Returns:
        The columns of `curves`, in which `trial` is the number of the time, and `seconds`. There
        are no curves of single tasks, nor of all benchmarks, whose seconds are not comparable.
    """
    frames = []
    for item in scores:
        if item.costs is None:
            continue
        at_times, times = score_at_times(item)
        for frame in _benchmark_curves(at_times, measures, tasks=False):
            seconds = times[frame["trial"] - 1]
            frames.append(frame.assign(seconds=seconds))
    return _concatenate(frames, [*LABEL_COLUMNS, "trial", "seconds", "mean", "low", "high"])


def attainment_curves(
    scores: Sequence[BenchmarkScores], *, fractions: Sequence[float] = QUARTILES
) -> "pd.DataFrame":
    """Compute which regret fractions of the runs attain after every trial, all tasks together.

    Args:
        scores: Scores by benchmark.
        fractions: The fractions of the runs.

    Returns:
        Columns `protocol`, `benchmark`, `surrogate`, `method`, `trial`, `fraction` and `level`, the
        lowest regret that at least this fraction of the method's finished runs does not exceed.
        Benchmarks without regrets have no rows.
    """
    frames = []
    for item in scores:
        if not item.is_defined("regret"):
            continue
        regrets = item.measures["regret"].values[:, :, item.first_task :]
        regrets = regrets[:, :, defined_tasks(regrets)]
        # Seeds and tasks become one axis, that of runs: a run is here one seed on one task.
        regrets_of_runs = regrets.reshape(len(item.methods), -1, item.last_trial)

        levels = []  # of each method, (fractions, trials)
        for method_regrets in regrets_of_runs:
            is_finished = ~np.isnan(method_regrets).any(axis=1)
            levels.append(attained_levels(method_regrets[is_finished], fractions))

        labels = {**_labels_of_benchmark(item), "method": item.methods, "fraction": fractions}
        trials = range(1, item.last_trial + 1)
        frames.append(cross_labels({**labels, "trial": trials}, level=levels))
    columns = [
        "protocol",
        "benchmark",
        "surrogate",
        "method",
        "trial",
        "fraction",
        "level",
    ]
    return _concatenate(frames, columns)


def attained_levels(values: FloatArray, fractions: Sequence[float] = QUARTILES) -> FloatArray:
    """Find the levels that fractions of the runs attain after every trial, (fractions, trials).

    The level of a fraction is the lowest value that at least this fraction of the runs does not
    exceed; lower is better.

    Args:
        values: Values of every run after every trial, such as regrets, (runs, trials).
        fractions: Fractions of the runs, above 0 and at most 1.

    Raises:
        ExperimentError: A fraction is out of this range.
    """
    out_of_range = [fraction for fraction in fractions if not 0 < fraction <= 1]
    if out_of_range:
        raise ExperimentError(f"fractions must be above 0 and at most 1, but got {out_of_range}")

    # Subtracting 1e-9 is for rounding errors: 0.07 of 100 runs are 7, but 0.07 * 100 is above 7.
    n_attaining = np.ceil(np.asarray(fractions) * len(values) - 1e-9).astype(np.int64)
    sorted_values = np.sort(values, axis=0)  # the best runs first, in each trial by itself
    # Index of the worst run that each fraction includes, among the sorted runs.
    index_of_worst = n_attaining - 1
    return np.asarray(sorted_values[index_of_worst])


def _overall_curves(group: BenchmarkGroup, measures: Sequence[str]) -> Iterator["pd.DataFrame"]:
    """Make the curves over all benchmarks of a group: a frame for each measure.

    Measures that have no mean over benchmarks, or that no benchmark has, are left out. There are no
    curves if no method is compared on all benchmarks.
    """
    if not group.methods:
        return
    for measure in measures:
        # `MEASURES` are on the same scale on all benchmarks. Other measures are in the units of
        # each benchmark's objective, which cannot be averaged.
        if measure not in MEASURES:
            continue
        intervals = overall_intervals(group, measure, Resampling.SEEDS)
        is_undefined_everywhere = intervals.samples == 0
        if is_undefined_everywhere:
            continue
        labels: Labels = {
            "protocol": [group.protocol],
            "benchmark": [ALL],
            "method": group.methods,
            "measure": [measure],
        }
        yield _curve_rows(labels, intervals.mean, intervals.lower, intervals.upper)


def _benchmark_curves(
    item: BenchmarkScores, measures: Sequence[str], *, tasks: bool
) -> Iterator["pd.DataFrame"]:
    """Make the curves of one benchmark: one or two frames for each measure.

    The first frame has means over the tasks that count, with intervals for `MEASURES`. The second,
    only made if `tasks`, has the curves of each task, without intervals.
    """
    all_intervals = benchmark_intervals(item, intervals_over=[Resampling.SEEDS])
    for measure in filter(item.is_defined, measures):
        labels = {**_labels_of_benchmark(item), "method": item.methods, "measure": [measure]}
        scores = item.measures[measure]
        if measure in MEASURES:
            intervals = all_intervals[measure, Resampling.SEEDS]
            yield _curve_rows(labels, intervals.mean, intervals.lower, intervals.upper)
        else:  # only measures of the leaderboard (`MEASURES`) have intervals
            samples = independent_samples(
                scores.values, Resampling.SEEDS, first_task=item.first_task
            )
            yield _curve_rows(labels, mean_over_seeds(samples, axis=0))

        if tasks:
            task_means = np.moveaxis(scores.mean, 1, 0)  # (tasks, methods, trials)
            yield _curve_rows({**labels, "task": item.task_names}, task_means)


def _labels_of_benchmark(item: BenchmarkScores) -> Labels:
    """Make the labels that all rows of a benchmark have, each with its value in a list."""
    return {
        "protocol": [item.protocol],
        "benchmark": [item.benchmark],
        "surrogate": [item.surrogate],
    }


def _curve_rows(
    labels: Labels,
    mean: FloatArray,
    low: FloatArray | float = math.nan,
    high: FloatArray | float = math.nan,
) -> "pd.DataFrame":
    """Make rows of the frame that `curves` returns: a mean after each trial, with its interval.

    Args:
        labels: Values of each label, by name. Labels with several values are in the order of the
            axes of `mean`. A label of `LABEL_COLUMNS` that is left out is "".
        mean: The means, (..., trials).
        low: Lower ends of their intervals, of the same shape; NaN if there are none.
        high: Upper ends.
    """
    all_labels = {name: labels.get(name, [""]) for name in LABEL_COLUMNS}
    trials = range(1, mean.shape[-1] + 1)
    return cross_labels({**all_labels, "trial": trials}, mean=mean, low=low, high=high)


def cross_labels(levels: Labels, **columns: Any) -> "pd.DataFrame":
    """Make a table with a row for every combination of labels, and columns of numbers.

    Args:
        levels: The possible values of each column of labels, by its name.
        columns: The columns of numbers, by name: an array with an axis for each label of several
            values, in the order of `levels`, or one number for all rows.
    """
    import pandas as pd

    index = pd.MultiIndex.from_product(levels.values(), names=list(levels))
    numbers = {}
    for name, array in columns.items():
        numbers[name] = np.broadcast_to(np.ravel(array), len(index))
    return pd.DataFrame(numbers, index=index).reset_index()


def _concatenate(frames: list["pd.DataFrame"], columns: list[str]) -> "pd.DataFrame":
    """Join frames into one with these columns; without frames it has no rows."""
    import pandas as pd

    if not frames:
        return pd.DataFrame(columns=columns)
    return pd.concat(frames, ignore_index=True)[columns]
