"""Base of the methods with Bayesian linear regression on features of a network."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._model_based import ModelBased, Scorer, replace_failed_evaluations
from hpobench_ordered.methods._multi_task import draw_sample_counts, sample_standardised
from hpobench_ordered.methods.bo import group_features
from hpobench_ordered.space.parameters import Kind

if TYPE_CHECKING:
    from hpobench_ordered.data.history import Evaluations
    from hpobench_ordered.methods._blr.heads import Head
    from hpobench_ordered.methods._networks.features import FeatureMap


CHOICE_SCALE = 0.25
"""One-hot columns are this and minus this, while numbers are in [-1, 1]: two choices are 0.71
apart, like two random values of a number on average (2/3). With 1 they would be 1.4 times as far
apart as the ends of its range, and hardly informative about each other."""
CONTEXT_SCALE = 0.25
"""Standardised contexts are multiplied by this, so that tasks are closer than configurations."""
MAX_SOURCES = 20_000
"""Largest number of evaluations of previous tasks to use; the time of every fit grows with it."""


class LinearHead(ModelBased):
    """Makes a few initial trials, then suggests the candidate of highest expected improvement.

    The model is Bayesian linear regression, the head of the current task, on a feature map that
    may be shared with the previous tasks. Losses are standardised task by task, so that tasks may
    be on different scales. Pending evaluations are assumed to give the posterior mean.

    Attributes:
        uses_history: Whether the previous tasks are used.
        uses_context: Whether the tasks' contexts are inputs of the feature map.
        phi: The feature map.
    """

    searches_near_best = True
    uses_history = True
    uses_context = False

    phi: "FeatureMap"

    @property
    @abstractmethod
    def z(self) -> FloatArray:
        """Parameters of the feature map, shape (size,)."""

    @abstractmethod
    def fit_head(self, X: FloatArray, y: FloatArray) -> "Head":
        """Fit the head, and other parameters that are refitted after each evaluation.

        Args:
            X: Inputs of the current task's evaluations, shape (n, p).
            y: Their standardised losses, shape (n,).

        Raises:
            ModelError: The fit fails.
        """

    def make_scorer(self) -> Scorer:
        """Fit the head, and make the function that scores candidates: log expected improvement.

        The head is the Bayesian linear regression of this task on the outputs of the feature map.

        Raises:
            ModelError: The fit fails.
        """
        from hpobench_ordered.methods._gp.acquisition import log_expected_improvement
        from hpobench_ordered.methods._gp.model import standardise

        y = standardise(self.evaluated_losses())
        head = self.fit_head(self.make_inputs(self.evaluated_units()), y)
        lowest_loss = float(y.min())
        if self._pending:  # asked for, but not evaluated yet: assumed to give the posterior mean
            pending_inputs = self.make_inputs(self.pending_units())
            head, assumed_losses = head.with_fantasies(self.features(pending_inputs))
            lowest_loss = min(lowest_loss, float(assumed_losses.min()))

        def score(unit: FloatArray) -> FloatArray:
            """Compute log expected improvement (m,) of candidates in the unit cube, (m, d).

            The head predicts losses from the outputs of the feature map.
            """
            inputs = self.make_inputs(unit)
            mean, sd = head.predict(self.features(inputs))
            return log_expected_improvement(mean, sd, lowest_loss)

        return score

    def prepare_sources(self) -> tuple[list[FloatArray], list[FloatArray]]:
        """Compute the inputs and the losses of the previous tasks that have finite losses.

        This also sets `_context`, the standardised context of the current task, which later inputs
        of this task contain.

        Returns:
            For each previous task, the inputs (n, p) of its evaluations, and their losses (n,),
            standardised task by task.
        """
        from hpobench_ordered.methods._gp.model import standardise

        tasks = self._choose_source_evaluations()
        # The contexts of the current and the previous tasks are standardised together.
        if self.uses_context:
            contexts = [*(task.context for task in tasks), self.context]
        else:
            contexts = [{}] * (len(tasks) + 1)
        *source_contexts, self._context = standardise_contexts(contexts)

        inputs = []
        losses = []
        for task, context in zip(tasks, source_contexts, strict=True):
            losses.append(standardise(task.losses))
            unit = self.space.canonical(self.space.encode(task.values))
            inputs.append(self._scale_and_append_context(unit, context))
        return inputs, losses

    def _choose_source_evaluations(self) -> "Sequence[Evaluations]":
        """Choose the evaluations of previous tasks to use, a random part if there are too many.

        More than `MAX_SOURCES` evaluations of all tasks together are too many. A method without
        history uses none.
        """
        if not self.uses_history:
            return []
        tasks = replace_failed_evaluations(self.history)
        evaluation_count = sum(map(len, tasks))
        if evaluation_count <= MAX_SOURCES:
            return tasks
        counts = draw_sample_counts(
            tasks,
            max_per_task=MAX_SOURCES,  # a single task may use up the limit of all
            max_total=MAX_SOURCES,
            rng=self.rng,
        )
        return sample_standardised(tasks, counts, self.rng)

    def make_inputs(self, unit: FloatArray) -> FloatArray:
        """Compute inputs (m, p) of the feature map for configurations on the current task.

        They are features of the configurations, and this task's standardised context, `_context`,
        which `prepare_sources` has set.

        Args:
            unit: The configurations in the unit cube, shape (m, number of hyperparameters).
        """
        return self._scale_and_append_context(unit, self._context)

    def features(self, X: FloatArray) -> FloatArray:
        """Compute the features (m, d) of inputs X (m, p): the outputs of the feature map.

        The map is `phi`, and its parameters are `z`.
        """
        from hpobench_ordered.methods._networks.features import compute_features

        return compute_features(self.phi, self.z, X)

    def _scale_and_append_context(self, unit: FloatArray, context: FloatArray) -> FloatArray:
        """Compute inputs (m, p) of the feature map for configurations on a task.

        They are the features of the configuration, scaled to [-1, 1], with which networks learn
        faster than with [0, 1], and the context of the task. One-hot columns of choices and the
        context are scaled down, so that they have less influence than numbers.

        Args:
            unit: The configurations in the unit cube, shape (m, number of hyperparameters).
            context: Standardised context of the task, shape (q,).
        """
        is_choice = [p.kind is Kind.CATEGORICAL for p in self.space.parameters]
        scale_of_parameter = np.where(is_choice, CHOICE_SCALE, 1.0)
        parameter_of_column = group_features(self.space)  # a categorical has several columns
        scale_of_column = scale_of_parameter[parameter_of_column]

        features = self.region.features(unit)  # in [0, 1]
        centred = 2.0 * features - 1.0  # in [-1, 1]
        scaled_context = CONTEXT_SCALE * context
        context_columns = np.broadcast_to(scaled_context, (len(unit), len(context)))
        return np.concatenate([scale_of_column * centred, context_columns], axis=1)


def standardise_contexts(contexts: Sequence[Mapping[str, float]]) -> FloatArray:
    """Standardise the quantities of contexts to mean 0 and variance 1 over the tasks.

    Only the q quantities that all tasks have are used; q may be 0.

    Args:
        contexts: Context of each task: its quantities by name.

    Returns:
        A row for each task, and a column for each quantity, in the order of the last task's
        context, shape (tasks, q).
    """
    from hpobench_ordered.methods._gp.model import standardise

    columns = []
    for name in contexts[-1]:
        is_in_all = all(name in context for context in contexts)
        if is_in_all:
            values = [float(context[name]) for context in contexts]
            columns.append(standardise(np.array(values)))
    if not columns:
        return np.zeros((len(contexts), 0))
    return np.stack(columns, axis=1)
