import importlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from hpobench_ordered.analysis.bootstrap import MIN_SAMPLES_OF_INTERVAL, mean_intervals
from hpobench_ordered.analysis.samples import Resampling, independent_samples

TIED = st.tuples(
    st.integers(MIN_SAMPLES_OF_INTERVAL, 12), st.integers(1, 5), st.integers(0, 2**32)
).map(lambda drawn: np.random.default_rng(drawn[2]).integers(-4, 5, drawn[:2]).astype(float))


@pytest.fixture
def script(monkeypatch):
    """The measurement of coverage."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "performance")
    return importlib.import_module("interval_coverage")


def _rng() -> np.random.Generator:
    return np.random.default_rng(3)


def _covered(samples: np.ndarray, truth: float) -> float:
    """Per cent of intervals, one a column of samples (n, K), that contain the truth."""
    rng = np.random.default_rng(1)
    batches = np.split(samples, samples.shape[1] // 500, axis=1)
    computed = [mean_intervals(batch, rng=rng, resamples=999) for batch in batches]
    return float(100 * np.mean([(i.lower <= truth) & (truth <= i.upper) for i in computed]))


# 5000 simulations: the standard error of a coverage is 0.31 %.


@pytest.mark.parametrize("count", [10, 20])
@pytest.mark.parametrize("law", [stats.norm(5, 2), stats.gamma(2), stats.expon()])
def test_coverage_is_near_95_percent(law, count):
    samples = law.rvs((count, 5000), random_state=np.random.default_rng(count))
    assert 93 < _covered(samples, law.mean()) < 97


def test_fewer_than_five_samples_undercover(script, monkeypatch):
    ranks = script.mean_rank(1)
    monkeypatch.setattr("hpobench_ordered.analysis.bootstrap.MIN_SAMPLES_OF_INTERVAL", 3)
    drawn = {n: ranks.draw(np.random.default_rng(n), (n, 5000)) for n in (3, 4, 5, 20)}
    covered = {n: _covered(samples, ranks.mean) for n, samples in drawn.items()}
    assert covered[3] < 78 and covered[4] < 88
    assert covered[5] > 89 and covered[20] > 94


def test_interval_agrees_with_bootstrap_t():
    rng = np.random.default_rng(0)
    sample = rng.gamma(3, size=12)
    drawn = sample[rng.integers(12, size=(200_000, 12))]
    ratios = (drawn.mean(axis=1) - sample.mean()) / stats.sem(drawn, axis=1)
    high, low = np.quantile(ratios, [0.975, 0.025])
    expected = sample.mean() - np.array([high, low]) * stats.sem(sample)
    computed = mean_intervals(sample, rng=_rng(), resamples=99_999)
    np.testing.assert_allclose([computed.lower, computed.upper], expected, rtol=0.01)


@pytest.mark.parametrize("count", [501, 1000])
def test_many_samples_get_students_interval(count):
    samples = np.random.default_rng(0).normal(size=(count, 4))
    computed = mean_intervals(samples, rng=_rng(), resamples=999)
    expected = stats.t.interval(
        0.95, count - 1, loc=samples.mean(axis=0), scale=stats.sem(samples, axis=0)
    )
    np.testing.assert_allclose((computed.lower, computed.upper), expected)
    assert computed.samples == count


@given(TIED)
def test_intervals_contain_mean_and_are_bounded(samples):
    computed = mean_intervals(samples, rng=_rng())
    np.testing.assert_allclose(computed.mean, samples.mean(axis=0))
    assert ((computed.lower <= computed.mean) & (computed.mean <= computed.upper)).all()
    student = stats.t.isf(0.025, len(samples) - 1) * samples.std(axis=0, ddof=1)
    student /= np.sqrt(len(samples))
    assert (computed.upper - computed.lower <= 4 * student + 1e-12).all()


@given(
    hnp.arrays(float, (8, 3), elements=st.floats(-100, 100)),
    st.floats(0.1, 10),
    st.floats(-100, 100),
)
def test_intervals_shift_and_scale(samples, scale, shift):
    plain = mean_intervals(samples, rng=_rng())
    moved = mean_intervals(scale * samples + shift, rng=_rng())
    for end in ("lower", "upper"):
        expected = scale * getattr(plain, end) + shift
        np.testing.assert_allclose(getattr(moved, end), expected, rtol=1e-4, atol=1e-4)


def test_interval_does_not_depend_on_others(monkeypatch):
    samples = np.random.default_rng(0).normal(size=(10, 7, 3))
    together = mean_intervals(samples, rng=_rng())
    alone = mean_intervals(samples[:, 4, 1], rng=_rng())
    monkeypatch.setattr("hpobench_ordered.analysis.bootstrap.MAX_NUMBERS_IN_MEMORY", 2 * 1999)
    in_chunks = mean_intervals(samples, rng=_rng())
    assert together.lower.shape == (7, 3)
    assert alone.lower.shape == ()
    np.testing.assert_allclose(together.lower[4, 1], alone.lower)
    np.testing.assert_allclose(together.upper, in_chunks.upper)


def test_constant_and_undefined_samples():
    samples = np.stack([np.full(6, 0.1), np.full(6, np.nan), np.r_[np.inf, np.ones(5)]])
    computed = mean_intervals(samples.T, rng=_rng())
    np.testing.assert_allclose([computed.lower[0], computed.upper[0]], 0.1)
    assert np.isnan([computed.lower[1:], computed.upper[1:]]).all()
    assert np.isnan(mean_intervals(np.ones((0, 2)), rng=_rng()).mean).all()


@pytest.mark.parametrize("count", range(1, MIN_SAMPLES_OF_INTERVAL))
def test_few_samples_have_no_interval(count):
    samples = _rng().random((count, 3))
    few = mean_intervals(samples, rng=_rng())
    np.testing.assert_allclose(few.mean, samples.mean(axis=0))
    assert np.isnan([few.lower, few.upper]).all()
    lacking = np.concatenate([samples, np.full((9, 3), np.nan)])
    assert np.isnan(mean_intervals(lacking, rng=_rng()).lower).all()


def test_ends_are_clipped_to_possible_values():
    samples = np.array([[1, 1, 1, 1, 3], [3, 3, 3, 3, 1], [2, 2, 2.2, 2, 2.1]]).T
    free = mean_intervals(samples, rng=_rng())
    bounded = mean_intervals(samples, rng=_rng(), possible=(1, 3))
    assert free.lower[0] < 1 and free.upper[1] > 3
    np.testing.assert_array_equal(bounded.lower, np.maximum(free.lower, 1))
    np.testing.assert_array_equal(bounded.upper, np.minimum(free.upper, 3))


def test_outlier_does_not_widen_without_bound():
    samples = np.r_[1.0, 1e-6 * np.arange(9)]
    computed = mean_intervals(samples, rng=_rng())
    reach = stats.t.isf(0.025, 9) * stats.sem(samples)
    assert computed.upper - computed.mean <= 2 * reach + 1e-12


def test_samples_are_seeds_or_tasks():
    values = np.random.default_rng(0).random((2, 6, 5, 4))  # (A, S, T, M)
    np.testing.assert_allclose(
        independent_samples(values, Resampling.SEEDS, first_task=1),
        np.swapaxes(values[:, :, 1:].mean(axis=2), 0, 1),
    )
    tasks = independent_samples(values, Resampling.TASKS)
    np.testing.assert_allclose(tasks, np.swapaxes(values.mean(axis=1), 0, 1))
    computed = mean_intervals(tasks, rng=_rng())
    assert computed.samples == 5
    np.testing.assert_allclose(computed.mean, values.mean(axis=(1, 2)))


def test_undefined_tasks_are_left_out():
    values = np.random.default_rng(0).random((2, 6, 5))
    values[1, 3, 2] = np.nan
    for kind, count in ((Resampling.SEEDS, 6), (Resampling.TASKS, 4)):
        computed = mean_intervals(independent_samples(values, kind), rng=_rng())
        np.testing.assert_allclose(computed.mean, np.delete(values, 2, axis=2).mean(axis=(1, 2)))
        assert computed.samples == count
        undefined = independent_samples(np.full((2, 6, 5), np.nan), kind)
        nothing = mean_intervals(undefined, rng=_rng())
        assert np.isnan([nothing.mean, nothing.lower, nothing.upper]).all()


@pytest.mark.slow
def test_coverage_script_measures(script):
    computed = script.measure(script.NORMAL, 10, simulations=600, rng=_rng())
    assert 0.9 < computed.studentised < 0.99
    assert computed.percentile < computed.student
    for distribution in script.DISTRIBUTIONS:
        drawn = distribution.draw(_rng(), (400_000, 1))
        assert drawn.mean() == pytest.approx(distribution.mean, abs=0.02)
        if distribution.skewness < 3:
            assert stats.skew(drawn[:, 0]) == pytest.approx(distribution.skewness, abs=0.15)


def test_missing_samples_change_no_other_mean():
    samples = _rng().normal(size=(8, 3))
    lacking = samples.copy()
    lacking[[1, 4], 1] = np.nan
    whole, part = mean_intervals(samples, rng=_rng()), mean_intervals(lacking, rng=_rng())
    alone = mean_intervals(np.delete(samples[:, 1], [1, 4]), rng=_rng())
    for end in ("mean", "lower", "upper"):
        one, other = getattr(part, end), getattr(whole, end)
        assert (one[0], one[1], one[2]) == (other[0], getattr(alone, end), other[2])
