"""Gaussian processes over some evaluations of other tasks, with the context as an input."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.core.history import Evaluations
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
EACH = 10
"""Number of evaluations of each other task in `gp-transfer-subsample` (supplement B.3)."""


class GPTransfer(TaskByTask, MultiTaskGP):
    """`bo` started with evaluations of other tasks, with the context as an input of the model.

    Losses are standardised task by task, those of the current task by the ones observed so far. At
    most `MAX_SOURCES` evaluations of other tasks are drawn once for the model; of the current task
    it uses as many as `bo`.
    """

    def observations(self) -> tuple[FloatArray, FloatArray]:
        """Features (n, p) and losses (n,), standardised task by task; this task's come last."""
        return self.prepend_sources(*super().observations())

    def incumbent(self, model: "GaussianProcess", y: FloatArray) -> float:
        """Lowest loss on this task, or the lowest predicted one if there is none."""
        return self.best_of_task(y, lambda X: model.predict(X)[0])


class GPTransferClosest(GPTransfer):
    """`bo` started with at most `MAX_SOURCES` random evaluations of the closest task.

    The closest task has the smallest L1 distance of contexts; of several, it is the last. Contexts
    are standardised over all tasks. Without a common context, the last task of the history is the
    closest.
    """

    def choose_source_evaluations(
        self, tasks: Sequence[Evaluations], inputs: FloatArray
    ) -> Sequence[Evaluations]:
        """Random evaluations of the closest task."""
        counts = [0] * len(tasks)
        if tasks:
            distances = np.abs(inputs[:-1] - inputs[-1]).sum(axis=1).round(9)
            counts[-1 - int(np.argmin(distances[::-1]))] = MAX_SOURCES
        return sample_standardised(tasks, counts, self.rng)


class GPTransferSubsample(GPTransfer):
    """`bo` started with `EACH` random evaluations of every other task.

    With many tasks, a random `MAX_SOURCES` of these evaluations are used. Without a common context,
    the model's input is the task's index in the history.
    """

    def choose_source_evaluations(
        self, tasks: Sequence[Evaluations], inputs: FloatArray
    ) -> Sequence[Evaluations]:
        """Random evaluations of each task."""
        counts = draw_sample_counts(tasks, EACH, MAX_SOURCES, self.rng)
        return sample_standardised(tasks, counts, self.rng)


SPECS = (
    MethodSpec(
        name="gp-transfer-closest",
        method=GPTransferClosest,
        summary=f"bo started with {MAX_SOURCES} evaluations of the task with the closest context.",
        source="Perrone et al. (2018), supplement B.3: GP transfer (ctx, L1)",
        min_history=1,
        version=2,
    ),
    MethodSpec(
        name="gp-transfer-subsample",
        method=GPTransferSubsample,
        summary=f"bo started with {EACH} evaluations of every other task, context as an input.",
        source=(
            "Perrone et al. (2018), supplement B.3: GP transfer (ctx, subsample); Horvath et al. "
            "(2021), section 5: MT-GP-BO"
        ),
        min_history=1,
        version=2,
    ),
)
