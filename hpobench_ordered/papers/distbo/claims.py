"""Checks of the claims of Law et al. (2019); see `papers.claims`."""

from collections.abc import Sequence

import numpy as np

from hpobench_ordered.papers.claims import FORMATS, Finding, iter_scores
from hpobench_ordered.papers.distbo.similarities import name_sources, similarities_of_runs
from hpobench_ordered.papers.evidence import Comparisons, Evidence, Measure


def is_near_optimum(
    evidence: Evidence, comparisons: Comparisons, method: str, *, trial: int, margin: float
) -> list[Finding]:
    """Check that the mean regret of a method after a trial is less than a margin."""
    form = FORMATS[Measure.REGRET]
    findings = []
    for benchmark, scores in iter_scores(evidence, comparisons, Measure.REGRET):
        regrets = scores.values[scores.methods.index(method), :, :, trial - 1]  # (S, T)
        is_defined_task = ~np.isnan(regrets).any(axis=0)
        regret_of_seeds = regrets[:, is_defined_task].mean(axis=1)
        sentence = f"{method} {regret_of_seeds.mean():{form}}, asked {margin}"
        findings.append(
            Finding.from_samples(benchmark, sentence, margin - regret_of_seeds, form=form)
        )
    return findings


def only_one_finds(
    evidence: Evidence,
    comparisons: Comparisons,
    finder: str,
    others: Sequence[str],
    *,
    source: int,
    trials: int,
) -> list[Finding]:
    """Check that only one method ranks a source task as the most similar one in its first trials.

    Similarities are means over the trials with a fitted model. Each method has a finding, on the
    source task and the most similar one of the others.
    """
    (comparison,) = comparisons
    sources = name_sources(evidence, comparison)
    findings = []
    for method in (finder, *others):
        similarities = similarities_of_runs(evidence, comparison.benchmark, method, trials)
        has_model = np.isfinite(similarities).all(axis=(0, 2))  # in all runs, (M,)
        mean_of_run = similarities[:, has_model].mean(axis=1)  # (S, n)
        mean = mean_of_run.mean(axis=0)

        rivals = [n for n in range(len(mean)) if n != source]
        best_rival = max(rivals, key=mean.__getitem__)
        lead_of_run = mean_of_run[:, source] - mean_of_run[:, best_rival]
        count = np.count_nonzero(mean_of_run.argmax(axis=1) == source)
        sentence = (
            f"similarity {mean[source]:.2f} of {sources[source]}, {mean[best_rival]:.2f} of "
            f"{sources[best_rival]}, the right one first in {count} of {len(mean_of_run)} runs"
        )
        if method != finder:
            lead_of_run = -lead_of_run  # the claim is that others do not find it
        findings.append(Finding.from_samples(method, sentence, lead_of_run, form=".2f"))
    return findings
