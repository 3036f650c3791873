import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.significance import (
    friedman,
    holm,
    least_significant_difference,
    pairwise_wilcoxon,
)
from hpobench_ordered.errors import ExperimentError

P_VALUES = hnp.arrays(float, st.integers(1, 12), elements=st.floats(0, 1))
TIED = hnp.arrays(float, st.tuples(st.integers(1, 8), st.just(4)), elements=st.integers(0, 3))


def different_methods() -> FloatArray:
    """Fifteen samples of four methods, (15, 4); the last differs most from the first."""
    return np.random.default_rng(0).normal(size=(15, 4)) + [0, 0.2, 1, 2]


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.5, 0.4, 0.03], [0.8, 0.8, 0.09]),
        ([0.2], [0.2]),
    ],
)
def test_holm_by_hand(p_values, adjusted):
    np.testing.assert_allclose(holm(np.array(p_values)), adjusted)


@given(P_VALUES, st.floats(0.01, 0.5))
def test_holm_agrees_with_stepping_down(p_values, alpha):
    rejected = set()
    for step, index in enumerate(np.argsort(p_values, kind="stable")):
        n_left = len(p_values) - step
        if n_left * p_values[index] > alpha:
            break
        rejected.add(int(index))

    assert set(np.flatnonzero(holm(p_values) <= alpha).tolist()) == rejected


def test_pairwise_tests_agree_with_scipy():
    samples = different_methods()

    computed = pairwise_wilcoxon(samples, "abcd")

    assert computed.samples == 15
    np.testing.assert_array_equal(np.diag(computed.p_values), 1)
    for a, b in itertools.permutations(range(4), 2):
        expected = stats.wilcoxon(samples[:, a], samples[:, b]).pvalue
        assert computed.p_values[a, b] == pytest.approx(expected)


def test_pairwise_tests_are_adjusted_by_holm():
    computed = pairwise_wilcoxon(different_methods(), "abcd")
    pairs = np.triu_indices(4, 1)
    np.testing.assert_array_equal(computed.adjusted[pairs], holm(computed.p_values[pairs]))
    np.testing.assert_array_equal(computed.adjusted, computed.adjusted.T)


def test_pairwise_tests_find_large_differences():
    computed = pairwise_wilcoxon(different_methods(), "abcd")
    assert computed.p_values[0, 1] < 0.05
    assert computed.adjusted[1, 2] > 0.05
    assert computed.adjusted[0, 3] < 0.01


def test_zero_differences_count_half():
    """Pratt's test: zeros have ranks, of which each side gets half."""
    differences = np.r_[np.zeros(6), np.arange(1.0, 15), -2.5]
    samples = np.stack([differences, np.zeros(21)], axis=1)

    p_value = pairwise_wilcoxon(samples, "ab").p_values[0, 1]

    ranks = stats.rankdata(np.abs(differences))
    rank_sum = ranks[-1] + ranks[:6].sum() / 2  # of negative differences
    mean = 21 * 22 / 4
    variance = (ranks[6:] ** 2).sum() / 4 + (ranks[:6] ** 2).sum() / 4
    normal_approximation = 2 * stats.norm.cdf((rank_sum - mean) / np.sqrt(variance))
    without_zeros = stats.wilcoxon(differences, zero_method="wilcox", method="exact").pvalue
    assert p_value == pytest.approx(normal_approximation, rel=0.1)
    assert p_value > 2 * without_zeros


def test_equal_methods_do_not_differ():
    same = np.tile(np.arange(5.0)[:, None], (1, 3))
    np.testing.assert_array_equal(pairwise_wilcoxon(same, "abc").p_values, 1)


def test_equal_methods_have_equal_ranks():
    same = np.tile(np.arange(5.0)[:, None], (1, 3))
    mean_ranks, statistic, p_value = friedman(same, "abc")
    assert mean_ranks.tolist() == [2, 2, 2]
    assert (statistic, p_value) == (0, 1)


def test_single_sample_shows_no_difference():
    assert (pairwise_wilcoxon(np.array([[1.0, 2]]), "ab").adjusted == 1).all()


@given(TIED)
def test_friedman_agrees_with_scipy(samples):
    mean_ranks, statistic, p_value = friedman(samples.astype(float), "abcd")

    ranks = stats.rankdata(samples, axis=1)
    np.testing.assert_allclose(mean_ranks, ranks.mean(axis=0))
    is_defined_in_scipy = np.ptp(ranks, axis=1).any()  # not where all methods are tied
    if is_defined_in_scipy:
        expected = stats.friedmanchisquare(*samples.T)
        assert statistic == pytest.approx(expected.statistic, abs=1e-9)
        assert p_value == pytest.approx(expected.pvalue)


def test_friedman_of_two_is_sign_test():
    differences = np.r_[np.ones(15), -np.ones(5)]
    samples = np.stack([np.zeros(20), differences], axis=1)
    _, statistic, p_value = friedman(samples, "ab")
    assert statistic == pytest.approx((15 - 5) ** 2 / 20)
    assert p_value == pytest.approx(2 * stats.norm.sf(10 / np.sqrt(20)))


@pytest.mark.parametrize("test", [friedman, pairwise_wilcoxon])
@pytest.mark.parametrize(
    ("samples", "methods", "message"),
    [
        (np.zeros((3, 1)), "a", "two methods or more"),
        (np.zeros((3, 4)), "ab", "shape"),
        (np.zeros((0, 2)), "ab", "no samples"),
        (np.array([[1.0, np.nan]]), "ab", "NaN"),
    ],
)
def test_untestable_samples_are_refused(test, samples, methods, message):
    with pytest.raises(ExperimentError, match=message):
        test(samples, methods)


def test_lsd_of_two_is_paired_t():
    """LSD: the least significant difference, a quantile of Student's t times the error.

    The error of a difference is the difference divided by the t statistic.
    """
    samples = np.random.default_rng(0).normal(size=(9, 2))
    paired = stats.ttest_rel(samples[:, 0], samples[:, 1])
    difference = samples[:, 0].mean() - samples[:, 1].mean()
    error = difference / paired.statistic
    assert least_significant_difference(samples) == pytest.approx(stats.t.ppf(0.95, 8) * error)


def test_lsd_agrees_with_linear_regression():
    """LSD: the least significant difference, a quantile of Student's t times the error.

    The error is that of a linear model of methods and samples, fitted by least squares.
    """
    samples = np.random.default_rng(1).normal(size=(6, 4)) + np.arange(6)[:, None]
    sample, method = np.indices(samples.shape).reshape(2, -1)
    design = np.hstack([np.eye(6)[sample], np.eye(4)[method][:, 1:]])  # dummy variables

    _, (squares,), rank, _ = np.linalg.lstsq(design, samples.ravel())

    degrees_of_freedom = samples.size - rank
    error = np.sqrt(2 / 6 * squares / degrees_of_freedom)
    expected = stats.t.ppf(0.95, degrees_of_freedom) * error
    assert least_significant_difference(samples) == pytest.approx(expected)


def test_lsd_needs_an_error():
    one_sample, one_method, constant = np.ones((1, 4)), np.ones((4, 1)), np.ones((3, 4))
    assert np.isnan(least_significant_difference(one_sample))
    assert np.isnan(least_significant_difference(one_method))
    assert least_significant_difference(constant) == 0
