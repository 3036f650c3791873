"""ZeroShot: ranks, the greedy portfolio, measured and predicted losses, degenerate histories."""

import math
from functools import partial

import by_hand
import numpy as np
import pytest
from by_hand import SQUARE
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


def finished(
    n: int, *, seed: int = 0, optimum: float = 0.2, space: hbo.SearchSpace = SQUARE
) -> hbo.Evaluations:
    unit = space.sample_unit(np.random.default_rng(seed), n)
    return minimised(f"{seed}", {}, space.decode(unit), ((unit - optimum) ** 2).sum(axis=1), space)


def on_grid(*losses: float, values: tuple[int, ...] = (0, 1, 2, 3, 4, 5)) -> hbo.Evaluations:
    return minimised("", {}, np.array(values, dtype=float)[:, None], np.array(losses), GRID)


make = partial(by_hand.make, ZeroShot)


def suggested(history: list[hbo.Evaluations], count: int, *, seed: int = 0) -> list[int]:
    """First suggestions on the grid."""
    method = make(history, seed=seed, space=GRID, budget=count)
    return [int(method.ask()["k"]) for _ in range(count)]


def points(method: ZeroShot, count: int = 25) -> FloatArray:
    return np.array([[c["x"], c["y"]] for c in (method.ask() for _ in range(count))])


# -- portfolio -------------------------------------------------------------------------------------


def test_when_nothing_helps_another_portfolio_is_begun():
    R = np.array([[1.0, 2, 3, 4, 5, 6], [6, 4, 3, 2, 5, 1]])
    # 2 and 1 have the lowest mean, 3; after 1 (2, 4) come 5 (2, 1) and 0 (1, 1). Of what is left,
    # 2 has the lowest mean, 3 lowers task 1's rank; 4 is the last.
    assert choose_portfolio(R, count=9) == [1, 5, 0, 2, 3, 4]
    # Beside 1, begun anew, 3 lowers a rank and 2, of the lower mean, does not.
    assert choose_portfolio(np.array([[1.0, 3, 4, 7], [1, 3, 4, 2]]), count=4) == [0, 1, 3, 2]


@given(arrays(float, st.tuples(st.integers(1, 4), st.integers(1, 8)), elements=st.integers(0, 5)))
def test_every_member_is_the_best_choice(L):
    R = rank_rows(L)
    chosen = choose_portfolio(R, count=5)
    assert len(set(chosen)) == len(chosen) == min(5, R.shape[1])
    begun = 0
    for k, member in enumerate(chosen):
        left = [j for j in range(R.shape[1]) if j not in chosen[:k]]
        reached = {j: R[:, [*chosen[begun:k], j]].min(axis=1).mean() for j in left}
        if k > begun and min(reached.values()) >= R[:, chosen[begun:k]].min(axis=1).mean():
            begun = k
            reached = {j: R[:, j].mean() for j in left}
        assert member == min(left, key=lambda j: (reached[j], R[:, j].mean(), j))


@given(arrays(float, st.tuples(st.integers(1, 3), st.integers(1, 9)), elements=st.integers(0, 4)))
def test_ranks_as_scipy(L):
    assert_array_equal(rank_rows(L), rankdata(L, axis=1))


# -- suggestions -----------------------------------------------------------------------------------


def test_one_previous_task_is_repeated_in_the_order_of_its_losses_and_its_model_follows():
    (task,) = history = [finished(60, seed=3)]
    found = points(make(history, budget=80), 80)
    assert_array_equal(found[:60], task.values[np.argsort(task.losses)])
    assert_array_equal(found[:60], points(make(history, seed=1, budget=60), 60))
    far = np.median(np.hypot(*(task.values - 0.2).T))
    assert np.median(np.hypot(*(found[60:] - 0.2).T)) < 0.5 * far


MEASURED = [(3, 1, 4, 5, 2, 6), (3, 5, 1, 4, 2, 6), (2, 4, 5, 1, 3, 6)]


def test_where_every_task_measured_everything_only_ranks_within_a_task_count():
    plain = [on_grid(*row) for row in MEASURED]
    assert suggested(plain, 2) == suggested(plain, 2, seed=1) == [4, 3]
    scaled = [on_grid(*np.exp((3.0 * i + 1.0) * np.array(row))) for i, row in enumerate(MEASURED)]
    assert suggested(plain, 6) == suggested(scaled, 6)


def test_repeated_measurements_count_by_their_mean_and_missing_ones_are_predicted():
    noisy = on_grid(0, 9, 1, 2, 3, 4, 5, values=(0, 0, 1, 2, 3, 4, 5))  # 0 has mean 4.5
    assert suggested([noisy, noisy], 6) == [1, 2, 3, 4, 0, 5]
    # Nobody evaluated 3 on the second task, where its neighbours are the best.
    history = [on_grid(6, 5, 4, 1, 3, 2), on_grid(6, 5, 1, 1, 3, values=(0, 1, 2, 4, 5))]
    assert suggested(history, 1) == [3]


def test_the_portfolio_holds_what_is_good_on_each_of_two_kinds_of_tasks():
    history = [finished(60, seed=s, optimum=0.2 + 0.6 * (s % 2)) for s in range(6)]
    first = points(make(history), 4)
    for optimum in (0.2, 0.8):
        assert np.hypot(*(first - optimum).T).min() < 0.25


def test_results_of_this_task_do_not_matter():
    history = [finished(25, seed=s) for s in range(4)]
    configs = by_hand.optimise(make(history), lambda config: math.nan)
    assert_array_equal([[c["x"], c["y"]] for c in configs], points(make(history)))
    assert len({tuple(c.items()) for c in configs}) == 25


# -- histories -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "history", [[], [minimised("", {}, np.ones((1, 2)), np.array([math.nan]), SQUARE)]]
)
def test_without_a_finite_loss_suggestions_are_random(history):
    method = make(history)
    assert len(np.unique(points(method), axis=0)) == 25
    assert method.fallbacks == 0


def test_only_so_many_evaluations_are_fitted(monkeypatch):
    monkeypatch.setattr("hpobench_ordered.methods.zero_shot.MAX_EVALUATIONS", 100)
    history = [finished(100, seed=s) for s in range(4)]
    assert np.median(np.hypot(*(points(make(history)) - 0.2).T)) < 0.2
