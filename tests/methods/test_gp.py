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

MODULES = (compiled, lapack)
"""Both implement the same functions, for few observations and for many."""

thetas = st.tuples(*[st.floats(-2.0, 2.0)] * 3, st.floats(-9.0, 0.0)).map(np.array)
"""Two log length scales, log signal variance, log noise variance."""

GROUPS = np.array([0, 1, 1])
"""Three feature columns, of which the last two share a length scale."""


def make_observations(n: int, p: int, *, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Features (n, p) and standardised losses (n,) of a smooth function with little noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    y = np.sin(5 * X[:, 0]) + X.sum(axis=1) ** 2 + 0.05 * rng.standard_normal(n)
    return X, standardise(y)


def scikit_learn_process(
    X: FloatArray, y: FloatArray, theta: Sequence[float]
) -> GaussianProcessRegressor:
    """scikit-learn's process at the same hyperparameters; the noise stays out of predictions."""
    *lengths, signal, noise = np.exp(theta)
    kernel = ConstantKernel(signal) * Matern(lengths, nu=2.5)
    return GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(X, y)


def make_process(
    X: FloatArray, y: FloatArray, theta: Sequence[float] = (-0.5, 0.1, 0.2, -5.0)
) -> GaussianProcess:
    """Our process, with a length scale a column."""
    return GaussianProcess(X, y, kernel=Kernel(np.arange(X.shape[1])), theta=np.array(theta))


def fit_process(X: FloatArray, y: FloatArray) -> GaussianProcess:
    """Our process, fitted from the prior's mean."""
    priors, kernel = Priors(), Kernel(np.arange(X.shape[1]))
    start = stack_priors(priors, kernel.length_scales).mean
    return GaussianProcess.fit(X, y, kernel=kernel, starts=[start], priors=priors)


def negative_log_posterior(module, X, y, theta, *, groups=GROUPS, mean=None, precision=None):
    """Value and gradient by one of the two modules; the prior is flat by default."""
    zeros = np.zeros(len(theta))
    mean = zeros if mean is None else mean
    precision = zeros if precision is None else precision  # a normal prior of infinite variance
    S = compiled.squared_differences(X, groups, int(groups.max()) + 1)
    return module.negative_log_posterior(S, y, theta, mean, precision)


def fit_theta(module, X, y, start, lower, upper, *, mean, precision, iterations=50, tolerance=1e-3):
    """Theta of the highest posterior density within bounds, with a length scale a column."""
    groups = np.arange(X.shape[1])
    S = compiled.squared_differences(X, groups, len(groups))
    return module.fit(S, y, start, lower, upper, mean, precision, iterations, tolerance)


@given(st.lists(st.floats(-800.0, 0.0), min_size=1, max_size=200))
def test_exp_in_place_equals_numpy(x):
    values = np.array(x)
    compiled.exp_in_place(values, np.empty(len(x)))
    # Below -700 it stays at exp(-700).
    assert_allclose(values, np.exp(np.maximum(x, -700.0)), rtol=5e-16)


@pytest.mark.parametrize("module", MODULES)
@given(n=st.integers(1, 40), theta=thetas, seed=st.integers(0, 99), weight=st.sampled_from([0, 1]))
def test_gradient_equals_finite_differences(module, n, theta, seed, weight):
    """Of both implementations, with a flat prior (weight 0) and a normal one (weight 1)."""
    X, y = make_observations(n, 3, seed=seed)
    prior = {"mean": np.full(4, 0.3), "precision": np.full(4, float(weight))}

    value, gradient = negative_log_posterior(module, X, y, theta, **prior)

    differences = []
    for step in 1e-5 * np.eye(4):
        above, _ = negative_log_posterior(module, X, y, theta + step, **prior)
        below, _ = negative_log_posterior(module, X, y, theta - step, **prior)
        differences.append((above - below) / 2e-5)
    assert_allclose(gradient, differences, rtol=1e-5, atol=1e-4 * max(1.0, abs(value) / 100))


class TestFantasies:
    """Pending evaluations are assumed to give the posterior mean."""

    pending, candidates = np.split(np.random.default_rng(1).random((43, 2)), [3])

    @pytest.fixture(params=[6, COMPILED_LIMIT - 1, COMPILED_LIMIT + 5])
    def data(self, request):
        """Observations: fewer than are computed by compiled functions, more only with the pending
        evaluations, and more without them.
        """
        return make_observations(request.param, 2)

    def test_fantasies_are_posterior_mean(self, data):
        """Fantasies are the losses that pending evaluations are assumed to have."""
        model = make_process(*data)
        _, fantasies = model.with_fantasies(self.pending)
        mean, _ = model.predict(self.pending)
        assert_array_equal(fantasies, mean)

    def test_fantasies_keep_mean_and_shrink_deviation(self, data):
        model = make_process(*data)
        with_fantasies, _ = model.with_fantasies(self.pending)
        mean, sd = model.predict(self.candidates)
        new_mean, new_sd = with_fantasies.predict(self.candidates)
        # Fantasies are observed with noise, so the mean hardly moves; 1e-12 is for rounding.
        assert_allclose(new_mean, mean, atol=1e-3)
        assert (new_sd <= sd + 1e-12).all()

    def test_fantasies_count_as_observations(self, data):
        """scikit-learn's process is fitted to observations and fantasies together."""
        X, y = data
        theta = (-0.5, 0.1, 0.2, -5.0)
        with_fantasies, fantasies = make_process(X, y, theta).with_fantasies(self.pending)
        all_X, all_y = np.concatenate([X, self.pending]), np.concatenate([y, fantasies])
        reference = scikit_learn_process(all_X, all_y, theta)
        expected = reference.predict(self.candidates, return_std=True)
        assert_allclose(with_fantasies.predict(self.candidates), expected, atol=1e-7)


@pytest.mark.parametrize("n", [1, 7, 25, COMPILED_LIMIT, COMPILED_LIMIT + 1, 120])
@pytest.mark.parametrize("p", [1, 4])
class TestAgainstScikitLearn:
    def make_processes(self, n, p):
        """Our process and scikit-learn's, with the same hyperparameters on the same n points."""
        X, y = make_observations(n, p)
        # p log length scales, log signal and log noise.
        theta = [*np.linspace(-1.0, 0.5, p), 0.4, -5.0]
        return make_process(X, y, theta), scikit_learn_process(X, y, theta)

    def test_posterior_equals_scikit_learns(self, n, p):
        ours, theirs = self.make_processes(n, p)
        candidates = np.random.default_rng(1).random((150, p))
        expected = theirs.predict(candidates, return_std=True)
        assert_allclose(ours.predict(candidates), expected, atol=1e-8)

    def test_likelihood_equals_scikit_learns(self, n, p):
        ours, theirs = self.make_processes(n, p)
        expected = theirs.log_marginal_likelihood_value_
        assert_allclose(ours.log_marginal_likelihood(), expected, rtol=1e-9, atol=1e-8)


class TestBothModules:
    @given(n=st.integers(1, 80), theta=thetas, seed=st.integers(0, 99))
    def test_both_modules_compute_same_density(self, n, theta, seed):
        """The compiled functions, for few observations, and those of LAPACK, for many."""
        X, y = make_observations(n, 3, seed=seed)
        value, gradient = negative_log_posterior(compiled, X, y, theta)
        other_value, other_gradient = negative_log_posterior(lapack, X, y, theta)
        assert_allclose(value, other_value, rtol=1e-9, atol=1e-8)
        tolerance = 1e-5 * (1 + np.abs(gradient).max())
        assert_allclose(gradient, other_gradient, rtol=1e-6, atol=tolerance)

    @pytest.mark.parametrize("module", MODULES)
    @given(n=st.integers(1, 80), theta=thetas, seed=st.integers(0, 99))
    def test_cholesky_factor_gives_back_covariance(self, module, n, theta, seed):
        """Only the upper triangle of K is filled and compared."""
        X, _ = make_observations(n, 3, seed=seed)
        K, _ = compiled.covariance(compiled.squared_differences(X, GROUPS, 2), theta)
        is_positive_definite, R = module.cholesky(K)
        assert is_positive_definite
        assert_allclose(np.triu(R.T @ R), K, rtol=1e-12, atol=1e-12)

    @given(n=st.integers(1, 80), theta=thetas, seed=st.integers(0, 99))
    def test_both_modules_predict_the_same(self, n, theta, seed):
        """With the Cholesky factor R of the covariance, and alpha, the solution of K alpha = y."""
        X, y = make_observations(n, 3, seed=seed)
        # Two length scales for three features.
        K, _ = compiled.covariance(compiled.squared_differences(X, GROUPS, 2), theta)
        candidates = np.random.default_rng(seed).random((130, 3))
        predictions = []
        for module in MODULES:
            _, R = module.cholesky(K)
            alpha = compiled.solve(R, y)
            predictions.append(module.predict(X, R, alpha, candidates, GROUPS, theta, 2))
        by_compiled, by_lapack = predictions
        assert_allclose(by_compiled, by_lapack, rtol=1e-7, atol=1e-8)

    @pytest.mark.parametrize("n", [5, 25, 60])
    def test_both_modules_find_same_optimum(self, n):
        """The compiled functions and those of LAPACK, from the same start, with n observations."""
        X, y = make_observations(n, 3)
        prior = stack_priors(Priors(), 3)
        theta_and_value = []
        for module in MODULES:
            options = {"mean": prior.mean, "precision": prior.precision, "iterations": 200}
            theta_and_value.append(
                fit_theta(
                    module, X, y, prior.mean, prior.lower, prior.upper, tolerance=1e-8, **options
                )
            )
        # A flat optimum: the value is more certain than theta.
        (theta, value), (other_theta, other_value) = theta_and_value
        assert_allclose(value, other_value, atol=1e-4)
        assert_allclose(theta, other_theta, atol=0.02)


X_OF_TWENTY = make_observations(20, 2)[0]


@pytest.mark.parametrize(
    ("losses", "coordinate"),
    [
        pytest.param(X_OF_TWENTY[:, 0], 1, id="the second feature is irrelevant"),
        pytest.param(np.random.default_rng(0).standard_normal(20), 3, id="all is noise"),
    ],
)
def test_fit_stops_at_bounds(losses, coordinate):
    """The log length scale of a feature that is irrelevant, or the log noise, goes to its bound.

    theta: two log length scales (coordinates 0 and 1), log signal and log noise (3).
    """
    lower, upper = np.array([-1.0, -1.0, -1.0, -7.0]), np.array([1.0, 1.0, 1.0, -3.0])
    flat = {"mean": np.zeros(4), "precision": np.zeros(4)}
    options = {"iterations": 100, "tolerance": 1e-6}
    # Outside three of the bounds.
    start = np.full(4, -3.0)
    theta, _ = fit_theta(
        compiled, X_OF_TWENTY, standardise(losses), start, lower, upper, **flat, **options
    )
    assert (lower <= theta).all()
    assert (theta <= upper).all()
    assert theta[coordinate] == upper[coordinate]


@pytest.mark.parametrize("seed", range(20))
def test_fit_improves_on_start(seed):
    """From random hyperparameters around the mean of their prior."""
    X, y = make_observations(25, 3)
    priors = stack_priors(Priors(), 3)
    prior = {"mean": priors.mean, "precision": priors.precision}
    # Three log length scales, log signal and log noise.
    start = priors.mean + np.random.default_rng(seed).standard_normal(5)
    before, _ = negative_log_posterior(compiled, X, y, start, groups=np.arange(3), **prior)

    theta, after = fit_theta(compiled, X, y, start, priors.lower, priors.upper, **prior)

    value, gradient = negative_log_posterior(compiled, X, y, theta, groups=np.arange(3), **prior)
    assert after == value < before
    # Near the optimum, where the gradient is 0.
    assert np.abs(gradient).max() < 0.5


@pytest.mark.parametrize("n", [10, 100])
def test_prediction_ignores_other_candidates(n):
    """Four candidates are predicted alone and among 300: with few observations, which compiled
    functions compute, to the bit the same.
    """
    model = make_process(*make_observations(n, 2), (-1.0, 0.0, 0.0, -6.0))
    candidates = np.random.default_rng(3).random((300, 2))
    four = slice(37, 41)  # in the middle, not at the start of a block
    among_others = np.array(model.predict(candidates))[:, four]
    alone = np.array(model.predict(candidates[four]))
    assert_allclose(among_others, alone, rtol=1e-10, atol=1e-12)
    if n <= COMPILED_LIMIT:
        assert_array_equal(among_others, alone)


@pytest.mark.parametrize("has_one_point", [False, True])
@pytest.mark.parametrize("has_constant_losses", [False, True])
@pytest.mark.parametrize("n", [30, 100])
def test_degenerate_observations_can_be_fitted(n, has_one_point, has_constant_losses):
    """All configurations equal, all losses equal, or both."""
    X, y = make_observations(n, 2)
    if has_one_point:
        X = np.full((n, 2), 0.5)
    if has_constant_losses:
        y = np.zeros(n)
    mean, sd = fit_process(X, y).predict(np.random.default_rng(0).random((50, 2)))
    assert np.isfinite(mean).all()
    assert (sd >= 0.0).all()


@pytest.mark.parametrize("n", [5, 100])
def test_losses_that_are_nan_are_refused(n):
    """One of n losses is NaN."""
    # Few observations are compiled, many go to LAPACK.
    X, y = make_observations(n, 2)
    y[0] = math.nan
    with pytest.raises(ModelError):
        fit_process(X, y)


@pytest.mark.parametrize("n", [5, 100])
def test_features_that_are_nan_are_refused(n):
    """The features of one of n observations are NaN."""
    # Few observations are compiled, many go to LAPACK.
    X, y = make_observations(n, 2)
    X[0] = math.nan
    with pytest.raises(ModelError):
        make_process(X, y)


ANY_LOSSES = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30)
"""Finite losses of any size, also near the largest floating-point number."""


@given(ANY_LOSSES)
def test_standardised_losses_keep_their_order(losses):
    raw = np.array(losses)
    scaled = standardise(raw)
    assert np.isfinite(scaled).all()
    scaled_by_raw_order = scaled[np.argsort(raw, kind="stable")]
    # Up to rounding.
    assert (np.diff(scaled_by_raw_order) >= -1e-12).all()


@given(ANY_LOSSES)
def test_standardised_losses_have_unit_variance(losses):
    """And mean 0; equal losses all become 0."""
    scaled = standardise(np.array(losses))
    if scaled.any():
        assert_allclose([scaled.mean(), scaled.std()], [0.0, 1.0], rtol=1e-9, atol=1e-9)


def test_standardising_ignores_offset():
    assert_allclose(standardise(1e12 + np.arange(4.0)), standardise(np.arange(4.0)), rtol=1e-12)


PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")


def log_h(z: float) -> float:
    """log(phi(z) + z Phi(z)) in 60 digits, from Mills' ratio by its continued fraction."""
    getcontext().prec = 400
    t = abs(Decimal(z))
    density = (-t * t / 2).exp() / (2 * PI).sqrt()

    # c / (t + c) is 1 - t R(t), as in `acquisition`; from the far end it converges for t > 0.
    c = Decimal(0)
    for k in range(4000, 0, -1):
        c = k / (t + c)
    upper_tail = density / (t + c)
    h = density * c / (t + c) if z < 0 else density + t * (1 - upper_tail)
    return float(h.ln())


@pytest.mark.parametrize(
    "z", [-1e3, -300.0, -38.0, -20.0, -10.1, -10.0, -9.9, -5.0, -2.0, 1.0, 6.0]
)
def test_log_ei_equals_high_precision(z):
    """On both sides of 0 and far into the tail, where naive formulas lose all digits."""
    # With mean -z, deviation 1 and incumbent 0, EI is phi(z) + z Phi(z).
    result = log_expected_improvement(np.array([-z]), np.array([1.0]), 0.0)
    assert_allclose(result, log_h(z), rtol=1e-12, atol=1e-12)


@settings(deadline=None)
@given(st.lists(st.floats(-1e4, 50.0), min_size=2, max_size=20, unique=True))
def test_log_ei_falls_with_the_mean(z):
    # Also on both sides of TAIL, where another formula takes over.
    mean = -np.sort(np.array([*z, TAIL, np.nextafter(TAIL, 0.0)]))
    result = log_expected_improvement(mean, np.ones(len(mean)), 0.0)
    assert np.isfinite(result).all()
    assert (np.diff(result) >= -1e-12 * np.abs(result[1:])).all()


def test_known_value_cannot_improve():
    """A standard deviation of 0 or NaN gives a log expected improvement of -infinity."""
    result = log_expected_improvement(np.array([-1.0, -1.0]), np.array([0.0, math.nan]), 0.0)
    assert (result == -math.inf).all()


def test_leave_one_out_equals_refitting():
    X, y = make_observations(12, 3)
    # Three log length scales, log signal, log noise.
    theta = (-0.5, 0.2, 0.1, 0.0, -3.0)
    mean, sd = make_process(X, y, theta).predict_leave_one_out()
    for i in range(12):
        without = make_process(np.delete(X, i, axis=0), np.delete(y, i), theta)
        assert_allclose(np.ravel(without.predict(X[i : i + 1])), [mean[i], sd[i]], rtol=1e-9)


class TestSamples:
    model = make_process(*make_observations(12, 3), (-0.5, 0.2, 0.1, 0.0, -3.0))
    points = np.random.default_rng(1).random((4, 3))

    def compute_covariance(self) -> FloatArray:
        """Covariance of samples at four points.

        A sample is the mean and a linear function of normal numbers, so that unit vectors instead
        of these give the rows of a root of the covariance.
        """
        mean, _ = self.model.predict(self.points)
        deviations = self.model.sample(self.points, np.eye(4)) - mean
        return deviations.T @ deviations

    def test_samples_have_posterior_mean(self):
        """If the normal numbers that are passed, one a point, are 0."""
        (sample,) = self.model.sample(self.points, np.zeros((1, 4)))
        mean, _ = self.model.predict(self.points)
        assert_allclose(sample, mean, rtol=1e-12)

    def test_samples_have_posterior_deviation(self):
        _, sd = self.model.predict(self.points)
        assert_allclose(np.sqrt(np.diag(self.compute_covariance())), sd, rtol=1e-4)

    def test_samples_are_correlated_as_posterior(self):
        """An observation at one point shrinks the variance at another by the square of their
        covariance, over the variance of the observation.
        """
        covariance = self.compute_covariance()
        noise_variance = np.exp(-3.0)  # of the model's hyperparameters
        reduction = covariance[0, 1] ** 2 / (covariance[0, 0] + noise_variance)
        observed, _ = self.model.with_fantasies(self.points[:1])
        _, sd = observed.predict(self.points[1:2])
        assert_allclose(sd**2, covariance[1, 1] - reduction, rtol=1e-4)
