import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hpobench_ordered._typing import BoolArray, FloatArray
from hpobench_ordered.analysis.significance import (
    CriticalDifference,
    PostHoc,
    critical_difference,
    friedman,
    nemenyi_difference,
    pairwise_wilcoxon,
)
from hpobench_ordered.errors import ExperimentError

SAMPLES = hnp.arrays(
    float, st.tuples(st.integers(1, 6), st.integers(2, 5)), elements=st.integers(0, 9).map(float)
)


ALL_TESTS = pytest.mark.parametrize("post_hoc", PostHoc)


def names_of(samples: FloatArray) -> list[str]:
    """Names of the methods of samples, (n, A)."""
    return [f"method-{number}" for number in range(samples.shape[1])]


def ranking_of(alike: BoolArray) -> CriticalDifference:
    """A ranking of methods, of which some are alike, (A, A)."""
    names = tuple(f"method-{number}" for number in range(len(alike)))
    ranks = np.arange(1.0, len(alike) + 1)
    return CriticalDifference(names, ranks, alike, PostHoc.WILCOXON_HOLM, np.nan, 0.01, 9)


def test_quantiles_are_demsars_table_5():
    published = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
    n_samples = 6

    quantiles = []
    for n_methods in range(2, 11):
        standard_error = np.sqrt(n_methods * (n_methods + 1) / (6 * n_samples))
        quantiles.append(nemenyi_difference(n_methods, n_samples) / standard_error)

    # Demsar (2006) rounds twice, so that the last digit may differ by one.
    np.testing.assert_allclose(quantiles, published, atol=1.1e-3)


@given(SAMPLES)
def test_nemenyi_compares_ranks_with_difference(samples):
    ranking = critical_difference(samples, names_of(samples), post_hoc=PostHoc.NEMENYI)
    differences = np.abs(ranking.mean_ranks[:, None] - ranking.mean_ranks)
    is_below = differences < ranking.critical_difference
    is_rejected = ranking.friedman_p_value <= 0.05
    np.testing.assert_array_equal(ranking.alike, is_below if is_rejected else True)


def test_nemenyi_needs_rejection_by_friedman():
    """The samples' ranks do not differ, so mean ranks from elsewhere that do are no evidence."""
    samples = np.array([[1.0, 2.0], [2.0, 1.0]] * 10)
    ranking = critical_difference(
        samples, "ab", post_hoc=PostHoc.NEMENYI, mean_ranks=np.array([1.0, 2.0])
    )
    assert ranking.critical_difference < 1
    assert ranking.alike.all()


@given(SAMPLES)
def test_wilcoxon_compares_adjusted_p_values(samples):
    names = names_of(samples)
    # At the usual 0.05 so few samples hardly ever differ.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hpobench_ordered.analysis.significance.ALPHA", 0.3)
        ranking = critical_difference(samples, names, post_hoc=PostHoc.WILCOXON_HOLM)

    order = [names.index(method) for method in ranking.methods]
    p_values = pairwise_wilcoxon(samples, names).adjusted[np.ix_(order, order)]
    np.testing.assert_array_equal(ranking.alike, p_values > 0.3)
    assert np.isnan(ranking.critical_difference)


@given(SAMPLES, st.sampled_from(PostHoc))
def test_methods_are_ordered_by_mean_rank(samples, post_hoc):
    names = names_of(samples)
    ranking = critical_difference(samples, names, post_hoc=post_hoc)
    order = [names.index(method) for method in ranking.methods]
    mean_ranks, _, _ = friedman(samples, names)
    np.testing.assert_array_equal(ranking.mean_ranks, mean_ranks[order])
    assert (np.diff(ranking.mean_ranks) >= 0).all()


@given(st.integers(2, 6), st.data())
def test_groups_are_maximal_alike_ranges(size, data):
    alike = data.draw(hnp.arrays(bool, (size, size)))
    alike = alike | alike.T | np.eye(size, dtype=bool)  # symmetric, and each is like itself
    ranking = ranking_of(alike)

    ranges = [
        (first, last)
        for first, last in itertools.combinations_with_replacement(range(size), 2)
        if alike[first : last + 1, first : last + 1].all()
    ]
    maximal = [group for group in ranges if not any(is_within(group, other) for other in ranges)]
    assert list(ranking.groups) == maximal


def is_within(group: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether a group is part of another, larger one."""
    return group != other and other[0] <= group[0] and group[1] <= other[1]


def test_bars_join_groups_of_several():
    """Methods 0 and 1, of ranks 1 and 2, are alike; method 2, a group by itself, has no bar."""
    alike = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]], dtype=bool)
    assert ranking_of(alike).groups == ((0, 1), (2, 2))
    assert ranking_of(alike).bars == ((1.0, 2.0),)


@given(SAMPLES)
def test_order_of_methods_does_not_matter(samples):
    names = names_of(samples)
    ranking = critical_difference(samples, names, post_hoc=PostHoc.NEMENYI)
    reversed_ranking = critical_difference(samples[:, ::-1], names[::-1], post_hoc=PostHoc.NEMENYI)
    np.testing.assert_allclose(reversed_ranking.mean_ranks, ranking.mean_ranks)
    has_ties = len(set(ranking.mean_ranks)) < len(names)
    if not has_ties:
        assert reversed_ranking.methods == ranking.methods
        assert reversed_ranking.groups == ranking.groups


@ALL_TESTS
def test_tied_methods_form_one_group(post_hoc):
    ranking = critical_difference(np.ones((5, 3)), "abc", post_hoc=post_hoc)
    assert ranking.groups == ((0, 2),)
    assert ranking.friedman_p_value == 1


@ALL_TESTS
def test_single_sample_shows_no_difference(post_hoc):
    ranking = critical_difference(np.array([[1.0, 2, 3]]), "abc", post_hoc=post_hoc)
    assert ranking.groups == ((0, 2),)


@ALL_TESTS
def test_two_different_methods_have_no_bar(post_hoc):
    always_lower = np.arange(40.0).reshape(20, 2) ** 1.1  # a power, so that no differences tie
    ranking = critical_difference(always_lower, "ab", post_hoc=post_hoc)
    assert ranking.methods == ("a", "b")
    assert ranking.groups == ((0, 0), (1, 1))
    assert ranking.bars == ()


@pytest.mark.parametrize(
    ("samples", "methods", "expected"),
    [(30, 3, PostHoc.WILCOXON_HOLM), (6, 9, PostHoc.NEMENYI)],
)
def test_usual_test_depends_on_numbers(samples, methods, expected):
    losses = np.random.default_rng(0).random((samples, methods))
    assert critical_difference(losses, names_of(losses)).post_hoc is expected


def test_single_method_is_refused():
    with pytest.raises(ExperimentError, match="two methods"):
        critical_difference(np.ones((5, 1)), "a")
