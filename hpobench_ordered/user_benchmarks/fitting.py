"""Surrogates of tabulated evaluations: fitted to all tasks at once where that is possible.

Notation:
    n, m, d     evaluations of a task, different configurations among them, hyperparameters
    T           tasks
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.benchmark import Definition
from hpobench_ordered.surrogates import StoredSurrogate, SurrogateType

if TYPE_CHECKING:
    from hpobench_ordered.surrogates.card import Figures
    from hpobench_ordered.surrogates.pipeline import Fit

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
class Recipe:
    """How the surrogate of a benchmark is fitted, and to what.

    Attributes:
        kind: Nearest neighbour or forest.
        definition: Space, objective and tasks of the benchmark.
        averages: What the surrogate is fitted to, one a task, T of them.
        seed: Seed of trees, folds and the search for best values.
        workers: Number of threads that fit a forest.
    """

    kind: SurrogateType
    definition: Definition
    averages: tuple[Averages, ...]
    seed: int
    workers: int

    @cached_property
    def everywhere(self) -> FloatArray:
        """The configurations of all tasks, one after another."""
        return np.concatenate([task.values for task in self.averages])

    @property
    def _fits(self) -> "list[Fit]":
        """One fit to all tasks at once if they have the same configurations, else one a task."""
        first = self.averages[0].values
        if all(np.array_equal(task.values, first, equal_nan=True) for task in self.averages):
            return [self._fit(first, np.stack([task.objective for task in self.averages], axis=1))]
        return [self._fit(task.values, task.objective[:, None]) for task in self.averages]

    def _fit(self, values: FloatArray, targets: FloatArray) -> "Fit":
        from hpobench_ordered.surrogates.coding import space_coding
        from hpobench_ordered.surrogates.fitting import ForestRecipe
        from hpobench_ordered.surrogates.pipeline import Fit

        space = self.definition.space
        if self.kind is SurrogateType.NEAREST:
            # Distances mean the same on all tasks.
            return Fit.nearest(space, values, targets, scaled_on=self.everywhere)
        return Fit.forest(
            values,
            targets,
            coding=space_coding(space),
            recipe=ForestRecipe(),
            seed=self.seed,
            workers=self.workers,
        )

    @cached_property
    def surrogate(self) -> StoredSurrogate:
        """The surrogate of all tasks."""
        from hpobench_ordered.surrogates.per_task import PerTaskSurrogate

        models = tuple(fit.surrogate() for fit in self._fits)
        return models[0] if len(models) == 1 else PerTaskSurrogate(models)

    def best_values(self) -> list[float]:
        """Best value of every task: exact for nearest neighbours, for forests by a search."""
        from hpobench_ordered.surrogates.best import best_known

        space, objective = self.definition.space, self.definition.objective
        if self.kind is SurrogateType.NEAREST:
            losses = [objective.losses(task.objective).min() for task in self.averages]
            return [objective.loss(float(loss)) for loss in losses]
        return best_known(
            self.surrogate,
            space,
            objective,
            n_tasks=len(self.averages),
            rng=np.random.default_rng([self.seed, SEARCH_STREAM]),
            known=self.everywhere,
        )

    def figures(self, *, folds: int) -> "tuple[Figures, ...]":
        """Quality of the surrogate on each task, by a cross-validation by configurations.

        Tasks of the same configurations have the same folds: no other task tells what is held out.
        """
        from hpobench_ordered.surrogates.pipeline import row_folds

        direction = self.definition.objective.direction
        names = iter([task.name for task in self.definition.tasks])
        found: tuple[Figures, ...] = ()
        for fit in self._fits:
            tasks = [next(names) for _ in range(fit.targets.shape[1])]
            found += fit.figures(row_folds(len(fit.values), folds, self.seed), tasks, direction)
        return found
