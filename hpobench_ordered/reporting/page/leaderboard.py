"""The numbers of the leaderboard: by benchmark, and by group of benchmarks, after every trial.

The page averages over whichever benchmarks a reader chooses: a plain mean of the means of the
benchmarks, so that each counts the same, however many tasks it has. Intervals are of the groups
that are worked out here alone (each benchmark, each suite, all benchmarks), as they need the runs.

Notation:
    A   number of methods
    B   number of benchmarks
    M   number of trials per task
    n   number of samples: seeds, tasks or benchmarks
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.bootstrap import Intervals, interval_over, mean_intervals
from hpobench_ordered.analysis.samples import Resampling, samples_of
from hpobench_ordered.analysis.wins import count_wins
from hpobench_ordered.reporting.labels import protocol_label
from hpobench_ordered.reporting.page.coverage import STATES, Counts, Coverage
from hpobench_ordered.reporting.scoring import BenchmarkScores, by_protocol
from hpobench_ordered.reporting.style import drawing_order
from hpobench_ordered.suites import SUITES

RESAMPLING_SEED = 0
"""Of the bootstrap, so that the same results give the same page."""

RESAMPLES = 999
"""Of the bootstrap, for each of thousands of numbers."""

DIGITS = 5
"""Significant digits of the numbers of the leaderboard; `means.csv` has all of them."""

Nested = list[Any]


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of the leaderboard.

    Attributes:
        name: Its name in `BenchmarkScores.measures`.
        title: Heading of the column.
        meaning: What it is, one sentence.
        decimals: Number of decimals shown.
    """

    name: str
    title: str
    meaning: str
    decimals: int


MEASURES = (
    Measure(
        "score",
        "Normalised score",
        "0 is the best method after the last trial, 100 random search.",
        1,
    ),
    Measure(
        "normalised regret",
        "Normalised regret",
        "Distance from the best known value; 1 is the worst that any compared method met.",
        4,
    ),
    Measure(
        "rank",
        "Mean rank",
        "Among the methods compared, each seed ranked by itself on each task; 1 is best, ties "
        "share a rank.",
        2,
    ),
    Measure(
        "regret over trials",
        "Regret over trials",
        "Normalised regret of the best trial so far, its mean over all trials from the first on "
        "(the area under its curve, on a linear axis of trials).",
        4,
    ),
)
"""Measures with intervals; lower is better in all of them."""


def leaderboard(
    scored: Sequence[BenchmarkScores],
    found: Coverage,
    seconds: Mapping[tuple[str, str], Mapping[str, tuple[float, int]]],
) -> list[dict[str, Any]]:
    """Everything that the leaderboard may show, as JSON.

    Args:
        scored: Scores by benchmark.
        found: What became of the runs.
        seconds: Seconds inside the methods and suggestions, as `seconds_by_method` gives them.

    Returns:
        By protocol: its `name` and its `label` for people, the number of `trials`, all `methods` in
        drawing order, the `benchmarks` (see `_benchmark`) and the `groups` of two benchmarks or
        more (see `_group`).
    """
    boards = []
    for protocol, items in by_protocol(scored).items():
        entries = [_benchmark(item, found.of(item.benchmark, protocol), seconds) for item in items]
        board = {
            "name": protocol,
            "label": protocol_label(protocol),
            "trials": min(item.last_trial for item in items),
            "methods": drawing_order(
                {m for (_, p), row in found.rows.items() if p == protocol for m in row}
            ),
            "benchmarks": entries,
            "groups": [_group(name, items, places) for name, places in _groups(items)],
        }
        boards.append(board)
    return boards


def suites_of(benchmark: str) -> list[str]:
    """Suites that a benchmark is in, by its name with version and surrogate."""
    name = benchmark.partition("@")[0]
    return [suite for suite, names in SUITES.items() if name in names]


def _benchmark(
    item: BenchmarkScores,
    counts: Mapping[str, Counts],
    seconds: Mapping[tuple[str, str], Mapping[str, tuple[float, int]]],
) -> dict[str, Any]:
    """Statistics of one benchmark.

    Returns:
        By measure `mean`, `seeds` and `tasks`, the latter two as [lower, upper] ends: each a list
        by method and trial. `wins`, `ties` and `losses` alike. By method, of those that are not
        compared as well: `runs`, how many are in each state; `seconds`, [seconds, suggestions].
    """
    rng = np.random.default_rng(RESAMPLING_SEED)
    measures = {}
    for measure in MEASURES:
        values = item.measures[measure.name].values
        seeds, tasks = (
            interval_over(values, over, rng=rng, first_task=item.first_task, resamples=RESAMPLES)
            for over in (Resampling.SEEDS, Resampling.TASKS)
        )
        measures[measure.name] = _statistics(seeds, tasks)
    return {
        "name": item.benchmark,
        "methods": list(item.methods),
        "measures": measures,
        **_contests(item),
        "unavailable": item.undefined(),
        "excluded": {x.method: f"{x.finished} of {x.planned} seeds" for x in item.excluded},
        "runs": {name: [count.states[s] for s in STATES] for name, count in counts.items()},
        "seconds": {
            name: [float(f"{time:.{DIGITS}g}"), suggestions]
            for name, (time, suggestions) in seconds.get(
                (item.benchmark, item.protocol), {}
            ).items()
        },
    }


def _contests(item: BenchmarkScores) -> dict[str, Nested]:
    """Wins, ties and losses against all others: runs of the tasks that count, by trial."""
    counted = [
        count_wins(item.losses, item.methods, trial=trial, first_task=item.first_task)
        for trial in range(1, item.last_trial + 1)
    ]
    return {
        name: np.stack([getattr(wins, name).sum(axis=1) for wins in counted], axis=1).tolist()
        for name in ("wins", "ties", "losses")
    }


def _groups(items: Sequence[BenchmarkScores]) -> Iterator[tuple[str, list[int]]]:
    """Names and places of the benchmarks that are shown together: all, and those of a suite."""
    if len(items) > 1:
        yield "all", list(range(len(items)))
    for suite in SUITES:
        places = [i for i, item in enumerate(items) if suite in suites_of(item.benchmark)]
        if 1 < len(places) < len(items):
            yield suite, places


def _group(name: str, items: Sequence[BenchmarkScores], places: Sequence[int]) -> dict[str, Any]:
    """Statistics of several benchmarks together, of the methods compared on all of them.

    Returns:
        Its `name`, the places of its `benchmarks` and its `methods`; by measure as `_benchmark`,
        and in `on` how many of the benchmarks count, as a measure may not be defined on others.
        Between tasks, a sample is one benchmark.
    """
    chosen = [items[place] for place in places]
    methods = [m for m in chosen[0].methods if all(m in item.methods for item in chosen)]
    measures = {}
    for measure in MEASURES:
        defined = [item for item in chosen if _is_defined(item, measure.name)]
        if defined and methods:
            seeds, tasks = (
                _group_intervals(defined, measure.name, methods, over)
                for over in (Resampling.SEEDS, Resampling.TASKS)
            )
            measures[measure.name] = _statistics(seeds, tasks) | {"on": len(defined)}
    return {"name": name, "benchmarks": list(places), "methods": methods, "measures": measures}


def _is_defined(item: BenchmarkScores, measure: str) -> bool:
    return item.over_tasks(measure, item.last_trial).defined > 0


def _group_intervals(
    items: Sequence[BenchmarkScores], measure: str, methods: Sequence[str], over: Resampling
) -> Intervals:
    """Means over benchmarks, with intervals over seeds or over benchmarks, shape (A, M)."""
    trials = min(item.last_trial for item in items)
    samples = []
    for item in items:
        rows = [item.methods.index(method) for method in methods]
        values = item.measures[measure].values[rows][..., :trials]
        samples.append(samples_of(values, Resampling.SEEDS, first_task=item.first_task))
    combined = np.stack([sample.mean(axis=0) for sample in samples])
    if over is Resampling.SEEDS:
        paired = len({item.seed_numbers for item in items}) == 1
        # Of different seeds there is no sample of all benchmarks, and so no interval.
        combined = np.mean(samples if paired else [combined], axis=0 if paired else 1)
    rng = np.random.default_rng(RESAMPLING_SEED)
    return mean_intervals(combined, rng=rng, resamples=RESAMPLES)


def _statistics(seeds: Intervals, tasks: Intervals) -> dict[str, Nested]:
    return {
        "mean": _rounded(seeds.mean),
        "seeds": [_rounded(seeds.lower), _rounded(seeds.upper)],
        "tasks": [_rounded(tasks.lower), _rounded(tasks.upper)],
    }


def _rounded(array: FloatArray) -> Nested:
    """Numbers as JSON has them: rounded, and null for what is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = np.floor(np.log10(np.abs(array)))
        exponents = np.where(np.isfinite(exponents), exponents, 0)
        scale = 10.0 ** (DIGITS - 1 - exponents)
        rounded = np.round(array * scale) / scale
    shown = rounded.astype(object)
    shown[~np.isfinite(rounded)] = None
    nested: Nested = shown.tolist()
    return nested
