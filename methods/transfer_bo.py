"""TransferBO: one Gaussian process over all tasks, with the task as an input."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.methods._model_based import finite_history
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.bo import BayesianOptimisation

if TYPE_CHECKING:
    from hpobench_ordered.methods._gp.model import GaussianProcess

MAX_OBSERVATIONS = 200
"""Observations the model is fitted to at most (appendix E)."""
LARGEST_HISTORY = 675
"""Evaluations of the largest history in the paper: 25 of each of 27 tasks."""


class TransferBO(BayesianOptimisation):
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
        """Code the previous tasks' evaluations."""
        super().prepare()
        tasks = finite_history(self.history)
        if tasks:
            self.random_trials = 0
        places = _places([task.context for task in tasks], self.context)
        self._place = places[-1]
        values = np.concatenate([np.empty((0, self.space.dimension)), *(t.values for t in tasks)])
        self._sources = self.space.canonical(self.space.encode(values))
        self._source_places = np.repeat(places[:-1], [len(task) for task in tasks], axis=0)
        self._source_losses = np.concatenate([np.empty(0), *(task.losses for task in tasks)])
        if len(self._source_losses) > LARGEST_HISTORY:
            self._subsample(max(MAX_OBSERVATIONS - self.budget, MAX_OBSERVATIONS // 2))

    def observations(self) -> tuple[FloatArray, FloatArray]:
        """Features (n, p) and losses (n,), standardised over all tasks, of a sample of them."""
        y = self._all_losses()
        chosen = np.arange(len(y))
        if len(y) > MAX_OBSERVATIONS:
            chosen = self.rng.permutation(len(y))[:MAX_OBSERVATIONS]
        unit = np.concatenate([self._sources, self.told()])[chosen]
        here = np.broadcast_to(self._place, (self.results, len(self._place)))
        places = np.concatenate([self._source_places, here])[chosen]
        return np.concatenate([self.region.features(unit), places], axis=1), y[chosen]

    def incumbent(self, model: "GaussianProcess", y: FloatArray) -> float:
        """Lowest loss on this task: the losses of other tasks are no measure of an improvement.

        Without any, the lowest that the model predicts for the previous tasks' configurations.
        """
        if self.results:
            return float(self._all_losses()[-self.results :].min())
        mean, _ = model.predict(self.features(self._sources[-MAX_OBSERVATIONS:]))
        return float(mean.min())

    def _subsample(self, count: int) -> None:
        """Reduce the previous tasks' evaluations to a random choice, in their order."""
        chosen = np.sort(self.rng.permutation(len(self._source_losses))[:count])
        self._sources, self._source_places = self._sources[chosen], self._source_places[chosen]
        self._source_losses = self._source_losses[chosen]

    def _all_losses(self) -> FloatArray:
        """Losses of the previous tasks and then of this one, standardised together."""
        from hpobench_ordered.methods._gp.model import standardise

        return standardise(np.concatenate([self._source_losses, self.losses()]))

    def features(self, unit: FloatArray) -> FloatArray:
        """Features (m, p) of canonical unit vectors (m, d) on this task."""
        places = np.broadcast_to(self._place, (len(unit), len(self._place)))
        return np.concatenate([self.region.features(unit), places], axis=1)

    def feature_groups(self) -> IntArray:
        """Length scale of each feature column, (p,); those of the task come last."""
        task = self.space.dimension + np.arange(len(self._place))
        return np.concatenate([super().feature_groups(), task])


def _places(history: Sequence[Mapping[str, float]], current: Mapping[str, float]) -> FloatArray:
    """Features of the tasks, the current one last, shape (tasks, q).

    A quantity's values are spread evenly over [0, 1] in their order.
    """
    tasks = [*history, current]
    names = [name for name in current if all(name in task for task in tasks)]
    columns = []
    for name in names:
        values = np.array([task[name] for task in tasks])
        distinct = np.unique(values)
        columns.append(np.searchsorted(distinct, values) / max(1, len(distinct) - 1))
    return np.stack(columns, axis=1) if columns else np.zeros((len(tasks), 0))


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
    ),
)
