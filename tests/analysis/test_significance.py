import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from hpobench_ordered.analysis.significance import (
    friedman,
    holm,
    least_significant_difference,
    pairwise_wilcoxon,
)
from hpobench_ordered.errors import ExperimentError

P_VALUES = hnp.arrays(float, st.integers(1, 12), elements=st.floats(0, 1))
TIED = hnp.arrays(float, st.tuples(st.integers(1, 8), st.just(4)), elements=st.integers(0, 3))


def test_holm_by_hand():
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03, 0.005])), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm(np.array([0.5, 0.4, 0.03])), [0.8, 0.8, 0.09])
    np.testing.assert_allclose(holm(np.array([0.2])), [0.2])


@given(P_VALUES, st.floats(0.01, 0.5))
def test_holm_agrees_with_stepping_down(p, alpha):
    rejected = set()
    for step, index in enumerate(np.argsort(p, kind="stable")):
        if (len(p) - step) * p[index] > alpha:
            break
        rejected.add(int(index))
    assert set(np.flatnonzero(holm(p) <= alpha).tolist()) == rejected


def test_pairwise_tests_agree_with_scipy():
    samples = np.random.default_rng(0).normal(size=(15, 4)) + [0, 0.2, 1, 2]
    computed = pairwise_wilcoxon(samples, "abcd")
    assert computed.samples == 15
    for a in range(4):
        for b in range(4):
            expected = 1.0 if a == b else stats.wilcoxon(samples[:, a], samples[:, b]).pvalue
            assert computed.p_values[a, b] == pytest.approx(expected)
    pairs = np.triu_indices(4, 1)
    np.testing.assert_array_equal(computed.adjusted[pairs], holm(computed.p_values[pairs]))
    np.testing.assert_array_equal(computed.adjusted, computed.adjusted.T)
    assert computed.p_values[0, 1] < 0.05 < computed.adjusted[1, 2]
    assert computed.adjusted[0, 3] < 0.01


def test_zero_differences_count_half():
    differences = np.r_[np.zeros(6), np.arange(1.0, 15), -2.5]
    ranks = stats.rankdata(np.abs(differences))
    assert len(ranks) == 21
    negative = ranks[-1] + ranks[:6].sum() / 2
    mean = 21 * 22 / 4
    variance = (ranks[6:] ** 2).sum() / 4 + (ranks[:6] ** 2).sum() / 4
    normal = 2 * stats.norm.cdf((negative - mean) / np.sqrt(variance))
    samples = np.stack([differences, np.zeros(21)], axis=1)
    computed = pairwise_wilcoxon(samples, "ab").p_values[0, 1]
    assert computed == pytest.approx(normal, rel=0.1)
    assert computed > 2 * stats.wilcoxon(differences, zero_method="wilcox", method="exact").pvalue


def test_equal_methods_do_not_differ():
    same = np.tile(np.arange(5.0)[:, None], (1, 3))
    np.testing.assert_array_equal(pairwise_wilcoxon(same, "abc").p_values, 1)
    mean_ranks, *test = friedman(same, "abc")
    assert test == [0, 1]
    np.testing.assert_array_equal(mean_ranks, 2)
    np.testing.assert_array_equal(pairwise_wilcoxon(np.array([[1.0, 2]]), "ab").adjusted, 1)


@given(TIED)
def test_friedman_agrees_with_scipy(samples):
    mean_ranks, statistic, p_value = friedman(samples.astype(float), "abcd")
    ranks = stats.rankdata(samples, axis=1)
    np.testing.assert_allclose(mean_ranks, ranks.mean(axis=0))
    if np.ptp(ranks, axis=1).any():
        expected = stats.friedmanchisquare(*samples.T)
        assert statistic == pytest.approx(expected.statistic, abs=1e-9)
        assert p_value == pytest.approx(expected.pvalue)


def test_friedman_of_two_methods_is_the_sign_test():
    samples = np.stack([np.zeros(20), np.r_[np.ones(15), -np.ones(5)]], axis=1)
    _, statistic, p_value = friedman(samples, "ab")
    assert statistic == pytest.approx((15 - 5) ** 2 / 20)
    assert p_value == pytest.approx(2 * stats.norm.sf(10 / np.sqrt(20)))


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.zeros((3, 1)), "two methods or more"),
        (np.zeros((3, 4)), "shape"),
        (np.zeros((0, 2)), "no samples"),
        (np.array([[1.0, np.nan]]), "NaN"),
    ],
)
def test_untestable_samples_are_refused(samples, message):
    methods = "a" if samples.shape[1] == 1 else "ab"
    for test in (friedman, pairwise_wilcoxon):
        with pytest.raises(ExperimentError, match=message):
            test(samples, methods)


def test_lsd_of_two_is_paired_t():
    samples = np.random.default_rng(0).normal(size=(9, 2))
    paired = stats.ttest_rel(samples[:, 0], samples[:, 1])
    error = np.diff(samples.mean(axis=0))[0] / -paired.statistic
    assert least_significant_difference(samples) == pytest.approx(stats.t.ppf(0.95, 8) * error)


def test_lsd_agrees_with_linear_regression():
    """The error is that of a linear model of methods and samples, fitted by least squares."""
    samples = np.random.default_rng(1).normal(size=(6, 4)) + np.arange(6)[:, None]
    i, a = np.indices(samples.shape).reshape(2, -1)
    design = np.hstack([np.eye(6)[i], np.eye(4)[a][:, 1:]])
    ((squares,), rank) = np.linalg.lstsq(design, samples.ravel())[1:3]
    error = np.sqrt(2 / 6 * squares / (24 - rank))
    expected = stats.t.ppf(0.95, 24 - rank) * error
    assert least_significant_difference(samples) == pytest.approx(expected)


def test_lsd_needs_an_error():
    assert np.isnan(least_significant_difference(np.ones((1, 4))))
    assert np.isnan(least_significant_difference(np.ones((4, 1))))
    assert least_significant_difference(np.ones((3, 4))) == 0
