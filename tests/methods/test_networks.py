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


def test_features_are_two_layers():
    """A hidden layer of three tanh units and two linear outputs, of two inputs padded to eight."""
    phi = Network(8, (3,), 2)
    z = phi.initial(np.random.default_rng(0), 2) + 0.1
    X = np.random.default_rng(1).random((100, 2))
    # Weights and offsets of the hidden layer, then weights of the outputs; their offsets remain.
    sizes = [8 * 3, 3, 3 * 2]
    W, b, V, c = np.split(z, np.cumsum(sizes))
    hidden = np.tanh(X @ W.reshape(8, 3)[:2] + b)
    expected = hidden @ V.reshape(3, 2) + c
    np.testing.assert_allclose(compute_features(phi, z, X), expected, rtol=1e-12)


def test_no_configurations_give_no_features():
    # Eight inputs, three hidden units, two features.
    phi = Network(8, (3,), 2)
    z = phi.initial(np.random.default_rng(0), 2)
    assert compute_features(phi, z, np.empty((0, 2))).shape == (0, 2)


def test_padding_has_no_initial_weights():
    """Two inputs are used; the weights of the six that pad them to eight are 0."""
    phi = Network(8, (3,), 2)
    z = phi.initial(np.random.default_rng(0), 2)
    weights_of_inputs = z[: 8 * 3].reshape(8, 3)
    assert (weights_of_inputs[:2] != 0).all()
    assert (weights_of_inputs[2:] == 0).all()


# -- training --------------------------------------------------------------------------------------


def make_correlated_points() -> FloatArray:
    """400 points in five dimensions, whose principal components have distinct variances."""
    rng = np.random.default_rng(1)
    rotation, _ = np.linalg.qr(rng.standard_normal((5, 5)))
    sd = np.sqrt([1.5, 0.8, 0.4, 0.1, 0.05])
    return rng.standard_normal((400, 5)) * sd @ rotation.T


def angles_with_principal_components(*, nested: bool) -> list[float]:
    """Train three linear features to reproduce points; their angles with principal components.

    Angle k is that between the first k features and the first k components.
    """
    X = make_correlated_points()
    rng = np.random.default_rng(0)
    phi = Network(8, (), 3)
    reproduce_each_coordinate = list(X.T)
    # Five tasks of the same inputs; each has one coordinate as its losses.
    z = sgd.train(
        phi, phi.initial(rng, 5), [X] * 5, reproduce_each_coordinate, nested=nested, rng=rng
    )
    weights = z[: 8 * 3].reshape(8, 3)[:5]
    _, _, components = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    return [subspace_angles(weights[:, :k], components.T[:, :k]).max() for k in (1, 2, 3)]


@pytest.mark.parametrize("nested", [True, False])
def test_features_span_principal_components(nested):
    *_, angle_of_all = angles_with_principal_components(nested=nested)
    assert angle_of_all < 0.1


@pytest.mark.parametrize("nested", [True, False])
def test_only_nested_dropout_orders_features(nested):
    """The first features span the first components only if training drops features from the end."""
    angle_of_first, angle_of_two, _ = angles_with_principal_components(nested=nested)
    assert (max(angle_of_first, angle_of_two) < 0.1) == nested


def squared_error_of_best_head(phi: Network, z: FloatArray, X: FloatArray, y: FloatArray) -> float:
    """Squared error of the best linear function of the features."""
    _, (squared_error,), *_ = np.linalg.lstsq(compute_features(phi, z, X), y, rcond=None)
    return float(squared_error)


def test_trained_features_explain_new_task():
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(-1, 1, (60, 2)) for _ in range(8)]
    losses = []
    for task, X in enumerate(inputs):
        y = np.sin(3 * X[:, 0]) * task + X[:, 1] ** 2
        losses.append((y - y.mean()) / y.std())

    phi = Network(8, (20, 20), 6)
    z = phi.initial(rng, 2)
    # Task 0 is the new one, all others are trained on.
    trained_z = sgd.train(phi, z, inputs[1:], losses[1:], nested=True, rng=rng)
    before = squared_error_of_best_head(phi, z, inputs[0], losses[0])
    after = squared_error_of_best_head(phi, trained_z, inputs[0], losses[0])
    assert after < 0.1 * before


# -- JAX -------------------------------------------------------------------------------------------


def test_settings_of_jax_are_restored():
    import jax

    phi = Network(8, (2,))
    before = dict(jax.config.values)
    # The package computes in double precision, in one thread.
    compute_features(phi, phi.initial(np.random.default_rng(0), 1), np.zeros((1, 1)))
    assert jax.config.values == before
    # Single precision is JAX's own default.
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
    # Each returns the digest of trained parameters.
    one_thread = run_program(1, tmp_path / "one")
    two_threads = run_program(2, tmp_path / "two")
    from_filled_cache = run_program(2, tmp_path / "two")
    assert one_thread == two_threads == from_filled_cache


def test_programs_are_cached_in_package_folder(tmp_path):
    """Compiled programs go to the folder that the environment names for this package."""
    run_program(1, tmp_path)
    assert any((tmp_path / "jax").iterdir())
