"""Gaussian processes over some evaluations of other tasks, with the context as an input.

Notation of `_multi_task`: T tasks, the current one last; q features of a task; p inputs of the
model; N evaluations of other tasks that it uses and n of the current one.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.methods._multi_task import (
    MultiTaskGP,
    TaskByTask,
    draw_sample_counts,
    sample_standardised,
)
from hpobench_ordered.methods.base import MethodSpec

if TYPE_CHECKING:
    from hpobench_ordered.methods._gp.model import GaussianProcess

MAX_SOURCES = 300
"""Largest number of evaluations of other tasks that the model uses (supplement B.3)."""
MAX_PER_TASK = 10
"""Number of evaluations of each other task in `gp-transfer-subsample` (supplement B.3)."""


class GPTransfer(TaskByTask, MultiTaskGP):
    """`bo` started with evaluations of other tasks, with the context as an input of the model.

    Losses are standardised task by task, those of the current task by the ones observed so far. At
    most `MAX_SOURCES` evaluations of other tasks are drawn once for the model; of the current task
    it uses as many as `bo`.
    """

    def observations(self) -> tuple[FloatArray, FloatArray]:
        """Return inputs (N + n, p) and losses (N + n,) that the model is fitted to.

        They are those of N evaluations of other tasks, followed by n evaluations of the current
        task. Losses are standardised task by task.
        """
        X, y = super().observations()
        return self.prepend_sources(X, y)

    def incumbent(self, model: "GaussianProcess", y: FloatArray) -> float:
        """Find the standardised loss that a suggestion should improve on.

        It is the lowest loss on this task so far. Before the first evaluation of this task it is
        the lowest loss that the model predicts for the configurations of the other tasks.

        Args:
            model: The process, fitted to y.
            y: Losses of N evaluations of other tasks, followed by n of this one, shape (N + n,).
        """

        def predict_mean(X: FloatArray) -> FloatArray:
            """Predict the mean loss (m,) at model inputs X (m, p)."""
            mean, _ = model.predict(X)
            return mean

        return self.best_of_task(y, predict_mean)


class GPTransferClosest(GPTransfer):
    """`bo` started with at most `MAX_SOURCES` random evaluations of the closest task.

    The closest task has the smallest L1 distance of contexts; of several, it is the last. Contexts
    are standardised over all tasks. Without a common context, the last task of the history is the
    closest.
    """

    def choose_source_evaluations(
        self, tasks: Sequence[Evaluations], task_features: FloatArray
    ) -> Sequence[Evaluations]:
        """Draw `MAX_SOURCES` evaluations of the closest task at random, or all if it has fewer.

        Args:
            tasks: Finite evaluations of the previous tasks.
            task_features: Features of these tasks and, last, of the current one, shape (T, q).

        Returns:
            The drawn evaluations of each task, with standardised losses; none of the other tasks.
        """
        counts = [0] * len(tasks)  # number of evaluations to draw of each task
        if tasks:
            closest = find_last_closest_task(task_features)
            counts[closest] = MAX_SOURCES  # if it has fewer, all are drawn
        return sample_standardised(tasks, counts, self.rng)


class GPTransferSubsample(GPTransfer):
    """`bo` started with `MAX_PER_TASK` random evaluations of every other task.

    With many tasks, a random `MAX_SOURCES` of these evaluations are used. Without a common context,
    the model's input is the task's index in the history.
    """

    def choose_source_evaluations(
        self, tasks: Sequence[Evaluations], task_features: FloatArray
    ) -> Sequence[Evaluations]:
        """Draw `MAX_PER_TASK` evaluations of each task at random, at most `MAX_SOURCES` in all.

        Args:
            tasks: Finite evaluations of the previous tasks.
            task_features: Not used here, as the choice does not depend on the tasks' contexts.

        Returns:
            The drawn evaluations of each task, with standardised losses.
        """
        counts = draw_sample_counts(
            tasks, max_per_task=MAX_PER_TASK, max_total=MAX_SOURCES, rng=self.rng
        )
        return sample_standardised(tasks, counts, self.rng)


def find_last_closest_task(task_features: FloatArray) -> int:
    """Find the previous task that is closest to the current one by the L1 distance of features.

    Args:
        task_features: Features of the previous tasks and, last, of the current one, shape (T, q),
            T >= 2.

    Returns:
        The row of this task; of several that are equally close, the last.
    """
    previous_features = task_features[:-1]
    current_features = task_features[-1]
    distances = np.abs(previous_features - current_features).sum(axis=1)  # (T - 1,)
    # Rounded, as equal distances may differ in the last bits.
    rounded_distances = distances.round(9)
    closest_rows = np.flatnonzero(rounded_distances == rounded_distances.min())
    return int(closest_rows[-1])


SPECS = (
    MethodSpec(
        name="gp-transfer-closest",
        method=GPTransferClosest,
        summary=f"bo started with {MAX_SOURCES} evaluations of the task with the closest context.",
        source="Perrone et al. (2018), supplement B.3: GP transfer (ctx, L1)",
        min_history=1,
        uses_context=True,
        version=2,
    ),
    MethodSpec(
        name="gp-transfer-subsample",
        method=GPTransferSubsample,
        summary=(
            f"bo started with {MAX_PER_TASK} evaluations of every other task, context as an input."
        ),
        source=(
            "Perrone et al. (2018), supplement B.3: GP transfer (ctx, subsample); Horvath et al. "
            "(2021), section 5: MT-GP-BO"
        ),
        min_history=1,
        uses_context=True,
        version=2,
    ),
)
