import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hpobench_ordered.analysis.significance import (
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


@pytest.mark.parametrize(
    ("alpha", "published"),
    [
        (0.05, [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]),
        (0.10, [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920]),
    ],
)
def test_quantiles_are_demsars_table_5(alpha, published):
    comparison = [
        nemenyi_difference(count, 6, alpha=alpha) / np.sqrt(count * (count + 1) / 36)
        for count in range(2, 11)
    ]
    np.testing.assert_allclose(comparison, published, atol=1.1e-3)  # he rounds twice


@given(SAMPLES, st.sampled_from(list(PostHoc)))
def test_groups_are_the_maximal_runs_of_methods_that_do_not_differ(samples, post_hoc):
    names = [f"m{place}" for place in range(samples.shape[1])]
    with pytest.MonkeyPatch.context() as patch:  # at 0.05 so few samples hardly ever differ
        patch.setattr("hpobench_ordered.analysis.significance.ALPHA", 0.3)
        comparison = critical_difference(samples, names, post_hoc=post_hoc)
    order = [names.index(method) for method in comparison.methods]
    ranks = friedman(samples, names)[0][order]
    np.testing.assert_array_equal(comparison.mean_ranks, ranks)
    assert (np.diff(ranks) >= 0).all()
    if post_hoc is PostHoc.NEMENYI:
        alike = np.abs(ranks[:, None] - ranks) < comparison.critical_difference
    else:
        assert np.isnan(comparison.critical_difference)
        alike = pairwise_wilcoxon(samples, names).adjusted[np.ix_(order, order)] > 0.3
    np.testing.assert_array_equal(comparison.alike, alike)
    size = len(names)
    runs = [
        (a, b)
        for a, b in itertools.combinations_with_replacement(range(size), 2)
        if alike[a : b + 1, a : b + 1].all()
    ]
    maximal = [
        run for run in runs if not any(o != run and o[0] <= run[0] and run[1] <= o[1] for o in runs)
    ]
    assert list(comparison.groups) == maximal
    assert {place for a, b in comparison.groups for place in range(a, b + 1)} == set(range(size))
    assert len(comparison.bars) == sum(a < b for a, b in comparison.groups)


@given(SAMPLES)
def test_the_order_of_methods_does_not_matter(samples):
    names = [f"m{place}" for place in range(samples.shape[1])]
    back = list(reversed(range(len(names))))
    plain = critical_difference(samples, names, post_hoc=PostHoc.NEMENYI)
    turned = [names[place] for place in back]
    mixed = critical_difference(samples[:, back], turned, post_hoc=PostHoc.NEMENYI)
    np.testing.assert_allclose(mixed.mean_ranks, plain.mean_ranks)
    if len(set(plain.mean_ranks)) == len(names):
        assert mixed.methods == plain.methods
        assert mixed.groups == plain.groups


def test_ties_single_tasks_and_two_methods_have_results():
    for post_hoc in PostHoc:
        tied = critical_difference(np.ones((5, 3)), "abc", post_hoc=post_hoc)
        assert tied.groups == ((0, 2),)
        assert tied.friedman_p_value == 1
        single = critical_difference(np.array([[1.0, 2, 3]]), "abc", post_hoc=post_hoc)
        assert single.groups == ((0, 2),)
        two = critical_difference(np.arange(40.0).reshape(20, 2) ** 1.1, "ab", post_hoc=post_hoc)
        assert two.methods == ("a", "b")
        assert two.groups == ((0, 0), (1, 1))
        assert two.bars == ()
    assert critical_difference(np.ones((30, 3)), "abc").post_hoc is PostHoc.WILCOXON_HOLM


def test_of_many_methods_and_few_samples_ranks_decide():
    samples = np.random.default_rng(0).random((6, 9))
    assert critical_difference(samples, "abcdefghi").post_hoc is PostHoc.NEMENYI
    with pytest.raises(ExperimentError, match="two methods"):
        critical_difference(np.ones((5, 1)), "a")
