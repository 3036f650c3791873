"""Feature maps and their training; JAX as the methods use it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._networks import runtime, sgd
from hpobench_ordered.methods._networks.features import Network, compute_features

pytestmark = pytest.mark.slow


# -- features --------------------------------------------------------------------------------------


SMALL_NETWORK = Network(8, (3,), 2)
"""A hidden layer of three units and two outputs, of inputs that are padded to eight."""


def draw_parameters(network: Network, *, used_inputs: int) -> FloatArray:
    """The initial parameters of a network, one after the other."""
    return network.initial(np.random.default_rng(0), used_inputs)


def test_features_are_two_layers():
    """Features are linear in the hidden units, and these are tanh of linear functions of inputs."""
    parameters = draw_parameters(SMALL_NETWORK, used_inputs=2) + 0.1  # so that no offset is 0
    X = np.random.default_rng(1).random((100, 2))
    # Weights (8, 3) and offsets (3,) of the hidden units, weights (3, 2) and offsets of outputs.
    W, b, V, c = np.split(parameters, np.cumsum([8 * 3, 3, 3 * 2]))
    used_W = W.reshape(8, 3)[:2]  # the other six inputs are padding
    hidden = np.tanh(X @ used_W + b)
    expected = hidden @ V.reshape(3, 2) + c
    actual = compute_features(SMALL_NETWORK, parameters, X)
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


# -- training --------------------------------------------------------------------------------------


def make_correlated_points() -> FloatArray:
    """400 points in five dimensions, whose principal components have distinct variances."""
    rng = np.random.default_rng(1)
    random_directions, _ = np.linalg.qr(rng.standard_normal((5, 5)))  # of the components
    sd_of_components = np.sqrt([1.5, 0.8, 0.4, 0.1, 0.05])
    return rng.standard_normal((400, 5)) * sd_of_components @ random_directions.T


def compute_angles_with_components(*, nested: bool) -> list[float]:
    """Train three linear features of points; compare them with the first principal components.

    The points have five coordinates, each of which is to be a linear function of the features. With
    `nested` dropout, training drops features from the end.

    Returns:
        Angles between the spaces that the first k features and the first k components span, for
        k from 1 to 3.
    """
    X = make_correlated_points()
    rng = np.random.default_rng(0)
    network = Network(8, (), 3)  # without a hidden layer
    start = network.initial(rng, 5)
    # Five tasks of the same inputs; each has one coordinate as its losses.
    inputs = [X] * 5
    losses = list(X.T)
    trained = sgd.train(network, start, inputs, losses, nested=nested, rng=rng)
    weights = trained[: 8 * 3].reshape(8, 3)[:5]  # without those of padding

    _, _, rows_of_components = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    components = rows_of_components.T
    angles = []
    for k in (1, 2, 3):
        angles.append(subspace_angles(weights[:, :k], components[:, :k]).max())
    return angles


@pytest.mark.parametrize("nested", [True, False])
def test_features_span_principal_components(nested):
    """All three features span the first three components, with nested dropout and without."""
    *_, angle_of_all = compute_angles_with_components(nested=nested)
    assert angle_of_all < 0.1


@pytest.mark.parametrize("nested", [True, False])
def test_only_nested_dropout_orders_features(nested):
    """The first features span the first components only if training drops features from the end."""
    angle_of_first, angle_of_two, _angle_of_all = compute_angles_with_components(nested=nested)
    is_ordered = angle_of_first < 0.1 and angle_of_two < 0.1
    assert is_ordered == nested


def compute_error_of_best_head(Phi: FloatArray, y: FloatArray) -> float:
    """Squared error of the linear function of features Phi that fits the losses y best."""
    weights, *_ = np.linalg.lstsq(Phi, y, rcond=None)
    return float(np.sum((Phi @ weights - y) ** 2))


def test_trained_features_explain_new_task():
    """Losses of eight tasks are combinations of the same two functions, so features transfer."""
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(-1, 1, (60, 2)) for _ in range(8)]
    losses = []
    for task, X in enumerate(inputs):
        y = np.sin(3 * X[:, 0]) * task + X[:, 1] ** 2
        losses.append((y - y.mean()) / y.std())
    new_X, *earlier_inputs = inputs
    new_y, *earlier_losses = losses

    network = Network(8, (20, 20), 6)
    start = network.initial(rng, 2)
    trained = sgd.train(network, start, earlier_inputs, earlier_losses, nested=True, rng=rng)
    error_before = compute_error_of_best_head(compute_features(network, start, new_X), new_y)
    error_after = compute_error_of_best_head(compute_features(network, trained, new_X), new_y)
    assert error_after < 0.1 * error_before


# -- JAX -------------------------------------------------------------------------------------------


def test_settings_of_jax_are_restored():
    """The package computes in double precision and in one thread, but leaves JAX's defaults.

    The number of threads is a variable of the environment, with the name `THREADS_VARIABLE`.
    """
    import jax

    settings_before = dict(jax.config.values)
    network = Network(8, (2,))
    parameters = draw_parameters(network, used_inputs=1)

    compute_features(network, parameters, np.zeros((1, 1)))

    assert jax.config.values == settings_before
    assert jax.numpy.ones(1).dtype == np.float32
    assert runtime.THREADS_VARIABLE not in os.environ


PROGRAM = """
import hashlib, sys
import numpy as np
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.methods._blr.joint import Parameters, fit_jointly
from hpobench_ordered.methods._networks.features import Network
from hpobench_ordered.methods._networks.sgd import train

rng = np.random.default_rng(0)
inputs = [rng.random((n, 3)) for n in (12, 60, 130)]
losses = [np.sin(4 * X[:, 0]) + X[:, 1] for X in inputs]
phi = Network(8, (20, 20), 10)
with one_thread():
    z = train(phi, phi.initial(rng, 3), inputs, losses, nested=True, rng=rng)
    start = Parameters.initial(z, np.zeros((3, 0)))
    fitted = fit_jointly(phi, inputs, losses, start, evaluations=20)
print(hashlib.sha256(z.tobytes() + fitted.z.tobytes() + fitted.log_alpha.tobytes()).hexdigest())
"""
"""Trains a network and prints the digest of its parameters."""


def run_program(threads: int, cache: Path) -> str:
    """Train in a new process with so many threads; return the digest that it prints."""
    environment = os.environ | {
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
        "HPOBENCH_ORDERED_CACHE": str(cache),
    }
    command = [sys.executable, "-c", PROGRAM]
    process = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert process.stderr == ""
    return process.stdout


def test_bits_do_not_depend_on_process(tmp_path):
    """Trained parameters are the same with another number of threads, and with cached programs.

    Compiled programs go to the folder that the environment names for this package.
    """
    digest_of_one_thread = run_program(1, tmp_path / "one")
    digest_of_two_threads = run_program(2, tmp_path / "two")
    assert any((tmp_path / "two" / "jax").iterdir())
    digest_from_cache = run_program(2, tmp_path / "two")

    assert digest_of_two_threads == digest_of_one_thread
    assert digest_from_cache == digest_of_one_thread
