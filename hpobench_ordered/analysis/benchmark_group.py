"""Means and tests over several benchmarks under one protocol.

Measures are averaged over the surrogates of a benchmark, then over the benchmarks of a family, and
then over families, so that each benchmark counts once within its family and each family once.

Notation:
    A   number of methods that are compared on all of the benchmarks
    F   number of families of benchmarks
    n   number of samples: families, or tasks of all benchmarks
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.labels import format_scope
from hpobench_ordered.analysis.samples import (
    Resampling,
    defined_tasks,
    finished_runs,
    independent_samples,
    mean_over_seeds,
)
from hpobench_ordered.analysis.scoring import BenchmarkScores
from hpobench_ordered.analysis.significance import (
    CriticalDifference,
    PairwiseTests,
    critical_difference,
    pairwise_wilcoxon,
)
from hpobench_ordered.analysis.speedup import PAPER_BUDGETS, Speedups, speedups
from hpobench_ordered.analysis.wins import Wins, count_wins
from hpobench_ordered.protocols import Adjustment, parse_protocol_name, parse_protocol_settings

MEASURE = "regret"  # what tests compare: the normalised regret, which is on one scale on all tasks


class Unit(Enum):
    """What is one sample of a test."""

    BENCHMARKS = "benchmarks"
    """A family of benchmarks, by its mean: the main test, as tasks of one benchmark are alike."""
    TASKS = "tasks"
    """A task, by its mean over seeds: p values are too small rather than too large."""


@dataclass(frozen=True, slots=True)
class BenchmarkGroup:
    """Several benchmarks under one protocol, and the methods compared on all of them."""

    protocol: str
    items: tuple[BenchmarkScores, ...]
    methods: tuple[str, ...]

    @classmethod
    def for_means(cls, items: Sequence[BenchmarkScores]) -> "BenchmarkGroup":
        """Benchmarks of one protocol, at least one, without those left out of means."""
        return cls.of_all([item for item in items if not item.left_out] or items)

    @classmethod
    def of_all(cls, items: Sequence[BenchmarkScores]) -> "BenchmarkGroup":
        """Benchmarks of one protocol, at least one, including those left out of means."""
        common = set(items[0].methods).intersection(*(item.methods for item in items))
        methods = tuple(method for method in items[0].methods if method in common)
        return cls(items[0].protocol, tuple(items), methods)

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """Names of the benchmarks, each once."""
        return tuple(dict.fromkeys(item.benchmark for item in self.items))

    @property
    def families(self) -> tuple[str, ...]:
        """Families of the benchmarks, each once."""
        return tuple(dict.fromkeys(item.family or item.benchmark for item in self.items))

    @property
    def scope(self) -> str:
        """What means are over, in words."""
        return format_scope(len(self.benchmarks), len(self.families))

    @property
    def last_trial(self) -> int:
        """The last trial that was made on every benchmark."""
        return min(item.last_trial for item in self.items)

    def rows(self, item: BenchmarkScores) -> list[int]:
        """Indices of the methods among those of a benchmark."""
        return [item.place(method) for method in self.methods]

    def values(self, item: BenchmarkScores, measure: str, trial: int) -> FloatArray:
        """A measure of every run on the tasks that count, shape (A, S, T)."""
        return item.measures[measure].values[self.rows(item), :, item.first_task :, trial - 1]

    def by_family(self, measure: str, trial: int) -> FloatArray:
        """Means over tasks, seeds and benchmarks, (F, A), of the families that have the measure."""
        means = [(item, item.over_tasks(measure, trial)) for item in self.items]
        parts = [(item, mean.mean[self.rows(item)]) for item, mean in means if mean.defined]
        return family_means(parts) if parts else np.empty((0, len(self.methods)))

    def samples(self, unit: Unit, trial: int) -> FloatArray:
        """Samples of the normalised regret, (n, A), of the benchmarks or tasks that have it."""
        if unit is Unit.BENCHMARKS:
            return self.by_family(MEASURE, trial)
        values = [self.values(item, MEASURE, trial) for item in self.items]
        return np.concatenate([independent_samples(value, Resampling.TASKS) for value in values])


def family_means(parts: Iterable[tuple[BenchmarkScores, FloatArray]]) -> FloatArray:
    """Mean of each family, (F, ...), over its benchmarks' means over surrogates of arrays (...)."""
    means: dict[str, dict[str, list[FloatArray]]] = {}
    for item, part in parts:
        family = means.setdefault(item.family or item.benchmark, {})
        family.setdefault(item.benchmark, []).append(part)
    return np.stack(
        [
            np.mean([np.mean(surrogates, axis=0) for surrogates in family.values()], axis=0)
            for family in means.values()
        ]
    )


def compare_pairs(
    together: BenchmarkGroup, *, unit: Unit = Unit.BENCHMARKS, trial: int | None = None
) -> PairwiseTests | None:
    """Wilcoxon's test of every pair on common seeds; None without two methods and a sample."""
    trial = trial or together.last_trial
    samples = together.samples(unit, trial)
    if len(together.methods) < 2 or not len(samples):
        return None
    differences = _differences(together, samples, unit, trial)
    return pairwise_wilcoxon(samples, together.methods, differences=differences)


def rank_and_compare(
    together: BenchmarkGroup, *, unit: Unit = Unit.BENCHMARKS, trial: int | None = None
) -> CriticalDifference | None:
    """Mean ranks of the leaderboard, and which methods differ; see `significance_of`."""
    trial = trial or together.last_trial
    tests = compare_pairs(together, unit=unit, trial=trial)
    if tests is None:
        return None
    return critical_difference(
        together.samples(unit, trial),
        together.methods,
        mean_ranks=together.by_family("rank", trial).mean(axis=0),
        tests=tests,
    )


def count_all_wins(together: BenchmarkGroup) -> Wins:
    """Wins over the runs of all benchmarks, after the last trial of each benchmark."""
    wins = ties = np.zeros((len(together.methods),) * 2, dtype=np.int64)
    for item in together.items:
        losses, first = item.losses[together.rows(item)], item.first_task
        one = count_wins(losses, together.methods, trial=item.last_trial, first_task=first)
        wins, ties = wins + one.wins, ties + one.ties
    return Wins(together.methods, wins, ties)


def speedups_after_adjustment(together: BenchmarkGroup) -> list[Speedups]:
    """Speedups over the method before the adjustment; none without it or with unfinished runs."""
    if parse_protocol_name(together.protocol) != Adjustment().name:
        return []
    settings = parse_protocol_settings(together.protocol)
    reference = settings.get("first_method", Adjustment().first_method)
    budgets = [budget for budget in PAPER_BUDGETS if budget < together.last_trial]
    complete = all(finished_runs(item.losses)[together.rows(item)].all() for item in together.items)
    if reference not in together.methods or not budgets or not complete:
        return []
    return [
        speedups(
            item.losses[together.rows(item)],
            together.methods,
            reference=reference,
            budgets=budgets,
            first_task=item.first_task,
        )
        for item in together.items
    ]


def _differences(
    together: BenchmarkGroup, samples: FloatArray, unit: Unit, trial: int
) -> FloatArray:
    """Differences of all pairs of methods, (n, A, A), on the seeds that both have finished."""
    differences = samples[:, :, None] - samples[:, None, :]
    values = [together.values(item, MEASURE, trial) for item in together.items]
    finished = [finished_runs(value) for value in values]
    for a, b in zip(*np.triu_indices(len(together.methods), k=1), strict=True):
        if all((runs[a] == runs[b]).all() for runs in finished):
            continue  # means over all of their seeds are those over the common ones
        paired: list[tuple[BenchmarkScores, FloatArray]] = []
        for item, value, runs in zip(together.items, values, finished, strict=True):
            counted = value[[a, b]][:, :, defined_tasks(value)]
            tasks = mean_over_seeds(counted[:, runs[a] & runs[b]])
            if tasks.shape[1]:
                paired.append((item, tasks))
        if unit is Unit.BENCHMARKS:
            one, other = family_means((item, tasks.mean(axis=1)) for item, tasks in paired).T
        else:
            one, other = np.concatenate([tasks for _, tasks in paired], axis=1)
        differences[:, a, b], differences[:, b, a] = one - other, other - one
    return differences
