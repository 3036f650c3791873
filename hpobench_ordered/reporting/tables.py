"""The tables of a report: for people, and as CSV."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.analysis import TaskMean
from hpobench_ordered.reporting.scoring import BenchmarkScores

if TYPE_CHECKING:
    import pandas as pd

SUMMARISED = ("score", "value", "regret", "rank")
"""Measures of the summary; the others are in `mean_table`."""

MEANINGS = {
    "score": "normalised; 0 is the best method after the last trial, 100 random search.",
    "value": "in the objective's own units.",
    "regret": "distance from the best known value, in the objective's own units.",
    "rank": "among the methods, 1 is best; each seed is ranked by itself on each task, then the "
    "mean is over both.",
}
"""What the measures of a summary are."""

DECIMALS = {"score": 1, "rank": 2, "normalised regret": 4, "regret over trials": 4}
"""Of measures that have the same scale everywhere."""

MOST_DECIMALS = 6
"""No number has more."""

SMALL = 1e-3
"""Numbers below are written with exponents where they would need more decimals."""


def summary_rows(
    item: BenchmarkScores, measures: Sequence[str] = SUMMARISED
) -> list[tuple[str, ...]]:
    """The summary of a benchmark as a table: a header, then a row for each measure and method."""
    header = ("measure", "method", *(f"trial {trial}" for trial in item.trials))
    rows = []
    for measure, means in _means(item, measures):
        label = f"{measure}, maximised" if _is_maximised(item, measure) else measure
        for a, method in enumerate(item.methods):
            cells = (
                plus_minus(m.mean[a], m.two_standard_errors[a], decimals=DECIMALS.get(measure))
                for m in means
            )
            rows.append((label if a == 0 else "", method, *cells))
    return [header, *rows]


def best_cells(
    item: BenchmarkScores, measures: Sequence[str] = SUMMARISED
) -> frozenset[tuple[int, int]]:
    """Where the best mean of every measure and trial stands in `summary_rows`.

    Returns:
        Row and column of each, from 0, the header not counted; several where methods are equal.
    """
    best = set()
    for block, (measure, means) in enumerate(_means(item, measures)):
        for column, one in enumerate(means, start=2):  # after the measure and the method
            losses = -one.mean if _is_maximised(item, measure) else one.mean
            rows = np.flatnonzero(losses == losses.min()) + block * len(item.methods)
            best |= {(int(row), column) for row in rows}
    return frozenset(best)


def measures_shown(item: BenchmarkScores, measures: Sequence[str] = SUMMARISED) -> tuple[str, ...]:
    """Those of some measures that `summary_rows` has, as they are defined on some task."""
    return tuple(measure for measure, _ in _means(item, measures))


def legend(measures: Sequence[str] = SUMMARISED) -> tuple[str, ...]:
    """How to read `summary_rows` of these measures, a paragraph each."""
    lower = "Lower is better, " + (
        "except for values that are maximised"
        if "value" in measures
        else "also where the objective is maximised"
    )
    meanings = [f"{measure}: {MEANINGS[measure]}" for measure in measures]
    if "score" in measures and len(measures) > 1:
        lower += (
            ". Tasks without a score count for the other measures, so that these may order methods "
            "otherwise"
        )
    return (
        "Means over tasks of the best trial so far, ± two standard errors of the mean over seeds. "
        "Of ordered runs the first task does not count, which has no history.",
        " ".join([*meanings, f"{lower}."]),
    )


def plus_minus(mean: float, errors: float, *, decimals: int | None = None) -> str:
    """A number with two standard errors, such as "12.3 ± 1.0".

    Args:
        mean: The number.
        errors: Its two standard errors; NaN where there are none.
        decimals: Number of decimals; without, as many as show two digits of the errors, or four of
            a number without.
    """
    if not np.isfinite(mean):
        return "-"
    if decimals is None:
        known = errors if errors > 0 else abs(mean) / 100
        decimals = max(0, 1 - math.floor(math.log10(known))) if known else 0
    if decimals > MOST_DECIMALS and abs(mean) < SMALL:
        return f"{mean:.3e}" if np.isnan(errors) else f"{mean:.3e} ± {errors:.1e}"
    decimals = min(decimals, MOST_DECIMALS)
    text = f"{round(mean, decimals) + 0.0:.{decimals}f}"  # + 0.0 turns -0.0 into 0.0
    return text if np.isnan(errors) else f"{text} ± {errors:.{decimals}f}"


def _means(item: BenchmarkScores, measures: Sequence[str]) -> Iterator[tuple[str, list[TaskMean]]]:
    """Measures that are defined on some task, with their means after the trials to show."""
    for measure in measures:
        means = [item.over_tasks(measure, trial) for trial in item.trials]
        if means[-1].defined:
            yield measure, means


def _is_maximised(item: BenchmarkScores, measure: str) -> bool:
    return measure == "value" and item.is_maximised


def task_table(scored: Sequence[BenchmarkScores]) -> "pd.DataFrame":
    """Means over seeds, one row for each benchmark, protocol, method, task and trial."""
    import pandas as pd

    frames = []
    for item in scored:
        columns = {}
        for measure, scores in item.measures.items():
            columns[measure] = scores.mean.ravel()
            columns[f"{measure}_two_standard_errors"] = scores.two_standard_errors.ravel()
        levels = {
            "benchmark": [item.benchmark],
            "protocol": [item.protocol],
            "method": item.methods,
            "task": item.task_names,
            "trial": range(1, item.last_trial + 1),
        }
        index = pd.MultiIndex.from_product(levels.values(), names=list(levels))
        frames.append(pd.DataFrame(columns, index=index).reset_index())
    return pd.concat(frames, ignore_index=True)


def mean_table(scored: Sequence[BenchmarkScores], *, only_shown: bool = False) -> "pd.DataFrame":
    """Means over tasks and seeds, one row for each benchmark, protocol, measure, trial, method.

    Args:
        scored: Scores by benchmark.
        only_shown: Whether only `BenchmarkScores.trials` are wanted, not all of them.
    """
    import pandas as pd

    frames = []
    for item in scored:
        trials = item.trials if only_shown else range(1, item.last_trial + 1)
        for measure in item.measures:
            means = [item.over_tasks(measure, trial) for trial in trials]
            levels = {
                "benchmark": [item.benchmark],
                "protocol": [item.protocol],
                "measure": [measure],
                "trial": trials,
                "method": item.methods,
            }
            columns = {
                "mean": np.concatenate([one.mean for one in means]),
                "two_standard_errors": np.concatenate([one.two_standard_errors for one in means]),
                "tasks": np.repeat([one.defined for one in means], len(item.methods)),
            }
            index = pd.MultiIndex.from_product(levels.values(), names=list(levels))
            frames.append(pd.DataFrame(columns, index=index).reset_index())
    return pd.concat(frames, ignore_index=True)
