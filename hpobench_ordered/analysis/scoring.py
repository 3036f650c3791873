"""Measures on each benchmark: scores, values, regrets and ranks of every run.

A method that has finished fewer than half of the seeds planned for it on a benchmark is not
compared there. Otherwise all its finished runs count: means are over all seeds that it has
finished, comparisons over the seeds that both methods have, so that neither a failed run nor a
method planned with fewer seeds changes another method's means.

Notation:
    A   number of compared methods
    S   number of seeds that any of them has finished
    T   number of tasks
    M   number of trials per task
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray
from hpobench_ordered.analysis.labels import (
    format_count,
    format_ranges,
    is_submitted,
    label_protocol,
)
from hpobench_ordered.analysis.samples import at_incumbents, replace_failures, trial_arrays
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
from hpobench_ordered.analysis.wins import Wins, count_wins
from hpobench_ordered.data.protocol_text import ORDERED, parse_protocol_name
from hpobench_ordered.data.tables import COST
from hpobench_ordered.errors import ExperimentError

if TYPE_CHECKING:
    import pandas as pd

MIN_SHARE_OF_SEEDS = 0.5  # of the seeds planned for a method, that it must finish to be compared
GROUP_COLUMNS = ("benchmark", "surrogate", "protocol")
"""Columns that identify what is scored separately."""

NAME_COLUMNS = ("method", "task_name")
NEEDED_COLUMNS = (*NAME_COLUMNS, "seed", "task", "trial", "loss", "value", "regret", "fallbacks")
"""Columns of trials that scores are made from; names as categories, which are fast."""

REASON_UNDEFINED = {
    "score": "half of random search's trials are as good as the best",
    "regret": "no best value is known",
}
"""Why a measure may not be defined on a task, by its name, if not all evaluations failed there."""

ALL_FAILED = "all evaluations failed"
"""Why no measure but the rank is defined on a task, or on a whole benchmark."""


@dataclass(frozen=True, slots=True)
class MethodRuns:
    """States and times of the runs of one method on one benchmark.

    Attributes:
        states: Number of runs in each state.
        seeds: Seeds of the finished runs.
        planned_seeds: Seeds of all planned runs.
        evaluations: Number of evaluations in the finished runs.
        failed_evaluations: Number of those that failed, whose loss is infinite.
        timed_suggestions: Number of suggestions whose CPU time is known.
        cpu_seconds: CPU time of the method in these suggestions.
    """

    states: Mapping[str, int]
    seeds: tuple[int, ...] = ()
    planned_seeds: tuple[int, ...] = ()
    evaluations: int = 0
    failed_evaluations: int = 0
    timed_suggestions: int = 0
    cpu_seconds: float = 0.0

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
        methods: Names of the compared methods, random search first, the others by name.
        tasks: Indices of the tasks in the benchmark, from 0, ascending.
        task_names: Their names.
        seed_numbers: The seeds that any compared method has finished.
        losses: Loss of every trial, (methods, seeds, tasks, trials); infinite where the evaluation
            failed, and in runs that were not finished.
        costs: Seconds of every evaluation, of the same shape; None if some are unknown.
        is_finished: Which runs were finished, (methods, seeds).
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
    costs: FloatArray | None
    is_finished: BoolArray
    measures: Mapping[str, Scores]
    unavailable: Mapping[str, str]
    is_maximised: bool
    fallbacks: Mapping[str, int]
    runs: Mapping[str, MethodRuns]
    left_out: str = ""
    family: str = ""

    @property
    def label(self) -> str:
        """Name of the benchmark, with its surrogate in brackets."""
        return f"{self.benchmark} ({self.surrogate})"

    @property
    def last_trial(self) -> int:
        """Number of trials."""
        return int(self.losses.shape[-1])

    @property
    def first_task(self) -> int:
        """Index in `tasks` of the first task that counts.

        In the ordered protocol the benchmark's first task has no history and does not count, unless
        it is the only task; in other protocols all tasks count.
        """
        return _find_first_task(self.protocol, self.tasks)

    def among(self, methods: tuple[str, ...]) -> "BenchmarkScores":
        """Keep the scores of some of the compared methods, and rank these among themselves.

        Scores and regrets stay relative to what any compared method has met.
        """
        if methods == self.methods:
            return self
        places = [self.place(method) for method in methods]
        losses = self.losses[places]
        is_finished = self.is_finished[places]
        measures = {}
        for name, scores in self.measures.items():
            measures[name] = replace(scores, methods=methods, values=scores.values[places])
        measures["rank"] = ranks_by_seed(
            losses, methods, is_finished=is_finished, first_task=self.first_task
        )
        return replace(
            self,
            methods=methods,
            losses=losses,
            costs=None if self.costs is None else self.costs[places],
            is_finished=is_finished,
            measures=MappingProxyType(measures),
            fallbacks={method: self.fallbacks[method] for method in methods},
        )

    def place(self, method: str) -> int:
        """Return the index of a method along the first axis of the arrays."""
        return self.methods.index(method)

    def count_wins(self, trial: int) -> Wins:
        """Compare every pair of the methods after a trial, on the tasks that count.

        Raises:
            ExperimentError: There is no such trial.
        """
        return count_wins(
            self.losses,
            self.methods,
            trial=trial,
            first_task=self.first_task,
            is_finished=self.is_finished,
        )

    def over_tasks(self, measure: str, trial: int) -> TaskMean:
        """Average a measure after a trial, over seeds and over the tasks that count.

        Args:
            measure: Name of the measure.
            trial: The trial, counted from 1. `first_task` says which tasks count.
        """
        return self.measures[measure].over_tasks(trial=trial, first_task=self.first_task)

    def is_defined(self, measure: str) -> bool:
        """Whether a measure is defined on at least one task that counts."""
        return self.over_tasks(measure, self.last_trial).defined > 0

    def notes(self) -> list[str]:
        """List sentences on everything that limits what the scores mean.

        They say why means leave the benchmark out; which methods made random suggestions instead
        of their own; which evaluations failed; which measures are undefined; and which seeds and
        methods are missing.
        """
        notes = []
        if self.left_out:  # the reason, or "" if means do not leave the benchmark out
            notes.append(f"Means over several benchmarks leave it out. {self.left_out}")
        for method, count in self.fallbacks.items():  # random suggestions, as the model failed
            if count:
                notes.append(f"{method} fell back to {count} random suggestions.")
        for method in self.methods:
            runs = self.runs[method]
            if runs.failed_evaluations:
                counted = f"{runs.failed_evaluations} of {runs.evaluations} evaluations"
                notes.append(f"{method}: {counted} failed.")
        return notes + self._notes_on_measures() + self._notes_on_runs()

    def _notes_on_measures(self) -> list[str]:
        """Say which measures are undefined, on all tasks or on some, and why.

        Only the tasks that count are looked at.
        """
        notes = [f"The {name} is not available: {why}." for name, why in self.unavailable.items()]

        has_failed = np.isinf(self.losses[:, :, self.first_task :])
        has_task_failed = has_failed.all(axis=(0, 1, 3))  # in all runs and trials, (tasks,)
        n_failed = int(has_task_failed.sum())
        n_tasks = has_failed.shape[2]
        if 0 < n_failed < n_tasks:  # if all tasks failed, `unavailable` has said so
            tasks = format_count(n_failed, "task")
            notes.append(f"{tasks} without a score, regret or value: {ALL_FAILED}.")

        for measure, reason in REASON_UNDEFINED.items():
            mean = self.over_tasks(measure, self.last_trial)
            # On tasks where all evaluations failed, the note above has said so.
            n_undefined = mean.tasks - mean.defined - n_failed
            if n_undefined and measure not in self.unavailable:
                notes.append(f"{format_count(n_undefined, 'task')} without a {measure}: {reason}.")
        return notes

    def _notes_on_runs(self) -> list[str]:
        """Say what is missing or special about the runs.

        The notes say which planned seeds a compared method has not finished; which methods were
        planned with fewer seeds than others; which were submitted; and which are not compared.
        """
        notes = []
        # Methods that were planned with fewer seeds than others, by the text of their seeds.
        methods_of_fewer_seeds: dict[str, list[str]] = {}
        for method in self.methods:
            runs = self.runs[method]
            planned = set(self.seed_numbers).intersection(runs.planned_seeds)
            missing = planned.difference(runs.seeds)
            if missing:
                notes.append(f"{method} has not finished {_name_seeds(missing)}.")
            if len(planned) < len(self.seed_numbers):
                methods_of_fewer_seeds.setdefault(_name_seeds(planned), []).append(method)
        for seeds, methods in methods_of_fewer_seeds.items():
            notes.append(f"Only run with {seeds}: {', '.join(methods)}.")

        submitted = list(filter(is_submitted, self.runs))
        if submitted:
            notes.append(f"Submitted by others, not run by this package: {', '.join(submitted)}.")

        not_compared = []
        for method, runs in self.runs.items():
            if method not in self.methods:
                not_compared.append(f"{method} ({len(runs.seeds)} of {runs.planned})")
        if not_compared:
            names = ", ".join(not_compared)
            notes.append(f"Not compared, with fewer than half of their runs finished: {names}.")
        return notes


def _find_first_task(protocol: str, tasks: Sequence[int]) -> int:
    """Find the first task that counts, 0 or 1, as an index into `tasks`.

    The first task in order does not count, as there methods have no history yet, unless it is the
    only one.

    Args:
        protocol: The protocol, with its settings.
        tasks: Indices of the tasks in the benchmark, ascending.
    """
    is_ordered = parse_protocol_name(protocol) == ORDERED
    starts_without_history = tasks[0] == 0
    has_other_tasks = len(tasks) > 1
    if is_ordered and starts_without_history and has_other_tasks:
        return 1
    return 0


def _name_seeds(seeds: Collection[int]) -> str:
    """Write seeds for a sentence, such as "seed 3" or "seeds 0 to 2, 5"."""
    noun = "seed" if len(seeds) == 1 else "seeds"
    return f"{noun} {format_ranges(seeds)}"


def fallback_counts(results: "pd.DataFrame") -> dict[str, int]:
    """Count the suggestions that each method made at random because its model failed."""
    # The column counts from the task's first trial on, so its maximum is the number of the task.
    count_of_task = results.groupby(["method", "seed", "task"], observed=True)["fallbacks"].max()
    count_of_method = count_of_task.groupby("method", observed=True).sum()
    return {str(method): int(count) for method, count in count_of_method.items()}


def runs_of_trials(trials: "pd.DataFrame") -> "pd.DataFrame":
    """List the runs that trials belong to, one per row, in the columns of `Overview.runs`.

    All these runs have the state "done", as the trials of unfinished runs are not stored.
    """
    columns = [*GROUP_COLUMNS, "method", "seed"]  # the group: benchmark, surrogate and protocol
    runs = trials[columns].drop_duplicates(ignore_index=True)
    return runs.assign(state="done")


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
    keys_of_groups = list(GROUP_COLUMNS)  # benchmark, surrogate and protocol
    as_categories = dict.fromkeys((*GROUP_COLUMNS, *NAME_COLUMNS), "category")
    columns = [*NEEDED_COLUMNS]
    if COST in results:
        columns.append(COST)
    trials = results[[*GROUP_COLUMNS, *columns]].astype(as_categories)
    planned = runs_of_trials(trials) if runs is None else runs
    groups = trials.groupby(keys_of_groups, observed=True)[columns]
    trials_of_groups = dict(iter(groups))
    timings_of_groups = {}
    if timings is not None:
        timings_of_groups = dict(iter(timings.groupby(keys_of_groups, observed=True)))

    scored = []
    unscored = []
    for keys, planned_runs in planned.groupby(keys_of_groups, observed=True):
        labels = dict(zip(GROUP_COLUMNS, map(str, keys), strict=True))
        trials_of_group = trials_of_groups.get(keys)
        try:
            item = _score_benchmark(
                labels, trials_of_group, planned_runs, timings_of_groups.get(keys)
            )
        except ExperimentError as error:
            name = f"{labels['benchmark']} ({labels['surrogate']})"
            unscored.append(f"{name}, {label_protocol(labels['protocol'])}: {error}.")
            continue
        reason = left_out.get((item.benchmark, item.surrogate), "")
        family = families.get(item.benchmark, "")
        scored.append(replace(item, left_out=reason, family=family))  # a copy with both
    return scored, unscored


def group_by_protocol(scored: Sequence[BenchmarkScores]) -> dict[str, list[BenchmarkScores]]:
    """Group scores by protocol, the one with most benchmarks first; benchmarks keep their order."""
    items_of_protocol: dict[str, list[BenchmarkScores]] = {}
    for item in scored:
        items_of_protocol.setdefault(item.protocol, []).append(item)

    def most_benchmarks_first(protocol: str) -> tuple[int, str]:
        """Sort by the number of benchmarks, the highest first, and equal numbers by name."""
        return -len(items_of_protocol[protocol]), protocol

    protocols = sorted(items_of_protocol, key=most_benchmarks_first)
    return {protocol: items_of_protocol[protocol] for protocol in protocols}


def _score_benchmark(
    labels: Mapping[str, str],
    trials: "pd.DataFrame | None",
    planned: "pd.DataFrame",
    timings: "pd.DataFrame | None",
) -> BenchmarkScores:
    """Score the runs on one benchmark with one surrogate under one protocol.

    Args:
        labels: Names of the benchmark, the surrogate and the protocol, by these words.
        trials: One row per trial; None if no run is finished.
        planned: One row per planned run.
        timings: One row per run; None if times are unknown.

    Raises:
        ExperimentError: Too few runs are finished.
    """
    if trials is None:
        raise ExperimentError("no run is finished")

    runs = _runs_of_methods(trials, planned, timings)
    methods = _compared_methods(runs)
    is_compared = trials["method"].isin(methods)
    compared_trials = trials
    if not is_compared.all():  # filtering copies, which takes long for millions of trials
        compared_trials = trials[is_compared]

    names_of_arrays = ["loss", "value", "regret"]
    has_costs = COST in compared_trials and compared_trials[COST].notna().all()
    if has_costs:
        names_of_arrays.append(COST)
    arrays, is_finished = trial_arrays(
        compared_trials, methods, names_of_arrays, allow_missing_runs=True
    )
    costs = arrays.pop(COST, None)
    tasks = compared_trials[["task", "task_name"]].drop_duplicates("task").sort_values("task")
    task_indices = tuple(map(int, tasks["task"]))
    first_task = _find_first_task(labels["protocol"], task_indices)
    measures, unavailable = _compute_measures(arrays, methods, is_finished, first_task)
    seeds = set().union(*(runs[method].seeds for method in methods))

    # A loss is the value itself, or its negative if the objective is maximised; that of a failed
    # evaluation, which is infinite, tells nothing.
    is_loss_negated = (arrays["value"] != arrays["loss"]) & np.isfinite(arrays["loss"])
    return BenchmarkScores(
        **labels,
        methods=methods,
        tasks=task_indices,
        task_names=tuple(map(str, tasks["task_name"])),
        seed_numbers=tuple(sorted(seeds)),
        losses=arrays["loss"],
        costs=costs,
        is_finished=is_finished,
        measures=measures,
        unavailable=unavailable,
        is_maximised=bool(is_loss_negated.any()),
        fallbacks=fallback_counts(compared_trials),
        runs=runs,
    )


def _runs_of_methods(
    trials: "pd.DataFrame", planned: "pd.DataFrame", timings: "pd.DataFrame | None"
) -> dict[str, MethodRuns]:
    """Summarise the runs of every planned method: random search first, then the others by name.

    Args:
        trials: One row per trial of the finished runs.
        planned: One row per planned run.
        timings: One row per run; None if times are unknown. Numbers of timed suggestions and
            CPU seconds are then 0.
    """
    finished = trials[["method", "seed"]].drop_duplicates()
    seeds_of_method = finished.groupby("method", observed=True)["seed"].agg(list).to_dict()
    states_of_method: dict[str, dict[str, int]] = {}
    planned_of_method: dict[str, list[int]] = {}
    for method, planned_runs in planned.groupby("method", observed=True):
        states_of_method[str(method)] = planned_runs["state"].value_counts().to_dict()
        planned_of_method[str(method)] = sorted(map(int, planned_runs["seed"].unique()))

    n_evaluations_of_method = trials["method"].value_counts().to_dict()
    has_failed = np.isinf(trials["loss"])
    n_failed_of_method = trials.loc[has_failed, "method"].value_counts().to_dict()
    n_suggestions_of_method, seconds_of_method = _sum_timings(timings)

    def random_search_first(method: str) -> tuple[bool, str]:
        """Sort random search before all others, as False comes before True; the rest by name."""
        return method != RANDOM_SEARCH, method

    runs = {}
    for method in sorted(states_of_method, key=random_search_first):
        runs[method] = MethodRuns(
            states=MappingProxyType(states_of_method[method]),
            seeds=tuple(sorted(map(int, seeds_of_method.get(method, ())))),
            planned_seeds=tuple(planned_of_method[method]),
            evaluations=int(n_evaluations_of_method.get(method, 0)),
            failed_evaluations=int(n_failed_of_method.get(method, 0)),
            timed_suggestions=int(n_suggestions_of_method.get(method, 0)),
            cpu_seconds=float(seconds_of_method.get(method, 0.0)),
        )
    return runs


def _sum_timings(timings: "pd.DataFrame | None") -> tuple[dict[str, float], dict[str, float]]:
    """Count the suggestions whose CPU time is known, and add up this time.

    Returns:
        The numbers of suggestions and the seconds, by method; empty if there are no timings.
    """
    if timings is None:
        return {}, {}
    timed = timings[timings["method_cpu_seconds"].notna()]
    sums = timed.groupby("method", observed=True)[["suggestions", "method_cpu_seconds"]].sum()
    return sums["suggestions"].to_dict(), sums["method_cpu_seconds"].to_dict()


def _compared_methods(runs: Mapping[str, MethodRuns]) -> tuple[str, ...]:
    """List the methods to compare: those that finished at least half of their planned seeds.

    A method needs half of the seeds in its own plan, not half of the seeds of all methods, as slow
    methods are often planned with fewer seeds.

    Raises:
        ExperimentError: No method has finished so many.
    """
    methods = []
    for method, method_runs in runs.items():
        n_finished = len(method_runs.seeds)
        n_needed = MIN_SHARE_OF_SEEDS * method_runs.planned
        if n_finished > 0 and n_finished >= n_needed:
            methods.append(method)
    if not methods:
        raise ExperimentError("no method has finished half of the seeds planned for it")
    return tuple(methods)


def _compute_measures(
    arrays: Mapping[str, FloatArray],
    methods: tuple[str, ...],
    is_finished: BoolArray,
    first_task: int,
) -> tuple[Mapping[str, Scores], Mapping[str, str]]:
    """Compute every measure of the best trial so far.

    Args:
        arrays: "loss", "value" and "regret" of every trial, (methods, seeds, tasks, trials) each.
        methods: Names of the methods, in the order of the first axis.
        is_finished: Which runs are finished, (methods, seeds).
        first_task: First task that counts in means over tasks, from 0.

    Returns:
        The measures by name; and why those that are NaN everywhere are not available, by name.
    """
    replaced = replace_failures(arrays)
    losses = replaced["loss"]
    best_known = best_known_losses(losses, replaced["regret"], is_finished=is_finished)
    lowest = lowest_losses(losses)
    # A method may beat the best known loss, so the lowest loss met is compared, too. The best known
    # one is NaN where it is unknown: then regrets are NaN (`minimum` passes NaN on), but scores are
    # relative to the lowest loss met (`fmin` ignores NaN).
    best_of_regrets = np.minimum(best_known, lowest)
    best_of_scores = np.fmin(best_known, lowest)

    highest = highest_losses(losses)
    regret = normalised_regrets(losses, best_of_regrets, highest)
    simple_regret = at_incumbents(replaced["regret"], losses)
    value = at_incumbents(replaced["value"], losses)
    for measure in (regret, simple_regret, value):
        measure[~is_finished] = np.nan
    numbers_of_trials = np.arange(1, losses.shape[-1] + 1)
    regret_over_trials = np.cumsum(regret, axis=-1) / numbers_of_trials

    unavailable = {}
    try:
        score = robust_scores(losses, methods, best_of_scores, is_finished=is_finished)
    except ExperimentError as error:  # without random search there is no score
        score = Scores(methods, np.full(losses.shape, np.nan))
        unavailable["score"] = str(error)
    if np.isnan(highest[first_task:]).all():
        unavailable = dict.fromkeys(REASON_UNDEFINED, ALL_FAILED)
    measures = {
        "score": score,
        "regret": Scores(methods, regret, possible=(0, 1)),
        "rank": ranks_by_seed(
            arrays["loss"], methods, is_finished=is_finished, first_task=first_task
        ),
        "regret_over_trials": Scores(methods, regret_over_trials, possible=(0, 1)),
        "simple_regret": Scores(methods, simple_regret),
        "value": Scores(methods, value),
    }
    return MappingProxyType(measures), MappingProxyType(unavailable)
