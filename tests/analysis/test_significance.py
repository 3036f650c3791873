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
    pairwise_wilcoxon,
)
from hpobench_ordered.errors import ExperimentError

P_VALUES = hnp.arrays(float, st.integers(1, 12), elements=st.floats(0, 1))
"""One to twelve p-values."""
TIED_SAMPLES = hnp.arrays(
    float, st.tuples(st.integers(1, 8), st.just(4)), elements=st.integers(0, 3)
)
"""One to eight samples (rows) of four methods."""


def draw_different_methods() -> FloatArray:
    """Draw 15 samples of four methods, (15, 4), with means 0, 0.2, 1 and 2 and deviation 1."""
    means = [0, 0.2, 1, 2]
    return np.random.default_rng(0).normal(size=(15, 4)) + means


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
    """Holm's procedure goes from the lowest p-value to the highest, and rejects hypotheses.

    It ends at the first p-value above alpha divided by the number of hypotheses left.
    """
    expected = set()
    for n_rejected, index in enumerate(np.argsort(p_values, kind="stable")):
        n_left = len(p_values) - n_rejected
        if n_left * p_values[index] > alpha:
            break
        expected.add(int(index))

    rejected = np.flatnonzero(holm(p_values) <= alpha)

    assert set(rejected.tolist()) == expected


def test_pairwise_tests_agree_with_scipy():
    """The p-value of each pair of methods is that of SciPy's signed-rank test."""
    samples = draw_different_methods()

    computed = pairwise_wilcoxon(samples, "abcd")

    assert computed.samples == 15
    np.testing.assert_array_equal(np.diag(computed.p_values), 1)  # of a method with itself
    for a, b in itertools.permutations(range(4), 2):
        expected = stats.wilcoxon(samples[:, a], samples[:, b]).pvalue
        assert computed.p_values[a, b] == pytest.approx(expected)


def test_pairwise_tests_are_adjusted_by_holm():
    """Holm's adjustment is of all pairs together, each counted once; it is the same both ways."""
    computed = pairwise_wilcoxon(draw_different_methods(), "abcd")
    pairs = np.triu_indices(4, k=1)  # each pair of methods once
    np.testing.assert_array_equal(computed.adjusted[pairs], holm(computed.p_values[pairs]))
    np.testing.assert_array_equal(computed.adjusted, computed.adjusted.T)


def test_pairwise_tests_find_large_differences():
    """The means of a, b, c and d are 0, 0.2, 1 and 2; the standard deviation is 1."""
    computed = pairwise_wilcoxon(draw_different_methods(), "abcd")
    a, b, c, d = range(4)
    assert computed.p_values[a, b] < 0.05  # without adjustment
    assert computed.adjusted[b, c] > 0.05
    assert computed.adjusted[a, d] < 0.01


def test_zero_differences_count_half():
    """Differences of 0 have ranks, too, half of which count as negative and half as positive.

    The p-value is about that of the normal approximation of the sum of negative ranks.
    """
    samples = make_samples_with_zero_differences()

    p_value = pairwise_wilcoxon(samples, "ab").p_values[0, 1]

    differences = samples[:, 0] - samples[:, 1]
    ranks = stats.rankdata(np.abs(differences))
    ranks_of_negative, ranks_of_zero = ranks[differences < 0], ranks[differences == 0]
    negative_sum = ranks_of_negative.sum() + ranks_of_zero.sum() / 2
    # If there is no difference, each rank is negative with probability 1/2.
    expected_sum = ranks.sum() / 2
    standard_deviation = np.sqrt((ranks**2).sum() / 4)
    z = (negative_sum - expected_sum) / standard_deviation
    assert p_value == pytest.approx(2 * stats.norm.cdf(z), rel=0.1)


def test_zero_differences_are_not_left_out():
    """Differences of 0 speak for no difference: without them the p-value is less than half."""
    samples = make_samples_with_zero_differences()
    p_value = pairwise_wilcoxon(samples, "ab").p_values[0, 1]
    differences = samples[:, 0] - samples[:, 1]
    without_zeros = stats.wilcoxon(differences, zero_method="wilcox", method="exact").pvalue
    assert p_value > 2 * without_zeros


def make_samples_with_zero_differences() -> FloatArray:
    """Make samples of two methods: of 21 differences 6 are 0, 14 positive and one negative."""
    differences = np.concatenate([np.zeros(6), np.arange(1.0, 15), [-2.5]])
    return np.stack([differences, np.zeros(21)], axis=1)


EQUAL_METHODS = np.tile(np.arange(5.0)[:, None], (1, 3))
"""Five samples of three methods that are the same in each."""


def test_equal_methods_do_not_differ():
    np.testing.assert_array_equal(pairwise_wilcoxon(EQUAL_METHODS, "abc").p_values, 1)


def test_equal_methods_have_equal_ranks():
    """Each of three methods has the rank 2, the mean of 1, 2 and 3."""
    mean_ranks, statistic, p_value = friedman(EQUAL_METHODS, "abc")
    assert mean_ranks.tolist() == [2, 2, 2]
    assert statistic == 0
    assert p_value == 1


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
    """Friedman's test of two methods is the sign test, in its normal approximation.

    If there is no difference, the counts of signs differ with the variance n.
    """
    n_positive, n_negative = 15, 5
    n = n_positive + n_negative
    differences = np.concatenate([np.ones(n_positive), -np.ones(n_negative)])
    samples = np.stack([np.zeros(n), differences], axis=1)

    _, statistic, p_value = friedman(samples, "ab")

    z = (n_positive - n_negative) / np.sqrt(n)
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
