"""Base of the methods with a model of several tasks, whose contexts are inputs."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.methods._model_based import ModelBased, remove_failed_evaluations
from hpobench_ordered.methods.bo import BayesianOptimisation

MAX_PREDICTED = 200
"""Number of configurations of previous tasks used to predict a first incumbent."""
SPAN = 4.0
"""Number of standard deviations of a context that equal the range of a hyperparameter."""


class MultiTask(ModelBased):
    """Model-based optimisation whose model is also fitted to the previous tasks' evaluations.

    The inputs of the model are the features of the configuration and those of its task. There are
    no random initial trials if there is a history.
    """

    def prepare(self) -> None:
        """Code the previous tasks' evaluations."""
        super().prepare()
        tasks = remove_failed_evaluations(self.history)
        if tasks:
            self.random_trials = 0
        inputs = self.task_inputs([task.context for task in tasks])
        self._here = inputs[-1]
        sources = self.source_evaluations(tasks, inputs)
        values = np.concatenate([np.empty((0, self.space.dimension)), *(t.values for t in sources)])
        self._sources = self.space.canonical(self.space.encode(values))
        self._source_inputs = np.repeat(inputs[:-1], [len(task) for task in sources], axis=0)
        self._source_losses = np.concatenate([np.empty(0), *(task.losses for task in sources)])

    @abstractmethod
    def task_inputs(self, history: Sequence[Mapping[str, float]]) -> FloatArray:
        """Features of the tasks with these contexts and, last, of the current one, (tasks, q)."""

    def source_evaluations(
        self, tasks: Sequence[Evaluations], inputs: FloatArray
    ) -> Sequence[Evaluations]:
        """Evaluations of each previous task that the model may use. Default: all.

        Args:
            tasks: Finite evaluations of the previous tasks.
            inputs: Features of these tasks and of the current one, (tasks + 1, q).
        """
        return tasks

    def features(self, unit: FloatArray) -> FloatArray:
        """Features (m, p) of canonical unit vectors (m, d) on this task."""
        return self.features_of(unit, np.broadcast_to(self._here, (len(unit), len(self._here))))

    def features_of(self, unit: FloatArray, inputs: FloatArray) -> FloatArray:
        """Features (m, p) of canonical unit vectors (m, d) on tasks with features (m, q)."""
        return np.concatenate([self.region.features(unit), inputs], axis=1)

    def predicted_incumbent(self, predict: Callable[[FloatArray], FloatArray]) -> float:
        """Lowest mean predicted on this task for configurations of the previous tasks.

        Args:
            predict: Posterior mean (m,) at features (m, p).
        """
        return float(predict(self.features(self._sources[-MAX_PREDICTED:])).min())


def context_table(
    history: Sequence[Mapping[str, float]], current: Mapping[str, float]
) -> FloatArray:
    """Context quantities that all tasks have, the current task last, shape (tasks, q)."""
    tasks = [*history, current]
    names = [name for name in current if all(name in task for task in tasks)]
    return np.array([[task[name] for name in names] for task in tasks]).reshape(len(tasks), -1)


class TaskByTask(MultiTask):
    """Several tasks whose losses are standardised task by task, with their contexts as inputs.

    Contexts are standardised over all tasks, including the current one, and then scaled by `SPAN`
    to about the range of [0, 1], which the models' priors assume. If there is no quantity that all
    tasks have, a task's index is used: the current task comes last, and the one before is closest.
    """

    def task_inputs(self, history: Sequence[Mapping[str, float]]) -> FloatArray:
        """Standardised contexts (tasks, q), the current task's last."""
        from hpobench_ordered.methods._gp.model import standardise

        table = context_table(history, self.context)
        if not table.shape[1]:
            table = np.arange(float(len(table)))[:, None]
        return np.stack([standardise(column.copy()) for column in table.T], axis=1) / SPAN + 0.5

    def with_sources(self, X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Prepend the previous tasks' data to features (n, p) and standardised losses (n,)."""
        sources = self.features_of(self._sources, self._source_inputs)
        return np.concatenate([sources, X]), np.concatenate([self._source_losses, y])

    def best_of_task(self, y: FloatArray, predict: Callable[[FloatArray], FloatArray]) -> float:
        """Lowest standardised loss on this task, or the lowest predicted one if there is none.

        Args:
            y: Losses from `with_sources`.
            predict: Posterior mean (m,) at features (m, p).
        """
        if self.evaluation_count:
            return float(y[len(self._source_losses) :].min())
        return self.predicted_incumbent(predict)


class MultiTaskGP(MultiTask, BayesianOptimisation):
    """`bo` over several tasks: one kernel, with a separate length scale for each context."""

    def feature_groups(self) -> IntArray:
        """Length scale of each feature column, (p,); those of the task come last."""
        task = self.space.dimension + np.arange(len(self._here))
        return np.concatenate([super().feature_groups(), task])


def sample_standardised(
    tasks: Sequence[Evaluations], counts: Sequence[int], rng: np.random.Generator
) -> list[Evaluations]:
    """Random evaluations of each task, in order; losses are standardised over the whole task.

    Args:
        tasks: Finite evaluations of the tasks.
        counts: Number of evaluations to draw of each task.
        rng: Draws them.
    """
    from hpobench_ordered.methods._gp.model import standardise

    part = []
    for task, count in zip(tasks, counts, strict=True):
        rows = np.sort(rng.permutation(len(task))[:count])
        losses = standardise(task.losses)[rows]
        values, minimised = task.values[rows], Direction.MINIMIZE
        part.append(replace(task, values=values, objective=losses, direction=minimised))
    return part


def draw_sample_counts(
    tasks: Sequence[Evaluations], each: int, total: int, rng: np.random.Generator
) -> list[int]:
    """Number of evaluations to take of each task: `each`, or a random share if `total` is less."""
    of_task = np.repeat(np.arange(len(tasks)), [min(len(task), each) for task in tasks])
    chosen = rng.permutation(of_task)[:total]
    counts: list[int] = np.bincount(chosen, minlength=len(tasks)).tolist()
    return counts
