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
    benchmarks, families, seeds      numbers behind the row; seeds are those on the benchmark with
                                     the fewest
    runs, failed                     numbers of planned and failed runs
    evaluations, failed_evaluations  numbers of evaluations in finished runs, and of failed ones
    seconds                          CPU time of the method for one suggestion

Rows are sorted by mean rank. A method that is not compared on all benchmarks has no measures in the
rows of all benchmarks, only its runs and its time; a measure is averaged over the benchmarks on
which it is defined. Missing is NaN, or <NA> in columns of whole numbers.

Notation:
    A   number of methods
    S   number of seeds
    M   number of trials
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup, family_means
from hpobench_ordered.analysis.bootstrap import Intervals, draw_weights, mean_intervals
from hpobench_ordered.analysis.samples import Resampling, independent_samples, mean_over_seeds
from hpobench_ordered.analysis.scores import RANDOM_SEARCH
from hpobench_ordered.analysis.scoring import BenchmarkScores, MethodRuns, group_by_protocol
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

WIN_COUNTS = ("wins", "ties", "losses")
"""Columns of counts against all other methods."""

COUNT_COLUMNS = (
    *WIN_COUNTS,
    "benchmarks",
    "families",
    "seeds",
    "runs",
    "failed",
    "evaluations",
    "failed_evaluations",
)
"""Columns of whole numbers."""

LABEL_COLUMNS = ("protocol", "benchmark", "surrogate", "method", "trial")
"""Columns that say what a row is of."""

Row = dict[str, Any]


def leaderboard(scores: Sequence[BenchmarkScores], *, trial: int | None = None) -> "pd.DataFrame":
    """Make the leaderboard after a trial; the module's docstring lists its columns.

    Args:
        scores: Scores by benchmark, as returned by `score_benchmarks`.
        trial: The trial, counted from 1; default: the last of each benchmark, and for all
            benchmarks together the last that all of them have.

    Raises:
        ExperimentError: No protocol has that many trials; those with fewer are left out.
    """
    import pandas as pd

    items_of_protocols = group_by_protocol(scores).values()
    groups = [BenchmarkGroup.for_means(items) for items in items_of_protocols]
    if trial is not None:
        last_trial = max((group.last_trial for group in groups), default=0)
        if not 1 <= trial <= last_trial:
            raise ExperimentError(f"trial must be from 1 to {last_trial}, but got {trial}")

    rows: list[Row] = []
    for group, items in zip(groups, items_of_protocols, strict=True):
        if trial is not None and trial > group.last_trial:
            continue
        rows += _sort_by_rank(_overall_rows(group, trial or group.last_trial))
        for item in items:
            rows += _sort_by_rank(_benchmark_rows(item, trial or item.last_trial))
    table = pd.DataFrame(rows, columns=_columns())
    # Counts are whole numbers, of which some are missing.
    return table.astype(dict.fromkeys(COUNT_COLUMNS, "Int64"))


def benchmark_intervals(
    item: BenchmarkScores,
    *,
    trials: slice = slice(None),
    intervals_over: Sequence[Resampling] = tuple(Resampling),
) -> dict[tuple[str, Resampling], Intervals]:
    """Average every measure over tasks and seeds, and compute the intervals of the means.

    Args:
        item: Scores of one benchmark.
        trials: The trials, counted from 0; default: all.
        intervals_over: What the intervals are over: seeds, tasks or (default) both.

    Returns:
        Means and intervals, (methods, trials), by measure and by what the intervals are over.
    """
    rng = _new_rng()
    intervals = {}
    for measure in MEASURES:
        scores = item.measures[measure]
        values = scores.values[..., trials]
        for over in Resampling:
            samples = independent_samples(values, over, first_task=item.first_task)
            if over in intervals_over:
                intervals[measure, over] = mean_intervals(
                    samples, rng=rng, resamples=RESAMPLES, possible=scores.possible
                )
            elif len(samples):
                # Draw all the same: the generator is then in the same state for the next intervals,
                # which must not depend on `intervals_over`.
                draw_weights(len(samples), rng=rng, resamples=RESAMPLES)
    return intervals


def overall_intervals(
    group: BenchmarkGroup, measure: str, over: Resampling, *, trials: slice = slice(None)
) -> Intervals:
    """Average a measure over all benchmarks, (methods, trials), and compute the intervals.

    Args:
        group: The benchmarks.
        measure: The measure; benchmarks on which it is not defined are left out.
        over: Whether the interval is over seeds, or (`Resampling.TASKS`) over families.
        trials: The trials, counted from 0; default: all.

    Returns:
        The intervals, of 0 samples if no benchmark has the measure.
    """
    samples_of_items = _samples_of_benchmarks(group, measure, trials)
    if not samples_of_items:
        no_means = _undefined_means(group, trials)
        return Intervals(no_means, no_means, no_means, 0)
    means_of_families = _means_of_families(samples_of_items)

    items = [item for item, _ in samples_of_items]
    possible = items[0].measures[measure].possible  # the same on all, as they have the same methods
    if over is Resampling.TASKS:
        return mean_intervals(
            means_of_families, rng=_new_rng(), resamples=RESAMPLES, possible=possible
        )

    mean = means_of_families.mean(axis=0)
    have_common_seeds = len({item.seed_numbers for item in items}) == 1
    if not have_common_seeds:
        # No seed has a mean over all benchmarks. A single sample gives the mean without interval.
        return mean_intervals(mean[None], rng=_new_rng(), resamples=RESAMPLES)

    means_of_seeds = family_means(samples_of_items).mean(axis=0)  # (seeds, methods, trials)
    over_seeds = mean_intervals(means_of_seeds, rng=_new_rng(), resamples=RESAMPLES)
    # A method that lacks a seed on one benchmark has no mean of that seed, although the seed counts
    # in its means on other benchmarks; its interval is moved to its mean.
    shift = mean - over_seeds.mean
    lower = np.clip(over_seeds.lower + shift, *possible)
    upper = np.clip(over_seeds.upper + shift, *possible)
    return Intervals(mean, lower, upper, over_seeds.samples)


def overall_means(
    group: BenchmarkGroup, measure: str, *, trials: slice = slice(None)
) -> FloatArray:
    """Average a measure over all benchmarks, (methods, trials); NaN if none has the measure.

    Benchmarks of a family are averaged first, so that a family counts as one benchmark. The means
    are those of `overall_intervals`, which also resamples to find intervals, and takes much longer.

    Args:
        group: The benchmarks.
        measure: Name of the measure, such as "rank".
        trials: The trials after which it is averaged; default: all.
    """
    samples_of_items = _samples_of_benchmarks(group, measure, trials)
    if not samples_of_items:
        return _undefined_means(group, trials)
    means: FloatArray = _means_of_families(samples_of_items).mean(axis=0)
    return means


def _samples_of_benchmarks(
    group: BenchmarkGroup, measure: str, trials: slice
) -> list[tuple[BenchmarkScores, FloatArray]]:
    """Average a measure over tasks, on each benchmark where it is defined.

    Returns:
        The benchmark's scores with its samples, the means over tasks, (seeds, methods, trials).
    """
    samples_of_items = []
    for item in group.items:
        if not item.is_defined(measure):
            continue
        values = item.measures[measure].values[..., : group.last_trial]
        samples = independent_samples(
            values[..., trials], Resampling.SEEDS, first_task=item.first_task
        )
        samples_of_items.append((item, samples))
    return samples_of_items


def _means_of_families(
    samples_of_items: Sequence[tuple[BenchmarkScores, FloatArray]],
) -> FloatArray:
    """Average samples over seeds and then over the benchmarks of each family.

    Returns:
        The means, (families, methods, trials).
    """
    return family_means(
        (item, mean_over_seeds(samples, axis=0)) for item, samples in samples_of_items
    )


def _undefined_means(group: BenchmarkGroup, trials: slice) -> FloatArray:
    """Make the means of a measure that no benchmark has: an array of NaN, (methods, trials)."""
    n_trials = len(range(group.last_trial)[trials])
    return np.full((len(group.methods), n_trials), np.nan)


def _new_rng() -> np.random.Generator:
    """Make a random generator with the fixed seed.

    Every interval has a generator of its own, so that it does not depend on those before it.
    """
    return np.random.default_rng(RESAMPLING_SEED)


def _columns() -> list[str]:
    """List the names of the leaderboard's columns, in their order.

    First come the labels of a row, then each measure with its intervals over seeds and over tasks,
    the counts of wins and runs, and the time of a suggestion.
    """
    # The mean, then both ends of its intervals: over seeds, and over tasks.
    suffixes = ("", "_low", "_high", "_low_tasks", "_high_tasks")
    measures = []
    for measure in MEASURES:
        measures += [measure + suffix for suffix in suffixes]
    return [*LABEL_COLUMNS, *measures, *COUNT_COLUMNS, "seconds"]


def _sort_by_rank(rows: Iterable[Row]) -> list[Row]:
    """Sort rows by mean rank, the lowest first.

    Of equal ranks, random search comes first. Rows of methods without a rank come last.
    """

    def sort_key(row: Row) -> tuple[bool, float, bool, str]:
        """Sort by: no rank, rank, not random search, name; False comes before True."""
        rank = row.get("rank", np.nan)  # methods that are not compared have none
        has_no_rank = bool(np.isnan(rank))
        is_random_search = row["method"] == RANDOM_SEARCH
        return has_no_rank, float(rank), not is_random_search, row["method"]

    return sorted(rows, key=sort_key)


def _measure_columns(intervals: dict[tuple[str, Resampling], Intervals], method_index: int) -> Row:
    """Make the columns of all measures, with their intervals, for one method.

    Args:
        intervals: Means and intervals after one trial, (methods, 1), by measure and by what the
            intervals are over.
        method_index: Index of the method along the first axis.
    """
    entry = (method_index, 0)  # of the method, after the one trial
    row: Row = {}
    for measure in MEASURES:
        over_seeds = intervals[measure, Resampling.SEEDS]
        over_tasks = intervals[measure, Resampling.TASKS]
        row[measure] = over_seeds.mean[entry]
        row[f"{measure}_low"] = over_seeds.lower[entry]
        row[f"{measure}_high"] = over_seeds.upper[entry]
        row[f"{measure}_low_tasks"] = over_tasks.lower[entry]
        row[f"{measure}_high_tasks"] = over_tasks.upper[entry]
    return row


def _benchmark_rows(item: BenchmarkScores, trial: int) -> Iterator[Row]:
    """Make the rows of one benchmark after a trial, one for each planned method.

    Methods that are not compared, as too few of their runs are finished, have no measures.
    """
    this_trial = slice(trial - 1, trial)
    intervals = benchmark_intervals(item, trials=this_trial)
    win_columns = _win_columns(item, trial)  # by method
    for method, runs in item.runs.items():  # of all planned methods, compared or not
        labels = (item.protocol, item.benchmark, item.surrogate, method, trial)
        row = _run_columns(labels, [runs])
        row["benchmarks"] = 1
        row["families"] = 1
        is_compared = method in item.methods
        if is_compared:
            row |= _measure_columns(intervals, item.place(method))
            row |= win_columns[method]
        yield row


def _overall_rows(group: BenchmarkGroup, trial: int) -> Iterator[Row]:
    """Make the rows of all benchmarks together after a trial, one for each planned method.

    Only methods that are compared on every benchmark (`group.methods`) have means and wins.
    """
    this_trial = slice(trial - 1, trial)
    intervals = {
        (measure, over): overall_intervals(group, measure, over, trials=this_trial)
        for measure, over in itertools.product(MEASURES, Resampling)
    }
    win_columns_of_items = [_win_columns(item, trial) for item in group.items]
    planned_methods: dict[str, None] = {}  # of all benchmarks; a dict keeps each once, in order
    for item in group.items:
        planned_methods |= dict.fromkeys(item.runs)
    for method in planned_methods:
        runs = [item.runs[method] for item in group.items if method in item.runs]
        row = _run_columns((group.protocol, ALL, "", method, trial), runs)

        items_with_method = [item for item in group.items if method in item.runs]
        benchmarks = {item.benchmark for item in items_with_method}
        # A benchmark without a family is a family of its own.
        families = {item.family or item.benchmark for item in items_with_method}
        row["benchmarks"] = len(benchmarks)
        row["families"] = len(families)
        if method in group.methods:
            row |= _measure_columns(intervals, group.methods.index(method))
            for name in WIN_COUNTS:  # wins, ties and losses
                row[name] = sum(columns[method][name] for columns in win_columns_of_items)
        yield row


def _win_columns(item: BenchmarkScores, trial: int) -> dict[str, Row]:
    """Count the wins, ties and losses of each compared method against all others together.

    Returns:
        The three columns of counts, by method.
    """
    counts = item.count_wins(trial)
    columns = {}
    for a, method in enumerate(item.methods):
        columns[method] = {
            "wins": int(counts.wins[a].sum()),
            "ties": int(counts.ties[a].sum()),
            "losses": int(counts.losses[a].sum()),
        }
    return columns


def _run_columns(labels: Sequence[object], runs: Sequence[MethodRuns]) -> Row:
    """Make the columns of a row's labels, and those that count and time a method's runs.

    The column "seconds" is the mean CPU time of a suggestion, over the suggestions whose time is
    known; NaN if no time is known.

    Args:
        labels: Protocol, benchmark, surrogate, method and trial (`LABEL_COLUMNS`).
        runs: The method's runs on each of one or several benchmarks.
    """
    n_suggestions = sum(method_runs.timed_suggestions for method_runs in runs)
    total_seconds = sum(method_runs.cpu_seconds for method_runs in runs)
    seconds_per_suggestion = np.nan
    if n_suggestions:
        seconds_per_suggestion = total_seconds / n_suggestions
    return {
        **dict(zip(LABEL_COLUMNS, labels, strict=True)),
        "seeds": min(len(method_runs.seeds) for method_runs in runs),
        "runs": sum(method_runs.planned for method_runs in runs),
        "failed": sum(method_runs.failed for method_runs in runs),
        "evaluations": sum(method_runs.evaluations for method_runs in runs),
        "failed_evaluations": sum(method_runs.failed_evaluations for method_runs in runs),
        "seconds": seconds_per_suggestion,
    }
