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
"""Independent chains: one of so many times the parameters, as all operations are elementwise."""
SMALL_STEPS = Sampling(step_size=0.03, friction=0.1, batch=32, samples=40, thinning=100)


def draw_samples(
    gradient: Gradient, data: tuple[FloatArray, ...], n: int, *, size: int
) -> FloatArray:
    """Samples of all copies, shape (samples * COPIES, size)."""
    rng = np.random.default_rng(0)
    chain = Chain.start(rng.standard_normal(COPIES * size))
    _, samples = sample(gradient, chain, data, n, rng, sampling=SMALL_STEPS, burn_in=1)
    return np.asarray(samples).reshape(-1, size)


# -- normal distributions --------------------------------------------------------------------------

MEAN = np.array([0.0, 3.0, -2.0])
SD = np.array([1.0, 0.3, 2.0])
"""Of three independent normal distributions."""


def normal_gradient(z: Any, mean: Any, sd: Any, rows: Any) -> Any:
    """Gradient of minus the log density; the signature is that of any gradient on a mini-batch."""
    return (z - mean) / sd**2


@pytest.fixture(scope="module")
def normal_samples() -> FloatArray:
    """Samples of independent normal distributions with `MEAN` and `SD`."""
    return draw_samples(normal_gradient, (np.tile(MEAN, COPIES), np.tile(SD, COPIES)), 1, size=3)


def test_mean_and_deviation_are_recovered(normal_samples):
    """Samples are of three normal distributions with these means and deviations."""
    assert_allclose(normal_samples.mean(axis=0), MEAN, atol=0.1)
    assert_allclose(normal_samples.std(axis=0), SD, rtol=0.05)


def test_higher_moments_are_recovered(normal_samples):
    """Samples are of three normal distributions with the means `MEAN` and deviations `SD`."""
    standardised = (normal_samples - MEAN) / SD
    # Third and fourth moment of a standard normal number: 0 and 3.
    assert_allclose((standardised**3).mean(axis=0), 0.0, atol=0.15)
    assert_allclose((standardised**4).mean(axis=0), 3.0, atol=0.5)


# -- Bayesian linear regression --------------------------------------------------------------------

NOISE = 0.5


class LinearProblem(NamedTuple):
    """Data of a linear model with weights of unit variance, and its exact posterior."""

    X: FloatArray
    y: FloatArray
    mean: FloatArray
    covariance: FloatArray


def make_linear_problem(n: int) -> LinearProblem:
    """n correlated inputs, losses of the weights 1, -1 and 0.5 with noise, and the posterior."""
    rng = np.random.default_rng(7)
    mixing = np.array([[1.0, 0.6, 0.0], [0.0, 0.8, 0.0], [0.0, 0.0, 0.5]])
    X = rng.standard_normal((n, 3)) @ mixing
    y = X @ np.array([1.0, -1.0, 0.5]) + NOISE * rng.standard_normal(n)
    covariance = np.linalg.inv(X.T @ X / NOISE**2 + np.eye(3))
    return LinearProblem(X, y, covariance @ X.T @ y / NOISE**2, covariance)


def linear_gradient(z: Any, X: Any, y: Any, rows: Any) -> Any:
    """Gradient for every copy on the same mini-batch."""
    W = z.reshape(-1, 3)
    # The batch stands for all data.
    batch_weight = len(y) / len(rows)
    errors = batch_weight * (W @ X[rows].T - y[rows])
    return (errors @ X[rows] / NOISE**2 + W).ravel()


def test_exact_gradient_gives_exact_posterior():
    problem = make_linear_problem(20)  # fewer than in a mini-batch
    samples = draw_samples(linear_gradient, (problem.X, problem.y), 20, size=3)
    # Errors in units of the posterior's standard deviations.
    sd = np.sqrt(np.diag(problem.covariance))
    scale = np.outer(sd, sd)
    assert_allclose((samples.mean(axis=0) - problem.mean) / sd, 0.0, atol=0.1)
    assert_allclose(np.cov(samples.T) / scale, problem.covariance / scale, atol=0.1)


def test_mini_batches_approximate_posterior():
    """The noise of mini-batches widens the samples, so tolerances are larger."""
    problem = make_linear_problem(200)
    samples = draw_samples(linear_gradient, (problem.X, problem.y), 200, size=3)
    sd = np.sqrt(np.diag(problem.covariance))
    sd_ratio = samples.std(axis=0) / sd
    # In units of the posterior's standard deviations.
    assert_allclose((samples.mean(axis=0) - problem.mean) / sd, 0.0, atol=0.5)
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


def test_network_is_unsure_far_away(network):
    """The training data lie in the unit square."""
    _, sd = network.predict(TRAINING_X)
    _, sd_far_away = network.predict(np.array([[-1.0, 3.0], [2.0, -2.0]]))
    assert sd_far_away.min() > 3 * np.median(sd)


def test_predictions_do_not_depend_on_batch(network):
    others = np.random.default_rng(1).random((1500, 2))
    together = np.array(network.predict(np.concatenate([TRAINING_X, others])))
    # The first 20 points are the training data.
    assert_allclose(together[:, :20], network.predict(TRAINING_X), rtol=1e-12)


class EnergyProblem:
    """The energy of a network, written down, at random parameters and data."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        network = bayesian.BayesianNetwork(3, rng)
        self.X = network._scale_inputs(rng.random((40, 3)))
        self.y = rng.standard_normal(40)
        self.widths = network._widths
        # Inputs padded to 8, three hidden layers of 50 units, an output, biases, and the noise.
        size = 9 * 50 + 2 * 51 * 50 + 51 + 1
        self.z, self.direction = rng.standard_normal((2, size))

    def energy(self, z: FloatArray) -> float:
        """Minus log posterior, without constants; the last parameter determines nu, the log noise
        variance.
        """
        nu = bayesian.NOISE_MEAN + bayesian.NOISE_SD * z[-1]
        errors = self.y - bayesian._compute_outputs(z, self.widths, self.X)
        return 0.5 * float(errors @ errors * np.exp(-nu) + len(self.y) * nu + z @ z)

    def gradient(self, rows: np.ndarray) -> FloatArray:
        """The package's gradient at the parameters, on a mini-batch of rows."""
        return bayesian._compute_gradient(self.z, self.widths, self.X, self.y, rows)


def test_energy_gradient_is_numeric_one():
    """The slope along a random direction is the central difference of the energy."""
    problem = EnergyProblem()
    step = 1e-6 * problem.direction
    numeric = (problem.energy(problem.z + step) - problem.energy(problem.z - step)) / 2e-6
    gradient = problem.gradient(np.arange(40))
    assert_allclose(gradient @ problem.direction, numeric, rtol=1e-6)


def test_mini_batch_gradients_are_unbiased():
    """The mean over two halves of the data is the gradient on all 40."""
    problem = EnergyProblem()
    halves = [problem.gradient(np.arange(0, 40, 2)), problem.gradient(np.arange(1, 40, 2))]
    assert_allclose(np.mean(halves, axis=0), problem.gradient(np.arange(40)), atol=1e-9)
