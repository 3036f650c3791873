"""Cross-validation: folds, out-of-fold predictions, and what a quality card says of them.

Generators, `from_evaluations` and the verification of cards all use this.

Notation:
    n   number of evaluations
    K   number of outputs
"""

from collections.abc import Callable, Sequence

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.objective import Direction
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.surrogates.base import Surrogate
from hpobench_ordered.surrogates.card import Figures, figures
from hpobench_ordered.surrogates.nearest import NearestSurrogate, log_coding

FOLDS = 10


def grouped_folds(groups: IntArray, folds: int, rng: np.random.Generator) -> list[IntArray]:
    """Split evaluations into folds of about as many groups, never a group into two.

    Args:
        groups: Number of each evaluation's group, shape (n,).
        folds: Number of folds.
        rng: Shuffles the groups.

    Returns:
        Indices of the evaluations of each fold, ascending.
    """
    names = rng.permutation(np.unique(groups))
    return [np.flatnonzero(np.isin(groups, part)) for part in np.array_split(names, folds)]


def out_of_fold(
    fit: Callable[[IntArray], Surrogate],
    values: FloatArray,
    folds: Sequence[IntArray],
    *,
    outputs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> FloatArray:
    """Predict every evaluation by a surrogate that was fitted to those of the other folds.

    Args:
        fit: Fits a surrogate.
        values: Configurations, shape (n, d).
        folds: Indices of the evaluations of each fold.
        outputs: Number of outputs, K, each a task of the surrogate.
        progress: Called with the number of finished folds and of all of them.

    Returns:
        Predictions, shape (n, K).
    """
    predicted = np.empty((len(values), outputs))
    for done, held_out in enumerate(folds, start=1):
        model = fit(np.setdiff1d(np.arange(len(values)), held_out))
        for output in range(outputs):
            predicted[held_out, output] = model.predict(values[held_out], output)
        if progress is not None:
            progress(done, len(folds))
    return predicted


def task_rng(seed: int, task: str) -> tuple[np.random.Generator, int]:
    """What is random of a task that is fitted by itself, whatever other tasks there are.

    Returns:
        A generator for the folds and the search of the best value, and the seed of the trees.
    """
    rng = np.random.default_rng([seed, *task.encode()])
    return rng, int(rng.integers(2**32))


def nearest_fit(
    space: SearchSpace, values: FloatArray, objective: FloatArray
) -> Callable[[IntArray], NearestSurrogate]:
    """Fits nearest neighbours of one task, standardised on what they are fitted to."""

    def fit(rows: IntArray) -> NearestSurrogate:
        chosen = values[rows]
        coding = log_coding(space, chosen)
        return NearestSurrogate.from_evaluations(chosen, objective[rows, None], coding=coding)

    return fit


def task_figures(
    task: str, truth: FloatArray, predicted: FloatArray, direction: Direction
) -> Figures:
    """Figures of one task, (n,) and (n,) or (n, 1)."""
    (computed,) = figures(
        truth[:, None], predicted.reshape(-1, 1), names=[task], direction=direction
    )
    return computed
