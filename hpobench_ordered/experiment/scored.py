"""Scores of what is in a store: reads the finished runs and hands them to `analysis`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hpobench_ordered.analysis.scoring import BenchmarkScores, score_benchmarks
from hpobench_ordered.bundle import read_card
from hpobench_ordered.errors import HPOBenchOrderedError
from hpobench_ordered.experiment.overview import Overview, State
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.registry import benchmark_spec

if TYPE_CHECKING:
    import pandas as pd

    from hpobench_ordered.specs import SurrogateOption


def scored(
    store: Store, found: Overview, *, measured_only: bool = False
) -> tuple[list[BenchmarkScores], list[str]]:
    """Score the finished runs of a store.

    Args:
        store: The store.
        found: The runs that count.
        measured_only: Whether to leave out interpolated tasks and surrogates that stand in for
            others, see `SurrogateOption`.

    Returns:
        Scores by benchmark, surrogate and protocol; and why others could not be scored.

    Raises:
        StoreError: A file of the store is damaged.
    """
    done = found.keys(State.DONE)
    trials = store.read(done) if done else store.no_trials()
    timings = store.records.timings()
    runs, timings = found.runs, timings[timings["key"].isin(done)]
    if measured_only:
        trials, runs = _measured(trials), _measured(runs)
    return score_benchmarks(trials, runs, timings)


def _measured(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The rows of trials or runs that are neither interpolated nor of a stand-in."""
    drop = frame["key"].isna()  # of none
    pairs: Iterable[tuple[str, str]] = (
        frame[["benchmark", "surrogate"]].drop_duplicates().itertuples(index=False, name=None)
    )
    for benchmark, surrogate in pairs:
        option = _option(benchmark, surrogate)
        if option is None or not (option.stand_in or option.interpolated):
            continue
        rows = (frame["benchmark"] == benchmark) & (frame["surrogate"] == surrogate)
        if not option.stand_in:
            if "task_name" not in frame:
                continue
            rows &= frame["task_name"].isin(option.interpolated)
        drop |= rows
    return frame[~drop]


def _option(benchmark: str, surrogate: str) -> "SurrogateOption | None":
    """What the registry knows of a surrogate; nothing of a benchmark that is not there."""
    try:
        return benchmark_spec(benchmark).option(surrogate)
    except HPOBenchOrderedError:
        return None


def known_limits(runs: "pd.DataFrame") -> dict[str, tuple[str, ...]]:
    """Known limits of the surrogates, as their cards give them, by benchmark.

    Args:
        runs: One row a run, as `Overview.runs`.
    """
    limits = {}
    for benchmark in dict.fromkeys(map(str, runs["benchmark"])):
        try:
            artifact = benchmark_spec(benchmark).artifact
            texts = () if artifact is None else read_card(artifact).limits
        except HPOBenchOrderedError:  # a benchmark that is not there any more
            continue
        if texts:
            limits[benchmark] = texts
    return limits
