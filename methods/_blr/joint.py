"""The marginal likelihood of many tasks whose features come from one network.

========  ===============  ========================================================================
symbol    shape            meaning
========  ===============  ========================================================================
T         scalar           tasks, padding included: T_few with at most as many evaluations as
                           features, then T_many with more
B         scalar           rows of a block, `ROWS`
X         (blocks, B, p)   inputs: features of configurations, context; padded with zeros
y, mask   (blocks, B)      standardised losses; 1 where a row is an evaluation, 0 where padding
owner     (many blocks,)   task of each block among the T_many; the T_few have one block each
z         (size,)          parameters of the feature map
embedded  (T, k)           a learned embedding of each task, k may be 0
x                          z, embedded, log alpha (T,), log beta (T,), one after the other
========  ===============  ========================================================================

The evaluations lie in blocks, each of one task, so that time and memory grow with all evaluations,
however these are spread over the tasks. The numbers of blocks and tasks are rounded up to powers of
two, so that a program is compiled for each of few shapes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.methods._blr.heads import (
    LOG_ALPHA,
    LOG_BETA,
    START,
    TOLERANCE,
    Precisions,
)
from hpobench_ordered.methods._blr.likelihood import rho_few, rho_many
from hpobench_ordered.methods._networks import runtime
from hpobench_ordered.methods._networks.features import FeatureMap, rounded
from hpobench_ordered.methods._networks.runtime import jax

ROWS = 50
MEMORY = 20
"""Steps that L-BFGS learns the curvature from."""
IMPOSSIBLE = 1e30
"""Stands for a likelihood that cannot be computed, so that the line search steps back."""


@dataclass(frozen=True, eq=False, slots=True)
class Parameters:
    """All that is fitted: the feature map's parameters and what is each task's own.

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

    def of_task(self, t: int) -> Precisions:
        """Precisions of one task."""
        return Precisions(self.log_alpha[t : t + 1 or None], float(self.log_beta[t]))

    def typical(self, tasks: int) -> Precisions:
        """Medians over the first so many tasks: where to start for another one."""
        log_alpha, log_beta = self.log_alpha[:tasks], self.log_beta[:tasks]
        return Precisions(np.array([np.median(log_alpha)]), float(np.median(log_beta)))

    def with_task(self, t: int, own: Precisions) -> "Parameters":
        """Replace the precisions of one task."""
        log_alpha, log_beta = self.log_alpha.copy(), self.log_beta.copy()
        log_alpha[t], log_beta[t] = own.log_alpha[0], own.log_beta
        return replace(self, log_alpha=log_alpha, log_beta=log_beta)


@dataclass(frozen=True, eq=False, slots=True)
class Packed:
    """Evaluations of several tasks, in blocks.

    Attributes:
        arrays: X, y, mask, owner, and the number of evaluations of each task (T,).
        few: Tasks with few evaluations, padding included, T_few.
        places: Place of each task among the T.
    """

    arrays: tuple[Any, ...]
    few: int
    places: IntArray

    @property
    def tasks(self) -> int:
        """Number of tasks, padding included, T."""
        return len(self.arrays[-1])


def pack(
    inputs: Sequence[FloatArray], losses: Sequence[FloatArray], phi: FeatureMap, *, first: int = 0
) -> Packed:
    """Put the evaluations of tasks into blocks.

    Args:
        inputs: Inputs of each task's evaluations, shape (n, at most p).
        losses: Their standardised losses, shape (n,).
        phi: The feature map.
        first: Column of the first input; those before are for learned embeddings.
    """
    limit = min(ROWS, phi.features)
    few = [t for t, y in enumerate(losses) if len(y) <= limit]
    many = [t for t, y in enumerate(losses) if len(y) > limit]
    T_few, T_many = rounded(len(few)), rounded(len(many))
    lengths = [-(-len(losses[t]) // ROWS) for t in many]
    begins = T_few + np.concatenate([[0], np.cumsum(lengths)])[: len(many)].astype(int)
    rows = (T_few + rounded(sum(lengths))) * ROWS
    X, y, mask = np.zeros((rows, phi.inputs)), np.zeros(rows), np.zeros(rows)
    counts, places = np.zeros(T_few + T_many), np.zeros(len(losses), dtype=np.int64)
    places[few], places[many] = np.arange(len(few)), T_few + np.arange(len(many))
    for t, block in zip([*few, *many], [*range(len(few)), *begins], strict=True):
        n, width = inputs[t].shape
        at = slice(block * ROWS, block * ROWS + n)
        X[at, first : first + width], y[at], mask[at] = inputs[t], losses[t], 1.0
        counts[places[t]] = n
    owner = np.zeros(rows // ROWS - T_few, dtype=np.int32)
    owner[: sum(lengths)] = np.repeat(np.arange(len(many)), lengths)
    blocks = (-1, ROWS)
    arrays = (X.reshape(*blocks, phi.inputs), y.reshape(blocks), mask.reshape(blocks))
    return Packed((*arrays, owner, counts), T_few, places)


def descend(phi: FeatureMap, packed: Packed, start: Parameters, *, evaluations: int) -> Parameters:
    """Minimise the sum of the tasks' rho by L-BFGS.

    Args:
        phi: The feature map.
        packed: The evaluations.
        start: Where to start.
        evaluations: Of the sum and its gradient, at most.

    Returns:
        The best parameters found: those at the start if there are no better ones.
    """
    k = start.embedded.shape[1]
    data = [runtime.place(array) for array in packed.arrays]

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        static = (phi, packed.few, k)
        value, gradient = runtime.call(value_and_gradient, x, *data, static=static)
        if not np.isfinite(float(value)):
            return IMPOSSIBLE, np.zeros(len(x))
        return float(value), np.asarray(gradient)

    x = _joined(start, packed)
    free = [(None, None)] * (len(x) - 2 * packed.tasks)
    result = minimize(
        objective,
        x,
        jac=True,
        method="L-BFGS-B",
        bounds=[*free, *[LOG_ALPHA] * packed.tasks, *[LOG_BETA] * packed.tasks],
        options={
            "maxfun": evaluations,
            "maxcor": MEMORY,
            "ftol": TOLERANCE / max(1.0, packed.arrays[-1].sum()),  # the value grows like n
        },
    )
    return _split(result.x, start, packed) if result.fun < IMPOSSIBLE else start


def value_and_gradient(phi: FeatureMap, few: int, k: int, *arrays: Any) -> tuple[Any, Any]:
    """Sum of the tasks' rho and its gradient by x, as JAX traces it.

    Args:
        phi: The feature map.
        few: T_few.
        k: Size of a learned embedding.
        arrays: x and those of `Packed`.
    """
    result: tuple[Any, Any] = jax.value_and_grad(_total, argnums=3)(phi, few, k, *arrays)
    return result


def _total(
    phi: FeatureMap, few: int, k: int, x: Any, X: Any, y: Any, mask: Any, owner: Any, n: Any
) -> Any:
    jnp = jax.numpy
    tasks, (blocks, rows, p) = len(n), X.shape
    log_alpha, log_beta = x[-2 * tasks : -tasks], x[-tasks:]
    size = len(x) - (2 + k) * tasks
    task = jnp.concatenate([jnp.arange(few, dtype=owner.dtype), few + owner])
    if k:
        embedded = x[size : size + k * tasks].reshape(tasks, k)[task]
        embedded = jnp.broadcast_to(embedded[:, None], (blocks, rows, k))
        X = jnp.concatenate([embedded, X[:, :, k:]], axis=2)
    Phi = phi(x[:size], X.reshape(-1, p)).reshape(blocks, rows, -1)
    Phi *= mask[:, :, None] * jnp.exp(-0.5 * log_alpha)[task][:, None, None]
    total = jnp.sum(jax.vmap(rho_few)(Phi[:few], y[:few], n[:few], log_beta[:few]))
    if tasks == few:
        return total
    many = tasks - few
    transposed = Phi[few:].transpose(0, 2, 1)
    gram = jax.ops.segment_sum(transposed @ Phi[few:], owner, many)
    projected = jax.ops.segment_sum((transposed @ y[few:, :, None])[:, :, 0], owner, many)
    squares = jax.ops.segment_sum(jnp.sum(y[few:] ** 2, axis=1), owner, many)
    return total + jnp.sum(jax.vmap(rho_many)(gram, projected, squares, n[few:], log_beta[few:]))


def _joined(parameters: Parameters, packed: Packed) -> FloatArray:
    """Join the parameters to x; those of the padding are 0."""
    own = []
    for values in (parameters.embedded, parameters.log_alpha, parameters.log_beta):
        padded = np.zeros((packed.tasks, *values.shape[1:]))
        padded[packed.places] = values
        own.append(padded.ravel())
    return np.concatenate([parameters.z, *own])


def _split(x: FloatArray, like: Parameters, packed: Packed) -> Parameters:
    """Take x apart again."""
    T, size = packed.tasks, len(like.z)
    embedded = x[size : -2 * T].reshape(T, -1)[packed.places]
    log_alpha, log_beta = x[-2 * T : -T][packed.places], x[-T:][packed.places]
    return Parameters(x[:size], embedded, log_alpha, log_beta)
