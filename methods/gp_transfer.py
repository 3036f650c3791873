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
        """Join the evaluations that the model is fitted to, the current task's last.

        The parent class has the evaluations of the current task alone.

        Returns:
            Model inputs (N + n, p) and losses (N + n,), standardised task by task, of N evaluations
            of other tasks and n of the current one.
        """
        X, y = super().observations()
        return self.prepend_sources(X, y)

    def incumbent(self, model: "GaussianProcess", y: FloatArray) -> float:
        """Find the lowest loss on this task; before its first evaluation, the lowest predicted one.

        Args:
            model: The model.
            y: Losses that it was fitted to, N of other tasks and then n of this one, (N + n,).
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
            Evaluations of each task with losses standardised, none but of the closest.
        """
        counts = [0] * len(tasks)  # evaluations to draw of each task: none of the other tasks
        if tasks:
            closest = find_last_closest_task(task_features)
            counts[closest] = MAX_SOURCES
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
            task_features: Not used here: the context is an input of the model alone.

        Returns:
            Evaluations of each task with losses standardised.
        """
        counts = draw_sample_counts(
            tasks, max_per_task=MAX_PER_TASK, max_total=MAX_SOURCES, rng=self.rng
        )
        return sample_standardised(tasks, counts, self.rng)


def find_last_closest_task(task_features: FloatArray) -> int:
    """Find the previous task with the smallest L1 distance of features; of several, the last.

    Args:
        task_features: Features of the tasks, the current one last, shape (T, q), T >= 2.
    """
    distances = np.abs(task_features[:-1] - task_features[-1]).sum(axis=1)
    comparable = distances.round(9)  # tasks at equal distances may differ in the last bits
    # `argmin` finds the first of several equal ones, and so, in reverse order, the last.
    steps_from_end = int(np.argmin(comparable[::-1]))
    return len(comparable) - 1 - steps_from_end


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
