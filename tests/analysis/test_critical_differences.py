"""Rankings of methods by mean rank, and which of them are alike by Nemenyi's or Wilcoxon's test."""

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
"""One to six samples (rows) of two to five methods, with ties."""


ALL_TESTS = pytest.mark.parametrize("post_hoc", PostHoc)


def names_of(samples: FloatArray) -> list[str]:
    """Make up a name for each method of samples (samples, methods)."""
    return [f"method-{number}" for number in range(samples.shape[1])]


def ranking_of(alike: BoolArray) -> CriticalDifference:
    """Make a ranking of methods with the ranks 1, 2, ..., of which some are alike."""
    n_methods = len(alike)
    return CriticalDifference(
        methods=tuple(f"method-{number}" for number in range(n_methods)),
        mean_ranks=np.arange(1.0, n_methods + 1),
        alike=alike,
        post_hoc=PostHoc.WILCOXON_HOLM,
        critical_difference=np.nan,
        friedman_p_value=0.01,
        samples=9,
    )


def test_quantiles_are_demsars_table_5():
    """Of two to ten methods: the critical difference in standard errors of a rank difference."""
    published = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
    n_samples = 6

    quantiles = []
    for n_methods in range(2, 11):
        standard_error = np.sqrt(n_methods * (n_methods + 1) / (6 * n_samples))
        quantiles.append(nemenyi_difference(n_methods, n_samples) / standard_error)

    last_digit = 1.1e-3  # may differ by one, as Demsar (2006) rounds twice
    np.testing.assert_allclose(quantiles, published, atol=last_digit)


@given(SAMPLES)
def test_nemenyi_compares_ranks_with_difference(samples):
    """Unless Friedman's test finds no difference at all: then all methods are alike."""
    ranking = critical_difference(samples, names_of(samples), post_hoc=PostHoc.NEMENYI)

    differences = np.abs(ranking.mean_ranks[:, None] - ranking.mean_ranks)
    is_below = differences < ranking.critical_difference
    is_rejected_by_friedman = ranking.friedman_p_value <= 0.05
    expected = is_below if is_rejected_by_friedman else True
    np.testing.assert_array_equal(ranking.alike, expected)


def test_nemenyi_needs_rejection_by_friedman():
    """Friedman's test is of the samples, in which each method wins half; mean ranks are given."""
    samples = np.array([[1.0, 2.0], [2.0, 1.0]] * 10)
    other_mean_ranks = np.array([1.0, 2.0])

    ranking = critical_difference(
        samples, "ab", post_hoc=PostHoc.NEMENYI, mean_ranks=other_mean_ranks
    )

    assert ranking.critical_difference < 1  # the difference of these mean ranks
    assert ranking.alike.all()


@given(SAMPLES)
def test_wilcoxon_compares_adjusted_p_values(samples):
    """At the level 0.3: at the usual 0.05 so few samples hardly ever differ."""
    names = names_of(samples)
    level = 0.3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hpobench_ordered.analysis.significance.ALPHA", level)
        ranking = critical_difference(samples, names, post_hoc=PostHoc.WILCOXON_HOLM)

    order = [names.index(method) for method in ranking.methods]
    p_values = pairwise_wilcoxon(samples, names).adjusted[np.ix_(order, order)]
    np.testing.assert_array_equal(ranking.alike, p_values > level)
    assert np.isnan(ranking.critical_difference)


@given(SAMPLES, st.sampled_from(PostHoc))
def test_methods_are_ordered_by_mean_rank(samples, post_hoc):
    """The mean ranks are those of Friedman's test."""
    names = names_of(samples)
    ranking = critical_difference(samples, names, post_hoc=post_hoc)
    order = [names.index(method) for method in ranking.methods]
    mean_ranks, _, _ = friedman(samples, names)
    np.testing.assert_array_equal(ranking.mean_ranks, mean_ranks[order])
    assert (np.diff(ranking.mean_ranks) >= 0).all()


@given(st.integers(2, 6), st.data())
def test_groups_are_maximal_alike_ranges(n_methods, data):
    """A group is given by its first and its last method."""
    alike = data.draw(hnp.arrays(bool, (n_methods, n_methods)))
    alike = alike | alike.T | np.eye(n_methods, dtype=bool)  # symmetric, and each is like itself

    groups = ranking_of(alike).groups

    alike_ranges = []
    for first, last in itertools.combinations_with_replacement(range(n_methods), 2):
        if alike[first : last + 1, first : last + 1].all():
            alike_ranges.append((first, last))
    maximal = [group for group in alike_ranges if not is_within_another(group, alike_ranges)]
    assert list(groups) == maximal


def is_within_another(group: tuple[int, int], groups: list[tuple[int, int]]) -> bool:
    """Whether a range of methods, from the first to the last, is part of a larger one."""
    first, last = group
    containing = [(start, end) for start, end in groups if start <= first and last <= end]
    return containing != [group]


def test_bars_join_groups_of_several():
    """Methods 0 and 1, of ranks 1 and 2, are alike; method 2, a group by itself, has no bar."""
    alike = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]], dtype=bool)
    assert ranking_of(alike).groups == ((0, 1), (2, 2))
    assert ranking_of(alike).bars == ((1.0, 2.0),)


@given(SAMPLES)
def test_order_of_methods_does_not_matter(samples):
    """Except for methods of the same mean rank, which stay in the order that they come in."""
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
    """It is from the first to the last of three methods."""
    ties = np.ones((5, 3))
    ranking = critical_difference(ties, "abc", post_hoc=post_hoc)
    assert ranking.groups == ((0, 2),)
    assert ranking.friedman_p_value == 1


@ALL_TESTS
def test_single_sample_shows_no_difference(post_hoc):
    """All three methods, from the first to the last, are one group."""
    ranking = critical_difference(np.array([[1.0, 2, 3]]), "abc", post_hoc=post_hoc)
    assert ranking.groups == ((0, 2),)


@ALL_TESTS
def test_two_different_methods_have_no_bar(post_hoc):
    """Method a is better in all 20 samples; the power makes all differences different."""
    losses = np.arange(40.0).reshape(20, 2) ** 1.1
    ranking = critical_difference(losses, "ab", post_hoc=post_hoc)
    assert ranking.methods == ("a", "b")
    assert ranking.groups == ((0, 0), (1, 1))  # each method by itself
    assert ranking.bars == ()


@pytest.mark.parametrize(
    ("samples", "methods", "expected"),
    [(30, 3, PostHoc.WILCOXON_HOLM), (6, 9, PostHoc.NEMENYI)],
)
def test_usual_test_depends_on_numbers(samples, methods, expected):
    """With few samples of many methods Wilcoxon's test can find nothing, whatever they are."""
    losses = np.random.default_rng(0).random((samples, methods))
    ranking = critical_difference(losses, names_of(losses))
    assert ranking.post_hoc is expected


def test_single_method_is_refused():
    with pytest.raises(ExperimentError, match="two methods"):
        critical_difference(np.ones((5, 1)), "a")
