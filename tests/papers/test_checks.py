"""Checks of claims, on scores of methods a, b, c after trials 1, 2 and 3; lower is better.

Every check finds that its claim holds where the scores say so, and that it fails elsewhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from reproduction_support import InventedEvidence

from hpobench_ordered.analysis.differences import Estimate
from hpobench_ordered.papers.checks import ahead, cheaper
from hpobench_ordered.papers.evidence import Evidence
from hpobench_ordered.papers.othpo import checks as othpo
from hpobench_ordered.papers.paper import (
    Check,
    Entry,
    Finding,
    MethodComparison,
    Outcome,
    combine_outcomes,
    decide,
)

N_SEEDS, N_TASKS, N_TRIALS = 2, 5, 3


def check_on_scores(
    check: Check, **scores_of_methods: Sequence[float] | np.ndarray
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
    return list(check(InventedEvidence(losses), [comparison]))


# -- ahead: each of some methods is better than every rival ----------------------------------------


def test_ahead_holds_with_lower_scores():
    """The worse of methods a and b is compared with c: b, on the four tasks that count."""
    both_ahead_of_c = ahead(("a", "b"), ("c",), trial=2)

    scores = {"a": [50, 40, 30], "b": [60, 45, 30], "c": [90, 46, 20]}
    (finding,) = check_on_scores(both_ahead_of_c, **scores)

    assert finding.outcome is Outcome.HOLDS
    assert finding.measured == "b 45.0 < c 46.0 (-1.0 ± 0.0, better on 4 of 4 tasks)"


def test_equal_scores_leave_ahead_undecided():
    """Level methods are neither ahead nor behind: after trial 2, both b and c have 45."""
    both_ahead_of_c = ahead(("a", "b"), ("c",), trial=2)

    scores = {"a": [50, 40, 30], "b": [60, 45, 30], "c": [90, 45, 20]}
    (finding,) = check_on_scores(both_ahead_of_c, **scores)

    assert finding.outcome is Outcome.UNDECIDED
    assert "b 45.0 ≥ c 45.0" in finding.measured


def test_ahead_ignores_task_without_history():
    """Method a is behind b on the first task, without history, and ahead on all others."""
    a_ahead_of_b = ahead(("a",), ("b",), trial=1)
    scores_of_a = np.full((N_TASKS, N_TRIALS), 10.0)
    scores_of_a[0] = [999, 999, 99]

    (finding,) = check_on_scores(a_ahead_of_b, a=scores_of_a, b=[20, 20, 20])

    assert finding.outcome is Outcome.HOLDS


def test_any_undecided_rival_leaves_ahead_undecided():
    """A method must be ahead of all rivals: b is clearly behind a, but c is level with it."""
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
def test_ahead_on_tasks_needs_share(worse_tasks, holds):
    """Method a is behind b on none, one or two of the four tasks that count, and ahead elsewhere.

    The first of five tasks, without history, does not count.
    """
    ahead_on_three_of_four = othpo.ahead_on_tasks("a", "b", trial=1, share=0.75)
    scores_of_a = np.full((N_TASKS, N_TRIALS), 10.0)
    first_worse_task = N_TASKS - worse_tasks
    scores_of_a[first_worse_task:] = 99

    (finding,) = check_on_scores(ahead_on_three_of_four, a=scores_of_a, b=[50, 50, 50])

    assert finding.outcome is Outcome.from_truth(holds)
    assert f"on {4 - worse_tasks} of 4 tasks" in finding.measured


def test_share_that_depends_on_seed_is_undecided():
    """Method a is ahead on all tasks on average (45 against 50), with its second seed on none."""
    ahead_on_three_of_four = othpo.ahead_on_tasks("a", "b", trial=1, share=0.75)
    first_seed_of_a = np.full((N_TASKS, N_TRIALS), 10.0)
    second_seed_of_a = np.full((N_TASKS, N_TRIALS), 80.0)
    scores_of_a = np.stack([first_seed_of_a, second_seed_of_a])

    (finding,) = check_on_scores(ahead_on_three_of_four, a=scores_of_a, b=[50, 50, 50])

    assert "on 4 of 4 tasks" in finding.measured
    assert finding.outcome is Outcome.UNDECIDED


@pytest.mark.parametrize(("score_of_b", "holds"), [(54, True), (56, False)])
def test_similar_within_margin(score_of_b, holds):
    """Scores count as similar if they are less than 5 apart on three quarters of the tasks.

    After the first trial a has 50, and b 54 or 56 on all tasks; later both have 50.
    """
    within_five = othpo.similar("a", "b", trial=1, margin=5, share=0.75)

    (finding,) = check_on_scores(within_five, a=[50, 50, 50], b=[score_of_b, 50, 50])

    assert finding.outcome is Outcome.from_truth(holds)


def test_similar_looks_at_its_trial_only():
    """Methods a and b are close after the first trial, and far apart later."""
    within_five_at_first = othpo.similar("a", "b", trial=1, margin=5, share=0.75)

    (finding,) = check_on_scores(within_five_at_first, a=[50, 10, 10], b=[54, 50, 50])

    assert finding.outcome is Outcome.HOLDS


GOOD_FIRST_HALF = np.array([[50], [10], [10], [90], [90]]) * np.ones(N_TRIALS)
"""Scores on five tasks, the same after all trials.

The first task has no history and does not count; of the others, the first half has 10, better than
50, and the second half 90.
"""


def test_early_method_wins_first_half():
    """The scores of a are 10 on the first half of the tasks, 90 on the second; b always has 50."""
    a_early_b_late = othpo.early_and_late("a", "b", trial=1)

    (finding,) = check_on_scores(a_early_b_late, a=GOOD_FIRST_HALF, b=[50, 50, 50])

    assert finding.outcome is Outcome.HOLDS


def test_early_method_must_win_first_half():
    """The scores of b are 10 on the first half of the tasks, 90 on the second; a always has 50."""
    a_early_b_late = othpo.early_and_late("a", "b", trial=1)

    (finding,) = check_on_scores(a_early_b_late, a=[50, 50, 50], b=GOOD_FIRST_HALF)

    assert finding.outcome is Outcome.FAILS


# -- from trial to trial ---------------------------------------------------------------------------


def test_stays_ahead_ignores_earlier_trials():
    """Method a is behind b after the first trial, and ahead from the second one on."""
    ahead_since_second = othpo.stays_ahead("a", "b", since=2)

    (finding,) = check_on_scores(ahead_since_second, a=[90, 40, 30], b=[50, 50, 50])

    assert finding.outcome is Outcome.HOLDS


def test_stays_ahead_fails_once_behind():
    """Method a must be ahead after every trial from 2 on, but after trial 3 it is 10 behind."""
    ahead_since_second = othpo.stays_ahead("a", "b", since=2)

    (finding,) = check_on_scores(ahead_since_second, a=[40, 40, 40], b=[50, 50, 30])

    assert finding.outcome is Outcome.FAILS
    assert "least ahead after trial 3 (+10.0" in finding.measured


def test_best_is_of_those_compared():
    """Method a is the best of a and b; "ideal" is better than both, but not compared."""
    a_best_of_two = othpo.best({"x": "a"}, among=("a", "b"), trial=3)

    (finding,) = check_on_scores(a_best_of_two, a=[90, 90, 40], b=[90, 90, 41])

    assert finding.outcome is Outcome.HOLDS
    assert "a is number 2 of all 5" in finding.measured


def test_best_fails_behind_another():
    """The best of those compared has the lowest score: after trial 3, a has 40 and b 39."""
    a_best_of_two = othpo.best({"x": "a"}, among=("a", "b"), trial=3)

    (finding,) = check_on_scores(a_best_of_two, a=[90, 90, 40], b=[90, 90, 39])

    assert finding.outcome is Outcome.FAILS


def test_between_is_found_after_each_trial():
    """Method b is between a and c after trial 1 (10, 40, 50), not after trial 2 (10, 40, 30)."""
    b_between = othpo.between("b", "a", "c", trials=(1, 2))

    scores = {"a": [10, 10, 10], "b": [40, 40, 20], "c": [50, 30, 30]}
    after_first, after_second = check_on_scores(b_between, **scores)

    assert (after_first.subject, after_first.outcome) == ("x, trial 1", Outcome.HOLDS)
    assert (after_second.subject, after_second.outcome) == ("x, trial 2", Outcome.FAILS)


def test_lead_shrinks_until_behind():
    """The lead of method a is over the better one of its rivals: b, as c has 90 at the end."""
    lead_of_a_shrinks = othpo.lead_shrinks(("a",), ("b", "c"), trials=(1, 2, 3))

    (finding,) = check_on_scores(lead_of_a_shrinks, a=[10, 10, 10], b=[60, 30, 5])

    assert finding.outcome is Outcome.HOLDS
    assert "lead +50.0 after 1, +20.0 after 2, -5.0 after 3" in finding.measured


def test_growing_lead_does_not_shrink():
    """The lead of method a over b grows from 30 after trial 1 to 40 after trials 2 and 3."""
    lead_of_a_shrinks = othpo.lead_shrinks(("a",), ("b", "c"), trials=(1, 2, 3))

    (finding,) = check_on_scores(lead_of_a_shrinks, a=[60, 10, 10], b=[90, 50, 50])

    assert finding.outcome is Outcome.FAILS


def test_level_follower_has_overtaken_leader():
    """Method b is behind a after trial 1 and level after trial 2, which counts as overtaken."""
    b_overtakes_a = othpo.overtaken(leaders=("a",), followers=("b",))

    (finding,) = check_on_scores(b_overtakes_a, a=[10, 10, 10], b=[60, 10, 5])

    assert finding.outcome is Outcome.HOLDS
    assert "first overtaken after trial 2" in finding.measured


def test_overtaking_with_one_seed_is_undecided():
    """Method b overtakes a on average (6.5 to 10 after trial 3), but not with its second seed."""
    b_overtakes_a = othpo.overtaken(leaders=("a",), followers=("b",))
    first_seed_of_b = np.broadcast_to([60.0, 10.0, 1.0], (N_TASKS, N_TRIALS))
    second_seed_of_b = np.broadcast_to([60.0, 30.0, 12.0], (N_TASKS, N_TRIALS))
    scores_of_b = np.stack([first_seed_of_b, second_seed_of_b])

    (finding,) = check_on_scores(b_overtakes_a, a=[10, 10, 10], b=scores_of_b)

    assert finding.outcome is Outcome.UNDECIDED


def test_leader_to_the_end_is_not_overtaken():
    """Method b is behind a after every trial."""
    b_overtakes_a = othpo.overtaken(leaders=("a",), followers=("b",))

    (finding,) = check_on_scores(b_overtakes_a, a=[10, 10, 10], b=[60, 60, 60])

    assert finding.outcome is Outcome.FAILS
    assert "never" in finding.measured


# -- times -----------------------------------------------------------------------------------------


@dataclass
class InventedTimes:
    """Stands for evidence: the milliseconds of each seed of a method, by its name."""

    times: Mapping[str, Sequence[float]]

    def milliseconds(self, benchmark: str, method: str) -> float:
        return float(np.mean(self.times[method]))

    def milliseconds_of_seeds(self, benchmark: str, method: str) -> np.ndarray:
        return np.array(self.times[method])


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
    evidence = InventedTimes({"a": [10.0, 10.0, 10.0], "b": milliseconds_of_b})
    a_twice_as_cheap = cheaper("a", ("b",), factor=2)

    (finding,) = a_twice_as_cheap(evidence, [MethodComparison("x", ("a", "b"))])

    assert finding.outcome is outcome


# -- tables and landscapes -------------------------------------------------------------------------


def test_positive_is_checked_by_column():
    """The row "gain" of a table is positive in column x and negative in column y.

    Another row, "cost", is not checked.
    """
    published = Estimate(5, lower=1, upper=9)
    entries = [
        Entry("gain", "x", published, Estimate(2, lower=1, upper=3)),
        Entry("gain", "y", published, Estimate(-2, lower=-3, upper=-1)),
        Entry("cost", "z", published, published),
    ]

    def make_table(evidence: Evidence, needs: Sequence[MethodComparison]) -> list[Entry]:
        return entries

    gain_is_positive = othpo.positive(make_table, "gain")

    finding_on_x, finding_on_y = gain_is_positive(InventedEvidence(), [])

    assert finding_on_x == Finding("x", "2.0 % (1.0 to 3.0)", Outcome.HOLDS)
    assert (finding_on_y.subject, finding_on_y.outcome) == ("y", Outcome.FAILS)


@pytest.mark.parametrize(
    ("measured", "is_inside"), [(Estimate(2, -1, 5), True), (Estimate(-2, -4, 0), False)]
)
def test_entry_is_inside_published_interval(measured, is_inside):
    """The measured value counts, 2 or -2; its own interval does not."""
    published = Estimate(5, lower=1, upper=9)

    assert Entry("row", "x", published, measured).is_inside is is_inside


@pytest.mark.parametrize(("lowest_correlation", "holds"), [(0.5, True), (1.0, False)])
def test_grows_needs_rank_correlation(lowest_correlation, holds):
    """A hyperparameter grows if it is correlated with the task, as strongly as the claim asks.

    The rank correlation of depth and task, in the ten best configurations of each task of
    xgboost-mnist, is above 0.5, but not 1.
    """
    depth_grows = othpo.grows("xgboost-mnist", "max_depth", count=10, at_least=lowest_correlation)

    # It is found from the benchmark itself, without any runs.
    (finding,) = depth_grows(InventedEvidence(), [])

    assert finding.outcome is Outcome.from_truth(holds)
