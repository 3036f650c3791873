"""Scores of the finished runs in a store."""

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.analysis.marks import find_marks
from hpobench_ordered.analysis.scoring import BenchmarkScores, score_benchmarks
from hpobench_ordered.core.identity import BenchmarkIdentity
from hpobench_ordered.errors import HPOBenchOrderedError
from hpobench_ordered.experiment.overview import Overview, State
from hpobench_ordered.experiment.stored_runs import StoredRuns
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.surrogates.bundle import find_card

if TYPE_CHECKING:
    import pandas as pd


def scored(
    store: StoredRuns, found: Overview, *, measured_only: bool = False
) -> tuple[list[BenchmarkScores], list[str]]:
    """Scores by benchmark, surrogate and protocol, and why others could not be scored."""
    done, runs = found.keys(State.DONE), found.runs
    trials, timings = store.read(done), store.timings(done)
    if measured_only:
        trials, runs = measured(trials), measured(runs)
    return score_benchmarks(trials, runs, timings, left_out(runs), families(runs))


def measured(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Trials or runs that are neither on interpolated tasks nor on stand-in surrogates."""
    columns = [name for name in ("benchmark", "surrogate", "task_name") if name in frame]
    kinds = frame[columns].drop_duplicates()
    is_measured = [_is_measured(*kind) for kind in kinds.itertuples(index=False)]
    return frame.merge(kinds[np.array(is_measured, dtype=bool)])


def _is_measured(benchmark: str, surrogate: str, task_name: str = "") -> bool:
    """Whether a task is measured; True for benchmarks that are not registered."""
    with suppress(HPOBenchOrderedError):
        option = benchmark_spec(benchmark).option(surrogate)
        return not (option.stand_in or task_name in option.interpolated)
    return True


def left_out(runs: "pd.DataFrame") -> dict[tuple[str, str], str]:
    """Why means leave some benchmarks out, by benchmark and surrogate: implausible, plateaus."""
    kinds = runs[["benchmark", "surrogate"]].drop_duplicates().itertuples(index=False, name=None)
    reasons = {(str(name), str(surrogate)): _reason(name, surrogate) for name, surrogate in kinds}
    return {kind: reason for kind, reason in reasons.items() if reason}


def _reason(benchmark: str, surrogate: str) -> str:
    """Why means leave a benchmark on a surrogate out; "" if they do not."""
    with suppress(HPOBenchOrderedError):  # the registry does not know it
        spec = benchmark_spec(benchmark)
        if reason := spec.option(surrogate).left_out:
            return reason
        marks = find_marks(spec) if spec.option().name == surrogate else None
        if marks and "plateau" in marks.names:
            return f"A plateau: {marks.near_best:.0%} of random configurations are near the best."
    return ""


def families(runs: "pd.DataFrame") -> dict[str, str]:
    """Families of registered benchmarks, by name."""
    found = {}
    for name in map(str, runs["benchmark"].unique()):
        with suppress(HPOBenchOrderedError):
            found[name] = benchmark_spec(BenchmarkIdentity.parse(name).id).family
    return found


def known_limits(runs: "pd.DataFrame") -> dict[str, tuple[str, ...]]:
    """Known limits of the benchmarks' surrogates, from their cards."""
    limits = {}
    for benchmark in dict.fromkeys(map(str, runs["benchmark"])):
        with suppress(HPOBenchOrderedError):
            card = find_card(benchmark_spec(benchmark).artifact)
            if card is not None and card.limits:
                limits[benchmark] = card.limits
    return limits
