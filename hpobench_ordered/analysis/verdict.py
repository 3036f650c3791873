"""Which method leads, from which others it differs, and whether on every surrogate.

The leader is the method of the lowest mean rank over all benchmarks. Two questions are kept apart.
On these benchmarks: is it better than the others, or might other seeds and other tasks of the same
benchmarks give another order? On other benchmarks: is it better on benchmarks like these, of which
the families are samples? With fewer than `MIN_FAMILIES_OF_TEST` families this is not tested.
Both are answered by `compare_with_leader`, from other samples.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup
from hpobench_ordered.analysis.labels import format_count, join_names
from hpobench_ordered.analysis.leader_comparison import (
    LeaderComparison,
    compare_with_leader,
    family_influences,
    seed_and_task_influences,
)
from hpobench_ordered.analysis.leaderboard import overall_intervals
from hpobench_ordered.analysis.samples import Resampling
from hpobench_ordered.analysis.scores import RANDOM_SEARCH
from hpobench_ordered.analysis.scoring import BenchmarkScores, group_by_protocol

if TYPE_CHECKING:
    import pandas as pd

MIN_FAMILIES_OF_TEST = 8  # families of benchmarks needed to speak of other benchmarks
EARLY_TRIALS = (1, 10)  # trials after which a verdict is given, in addition to the last
MAX_ROUNDING_OF_RANKS = 1e-9  # mean ranks that differ by less are equal

AGREEMENT_COLUMNS = (
    "protocol",
    "benchmark",
    "surrogate",
    "method",
    "trial",
    "rank",
    "place",
    "is_same",
)
"""Columns of `surrogate_agreement`."""

NUMBER_WORDS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven"}
"""Numbers of families below `MIN_FAMILIES_OF_TEST` in words."""


@dataclass(frozen=True, slots=True)
class ComparedMethods:
    """Which methods the leader is better than: on these benchmarks, or on others like them."""

    better_than: tuple[str, ...]
    not_told_apart: tuple[str, ...]  # the other methods

    def describe(self) -> str:
        """Describe the result as the end of a sentence that begins with "it is"."""
        n_others = len(self.better_than) + len(self.not_told_apart)
        words_for_few = {1: "the other method", 2: "the two others"}
        if not self.better_than:
            any_other = words_for_few.get(n_others, f"any of the {n_others} others")
            return f"not told apart from {any_other}"
        others = words_for_few.get(n_others, f"all {n_others} others")
        if not self.not_told_apart:
            return f"better than {others}"
        counted = f"better than {len(self.better_than)} of {n_others} others"
        return f"{counted}, but not told apart from {join_names(self.not_told_apart)}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Who leads after a trial under one protocol.

    Attributes:
        protocol: The protocol, with its settings.
        trial: The trial, counted from 1.
        leaders: The method of lowest mean rank, several if they share it.
        mean_rank: Its mean rank.
        interval: 95 % interval of the mean rank over seeds, NaN with too few.
        methods: Number of methods compared on all benchmarks.
        benchmarks: Number of benchmarks.
        families: Number of families of benchmarks.
        next_method: The method of the next mean rank; "" if several lead.
        next_rank: Its mean rank, or NaN.
        families_ahead: On how many families the leader's mean rank is lower than that of another
            method, by its name; empty if several lead.
        on_these: The result on these benchmarks; None without a test.
        on_others: The result on other benchmarks; None without a test.
    """

    protocol: str
    trial: int
    leaders: tuple[str, ...]
    mean_rank: float
    interval: tuple[float, float]
    methods: int
    benchmarks: int
    families: int
    next_method: str = ""
    next_rank: float = float("nan")
    families_ahead: Mapping[str, int] = field(default_factory=dict)
    on_these: ComparedMethods | None = None
    on_others: ComparedMethods | None = None

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        trials = format_count(self.trial, "trial")
        if len(self.leaders) == self.methods:
            return f"After {trials} all {self.methods} methods share the mean rank."
        if len(self.leaders) > 1:
            names = join_names(self.leaders)
            return (
                f"After {trials} {names} lead together: mean rank {self.mean_rank:.1f}, of "
                f"{self.methods} methods."
            )

        decimals = self._decimals
        text = f"After {trials} {self.leaders[0]} leads: mean rank {self.mean_rank:.{decimals}f}"
        has_interval = not np.isnan(self.interval).any()  # with enough seeds
        if has_interval:
            lower, upper = self.interval
            text += f" ({lower:.{decimals}f} to {upper:.{decimals}f})"
        text += f"; next {self.next_method}, {self.next_rank:.{decimals}f}"
        text += f"{self._describe_families()}. {self._describe_tests()}"
        return text

    @property
    def _decimals(self) -> int:
        """Number of decimals of ranks: one, or two if the best two ranks look the same with one."""
        is_told_apart = f"{self.mean_rank:.1f}" != f"{self.next_rank:.1f}"
        return 1 if is_told_apart else 2

    def _describe_families(self) -> str:
        """Say on how many families the leader is ahead of the next method and of random search.

        The text continues a sentence. It is "" if there is a single family.
        """
        if self.families == 1:
            return ""
        ahead = self.families_ahead  # numbers of families, by the name of the other method
        noun = "benchmarks" if self.families == self.benchmarks else "families"
        text = (
            f"; ahead of {self.next_method} on {ahead[self.next_method]} of {self.families} {noun}"
        )
        if RANDOM_SEARCH in ahead and self.next_method != RANDOM_SEARCH:
            text += f" and of random search on {ahead[RANDOM_SEARCH]} of {self.families}"
        return text

    def _describe_tests(self) -> str:
        """Say which methods the leader is better than, on these benchmarks and on others."""
        these = "this benchmark" if self.benchmarks == 1 else f"these {self.benchmarks} benchmarks"
        if self.on_these is None:  # there was no test
            text = f"On {these} there is no test, for lack of seeds and tasks that differ"
        else:
            text = f"On {these} it is {self.on_these.describe()} (5 % for all together)"
        return f"{text}; {self._describe_test_on_others()}."

    def _describe_test_on_others(self) -> str:
        """Say which methods the leader is better than on other benchmarks, or why this is unknown.

        The text is the end of a sentence about these benchmarks. It speaks of families as the
        samples of the test, or simply of benchmarks if each is a family of its own.
        """
        noun, nouns = "family", "families"
        if self.families == self.benchmarks:
            noun, nouns = "benchmark", "benchmarks"
        if self.families == 1:
            return f"a single {noun} is too few to say so of others"
        if self.families < MIN_FAMILIES_OF_TEST:
            return f"{NUMBER_WORDS[self.families]} {nouns} are too few to say so of others"
        if self.on_others is None:  # there was no test, although families are enough
            return f"on others neither, as the {nouns} do not differ"
        return (
            f"on others, of which these {self.families} {nouns} are samples, it is "
            f"{self.on_others.describe()} (5 % for all together)"
        )


def verdicts(scores: Sequence[BenchmarkScores]) -> list[Verdict]:
    """Judge who leads under each protocol after `EARLY_TRIALS` and after the last trial.

    The protocol with most benchmarks comes first; its verdicts are in the order of trials.
    Protocols with fewer than two methods compared on all benchmarks have no verdict.
    """
    all_verdicts = []
    for group in _comparable_groups(scores):
        last = group.last_trial
        trials = [trial for trial in EARLY_TRIALS if trial < last] + [last]
        all_verdicts += [judge_leader(group, trial) for trial in trials]
    return all_verdicts


def final_verdicts(scores: Sequence[BenchmarkScores], *, trial: int | None = None) -> list[Verdict]:
    """Judge who leads under each protocol after one trial; default: after the last.

    Protocols with fewer trials, or with fewer than two methods compared on all benchmarks, have no
    verdict.
    """
    all_verdicts = []
    for group in _comparable_groups(scores):
        if trial is None:
            all_verdicts.append(judge_leader(group, group.last_trial))
        elif trial <= group.last_trial:
            all_verdicts.append(judge_leader(group, trial))
    return all_verdicts


def _comparable_groups(scores: Sequence[BenchmarkScores]) -> list[BenchmarkGroup]:
    """Group the benchmarks by protocol, and keep the groups with at least two methods.

    The methods of a group are those that are compared on every benchmark that counts in means.
    """
    scores_of_protocols = group_by_protocol(scores).values()
    groups = map(BenchmarkGroup.for_means, scores_of_protocols)
    return [group for group in groups if len(group.methods) > 1]


def judge_leader(group: BenchmarkGroup, trial: int) -> Verdict:
    """Judge who leads on some benchmarks after a trial, counted from 1.

    The group must have two methods or more. If several share the lowest mean rank, nothing is said
    of other methods.
    """
    ranks = group.by_family("rank", trial)  # (families, methods)
    mean_ranks = ranks.mean(axis=0)
    is_leader = mean_ranks <= mean_ranks.min() + MAX_ROUNDING_OF_RANKS
    leaders = tuple(group.methods[a] for a in np.flatnonzero(is_leader))

    leader = int(mean_ranks.argmin())  # the first of those that share the lowest mean rank
    after_trial = slice(trial - 1, trial)
    interval = overall_intervals(group, "rank", Resampling.SEEDS, trials=after_trial)
    leader_verdict = Verdict(
        protocol=group.protocol,
        trial=trial,
        leaders=leaders,
        mean_rank=float(mean_ranks[leader]),
        interval=(float(interval.lower[leader, 0]), float(interval.upper[leader, 0])),
        methods=len(group.methods),
        benchmarks=len(group.benchmarks),
        families=len(ranks),
    )
    if len(leaders) > 1:
        return leader_verdict

    next_method = int(np.argsort(mean_ranks, kind="stable")[1])
    # On these benchmarks the samples are their seeds and tasks; for others like them, families.
    on_these = compare_with_leader(mean_ranks, *seed_and_task_influences(group, trial))
    on_others = None
    if len(ranks) >= MIN_FAMILIES_OF_TEST:
        on_others = compare_with_leader(mean_ranks, family_influences(group, trial))
    return replace(
        leader_verdict,
        next_method=group.methods[next_method],
        next_rank=float(mean_ranks[next_method]),
        families_ahead=_count_families_ahead(group.methods, ranks, leader),
        on_these=_name_tested_methods(group.methods, mean_ranks, on_these),
        on_others=_name_tested_methods(group.methods, mean_ranks, on_others),
    )


def _count_families_ahead(methods: Sequence[str], ranks: FloatArray, leader: int) -> dict[str, int]:
    """Count the families on which the leader's mean rank is lower than each other method's.

    Ranks that differ by less than a rounding error are equal.

    Args:
        methods: Names of the methods.
        ranks: Mean ranks on families of benchmarks, (families, methods).
        leader: Index of the leader.
    """
    leader_ranks = ranks[:, [leader]]  # (families, 1)
    is_ahead = leader_ranks < ranks - MAX_ROUNDING_OF_RANKS
    counts = is_ahead.sum(axis=0)
    return {method: int(counts[a]) for a, method in enumerate(methods) if a != leader}


def _name_tested_methods(
    methods: Sequence[str], mean_ranks: FloatArray, comparison: LeaderComparison | None
) -> ComparedMethods | None:
    """Translate a comparison from indices to the names of methods, best first.

    The methods other than the leader are split into those that the leader is better than, and those
    that it is not told apart from. The result is None if there is no comparison.
    """
    if comparison is None:
        return None
    best_first = np.argsort(mean_ranks, kind="stable")
    others = [a for a in best_first if a != comparison.leader]
    return ComparedMethods(
        better_than=tuple(methods[a] for a in others if comparison.is_worse[a]),
        not_told_apart=tuple(methods[a] for a in others if not comparison.is_worse[a]),
    )


def surrogate_agreement(
    scores: Sequence[BenchmarkScores], *, trial: int | None = None
) -> "pd.DataFrame":
    """Tabulate the mean ranks of methods on each surrogate, for benchmarks with several surrogates.

    If the order of methods depends on the surrogate, a claim about the benchmark holds for that
    surrogate only. Ranks are those of the leaderboard, within each surrogate; methods that are not
    compared on every surrogate are left out.

    Args:
        scores: Scores by benchmark.
        trial: The trial, counted from 1; default: the last that was made on every surrogate.

    Returns:
        A row per protocol, benchmark, surrogate and method: the mean `rank`, its `place` among the
        methods (1 is best, of equal ones the first), and `is_same`, whether the order of the
        methods is the same on all surrogates of the benchmark.
    """
    import pandas as pd

    items_of_benchmark: dict[tuple[str, str], list[BenchmarkScores]] = {}
    for item in scores:
        items_of_benchmark.setdefault((item.protocol, item.benchmark), []).append(item)

    rows: list[tuple[object, ...]] = []
    for items in items_of_benchmark.values():
        group = BenchmarkGroup.of_all(items)
        if len(items) > 1 and len(group.methods) > 1:
            rows += _agreement_rows(group, trial or group.last_trial)
    return pd.DataFrame(rows, columns=list(AGREEMENT_COLUMNS))


def _agreement_rows(group: BenchmarkGroup, trial: int) -> list[tuple[object, ...]]:
    """Make rows that say whether the surrogates of one benchmark agree on the order of methods.

    Args:
        group: The benchmark: its items are its scores on each surrogate.
        trial: The trial after which methods are ranked, counted from 1.

    Returns:
        A row per surrogate and method, in the columns `AGREEMENT_COLUMNS`: protocol, benchmark,
        surrogate, method, trial, the mean rank, its place (1 is best), and whether the places of
        all methods are the same on all surrogates.
    """
    ranks_on_surrogates = []
    for item in group.items:
        ranks_on_surrogates.append(item.over_tasks("rank", trial).mean)
    mean_ranks = np.stack(ranks_on_surrogates)  # (surrogates, methods)

    methods_by_place = mean_ranks.argsort(axis=1, kind="stable")
    places = methods_by_place.argsort(axis=1) + 1  # the inverse: the place of each method
    is_same = bool((places == places[0]).all())

    rows: list[tuple[object, ...]] = []
    for item, item_ranks, item_places in zip(group.items, mean_ranks, places, strict=True):
        labels = (item.protocol, item.benchmark, item.surrogate)
        for method, rank, place in zip(group.methods, item_ranks, item_places, strict=True):
            rows.append((*labels, method, trial, rank, place, is_same))
    return rows
