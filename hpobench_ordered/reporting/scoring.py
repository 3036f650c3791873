"""What a report says of each benchmark: normalised scores, values, regrets and ranks.

Which methods and seeds count: a method that has finished fewer than half of the planned seeds of a
benchmark is not compared there, and a seed that some compared method has not finished counts for
none. A method that finished nothing at all changes no number of the others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis import (
    Scores,
    TaskMean,
    fallback_counts,
    normalised_scores,
    of_incumbents,
    ranks_by_seed,
    trial_arrays,
)
from hpobench_ordered.analysis.curves import area_under_curve
from hpobench_ordered.analysis.regret import (
    LossRange,
    best_known,
    evaluated_range,
    normalised_regrets,
    simple_regrets,
)
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.protocols import Ordered
from hpobench_ordered.reporting.labels import protocol_label
from hpobench_ordered.reporting.style import drawing_order

if TYPE_CHECKING:
    import pandas as pd

TRIALS_SHOWN = (1, 10, 25)
"""Trials at which Hellan et al. (2023) show scores: figures 5, 14 and 15."""

NEEDED = 0.5
"""Share of the planned seeds that a method must have finished to be compared."""

GROUP = ("benchmark", "surrogate", "protocol")
"""What is scored by itself."""

UNDEFINED = {
    "score": "no method ends better than random search",
    "regret": "no best value is known",
    "normalised regret": "no best value is known",
    "regret over trials": "no best value is known",
}
"""Why a measure is not defined on a task."""


@dataclass(frozen=True, slots=True)
class Excluded:
    """A method that is left out of the comparison on a benchmark.

    Attributes:
        method: Its name.
        finished: Number of seeds it has finished.
        planned: Number of planned seeds.
    """

    method: str
    finished: int
    planned: int

    def __str__(self) -> str:
        return f"{self.method} (finished {self.finished} of {self.planned})"


@dataclass(frozen=True, slots=True)
class BenchmarkScores:
    """What was measured of all compared methods on one benchmark under one protocol.

    Attributes:
        benchmark: Name and version of the benchmark, with the surrogate.
        protocol: The protocol, with its settings.
        methods: Names of the compared methods, length A, in drawing order: the reference first.
        task_names: Names of the tasks, in order, length T.
        seed_numbers: The seeds that count, length S.
        losses: Loss of every trial, shape (A, S, T, M).
        measures: Of the best trial so far, by name: the normalised "score", the "value" in the
            objective's own units, the "regret", the "normalised regret", the "regret over trials",
            which is the mean of the latter up to a trial, and the "rank" among the methods.
        unavailable: Why a measure is NaN everywhere, by its name.
        is_maximised: Whether higher values are better.
        fallbacks: Suggestions each method made at random because its model failed.
        left_out: Seeds that some compared method has not finished, and that count for none.
        excluded: Methods that are not compared.
    """

    benchmark: str
    protocol: str
    methods: tuple[str, ...]
    task_names: tuple[str, ...]
    seed_numbers: tuple[int, ...]
    losses: FloatArray
    measures: Mapping[str, Scores]
    unavailable: Mapping[str, str]
    is_maximised: bool
    fallbacks: Mapping[str, int]
    left_out: tuple[int, ...]
    excluded: tuple[Excluded, ...]

    @property
    def scores(self) -> Scores:
        """Normalised scores."""
        return self.measures["score"]

    @property
    def seeds(self) -> int:
        """Number of seeds that count."""
        return len(self.seed_numbers)

    @property
    def title(self) -> str:
        """One line that says what was run."""
        return f"{self.benchmark}, {protocol_label(self.protocol)}: {self.size}"

    @property
    def size(self) -> str:
        """Number of seeds, tasks and trials, in words."""
        counts = (
            _count(self.seeds, "seed"),
            _count(len(self.task_names), "task"),
            _count(self.last_trial, "trial"),
        )
        return ", ".join(counts)

    @property
    def last_trial(self) -> int:
        """Number of trials."""
        return int(self.losses.shape[-1])

    @property
    def trials(self) -> tuple[int, ...]:
        """Trials to show: the paper's, as far as there are so many, and the last."""
        return tuple(sorted({t for t in TRIALS_SHOWN if t < self.last_trial} | {self.last_trial}))

    @property
    def first_task(self) -> int:
        """First task that counts, from 0.

        In the ordered protocol it is task 2, the first with history, or the only task; in others
        all tasks count.
        """
        is_ordered = self.protocol.partition("(")[0] == Ordered().name
        return 1 if is_ordered and len(self.task_names) > 1 else 0

    def notes(self) -> list[str]:
        """What a reader of the scores must know, one sentence each."""
        notes = [
            f"{method} fell back to {count} random suggestions."
            for method, count in self.fallbacks.items()
            if count
        ]
        notes += [f"The {name} is not available: {why}." for name, why in self.unavailable.items()]
        for measure in ("score", "regret"):
            mean = self.over_tasks(measure, self.last_trial)
            if mean.defined < mean.tasks and measure not in self.unavailable:
                left_out = _count(mean.tasks - mean.defined, "task")
                notes.append(f"{left_out} without a {measure}: {UNDEFINED[measure]}.")
        if self.left_out:
            notes.append(f"Seeds left out, not run by every method: {ranges(self.left_out)}.")
        if self.excluded:
            methods = ", ".join(map(str, self.excluded))
            notes.append(f"Not compared, for want of half of the planned seeds: {methods}.")
        return notes

    def undefined(self) -> dict[str, str]:
        """Why measures are defined on no task that counts, by the name of the measure."""
        found = {
            measure: why
            for measure, why in UNDEFINED.items()
            if not self.over_tasks(measure, self.last_trial).defined
        }
        return found | dict(self.unavailable)

    def over_tasks(self, measure: str, trial: int) -> TaskMean:
        """Mean of a measure over the tasks that count, see `first_task`."""
        return self.measures[measure].over_tasks(trial=trial, first_task=self.first_task)


def ranges(numbers: Iterable[int]) -> str:
    """Whole numbers in short: "0 to 4, 7"."""
    runs: list[list[int]] = []
    for number in sorted(map(int, numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in runs)


def runs_of(trials: "pd.DataFrame") -> "pd.DataFrame":
    """The runs that some trials belong to, all of them finished, as `Overview.runs` has them."""
    columns = [*GROUP, "method", "seed"]
    return trials[columns].drop_duplicates(ignore_index=True).assign(state="done")


def score_benchmarks(
    results: "pd.DataFrame", runs: "pd.DataFrame | None" = None
) -> tuple[list[BenchmarkScores], list[str]]:
    """Score every benchmark in some results, on the seeds that all compared methods have run.

    Args:
        results: One row a trial, as `Store.read` gives.
        runs: One row a planned run, as `Overview.runs`; without, those in the results.

    Returns:
        Scores by benchmark, surrogate and protocol; and why others could not be scored.
    """
    planned = runs_of(results) if runs is None else runs
    by_group = dict(iter(results.groupby(list(GROUP), observed=True)))
    scored, unscored = [], []
    for keys, group in planned.groupby(list(GROUP), observed=True):
        benchmark, surrogate, protocol = map(str, keys)
        label = f"{benchmark} ({surrogate})"
        try:
            if keys not in by_group:
                raise ExperimentError("no run is finished")  # noqa: TRY301
            scored.append(_score(label, protocol, by_group[keys], group))
        except ExperimentError as error:
            unscored.append(f"{label}, {protocol_label(protocol)}: {error}.")
    return scored, unscored


def by_protocol(scored: Sequence[BenchmarkScores]) -> dict[str, list[BenchmarkScores]]:
    """Scores by protocol, that of most benchmarks first; benchmarks in the order given."""
    found: dict[str, list[BenchmarkScores]] = {}
    for item in scored:
        found.setdefault(item.protocol, []).append(item)
    return dict(sorted(found.items(), key=lambda entry: (-len(entry[1]), entry[0])))


@dataclass(frozen=True, slots=True)
class _Compared:
    """Which methods and seeds are compared on a benchmark."""

    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    left_out: tuple[int, ...]
    excluded: tuple[Excluded, ...]


def _compared(trials: "pd.DataFrame", planned: "pd.DataFrame") -> _Compared:
    """Choose what is compared on a benchmark.

    Raises:
        ExperimentError: There are no two numbers that could be compared.
    """
    finished = {
        str(method): frozenset(map(int, seeds))
        for method, seeds in trials.groupby("method", observed=True)["seed"].unique().items()
    }
    # A method that finished nothing must not change how many seeds the others need.
    seeds = planned.loc[planned["method"].isin(list(finished)), "seed"].nunique()
    chosen = [name for name in finished if len(finished[name]) >= NEEDED * seeds]
    methods = drawing_order(chosen)
    if not methods:
        raise ExperimentError("no method has finished half of the planned seeds")
    by_all = frozenset.intersection(*(finished[name] for name in methods))
    if not by_all:
        raise ExperimentError("no seed was run by all of " + ", ".join(methods))
    by_some = frozenset[int]().union(*(finished[name] for name in methods))
    excluded = tuple(
        Excluded(name, len(finished.get(name, ())), seeds)
        for name in drawing_order(set(map(str, planned["method"].unique())) - set(methods))
    )
    return _Compared(
        tuple(methods), tuple(sorted(by_all)), tuple(sorted(by_some - by_all)), excluded
    )


def _score(
    label: str, protocol: str, trials: "pd.DataFrame", planned: "pd.DataFrame"
) -> BenchmarkScores:
    compared = _compared(trials, planned)
    counts = trials["method"].isin(compared.methods) & trials["seed"].isin(compared.seeds)
    chosen = trials if counts.all() else trials[counts]
    arrays = trial_arrays(chosen, compared.methods, ["loss", "value", "regret"])
    measures, unavailable = _measures(arrays, compared.methods)
    tasks = chosen[["task", "task_name"]].drop_duplicates("task").sort_values("task")
    return BenchmarkScores(
        benchmark=label,
        protocol=protocol,
        methods=compared.methods,
        task_names=tuple(map(str, tasks["task_name"])),
        seed_numbers=compared.seeds,
        losses=arrays["loss"],
        measures=measures,
        unavailable=unavailable,
        is_maximised=bool((arrays["value"] != arrays["loss"]).any()),
        fallbacks=fallback_counts(chosen),
        left_out=compared.left_out,
        excluded=compared.excluded,
    )


def _measures(
    arrays: Mapping[str, FloatArray], methods: tuple[str, ...]
) -> tuple[Mapping[str, Scores], Mapping[str, str]]:
    """Every measure, and why some of them are NaN everywhere."""
    losses, regrets = arrays["loss"], arrays["regret"]
    normalised = _normalised_regrets(losses, regrets)
    quantities = {
        "value": of_incumbents(arrays["value"], losses),
        "regret": simple_regrets(regrets, losses),
        "normalised regret": normalised,
        "regret over trials": _running_means(normalised),
    }
    measures = {name: Scores(methods, quantity) for name, quantity in quantities.items()}
    unavailable = {}
    try:
        score = normalised_scores(losses, methods)
    except ExperimentError as error:
        score = Scores(methods, np.full(losses.shape, np.nan))
        unavailable["score"] = str(error)
    measures = {"score": score, **measures, "rank": ranks_by_seed(losses, methods)}
    return MappingProxyType(measures), MappingProxyType(unavailable)


def _normalised_regrets(losses: FloatArray, regrets: FloatArray) -> FloatArray:
    """Regrets relative to the distance of the worst loss that any compared method met."""
    worst = evaluated_range(losses).worst
    return normalised_regrets(losses, LossRange(best_known(losses, regrets), worst))


def _running_means(curves: FloatArray) -> FloatArray:
    """Mean of curves up to every trial, the area on a linear axis; shape as given."""
    ends = range(1, curves.shape[-1] + 1)
    return np.stack([area_under_curve(curves[..., :end]) for end in ends], axis=-1)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
