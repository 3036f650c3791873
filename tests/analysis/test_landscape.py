"""Landscapes: what hyperparameters explain, how the optimum drifts, how losses are coloured."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from hpobench_ordered.analysis.landscape import (
    best_indices,
    colour_ends,
    explained_shares,
    optimum_drift,
    visible_indices,
)


def test_decisive_hyperparameter_explains_all():
    rng = np.random.default_rng(0)
    choice = rng.integers(0, 2, 500)
    place_of_choice = (choice + 0.5) / 2  # the middle of one half of the unit interval
    places = np.stack([place_of_choice, rng.random(500)], axis=1)

    share_of_choice, share_of_random = explained_shares(places, losses=choice.astype(float))

    assert share_of_choice == pytest.approx(1)
    share_by_chance = 0.05  # at most, of 500 losses
    assert share_of_random < share_by_chance


def test_equal_losses_have_nothing_to_explain():
    places_of_two = np.random.default_rng(0).random((5, 2))
    shares = explained_shares(places_of_two, losses=np.ones(5))
    assert shares.tolist() == [0, 0]


def test_inactive_hyperparameters_share_a_bin():
    """The bins are those that are inactive, NaN, and those near 0.05: each of equal losses."""
    places_of_one = np.array([[np.nan], [np.nan], [0.05], [0.06]])
    (share,) = explained_shares(places_of_one, losses=np.array([0.0, 0.0, 1.0, 1.0]))
    assert share == pytest.approx(1)


def test_shares_agree_with_variance_analysis():
    """The share is the variance of the bins' mean ranks in that of all ranks.

    The ranks of four configurations are 1 and 2 in the lower bin, 3 and 4 in the upper one.
    """
    losses = np.arange(4.0)
    places_of_one = np.array([[0.1], [0.2], [0.8], [0.9]])

    (share,) = explained_shares(places_of_one, losses, bins=2)

    mean_ranks_of_bins = np.array([1.5, 1.5, 3.5, 3.5])
    assert share == pytest.approx(mean_ranks_of_bins.var() / rankdata(losses).var())


@given(st.integers(0, 1000))
def test_shares_depend_on_ranks_alone(seed):
    """The exponential function keeps the order of losses."""
    rng = np.random.default_rng(seed)
    places = rng.random((40, 3))
    losses = rng.normal(size=40)

    shares = explained_shares(places, losses)
    shares_of_same_ranks = explained_shares(places, np.exp(3 * losses))

    np.testing.assert_allclose(shares_of_same_ranks, shares)


@given(st.integers(0, 1000))
def test_shares_are_from_zero_to_one(seed):
    """Of three hyperparameters and random losses."""
    rng = np.random.default_rng(seed)
    places = rng.random((40, 3))
    losses = rng.normal(size=40)

    shares = explained_shares(places, losses)

    rounding = 1e-12
    assert ((shares >= 0) & (shares <= 1 + rounding)).all()


def test_colours_of_losses_end_at_lowest():
    """The worst losses, a share of `alike`, lie beyond the colours' other end."""
    losses = np.random.default_rng(0).random(1000)
    with_empty_cell = np.append(losses, np.nan)

    low, high = colour_ends(with_empty_cell, maximised=False, alike=0.2)

    share_beyond = (losses > high).mean()
    assert low == losses.min()
    assert 0.19 < share_beyond <= 0.2


def test_colours_of_maximised_end_at_highest():
    """The worst values, a share of `alike`, lie beyond the colours' other end."""
    losses = np.random.default_rng(0).random(1000)
    values = -losses  # of an objective to maximise
    losses_with_empty_cell = np.append(losses, np.nan)

    low, high = colour_ends(losses_with_empty_cell, maximised=True, alike=0.2)

    share_beyond = (values < low).mean()
    assert high == values.max()
    assert 0.19 < share_beyond <= 0.2


def test_drift_is_correlation_with_time():
    """Where the optimum, the mean of the `count` best configurations, moves steadily."""
    x = np.linspace(0, 1, 101)
    optimum_of_task = np.linspace(0.2, 0.8, 7)
    losses = np.abs(x - optimum_of_task[:, None])  # (7 tasks, 101 configurations)
    losses_in_reverse_order = losses[::-1]

    assert optimum_drift(x, losses, count=5) == pytest.approx(1)
    assert optimum_drift(x, losses_in_reverse_order, count=5) == pytest.approx(-1)


def test_best_indices_keep_order_of_ties():
    losses = np.array([3.0, 1, 2, 1])
    np.testing.assert_array_equal(best_indices(losses, 3), [1, 3, 2])


def test_best_of_each_place_is_visible():
    x = np.array([0.0, 0, 1, 1, 2])
    y = np.array([5.0, 5, 5, 6, 5])
    losses = np.array([3.0, 1, 2, 0, 4])

    indices = visible_indices(x, y, losses)

    # Points 0 and 1 are in one place, where 1 is better and hides 0. The others are drawn from the
    # highest loss, 4, to the lowest, 0, so that better ones are on top.
    np.testing.assert_array_equal(indices, [4, 2, 1, 3])
