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
    places = np.stack([(choice + 0.5) / 2, rng.random(500)], axis=1)
    shares = explained_shares(places, choice.astype(float))
    assert shares[0] == pytest.approx(1)
    assert shares[1] < 0.05
    assert explained_shares(rng.random((5, 2)), np.ones(5)).tolist() == [0, 0]
    inactive = np.array([[np.nan], [np.nan], [0.05], [0.06]])  # a place of its own
    assert explained_shares(inactive, np.array([0.0, 0.0, 1.0, 1.0]))[0] == pytest.approx(1)


def test_shares_agree_with_variance_analysis():
    """By hand: four configurations, two bins; ranks 1 and 2 against 3 and 4."""
    shares = explained_shares(np.array([[0.1], [0.2], [0.8], [0.9]]), np.arange(4.0), bins=2)
    ranks = rankdata(np.arange(4.0))
    groups = np.array([1.5, 1.5, 3.5, 3.5])
    assert shares[0] == pytest.approx(groups.var() / ranks.var())


@given(st.integers(0, 1000))
def test_shares_ignore_scale_of_losses(seed):
    rng = np.random.default_rng(seed)
    places, losses = rng.random((40, 3)), rng.normal(size=40)
    shares = explained_shares(places, losses)
    assert ((shares >= 0) & (shares <= 1 + 1e-12)).all()
    np.testing.assert_allclose(explained_shares(places, np.exp(3 * losses)), shares)


@pytest.mark.parametrize("maximised", [False, True])
def test_colours_end_at_best_value(maximised):
    losses = np.append(np.random.default_rng(0).random(1000), np.nan)
    values = -losses if maximised else losses
    low, high = colour_ends(losses, maximised=maximised, alike=0.2)
    best, beyond = (high, values < low) if maximised else (low, values > high)
    assert best == (np.nanmax(values) if maximised else np.nanmin(values))
    assert 0.19 < beyond.sum() / 1000 <= 0.2


def test_drift_is_one_for_growing_optimum():
    x = np.linspace(0, 1, 101)
    losses = np.abs(x - np.linspace(0.2, 0.8, 7)[:, None])
    assert optimum_drift(x, losses, count=5) == pytest.approx(1)
    assert optimum_drift(x, losses[::-1], count=5) == pytest.approx(-1)


def test_best_of_each_place_is_visible():
    np.testing.assert_array_equal(best_indices(np.array([3.0, 1, 2, 1]), 3), [1, 3, 2])
    x = np.array([0.0, 0, 1, 1, 2])
    y = np.array([5.0, 5, 5, 6, 5])
    losses = np.array([3.0, 1, 2, 0, 4])
    np.testing.assert_array_equal(visible_indices(x, y, losses), [4, 2, 1, 3])
