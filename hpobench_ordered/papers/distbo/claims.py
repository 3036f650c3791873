"""What is found on the claims of Law et al. (2019); see `papers.claims`."""

from collections.abc import Sequence

import numpy as np

from hpobench_ordered.papers.claims import FORMATS, Finding, iter_scores
from hpobench_ordered.papers.distbo.similarities import name_sources, similarities_of_runs
from hpobench_ordered.papers.evidence import Comparisons, Evidence, Measure


def find_whether_near_optimum(
    evidence: Evidence, comparisons: Comparisons, method: str, *, trial: int, margin: float
) -> list[Finding]:
    """Find on each benchmark whether the mean regret of a method after a trial is below a margin.

    Args:
        evidence: The results.
        comparisons: The comparisons, one per benchmark.
        method: Name of the method.
        trial: The trial, counted from 1.
        margin: The margin, in units of the objective.

    Returns:
        A finding for each benchmark, with a sample for each seed: the margin minus the mean regret
        over tasks. Tasks whose regret is undefined, NaN, are left out.
    """
    number_format = FORMATS[Measure.REGRET]
    findings = []
    for benchmark, scores in iter_scores(evidence, comparisons, Measure.REGRET):
        regrets = scores.values[scores.methods.index(method), :, :, trial - 1]  # (seeds, tasks)
        is_defined_task = ~np.isnan(regrets).any(axis=0)
        regret_of_seeds = regrets[:, is_defined_task].mean(axis=1)
        sentence = f"{method} {regret_of_seeds.mean():{number_format}}, asked {margin}"
        distance_below_margin = margin - regret_of_seeds  # (seeds,); positive if the claim holds
        findings.append(
            Finding.from_samples(
                benchmark, sentence, distance_below_margin, number_format=number_format
            )
        )
    return findings


def find_whether_only_one_finds(
    evidence: Evidence,
    comparisons: Comparisons,
    finder: str,
    others: Sequence[str],
    *,
    source: int,
    trials: int,
) -> list[Finding]:
    """Find whether only one method takes a certain source task for the most similar one.

    Similarities are means over the first trials, without those before the first fit of a model.

    Args:
        evidence: The results.
        comparisons: The only comparison.
        finder: The method that should take the source task for the most similar one.
        others: The methods that should not.
        source: Index of the source task.
        trials: Number of first trials.

    Returns:
        A finding for each method, with a sample for each run: the similarity of the source task
        minus that of the most similar other one, with the opposite sign for the `others`.
    """
    (comparison,) = comparisons
    sources = name_sources(evidence, comparison)
    findings = []
    for method in (finder, *others):
        similarities = similarities_of_runs(evidence, comparison.benchmark, method, trials)
        # Trials before which a model was fitted in all runs, (trials,).
        has_model = np.isfinite(similarities).all(axis=(0, 2))
        mean_of_run = similarities[:, has_model].mean(axis=1)  # (runs, source tasks)
        mean = mean_of_run.mean(axis=0)  # (source tasks,)

        other_sources = [index for index in range(len(mean)) if index != source]
        best_rival = max(other_sources, key=mean.__getitem__)
        lead_of_run = mean_of_run[:, source] - mean_of_run[:, best_rival]
        count = np.count_nonzero(mean_of_run.argmax(axis=1) == source)
        sentence = (
            f"similarity {mean[source]:.2f} of {sources[source]}, {mean[best_rival]:.2f} of "
            f"{sources[best_rival]}, the right one first in {count} of {len(mean_of_run)} runs"
        )
        if method != finder:
            lead_of_run = -lead_of_run  # the claim is that others do not find it
        findings.append(Finding.from_samples(method, sentence, lead_of_run, number_format=".2f"))
    return findings
