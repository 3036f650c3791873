"""The leaderboard: one table of all benchmarks together and of each.

A row per protocol, benchmark, surrogate and method. The rows of all benchmarks come first, with the
benchmark "all" and no surrogate: means over families of means over their benchmarks
(`BenchmarkGroup`).
Within a benchmark a figure is the mean over the tasks that count (`BenchmarkScores.first_task`) and
the seeds that the method has finished.

Columns:
    protocol, benchmark, surrogate, method, trial
    m                                of each measure m in `MEASURES`, the mean
    m_low, m_high                    its 95 % interval over seeds
    m_low_tasks, m_high_tasks        its 95 % interval over tasks; in rows of all benchmarks, over
                                     families; NaN with too few samples, see `bootstrap`
    wins, ties, losses               against all other methods, by seed and task
    benchmarks, families, seeds      numbers behind the row
    runs, failed                     numbers of planned and failed runs
    seconds                          inside the method, for one suggestion

Rows are sorted by mean rank. A method that is not compared on all benchmarks has no measures in the
rows of all benchmarks, only its runs and its time; a measure is averaged over the benchmarks on
which it is defined. Missing is NaN, or <NA> in columns of whole numbers.

Notation:
    A   number of methods
    S   number of seeds
    M   number of trials
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup, family_means
from hpobench_ordered.analysis.bootstrap import Intervals, draw_weights, mean_intervals
from hpobench_ordered.analysis.samples import Resampling, independent_samples, mean_over_seeds
from hpobench_ordered.analysis.scores import RANDOM_SEARCH
from hpobench_ordered.analysis.scoring import BenchmarkScores, MethodRuns, group_by_protocol
from hpobench_ordered.analysis.wins import count_wins
from hpobench_ordered.errors import ExperimentError

if TYPE_CHECKING:
    import pandas as pd

ALL = "all"  # benchmark of the rows of all benchmarks together

MEASURES = ("score", "regret", "rank", "regret_over_trials")
"""Measures of the leaderboard; lower is better in all of them."""

DECIMALS = {"rank": 2, "score": 1, "regret": 4}
"""Measures that tables show, in their order, with their decimals."""

RESAMPLING_SEED = 0  # seed of the bootstrap, so that the same results give the same intervals
RESAMPLES = 999  # resamples of the bootstrap

COUNTS = ("wins", "ties", "losses", "benchmarks", "families", "seeds", "runs", "failed")
"""Columns of whole numbers."""

NAMES = ("protocol", "benchmark", "surrogate", "method", "trial")
"""Columns that say what a row is of."""

Row = dict[str, Any]


def leaderboard(scores: Sequence[BenchmarkScores], *, trial: int | None = None) -> "pd.DataFrame":
    """The leaderboard after a trial; its columns are listed in the module's docstring.

    Args:
        scores: Scores by benchmark, as returned by `score_benchmarks`.
        trial: The trial, counted from 1; default: the last of each benchmark, and for all
            benchmarks together the last that all of them have.

    Raises:
        ExperimentError: No protocol has that many trials; those with fewer are left out.
    """
    import pandas as pd

    groups = [
        (BenchmarkGroup.for_means(items), items) for items in group_by_protocol(scores).values()
    ]
    if trial is not None:
        most = max((group.last_trial for group, _ in groups), default=0)
        if not 1 <= trial <= most:
            raise ExperimentError(f"trial must be from 1 to {most}, but got {trial}")
        groups = [(group, items) for group, items in groups if group.last_trial >= trial]
    rows: list[Row] = []
    for group, items in groups:
        rows += _sorted(_overall_rows(group, trial or group.last_trial))
        for item in items:
            rows += _sorted(_benchmark_rows(item, trial or item.last_trial))
    table = pd.DataFrame(rows, columns=_columns())
    return table.astype(dict.fromkeys(COUNTS, "Int64"))


def benchmark_intervals(
    item: BenchmarkScores,
    *,
    trials: slice = slice(None),
    overs: Sequence[Resampling] = tuple(Resampling),
) -> dict[tuple[str, Resampling], Intervals]:
    """Means over tasks and seeds, (A, M), by measure and by what their interval is over."""
    rng = _rng()
    found = {}
    for measure in MEASURES:
        values = item.measures[measure].values[..., trials]
        for over in Resampling:
            samples = independent_samples(values, over, first_task=item.first_task)
            if over in overs:
                found[measure, over] = mean_intervals(
                    samples, rng=rng, resamples=RESAMPLES, possible=item.measures[measure].possible
                )
            elif len(samples):  # draw anyway: intervals must not depend on which are asked for
                draw_weights(len(samples), rng=rng, resamples=RESAMPLES)
    return found


def overall_intervals(
    together: BenchmarkGroup, measure: str, over: Resampling, *, trials: slice = slice(None)
) -> Intervals:
    """Mean of a measure over benchmarks, (A, M), with its interval; 0 samples if none has it."""
    last = together.last_trial
    sampled: list[tuple[BenchmarkScores, FloatArray]] = []
    items = [item for item in together.items if item.is_defined(measure)]
    for item in items:
        values = item.measures[measure].values[together.rows(item), :, :, :last][..., trials]
        sampled.append(
            (item, independent_samples(values, Resampling.SEEDS, first_task=item.first_task))
        )
    if not items:
        nothing = np.full((len(together.methods), len(range(last)[trials])), np.nan)
        return Intervals(nothing, nothing, nothing, 0)
    means = family_means((item, mean_over_seeds(part, axis=0)) for item, part in sampled)
    ends = np.array([item.measures[measure].possible for item in items])
    possible = ends[:, 0].min(), ends[:, 1].max()
    if over is Resampling.TASKS:
        return mean_intervals(means, rng=_rng(), resamples=RESAMPLES, possible=possible)
    mean = means.mean(axis=0)
    if len({item.seed_numbers for item in items}) > 1:
        # Without common seeds there is no sample over all benchmarks, and so no interval.
        return mean_intervals(mean[None], rng=_rng(), resamples=RESAMPLES)
    paired = mean_intervals(family_means(sampled).mean(axis=0), rng=_rng(), resamples=RESAMPLES)
    shift = mean - paired.mean  # of methods that lack a seed somewhere
    lower, upper = (np.clip(end + shift, *possible) for end in (paired.lower, paired.upper))
    return Intervals(mean, lower, upper, paired.samples)


def _rng() -> np.random.Generator:
    return np.random.default_rng(RESAMPLING_SEED)


def _columns() -> list[str]:
    suffixes = ("", "_low", "_high", "_low_tasks", "_high_tasks")
    measures = [measure + suffix for measure in MEASURES for suffix in suffixes]
    return [*NAMES, *measures, *COUNTS, "seconds"]


def _sorted(rows: Iterator[Row]) -> list[Row]:
    def place(row: Row) -> tuple[bool, float, bool, str]:
        rank = row.get("rank", np.nan)
        return bool(np.isnan(rank)), float(rank), row["method"] != RANDOM_SEARCH, row["method"]

    return sorted(rows, key=place)


def _measured(intervals: dict[tuple[str, Resampling], Intervals], a: int) -> Row:
    row: Row = {}
    for measure in MEASURES:
        seeds, tasks = (intervals[measure, over] for over in Resampling)
        row[measure] = seeds.mean[a, 0]
        for suffix, found in (("", seeds), ("_tasks", tasks)):
            row[f"{measure}_low{suffix}"] = found.lower[a, 0]
            row[f"{measure}_high{suffix}"] = found.upper[a, 0]
    return row


def _benchmark_rows(item: BenchmarkScores, trial: int) -> Iterator[Row]:
    """Rows of one benchmark: all planned methods, compared or not."""
    intervals = benchmark_intervals(item, trials=slice(trial - 1, trial))
    contests = _contests(item, trial)
    for method, runs in item.runs.items():
        names = (item.protocol, item.benchmark, item.surrogate, method, trial)
        row = _run_columns(names, [runs])
        if method in item.methods:
            row |= _measured(intervals, item.place(method)) | contests[method]
        yield row


def _overall_rows(together: BenchmarkGroup, trial: int) -> Iterator[Row]:
    """Rows of all benchmarks together."""
    at = slice(trial - 1, trial)
    intervals = {
        (measure, over): overall_intervals(together, measure, over, trials=at)
        for measure in MEASURES
        for over in Resampling
    }
    contests = [_contests(item, trial) for item in together.items]
    names = dict.fromkeys(method for item in together.items for method in item.runs)
    for method in names:
        runs = [item.runs[method] for item in together.items if method in item.runs]
        compared = [item for item in together.items if method in item.methods]
        row = _run_columns((together.protocol, ALL, "", method, trial), runs) | {
            "benchmarks": len({item.benchmark for item in compared}),
            "families": len({item.family or item.benchmark for item in compared}),
        }
        if method in together.methods:
            row |= _measured(intervals, together.methods.index(method))
            row |= {name: sum(one[method][name] for one in contests) for name in COUNTS[:3]}
        yield row


def _contests(item: BenchmarkScores, trial: int) -> dict[str, Row]:
    """Wins, ties and losses of each method against all others."""
    found = count_wins(item.losses, item.methods, trial=trial, first_task=item.first_task)
    return {
        method: {name: int(getattr(found, name)[a].sum()) for name in COUNTS[:3]}
        for a, method in enumerate(item.methods)
    }


def _run_columns(names: Sequence[object], runs: Sequence[MethodRuns]) -> Row:
    suggestions = sum(one.suggestions for one in runs)
    return dict(zip(NAMES, names, strict=True)) | {
        "benchmarks": 1,
        "families": 1,
        "seeds": len({seed for one in runs for seed in one.seeds}),
        "runs": sum(one.planned for one in runs),
        "failed": sum(one.failed for one in runs),
        "seconds": sum(one.seconds for one in runs) / suggestions if suggestions else np.nan,
    }
