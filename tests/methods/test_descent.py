"""L-BFGS in a box beside scipy's."""

from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, rosen, rosen_der

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._blr.descent import minimise


def rosenbrock(x: FloatArray) -> tuple[float, FloatArray]:
    return float(rosen(x)), rosen_der(x)


@pytest.mark.slow
@given(st.integers(0, 10**6), st.integers(2, 30))
def test_a_quadratic_in_a_box_is_solved_as_by_scipy(seed, size):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((size, size))
    A, b = root @ root.T + 0.1 * np.eye(size), rng.standard_normal(size)
    lower, upper = -rng.uniform(0.1, 2, size), rng.uniform(0.1, 2, size)

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        return float(0.5 * x @ A @ x - b @ x), A @ x - b

    start = rng.uniform(-3, 3, size)
    value, x = minimise(objective, start, (lower, upper), evaluations=2000, tolerance=1e-12)
    expected = minimize(objective, start, jac=True, bounds=list(zip(lower, upper, strict=True)))
    assert (lower <= x).all() and (x <= upper).all()
    assert value == objective(x)[0]
    assert value < expected.fun + 1e-5 * (1.0 + abs(expected.fun))


def test_rosenbrock_within_few_evaluations_more_than_scipy():
    start, box = np.full(10, -1.2), (np.full(10, -np.inf), np.full(10, np.inf))
    by_scipy = minimize(rosenbrock, start, jac=True, method="L-BFGS-B")
    value, x = minimise(rosenbrock, start, box, evaluations=2 * by_scipy.nfev, tolerance=1e-15)
    np.testing.assert_allclose(x, 1.0, atol=1e-3)
    assert value < 1e-8


@pytest.mark.parametrize("allowed", [1, 2, 5])
def test_no_more_evaluations_than_allowed_and_never_worse_than_the_start(allowed):
    start, box = np.full(4, -1.2), (np.full(4, -2.0), np.full(4, 2.0))
    counted = Mock(side_effect=rosenbrock)
    value, x = minimise(counted, start, box, evaluations=allowed, tolerance=0.0)
    assert counted.call_count <= allowed
    assert value == rosenbrock(x)[0] <= rosenbrock(start)[0]


def test_it_steps_back_from_where_there_is_no_value():
    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        if x[0] < 0.5:
            return np.inf, np.zeros(1)
        return float(x[0] ** 2), 2.0 * x

    box = (np.array([-9.0]), np.array([9.0]))
    value, _ = minimise(objective, np.array([3.0]), box, evaluations=60, tolerance=0.0)
    assert 0.25 <= value < 0.5
    nowhere = minimise(objective, np.array([0.1]), box, evaluations=60, tolerance=0.0)
    assert nowhere == (np.inf, np.array([0.1]))
