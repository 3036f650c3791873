"""Measures on each benchmark: scores, values, regrets and ranks of every run.

A method that has finished fewer than half of a benchmark's planned seeds is not compared on it.
Otherwise all its finished runs count: means are over all seeds that it has finished, comparisons
over the seeds that both methods have, so a failed run does not change another method's means.

Notation:
    A   number of compared methods
    S   number of seeds that any of them has finished
    T   number of tasks
    M   number of trials per task
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.labels import format_count, format_ranges, label_protocol
from hpobench_ordered.analysis.samples import at_incumbents, finished_runs, trial_arrays
from hpobench_ordered.analysis.scores import (
    RANDOM_SEARCH,
    Scores,
    TaskMean,
    best_known_losses,
    highest_losses,
    lowest_losses,
    normalised_regrets,
    ranks_by_seed,
    robust_scores,
)
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.protocols import Ordered, parse_protocol_name

if TYPE_CHECKING:
    import pandas as pd

SHARE_NEEDED = 0.5  # share of the planned seeds that a method must have finished to be compared
GROUP = ("benchmark", "surrogate", "protocol")  # columns that identify what is scored separately

NAMES = ("method", "task_name")
NEEDED = (*NAMES, "seed", "task", "trial", "loss", "value", "regret", "fallbacks")
"""Columns of trials that scores are made from; names as categories, which are fast."""

UNDEFINED = {
    "score": "half of random search's trials are as good as the best",
    "regret": "no best value is known",
}
"""Why a measure is not defined on a task."""


@dataclass(frozen=True, slots=True)
class MethodRuns:
    """States and times of the runs of one method on one benchmark."""

    states: Mapping[str, int]
    seeds: tuple[int, ...] = ()
    suggestions: int = 0
    seconds: float = 0.0

    @property
    def planned(self) -> int:
        """Number of planned runs."""
        return sum(self.states.values())

    @property
    def failed(self) -> int:
        """Number of failed runs."""
        return self.states.get("failed", 0)


@dataclass(frozen=True, slots=True)
class BenchmarkScores:
    """Measures of all compared methods on one benchmark under one protocol.

    Attributes:
        benchmark: Name and version of the benchmark.
        surrogate: What it was evaluated on.
        protocol: The protocol, with its settings.
        methods: Names of the compared methods, length A: random search first, others by name.
        tasks: Indices of the tasks in the benchmark, from 0, ascending, length T.
        task_names: Their names.
        seed_numbers: The seeds that any compared method has finished, length S.
        losses: Loss of every trial, shape (A, S, T, M); NaN in runs that were not finished.
        measures: Of the best trial so far, by name: the "score"; the "regret", which is
            normalised; the "rank" among the methods; the "regret_over_trials", the mean of the
            regret up to a trial; and in the objective's own units the "simple_regret" and the
            "value". NaN in runs that were not finished, and on tasks without the measure.
        unavailable: Why a measure is NaN everywhere, by its name.
        is_maximised: Whether higher values are better.
        fallbacks: Suggestions each method made at random because its model failed.
        runs: States of the runs of every planned method, compared or not.
        left_out: Why means over benchmarks leave it out; "" if they do not.
        family: Benchmarks of one family count once together in means over benchmarks; "" if it is
            the only one of its family.
    """

    benchmark: str
    surrogate: str
    protocol: str
    methods: tuple[str, ...]
    tasks: tuple[int, ...]
    task_names: tuple[str, ...]
    seed_numbers: tuple[int, ...]
    losses: FloatArray
    measures: Mapping[str, Scores]
    unavailable: Mapping[str, str]
    is_maximised: bool
    fallbacks: Mapping[str, int]
    runs: Mapping[str, MethodRuns]
    left_out: str = ""
    family: str = ""

    @property
    def label(self) -> str:
        """The benchmark with its surrogate."""
        return f"{self.benchmark} ({self.surrogate})"

    @property
    def last_trial(self) -> int:
        """Number of trials."""
        return int(self.losses.shape[-1])

    @property
    def first_task(self) -> int:
        """Index in `tasks` of the first task that counts.

        In the ordered protocol the benchmark's first task has no history and does not count, unless
        it is the only one; in others all tasks count.
        """
        is_ordered = parse_protocol_name(self.protocol) == Ordered().name
        return 1 if is_ordered and len(self.tasks) > 1 and self.tasks[0] == 0 else 0

    def place(self, method: str) -> int:
        """Index of a method in the arrays."""
        return self.methods.index(method)

    def over_tasks(self, measure: str, trial: int) -> TaskMean:
        """Mean of a measure over the tasks that count, see `first_task`."""
        return self.measures[measure].over_tasks(trial=trial, first_task=self.first_task)

    def is_defined(self, measure: str) -> bool:
        """Whether a measure is defined on any task that counts."""
        return self.over_tasks(measure, self.last_trial).defined > 0

    def notes(self) -> list[str]:
        """Notes for readers of the scores, one sentence each."""
        notes = []
        if self.left_out:
            notes.append(f"Means over several benchmarks leave it out. {self.left_out}")
        notes += [
            f"{method} fell back to {count} random suggestions."
            for method, count in self.fallbacks.items()
            if count
        ]
        notes += [f"The {name} is not available: {why}." for name, why in self.unavailable.items()]
        for measure, reason in UNDEFINED.items():
            mean = self.over_tasks(measure, self.last_trial)
            if mean.defined < mean.tasks and measure not in self.unavailable:
                tasks = format_count(mean.tasks - mean.defined, "task")
                notes.append(f"{tasks} without a {measure}: {reason}.")
        for method in self.methods:
            lacking = set(self.seed_numbers) - set(self.runs[method].seeds)
            if lacking:
                noun = "seed" if len(lacking) == 1 else "seeds"
                notes.append(f"{method} has not finished {noun} {format_ranges(lacking)}.")
        others = ", ".join(
            f"{name} ({len(runs.seeds)} of {runs.planned})"
            for name, runs in self.runs.items()
            if name not in self.methods
        )
        if others:
            notes.append(f"Not compared, with fewer than half of their runs finished: {others}.")
        return notes


def fallback_counts(results: "pd.DataFrame") -> dict[str, int]:
    """Number of suggestions that each method made at random because its model failed."""
    # Counts accumulate over the trials of a task.
    by_task = results.groupby(["method", "seed", "task"], observed=True)["fallbacks"].max()
    return {str(m): int(n) for m, n in by_task.groupby("method", observed=True).sum().items()}


def runs_of_trials(trials: "pd.DataFrame") -> "pd.DataFrame":
    """The runs that trials belong to, all of them finished, in the columns of `Overview.runs`."""
    columns = [*GROUP, "method", "seed"]
    return trials[columns].drop_duplicates(ignore_index=True).assign(state="done")


def score_benchmarks(
    results: "pd.DataFrame",
    runs: "pd.DataFrame | None" = None,
    timings: "pd.DataFrame | None" = None,
    left_out: Mapping[tuple[str, str], str] = MappingProxyType({}),
    families: Mapping[str, str] = MappingProxyType({}),
) -> tuple[list[BenchmarkScores], list[str]]:
    """Score every benchmark in some results.

    Args:
        results: One row per trial, as returned by `Store.read`.
        runs: One row per planned run, as `Overview.runs`; default: those in the results.
        timings: One row per run, as returned by `Results.timings`; default: unknown.
        left_out: Why means over benchmarks leave a benchmark out, by its name and surrogate.
        families: Families of benchmarks, by name; each of the others is its own family.

    Returns:
        Scores by benchmark, surrogate and protocol; and why others could not be scored.
    """
    slim = results[[*GROUP, *NEEDED]].astype(dict.fromkeys((*GROUP, *NAMES), "category"))
    planned = runs_of_trials(slim) if runs is None else runs
    by_group = dict(iter(slim.groupby(list(GROUP), observed=True)[list(NEEDED)]))
    timed = {} if timings is None else dict(iter(timings.groupby(list(GROUP), observed=True)))
    scored, unscored = [], []
    for keys, group in planned.groupby(list(GROUP), observed=True):
        names = dict(zip(GROUP, map(str, keys), strict=True))
        try:
            if keys not in by_group:
                raise ExperimentError("no run is finished")  # noqa: TRY301
            item = _score(names, by_group[keys], group, timed.get(keys))
            reason = left_out.get((item.benchmark, item.surrogate), "")
            family = families.get(item.benchmark, "")
            scored.append(replace(item, left_out=reason, family=family))
        except ExperimentError as error:
            label = f"{names['benchmark']} ({names['surrogate']})"
            unscored.append(f"{label}, {label_protocol(names['protocol'])}: {error}.")
    return scored, unscored


def group_by_protocol(scored: Sequence[BenchmarkScores]) -> dict[str, list[BenchmarkScores]]:
    """Scores by protocol, the one with most benchmarks first; benchmarks stay in their order."""
    groups: dict[str, list[BenchmarkScores]] = {}
    for item in scored:
        groups.setdefault(item.protocol, []).append(item)
    return dict(sorted(groups.items(), key=lambda entry: (-len(entry[1]), entry[0])))


def _score(
    names: Mapping[str, str],
    trials: "pd.DataFrame",
    planned: "pd.DataFrame",
    timings: "pd.DataFrame | None",
) -> BenchmarkScores:
    runs = _runs(trials, planned, timings)
    methods = _compared(runs, planned)
    compared = trials["method"].isin(methods)
    chosen = trials if compared.all() else trials[compared]
    arrays = trial_arrays(chosen, methods, ["loss", "value", "regret"], allow_missing_runs=True)
    measures, unavailable = _measures(arrays, methods)
    tasks = chosen[["task", "task_name"]].drop_duplicates("task").sort_values("task")
    known = finished_runs(arrays["loss"])[..., None, None]
    return BenchmarkScores(
        **names,
        methods=methods,
        tasks=tuple(map(int, tasks["task"])),
        task_names=tuple(map(str, tasks["task_name"])),
        seed_numbers=tuple(sorted({seed for name in methods for seed in runs[name].seeds})),
        losses=arrays["loss"],
        measures=measures,
        unavailable=unavailable,
        is_maximised=bool(((arrays["value"] != arrays["loss"]) & known).any()),
        fallbacks=fallback_counts(chosen),
        runs=runs,
    )


def _runs(
    trials: "pd.DataFrame", planned: "pd.DataFrame", timings: "pd.DataFrame | None"
) -> dict[str, MethodRuns]:
    """States of the runs of every planned method, in the order of `BenchmarkScores`."""
    finished = trials[["method", "seed"]].drop_duplicates()
    seeds = finished.groupby("method", observed=True)["seed"].agg(list).to_dict()
    by_method = planned.groupby("method", observed=True)["state"]
    states = {str(method): part.value_counts().to_dict() for method, part in by_method}
    spent: dict[str, dict[str, float]] = {}
    if timings is not None:
        sums = timings.groupby("method", observed=True)[["suggestions", "method_seconds"]].sum()
        spent = {str(method): row.to_dict() for method, row in sums.iterrows()}
    return {
        method: MethodRuns(
            states=MappingProxyType(states[method]),
            seeds=tuple(sorted(map(int, seeds.get(method, ())))),
            suggestions=int(spent.get(method, {}).get("suggestions", 0)),
            seconds=spent.get(method, {}).get("method_seconds", 0.0),
        )
        for method in sorted(states, key=lambda name: (name != RANDOM_SEARCH, name))
    }


def _compared(runs: Mapping[str, MethodRuns], planned: "pd.DataFrame") -> tuple[str, ...]:
    """The methods that are compared on a benchmark."""
    # A method that finished nothing must not change how many seeds the others need.
    some = [method for method, its in runs.items() if its.seeds]
    seeds = planned.loc[planned["method"].isin(some), "seed"].nunique()
    methods = tuple(name for name in some if len(runs[name].seeds) >= SHARE_NEEDED * seeds)
    if not methods:
        raise ExperimentError("no method has finished half of the planned seeds")
    return methods


def _measures(
    arrays: Mapping[str, FloatArray], methods: tuple[str, ...]
) -> tuple[Mapping[str, Scores], Mapping[str, str]]:
    """Every measure, and why some of them are NaN everywhere."""
    losses, regrets = arrays["loss"], arrays["regret"]
    # A method may beat the best known loss.
    known, met = best_known_losses(losses, regrets), lowest_losses(losses)
    regret = normalised_regrets(losses, np.minimum(known, met), highest_losses(losses))
    running = np.cumsum(regret, axis=-1) / np.arange(1, losses.shape[-1] + 1)
    unavailable = {}
    try:
        score = robust_scores(losses, methods, np.fmin(known, met))
    except ExperimentError as error:
        score = Scores(methods, np.full(losses.shape, np.nan))
        unavailable["score"] = str(error)
    measures = {
        "score": score,
        "regret": Scores(methods, regret, possible=(0, 1)),
        "rank": ranks_by_seed(losses, methods),
        "regret_over_trials": Scores(methods, running, possible=(0, 1)),
        "simple_regret": Scores(methods, at_incumbents(regrets, losses)),
        "value": Scores(methods, at_incumbents(arrays["value"], losses)),
    }
    return MappingProxyType(measures), MappingProxyType(unavailable)
