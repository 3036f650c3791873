"""What a report says of each benchmark: normalised scores, values, regrets and ranks."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from hpobench_ordered.analysis import (
    Scores,
    TaskMean,
    fallback_counts,
    normalised_scores,
    of_incumbents,
    ranks_by_seed,
    trial_arrays,
)
from hpobench_ordered.analysis.scores import RANDOM_SEARCH
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.protocols import Ordered

if TYPE_CHECKING:
    import pandas as pd

TRIALS_SHOWN = (1, 10, 25)
"""Trials at which Hellan et al. (2023) show scores: figures 5, 14 and 15."""


@dataclass(frozen=True, slots=True)
class BenchmarkScores:
    """What was measured of all methods on one benchmark under one protocol.

    Attributes:
        benchmark: Name and version of the benchmark, with the surrogate.
        protocol: The protocol, with its settings.
        task_names: Names of the tasks, in order.
        seeds: Number of seeds.
        measures: Of the best trial so far, by name: the normalised "score", the "value" in the
            objective's own units, the "regret", and the "rank" among the methods.
        is_maximised: Whether higher values are better.
        fallbacks: Suggestions each method made at random because its model failed.
        left_out: Seeds that some method has not run, and that no score counts.
    """

    benchmark: str
    protocol: str
    task_names: tuple[str, ...]
    seeds: int
    measures: Mapping[str, Scores]
    is_maximised: bool
    fallbacks: Mapping[str, int]
    left_out: tuple[int, ...]

    @property
    def scores(self) -> Scores:
        """Normalised scores."""
        return self.measures["score"]

    @property
    def title(self) -> str:
        """One line that says what was run."""
        counts = (
            _count(self.seeds, "seed"),
            _count(len(self.task_names), "task"),
            _count(self.last_trial, "trial"),
        )
        return f"{self.benchmark}, {self.protocol}: {', '.join(counts)}"

    @property
    def last_trial(self) -> int:
        """Number of trials."""
        return int(self.scores.values.shape[-1])

    @property
    def trials(self) -> tuple[int, ...]:
        """Trials to show: the paper's, as far as there are so many, and the last."""
        return tuple(sorted({t for t in TRIALS_SHOWN if t < self.last_trial} | {self.last_trial}))

    def notes(self) -> list[str]:
        """What a reader of the scores must know, one sentence each."""
        notes = [
            f"{method} fell back to {count} random suggestions."
            for method, count in self.fallbacks.items()
            if count
        ]
        for measure, why in (
            ("score", "no method ends better than random search"),
            ("regret", "no best value is known"),
        ):
            mean = self.over_tasks(measure, self.last_trial)
            if mean.defined < mean.tasks:
                left_out = _count(mean.tasks - mean.defined, "task")
                notes.append(f"{left_out} without a {measure}: {why}.")
        if self.left_out:
            seeds = ", ".join(map(str, self.left_out))
            notes.append(f"Seeds left out, not run by every method: {seeds}.")
        return notes

    def over_tasks(self, measure: str, trial: int) -> TaskMean:
        """Mean of a measure over the tasks that count.

        In the ordered protocol those are the tasks with history (task 2 and on), or the only task;
        in others all tasks.
        """
        is_ordered = self.protocol.partition("(")[0] == Ordered().name
        first = 1 if is_ordered and len(self.task_names) > 1 else 0
        return self.measures[measure].over_tasks(trial=trial, first_task=first)


def score_benchmarks(results: "pd.DataFrame") -> tuple[list[BenchmarkScores], list[str]]:
    """Score every benchmark in some results, on the seeds that all methods have run.

    Args:
        results: One row a trial, as `Store.read` gives.

    Returns:
        Scores by benchmark, surrogate and protocol; and why others could not be scored.
    """
    scored, unscored = [], []
    for keys, group in results.groupby(["benchmark", "surrogate", "protocol"]):
        benchmark, surrogate, protocol = map(str, keys)
        try:
            scored.append(_score(f"{benchmark} ({surrogate})", protocol, group))
        except ExperimentError as error:
            unscored.append(f"{benchmark} ({surrogate}), {protocol}: {error}.")
    return scored, unscored


def _score(label: str, protocol: str, group: "pd.DataFrame") -> BenchmarkScores:
    # The reference first: False is sorted before True.
    methods = sorted(group["method"].unique(), key=lambda m: (m != RANDOM_SEARCH, m))
    run_by = group.groupby("seed")["method"].nunique()
    complete = run_by.index[run_by == len(methods)]
    left_out = tuple(sorted(set(run_by.index) - set(complete)))
    if not len(complete):
        raise ExperimentError("no seed was run by all of " + ", ".join(methods))
    group = group[group["seed"].isin(complete)]
    tasks = group.drop_duplicates("task").sort_values("task")["task_name"]
    return BenchmarkScores(
        benchmark=label,
        protocol=protocol,
        task_names=tuple(tasks),
        seeds=len(complete),
        measures=_measures(group, methods),
        is_maximised=bool((group["value"] != group["loss"]).any()),
        fallbacks=fallback_counts(group),
        left_out=left_out,
    )


def _measures(group: "pd.DataFrame", methods: list[str]) -> Mapping[str, Scores]:
    arrays = trial_arrays(group, methods, ["loss", "value", "regret"])
    losses = arrays["loss"]
    values, regrets = (of_incumbents(arrays[name], losses) for name in ("value", "regret"))
    return MappingProxyType(
        {
            "score": normalised_scores(losses, methods),
            "value": Scores(tuple(methods), values),
            "regret": Scores(tuple(methods), regrets),
            "rank": ranks_by_seed(losses, methods),
        }
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
