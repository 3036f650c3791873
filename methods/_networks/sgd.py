"""Training of a feature map on the squared error, optionally with nested dropout.

======  ===============  ========================================================================
symbol  shape            meaning
======  ===============  ========================================================================
M       scalar           evaluations of all tasks
d       scalar           features
X, y    (M, p), (M,)     inputs and standardised losses of all tasks
task    (M,)             task of each evaluation
z       (size,)          parameters of the feature map
W       (tasks, d)       weights of each task, trained with z and then discarded
b       (batch,)         truncation of each evaluation: phi_(b+1), ..., phi_d are dropped
v                        velocity, of the shapes of z and W
======  ===============  ========================================================================

A step: v <- momentum v - rate gradient, parameters <- parameters + v (Sutskever et al. 2013,
equations 1 and 2), the gradient being that of the mean of (phi(x)_b^T w_t - y)^2 over a batch. The
rate falls to 0 linearly.

With b uniform on 1, ..., d, drawn anew for each evaluation and step, features are learned in the
order of their use (nested dropout, Rippel et al. 2014; Horvath et al. 2021, section 4.1 and
equation 6); without dropout, b = d.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._networks import runtime
from hpobench_ordered.methods._networks.features import FeatureMap, round_up_to_power_of_two
from hpobench_ordered.methods._networks.runtime import jax

BATCH = 64
"""Number of evaluations in a mini-batch."""
MOMENTUM = 0.9
"""Share of the velocity that a step keeps."""
RATE = 0.1
"""Initial learning rate."""
EPOCHS = 350
"""Number of times that each evaluation is used, within the bounds of the number of steps."""
MIN_STEPS, MAX_STEPS = 4000, 16_000
"""Bounds of the number of steps."""
CHUNK = 500
"""Number of steps in one call of a compiled program."""
MAX_NORM = 1.0
"""Gradients are clipped to this norm, so that training does not diverge."""


def train(
    phi: FeatureMap,
    z: FloatArray,
    inputs: Sequence[FloatArray],
    losses: Sequence[FloatArray],
    *,
    nested: bool,
    rng: np.random.Generator,
) -> FloatArray:
    """Fit a feature map to the evaluations of tasks by gradient descent on the squared error.

    The prediction of an evaluation is linear in its features. The weights of each task, W, are
    trained together with the map and then discarded.

    Args:
        phi: The feature map.
        z: Its parameters at the start, shape (size,).
        inputs: Inputs of each task's evaluations, shape (n, at most p).
        losses: Standardised losses of each task's evaluations, shape (n,).
        nested: Whether an evaluation uses only the first b features, with a random b in each
            step, so that the features come in the order of their importance.
        rng: Draws batches, truncations b and the weights W at the start.

    Returns:
        The trained parameters of the map, shape (size,).
    """
    d = phi.feature_count
    task_count = len(losses)
    evaluation_count = sum(len(y) for y in losses)
    # The number of weights is rounded up as in `_join_tasks`.
    W = np.zeros((round_up_to_power_of_two(task_count), d))
    W[:task_count] = rng.standard_normal((task_count, d)) / math.sqrt(d)
    # Parameters, and their velocities.
    state: Any = (z, W, np.zeros_like(z), np.zeros_like(W))

    data = [runtime.place(array) for array in _join_tasks(phi, inputs, losses)]
    wanted_steps = min(max(EPOCHS * evaluation_count / BATCH, MIN_STEPS), MAX_STEPS)
    step_count = CHUNK * math.ceil(wanted_steps / CHUNK)  # whole chunks
    for first_step in range(0, step_count, CHUNK):
        steps = np.arange(first_step, first_step + CHUNK)
        rates = RATE * (1.0 - steps / step_count)  # falling to 0 at the end
        batches = rng.integers(evaluation_count, size=(CHUNK, BATCH), dtype=np.int32)
        truncations = np.full((CHUNK, BATCH), d, dtype=np.int32)  # all d features
        if nested:
            truncations = rng.integers(1, d + 1, size=(CHUNK, BATCH), dtype=np.int32)
        state = runtime.call(trace_steps, *state, *data, rates, batches, truncations, static=(phi,))
    trained_z, *_ = state
    return np.asarray(trained_z)


def _join_tasks(
    phi: FeatureMap, inputs: Sequence[FloatArray], losses: Sequence[FloatArray]
) -> tuple[FloatArray, FloatArray, NDArray[np.int32]]:
    """Join the evaluations of all tasks, one task after the other, and pad them with zeros.

    JAX compiles a program for each shape. The number M of evaluations is rounded up, so that there
    are few shapes. The padding has no effect, as batches are drawn from the evaluations alone.

    Args:
        phi: The feature map, of p inputs.
        inputs: Inputs of each task's evaluations, shape (n, at most p).
        losses: Standardised losses of each task's evaluations, shape (n,).

    Returns:
        Inputs (M, p), losses (M,) and index of the task (M,) of each evaluation.
    """
    counts = [len(y) for y in losses]
    evaluation_count = sum(counts)
    M = round_up_to_power_of_two(evaluation_count)
    X = np.zeros((M, phi.input_count))
    X[:evaluation_count, : inputs[0].shape[1]] = np.concatenate(inputs)
    y = np.zeros(M)
    y[:evaluation_count] = np.concatenate(losses)
    task = np.zeros(M, dtype=np.int32)
    task[:evaluation_count] = np.repeat(np.arange(len(counts)), counts)
    return X, y, task


def trace_steps(
    phi: FeatureMap,
    z: Any,
    W: Any,
    v_z: Any,
    v_W: Any,
    X: Any,
    y: Any,
    task: Any,
    rates: Any,
    rows: Any,
    truncations: Any,
) -> Any:
    """Take several steps of gradient descent with momentum.

    JAX calls it once, with placeholders for the arrays, to compile it.

    Args:
        phi: The feature map.
        z: Its parameters, shape (size,).
        W: Weights of a linear head for each task, shape (tasks, d).
        v_z: Velocity of z, the last change of it.
        v_W: Velocity of W.
        X: Inputs, shape (M, p).
        y: Losses, shape (M,).
        task: Index of each evaluation's task, shape (M,).
        rates: Learning rate of each step, shape (steps,).
        rows: Evaluations in the batch of each step, shape (steps, batch).
        truncations: Number b of features that each of them uses, shape (steps, batch).

    Returns:
        z, W and their velocities after the steps.
    """
    jnp = jax.numpy

    def mean_squared_error(trained: Any, batch: Any, b: Any) -> Any:
        """Compute the mean squared error of predictions for a batch of evaluations.

        A prediction is the sum of the first b features, each times the weight that the evaluation's
        task has for it.

        Args:
            trained: Parameters z of the feature map, and weights W (tasks, d) of each task.
            batch: Rows of the evaluations in inputs X, losses y and task indices.
            b: Number of features that each evaluation uses, shape (batch,).
        """
        z, W = trained
        is_used = jnp.arange(phi.feature_count) < b[:, None]  # (batch, d)
        used_features = phi(z, X[batch]) * is_used  # 0 where not used
        weights = W[task[batch]]  # of the task of each evaluation, (batch, d)
        predictions = jnp.sum(used_features * weights, axis=1)
        return jnp.mean((predictions - y[batch]) ** 2)

    def step(state: Any, step_data: Any) -> Any:
        """Take a step of gradient descent with momentum; gradients are clipped to `MAX_NORM`.

        JAX's `scan` calls it for each step.

        Args:
            state: Parameters z of the feature map, weights W of the tasks, the velocities of both.
            step_data: Learning rate, rows of a batch, and number of features each of them uses.

        Returns:
            The next state, and nothing for `scan` to collect.
        """
        z, W, v_z, v_W = state
        rate, batch, b = step_data
        grad_z, grad_W = jax.grad(mean_squared_error)((z, W), batch, b)
        norm = jnp.sqrt(jnp.sum(grad_z**2) + jnp.sum(grad_W**2))
        rate *= MAX_NORM / jnp.maximum(norm, MAX_NORM)  # shortens gradients that are too long
        v_z = MOMENTUM * v_z - rate * grad_z  # a share of the velocity is kept
        v_W = MOMENTUM * v_W - rate * grad_W
        next_state = (z + v_z, W + v_W, v_z, v_W)
        return next_state, None

    state, _ = jax.lax.scan(step, (z, W, v_z, v_W), (rates, rows, truncations))
    return state
