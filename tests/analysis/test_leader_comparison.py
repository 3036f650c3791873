"""Whether the leader, the method of lowest mean rank, is better than others, on made-up ranks."""

import numpy as np
import pytest
from leader_errors import LeaderCounts, count_leaders

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.leader_comparison import (
    LeaderComparison,
    benchmark_influences,
    compare_with_leader,
    influences,
)

ALL_EQUALLY_GOOD = np.zeros(12)
SIX_EQUALLY_GOOD = np.repeat([0.0, 1.0], 6)  # and six worse ones


def compare_on_one_task(ranks: FloatArray) -> LeaderComparison | None:
    """Compare methods on one benchmark with a single task, by their ranks (seeds, methods)."""
    return compare_with_leader(ranks.mean(axis=0), [influences(ranks, weight=1.0)])


def count_claims(mean_losses: FloatArray, seeds: int) -> LeaderCounts:
    """Make up 100 experiments, and count how often the leader is called better, rightly or not.

    The leader is the method of lowest mean rank. There are four benchmarks, of four tasks each, and
    as many methods as `mean_losses`.
    """
    return count_leaders(mean_losses, benchmarks=4, seeds=seeds, tasks=4, repetitions=100)


@pytest.mark.parametrize("mean_losses", [ALL_EQUALLY_GOOD, SIX_EQUALLY_GOOD])
def test_wrong_leader_is_rarely_called_better(mean_losses):
    """A leader is called better than a method as good in at most 5 % of experiments, the level.

    Such claims are false. Of twelve methods, all are equally good, or the better half is.
    """
    counts = count_claims(mean_losses, seeds=5)
    assert counts.false_claims <= 0.05


def test_chance_on_one_task_is_rarely_called_better():
    """Three methods are equally good, so that the leader leads by chance.

    A claim is false if it is called better than another method.
    """
    equal_losses = np.zeros(3)
    counts = count_leaders(equal_losses, benchmarks=1, seeds=10, tasks=1, repetitions=100)
    assert counts.false_claims <= 0.05


@pytest.mark.parametrize("seeds_of_third", [1, 3])
@pytest.mark.parametrize(("n_methods", "benchmarks", "tasks"), [(12, 1, 1), (3, 2, 4)])
def test_few_seeds_rarely_decide(n_methods, benchmarks, tasks, seeds_of_third):
    """Every third of equally good methods has fewer seeds than the ten of the others.

    So it leads, or is last, by chance more often than these.
    """
    counts = count_leaders(
        np.zeros(n_methods),
        benchmarks=benchmarks,
        tasks=tasks,
        seeds=10,
        seeds_of_third=seeds_of_third,
        repetitions=100,
    )
    assert counts.false_claims <= 0.05


def test_few_samples_have_no_test():
    """The test needs eight samples, here seeds."""
    ranks = np.random.default_rng(0).normal(size=(7, 3))  # (seeds, methods)
    assert compare_on_one_task(ranks) is None


def test_right_leader_is_mostly_found():
    """The best of twelve methods is better than all others by 1.5 standard deviations of a run.

    `best_of_all` is how often it is called better than all others.
    """
    mean_losses = np.append(0.0, np.full(11, 1.5))
    counts = count_claims(mean_losses, seeds=5)
    assert counts.best_of_all >= 0.9


def test_interval_is_above_zero_where_leader_is_better():
    """The interval is of a method's mean rank less the leader's: above 0 if the method is worse.

    Methods 0 and 1 are equally good, so that one of them leads, and the other is not worse.
    """
    rng = np.random.default_rng(0)
    noise = 0.3 * rng.normal(size=(8, 4))  # (seeds, methods)
    ranks = np.array([1.0, 1.0, 2.5, 3.5]) + noise

    comparison = compare_on_one_task(ranks)

    assert comparison is not None
    assert comparison.is_worse.tolist() == [False, False, True, True]
    is_above_zero = comparison.lower > 0
    other_methods = np.delete(np.arange(4), comparison.leader)
    assert (is_above_zero == comparison.is_worse)[other_methods].all()


def test_influences_add_up_to_standard_error():
    """A sample's influence is how far it moves the mean rank; squared, all sum to its variance.

    The mean of these samples has the weight 0.5 in the mean rank.
    """
    n_samples = 6
    ranks = np.random.default_rng(0).normal(size=(n_samples, 3))  # (samples, methods)

    variance = (influences(ranks, weight=0.5) ** 2).sum(axis=0)

    standard_error = ranks.std(axis=0, ddof=1) / np.sqrt(n_samples)
    np.testing.assert_allclose(np.sqrt(variance), 0.5 * standard_error)


def test_few_seeds_borrow_their_variance():
    """The last of three methods has two seeds on the only task, the others have eight.

    The variance of its mean rank is that of the others' mean ranks, which are over more seeds.
    """
    ranks = np.random.default_rng(0).normal(size=(3, 8, 1))  # (methods, seeds, tasks)
    ranks[2, 2:] = np.nan

    (of_seeds, _), borrowed_variances = benchmark_influences(ranks, weight=0.5)

    # Both others compare with one method on eight seeds, and with the last one on two.
    weights = np.repeat([1 / 8 + 1 / 2, 1 / 8], [2, 6])
    n_seeds_of_others = 2**2 / (weights**2).sum()
    variance_of_means = ranks[:2, :, 0].var(axis=1, ddof=1).mean() / 8
    expected = 0.5**2 * variance_of_means * n_seeds_of_others / 2
    np.testing.assert_allclose(borrowed_variances, [0, 0, expected])
    assert not of_seeds[:, 2].any()


def test_borrowed_variance_widens_interval():
    """The mean rank of the last method, which is not the leader, has a variance besides."""
    ranks = np.array([1.0, 2.0, 3.0]) + 0.1 * np.random.default_rng(0).normal(size=(8, 3))
    strata = [influences(ranks, weight=1.0)]

    narrow = compare_with_leader(ranks.mean(axis=0), strata)
    wide = compare_with_leader(ranks.mean(axis=0), strata, np.array([0.0, 0.0, 1.0]))

    assert narrow is not None
    assert wide is not None
    assert narrow.is_worse[2]
    assert not wide.is_worse[2]
    assert wide.upper[2] - wide.lower[2] > narrow.upper[2] - narrow.lower[2]
