"""Time of Bayesian linear regression on networks: training, suggestions, growth with the history.

The joint likelihood is compared with the same formulas in numpy. Linear algebra runs on one thread,
as in the experiment's workers.
"""

import time

import numpy as np
import pytest

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.core.benchmark import Task
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.methods._blr.joint import Parameters, value_and_gradient
from hpobench_ordered.methods._networks.features import Network
from hpobench_ordered.methods.base import Method
from hpobench_ordered.registry import method_spec
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.testing.toy import random_history, toy_benchmark

TASKS, EVALUATIONS = 29, 100
TRAINING_LIMIT = 2.0  # seconds, after compiling
SUGGESTION_LIMITS = {  # seconds, median, with 25 evaluations
    "abrac": 5e-3,
    "abrac-prior": 5e-3,
    "abrac-fixed": 5e-3,
    "ablr-sgd-adapt": 5e-3,
    "ablr-sgd-fixed": 5e-3,
    "ablr-lbfgs-fixed": 5e-3,
    "ablr-rks": 5e-3,
    "ablr": 150e-3,
    "ablr-transfer": 150e-3,
    "ablr-ctx": 150e-3,
    "ablr-embeddings": 150e-3,
}
SPACE = SearchSpace([Parameter.number(name, 0, 1) for name in "abcde"])
FIXED = tuple(name for name, limit in SUGGESTION_LIMITS.items() if limit < 0.1)


@pytest.fixture(autouse=True)
def one_blas_thread():
    with one_thread():
        yield


def problem(tasks: int, evaluations: int) -> tuple[Task, tuple[Evaluations, ...]]:
    *earlier, task = toy_benchmark(SPACE, tasks=tasks + 1).tasks
    return task, random_history(earlier, seed=0, evaluations=evaluations)


def made(name: str, task: Task, history: tuple[Evaluations, ...], seed: int) -> Method:
    return method_spec(name).method(
        space=SPACE,
        rng=np.random.default_rng(seed),
        history=history,
        context=task.context,
        budget=50,
    )


@pytest.mark.parametrize("name", FIXED)
def test_training_beforehand(benchmark, name):
    task, history = problem(TASKS, EVALUATIONS)
    benchmark.pedantic(made, (name, task, history, 0), rounds=3, warmup_rounds=1)
    if name == "abrac":
        assert benchmark.stats.stats.median <= TRAINING_LIMIT


@pytest.mark.parametrize("name", SUGGESTION_LIMITS)
def test_suggestion(benchmark, name):
    task, history = problem(TASKS, EVALUATIONS)
    method, rng = made(name, task, history, 0), np.random.default_rng(1)

    config = SPACE.sample(rng)

    def tell() -> None:
        method.tell(config, task.evaluate(config))

    def ask() -> None:
        nonlocal config
        config = method.ask()

    for _ in range(10):
        tell()
        ask()
    benchmark.pedantic(ask, setup=tell, rounds=25, warmup_rounds=5)
    assert benchmark.stats.stats.median <= SUGGESTION_LIMITS[name]


def in_numpy(
    layers: list[tuple[FloatArray, FloatArray]],
    precisions: FloatArray,
    inputs: list[FloatArray],
    losses: list[FloatArray],
) -> tuple[float, list[FloatArray]]:
    """Sum of rho and its gradients by weights and biases, by hand: what ours is compared with."""
    X, counts = np.concatenate(inputs), [len(y) for y in losses]
    activations = [X]
    for W, b in layers:
        activations.append(np.tanh(activations[-1] @ W + b))
    total, slopes = 0.0, []
    ends = np.cumsum(counts)
    for t, y in enumerate(losses):
        alpha, beta = np.exp(precisions[t])
        Phi = activations[-1][ends[t] - counts[t] : ends[t]] / np.sqrt(alpha)
        L = np.linalg.cholesky(np.eye(Phi.shape[1]) + beta * Phi.T @ Phi)
        inverse = np.linalg.inv(L)
        e = inverse @ (Phi.T @ y)
        w = beta * inverse.T @ e
        total += -0.5 * len(y) * np.log(beta) + np.log(np.diag(L)).sum()
        total += 0.5 * beta * (y @ y - beta * e @ e)
        slope = beta * Phi @ (inverse.T @ inverse) - beta * np.outer(y - Phi @ w, w)
        slopes.append(slope / np.sqrt(alpha))
    slope, gradients = np.concatenate(slopes), []
    for (W, _), before, after in zip(
        layers[::-1], activations[-2::-1], activations[:0:-1], strict=True
    ):
        slope = slope * (1.0 - after**2)
        gradients += [slope.sum(axis=0), before.T @ slope]
        slope = slope @ W.T
    return total, gradients[::-1]


def test_joint_likelihood_beside_numpy(benchmark):
    phi, rng = Network(8, (50, 50, 50)), np.random.default_rng(0)
    inputs = [rng.uniform(-1, 1, (EVALUATIONS, 8)) for _ in range(TASKS)]
    losses = [rng.standard_normal(EVALUATIONS) for _ in range(TASKS)]
    start = Parameters.initial(phi.initial(rng, 8), np.zeros((TASKS, 0)))

    def ours() -> tuple[float, FloatArray]:
        return value_and_gradient(phi, inputs, losses, start)

    layers, begin, x = [], 0, start.z
    for rows, columns in phi._shapes():
        W = x[begin : begin + rows * columns].reshape(rows, columns)
        layers.append((W, x[begin + rows * columns : begin + (rows + 1) * columns]))
        begin += (rows + 1) * columns
    precisions = np.stack([start.log_alpha, start.log_beta], axis=1)
    value, gradients = in_numpy(layers, precisions, inputs, losses)
    own_value, own_gradient = ours()
    np.testing.assert_allclose(own_value, value, rtol=1e-8)
    expected = np.concatenate([g.ravel() for g in gradients])
    np.testing.assert_allclose(own_gradient[:begin], expected, rtol=1e-6, atol=1e-6)
    seconds = []
    for _ in range(30):
        begin_time = time.perf_counter()
        in_numpy(layers, precisions, inputs, losses)
        seconds.append(time.perf_counter() - begin_time)
    benchmark.pedantic(ours, rounds=30, warmup_rounds=3)
    ratio = benchmark.stats.stats.median / float(np.median(seconds))
    benchmark.extra_info["ratio to numpy"] = ratio
    print(f"\n{ratio:.2f} times as long as numpy alone")
    assert ratio < 1.5


@pytest.mark.parametrize("name", ["abrac", "ablr-lbfgs-fixed", "ablr-transfer"])
def test_large_history_costs_at_most_in_proportion(name):
    seconds = {}
    for tasks in (25, 100):
        task, history = problem(tasks, 1000)
        made(name, task, history, 0).ask()  # compiled
        begin = time.perf_counter()
        method = made(name, task, history, 0)
        prepared = time.perf_counter() - begin
        for _ in range(4):
            begin = time.perf_counter()
            config = method.ask()
            later = time.perf_counter() - begin
            method.tell(config, task.evaluate(config))
        seconds[tasks] = prepared, later
        print(f"\n{name}, {tasks} x 1000: {prepared:.2f} s beforehand, {later:.3f} s a suggestion")
    (small, small_later), (large, large_later) = seconds[25], seconds[100]
    assert large < 60.0
    assert large_later < 2.0
    assert large < 8.0 * small + 1.0
    assert large_later < 8.0 * small_later + 0.1
