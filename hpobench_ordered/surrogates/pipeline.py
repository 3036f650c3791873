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
from itertools import count, islice
from typing import Protocol, Self, cast

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.data.benchmark import Definition
from hpobench_ordered.data.best import search_best_values
from hpobench_ordered.data.objective import Objective
from hpobench_ordered.data.raw_evaluations import RawEvaluations
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.surrogates.base import StoredSurrogate, SurrogateType
from hpobench_ordered.surrogates.card import TaskQuality, measure_quality
from hpobench_ordered.surrogates.forest import ForestSurrogate, TaskMix
from hpobench_ordered.surrogates.nearest import NearestSurrogate, log_coding
from hpobench_ordered.surrogates.per_task import PerTaskSurrogate

FOLDS = 10


class Fitter(Protocol):
    """Fits a surrogate with K tasks, such as `fit_forest` with all but these arguments bound."""

    def __call__(self, values: FloatArray, targets: FloatArray, *, seed: int) -> StoredSurrogate:
        """Fit a surrogate to configurations (n, d) and their objective values (n, K)."""


def fit_nearest(
    values: FloatArray,
    targets: FloatArray,
    *,
    seed: int,
    space: SearchSpace,
    scaled_on: FloatArray | None = None,
) -> NearestSurrogate:
    """Make a nearest-neighbour surrogate, which stores evaluations.

    Args:
        values: Configurations, coded values, (n, d).
        targets: Objective values, (n, K).
        seed: Not used, as nothing is random here; a `Fitter` must take it.
        space: The search space, whose log scales are used in distances.
        scaled_on: Configurations over which features are standardised; default: `values`.
    """
    if scaled_on is None:
        scaled_on = values
    coding = log_coding(space, scaled_on)
    return NearestSurrogate.from_evaluations(values, targets, coding=coding)


@dataclass(frozen=True, eq=False)
class SurrogateFit:
    """A surrogate of one or more tasks, and everything that determines it."""

    fitter: Fitter
    values: FloatArray  # configurations, coded values, NaN where inactive, (n, d)
    targets: FloatArray  # their objective values, (n, K)
    seed: int  # of the fitter
    folds: Sequence[IntArray]  # rows of each fold of the cross-validation
    rng: np.random.Generator  # for the search for best values
    # How each task's value is mixed from the outputs of a forest; empty if each output is a task.
    mixes: tuple[TaskMix, ...] = ()

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

        It is fitted when `model` is first used.

        Args:
            fitter: Fits the surrogate.
            values: Configurations, coded values, NaN where inactive, (n, d).
            targets: Objective values of K outputs, (n, K).
            seed: Seed of the fitter, the folds and, without `rng`, the search for best values.
            folds: Number of folds of the cross-validation.
            rng: Random generator of the search for best values.
            mixes: How each task's value is mixed from the outputs; default: each output is a task.
        """
        rows_of_folds = split_rows_into_folds(len(values), folds, seed)
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
        """Describe a surrogate of one task, which is fitted when `model` is first used.

        Its random numbers depend on `seed` and on the task's name, but not on the benchmark's other
        tasks. All evaluations of one training, such as those after each epoch, are in the same
        fold: a surrogate fitted to some of them would predict the others too easily.

        Args:
            fitter: Fits the surrogate.
            evaluations: The task's evaluations.
            task: Name of the task.
            seed: Seed of the benchmark.
            folds: Number of folds of the cross-validation.
        """
        bytes_of_name = task.encode()  # numbers from 0 to 255
        rng = np.random.default_rng([seed, *bytes_of_name])
        fitter_seed = int(rng.integers(2**32))
        rows_of_folds = split_groups_into_folds(evaluations.training, folds, rng)
        targets = evaluations.objective[:, None]
        return cls(fitter, evaluations.values, targets, fitter_seed, rows_of_folds, rng)

    @cached_property
    def model(self) -> StoredSurrogate:
        """The surrogate, fitted to all configurations."""
        return self._fit(self.values, self.targets)

    def _fit(self, values: FloatArray, targets: FloatArray) -> StoredSurrogate:
        """Fit a surrogate to configurations (n, d) and targets (n, K).

        Each target is a task unless there are `mixes`, which say between which two outputs of a
        forest each task lies.
        """
        model = self.fitter(values, targets, seed=self.seed)
        if not self.mixes:
            return model
        forest = cast("ForestSurrogate", model)  # only forests have mixes
        return replace(forest, tasks=self.mixes)

    def best_values(self, space: SearchSpace, objective: Objective) -> Iterator[float]:
        """Yield the best value of the surrogate on each task, in the objective's units.

        It is exact for nearest neighbours. For other surrogates a random search finds it.
        """
        if self.model.kind is not SurrogateType.NEAREST:
            yield from search_best_values(
                self.model,
                space,
                objective,
                n_tasks=self.model.n_tasks,
                rng=self.rng,
                start=self.values,
            )
            return
        # Nearest neighbours predict values of stored configurations and no others.
        for task in range(self.model.n_tasks):
            predicted = self.model.predict(self.values, task)
            best_row = objective.losses(predicted).argmin()
            yield float(predicted[best_row])

    def cross_validate(self, report_fold: Callable[[], None] = lambda: None) -> FloatArray:
        """Predict each configuration by a surrogate that was fitted without its fold.

        Args:
            report_fold: Called after each fold.

        Returns:
            The predictions for all configurations and tasks, (n, T).
        """
        n_tasks = len(self.mixes) if self.mixes else self.targets.shape[1]
        all_rows = np.arange(len(self.values))
        predicted = np.empty((len(self.values), n_tasks))
        for held_out_rows in self.folds:
            fitted_rows = np.setdiff1d(all_rows, held_out_rows)
            model = self._fit(self.values[fitted_rows], self.targets[fitted_rows])
            for task in range(n_tasks):
                predictions = model.predict(self.values[held_out_rows], task)
                predicted[held_out_rows, task] = predictions
            report_fold()
        return predicted

    def compute_truth(self) -> FloatArray:
        """Compute the values that predictions are compared with, for all evaluations and tasks.

        They are the targets. For a task between two outputs of a forest, they are interpolated
        between the targets of both outputs.

        Returns:
            The values, (n, T).
        """
        if not self.mixes:
            # The memory layout decides the order of sums, and thus the last digits of the quality.
            return np.ascontiguousarray(self.targets)
        values_of_tasks = []
        for mix in self.mixes:
            low_output = self.targets[:, mix.low]
            high_output = self.targets[:, mix.high]
            values_of_tasks.append((1 - mix.weight) * low_output + mix.weight * high_output)
        return np.stack(values_of_tasks, axis=1)


def split_groups_into_folds(
    groups: IntArray, folds: int, rng: np.random.Generator
) -> list[IntArray]:
    """Split rows into folds of about equally many groups; all rows of a group are in one fold.

    Args:
        groups: Group of each row, such as the number of the training that it is from, (n,).
        folds: Number of folds.
        rng: Draws the groups of each fold.

    Returns:
        The rows of each fold, ascending.
    """
    shuffled_groups = rng.permutation(np.unique(groups))
    rows_of_folds = []
    for groups_of_fold in np.array_split(shuffled_groups, folds):
        is_in_fold = np.isin(groups, groups_of_fold)
        rows_of_folds.append(np.flatnonzero(is_in_fold))
    return rows_of_folds


def split_rows_into_folds(n: int, folds: int, seed: int) -> list[IntArray]:
    """Split n rows at random into folds of about equal size; return the rows of each, ascending."""
    if not 2 <= folds <= n:
        raise ValueError(f"folds must be from 2 to {n}, but got {folds}")
    each_row_alone = np.arange(n)  # a group of its own
    return split_groups_into_folds(each_row_alone, folds, np.random.default_rng(seed))


def _ignore_progress(step: str, done: int, total: int) -> None:
    """Do nothing, instead of showing progress."""


@dataclass(frozen=True, eq=False)
class BenchmarkFit:
    """A surrogate of all tasks of a benchmark, and its quality.

    Attributes:
        definition: The benchmark.
        fits: One fit of all tasks, or one for each task.
        seed: Seed of the fits.
        progress: Called with the name of a step, and the numbers of its finished and of all parts.
        is_per_task: Whether there is a fit for each task.
    """

    definition: Definition
    fits: Sequence[SurrogateFit]
    seed: int
    progress: Callable[[str, int, int], None] = _ignore_progress
    is_per_task: bool = False

    @classmethod
    def of_each_task(
        cls,
        definition: Definition,
        fitter: Fitter,
        evaluations: Sequence[RawEvaluations],
        *,
        seed: int,
        folds: int = FOLDS,
        progress: Callable[[str, int, int], None] = _ignore_progress,
    ) -> Self:
        """Describe a surrogate for each task, which is fitted to this task's evaluations alone.

        They are fitted when `model` is first used.

        Args:
            definition: The benchmark.
            fitter: Fits the surrogate of a task.
            evaluations: The evaluations of each task.
            seed: Seed of all fits.
            folds: Number of folds of the cross-validation.
            progress: Called with the name of a step, and the numbers of its finished and of all
                parts.
        """
        fits = []
        for task, evaluations_of_task in zip(definition.tasks, evaluations, strict=True):
            fit = SurrogateFit.of_task(
                fitter, evaluations_of_task, task=task.name, seed=seed, folds=folds
            )
            fits.append(fit)
        return cls(definition, fits, seed, progress, is_per_task=True)

    @cached_property
    def model(self) -> StoredSurrogate:
        """The surrogate of all tasks: one made of a surrogate per task, or one fitted to all."""
        if self.is_per_task:
            models_of_tasks = tuple(fit.model for fit in self.fits)
            return PerTaskSurrogate(models_of_tasks)
        (fit_of_all_tasks,) = self.fits
        return fit_of_all_tasks.model

    @cached_property
    def best_values(self) -> list[float]:
        """Best known value of every task, in the objective's own units."""
        best: list[float] = []
        for fit in self.fits:
            for value in fit.best_values(self.definition.space, self.definition.objective):
                best.append(value)
                self.progress("best values", len(best), len(self.definition.tasks))
        return best

    @property
    def folds(self) -> int:
        """Number of folds of the cross-validation, the same for every fit."""
        first_fit = self.fits[0]
        return len(first_fit.folds)

    @cached_property
    def quality_of_tasks(self) -> tuple[TaskQuality, ...]:
        """Quality of the surrogate on each task, by cross-validation, in the order of the tasks."""
        n_folds = self.folds * len(self.fits)
        fold_numbers = count(1)  # of all fits together

        def report_fold() -> None:
            """Report that one more fold is finished."""
            self.progress("cross-validation", next(fold_numbers), n_folds)

        names_of_tasks = iter([task.name for task in self.definition.tasks])
        qualities: list[TaskQuality] = []
        for fit in self.fits:
            predicted = fit.cross_validate(report_fold)  # (configurations, tasks of this fit)
            n_tasks = predicted.shape[1]
            qualities += measure_quality(
                fit.compute_truth(),
                predicted,
                names=list(islice(names_of_tasks, n_tasks)),  # the next ones
                direction=self.definition.objective.direction,
            )
        return tuple(qualities)
