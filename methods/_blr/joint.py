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
        """Make the parameters before a fit: every task has the same precisions.

        Args:
            z: Parameters of the feature map, shape (size,).
            embedded: Embeddings of the tasks, shape (tasks, k); k is 0 where none are learned.
        """
        task_count = len(embedded)
        # Logarithms of the precisions of weights and noise.
        log_alpha, log_beta = START_WITH_FEATURES_ON
        return cls(z, embedded, np.full(task_count, log_alpha), np.full(task_count, log_beta))

    def precisions_of(self, task: int) -> Precisions:
        """Select the precisions of weights and noise of one task.

        Args:
            task: Index of the task; -1 is the last one, as in a list.
        """
        log_alpha = self.log_alpha[[task]]  # shape (1,): one precision for all weights of the task
        return Precisions(log_alpha, float(self.log_beta[task]))

    def median_precisions(self, task_count: int) -> Precisions:
        """Compute medians of the first tasks' precisions, from which a fit of another task starts.

        They are medians of the logarithms of the precisions of weights, alpha, and of noise, beta.

        Args:
            task_count: Number of the first tasks; callers leave out the current task, the last one.
        """
        log_alpha = np.median(self.log_alpha[:task_count])
        log_beta = np.median(self.log_beta[:task_count])
        return Precisions(np.array([log_alpha]), float(log_beta))

    def with_precisions(self, task: int, precisions: Precisions) -> "Parameters":
        """Copy these parameters with other precisions of one task.

        Args:
            task: Index of the task; -1 is the last one, as in a list.
            precisions: Its new precisions, with one precision for all weights.
        """
        log_alpha = self.log_alpha.copy()
        log_beta = self.log_beta.copy()
        log_alpha[task] = precisions.log_alpha[0]
        log_beta[task] = precisions.log_beta
        return replace(self, log_alpha=log_alpha, log_beta=log_beta)


def fit_jointly(
    phi: FeatureMap,
    inputs: Sequence[FloatArray],
    losses: Sequence[FloatArray],
    start: Parameters,
    *,
    evaluations: int,
) -> Parameters:
    """Fit the parameters of the feature map and of all tasks together, by L-BFGS.

    The fit minimises the sum of the tasks' minus log likelihood.

    Args:
        phi: The feature map.
        inputs: Inputs of each task's evaluations, shape (n, number of inputs). The embedding of the
            task, which is one of the fitted parameters, is not among them: it is put before them.
        losses: Standardised losses of each task's evaluations, shape (n,).
        start: Starting point.
        evaluations: Largest number of evaluations of the sum and its gradient.

    Returns:
        The best parameters found, which may be those at the start.
    """

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        """Compute the sum of the tasks' minus log likelihood, and its gradient.

        x has all parameters, joined to one vector; `start` has their shapes.
        """
        try:
            return value_and_gradient(phi, inputs, losses, _split(x, start))
        except ModelError:  # no Cholesky factor: the descent steps back from an infinite value
            return np.inf, np.zeros(len(x))

    _, best = minimise(
        objective,
        _join(start),
        _make_bounds(start),
        evaluations=evaluations,
        tolerance=TOLERANCE,  # an iteration that gains less is the last one
    )
    return _split(best, start)


def _make_bounds(parameters: Parameters) -> tuple[FloatArray, FloatArray]:
    """Make the lowest and the highest values of the joined parameters, shaped as by `_join`.

    Only the logarithms of the precisions are bounded.
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
    """Compute the sum of the tasks' minus log likelihood, and its gradient.

    Args:
        phi: The feature map.
        inputs: Inputs of each task's evaluations, shape (n, number of inputs), without the
            embedding of the task, which is put before them.
        losses: Standardised losses of each task's evaluations, shape (n,).
        parameters: Parameters z of the feature map, an embedding of each task, and the precisions
            of each task's weights and noise.

    Returns:
        The sum, and its gradient with respect to the parameters, joined as by `_join`.

    Raises:
        ModelError: A matrix of a task has no Cholesky factor.
    """
    embedded = parameters.embedded  # (tasks, k)
    counts = [len(y) for y in losses]  # evaluations of each task
    # The evaluations of all tasks, one task after the other. The first inputs are the embedding of
    # the task.
    X = np.hstack([np.repeat(embedded, counts, axis=0), np.concatenate(inputs)])
    # The features of all evaluations, and the function that propagates a gradient back from the
    # features to z and to the first inputs.
    Phi, pull_back = linearise(phi, parameters.z, X, first=embedded.shape[1])

    ends = np.cumsum(counts)
    rows_of_task = [slice(end - n, end) for end, n in zip(ends, counts, strict=True)]

    total = 0.0
    grad_Phi = np.empty(Phi.shape)
    grad_alpha = np.zeros(len(counts))
    grad_beta = np.zeros(len(counts))
    for t, y in enumerate(losses):
        if not len(y):  # the current task before its first evaluation adds nothing
            continue
        rows = rows_of_task[t]
        precisions = parameters.precisions_of(t)
        likelihood = compute_likelihood(Phi[rows], y, precisions.log_alpha, precisions.log_beta)
        total += likelihood.rho
        grad_Phi[rows] = likelihood.grad_features
        grad_alpha[t] = likelihood.grad_alpha.sum()  # all weights of a task have the same alpha
        grad_beta[t] = likelihood.grad_beta

    grad_z, grad_first_inputs = pull_back(grad_Phi)
    # An embedding is an input of all evaluations of its task, so their gradients are summed.
    grad_embedded = np.zeros_like(embedded)
    for t, rows in enumerate(rows_of_task):
        grad_embedded[t] = grad_first_inputs[rows].sum(axis=0)
    gradient = _join(Parameters(grad_z, grad_embedded, grad_alpha, grad_beta))
    return total, gradient


def _join(parameters: Parameters) -> FloatArray:
    """Join the parameters to one vector, as an optimiser needs it.

    The parameters of the feature map come first; then the tasks' embeddings, the logarithms of the
    precisions of weights, and those of noise. `_split` takes them apart again.
    """
    return np.concatenate(
        [
            parameters.z,
            parameters.embedded.ravel(),
            parameters.log_alpha,
            parameters.log_beta,
        ]
    )


def _split(x: FloatArray, shapes: Parameters) -> Parameters:
    """Split a vector of all parameters, joined by `_join`, into its parts.

    Args:
        x: The vector: z, the tasks' embeddings, log alpha and log beta, one after the other.
        shapes: Any parameters whose parts have the shapes of the result.
    """
    z_end = len(shapes.z)
    embedded_end = z_end + shapes.embedded.size
    alpha_end = embedded_end + len(shapes.log_alpha)
    return Parameters(
        z=x[:z_end],
        embedded=x[z_end:embedded_end].reshape(shapes.embedded.shape),
        log_alpha=x[embedded_end:alpha_end],
        log_beta=x[alpha_end:],
    )
