"""Every check says yes to results on which the claim is true, and no to others."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from hpobench_ordered.analysis.differences import Estimate
from hpobench_ordered.reproduction.checks import ahead
from hpobench_ordered.reproduction.paper import Check, Entry, Finding, MethodComparison
from hpobench_ordered.reproduction.papers.othpo import checks as othpo

METHODS = ("random-search", "ideal", "a", "b", "c")
BENCHMARK = "x"
Ask = Callable[..., list[Finding]]


@pytest.fixture
def ask(constructed):
    """Check a claim on scores: by method one a trial, or one a task and trial.

    Random search ends at 100 and "ideal" at 0, so losses are scores; they must not grow.
    """

    def call(check: Check, **scores: Sequence[float] | np.ndarray) -> list[Finding]:
        given = {"random-search": [300, 200, 100], "ideal": [300, 200, 0], "c": [300, 200, 90]}
        losses = {}
        for method, values in (given | scores).items():
            by_task = np.broadcast_to(np.array(values, float), (5, 3))
            losses[BENCHMARK, method] = np.stack([by_task, by_task])
        return list(check(constructed(losses), [MethodComparison(BENCHMARK, METHODS)]))

    return call


def test_ahead(ask):
    check = ahead(("a", "b"), ("c",), trial=2)
    (yes,) = ask(check, a=[50, 40, 30], b=[60, 45, 30], c=[90, 46, 20])
    assert yes.holds
    assert yes.measured == "b 45.0 < c 46.0 (-1.0 ± 0.0, better on 4 of 4 tasks)"
    (no,) = ask(check, a=[50, 40, 30], b=[60, 45, 30], c=[90, 45, 20])
    assert not no.holds and "b 45.0 ≥ c 45.0" in no.measured
    first_bad = np.array([[999, 999, 99]] + 4 * [[10, 10, 10]])  # a task without history
    assert ask(ahead(("a",), ("b",), trial=1), a=first_bad, b=[20, 20, 20])[0].holds


@pytest.mark.parametrize(("worse_tasks", "holds"), [(0, True), (1, True), (2, False)])
def test_ahead_on_tasks(ask, worse_tasks, holds):
    a = np.full((5, 3), 10.0)
    a[5 - worse_tasks :] = 99
    (found,) = ask(othpo.ahead_on_tasks("a", "b", trial=1, share=0.75), a=a, b=[50, 50, 50])
    assert found.holds is holds
    assert f"on {4 - worse_tasks} of 4 tasks" in found.measured


def test_stays_ahead(ask):
    check = othpo.stays_ahead("a", "b", since=2)
    assert ask(check, a=[90, 40, 30], b=[50, 50, 50])[0].holds
    (no,) = ask(check, a=[40, 40, 40], b=[50, 50, 30])
    assert not no.holds and "least ahead after trial 3 (+10.0" in no.measured


def test_best(ask):
    check = othpo.best({BENCHMARK: "a"}, among=("a", "b"), trial=3)
    (yes,) = ask(check, a=[90, 90, 40], b=[90, 90, 41])
    assert yes.holds and "a is number 2 of all 5" in yes.measured
    assert not ask(check, a=[90, 90, 40], b=[90, 90, 39])[0].holds


def test_similar(ask):
    check = othpo.similar("a", "b", trial=1, margin=5, share=0.75)
    assert ask(check, a=[50, 50, 50], b=[54, 90, 90])[0].holds
    assert not ask(check, a=[50, 50, 50], b=[56, 50, 50])[0].holds


def test_early_and_late(ask):
    crossing = np.array([[50], [10], [10], [90], [90]]) * np.ones(3)
    check = othpo.early_and_late("a", "b", trial=1)
    assert ask(check, a=crossing, b=[50, 50, 50])[0].holds
    assert not ask(check, a=[50, 50, 50], b=crossing)[0].holds


def test_between(ask):
    check = othpo.between("b", "a", "c", trials=(1, 2))
    found = ask(check, a=[10, 10, 10], b=[40, 40, 20], c=[50, 30, 30])
    assert [item.holds for item in found] == [True, False]
    assert [item.subject for item in found] == ["x, trial 1", "x, trial 2"]


def test_lead_shrinks(ask):
    check = othpo.lead_shrinks(("a",), ("b", "c"), trials=(1, 2, 3))
    (yes,) = ask(check, a=[10, 10, 10], b=[60, 30, 5])
    assert yes.holds and "lead +50.0 after 1, +20.0 after 2, -5.0 after 3" in yes.measured
    assert not ask(check, a=[60, 10, 10], b=[90, 50, 50])[0].holds


def test_overtaken(ask):
    check = othpo.overtaken(("a",), ("b",))
    (yes,) = ask(check, a=[10, 10, 10], b=[60, 10, 5])
    assert yes.holds and "first overtaken after trial 2" in yes.measured
    (no,) = ask(check, a=[10, 10, 10], b=[60, 60, 60])
    assert not no.holds and "never" in no.measured


def test_positive():
    known = Estimate(5, 1, 9)
    entries = [
        Entry("row", "x", known, Estimate(2, -1, 5)),
        Entry("row", "y", known, Estimate(-2, -4, 0)),
        Entry("other", "x", known, known),
    ]
    found = othpo.positive(lambda evidence, needs: entries, "row")(None, [])  # type: ignore[arg-type]
    assert [(item.subject, item.holds) for item in found] == [("x", True), ("y", False)]
    assert found[0].measured == "2.0 % (-1.0 to 5.0)"
    assert [entry.is_inside for entry in entries] == [True, False, True]


def test_grows(constructed):
    deeper = othpo.grows("xgboost-mnist", "max_depth", count=10, at_least=0.5)
    assert deeper(constructed({}), [])[0].holds
    sure = othpo.grows("xgboost-mnist", "max_depth", count=10, at_least=1.0)
    assert not sure(constructed({}), [])[0].holds
