"""Curves over trials as tidy frames: one row per number, with its labels.

`curves`, the measures over the trials; `attained`, the levels that shares of the runs attain.

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
from hpobench_ordered.errors import ExperimentError

if TYPE_CHECKING:
    import pandas as pd

CURVES = ("score", "regret", "rank", "value")  # default measures of curves

QUARTILES = (0.25, 0.5, 0.75)

Labels = dict[str, Sequence[Any]]
LABELS = ("protocol", "benchmark", "surrogate", "task", "method", "measure")


def curves(
    scores: Sequence[BenchmarkScores],
    *,
    measures: Sequence[str] = CURVES,
    over: Resampling = Resampling.SEEDS,
    tasks: bool = True,
) -> "pd.DataFrame":
    """Means of measures after every trial.

    Args:
        scores: Scores by benchmark.
        measures: Names of the measures; those that are defined nowhere are left out.
        over: What the intervals are over, see `leaderboard`.
        tasks: Whether to have the curves of every task as well, which have no intervals.

    Returns:
        Columns `protocol`, `benchmark` ("all" for all benchmarks together, as in `leaderboard`),
        `surrogate`, `task` ("" for the mean over the tasks that count), `method`, `measure`,
        `trial`, `mean`, and the ends of the 95 % interval, `low` and `high`, NaN where there are
        none: of single tasks, and in the objective's own units. All but numbers are categories.
        Measures in the objective's own units have no curve of all benchmarks.
    """
    import pandas as pd

    frames = []
    for items in group_by_protocol(scores).values():
        together = BenchmarkGroup.for_means(items)
        for measure in measures:
            if measure in MEASURES and together.methods:
                found = overall_intervals(together, measure, over)
                if found.samples:
                    ends = np.stack([found.mean, found.lower, found.upper])
                    labels: Labels = {"protocol": [together.protocol], "benchmark": [ALL]}
                    labels |= {"method": together.methods, "measure": [measure]}
                    frames.append(_frame(labels, ends))
        for item in items:
            frames += _of_benchmark(item, measures, over, tasks=tasks)
    joined = _joined(frames, [*LABELS, "trial", "mean", "low", "high"])
    return joined.astype({name: pd.CategoricalDtype(joined[name].unique()) for name in LABELS})


def attainment_curves(
    scores: Sequence[BenchmarkScores], *, fractions: Sequence[float] = QUARTILES
) -> "pd.DataFrame":
    """Normalised regret that fractions of the runs attain after every trial, all tasks together.

    Args:
        scores: Scores by benchmark.
        fractions: The fractions of the runs.

    Returns:
        Columns `protocol`, `benchmark`, `surrogate`, `method`, `trial`, `fraction` and `level`.
    """
    frames = []
    for item in scores:
        if not item.is_defined("regret"):
            continue
        values = item.measures["regret"].values[:, :, item.first_task :]
        values = values[:, :, defined_tasks(values)].reshape(len(item.methods), -1, item.last_trial)
        levels = [attained_levels(runs[~np.isnan(runs).any(axis=1)], fractions) for runs in values]
        labels = {**_names(item), "method": item.methods, "fraction": fractions}
        frames.append(
            cross_labels({**labels, "trial": range(1, item.last_trial + 1)}, level=levels)
        )
    return _joined(frames, [*LABELS[:3], "method", "trial", "fraction", "level"])


def attained_levels(values: FloatArray, fractions: Sequence[float] = QUARTILES) -> FloatArray:
    """Q, (H, M): levels that fractions in (0, 1] of the runs attain, from z of shape (n, M)."""
    beyond = [fraction for fraction in fractions if not 0 < fraction <= 1]
    if beyond:
        raise ExperimentError(f"fractions must be above 0 and at most 1, but got {beyond}")
    # 0.07 of 100 runs are 7, but 0.07 * 100 is slightly more.
    places = np.ceil(np.asarray(fractions) * len(values) - 1e-9).astype(np.int64) - 1
    return np.asarray(np.sort(values, axis=0)[places])


def _of_benchmark(
    item: BenchmarkScores, measures: Sequence[str], over: Resampling, *, tasks: bool
) -> Iterator["pd.DataFrame"]:
    intervals = benchmark_intervals(item, overs=[over])
    for measure in filter(item.is_defined, measures):
        labels = {**_names(item), "method": item.methods, "measure": [measure]}
        if measure in MEASURES:
            found = intervals[measure, over]
            yield _frame(labels, np.stack([found.mean, found.lower, found.upper]))
        else:
            values = item.measures[measure].values
            samples = independent_samples(values, Resampling.SEEDS, first_task=item.first_task)
            yield _frame(labels, mean_over_seeds(samples, axis=0)[None])
        if tasks:
            means = np.moveaxis(item.measures[measure].mean, 1, 0)  # (T, A, M)
            yield _frame({**labels, "task": item.task_names}, means[None])


def _names(item: BenchmarkScores) -> Labels:
    return {name: [getattr(item, name)] for name in LABELS[:3]}


def _frame(labels: Labels, ends: FloatArray) -> "pd.DataFrame":
    """Rows of means, with both ends of their intervals if known; `ends` is (3 or 1, ..., M)."""
    levels = {name: labels.get(name, [""]) for name in LABELS}
    mean, low, high = ends if len(ends) == 3 else (ends[0], np.nan, np.nan)
    columns = {"mean": mean, "low": low, "high": high}
    return cross_labels({**levels, "trial": range(1, ends.shape[-1] + 1)}, **columns)


def cross_labels(levels: Labels, **columns: Any) -> "pd.DataFrame":
    """All combinations of labels as rows, with columns of numbers."""
    import pandas as pd

    index = pd.MultiIndex.from_product(levels.values(), names=list(levels))
    numbers = {name: np.broadcast_to(np.ravel(v), len(index)) for name, v in columns.items()}
    return pd.DataFrame(numbers, index=index).reset_index()


def _joined(frames: list["pd.DataFrame"], columns: list[str]) -> "pd.DataFrame":
    import pandas as pd

    empty = pd.DataFrame(columns=columns)
    return pd.concat(frames, ignore_index=True)[columns] if frames else empty
