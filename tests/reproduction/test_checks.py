"""Every check finds that its claim holds where the scores say so, and that it fails elsewhere.

Scores are written by method, after trials 1, 2 and 3; lower is better.
"""

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from hpobench_ordered.analysis.differences import Estimate
from hpobench_ordered.reproduction.checks import ahead, cheaper
from hpobench_ordered.reproduction.paper import (
    Check,
    Entry,
    Finding,
    MethodComparison,
    Outcome,
    combine_outcomes,
    decide,
)
from hpobench_ordered.reproduction.papers.othpo import checks as othpo

CheckOnScores = Callable[..., list[Finding]]


@pytest.fixture
def check_on_scores(make_evidence_of) -> CheckOnScores:
    """Apply a check to the scores of methods a, b and c on benchmark x.

    A method's scores are those after trials 1, 2 and 3, the same on all 5 tasks, or an array of
    shape (5, 3), or of shape (2, 5, 3) for two seeds that differ. The first task has no history and
    does not count. Scores may not rise: they are those of the best trial so far.
    """

    def call(check: Check, **scores_of_methods: Sequence[float] | np.ndarray) -> list[Finding]:
        # Scores are scaled to 100 for random search's last loss and 0 for the lowest loss: with
        # these two methods losses are scores.
        losses_of_methods = {
            "random-search": [300, 200, 100],
            "ideal": [300, 200, 0],
            "c": [300, 200, 90],
        }
        losses_of_methods.update(scores_of_methods)

        losses = {}
        for method, values in losses_of_methods.items():
            losses["x", method] = np.broadcast_to(np.array(values, float), (2, 5, 3))
        methods = ("random-search", "ideal", "a", "b", "c")
        return list(check(make_evidence_of(losses), [MethodComparison("x", methods)]))

    return call


# -- ahead: each of some methods is better than every rival ----------------------------------------


def test_ahead_holds_with_lower_scores(check_on_scores):
    both_ahead_of_c = ahead(("a", "b"), ("c",), trial=2)

    scores = {"a": [50, 40, 30], "b": [60, 45, 30], "c": [90, 46, 20]}
    (finding,) = check_on_scores(both_ahead_of_c, **scores)

    assert finding.outcome is Outcome.HOLDS
    # After trial 2, of the worse of a and b; the first of five tasks does not count.
    assert finding.measured == "b 45.0 < c 46.0 (-1.0 ± 0.0, better on 4 of 4 tasks)"


def test_equal_scores_leave_ahead_undecided(check_on_scores):
    both_ahead_of_c = ahead(("a", "b"), ("c",), trial=2)

    scores = {"a": [50, 40, 30], "b": [60, 45, 30], "c": [90, 45, 20]}
    (finding,) = check_on_scores(both_ahead_of_c, **scores)

    assert finding.outcome is Outcome.UNDECIDED
    assert "b 45.0 ≥ c 45.0" in finding.measured


def test_ahead_ignores_task_without_history(check_on_scores):
    scores_of_a = np.full((5, 3), 10.0)
    scores_of_a[0] = [999, 999, 99]  # the first task has no history

    (finding,) = check_on_scores(ahead(("a",), ("b",), trial=1), a=scores_of_a, b=[20, 20, 20])

    assert finding.outcome is Outcome.HOLDS


def test_any_undecided_rival_leaves_ahead_undecided(check_on_scores):
    """Rival b is clearly behind a, rival c is level with it."""
    ahead_of_both = ahead(("a",), ("b", "c"), trial=2)

    scores = {"a": [50, 40, 30], "b": [90, 80, 70], "c": [50, 40, 30]}
    (finding,) = check_on_scores(ahead_of_both, **scores)

    assert finding.outcome is Outcome.UNDECIDED


@pytest.mark.parametrize(
    ("difference", "two_errors", "outcome"),
    [
        (-2.0, 1.0, Outcome.HOLDS),
        (-1.0, 1.0, Outcome.UNDECIDED),
        (1.0, 1.0, Outcome.UNDECIDED),
        (2.0, 1.0, Outcome.FAILS),
        (-2.0, np.nan, Outcome.UNDECIDED),  # one seed
    ],
)
def test_claims_are_decided_beyond_two_errors(difference, two_errors, outcome):
    assert decide(difference, two_errors) is outcome


def test_failing_part_decides_claim():
    parts = [Outcome.HOLDS, Outcome.UNDECIDED, Outcome.FAILS]
    assert combine_outcomes(parts) is Outcome.FAILS


# -- shares of tasks -------------------------------------------------------------------------------


@pytest.mark.parametrize(("worse_tasks", "holds"), [(0, True), (1, True), (2, False)])
def test_ahead_on_tasks_needs_share(check_on_scores, worse_tasks, holds):
    """With 10 against 50, a is ahead of b; with 99, on the last `worse_tasks` of five, it is not.

    The first task does not count, so that there are four.
    """
    ahead_on_three_of_four = othpo.ahead_on_tasks("a", "b", trial=1, share=0.75)
    scores_of_a = np.full((5, 3), 10.0)
    scores_of_a[5 - worse_tasks :] = 99

    (finding,) = check_on_scores(ahead_on_three_of_four, a=scores_of_a, b=[50, 50, 50])

    assert finding.outcome is Outcome.from_truth(holds)
    assert f"on {4 - worse_tasks} of 4 tasks" in finding.measured


def test_share_that_depends_on_seed_is_undecided(check_on_scores):
    ahead_on_three_of_four = othpo.ahead_on_tasks("a", "b", trial=1, share=0.75)
    leading_seed = np.full((5, 3), 10.0)
    trailing_seed = np.full((5, 3), 80.0)

    # On average a is ahead on all tasks, with its second seed alone on none.
    (finding,) = check_on_scores(
        ahead_on_three_of_four, a=np.stack([leading_seed, trailing_seed]), b=[50, 50, 50]
    )

    assert "on 4 of 4 tasks" in finding.measured
    assert finding.outcome is Outcome.UNDECIDED


@pytest.mark.parametrize(("score_of_b", "holds"), [(54, True), (56, False)])
def test_similar_within_margin(check_on_scores, score_of_b, holds):
    """After the first trial a has 50, and b 54 or 56; later both have 50."""
    within_five = othpo.similar("a", "b", trial=1, margin=5, share=0.75)

    (finding,) = check_on_scores(within_five, a=[50, 50, 50], b=[score_of_b, 50, 50])

    assert finding.outcome is Outcome.from_truth(holds)


def test_similar_looks_at_its_trial_only(check_on_scores):
    within_five_at_first = othpo.similar("a", "b", trial=1, margin=5, share=0.75)

    # Close after the first trial, far apart later.
    (finding,) = check_on_scores(within_five_at_first, a=[50, 10, 10], b=[54, 50, 50])

    assert finding.outcome is Outcome.HOLDS


SCORES_OF_TASKS = np.array([[50], [10], [10], [90], [90]]) * np.ones(3)
"""Scores, of which lower is better, on five tasks after three trials, which `b` has 50 on.

The first task has no history and does not count; of the others, the first half has 10, better than
50, and the second half 90.
"""


def test_early_method_wins_first_half(check_on_scores):
    """The scores of a are 10 on the first half of the tasks, 90 on the second; b always has 50."""
    a_early_b_late = othpo.early_and_late("a", "b", trial=1)

    (finding,) = check_on_scores(a_early_b_late, a=SCORES_OF_TASKS, b=[50, 50, 50])

    assert finding.outcome is Outcome.HOLDS


def test_early_method_must_win_first_half(check_on_scores):
    """The scores of b are 10 on the first half of the tasks, 90 on the second; a always has 50."""
    a_early_b_late = othpo.early_and_late("a", "b", trial=1)

    (finding,) = check_on_scores(a_early_b_late, a=[50, 50, 50], b=SCORES_OF_TASKS)

    assert finding.outcome is Outcome.FAILS


# -- from trial to trial ---------------------------------------------------------------------------


def test_stays_ahead_ignores_earlier_trials(check_on_scores):
    ahead_since_second = othpo.stays_ahead("a", "b", since=2)

    (finding,) = check_on_scores(ahead_since_second, a=[90, 40, 30], b=[50, 50, 50])

    assert finding.outcome is Outcome.HOLDS


def test_stays_ahead_fails_once_behind(check_on_scores):
    ahead_since_second = othpo.stays_ahead("a", "b", since=2)

    (finding,) = check_on_scores(ahead_since_second, a=[40, 40, 40], b=[50, 50, 30])

    assert finding.outcome is Outcome.FAILS
    # There a has 40, and b 30.
    assert "least ahead after trial 3 (+10.0" in finding.measured


def test_best_is_of_those_compared(check_on_scores):
    a_best_of_two = othpo.best({"x": "a"}, among=("a", "b"), trial=3)

    (finding,) = check_on_scores(a_best_of_two, a=[90, 90, 40], b=[90, 90, 41])

    assert finding.outcome is Outcome.HOLDS
    # The method "ideal", which is not compared, has a score of 0.
    assert "a is number 2 of all 5" in finding.measured


def test_best_fails_behind_another(check_on_scores):
    a_best_of_two = othpo.best({"x": "a"}, among=("a", "b"), trial=3)

    (finding,) = check_on_scores(a_best_of_two, a=[90, 90, 40], b=[90, 90, 39])

    assert finding.outcome is Outcome.FAILS


def test_between_is_found_after_each_trial(check_on_scores):
    b_between = othpo.between("b", "a", "c", trials=(1, 2))

    after_first, after_second = check_on_scores(
        b_between, a=[10, 10, 10], b=[40, 40, 20], c=[50, 30, 30]
    )

    assert (after_first.subject, after_first.outcome) == ("x, trial 1", Outcome.HOLDS)
    assert (after_second.subject, after_second.outcome) == ("x, trial 2", Outcome.FAILS)


def test_lead_shrinks_until_behind(check_on_scores):
    lead_of_a_shrinks = othpo.lead_shrinks(("a",), ("b", "c"), trials=(1, 2, 3))

    (finding,) = check_on_scores(lead_of_a_shrinks, a=[10, 10, 10], b=[60, 30, 5])

    assert finding.outcome is Outcome.HOLDS
    # Over b, the better of the two rivals: c has 90 at the end.
    assert "lead +50.0 after 1, +20.0 after 2, -5.0 after 3" in finding.measured


def test_growing_lead_does_not_shrink(check_on_scores):
    lead_of_a_shrinks = othpo.lead_shrinks(("a",), ("b", "c"), trials=(1, 2, 3))

    (finding,) = check_on_scores(lead_of_a_shrinks, a=[60, 10, 10], b=[90, 50, 50])

    assert finding.outcome is Outcome.FAILS


def test_level_follower_has_overtaken_leader(check_on_scores):
    b_overtakes_a = othpo.overtaken(leaders=("a",), followers=("b",))

    # b is behind after trial 1, level after trial 2 (which counts as overtaken), then ahead
    (finding,) = check_on_scores(b_overtakes_a, a=[10, 10, 10], b=[60, 10, 5])

    assert finding.outcome is Outcome.HOLDS
    assert "first overtaken after trial 2" in finding.measured


def test_overtaking_with_one_seed_is_undecided(check_on_scores):
    b_overtakes_a = othpo.overtaken(leaders=("a",), followers=("b",))
    overtaking_seed = np.broadcast_to([60.0, 10.0, 1.0], (5, 3))
    following_seed = np.broadcast_to([60.0, 30.0, 12.0], (5, 3))

    # After trial 3 b is ahead on average (6.5 against 10), but not with its second seed.
    (finding,) = check_on_scores(
        b_overtakes_a, a=[10, 10, 10], b=np.stack([overtaking_seed, following_seed])
    )

    assert finding.outcome is Outcome.UNDECIDED


def test_leader_to_the_end_is_not_overtaken(check_on_scores):
    b_overtakes_a = othpo.overtaken(leaders=("a",), followers=("b",))

    (finding,) = check_on_scores(b_overtakes_a, a=[10, 10, 10], b=[60, 60, 60])

    assert finding.outcome is Outcome.FAILS
    assert "never" in finding.measured


# -- times -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("milliseconds_of_rival", "outcome"),
    [
        ([30, 31, 32], Outcome.HOLDS),
        ([10, 20, 40], Outcome.UNDECIDED),  # about twice as much, but not with every seed
        ([11, 12, 13], Outcome.FAILS),
    ],
)
def test_twice_as_cheap_is_decided_by_seeds(milliseconds_of_rival, outcome):
    """Milliseconds of a and its rival b, with three seeds each."""
    times = {"a": np.array([10.0, 10.0, 10.0]), "b": np.array(milliseconds_of_rival, float)}
    evidence = SimpleNamespace(
        milliseconds=lambda benchmark, method: times[method].mean(),
        milliseconds_of_seeds=lambda benchmark, method: times[method],
    )
    twice_as_cheap = cheaper("a", ("b",), factor=2)

    (finding,) = twice_as_cheap(evidence, [MethodComparison("x", ("a", "b"))])

    assert finding.outcome is outcome


# -- tables and landscapes -------------------------------------------------------------------------


def test_positive_is_checked_by_column():
    published = Estimate(5, 1, 9)
    entries = [
        Entry("row", "x", published, Estimate(2, 1, 3)),
        Entry("row", "y", published, Estimate(-2, -3, -1)),
        Entry("other", "z", published, published),
    ]
    # Checks each column of the table's row "row"; the table needs no evidence here.
    row_is_positive = othpo.positive(lambda evidence, needs: entries, "row")

    x, y = row_is_positive(None, [])  # type: ignore[arg-type]

    assert (x.subject, x.outcome) == ("x", Outcome.HOLDS)
    assert x.measured == "2.0 % (1.0 to 3.0)"
    assert (y.subject, y.outcome) == ("y", Outcome.FAILS)


@pytest.mark.parametrize(
    ("measured", "is_inside"), [(Estimate(2, -1, 5), True), (Estimate(-2, -4, 0), False)]
)
def test_entry_is_inside_published_interval(measured, is_inside):
    published = Estimate(5, lower=1, upper=9)

    assert Entry("row", "x", published, measured).is_inside is is_inside


@pytest.mark.parametrize(("lowest_correlation", "holds"), [(0.5, True), (1.0, False)])
def test_grows_needs_rank_correlation(make_evidence_of, lowest_correlation, holds):
    """The best trees of xgboost-mnist get deeper from task to task, but not without exception.

    So the rank correlation of depth and task, in the ten best configurations of each task, is
    between 0.5 and 1.
    """
    depth_grows = othpo.grows("xgboost-mnist", "max_depth", count=10, at_least=lowest_correlation)

    # It is found from the benchmark itself, without any runs.
    (finding,) = depth_grows(make_evidence_of({}), [])

    assert finding.outcome is Outcome.from_truth(holds)
