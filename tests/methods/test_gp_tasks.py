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
"""Four features with three length scales: theta has seven coordinates."""

COUNTS = st.lists(st.integers(0, 9), min_size=1, max_size=5).filter(sum)
"""Observations of each task."""


def make_observations(
    counts: list[int], *, seed: int = 0, level: float = 4.0
) -> tasks.Observations:
    """Random observations of tasks, whose losses differ in level and scale.

    `counts` are the observations of each task, `level` the prior variance of its mean loss.
    """
    rng = np.random.default_rng(seed)
    T = len(counts)
    places = np.sort(rng.random(T))  # tasks lie on a line
    task = np.repeat(np.arange(T), counts)
    X = rng.random((sum(counts), 4))
    z = np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(len(X))
    scales = np.exp(rng.standard_normal(T))
    distances = T * np.abs(places[:, None] - places)
    return tasks.Observations(
        X, scales[task] * z + task, np.array(counts), distances, KERNEL, level
    )


def make_prior(observed: tasks.Observations) -> PriorArrays:
    return tasks.stack_task_priors(TaskPriors(), observed.g, len(observed.counts))


def draw_hyperparameters(observed: tasks.Observations, *, seed: int = 0) -> FloatArray:
    """Hyperparameters around the mean of their prior."""
    mean = make_prior(observed).mean
    return mean + 0.3 * np.random.default_rng(seed).standard_normal(len(mean))


def negative_log_posterior(
    observed: tasks.Observations, x: FloatArray, prior: PriorArrays | None = None
) -> tuple[float, FloatArray]:
    """Value and gradient at hyperparameters x; by default with the usual prior."""
    # S: squared differences of all pairs of observations, summed over the features of each of g
    # length scales, which the density is computed from.
    S = compiled.squared_differences(observed.X, observed.kernel.groups, observed.g)
    return tasks.negative_log_posterior(observed, S, x, prior or make_prior(observed))


def matern(x: FloatArray, A: FloatArray, C: FloatArray) -> FloatArray:
    """Correlation of configurations with features A (n, 4) and C (m, 4)."""
    length_scales = np.exp(x[:3])[KERNEL.groups]
    r = np.sqrt((((A[:, None] - C[None]) / length_scales) ** 2).sum(axis=2))
    return (1 + np.sqrt(5) * r + 5 / 3 * r**2) * np.exp(-np.sqrt(5) * r)


class DirectFormulas:
    """The covariances as their definitions say."""

    def __init__(self, observed: tasks.Observations, x: FloatArray) -> None:
        # The first three parameters are log length scales, which `matern` uses.
        log_signal, log_memory, log_novelty, log_noise = x[3:7]
        self.log_scales = x[7:]  # one a task
        self.observed, self.x = observed, x
        self.task = np.repeat(np.arange(len(observed.counts)), observed.counts)

        # Covariance of tasks, which decays with their distance and is lower between different ones.
        is_other = ~np.eye(len(observed.counts), dtype=bool)
        decay = observed.distances / np.exp(log_memory)
        self.B = np.exp(log_signal - decay - np.exp(log_novelty) * is_other)

        # Losses divided by their task's scale, and their covariance.
        self.z = observed.y * np.exp(-self.log_scales[self.task])
        is_same_task = self.task[:, None] == self.task
        K = self.B[self.task][:, self.task] * matern(x, observed.X, observed.X)
        self.K = K + observed.level * is_same_task + np.exp(log_noise) * np.eye(len(K))

    def log_likelihood(self) -> float:
        """Log density of y; that of z is larger by the sum of the log scales."""
        normal = multivariate_normal(np.zeros(len(self.z)), self.K)
        return float(normal.logpdf(self.z) - self.log_scales[self.task].sum())

    def predict(self, candidates: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and standard deviation on the last task."""
        last = len(self.B) - 1
        cross = self.B[self.task, last][:, None] * matern(self.x, self.observed.X, candidates)
        cross += self.observed.level * (self.task == last)[:, None]
        mean = cross.T @ np.linalg.solve(self.K, self.z)
        reduction = np.sum(cross * np.linalg.solve(self.K, cross), axis=0)
        return mean, np.sqrt(self.B[last, last] + self.observed.level - reduction)


@given(counts=COUNTS, seed=st.integers(0, 99))
def test_posterior_density_equals_the_formula(counts, seed):
    """The negative log of likelihood times normal prior, without the prior's constant."""
    observed = make_observations(counts, seed=seed)
    x = draw_hyperparameters(observed, seed=seed)
    prior = make_prior(observed)
    log_prior = -0.5 * np.sum(prior.precision * (x - prior.mean) ** 2)
    expected = -DirectFormulas(observed, x).log_likelihood() - log_prior
    value, _ = negative_log_posterior(observed, x)
    assert_allclose(value, expected, rtol=1e-8, atol=1e-8)


@given(counts=COUNTS, seed=st.integers(0, 99))
def test_gradient_equals_finite_differences(counts, seed):
    """By all hyperparameters, of tasks with `counts` evaluations."""
    observed = make_observations(counts, seed=seed)
    x = draw_hyperparameters(observed, seed=seed)
    differences = []
    for step in 1e-5 * np.eye(len(x)):
        above, _ = negative_log_posterior(observed, x + step)
        below, _ = negative_log_posterior(observed, x - step)
        differences.append((above - below) / 2e-5)
    _, gradient = negative_log_posterior(observed, x)
    assert_allclose(gradient, differences, rtol=1e-5, atol=1e-4)


def make_process(
    observed: tasks.Observations, x: FloatArray, *, added_later: int
) -> tasks.TaskProcess:
    """A process whose last observations are only added after it was made."""
    first = len(observed.y) - added_later
    counts = observed.counts.copy()
    counts[-1] -= added_later
    earlier = replace(observed, X=observed.X[:first], y=observed.y[:first], counts=counts)
    process = tasks.TaskProcess(earlier, x)
    if not added_later:
        return process
    return process.with_observations(observed.X[first:], observed.y)


@given(counts=COUNTS, seed=st.integers(0, 99), added_later=st.integers(0, 3))
def test_prediction_equals_the_formula(counts, seed, added_later):
    # The last task, the current one, has three observations.
    observed = make_observations([*counts, 3], seed=seed)
    x = draw_hyperparameters(observed, seed=seed)
    candidates = np.random.default_rng(seed).random((9, 4))
    process = make_process(observed, x, added_later=added_later)
    expected = DirectFormulas(observed, x).predict(candidates)
    assert_allclose(process.predict(candidates), expected, rtol=1e-8, atol=1e-8)


@given(counts=COUNTS, seed=st.integers(0, 99), added_later=st.integers(0, 3))
def test_current_losses_are_scaled(counts, seed, added_later):
    """The last task, the current one, has three observations."""
    observed = make_observations([*counts, 3], seed=seed)
    x = draw_hyperparameters(observed, seed=seed)
    process = make_process(observed, x, added_later=added_later)
    scaled_losses = DirectFormulas(observed, x).z
    assert_allclose(process.scale_current_losses(), scaled_losses[-3:])


class TestOneTaskWithoutLevel:
    """Its process is that of `bo`."""

    observed = make_observations([30], level=0.0)
    theta = np.array([-0.5, 0.1, 0.3, 0.2, -5.0])
    log_memory, log_novelty, log_scale = 0.0, 0.0, 0.0  # without effect on a single task
    x = np.array([*theta[:4], log_memory, log_novelty, theta[4], log_scale])
    plain = GaussianProcess(observed.X, observed.y, kernel=KERNEL, theta=theta)

    def test_one_task_predicts_as_bo(self):
        """Without a level of its own, one task's process is that of `bo`."""
        candidates = np.random.default_rng(1).random((50, 4))
        prediction = tasks.TaskProcess(self.observed, self.x).predict(candidates)
        assert_allclose(prediction, self.plain.predict(candidates), rtol=1e-8, atol=1e-8)

    def test_one_task_has_likelihood_of_bo(self):
        """Without a prior, the posterior density is the likelihood."""
        zeros = np.zeros(len(self.x))
        flat = replace(make_prior(self.observed), mean=zeros, precision=zeros)
        value, _ = negative_log_posterior(self.observed, self.x, flat)
        assert_allclose(-value, self.plain.log_marginal_likelihood(), rtol=1e-10)


def test_fit_continues_where_it_ended():
    observed = make_observations([12, 9, 12, 5])
    start = tasks.Fit.start(observed, make_prior(observed))
    first = tasks.fit_hyperparameters(observed, TaskPriors(), None, steps=5)
    second = tasks.fit_hyperparameters(observed, TaskPriors(), first, steps=100)

    before, _ = negative_log_posterior(observed, start.x)
    between, _ = negative_log_posterior(observed, first.x)
    after, gradient = negative_log_posterior(observed, second.x)
    assert before >= between >= after
    assert before > after + 1.0
    # Close to the optimum, where the gradient is 0.
    assert np.abs(gradient).max() < 2.0


def test_fit_recovers_scales_of_tasks():
    X = np.random.default_rng(0).random((60, 4))
    z = np.sin(5 * X[:, 0]) + X[:, 1]
    # Three tasks of 20 evaluations, at distance 0 from each other, that differ in scale alone.
    y = np.repeat([1.0, 3.0, 0.4], 20) * (z - z.mean())
    observed = replace(make_observations([20] * 3), X=X, y=y, distances=np.zeros((3, 3)))
    fit = tasks.fit_hyperparameters(observed, TaskPriors(), None, steps=100)
    # Only ratios are determined: the last three parameters are the log scales.
    assert_allclose(np.diff(fit.x[-3:]), np.diff(np.log([1.0, 3.0, 0.4])), atol=0.3)


def test_losses_that_are_nan_are_refused():
    observed = make_observations([5, 5])
    observed = replace(observed, y=np.full(10, np.nan))
    with pytest.raises(ModelError):
        tasks.fit_hyperparameters(observed, TaskPriors(), None, steps=5)
