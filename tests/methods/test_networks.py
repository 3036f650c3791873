"""Feature maps and their training; JAX as the methods use it."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._networks import runtime, sgd
from hpobench_ordered.methods._networks.features import Network, compute_features

pytestmark = pytest.mark.slow

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


def linear_features(X: FloatArray, k: int, *, nested: bool) -> FloatArray:
    """Weights (inputs, k) of a linear network trained to reproduce its inputs, one task each."""
    phi, rng = Network(8, (), k), np.random.default_rng(0)
    inputs, losses = [X] * X.shape[1], list(X.T)
    z = phi.initial(rng, X.shape[1])
    z = sgd.train(phi, z, inputs, losses, nested=nested, rng=rng)
    return z[: 8 * k].reshape(8, k)[: X.shape[1]]


def test_nested_dropout_orders_a_linear_networks_features_as_principal_components():
    rng = np.random.default_rng(1)
    rotation, _ = np.linalg.qr(rng.standard_normal((5, 5)))
    X = rng.standard_normal((400, 5)) * np.sqrt([1.5, 0.8, 0.4, 0.1, 0.05]) @ rotation.T
    components = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2].T
    nested, plain = (linear_features(X, 3, nested=nested) for nested in (True, False))
    for weights, is_ordered in ((nested, True), (plain, False)):
        angles = [subspace_angles(weights[:, :k], components[:, :k]).max() for k in (1, 2, 3)]
        assert angles[2] < 0.1  # all features together, in either case
        assert (max(angles[:2]) < 0.1) == is_ordered


def test_training_explains_tasks_on_which_it_was_trained_and_others():
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(-1, 1, (60, 2)) for _ in range(8)]
    targets = [np.sin(3 * X[:, 0]) * a + X[:, 1] ** 2 for a, X in enumerate(inputs)]
    targets = [(y - y.mean()) / y.std() for y in targets]
    phi = Network(8, (20, 20), 6)
    z = phi.initial(rng, 2)
    errors = []
    for parameters in (z, sgd.train(phi, z, inputs[1:], targets[1:], nested=True, rng=rng)):
        Phi = compute_features(phi, parameters, inputs[0])
        errors.append(np.linalg.lstsq(Phi, targets[0], rcond=None)[1][0])
    assert errors[1] < 0.1 * errors[0]


def test_features_of_a_network_by_hand():
    phi = Network(8, (3,), 2)
    z = phi.initial(np.random.default_rng(0), 2)
    assert (z[:6] != 0).all() and (z[6:24] == 0).all()  # unused inputs have no weights
    z = z + 0.1
    X = np.random.default_rng(1).random((100, 2))
    W, b, V, c = np.split(z, [24, 27, 33])
    expected = np.tanh(X @ W.reshape(8, 3)[:2] + b) @ V.reshape(3, 2) + c
    np.testing.assert_allclose(compute_features(phi, z, X), expected, rtol=1e-12)
    np.testing.assert_array_equal(compute_features(phi, z, X[:0]), np.empty((0, 2)))


def test_settings_of_jax_stay_as_they_are():
    import jax

    phi = Network(8, (2,))
    before = dict(jax.config.values)
    compute_features(phi, phi.initial(np.random.default_rng(0), 1), np.zeros((1, 1)))
    assert jax.config.values == before
    assert jax.numpy.ones(1).dtype == np.float32
    assert runtime.THREADS not in os.environ


def test_the_same_bits_in_any_process_and_programs_in_the_package_cache(tmp_path):
    digests = set()
    for threads in ("1", "2", "2"):
        cache = tmp_path / threads
        environment = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), threads)
        environment = os.environ | environment | {"HPOBENCH_ORDERED_CACHE": str(cache)}
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        assert done.stderr == ""
        digests.add(done.stdout)
        assert any((cache / "jax").iterdir())
    assert len(digests) == 1
