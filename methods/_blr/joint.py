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
    LOG_ALPHA_BOUNDS,
    LOG_BETA_BOUNDS,
    START_WITH_FEATURES_ON,
    TOLERANCE,
    Precisions,
)
from hpobench_ordered.methods._blr.likelihood import compute_likelihood
from hpobench_ordered.methods._model_based import ModelError
from hpobench_ordered.methods._networks.features import FeatureMap, linearise


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
        """Make the parameters before a fit: the same precisions for every task.

        Args:
            z: Parameters of the feature map, shape (size,).
            embedded: Embeddings of the tasks, shape (T, k); k is 0 where none are learned.
        """
        task_count = len(embedded)
        log_alpha, log_beta = (
            START_WITH_FEATURES_ON  # logarithms of the precisions of weights and noise
        )
        return cls(z, embedded, np.full(task_count, log_alpha), np.full(task_count, log_beta))

    def precisions_of(self, t: int) -> Precisions:
        """Select the precisions of weights and noise of task t; of the last task if t is -1.

        Their logarithms are `log_alpha` and `log_beta`, (tasks,) each.
        """
        log_alpha = self.log_alpha[[t]]  # shape (1,): one precision for all weights of the task
        return Precisions(log_alpha, float(self.log_beta[t]))

    def median_precisions(self, task_count: int) -> Precisions:
        """Compute medians of the precisions of the first tasks, to start a fit of another task.

        They are medians of the logarithms of the precisions of weights, alpha, and of noise, beta.

        Args:
            task_count: Number of these tasks, which leaves out the current one, the last.
        """
        log_alpha = np.median(self.log_alpha[:task_count])
        log_beta = np.median(self.log_beta[:task_count])
        return Precisions(np.array([log_alpha]), float(log_beta))

    def with_precisions(self, t: int, precisions: Precisions) -> "Parameters":
        """Copy these parameters with other precisions of task t; of the last task if t is -1.

        They are stored as logarithms: `log_alpha` of weights and `log_beta` of noise, (tasks,).
        """
        log_alpha = self.log_alpha.copy()
        log_beta = self.log_beta.copy()
        log_alpha[t] = precisions.log_alpha[0]  # the only one, for all weights of the task
        log_beta[t] = precisions.log_beta
        return replace(self, log_alpha=log_alpha, log_beta=log_beta)


def fit_jointly(
    phi: FeatureMap,
    inputs: Sequence[FloatArray],
    losses: Sequence[FloatArray],
    start: Parameters,
    *,
    evaluations: int,
) -> Parameters:
    """Fit all parameters by L-BFGS, to minimise the sum of the tasks' minus log likelihood, rho.

    Args:
        phi: The feature map.
        inputs: Inputs of each task's evaluations, shape (n, number of inputs). The embedding of the
            task, which is one of the fitted parameters, is not among them: it is put before them.
        losses: Their standardised losses, shape (n,).
        start: Starting point.
        evaluations: Largest number of evaluations of the sum and its gradient.

    Returns:
        The best parameters found, which may be those at the start.
    """

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        """Compute the sum of the tasks' minus log likelihood, and its gradient.

        x are the parameters to fit, joined to one vector; `start` has their shapes.
        """
        try:
            return value_and_gradient(phi, inputs, losses, _split(x, start))
        except ModelError:  # the descent steps back from an infinite value
            return np.inf, np.zeros(len(x))

    x = _join(start)
    bounds = _make_bounds(start)
    # The fit ends when an iteration gains less than `TOLERANCE`.
    _, best = minimise(objective, x, bounds, evaluations=evaluations, tolerance=TOLERANCE)
    return _split(best, start)


def _make_bounds(parameters: Parameters) -> tuple[FloatArray, FloatArray]:
    """Make the lowest and highest values of the joined parameters x: only precisions are bounded.

    The precisions of weights, alpha, and of noise, beta, are bounded by their logarithms.
    """
    lowest_log_alpha, highest_log_alpha = LOG_ALPHA_BOUNDS
    lowest_log_beta, highest_log_beta = LOG_BETA_BOUNDS
    lowest = replace(
        parameters,
        z=np.full_like(parameters.z, -np.inf),
        embedded=np.full_like(parameters.embedded, -np.inf),
        log_alpha=np.full_like(parameters.log_alpha, lowest_log_alpha),
        log_beta=np.full_like(parameters.log_beta, lowest_log_beta),
    )
    highest = replace(
        parameters,
        z=np.full_like(parameters.z, np.inf),
        embedded=np.full_like(parameters.embedded, np.inf),
        log_alpha=np.full_like(parameters.log_alpha, highest_log_alpha),
        log_beta=np.full_like(parameters.log_beta, highest_log_beta),
    )
    return _join(lowest), _join(highest)


def value_and_gradient(
    phi: FeatureMap,
    inputs: Sequence[FloatArray],
    losses: Sequence[FloatArray],
    parameters: Parameters,
) -> tuple[float, FloatArray]:
    """Compute the sum of the tasks' rho, minus log likelihood, and its gradient.

    Args:
        phi: The feature map.
        inputs: Inputs of each task's evaluations, shape (n, number of inputs), without the
            embedding of the task, which is put before them.
        losses: Their standardised losses, shape (n,).
        parameters: Parameters z of the feature map, an embedding of each task, which is also an
            input, and the precisions of the tasks' weights and noise.

    Returns:
        The sum, and its gradient with respect to the parameters, laid out as by `_join`.

    Raises:
        ModelError: A matrix of a task has no Cholesky factor.
    """
    counts = [len(y) for y in losses]
    embedded = parameters.embedded  # (tasks, k): a task's is an input of all its evaluations
    X = np.hstack([np.repeat(embedded, counts, axis=0), np.concatenate(inputs)])
    # Features Phi, and the function that propagates a gradient back from Phi to the parameters z
    # and to the embeddings, which are the first inputs.
    Phi, pull_back = linearise(phi, parameters.z, X, first=embedded.shape[1])

    # Rows of each task in X and Phi, which hold the tasks one after the other.
    ends = np.cumsum(counts)
    rows = [slice(end - n, end) for end, n in zip(ends, counts, strict=True)]

    total = 0.0
    grad_Phi = np.empty(Phi.shape)
    grad_alpha = np.zeros(len(counts))
    grad_beta = np.zeros(len(counts))
    for t, y in enumerate(losses):
        if not len(y):  # the current task before its first evaluation adds nothing
            continue
        precisions = parameters.precisions_of(t)
        task = compute_likelihood(Phi[rows[t]], y, precisions.log_alpha, precisions.log_beta)
        total += task.rho
        grad_Phi[rows[t]] = task.grad_features
        grad_alpha[t] = task.grad_alpha.sum()  # all weights of a task have the same alpha
        grad_beta[t] = task.grad_beta

    grad_z, grad_embedded_inputs = pull_back(grad_Phi)
    grad_embedded = np.zeros_like(embedded)
    for t in range(len(counts)):
        grad_embedded[t] = grad_embedded_inputs[rows[t]].sum(axis=0)
    return total, np.concatenate([grad_z, grad_embedded.ravel(), grad_alpha, grad_beta])


def _join(parameters: Parameters) -> FloatArray:
    """Join the parameters to one vector x, as an optimiser needs it.

    Those of the feature map, z, come first; then the tasks' embeddings, log alpha and log beta.
    """
    of_tasks = (parameters.embedded.ravel(), parameters.log_alpha, parameters.log_beta)
    return np.concatenate([parameters.z, *of_tasks])


def _split(x: FloatArray, like: Parameters) -> Parameters:
    """Split a vector x, as `_join` lays it out, into parameters shaped as those of `like`.

    x has z, the tasks' embeddings, log alpha (tasks,) and log beta (tasks,), one after the other.
    """
    z_end = len(like.z)
    embedded_end = z_end + like.embedded.size
    alpha_end = embedded_end + len(like.log_alpha)
    return Parameters(
        z=x[:z_end],
        embedded=x[z_end:embedded_end].reshape(like.embedded.shape),
        log_alpha=x[embedded_end:alpha_end],
        log_beta=x[alpha_end:],
    )
