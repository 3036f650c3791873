"""The pre-trained prior: likelihood beside scipy's, what it learns, what it is told in vain."""

import math

import numpy as np
import pytest
from bowls import played, source
from by_hand import make
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, minimize
from scipy.stats import multivariate_normal

from hpobench_ordered.methods._gp import compiled
from hpobench_ordered.methods._gp.model import GaussianProcess, Kernel
from hpobench_ordered.methods.hyperbo import HyperBO, Pretrained, basis, negative_log_likelihood

KERNEL = Kernel(np.arange(2))
THETA = np.array([-0.7, 0.3, 0.1, -3.0])
B = np.array([0.5, -1.0, 0.3, 1.5, 0.7])


def covariance(X: np.ndarray) -> np.ndarray:
    K = compiled.cross_covariance(X, X, KERNEL.groups, THETA, 2)
    return K + math.exp(THETA[3]) * np.eye(len(X))


def drawn(tasks: int, n: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Tasks drawn from a prior."""
    rng = np.random.default_rng(0)
    inputs = (rng.random((n, 2)) for _ in range(tasks))
    return [(X, rng.multivariate_normal(basis(X) @ B, covariance(X))) for X in inputs]


def data_of(tasks):
    return [
        (compiled.squared_differences(X, KERNEL.groups, 2), np.column_stack([basis(X), y]))
        for X, y in tasks
    ]


def test_the_likelihood_is_the_sum_over_tasks_at_the_best_mean():
    tasks = drawn(3, 8)
    value, gradient, b = negative_log_likelihood(data_of(tasks), THETA)

    def objective(b: np.ndarray) -> float:
        of_tasks = [multivariate_normal.logpdf(y, basis(X) @ b, covariance(X)) for X, y in tasks]
        return 0.5 * float(b @ b) - sum(of_tasks)

    assert value == pytest.approx(objective(b))
    assert_allclose(approx_fprime(b, objective, 1e-6), 0.0, atol=1e-3)
    data = data_of(tasks)
    numeric = approx_fprime(THETA, lambda theta: negative_log_likelihood(data, theta)[0], 1e-6)
    assert_allclose(gradient, numeric, rtol=1e-3, atol=1e-3)


def test_the_prior_that_tasks_were_drawn_from_is_found():
    tasks = drawn(30, 40)
    found = Pretrained.fitted(tasks, KERNEL)
    data = data_of(tasks)
    best = minimize(lambda theta: negative_log_likelihood(data, theta)[:2], THETA, jac=True)
    assert negative_log_likelihood(data, found.theta)[0] < best.fun + 0.1
    assert_allclose(found.theta, THETA, atol=0.5)
    assert_allclose(found.b, B, atol=0.5)


def test_the_posterior_is_that_of_the_frozen_prior():
    method = make(HyperBO, [source(p) for p in (0.2, 0.3, 0.4)])
    played(method, 0.3, 4)
    X, raw = method.observations()
    predict, y = method.fit_posterior(X, raw)
    prior, C = method.prior, np.random.default_rng(0).random((9, 2))
    process = GaussianProcess(X, y - prior.mean(X), kernel=KERNEL, theta=prior.theta)
    assert_allclose(predict(C)[0], process.predict(C)[0] + basis(C) @ prior.b)
    assert_allclose(np.corrcoef(y, raw)[0, 1], 1.0)
    played(method, 0.3, 3)
    assert method.prior is prior
