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

TIED_SAMPLES = hnp.arrays(
    float, st.tuples(st.integers(1, 6), st.integers(2, 5)), elements=st.integers(0, 9).map(float)
)
"""One to six samples (rows) of two to five methods, with ties."""


WITH_EACH_TEST = pytest.mark.parametrize("post_hoc", PostHoc)


def make_names(samples: FloatArray) -> list[str]:
    """Make up a name for each method of samples (samples, methods)."""
    return [f"method-{number}" for number in range(samples.shape[1])]


def make_ranking(alike: BoolArray) -> CriticalDifference:
    """Make a ranking of methods with the ranks 1, 2, ..., of which some are alike.

    What a ranking has beside ranks and likeness does not matter here.
    """
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
    """A critical difference is a quantile times the standard error of a difference of mean ranks.

    Demsar (2006) lists the quantiles for two to ten methods.
    """
    published = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
    n_samples = 10  # any number

    quantiles = []
    for n_methods in range(2, 11):
        standard_error = np.sqrt(n_methods * (n_methods + 1) / (6 * n_samples))
        quantiles.append(nemenyi_difference(n_methods, n_samples) / standard_error)

    # The last digit may differ by one, as the published quantiles are rounded twice.
    np.testing.assert_allclose(quantiles, published, atol=1.1e-3)


@given(TIED_SAMPLES)
def test_nemenyi_compares_ranks_with_difference(samples):
    """Methods are alike if their mean ranks differ by less than the critical difference.

    All are alike if Friedman's test finds no difference at all.
    """
    ranking = critical_difference(samples, make_names(samples), post_hoc=PostHoc.NEMENYI)

    is_different_by_friedman = ranking.friedman_p_value <= 0.05
    if is_different_by_friedman:
        differences = np.abs(ranking.mean_ranks[:, None] - ranking.mean_ranks)
        is_below = differences < ranking.critical_difference
        np.testing.assert_array_equal(ranking.alike, is_below)
    else:
        assert ranking.alike.all()


def test_nemenyi_needs_rejection_by_friedman():
    """Methods are only told apart if Friedman's test, too, finds a difference between them.

    Here it finds none, as each of two methods wins half of the samples. So they are alike, though
    the mean ranks are far apart: a caller may pass others than those of the samples.
    """
    samples = np.array([[1.0, 2.0], [2.0, 1.0]] * 10)
    mean_ranks = np.array([1.0, 2.0])

    ranking = critical_difference(samples, "ab", post_hoc=PostHoc.NEMENYI, mean_ranks=mean_ranks)

    assert mean_ranks[1] - mean_ranks[0] > ranking.critical_difference
    assert ranking.alike.all()


@given(TIED_SAMPLES)
def test_wilcoxon_compares_adjusted_p_values(samples):
    """Methods are alike if the adjusted p-value of the pair is above the level.

    The level is 0.3 here: at the usual 0.05 so few samples would hardly ever differ.
    """
    names = make_names(samples)
    level = 0.3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hpobench_ordered.analysis.significance.ALPHA", level)
        ranking = critical_difference(samples, names, post_hoc=PostHoc.WILCOXON_HOLM)

    order = [names.index(method) for method in ranking.methods]
    samples_in_order = samples[:, order]
    p_values = pairwise_wilcoxon(samples_in_order, ranking.methods).adjusted
    np.testing.assert_array_equal(ranking.alike, p_values > level)
    assert np.isnan(ranking.critical_difference)  # which Nemenyi's test alone has


@given(TIED_SAMPLES, st.sampled_from(PostHoc))
def test_methods_are_ordered_by_mean_rank(samples, post_hoc):
    """Methods are listed from the lowest mean rank to the highest; mean ranks are Friedman's."""
    names = make_names(samples)
    ranking = critical_difference(samples, names, post_hoc=post_hoc)
    order = [names.index(method) for method in ranking.methods]
    mean_ranks, _, _ = friedman(samples, names)
    np.testing.assert_array_equal(ranking.mean_ranks, mean_ranks[order])
    assert (np.diff(ranking.mean_ranks) >= 0).all()


@given(st.integers(2, 6), st.data())
def test_groups_are_maximal_alike_ranges(n_methods, data):
    """A group, given by its first and last method, is a range in which each pair is alike.

    Ranges that are part of a larger one are no groups.
    """
    is_pair_alike = data.draw(hnp.arrays(bool, (n_methods, n_methods)))
    is_itself = np.eye(n_methods, dtype=bool)
    alike = is_pair_alike | is_pair_alike.T | is_itself

    groups = make_ranking(alike).groups

    alike_ranges = []
    for first, last in itertools.combinations_with_replacement(range(n_methods), 2):
        if alike[first : last + 1, first : last + 1].all():
            alike_ranges.append((first, last))
    expected = [group for group in alike_ranges if not is_within_another(group, alike_ranges)]
    assert list(groups) == expected


def is_within_another(group: tuple[int, int], groups: list[tuple[int, int]]) -> bool:
    """Whether a range of methods, from the first to the last, is part of another range."""
    first, last = group
    for other in groups:
        first_of_other, last_of_other = other
        if other != group and first_of_other <= first and last <= last_of_other:
            return True
    return False


def test_bars_join_groups_of_several():
    """Methods 0 and 1, of ranks 1 and 2, are alike; method 2, a group by itself, has no bar."""
    alike = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]], dtype=bool)
    assert make_ranking(alike).groups == ((0, 1), (2, 2))
    assert make_ranking(alike).bars == ((1.0, 2.0),)


@given(TIED_SAMPLES)
def test_order_of_methods_does_not_matter(samples):
    """The order only decides how methods of the same mean rank are listed."""
    names = make_names(samples)
    ranking = critical_difference(samples, names, post_hoc=PostHoc.NEMENYI)
    reversed_ranking = critical_difference(samples[:, ::-1], names[::-1], post_hoc=PostHoc.NEMENYI)
    np.testing.assert_allclose(reversed_ranking.mean_ranks, ranking.mean_ranks)
    has_ties = len(set(ranking.mean_ranks)) < len(names)
    if not has_ties:
        assert reversed_ranking.methods == ranking.methods
        assert reversed_ranking.groups == ranking.groups


@WITH_EACH_TEST
def test_tied_methods_form_one_group(post_hoc):
    """All three methods have the same losses in all samples."""
    ties = np.ones((5, 3))
    ranking = critical_difference(ties, "abc", post_hoc=post_hoc)
    from_first_to_last = (0, 2)
    assert ranking.groups == (from_first_to_last,)
    assert ranking.friedman_p_value == 1


@WITH_EACH_TEST
def test_single_sample_shows_no_difference(post_hoc):
    """A single sample proves nothing: all three methods are one group, though losses differ."""
    ranking = critical_difference(np.array([[1.0, 2, 3]]), "abc", post_hoc=post_hoc)
    from_first_to_last = (0, 2)
    assert ranking.groups == (from_first_to_last,)


@WITH_EACH_TEST
def test_two_different_methods_have_no_bar(post_hoc):
    """A bar joins methods that are alike, which these two are not.

    Method a is better in all 20 samples, by a different margin in each.
    """
    losses_of_a = np.arange(20.0)
    losses_of_b = 1.1 * losses_of_a + 1
    losses = np.stack([losses_of_a, losses_of_b], axis=1)
    ranking = critical_difference(losses, "ab", post_hoc=post_hoc)
    assert ranking.methods == ("a", "b")
    assert ranking.groups == ((0, 0), (1, 1))  # each method by itself
    assert ranking.bars == ()


@pytest.mark.parametrize(
    ("samples", "methods", "expected"),
    [(30, 3, PostHoc.WILCOXON_HOLM), (6, 9, PostHoc.NEMENYI)],
)
def test_usual_test_depends_on_numbers(samples, methods, expected):
    """By default the test is Wilcoxon's, or Nemenyi's where that could find no difference at all.

    With six samples Wilcoxon's p-value is at least 2 / 2^6 = 0.03. Multiplied by the number of
    pairs of nine methods, 36, that is above 0.05.
    """
    losses = np.random.default_rng(0).random((samples, methods))
    ranking = critical_difference(losses, make_names(losses))
    assert ranking.post_hoc is expected


def test_single_method_is_refused():
    with pytest.raises(ExperimentError, match="two methods"):
        critical_difference(np.ones((5, 1)), "a")
