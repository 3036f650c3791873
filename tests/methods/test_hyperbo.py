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
THETA = np.array([-0.7, 0.3, 0.1, -3.0])
"""True hyperparameters: two log length scales, log signal variance and log noise variance."""
B = np.array([0.5, -1.0, 0.3, 1.5, 0.7])
"""True weights of the five basis functions of the mean."""


def compute_covariance(X: FloatArray) -> FloatArray:
    """Covariance of losses at X: the kernel with `THETA`, and noise."""
    K = compiled.cross_covariance(X, X, KERNEL.groups, THETA, 2)
    return K + math.exp(THETA[3]) * np.eye(len(X))


def draw_tasks(count: int, n: int) -> list[tuple[FloatArray, FloatArray]]:
    """Features and losses of tasks, drawn from the prior with `THETA` and `B`."""
    rng = np.random.default_rng(0)
    tasks = []
    for _ in range(count):
        X = rng.random((n, 2))
        tasks.append((X, rng.multivariate_normal(compute_basis(X) @ B, compute_covariance(X))))
    return tasks


def prepare_tasks(tasks: list[tuple[FloatArray, FloatArray]]) -> list[FittedTask]:
    """Squared differences, basis functions and losses of each task, what the likelihood takes."""
    prepared = []
    for X, y in tasks:
        S = compiled.squared_differences(X, KERNEL.groups, 2)
        prepared.append(FittedTask(S, compute_basis(X), y))
    return prepared


# -- likelihood ------------------------------------------------------------------------------------


def negative_log_likelihood_by_scipy(
    tasks: list[tuple[FloatArray, FloatArray]], b: FloatArray
) -> float:
    """Sum over tasks; the weights b of the mean have a standard normal prior."""
    total = 0.5 * float(b @ b)
    for X, y in tasks:
        total -= multivariate_normal.logpdf(y, compute_basis(X) @ b, compute_covariance(X))
    return total


def test_likelihood_is_sum_over_tasks():
    """Of three tasks of eight evaluations, at the true hyperparameters of the kernel, `THETA`."""
    tasks = draw_tasks(3, 8)
    # b: the weights of the mean function, which the likelihood determines.
    value, _, b = negative_log_likelihood(prepare_tasks(tasks), THETA)
    assert value == pytest.approx(negative_log_likelihood_by_scipy(tasks, b))


def test_mean_weights_minimise_likelihood():
    """The negative log likelihood, at the true hyperparameters of the kernel, `THETA`."""
    tasks = draw_tasks(3, 8)
    # b: the weights of the mean function.
    _, _, b = negative_log_likelihood(prepare_tasks(tasks), THETA)
    gradient = approx_fprime(b, lambda b: negative_log_likelihood_by_scipy(tasks, b), 1e-6)
    assert_allclose(gradient, 0.0, atol=1e-3)


def test_likelihood_gradient_is_numeric_one():
    """By the hyperparameters of the kernel, at their true values, `THETA`."""
    tasks = prepare_tasks(draw_tasks(3, 8))
    _, gradient, _ = negative_log_likelihood(tasks, THETA)
    numeric = approx_fprime(THETA, lambda theta: negative_log_likelihood(tasks, theta)[0], 1e-6)
    assert_allclose(gradient, numeric, rtol=1e-3, atol=1e-3)


# -- the prior -------------------------------------------------------------------------------------


def test_fitted_prior_has_largest_likelihood():
    tasks = draw_tasks(30, 40)
    prior = Prior.fit(tasks, KERNEL)
    prepared = prepare_tasks(tasks)
    # scipy starts at the true parameters.
    best = minimize(lambda theta: negative_log_likelihood(prepared, theta)[:2], THETA, jac=True)
    value, _, _ = negative_log_likelihood(prepared, prior.theta)
    assert value < best.fun + 0.1


def test_fitted_prior_is_true_one():
    # 30 tasks of 40 evaluations, drawn from a prior with `THETA` and `B`.
    prior = Prior.fit(draw_tasks(30, 40), KERNEL)
    assert_allclose(prior.theta, THETA, atol=0.5)
    assert_allclose(prior.b, B, atol=0.5)


# -- on a task -------------------------------------------------------------------------------------


def make_started_method() -> HyperBO:
    """A method with three earlier tasks, after four trials."""
    method = make_method(HyperBO, [make_bowl_task(place=place) for place in (0.2, 0.3, 0.4)])
    suggest_on_bowl(method, place=0.3, trials=4)
    return method


def test_posterior_conditions_prior():
    """A Gaussian process on what the prior mean leaves."""
    method = make_started_method()
    X, losses = method.observations()
    # y: the losses on the prior's scale.
    predict, y = method.fit_posterior(X, losses)
    prior = method.prior
    process = GaussianProcess(X, y - prior.mean(X), kernel=KERNEL, theta=prior.theta)
    candidates = np.random.default_rng(0).random((9, 2))
    mean, _ = predict(candidates)
    assert_allclose(mean, process.predict(candidates)[0] + prior.mean(candidates))


def test_prior_is_fitted_once():
    method = make_started_method()
    prior = method.prior
    suggest_on_bowl(method, place=0.3, trials=3)
    # The same object after three more trials.
    assert method.prior is prior


def test_losses_get_expected_mean_and_variance():
    """Those of samples of the prior at the same configurations."""
    mean = np.array([0.5, -1.0, 2.0])
    L = np.array([[1.0, 0.0, 0.0], [0.8, 0.3, 0.0], [-0.2, 0.5, 0.7]])
    losses = np.array([1.0, 0.5, -1.5])
    y = (losses - losses.mean()) / losses.std()
    rescaled = rescale_losses(y, mean, L @ L.T)

    samples = mean + np.random.default_rng(0).standard_normal((200_000, 3)) @ L.T
    assert rescaled.mean() == pytest.approx(mean.mean())
    assert rescaled.var() == pytest.approx(samples.var(axis=1).mean(), rel=1e-2)
    assert np.corrcoef(rescaled, y)[0, 1] == pytest.approx(1.0)
