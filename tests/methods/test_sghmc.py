"""Hamiltonian Monte Carlo against posteriors in closed form, and the network it samples."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._networks import bayesian
from hpobench_ordered.methods._networks.sghmc import Chain, Gradient, Sampling, sample

pytestmark = pytest.mark.slow

COPIES = 400
"""Number of independent chains.

They are run as one chain of 400 times the parameters, as all of its operations are elementwise.
"""
SMALL_STEPS = Sampling(step_size=0.03, friction=0.1, batch=32, samples=40, thinning=100)


def draw_samples(gradient: Gradient, data: tuple[FloatArray, ...], n: int) -> FloatArray:
    """Sample three parameters in all chains, `COPIES` of them; return shape (samples * COPIES, 3).

    Args:
        gradient: Function of the parameters of all chains, the data, and rows of a mini-batch.
        data: Arrays that are passed to the gradient.
        n: Number of rows of the data.
    """
    rng = np.random.default_rng(0)
    chain = Chain.start(rng.standard_normal(COPIES * 3))
    _, samples = sample(gradient, chain, data, n, rng, sampling=SMALL_STEPS, burn_in=1)
    return np.asarray(samples).reshape(-1, 3)


# -- normal distributions --------------------------------------------------------------------------

TRUE_MEAN = np.array([0.0, 3.0, -2.0])
TRUE_SD = np.array([1.0, 0.3, 2.0])
"""Means and standard deviations of three independent normal distributions."""


def normal_gradient(z: Any, mean: Any, sd: Any, rows: Any) -> Any:
    """Gradient of minus the log density; the signature is that of any gradient on a mini-batch."""
    return (z - mean) / sd**2


@pytest.fixture(scope="module")
def normal_samples() -> FloatArray:
    """Samples of three independent normal distributions with `TRUE_MEAN` and `TRUE_SD`."""
    mean_of_chains = np.tile(TRUE_MEAN, COPIES)
    sd_of_chains = np.tile(TRUE_SD, COPIES)
    return draw_samples(normal_gradient, (mean_of_chains, sd_of_chains), n=1)


def test_mean_and_deviation_are_recovered(normal_samples):
    """Samples are of three normal distributions with these means and deviations."""
    assert_allclose(normal_samples.mean(axis=0), TRUE_MEAN, atol=0.1)
    assert_allclose(normal_samples.std(axis=0), TRUE_SD, rtol=0.05)


# -- Bayesian linear regression --------------------------------------------------------------------

NOISE_SD = 0.5
"""Standard deviation of the noise of losses."""


class LinearProblem(NamedTuple):
    """Data of a linear model with weights of unit variance, and the exact posterior of these."""

    X: FloatArray
    y: FloatArray
    posterior_mean: FloatArray
    posterior_covariance: FloatArray


def make_linear_problem(n: int) -> LinearProblem:
    """n random evaluations of a linear function of three inputs, of which two are correlated."""
    rng = np.random.default_rng(7)
    mixing = np.array([[1.0, 0.6, 0.0], [0.0, 0.8, 0.0], [0.0, 0.0, 0.5]])
    X = rng.standard_normal((n, 3)) @ mixing
    weights = np.array([1.0, -1.0, 0.5])
    y = X @ weights + NOISE_SD * rng.standard_normal(n)
    posterior_covariance = np.linalg.inv(X.T @ X / NOISE_SD**2 + np.eye(3))
    posterior_mean = posterior_covariance @ X.T @ y / NOISE_SD**2
    return LinearProblem(X, y, posterior_mean, posterior_covariance)


def linear_gradient(z: Any, X: Any, y: Any, rows: Any) -> Any:
    """Gradient of minus the log posterior by the weights z of all chains, on a mini-batch."""
    weights_of_chains = z.reshape(-1, 3)
    # The batch stands for all data.
    batch_weight = len(y) / len(rows)
    errors = weights_of_chains @ X[rows].T - y[rows]
    of_likelihood = batch_weight * errors @ X[rows] / NOISE_SD**2
    of_prior = weights_of_chains
    return (of_likelihood + of_prior).ravel()


def test_exact_gradient_gives_exact_posterior():
    """All 20 evaluations are fewer than a mini-batch has, so that the gradient has no noise.

    Errors are small beside the posterior's standard deviations.
    """
    problem = make_linear_problem(20)
    samples = draw_samples(linear_gradient, (problem.X, problem.y), n=20)
    sd = np.sqrt(np.diag(problem.posterior_covariance))
    error_of_mean = samples.mean(axis=0) - problem.posterior_mean
    error_of_covariance = np.cov(samples.T) - problem.posterior_covariance
    assert_allclose(error_of_mean / sd, 0.0, atol=0.1)
    assert_allclose(error_of_covariance / np.outer(sd, sd), 0.0, atol=0.1)


def test_mini_batches_approximate_posterior():
    """The noise of mini-batches widens the samples.

    Therefore errors are larger beside the posterior's standard deviations than without.
    """
    problem = make_linear_problem(200)
    samples = draw_samples(linear_gradient, (problem.X, problem.y), n=200)
    sd = np.sqrt(np.diag(problem.posterior_covariance))
    error_of_mean = samples.mean(axis=0) - problem.posterior_mean
    sd_ratio = samples.std(axis=0) / sd
    assert_allclose(error_of_mean / sd, 0.0, atol=0.5)
    assert sd_ratio.min() > 0.7
    assert sd_ratio.max() < 1.7


# -- the network -----------------------------------------------------------------------------------

TRAINING_RNG = np.random.default_rng(0)
TRAINING_X = TRAINING_RNG.random((20, 2))
TRAINING_Y = np.sin(6 * TRAINING_X[:, 0]) + 0.5 * TRAINING_X[:, 1]


@pytest.fixture(scope="module")
def network() -> bayesian.BayesianNetwork:
    """A network fitted to the training data."""
    fitted = bayesian.BayesianNetwork(2, TRAINING_RNG)
    fitted.fit(TRAINING_X, TRAINING_Y)
    return fitted


def test_network_follows_its_data(network):
    """The root mean square error is small beside the deviation of the training losses."""
    mean, _ = network.predict(TRAINING_X)
    error = np.sqrt(np.mean((mean - TRAINING_Y) ** 2))
    assert error < 0.15 * TRAINING_Y.std()


def test_predictions_do_not_depend_on_batch(network):
    """The 20 training points are predicted the same alone and before 1500 others."""
    others = np.random.default_rng(1).random((1500, 2))
    mean, sd = network.predict(np.concatenate([TRAINING_X, others]))
    expected_mean, expected_sd = network.predict(TRAINING_X)
    assert_allclose(mean[:20], expected_mean, rtol=1e-12)
    assert_allclose(sd[:20], expected_sd, rtol=1e-12)


class EnergyProblem:
    """The energy of a network, written down, at random parameters and data."""

    def __init__(self) -> None:
        """Draw 40 evaluations of three inputs, and parameters z of a network for them."""
        rng = np.random.default_rng(0)
        network = bayesian.BayesianNetwork(3, rng)
        self.X = network._scale_inputs(rng.random((40, 3)))
        self.y = rng.standard_normal(40)
        self.widths = network._widths
        # Weights and an offset of each unit: of three hidden layers of 50 units, and an output.
        padded_inputs = 8
        first_layer = (padded_inputs + 1) * 50
        other_layers = 2 * (50 + 1) * 50
        output = 50 + 1
        noise = 1
        size = first_layer + other_layers + output + noise
        # z: the parameters; the energy is differentiated along the direction.
        self.z, self.direction = rng.standard_normal((2, size))

    def energy(self, z: FloatArray) -> float:
        """Minus log posterior of parameters z given losses y, without constants.

        Losses are normal around the network's outputs, with a noise that the last parameter
        determines. All parameters have a standard normal prior.
        """
        log_noise_variance = bayesian.NOISE_MEAN + bayesian.NOISE_SD * z[-1]
        errors = self.y - bayesian._compute_outputs(z, self.widths, self.X)
        of_errors = errors @ errors * np.exp(-log_noise_variance)
        of_noise = len(self.y) * log_noise_variance
        of_prior = z @ z
        return 0.5 * float(of_errors + of_noise + of_prior)

    def gradient(self, rows: np.ndarray) -> FloatArray:
        """The package's gradient at the parameters, on a mini-batch of rows."""
        return bayesian._compute_gradient(self.z, self.widths, self.X, self.y, rows)


def test_energy_gradient_is_numeric_one():
    """The slope along a random direction is the central difference of the energy."""
    problem = EnergyProblem()
    step_length = 1e-6
    above = problem.energy(problem.z + step_length * problem.direction)
    below = problem.energy(problem.z - step_length * problem.direction)
    difference = (above - below) / (2 * step_length)
    all_rows = np.arange(40)
    slope = problem.gradient(all_rows) @ problem.direction
    assert_allclose(slope, difference, rtol=1e-6)


def test_mini_batch_gradients_are_unbiased():
    """The mean over two halves of the data is the gradient on all 40."""
    problem = EnergyProblem()
    all_rows = np.arange(40)
    even_rows, odd_rows = all_rows[::2], all_rows[1::2]
    mean_of_halves = (problem.gradient(even_rows) + problem.gradient(odd_rows)) / 2
    assert_allclose(mean_of_halves, problem.gradient(all_rows), atol=1e-9)
