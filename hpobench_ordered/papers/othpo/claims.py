"""What is found on the claims of Hellan et al. (2023); see `papers.claims`."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray
from hpobench_ordered.analysis.landscape import optimum_drift
from hpobench_ordered.analysis.samples import incumbents
from hpobench_ordered.analysis.scores import ranks_of_means
from hpobench_ordered.papers.claims import (
    Finding,
    compare_pair,
    find_weakest,
    iter_scores,
    mean_of_methods,
)
from hpobench_ordered.papers.differences import compare_methods, resampled_error
from hpobench_ordered.papers.evidence import Comparisons, Evidence


def find_whether_ahead_on_tasks(
    evidence: Evidence,
    comparisons: Comparisons,
    first: str,
    second: str,
    *,
    trial: int,
    share: float,
) -> list[Finding]:
    """Find whether one method is better than another on at least a share of all tasks.

    There is one finding, on the tasks of all benchmarks together.
    """
    leads = pool_leads(evidence, comparisons, first, second, trial)
    return [count_tasks(leads, lambda lead: lead > 0, f"{first} ahead of {second}", share)]


def find_whether_alike_on_tasks(
    evidence: Evidence,
    comparisons: Comparisons,
    first: str,
    second: str,
    *,
    trial: int,
    margin: float,
    share: float,
) -> list[Finding]:
    """Find whether two methods' scores differ by less than a margin on a share of all tasks.

    There is one finding, on the tasks of all benchmarks together.
    """
    leads = pool_leads(evidence, comparisons, first, second, trial)
    label = f"{first} and {second} less than {margin:g} apart"
    return [count_tasks(leads, lambda lead: np.abs(lead) < margin, label, share)]


def pool_leads(
    evidence: Evidence, comparisons: Comparisons, first: str, second: str, trial: int
) -> FloatArray:
    """Compute how much lower, so better, the first method's score is than the second's.

    Returns:
        Differences after a trial, (seeds, tasks): all tasks of the first benchmark, then all tasks
        of the next one, and so on.
    """
    leads = [
        compare_methods(scores, second, first, trial=trial)
        for _, scores in iter_scores(evidence, comparisons)
    ]
    return np.concatenate(leads, axis=1)


def count_tasks(
    leads: FloatArray, is_counted: Callable[[FloatArray], BoolArray], label: str, share: float
) -> Finding:
    """Find whether at least a share of all tasks has a property, by counting the tasks with it.

    The error of the count is its standard deviation over resamples of the seeds.

    Args:
        leads: Differences of the scores of two methods, (seeds, tasks).
        is_counted: Takes means of these over seeds, (tasks,), and returns which tasks have the
            property, (tasks,).
        label: Words for the property.
        share: Smallest share of the tasks that must have the property.
    """

    def count(leads_of_seeds: FloatArray) -> int:
        """Return the number of tasks with the property, by the leads of some seeds."""
        return int(is_counted(leads_of_seeds.mean(axis=0)).sum())

    n_seeds, n_tasks = leads.shape
    lowest_count = math.ceil(share * n_tasks)
    return Finding(
        subject="all benchmarks together",
        sentence=f"{label} on {count(leads)} of {n_tasks} tasks, asked {lowest_count}",
        # A claim holds if the difference is positive. It is compared with half a task less than the
        # lowest count that is enough, since the difference from that count itself may be 0.
        difference=count(leads) - (lowest_count - 0.5),
        standard_error=resampled_error(leads, count),
        n_samples=n_seeds,
        number_format=".1f",
    )


def find_whether_leads_change_places(
    evidence: Evidence, comparisons: Comparisons, early: str, late: str, *, trial: int
) -> list[Finding]:
    """Find whether one method is better on early tasks, and another one on later tasks.

    Early tasks are the first half of those with history, later tasks the second half.

    Args:
        evidence: The results.
        comparisons: The comparisons, one per benchmark.
        early: The method that should be better on early tasks.
        late: The method that should be better on later tasks.
        trial: The trial after which they are compared, counted from 1.

    Returns:
        Two findings, over the tasks of all benchmarks: on early tasks and on later ones.
    """
    leads_on_early_tasks = []  # of `early` over `late`, (seeds, tasks) on each benchmark
    leads_on_later_tasks = []  # of `late` over `early`
    for _, scores in iter_scores(evidence, comparisons):
        leads_of_early = compare_methods(scores, late, early, trial=trial)
        on_first_half, on_second_half = np.array_split(leads_of_early, 2, axis=1)
        leads_on_early_tasks.append(on_first_half)
        leads_on_later_tasks.append(-on_second_half)
    return [
        _average_leads("early tasks", f"lead of {early} over {late}", leads_on_early_tasks),
        _average_leads("later tasks", f"lead of {late} over {early}", leads_on_later_tasks),
    ]


def _average_leads(subject: str, sentence: str, leads: Sequence[FloatArray]) -> Finding:
    """Make the finding on a mean lead over all tasks of several benchmarks.

    Args:
        subject: As in `Finding`.
        sentence: As in `Finding`.
        leads: Leads on each benchmark, (seeds, tasks).
    """
    lead_of_seeds = np.concatenate(leads, axis=1).mean(axis=1)
    return Finding.from_samples(subject, sentence, lead_of_seeds, number_format=".1f")


def find_whether_ahead_since(
    evidence: Evidence, comparisons: Comparisons, first: str, second: str, *, since: int
) -> list[Finding]:
    """Find whether one method scores better than another after every trial from `since` on.

    On each benchmark, the finding is on the trial after which it is least so.
    """
    findings = []
    for benchmark, scores in iter_scores(evidence, comparisons):
        last_trial = scores.values.shape[-1]
        after_trials = [
            compare_pair(f"{benchmark}, trial {trial}", scores, first, second, trial=trial)
            for trial in range(since, last_trial + 1)
        ]
        findings.append(find_weakest(after_trials))
    return findings


def find_whether_between(
    evidence: Evidence,
    comparisons: Comparisons,
    middle: str,
    lower: str,
    upper: str,
    *,
    trials: Sequence[int],
) -> list[Finding]:
    """Find whether the score of the method `middle` is between those of two others.

    There is a finding for each benchmark and each of some trials.

    Args:
        evidence: The results.
        comparisons: The comparisons, one per benchmark.
        middle: The method whose score should be between those of the others.
        lower: The method that should have the lowest, and so the best, score.
        upper: The method that should have the highest score.
        trials: The trials, counted from 1.
    """
    findings = []
    for trial in trials:
        for benchmark, scores in iter_scores(evidence, comparisons):
            subject = f"{benchmark}, trial {trial}"
            above_lower = compare_pair(subject, scores, lower, middle, trial=trial)
            below_upper = compare_pair(subject, scores, middle, upper, trial=trial)
            findings.append(find_weakest([above_lower, below_upper]))
    return findings


def find_whether_lead_shrinks(
    evidence: Evidence,
    comparisons: Comparisons,
    firsts: Sequence[str],
    rivals: Sequence[str],
    *,
    trials: Sequence[int],
) -> list[Finding]:
    """Find whether the best of some methods loses some of its lead over the best rival.

    After each trial, the method and the rival of lowest mean score are chosen anew, and their lead
    is compared with that after the first trial. On each benchmark, the finding is on the later
    trial that speaks least for the claim.

    Args:
        evidence: The results.
        comparisons: The comparisons, one per benchmark.
        firsts: The methods whose lead should shrink.
        rivals: The methods that they are compared with.
        trials: The first trial and one or more later ones, counted from 1, in ascending order.
    """
    findings = []
    for benchmark, scores in iter_scores(evidence, comparisons):
        lead_after_trial = {}  # mean over tasks with each seed, (seeds,)
        for trial in trials:
            means = mean_of_methods(scores, trial)
            best_first = min(firsts, key=means.__getitem__)
            best_rival = min(rivals, key=means.__getitem__)
            leads = compare_methods(scores, best_rival, best_first, trial=trial)
            lead_after_trial[trial] = leads.mean(axis=1)
        first_trial, *later_trials = trials
        findings_on_trials = []
        for trial in later_trials:
            loss_of_lead = lead_after_trial[first_trial] - lead_after_trial[trial]
            sentence = (
                f"lead {lead_after_trial[first_trial].mean():.1f} after {first_trial}, "
                f"{lead_after_trial[trial].mean():.1f} after {trial}"
            )
            findings_on_trials.append(
                Finding.from_samples(benchmark, sentence, loss_of_lead, number_format=".1f")
            )
        findings.append(find_weakest(findings_on_trials))
    return findings


def find_whether_overtaken(
    evidence: Evidence, comparisons: Comparisons, leaders: Sequence[str], followers: Sequence[str]
) -> list[Finding]:
    """Find whether some methods, the leaders, are overtaken by others, the followers.

    After the first trial, the best leader must rank better than all followers; after the last
    trial, the best follower must rank better than all leaders. Both have a finding on each
    benchmark. Errors are those of differences of mean ranks over resamples of the seeds.
    """
    findings = []
    for comparison in comparisons:
        # Losses of the best evaluations so far, (methods, seeds, tasks, trials).
        losses = incumbents(evidence.counted_losses(comparison))
        last_trial = losses.shape[-1]
        for trial, firsts, rivals in (
            (1, leaders, followers),
            (last_trial, followers, leaders),
        ):
            subject = f"{comparison.benchmark}, trial {trial}"
            losses_by_seed = np.moveaxis(losses[..., trial - 1], 1, 0)  # (seeds, methods, tasks)
            findings.append(
                compare_best_ranks(subject, losses_by_seed, comparison.methods, firsts, rivals)
            )
    return findings


def compare_best_ranks(
    subject: str,
    losses_by_seed: FloatArray,
    methods: Sequence[str],
    firsts: Sequence[str],
    rivals: Sequence[str],
) -> Finding:
    """Find whether the lowest mean rank of some methods is lower than that of their rivals.

    Args:
        subject: The subject of the finding.
        losses_by_seed: Losses after a trial, (seeds, methods, tasks). Methods are ranked by their
            mean losses.
        methods: Names of all methods that are ranked, in the order of the losses.
        firsts: The methods that should rank best.
        rivals: The methods that they are compared with.
    """

    def rank_best(losses: FloatArray, among: Sequence[str]) -> float:
        """Return the lowest of the mean ranks over tasks that some of the methods have."""
        losses_by_method = np.moveaxis(losses, 0, 1)[..., None]  # (methods, seeds, tasks, 1)
        ranks = ranks_of_means(losses_by_method, methods).mean.mean(axis=(1, 2))
        return float(min(ranks[list(methods).index(method)] for method in among))

    def lead(losses: FloatArray) -> float:
        """Return how much lower, so better, the best rank of the methods is than the rivals'."""
        return rank_best(losses, rivals) - rank_best(losses, firsts)

    return Finding(
        subject=subject,
        sentence=(
            f"best rank {rank_best(losses_by_seed, firsts):.1f} of {' and '.join(firsts)}, "
            f"{rank_best(losses_by_seed, rivals):.1f} of {' and '.join(rivals)}"
        ),
        difference=lead(losses_by_seed),
        standard_error=resampled_error(losses_by_seed, lead),
        n_samples=len(losses_by_seed),
        number_format=".1f",
    )


def find_whether_growing(
    evidence: Evidence, benchmark: str, hyperparameter: str, *, count: int, at_least: float
) -> list[Finding]:
    """Find whether a hyperparameter's values in the best configurations grow from task to task.

    The error is 0, as the configurations and their values are always the same.

    Args:
        evidence: The results.
        benchmark: The benchmark.
        hyperparameter: The hyperparameter.
        count: Number of best configurations of each task.
        at_least: Lowest rank correlation of values and tasks that counts as growth.
    """
    landscape = evidence.landscape(benchmark)
    space = landscape.benchmark.space
    column = space.names.index(hyperparameter)
    unit_values = space.encode(landscape.values)[:, column]
    correlation = optimum_drift(unit_values, landscape.losses, count=count)
    return [
        Finding(
            subject=f"{hyperparameter} of {benchmark}",
            sentence=f"rank correlation with the task {correlation:.2f}, asked {at_least}",
            difference=correlation - at_least,
            standard_error=0.0,
            n_samples=len(landscape.losses),
            number_format=".2f",
        )
    ]
