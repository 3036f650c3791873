"""Checks of claims: each function returns a function from results to findings.

Measures are means over the tasks that count (of ordered tasks those with history) and over seeds;
lower is better. A claim about a difference is decided by `paper.decide`: it is undecided within two
standard errors of the difference, seed by seed.

Checks that only one paper needs stand beside its figures.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from hpobench_ordered.analysis.differences import Difference, compare_methods
from hpobench_ordered.analysis.samples import two_standard_errors
from hpobench_ordered.analysis.scores import Scores
from hpobench_ordered.papers.evidence import Evidence, Measure, MethodComparison
from hpobench_ordered.papers.paper import Check, Finding, Outcome, combine_outcomes, decide

ScoreCheck = Callable[[str, Scores], Finding]
"""Checks a claim on the scores of a subject, such as a benchmark, whose name comes first."""

FORMATS = {Measure.SCORE: ".1f", Measure.RANK: ".2f", Measure.REGRET: ".3g"}
"""Formats of means."""


def ahead(
    firsts: Sequence[str],
    rivals: Sequence[str],
    *,
    trial: int,
    measure: Measure = Measure.SCORE,
    by_task: bool = False,
) -> Check:
    """Each of `firsts` is better than every rival, by benchmark or by task."""

    def check(subject: str, scores: Scores) -> Finding:
        means = mean_of_methods(scores, trial)
        worst_first = max(firsts, key=means.__getitem__)
        best_rival = min(rivals, key=means.__getitem__)
        sign = "<" if means[worst_first] < means[best_rival] else "≥"
        form = FORMATS[measure]
        compared = (
            f"{format_means(means, [worst_first], form)} {sign} "
            f"{format_means(means, [best_rival], form)}"
        )
        gap = compare_methods(scores, worst_first, best_rival, trial=trial)
        outcomes = [
            decide_ahead(compare_methods(scores, first, rival, trial=trial))
            for first, rival in itertools.product(firsts, rivals)
        ]
        measured = f"{compared} ({describe_difference(gap, form)})"
        return Finding(subject, measured, combine_outcomes(outcomes))

    return check_scores(check, measure, by_task=by_task)


def not_behind(first: str, second: str, *, trial: int, measure: Measure) -> Check:
    """One method is no worse than another."""

    def check(subject: str, scores: Scores) -> Finding:
        gap = compare_methods(scores, first, second, trial=trial)
        form = FORMATS[measure]
        means = format_means(mean_of_methods(scores, trial), [first, second], form)
        return Finding(subject, f"{means} ({describe_difference(gap, form)})", decide_ahead(gap))

    return check_scores(check, measure)


def cheaper(first: str, rivals: Sequence[str], *, factor: float) -> Check:
    """Suggestions of one method are at least `factor` times faster than those of every rival.

    Errors are those of the logarithm of the ratio, seed by seed.
    """

    def check(evidence: Evidence, comparison: MethodComparison) -> Finding:
        benchmark = comparison.benchmark
        log_times = {}
        for method in (first, *rivals):
            log_times[method] = np.log(evidence.milliseconds_of_seeds(benchmark, method))  # (S,)

        outcomes = []
        for rival in rivals:
            log_ratio = log_times[rival] - log_times[first]
            shortfall = math.log(factor) - log_ratio
            errors = two_standard_errors(log_ratio[None])  # seeds are its second axis
            outcomes.append(decide(float(shortfall.mean()), float(errors[0])))

        times = []
        for method in (first, *rivals):
            times.append(f"{method} {evidence.milliseconds(benchmark, method):.3g} ms")
        return Finding(benchmark, ", ".join(times), combine_outcomes(outcomes))

    return check_each(check)


def check_each(check: Callable[[Evidence, MethodComparison], Finding]) -> Check:
    """Make a check of all comparisons from one of a single comparison."""
    return lambda evidence, comparisons: [check(evidence, item) for item in comparisons]


def check_scores(
    check: ScoreCheck, measure: Measure = Measure.SCORE, *, by_task: bool = False
) -> Check:
    """Make a check of all comparisons from one of the scores of a benchmark, or of each task."""

    def check_comparisons(
        evidence: Evidence, comparisons: Sequence[MethodComparison]
    ) -> list[Finding]:
        findings = []
        for comparison in comparisons:
            if by_task:
                scores_of_subject = evidence.measure_by_task(comparison, measure)
            else:
                scores = evidence.measure(comparison, measure)
                scores_of_subject = {comparison.benchmark: scores}
            for subject, scores in scores_of_subject.items():
                findings.append(check(subject, scores))
        return findings

    return check_comparisons


def decide_ahead(gap: Difference) -> Outcome:
    """Outcome of the claim that the first method of a difference is better."""
    return decide(gap.mean, gap.two_standard_errors)


def mean_of_methods(scores: Scores, trial: int) -> dict[str, float]:
    """Mean over tasks and seeds after a trial, by method."""
    means = scores.over_tasks(trial=trial).mean
    return dict(zip(scores.methods, means.tolist(), strict=True))


def format_means(means: Mapping[str, float], methods: Sequence[str], form: str = ".1f") -> str:
    """Means of some methods as text."""
    return ", ".join(f"{method} {means[method]:{form}}" for method in methods)


def describe_difference(gap: Difference, form: str = ".1f") -> str:
    """The mean difference with two standard errors, and on how many tasks it is better."""
    two_errors = gap.two_standard_errors
    errors = "" if np.isnan(two_errors) else f" ± {two_errors:{form}}"
    if gap.tasks == 1:
        count = f"in {(gap.values < 0).sum()} of {gap.values.size} runs"
    else:
        count = f"on {gap.better} of {gap.tasks} tasks"
    return f"{gap.mean:+{form}}{errors}, better {count}"
