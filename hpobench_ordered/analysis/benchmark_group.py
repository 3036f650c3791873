"""Means over several benchmarks under one protocol.

Measures are averaged over the surrogates of a benchmark, then over the benchmarks of a family, and
then over families, so that each benchmark counts once within its family and each family once.

Notation:
    A   number of methods that are compared on all of the benchmarks
    F   number of families of benchmarks
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.labels import format_scope
from hpobench_ordered.analysis.scoring import BenchmarkScores
from hpobench_ordered.analysis.speedup import PAPER_BUDGETS, Speedups, speedups
from hpobench_ordered.analysis.wins import Wins
from hpobench_ordered.data.protocol_text import (
    ADJUSTMENT,
    DEFAULT_FIRST_METHOD,
    parse_protocol_name,
    parse_protocol_settings,
)


@dataclass(frozen=True, slots=True)
class BenchmarkGroup:
    """Several benchmarks under one protocol, and the methods compared on all of them.

    Attributes:
        protocol: The protocol.
        items: The scores of each benchmark on one surrogate, of these methods alone, which are
            ranked among themselves. A benchmark with several surrogates has several items.
        methods: Names of the methods that are compared on every benchmark.
    """

    protocol: str
    items: tuple[BenchmarkScores, ...]
    methods: tuple[str, ...]

    @classmethod
    def for_means(cls, items: Sequence[BenchmarkScores]) -> "BenchmarkGroup":
        """Group the benchmarks of one protocol that count in means; there is at least one.

        A benchmark does not count if its scores give a reason to leave it out, such as that random
        search solves it. If none would count, the group has all of them, so that there is something
        to show.
        """
        return cls.of_all(select_counting(items))

    @classmethod
    def of_all(cls, items: Sequence[BenchmarkScores]) -> "BenchmarkGroup":
        """Group all benchmarks of one protocol, with the methods that are compared on all of them.

        Benchmarks that `for_means` leaves out are members of this group, too.
        """
        first = items[0]
        methods_in_common = set(first.methods)
        for item in items:
            methods_in_common.intersection_update(item.methods)
        # In the order of the first benchmark, since a set has none.
        methods = tuple(method for method in first.methods if method in methods_in_common)
        return cls(first.protocol, tuple(item.among(methods) for item in items), methods)

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """Names of the benchmarks, each once."""
        return tuple(dict.fromkeys(item.benchmark for item in self.items))

    @property
    def families(self) -> tuple[str, ...]:
        """Families of the benchmarks, each once; a benchmark without a family is its own."""
        return tuple(dict.fromkeys(item.family or item.benchmark for item in self.items))

    @property
    def scope(self) -> str:
        """What the group's means are over, such as "5 benchmarks"."""
        return format_scope(len(self.benchmarks), len(self.families))

    @property
    def last_trial(self) -> int:
        """The last trial, counted from 1, that was made on every benchmark."""
        return min(item.last_trial for item in self.items)

    def values(self, item: BenchmarkScores, measure: str, trial: int) -> FloatArray:
        """Select a measure of one benchmark on the tasks that count, (methods, seeds, tasks).

        The measure is that of the best trial up to `trial`, counted from 1.
        """
        return item.measures[measure].values[:, :, item.first_task :, trial - 1]

    def by_family(self, measure: str, trial: int) -> FloatArray:
        """Average a measure on each family of benchmarks after a trial, (families, methods).

        Means are over tasks, seeds and benchmarks. Families on which the measure is not defined
        have no row.
        """
        means_of_items = []
        for item in self.items:
            task_mean = item.over_tasks(measure, trial)
            has_measure = task_mean.defined > 0  # number of tasks on which it is defined
            if has_measure:
                means_of_items.append((item, task_mean.mean))
        if not means_of_items:
            return np.empty((0, len(self.methods)))
        return family_means(means_of_items)


def select_counting(items: Sequence[BenchmarkScores]) -> Sequence[BenchmarkScores]:
    """Select the benchmarks that count in means, as `BenchmarkGroup.for_means` does."""
    counting = [item for item in items if not item.left_out]  # `left_out` is the reason, or ""
    return counting or items


def family_means(arrays: Iterable[tuple[BenchmarkScores, FloatArray]]) -> FloatArray:
    """Average arrays of benchmarks within each family, (families, ...).

    Families are in the order of their first benchmarks. The arrays of a benchmark's surrogates are
    averaged first, then those of the family's benchmarks, so that a benchmark with several
    surrogates counts once.

    Args:
        arrays: An array (...) of each benchmark on each surrogate.
    """
    # By family and benchmark; a benchmark without a family is its own.
    arrays_of_family: dict[str, dict[str, list[FloatArray]]] = {}
    for item, array in arrays:
        arrays_of_benchmark = arrays_of_family.setdefault(item.family or item.benchmark, {})
        arrays_of_benchmark.setdefault(item.benchmark, []).append(array)

    means = []
    for arrays_of_benchmark in arrays_of_family.values():
        benchmark_means = [
            np.mean(surrogates, axis=0) for surrogates in arrays_of_benchmark.values()
        ]
        means.append(np.mean(benchmark_means, axis=0))
    return np.stack(means)


def count_all_wins(group: BenchmarkGroup) -> Wins:
    """Count how often each method is better than each other, over the runs of all benchmarks.

    Runs are compared after the last trial of each benchmark.
    """
    n_methods = len(group.methods)
    wins = np.zeros((n_methods, n_methods), dtype=np.int64)
    ties = np.zeros((n_methods, n_methods), dtype=np.int64)
    for item in group.items:
        counts = item.count_wins(item.last_trial)
        wins += counts.wins
        ties += counts.ties
    return Wins(group.methods, wins, ties)


def speedups_after_adjustment(group: BenchmarkGroup) -> list[Speedups]:
    """Compute speedups over the method that ran before a search-space adjustment.

    There is one entry per benchmark. The list is empty if the protocol has no adjustment, if the
    earlier method (the reference) is not compared, or if runs have too few trials.
    """
    if parse_protocol_name(group.protocol) != ADJUSTMENT:
        return []

    # A protocol's text may leave out settings that have their default.
    settings = parse_protocol_settings(group.protocol)
    reference = settings.get("first_method", DEFAULT_FIRST_METHOD)
    # A method needs more trials than the budget of the reference: with no more, it could hardly
    # reach the same loss.
    budgets = [budget for budget in PAPER_BUDGETS if budget < group.last_trial]
    if reference not in group.methods or not budgets:
        return []
    return [
        speedups(
            item.losses,
            group.methods,
            reference=reference,
            budgets=budgets,
            first_task=item.first_task,
            is_finished=item.is_finished,
        )
        for item in group.items
    ]
