"""zero-shot: ranks, the greedy portfolio, measured and predicted losses, degenerate histories."""

import math
from functools import partial

import by_hand
import numpy as np
import pytest
from by_hand import UNIT_SQUARE
from histories import minimised
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal
from scipy.stats import rankdata

import hpobench_ordered as hbo
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods.zero_shot import ZeroShot, choose_portfolio, rank_rows

SPACE_OF_SIX = hbo.SearchSpace([hbo.Parameter.number("k", 0, 5, integer=True)])
"""Six configurations, which are written as numbers k."""

make_method = partial(by_hand.make_method, ZeroShot)


def make_task(n: int, *, seed: int = 0, optimum: float = 0.2) -> hbo.Evaluations:
    """Random evaluations of a bowl with both coordinates of its optimum at the same value."""
    values = UNIT_SQUARE.sample_unit(np.random.default_rng(seed), n)
    losses = ((values - optimum) ** 2).sum(axis=1)
    return minimised(f"task {seed}", {}, values, losses, UNIT_SQUARE)


def make_task_of_six(
    *losses: float, configurations: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
) -> hbo.Evaluations:
    """A task with these losses of configurations k, by default of all six in order."""
    values = np.array(configurations, dtype=float)[:, None]
    return minimised("", {}, values, np.array(losses), SPACE_OF_SIX)


def suggest_of_six(history: list[hbo.Evaluations], count: int, *, seed: int = 0) -> list[int]:
    """The first suggestions in the space of six configurations, as numbers k."""
    method = make_method(history, seed=seed, space=SPACE_OF_SIX, budget=count)
    return [int(method.ask()["k"]) for _ in range(count)]


def suggest(method: ZeroShot, count: int = 25) -> FloatArray:
    """Suggestions on the unit square, (count, 2), without telling the method any result."""
    return UNIT_SQUARE.values([method.ask() for _ in range(count)])


def compute_distances(values: FloatArray, optimum: float = 0.2) -> FloatArray:
    """Compute distances from the optimum, both of whose coordinates have the same value."""
    return np.hypot(*(values - optimum).T)


# -- portfolio -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("R", "expected"),
    [
        # Columns 1 and 2 have the lowest mean, 3. After 1 (ranks 2 and 4) come 5 (2 and 1) and 0
        # (1 and 1). Then nothing helps. Of the others, 2 has the lowest mean, 3 lowers the rank on
        # the first task, and 4 is the last.
        pytest.param([[1, 2, 3, 4, 5, 6], [6, 4, 3, 2, 5, 1]], [1, 5, 0, 2, 3, 4], id="exhausted"),
        # Beside 1, with which it starts anew, 3 lowers a rank and 2, of the lower mean, does not.
        pytest.param([[1, 3, 4, 7], [1, 3, 4, 2]], [0, 1, 3, 2], id="rank before mean"),
    ],
)
def test_portfolio_starts_anew_when_nothing_helps(R, expected):
    # R: rank of each configuration (columns) on each task (rows).
    assert choose_portfolio(np.array(R, dtype=float), count=9) == expected


def choose_portfolio_by_hand(R: FloatArray, count: int) -> list[int]:
    """Choose configurations one by one, by the rules of the package.

    Each lowers the mean over tasks of the best rank in the portfolio as far as possible. When
    nothing lowers it any more, a new portfolio starts.

    Args:
        R: Rank of each configuration (columns) on each task (rows).
        count: Number of configurations to choose, if there are so many.
    """

    def compute_mean_of_best(configurations: list[int]) -> float:
        """Mean over the tasks of the best rank that any of the configurations has."""
        return float(R[:, configurations].min(axis=1).mean())

    chosen: list[int] = []
    portfolio: list[int] = []
    while len(chosen) < min(count, R.shape[1]):
        remaining = [j for j in range(R.shape[1]) if j not in chosen]
        means = {j: compute_mean_of_best([*portfolio, j]) for j in remaining}
        if portfolio and min(means.values()) >= compute_mean_of_best(portfolio):
            portfolio = []
            means = {j: compute_mean_of_best([j]) for j in remaining}
        # Of equally good ones, that of the lower mean rank by itself is next, and then the first.
        ranking = [(means[j], compute_mean_of_best([j]), j) for j in remaining]
        *_, next_configuration = min(ranking)
        portfolio.append(next_configuration)
        chosen.append(next_configuration)
    return chosen


@given(arrays(float, st.tuples(st.integers(1, 4), st.integers(1, 8)), elements=st.integers(0, 5)))
def test_portfolio_equals_that_by_hand(losses):
    """The fast choice equals the slow one by hand on up to four tasks of up to eight losses."""
    ranks = rank_rows(losses)
    assert choose_portfolio(ranks, count=5) == choose_portfolio_by_hand(ranks, 5)


@given(arrays(float, st.tuples(st.integers(1, 3), st.integers(1, 9)), elements=st.integers(0, 4)))
def test_ranks_are_scipys(losses):
    """Losses of a task, a row, get ranks from 1 on, and equal losses the mean of their ranks."""
    assert_array_equal(rank_rows(losses), rankdata(losses, axis=1))


# -- one previous task -----------------------------------------------------------------------------


def test_configurations_of_single_task_come_first():
    """The 60 configurations of the only earlier task are suggested, the best first."""
    task = make_task(60, seed=3)
    suggestions = suggest(make_method([task], budget=80), 60)
    assert_array_equal(suggestions, task.values[np.argsort(task.losses)])


def test_predicted_good_ones_follow_single_task():
    """After the 60 evaluated configurations come 20 others that are predicted to be good.

    On a bowl these are near the optimum: half as far as random ones are, or nearer.
    """
    task = make_task(60, seed=3)

    suggestions = suggest(make_method([task], budget=80), 80)

    distances_of_new = compute_distances(suggestions[60:])
    distances_of_random = compute_distances(task.values)
    assert np.median(distances_of_new) < 0.5 * np.median(distances_of_random)


# -- several previous tasks ------------------------------------------------------------------------

LOSSES_OF_TASKS = [(3, 1, 4, 5, 2, 6), (3, 5, 1, 4, 2, 6), (2, 4, 5, 1, 3, 6)]
"""Losses of all six configurations on three tasks."""


def test_complementary_configurations_come_first():
    """Configuration 4 has the lowest losses on average, 2, 2 and 3 on three tasks.

    Then 3, with the losses 5, 4 and 1, helps most, as it is best on the third task, where 4 is
    worst.
    """
    history = [make_task_of_six(*losses) for losses in LOSSES_OF_TASKS]
    assert suggest_of_six(history, 2) == [4, 3]


def test_only_ranks_within_task_matter():
    """Other losses with the same ranks change nothing: an increasing function for each task."""
    history = [make_task_of_six(*losses) for losses in LOSSES_OF_TASKS]
    stretched = []
    for factor, losses in zip((1.0, 4.0, 7.0), LOSSES_OF_TASKS, strict=True):
        increasing_function = np.exp(factor * np.array(losses))
        stretched.append(make_task_of_six(*increasing_function))

    assert suggest_of_six(stretched, 6) == suggest_of_six(history, 6)


def test_repeated_measurements_are_averaged():
    """Configuration 0 was evaluated twice, and has a mean loss between those of 4 and of 5."""
    configurations = (0, 0, 1, 2, 3, 4, 5)
    losses = (0, 9, 1, 2, 3, 4, 5)
    task = make_task_of_six(*losses, configurations=configurations)
    assert suggest_of_six([task, task], 6) == [1, 2, 3, 4, 0, 5]


def test_missing_measurements_are_predicted():
    """Configuration 3 is the best on the first task, and was not evaluated on the second.

    There it is predicted to be like its neighbours 2 and 4, which are the best.
    """
    complete_task = make_task_of_six(6, 5, 4, 1, 3, 2)
    task_without_3 = make_task_of_six(6, 5, 1, 1, 3, configurations=(0, 1, 2, 4, 5))
    assert suggest_of_six([complete_task, task_without_3], 1) == [3]


def test_portfolio_covers_two_kinds_of_tasks():
    """Optima of six tasks are at 0.2 and 0.8 in turn; the first four suggestions serve both."""
    optima = (0.2, 0.8, 0.2, 0.8, 0.2, 0.8)
    history = [make_task(60, seed=seed, optimum=optimum) for seed, optimum in enumerate(optima)]
    suggestions = suggest(make_method(history), 4)
    # One of them is near each optimum.
    assert compute_distances(suggestions, optimum=0.2).min() < 0.25
    assert compute_distances(suggestions, optimum=0.8).min() < 0.25


def test_results_of_this_task_do_not_matter():
    """The method decides by earlier tasks alone: told 25 failures or nothing, it suggests the same.

    Suggestions are configurations of the unit square; a failure is the loss NaN.
    """
    history = [make_task(25, seed=seed) for seed in range(4)]
    told_method = make_method(history)
    untold_method = make_method(history)

    configs = by_hand.optimise(told_method, lambda config: math.nan, trials=25)
    suggestions_after_failures = UNIT_SQUARE.values(configs)

    assert_array_equal(suggestions_after_failures, suggest(untold_method, 25))


# -- degenerate histories --------------------------------------------------------------------------

FAILED = minimised("", {}, np.ones((1, 2)), np.array([math.nan]), UNIT_SQUARE)


@pytest.mark.parametrize(
    "history", [pytest.param([], id="no earlier task"), pytest.param([FAILED], id="all failed")]
)
def test_suggestions_are_random_without_finite_loss(history):
    """Without any finite loss in the history, the method suggests 25 different configurations.

    Random suggestions are what the method does then, and not counted as fallbacks after errors.
    """
    method = make_method(history)

    suggestions = suggest(method, 25)

    assert len(np.unique(suggestions, axis=0)) == 25
    assert method.fallbacks == 0
