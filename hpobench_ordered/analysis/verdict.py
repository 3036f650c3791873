"""Which method leads, whether significantly, and whether on every surrogate.

The leader is the method of the lowest mean rank over all benchmarks. Its differences from others
are tested over families of benchmarks (`Unit.BENCHMARKS`) by `usual_test`, if there are `FEWEST`
families.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup, rank_and_compare
from hpobench_ordered.analysis.labels import format_count, format_scope, join_names
from hpobench_ordered.analysis.scoring import BenchmarkScores, group_by_protocol
from hpobench_ordered.analysis.significance import ALPHA, PostHoc

if TYPE_CHECKING:
    import pandas as pd

FEWEST = 5  # families of benchmarks needed to test differences
TRIALS = (1, 10)  # trials after which a verdict is given, in addition to the last
EQUAL = 1e-9  # largest difference of mean ranks that is due to rounding

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
        if self.families == 1:
            single = self.benchmarks == 1
            what = "a single benchmark" if single else f"{self.benchmarks} benchmarks of one family"
            return f"{text}, on {what}: this says nothing of others."
        noun = "benchmarks" if self.families == self.benchmarks else "families"
        text += f", and first on {self.first_on} of {self.families} {noun}."
        if self.test is None:
            return f"{text} There are too few {noun} for a test."
        return f"{text} {self._significance(f'over {self.families} {noun}', TESTS[self.test])}"

    def _significance(self, over: str, by: str) -> str:
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


def verdicts(scores: Sequence[BenchmarkScores], *, trials: Sequence[int] = TRIALS) -> list[Verdict]:
    """Who leads under each protocol, the protocol of most benchmarks first.

    Args:
        scores: Scores by benchmark.
        trials: Trials of which a verdict is given, beside the last; those beyond it are left out.

    Returns:
        Verdicts, early trials first; none for protocols with fewer than two methods compared on
        all benchmarks.
    """
    found = []
    for items in group_by_protocol(scores).values():
        together = BenchmarkGroup.for_means(items)
        last = together.last_trial
        if len(together.methods) > 1:
            shown = sorted({trial for trial in trials if trial < last} | {last})
            found += [_verdict(together, trial) for trial in shown]
    return found


def _verdict(together: BenchmarkGroup, trial: int) -> Verdict:
    ranks = together.by_family("rank", trial)
    means = ranks.mean(axis=0)
    places = np.flatnonzero(means <= means.min() + EQUAL)
    firsts = ranks <= ranks.min(axis=1, keepdims=True) + EQUAL
    leaders = tuple(together.methods[place] for place in places)
    others = [method for method in together.methods if method not in leaders]
    tested = rank_and_compare(together, trial=trial) if len(ranks) >= FEWEST else None
    better: list[str] = []
    if tested is not None and len(leaders) == 1:
        far = {m for m, alike in zip(tested.methods, tested.alike[0], strict=True) if not alike}
        # Nemenyi's test is made only where Friedman's finds a difference at all.
        is_made = tested.post_hoc is not PostHoc.NEMENYI or tested.friedman_p_value <= ALPHA
        better = [method for method in others if is_made and method in far]
    return Verdict(
        protocol=together.protocol,
        trial=trial,
        leaders=leaders,
        mean_rank=float(means.min()),
        methods=len(together.methods),
        first_on=int(firsts[:, places].any(axis=1).sum()),
        benchmarks=len(together.benchmarks),
        families=len(ranks),
        better_than=tuple(better),
        not_told_apart=tuple(method for method in others if method not in better),
        test=None if tested is None else tested.post_hoc,
    )


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

    groups: dict[tuple[str, str], list[BenchmarkScores]] = {}
    for item in scores:
        groups.setdefault((item.protocol, item.benchmark), []).append(item)
    rows = []
    for (protocol, benchmark), items in groups.items():
        together = BenchmarkGroup.of_all(items)
        if len(items) < 2 or len(together.methods) < 2:
            continue
        at = trial or together.last_trial
        ranks = np.stack([item.over_tasks("rank", at).mean[together.rows(item)] for item in items])
        places = ranks.argsort(axis=1, kind="stable").argsort(axis=1) + 1
        is_same = bool((places == places[0]).all())
        rows += [
            (protocol, benchmark, item.surrogate, method, at, rank, place, is_same)
            for item, its_ranks, its_places in zip(items, ranks, places, strict=True)
            for method, rank, place in zip(together.methods, its_ranks, its_places, strict=True)
        ]
    return pd.DataFrame(rows, columns=list(AGREEMENT))
