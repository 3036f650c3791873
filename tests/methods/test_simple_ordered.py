"""Appendix D, one sentence a test."""

from itertools import zip_longest

import numpy as np
import pytest
from by_hand import make, optimise
from histories import minimised
from hypothesis import given
from hypothesis import strategies as st

import hpobench_ordered as hbo
from hpobench_ordered.methods.simple_ordered import (
    SimpleOrdered,
    SimpleOrderedShuffled,
    SimplePrevious,
    SimplePreviousNoBO,
    order_configurations,
)

SPACE = hbo.SearchSpace([hbo.Parameter.number("k", 0, 99, integer=True)])
CONDITIONAL = hbo.SearchSpace(
    [hbo.Parameter.number("k", 0, 9, integer=True), hbo.Parameter.number("x", 0, 1)],
    conditions={"x": hbo.Compare(0, hbo.Comparison.GREATER, (5.0,))},
)


def task(losses_by_configuration: list[tuple[int, float]]) -> hbo.Evaluations:
    """A finished task; configurations are single numbers, in the order of evaluation."""
    configurations, losses = zip(*losses_by_configuration, strict=True)
    values = np.array(configurations, dtype=float)[:, None]
    return minimised("", {}, values, np.array(losses, dtype=float), SPACE)


def chosen(history: list[hbo.Evaluations], count: int = 5) -> list[int]:
    found = order_configurations(history, count=count)
    return found[:, 0].astype(int).tolist() if len(found) else []


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([], []),
        # The best of each task, the most recent first.
        ([[(10 * t, 1), (10 * t + 1, 0), (10 * t + 2, 5)] for t in range(8)], [71, 61, 51, 41, 31]),
        # Fewer tasks than needed give their second best, and so on.
        ([[(1, 0), (2, 1), (3, 2)], [(11, 2), (12, 0), (13, 1)]], [12, 1, 13, 2, 11]),
        # A repeated optimum is skipped for an earlier task.
        ([[(t, 0), (90 + t, 1)] for t in (1, 2, 3, 3, 5, 6)], [6, 5, 3, 2, 1]),
        # Joint optima go to the back of the list: 12 comes before any second best.
        ([[(1, 0), (2, 1)], [(11, 0), (12, 0), (13, 1)]], [11, 1, 12, 13, 2]),
        # Several joint optima take turns.
        ([[(21, 0), (22, 0), (23, 0)], [(11, 0), (12, 0), (13, 0)]], [11, 21, 12, 22, 13]),
        # Task 1's first optimum, 11, was chosen from task 2 already; 5 waits at the back.
        ([[(7, 0)], [(11, 0), (5, 0)], [(11, 0)]], [11, 7, 5]),
        # A configuration that was evaluated twice counts once; one that failed never does.
        ([[(1, 0), (1, 0), (2, 3)]], [1, 2]),
        ([[(1, np.nan), (3, 0.5), (4, np.nan)], [(7, np.nan)]], [3]),
    ],
)
def test_the_order_of_configurations(tasks, expected):
    assert chosen([task(evaluations) for evaluations in tasks]) == expected


def in_full(history: list[hbo.Evaluations], count: int) -> list[int]:
    """The same rules written down without a thought of speed, on whole tasks."""
    queues = []
    for finished in reversed(history):
        ranks: dict[float, list[int]] = {}
        for loss, row in zip(finished.losses.tolist(), finished.values, strict=True):
            ranks.setdefault(loss, []).append(int(row[0]))
        queues.append([list(dict.fromkeys(ranks[loss])) for loss in sorted(ranks)])
    chosen: list[int] = []
    for tied in zip_longest(*queues, fillvalue=[]):
        for turn in zip_longest(*tied):
            chosen += [configuration for configuration in turn if configuration is not None]
    return list(dict.fromkeys(chosen))[:count]


TASK = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), min_size=1, max_size=25)


@given(st.lists(TASK, min_size=1, max_size=4), st.integers(1, 12))
def test_only_the_best_of_each_task_are_looked_at_and_that_changes_nothing(tasks, count):
    history = [task(evaluations) for evaluations in tasks]
    assert chosen(history, count) == in_full(history, count)


def test_inactive_hyperparameters_compare_equal():
    values = np.array([[1.0, np.nan], [1.0, np.nan], [2.0, np.nan]])
    history = [minimised("", {}, values, np.array([0.0, 0.0, 1.0]), CONDITIONAL)]
    assert len(order_configurations(history, count=5)) == 2


TASKS = [task([(10 * t + i, float(i)) for i in range(10)]) for t in range(8)]


def suggestions(kind: type[hbo.Method], trials: int, *, seed: int = 0) -> list[int]:
    method = make(kind, TASKS, space=SPACE, seed=seed)
    return [int(c["k"]) for c in optimise(method, lambda c: abs(c["k"] - 33.0), trials)]


def test_what_the_methods_start_with():
    assert suggestions(SimpleOrdered, 5) == [70, 60, 50, 40, 30]
    assert suggestions(SimplePrevious, 5) == [70, 71, 72, 73, 74]
    asked = suggestions(SimplePreviousNoBO, 14)
    assert asked[:10] == list(range(70, 80))  # all of the last task
    assert len(set(asked)) == 14


def test_shuffled_takes_the_same_in_an_order_that_depends_on_the_seed_alone():
    optima = {10 * t for t in range(8)}
    starts = [tuple(suggestions(SimpleOrderedShuffled, 5, seed=seed)) for seed in range(200)]
    assert all(set(start) < optima and len(set(start)) == 5 for start in starts)
    firsts = [start[0] for start in starts]
    assert all(5 < firsts.count(first) < 50 for first in optima)  # 25 on average
    assert starts[3] == tuple(suggestions(SimpleOrderedShuffled, 5, seed=3))


@pytest.mark.parametrize("kind", [SimpleOrdered, SimpleOrderedShuffled, SimplePrevious])
def test_bayesian_optimisation_follows(kind):
    assert min(abs(k - 33) for k in suggestions(kind, 20)) <= 1
