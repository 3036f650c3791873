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
    """Value and gradient of Rosenbrock's function."""
    return float(rosen(x)), rosen_der(x)


@pytest.mark.slow
@given(st.integers(0, 10**6), st.integers(2, 30))
def test_bounded_quadratic_is_solved(seed, size):
    """The minimum of x^T A x / 2 - b^T x in a box is as low as scipy's."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((size, size))
    A = root @ root.T + 0.1 * np.eye(size)  # positive definite
    b = rng.standard_normal(size)
    lower, upper = -rng.uniform(0.1, 2, size), rng.uniform(0.1, 2, size)
    # Possibly outside the bounds.
    start = rng.uniform(-3, 3, size)

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        return float(0.5 * x @ A @ x - b @ x), A @ x - b

    value, x = minimise(objective, start, (lower, upper), evaluations=2000, tolerance=1e-12)
    by_scipy = minimize(objective, start, jac=True, bounds=list(zip(lower, upper, strict=True)))
    assert (lower <= x).all()
    assert (x <= upper).all()
    value_at_x, _ = objective(x)
    assert value == value_at_x
    # Scipy stops by a relative tolerance.
    tolerance = 1e-5 * (1.0 + abs(by_scipy.fun))
    assert value < by_scipy.fun + tolerance


def test_rosenbrock_needs_twice_scipys_evaluations():
    """With so many, the minimum is reached: 0, where all ten coordinates are 1."""
    start = np.full(10, -1.2)  # the usual start
    unbounded = (np.full(10, -np.inf), np.full(10, np.inf))
    by_scipy = minimize(rosenbrock, start, jac=True, method="L-BFGS-B")
    evaluations = 2 * by_scipy.nfev
    value, x = minimise(rosenbrock, start, unbounded, evaluations=evaluations, tolerance=1e-15)
    np.testing.assert_allclose(x, 1.0, atol=1e-3)
    assert value < 1e-8


@pytest.mark.parametrize("evaluations", [1, 2, 5])
class TestFewEvaluations:
    start = np.full(4, -1.2)
    bounds = (np.full(4, -2.0), np.full(4, 2.0))

    def test_number_of_evaluations_is_limited(self, evaluations):
        """The function is evaluated at most as often as is allowed."""
        objective = Mock(side_effect=rosenbrock)
        minimise(objective, self.start, self.bounds, evaluations=evaluations, tolerance=0.0)
        assert objective.call_count <= evaluations

    def test_few_evaluations_do_no_harm(self, evaluations):
        """The value belongs to the x that is returned, and is not above that of the start."""
        value, x = minimise(
            rosenbrock, self.start, self.bounds, evaluations=evaluations, tolerance=0.0
        )
        value_at_x, _ = rosenbrock(x)
        value_at_start, _ = rosenbrock(self.start)
        assert value == value_at_x
        assert value <= value_at_start


BOUNDS = (np.array([-9.0]), np.array([9.0]))
"""Lower and upper bound of one number."""


def square_from_half(x: FloatArray) -> tuple[float, FloatArray]:
    """Value and gradient of the square of a number, whose value is infinite below 0.5."""
    if x[0] < 0.5:
        return np.inf, np.zeros(1)
    return float(x[0] ** 2), 2.0 * x


def test_search_steps_back_from_infinite_values():
    """The square of a number is infinite below 0.5, so its smallest finite value is 0.25."""
    start = np.array([3.0])
    value, _ = minimise(square_from_half, start, BOUNDS, evaluations=60, tolerance=0.0)
    assert 0.25 <= value < 0.5
