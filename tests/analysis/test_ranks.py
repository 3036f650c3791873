import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import rankdata

from hpobench_ordered.analysis.scores import rank_over_methods, ranks_by_seed, ranks_of_means


@given(hnp.arrays(float, (5, 3, 4), elements=st.integers(0, 3).map(float)))
def test_ranks_agree_with_scipy_ties_included(losses):
    np.testing.assert_array_equal(rank_over_methods(losses), rankdata(losses, axis=0))


def test_mean_ranks_are_of_mean_incumbents_over_tasks():
    losses = np.random.default_rng(0).random((4, 6, 5, 7))  # (A, S, T, M)
    ranks = ranks_of_means(losses, "abcd")
    means = np.minimum.accumulate(losses, axis=-1).mean(axis=1)
    expected = rankdata(means, axis=0)
    np.testing.assert_allclose(ranks.mean[:, 0], expected.mean(axis=1))
    errors = 2 * expected.std(axis=1, ddof=1) / np.sqrt(5)
    np.testing.assert_allclose(ranks.two_standard_errors[:, 0], errors)
    np.testing.assert_allclose(ranks.mean.sum(axis=0), 1 + 2 + 3 + 4)


def test_tied_methods_share_their_rank():
    losses = np.zeros((3, 2, 2, 1))
    losses[2] = 1
    ranks = ranks_of_means(losses, ["a", "b", "c"])
    np.testing.assert_array_equal(ranks.mean[:, 0, 0], [1.5, 1.5, 3])


def test_ranks_by_seed_are_of_incumbents():
    losses = np.random.default_rng(0).random((4, 6, 5, 7))  # (A, S, T, M)
    ranks = ranks_by_seed(losses, "abcd")
    np.testing.assert_array_equal(
        ranks.values, rankdata(np.minimum.accumulate(losses, axis=-1), axis=0)
    )
    mean = ranks.over_tasks(trial=7)
    np.testing.assert_allclose(mean.mean, ranks.values[..., -1].mean(axis=(1, 2)))
    errors = 2 * ranks.values[..., -1].mean(axis=2).std(axis=1, ddof=1) / np.sqrt(6)
    np.testing.assert_allclose(mean.two_standard_errors, errors)
