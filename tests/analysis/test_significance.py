"""Tests of differences between methods, on samples of shape (samples, methods)."""

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
"""One to twelve p-values."""
TIED_SAMPLES = hnp.arrays(
    float, st.tuples(st.integers(1, 8), st.just(4)), elements=st.integers(0, 3)
)
"""One to eight samples (rows) of four methods."""


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
    """The lowest of n p-values is multiplied by n, the next by n - 1, and so on.

    Where a product is below that of a lower p-value, it is raised to it.
    """
    np.testing.assert_allclose(holm(np.array(p_values)), adjusted)


@given(P_VALUES, st.floats(0.01, 0.5))
def test_holm_agrees_with_stepping_down(p_values, alpha):
    """Holm's procedure rejects from the lowest p-value up, until one is above alpha / n left."""
    expected = set()
    for n_rejected, index in enumerate(np.argsort(p_values, kind="stable")):
        n_left = len(p_values) - n_rejected
        if n_left * p_values[index] > alpha:
            break
        expected.add(int(index))

    rejected = np.flatnonzero(holm(p_values) <= alpha)

    assert set(rejected.tolist()) == expected


def test_pairwise_tests_agree_with_scipy():
    samples = different_methods()

    computed = pairwise_wilcoxon(samples, "abcd")

    assert computed.samples == 15
    np.testing.assert_array_equal(np.diag(computed.p_values), 1)  # of a method with itself
    for a, b in itertools.permutations(range(4), 2):
        expected = stats.wilcoxon(samples[:, a], samples[:, b]).pvalue
        assert computed.p_values[a, b] == pytest.approx(expected)


def test_pairwise_tests_are_adjusted_by_holm():
    computed = pairwise_wilcoxon(different_methods(), "abcd")
    pairs = np.triu_indices(4, k=1)  # each pair of methods once
    np.testing.assert_array_equal(computed.adjusted[pairs], holm(computed.p_values[pairs]))
    np.testing.assert_array_equal(computed.adjusted, computed.adjusted.T)


def test_pairwise_tests_find_large_differences():
    """The means of a, b, c and d are 0, 0.2, 1 and 2; the standard deviation is 1."""
    computed = pairwise_wilcoxon(different_methods(), "abcd")
    a, b, c, d = range(4)
    assert computed.p_values[a, b] < 0.05  # without adjustment
    assert computed.adjusted[b, c] > 0.05
    assert computed.adjusted[a, d] < 0.01


def test_zero_differences_count_half():
    """Pratt's test: zeros have ranks, of which each side gets half.

    Compared with the normal approximation of the rank sum of negative differences.
    """
    zeros = np.zeros(6)
    positive = np.arange(1.0, 15)
    negative = [-2.5]
    differences = np.concatenate([zeros, positive, negative])
    n = len(differences)
    samples = np.stack([differences, np.zeros(n)], axis=1)

    p_value = pairwise_wilcoxon(samples, "ab").p_values[0, 1]

    ranks = stats.rankdata(np.abs(differences))
    rank_sum = ranks[differences < 0].sum() + ranks[differences == 0].sum() / 2
    mean = n * (n + 1) / 4
    variance = (ranks**2).sum() / 4
    normal_approximation = 2 * stats.norm.cdf((rank_sum - mean) / np.sqrt(variance))
    assert p_value == pytest.approx(normal_approximation, rel=0.1)
    without_zeros = stats.wilcoxon(differences, zero_method="wilcox", method="exact").pvalue
    # Zeros, which speak for no difference, are not left out.
    assert p_value > 2 * without_zeros


def test_equal_methods_do_not_differ():
    same = np.tile(np.arange(5.0)[:, None], (1, 3))  # (samples, methods)
    np.testing.assert_array_equal(pairwise_wilcoxon(same, "abc").p_values, 1)


def test_equal_methods_have_equal_ranks():
    same = np.tile(np.arange(5.0)[:, None], (1, 3))  # (samples, methods)
    mean_ranks, statistic, p_value = friedman(same, "abc")
    assert mean_ranks.tolist() == [2, 2, 2]
    assert (statistic, p_value) == (0, 1)


def test_single_sample_shows_no_difference():
    single_sample = np.array([[1.0, 2]])
    computed = pairwise_wilcoxon(single_sample, "ab")
    assert (computed.adjusted == 1).all()


@given(TIED_SAMPLES)
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
    """In its normal approximation: the difference of counts has the variance n."""
    n_worse, n_better = 15, 5
    n = n_worse + n_better
    differences = np.concatenate([np.ones(n_worse), -np.ones(n_better)])
    samples = np.stack([np.zeros(n), differences], axis=1)

    _, statistic, p_value = friedman(samples, "ab")

    z = (n_worse - n_better) / np.sqrt(n)
    assert statistic == pytest.approx(z**2)
    assert p_value == pytest.approx(2 * stats.norm.sf(z))


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
    n_samples = 9
    samples = np.random.default_rng(0).normal(size=(n_samples, 2))
    first, second = samples.T

    computed = least_significant_difference(samples)

    difference = first.mean() - second.mean()
    error = difference / stats.ttest_rel(first, second).statistic
    quantile = stats.t.ppf(0.95, n_samples - 1)  # one-sided at 5 %
    assert computed == pytest.approx(quantile * error)


def test_lsd_agrees_with_linear_regression():
    """LSD: the least significant difference, a quantile of Student's t times the error.

    The error is that of a linear model of methods and samples, fitted by least squares.
    """
    n_samples, n_methods = 6, 4
    rng = np.random.default_rng(1)
    samples = rng.normal(size=(n_samples, n_methods)) + np.arange(n_samples)[:, None]

    computed = least_significant_difference(samples)

    sample, method = np.indices(samples.shape).reshape(2, -1)
    dummies_of_samples = np.eye(n_samples)[sample]
    dummies_of_methods = np.eye(n_methods)[method][:, 1:]  # relative to the first method
    design = np.hstack([dummies_of_samples, dummies_of_methods])
    _, (residual_squares,), rank, _ = np.linalg.lstsq(design, samples.ravel())
    degrees_of_freedom = samples.size - rank
    error_of_difference = np.sqrt(2 / n_samples * residual_squares / degrees_of_freedom)
    quantile = stats.t.ppf(0.95, degrees_of_freedom)  # one-sided at 5 %
    assert computed == pytest.approx(quantile * error_of_difference)


@pytest.mark.parametrize("shape", [(1, 4), (4, 1)], ids=["one sample", "one method"])
def test_lsd_needs_degrees_of_freedom(shape):
    """LSD: the least significant difference."""
    assert np.isnan(least_significant_difference(np.ones(shape)))


def test_lsd_of_constant_samples_is_zero():
    """LSD: the least significant difference."""
    assert least_significant_difference(np.ones((3, 4))) == 0
