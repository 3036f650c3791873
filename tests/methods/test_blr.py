"""Bayesian linear regression: heads and joint marginal likelihood against direct computations."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, minimize
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._blr import joint
from hpobench_ordered.methods._blr.heads import Head, Precisions
from hpobench_ordered.methods._blr.likelihood import Likelihood, compute_likelihood
from hpobench_ordered.methods._networks import features, runtime

SMALL_NETWORK = features.Network(8, (6,))
"""A network of six features, whose inputs are padded to eight."""


def compute_covariance(Phi: FloatArray, precisions: Precisions) -> FloatArray:
    """Covariance Sigma (n, n) of n losses with features Phi (n, d), by its definition."""
    covariance_of_weights = np.eye(Phi.shape[1]) / np.exp(precisions.log_alpha)
    covariance_of_noise = np.eye(len(Phi)) / np.exp(precisions.log_beta)
    return Phi @ covariance_of_weights @ Phi.T + covariance_of_noise


def compute_rho_directly(Phi: FloatArray, y: FloatArray, precisions: Precisions) -> float:
    """Minus log marginal likelihood of losses y (n,) with features Phi (n, d), by its definition.

    The constant is left out.
    """
    Sigma = compute_covariance(Phi, precisions)
    _sign, log_determinant = np.linalg.slogdet(Sigma)
    return float(0.5 * log_determinant + 0.5 * y @ np.linalg.solve(Sigma, y))


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
    """There are n evaluations of d features; with ARD each feature has a precision of its own."""
    n, d, ard, seed = sizes
    Phi, y, precisions = make_problem(n, d, ard=ard, seed=seed)
    likelihood = compute_likelihood_with(Phi, y, precisions)
    assert_allclose(likelihood.rho, compute_rho_directly(Phi, y, precisions), rtol=1e-8)


@given(SIZES)
def test_prediction_equals_conditioning(sizes):
    """The losses of candidates and evaluations are jointly normal; the latter are known.

    There are n evaluations of d features, and five candidates.
    """
    n, d, ard, seed = sizes
    Phi, y, precisions = make_problem(n, d, ard=ard, seed=seed)
    candidates = np.random.default_rng(seed).standard_normal((5, d))
    joint_covariance = compute_covariance(np.concatenate([candidates, Phi]), precisions)
    of_candidates = joint_covariance[:5, :5]
    of_evaluations = joint_covariance[5:, 5:]
    between = joint_covariance[5:, :5]

    solved = np.linalg.solve(of_evaluations, between)
    expected_mean = solved.T @ y
    # Predictions are of losses without noise.
    noise_variance = np.exp(-precisions.log_beta)
    prior_variance = np.diag(of_candidates) - noise_variance
    expected_variance = prior_variance - np.sum(between * solved, axis=0)

    mean, sd = Head(Phi, y, precisions).predict(candidates)

    assert_allclose(mean, expected_mean, rtol=1e-8, atol=1e-8)
    assert_allclose(sd**2, expected_variance, rtol=1e-8, atol=1e-8)


@given(SIZES)
def test_gradient_by_precisions_equals_differences(sizes):
    """There are n evaluations of d features; with ARD each feature has a precision of its own.

    Parameters are log alpha, of the precisions of weights, and then log beta, of that of noise.
    """
    n, d, ard, seed = sizes
    Phi, y, precisions = make_problem(n, d, ard=ard, seed=seed)

    def compute_rho(parameters: FloatArray) -> float:
        return compute_rho_directly(Phi, y, Precisions(parameters[:-1], parameters[-1]))

    likelihood = compute_likelihood_with(Phi, y, precisions)
    grad_alpha = likelihood.grad_alpha  # a derivative for each feature
    if not ard:
        # A single precision moves all features.
        grad_alpha = grad_alpha.sum(keepdims=True)
    gradient = np.append(grad_alpha, likelihood.grad_beta)

    parameters = np.append(precisions.log_alpha, precisions.log_beta)
    differences = approx_fprime(parameters, compute_rho, 1e-6)
    assert_allclose(gradient, differences, rtol=1e-3, atol=1e-3)


@given(SIZES)
def test_gradient_by_features_equals_differences(sizes):
    """The derivative by each entry of the matrix Phi, of n evaluations of d features."""
    n, d, ard, seed = sizes
    Phi, y, precisions = make_problem(n, d, ard=ard, seed=seed)

    def compute_rho(flat_Phi: FloatArray) -> float:
        return compute_rho_directly(flat_Phi.reshape(n, d), y, precisions)

    grad_features = compute_likelihood_with(Phi, y, precisions).grad_features
    differences = approx_fprime(Phi.ravel(), compute_rho, 1e-6)
    assert_allclose(grad_features.ravel(), differences, rtol=1e-3, atol=1e-3)


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


@pytest.mark.parametrize("n", [6, 30])
def test_fit_with_prior_matches_scipy(n):
    """The fit finds as low a minimum of the negative log posterior as scipy does.

    It searches for precisions of weights, alpha, and of noise, beta, within the same bounds.
    """
    rng = np.random.default_rng(n)
    Phi = rng.standard_normal((n, 4))
    y = Phi @ [1.0, 0.5, 0.0, 0.0] + 0.3 * rng.standard_normal(n)
    spread = 0.7

    def negative_log_posterior(parameters: FloatArray) -> float:
        """Minus log posterior of the losses y with features Phi, without the prior's constant.

        Parameters are log alpha (4,) and then log beta. By the prior, log alpha deviates from its
        mean by about `spread`.
        """
        log_alpha = parameters[:-1]
        log_beta = float(parameters[-1])
        deviations = (log_alpha - log_alpha.mean()) / spread
        negative_log_prior = 0.5 * float(np.sum(deviations**2))
        return compute_rho_directly(Phi, y, Precisions(log_alpha, log_beta)) + negative_log_prior

    fitted = Head.fit(Phi, y, Precisions.initial(4), spread=spread).precisions
    value = negative_log_posterior(np.append(fitted.log_alpha, fitted.log_beta))

    start = np.append(np.zeros(4), 2.0)
    bounds_of_log_alpha = (-12.0, 2.0 * np.log(n))
    bounds_of_log_beta = (0.0, 10.0)
    bounds = [bounds_of_log_alpha] * 4 + [bounds_of_log_beta]
    by_scipy = minimize(negative_log_posterior, start, bounds=bounds)
    # The fit stops before its optimum is exact to the last hundredth.
    assert value < by_scipy.fun + 0.02


@pytest.mark.parametrize("n", [10, 50])
def test_fit_matches_best_of_grid(n):
    """Fitted precisions are about as likely as the most likely ones of 29 x 25 on a grid.

    There are 15 features, and fewer evaluations than features or more.
    """
    rng = np.random.default_rng(n)
    Phi = rng.standard_normal((n, 15))
    y = Phi @ rng.standard_normal(15) / 4 + 0.3 * rng.standard_normal(n)
    fitted = Head.fit(Phi, y, Precisions.initial(1)).precisions
    # Logarithms of a common precision of the weights, and of the precision of noise.
    grid = product(np.linspace(-6, 8, 29), np.linspace(0, 12, 25))
    lowest_rho = min(compute_rho_directly(Phi, y, Precisions(np.array([a]), b)) for a, b in grid)
    # rho is minus the log likelihood, so the fit may be worse by 0.02 nats.
    assert compute_likelihood_with(Phi, y, fitted).rho < lowest_rho + 0.02


def test_fantasies_keep_mean_and_shrink_deviation():
    """With fantasies, all predictions have the same means and smaller deviations.

    Fantasies are losses that pending evaluations are assumed to have: the posterior mean. So they
    bring no news about the losses, but make the model surer of them.
    """
    Phi, y, precisions = make_problem(8, 12, ard=True, seed=3)  # 8 evaluations of 12 features
    head = Head(Phi, y, precisions)
    rng = np.random.default_rng(1)
    pending = rng.standard_normal((2, 12))
    candidates = rng.standard_normal((4, 12))

    with_fantasies, fantasies = head.with_fantasies(pending)

    mean_of_pending, _ = head.predict(pending)
    assert_allclose(fantasies, mean_of_pending)
    mean, sd = head.predict(candidates)
    new_mean, new_sd = with_fantasies.predict(candidates)
    assert_allclose(new_mean, mean, atol=1e-8)
    assert (new_sd < sd).all()


# -- many tasks, one network -----------------------------------------------------------------------


def make_tasks(
    counts: list[int], *, dimension: int, seed: int = 0
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Inputs and losses of tasks with these numbers of evaluations.

    The losses are a sine of the first input, whose phase is the number of the task.
    """
    rng = np.random.default_rng(seed)
    inputs = [rng.random((n, dimension)) for n in counts]
    losses = [np.sin(4 * X[:, 0] + task) for task, X in enumerate(inputs)]
    return inputs, losses


def draw_parameters(
    network: features.Network, *, dimension: int, tasks: int, embedding_size: int
) -> joint.Parameters:
    """Random parameters of a network, and of each task: its embedding and log precisions."""
    rng = np.random.default_rng(5)
    log_alpha = rng.normal(0, 1, tasks)
    log_beta = rng.uniform(0, 5, tasks)
    # Inputs of the network are the embedding of a task and features of a configuration.
    network_parameters = network.initial(rng, dimension + embedding_size)
    embeddings = rng.standard_normal((tasks, embedding_size))
    return joint.Parameters(network_parameters, embeddings, log_alpha, log_beta)


@pytest.mark.parametrize("embedding_size", [0, 2])
def test_joint_likelihood_is_sum_over_tasks(embedding_size):
    """Five tasks have a common network, whose first inputs are the embedding of the task.

    rho is minus the log likelihood of a task, and z are the parameters of the network.
    """
    # Tasks of few evaluations, of none, and of so many that they take several blocks.
    counts = [3, 6, 7, 0, 103]
    X, y = make_tasks(counts, dimension=3)
    parameters = draw_parameters(SMALL_NETWORK, dimension=3, tasks=5, embedding_size=embedding_size)
    sum_of_rho = 0.0
    for task, count in enumerate(counts):
        if count == 0:
            continue
        embeddings = np.tile(parameters.embedded[task], (count, 1))
        inputs = np.concatenate([embeddings, X[task]], axis=1)
        Phi = features.compute_features(SMALL_NETWORK, parameters.z, inputs)
        sum_of_rho += compute_rho_directly(Phi, y[task], parameters.precisions_of(task))

    value, _ = joint.value_and_gradient(SMALL_NETWORK, X, y, parameters)

    assert_allclose(value, sum_of_rho, rtol=1e-8)


def test_joint_gradient_equals_finite_differences():
    """The gradient is by all parameters, joined in one vector, of a network and of four tasks."""
    # Tasks of few, many and no evaluations.
    X, y = make_tasks([4, 55, 0, 70], dimension=2)
    parameters = draw_parameters(SMALL_NETWORK, dimension=2, tasks=4, embedding_size=1)

    def value_and_gradient(joined: FloatArray) -> tuple[float, FloatArray]:
        return joint.value_and_gradient(SMALL_NETWORK, X, y, joint._split(joined, parameters))

    joined = joint._join(parameters)
    _, gradient = value_and_gradient(joined)

    step_length = 1e-5
    differences = []
    for step in step_length * np.eye(len(joined)):
        above, _ = value_and_gradient(joined + step)
        below, _ = value_and_gradient(joined - step)
        differences.append((above - below) / (2 * step_length))
    assert_allclose(gradient, differences, rtol=1e-4, atol=1e-4)


LAST_TASK = 6
"""Number of the last of seven tasks, which is also its phase in `make_tasks`."""


class TestJointFit:
    """A network fitted to six tasks of twenty evaluations and a seventh of four."""

    network = features.Network(8, (20, 20))
    X, y = make_tasks([20] * 6 + [4], dimension=1)

    def fit(self, tasks: list[int]) -> tuple[joint.Parameters, joint.Parameters]:
        """Fit a network to some tasks, by their numbers; return parameters before and after."""
        z = self.network.initial(np.random.default_rng(0), 1)
        no_embeddings = np.zeros((len(tasks), 0))
        start = joint.Parameters.initial(z, no_embeddings)
        X, y = [self.X[t] for t in tasks], [self.y[t] for t in tasks]
        return start, joint.fit_jointly(self.network, X, y, start, evaluations=60)

    def compute_error_on_last_task(self, parameters: joint.Parameters, first_tasks: int) -> float:
        """Squared error of a head that is fitted to the four evaluations of the last task.

        Its fit starts with the median of the precisions of so many first tasks.
        """
        Phi = features.compute_features(self.network, parameters.z, self.X[LAST_TASK])
        head = Head.fit(Phi, self.y[LAST_TASK], parameters.median_precisions(first_tasks))
        new_X = np.linspace(0, 1, 50)[:, None]
        mean, _ = head.predict(features.compute_features(self.network, parameters.z, new_X))
        true_losses = np.sin(4 * new_X[:, 0] + LAST_TASK)  # as in `make_tasks`
        return float(np.mean((mean - true_losses) ** 2))

    def test_joint_fit_beats_single_task(self):
        """The last of seven tasks has four evaluations, which are too few for a network."""
        _, fitted_to_all = self.fit(list(range(7)))
        _, fitted_to_last = self.fit([LAST_TASK])
        # The head starts with the precisions of the other six tasks.
        error = self.compute_error_on_last_task(fitted_to_all, first_tasks=6)
        # Here the last task is the only one, and so the first.
        error_of_single = self.compute_error_on_last_task(fitted_to_last, first_tasks=1)
        assert error < 0.5 * error_of_single


def compute_joint_likelihood(network: features.Network, counts: list[int]) -> None:
    """Compute the likelihood of tasks with these numbers of evaluations, for what it compiles."""
    X, y = make_tasks(counts, dimension=2)
    parameters = draw_parameters(network, dimension=2, tasks=len(counts), embedding_size=0)
    joint.value_and_gradient(network, X, y, parameters)


def test_programs_are_shared_between_sizes():
    """Once there is a program for few, many and very many evaluations, none is compiled any more.

    JAX compiles a program for each size of arrays, which takes long. So evaluations are computed
    in blocks, which are padded to one of three sizes.
    """
    network = features.Network(8, (4,))
    for few_many_or_very_many in (3, 100, 1000):
        compute_joint_likelihood(network, [few_many_or_very_many])
    compiled_programs = runtime.count_programs()

    # Other numbers of evaluations, of one to three tasks.
    for counts in ([3], [40, 0, 200], [2500, 7, 7]):
        compute_joint_likelihood(network, counts)
        assert runtime.count_programs() == compiled_programs


# -- random kitchen sinks --------------------------------------------------------------------------


class TestRandomKitchenSinks:
    """With many features they approach a Gaussian process."""

    feature_map = features.RandomKitchenSinks(8, 20_000)
    z = feature_map.initial(np.random.default_rng(0), 3)
    X = np.random.default_rng(1).random((12, 3))
    kernel = RBF(np.exp(z[0]), "fixed")

    def test_random_features_approach_kernel(self):
        """With 20 000 features, up to random errors of about 1 / sqrt(20 000)."""
        Phi = features.compute_features(self.feature_map, self.z, self.X)
        assert_allclose(Phi @ Phi.T, self.kernel(self.X), atol=0.03)

    def test_random_features_approach_posterior(self):
        """The posterior of a Gaussian process with the same kernel, after ten of twelve points."""
        y = np.sin(5 * self.X[:10]).sum(axis=1)
        noise_variance = 0.1
        process = GaussianProcessRegressor(self.kernel, alpha=noise_variance, optimizer=None)
        expected_mean, expected_sd = process.fit(self.X[:10], y).predict(self.X, return_std=True)

        Phi = features.compute_features(self.feature_map, self.z, self.X)
        # Weights of variance 1 (log alpha 0), as the kernel has.
        precisions = Precisions(np.zeros(1), -np.log(noise_variance))
        mean, sd = Head(Phi[:10], y, precisions).predict(Phi)

        assert_allclose(mean, expected_mean, atol=0.1)
        assert_allclose(sd, expected_sd, atol=0.05)
