"""The Gaussian process against finite differences, scikit-learn and high precision."""

import math
from collections.abc import Sequence
from decimal import Decimal, getcontext
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._gp import compiled, lapack
from hpobench_ordered.methods._gp.acquisition import LEFT_TAIL_END, log_expected_improvement
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

THETAS = st.tuples(*[st.floats(-2.0, 2.0)] * 3, st.floats(-9.0, 0.0)).map(np.array)
"""Random hyperparameters: two log length scales, log signal variance, log noise variance."""

LENGTH_SCALE_OF_FEATURE = np.array([0, 1, 1])
"""Which of two length scales each of three features has: the last two share one."""


THETA_OF_TWO_FEATURES = (-0.5, 0.1, 0.2, -5.0)
"""A log length scale for each of two features, log signal variance, log noise variance."""
THETA_OF_THREE_FEATURES = (-0.5, 0.2, 0.1, 0.0, -3.0)
"""The same with three features, and with more noise."""


def make_observations(n: int, p: int, *, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Features (n, p) and standardised losses (n,) of a smooth function with little noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    y = np.sin(5 * X[:, 0]) + X.sum(axis=1) ** 2 + 0.05 * rng.standard_normal(n)
    return X, standardise(y)


def fit_scikit_learn_process(
    X: FloatArray, y: FloatArray, theta: Sequence[float]
) -> GaussianProcessRegressor:
    """scikit-learn's process at the same hyperparameters; the noise stays out of predictions."""
    *lengths, signal, noise = np.exp(theta)
    kernel = ConstantKernel(signal) * Matern(lengths, nu=2.5)
    return GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(X, y)


def make_process(
    X: FloatArray, y: FloatArray, theta: Sequence[float] = THETA_OF_TWO_FEATURES
) -> GaussianProcess:
    """Our process, with a length scale for each feature."""
    return GaussianProcess(X, y, kernel=Kernel(np.arange(X.shape[1])), theta=np.array(theta))


def fit_process(X: FloatArray, y: FloatArray) -> GaussianProcess:
    """Fit our process, with a length scale for each feature, from the mean of the prior."""
    priors = Priors()
    kernel = Kernel(np.arange(X.shape[1]))
    start = stack_priors(priors, kernel.length_scales).mean
    return GaussianProcess.fit(X, y, kernel=kernel, starts=[start], priors=priors)


class NormalPrior(NamedTuple):
    """Means of independent normal distributions of theta, and one over their variances."""

    mean: FloatArray
    precision: FloatArray


def make_flat_prior(size: int) -> NormalPrior:
    """A prior of infinite variance."""
    return NormalPrior(mean=np.zeros(size), precision=np.zeros(size))


def negative_log_posterior(module, X, y, theta, prior, length_scale_of_feature):
    """Value and gradient at theta, by one of the two modules, `compiled` or `lapack`."""
    length_scales = int(length_scale_of_feature.max()) + 1
    # Squared differences of all pairs of observations, for each length scale.
    S = compiled.squared_differences(X, length_scale_of_feature, length_scales)
    return module.negative_log_posterior(S, y, theta, prior.mean, prior.precision)


def fit_theta(module, X, y, start, bounds, prior, *, iterations=50, tolerance=1e-3):
    """Maximise the posterior density within bounds, with a length scale for each feature.

    Returns:
        The best theta, and its negative log density.
    """
    lower, upper = bounds
    length_scale_of_feature = np.arange(X.shape[1])
    S = compiled.squared_differences(X, length_scale_of_feature, X.shape[1])
    return module.fit(S, y, start, lower, upper, prior.mean, prior.precision, iterations, tolerance)


@given(st.lists(st.floats(-800.0, 0.0), min_size=1, max_size=200))
def test_exp_in_place_equals_numpy(x):
    """The function replaces numbers up to 0 by their exponentials."""
    values = np.array(x)
    workspace = np.empty(len(x))
    compiled.exp_in_place(values, workspace)
    # Below -700 it stays at exp(-700).
    assert_allclose(values, np.exp(np.maximum(x, -700.0)), rtol=5e-16)


@pytest.mark.parametrize("module", MODULES)
@given(
    n=st.integers(1, 40),
    theta=THETAS,
    seed=st.integers(0, 99),
    prior_precision=st.sampled_from([0.0, 1.0]),  # a flat prior, or one of variance 1
)
def test_gradient_equals_finite_differences(module, n, theta, seed, prior_precision):
    """Each module returns the derivatives of the posterior by the four numbers in theta."""
    X, y = make_observations(n, 3, seed=seed)
    prior = NormalPrior(mean=np.full(4, 0.3), precision=np.full(4, prior_precision))

    def value_and_gradient(theta: FloatArray) -> tuple[float, FloatArray]:
        return negative_log_posterior(module, X, y, theta, prior, LENGTH_SCALE_OF_FEATURE)

    value, gradient = value_and_gradient(theta)

    step_length = 1e-5
    differences = []
    for step in step_length * np.eye(4):
        above, _ = value_and_gradient(theta + step)
        below, _ = value_and_gradient(theta - step)
        differences.append((above - below) / (2 * step_length))
    # Differences of large values have larger rounding errors.
    tolerance = 1e-4 * max(1.0, abs(value) / 100)
    assert_allclose(gradient, differences, rtol=1e-5, atol=tolerance)


class TestFantasies:
    """Pending evaluations are assumed to give the posterior mean."""

    pending, candidates = np.split(np.random.default_rng(1).random((43, 2)), [3])
    """Features of three pending evaluations, and of 40 candidates that are predicted."""

    @pytest.mark.parametrize(
        "number_of_observations",
        [
            pytest.param(6, id="compiled functions"),
            pytest.param(COMPILED_LIMIT - 1, id="compiled functions until evaluations are pending"),
            pytest.param(COMPILED_LIMIT + 5, id="LAPACK"),
        ],
    )
    def test_fantasies_count_as_observations(self, number_of_observations):
        """Predictions are those of scikit-learn's process on observations and fantasies."""
        X, y = make_observations(number_of_observations, 2)
        with_fantasies, fantasies = make_process(X, y).with_fantasies(self.pending)
        all_X = np.concatenate([X, self.pending])
        all_y = np.concatenate([y, fantasies])
        reference = fit_scikit_learn_process(all_X, all_y, THETA_OF_TWO_FEATURES)
        expected = reference.predict(self.candidates, return_std=True)
        assert_allclose(with_fantasies.predict(self.candidates), expected, atol=1e-7)


@pytest.mark.parametrize("n", [1, COMPILED_LIMIT, COMPILED_LIMIT + 1])
@pytest.mark.parametrize("p", [1, 4])
class TestAgainstScikitLearn:
    def make_processes(self, n, p):
        """Our process and scikit-learn's, with the same hyperparameters on the same n points."""
        X, y = make_observations(n, p)
        # p log length scales, log signal and log noise.
        theta = [*np.linspace(-1.0, 0.5, p), 0.4, -5.0]
        return make_process(X, y, theta), fit_scikit_learn_process(X, y, theta)

    def test_posterior_equals_scikit_learns(self, n, p):
        """Both processes predict the same means and deviations of 150 candidates."""
        ours, theirs = self.make_processes(n, p)
        candidates = np.random.default_rng(1).random((150, p))
        expected = theirs.predict(candidates, return_std=True)
        assert_allclose(ours.predict(candidates), expected, atol=1e-8)

    def test_likelihood_equals_scikit_learns(self, n, p):
        """Both processes find the same losses equally likely."""
        ours, theirs = self.make_processes(n, p)
        expected = theirs.log_marginal_likelihood_value_
        assert_allclose(ours.log_marginal_likelihood(), expected, rtol=1e-9, atol=1e-8)


def compute_covariance(X: FloatArray, theta: FloatArray) -> FloatArray:
    """Covariance K of observations with three features, of which two share a length scale."""
    S = compiled.squared_differences(X, LENGTH_SCALE_OF_FEATURE, 2)
    K, _ = compiled.covariance(S, theta)
    return K


class TestBothModules:
    @given(n=st.integers(1, 80), theta=THETAS, seed=st.integers(0, 99))
    def test_both_modules_compute_same_density(self, n, theta, seed):
        """The two modules return the same posterior density and gradient, up to rounding.

        Compiled functions are used for few observations, and those of LAPACK for many.
        """
        X, y = make_observations(n, 3, seed=seed)
        arguments = (X, y, theta, make_flat_prior(4), LENGTH_SCALE_OF_FEATURE)
        value, gradient = negative_log_posterior(compiled, *arguments)
        other_value, other_gradient = negative_log_posterior(lapack, *arguments)
        assert_allclose(value, other_value, rtol=1e-9, atol=1e-8)
        tolerance = 1e-5 * (1 + np.abs(gradient).max())
        assert_allclose(gradient, other_gradient, rtol=1e-6, atol=tolerance)

    @pytest.mark.parametrize("n", [5, 60])
    def test_both_modules_find_same_optimum(self, n):
        """From the same start, the mean of the prior, both modules reach the same theta."""
        X, y = make_observations(n, 3)
        prior = stack_priors(Priors(), 3)
        arguments = (X, y, prior.mean, (prior.lower, prior.upper), prior)
        options = {"iterations": 200, "tolerance": 1e-8}
        theta, value = fit_theta(compiled, *arguments, **options)
        other_theta, other_value = fit_theta(lapack, *arguments, **options)
        # The density is flat at its maximum, so that the value is more certain than theta.
        assert_allclose(value, other_value, atol=1e-4)
        assert_allclose(theta, other_theta, atol=0.02)


X_OF_TWENTY, _ = make_observations(20, 2)
"""Two features of twenty observations."""


@pytest.mark.parametrize(
    ("losses", "coordinate"),
    [
        pytest.param(X_OF_TWENTY[:, 0], 1, id="the second feature is irrelevant"),
        pytest.param(np.random.default_rng(0).standard_normal(20), 3, id="all is noise"),
    ],
)
def test_fit_stops_at_bounds(losses, coordinate):
    """One coordinate of theta goes to its upper bound, and none beyond its bounds.

    The coordinates are two log length scales, log signal and log noise. A feature that is
    irrelevant has the longest length scale (coordinate 1), and pure noise the highest noise (3).
    """
    lower = np.array([-1.0, -1.0, -1.0, -7.0])
    upper = np.array([1.0, 1.0, 1.0, -3.0])
    start_below_bounds = np.full(4, -3.0)  # but for the noise
    theta, _ = fit_theta(
        compiled,
        X_OF_TWENTY,
        standardise(losses),
        start_below_bounds,
        (lower, upper),
        make_flat_prior(4),
        iterations=100,
        tolerance=1e-6,
    )
    assert (lower <= theta).all()
    assert (theta <= upper).all()
    assert theta[coordinate] == upper[coordinate]


@pytest.mark.parametrize("seed", range(3))
def test_fit_reaches_flat_point_above_start(seed):
    """The fitted theta is more probable than the start, and the gradient there is nearly 0.

    The start is random, around the mean of the prior of theta.
    """
    X, y = make_observations(25, 3)
    prior = stack_priors(Priors(), 3)
    length_scale_of_feature = np.arange(3)  # one each
    # Three log length scales, log signal and log noise.
    start = prior.mean + np.random.default_rng(seed).standard_normal(5)
    before, _ = negative_log_posterior(compiled, X, y, start, prior, length_scale_of_feature)

    theta, after = fit_theta(compiled, X, y, start, (prior.lower, prior.upper), prior)

    value, gradient = negative_log_posterior(compiled, X, y, theta, prior, length_scale_of_feature)
    assert after == value
    assert after < before
    # The fit stops a little before the optimum, where the gradient would be 0.
    assert np.abs(gradient).max() < 0.5


@pytest.mark.parametrize("n", [10, 100])
def test_prediction_ignores_other_candidates(n):
    """Four candidates have the same predictions alone and among 300.

    They are equal to the bit with few observations, which compiled functions compute.
    """
    X, y = make_observations(n, 2)
    theta = (-1.0, 0.0, 0.0, -6.0)  # two log length scales, log signal, log noise
    model = make_process(X, y, theta)
    candidates = np.random.default_rng(3).random((300, 2))
    four_in_the_middle = slice(37, 41)  # not at the start of a block

    mean, sd = model.predict(candidates)
    mean_alone, sd_alone = model.predict(candidates[four_in_the_middle])

    among_others = [mean[four_in_the_middle], sd[four_in_the_middle]]
    alone = [mean_alone, sd_alone]
    assert_allclose(among_others, alone, rtol=1e-10, atol=1e-12)
    if n <= COMPILED_LIMIT:
        assert_array_equal(among_others, alone)


@pytest.mark.parametrize("has_one_point", [False, True])
@pytest.mark.parametrize("has_constant_losses", [False, True])
@pytest.mark.parametrize("n", [30, 100])
def test_degenerate_observations_can_be_fitted(n, has_one_point, has_constant_losses):
    """Predictions are finite even if all configurations are equal, all losses, or both."""
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
    # Compiled code fits the process to few observations, LAPACK to many; both must refuse them.
    X, y = make_observations(n, 2)
    y[0] = math.nan
    with pytest.raises(ModelError):
        fit_process(X, y)


ANY_LOSSES = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30)
"""Finite losses of any size, also near the largest floating-point number."""


@given(ANY_LOSSES)
def test_standardised_losses_keep_their_order(losses):
    """Where raw losses rise, scaled ones do not fall."""
    raw = np.array(losses)
    scaled = standardise(raw)
    assert np.isfinite(scaled).all()
    scaled_in_order_of_raw = scaled[np.argsort(raw, kind="stable")]
    rounding = 1e-12
    assert (np.diff(scaled_in_order_of_raw) >= -rounding).all()


@given(ANY_LOSSES)
def test_standardised_losses_have_unit_variance(losses):
    """Their mean is 0 and their deviation 1, unless all losses are equal and become 0."""
    scaled = standardise(np.array(losses))
    has_different_losses = scaled.any()
    if has_different_losses:
        assert_allclose([scaled.mean(), scaled.std()], [0.0, 1.0], rtol=1e-9, atol=1e-9)


PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")


def log_expected_improvement_in_60_digits(z: float) -> float:
    """log(phi(z) + z Phi(z)), with density phi and distribution Phi of a standard normal number.

    By Laplace's continued fraction, the upper tail 1 - Phi(t) of t > 0 is
    phi(t) / (t + 1 / (t + 2 / (t + 3 / (t + ...)))).
    """
    getcontext().prec = 400
    t = abs(Decimal(z))
    density = (-t * t / 2).exp() / (2 * PI).sqrt()

    # From the far end: fraction = 1 / (t + 2 / (t + ...)).
    fraction = Decimal(0)
    for k in range(4000, 0, -1):
        fraction = k / (t + fraction)
    upper_tail = density / (t + fraction)
    if z > 0:  # then t is z, and Phi(z) is 1 - upper_tail
        return float((density + t * (1 - upper_tail)).ln())
    # Here z Phi(z) is -t * upper_tail. The difference from the density, without its cancellation:
    return float((density * fraction / (t + fraction)).ln())


@pytest.mark.parametrize(
    "z", [-1e3, -300.0, -38.0, -20.0, -10.1, -10.0, -9.9, -5.0, -2.0, 1.0, 6.0]
)
def test_log_ei_equals_high_precision(z):
    """z is how far the incumbent, 0, lies above the predicted mean, in standard deviations.

    It is on both sides of 0 and far into the tail, where naive formulas lose all digits.
    """
    mean, sd = np.array([-z]), np.array([1.0])
    result = log_expected_improvement(mean, sd, 0.0)
    assert_allclose(result, log_expected_improvement_in_60_digits(z), rtol=1e-12, atol=1e-12)


@settings(deadline=None)
@given(st.lists(st.floats(-1e4, 50.0), min_size=2, max_size=20, unique=True))
def test_log_ei_falls_with_the_mean(z):
    """Expected improvement rises with z, also where one formula takes over from another.

    z is how far the incumbent, 0, lies above the predicted mean, in standard deviations.
    """
    # Below LEFT_TAIL_END another formula takes over.
    last_of_formula, first_of_other = LEFT_TAIL_END, np.nextafter(LEFT_TAIL_END, 0.0)
    ascending_z = np.sort(np.array([*z, last_of_formula, first_of_other]))
    result = log_expected_improvement(-ascending_z, np.ones(len(ascending_z)), 0.0)
    assert np.isfinite(result).all()
    rounding = 1e-12 * np.abs(result[1:])
    assert (np.diff(result) >= -rounding).all()


def test_known_value_cannot_improve():
    """A standard deviation of 0 or NaN gives a log expected improvement of -infinity."""
    mean = np.array([-1.0, -1.0])  # below the incumbent, 0
    sd = np.array([0.0, math.nan])
    assert (log_expected_improvement(mean, sd, 0.0) == -math.inf).all()


def test_leave_one_out_equals_refitting():
    """Each of twelve observations is predicted by a process of the eleven others."""
    X, y = make_observations(12, 3)
    mean, sd = make_process(X, y, THETA_OF_THREE_FEATURES).predict_leave_one_out()
    for row in range(12):
        other_X = np.delete(X, row, axis=0)
        other_y = np.delete(y, row)
        process_of_others = make_process(other_X, other_y, THETA_OF_THREE_FEATURES)
        expected_mean, expected_sd = process_of_others.predict(X[[row]])
        assert_allclose([mean[row]], expected_mean, rtol=1e-9)
        assert_allclose([sd[row]], expected_sd, rtol=1e-9)


class TestSamples:
    model = make_process(*make_observations(12, 3), THETA_OF_THREE_FEATURES)
    points = np.random.default_rng(1).random((4, 3))

    def compute_covariance(self) -> FloatArray:
        """Covariance of samples at four points.

        A sample is the mean plus a linear function of four standard normal numbers. Where these
        are replaced by unit vectors, samples show the matrix of this function, row by row.
        """
        mean, _ = self.model.predict(self.points)
        unit_vectors = np.eye(4)
        matrix = self.model.sample(self.points, unit_vectors) - mean
        return matrix.T @ matrix

    def test_samples_have_posterior_mean(self):
        """A sample is the mean where the normal numbers that it is made of are 0."""
        normal_numbers = np.zeros((1, 4))  # of one sample at four points
        (sample,) = self.model.sample(self.points, normal_numbers)
        mean, _ = self.model.predict(self.points)
        assert_allclose(sample, mean, rtol=1e-12)

    def test_samples_are_correlated_as_posterior(self):
        """An observation at one point shrinks the variance at another.

        It does so by the square of their covariance, over the variance of the observation.
        """
        *_, log_noise = THETA_OF_THREE_FEATURES
        covariance = self.compute_covariance()
        variance_of_observation = covariance[0, 0] + np.exp(log_noise)
        reduction = covariance[0, 1] ** 2 / variance_of_observation

        with_first_point, _ = self.model.with_fantasies(self.points[[0]])
        _, sd_of_second = with_first_point.predict(self.points[[1]])
        assert_allclose(sd_of_second**2, covariance[1, 1] - reduction, rtol=1e-4)
