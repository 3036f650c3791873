"""The Gaussian process over tasks: against differences, a direct formula, and the one of `bo`."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._gp import compiled, tasks
from hpobench_ordered.methods._gp.model import GaussianProcess, Kernel, PriorArrays, TaskPriors

KERNEL = Kernel(np.array([0, 1, 1, 2]))
"""Four features with three length scales, of which the second and third feature share one."""

COUNTS = st.lists(st.integers(0, 9), min_size=1, max_size=5).filter(sum)
"""Observations of each task."""


def make_observations(
    counts: list[int], *, seed: int = 0, level: float = 4.0
) -> tasks.Observations:
    """Random observations of tasks, whose losses differ in level and scale.

    Args:
        counts: Number of observations of each task.
        seed: Seed of features, losses, and distances of tasks.
        level: Prior variance of the mean loss of a task.
    """
    rng = np.random.default_rng(seed)
    task_count = len(counts)
    places = np.sort(rng.random(task_count))  # tasks lie on a line
    distances = task_count * np.abs(places[:, None] - places)
    task = np.repeat(np.arange(task_count), counts)
    X = rng.random((sum(counts), 4))
    common_losses = np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(len(X))
    scales = np.exp(rng.standard_normal(task_count))
    losses = scales[task] * common_losses + task
    return tasks.Observations(X, losses, np.array(counts), distances, KERNEL, level)


def make_prior(observed: tasks.Observations) -> PriorArrays:
    """The default prior of the hyperparameters of a process on these observations."""
    return tasks.stack_task_priors(TaskPriors(), observed.g, len(observed.counts))


def draw_hyperparameters(observed: tasks.Observations, *, seed: int = 0) -> FloatArray:
    """Random hyperparameters x, around the mean of their prior."""
    mean = make_prior(observed).mean
    return mean + 0.3 * np.random.default_rng(seed).standard_normal(len(mean))


def negative_log_posterior(
    observed: tasks.Observations, x: FloatArray, prior: PriorArrays | None = None
) -> tuple[float, FloatArray]:
    """Value and gradient at hyperparameters x; by default with the usual prior."""
    if prior is None:
        prior = make_prior(observed)
    # Squared differences of all pairs of observations, for each length scale.
    S = compiled.squared_differences(observed.X, observed.kernel.groups, observed.g)
    return tasks.negative_log_posterior(observed, S, x, prior)


def compute_matern_correlation(log_lengths: FloatArray, A: FloatArray, C: FloatArray) -> FloatArray:
    """Matern-5/2 correlation of configurations with features A (n, 4) and C (m, 4)."""
    length_scales = np.exp(log_lengths)[KERNEL.groups]  # of the four features
    differences = (A[:, None] - C[None]) / length_scales
    r = np.sqrt(np.square(differences).sum(axis=2))
    return (1 + np.sqrt(5) * r + 5 / 3 * r**2) * np.exp(-np.sqrt(5) * r)


class DirectFormulas:
    """The process by its definition, with the symbols of `tasks`.

    B is the covariance of tasks, z are the losses divided by the scales of their tasks, and K is
    their covariance.
    """

    def __init__(self, observed: tasks.Observations, x: FloatArray) -> None:
        """Compute B, z and K at hyperparameters x."""
        self.observed = observed
        self.task = np.repeat(np.arange(len(observed.counts)), observed.counts)
        # Of x come first three length scales, then four numbers, then a scale for each task.
        self.log_lengths, log_numbers, self.log_scales = np.split(x, [3, 7])
        log_signal, log_memory, log_novelty, log_noise = log_numbers

        # The covariance of tasks decays with their distance, and is lower between different ones.
        is_other = ~np.eye(len(observed.counts), dtype=bool)
        decay = observed.distances / np.exp(log_memory)
        self.B = np.exp(log_signal - decay - np.exp(log_novelty) * is_other)

        self.z = observed.y * np.exp(-self.log_scales[self.task])
        correlation = compute_matern_correlation(self.log_lengths, observed.X, observed.X)
        level = observed.level * (self.task[:, None] == self.task)
        noise = np.exp(log_noise) * np.eye(len(self.task))
        self.K = self.B[self.task][:, self.task] * correlation + level + noise

    def log_likelihood(self) -> float:
        """Log density of the losses y, by that of the scaled losses z with their covariance K."""
        log_density_of_z = multivariate_normal(np.zeros(len(self.z)), self.K).logpdf(self.z)
        # y is z times the scale of its task, so that its density is divided by the scale.
        return float(log_density_of_z - self.log_scales[self.task].sum())

    def predict(self, candidates: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and standard deviation of candidates on the last task.

        B is the covariance of tasks, and K that of the scaled losses z.
        """
        last = len(self.B) - 1
        correlation = compute_matern_correlation(self.log_lengths, self.observed.X, candidates)
        level = self.observed.level * (self.task == last)[:, None]
        cross_covariance = self.B[self.task, last][:, None] * correlation + level
        prior_variance = self.B[last, last] + self.observed.level

        mean = cross_covariance.T @ np.linalg.solve(self.K, self.z)
        solved = np.linalg.solve(self.K, cross_covariance)
        variance = prior_variance - np.sum(cross_covariance * solved, axis=0)
        return mean, np.sqrt(variance)


@given(counts=COUNTS, seed=st.integers(0, 99))
def test_posterior_density_equals_the_formula(counts, seed):
    """It is the negative log of likelihood times normal prior, without the prior's constant.

    The tasks have `counts` observations.
    """
    observed = make_observations(counts, seed=seed)
    x = draw_hyperparameters(observed, seed=seed)
    prior = make_prior(observed)
    log_prior = -0.5 * np.sum(prior.precision * (x - prior.mean) ** 2)
    expected = -DirectFormulas(observed, x).log_likelihood() - log_prior
    value, _ = negative_log_posterior(observed, x)
    assert_allclose(value, expected, rtol=1e-8, atol=1e-8)


@given(counts=COUNTS, seed=st.integers(0, 99))
def test_gradient_equals_finite_differences(counts, seed):
    """The gradient is by all hyperparameters x of a process on tasks with `counts` observations."""
    observed = make_observations(counts, seed=seed)
    x = draw_hyperparameters(observed, seed=seed)
    _, gradient = negative_log_posterior(observed, x)

    step_length = 1e-5
    differences = []
    for step in step_length * np.eye(len(x)):
        above, _ = negative_log_posterior(observed, x + step)
        below, _ = negative_log_posterior(observed, x - step)
        differences.append((above - below) / (2 * step_length))
    assert_allclose(gradient, differences, rtol=1e-5, atol=1e-4)


def make_process(
    observed: tasks.Observations, x: FloatArray, *, added_later: int
) -> tasks.TaskProcess:
    """A process with hyperparameters x, to which its last observations are added later.

    `added_later` is their number; they are of the last task.
    """
    n_earlier = len(observed.y) - added_later
    earlier_counts = observed.counts.copy()
    earlier_counts[-1] -= added_later
    earlier = replace(
        observed, X=observed.X[:n_earlier], y=observed.y[:n_earlier], counts=earlier_counts
    )
    process = tasks.TaskProcess(earlier, x)
    if added_later == 0:
        return process
    return process.with_observations(observed.X[n_earlier:], observed.y)


@given(counts=COUNTS, seed=st.integers(0, 99), added_later=st.integers(0, 3))
def test_prediction_equals_the_formula(counts, seed, added_later):
    """The process may be made of all observations, or of fewer, to which the last are added.

    The last task, the current one, has three of them, and earlier ones `counts`.
    """
    observed = make_observations([*counts, 3], seed=seed)
    x = draw_hyperparameters(observed, seed=seed)
    candidates = np.random.default_rng(seed).random((9, 4))
    process = make_process(observed, x, added_later=added_later)
    expected = DirectFormulas(observed, x).predict(candidates)
    assert_allclose(process.predict(candidates), expected, rtol=1e-8, atol=1e-8)


@given(counts=COUNTS, seed=st.integers(0, 99), added_later=st.integers(0, 3))
def test_current_losses_are_scaled(counts, seed, added_later):
    """The losses of the last task, the current one, are divided by its scale.

    It has three, of which some may be added after the process was made.
    """
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
    process_of_bo = GaussianProcess(observed.X, observed.y, kernel=KERNEL, theta=theta)

    def test_one_task_predicts_as_bo(self):
        """If the mean loss of tasks does not vary, the process of a single one is that of `bo`."""
        candidates = np.random.default_rng(1).random((50, 4))
        prediction = tasks.TaskProcess(self.observed, self.x).predict(candidates)
        expected = self.process_of_bo.predict(candidates)
        assert_allclose(prediction, expected, rtol=1e-8, atol=1e-8)


def test_fit_continues_where_it_ended():
    """A fit of five steps and its continuation each lower the value, minus the log density.

    SciPy's optimiser hardly lowers it further.
    """
    observed = make_observations([12, 9, 12, 5])
    start = tasks.Fit.start(observed, make_prior(observed))
    short_fit = tasks.fit_hyperparameters(observed, TaskPriors(), None, steps=5)
    continued_fit = tasks.fit_hyperparameters(observed, TaskPriors(), short_fit, steps=100)

    value_at_start, _ = negative_log_posterior(observed, start.x)
    value_of_short, _ = negative_log_posterior(observed, short_fit.x)
    value_of_continued, _ = negative_log_posterior(observed, continued_fit.x)
    assert value_at_start >= value_of_short >= value_of_continued
    assert value_at_start > value_of_continued + 1.0

    prior = make_prior(observed)
    polished = minimize(
        lambda x: negative_log_posterior(observed, x),
        continued_fit.x,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(prior.lower, prior.upper, strict=True)),
    )
    assert value_of_continued < polished.fun + 0.2


def test_fit_recovers_scales_of_tasks():
    """Three tasks of 20 evaluations, at distance 0 from each other, differ in scale alone."""
    X = np.random.default_rng(0).random((60, 4))
    common_losses = np.sin(5 * X[:, 0]) + X[:, 1]
    scales = [1.0, 3.0, 0.4]
    y = np.repeat(scales, 20) * (common_losses - common_losses.mean())
    observed = replace(make_observations([20] * 3), X=X, y=y, distances=np.zeros((3, 3)))
    fit = tasks.fit_hyperparameters(observed, TaskPriors(), None, steps=100)
    fitted_log_scales = fit.x[-3:]  # after the hyperparameters that all tasks share
    # Only ratios of scales are determined.
    assert_allclose(np.diff(fitted_log_scales), np.diff(np.log(scales)), atol=0.3)
