"""The Gaussian process over tasks: against differences, a direct formula, and the one of `bo`."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._gp import compiled, tasks
from hpobench_ordered.methods._gp.model import GaussianProcess, Kernel, PriorArrays, TaskPriors
from hpobench_ordered.methods._model_based import ModelError

KERNEL = Kernel(np.array([0, 1, 1, 2]))


def observed(counts: list[int], *, seed: int = 0, level: float = 4.0) -> tasks.Observations:
    rng = np.random.default_rng(seed)
    n, T = sum(counts), len(counts)
    places = np.sort(rng.random(T))
    task = np.repeat(np.arange(T), counts)
    X = rng.random((n, 4))
    z = np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)
    y = np.exp(rng.standard_normal(T))[task] * z + task
    distances = T * np.abs(places[:, None] - places)
    return tasks.Observations(X, y, np.array(counts), distances, KERNEL, level)


def prior(of: tasks.Observations) -> PriorArrays:
    return tasks.stack_task_priors(TaskPriors(), of.g, len(of.counts))


def hyperparameters(of: tasks.Observations, *, seed: int = 0) -> FloatArray:
    mean = prior(of).mean
    return mean + 0.3 * np.random.default_rng(seed).standard_normal(len(mean))


def at(
    of: tasks.Observations, x: FloatArray, under: PriorArrays | None = None
) -> tuple[float, FloatArray]:
    S = compiled.squared_differences(of.X, of.kernel.groups, of.g)
    return tasks.negative_log_posterior(of, S, x, under or prior(of))


def matern(of: tasks.Observations, x: FloatArray, A: FloatArray, C: FloatArray) -> FloatArray:
    lengths = np.exp(x[:3])[of.kernel.groups]
    r = np.sqrt((((A[:, None] - C[None]) / lengths) ** 2).sum(axis=2))
    return (1 + np.sqrt(5) * r + 5 / 3 * r**2) * np.exp(-np.sqrt(5) * r)


def directly(of: tasks.Observations, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Task of each observation, B, and K, written down from their definition."""
    task = np.repeat(np.arange(len(of.counts)), of.counts)
    B = np.exp(x[3]) * np.exp(-of.distances / np.exp(x[4]))
    K = B[task][:, task] * matern(of, x, of.X, of.X) + of.level * (task[:, None] == task)
    return task, B, K + np.exp(x[5]) * np.eye(len(task))


COUNTS = st.lists(st.integers(0, 9), min_size=1, max_size=5).filter(sum)


@given(counts=COUNTS, seed=st.integers(0, 99))
def test_likelihood_and_gradient_equal_the_formula_and_differences(counts, seed):
    of = observed(counts, seed=seed)
    x = hyperparameters(of, seed=seed)
    task, _, K = directly(of, x)
    log_scales = x[6:][task]
    z = of.y * np.exp(-log_scales)
    likelihood = multivariate_normal(np.zeros(len(z)), K).logpdf(z) - log_scales.sum()
    log_prior = -0.5 * np.sum(prior(of).precision * (x - prior(of).mean) ** 2)
    value, gradient = at(of, x)
    assert_allclose(value, -likelihood - log_prior, rtol=1e-8, atol=1e-8)
    numeric = [(at(of, x + u)[0] - at(of, x - u)[0]) / 2e-5 for u in 1e-5 * np.eye(len(x))]
    assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-4)


@given(counts=COUNTS, seed=st.integers(0, 99), later=st.integers(0, 3))
def test_prediction_equals_the_formula_however_the_observations_came(counts, seed, later):
    of = observed([*counts, 3], seed=seed)
    x = hyperparameters(of, seed=seed)
    task, B, K = directly(of, x)
    C = np.random.default_rng(seed).random((9, 4))
    here = len(of.counts) - 1
    cross = B[task, here][:, None] * matern(of, x, of.X, C) + of.level * (task == here)[:, None]
    mean = cross.T @ np.linalg.solve(K, of.scale_losses(x))
    variance = B[here, here] + of.level - np.sum(cross * np.linalg.solve(K, cross), axis=0)
    first, few = len(of.y) - later, np.array([*counts, 3 - later])
    process = tasks.TaskProcess(replace(of, X=of.X[:first], y=of.y[:first], counts=few), x)
    if later:
        process = process.with_observations(of.X[first:], of.y)
    assert_allclose(process.predict(C), (mean, np.sqrt(variance)), rtol=1e-8, atol=1e-8)
    assert_allclose(process.scale_current_losses(), of.scale_losses(x)[-3:])


def test_one_task_without_a_level_has_the_posterior_of_bo():
    of = observed([30], level=0.0)
    theta = np.array([-0.5, 0.1, 0.3, 0.2, -5.0])
    x = np.array([*theta[:4], 0.0, theta[4], 0.0])
    C = np.random.default_rng(1).random((50, 4))
    theirs = GaussianProcess(of.X, of.y, kernel=KERNEL, theta=theta)
    assert_allclose(tasks.TaskProcess(of, x).predict(C), theirs.predict(C), rtol=1e-8, atol=1e-8)
    flat = replace(prior(of), mean=x * 0.0, precision=x * 0.0)
    assert_allclose(-at(of, x, flat)[0], theirs.log_marginal_likelihood(), rtol=1e-10)


def test_a_fit_climbs_and_goes_on_from_where_it_ended():
    of = observed([12, 9, 12, 5])
    priors = TaskPriors()
    start = tasks.Fit.start(of, prior(of))
    first = tasks.fit_hyperparameters(of, priors, None, steps=5)
    second = tasks.fit_hyperparameters(of, priors, first, steps=100)
    values = [at(of, fit.x)[0] for fit in (start, first, second)]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[2] + 1.0
    assert np.abs(at(of, second.x)[1]).max() < 2.0


def test_scales_of_tasks_are_found():
    rng = np.random.default_rng(0)
    X = rng.random((60, 4))
    f = np.sin(5 * X[:, 0]) + X[:, 1]
    f -= f.mean()
    y = np.repeat([1.0, 3.0, 0.4], 20) * f
    of = replace(observed([20] * 3), X=X, y=y, distances=np.zeros((3, 3)))
    a = tasks.fit_hyperparameters(of, TaskPriors(), None, steps=100).x[-3:]
    assert_allclose(np.diff(a), np.diff(np.log([1.0, 3.0, 0.4])), atol=0.3)


def test_what_is_no_number_is_a_model_error():
    of = observed([5, 5])
    with pytest.raises(ModelError):
        tasks.fit_hyperparameters(replace(of, y=of.y * np.nan), TaskPriors(), None, steps=5)
