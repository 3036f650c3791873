"""Base of the methods with one model of several tasks, which has the tasks' contexts as inputs.

=======  ======  ==================================================================================
symbol   shape   meaning
=======  ======  ==================================================================================
T        scalar  tasks: the previous ones with finite losses, then the current one
d        scalar  hyperparameters
q        scalar  features of a task
p        scalar  inputs of the model: features of the configuration, then those of its task
N, n     scalar  evaluations of the previous tasks that the model uses, of the current task
=======  ======  ==================================================================================
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.methods._model_based import ModelBased, replace_failed_evaluations
from hpobench_ordered.methods.bo import BayesianOptimisation

MAX_PREDICTED = 200
"""Number of configurations of previous tasks used to predict a first incumbent."""
RANGE_IN_SDS = 4.0
"""Number of standard deviations of a context that equal the range of a hyperparameter."""


class MultiTask(ModelBased):
    """Model-based optimisation whose model is also fitted to the previous tasks' evaluations.

    The inputs of the model are the features of the configuration and those of its task. There are
    no random initial trials if there is a history.
    """

    def prepare(self) -> None:
        """Code the previous tasks' evaluations as inputs and outputs of the model.

        The inputs of an evaluation are its configuration and the features of its task.
        """
        super().prepare()
        tasks = replace_failed_evaluations(self.history)
        if tasks:  # they take the place of initial random trials
            self.random_trials = 0

        # A row of q features for each task, the current one last.
        task_features = self.compute_task_features([task.context for task in tasks])
        self._current_task_features = task_features[-1]

        sources = self.choose_source_evaluations(tasks, task_features)  # N evaluations, by task
        no_values = np.empty((0, self.space.dimension))  # numpy cannot concatenate an empty list
        source_values = np.concatenate([no_values, *(task.values for task in sources)])
        # Configurations in the unit cube, (N, d), with discrete values in the middle of their bins,
        # and NaN where inactive.
        self._source_units = self.space.canonical(self.space.encode(source_values))
        source_counts = [len(task) for task in sources]
        # The features of the task of each evaluation, (N, q).
        self._source_task_features = np.repeat(task_features[:-1], source_counts, axis=0)
        no_losses = np.empty(0)
        # The loss of each evaluation, (N,).
        self._source_losses = np.concatenate([no_losses, *(task.losses for task in sources)])

    @abstractmethod
    def compute_task_features(self, history: Sequence[Mapping[str, float]]) -> FloatArray:
        """Compute the features (T, q) of the tasks of the history and of the current one.

        The context of the current task is `self.context`.

        Args:
            history: Contexts of the previous tasks, oldest first.
        """

    def choose_source_evaluations(
        self, tasks: Sequence[Evaluations], task_features: FloatArray
    ) -> Sequence[Evaluations]:
        """Choose evaluations of each previous task for the model. Default: all.

        Args:
            tasks: Finite evaluations of the previous tasks.
            task_features: Features of these tasks and, last, of the current one, shape (T, q). They
                are for subclasses that choose the closest tasks.
        """
        return tasks

    def features(self, unit: FloatArray) -> FloatArray:
        """Compute model inputs (m, p) of configurations in the unit cube, (m, d), on this task.

        They are the features of the configuration, followed by the features of the current task,
        which are the same for all.
        """
        shape = len(unit), len(self._current_task_features)
        task_features = np.broadcast_to(self._current_task_features, shape)
        return self.features_on_tasks(unit, task_features)

    def features_on_tasks(self, unit: FloatArray, task_features: FloatArray) -> FloatArray:
        """Compute model inputs (m, p) of configurations on tasks.

        They are the features of each configuration, followed by those of its task.

        Args:
            unit: Configurations in the unit cube, shape (m, d).
            task_features: Features of the task of each configuration, shape (m, q).
        """
        configuration_features = self.region.features(unit)
        return np.concatenate([configuration_features, task_features], axis=1)

    def predict_incumbent(self, predict_mean: Callable[[FloatArray], FloatArray]) -> float:
        """Predict the lowest loss on the current task, before its first evaluation.

        It is the lowest predicted mean of the latest `MAX_PREDICTED` configurations that were
        evaluated on previous tasks.

        Args:
            predict_mean: Computes the posterior mean (m,) at model inputs (m, p).
        """
        latest_units = self._source_units[-MAX_PREDICTED:]  # tasks are in order, oldest first
        means = predict_mean(self.features(latest_units))  # on the current task
        return float(means.min())


def tabulate_contexts(
    history: Sequence[Mapping[str, float]], current: Mapping[str, float]
) -> FloatArray:
    """Tabulate the context quantities that all tasks have.

    Args:
        history: Context of each previous task, by the names of its quantities.
        current: Context of the current task.

    Returns:
        A row for each of the T tasks, the current one last, and a column for each of the q
        quantities, in the order of the current task's context, shape (T, q); q may be 0.
    """
    tasks = [*history, current]
    shared_names = [name for name in current if all(name in task for task in history)]
    rows = []
    for task in tasks:
        rows.append([task[name] for name in shared_names])
    # Without shared quantities, rows are empty, and numpy would not know the number of columns.
    return np.array(rows).reshape(len(tasks), len(shared_names))


def standardise_contexts(table: FloatArray) -> FloatArray:
    """Standardise each context quantity over the tasks, then scale it to about [0, 1].

    The models' priors assume inputs in [0, 1]. The mean over the tasks becomes 1/2, and
    `RANGE_IN_SDS` standard deviations become 1: nearly all tasks are less than 2 standard
    deviations from the mean, and so between 0 and 1.

    Args:
        table: A row for each task, a column for each quantity, at least one, shape (T, q).

    Returns:
        The scaled table, of the same shape.
    """
    from hpobench_ordered.methods._gp.model import standardise

    # Copies, as compiled functions expect contiguous arrays.
    columns = [standardise(column.copy()) for column in table.T]
    standardised = np.stack(columns, axis=1)
    return standardised / RANGE_IN_SDS + 0.5


class TaskByTask(MultiTask):
    """Several tasks whose losses are standardised task by task, with their contexts as inputs.

    Contexts are standardised over all tasks, including the current one, and then scaled to about
    the range of [0, 1], which the models' priors assume. If there is no quantity that all tasks
    have, a task's index is used: the current task comes last, and the one before is closest.
    """

    def compute_task_features(self, history: Sequence[Mapping[str, float]]) -> FloatArray:
        """Standardise the contexts of the tasks, to about the range [0, 1].

        A feature is a quantity of the contexts that all tasks have. If there is none, the only
        feature is the task's index.

        Args:
            history: Contexts of the previous tasks, by the names of their quantities, oldest first.

        Returns:
            A row for each of T tasks, the current one last, with its q features, shape (T, q).
        """
        table = tabulate_contexts(history, self.context)
        has_shared_context = table.shape[1] > 0
        if not has_shared_context:
            table = np.arange(float(len(table)))[:, None]  # indices of the tasks
        return standardise_contexts(table)

    def prepend_sources(self, X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Prepend the previous tasks' evaluations to those of the current task.

        Args:
            X: Model inputs of the current task's evaluations, shape (n, p).
            y: Their standardised losses, shape (n,).

        Returns:
            Model inputs (N + n, p) and losses (N + n,), standardised task by task: first of N
            evaluations of previous tasks, then of n of the current one.
        """
        source_X = self.features_on_tasks(self._source_units, self._source_task_features)
        all_X = np.concatenate([source_X, X])
        all_y = np.concatenate([self._source_losses, y])
        return all_X, all_y

    def best_of_task(
        self, y: FloatArray, predict_mean: Callable[[FloatArray], FloatArray]
    ) -> float:
        """Return the lowest standardised loss on the current task; predict it if there is none.

        Args:
            y: Losses from `prepend_sources`, of previous tasks and then of the current task.
            predict_mean: Computes the posterior mean (m,) at model inputs (m, p).
        """
        if not self.evaluation_count:
            return self.predict_incumbent(predict_mean)
        source_count = len(self._source_losses)
        current_losses = y[source_count:]
        return float(current_losses.min())


class MultiTaskGP(MultiTask, BayesianOptimisation):
    """`bo` over several tasks: one kernel, with a separate length scale for each context."""

    def group_features(self) -> IntArray:
        """Compute the index of the length scale of each input of the model, (p,).

        Each hyperparameter has a length scale, and so has each feature of a task. Inputs of the
        configuration come first, then those of the task.
        """
        return append_task_groups(super().group_features(), len(self._current_task_features))


def append_task_groups(groups: IntArray, count: int) -> IntArray:
    """Give each feature of a task a length scale of its own, after those of a configuration.

    Args:
        groups: Index of the length scale of each feature of a configuration.
        count: Number of features of a task.

    Returns:
        Index of the length scale of each feature of the configuration and, after them, of the task.
    """
    next_group = groups.max() + 1
    task_groups = next_group + np.arange(count)
    return np.append(groups, task_groups)


def sample_standardised(
    tasks: Sequence[Evaluations], counts: Sequence[int], rng: np.random.Generator
) -> list[Evaluations]:
    """Draw evaluations of each task at random, in their order, with standardised losses.

    Losses are standardised over all evaluations of the task, not only over those drawn.

    Args:
        tasks: Finite evaluations of the tasks.
        counts: Number of evaluations to draw of each task; a task with fewer gives all.
        rng: Draws the evaluations.

    Returns:
        The drawn evaluations of each task. Their objective is the standardised loss, which is
        minimised also where the task's own objective is maximised.
    """
    from hpobench_ordered.methods._gp.model import standardise

    samples = []
    for task, count in zip(tasks, counts, strict=True):
        drawn_rows = rng.permutation(len(task))[:count]
        rows = np.sort(drawn_rows)
        standardised_losses = standardise(task.losses)
        sample = replace(
            task,
            values=task.values[rows],
            objective=standardised_losses[rows],
            direction=Direction.MINIMIZE,
        )
        samples.append(sample)
    return samples


def draw_sample_counts(
    tasks: Sequence[Evaluations],
    *,
    max_per_task: int,
    max_total: int,
    rng: np.random.Generator,
) -> list[int]:
    """Draw how many evaluations of each task to use.

    The number is `max_per_task`, or all if the task has fewer. If the sum exceeds `max_total`, that
    many evaluations are drawn at random from those of all tasks, and the number of a task is how
    many of its evaluations are among them.

    Args:
        tasks: Evaluations of each task.
        max_per_task: Largest number of one task.
        max_total: Largest number of all tasks together.
        rng: Draws the evaluations.
    """
    counts = [min(len(task), max_per_task) for task in tasks]
    task_of_evaluation = np.repeat(np.arange(len(tasks)), counts)
    task_of_drawn = rng.permutation(task_of_evaluation)[:max_total]
    drawn_counts: list[int] = np.bincount(task_of_drawn, minlength=len(tasks)).tolist()
    return drawn_counts
