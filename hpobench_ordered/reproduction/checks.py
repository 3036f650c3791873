"""Checks of claims: each function returns a function from results to findings.

Measures are means over the tasks that count (of ordered tasks those with history) and over seeds;
lower is better. A claim is judged by these means; the two standard errors printed beside them are
of the difference seed by seed.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from hpobench_ordered.analysis.differences import Difference, compare_methods, pool_differences
from hpobench_ordered.analysis.landscape import optimum_drift
from hpobench_ordered.analysis.scores import Scores
from hpobench_ordered.reproduction.evidence import Comparison, Evidence, Measure
from hpobench_ordered.reproduction.paper import Check, Entry, Finding

ScoreCheck = Callable[[str, Scores], Finding]

DIGITS = {Measure.SCORE: ".1f", Measure.RANK: ".2f", Measure.REGRET: ".3g"}
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

    def check(benchmark: str, scores: Scores) -> Finding:
        means = _means(scores, trial)
        last = max(firsts, key=means.__getitem__)
        rival = min(rivals, key=means.__getitem__)
        holds = means[last] < means[rival]
        gap = compare_methods(scores, last, rival, trial=trial)
        sign, digits = "<" if holds else "≥", DIGITS[measure]
        measured = f"{_scored(means, [last], digits)} {sign} {_scored(means, [rival], digits)}"
        return Finding(benchmark, f"{measured} ({_describe(gap, digits)})", holds)

    return _by_benchmark(check, measure, by_task=by_task)


def not_behind(first: str, second: str, *, trial: int, measure: Measure) -> Check:
    """One method is no worse than another, or by less than two standard errors."""

    def check(benchmark: str, scores: Scores) -> Finding:
        gap = compare_methods(scores, first, second, trial=trial)
        holds = gap.mean <= np.nan_to_num(gap.two_standard_errors)
        means, digits = _means(scores, trial), DIGITS[measure]
        measured = f"{_scored(means, [first, second], digits)} ({_describe(gap, digits)})"
        return Finding(benchmark, measured, bool(holds))

    return _by_benchmark(check, measure)


def on(comparison: Comparison, check: Check) -> Check:
    """Restrict a check to one comparison of the figure."""
    return lambda evidence, _: check(evidence, [comparison])


def near(methods: Sequence[str], *, trial: int, margin: float) -> Check:
    """Each of some methods is within a margin of the best known value."""

    def check(benchmark: str, scores: Scores) -> Finding:
        means = _means(scores, trial)
        measured = f"{_scored(means, methods, DIGITS[Measure.REGRET])} (asked: {margin})"
        return Finding(benchmark, measured, all(means[one] <= margin for one in methods))

    return _by_benchmark(check, Measure.REGRET)


def cheaper(first: str, rivals: Sequence[str], *, factor: float) -> Check:
    """Suggestions of one method are at least `factor` times faster than those of every rival."""

    def check(evidence: Evidence, item: Comparison) -> Finding:
        taken = {m: evidence.milliseconds(item.benchmark, m) for m in (first, *rivals)}
        times = ", ".join(f"{method} {taken[method]:.3g} ms" for method in taken)
        holds = all(taken[rival] > factor * taken[first] for rival in rivals)
        return Finding(item.benchmark, times, holds)

    return _each(check)


def ahead_on_tasks(first: str, second: str, *, trial: int, share: float) -> Check:
    """One method scores better than another on at least a share of all tasks together."""

    def check(gap: Difference) -> tuple[str, bool]:
        measured = f"on {gap.better} of {gap.tasks} tasks ({share:.0%} is taken for enough)"
        return measured, gap.tasks > 0 and gap.better >= share * gap.tasks

    return _on_all_tasks(check, first, second, trial)


def stays_ahead(first: str, second: str, *, since: int) -> Check:
    """One method scores better than another after every trial from `since` on."""

    def check(benchmark: str, scores: Scores) -> Finding:
        trials = range(since, scores.values.shape[-1] + 1)
        gaps = {n: compare_methods(scores, first, second, trial=n) for n in trials}
        worst = max(gaps, key=lambda trial: gaps[trial].mean)
        measured = f"least ahead after trial {worst} ({_describe(gaps[worst])})"
        return Finding(benchmark, measured, gaps[worst].mean < 0)

    return _by_benchmark(check)


def best(expected: Mapping[str, str], *, among: Sequence[str], trial: int) -> Check:
    """The method expected on each benchmark scores best of some methods."""

    def check(benchmark: str, scores: Scores) -> Finding:
        means = _means(scores, trial)
        ordered = sorted(among, key=means.__getitem__)
        method = expected[benchmark]
        place = sorted(means.values()).index(means[method]) + 1
        measured = f"{_scored(means, ordered)}; {method} is number {place} of all {len(means)}"
        return Finding(benchmark, measured, ordered[0] == method)

    return _by_benchmark(check)


def similar(first: str, second: str, *, trial: int, margin: float, share: float) -> Check:
    """The scores of two methods are similar, on at least a share of all tasks together.

    Similar: the difference is less than a margin, in units of the score, or than two standard
    errors.
    """

    def check(gap: Difference) -> tuple[str, bool]:
        alike = gap.alike(margin=margin)
        measured = (
            f"less than {margin:.0f} or two standard errors apart on {alike} of {gap.tasks} tasks "
            f"({share:.0%} is taken for enough)"
        )
        return measured, gap.tasks > 0 and alike >= share * gap.tasks

    return _on_all_tasks(check, first, second, trial)


def early_and_late(early: str, late: str, *, trial: int) -> Check:
    """One method is better on the first half of the tasks with history, another on the rest."""

    def check(evidence: Evidence, comparisons: Sequence[Comparison]) -> list[Finding]:
        gaps = [_difference(evidence, item, early, late, trial) for item in comparisons]
        halves = zip(*(np.array_split(gap.values, 2, axis=1) for gap in gaps), strict=True)
        first, second = (Difference(np.concatenate(half, axis=1)) for half in halves)
        measured = f"early tasks: {_describe(first)}; later tasks: {_describe(second)}"
        return [Finding(_together(comparisons), measured, first.mean < 0 < second.mean)]

    return check


def between(middle: str, lower: str, upper: str, *, trials: Sequence[int]) -> Check:
    """A method's score is between those of two others, after each of some trials."""

    def check(benchmark: str, scores: Scores, trial: int) -> Finding:
        means = _means(scores, trial)
        measured = _scored(means, sorted((lower, middle, upper), key=means.__getitem__))
        holds = means[lower] <= means[middle] <= means[upper]
        return Finding(f"{benchmark}, trial {trial}", measured, holds)

    checks = [_by_benchmark(partial(check, trial=trial)) for trial in trials]
    return lambda evidence, items: [one for each in checks for one in each(evidence, items)]


def lead_shrinks(firsts: Sequence[str], rivals: Sequence[str], *, trials: Sequence[int]) -> Check:
    """The lead of the best of some methods over the best of others is largest at first."""

    def check(benchmark: str, scores: Scores) -> Finding:
        leads = {}
        for trial in trials:
            means = _means(scores, trial)
            leads[trial] = min(means[m] for m in rivals) - min(means[m] for m in firsts)
        numbers = ", ".join(f"{leads[trial]:+.1f} after {trial}" for trial in trials)
        first, *later = leads.values()
        return Finding(benchmark, f"lead {numbers}", max(later) < first)

    return _by_benchmark(check)


def overtaken(leaders: Sequence[str], followers: Sequence[str]) -> Check:
    """A leader ranks best after the first trial, and a follower after the last."""

    def check(evidence: Evidence, comparison: Comparison) -> Finding:
        found = evidence.ranks(comparison)
        ranks = dict(zip(found.methods, found.mean[:, 0], strict=True))
        lead, chase = (
            np.min([ranks[m] for m in several], axis=0) for several in (leaders, followers)
        )
        behind = np.flatnonzero(lead >= chase)
        when = f"first overtaken after trial {behind[0] + 1}" if len(behind) else "never"
        measured = (
            f"best rank {lead[0]:.1f} against {chase[0]:.1f} after trial 1, {lead[-1]:.1f} "
            f"against {chase[-1]:.1f} after {len(lead)}; {when}"
        )
        holds = bool(lead[0] < chase[0] and chase[-1] < lead[-1])
        return Finding(comparison.benchmark, measured, holds)

    return _each(check)


def positive(
    compute: Callable[[Evidence, Sequence[Comparison]], Sequence[Entry]], row: str
) -> Check:
    """The entries of a table's row are positive."""

    def check(evidence: Evidence, comparisons: Sequence[Comparison]) -> list[Finding]:
        found = {e.column: e.measured for e in compute(evidence, comparisons) if e.row == row}
        return [
            Finding(name, f"{one.value:.1f} % ({one.lower:.1f} to {one.upper:.1f})", one.value > 0)
            for name, one in found.items()
        ]

    return check


def grows(benchmark: str, hyperparameter: str, *, count: int, at_least: float) -> Check:
    """The values of a hyperparameter in the best configurations grow from task to task."""

    def check(evidence: Evidence, _: Sequence[Comparison]) -> list[Finding]:
        landscape, space = evidence.landscape(benchmark), evidence.benchmark(benchmark).space
        unit = space.encode(landscape.values)[:, space.names.index(hyperparameter)]
        correlation = optimum_drift(unit, landscape.losses, count=count)
        measured = f"rank correlation with the task {correlation:.2f} (asked: {at_least})"
        return [Finding(f"{hyperparameter} of {benchmark}", measured, correlation >= at_least)]

    return check


def _each(check: Callable[[Evidence, Comparison], Finding]) -> Check:
    return lambda evidence, comparisons: [check(evidence, item) for item in comparisons]


def _by_benchmark(
    check: ScoreCheck, measure: Measure = Measure.SCORE, *, by_task: bool = False
) -> Check:
    def checked(evidence: Evidence, comparisons: Sequence[Comparison]) -> list[Finding]:
        findings = []
        for item in comparisons:
            parts = {item.benchmark: evidence.measured(item, measure)}
            if by_task:
                parts = evidence.by_task(item, measure)
            findings += [check(subject, part) for subject, part in parts.items()]
        return findings

    return checked


def _on_all_tasks(
    check: Callable[[Difference], tuple[str, bool]], first: str, second: str, trial: int
) -> Check:
    """Check the difference of two methods on the tasks of all benchmarks together."""

    def checked(evidence: Evidence, comparisons: Sequence[Comparison]) -> list[Finding]:
        gap = pool_differences(
            [_difference(evidence, item, first, second, trial) for item in comparisons]
        )
        return [Finding(_together(comparisons), *check(gap))]

    return checked


def _means(scores: Scores, trial: int) -> dict[str, float]:
    means = scores.over_tasks(trial=trial).mean
    return dict(zip(scores.methods, means.tolist(), strict=True))


def _scored(means: Mapping[str, float], methods: Sequence[str], digits: str = ".1f") -> str:
    return ", ".join(f"{method} {means[method]:{digits}}" for method in methods)


def _describe(gap: Difference, digits: str = ".1f") -> str:
    two = gap.two_standard_errors
    errors = "" if np.isnan(two) else f" ± {two:{digits}}"
    where = f"on {gap.better} of {gap.tasks} tasks"
    if gap.tasks == 1:
        where = f"in {(gap.values < 0).sum()} of {gap.values.size} runs"
    return f"{gap.mean:+{digits}}{errors}, better {where}"


def _difference(
    evidence: Evidence, comparison: Comparison, first: str, second: str, trial: int
) -> Difference:
    scores = evidence.measured(comparison, Measure.SCORE)
    return compare_methods(scores, first, second, trial=trial)


def _together(comparisons: Sequence[Comparison]) -> str:
    return f"{len(comparisons)} benchmarks together"
