"""Claims: one rule decides them, and checks on scores of methods a, b and c; lower is better."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np
import pytest
from reproduction_support import InventedEvidence

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.papers.claims import (
    Finding,
    Outcome,
    find_weakest,
    find_whether_ahead,
    find_whether_cheaper,
)
from hpobench_ordered.papers.evidence import MethodComparison
from hpobench_ordered.papers.othpo import claims as othpo

N_SEEDS, N_TASKS, N_TRIALS = 2, 5, 3


def make_finding(difference: float = 1.0, standard_error: float = 0.1, **fields) -> Finding:
    """A finding on five seeds."""
    fields = {"subject": "x", "sentence": "a 1, b 2", "n_samples": 5, **fields}
    return Finding(difference=difference, standard_error=standard_error, **fields)


@pytest.mark.parametrize(
    ("difference", "standard_error", "n_samples", "outcome"),
    [
        # With 4 degrees of freedom Student's 97.5 % quantile is 2.776.
        (2.8, 1.0, 5, Outcome.HOLDS),
        (2.7, 1.0, 5, Outcome.UNDECIDED),
        (-2.7, 1.0, 5, Outcome.UNDECIDED),
        (-2.8, 1.0, 5, Outcome.FAILS),
        # With 1 degree of freedom it is 12.71.
        (12.6, 1.0, 2, Outcome.UNDECIDED),
        (12.8, 1.0, 2, Outcome.HOLDS),
        # A single sample has no standard error.
        (9.0, np.nan, 1, Outcome.UNDECIDED),
        # Without any error, all but a difference of 0 decides.
        (0.0, 0.0, 5, Outcome.UNDECIDED),
        (1e-9, 0.0, 5, Outcome.HOLDS),
    ],
)
def test_claims_are_decided_by_student(difference, standard_error, n_samples, outcome):
    """A difference decides if it is more standard errors from 0 than Student's quantile.

    The claim then holds if the difference is positive, and fails if it is negative.
    """
    finding = make_finding(difference, standard_error, n_samples=n_samples)
    assert finding.outcome is outcome


@pytest.mark.parametrize("n_samples", [2, 5, 12])
def test_true_difference_is_in_interval(n_samples):
    """Of 2000 findings with a true difference of 0, about 95 % are undecided."""
    draws = np.random.default_rng(0).normal(size=(2000, n_samples))
    findings = [Finding.from_samples("x", "", samples) for samples in draws]

    share = np.mean([finding.outcome is Outcome.UNDECIDED for finding in findings])

    assert share == pytest.approx(0.95, abs=0.015)


def test_weakest_part_decides():
    """Of several findings the weakest is one that fails, then one that is undecided."""
    holds, undecided, fails = make_finding(9.0), make_finding(0.1), make_finding(-9.0)

    assert find_weakest([holds, undecided]) is undecided
    assert find_weakest([holds, fails, undecided]) is fails


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        # 2.776 standard errors of 0.1 are 0.28.
        ({"number_format": ".2f"}, "a 1, b 2: +1.00 ± 0.28"),
        # The difference is one of logarithms: the interval is from 2 / e^0.28 to 2 e^0.28.
        ({"is_ratio": True, "difference": np.log(2)}, "a 1, b 2: ratio 2 (1.52 to 2.64)"),
        # A single sample has no error.
        ({"standard_error": np.nan, "n_samples": 1}, "a 1, b 2: +1"),
    ],
)
def test_finding_is_printed_with_error(fields, text):
    """A finding is printed with its 95 % interval, a ratio with both ends of the interval.

    The finding is by default a difference of 1 with a standard error of 0.1, of five samples.
    """
    assert make_finding(**fields).measured == text


# -- checks of all papers --------------------------------------------------------------------------


def check_with(check: Callable[..., list[Finding]], *methods, **options):
    """A check with everything but the results and comparisons, which come first."""
    return lambda evidence, comparisons: check(evidence, comparisons, *methods, **options)


def check_on_scores(
    check: Callable[..., list[Finding]], **scores_of_methods: Sequence[float] | np.ndarray
) -> list[Finding]:
    """Apply a check to the scores of methods a, b and c on benchmark x.

    A method's scores are those after trials 1, 2 and 3, the same on all 5 tasks, or an array of
    shape (5, 3), or of shape (2, 5, 3) for two seeds that differ. The first task has no history and
    does not count. Scores may not rise: they are those of the best trial so far.
    """
    # Scores are losses, scaled to 100 for random search's last one and to 0 for the lowest. These
    # two methods have 100 and 0 at the end, so that losses are scores.
    losses_of_methods = {
        "random-search": [300, 200, 100],
        "ideal": [300, 200, 0],
        "c": [300, 200, 90],  # by default
    }
    losses_of_methods.update(scores_of_methods)

    losses = {}
    for method, values in losses_of_methods.items():
        shape = (N_SEEDS, N_TASKS, N_TRIALS)
        losses["x", method] = np.broadcast_to(np.array(values, float), shape)
    comparison = MethodComparison("x", ("random-search", "ideal", "a", "b", "c"))
    return check(InventedEvidence(losses), [comparison])


def get_outcomes(findings: Sequence[Finding]) -> list[Outcome]:
    """The outcomes of findings."""
    return [finding.outcome for finding in findings]


def by_seed(*scores_of_seeds: Sequence[float]) -> np.ndarray:
    """Scores after each trial of seeds that differ, the same on all tasks, (2, 5, 3)."""
    shape = (N_TASKS, N_TRIALS)
    return np.stack([np.broadcast_to(np.array(scores, float), shape) for scores in scores_of_seeds])


BOTH_AHEAD_OF_C = check_with(find_whether_ahead, ["a", "b"], ["c"], trial=2)


def test_ahead_names_pair_that_decides():
    """Methods a and b are compared with c on the four tasks that count; b is closer to it."""
    scores = {"a": [50, 40, 30], "b": by_seed([60, 44, 30], [60, 45, 30]), "c": [90, 46, 20]}
    (finding,) = check_on_scores(BOTH_AHEAD_OF_C, **scores)

    assert finding.outcome is Outcome.UNDECIDED
    assert finding.measured == "b 44.5, c 46.0, better on 4 of 4 tasks: +1.5 ± 6.4"


@pytest.mark.parametrize(
    ("score_of_c", "margin", "outcome"),
    [
        (46, 0, Outcome.HOLDS),
        (45, 0, Outcome.UNDECIDED),
        (44, 0, Outcome.FAILS),
        (44, 2, Outcome.HOLDS),
    ],
)
def test_ahead_needs_lower_scores(score_of_c, margin, outcome):
    """After trial 2 the worse of a and b has 45; a margin is what counts as no worse."""
    check = check_with(find_whether_ahead, ["a", "b"], ["c"], trial=2, margin=margin)

    findings = check_on_scores(check, a=[50, 40, 30], b=[60, 45, 30], c=[90, score_of_c, 20])

    assert get_outcomes(findings) == [outcome]


def test_ahead_ignores_task_without_history():
    """Method a is behind b on the first task, without history, and ahead on all others."""
    scores_of_a = np.full((N_TASKS, N_TRIALS), 10.0)
    scores_of_a[0] = [999, 999, 99]

    check = check_with(find_whether_ahead, ["a"], ["b"], trial=1)
    findings = check_on_scores(check, a=scores_of_a, b=[20, 20, 20])

    assert get_outcomes(findings) == [Outcome.HOLDS]


@pytest.mark.parametrize(
    ("milliseconds_of_b", "outcome"),
    [
        ([30.0, 31.0, 32.0], Outcome.HOLDS),
        ([10.0, 20.0, 40.0], Outcome.UNDECIDED),  # about twice as much, but not with every seed
        ([11.0, 12.0, 13.0], Outcome.FAILS),
    ],
)
def test_twice_as_cheap_is_decided_by_seeds(milliseconds_of_b, outcome):
    """Method a takes 10 ms with each of three seeds; does b take more than twice as long?"""
    times = {"a": np.array([10.0, 10.0, 10.0]), "b": np.array(milliseconds_of_b)}
    evidence = SimpleNamespace(milliseconds_of_seeds=lambda benchmark, method: times[method])

    comparisons = [MethodComparison("x", ("a", "b"))]
    findings = find_whether_cheaper(evidence, comparisons, "a", ["b"], factor=2)

    assert get_outcomes(findings) == [outcome]


# -- checks of othpo -------------------------------------------------------------------------------


def behind_on_last_tasks(number: int) -> FloatArray:
    """Scores of 10 on all five tasks, but of 99 on the last ones."""
    scores = np.full((N_TASKS, N_TRIALS), 10.0)
    scores[N_TASKS - number :] = 99
    return scores


@pytest.mark.parametrize(
    ("scores_of_a", "outcome"),
    [
        (behind_on_last_tasks(0), Outcome.HOLDS),
        (behind_on_last_tasks(1), Outcome.HOLDS),
        (behind_on_last_tasks(2), Outcome.FAILS),
        # Ahead on all tasks on average (45), with the second seed on none.
        (by_seed([10, 10, 10], [80, 80, 80]), Outcome.UNDECIDED),
    ],
)
def test_ahead_on_tasks_needs_share(scores_of_a, outcome):
    """Three of the four tasks that count must have a score below b's, which is 50."""
    check = check_with(othpo.find_whether_ahead_on_tasks, "a", "b", trial=1, share=0.75)

    findings = check_on_scores(check, a=scores_of_a, b=[50, 50, 50])

    assert get_outcomes(findings) == [outcome]


@pytest.mark.parametrize(
    ("score_of_b", "outcome"), [(54, Outcome.HOLDS), (56, Outcome.FAILS), (44, Outcome.FAILS)]
)
def test_alike_within_margin(score_of_b, outcome):
    """Scores after the first trial are alike if they are less than 5 apart; a has 50."""
    check = check_with(othpo.find_whether_alike_on_tasks, "a", "b", trial=1, margin=5, share=0.75)

    findings = check_on_scores(check, a=[50, 10, 10], b=[score_of_b, 40, 40])

    assert get_outcomes(findings) == [outcome]


@pytest.mark.parametrize(
    ("early", "late", "outcome"), [("a", "b", Outcome.HOLDS), ("b", "a", Outcome.FAILS)]
)
def test_early_and_late_halves(early, late, outcome):
    """The scores of a are 10 on the first half of the tasks, 90 on the second; b always has 50."""
    scores_of_a = np.array([[50], [10], [10], [90], [90]]) * np.ones(N_TRIALS)
    check = check_with(othpo.find_whether_leads_change_places, early, late, trial=1)

    findings = check_on_scores(check, a=scores_of_a, b=[50, 50, 50])

    assert [finding.subject for finding in findings] == ["early tasks", "later tasks"]
    assert get_outcomes(findings) == [outcome, outcome]


@pytest.mark.parametrize(("last_score_of_b", "outcome"), [(50, Outcome.HOLDS), (30, Outcome.FAILS)])
def test_stays_ahead_since_trial(last_score_of_b, outcome):
    """Method a has 40 after trials 2 and 3; that it is behind b after trial 1 does not count."""
    check = check_with(othpo.find_whether_ahead_since, "a", "b", since=2)

    findings = check_on_scores(check, a=[90, 40, 40], b=[50, 50, last_score_of_b])

    assert get_outcomes(findings) == [outcome]


def test_between_is_found_after_each_trial():
    """Method b is between a and c after trial 1 (10, 40, 50), not after trial 2 (10, 40, 30)."""
    check = check_with(othpo.find_whether_between, "b", "a", "c", trials=(1, 2))

    findings = check_on_scores(check, a=[10, 10, 10], b=[40, 40, 20], c=[50, 30, 30])

    assert [finding.subject for finding in findings] == ["x, trial 1", "x, trial 2"]
    assert get_outcomes(findings) == [Outcome.HOLDS, Outcome.FAILS]


@pytest.mark.parametrize(
    ("scores_of_a", "outcome"), [([10, 10, 10], Outcome.HOLDS), ([55, 10, 0], Outcome.FAILS)]
)
def test_lead_over_best_rival_shrinks(scores_of_a, outcome):
    """The lead of a over b, the better rival, falls from 50 to 20, or grows from 5 to 20."""
    check = check_with(othpo.find_whether_lead_shrinks, ["a"], ["b", "c"], trials=(1, 2))

    findings = check_on_scores(check, a=scores_of_a, b=[60, 30, 5])

    assert get_outcomes(findings) == [outcome]


@pytest.mark.parametrize(
    ("scores_of_b", "outcome"),
    [
        ([60, 60, 5], Outcome.HOLDS),
        ([60, 60, 60], Outcome.FAILS),
        # Ahead after the last trial on average (6.5), but not with the second seed.
        (by_seed([60, 60, 1], [60, 60, 12]), Outcome.UNDECIDED),
    ],
)
def test_overtaken_after_last_trial(scores_of_b, outcome):
    """Method b is behind a, which has 10 throughout, after the first trial."""
    check = check_with(othpo.find_whether_overtaken, ["a"], ["b"])

    after_first, after_last = check_on_scores(check, a=[10, 10, 10], b=scores_of_b)

    assert after_first.outcome is Outcome.HOLDS
    assert after_last.outcome is outcome


@pytest.mark.parametrize(
    ("lowest_correlation", "outcome"), [(0.5, Outcome.HOLDS), (0.999, Outcome.FAILS)]
)
def test_grows_needs_rank_correlation(lowest_correlation, outcome):
    """The rank correlation of depth and task is above 0.5, but not 1.

    It is that in the ten best configurations of each task of xgboost-mnist, without any runs.
    """
    findings = othpo.find_whether_growing(
        InventedEvidence(),
        "xgboost-mnist",
        "max_depth",
        count=10,
        at_least=lowest_correlation,
    )

    assert get_outcomes(findings) == [outcome]
