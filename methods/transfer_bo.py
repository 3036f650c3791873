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
"""Observations the model is fitted to at most (appendix E)."""
LARGEST_HISTORY = 675
"""Evaluations of the largest history in the paper: 25 of each of 27 tasks."""


class TransferBO(MultiTaskGP):
    """Bayesian optimisation whose model also sees the previous tasks' evaluations.

    What is known of the tasks (`context`) becomes features of the model, beside those of the
    configuration and under the same kernel, with separate length scales. The losses of all
    tasks are standardised together: the method is for tasks whose losses are on one scale, and
    whose context tells them apart. With more than
    `MAX_OBSERVATIONS` previous and current evaluations, every suggestion uses a random
    `MAX_OBSERVATIONS` of them. There are no random initial trials.

    Of a history larger than any in the paper that choice would hold hardly any evaluation of the
    current task, from which the method would then learn nothing. A random part of such a history
    is used instead, the same throughout, that leaves room for the current task's evaluations.
    """

    def prepare(self) -> None:
        """Code the previous tasks' evaluations, of a large history a part."""
        super().prepare()
        if len(self._source_losses) > LARGEST_HISTORY:
            self._subsample(max(MAX_OBSERVATIONS - self.budget, MAX_OBSERVATIONS // 2))

    def task_inputs(self, history: Sequence[Mapping[str, float]]) -> FloatArray:
        """What is known of the tasks: a quantity's values spread evenly over [0, 1] in order."""
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
        unit = np.concatenate([self._sources, self.told()])[chosen]
        here = np.broadcast_to(self._here, (self.results, len(self._here)))
        inputs = np.concatenate([self._source_inputs, here])[chosen]
        return self.features_of(unit, inputs), y[chosen]

    def incumbent(self, model: "GaussianProcess", y: FloatArray) -> float:
        """Lowest loss on this task: the losses of other tasks are no measure of an improvement.

        Without any, the lowest that the model predicts for the previous tasks' configurations.
        """
        if self.results:
            return float(self._all_losses()[-self.results :].min())
        return self.predicted_incumbent(lambda X: model.predict(X)[0])

    def _subsample(self, count: int) -> None:
        """Reduce the previous tasks' evaluations to a random choice, in their order."""
        chosen = np.sort(self.rng.permutation(len(self._source_losses))[:count])
        self._sources, self._source_inputs = self._sources[chosen], self._source_inputs[chosen]
        self._source_losses = self._source_losses[chosen]

    def _all_losses(self) -> FloatArray:
        """Losses of the previous tasks and then of this one, standardised together."""
        from hpobench_ordered.methods._gp.model import standardise

        return standardise(np.concatenate([self._source_losses, self.losses()]))


SPECS = (
    MethodSpec(
        name="transfer-bo",
        method=TransferBO,
        summary="bo with one model over previous and current tasks, the task being an input.",
        source=(
            "Hellan et al. (2023), section 5.2 and appendix E: Matern-5/2 kernel, expected "
            f"improvement, at most {MAX_OBSERVATIONS} observations"
        ),
        min_history=1,
        version=2,
    ),
)
