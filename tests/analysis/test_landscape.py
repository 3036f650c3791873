"""Landscapes: what hyperparameters explain, how the optimum drifts, how losses are coloured."""

import numpy as np
import pytest

from hpobench_ordered.analysis.landscape import (
    colour_ends,
    explained_shares,
    optimum_drift,
    visible_indices,
)


def test_decisive_hyperparameter_explains_all():
    """Losses equal the choice, and are independent of the other hyperparameter, a random one."""
    rng = np.random.default_rng(0)
    choice = rng.integers(0, 2, 500)
    place_of_choice = (choice + 0.5) / 2  # the middle of one half of the unit interval
    places = np.stack([place_of_choice, rng.random(500)], axis=1)

    share_of_choice, share_of_random = explained_shares(places, losses=choice.astype(float))

    assert share_of_choice == pytest.approx(1)
    share_by_chance = 0.05  # at most, of 500 losses
    assert share_of_random < share_by_chance


def test_inactive_hyperparameters_share_a_bin():
    """Places of inactive hyperparameters are NaN. They share a bin, and those near 0.05 another.

    In each bin losses are equal, so that the bin explains them.
    """
    places_of_one = np.array([[np.nan], [np.nan], [0.05], [0.06]])
    (share,) = explained_shares(places_of_one, losses=np.array([0.0, 0.0, 1.0, 1.0]))
    assert share == pytest.approx(1)


def test_shares_agree_with_variance_analysis():
    """The share is the variance of mean ranks in bins, divided by the variance of ranks.

    Ranks of losses are 1 and 2 in the lower half of places, 3 and 4 in the upper half.
    """
    losses = np.arange(4.0)
    places_of_one = np.array([[0.1], [0.2], [0.8], [0.9]])

    (share,) = explained_shares(places_of_one, losses, bins=2)

    ranks = np.array([1, 2, 3, 4])
    mean_rank_in_bin = np.array([1.5, 1.5, 3.5, 3.5])
    assert share == pytest.approx(mean_rank_in_bin.var() / ranks.var())


def test_colours_of_losses_end_at_lowest():
    """One end is the lowest loss. The worst fifth of losses, which look alike, is beyond the other.

    A cell without a loss, NaN, does not count.
    """
    losses = np.random.default_rng(0).random(1000)
    losses_of_cells = np.append(losses, np.nan)

    low_end, high_end = colour_ends(losses_of_cells, maximised=False, alike=0.2)

    share_beyond = (losses > high_end).mean()
    assert low_end == losses.min()
    assert 0.19 < share_beyond <= 0.2


def test_colours_of_maximised_end_at_highest():
    """The ends are of the objective's values, which are negated losses.

    One end is the highest value. The worst fifth of values, which look alike, is beyond the other.
    """
    losses = np.random.default_rng(0).random(1000)
    values = -losses
    losses_of_cells = np.append(losses, np.nan)

    low_end, high_end = colour_ends(losses_of_cells, maximised=True, alike=0.2)

    share_beyond = (values < low_end).mean()
    assert high_end == values.max()
    assert 0.19 < share_beyond <= 0.2


def test_drift_is_correlation_with_time():
    """The optimum of a task, the mean of its `count` best configurations, moves steadily here.

    So its correlation with the number of the task is 1, or -1 in reverse order.
    """
    x = np.linspace(0, 1, 101)
    optimum_of_task = np.linspace(0.2, 0.8, 7)
    losses = np.abs(x - optimum_of_task[:, None])  # (7 tasks, 101 configurations)
    losses_in_reverse_order = losses[::-1]

    assert optimum_drift(x, losses, count=5) == pytest.approx(1)
    assert optimum_drift(x, losses_in_reverse_order, count=5) == pytest.approx(-1)


def test_best_of_each_place_is_visible():
    """Points 0 and 1 are in the same place, where point 1 is better and hides point 0.

    The others are drawn from the highest loss to the lowest, so that better ones are on top.
    """
    x = np.array([0.0, 0, 1, 1, 2])
    y = np.array([5.0, 5, 5, 6, 5])
    losses = np.array([3.0, 1, 2, 0, 4])

    indices = visible_indices(x, y, losses)

    losses_as_drawn = losses[indices]
    assert indices.tolist() == [4, 2, 1, 3]
    assert losses_as_drawn.tolist() == [4, 2, 1, 0]
