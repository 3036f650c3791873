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
    """A hyperparameter that the losses equal explains all of them, and a random one nothing."""
    rng = np.random.default_rng(0)
    choice = rng.integers(0, 2, 500)
    place_of_choice = (choice + 0.5) / 2  # the middle of one half of the unit interval
    places = np.stack([place_of_choice, rng.random(500)], axis=1)

    share_of_choice, share_of_random = explained_shares(places, losses=choice.astype(float))

    assert share_of_choice == pytest.approx(1)
    share_by_chance = 0.05  # at most, of 500 losses
    assert share_of_random < share_by_chance


def test_inactive_hyperparameters_share_a_bin():
    """Inactive hyperparameters, whose places are NaN, are in a bin of their own.

    Here all losses in that bin are 0, and those near 0.05 are 1: the bins explain all losses.
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
    """The lower end is the lowest loss.

    The worst fifth of losses, which look alike, is beyond the upper end.
    A cell without a loss, NaN, does not count.
    """
    losses = np.random.default_rng(0).random(1000)
    losses_of_cells = np.append(losses, np.nan)

    low_end, high_end = colour_ends(losses_of_cells, maximised=False, alike=0.2)

    share_beyond = (losses > high_end).mean()
    assert low_end == losses.min()
    assert 0.19 < share_beyond <= 0.2


def test_colours_of_maximised_end_at_highest():
    """If the objective is maximised, the upper end is its highest value, a negated loss.

    The worst fifth of values, which look alike, is beyond the lower end.
    """
    losses = np.random.default_rng(0).random(1000)
    values = -losses
    losses_of_cells = np.append(losses, np.nan)

    low_end, high_end = colour_ends(losses_of_cells, maximised=True, alike=0.2)

    share_beyond = (values < low_end).mean()
    assert high_end == values.max()
    assert 0.19 < share_beyond <= 0.2


def test_drift_is_correlation_with_time():
    """The drift is the correlation of a task's number with its optimum.

    The optimum is the mean of the `count` best configurations of a task. Here it rises by the same
    step from task to task, so that the correlation is 1, or -1 in reverse order.
    """
    x = np.linspace(0, 1, 101)
    optimum_of_task = np.linspace(0.2, 0.8, 7)
    losses = np.abs(x - optimum_of_task[:, None])  # (7 tasks, 101 configurations)
    losses_in_reverse_order = losses[::-1]

    assert optimum_drift(x, losses, count=5) == pytest.approx(1)
    assert optimum_drift(x, losses_in_reverse_order, count=5) == pytest.approx(-1)


def test_best_of_each_place_is_visible():
    """Of points in the same place only the best is drawn; better points are drawn later, on top.

    Points 0 and 1 are in the same place, where point 1 is better.
    """
    x = np.array([0.0, 0, 1, 1, 2])
    y = np.array([5.0, 5, 5, 6, 5])
    losses = np.array([3.0, 1, 2, 0, 4])

    indices = visible_indices(x, y, losses)

    losses_as_drawn = losses[indices]
    assert indices.tolist() == [4, 2, 1, 3]
    assert losses_as_drawn.tolist() == [4, 2, 1, 0]
