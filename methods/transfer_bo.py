"""TransferBO: one Gaussian process over all tasks, with the task as an input."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._multi_task import MultiTaskGP, context_table
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
        """Code the previous tasks' evaluations, or a subset of a large history."""
        super().prepare()
        if len(self._source_losses) > LARGEST_HISTORY:
            self._subsample(max(MAX_OBSERVATIONS - self.budget, MAX_OBSERVATIONS // 2))

    def task_inputs(self, history: Sequence[Mapping[str, float]]) -> FloatArray:
        """Contexts of the tasks: the ranks of each quantity's values, scaled to [0, 1]."""
        columns = []
        for values in context_table(history, self.context).T:
            distinct = np.unique(values)
            columns.append(np.searchsorted(distinct, values) / max(1, len(distinct) - 1))
        return np.stack(columns, axis=1) if columns else np.zeros((len(history) + 1, 0))

    def observations(self) -> tuple[FloatArray, FloatArray]:
        """Features (n, p) and losses (n,), standardised over all tasks, of a sample of them."""
        y = self._all_losses()
        chosen = np.arange(len(y))
        if len(y) > MAX_OBSERVATIONS:
            chosen = self.rng.permutation(len(y))[:MAX_OBSERVATIONS]
        unit = np.concatenate([self._sources, self.evaluated_units()])[chosen]
        here = np.broadcast_to(self._here, (self.evaluation_count, len(self._here)))
        inputs = np.concatenate([self._source_inputs, here])[chosen]
        return self.features_of(unit, inputs), y[chosen]

    def incumbent(self, model: "GaussianProcess", y: FloatArray) -> float:
        """Lowest loss on this task, or the lowest predicted one if there is none."""
        if self.evaluation_count:
            return float(self._all_losses()[-self.evaluation_count :].min())
        return self.predicted_incumbent(lambda X: model.predict(X)[0])

    def _subsample(self, count: int) -> None:
        """Reduce the previous tasks' evaluations to a random subset, in order."""
        chosen = np.sort(self.rng.permutation(len(self._source_losses))[:count])
        self._sources, self._source_inputs = self._sources[chosen], self._source_inputs[chosen]
        self._source_losses = self._source_losses[chosen]

    def _all_losses(self) -> FloatArray:
        """Losses of the previous tasks and then of this one, standardised together."""
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
        version=2,
    ),
)
