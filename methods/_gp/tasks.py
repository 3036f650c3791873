"""One Gaussian process over several tasks that differ in level and scale, and drift.

The covariance is that of `compiled`, coupled by tasks. With one task and no levels this is the
process of `model`, to which the kernels below belong; `model` alone is compiled as a whole for few
observations.

==========  ==============  =======================================================================
symbol      shape           meaning
==========  ==============  =======================================================================
T           scalar          tasks; the current one comes last
n, m        scalars         observations of all tasks, candidates on the current one
g           scalar          length scales
counts      (T,)            observations of each task; those of a task stand together
y           (n,)            losses, each task's by a centre and a unit of its own
D           (T, T)          distances of tasks
theta       (g + 4,)        log length scales, log signal variance s, log memory l_t, log novelty h,
                            log noise variance v
a           (T,)            log scales of the tasks
x           (g + 4 + T,)    theta and a
z           (n,)            y exp(-a) of its task
B           (T, T)          s exp(-D / l_t - h [other task])
c           scalar          prior variance of a task's level
M           (n, n)          Matern-5/2 correlation of the configurations
K           (n, n)          B M + c [same task] + v I: the covariance of z
==========  ==============  =======================================================================

The correlation of tasks decays with their distance, as in time-varying Gaussian process bandits
(Bogunovic, Scarlett and Cevher 2016, Time-Varying Gaussian Process Bandit Optimization, section 2).
It also has a factor exp(-h) that is the same for any two tasks. If the order of the tasks does not
matter, l_t is large and h alone says how alike they are; if every task is much like the one before,
h is small.
Levels are integrated out.
Matrices of all observations are upper triangles, as in `compiled`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtrs  # made by f2py

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.methods._gp import compiled, lapack
from hpobench_ordered.methods._gp.acquisition import log_expected_improvement
from hpobench_ordered.methods._gp.model import Kernel, PriorArrays, TaskPriors
from hpobench_ordered.methods._model_based import ModelError

TOLERANCE = 3e-2
"""Smallest gain of a step of the fit to continue, in nats of log posterior."""
MIN_LENGTH = 1e-3
"""Length of a step, relative to the first one tried, at which the line search stops."""

BOUNDING_OBSERVATIONS = 32
"""An upper bound of a variance is computed from this many observations, the last ones: they are of
the nearest tasks and of this one."""


@cache
def stack_task_priors(priors: TaskPriors, length_scales: int, tasks: int) -> PriorArrays:
    """Stack the priors of all hyperparameters x as arrays, in the order of x.

    They are log length scales, log signal variance, log memory, log novelty, log noise variance,
    and the log scale of each task.

    Args:
        priors: The priors; all length scales have the same, and so have all tasks.
        length_scales: Number of length scales.
        tasks: Number of tasks.
    """
    base = priors.base
    priors_of_length_scales = [base.length_scale] * length_scales
    priors_of_task_scales = [priors.scale] * tasks
    return PriorArrays.stack(
        [
            *priors_of_length_scales,
            base.signal,
            priors.memory,
            priors.novelty,
            base.noise,
            *priors_of_task_scales,
        ]
    )


@dataclass(frozen=True, eq=False, slots=True)
class Observations:
    """Observations of several tasks, those of a task one after the other; the current task is last.

    Attributes:
        X: Features, shape (n, p), C-contiguous.
        y: Losses, shape (n,).
        counts: Number of observations of each task, shape (T,).
        distances: Distances of tasks, D, shape (T, T).
        kernel: The kernel of configurations, which knows the length scale of each feature.
        level: Prior variance of a task's level, c: of what all its losses share.
    """

    X: FloatArray
    y: FloatArray
    counts: IntArray
    distances: FloatArray
    kernel: Kernel
    level: float

    @property
    def g(self) -> int:
        """Number of length scales."""
        return self.kernel.length_scales

    @property
    def first_log_scale(self) -> int:
        """Index of the first task's log scale among the hyperparameters x.

        The log length scales come before it, and four others: log signal variance, log memory, log
        novelty and log noise variance.
        """
        return self.g + 4

    @property
    def tasks(self) -> IntArray:
        """Index of the task of each observation, shape (n,)."""
        indices = np.arange(len(self.counts))
        return np.repeat(indices, self.counts)

    def scale_losses(self, x: FloatArray) -> FloatArray:
        """Divide each loss by the scale of its task, shape (n,).

        Args:
            x: Hyperparameters, of which the log scales of the tasks are the last.
        """
        log_scales = x[self.first_log_scale :]
        inverse_scales = np.exp(-log_scales)
        scaled_losses: FloatArray = self.y * np.repeat(inverse_scales, self.counts)
        return scaled_losses


def couple_tasks(x: FloatArray, distances: FloatArray, g: int) -> FloatArray:
    """Compute the covariance of the tasks, shape (T, T).

    It is the signal variance for a task and itself. For two different tasks it is multiplied by
    exp(-distance / memory), so that it decays over a distance of about the memory, and by
    exp(-novelty), which is the same for any two.

    Args:
        x: Hyperparameters: g log length scales, log signal variance, log memory, log novelty, and
            others.
        distances: Distances of the tasks, shape (T, T).
        g: Number of length scales.
    """
    log_signal_variance, log_memory, log_novelty = x[g : g + 3]
    # Minus the logarithm of the correlation; exp(-log_memory) is one over the memory.
    decay = distances * math.exp(-log_memory)
    decay += mark_other_tasks(len(distances)) * math.exp(log_novelty)
    covariance: FloatArray = np.exp(log_signal_variance - decay)
    return covariance


def mark_other_tasks(task_count: int) -> FloatArray:
    """Make a matrix of 1 for pairs of different tasks, and 0 on the diagonal, (tasks, tasks)."""
    return 1.0 - np.eye(task_count)


def negative_log_posterior(
    observed: Observations, S: FloatArray, x: FloatArray, prior: PriorArrays
) -> tuple[float, FloatArray]:
    """Compute minus the log posterior of x, up to a constant, and its gradient, shaped as x.

    The losses divided by the scales of their tasks, z, are normal with the covariance
    K = B M + c [same task] + v I: the covariance B of the tasks, the correlation M of the
    configurations, the variance c of a task's level, and the noise variance v. The likelihood is
    that of the losses y and not of z, which scales could make arbitrarily likely.

    Args:
        observed: The observations.
        S: Squared differences of their features, shape (g, n, n).
        x: The hyperparameters: g log length scales, log signal variance, log memory, log novelty,
            log noise variance, log scale of each task.
        prior: Their priors.

    Returns:
        The value, infinite if K has no Cholesky factor, and the gradient.
    """
    covariance = _compute_covariance(observed, S, x)
    is_positive_definite, R = lapack.cholesky(covariance.K)
    if not is_positive_definite:
        return math.inf, np.zeros(len(x))

    z = observed.scale_losses(x)
    alpha = compiled.solve(R, z)  # K^-1 z
    value = compiled.negative_log_posterior_from(z, R, alpha, x, prior.mean, prior.precision)
    # The density of y is that of z divided by the scale of each loss.
    log_scales = x[observed.first_log_scale :]
    value += float(observed.counts @ log_scales)

    inverse = lapack.invert_from_factor(R)
    grad_likelihood = np.concatenate(
        [
            _differentiate_covariance(observed, S, x, covariance, inverse, alpha),
            # For a log scale a: dz/da = -z for the losses of its task, and the log density of each
            # is lower by a.
            _sum_by_task(alpha * z, observed.counts) - observed.counts,
        ]
    )
    grad_minus_log_prior = prior.precision * (x - prior.mean)
    return value, grad_minus_log_prior - grad_likelihood


class Covariance(NamedTuple):
    """The covariance of the observations, and what its derivatives are made of.

    Attributes:
        B: Covariance of the tasks, shape (T, T).
        M: Matern-5/2 correlation of the configurations, upper triangle, shape (n, n).
        F: A factor of K's derivatives: dK / d log l_k = F S_k / l_k^2, elementwise, with the length
            scales l_k and squared differences S_k; upper triangle, shape (n, n).
        K: Covariance of the scaled losses, valid in the upper triangle, shape (n, n).
    """

    B: FloatArray
    M: FloatArray
    F: FloatArray
    K: FloatArray


def _compute_covariance(observed: Observations, S: FloatArray, x: FloatArray) -> Covariance:
    """Compute the covariance K = B M + c [same task] + v I of the scaled losses.

    B is the covariance of their tasks, M the correlation of their configurations, c the variance of
    a task's level, and v the variance of the noise.

    Args:
        observed: The observations.
        S: Squared differences of their features, shape (g, n, n).
        x: The hyperparameters: g log length scales, log signal variance, log memory, log novelty,
            log noise variance, log scale of each task.
    """
    g = observed.g
    noise_variance = math.exp(x[g + 3])
    # The correlation is a covariance of signal variance 1 without noise.
    theta = _make_single_task_theta(x, g, log_noise=-math.inf)
    M, F = compiled.covariance(S, theta)
    B = couple_tasks(x, observed.distances, g)
    tasks = observed.tasks
    compiled.couple_by_tasks(F, B, tasks)  # the derivatives of M become those of B M
    K = M.copy()
    compiled.couple_by_tasks(K, B, tasks)
    compiled.add_levels_and_noise(K, tasks, observed.level, noise_variance)
    return Covariance(B, M, F, K)


def _differentiate_covariance(
    observed: Observations,
    S: FloatArray,
    x: FloatArray,
    covariance: Covariance,
    inverse: FloatArray,
    alpha: FloatArray,
) -> FloatArray:
    """Compute the gradient of the log likelihood for the hyperparameters of the covariance K.

    The derivative for a hyperparameter t is 1/2 tr(Q dK/dt) with Q = alpha alpha^T - K^-1
    (Rasmussen and Williams 2006, equation 5.9): half the sum of Q dK/dt over all entries.

    Args:
        observed: The observations.
        S: Squared differences of their features, shape (g, n, n).
        x: The hyperparameters: g log length scales, log signal variance, log memory, log novelty,
            log noise variance, log scale of each task.
        covariance: K, and what it is made of.
        inverse: K^-1, upper triangle, shape (n, n).
        alpha: K^-1 z with the scaled losses z, shape (n,).

    Returns:
        The derivatives for the g + 4 hyperparameters before the log scales, in their order.
    """
    B, M, F, K = covariance
    g = observed.g
    log_memory, log_novelty, log_noise = x[g + 1 : g + 4]
    # Length scales and noise, as for a single task; its signal variance, which is 1, is left out.
    theta = _make_single_task_theta(x, g, log_noise=log_noise)
    grad_theta = compiled.likelihood_gradient(S, K, F, inverse, alpha, theta)
    *grad_length_scales, _, grad_noise = grad_theta

    # The others enter K by the covariance B of the tasks: K = B M + ..., elementwise.
    tasks = observed.tasks
    task_count = len(B)
    grad_B = compiled.differentiate_by_tasks(M, inverse, alpha, tasks, task_count)
    grad_log_B = grad_B * B
    # log B = log signal variance - distance / memory - novelty [other task]
    grad_signal = grad_log_B.sum()
    inverse_memory = math.exp(-log_memory)
    grad_memory = np.vdot(grad_log_B, observed.distances) * inverse_memory
    novelty = math.exp(log_novelty)
    is_other_task = mark_other_tasks(len(B))
    grad_novelty = -np.vdot(grad_log_B, is_other_task) * novelty
    return np.array([*grad_length_scales, grad_signal, grad_memory, grad_novelty, grad_noise])


def _make_single_task_theta(x: FloatArray, g: int, *, log_noise: float) -> FloatArray:
    """Make the hyperparameters (g + 2,) of a process of a single task with signal variance 1.

    The signal variance of several tasks is part of their covariance instead.

    Args:
        x: Hyperparameters of several tasks, of which the g log length scales come first.
        g: Number of length scales.
        log_noise: Log noise variance; -inf for no noise.
    """
    log_signal = 0.0
    return np.concatenate([x[:g], [log_signal, log_noise]])


def _sum_by_task(values: FloatArray, counts: IntArray) -> FloatArray:
    """Sum values of observations by task, shape (T,); 0 for tasks without observations.

    Args:
        values: A value for each observation, those of a task one after the other, shape (n,).
        counts: Number of observations of each task, shape (T,).
    """
    ends = np.cumsum(counts)
    starts = ends - counts
    running_sums = np.concatenate([[0.0], np.cumsum(values)])
    sums: FloatArray = running_sums[ends] - running_sums[starts]
    return sums


@dataclass(frozen=True, eq=False, slots=True)
class Fit:
    """Result of a fit of the hyperparameters, from which a later fit can continue.

    Attributes:
        x: The hyperparameters.
        H: Estimate of the inverse Hessian matrix of minus the log posterior there, which is
            minimised.
    """

    x: FloatArray
    H: FloatArray

    @classmethod
    def start(cls, observed: Observations, prior: PriorArrays) -> "Fit":
        """Start at the mean of the priors, with a guess of the inverse Hessian matrix there.

        The guess is diagonal: one over the curvature along each hyperparameter. To the curvature of
        minus the log posterior, the priors contribute their precisions, and the likelihood about
        `CURVATURE`.
        """
        curvature = prior.precision + compiled.CURVATURE
        # Along the log scale a of a task, the likelihood contributes more: it has the sum of
        # squared losses times exp(-2 a) / 2, whose second derivative in a is twice the number of
        # losses, if scaled losses have the variance 1.
        curvature_along_scales = 2.0 * observed.counts
        curvature[observed.first_log_scale :] += curvature_along_scales
        return cls(prior.mean, np.diag(1.0 / curvature))


def descend(
    objective: Callable[[FloatArray], tuple[float, FloatArray]],
    start: Fit,
    prior: PriorArrays,
    *,
    steps: int,
) -> Fit:
    """Minimise an objective in a box by projected BFGS, from where an earlier fit ended.

    Args:
        objective: Computes the value and the gradient at hyperparameters x.
        start: The x to start from, and an estimate of the inverse Hessian matrix there.
        prior: Has the bounds of x.
        steps: Number of steps at most.

    Raises:
        ModelError: The objective is not finite at the start.
    """
    x = np.clip(start.x, prior.lower, prior.upper)
    H = start.H.copy()
    value, gradient = objective(x)
    if not math.isfinite(value):
        raise ModelError(f"the log posterior of the hyperparameters is {-value}")
    for _ in range(steps):
        direction = _find_direction(H, x, gradient, prior)
        slope = float(direction @ gradient)  # negative: what a step of length 1 would gain
        is_nearly_stationary = slope > -TOLERANCE * 0.1
        if is_nearly_stationary:
            break

        length = 1.0
        while True:  # shorten the step until it gains enough
            trial = np.clip(x + length * direction, prior.lower, prior.upper)
            new_value, new_gradient = objective(trial)
            gains_enough = new_value <= value + compiled.ARMIJO * length * slope
            if gains_enough or length < MIN_LENGTH:
                break
            length *= compiled.SHORTENING
        has_gained = new_value < value  # not if even the shortest step gains nothing, or gives NaN
        if not has_gained:
            break

        compiled.update_inverse_hessian(H, trial - x, new_gradient - gradient)
        gain = value - new_value
        x, value, gradient = trial, new_value, new_gradient
        if gain < TOLERANCE:
            break
    return Fit(x, H)


def _find_direction(
    H: FloatArray, x: FloatArray, gradient: FloatArray, prior: PriorArrays
) -> FloatArray:
    """Compute a quasi-Newton step from x, minus H times the gradient, at most `MAX_STEP` long.

    The length is that along the coordinate that changes most. Coordinates that are at a bound of
    the prior and would cross it stay as they are.

    Args:
        H: Estimate of the inverse Hessian matrix, shape (k, k).
        x: Where the step starts, shape (k,).
        gradient: Gradient at x, shape (k,).
        prior: Has the bounds of x.
    """
    would_fall_below = (x <= prior.lower) & (gradient > 0.0)
    would_rise_above = (x >= prior.upper) & (gradient < 0.0)
    is_blocked = would_fall_below | would_rise_above
    # The gradient along blocked coordinates must not move the others either, through H.
    free_gradient = np.where(is_blocked, 0.0, gradient)
    step = np.where(is_blocked, 0.0, -H @ free_gradient)
    length = float(np.abs(step).max())
    if length <= compiled.MAX_STEP:
        return step
    return step * (compiled.MAX_STEP / length)


def fit_hyperparameters(
    observed: Observations, priors: TaskPriors, start: Fit | None, *, steps: int
) -> Fit:
    """Fit the hyperparameters by their posterior density.

    Args:
        observed: The observations.
        priors: The priors.
        start: Where an earlier fit ended; None to start at the mean of the priors.
        steps: Number of steps at most.

    Raises:
        ModelError: The covariance matrix has no Cholesky factor at the start.
    """
    prior = stack_task_priors(priors, observed.g, len(observed.counts))
    # Squared differences of the features, the same for all hyperparameters.
    S = compiled.squared_differences(observed.X, observed.kernel.groups, observed.g)

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        """Compute minus the log posterior of hyperparameters x, and its gradient."""
        return negative_log_posterior(observed, S, x, prior)

    if start is None:
        start = Fit.start(observed, prior)
    return descend(objective, start, prior, steps=steps)


class TaskProcess:
    """The Gaussian process, conditioned on observations, on the current task.

    Args:
        observed: The observations.
        x: The hyperparameters.

    Raises:
        ModelError: The covariance matrix has no Cholesky factor.
    """

    def __init__(self, observed: Observations, x: FloatArray) -> None:
        """Condition on observations, for hyperparameters x, by factorising their covariance.

        The covariance K of losses, divided by their tasks' scales, has three parts: the correlation
        of the configurations times the covariance of the tasks; the variance of a task's level,
        for two observations of one task; and noise on the diagonal.
        """
        self._set_hyperparameters(observed, x)
        ones = np.ones(len(observed.y))
        K = self._correlate(observed.X, observed.X, ones)
        tasks = observed.tasks
        compiled.couple_by_tasks(K, self._B, tasks)  # the upper triangle
        compiled.add_levels_and_noise(K, tasks, observed.level, self._noise_variance)
        is_positive_definite, R = lapack.cholesky(K)
        if not is_positive_definite:
            raise ModelError("the covariance matrix is not numerically positive definite")
        # What predictions need of K: its lower Cholesky factor, stored by columns as LAPACK
        # expects, and K^-1 z with the losses z, divided by the scales of their tasks.
        self._L = R.T
        self._alpha = compiled.solve(R, observed.scale_losses(x))

    def _set_hyperparameters(self, observed: Observations, x: FloatArray) -> None:
        """Set the observations and the hyperparameters x, and what follows from x alone.

        This is the covariance `_B` of the tasks, (T, T), and the variance of the noise.
        """
        self.observed = observed
        self.x = x
        self._B = couple_tasks(x, observed.distances, observed.g)
        log_noise_variance = x[observed.g + 3]
        self._noise_variance = math.exp(log_noise_variance)

    def _correlate(self, X: FloatArray, others: FloatArray, variances: FloatArray) -> FloatArray:
        """Compute Matern-5/2 correlations (k, m) of configurations and others, times variances.

        Args:
            X: Features of configurations, shape (k, p).
            others: Features of the others, shape (m, p).
            variances: What the correlations of each configuration are multiplied by, (k,).
        """
        groups = self.observed.kernel.groups
        return compiled.scale_correlations(X, others, groups, self.x, variances)

    def _cross_covariance(self, X: FloatArray) -> FloatArray:
        """Compute covariances of the observations and the current task at some configurations.

        Args:
            X: Features of m configurations, shape (m, p).

        Returns:
            A row for each observation, and a column for each configuration, shape (n, m).
        """
        counts = self.observed.counts  # of each task's observations, which are grouped by task
        covariance_of_tasks = self._B[-1]  # of the current task, which comes last, with each task
        variances = np.repeat(covariance_of_tasks, counts)
        cross = self._correlate(self.observed.X, X, variances)
        # Only observations of the current task share its level.
        first_of_current_task = len(cross) - counts[-1]
        cross[first_of_current_task:] += self.observed.level
        return cross

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict the noise-free losses of the current task, divided by its scale.

        Args:
            X: Features, shape (m, p), C-contiguous.

        Returns:
            Posterior mean (m,) and standard deviation (m,); 0 where the variance is lost in
            rounding.
        """
        cross = self._cross_covariance(X)
        mean = self._alpha @ cross
        sd = self._compute_deviation(self._L, cross)  # it overwrites `cross`
        return mean, sd

    def predict_mean(self, X: FloatArray) -> FloatArray:
        """Predict the posterior mean alone, (m,), at features X (m, p), as `predict` does."""
        return self._alpha @ self._cross_covariance(X)

    def score_candidates(self, X: FloatArray, best: float, *, slack: float) -> FloatArray:
        """Compute the log expected improvement of candidates, exactly where it may be the largest.

        Posterior variances take most of the time. A variance that is conditioned on a part of the
        observations is an upper bound, and gives an upper bound of the expected improvement. A
        candidate cannot be the best if even its bound is too small; then the bound is its score.

        Args:
            X: Features of the candidates, shape (m, p), C-contiguous.
            best: The loss to improve on, divided by the current task's scale.
            slack: Scores within this distance of the largest are exact, too.

        Returns:
            Scores, shape (m,). Those that are not exact are too large, and yet smaller than the
            largest score minus `slack`.
        """
        cross = self._cross_covariance(X)
        mean = self._alpha @ cross
        has_few_observations = len(self._L) <= 2 * BOUNDING_OBSERVATIONS
        if has_few_observations:  # bounds would not save time
            return self._score_exactly(cross, mean, best)

        # Bounds, conditioned on the last observations only, those of the nearest tasks. Their rows
        # are copied, as `_compute_deviation` overwrites them.
        last_rows = cross[-BOUNDING_OBSERVATIONS:].copy()
        largest_sd = self._compute_deviation(self._bounding_factor, last_rows)
        scores = log_expected_improvement(mean, largest_sd, best)

        # Exact scores in order of the bounds, the largest first, until no bound is large enough.
        # Every round takes one more than all rounds before it, so that few rounds are needed.
        by_falling_bound = np.argsort(-scores, kind="stable")
        largest_score = -math.inf
        done = 0
        while done < len(scores):
            rows = by_falling_bound[done : 2 * done + 1]
            rows = rows[scores[rows] >= largest_score - slack]
            if not len(rows):
                break
            scores[rows] = self._score_exactly(cross[:, rows], mean[rows], best)
            largest_score = max(largest_score, scores[rows].max())
            done += len(rows)
        return scores

    def _score_exactly(self, cross: FloatArray, mean: FloatArray, best: float) -> FloatArray:
        """Compute the log expected improvement of m candidates, (m,), from all n observations.

        Args:
            cross: Covariances of the observations and the candidates, shape (n, m); overwritten.
            mean: Posterior mean of the candidates' losses, shape (m,).
            best: The loss to improve on, divided by the current task's scale.
        """
        sd = self._compute_deviation(self._L, cross)
        return log_expected_improvement(mean, sd, best)

    @cached_property
    def _bounding_factor(self) -> FloatArray:
        """Lower Cholesky factor of the covariance of the last `BOUNDING_OBSERVATIONS` observations.

        The covariance of all observations is L L^T, so that of the last ones is the product of the
        last rows of L.
        """
        last_rows = self._L[-BOUNDING_OBSERVATIONS:]
        is_positive_definite, R = lapack.cholesky(last_rows @ last_rows.T)
        if not is_positive_definite:
            raise ModelError("the covariance matrix is not numerically positive definite")
        return R.T

    def _compute_deviation(self, L: FloatArray, cross: FloatArray) -> FloatArray:
        """Compute posterior standard deviations (m,) on the current task; overwrites `cross`.

        The variance is the prior variance minus what observations explain, |L^-1 k|^2 with their
        covariances k.

        Args:
            L: Lower Cholesky factor of the covariance of observations, shape (n, n).
            cross: Their covariances with the current task at m candidates, shape (n, m).
        """
        process_variance = self._B[-1, -1]  # of the current task, which comes last
        prior_variance = process_variance + self.observed.level
        solved = lapack.solve_forward(L, cross)  # L^-1 k in a row for each candidate, (m, n)
        explained_variance = np.einsum("ji,ji->j", solved, solved)  # squared length of each row
        # Rounding may give a variance below 0.
        deviation: FloatArray = np.sqrt(np.maximum(prior_variance - explained_variance, 0.0))
        return deviation

    def correlate_tasks(self) -> FloatArray:
        """Compute the correlation of the current task with each earlier one, (T - 1,)."""
        covariances = self._B[-1]  # the current task comes last
        variance = covariances[-1]  # the same for all tasks
        correlations: FloatArray = covariances[:-1] / variance
        return correlations

    def scale_current_losses(self) -> FloatArray:
        """Divide the losses of the current task by its scale, shape (its observations,).

        They are then in the units of the process's predictions.
        """
        scaled_losses = self.observed.scale_losses(self.x)
        current_count = self.observed.counts[-1]  # the current task comes last
        first_of_current_task = len(scaled_losses) - current_count
        return scaled_losses[first_of_current_task:]

    def with_fantasies(self, pending: FloatArray) -> tuple["TaskProcess", FloatArray]:
        """Condition also on pending evaluations of the current task.

        They are assumed to give the posterior mean, so that only standard deviations shrink.

        Args:
            pending: Features of the pending configurations, shape (k, p), C-contiguous.

        Returns:
            The new process, and the losses that the pending evaluations are assumed to give,
            divided by the task's scale, (k,).

        Raises:
            ModelError: The covariance matrix has no Cholesky factor.
        """
        assumed_scaled_losses, _ = self.predict(pending)
        log_scale = self.x[-1]  # of the current task, which comes last
        assumed_losses = assumed_scaled_losses * math.exp(log_scale)
        y = np.append(self.observed.y, assumed_losses)
        return self.with_observations(pending, y), assumed_scaled_losses

    def with_observations(self, X: FloatArray, y: FloatArray) -> "TaskProcess":
        """Condition also on further observations of the current task.

        The Cholesky factor is extended, which takes O(n^2) instead of O(n^3) time.

        Args:
            X: Their features, shape (k, p), C-contiguous.
            y: Losses of all observations, shape (n + k,); earlier ones may have changed.

        Raises:
            ModelError: The covariance matrix has no Cholesky factor.
        """
        L = self._extend_factor(X)
        counts = self.observed.counts.copy()
        counts[-1] += len(X)
        all_X = np.concatenate([self.observed.X, X])
        observed = replace(self.observed, X=all_X, y=y, counts=counts)
        # Made without __init__, which would factorise the whole covariance again.
        process = object.__new__(TaskProcess)
        process._set_hyperparameters(observed, self.x)
        process._L = L
        process._alpha = compiled.solve(L.T, observed.scale_losses(self.x))
        return process

    def _extend_factor(self, X: FloatArray) -> FloatArray:
        """Compute the lower Cholesky factor with further observations of the current task.

        It consists of blocks:

            L      0
            rows   corner

        with rows = (L^-1 cross)^T, where `cross` has the covariances of earlier and further
        observations, and the lower factor `corner` of what the rows do not explain of the further
        observations' covariance.

        Args:
            X: Features of the k further observations, shape (k, p), C-contiguous.

        Returns:
            The factor, stored by columns, shape (n + k, n + k).

        Raises:
            ModelError: The covariance matrix has no Cholesky factor.
        """
        process_variance = self._B[-1, -1]  # of the current task, which comes last
        variances = np.full(len(X), process_variance)
        K_of_further = self._correlate(X, X, variances)
        K_of_further += self.observed.level
        K_of_further.flat[:: len(X) + 1] += self._noise_variance  # on the diagonal

        cross = self._cross_covariance(X)  # (n, k)
        solved, _ = dtrtrs(self._L, cross, lower=1)  # L^-1 cross
        rows = solved.T
        is_positive_definite, corner_transposed = lapack.cholesky(K_of_further - rows @ rows.T)
        if not is_positive_definite:
            raise ModelError("the covariance matrix is not numerically positive definite")

        n = len(self._L)
        total = n + len(X)
        L = np.zeros((total, total), order="F")
        L[:n, :n] = self._L
        L[n:, :n] = rows
        L[n:, n:] = corner_transposed.T
        return L
