"""Checks of the claims of Law et al. (2019); see `papers.checks`."""

from collections.abc import Sequence

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.samples import two_standard_errors
from hpobench_ordered.analysis.scores import Scores
from hpobench_ordered.papers.checks import (
    FORMATS,
    check_scores,
    format_means,
    mean_of_methods,
)
from hpobench_ordered.papers.evidence import Measure, MethodComparison
from hpobench_ordered.papers.paper import Check, Finding, combine_outcomes, decide


def on(comparison: MethodComparison, check: Check) -> Check:
    """Restrict a check to one comparison of the figure."""
    return lambda evidence, _: check(evidence, [comparison])


def near(methods: Sequence[str], *, trial: int, margin: float) -> Check:
    """Each of some methods is within a margin of the best known value."""

    def check(benchmark: str, scores: Scores) -> Finding:
        regrets = mean_of_methods(scores, trial)
        measured = f"{format_means(regrets, methods, FORMATS[Measure.REGRET])} (asked: {margin})"
        outcomes = []
        for method in methods:
            regrets_of_seeds = _regret_of_seeds(scores, method, trial)
            errors = two_standard_errors(regrets_of_seeds[None])
            outcomes.append(decide(regrets[method] - margin, float(errors[0])))
        return Finding(benchmark, measured, combine_outcomes(outcomes))

    return check_scores(check, Measure.REGRET)


def _regret_of_seeds(scores: Scores, method: str, trial: int) -> FloatArray:
    """Mean regret over tasks of a method with each seed, (S,)."""
    regrets = scores.values[scores.methods.index(method), :, :, trial - 1]  # (S, T)
    is_defined_task = ~np.isnan(regrets).any(axis=0)
    return np.asarray(regrets[:, is_defined_task].mean(axis=1))
