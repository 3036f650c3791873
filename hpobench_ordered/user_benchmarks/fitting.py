"""Surrogates of tabulated evaluations: fitted to all tasks at once where that is possible.

Notation:
    n, m, d     evaluations of a task, different configurations among them, hyperparameters
    T           tasks
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.objective import Objective
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.surrogates import Surrogate, SurrogateType

if TYPE_CHECKING:
    from hpobench_ordered.surrogates.per_task import SingleTask

SEARCH_STREAM = 1
"""Tells what the search for best values draws from what the trees draw."""


@dataclass(frozen=True, eq=False)
class Table:
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

    def part(self, rows: IntArray) -> Self:
        """Some of the configurations."""
        return type(self)(self.values[rows], self.objective[rows])


@dataclass(frozen=True, slots=True)
class Fit:
    """How surrogates are fitted.

    Attributes:
        kind: Nearest neighbour or forest.
        space: The search space.
        seed: Seed of trees, folds and the search for best values.
        workers: Number of threads that fit a forest.
    """

    kind: SurrogateType
    space: SearchSpace
    seed: int
    workers: int

    def surrogate(self, tables: Sequence[Table]) -> Surrogate:
        """Fit one surrogate to all tasks where they have the same configurations, else one a task.

        Raises:
            MissingExtraError: A forest is to be fitted, and scikit-learn is not installed.
        """
        from hpobench_ordered.surrogates.per_task import PerTaskSurrogate

        fit = self._fit(np.concatenate([table.values for table in tables]))
        first = tables[0].values
        if all(np.array_equal(table.values, first, equal_nan=True) for table in tables):
            return fit(first, np.stack([table.objective for table in tables], axis=1))
        return PerTaskSurrogate(tuple(fit(t.values, t.objective[:, None]) for t in tables))

    def _fit(self, everywhere: FloatArray) -> "Callable[[FloatArray, FloatArray], SingleTask]":
        """What fits a surrogate to values (m, d) and targets, given the values of all tasks."""
        from hpobench_ordered.surrogates.coding import space_coding
        from hpobench_ordered.surrogates.fitting import ForestRecipe, fit_forest
        from hpobench_ordered.surrogates.nearest import NearestSurrogate, log_coding

        if self.kind is SurrogateType.NEAREST:
            # Distances mean the same on all tasks.
            coding = log_coding(self.space, everywhere)
            return partial(NearestSurrogate.from_evaluations, coding=coding)
        return partial(
            fit_forest,
            coding=space_coding(self.space),
            recipe=ForestRecipe(),
            seed=self.seed,
            workers=self.workers,
        )

    def best_values(
        self, model: Surrogate, tables: Sequence[Table], objective: Objective
    ) -> list[float]:
        """Best value of every task: exact for a nearest neighbour, the best found for a forest."""
        from hpobench_ordered.generation._best import best_known

        if self.kind is SurrogateType.NEAREST:
            return [objective.loss(float(objective.losses(t.objective).min())) for t in tables]
        return best_known(
            model,
            self.space,
            objective,
            n_tasks=len(tables),
            rng=np.random.default_rng([self.seed, SEARCH_STREAM]),
            known=np.concatenate([table.values for table in tables]),
        )

    def cross_validate(self, tables: Sequence[Table], *, folds: int) -> list[FloatArray]:
        """Predict every configuration of every task without its own value, (m,) each.

        Tasks of the same configurations have the same folds: no other task tells what is held out.
        """
        splits = [
            np.array_split(np.random.default_rng(self.seed).permutation(len(table)), folds)
            for table in tables
        ]
        predicted = [np.empty(len(table)) for table in tables]
        for fold in range(folds):
            held_out = [split[fold] for split in splits]
            kept = [
                table.part(np.setdiff1d(np.arange(len(table)), rows))
                for table, rows in zip(tables, held_out, strict=True)
            ]
            model = self.surrogate(kept)
            for task, rows in enumerate(held_out):
                predicted[task][rows] = model.predict(tables[task].values[rows], task)
        return predicted
