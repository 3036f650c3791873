"""Fit of a feature map, and of one head for each task, to the evaluations of all tasks.

========  ===============  ========================================================================
symbol    shape            meaning
========  ===============  ========================================================================
T         scalar           tasks
N         scalar           evaluations of all tasks
X         (N, p)           inputs: learned embeddings, features of configurations, context
z         (size,)          parameters of the feature map
embedded  (T, k)           a learned embedding of each task, k may be 0
x                          z, embedded, log alpha (T,), log beta (T,), one after the other
========  ===============  ========================================================================

For each task, `likelihood` gives rho and its derivatives with respect to the task's features, which
are propagated back through the feature map. Time and memory are proportional to N.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._blr.descent import minimise
from hpobench_ordered.methods._blr.heads import (
    LOG_ALPHA,
    LOG_BETA,
    START,
    TOLERANCE,
    Precisions,
)
from hpobench_ordered.methods._blr.likelihood import likelihood
from hpobench_ordered.methods._model_based import ModelError
from hpobench_ordered.methods._networks.features import FeatureMap, linearised


@dataclass(frozen=True, eq=False, slots=True)
class Parameters:
    """All fitted parameters: those of the feature map and of each task.

    Attributes:
        z: Parameters of the feature map, shape (size,).
        embedded: Learned embeddings, shape (tasks, k).
        log_alpha: Logarithm of the precision of each task's weights, shape (tasks,).
        log_beta: Logarithm of the precision of each task's noise, shape (tasks,).
    """

    z: FloatArray
    embedded: FloatArray
    log_alpha: FloatArray
    log_beta: FloatArray

    @classmethod
    def initial(cls, z: FloatArray, embedded: FloatArray) -> "Parameters":
        """Before a fit: the same precisions for every task."""
        tasks = len(embedded)
        return cls(z, embedded, np.full(tasks, START[0]), np.full(tasks, START[1]))

    def precisions_of(self, t: int) -> Precisions:
        """Precisions of one task."""
        return Precisions(self.log_alpha[t : t + 1 or None], float(self.log_beta[t]))

    def median_precisions(self, tasks: int) -> Precisions:
        """Medians over the first tasks, to start the fit of another one."""
        log_alpha, log_beta = self.log_alpha[:tasks], self.log_beta[:tasks]
        return Precisions(np.array([np.median(log_alpha)]), float(np.median(log_beta)))

    def with_precisions(self, t: int, own: Precisions) -> "Parameters":
        """Replace the precisions of one task."""
        log_alpha, log_beta = self.log_alpha.copy(), self.log_beta.copy()
        log_alpha[t], log_beta[t] = own.log_alpha[0], own.log_beta
        return replace(self, log_alpha=log_alpha, log_beta=log_beta)


def fit_jointly(
    phi: FeatureMap,
    inputs: Sequence[FloatArray],
    losses: Sequence[FloatArray],
    start: Parameters,
    *,
    evaluations: int,
) -> Parameters:
    """Minimise the sum of the tasks' rho by L-BFGS.

    Args:
        phi: The feature map.
        inputs: Inputs of each task's evaluations without embeddings, shape (n, at most p - k).
        losses: Their standardised losses, shape (n,).
        start: Starting point.
        evaluations: Largest number of evaluations of the sum and its gradient.

    Returns:
        The best parameters found, which may be those at the start.
    """

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        try:
            return value_and_gradient(phi, inputs, losses, _split(x, start))
        except ModelError:
            return np.inf, np.zeros(len(x))

    x, tasks = _joined(start), len(losses)
    free = np.full(len(x) - 2 * tasks, np.inf)
    lower, upper = (
        np.concatenate([sign * free, np.full(tasks, of_alpha), np.full(tasks, of_beta)])
        for sign, of_alpha, of_beta in zip((-1, 1), LOG_ALPHA, LOG_BETA, strict=True)
    )
    _, best = minimise(objective, x, (lower, upper), evaluations=evaluations, tolerance=TOLERANCE)
    return _split(best, start)


def value_and_gradient(
    phi: FeatureMap,
    inputs: Sequence[FloatArray],
    losses: Sequence[FloatArray],
    parameters: Parameters,
) -> tuple[float, FloatArray]:
    """Sum of the tasks' rho and its gradient by x.

    Raises:
        ModelError: A matrix of a task has no Cholesky factor.
    """
    counts, embedded = [len(y) for y in losses], parameters.embedded
    k = embedded.shape[1]
    X = np.hstack([np.repeat(embedded, counts, axis=0), np.concatenate(inputs)])
    Phi, pull_back = linearised(phi, parameters.z, X, first=k)
    total, slopes = 0.0, np.empty(Phi.shape)
    by_alpha, by_beta, by_embedded = np.zeros(len(counts)), np.zeros(len(counts)), 0.0 * embedded
    ends = np.cumsum(counts)
    rows = [slice(end - n, end) for end, n in zip(ends, counts, strict=True)]
    for t, y in enumerate(losses):
        if len(y):
            own = parameters.precisions_of(t)
            of = likelihood(Phi[rows[t]], y, own.log_alpha, own.log_beta)
            total += of.rho
            slopes[rows[t]], by_alpha[t], by_beta[t] = of.by_features, of.by_alpha.sum(), of.by_beta
    by_z, by_first = pull_back(slopes)
    for t, at in enumerate(rows):
        by_embedded[t] = by_first[at].sum(axis=0)
    return total, np.concatenate([by_z, by_embedded.ravel(), by_alpha, by_beta])


def _joined(parameters: Parameters) -> FloatArray:
    """Join the parameters to x."""
    parts = (parameters.embedded.ravel(), parameters.log_alpha, parameters.log_beta)
    return np.concatenate([parameters.z, *parts])


def _split(x: FloatArray, like: Parameters) -> Parameters:
    """Split x into parameters."""
    T, size = len(like.log_beta), len(like.z)
    embedded = x[size : -2 * T].reshape(like.embedded.shape)
    return Parameters(x[:size], embedded, x[-2 * T : -T], x[-T:])
