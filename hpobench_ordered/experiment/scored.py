"""Scores of what is in a store: reads the finished runs and hands them to `analysis`."""

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.analysis.scoring import BenchmarkScores, score_benchmarks
from hpobench_ordered.bundle import read_card
from hpobench_ordered.errors import HPOBenchOrderedError
from hpobench_ordered.experiment.overview import Overview, State
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.registry import benchmark_spec

if TYPE_CHECKING:
    import pandas as pd


def scored(
    store: Store, found: Overview, *, measured_only: bool = False
) -> tuple[list[BenchmarkScores], list[str]]:
    """Scores of finished runs by benchmark, surrogate and protocol; why others have none.

    `measured_only` leaves out interpolated tasks and stand-in surrogates, see `SurrogateOption`.
    """
    done, runs = found.keys(State.DONE), found.runs
    trials, timings = store.read(done), store.records.timings(done)
    if measured_only:
        trials, runs = _measured(trials), _measured(runs)
    return score_benchmarks(trials, runs, timings)


def _measured(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The rows of trials or runs that are neither interpolated nor of a stand-in."""
    columns = [name for name in ("benchmark", "surrogate", "task_name") if name in frame]
    kinds = frame[columns].drop_duplicates()
    is_measured = [_is_measured(*kind) for kind in kinds.itertuples(index=False)]
    return frame.merge(kinds[np.array(is_measured, dtype=bool)])


def _is_measured(benchmark: str, surrogate: str, task_name: str = "") -> bool:
    """Whether a task is; so is all of a benchmark that the registry does not know."""
    try:
        option = benchmark_spec(benchmark).option(surrogate)
    except HPOBenchOrderedError:
        return True
    return not (option.stand_in or task_name in option.interpolated)


def known_limits(runs: "pd.DataFrame") -> dict[str, tuple[str, ...]]:
    """Known limits of the surrogates of runs, as their cards give them, by benchmark."""
    limits = {}
    for benchmark in dict.fromkeys(map(str, runs["benchmark"])):
        with suppress(HPOBenchOrderedError):  # a benchmark that is not there any more
            artifact = benchmark_spec(benchmark).artifact
            if artifact is not None and (texts := read_card(artifact).limits):
                limits[benchmark] = texts
    return limits
