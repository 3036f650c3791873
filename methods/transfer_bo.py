"""TransferBO: one Gaussian process over all tasks, with the task as an input.

Notation of `_multi_task`: T tasks, the current one last; q features of a task; p inputs of the
model; n observations that it is fitted to.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._multi_task import MultiTaskGP, tabulate_contexts
from hpobench_ordered.methods.base import MethodSpec

if TYPE_CHECKING:
    from hpobench_ordered.methods._gp.model import GaussianProcess

MAX_OBSERVATIONS = 200
"""Largest number of observations that the model is fitted to (appendix E)."""
LARGEST_HISTORY = 675
"""Number of evaluations in the paper's largest history: 25 of each of 27 tasks."""


class TransferBO(MultiTaskGP):
    """Bayesian optimisation whose model is also fitted to the previous tasks' evaluations.

    The tasks' contexts are features of the model as well as the configurations, under the same
    kernel with separate length scales. The losses of all tasks are standardised together: the
    method is for tasks whose losses are on one scale, and whose contexts differ. With more than
    `MAX_OBSERVATIONS` previous and current evaluations, every suggestion uses a random
    `MAX_OBSERVATIONS` of them. There are no random initial trials.

    With a larger history than any in the paper, that sample would contain hardly any evaluation of
    the current task. A fixed random subset of such a history is used instead, which leaves room for
    the current task's evaluations.
    """

    def prepare(self) -> None:
        """Code the previous tasks' evaluations for the model; reduce them if there are very many.

        Each suggestion uses a random sample of `MAX_OBSERVATIONS` evaluations of all tasks. In a
        sample from a much larger history there would be hardly any of the current task. So such a
        history is reduced, once, to leave room in samples: for as many evaluations of the current
        task as there are trials, but for no more than half of a sample.
        """
        super().prepare()  # sets the attributes `_source_...`, evaluations of the previous tasks
        if len(self._source_losses) > LARGEST_HISTORY:
            room_for_current_task = min(self.budget, MAX_OBSERVATIONS // 2)
            self._subsample_sources(MAX_OBSERVATIONS - room_for_current_task)

    def compute_task_features(self, history: Sequence[Mapping[str, float]]) -> FloatArray:
        """Rank the tasks by each context quantity, scaled to [0, 1], shape (T, q).

        Args:
            history: Contexts of the previous tasks, by the names of their quantities.
        """
        table = tabulate_contexts(history, self.context)  # (T, q), the current task last
        features = np.empty(table.shape)
        for quantity, values in enumerate(table.T):
            distinct = np.unique(values)
            ranks = np.searchsorted(distinct, values)  # from 0; equal values have equal ranks
            highest_rank = max(1, len(distinct) - 1)  # nothing is divided by 0
            features[:, quantity] = ranks / highest_rank
        return features

    def observations(self) -> tuple[FloatArray, FloatArray]:
        """Sample at most `MAX_OBSERVATIONS` evaluations of all tasks.

        Returns:
            Model inputs, features of configuration and task, (n, p), and losses (n,), standardised
            over all tasks together.
        """
        # Evaluations of the previous tasks come first, then those of the current one.
        y = self._standardise_all_losses()
        chosen = np.arange(len(y))
        if len(y) > MAX_OBSERVATIONS:
            chosen = self.rng.permutation(len(y))[:MAX_OBSERVATIONS]

        units = np.concatenate([self._source_units, self.evaluated_units()])
        shape = self.evaluation_count, len(self._current_task_features)
        current_features = np.broadcast_to(self._current_task_features, shape)
        # The features of the task of each evaluation.
        task_features = np.concatenate([self._source_task_features, current_features])
        return self.features_on_tasks(units[chosen], task_features[chosen]), y[chosen]

    def incumbent(self, model: "GaussianProcess", y: FloatArray) -> float:
        """Find the lowest loss on this task; before its first evaluation, the lowest predicted one.

        Args:
            model: The model.
            y: Losses that it was fitted to, shape (n,). They are not used: a random sample of the
                evaluations of all tasks may lack the best one of this task.
        """
        if not self.evaluation_count:

            def predict_mean(X: FloatArray) -> FloatArray:
                """Predict the mean loss (m,) at model inputs X (m, p)."""
                mean, _ = model.predict(X)
                return mean

            return self.predict_incumbent(predict_mean)

        current_losses = self._standardise_all_losses()[-self.evaluation_count :]  # they come last
        return float(current_losses.min())

    def _subsample_sources(self, count: int) -> None:
        """Keep only `count` random evaluations of the previous tasks, in their order.

        They are stored as three arrays, configurations, features of their tasks, and losses.
        """
        chosen = np.sort(self.rng.permutation(len(self._source_losses))[:count])
        self._source_units = self._source_units[chosen]
        self._source_task_features = self._source_task_features[chosen]
        self._source_losses = self._source_losses[chosen]

    def _standardise_all_losses(self) -> FloatArray:
        """Standardise the losses of the previous tasks and of this one together, (N + n,).

        Those of N evaluations of previous tasks, `_source_losses`, come first, then n of this one.
        """
        from hpobench_ordered.methods._gp.model import standardise

        return standardise(np.concatenate([self._source_losses, self.evaluated_losses()]))


SPECS = (
    MethodSpec(
        name="transfer-bo",
        method=TransferBO,
        summary="bo with one model of previous and current tasks, with the context as an input.",
        source=(
            "Hellan et al. (2023), section 5.2 and appendix E: Matern-5/2 kernel, expected "
            f"improvement, at most {MAX_OBSERVATIONS} observations"
        ),
        min_history=1,
        uses_context=True,
        version=2,
    ),
)
