"""Which drawings a report has, and the statistics that they show.

Notation:
    A   number of methods
    S   number of seeds
    T   number of tasks
    M   number of trials per task
    H   number of levels, or of fractions of runs
"""

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.bootstrap import Intervals, interval_over, mean_intervals
from hpobench_ordered.analysis.curves import QUARTILES, attained_levels, attainment
from hpobench_ordered.analysis.samples import Resampling, samples_of
from hpobench_ordered.reporting.drawings.attainment import draw_attainment, draw_reach
from hpobench_ordered.reporting.drawings.bars import draw_bars
from hpobench_ordered.reporting.drawings.critical import draw_critical_difference
from hpobench_ordered.reporting.drawings.curves import draw_curves
from hpobench_ordered.reporting.drawings.drawing import Drawing, Subject
from hpobench_ordered.reporting.drawings.ranks import RankCurves, draw_ranks
from hpobench_ordered.reporting.drawings.wins import draw_wins
from hpobench_ordered.reporting.page.comparisons import MEASURE, Together, differences_of, wins_of
from hpobench_ordered.reporting.scoring import BenchmarkScores

RESAMPLING_SEED = 0
"""Of the bootstrap, so that the same results give the same drawings."""

RESAMPLES = 999
"""Of curves, of which there are thousands of points."""

LEVELS = (0.1, 0.03, 0.01)
"""Normalised regrets of which it is drawn how many runs reach them."""


def benchmark_drawings(item: BenchmarkScores) -> list[Drawing]:
    """The drawings of one benchmark: curves, bars, ranks and what runs attain."""
    drawings = [_curves(item, measure) for measure in _curve_measures(item)]
    if item.over_tasks("score", item.last_trial).defined:
        trials = dict.fromkeys((1, item.last_trial))
        drawings += [draw_bars(Subject.of(item), item.scores, trial=trial) for trial in trials]
    together = Together.of([item])
    if len(item.methods) > 1:
        ranks = RankCurves(item.benchmark, _rank_intervals(item, together))
        drawings.append(draw_ranks([ranks], together.methods, about=together.title))
    return drawings + _attained(item)


def overall_drawings(together: Together) -> list[Drawing]:
    """The drawings of all benchmarks of a protocol: ranks, which of them differ, and wins."""
    drawings = []
    if len(together.items) > 1:  # those of a single one are in its own section
        panels = [
            RankCurves(item.benchmark, _rank_intervals(item, together)) for item in together.items
        ]
        panels = [*_all_ranks(together), *panels]
        drawings.append(draw_ranks(panels, together.methods, about=together.title))
    differences = differences_of(together)
    if differences is not None:
        drawings.append(draw_critical_difference(differences, about=together.title))
    return [*drawings, draw_wins(wins_of(together), about=together.title)]


def _curve_measures(item: BenchmarkScores) -> list[str]:
    """Measures of which curves are drawn: one that has the same scale on all tasks, and values."""
    relative = ("score", MEASURE)
    defined = [name for name in relative if item.over_tasks(name, item.last_trial).defined]
    return [*defined[:1], "value"]


def _curves(item: BenchmarkScores, measure: str) -> Drawing:
    values = item.measures[measure].values
    overall = interval_over(
        values,
        Resampling.SEEDS,
        rng=_rng(),
        first_task=item.first_task,
        resamples=RESAMPLES,
    )
    return draw_curves(
        Subject.of(item),
        measure,
        _by_task(values),
        None if measure == "value" else overall,
        first_task=item.first_task,
        is_maximised=measure == "value" and item.is_maximised,
    )


def _by_task(values: FloatArray) -> Intervals:
    """Means over seeds with their intervals, shape (A, T, M)."""
    return mean_intervals(np.moveaxis(values, 1, 0), rng=_rng(), resamples=RESAMPLES)


def _rank_intervals(item: BenchmarkScores, together: Together) -> Intervals:
    ranks = item.measures["rank"].values[together.rows(item)]
    return interval_over(
        ranks,
        Resampling.TASKS,
        rng=_rng(),
        first_task=item.first_task,
        resamples=RESAMPLES,
    )


def _all_ranks(together: Together) -> list[RankCurves]:
    """Ranks on the tasks of all benchmarks, each counting the same; none if trials differ."""
    if len({item.last_trial for item in together.items}) > 1:
        return []
    samples = np.concatenate(
        [
            samples_of(
                item.measures["rank"].values[together.rows(item)],
                Resampling.TASKS,
                first_task=item.first_task,
            )
            for item in together.items
        ]
    )
    intervals = mean_intervals(samples, rng=_rng(), resamples=RESAMPLES)
    return [RankCurves(f"all {len(samples)} tasks", intervals)]


def _attained(item: BenchmarkScores) -> list[Drawing]:
    """Which regrets runs attain, and how many runs attain some; none where there are no regrets."""
    values = item.measures[MEASURE].values[:, :, item.first_task :]
    values = values[:, :, ~np.isnan(values).any(axis=(0, 1, 3))]
    if not values.shape[2]:
        return []
    runs = values.reshape(len(values), -1, 1, values.shape[-1])  # all tasks as one
    levels = np.array(LEVELS)
    subject = Subject.of(item)
    return [
        draw_attainment(subject, MEASURE, attained_levels(runs)[:, :, 0], QUARTILES),
        draw_reach(subject, MEASURE, attainment(runs, levels)[:, 0], levels),
    ]


def _rng() -> np.random.Generator:
    return np.random.default_rng(RESAMPLING_SEED)
