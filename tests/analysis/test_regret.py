import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hpobench_ordered.analysis.samples import incumbents, of_incumbents
from hpobench_ordered.analysis.scores import best_known, normalised_regrets, worst_met

LOSSES = st.integers(0, 2**32).map(
    lambda seed: np.random.default_rng(seed).integers(-5, 6, (2, 3, 2, 4)).astype(float)
)


@given(LOSSES)
def test_regret_of_the_incumbent_is_its_distance_from_the_best(losses):
    best = np.array([-6.0, -5.0])
    regrets = losses - best[:, None]
    computed = of_incumbents(regrets, losses)
    np.testing.assert_array_equal(computed, incumbents(losses) - best[:, None])
    assert (computed >= 0).all()
    assert (np.diff(computed, axis=-1) <= 0).all()
    np.testing.assert_array_equal(best_known(losses, regrets), best)


def test_regret_is_unknown_where_no_best_is():
    losses = np.random.default_rng(0).random((2, 3, 2, 4))
    regrets = losses - np.array([0.0, np.nan])[:, None]
    np.testing.assert_array_equal(
        np.isnan(of_incumbents(regrets, losses)[0, 0]).any(axis=1), [0, 1]
    )
    np.testing.assert_allclose(best_known(losses, regrets), [0, np.nan], atol=1e-15)


@given(LOSSES, st.floats(0.1, 10), st.floats(-10, 10))
def test_normalised_regret_has_no_scale(losses, scale, shift):
    best = losses.min(axis=(0, 1, 3))
    plain = normalised_regrets(losses, best, worst_met(losses))
    scaled = scale * losses + shift
    computed = normalised_regrets(scaled, scale * best + shift, worst_met(scaled))
    np.testing.assert_allclose(computed, plain, atol=1e-9)
    defined = plain[~np.isnan(plain)]
    assert ((defined >= 0) & (defined <= 1)).all()


def test_normalised_regret_by_hand():
    losses = np.array([[[[5.0, 3, 4, 1], [5, 3, 4, 1], [5, 3, 4, 1], [5, 3, 4, 1]]]])
    best, worst = np.array([1.0, 2, np.nan, 3]), np.array([5.0, 4, 5, 3])
    np.testing.assert_array_equal(
        normalised_regrets(losses, best, worst)[0, 0],
        [[1, 0.5, 0.5, 0], [1.5, 0.5, 0.5, -0.5], [np.nan] * 4, [np.nan] * 4],
    )


def test_the_worst_loss_met_leaves_out_failures():
    losses = np.array([[[[np.inf, 2, np.nan], [np.inf] * 3]], [[[5, 4, 3], [np.nan] * 3]]])
    np.testing.assert_array_equal(worst_met(losses), [5, np.nan])
