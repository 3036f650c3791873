"""Checks of the claims of Hellan et al. (2023); see `papers.checks`."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.differences import (
    Difference,
    compare_methods,
    pool_differences,
    two_resampled_errors,
)
from hpobench_ordered.analysis.landscape import optimum_drift
from hpobench_ordered.analysis.samples import incumbents, two_standard_errors
from hpobench_ordered.analysis.scores import Scores, ranks_of_means
from hpobench_ordered.papers.checks import (
    check_each,
    check_scores,
    decide_ahead,
    describe_difference,
    format_means,
    mean_of_methods,
)
from hpobench_ordered.papers.evidence import Evidence, Measure, MethodComparison
from hpobench_ordered.papers.paper import (
    Check,
    Entry,
    Finding,
    Outcome,
    combine_outcomes,
    decide,
)


def ahead_on_tasks(first: str, second: str, *, trial: int, share: float) -> Check:
    """One method scores better than another on at least a share of all tasks together."""

    def check(gap: Difference) -> tuple[str, Outcome]:
        measured = f"on {gap.better} of {gap.tasks} tasks ({share:.0%} is taken for enough)"
        return measured, _decide_share(gap, lambda resampled: resampled.better, share)

    return _check_all_tasks(check, first, second, trial)


def similar(first: str, second: str, *, trial: int, margin: float, share: float) -> Check:
    """The scores of two methods are similar, on at least a share of all tasks together.

    Similar: the difference is less than a margin, in units of the score, or than two standard
    errors.
    """

    def count_alike(gap: Difference) -> int:
        return gap.alike(margin=margin)

    def check(gap: Difference) -> tuple[str, Outcome]:
        number_alike = count_alike(gap)
        measured = (
            f"less than {margin:.0f} or two standard errors apart on {number_alike} of "
            f"{gap.tasks} tasks ({share:.0%} is taken for enough)"
        )
        return measured, _decide_share(gap, count_alike, share)

    return _check_all_tasks(check, first, second, trial)


def early_and_late(early: str, late: str, *, trial: int) -> Check:
    """One method is better on the first half of the tasks with history, another on the rest."""

    def check(evidence: Evidence, comparisons: Sequence[MethodComparison]) -> list[Finding]:
        first_halves = []
        second_halves = []
        for comparison in comparisons:
            gap = _score_difference(evidence, comparison, early, late, trial)
            first_half, second_half = np.array_split(gap.values, 2, axis=1)
            first_halves.append(first_half)
            second_halves.append(second_half)
        early_gap = Difference(np.concatenate(first_halves, axis=1))
        late_gap = Difference(np.concatenate(second_halves, axis=1))
        measured = (
            f"early tasks: {describe_difference(early_gap)}; later tasks: "
            f"{describe_difference(late_gap)}"
        )
        late_wins_late = decide(-late_gap.mean, late_gap.two_standard_errors)
        outcome = combine_outcomes([decide_ahead(early_gap), late_wins_late])
        return [Finding(_all_of(comparisons), measured, outcome)]

    return check


def stays_ahead(first: str, second: str, *, since: int) -> Check:
    """One method scores better than another after every trial from `since` on."""

    def check(benchmark: str, scores: Scores) -> Finding:
        last_trial = scores.values.shape[-1]
        gap_after_trial = {
            trial: compare_methods(scores, first, second, trial=trial)
            for trial in range(since, last_trial + 1)
        }
        worst_trial = max(gap_after_trial, key=lambda trial: gap_after_trial[trial].mean)
        gap = gap_after_trial[worst_trial]
        measured = f"least ahead after trial {worst_trial} ({describe_difference(gap)})"
        outcome = combine_outcomes(map(decide_ahead, gap_after_trial.values()))
        return Finding(benchmark, measured, outcome)

    return check_scores(check)


def best(expected: Mapping[str, str], *, among: Sequence[str], trial: int) -> Check:
    """The method expected on each benchmark scores best of some methods."""

    def check(benchmark: str, scores: Scores) -> Finding:
        means = mean_of_methods(scores, trial)
        best_first = sorted(among, key=means.__getitem__)
        method = expected[benchmark]
        place = 1 + sorted(means.values()).index(means[method])
        measured = (
            f"{format_means(means, best_first)}; {method} is number {place} of all {len(means)}"
        )
        outcomes = [
            decide_ahead(compare_methods(scores, method, other, trial=trial))
            for other in among
            if other != method
        ]
        return Finding(benchmark, measured, combine_outcomes(outcomes))

    return check_scores(check)


def between(middle: str, lower: str, upper: str, *, trials: Sequence[int]) -> Check:
    """A method's score is between those of two others, after each of some trials."""

    def check(evidence: Evidence, comparisons: Sequence[MethodComparison]) -> list[Finding]:
        findings = []
        for trial in trials:
            for comparison in comparisons:
                scores = evidence.measure(comparison, Measure.SCORE)
                means = mean_of_methods(scores, trial)
                best_first = sorted((lower, middle, upper), key=means.__getitem__)
                findings.append(
                    Finding(
                        subject=f"{comparison.benchmark}, trial {trial}",
                        measured=format_means(means, best_first),
                        outcome=combine_outcomes(
                            [
                                decide_ahead(compare_methods(scores, lower, middle, trial=trial)),
                                decide_ahead(compare_methods(scores, middle, upper, trial=trial)),
                            ]
                        ),
                    )
                )
        return findings

    return check


def lead_shrinks(firsts: Sequence[str], rivals: Sequence[str], *, trials: Sequence[int]) -> Check:
    """The lead of the best of some methods over the best of others is largest at first."""

    def check(benchmark: str, scores: Scores) -> Finding:
        leads = []
        lead_of_seeds = []  # after each trial, (S,)
        for trial in trials:
            means = mean_of_methods(scores, trial)
            best_first = min(means[method] for method in firsts)
            best_rival = min(means[method] for method in rivals)
            leads.append(best_rival - best_first)
            lead_of_seeds.append(_lead_of_seeds(scores, means, firsts, rivals, trial))
        numbers = [f"{lead:+.1f} after {trial}" for lead, trial in zip(leads, trials, strict=True)]
        outcomes = []
        for later_lead in lead_of_seeds[1:]:
            growth = later_lead - lead_of_seeds[0]
            errors = two_standard_errors(growth[None])
            outcomes.append(decide(float(growth.mean()), float(errors[0])))
        return Finding(benchmark, f"lead {', '.join(numbers)}", combine_outcomes(outcomes))

    return check_scores(check)


def _lead_of_seeds(
    scores: Scores,
    means: Mapping[str, float],
    firsts: Sequence[str],
    rivals: Sequence[str],
    trial: int,
) -> FloatArray:
    """Lead, with each seed, (S,), of the method of lowest mean of some over that of others."""
    best_first = min(firsts, key=means.__getitem__)
    best_rival = min(rivals, key=means.__getitem__)
    gap = compare_methods(scores, best_rival, best_first, trial=trial)
    return np.asarray(gap.values.mean(axis=1))


def overtaken(leaders: Sequence[str], followers: Sequence[str]) -> Check:
    """A leader ranks best after the first trial, and a follower after the last.

    Errors are those of differences of mean ranks over resamples of the seeds.
    """

    def check(evidence: Evidence, comparison: MethodComparison) -> Finding:
        methods = comparison.methods
        best_losses = incumbents(evidence.counted_losses(comparison))
        best_leader = _best_mean_rank(best_losses, methods, among=leaders)
        best_follower = _best_mean_rank(best_losses, methods, among=followers)

        is_overtaken = best_leader >= best_follower
        if is_overtaken.any():
            when = f"first overtaken after trial {is_overtaken.argmax() + 1}"
        else:
            when = "never"
        measured = (
            f"best rank {best_leader[0]:.1f} against {best_follower[0]:.1f} after trial 1, "
            f"{best_leader[-1]:.1f} against {best_follower[-1]:.1f} after {len(best_leader)}; "
            f"{when}"
        )

        def compute_lag(losses_by_seed: FloatArray) -> float:
            """Mean rank of the best leader after a trial, minus that of the best follower."""
            losses = np.moveaxis(losses_by_seed, 0, 1)[..., None]  # (A, S, T, 1)
            leader_rank = _best_mean_rank(losses, methods, among=leaders)
            follower_rank = _best_mean_rank(losses, methods, among=followers)
            return float(leader_rank[0] - follower_rank[0])

        lags_and_errors = []
        for place in (0, -1):  # the first trial and the last
            losses_by_seed = np.moveaxis(best_losses[..., place], 1, 0)  # (S, A, T)
            errors = two_resampled_errors(losses_by_seed, compute_lag)
            lags_and_errors.append((compute_lag(losses_by_seed), errors))
        (first_lag, first_errors), (last_lag, last_errors) = lags_and_errors
        outcomes = [decide(first_lag, first_errors), decide(-last_lag, last_errors)]
        return Finding(comparison.benchmark, measured, combine_outcomes(outcomes))

    return check_each(check)


def _best_mean_rank(
    losses: FloatArray, methods: Sequence[str], *, among: Sequence[str]
) -> FloatArray:
    """Lowest of the mean ranks over tasks of some methods, after every trial, (M,).

    Args:
        losses: Losses, (A, S, T, M); methods are ranked by their means over seeds.
        methods: Names of all methods that are ranked, length A.
        among: Those whose lowest mean rank it is.
    """
    ranks = ranks_of_means(losses, methods)
    mean_ranks = dict(zip(methods, ranks.mean[:, 0], strict=True))
    return np.asarray(np.min([mean_ranks[method] for method in among], axis=0))


def positive(
    compute: Callable[[Evidence, Sequence[MethodComparison]], Sequence[Entry]], row: str
) -> Check:
    """The entries of a table's row are positive."""

    def check(evidence: Evidence, comparisons: Sequence[MethodComparison]) -> list[Finding]:
        findings = []
        for entry in compute(evidence, comparisons):
            if entry.row == row:
                estimate = entry.measured
                measured = f"{estimate.value:.1f} % ({estimate.lower:.1f} to {estimate.upper:.1f})"
                error = estimate.value - estimate.lower
                findings.append(Finding(entry.column, measured, decide(-estimate.value, error)))
        return findings

    return check


def grows(benchmark: str, hyperparameter: str, *, count: int, at_least: float) -> Check:
    """The values of a hyperparameter in the best configurations grow from task to task.

    Args:
        benchmark: The benchmark.
        hyperparameter: The hyperparameter.
        count: Number of best configurations of each task.
        at_least: Lowest rank correlation of values and tasks that counts as growth.
    """

    def check(evidence: Evidence, _: Sequence[MethodComparison]) -> list[Finding]:
        landscape = evidence.landscape(benchmark)
        space = landscape.benchmark.space
        column = space.names.index(hyperparameter)
        unit_values = space.encode(landscape.values)[:, column]
        correlation = optimum_drift(unit_values, landscape.losses, count=count)
        measured = f"rank correlation with the task {correlation:.2f} (asked: {at_least})"
        outcome = Outcome.from_truth(correlation >= at_least)
        return [Finding(f"{hyperparameter} of {benchmark}", measured, outcome)]

    return check


def _check_all_tasks(
    check: Callable[[Difference], tuple[str, Outcome]], first: str, second: str, trial: int
) -> Check:
    """Check the difference of two methods on the tasks of all benchmarks together.

    `check` gives what was measured, and the outcome of the claim.
    """

    def check_comparisons(
        evidence: Evidence, comparisons: Sequence[MethodComparison]
    ) -> list[Finding]:
        gaps = [_score_difference(evidence, item, first, second, trial) for item in comparisons]
        measured, outcome = check(pool_differences(gaps))
        return [Finding(_all_of(comparisons), measured, outcome)]

    return check_comparisons


def _decide_share(gap: Difference, count: Callable[[Difference], int], share: float) -> Outcome:
    """Outcome of the claim that a count of tasks is at least a share of all of them.

    Its error is that of the count over resamples of the seeds.
    """
    lowest_count = math.ceil(share * gap.tasks)
    # The boundary is half a task below: the lowest count that is enough is beyond it.
    shortfall = lowest_count - 0.5 - count(gap)
    errors = two_resampled_errors(gap.values, lambda values: count(Difference(values)))
    return decide(shortfall, errors)


def _score_difference(
    evidence: Evidence, comparison: MethodComparison, first: str, second: str, trial: int
) -> Difference:
    scores = evidence.measure(comparison, Measure.SCORE)
    return compare_methods(scores, first, second, trial=trial)


def _all_of(comparisons: Sequence[MethodComparison]) -> str:
    return f"{len(comparisons)} benchmarks together"
