"""Hamiltonian Monte Carlo against posteriors that are known exactly."""

from typing import Any

import numpy as np
import pytest

from hpobench_ordered.methods._networks import bayesian
from hpobench_ordered.methods._networks.sghmc import Chain, Sampling, sample

pytestmark = pytest.mark.slow

COPIES = 400
"""Independent chains: one of so many times the parameters, as all operations are elementwise."""
SMALL_STEPS = Sampling(step_size=0.03, friction=0.1, batch=32, samples=40, thinning=100)


def gaussian_gradient(z: Any, mean: Any, sd: Any, rows: Any) -> Any:
    return (z - mean) / sd**2


def draws(gradient: Any, data: tuple[np.ndarray, ...], n: int, *, size: int) -> np.ndarray:
    """Samples of all copies, shape (samples * COPIES, size)."""
    rng = np.random.default_rng(0)
    chain = Chain.start(rng.standard_normal(COPIES * size))
    _, samples = sample(gradient, chain, data, n, rng, sampling=SMALL_STEPS, burn_in=1)
    return np.asarray(samples).reshape(-1, size)


def test_normal_distributions_of_any_scale_are_recovered():
    mean, sd = np.array([0.0, 3.0, -2.0]), np.array([1.0, 0.3, 2.0])
    data = (np.tile(mean, COPIES), np.tile(sd, COPIES))
    found = draws(gaussian_gradient, data, 1, size=3)
    np.testing.assert_allclose(found.mean(axis=0), mean, atol=0.1)
    np.testing.assert_allclose(found.std(axis=0), sd, rtol=0.05)
    z = (found - mean) / sd
    np.testing.assert_allclose((z**3).mean(axis=0), 0.0, atol=0.15)
    np.testing.assert_allclose((z**4).mean(axis=0), 3.0, atol=0.5)


NOISE = 0.5


def linear_gradient(z: Any, X: Any, y: Any, rows: Any) -> Any:
    """Of a linear model with weights of unit variance, for every copy on the same mini-batch."""
    W = z.reshape(-1, 3)
    errors = (W @ X[rows].T - y[rows]) * (len(y) / len(rows))
    return (errors @ X[rows] / NOISE**2 + W).ravel()


def linear_data(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Inputs and outputs, and the exact posterior's mean and covariance."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((n, 3)) @ np.array([[1.0, 0.6, 0.0], [0.0, 0.8, 0.0], [0.0, 0.0, 0.5]])
    y = X @ np.array([1.0, -1.0, 0.5]) + NOISE * rng.standard_normal(n)
    covariance = np.linalg.inv(X.T @ X / NOISE**2 + np.eye(3))
    return X, y, covariance @ X.T @ y / NOISE**2, covariance


def test_the_posterior_of_a_bayesian_linear_model():
    X, y, mean, covariance = linear_data(20)  # fewer than a mini-batch: the exact gradient
    found = draws(linear_gradient, (X, y), 20, size=3)
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((found.mean(axis=0) - mean) / sd, 0.0, atol=0.1)
    scale = np.outer(sd, sd)
    np.testing.assert_allclose(np.cov(found.T) / scale, covariance / scale, atol=0.1)


def test_mini_batches_leave_the_posterior_s_mean_and_not_much_more_variance():
    X, y, mean, covariance = linear_data(200)
    found = draws(linear_gradient, (X, y), 200, size=3)
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((found.mean(axis=0) - mean) / sd, 0.0, atol=0.5)
    ratio = found.std(axis=0) / sd
    assert (ratio > 0.7).all() and (ratio < 1.7).all()


def test_a_network_follows_its_data_and_is_less_sure_elsewhere():
    rng = np.random.default_rng(0)
    X = rng.random((20, 2))
    y = np.sin(6 * X[:, 0]) + 0.5 * X[:, 1]
    network = bayesian.BayesianNetwork(2, rng)
    network.fit(X, y)
    mean, sd = network.predict(X)
    assert np.sqrt(np.mean((mean - y) ** 2)) < 0.15 * y.std()
    far = np.array([[-1.0, 3.0], [2.0, -2.0]])
    assert network.predict(far)[1].min() > 3 * np.median(sd)
    many = np.concatenate([X, np.random.default_rng(1).random((1500, 2))])
    np.testing.assert_allclose([mean, sd], np.array(network.predict(many))[:, :20], rtol=1e-12)


def test_the_gradient_of_the_energy():
    rng = np.random.default_rng(0)
    network = bayesian.BayesianNetwork(3, rng)
    X, y = network._scale_inputs(rng.random((40, 3))), rng.standard_normal(40)
    widths = network._widths
    z, direction = (rng.standard_normal(9 * 50 + 2 * 51 * 50 + 51 + 1) for _ in range(2))

    def energy(z: np.ndarray) -> float:
        nu = bayesian.NOISE_MEAN + bayesian.NOISE_SD * z[-1]
        squares = np.sum((y - bayesian._outputs(z, widths, X)) ** 2)
        return 0.5 * (squares * np.exp(-nu) + len(y) * nu + z @ z)

    change = energy(z + 1e-6 * direction) - energy(z - 1e-6 * direction)
    gradient = bayesian._gradient(z, widths, X, y, np.arange(40))
    np.testing.assert_allclose(gradient @ direction, change / 2e-6, rtol=1e-6)
    batches = [bayesian._gradient(z, widths, X, y, np.arange(i, 40, 2)) for i in (0, 1)]
    np.testing.assert_allclose(np.mean(batches, axis=0), gradient, atol=1e-9)
