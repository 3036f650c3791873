"""fsbo: the deep kernel's likelihood, its training, and its use on a task."""

import numpy as np
import pytest
from bowls import bowl, make_bowl_task, suggest_on_bowl
from by_hand import UNIT_SQUARE, make_method
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods import fsbo
from hpobench_ordered.methods._gp import compiled

RNG = np.random.default_rng(0)
TASK_X = RNG.random((9, 2))
TASK_LOSSES = RNG.standard_normal(9)
"""Features and losses of nine evaluations of a task."""
UNTRAINED_KERNEL = fsbo.DeepKernel.draw(2, np.random.default_rng(1))
"""A kernel on the outputs of a random network; `x` are the parameters of both."""


def compute_covariance(deep_kernel: fsbo.DeepKernel, X: FloatArray) -> FloatArray:
    """Covariance of losses: Matern kernel of the network's outputs, Phi, and noise."""
    Phi = deep_kernel.features(X)
    theta = deep_kernel.theta
    _log_length_scale, _log_signal, log_noise = theta
    groups = fsbo.output_kernel().groups  # all outputs have the same length scale
    length_scales = 1
    K = compiled.cross_covariance(Phi, Phi, groups, theta, length_scales)
    return K + np.exp(log_noise) * np.eye(len(X))


def log_likelihood(deep_kernel: fsbo.DeepKernel, X: FloatArray, y: FloatArray) -> float:
    return multivariate_normal.logpdf(y, np.zeros(len(y)), compute_covariance(deep_kernel, X))


# -- likelihood ------------------------------------------------------------------------------------


def test_likelihood_is_multivariate_normal():
    """Nine losses of a task are normal with mean 0 and the covariance of the deep kernel."""
    value, _ = fsbo.negative_log_likelihood(
        UNTRAINED_KERNEL.phi, UNTRAINED_KERNEL.x, TASK_X, TASK_LOSSES
    )
    assert value == pytest.approx(-log_likelihood(UNTRAINED_KERNEL, TASK_X, TASK_LOSSES))


def value_and_gradient(parameters: FloatArray) -> tuple[float, FloatArray]:
    """Negative log likelihood of the task, by the parameters of network and kernel."""
    return fsbo.negative_log_likelihood(UNTRAINED_KERNEL.phi, parameters, TASK_X, TASK_LOSSES)


PARAMETER_COUNT = len(UNTRAINED_KERNEL.x)
"""Number of parameters of network and kernel; those of the kernel are the last three."""
PARAMETERS_OF_KERNEL = [PARAMETER_COUNT - 3, PARAMETER_COUNT - 2, PARAMETER_COUNT - 1]
SOME_PARAMETERS = [*RNG.integers(PARAMETER_COUNT, size=30).tolist(), *PARAMETERS_OF_KERNEL]


@pytest.mark.parametrize("parameter", SOME_PARAMETERS)
def test_likelihood_gradient_is_numeric_one(parameter):
    """The derivative by a parameter of the network or of the kernel is a central difference."""
    _, gradient = value_and_gradient(UNTRAINED_KERNEL.x)
    step_length = 1e-5
    step = np.zeros(PARAMETER_COUNT)
    step[parameter] = step_length
    above, _ = value_and_gradient(UNTRAINED_KERNEL.x + step)
    below, _ = value_and_gradient(UNTRAINED_KERNEL.x - step)
    difference = (above - below) / (2 * step_length)
    assert gradient[parameter] == pytest.approx(difference, rel=1e-4, abs=1e-6)


# -- training --------------------------------------------------------------------------------------


def train_by_printed_adam(steps: int, rate: float) -> FloatArray:
    """Train all parameters by Adam as its paper prints it, with cosine decay of the rate.

    Every batch is the whole task.
    """
    parameters = UNTRAINED_KERNEL.x.copy()
    mean_gradient = 0.0
    mean_square = 0.0
    for t in range(1, steps + 1):
        _, gradient = value_and_gradient(parameters)
        mean_gradient = 0.9 * mean_gradient + 0.1 * gradient
        mean_square = 0.999 * mean_square + 0.001 * gradient * gradient
        # Both means start at 0, which the divisors correct.
        corrected_gradient = mean_gradient / (1 - 0.9**t)
        corrected_square = mean_square / (1 - 0.999**t)
        decayed_rate = 0.5 * rate * (1.0 + np.cos(np.pi * (t - 1) / steps))
        step = corrected_gradient / (np.sqrt(corrected_square) + 1e-8)
        parameters = parameters - decayed_rate * step
    return parameters


def test_training_takes_steps_of_adam():
    """Three steps on one task of nine evaluations, from a random network."""
    trained = UNTRAINED_KERNEL.train(
        [(TASK_X, TASK_LOSSES)], np.random.default_rng(0), steps=3, rate=0.01
    )
    expected = train_by_printed_adam(steps=3, rate=0.01)
    # The package adds Adam's epsilon, 1e-8, elsewhere, which matters where slopes are nearly 0.
    assert_allclose(trained.x, expected, atol=2e-5)


# -- on a task -------------------------------------------------------------------------------------


def test_initial_design_covers_earlier_optima():
    """The first trials serve all earlier tasks: one is near each of two optima."""
    method = make_method(fsbo.FSBO, [make_bowl_task(place=0.1), make_bowl_task(place=0.9)])
    design = UNIT_SQUARE.values(list(method.initial_configurations()))
    assert len(design) == fsbo.INITIAL_TRIALS
    # A bowl is the squared distance from its optimum.
    assert bowl(design, place=0.1).min() < 0.03
    assert bowl(design, place=0.9).min() < 0.03


def make_started_method() -> fsbo.FSBO:
    """A method after the initial design and two model-based trials, with its model fitted."""
    method = make_method(fsbo.FSBO, [make_bowl_task(place=0.2), make_bowl_task(place=0.3)])
    suggest_on_bowl(method, place=0.25, trials=fsbo.INITIAL_TRIALS + 2)
    method.ask()
    return method


def test_posterior_mean_is_kernels():
    """Predictions are those of a Gaussian process with the deep kernel, given all evaluations."""
    method = make_started_method()
    X, y = method.observations()
    predict, _ = method.fit_posterior(X, y)
    candidates = np.random.default_rng(2).random((4, 2))
    mean, _ = predict(candidates)

    # Covariance of the n evaluations, which come first, and of the candidates.
    n = len(y)
    K = compute_covariance(method._deep_kernel, np.concatenate([X, candidates]))
    of_evaluations = K[:n, :n]
    between = K[n:, :n]
    expected = between @ np.linalg.solve(of_evaluations, y)
    assert_allclose(mean, expected, rtol=1e-6)
