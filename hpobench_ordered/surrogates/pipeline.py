"""From evaluations to a surrogate with a quality card: fit, cross-validate, search, describe.

Generators, `from_evaluations`, `save` and the verification of cards all use this.

Notation:
    n, d    configurations, hyperparameters
    K       outputs
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.surrogates.base import StoredSurrogate
from hpobench_ordered.surrogates.card import Card, Figures, figures, versions_of
from hpobench_ordered.surrogates.coding import Coding
from hpobench_ordered.surrogates.fitting import ForestRecipe, fit_forest
from hpobench_ordered.surrogates.nearest import NearestSurrogate, log_coding

if TYPE_CHECKING:
    from hpobench_ordered.benchmark import Definition
    from hpobench_ordered.objective import Direction
    from hpobench_ordered.space import SearchSpace

FOLDS = 10


@dataclass(frozen=True, eq=False)
class Fit:
    """Evaluated configurations, and how a surrogate is fitted to them.

    Attributes:
        values: Configurations, inactive values NaN, shape (n, d).
        targets: Their objective values, one column an output, shape (n, K).
        surrogate_of: Fits a surrogate with K tasks to values and targets.
    """

    values: FloatArray
    targets: FloatArray
    surrogate_of: Callable[[FloatArray, FloatArray], StoredSurrogate]

    @classmethod
    def forest(
        cls,
        values: FloatArray,
        targets: FloatArray,
        *,
        coding: Coding,
        recipe: ForestRecipe,
        seed: int,
        workers: int = 1,
    ) -> Self:
        """A forest; the arguments are those of `fit_forest`."""
        fit = partial(fit_forest, coding=coding, recipe=recipe, seed=seed, workers=workers)
        return cls(values, targets, fit)

    @classmethod
    def nearest(
        cls,
        space: "SearchSpace",
        values: FloatArray,
        targets: FloatArray,
        *,
        scaled_on: FloatArray | None = None,
    ) -> Self:
        """Nearest neighbours, with features standardised on `scaled_on`.

        Default: on the configurations they are fitted to.
        """

        def fit(values: FloatArray, targets: FloatArray) -> NearestSurrogate:
            coding = log_coding(space, values if scaled_on is None else scaled_on)
            return NearestSurrogate.from_evaluations(values, targets, coding=coding)

        return cls(values, targets, fit)

    def surrogate(self) -> StoredSurrogate:
        """Fit to all configurations."""
        return self.surrogate_of(self.values, self.targets)

    def cross_validate(
        self, folds: Sequence[IntArray], progress: Callable[[int, int], None] | None = None
    ) -> FloatArray:
        """Predict every configuration by a surrogate that was fitted to the other folds.

        Args:
            folds: Rows of each fold.
            progress: Called with the number of finished folds and of all of them.

        Returns:
            Predictions, shape (n, K).
        """
        predicted = np.empty(self.targets.shape)
        for done, held_out in enumerate(folds, start=1):
            rows = np.setdiff1d(np.arange(len(self.values)), held_out)
            model = self.surrogate_of(self.values[rows], self.targets[rows])
            for output in range(self.targets.shape[1]):
                predicted[held_out, output] = model.predict(self.values[held_out], output)
            if progress is not None:
                progress(done, len(folds))
        return predicted

    def figures(
        self, folds: Sequence[IntArray], names: Sequence[str], direction: "Direction"
    ) -> tuple[Figures, ...]:
        """Cross-validated quality of each output."""
        return figures(self.targets, self.cross_validate(folds), names=names, direction=direction)


def grouped_folds(groups: IntArray, folds: int, rng: np.random.Generator) -> list[IntArray]:
    """Split evaluations into folds of about as many groups, never a group into two.

    Args:
        groups: Number of each evaluation's group, shape (n,).
        folds: Number of folds.
        rng: Shuffles the groups.

    Returns:
        Indices of the evaluations of each fold, ascending.
    """
    names = rng.permutation(np.unique(groups))
    return [np.flatnonzero(np.isin(groups, part)) for part in np.array_split(names, folds)]


def row_folds(n: int, folds: int, seed: int) -> list[IntArray]:
    """Split n configurations into folds."""
    if not 2 <= folds <= n:
        raise ValueError(f"folds must be from 2 to {n}, got {folds}")
    return grouped_folds(np.arange(n), folds, np.random.default_rng(seed))


def task_rng(seed: int, task: str) -> tuple[np.random.Generator, int]:
    """What is random of a task that is fitted by itself, whatever other tasks there are.

    Returns:
        A generator for the folds and the search of the best value, and the seed of the trees.
    """
    rng = np.random.default_rng([seed, *task.encode()])
    return rng, int(rng.integers(2**32))


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a quality card says of evaluations.

    Attributes:
        source: Where they come from.
        command: What makes the artifact.
        limits: Known limits, one sentence each.
        summaries: One line on each surrogate, by its name.
        comparisons: Further comparisons by name, as JSON.
    """

    source: str
    command: str
    limits: Sequence[str]
    summaries: dict[str, str] = field(default_factory=dict)
    comparisons: dict[str, Any] = field(default_factory=dict)

    def card(
        self,
        defined: "Definition",
        model: StoredSurrogate,
        quality: Sequence[Figures],
        *,
        evaluations: int,
        configurations: int,
        folds: int,
        seed: int,
    ) -> Card:
        """The card of a surrogate that was cross-validated."""
        return Card(
            benchmark=defined.name,
            surrogate=model.kind,
            source=self.source,
            licence=defined.provenance.licence,
            evaluations=evaluations,
            configurations=configurations,
            folds=folds,
            figures=tuple(quality),
            limits=tuple(self.limits),
            command=self.command,
            versions=versions_of("hpobench-ordered", "numpy", "scikit-learn"),
            seed=seed,
            comparisons=self.comparisons,
        )
