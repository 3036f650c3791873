import numpy as np
import pytest

from hpobench_ordered.analysis.landscape import best_indices, drift, visible_indices


def test_best_are_first_and_equals_in_order():
    np.testing.assert_array_equal(best_indices(np.array([3.0, 1, 2, 1]), 3), [1, 3, 2])


def test_drift_is_1_if_the_optimum_grows():
    x = np.linspace(0, 1, 101)
    losses = np.abs(x - np.linspace(0.2, 0.8, 7)[:, None])
    assert drift(x, losses, count=5) == pytest.approx(1)
    assert drift(x, losses[::-1], count=5) == pytest.approx(-1)


def test_the_best_of_each_place_is_seen_and_the_best_of_all_last():
    x = np.array([0.0, 0, 1, 1, 2])
    y = np.array([5.0, 5, 5, 6, 5])
    losses = np.array([3.0, 1, 2, 0, 4])
    np.testing.assert_array_equal(visible_indices(x, y, losses), [4, 2, 1, 3])
