"""The deep kernel: its likelihood by formula and differences, what is learned, what misleads."""

import numpy as np
import pytest
from bowls import bowl, played, source
from by_hand import SQUARE, make
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from hpobench_ordered.methods import fsbo
from hpobench_ordered.methods._gp import compiled

RNG = np.random.default_rng(0)
X, Y = RNG.random((9, 2)), RNG.standard_normal(9)
DEEP = fsbo.DeepKernel.initial(2, np.random.default_rng(1))


def covariance(deep: fsbo.DeepKernel, X: np.ndarray) -> np.ndarray:
    Phi, theta = deep.features(X), deep.x[-3:]
    K = compiled.cross_covariance(Phi, Phi, fsbo.kernel().groups, theta, 1)
    return K + np.exp(theta[2]) * np.eye(len(X))


def nll(x: np.ndarray) -> float:
    return fsbo.negative_log_likelihood(DEEP.phi, x, 2.0 * X - 1.0, Y)[0]


def test_the_likelihood_is_that_of_the_formula_and_its_gradient_that_of_differences():
    value, gradient = fsbo.negative_log_likelihood(DEEP.phi, DEEP.x, 2.0 * X - 1.0, Y)
    expected = -multivariate_normal.logpdf(Y, np.zeros(9), covariance(DEEP, X))
    assert value == pytest.approx(expected)
    for i in [*RNG.integers(len(DEEP.x), size=30), *range(-3, 0)]:
        step = np.zeros(len(DEEP.x))
        step[i] = 1e-5
        numeric = (nll(DEEP.x + step) - nll(DEEP.x - step)) / 2e-5
        assert gradient[i] == pytest.approx(numeric, rel=1e-4, abs=1e-6)


def test_steps_are_those_of_adam():
    """With one batch that is the whole task; beside the algorithm as it is printed."""
    tasks = [(X, Y)]
    ours = DEEP.trained(tasks, np.random.default_rng(0), steps=3, rate=0.01)
    x, m, v = DEEP.x.copy(), 0.0, 0.0
    for t in range(1, 4):
        _, g = fsbo.negative_log_likelihood(DEEP.phi, x, 2.0 * X - 1.0, Y)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        rate = 0.005 * (1.0 + np.cos(np.pi * (t - 1) / 3))
        x = x - rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    assert_allclose(ours.x, x, atol=2e-5)  # where slopes are nearly 0, what is added counts


def test_training_makes_new_tasks_of_the_kind_likelier():
    history = [source(p) for p in (0.2, 0.3, 0.4, 0.5)]
    method = make(fsbo.FSBO, history)
    (X, y), *_ = make(fsbo.FSBO, [source(0.35, trials=12)]).sources

    def likelihood(deep: fsbo.DeepKernel) -> float:
        return multivariate_normal.logpdf(y, np.zeros(12), covariance(deep, X))

    assert likelihood(method.trained) > likelihood(DEEP) + 5.0


def test_the_initial_design_covers_the_optima_of_the_earlier_tasks():
    method = make(fsbo.FSBO, [source(0.1), source(0.9)])
    first = SQUARE.values(list(method.initial_configurations()))
    assert len(first) == fsbo.START
    for place in (0.1, 0.9):
        assert bowl(first, place).min() < 0.03


def test_the_current_task_changes_the_kernel_a_little_and_the_posterior_is_the_kernels():
    method = make(fsbo.FSBO, [source(p) for p in (0.2, 0.3)])
    played(method, 0.25, fsbo.START + 2)
    method.ask()
    moved = np.abs(method._deep.x - method.trained.x).max()
    assert 0.0 < moved <= fsbo.FINE_STEPS * fsbo.FINE_RATE
    X, y = method.observations()
    predict, _ = method.fit_posterior(X, y)
    n, points = len(y), np.random.default_rng(2).random((4, 2))
    K = covariance(method._deep, np.concatenate([X, points]))
    assert_allclose(predict(points)[0], K[n:, :n] @ np.linalg.solve(K[:n, :n], y), rtol=1e-6)
