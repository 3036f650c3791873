"""Confidence intervals of means, from resampled t statistics, and the samples that they are of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from hpobench_ordered.analysis.bootstrap import MIN_SAMPLES_OF_INTERVAL, mean_intervals
from hpobench_ordered.analysis.samples import Resampling, independent_samples

TIED_SAMPLES = st.builds(
    lambda seed, shape: np.random.default_rng(seed).integers(-4, 5, shape).astype(float),
    seed=st.integers(0, 2**32),
    shape=st.tuples(st.integers(MIN_SAMPLES_OF_INTERVAL, 12), st.integers(1, 5)),
)
"""Five to twelve samples of one to five means."""


def make_rng() -> np.random.Generator:
    return np.random.default_rng(3)


def measure_coverage(samples: np.ndarray, truth: float) -> float:
    """Compute how many per cent of intervals, one for each column, contain the true mean.

    The columns are taken 500 at a time, which needs less memory.
    """
    rng = np.random.default_rng(1)
    n_batches = samples.shape[1] // 500
    is_covered = []
    for batch in np.split(samples, n_batches, axis=1):
        interval = mean_intervals(batch, rng=rng, resamples=999)
        is_covered.append((interval.lower <= truth) & (truth <= interval.upper))
    return float(100 * np.mean(is_covered))


@pytest.mark.parametrize("law", [stats.norm(5, 2), stats.gamma(2), stats.expon()])
def test_coverage_is_near_95_percent(law):
    """Intervals of 95 % contain the true mean about so often.

    Of 5000 simulated intervals the standard error of the coverage is 0.31 %.
    """
    samples = law.rvs((10, 5000), random_state=np.random.default_rng(10))
    coverage = measure_coverage(samples, law.mean())
    assert 93 < coverage < 97


def test_interval_agrees_with_bootstrap_t():
    """The ends are the mean less quantiles of resampled t statistics times the standard error."""
    rng = np.random.default_rng(0)
    n = 12
    sample = rng.gamma(3, size=n)
    resamples = sample[rng.integers(n, size=(200_000, n))]
    t_statistics = (resamples.mean(axis=1) - sample.mean()) / stats.sem(resamples, axis=1)
    upper_t, lower_t = np.quantile(t_statistics, [0.975, 0.025])

    interval = mean_intervals(sample, rng=make_rng(), resamples=99_999)

    expected_lower = sample.mean() - upper_t * stats.sem(sample)
    expected_upper = sample.mean() - lower_t * stats.sem(sample)
    error_of_resampling = 0.01
    assert interval.lower == pytest.approx(expected_lower, rel=error_of_resampling)
    assert interval.upper == pytest.approx(expected_upper, rel=error_of_resampling)


@given(TIED_SAMPLES)
def test_width_is_at_most_twice_students(samples):
    """Quantiles of resampled t statistics, which may be extreme, are limited."""
    interval = mean_intervals(samples, rng=make_rng())

    n = len(samples)
    standard_error = samples.std(axis=0, ddof=1) / np.sqrt(n)
    students_width = 2 * stats.t.isf(0.025, n - 1) * standard_error
    width = interval.upper - interval.lower
    rounding = 1e-12
    assert (width <= 2 * students_width + rounding).all()


@given(
    hnp.arrays(float, (8, 3), elements=st.floats(-100, 100)),
    st.floats(0.1, 10),
    st.floats(-100, 100),
)
def test_intervals_shift_and_scale(samples, scale, shift):
    """Intervals of samples in another unit are the same intervals in that unit."""
    interval = mean_intervals(samples, rng=make_rng())
    in_other_unit = mean_intervals(scale * samples + shift, rng=make_rng())

    rounding = {"rtol": 1e-4, "atol": 1e-4}  # of samples that nearly cancel
    np.testing.assert_allclose(in_other_unit.lower, scale * interval.lower + shift, **rounding)
    np.testing.assert_allclose(in_other_unit.upper, scale * interval.upper + shift, **rounding)


def test_interval_does_not_depend_on_others():
    """The interval of a mean is the same alone as among 7 x 3 means."""
    samples = np.random.default_rng(0).normal(size=(10, 7, 3))  # ten of each mean
    row, column = 4, 1

    together = mean_intervals(samples, rng=make_rng())
    alone = mean_intervals(samples[:, row, column], rng=make_rng())

    assert together.lower.shape == (7, 3)
    assert alone.lower.shape == ()
    np.testing.assert_allclose(together.lower[row, column], alone.lower)


def test_constant_samples_have_interval_without_width():
    interval = mean_intervals(np.full(6, 0.1), rng=make_rng())
    np.testing.assert_allclose([interval.lower, interval.upper], 0.1)


@pytest.mark.parametrize("samples", [np.full(6, np.nan), np.r_[np.inf, np.ones(5)]])
def test_undefined_samples_have_no_interval(samples):
    interval = mean_intervals(samples, rng=make_rng())
    assert np.isnan([interval.lower, interval.upper]).all()


@pytest.mark.parametrize("count", range(1, MIN_SAMPLES_OF_INTERVAL))
def test_few_samples_have_no_interval(count):
    """An interval needs five samples."""
    samples = make_rng().random((count, 3))
    interval = mean_intervals(samples, rng=make_rng())
    np.testing.assert_allclose(interval.mean, samples.mean(axis=0))
    assert np.isnan([interval.lower, interval.upper]).all()


def test_ends_are_clipped_to_possible_values():
    """Ends beyond the possible values, here from 1 to 3, become the lowest or the highest of them.

    There are five samples of each of three means.
    """
    near_1, near_3, between = [1, 1, 1, 1, 3], [3, 3, 3, 3, 1], [2, 2, 2.2, 2, 2.1]
    samples = np.array([near_1, near_3, between]).T  # (samples, means)

    unbounded = mean_intervals(samples, rng=make_rng())
    bounded = mean_intervals(samples, rng=make_rng(), possible=(1, 3))

    assert unbounded.lower.min() < 1
    assert unbounded.upper.max() > 3
    np.testing.assert_array_equal(bounded.lower, np.maximum(unbounded.lower, 1))
    np.testing.assert_array_equal(bounded.upper, np.minimum(unbounded.upper, 3))


def test_samples_are_means_of_seeds():
    """A sample is a seed's mean over the tasks that count, here without the first."""
    values = np.random.default_rng(0).random((2, 6, 5, 4))  # (methods, seeds, tasks, trials)

    samples = independent_samples(values, Resampling.SEEDS, first_task=1)

    means_over_tasks = values[:, :, 1:].mean(axis=2)  # (methods, seeds, trials)
    seeds_first = means_over_tasks.transpose(1, 0, 2)
    np.testing.assert_allclose(samples, seeds_first)


def test_samples_are_means_of_tasks():
    """A sample is a task's mean over all seeds."""
    values = np.random.default_rng(0).random((2, 6, 5, 4))  # (methods, seeds, tasks, trials)

    samples = independent_samples(values, Resampling.TASKS)

    means_over_seeds = values.mean(axis=1)  # (methods, tasks, trials)
    tasks_first = means_over_seeds.transpose(1, 0, 2)
    np.testing.assert_allclose(samples, tasks_first)


@pytest.mark.parametrize(("kind", "count"), [(Resampling.SEEDS, 6), (Resampling.TASKS, 4)])
def test_undefined_tasks_are_left_out(kind, count):
    """Task 2 is left out for all methods and seeds, as one value on it is undefined.

    Six samples are left if they are seeds, and four of five if they are tasks.
    """
    values = np.random.default_rng(0).random((2, 6, 5))  # (methods, seeds, tasks)
    method, seed, task = 1, 3, 2
    values[method, seed, task] = np.nan

    interval = mean_intervals(independent_samples(values, kind), rng=make_rng())

    values_on_defined_tasks = np.delete(values, task, axis=2)
    np.testing.assert_allclose(interval.mean, values_on_defined_tasks.mean(axis=(1, 2)))
    assert interval.samples == count


@pytest.mark.parametrize("kind", [Resampling.SEEDS, Resampling.TASKS])
def test_no_defined_task_has_no_mean(kind):
    """The mean is undefined where values of all tasks are NaN."""
    values = np.full((2, 6, 5), np.nan)  # (methods, seeds, tasks)
    interval = mean_intervals(independent_samples(values, kind), rng=make_rng())
    assert np.isnan([interval.mean, interval.lower, interval.upper]).all()


def test_missing_samples_are_left_out_of_their_mean():
    """The interval is that of the six samples of eight that are not missing."""
    samples = make_rng().normal(size=8)
    samples[[1, 4]] = np.nan
    defined_samples = np.delete(samples, [1, 4])

    interval = mean_intervals(samples, rng=make_rng())

    expected = mean_intervals(defined_samples, rng=make_rng())
    assert interval.mean == expected.mean
    assert interval.lower == expected.lower
    assert interval.upper == expected.upper
