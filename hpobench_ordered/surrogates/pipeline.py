"""From evaluations to surrogates: fit them, find their best values, cross-validate them.

Generators, `from_evaluations` and the verification of cards use this; `artifacts` writes the
result.

Notation:
    n, d    configurations, hyperparameters
    K, T    outputs of a fit, tasks
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Protocol, Self, cast

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.data.benchmark import Definition
from hpobench_ordered.data.objective import Objective
from hpobench_ordered.data.raw_evaluations import RawEvaluations
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.surrogates.base import StoredSurrogate, SurrogateType
from hpobench_ordered.surrogates.best import best_known
from hpobench_ordered.surrogates.card import TaskQuality, measure_quality
from hpobench_ordered.surrogates.forest import ForestSurrogate, TaskMix
from hpobench_ordered.surrogates.nearest import NearestSurrogate, log_coding
from hpobench_ordered.surrogates.per_task import PerTaskSurrogate

FOLDS = 10


class Fitter(Protocol):
    """Fits a surrogate with K tasks, such as `fit_forest` with all but these arguments bound."""

    def __call__(self, values: FloatArray, targets: FloatArray, *, seed: int) -> StoredSurrogate:
        """Fit to configurations (n, d) and their objective values (n, K)."""


def fit_nearest(
    values: FloatArray,
    targets: FloatArray,
    *,
    seed: int,
    space: SearchSpace,
    scaled_on: FloatArray | None = None,
) -> NearestSurrogate:
    """Store evaluations for nearest neighbours.

    Args:
        values: Configurations, coded values, (n, d).
        targets: Objective values, (n, K).
        seed: Not used, as nothing is random here; a `Fitter` must take it.
        space: The search space, whose log scales are used in distances.
        scaled_on: Configurations over which features are standardised; default: `values`.
    """
    coding = log_coding(space, values if scaled_on is None else scaled_on)
    return NearestSurrogate.from_evaluations(values, targets, coding=coding)


@dataclass(frozen=True, eq=False)
class SurrogateFit:
    """A surrogate of one or more tasks, and everything that determines it."""

    fitter: Fitter
    values: FloatArray  # NaN where inactive, (n, d)
    targets: FloatArray  # (n, K)
    seed: int  # of the fitter
    folds: Sequence[IntArray]  # rows of each fold
    rng: np.random.Generator  # for the search for best values
    mixes: tuple[TaskMix, ...] = ()  # of a forest's outputs; default: each output is a task

    @classmethod
    def of_all_tasks(
        cls,
        fitter: Fitter,
        values: FloatArray,
        targets: FloatArray,
        *,
        seed: int,
        folds: int = FOLDS,
        rng: np.random.Generator | None = None,
        mixes: tuple[TaskMix, ...] = (),
    ) -> Self:
        """Describe a surrogate of tasks that were evaluated on the same configurations.

        Args:
            fitter: Fits the surrogate.
            values: Configurations, coded values, NaN where inactive, (n, d).
            targets: Objective values of K outputs, (n, K).
            seed: Seed of the fitter, the folds and, without `rng`, the search for best values.
            folds: Number of folds of the cross-validation.
            rng: Random generator of the search for best values.
            mixes: How each task's value is mixed from the outputs; default: an output a task.
        """
        rows_of_folds = row_folds(len(values), folds, seed)
        rng = np.random.default_rng(seed) if rng is None else rng
        return cls(fitter, values, targets, seed, rows_of_folds, rng, mixes)

    @classmethod
    def of_task(
        cls,
        fitter: Fitter,
        evaluations: RawEvaluations,
        *,
        task: str,
        seed: int,
        folds: int = FOLDS,
    ) -> Self:
        """Describe a surrogate of one task.

        Its random numbers depend on `seed` and on the task's name, but not on which other tasks the
        benchmark has. All evaluations of one training, such as those after each epoch, are in the
        same fold, as they are too alike to test each other.
        """
        name_as_numbers = task.encode()  # the bytes of the name
        rng = np.random.default_rng([seed, *name_as_numbers])
        fitter_seed = int(rng.integers(2**32))
        rows_of_folds = grouped_folds(evaluations.training, folds, rng)
        targets = evaluations.objective[:, None]
        return cls(fitter, evaluations.values, targets, fitter_seed, rows_of_folds, rng)

    @cached_property
    def model(self) -> StoredSurrogate:
        """The surrogate, fitted to all configurations."""
        return self._fit(self.values, self.targets)

    def _fit(self, values: FloatArray, targets: FloatArray) -> StoredSurrogate:
        """Fit a surrogate to configurations (n, d) and targets (n, K).

        Each target is usually a task. The outputs of a forest may differ from the tasks: `mixes`
        then say between which two outputs each task lies.
        """
        model = self.fitter(values, targets, seed=self.seed)
        if not self.mixes:
            return model
        forest = cast("ForestSurrogate", model)  # only forests have mixes
        return replace(forest, tasks=self.mixes)

    def best_values(self, space: SearchSpace, objective: Objective) -> Iterator[float]:
        """Yield the best value of each task, in the objective's units.

        It is exact for nearest neighbours. For forests a random search finds it, with `rng`.
        """
        if self.model.kind is not SurrogateType.NEAREST:
            yield from best_known(
                self.model,
                space,
                objective,
                n_tasks=self.model.n_tasks,
                rng=self.rng,
                known=self.values,
            )
            return
        # All predictions of nearest neighbours are values of stored configurations.
        for task in range(self.model.n_tasks):
            predicted = self.model.predict(self.values, task)
            best_row = objective.losses(predicted).argmin()
            yield float(predicted[best_row])

    def cross_validate(self, report_fold: Callable[[], None] = lambda: None) -> FloatArray:
        """Predict every configuration by a surrogate fitted to the other folds, (n, T).

        `report_fold` is called after each fold.
        """
        # There is one task for each of the `mixes` or, if there are none, for each output.
        n_tasks = len(self.mixes) or self.targets.shape[1]
        predicted = np.empty((len(self.values), n_tasks))
        for held_out in self.folds:
            others = np.setdiff1d(np.arange(len(self.values)), held_out)
            model = self._fit(self.values[others], self.targets[others])
            for task in range(model.n_tasks):
                predicted[held_out, task] = model.predict(self.values[held_out], task)
            report_fold()
        return predicted

    def truth(self) -> FloatArray:
        """Compute the values that predictions are compared with: n evaluations on T tasks, (n, T).

        For a task between two outputs of a forest, they are interpolated between the evaluations of
        both outputs.
        """
        if not self.mixes:
            # The memory layout decides the order of sums, and thus the last digits of the quality.
            return np.ascontiguousarray(self.targets)
        columns = []
        for mix in self.mixes:
            low, high = self.targets[:, mix.low], self.targets[:, mix.high]
            columns.append((1 - mix.weight) * low + mix.weight * high)
        return np.stack(columns, axis=1)


def grouped_folds(groups: IntArray, folds: int, rng: np.random.Generator) -> list[IntArray]:
    """Split rows into folds of about equally many groups; all rows of a group are in one fold.

    Args:
        groups: Group of each row, such as the training that it is from, (n,).
        folds: Number of folds.
        rng: Draws the groups of each fold.

    Returns:
        The rows of each fold, ascending.
    """
    shuffled_groups = rng.permutation(np.unique(groups))
    groups_of_folds = np.array_split(shuffled_groups, folds)
    return [np.flatnonzero(np.isin(groups, part)) for part in groups_of_folds]


def row_folds(n: int, folds: int, seed: int) -> list[IntArray]:
    """Split n rows at random into folds of about equal size; return the rows of each, ascending."""
    if not 2 <= folds <= n:
        raise ValueError(f"folds must be from 2 to {n}, but got {folds}")
    return grouped_folds(np.arange(n), folds, np.random.default_rng(seed))


def _silent(step: str, done: int, total: int) -> None:
    """Ignore progress."""


@dataclass(frozen=True, eq=False)
class BenchmarkFit:
    """A surrogate of all tasks of a benchmark, and its quality."""

    defined: Definition
    fits: Sequence[SurrogateFit]
    seed: int
    progress: Callable[[str, int, int], None] = _silent
    is_per_task: bool = False

    @classmethod
    def of_each_task(
        cls,
        defined: Definition,
        fitter: Fitter,
        evaluations: Sequence[RawEvaluations],
        *,
        seed: int,
        folds: int = FOLDS,
        progress: Callable[[str, int, int], None] = _silent,
    ) -> Self:
        """Describe a surrogate for each task, fitted to that task's evaluations alone.

        `progress` is called with the name of a step, and the numbers of its finished and all parts.
        """
        fits = [
            SurrogateFit.of_task(fitter, raw, task=task.name, seed=seed, folds=folds)
            for task, raw in zip(defined.tasks, evaluations, strict=True)
        ]
        return cls(defined, fits, seed, progress, is_per_task=True)

    @cached_property
    def model(self) -> StoredSurrogate:
        """The surrogate of all tasks: one made of a surrogate per task, or one fitted to all."""
        if self.is_per_task:
            return PerTaskSurrogate(tuple(fit.model for fit in self.fits))
        (fit_of_all_tasks,) = self.fits
        return fit_of_all_tasks.model

    @cached_property
    def best_values(self) -> list[float]:
        """Best known value of every task, in the objective's own units."""
        best: list[float] = []
        for fit in self.fits:
            for value in fit.best_values(self.defined.space, self.defined.objective):
                best.append(value)
                self.progress("best values", len(best), len(self.defined.tasks))
        return best

    @property
    def folds(self) -> int:
        """Number of folds of the cross-validation, the same for every fit."""
        first_fit = self.fits[0]
        return len(first_fit.folds)

    @cached_property
    def figures(self) -> tuple[TaskQuality, ...]:
        """Quality of the surrogate on each task, by cross-validation, in the order of the tasks.

        `fits` has one fit for all tasks, or one for each task.
        """
        n_folds = self.folds * len(self.fits)
        fold_numbers = count(1)  # counts the folds of all fits

        def report_fold() -> None:
            """Report that one more fold is finished."""
            self.progress("cross-validation", next(fold_numbers), n_folds)

        names = [task.name for task in self.defined.tasks]
        quality: list[TaskQuality] = []  # one for each task of the fits so far
        for fit in self.fits:
            predicted = fit.cross_validate(report_fold)  # (configurations, tasks of this fit)
            # The tasks of this fit follow those of the fits before it.
            first_task = len(quality)
            end_task = first_task + predicted.shape[1]
            quality += measure_quality(
                fit.truth(),
                predicted,
                names=names[first_task:end_task],
                direction=self.defined.objective.direction,
            )
        return tuple(quality)
