"""Tidy frames for charts: a row a number, with what it belongs to.

`curves`, the measures over the trials; `attained`, the levels that shares of the runs attain.

Notation:
    A   number of methods
    T   number of tasks
    M   number of trials
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.curves import QUARTILES, attained_levels
from hpobench_ordered.analysis.leaderboard import (
    ALL,
    MEASURES,
    benchmark_intervals,
    overall_intervals,
)
from hpobench_ordered.analysis.samples import (
    Resampling,
    defined_tasks,
    mean_over_seeds,
    samples_of,
)
from hpobench_ordered.analysis.scoring import BenchmarkScores, by_protocol
from hpobench_ordered.analysis.together import Together

if TYPE_CHECKING:
    import pandas as pd

CURVES = ("score", "regret", "rank", "value")
"""Measures of curves, unless others are named."""

LABELS = ("protocol", "benchmark", "surrogate", "task", "method", "measure")

Labels = tuple[str, str, str]


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
        Columns `protocol`, `benchmark` ("all" for all benchmarks together, each counting once),
        `surrogate`, `task` ("" for the mean over the tasks that count), `method`, `measure`,
        `trial`, `mean`, and the ends of the 95 % interval, `low` and `high`, NaN where there are
        none: of single tasks, and in the objective's own units. All but numbers are categories.
        Measures in the objective's own units have no curve of all benchmarks.
    """
    frames = []
    for items in by_protocol(scores).values():
        together = Together.of(items)
        for measure in measures:
            if measure in MEASURES and together.methods:
                found = overall_intervals(together, measure, over)
                if found.samples:
                    ends = np.stack([found.mean, found.lower, found.upper])
                    labels = (together.protocol, ALL, "")
                    frames.append(_frame(labels, [""], together.methods, measure, ends[:, None]))
        for item in items:
            frames += _of_benchmark(item, measures, over, tasks=tasks)
    return _joined(frames)


def attained(
    scores: Sequence[BenchmarkScores], *, fractions: Sequence[float] = QUARTILES
) -> "pd.DataFrame":
    """Normalised regret that fractions of the runs attain after every trial, all tasks together.

    Args:
        scores: Scores by benchmark.
        fractions: The fractions of the runs.

    Returns:
        Columns `protocol`, `benchmark`, `surrogate`, `method`, `trial`, `fraction` and `level`.
    """
    import pandas as pd

    frames = []
    for item in scores:
        levels = [attained_levels(runs[None, :, None], fractions)[:, 0, 0] for runs in _runs(item)]
        names = {
            "protocol": [item.protocol],
            "benchmark": [item.benchmark],
            "surrogate": [item.surrogate],
            "method": item.methods[: len(levels)],
            "fraction": fractions,
            "trial": range(1, item.last_trial + 1),
        }
        index = pd.MultiIndex.from_product(names.values(), names=list(names))
        frames.append(pd.DataFrame({"level": np.ravel(levels)}, index=index).reset_index())
    columns = ["protocol", "benchmark", "surrogate", "method", "trial", "fraction", "level"]
    if not frames:
        return pd.DataFrame(columns=columns)
    return pd.concat(frames, ignore_index=True)[columns]


def _runs(item: BenchmarkScores) -> Iterator[FloatArray]:
    """Of each method the normalised regret of its runs on tasks that count, shape (n, M).

    None at all where there are no regrets.
    """
    if not item.is_defined("regret"):
        return
    values = item.measures["regret"].values[:, :, item.first_task :]
    values = values[:, :, defined_tasks(values)]
    for one in values:
        runs = one.reshape(-1, one.shape[-1])
        yield runs[~np.isnan(runs).any(axis=1)]


def _of_benchmark(
    item: BenchmarkScores, measures: Sequence[str], over: Resampling, *, tasks: bool
) -> Iterator["pd.DataFrame"]:
    labels = (item.protocol, item.benchmark, item.surrogate)
    intervals = benchmark_intervals(item, overs=[over])
    for measure in filter(item.is_defined, measures):
        if measure in MEASURES:
            found = intervals[measure, over]
            ends = np.stack([found.mean, found.lower, found.upper])
        else:
            ends = _without_ends(_over_tasks(item, measure))
        yield _frame(labels, [""], item.methods, measure, ends[:, None])
        if tasks:
            ends = _without_ends(np.moveaxis(item.measures[measure].mean, 1, 0))
            yield _frame(labels, item.task_names, item.methods, measure, ends)


def _over_tasks(item: BenchmarkScores, measure: str) -> FloatArray:
    """Mean over seeds and the tasks that count, shape (A, M)."""
    values = item.measures[measure].values
    return mean_over_seeds(samples_of(values, Resampling.SEEDS, first_task=item.first_task), axis=0)


def _without_ends(mean: FloatArray) -> FloatArray:
    """Means, and ends that are not known, shape (3, ...)."""
    return np.stack([mean, *2 * [np.full(mean.shape, np.nan)]])


def _frame(
    labels: Labels, tasks: Sequence[str], methods: Sequence[str], measure: str, ends: FloatArray
) -> "pd.DataFrame":
    """Rows of means and ends, shape (3, T, A, M)."""
    import pandas as pd

    _, t, a, m = ends.shape
    size = t * a * m
    constants = dict(zip(("protocol", "benchmark", "surrogate"), labels, strict=True))
    columns = {
        name: pd.Categorical.from_codes(np.zeros(size, dtype=np.int8), [value])
        for name, value in (constants | {"measure": measure}).items()
    }
    columns["task"] = pd.Categorical.from_codes(np.repeat(np.arange(t), a * m), list(tasks))
    columns["method"] = pd.Categorical.from_codes(
        np.tile(np.repeat(np.arange(a), m), t), list(methods)
    )
    numbers = {"trial": np.tile(np.arange(1, m + 1), t * a)}
    numbers |= dict(zip(("mean", "low", "high"), ends.reshape(3, -1), strict=True))
    order = ["protocol", "benchmark", "surrogate", "task", "method", "measure", *numbers]
    return pd.DataFrame({**columns, **numbers})[order]


def _joined(frames: list["pd.DataFrame"]) -> "pd.DataFrame":
    """The frames as one, whose labels stay categories."""
    import pandas as pd
    from pandas.api.types import union_categoricals

    if not frames:
        return pd.DataFrame(columns=[*LABELS, "trial", "mean", "low", "high"])
    joined = {name: union_categoricals([frame[name] for frame in frames]) for name in LABELS}
    numbers = {
        name: np.concatenate([frame[name] for frame in frames])
        for name in ("trial", "mean", "low", "high")
    }
    return pd.DataFrame({**joined, **numbers})
