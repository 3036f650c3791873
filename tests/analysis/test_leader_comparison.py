"""Whether the leader, the method of lowest mean rank, is better than others, on made-up ranks."""

import numpy as np
import pytest
from leader_errors import LeaderCounts, count_leaders

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.leader_comparison import (
    LeaderComparison,
    compare_with_leader,
    influences,
)

EQUAL = np.zeros(12)
HALF_EQUAL = np.repeat([0.0, 1.0], 6)  # six equally good methods, and six worse ones


def comparison_of(ranks: FloatArray) -> LeaderComparison | None:
    """Compare methods on one benchmark with a single task, by their ranks (seeds, methods)."""
    return compare_with_leader(ranks.mean(axis=0), [influences(ranks, weight=1.0)])


def simulate(quality: FloatArray, seeds: int) -> LeaderCounts:
    """Count how often the leader is called better, of methods whose mean losses are `quality`."""
    return count_leaders(quality, benchmarks=4, seeds=seeds, tasks=4, repetitions=100)


@pytest.mark.parametrize("seeds", [5, 10])
@pytest.mark.parametrize("quality", [EQUAL, HALF_EQUAL])
def test_wrong_leader_is_rarely_called_better(quality, seeds):
    """Of twelve methods, all are equally good, or the better half is."""
    counts = simulate(quality, seeds)
    # How often a method that is no worse is called worse than the leader.
    assert counts.false_claims <= 0.05


@pytest.mark.parametrize("n_methods", [3, 30])
def test_chance_on_one_task_is_rarely_called_better(n_methods):
    """All methods are equally good, so that the leader leads by chance."""
    counts = count_leaders(np.zeros(n_methods), benchmarks=1, seeds=10, tasks=1, repetitions=100)
    # How often a method that is no worse is called worse than the leader.
    assert counts.false_claims <= 0.05


def test_few_samples_have_no_test():
    """The test needs eight samples, here seeds."""
    ranks = np.random.default_rng(0).normal(size=(7, 3))  # (seeds, methods)
    assert comparison_of(ranks) is None


@pytest.mark.parametrize("seeds", [5, 10])
def test_right_leader_is_mostly_found(seeds):
    """The best of twelve methods is better than all others by 1.5 standard deviations of a run."""
    mean_losses = np.append(0.0, np.full(11, 1.5))
    counts = simulate(mean_losses, seeds)
    # How often it is called better than all others.
    assert counts.best_of_all >= 0.9


def test_interval_is_above_zero_where_leader_is_better():
    """Methods 0 and 1 are equally good, so that the leader is one of them."""
    rng = np.random.default_rng(0)
    noise = 0.3 * rng.normal(size=(8, 4))  # (seeds, methods)
    ranks = np.array([1.0, 1.0, 2.5, 3.5]) + noise

    comparison = comparison_of(ranks)

    assert comparison is not None
    is_other = np.arange(4) != comparison.leader
    np.testing.assert_array_equal(comparison.lower[is_other] > 0, comparison.is_worse[is_other])
    assert comparison.is_worse.tolist() == [False, False, True, True]


def test_constant_differences_have_no_test():
    """Differences that are the same with all nine seeds have no error to be compared with."""
    constant_ranks = np.tile([1.0, 2.0, 3.0], (9, 1))
    assert comparison_of(constant_ranks) is None


def test_influences_add_up_to_standard_error():
    """The squared influences of samples on a mean rank sum to its variance."""
    n_samples = 6
    ranks = np.random.default_rng(0).normal(size=(n_samples, 3))  # (samples, methods)
    weight = 0.5  # of these samples' mean in the mean rank

    variance = (influences(ranks, weight) ** 2).sum(axis=0)

    standard_error = ranks.std(axis=0, ddof=1) / np.sqrt(n_samples)
    np.testing.assert_allclose(np.sqrt(variance), weight * standard_error)


def test_missing_seed_has_no_influence():
    ranks = np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 4.0]])  # (seeds, methods)
    influence = influences(ranks, weight=1.0)
    assert influence[1, 1] == 0
