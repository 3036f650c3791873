"""The Gaussian process against finite differences, scikit-learn and high precision."""

import math
from collections.abc import Sequence
from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._gp import compiled, lapack
from hpobench_ordered.methods._gp.acquisition import TAIL, log_expected_improvement
from hpobench_ordered.methods._gp.model import (
    COMPILED_LIMIT,
    GaussianProcess,
    Kernel,
    Priors,
    stack_priors,
    standardise,
)
from hpobench_ordered.methods._model_based import ModelError

ROUTES = (compiled, lapack)
thetas = st.tuples(*[st.floats(-2.0, 2.0)] * 3, st.floats(-9.0, 0.0)).map(np.array)


def observations(n: int, p: int, *, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    y = np.sin(5 * X[:, 0]) + X.sum(axis=1) ** 2 + 0.05 * rng.standard_normal(n)
    return X, standardise(y)


def peer(X: FloatArray, y: FloatArray, theta: FloatArray) -> GaussianProcessRegressor:
    """scikit-learn's process at the same hyperparameters; the noise stays out of predictions."""
    *lengths, signal, noise = np.exp(theta)
    kernel = ConstantKernel(signal) * Matern(lengths, nu=2.5)
    return GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(X, y)


def process(
    X: FloatArray, y: FloatArray, theta: Sequence[float] = (-0.5, 0.1, 0.2, -5.0)
) -> GaussianProcess:
    """Ours, with a length scale a column."""
    return GaussianProcess(X, y, kernel=Kernel(np.arange(X.shape[1])), theta=np.array(theta))


def fitted(X: FloatArray, y: FloatArray) -> GaussianProcess:
    priors, kernel = Priors(), Kernel(np.arange(2))
    start = stack_priors(priors, 2).mean
    return GaussianProcess.fit(X, y, kernel=kernel, starts=[start], priors=priors)


def posterior(route, X, y, groups, theta, mu, w):
    S = compiled.squared_differences(X, groups, int(groups.max()) + 1)
    return route.negative_log_posterior(S, y, theta, mu, w)


def fit(route, X, y, start, lower, upper, mu, w, iterations, tolerance):
    groups = np.arange(X.shape[1])
    S = compiled.squared_differences(X, groups, len(groups))
    return route.fit(S, y, start, lower, upper, mu, w, iterations, tolerance)


@given(st.lists(st.floats(-800.0, 0.0), min_size=1, max_size=200))
def test_exp_in_place_equals_the_library(x):
    values = np.array(x)
    compiled.exp_in_place(values, np.empty(len(x)))
    assert_allclose(values, np.exp(np.maximum(x, -700.0)), rtol=5e-16)


@pytest.mark.parametrize("route", ROUTES)
@given(n=st.integers(1, 40), theta=thetas, seed=st.integers(0, 99), weight=st.sampled_from([0, 1]))
def test_gradient_equals_finite_differences(route, n, theta, seed, weight):
    X, y = observations(n, 3, seed=seed)
    mu, w = np.full(4, 0.3), np.full(4, float(weight))

    def at(theta: FloatArray) -> tuple[float, FloatArray]:
        return posterior(route, X, y, np.array([0, 1, 1]), theta, mu, w)

    value, gradient = at(theta)
    numeric = [(at(theta + step)[0] - at(theta - step)[0]) / 2e-5 for step in 1e-5 * np.eye(4)]
    assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-4 * max(1.0, abs(value) / 100))


@pytest.mark.parametrize("n", [6, COMPILED_LIMIT - 1, COMPILED_LIMIT + 5])
def test_fantasies_keep_the_mean_and_equal_conditioning_on_it(n):
    X, y = observations(n, 2)
    theta = np.array([-0.5, 0.1, 0.2, -5.0])
    model, rng = process(X, y, theta), np.random.default_rng(1)
    pending, candidates = rng.random((3, 2)), rng.random((40, 2))
    fantasised, fantasies = model.with_fantasies(pending)
    assert_array_equal(fantasies, model.predict(pending)[0])
    mean, sd = model.predict(candidates)
    theirs = peer(np.concatenate([X, pending]), np.concatenate([y, fantasies]), theta)
    assert_allclose(fantasised.predict(candidates)[0], mean, atol=1e-3)
    assert (fantasised.predict(candidates)[1] <= sd + 1e-12).all()
    expected = theirs.predict(candidates, return_std=True)
    assert_allclose(fantasised.predict(candidates), expected, atol=1e-7)


@pytest.mark.parametrize("n", [1, 7, 25, COMPILED_LIMIT, COMPILED_LIMIT + 1, 120])
@pytest.mark.parametrize("p", [1, 4])
def test_posterior_and_likelihood_equal_scikit_learn(n, p):
    X, y = observations(n, p)
    theta = np.array([*np.linspace(-1.0, 0.5, p), 0.4, -5.0])
    ours, theirs = process(X, y, theta), peer(X, y, theta)
    candidates = np.random.default_rng(1).random((150, p))
    assert_allclose(
        ours.predict(candidates), theirs.predict(candidates, return_std=True), atol=1e-8
    )
    expected = theirs.log_marginal_likelihood_value_
    assert_allclose(ours.log_marginal_likelihood(), expected, rtol=1e-9, atol=1e-8)


@given(n=st.integers(1, 80), theta=thetas, seed=st.integers(0, 99))
def test_routes_agree(n, theta, seed):
    X, y = observations(n, 3, seed=seed)
    groups, zeros = np.array([0, 1, 1]), np.zeros(4)
    ours, theirs = (posterior(r, X, y, groups, theta, zeros, zeros) for r in ROUTES)
    assert_allclose(ours[0], theirs[0], rtol=1e-9, atol=1e-8)
    assert_allclose(ours[1], theirs[1], rtol=1e-6, atol=1e-5 * (1 + np.abs(ours[1]).max()))
    K, _ = compiled.covariance(compiled.squared_differences(X, groups, 2), theta)
    candidates = np.random.default_rng(seed).random((130, 3))
    predictions = []
    for route in ROUTES:
        positive, R = route.cholesky(K)
        assert positive
        assert_allclose(np.triu(R.T @ R), K, rtol=1e-12, atol=1e-12)
        alpha = compiled.solve(R, y)
        predictions.append(route.predict(X, R, alpha, candidates, groups, theta, 2))
    assert_allclose(*predictions, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("n", [5, 25, 60])
def test_routes_find_the_same_optimum(n):
    X, y = observations(n, 3)
    prior = stack_priors(Priors(), 3)
    bounds = (prior.mean, prior.lower, prior.upper, prior.mean, prior.precision)
    ends = [fit(r, X, y, *bounds, 200, 1e-8) for r in ROUTES]
    assert_allclose(ends[0][1], ends[1][1], atol=1e-4)
    assert_allclose(ends[0][0], ends[1][0], atol=0.02)


def test_fit_stays_inside_the_bounds_and_stops_at_them():
    X, _ = observations(20, 2)
    lower, upper = np.array([-1.0, -1.0, -1.0, -7.0]), np.array([1.0, 1.0, 1.0, -3.0])
    flat, noise = np.zeros(4), np.random.default_rng(0).standard_normal(20)
    for y, bounded in ((X[:, 0], 1), (noise, 3)):  # an irrelevant feature, and noise alone
        start, bounds = flat - 3.0, (lower, upper)
        theta, _ = fit(compiled, X, standardise(y), start, *bounds, flat, flat, 100, 1e-6)
        assert (lower <= theta).all() and (theta <= upper).all()
        assert theta[bounded] == upper[bounded]


def test_fit_improves_on_every_start():
    X, y = observations(25, 3)
    prior = stack_priors(Priors(), 3)
    mean, precision, rng = prior.mean, prior.precision, np.random.default_rng(0)
    for _ in range(20):
        start = mean + rng.standard_normal(5)
        before, _ = posterior(compiled, X, y, np.arange(3), start, mean, precision)
        theta, after = fit(
            compiled, X, y, start, prior.lower, prior.upper, mean, precision, 50, 1e-3
        )
        again, gradient = posterior(compiled, X, y, np.arange(3), theta, mean, precision)
        assert after == again < before
        assert np.abs(gradient).max() < 0.5


@pytest.mark.parametrize("n", [10, 100])
def test_prediction_of_a_candidate_does_not_depend_on_the_others(n):
    model = process(*observations(n, 2), (-1.0, 0.0, 0.0, -6.0))
    candidates = np.random.default_rng(3).random((300, 2))
    together, few = np.array(model.predict(candidates))[:, 37:41], model.predict(candidates[37:41])
    assert_allclose(together, few, rtol=1e-10, atol=1e-12)
    if n <= COMPILED_LIMIT:
        assert_array_equal(together, few)


@pytest.mark.parametrize("n", [30, 100])
def test_observations_at_one_point_and_constant_losses_can_be_fitted(n):
    (X, y), one_point, constant = observations(n, 2), np.full((n, 2), 0.5), np.zeros(n)
    for data in ((one_point, y), (X, constant), (one_point, constant)):
        mean, sd = fitted(*data).predict(np.random.default_rng(0).random((50, 2)))
        assert np.isfinite(mean).all()
        assert (sd >= 0.0).all()


@pytest.mark.parametrize("n", [5, 100])
def test_what_is_not_finite_is_a_model_error(n):
    X, y = observations(n, 2)
    y[0] = math.nan
    with pytest.raises(ModelError):
        fitted(X, y)
    X[0] = math.nan
    with pytest.raises(ModelError):
        process(X, y)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
def test_standardised_losses_are_finite_ordered_and_standard(losses):
    raw = np.array(losses)
    scaled = standardise(raw)
    assert np.isfinite(scaled).all()
    assert (np.diff(scaled[np.argsort(raw, kind="stable")]) >= -1e-12).all()
    if scaled.any():
        assert_allclose([scaled.mean(), scaled.std()], [0.0, 1.0], rtol=1e-9, atol=1e-9)


def test_standardised_losses_keep_small_differences_beside_a_large_offset():
    assert_allclose(standardise(1e12 + np.arange(4.0)), standardise(np.arange(4.0)), rtol=1e-12)


def log_h(z: float) -> float:
    """log(phi(z) + z Phi(z)) in 60 digits, by the Taylor series of the normal integral."""
    getcontext().prec = 400
    x = Decimal(z)
    pi = Decimal(
        "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899"
    )
    normaliser = 1 / (2 * pi).sqrt()
    density = normaliser * (-x * x / 2).exp()
    # Mills ratio by its continued fraction from the far end; converges for every t > 0.
    t = abs(x)
    tail = Decimal(0)
    for k in range(4000, 0, -1):
        tail = k / (t + tail)
    upper = density / (t + tail)
    probability = upper if z < 0 else 1 - upper
    return float((density * tail / (t + tail) if z < 0 else density + x * probability).ln())


@pytest.mark.parametrize(
    "z", [-1e3, -300.0, -38.0, -20.0, -10.1, -10.0, -9.9, -5.0, -2.0, 1.0, 6.0]
)
def test_log_ei_equals_high_precision(z):
    result = log_expected_improvement(np.array([-z]), np.array([1.0]), 0.0)
    assert_allclose(result, log_h(z), rtol=1e-12, atol=1e-12)


@settings(deadline=None)
@given(st.lists(st.floats(-1e4, 50.0), min_size=2, max_size=20, unique=True))
def test_log_ei_is_finite_and_falls_with_the_mean(z):
    mean = -np.sort(np.array([*z, TAIL, np.nextafter(TAIL, 0.0)]))
    result = log_expected_improvement(mean, np.ones(len(mean)), 0.0)
    assert np.isfinite(result).all()
    assert (np.diff(result) >= -1e-12 * np.abs(result[1:])).all()


def test_ei_of_a_known_value_is_minus_infinity():
    result = log_expected_improvement(np.array([-1.0, -1.0]), np.array([0.0, math.nan]), 0.0)
    assert (result == -math.inf).all()


def test_left_out_predictions_are_those_of_a_process_without_the_observation():
    (X, y), theta = observations(12, 3), (-0.5, 0.2, 0.1, 0.0, -3.0)
    mean, sd = process(X, y, theta).predict_leave_one_out()
    for i in range(12):
        without = process(np.delete(X, i, axis=0), np.delete(y, i), theta)
        assert_allclose(np.ravel(without.predict(X[i : i + 1])), [mean[i], sd[i]], rtol=1e-9)


def test_joint_samples_have_the_posterior_mean_and_covariance():
    model = process(*observations(12, 3), (-0.5, 0.2, 0.1, 0.0, -3.0))
    points = np.random.default_rng(1).random((4, 3))
    mean, sd = model.predict(points)
    unit = model.sample(points, np.concatenate([np.zeros((1, 4)), np.eye(4)]))
    assert_allclose(unit[0], mean, rtol=1e-12)
    covariance = (unit[1:] - mean).T @ (unit[1:] - mean)
    assert_allclose(np.sqrt(np.diag(covariance)), sd, rtol=1e-4)
    both, _ = model.with_fantasies(points[:1])  # noise of a pending evaluation: exp(-3)
    shrunk = sd[1] ** 2 - covariance[0, 1] ** 2 / (covariance[0, 0] + np.exp(-3.0))
    assert_allclose(both.predict(points[1:2])[1] ** 2, shrunk, rtol=1e-4)
