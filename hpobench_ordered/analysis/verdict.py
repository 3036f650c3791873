"""Who leads: after the first, the tenth and the last trial, on how many benchmarks, how surely.

The leader is the method of the lowest mean rank over all benchmarks. Whether another differs from
it is tested over benchmarks (`Unit.BENCHMARKS`), by the test that `usual_test` chooses; of fewer
than `FEWEST` benchmarks nothing is claimed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray
from hpobench_ordered.analysis.critical_differences import CriticalDifference, PostHoc
from hpobench_ordered.analysis.labels import counted, listed
from hpobench_ordered.analysis.scoring import BenchmarkScores, by_protocol
from hpobench_ordered.analysis.together import Together, differences_of, significance_of

FEWEST = 5
"""Benchmarks that a claim about all benchmarks needs."""

TRIALS = (1, 10)
"""Trials of which a verdict is given, beside the last."""

EQUAL = 1e-9
"""Difference of mean ranks that is rounding alone."""

TESTS = {
    PostHoc.WILCOXON_HOLM: "Wilcoxon's signed-rank test with Holm's correction",
    PostHoc.NEMENYI: "Nemenyi's test",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Who leads after a trial under one protocol.

    Attributes:
        protocol: The protocol, with its settings.
        trial: The trial, counted from 1.
        leaders: The method of the lowest mean rank; several that share it.
        mean_rank: Their mean rank.
        methods: Number of methods compared on all benchmarks.
        first_on: Number of benchmarks on which a leader has the lowest mean rank, shared or not.
        benchmarks: Number of benchmarks.
        better_than: Methods that differ from the leader over benchmarks, at a level of 5 %; none
            where several lead.
        not_told_apart: The other methods.
        test: The test that decided; None where nothing could be tested.
        friedman_p_value: p value of Friedman's test over benchmarks; NaN where nothing was tested.
    """

    protocol: str
    trial: int
    leaders: tuple[str, ...]
    mean_rank: float
    methods: int
    first_on: int
    benchmarks: int
    better_than: tuple[str, ...]
    not_told_apart: tuple[str, ...]
    test: PostHoc | None
    friedman_p_value: float

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        trials = counted(self.trial, "trial")
        if len(self.leaders) == self.methods:
            return f"After {trials} all {self.methods} methods share the mean rank."
        verb = "leads" if len(self.leaders) == 1 else "lead together"
        text = f"After {trials} {listed(self.leaders)} {verb}, with a mean rank of "
        text += f"{self.mean_rank:.2f} among {self.methods} methods"
        if self.benchmarks == 1:
            return f"{text}, on a single benchmark: this says nothing of others."
        text += f", and first on {self.first_on} of {self.benchmarks} benchmarks."
        if self.test is None:
            return f"{text} So few benchmarks are too few to test."
        return f"{text} {self._significance}"

    @property
    def _significance(self) -> str:
        over = f"over {self.benchmarks} benchmarks"
        by = "" if self.test is None else TESTS[self.test]
        if len(self.leaders) > 1:
            return ""
        if not self.better_than:
            return f"No difference from another method is significant {over} ({by})."
        if not self.not_told_apart:
            return f"The difference from every other method is significant {over} ({by})."
        return (
            f"The difference is significant {over} from {listed(self.better_than)}, and not from "
            f"{listed(self.not_told_apart)} ({by})."
        )


def verdicts(scores: Sequence[BenchmarkScores], *, trials: Sequence[int] = TRIALS) -> list[Verdict]:
    """Who leads under each protocol, the protocol of most benchmarks first.

    Args:
        scores: Scores by benchmark.
        trials: Trials of which a verdict is given, beside the last; those beyond it are left out.

    Returns:
        Verdicts, early trials first; none of protocols without two methods compared on all
        benchmarks.
    """
    found = []
    for items in by_protocol(scores).values():
        together = Together.of(items)
        last = together.last_trial
        if len(together.methods) > 1:
            shown = sorted({trial for trial in trials if trial < last} | {last})
            found += [_verdict(together, trial) for trial in shown]
    return found


def _verdict(together: Together, trial: int) -> Verdict:
    ranks = together.by_benchmark("rank", trial)
    means = ranks.mean(axis=0)
    places = np.flatnonzero(means <= means.min() + EQUAL)
    firsts = ranks <= ranks.min(axis=1, keepdims=True) + EQUAL
    leaders = tuple(together.methods[place] for place in places)
    others = [method for method in together.methods if method not in leaders]
    tested = differences_of(together, trial=trial) if len(ranks) >= FEWEST else None
    better: list[str] = []
    if tested is not None and len(leaders) == 1:
        different = _different(together, tested, means, int(places[0]), trial)
        better = [
            method for method, is_so in zip(together.methods, different, strict=True) if is_so
        ]
    return Verdict(
        protocol=together.protocol,
        trial=trial,
        leaders=leaders,
        mean_rank=float(means.min()),
        methods=len(together.methods),
        first_on=int(firsts[:, places].any(axis=1).sum()),
        benchmarks=len(ranks),
        better_than=tuple(better),
        not_told_apart=tuple(method for method in others if method not in better),
        test=None if tested is None else tested.post_hoc,
        friedman_p_value=float("nan") if tested is None else tested.friedman_p_value,
    )


def _different(
    together: Together, tested: CriticalDifference, means: FloatArray, leader: int, trial: int
) -> BoolArray:
    """Whether each method differs from the leader by the test, shape (A,)."""
    if tested.post_hoc is PostHoc.NEMENYI:
        far = means - means[leader] >= tested.critical_difference
        return np.asarray(far & (tested.friedman_p_value <= tested.alpha))
    tests = significance_of(together, trial=trial)
    adjusted = np.ones(len(means)) if tests is None else tests.adjusted[leader]
    return np.asarray(adjusted <= tested.alpha)
