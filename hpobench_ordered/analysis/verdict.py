"""Which method leads, whether significantly, and whether on every surrogate.

The leader is the method of the lowest mean rank over all benchmarks. Its differences from others
are tested over families of benchmarks (`Unit.BENCHMARKS`) by `usual_test`, if there are at least
`MIN_FAMILIES_OF_TEST`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup, rank_and_compare
from hpobench_ordered.analysis.labels import format_count, format_scope, join_names
from hpobench_ordered.analysis.scoring import BenchmarkScores, group_by_protocol
from hpobench_ordered.analysis.significance import ALPHA, CriticalDifference, PostHoc

if TYPE_CHECKING:
    import pandas as pd

MIN_FAMILIES_OF_TEST = 5  # families of benchmarks needed to test differences
EARLY_TRIALS = (1, 10)  # trials after which a verdict is given, in addition to the last
MAX_ROUNDING_OF_RANKS = 1e-9  # mean ranks that differ by less are equal

AGREEMENT = ("protocol", "benchmark", "surrogate", "method", "trial", "rank", "place", "is_same")
"""Columns of `surrogate_agreement`."""

TESTS = {
    PostHoc.WILCOXON_HOLM: "Wilcoxon's signed-rank test with Holm's correction",
    PostHoc.NEMENYI: "Nemenyi's test",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Who leads after a trial under one protocol."""

    protocol: str
    trial: int  # from 1
    leaders: tuple[str, ...]  # several if they share the lowest mean rank
    mean_rank: float
    methods: int  # number of methods compared on all benchmarks
    first_on: int  # number of families on which a leader has the lowest mean rank, shared or not
    benchmarks: int
    families: int
    better_than: tuple[str, ...]  # methods significantly worse; none if several lead
    not_told_apart: tuple[str, ...]  # the other methods
    test: PostHoc | None  # None if there was no test

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        trials = format_count(self.trial, "trial")
        if len(self.leaders) == self.methods:
            return f"After {trials} all {self.methods} methods share the mean rank."
        verb = "leads" if len(self.leaders) == 1 else "lead together"
        text = f"After {trials} {join_names(self.leaders)} {verb}, with a mean rank of "
        text += f"{self.mean_rank:.2f} among {self.methods} methods"
        if self.families < self.benchmarks:
            text += f" over {format_scope(self.benchmarks, self.families)}"
        if self.benchmarks == 1:
            return f"{text}, on a single benchmark: this says nothing of others."
        if self.families == 1:
            scope = f"{self.benchmarks} benchmarks of one family"
            return f"{text}, on {scope}: this says nothing of others."

        noun = "benchmarks" if self.families == self.benchmarks else "families"
        text += f", and first on {self.first_on} of {self.families} {noun}."
        if self.test is None:
            return f"{text} There are too few {noun} for a test."
        significance = self._describe_significance(
            over=f"over {self.families} {noun}", by=TESTS[self.test]
        )
        return f"{text} {significance}"

    def _describe_significance(self, *, over: str, by: str) -> str:
        """From which methods the only leader differs; "" if several lead."""
        if len(self.leaders) > 1:
            return ""
        if not self.better_than:
            return f"No difference from another method is significant {over} ({by})."
        if not self.not_told_apart:
            return f"The difference from every other method is significant {over} ({by})."
        return (
            f"The difference is significant {over} from {join_names(self.better_than)}, and not "
            f"from {join_names(self.not_told_apart)} ({by})."
        )


def verdicts(scores: Sequence[BenchmarkScores]) -> list[Verdict]:
    """Who leads under each protocol after `EARLY_TRIALS` and after the last trial.

    The protocol of most benchmarks comes first, and early trials do. Protocols with fewer than two
    methods compared on all benchmarks have no verdict.
    """
    all_verdicts = []
    for items in group_by_protocol(scores).values():
        group = BenchmarkGroup.for_means(items)
        if len(group.methods) < 2:
            continue
        last = group.last_trial
        trials = [trial for trial in EARLY_TRIALS if trial < last] + [last]
        all_verdicts += [_verdict(group, trial) for trial in trials]
    return all_verdicts


def _verdict(group: BenchmarkGroup, trial: int) -> Verdict:
    ranks = group.by_family("rank", trial)  # (F, A)
    mean_ranks = ranks.mean(axis=0)
    is_leader = mean_ranks <= mean_ranks.min() + MAX_ROUNDING_OF_RANKS
    is_first = ranks <= ranks.min(axis=1, keepdims=True) + MAX_ROUNDING_OF_RANKS
    is_leader_first = is_first[:, is_leader].any(axis=1)

    leaders = tuple(group.methods[a] for a in np.flatnonzero(is_leader))
    others = [method for method in group.methods if method not in leaders]
    has_test = len(ranks) >= MIN_FAMILIES_OF_TEST
    ranking = rank_and_compare(group, trial=trial) if has_test else None
    worse: set[str] = set()
    if ranking is not None and len(leaders) == 1:
        worse = _significantly_worse_than_first(ranking)

    return Verdict(
        protocol=group.protocol,
        trial=trial,
        leaders=leaders,
        mean_rank=float(mean_ranks.min()),
        methods=len(group.methods),
        first_on=int(is_leader_first.sum()),
        benchmarks=len(group.benchmarks),
        families=len(ranks),
        better_than=tuple(method for method in others if method in worse),
        not_told_apart=tuple(method for method in others if method not in worse),
        test=None if ranking is None else ranking.post_hoc,
    )


def _significantly_worse_than_first(ranking: CriticalDifference) -> set[str]:
    """Methods that differ significantly from the one of lowest mean rank."""
    # Nemenyi's test is made only where Friedman's finds a difference at all.
    if ranking.post_hoc is PostHoc.NEMENYI and ranking.friedman_p_value > ALPHA:
        return set()
    is_alike_first = ranking.alike[0]
    return {ranking.methods[a] for a in np.flatnonzero(~is_alike_first)}


def surrogate_agreement(
    scores: Sequence[BenchmarkScores], *, trial: int | None = None
) -> "pd.DataFrame":
    """Mean ranks of the methods on each surrogate of benchmarks that were run on several.

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
    return pd.DataFrame(rows, columns=list(AGREEMENT))


def _agreement_rows(group: BenchmarkGroup, trial: int) -> list[tuple[object, ...]]:
    """Rows of `surrogate_agreement` for a benchmark, whose surrogates are the items of a group."""
    mean_ranks = np.stack(
        [item.over_tasks("rank", trial).mean[group.rows(item)] for item in group.items]
    )  # (surrogates, A)
    places = mean_ranks.argsort(axis=1, kind="stable").argsort(axis=1) + 1
    is_same = bool((places == places[0]).all())

    rows: list[tuple[object, ...]] = []
    for number, item in enumerate(group.items):
        labels = (item.protocol, item.benchmark, item.surrogate)
        for a, method in enumerate(group.methods):
            figures = (mean_ranks[number, a], places[number, a], is_same)
            rows.append((*labels, method, trial, *figures))
    return rows
