"""hyperbo: the likelihood beside scipy's, the fitted prior, and its use on a task."""

import math

import numpy as np
import pytest
from bowls import make_bowl_task, suggest_on_bowl
from by_hand import make_method
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, minimize
from scipy.stats import multivariate_normal

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._gp import compiled
from hpobench_ordered.methods._gp.model import GaussianProcess, Kernel
from hpobench_ordered.methods.hyperbo import (
    FittedTask,
    HyperBO,
    Prior,
    compute_basis,
    negative_log_likelihood,
    rescale_losses,
)

KERNEL = Kernel(np.arange(2))
"""Of two features, with a length scale each."""
TRUE_THETA = np.array([-0.7, 0.3, 0.1, -3.0])
"""Hyperparameters that losses are drawn with: two log length scales, log signal and log noise."""
TRUE_WEIGHTS = np.array([0.5, -1.0, 0.3, 1.5, 0.7])
"""Weights of the five basis functions of the mean that losses are drawn with."""


def compute_covariance(X: FloatArray) -> FloatArray:
    """Covariance of the losses of configurations with features X, by the true hyperparameters."""
    *_, log_noise = TRUE_THETA
    K = compiled.cross_covariance(X, X, KERNEL.groups, TRUE_THETA, KERNEL.length_scales)
    return K + math.exp(log_noise) * np.eye(len(X))


def draw_tasks(count: int, n: int) -> list[tuple[FloatArray, FloatArray]]:
    """Draw features and losses of tasks with n evaluations each, from the true prior."""
    rng = np.random.default_rng(0)
    tasks = []
    for _ in range(count):
        X = rng.random((n, 2))
        mean = compute_basis(X) @ TRUE_WEIGHTS
        losses = rng.multivariate_normal(mean, compute_covariance(X))
        tasks.append((X, losses))
    return tasks


def prepare_tasks(tasks: list[tuple[FloatArray, FloatArray]]) -> list[FittedTask]:
    """Compute what the likelihood takes of each task: squared differences, basis, losses."""
    prepared = []
    for X, losses in tasks:
        squared_differences = compiled.squared_differences(X, KERNEL.groups, KERNEL.length_scales)
        prepared.append(FittedTask(squared_differences, compute_basis(X), losses))
    return prepared


# -- likelihood ------------------------------------------------------------------------------------


def negative_log_likelihood_by_scipy(
    tasks: list[tuple[FloatArray, FloatArray]], weights: FloatArray
) -> float:
    """Sum over tasks, at the true hyperparameters and these weights of the mean.

    The weights have a standard normal prior, whose constant is left out.
    """
    total = 0.5 * float(weights @ weights)
    for X, losses in tasks:
        mean = compute_basis(X) @ weights
        total -= multivariate_normal.logpdf(losses, mean, compute_covariance(X))
    return total


def test_likelihood_is_sum_over_tasks():
    """The sum over three tasks, with the weights of the mean that the likelihood determines."""
    tasks = draw_tasks(count=3, n=8)
    value, _gradient, weights = negative_log_likelihood(prepare_tasks(tasks), TRUE_THETA)
    assert value == pytest.approx(negative_log_likelihood_by_scipy(tasks, weights))


def test_mean_weights_maximise_likelihood():
    """The gradient of the negative log likelihood by the weights of the mean is 0."""
    tasks = draw_tasks(count=3, n=8)
    _value, _gradient_by_theta, weights = negative_log_likelihood(prepare_tasks(tasks), TRUE_THETA)

    def compute_value(weights: FloatArray) -> float:
        return negative_log_likelihood_by_scipy(tasks, weights)

    assert_allclose(approx_fprime(weights, compute_value, 1e-6), 0.0, atol=1e-3)


def test_likelihood_gradient_is_numeric_one():
    """The gradient is by the hyperparameters theta, at their true values."""
    tasks = prepare_tasks(draw_tasks(count=3, n=8))

    def compute_value(theta: FloatArray) -> float:
        value, _gradient, _weights = negative_log_likelihood(tasks, theta)
        return value

    _value, gradient, _weights = negative_log_likelihood(tasks, TRUE_THETA)
    differences = approx_fprime(TRUE_THETA, compute_value, 1e-6)
    assert_allclose(gradient, differences, rtol=1e-3, atol=1e-3)


# -- the prior -------------------------------------------------------------------------------------


def test_fitted_prior_has_largest_likelihood():
    """The fit finds as low a minimum as scipy does, which starts at the true hyperparameters."""
    tasks = draw_tasks(count=30, n=40)
    prior = Prior.fit(tasks, KERNEL)
    prepared = prepare_tasks(tasks)

    def value_and_gradient(theta: FloatArray) -> tuple[float, FloatArray]:
        value, gradient, _weights = negative_log_likelihood(prepared, theta)
        return value, gradient

    by_scipy = minimize(value_and_gradient, TRUE_THETA, jac=True)
    value, _gradient = value_and_gradient(prior.theta)
    assert value < by_scipy.fun + 0.1


# -- on a task -------------------------------------------------------------------------------------


def make_started_method() -> HyperBO:
    """A method with three earlier tasks, after four trials."""
    method = make_method(HyperBO, [make_bowl_task(place=place) for place in (0.2, 0.3, 0.4)])
    suggest_on_bowl(method, place=0.3, trials=4)
    return method


def test_posterior_conditions_prior():
    """Predictions are the prior mean, and a Gaussian process of the losses' residuals from it."""
    method = make_started_method()
    X, losses = method.observations()
    predict, rescaled_losses = method.fit_posterior(X, losses)
    candidates = np.random.default_rng(0).random((9, 2))
    mean, _sd = predict(candidates)

    prior = method.prior
    residuals = rescaled_losses - prior.predict_mean(X)
    process = GaussianProcess(X, residuals, kernel=KERNEL, theta=prior.theta)
    mean_of_residuals, _sd = process.predict(candidates)
    assert_allclose(mean, prior.predict_mean(candidates) + mean_of_residuals)


def test_losses_get_expected_mean_and_variance():
    """Losses of three configurations get the mean and variance that the prior expects of them."""
    prior_mean = np.array([0.5, -1.0, 2.0])
    factor = np.array([[1.0, 0.0, 0.0], [0.8, 0.3, 0.0], [-0.2, 0.5, 0.7]])
    prior_covariance = factor @ factor.T
    losses = np.array([1.0, 0.5, -1.5])
    standardised = (losses - losses.mean()) / losses.std()

    rescaled = rescale_losses(standardised, prior_mean, prior_covariance)

    rng = np.random.default_rng(0)
    samples_of_prior = prior_mean + rng.standard_normal((200_000, 3)) @ factor.T
    expected_variance = samples_of_prior.var(axis=1).mean()
    assert rescaled.mean() == pytest.approx(prior_mean.mean())
    assert rescaled.var() == pytest.approx(expected_variance, rel=1e-2)
    # Rescaling is linear.
    assert np.corrcoef(rescaled, standardised)[0, 1] == pytest.approx(1.0)
