"""Surrogates of tabulated evaluations: fitted to all tasks at once where that is possible.

Notation:
    n, m, d     evaluations of a task, different configurations among them, hyperparameters
    T           tasks
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.objective import Objective
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.surrogates import StoredSurrogate, SurrogateType

SEARCH_STREAM = 1
"""Tells what the search for best values draws from what the trees draw."""


@dataclass(frozen=True, eq=False)
class Averages:
    """Different configurations of a task, sorted, and their mean objective.

    Attributes:
        values: Configurations as coded by `SearchSpace.values`, (m, d).
        objective: Mean of the objective values of each, (m,).
    """

    values: FloatArray
    objective: FloatArray

    @classmethod
    def of(cls, values: FloatArray, objective: FloatArray) -> Self:
        """Join evaluations, (n, d) and (n,), of the same configuration."""
        # What is inactive is the same everywhere; and there is only one zero.
        keys = np.where(np.isnan(values), np.inf, values) + 0.0
        _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        group = group.ravel()
        return cls(values[first], np.bincount(group, weights=objective) / np.bincount(group))

    def __len__(self) -> int:
        return len(self.objective)


@dataclass(frozen=True, eq=False)
class Fit:
    """How surrogates are fitted, and to what.

    Attributes:
        kind: Nearest neighbour or forest.
        space: The search space.
        averages: What the surrogate is fitted to, one a task, T of them.
        seed: Seed of trees, folds and the search for best values.
        workers: Number of threads that fit a forest.
    """

    kind: SurrogateType
    space: SearchSpace
    averages: tuple[Averages, ...]
    seed: int
    workers: int

    @cached_property
    def everywhere(self) -> FloatArray:
        """The configurations of all tasks, one after another."""
        return np.concatenate([task.values for task in self.averages])

    @property
    def _groups(self) -> list[tuple[FloatArray, FloatArray]]:
        """Configurations (m, d) and targets (m, K): of all tasks at once, if they have the same."""
        first = self.averages[0].values
        if all(np.array_equal(task.values, first, equal_nan=True) for task in self.averages):
            return [(first, np.stack([task.objective for task in self.averages], axis=1))]
        return [(task.values, task.objective[:, None]) for task in self.averages]

    def surrogate(self) -> StoredSurrogate:
        """Fit one surrogate to all tasks where they have the same configurations, else one a task.

        Raises:
            MissingExtraError: A forest is to be fitted, and scikit-learn is not installed.
        """
        from hpobench_ordered.surrogates.per_task import PerTaskSurrogate

        models = [self._fitting(*group)(np.arange(len(group[0]))) for group in self._groups]
        shared = len(models) == 1
        return models[0] if shared else PerTaskSurrogate(tuple(models))

    def _fitting(
        self, values: FloatArray, targets: FloatArray
    ) -> Callable[[IntArray], StoredSurrogate]:
        """What fits a surrogate to some of the configurations (m, d) with targets (m, K)."""
        from hpobench_ordered.surrogates.coding import space_coding
        from hpobench_ordered.surrogates.fitting import ForestRecipe, fit_forest
        from hpobench_ordered.surrogates.nearest import NearestSurrogate, log_coding

        if self.kind is SurrogateType.NEAREST:
            # Distances mean the same on all tasks.
            near = log_coding(self.space, self.everywhere)
            return lambda rows: NearestSurrogate.from_evaluations(
                values[rows], targets[rows], coding=near
            )
        coding = space_coding(self.space)
        return lambda rows: fit_forest(
            values[rows],
            targets[rows],
            coding=coding,
            recipe=ForestRecipe(),
            seed=self.seed,
            workers=self.workers,
        )

    def best_values(self, model: StoredSurrogate, objective: Objective) -> list[float]:
        """Best value of every task: exact for a nearest neighbour, the best found for a forest."""
        from hpobench_ordered.surrogates.best import best_known

        if self.kind is SurrogateType.NEAREST:
            return [
                objective.loss(float(objective.losses(t.objective).min())) for t in self.averages
            ]
        return best_known(
            model,
            self.space,
            objective,
            n_tasks=len(self.averages),
            rng=np.random.default_rng([self.seed, SEARCH_STREAM]),
            known=self.everywhere,
        )

    def cross_validate(self, *, folds: int) -> list[FloatArray]:
        """Predict every configuration of every task without its value, (m,) each.

        Tasks of the same configurations have the same folds: no other task tells what is held out.
        """
        from hpobench_ordered.surrogates.cross_validation import grouped_folds, out_of_fold

        predicted: list[FloatArray] = []
        for values, targets in self._groups:
            rng = np.random.default_rng(self.seed)
            parts = grouped_folds(np.arange(len(values)), folds, rng)
            fit = self._fitting(values, targets)
            predicted += list(out_of_fold(fit, values, parts, outputs=targets.shape[1]).T)
        return predicted
