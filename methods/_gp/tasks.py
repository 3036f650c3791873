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

import numpy as np
from scipy.linalg.lapack import dpotri, dtrtrs  # made by f2py

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
FIRST_EXACT = 128
"""Expected improvement is computed exactly for this many of the most promising candidates first."""


@cache
def stack_task_priors(priors: TaskPriors, length_scales: int, tasks: int) -> PriorArrays:
    """Stack the priors of all hyperparameters x as arrays.

    They are ordered as x: log length scales, log signal variance, log memory, log novelty, log
    noise variance, log scale of each task.

    Args:
        priors: The priors.
        length_scales: Number of length scales.
        tasks: Number of tasks.
    """
    base = priors.base
    priors_of_length_scales = [base.length_scale] * length_scales
    priors_of_tasks = [priors.memory, priors.novelty]
    priors_of_theta = [*priors_of_length_scales, base.signal, *priors_of_tasks, base.noise]
    priors_of_scales = [priors.scale] * tasks
    return PriorArrays.stack([*priors_of_theta, *priors_of_scales])


@dataclass(frozen=True, eq=False, slots=True)
class Observations:
    """Observations of several tasks.

    Attributes:
        X: Features, shape (n, p), C-contiguous.
        y: Losses, shape (n,).
        counts: Observations of each task, shape (T,).
        distances: Distances of tasks, D, shape (T, T).
        kernel: The length scales' columns.
        level: Prior variance of a level, c.
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
        """Index in x of the first task's log scale: g log length scales and four others precede."""
        return self.g + 4

    @property
    def level_covariance(self) -> FloatArray:
        """Covariance of the tasks' levels, which are independent, shape (T, T).

        A task's level is what all its losses share; its prior variance is `level`.
        """
        return self.level * np.eye(len(self.counts))

    def scale_losses(self, x: FloatArray) -> FloatArray:
        """Divide the losses by the scales of their tasks: z, shape (n,).

        The logarithms of these scales are the last hyperparameters in x.
        """
        log_scales = x[self.first_log_scale :]
        z: FloatArray = self.y * np.repeat(np.exp(-log_scales), self.counts)
        return z

    def expand_to_observations(self, task_matrix: FloatArray) -> FloatArray:
        """Expand a matrix (T, T) with an entry for each pair of tasks to pairs of observations.

        Every pair of observations, (n, n), gets the entry of their tasks. Observations are grouped
        by task, `counts` of each.
        """
        return task_matrix.repeat(self.counts, axis=0).repeat(self.counts, axis=1)

    def sum_over_tasks(self, observation_matrix: FloatArray) -> FloatArray:
        """Sum a matrix of pairs of observations (n, n) over the observations of each pair of tasks.

        Observations are grouped by task, `counts` of each.

        Returns:
            The sums, shape (T, T); 0 for a task without observations.
        """
        first_rows = np.cumsum(self.counts) - self.counts  # of each task
        # `reduceat` sums from each start to the next one, but cannot sum over nothing.
        nonempty_tasks = np.flatnonzero(self.counts)
        starts = first_rows[nonempty_tasks]
        row_sums = np.add.reduceat(observation_matrix, starts, axis=0)
        nonempty_sums = np.add.reduceat(row_sums, starts, axis=1)

        task_count = len(self.counts)
        sums = np.zeros((task_count, task_count))
        sums[np.ix_(nonempty_tasks, nonempty_tasks)] = nonempty_sums
        return sums


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
    decay = distances * math.exp(-log_memory)
    decay += mark_other_tasks(len(distances)) * math.exp(log_novelty)
    B: FloatArray = np.exp(log_signal_variance - decay)
    return B


def mark_other_tasks(tasks: int) -> FloatArray:
    """Make a matrix of 1 for pairs of different tasks, and 0 on the diagonal, (tasks, tasks)."""
    return 1.0 - np.eye(tasks)


def negative_log_posterior(
    observed: Observations, S: FloatArray, x: FloatArray, prior: PriorArrays
) -> tuple[float, FloatArray]:
    """Compute minus the log posterior of x, up to a constant, and its gradient, shaped as x.

    The model is of losses divided by the scales of their tasks, z. Their covariance is
    K = B M + c [same task] + v I, with the covariance B of the tasks, the correlation M of the
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
    g = observed.g
    log_scales = x[observed.first_log_scale :]
    # The correlation is a covariance of signal variance 1 without noise.
    M, F = compiled.covariance(S, _make_single_task_theta(x, g, log_noise=-math.inf))
    B = couple_tasks(x, observed.distances, g)
    B_of_pairs = observed.expand_to_observations(B)  # (n, n)
    F *= B_of_pairs  # dK / d log l_k = F S_k / l_k^2, with the length scales l_k
    K = B_of_pairs * M
    K += observed.expand_to_observations(observed.level_covariance)
    K.flat[:: len(K) + 1] += math.exp(x[g + 3])  # noise, on the diagonal
    is_positive_definite, R = lapack.cholesky(K)
    if not is_positive_definite:
        return math.inf, np.zeros(len(x))

    z = observed.scale_losses(x)
    alpha = compiled.solve(R, z)  # K^-1 z
    value = compiled.negative_log_posterior_from(z, R, alpha, x, prior.mean, prior.precision)
    value += float(observed.counts @ log_scales)  # log of the determinant of dy / dz

    # Gradient of the log likelihood of y, in the order of x: the derivative in a parameter t is
    # 1/2 tr((alpha alpha^T - K^-1) dK/dt), which is summed over the entries of K.
    inverse = dpotri(R.T, lower=1)[0].T  # K^-1, upper triangle
    theta = _make_single_task_theta(x, g, log_noise=x[g + 3])
    grad_theta = compiled.likelihood_gradient(S, K, F, inverse, alpha, theta)
    grad_K_times_M = (np.outer(alpha, alpha) - inverse) * M  # M's lower triangle is 0
    grad_K_times_M.flat[:: len(K) + 1] *= 0.5  # an entry above the diagonal stands for two
    grad_log_B = observed.sum_over_tasks(grad_K_times_M) * B
    grad_memory = np.vdot(grad_log_B, observed.distances) * math.exp(-x[g + 1])
    grad_novelty = -np.vdot(grad_log_B, mark_other_tasks(len(B))) * math.exp(x[g + 2])
    grad_log_scales = _sum_by_task(alpha * z, observed.counts) - observed.counts
    gradient = np.concatenate(
        [
            grad_theta[:g],
            [grad_log_B.sum(), grad_memory, grad_novelty, grad_theta[g + 1]],
            grad_log_scales,
        ]
    )
    return value, prior.precision * (x - prior.mean) - gradient


def _make_single_task_theta(x: FloatArray, g: int, *, log_noise: float) -> FloatArray:
    """Make the hyperparameters of a process of a single task, with the g length scales of x.

    They are the log length scales, the log signal variance, which is 0, as the covariance of the
    tasks has the signal variance, and the log noise variance.
    """
    log_signal = 0.0
    return np.concatenate([x[:g], [log_signal, log_noise]])


def _sum_by_task(values: FloatArray, counts: IntArray) -> FloatArray:
    """Sum values (n,) of observations, `counts` of each task one after the other; shape (T,)."""
    ends = np.cumsum(counts)
    # Differences of running sums, which also hold for tasks without observations.
    running_sums = np.concatenate([[0.0], np.cumsum(values)])
    sums: FloatArray = running_sums[ends] - running_sums[ends - counts]
    return sums


@dataclass(frozen=True, eq=False, slots=True)
class Fit:
    """Result of a fit of the hyperparameters, from which a later fit can continue.

    Attributes:
        x: The hyperparameters.
        H: Estimate of the inverse Hessian matrix of the objective.
    """

    x: FloatArray
    H: FloatArray

    @classmethod
    def start(cls, observed: Observations, prior: PriorArrays) -> "Fit":
        """Start at the mean of the priors, with a guess of the inverse Hessian matrix there.

        The guess is diagonal. The objective is minus the log posterior: the priors contribute their
        precisions to the curvature, and the log likelihood about `CURVATURE`.
        """
        curvature = prior.precision + compiled.CURVATURE
        # In the log likelihood, squared losses of a task are multiplied by exp(-2 a) / 2, where a
        # is the log of the task's scale. The second derivative of their sum in a is about twice
        # their number, as scaled losses have a variance of about 1.
        curvature[observed.first_log_scale :] += 2.0 * observed.counts
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
        if slope > -TOLERANCE * 0.1:  # nearly stationary
            break

        length = 1.0
        while True:  # shorten the step until it gains enough
            trial = np.clip(x + length * direction, prior.lower, prior.upper)
            new_value, new_gradient = objective(trial)
            has_gained = new_value <= value + compiled.ARMIJO * length * slope
            if has_gained or length < MIN_LENGTH:
                break
            length *= compiled.SHORTENING
        if not new_value < value:  # even the shortest step gains nothing, or gives NaN
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
    """Compute a quasi-Newton step -H gradient from x, at most `MAX_STEP` along a coordinate.

    H estimates the inverse Hessian matrix. Coordinates that are at a bound of the prior and would
    cross it stay as they are.
    """
    would_fall_below = (x <= prior.lower) & (gradient > 0.0)
    would_rise_above = (x >= prior.upper) & (gradient < 0.0)
    is_blocked = would_fall_below | would_rise_above
    # The gradient along blocked coordinates must not move the others either, through H.
    free_gradient = np.where(is_blocked, 0.0, gradient)
    step = np.where(is_blocked, 0.0, -H @ free_gradient)
    longest = float(np.abs(step).max())
    if longest <= compiled.MAX_STEP:
        return step
    return step * (compiled.MAX_STEP / longest)


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
        of the configurations times the covariance B of the tasks; the variance of a task's level,
        for two observations of one task; and noise on the diagonal.
        """
        self._set_hyperparameters(observed, x)
        correlation = self._correlate(observed.X, observed.X)
        K = correlation * observed.expand_to_observations(self._B)
        K += observed.expand_to_observations(observed.level_covariance)
        K.flat[:: len(K) + 1] += self._noise_variance  # on the diagonal
        is_positive_definite, R = lapack.cholesky(K)
        if not is_positive_definite:
            raise ModelError("the covariance matrix is not numerically positive definite")
        self._L = R.T  # lower Cholesky factor, stored by columns as LAPACK expects
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

    def _correlate(self, X: FloatArray, others: FloatArray) -> FloatArray:
        """Compute correlations (k, m) of configurations of features (k, p) and others (m, p)."""
        g = self.observed.g  # number of length scales, which come first in x
        theta = np.append(self.x[:g], 0.0)  # signal variance 1
        return compiled.cross_covariance(X, others, self.observed.kernel.groups, theta, g)

    def _cross_covariance(self, X: FloatArray) -> FloatArray:
        """Compute covariances (n, m) of the observations and the current task at features (m, p).

        The current task is the last one, so that B[-1] has its covariances with all tasks.
        """
        counts = self.observed.counts  # of each task's observations, which are grouped by task
        cross = self._correlate(self.observed.X, X)
        cross *= np.repeat(self._B[-1], counts)[:, None]
        first_of_current_task = len(cross) - counts[-1]
        cross[first_of_current_task:] += self.observed.level  # only its own level is shared
        return cross

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict the noise-free losses of the current task, divided by its scale.

        `_L` is the Cholesky factor of the covariance K of the observations, and `_alpha` is K^-1 z
        with their losses z, divided by the scales of their tasks.

        Args:
            X: Features, shape (m, p), C-contiguous.

        Returns:
            Posterior mean (m,) and standard deviation (m,); 0 where the variance is lost in
            rounding.
        """
        cross = self._cross_covariance(X)
        mean = self._alpha @ cross
        return mean, self._compute_deviation(self._L, cross)

    def score_candidates(self, X: FloatArray, best: float, *, slack: float) -> FloatArray:
        """Compute the log expected improvement of candidates, exactly where it may be the largest.

        Posterior variances take most of the time. A variance that is conditioned on a part of the
        observations is an upper bound, and gives an upper bound of the expected improvement. A
        candidate cannot be the best if even its bound is too small; then the bound is its score.
        `_L` is the Cholesky factor of the covariance K of all observations, and `_alpha` is K^-1 z
        with their losses z.

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
        if len(self._L) <= 2 * BOUNDING_OBSERVATIONS:  # a bound would not save time
            return log_expected_improvement(mean, self._compute_deviation(self._L, cross), best)

        # Bounds: conditioned on the last observations only, those of the nearest tasks. Their rows
        # are copied, as `_compute_deviation` overwrites them.
        last = slice(-BOUNDING_OBSERVATIONS, None)
        largest_deviation = self._compute_deviation(self._bounding_factor, cross[last].copy())
        scores = log_expected_improvement(mean, largest_deviation, best)

        def make_exact(rows: IntArray) -> None:
            """Replace the scores of candidates `rows`, upper bounds, by exact ones, in place.

            They are log expected improvements, computed with exact standard deviations.
            """
            deviation = self._compute_deviation(self._L, cross[:, rows])
            scores[rows] = log_expected_improvement(mean[rows], deviation, best)

        # First the `FIRST_EXACT` largest bounds, whose exact scores mostly rule out the others.
        most_promising = np.argsort(-scores, kind="stable")[:FIRST_EXACT]
        make_exact(most_promising)
        is_undecided = scores >= scores[most_promising].max() - slack
        is_undecided[most_promising] = False
        make_exact(np.flatnonzero(is_undecided))
        return scores

    @cached_property
    def _bounding_factor(self) -> FloatArray:
        """Lower Cholesky factor of the covariance of the last few (`BOUNDING_OBSERVATIONS`)."""
        last_rows = self._L[-BOUNDING_OBSERVATIONS:]
        # L is the factor of the covariance of all, L L^T; that of the last is a corner of it.
        is_positive_definite, R = lapack.cholesky(last_rows @ last_rows.T)
        if not is_positive_definite:
            raise ModelError("the covariance matrix is not numerically positive definite")
        return R.T

    def _compute_deviation(self, L: FloatArray, cross: FloatArray) -> FloatArray:
        """Compute posterior standard deviations (m,) on the current task; overwrites `cross`.

        Args:
            L: Lower Cholesky factor of the covariance of observations, shape (n, n).
            cross: Their covariances with the current task at the candidates, shape (n, m).
        """
        # Variances of the current task, which comes last in the covariance B of the tasks: of the
        # process, and of the task's level.
        prior_variance = self._B[-1, -1] + self.observed.level
        solved = lapack.solve_forward(L, cross)
        explained_variance = np.einsum("ji,ji->j", solved, solved)
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
        """Divide the losses of the current task by its scale, as in predictions; shape (n,)."""
        z = self.observed.scale_losses(self.x)
        current_count = self.observed.counts[-1]  # the current task comes last
        return z[len(z) - current_count :]

    def with_fantasies(self, pending: FloatArray) -> tuple["TaskProcess", FloatArray]:
        """Condition also on pending evaluations of the current task.

        They are assumed to give the posterior mean, so that only standard deviations shrink.

        Args:
            pending: Features of the pending configurations, shape (k, p), C-contiguous.

        Returns:
            The process, and the losses, divided by the task's scale, that the pending evaluations
            are assumed to give, (k,).

        Raises:
            ModelError: The covariance matrix has no Cholesky factor.
        """
        mean, _ = self.predict(pending)
        log_scale = self.x[-1]  # of the current task, which comes last
        y = np.append(self.observed.y, mean * math.exp(log_scale))
        return self.with_observations(pending, y), mean

    def with_observations(self, X: FloatArray, y: FloatArray) -> "TaskProcess":
        """Condition also on further observations of the current task.

        Rows are appended to the Cholesky factor, which takes O(n^2) instead of O(n^3) time.

        Args:
            X: Their features, shape (k, p), C-contiguous.
            y: Losses of all observations, shape (n + k,); earlier ones may have changed.

        Raises:
            ModelError: The covariance matrix has no Cholesky factor.
        """
        n, k = len(self.observed.X), len(X)
        # The covariance among the further observations; the current task comes last in B.
        K_of_further = self._correlate(X, X) * self._B[-1, -1] + self.observed.level
        K_of_further.flat[:: k + 1] += self._noise_variance  # on the diagonal

        # The new lower factor consists of blocks:  L      0
        #                                          rows   corner^T
        # with rows = (L^-1 cross)^T (k, n), and corner the upper factor of what remains of the
        # further observations' covariance.
        cross = self._cross_covariance(X)  # of all earlier and the further observations, (n, k)
        rows = dtrtrs(self._L, cross, lower=1)[0].T
        is_positive_definite, corner = lapack.cholesky(K_of_further - rows @ rows.T)
        if not is_positive_definite:
            raise ModelError("the covariance matrix is not numerically positive definite")
        L = np.zeros((n + k, n + k), order="F")
        L[:n, :n] = self._L
        L[n:, :n] = rows
        L[n:, n:] = corner.T

        counts = self.observed.counts.copy()
        counts[-1] += k
        all_X = np.concatenate([self.observed.X, X])
        observed = replace(self.observed, X=all_X, y=y, counts=counts)
        # Made without __init__, which would factorise the whole covariance again.
        process = object.__new__(TaskProcess)
        process._set_hyperparameters(observed, self.x)
        process._L = L
        process._alpha = compiled.solve(L.T, observed.scale_losses(self.x))
        return process
