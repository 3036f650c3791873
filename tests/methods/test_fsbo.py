"""fsbo: the deep kernel's likelihood, its training, and its use on a task."""

import numpy as np
import pytest
from bowls import bowl, make_bowl_task, suggest_on_bowl
from by_hand import SQUARE, make_method
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods import fsbo
from hpobench_ordered.methods._gp import compiled

RNG = np.random.default_rng(0)
X, Y = RNG.random((9, 2)), RNG.standard_normal(9)
"""Nine evaluations of a task: features and losses."""
UNTRAINED = fsbo.DeepKernel.draw(2, np.random.default_rng(1))
"""A kernel on the outputs of a random network; `x` are the parameters of both."""


def compute_covariance(deep_kernel: fsbo.DeepKernel, X: FloatArray) -> FloatArray:
    """Covariance of losses: Matern kernel of the network's outputs, and noise."""
    Phi = deep_kernel.features(X)
    theta = deep_kernel.theta  # log length scale, log signal and log noise
    length_scales = 1  # common to all outputs
    K = compiled.cross_covariance(Phi, Phi, fsbo.output_kernel().groups, theta, length_scales)
    noise_variance = np.exp(theta[2])
    return K + noise_variance * np.eye(len(X))


def log_likelihood(deep_kernel: fsbo.DeepKernel, X: FloatArray, y: FloatArray) -> float:
    return multivariate_normal.logpdf(y, np.zeros(len(y)), compute_covariance(deep_kernel, X))


# -- likelihood ------------------------------------------------------------------------------------


def test_likelihood_is_multivariate_normal():
    value, _ = fsbo.negative_log_likelihood(UNTRAINED.phi, UNTRAINED.x, X, Y)
    assert value == pytest.approx(-log_likelihood(UNTRAINED, X, Y))


def evaluate_at(x: FloatArray) -> float:
    """Negative log likelihood with parameters x, of network and kernel."""
    value, _ = fsbo.negative_log_likelihood(UNTRAINED.phi, x, X, Y)
    return value


SIZE = len(UNTRAINED.x)
"""Number of parameters of network and kernel; those of the kernel are the last three."""
SOME_PARAMETERS = [*RNG.integers(SIZE, size=30).tolist(), SIZE - 3, SIZE - 2, SIZE - 1]


@pytest.mark.parametrize("parameter", SOME_PARAMETERS)
def test_likelihood_gradient_is_numeric_one(parameter):
    """By one of 30 random parameters of the network, or of the kernel's three."""
    _, gradient = fsbo.negative_log_likelihood(UNTRAINED.phi, UNTRAINED.x, X, Y)
    step = np.zeros(SIZE)
    step[parameter] = 1e-5
    numeric = (evaluate_at(UNTRAINED.x + step) - evaluate_at(UNTRAINED.x - step)) / 2e-5
    assert gradient[parameter] == pytest.approx(numeric, rel=1e-4, abs=1e-6)


# -- training --------------------------------------------------------------------------------------


def train_by_printed_adam(steps: int, rate: float) -> FloatArray:
    """Adam as the paper prints it, with cosine decay, on a batch that is the whole task."""
    x, m, v = UNTRAINED.x.copy(), 0.0, 0.0
    for t in range(1, steps + 1):
        _, g = fsbo.negative_log_likelihood(UNTRAINED.phi, x, X, Y)
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        m_hat = m / (1 - 0.9**t)
        v_hat = v / (1 - 0.999**t)
        decayed_rate = 0.5 * rate * (1.0 + np.cos(np.pi * (t - 1) / steps))
        x = x - decayed_rate * m_hat / (np.sqrt(v_hat) + 1e-8)
    return x


def test_training_takes_steps_of_adam():
    """Three steps on one task of nine evaluations, from a random network."""
    trained = UNTRAINED.train([(X, Y)], np.random.default_rng(0), steps=3, rate=0.01)
    expected = train_by_printed_adam(steps=3, rate=0.01)
    # Where slopes are nearly 0, it matters whether epsilon is added before or after the correction.
    assert_allclose(trained.x, expected, atol=2e-5)


def test_training_makes_similar_tasks_likelier():
    """The log likelihood of a task between the earlier ones rises by more than 5."""
    method = make_method(fsbo.FSBO, [make_bowl_task(place=place) for place in (0.2, 0.3, 0.4, 0.5)])
    # A method with the similar task as its history computes this task's features and standardised
    # losses.
    other_method = make_method(fsbo.FSBO, [make_bowl_task(place=0.35, trials=12)])
    ((similar_X, similar_y),) = other_method.sources
    before = log_likelihood(UNTRAINED, similar_X, similar_y)
    after = log_likelihood(method.trained_kernel, similar_X, similar_y)
    assert after > before + 5.0


# -- on a task -------------------------------------------------------------------------------------


def test_initial_design_covers_earlier_optima():
    method = make_method(fsbo.FSBO, [make_bowl_task(place=0.1), make_bowl_task(place=0.9)])
    design = SQUARE.values(list(method.initial_configurations()))
    assert len(design) == fsbo.INITIAL_TRIALS
    # A configuration near each earlier optimum, where the bowl is 0.
    assert bowl(design, place=0.1).min() < 0.03
    assert bowl(design, place=0.9).min() < 0.03


def make_started_method() -> fsbo.FSBO:
    """A method after the initial design and two model-based trials, with its model fitted."""
    method = make_method(fsbo.FSBO, [make_bowl_task(place=0.2), make_bowl_task(place=0.3)])
    suggest_on_bowl(method, place=0.25, trials=fsbo.INITIAL_TRIALS + 2)
    method.ask()
    return method


def test_current_task_changes_kernel_slightly():
    method = make_started_method()
    largest_change = np.abs(method._deep_kernel.x - method.trained_kernel.x).max()
    # Each step of Adam changes a parameter by at most about its rate.
    assert 0.0 < largest_change <= fsbo.FINE_STEPS * fsbo.FINE_RATE


def test_posterior_mean_is_kernels():
    method = make_started_method()
    X, y = method.observations()
    predict, _ = method.fit_posterior(X, y)
    candidates = np.random.default_rng(2).random((4, 2))
    mean, _ = predict(candidates)

    n = len(y)
    # Evaluations first, then the four candidates.
    K = compute_covariance(method._deep_kernel, np.concatenate([X, candidates]))
    expected = K[n:, :n] @ np.linalg.solve(K[:n, :n], y)
    assert_allclose(mean, expected, rtol=1e-6)
