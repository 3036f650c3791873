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

GRID = hbo.SearchSpace([hbo.Parameter.number("k", 0, 5, integer=True)])

make_method = partial(by_hand.make_method, ZeroShot)


def make_task(n: int, *, seed: int = 0, optimum: float = 0.2) -> hbo.Evaluations:
    """Random evaluations of a bowl with both coordinates of its optimum at the same value."""
    values = UNIT_SQUARE.sample_unit(np.random.default_rng(seed), n)
    losses = ((values - optimum) ** 2).sum(axis=1)
    return minimised(f"{seed}", {}, values, losses, UNIT_SQUARE)


def make_grid_task(*losses: float, values: tuple[int, ...] = (0, 1, 2, 3, 4, 5)) -> hbo.Evaluations:
    """Losses of configurations of the grid, 0 to 5 by default."""
    coded = np.array(values, dtype=float)[:, None]
    return minimised("", {}, coded, np.array(losses), GRID)


def suggest_on_grid(history: list[hbo.Evaluations], count: int, *, seed: int = 0) -> list[int]:
    """The first suggestions on the grid, whose configurations are 0 to 5."""
    method = make_method(history, seed=seed, space=GRID, budget=count)
    return [int(method.ask()["k"]) for _ in range(count)]


def suggest(method: ZeroShot, count: int = 25) -> FloatArray:
    """Suggestions on the unit square, (count, 2), without telling the method any result."""
    return UNIT_SQUARE.values([method.ask() for _ in range(count)])


def distances(values: FloatArray, optimum: float = 0.2) -> FloatArray:
    """Distances from an optimum with both coordinates at the same value."""
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
    """The same rules: next comes what lowers the mean over tasks of the best rank most."""
    chosen: list[int] = []
    first_of_current = 0
    while len(chosen) < min(count, R.shape[1]):
        remaining = [j for j in range(R.shape[1]) if j not in chosen]
        current = chosen[first_of_current:]
        means = {j: R[:, [*current, j]].min(axis=1).mean() for j in remaining}
        # Nothing helps any more: start anew.
        if current and min(means.values()) >= R[:, current].min(axis=1).mean():
            first_of_current = len(chosen)
            means = {j: R[:, j].mean() for j in remaining}
        # Of equal ones, that of the lower mean rank by itself, and then the first.
        chosen.append(min(remaining, key=lambda j: (means[j], R[:, j].mean(), j)))
    return chosen


@given(arrays(float, st.tuples(st.integers(1, 4), st.integers(1, 8)), elements=st.integers(0, 5)))
def test_portfolio_equals_that_by_hand(L):
    R = rank_rows(L)
    assert choose_portfolio(R, count=5) == choose_portfolio_by_hand(R, 5)


@given(arrays(float, st.tuples(st.integers(1, 3), st.integers(1, 9)), elements=st.integers(0, 4)))
def test_ranks_are_scipys(L):
    assert_array_equal(rank_rows(L), rankdata(L, axis=1))


# -- one previous task -----------------------------------------------------------------------------


def test_single_task_is_repeated_by_loss():
    """The 60 configurations of the only earlier task are suggested, the best first."""
    task = make_task(60, seed=3)
    suggestions = suggest(make_method([task], budget=80), 60)
    assert_array_equal(suggestions, task.values[np.argsort(task.losses)])


def test_order_of_single_task_needs_no_seed():
    """Methods with two seeds suggest the 60 evaluated configurations in the same order."""
    history = [make_task(60, seed=3)]
    with_one_seed = suggest(make_method(history, seed=0, budget=60), 60)
    with_other_seed = suggest(make_method(history, seed=1, budget=60), 60)
    assert_array_equal(with_one_seed, with_other_seed)


def test_predicted_good_ones_follow_single_task():
    """After the 60 evaluated configurations come 20 others that are predicted to be good.

    On a bowl these are near the optimum: half as far as random ones are, or nearer.
    """
    task = make_task(60, seed=3)

    suggestions = suggest(make_method([task], budget=80), 80)

    distances_of_new = distances(suggestions[60:])
    distances_of_random = distances(task.values)
    assert np.median(distances_of_new) < 0.5 * np.median(distances_of_random)


# -- several previous tasks ------------------------------------------------------------------------

LOSSES = [(3, 1, 4, 5, 2, 6), (3, 5, 1, 4, 2, 6), (2, 4, 5, 1, 3, 6)]
"""Losses of all six configurations of the grid on three tasks."""


def test_complementary_configurations_come_first():
    """Configuration 4 has the losses 2, 2 and 3 on three tasks, the lowest on average; then 3,
    with 5, 4 and 1, helps most, as it is the best where 4 is worst.
    """
    history = [make_grid_task(*losses) for losses in LOSSES]
    assert suggest_on_grid(history, 2) == [4, 3]


def test_measured_losses_need_no_seed():
    """All six configurations of the grid are measured, so that nothing is drawn at random."""
    history = [make_grid_task(*losses) for losses in LOSSES]
    assert suggest_on_grid(history, 2, seed=1) == suggest_on_grid(history, 2, seed=0)


def test_only_ranks_within_task_matter():
    """Other losses with the same ranks, by an increasing function for each task, change nothing."""
    history = [make_grid_task(*losses) for losses in LOSSES]
    scaled = []
    for task, losses in enumerate(LOSSES):
        factor = 3.0 * task + 1.0
        scaled_losses = np.exp(factor * np.array(losses))
        scaled.append(make_grid_task(*scaled_losses))

    assert suggest_on_grid(scaled, 6) == suggest_on_grid(history, 6)


def test_repeated_measurements_are_averaged():
    """Configuration 0 was evaluated twice, with losses 0 and 9: its mean, 4.5, is between the
    losses of configurations 4 and 5, which are 4 and 5.
    """
    noisy = make_grid_task(0, 9, 1, 2, 3, 4, 5, values=(0, 0, 1, 2, 3, 4, 5))
    assert suggest_on_grid([noisy, noisy], 6) == [1, 2, 3, 4, 0, 5]


def test_missing_measurements_are_predicted():
    """3, best on the first task, is predicted to be like its neighbours 2 and 4 on the second."""
    complete = make_grid_task(6, 5, 4, 1, 3, 2)
    without_3 = make_grid_task(6, 5, 1, 1, 3, values=(0, 1, 2, 4, 5))  # neighbours are the best
    assert suggest_on_grid([complete, without_3], 1) == [3]


def test_portfolio_covers_two_kinds_of_tasks():
    """Optima of six tasks are at 0.2 and 0.8 in turn; four suggestions come near to both."""
    history = []
    for seed in range(6):
        optimum = 0.2 if seed % 2 == 0 else 0.8
        history.append(make_task(60, seed=seed, optimum=optimum))
    first = suggest(make_method(history), 4)
    assert distances(first, 0.2).min() < 0.25
    assert distances(first, 0.8).min() < 0.25


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


def test_suggestions_are_distinct():
    """None of 25 suggestions is repeated, after four tasks with 25 evaluations each."""
    history = [make_task(25, seed=seed) for seed in range(4)]

    suggestions = suggest(make_method(history), 25)

    assert len(np.unique(suggestions, axis=0)) == 25


# -- degenerate histories --------------------------------------------------------------------------

FAILED = minimised("", {}, np.ones((1, 2)), np.array([math.nan]), UNIT_SQUARE)


@pytest.mark.parametrize("history", [[], [FAILED]])
def test_suggestions_are_random_without_finite_loss(history):
    """There is no earlier task, or all its evaluations failed.

    Random suggestions are what the method does then, and not counted as fallbacks after errors.
    """
    method = make_method(history)

    suggestions = suggest(method, 25)

    assert len(np.unique(suggestions, axis=0)) == 25
    assert method.fallbacks == 0


def test_limited_subset_of_history_suffices(monkeypatch):
    """Of 400 evaluations of four tasks, 100 are used; suggestions are near the optimum yet.

    The median distance from it of random points is 0.56.
    """
    monkeypatch.setattr("hpobench_ordered.methods.zero_shot.MAX_EVALUATIONS", 100)
    history = [make_task(100, seed=seed) for seed in range(4)]

    suggestions = suggest(make_method(history))

    assert np.median(distances(suggestions)) < 0.2
