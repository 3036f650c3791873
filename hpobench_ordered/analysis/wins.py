"""How often one method is better than another.

Notation:
    A   number of methods
    S   number of seeds
    T   number of tasks
    M   number of trials per task

    l[a, s, t]  lowest loss that method a found with seed s on task t in its first m trials
    method a wins against b where l[a] - l[b] < -tolerance, loses where it is > tolerance, and ties
    else
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.analysis.scores import incumbents
from hpobench_ordered.errors import ExperimentError


class Contest(Enum):
    """What two methods are compared on.

    RUNS: Every seed on every task is a contest, S T in all.
    TASK_MEANS: Every task is one, decided by the means over seeds, T in all.
    """

    RUNS = "runs"
    TASK_MEANS = "task-means"


@dataclass(frozen=True, slots=True)
class Wins:
    """Counts of every pair of methods.

    Attributes:
        methods: Names of the methods, length A.
        wins: How often the method of the row was better than that of the column, shape (A, A).
        ties: How often neither was, shape (A, A); 0 on the diagonal.
    """

    methods: tuple[str, ...]
    wins: IntArray
    ties: IntArray

    @property
    def losses(self) -> IntArray:
        """How often the method of the row was worse than that of the column, shape (A, A)."""
        return self.wins.T

    @property
    def contests(self) -> IntArray:
        """How often two methods were compared, shape (A, A); 0 on the diagonal."""
        return self.wins + self.losses + self.ties

    @property
    def shares(self) -> FloatArray:
        """Share of contests won, a tie counting half, shape (A, A); NaN without any contest."""
        contests = np.where(self.contests > 0, self.contests, np.nan)
        return np.asarray((self.wins + self.ties / 2) / contests)


def count_wins(
    losses: FloatArray,
    methods: Sequence[str],
    *,
    trial: int,
    contest: Contest = Contest.RUNS,
    tolerance: float = 0.0,
    first_task: int = 0,
) -> Wins:
    """Compare every pair of methods after a trial.

    Args:
        losses: Loss of every trial, shape (A, S, T, M); or any quantity of which lower is better.
            What is NaN for one of two methods is no contest of theirs.
        methods: Names of the methods, length A.
        trial: The trial, counted from 1.
        contest: What is compared.
        tolerance: Largest difference that is a tie, in the units of the losses; to have it relative
            to what is known of each task, pass normalised regrets.
        first_task: First task that counts, from 0; 1 leaves out the task without history.

    Raises:
        ExperimentError: The tolerance is negative, or the trial not among those made.
    """
    if tolerance < 0:
        raise ExperimentError(f"a tolerance is 0 or more, not {tolerance}")
    if not 1 <= trial <= losses.shape[-1]:
        raise ExperimentError(f"trial {trial} is none of the trials 1 to {losses.shape[-1]}")
    reached = incumbents(losses[:, :, first_task:, :trial])[..., -1]
    if contest is Contest.TASK_MEANS:
        reached = reached.mean(axis=1)
    rows = reached.reshape(len(methods), -1)
    wins = np.zeros((len(methods), len(methods)), dtype=np.int64)
    ties = wins.copy()
    for index, row in enumerate(rows):
        with np.errstate(invalid="ignore"):  # of two infinite losses
            gaps = row - rows
        wins[index] = (gaps < -tolerance).sum(axis=1)
        ties[index] = ((np.abs(gaps) <= tolerance) | (row == rows)).sum(axis=1)
    np.fill_diagonal(ties, 0)
    return Wins(tuple(methods), wins, ties)
