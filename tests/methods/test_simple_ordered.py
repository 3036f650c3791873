"""simple-ordered: the order of configurations in appendix D, and the methods that use it."""

from itertools import zip_longest

import numpy as np
import pytest
from by_hand import make_method, optimise
from histories import minimised
from hypothesis import given
from hypothesis import strategies as st

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config
from hpobench_ordered.methods.simple_ordered import (
    SimpleOrdered,
    SimpleOrderedShuffled,
    SimplePrevious,
    SimplePreviousNoBO,
    order_configurations,
)
from hpobench_ordered.space import Compare, Comparison

SPACE_OF_K = hbo.SearchSpace([hbo.Parameter.number("k", 0, 99, integer=True)])
"""A space of one integer, k, so that configurations can be written as numbers."""


def make_task(evaluations: list[tuple[int, float]]) -> hbo.Evaluations:
    """A finished task of pairs (k, loss): each configuration is a single number, k."""
    k, losses = np.array(evaluations, dtype=float).T
    return minimised("", {}, k[:, None], losses, SPACE_OF_K)


def order_numbers(history: list[hbo.Evaluations], count: int = 5) -> list[int]:
    """The numbers that `order_configurations` gives for a history, the oldest task first."""
    configurations = order_configurations(history, count=count)
    return [int(row[0]) for row in configurations]


# -- the order -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        pytest.param([], [], id="no task"),
        pytest.param(
            [[(10 * t, 1), (10 * t + 1, 0), (10 * t + 2, 5)] for t in range(8)],
            [71, 61, 51, 41, 31],
            id="best of each task, most recent first",
        ),
        pytest.param(
            [[(1, 0), (2, 1), (3, 2)], [(11, 2), (12, 0), (13, 1)]],
            [12, 1, 13, 2, 11],
            id="then second best of each",
        ),
        pytest.param(
            [[(t, 0), (90 + t, 1)] for t in (1, 2, 3, 3, 5, 6)],
            [6, 5, 3, 2, 1],
            id="repeated optimum is skipped",
        ),
        pytest.param(
            [[(1, 0), (2, 1)], [(11, 0), (12, 0), (13, 1)]],
            [11, 1, 12, 13, 2],
            id="joint optimum before any second best",
        ),
        pytest.param(
            [[(21, 0), (22, 0), (23, 0)], [(11, 0), (12, 0), (13, 0)]],
            [11, 21, 12, 22, 13],
            id="joint optima take turns",
        ),
        pytest.param(
            [[(7, 0)], [(11, 0), (5, 0)], [(11, 0)]],
            [11, 7, 5],
            id="joint optimum waits even if the first is a repeat",
        ),
        pytest.param([[(1, 0), (1, 0), (2, 3)]], [1, 2], id="evaluated twice counts once"),
        pytest.param(
            [[(1, np.nan), (3, 0.5), (4, np.nan)], [(7, np.nan)]], [3], id="failed ones never count"
        ),
    ],
)
def test_order_of_configurations(tasks, expected):
    # `tasks` are lists of pairs (configuration, loss), the most recent task last.
    assert order_numbers([make_task(evaluations) for evaluations in tasks]) == expected


def group_by_loss(task: hbo.Evaluations) -> list[list[int]]:
    """Groups of configurations with equal losses, the best group first, without repetition."""
    configurations_of_loss: dict[float, list[int]] = {}
    for loss, row in zip(task.losses.tolist(), task.values, strict=True):
        configurations_of_loss.setdefault(loss, []).append(int(row[0]))
    groups = []
    for loss in sorted(configurations_of_loss):
        without_repetition = dict.fromkeys(configurations_of_loss[loss])
        groups.append(list(without_repetition))
    return groups


def order_slowly(history: list[hbo.Evaluations], count: int) -> list[int]:
    """Order configurations by the same rules as the package, on whole tasks.

    First come the best ones of all tasks, then the second best ones, and so on. Among these, tasks
    take turns, the latest first. No configuration comes twice.
    """
    groups_of_tasks = [group_by_loss(task) for task in reversed(history)]
    ordered: list[int] = []
    for groups_of_rank in zip_longest(*groups_of_tasks, fillvalue=[]):
        for turn in zip_longest(*groups_of_rank):
            # None stands for a task whose group is exhausted.
            new = [k for k in turn if k is not None and k not in ordered]
            ordered += dict.fromkeys(new)  # two tasks may have the same configuration
    return ordered[:count]


any_evaluations = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), min_size=1, max_size=25)


@given(st.lists(any_evaluations, min_size=1, max_size=4), st.integers(1, 12))
def test_fast_order_equals_slow_one(tasks, count):
    history = [make_task(evaluations) for evaluations in tasks]
    assert order_numbers(history, count) == order_slowly(history, count)


def test_inactive_hyperparameters_compare_equal():
    """Two evaluations of k = 1, with x inactive (NaN), are one configuration; k = 2 is another."""
    # x is active if k is above 5.
    space = hbo.SearchSpace(
        [hbo.Parameter.number("k", 0, 9, integer=True), hbo.Parameter.number("x", 0, 1)],
        conditions={"x": Compare(0, Comparison.GREATER, (5.0,))},
    )
    values = np.array([[1.0, np.nan], [1.0, np.nan], [2.0, np.nan]])
    history = [minimised("", {}, values, np.array([0.0, 0.0, 1.0]), space)]
    assert len(order_configurations(history, count=5)) == 2


# -- the methods -----------------------------------------------------------------------------------

TASKS = [make_task([(10 * t + i, float(i)) for i in range(10)]) for t in range(8)]
"""Eight tasks; configurations 10 t, 10 t + 1, ... of task t, the best first."""
CURRENT_OPTIMUM = 33
"""The best configuration of the current task, which is no earlier task's."""


def suggest(kind: type[hbo.Method], trials: int, *, seed: int = 0) -> list[int]:
    """The numbers k suggested in some trials after the eight tasks."""

    def compute_loss(config: Config) -> float:
        return float(abs(config["k"] - CURRENT_OPTIMUM))

    method = make_method(kind, TASKS, space=SPACE_OF_K, seed=seed)
    configs = optimise(method, compute_loss, trials=trials)
    return [int(config["k"]) for config in configs]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (SimpleOrdered, [70, 60, 50, 40, 30]),
        (SimplePrevious, [70, 71, 72, 73, 74]),
        (SimplePreviousNoBO, [70, 71, 72, 73, 74, 75, 76, 77, 78, 79]),
    ],
)
def test_first_suggestions(kind, expected):
    """Task t has configurations 10 t, 10 t + 1, ..., the best first; the last task is 7."""
    assert suggest(kind, len(expected)) == expected


def test_shuffled_starts_with_optima():
    """It starts with five of eight earlier optima; that of task t is the configuration 10 t."""
    optima = {10 * t for t in range(8)}
    for seed in range(20):
        start = suggest(SimpleOrderedShuffled, 5, seed=seed)
        assert len(set(start)) == 5
        assert set(start) <= optima


def test_shuffled_order_is_uniform():
    """Each of eight optima comes first equally often; that of task t is the configuration 10 t."""
    firsts = []
    for seed in range(200):
        (first,) = suggest(SimpleOrderedShuffled, 1, seed=seed)
        firsts.append(first)
    counts = [firsts.count(10 * t) for t in range(8)]
    # 25 on average, with a standard deviation of 5.
    assert min(counts) > 5
    assert max(counts) < 50
