"""Bayesian linear regression: heads and joint marginal likelihood against direct computations."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime, minimize
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._blr import joint
from hpobench_ordered.methods._blr.heads import Head, Precisions
from hpobench_ordered.methods._blr.likelihood import Likelihood, compute_likelihood
from hpobench_ordered.methods._model_based import ModelError
from hpobench_ordered.methods._networks import features, runtime

SMALL = features.Network(8, (6,))
"""A network of six features, whose inputs are padded to eight."""


def covariance(Phi: FloatArray, precisions: Precisions) -> FloatArray:
    """Sigma (n, n) as defined, without any of the core's formulas."""
    weights = np.eye(Phi.shape[1]) / np.exp(precisions.log_alpha)
    return Phi @ weights @ Phi.T + np.eye(len(Phi)) / np.exp(precisions.log_beta)


def direct_rho(Phi: FloatArray, y: FloatArray, precisions: Precisions) -> float:
    """Minus log marginal likelihood by its definition."""
    Sigma = covariance(Phi, precisions)
    return float(0.5 * np.linalg.slogdet(Sigma)[1] + 0.5 * y @ np.linalg.solve(Sigma, y))


def make_problem(
    n: int, d: int, *, ard: bool, seed: int
) -> tuple[FloatArray, FloatArray, Precisions]:
    """Random features (n, d) and losses (n,), and precisions: one a feature if `ard`."""
    rng = np.random.default_rng([seed, n, d])
    precisions = Precisions(rng.normal(0, 1, d if ard else 1), float(rng.uniform(0, 6)))
    return rng.standard_normal((n, d)), rng.standard_normal(n), precisions


def compute_likelihood_with(Phi: FloatArray, y: FloatArray, precisions: Precisions) -> Likelihood:
    return compute_likelihood(Phi, y, precisions.log_alpha, precisions.log_beta)


SIZES = st.tuples(st.integers(1, 12), st.integers(1, 8), st.booleans(), st.integers(0, 10**6))
"""n, d, ard (automatic relevance determination: a precision a feature) and seed of a problem."""


@given(SIZES)
def test_likelihood_equals_the_definition(sizes):
    """Of n evaluations of d features; with ARD each feature has a precision of its own."""
    n, d, ard, seed = sizes
    problem = make_problem(n, d, ard=ard, seed=seed)
    assert_allclose(compute_likelihood_with(*problem).rho, direct_rho(*problem), rtol=1e-8)


@given(SIZES)
def test_prediction_equals_conditioning(sizes):
    """On the joint normal distribution of candidates and evaluations."""
    n, d, ard, seed = sizes
    Phi, y, precisions = make_problem(n, d, ard=ard, seed=seed)
    candidates = np.random.default_rng(seed).standard_normal((5, d))
    Sigma = covariance(np.concatenate([candidates, Phi]), precisions)
    cross = Sigma[:5, 5:]
    # The first five rows are the candidates, the others the evaluations.
    solved = np.linalg.solve(Sigma[5:, 5:], cross.T)
    noise_variance = np.exp(-precisions.log_beta)
    variance = np.diag(Sigma)[:5] - noise_variance - np.sum(cross * solved.T, axis=1)

    mean, sd = Head(Phi, y, precisions).predict(candidates)

    assert_allclose(mean, solved.T @ y, rtol=1e-8, atol=1e-8)
    assert_allclose(sd**2, variance, rtol=1e-8, atol=1e-8)


@given(SIZES)
def test_gradient_by_precisions_equals_differences(sizes):
    """Of n evaluations of d features; with ARD each feature has a precision of its own."""
    n, d, ard, seed = sizes
    Phi, y, precisions = make_problem(n, d, ard=ard, seed=seed)

    def rho(x: FloatArray) -> float:
        """Minus log likelihood; x is log alpha, of the weights, then log beta, of the noise."""
        return direct_rho(Phi, y, Precisions(x[:-1], x[-1]))

    result = compute_likelihood_with(Phi, y, precisions)
    by_alpha = result.by_alpha
    # Without ARD, a single precision is that of all features.
    if not ard:
        by_alpha = by_alpha.sum(keepdims=True)
    gradient = np.append(by_alpha, result.by_beta)
    x = np.append(precisions.log_alpha, precisions.log_beta)
    differences = approx_fprime(x, rho, 1e-6)
    assert_allclose(gradient, differences, rtol=1e-3, atol=1e-3)


@given(SIZES)
def test_gradient_by_features_equals_differences(sizes):
    """Of n evaluations of d features, by each entry of their matrix Phi."""
    n, d, ard, seed = sizes
    Phi, y, precisions = make_problem(n, d, ard=ard, seed=seed)

    def rho(flat_Phi: FloatArray) -> float:
        return direct_rho(flat_Phi.reshape(n, d), y, precisions)

    by_features = compute_likelihood_with(Phi, y, precisions).by_features
    differences = approx_fprime(Phi.ravel(), rho, 1e-6)
    assert_allclose(by_features.ravel(), differences, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("n", [3, 20, 21, 60])
class TestFeaturesThatAreZero:
    """They change nothing but the form that is computed: with them, n is at most d."""

    def make_problems(self, n):
        """The same problem with 20 features, and with 60 more that are 0."""
        Phi, y, precisions = make_problem(n, 20, ard=False, seed=0)
        # 80 columns are more than any n here, 20 are fewer than some.
        wide_Phi = np.concatenate([Phi, np.zeros((n, 60))], axis=1)
        return (Phi, y, precisions), (wide_Phi, y, precisions)

    def test_zero_features_do_not_change_likelihood(self, n):
        narrow, wide = self.make_problems(n)
        rho_of_narrow = compute_likelihood_with(*narrow).rho
        rho_of_wide = compute_likelihood_with(*wide).rho
        assert_allclose(rho_of_narrow, rho_of_wide, rtol=1e-8)

    def test_zero_features_do_not_change_weights(self, n):
        """Of the 20 other features, which come first."""
        narrow, wide = self.make_problems(n)
        assert_allclose(Head(*narrow).weights, Head(*wide).weights[:20], rtol=1e-8, atol=1e-10)

    def test_zero_features_do_not_change_deviation(self, n):
        """Of predictions for the n evaluations, with 20 features and with 60 zero ones beside."""
        narrow, wide = self.make_problems(n)
        narrow_Phi, *_ = narrow
        wide_Phi, *_ = wide
        _, narrow_sd = Head(*narrow).predict(narrow_Phi)
        _, wide_sd = Head(*wide).predict(wide_Phi)
        assert_allclose(narrow_sd, wide_sd, rtol=1e-8)


class TestRelevanceDetermination:
    """Three of twenty features matter."""

    relevant = [2, 7, 11]  # noqa: RUF012
    irrelevant = np.setdiff1d(np.arange(20), relevant)

    def true_losses(self, Phi: FloatArray) -> FloatArray:
        return Phi[:, self.relevant] @ [1.0, -0.7, 0.5]

    def fit(self, *, precision_count: int) -> Head:
        """Fit 30 evaluations of 20 features, with a precision for each of these or one for all."""
        rng = np.random.default_rng(0)
        Phi = rng.standard_normal((30, 20))
        y = self.true_losses(Phi) + 0.05 * rng.standard_normal(30)
        return Head.fit(Phi, y, Precisions.initial(precision_count))

    def test_relevant_features_have_low_precision(self):
        """Three of 20 features have an influence on the losses."""
        log_alpha = self.fit(precision_count=20).precisions.log_alpha
        features_by_precision = np.argsort(log_alpha)
        assert set(features_by_precision[:3]) == set(self.relevant)

    def test_irrelevant_features_are_switched_off(self):
        """Most of their precisions are at the upper bound, n squared of n = 30 evaluations."""
        head = self.fit(precision_count=20)
        log_alpha = head.precisions.log_alpha[self.irrelevant]
        assert np.median(log_alpha) == 2.0 * np.log(30)
        # The head's weights are in units of their prior deviation, alpha^(-1/2).
        weights = head.weights[self.irrelevant] * np.exp(-0.5 * log_alpha)
        assert np.abs(weights).max() < 0.05

    def test_single_precision_predicts_worse(self):
        """Than a precision for each of 20 features, of which three are relevant."""
        new_Phi = np.random.default_rng(1).standard_normal((500, 20))

        def squared_error(head: Head) -> float:
            mean, _ = head.predict(new_Phi)
            return float(np.mean((mean - self.true_losses(new_Phi)) ** 2))

        error = squared_error(self.fit(precision_count=20))
        error_of_single = squared_error(self.fit(precision_count=1))
        assert error < 0.8 * error_of_single


@pytest.mark.parametrize("n", [6, 30])
def test_fit_minimises_with_the_prior(n):
    """The prior keeps the logarithms of precisions within `spread` of their mean."""
    rng = np.random.default_rng(n)
    Phi = rng.standard_normal((n, 4))
    y = Phi @ [1.0, 0.5, 0.0, 0.0] + 0.3 * rng.standard_normal(n)
    spread = 0.7

    def negative_log_posterior(x: FloatArray) -> float:
        log_alpha = x[:-1]
        log_prior = norm.logpdf(log_alpha, log_alpha.mean(), spread) - norm.logpdf(0, 0, spread)
        return direct_rho(Phi, y, Precisions(log_alpha, float(x[-1]))) - float(log_prior.sum())

    fitted = Head.fit(Phi, y, Precisions.initial(4), spread=spread).precisions

    # scipy's minimum, within the bounds of the fit: log alpha, then log beta.
    start = np.append(np.zeros(4), 2.0)
    bounds = [(-12.0, 2.0 * np.log(n))] * 4 + [(0.0, 10.0)]
    best = minimize(negative_log_posterior, start, bounds=bounds)
    value = negative_log_posterior(np.append(fitted.log_alpha, fitted.log_beta))
    assert value < best.fun + 0.02


@pytest.mark.parametrize("n", [10, 50])
def test_fit_matches_best_of_grid(n):
    """For few evaluations and for many, n, of 15 features."""
    rng = np.random.default_rng(n)
    Phi = rng.standard_normal((n, 15))
    y = Phi @ rng.standard_normal(15) / 4 + 0.3 * rng.standard_normal(n)
    fitted = Head.fit(Phi, y, Precisions.initial(1)).precisions
    # Logarithms of a common precision of the weights, and of the precision of noise.
    grid = product(np.linspace(-6, 8, 29), np.linspace(0, 12, 25))
    lowest_rho = min(direct_rho(Phi, y, Precisions(np.array([a]), b)) for a, b in grid)
    # rho is minus the log likelihood, so the fit may be worse by 0.02 nats.
    assert compute_likelihood_with(Phi, y, fitted).rho < lowest_rho + 0.02


def test_fantasies_keep_mean_and_shrink_deviation():
    """Fantasies are losses that pending evaluations are assumed to have: the posterior mean."""
    head = Head(*make_problem(8, 12, ard=True, seed=3))
    rng = np.random.default_rng(1)
    pending, candidates = rng.standard_normal((2, 12)), rng.standard_normal((4, 12))

    with_fantasies, losses = head.with_fantasies(pending)

    mean_of_pending, _ = head.predict(pending)
    assert_allclose(losses, mean_of_pending)
    mean, sd = head.predict(candidates)
    new_mean, new_sd = with_fantasies.predict(candidates)
    assert_allclose(new_mean, mean, atol=1e-8)
    assert (new_sd < sd).all()


def test_features_that_are_nan_are_refused():
    # 8 evaluations of 12 features.
    Phi, y, precisions = make_problem(8, 12, ard=True, seed=3)
    with pytest.raises(ModelError):
        Head(Phi * np.nan, y, precisions)


# -- many tasks, one network -----------------------------------------------------------------------


def make_tasks(
    counts: list[int], *, dimension: int, seed: int = 0
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Inputs and losses of tasks with these numbers of evaluations, which differ in phase."""
    rng = np.random.default_rng(seed)
    X = [rng.random((n, dimension)) for n in counts]
    return X, [np.sin(4 * x[:, 0] + t) for t, x in enumerate(X)]


def draw_parameters(
    phi: features.Network, *, dimension: int, tasks: int, k: int
) -> joint.Parameters:
    """Random parameters, with embeddings of k numbers."""
    rng = np.random.default_rng(5)
    log_alpha = rng.normal(0, 1, tasks)
    log_beta = rng.uniform(0, 5, tasks)
    # z: the parameters of the network, whose inputs are X and then the embedding.
    z = phi.initial(rng, dimension + k)
    return joint.Parameters(z, rng.standard_normal((tasks, k)), log_alpha, log_beta)


@pytest.mark.parametrize("k", [0, 2])
def test_joint_likelihood_is_sum_over_tasks(k):
    """Of five tasks on a small network, with embeddings of k numbers as further inputs."""
    X, y = make_tasks([3, 6, 7, 0, 103], dimension=3)  # few and many, in several blocks
    parameters = draw_parameters(SMALL, dimension=3, tasks=5, k=k)
    expected = 0.0
    for t, losses in enumerate(y):
        if not len(losses):
            continue
        embedding = np.tile(parameters.embedded[t], (len(losses), 1))
        inputs = np.concatenate([embedding, X[t]], axis=1)
        Phi = features.compute_features(SMALL, parameters.z, inputs)
        expected += direct_rho(Phi, losses, parameters.precisions_of(t))

    value, _ = joint.value_and_gradient(SMALL, X, y, parameters)

    assert_allclose(value, expected, rtol=1e-8)


@pytest.mark.parametrize("k", [0, 2])
def test_joined_parameters_can_be_split(k):
    """Parameters of a small network and of five tasks, with embeddings of k numbers."""
    parameters = draw_parameters(SMALL, dimension=3, tasks=5, k=k)
    joined = joint._join(parameters)
    split = joint._split(joined, parameters)  # in parts of the sizes that `parameters` has
    for field in ("z", "embedded", "log_alpha", "log_beta"):
        assert_array_equal(getattr(split, field), getattr(parameters, field))


def test_joint_gradient_equals_finite_differences():
    """By all parameters, joined in one vector, of a small network and of four tasks."""
    # Tasks of few, many and no evaluations.
    X, y = make_tasks([4, 55, 0, 70], dimension=2)
    parameters = draw_parameters(SMALL, dimension=2, tasks=4, k=1)

    def value_and_gradient(x: FloatArray) -> tuple[float, FloatArray]:
        return joint.value_and_gradient(SMALL, X, y, joint._split(x, parameters))

    x = joint._join(parameters)
    differences = []
    for step in 1e-5 * np.eye(len(x)):
        above, _ = value_and_gradient(x + step)
        below, _ = value_and_gradient(x - step)
        differences.append((above - below) / 2e-5)
    assert_allclose(value_and_gradient(x)[1], differences, rtol=1e-4, atol=1e-4)


class TestJointFit:
    """A network fitted to six tasks of twenty evaluations and a seventh of four."""

    phi = features.Network(8, (20, 20))
    X, y = make_tasks([20] * 6 + [4], dimension=1)

    def fit(self, tasks: list[int]) -> tuple[joint.Parameters, joint.Parameters]:
        """Parameters before and after a fit to some of the tasks."""
        z = self.phi.initial(np.random.default_rng(0), 1)
        start = joint.Parameters.initial(z, np.zeros((len(tasks), 0)))
        X, y = [self.X[t] for t in tasks], [self.y[t] for t in tasks]
        return start, joint.fit_jointly(self.phi, X, y, start, evaluations=60)

    def error_on_the_last_task(self, parameters: joint.Parameters, sources: int) -> float:
        """Squared error after its four evaluations.

        The fit of the head starts with the median of the precisions of the first `sources` tasks.
        """
        X = np.linspace(0, 1, 50)[:, None]
        Phi = features.compute_features(self.phi, parameters.z, self.X[6])
        head = Head.fit(Phi, self.y[6], parameters.median_precisions(sources))
        mean, _ = head.predict(features.compute_features(self.phi, parameters.z, X))
        # The last task, number 6, has the phase 6.
        true_losses = np.sin(4 * X[:, 0] + 6)
        return float(np.mean((mean - true_losses) ** 2))

    def test_joint_fit_lowers_objective(self):
        """Minus the log likelihood of all seven tasks."""
        start, fitted = self.fit(list(range(7)))
        before, _ = joint.value_and_gradient(self.phi, self.X, self.y, start)
        after, _ = joint.value_and_gradient(self.phi, self.X, self.y, fitted)
        assert after < before - 1.0

    def test_joint_fit_beats_single_task(self):
        """On the last of seven tasks, number 6, which has four evaluations."""
        _, fitted_to_all = self.fit(list(range(7)))
        _, fitted_to_last = self.fit([6])
        error = self.error_on_the_last_task(fitted_to_all, sources=6)
        error_of_single = self.error_on_the_last_task(fitted_to_last, sources=1)
        assert error < 0.5 * error_of_single


def test_programs_are_shared_between_sizes():
    phi = features.Network(8, (4,))

    def count_programs_after(counts: list[int]) -> int:
        X, y = make_tasks(counts, dimension=2)
        parameters = draw_parameters(phi, dimension=2, tasks=len(counts), k=0)
        joint.value_and_gradient(phi, X, y, parameters)
        return runtime.count_programs()

    # Compile the programs for few, many and very many evaluations.
    for counts in ([3], [100], [1000]):
        before = count_programs_after(counts)
    # Other numbers of evaluations and of tasks compile nothing.
    for counts in ([3], [40, 0, 200], [2500, 7, 7]):
        assert count_programs_after(counts) == before


# -- random kitchen sinks --------------------------------------------------------------------------


class TestRandomKitchenSinks:
    """With many features they approach a Gaussian process."""

    phi = features.RandomKitchenSinks(8, 20_000)
    z = phi.initial(np.random.default_rng(0), 3)
    X = np.random.default_rng(1).random((12, 3))
    kernel = RBF(np.exp(z[0]), "fixed")

    def test_random_features_approach_kernel(self):
        """With 20 000 features, up to random errors of about 1 / sqrt(20 000)."""
        Phi = features.compute_features(self.phi, self.z, self.X)
        assert_allclose(Phi @ Phi.T, self.kernel(self.X), atol=0.03)

    def test_random_features_approach_posterior(self):
        """That of a Gaussian process with the same kernel, after ten of twelve points."""
        y = np.sin(5 * self.X[:10]).sum(axis=1)
        noise_variance = 0.1
        process = GaussianProcessRegressor(self.kernel, alpha=noise_variance, optimizer=None)
        expected_mean, expected_sd = process.fit(self.X[:10], y).predict(self.X, return_std=True)

        Phi = features.compute_features(self.phi, self.z, self.X)
        # Weights of variance 1 (log alpha 0), as the kernel has.
        precisions = Precisions(np.zeros(1), -np.log(noise_variance))
        mean, sd = Head(Phi[:10], y, precisions).predict(Phi)

        assert_allclose(mean, expected_mean, atol=0.1)
        assert_allclose(sd, expected_sd, atol=0.05)
