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
    place_of_choice = (choice + 0.5) / 2
    places = np.stack([place_of_choice, rng.random(500)], axis=1)

    decisive, random = explained_shares(places, losses=choice.astype(float))

    assert decisive == pytest.approx(1)
    assert random < 0.05


def test_equal_losses_have_nothing_to_explain():
    places = np.random.default_rng(0).random((5, 2))
    assert explained_shares(places, losses=np.ones(5)).tolist() == [0, 0]


def test_inactive_hyperparameters_share_a_bin():
    places = np.array([[np.nan], [np.nan], [0.05], [0.06]])
    shares = explained_shares(places, losses=np.array([0.0, 0.0, 1.0, 1.0]))
    assert shares[0] == pytest.approx(1)


def test_shares_agree_with_variance_analysis():
    """By hand: four configurations, two bins; ranks 1 and 2 against 3 and 4."""
    losses = np.arange(4.0)
    places = np.array([[0.1], [0.2], [0.8], [0.9]])
    shares = explained_shares(places, losses, bins=2)
    mean_ranks_of_bins = np.array([1.5, 1.5, 3.5, 3.5])
    assert shares[0] == pytest.approx(mean_ranks_of_bins.var() / rankdata(losses).var())


@given(st.integers(0, 1000))
def test_shares_ignore_scale_of_losses(seed):
    rng = np.random.default_rng(seed)
    places = rng.random((40, 3))
    losses = rng.normal(size=40)

    shares = explained_shares(places, losses)

    assert ((shares >= 0) & (shares <= 1 + 1e-12)).all()
    np.testing.assert_allclose(explained_shares(places, np.exp(3 * losses)), shares)


def test_colours_of_losses_end_at_lowest():
    """The worst losses, a share of `alike`, lie beyond the colours' other end."""
    losses = np.append(np.random.default_rng(0).random(1000), np.nan)  # NaN: an empty cell

    low, high = colour_ends(losses, maximised=False, alike=0.2)

    share_beyond = (losses > high).sum() / 1000
    assert low == np.nanmin(losses)
    assert 0.19 < share_beyond <= 0.2


def test_colours_of_maximised_end_at_highest():
    """The worst values, a share of `alike`, lie beyond the colours' other end."""
    losses = np.append(np.random.default_rng(0).random(1000), np.nan)  # NaN: an empty cell
    values = -losses

    low, high = colour_ends(losses, maximised=True, alike=0.2)

    share_beyond = (values < low).sum() / 1000
    assert high == np.nanmax(values)
    assert 0.19 < share_beyond <= 0.2


def test_drift_is_one_for_growing_optimum():
    x = np.linspace(0, 1, 101)
    optima = np.linspace(0.2, 0.8, 7)
    losses = np.abs(x - optima[:, None])  # of 101 configurations on seven tasks, (7, 101)
    assert optimum_drift(x, losses, count=5) == pytest.approx(1)
    assert optimum_drift(x, losses[::-1], count=5) == pytest.approx(-1)


def test_best_indices_keep_order_of_ties():
    np.testing.assert_array_equal(best_indices(np.array([3.0, 1, 2, 1]), 3), [1, 3, 2])


def test_best_of_each_place_is_visible():
    x = np.array([0.0, 0, 1, 1, 2])
    y = np.array([5.0, 5, 5, 6, 5])
    losses = np.array([3.0, 1, 2, 0, 4])
    # The first two are in one place, of which 1 is better; the worst of the others is drawn first.
    np.testing.assert_array_equal(visible_indices(x, y, losses), [4, 2, 1, 3])
