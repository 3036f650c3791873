"""Differences between the normalised scores of two methods on the same tasks and seeds.

Notation:
    S   number of seeds
    T   number of tasks that count, on which the score is defined
    D[s, t] = score of the first method - score of the second; negative: the first is better
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.scores import Scores


@dataclass(frozen=True, slots=True)
class Difference:
    """Score of one method minus that of another after a trial, seed by seed.

    Attributes:
        values: D, shape (S, T).
    """

    values: FloatArray

    @property
    def by_task(self) -> FloatArray:
        """Mean over seeds, shape (T,)."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def by_task_errors(self) -> FloatArray:
        """Twice the standard error of the mean over seeds, shape (T,); NaN with one seed."""
        return _two_standard_errors(self.values)

    @property
    def mean(self) -> float:
        """Mean over seeds and tasks; NaN without tasks."""
        return float(self.values.mean()) if self.tasks else float("nan")

    @property
    def two_standard_errors(self) -> float:
        """Twice the standard error of `mean` over seeds; NaN with one seed or without tasks."""
        if not self.tasks:
            return float("nan")
        return float(_two_standard_errors(self.values.mean(axis=1, keepdims=True))[0])

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return int(self.values.shape[1])

    @property
    def better(self) -> int:
        """Number of tasks on which the first method's mean is lower."""
        return int((self.by_task < 0).sum())

    def alike(self, *, margin: float) -> int:
        """Number of tasks on which the means differ by less than a margin or than the errors."""
        allowed = np.fmax(self.by_task_errors, margin)
        return int((np.abs(self.by_task) <= allowed).sum())


def difference(
    scores: Scores, first: str, second: str, *, trial: int, first_task: int = 1
) -> Difference:
    """Compare two methods after a trial.

    Args:
        scores: Scores of both.
        first: The one whose score counts positive.
        second: The other.
        trial: The trial, counted from 1.
        first_task: First task that counts, from 0; 1 leaves out the task without history.
    """
    chosen = scores.values[:, :, first_task:, trial - 1]
    values = chosen[scores.methods.index(first)] - chosen[scores.methods.index(second)]
    return Difference(values[:, ~np.isnan(values).any(axis=0)])


def pooled(differences: Sequence[Difference]) -> Difference:
    """The differences on the tasks of several benchmarks together, all with the same seeds."""
    return Difference(np.concatenate([item.values for item in differences], axis=1))


def _two_standard_errors(values: FloatArray) -> FloatArray:
    if len(values) < 2:
        return np.full(values.shape[1], np.nan)
    return np.asarray(2 * values.std(axis=0, ddof=1) / np.sqrt(len(values)))
