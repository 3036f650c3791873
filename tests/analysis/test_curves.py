import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpobench_ordered.analysis import (
    TrialAxis,
    area_under_curve,
    attained_levels,
    attainment,
    incumbents,
)
from hpobench_ordered.errors import ExperimentError

LOSSES = st.integers(0, 2**32).map(
    lambda seed: np.random.default_rng(seed).integers(0, 7, (2, 5, 3, 4)).astype(float)
)


@given(LOSSES, st.sampled_from(list(TrialAxis)))
def test_areas_lie_between_first_and_last_incumbent(losses: np.ndarray, axis: TrialAxis) -> None:
    curves = incumbents(losses)
    area = area_under_curve(curves, axis=axis)
    assert area.shape == (2, 5, 3)
    assert (curves[..., -1] - 1e-9 <= area).all()
    assert (area <= curves[..., 0] + 1e-9).all()
    constant = np.full((2, 7), 3.0)
    np.testing.assert_allclose(area_under_curve(constant, axis=axis), 3)


def test_areas_are_integrals_of_steps() -> None:
    curve = np.array([5.0, 3.0, 2.0, 1.0])
    grid = np.linspace(1, 5, 400_001)[:-1]
    height = curve[grid.astype(int) - 1]
    assert area_under_curve(curve) == pytest.approx(height.mean())
    logarithmic = np.average(height, weights=1 / grid)
    found = area_under_curve(curve, axis=TrialAxis.LOGARITHMIC)
    assert found == pytest.approx(logarithmic, rel=1e-4)
    assert found > area_under_curve(curve)  # early trials count more


def test_on_a_logarithmic_axis_every_doubling_counts_the_same() -> None:
    parts = [np.r_[1.0, np.zeros(6)], np.r_[0, 1, 1, np.zeros(4)], np.r_[np.zeros(3), np.ones(4)]]
    areas = area_under_curve(np.array(parts), axis=TrialAxis.LOGARITHMIC)
    np.testing.assert_allclose(areas, 1 / 3)


@settings(max_examples=25)
@given(LOSSES)
def test_attainment_counts_runs(losses: np.ndarray) -> None:
    levels = np.array([1.0, 3.0])
    found = attainment(incumbents(losses), levels)
    assert found.shape == (2, 3, 4, 2)
    for a, t, m, h in np.ndindex(found.shape):
        attained = [run[: m + 1].min() <= levels[h] for run in losses[a, :, t]]
        assert found[a, t, m, h] == pytest.approx(np.mean(attained))
    assert (np.diff(found, axis=2) >= 0).all()
    assert (np.diff(found, axis=3) >= 0).all()


def test_levels_may_differ_by_task_and_nan_attains_nothing() -> None:
    values = np.zeros((1, 2, 2, 1))
    values[0, 0, 0] = np.nan
    found = attainment(values, np.array([[0.0], [-1.0]]))
    np.testing.assert_array_equal(found[0, :, 0, 0], [0.5, 0])


@settings(max_examples=25)
@given(LOSSES, st.sampled_from([0.2, 0.25, 0.5, 0.6, 0.75, 1.0]))
def test_attained_levels_invert_attainment(losses: np.ndarray, fraction: float) -> None:
    curves = incumbents(losses)
    (found,) = attained_levels(curves, [fraction])
    expected = np.quantile(curves, fraction, axis=1, method="inverted_cdf")
    np.testing.assert_array_equal(found, expected)
    for a, t, m in np.ndindex(found.shape):
        attained = attainment(curves, np.array([found[a, t, m], found[a, t, m] - 0.5]))[a, t, m]
        assert attained[0] >= fraction - 1e-12
        assert attained[1] < fraction


def test_quartiles_of_runs_some_of_which_failed() -> None:
    runs = np.array([1.0, 2, 3, np.inf])[None, :, None, None]
    np.testing.assert_array_equal(attained_levels(runs)[:, 0, 0, 0], [1, 2, 3])
    assert attained_levels(runs, [1.0])[0, 0, 0, 0] == np.inf
    hundred = np.arange(1.0, 101)[None, :, None, None]
    assert attained_levels(hundred, [0.07])[0, 0, 0, 0] == 7  # 0.07 * 100 is a little more


@pytest.mark.parametrize("fraction", [0.0, 1.1])
def test_fractions_beyond_all_runs_are_refused(fraction: float) -> None:
    with pytest.raises(ExperimentError, match="fractions"):
        attained_levels(np.ones((1, 2, 1, 1)), [fraction])
