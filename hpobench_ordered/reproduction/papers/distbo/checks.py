"""Checks of the claims of Law et al. (2019); see `reproduction.checks`."""

from collections.abc import Sequence

from hpobench_ordered.analysis.scores import Scores
from hpobench_ordered.reproduction.checks import (
    FORMATS,
    check_scores,
    format_means,
    mean_of_methods,
)
from hpobench_ordered.reproduction.evidence import Measure, MethodComparison
from hpobench_ordered.reproduction.paper import Check, Finding


def on(comparison: MethodComparison, check: Check) -> Check:
    """Restrict a check to one comparison of the figure."""
    return lambda evidence, _: check(evidence, [comparison])


def near(methods: Sequence[str], *, trial: int, margin: float) -> Check:
    """Each of some methods is within a margin of the best known value."""

    def check(benchmark: str, scores: Scores) -> Finding:
        regrets = mean_of_methods(scores, trial)
        measured = f"{format_means(regrets, methods, FORMATS[Measure.REGRET])} (asked: {margin})"
        return Finding(benchmark, measured, all(regrets[method] <= margin for method in methods))

    return check_scores(check, Measure.REGRET)
