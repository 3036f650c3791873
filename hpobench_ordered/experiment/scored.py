"""Scores of the finished runs in a store."""

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.analysis.marks import find_marks
from hpobench_ordered.analysis.scoring import BenchmarkScores, score_benchmarks
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.data.identity import BenchmarkIdentity
from hpobench_ordered.errors import HPOBenchOrderedError
from hpobench_ordered.experiment.overview import Overview, State
from hpobench_ordered.experiment.stored_runs import StoredRuns
from hpobench_ordered.surrogates.bundle import find_card

if TYPE_CHECKING:
    import pandas as pd


def score_runs(
    store: StoredRuns, overview: Overview, *, measured_only: bool = False
) -> tuple[list[BenchmarkScores], list[str]]:
    """Score the finished runs.

    Args:
        store: Where their trials are.
        overview: The state of every run.
        measured_only: Whether to leave out interpolated tasks and stand-in surrogates.

    Returns:
        Scores by benchmark, surrogate and protocol; and for each of the others, a sentence that
        says why it has no scores.
    """
    finished = overview.keys(State.DONE)
    runs = overview.runs
    trials = store.read(finished)
    if measured_only:
        runs = select_measured(runs)
        trials = select_measured(trials)
    timings = store.timings(finished)

    # Some benchmarks have scores, but means over benchmarks leave them out, for these reasons.
    reasons_to_leave_out = explain_left_out(runs)
    # The family of each benchmark: in means, related benchmarks count as one.
    family_of_benchmark = find_families(runs)
    return score_benchmarks(trials, runs, timings, reasons_to_leave_out, family_of_benchmark)


def select_measured(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Select the trials or runs that are neither on interpolated tasks nor on stand-in surrogates.

    Args:
        frame: With columns benchmark and surrogate; of trials also task_name.
    """
    columns = [name for name in ("benchmark", "surrogate", "task_name") if name in frame]
    tasks = frame[columns].drop_duplicates()
    is_measured = [_is_measured(*task) for task in tasks.itertuples(index=False)]
    measured_tasks = tasks[np.array(is_measured, dtype=bool)]
    # The merge keeps the rows of these tasks, matched by all `columns`.
    return frame.merge(measured_tasks)


def _is_measured(benchmark: str, surrogate: str, task_name: str = "") -> bool:
    """Whether a task was measured: it is neither interpolated nor on a stand-in surrogate.

    A stand-in models something else in place of what defines the benchmark. Without the name of a
    task, only the surrogate counts. Benchmarks that are not registered count as measured.
    """
    with suppress(HPOBenchOrderedError):  # the registry does not know the benchmark
        option = benchmark_spec(benchmark).option(surrogate)
        return not (option.stand_in or task_name in option.interpolated)
    return True


def explain_left_out(runs: "pd.DataFrame") -> dict[tuple[str, str], str]:
    """Give the reason for each benchmark that means leave out, by benchmark and surrogate.

    A reason is that the surrogate is implausible, or that many configurations are nearly as good as
    the best one (a plateau).
    """
    reasons = {}
    pairs = runs[["benchmark", "surrogate"]].drop_duplicates()
    for benchmark, surrogate in pairs.itertuples(index=False, name=None):
        reason = _explain_left_out(benchmark, surrogate)
        if reason:
            reasons[str(benchmark), str(surrogate)] = reason
    return reasons


def _explain_left_out(benchmark: str, surrogate: str) -> str:
    """Give the reason why means leave a benchmark on a surrogate out; "" if they do not."""
    try:
        spec = benchmark_spec(benchmark)
        reason = spec.option(surrogate).left_out
        if reason:
            return reason
        if surrogate != spec.option().name:  # marks are of the default surrogate only
            return ""
        marks = find_marks(spec)  # properties that make a benchmark easy, such as a plateau
    except HPOBenchOrderedError:  # the registry does not know the benchmark
        return ""

    if marks and "plateau" in marks.names:
        return f"A plateau: {marks.near_best:.0%} of random configurations are near the best."
    return ""


def find_families(runs: "pd.DataFrame") -> dict[str, str]:
    """Find the family of each benchmark in a table of runs, by the benchmark's identity.

    Benchmarks that are not registered are left out.
    """
    family_of_benchmark = {}
    for identity in map(str, runs["benchmark"].unique()):
        # The name and version: the identity may also have a hash of the benchmark's content.
        benchmark_id = BenchmarkIdentity.parse(identity).id
        with suppress(HPOBenchOrderedError):  # the registry does not know the benchmark
            family_of_benchmark[identity] = benchmark_spec(benchmark_id).family
    return family_of_benchmark


def find_limits(runs: "pd.DataFrame") -> dict[str, tuple[str, ...]]:
    """Find the known limits of each benchmark's surrogates, in sentences from their cards.

    Benchmarks that are not registered, or have no known limits, are left out.
    """
    limits = {}
    for benchmark in dict.fromkeys(map(str, runs["benchmark"])):  # each once
        with suppress(HPOBenchOrderedError):  # the registry does not know the benchmark
            card = find_card(benchmark_spec(benchmark).artifact)
            if card is not None and card.limits:
                limits[benchmark] = card.limits
    return limits
