"""ordered-gp: one Gaussian process over the last tasks and the current one.

Notation:
    T   tasks of the model, the current one last
    d   hyperparameters
    p   features of a configuration
    n   evaluations of the earlier tasks that the model uses
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.methods._candidates import draw_near, iter_candidate_blocks
from hpobench_ordered.methods._carry_over import convert_history
from hpobench_ordered.methods._model_based import Scorer, remove_failed_evaluations
from hpobench_ordered.methods._multi_task import context_table
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.bo import BayesianOptimisation

if TYPE_CHECKING:
    from hpobench_ordered.methods._gp.model import TaskPriors
    from hpobench_ordered.methods._gp.tasks import Fit, Observed, TaskProcess

MAX_SOURCES = 200
"""Largest number of evaluations of earlier tasks that the model uses, divided evenly."""
FIT_SOURCES = 100
"""Number of them that its hyperparameters are fitted to."""
MAX_HERE = 200
"""Largest number of evaluations of the current task that it uses."""
GOOD = 0.25
"""Share of the best ones when evaluations are subsampled; the others are drawn at random."""
EVERY = 3
"""Number of suggestions between fits of the hyperparameters."""
FIRST_STEPS, LATER_STEPS = 30, 4
"""Number of steps of the first fit, and of each later one, which continues from the last."""
CANDIDATES, NEAR = 500, 250
"""Number of random candidates, and of candidates near good configurations."""
LARGEST = 1e6
"""Distance from the median, in units, at which losses are clipped."""
CENTRES = 3
"""Number of best configurations of the current task that candidates are drawn near."""


@dataclass(frozen=True, eq=False, slots=True)
class Sources:
    """Evaluations of earlier tasks that the model uses, those of the nearest task last.

    Attributes:
        unit: Configurations, canonical unit vectors, shape (n, d), grouped by task.
        losses: Their losses as returned by `standardised`, shape (n,).
        counts: Number of evaluations of each task, shape (T - 1,).
        fitted: Indices of those that the hyperparameters are fitted to, in order.
        fitted_counts: Number of these for each task, shape (T - 1,).
        bests: The best configuration of each task, the nearest task's first, shape (T - 1, d).
        best_values: The same as coded values, shape (T - 1, d).
        scale: Unit of the nearest task's losses, also used for the current task's.
    """

    unit: FloatArray
    losses: FloatArray
    counts: IntArray
    fitted: IntArray
    fitted_counts: IntArray
    bests: FloatArray
    best_values: FloatArray
    scale: float

    @classmethod
    def of(cls, tasks: Sequence[Evaluations], rng: np.random.Generator) -> "Sources":
        """Choose from the finite evaluations of at least one task on the current search space."""
        space = tasks[0].space
        rows = [good_and_random(task.losses, MAX_SOURCES // len(tasks), rng) for task in tasks]
        units = units_of([task.losses for task in tasks])
        chosen = [
            standardised(task.losses, unit)[part]
            for task, part, unit in zip(tasks, rows, units, strict=True)
        ]
        counts = np.array([len(part) for part in rows])
        fitted = [good_and_random(y, FIT_SOURCES // len(tasks), rng) for y in chosen]
        starts = np.cumsum(counts) - counts
        values = [task.values[part] for task, part in zip(tasks, rows, strict=True)]
        bests = np.stack([task.values[task.losses.argmin()] for task in reversed(tasks)])
        unit = space.canonical(space.encode(np.concatenate([*values, bests])))
        return cls(
            unit=unit[: counts.sum()],
            losses=np.concatenate(chosen),
            counts=counts,
            fitted=np.concatenate([s + part for s, part in zip(starts, fitted, strict=True)]),
            fitted_counts=np.array([len(part) for part in fitted]),
            bests=unit[counts.sum() :],
            best_values=bests,
            scale=units[-1],
        )


class OrderedGP(BayesianOptimisation):
    """Bayesian optimisation with one Gaussian process over the last tasks and the current one.

    Every task has its own level and scale, and the correlation of tasks decays with their distance
    (`_gp.tasks`). The first suggestion is the configuration of lowest posterior mean among the best
    of each earlier task; the next `EARLY` - 1 are those of them with the highest expected
    improvement. All others maximise expected improvement over random candidates and, if they are
    clearly better, candidates near good configurations of this task and earlier ones.

    The distance of two tasks is the difference of their contexts, compared by rank; without a
    common context quantity, the difference of their indices in the history. Without a finite
    evaluation of an earlier task it is `bo`.

    Attributes:
        nearest: Number of nearest earlier tasks that the model uses, K.
        early: Number of trials at the start that choose among the best configurations of these.
    """

    nearest = 8
    early = 5

    def prepare(self) -> None:
        """Choose the evaluations of earlier tasks that the model uses."""
        history = remove_failed_evaluations(convert_history(self.history, self.space, self.rng))
        distances = task_distances([task.context for task in history], self.context)
        order = np.argsort(-distances[-1, :-1], kind="stable")[-self.nearest :]
        rows = np.append(order, len(history))
        self._distances = distances[np.ix_(rows, rows)]
        self.sources = Sources.of([history[i] for i in order], self.rng) if len(order) else None
        super().prepare()
        if self.sources:
            self.random_trials = 0
        self._last_fit: Fit | None = None
        self._process: TaskProcess | None = None
        self._rows: IntArray = np.empty(0, dtype=np.int64)
        self._until = self._fit_due = 0

    def priors(self) -> "TaskPriors":
        """Priors of the model's hyperparameters."""
        from hpobench_ordered.methods._gp.model import TaskPriors

        return TaskPriors()

    def make_scorer(self) -> Scorer:
        """Condition the model; score by log expected improvement, at first by minus the mean."""
        if self.sources is None:
            return super().make_scorer()
        from hpobench_ordered.methods._gp.acquisition import log_expected_improvement

        process = self._conditioned(self.sources)
        if not self.evaluation_count and not self._pending:
            return lambda unit: -process.predict(self.features(unit))[0]
        of_task = process.here()
        if not self.evaluation_count:
            of_task, _ = process.predict(self.features(self.sources.bests))
        best = float(of_task.min())
        if self._pending:
            process, fantasies = process.fantasised(self.features(self.pending_units()))
            best = min(best, float(fantasies.min()))
        return lambda unit: log_expected_improvement(*process.predict(self.features(unit)), best)

    def transformed(self, y: FloatArray) -> FloatArray:
        """Transform losses y (n,), relative to the median, to log(1 + y) above it.

        How bad a bad configuration is says little about where the good ones are.
        """
        return np.where(y > 0.0, np.log1p(np.maximum(y, 0.0)), y)

    def iter_candidates(self) -> Iterator[FloatArray]:
        """Blocks of candidates, canonical unit vectors (m, d), see `iter_candidate_blocks`."""
        if self.sources is None:
            return super().iter_candidates()
        return iter_candidate_blocks(self.region, self.rng, size=CANDIDATES)

    def _choose_best_untried(self, scorer: Scorer, near: Sequence[FloatArray] = ()) -> FloatArray:
        """Coded values (d,) of the best candidate, at first among earlier tasks' best."""
        if self.sources and self.evaluation_count + len(self._pending) < self.early:
            for row in np.argsort(-scorer(self.sources.bests), kind="stable"):
                values: FloatArray = self.sources.best_values[row]
                if values not in self._tried:
                    return values
        return super()._choose_best_untried(scorer, near)

    def _draw_near_best(self) -> Sequence[FloatArray]:
        """Candidates near the best of this task and earlier ones, one array (m, d), or none."""
        if self.sources is None:
            return super()._draw_near_best()
        if not self._searches_near_best or self._on_plateau:
            return ()
        order = np.argsort(self.evaluated_losses(), kind="stable")[:CENTRES]
        centres = np.concatenate([self.evaluated_units()[order], self.sources.bests])
        return (draw_near(self.region, centres, self._near_rng, count=NEAR),)

    def _conditioned(self, sources: Sources) -> "TaskProcess":
        """Condition the model on the chosen evaluations, refitting it now and then."""
        from hpobench_ordered.methods._gp.tasks import TaskProcess, fitted

        losses = self.evaluated_losses()
        seen = len(self._rows)
        if self._process is None or self.evaluation_count >= self._fit_due:
            self._fit_due = self.evaluation_count + EVERY
            self._rows = good_and_random(losses, MAX_HERE, self.rng)
            observed = self._observed(sources, losses)
            steps = LATER_STEPS if self._last_fit else FIRST_STEPS
            part = fitted_part(observed, sources)
            self._last_fit = fitted(part, self.priors(), self._last_fit, steps=steps)
            self._process = TaskProcess(observed, self._last_fit.x)
        elif self.evaluation_count > self._until:
            self._rows = np.append(self._rows, np.arange(self._until, self.evaluation_count))
            observed = self._observed(sources, losses)
            new = observed.X[len(sources.unit) + seen :]
            self._process = self._process.extended(new, observed.y)
        self._until = self.evaluation_count
        return self._process

    def _observed(self, sources: Sources, losses: FloatArray) -> "Observed":
        """Observations of the model; all losses together have a standard deviation of 1.

        Args:
            sources: Evaluations of earlier tasks.
            losses: Losses of the current task, shape (results,), of which it uses `_rows`.
        """
        from hpobench_ordered.methods._gp.model import Kernel
        from hpobench_ordered.methods._gp.tasks import Observed

        if self._kernel is None:
            self._kernel = Kernel(self.feature_groups())
        here = standardised(losses[self._rows], sources.scale)
        y = self.transformed(np.concatenate([sources.losses, here]))
        unit = np.concatenate([sources.unit, self.evaluated_units()[self._rows]])
        return Observed(
            X=self.features(unit),
            y=y / (y.std() or 1.0),
            counts=np.append(sources.counts, len(here)),
            distances=self._distances,
            kernel=self._kernel,
            level=self.priors().level,
        )


def fitted_part(observed: "Observed", sources: Sources) -> "Observed":
    """The part of the observations that the hyperparameters are fitted to."""
    rows = np.append(sources.fitted, np.arange(len(sources.unit), len(observed.y)))
    counts = np.append(sources.fitted_counts, observed.counts[-1])
    return replace(observed, X=observed.X[rows], y=observed.y[rows], counts=counts)


def task_distances(
    history: Sequence[Mapping[str, float]], context: Mapping[str, float]
) -> FloatArray:
    """Distances of tasks, those of the history and the current one, shape (T, T).

    Tasks are ranked by each context quantity that all of them have; the distance is the mean
    difference of ranks. Without such a quantity, or with a single one that grows from task to task,
    it is the difference of the tasks' indices.

    Args:
        history: Contexts of the earlier tasks, oldest first.
        context: Context of the current task.
    """
    table = context_table(history, context)
    if not table.shape[1]:
        table = np.arange(float(len(table)))[:, None]
    ranks = np.stack([np.unique(column, return_inverse=True)[1] for column in table.T])
    distances: FloatArray = np.abs(ranks[:, :, None] - ranks[:, None]).mean(axis=0)
    return distances


def units_of(losses: Sequence[FloatArray]) -> list[float]:
    """Half the distance of each task's best finite loss from its median.

    If that is 0, the unit is the root mean square of half the distances; if all losses of a task
    are equal, the geometric mean of the other tasks' units, or 1.
    """
    units = []
    for of_task in losses:
        halves = np.abs(of_task / 2.0 - np.median(of_task / 2.0))  # of any finite losses finite
        unit, largest = float(halves[of_task.argmin()]), float(halves.max())
        if not unit and largest:
            unit = largest * math.sqrt(np.mean((halves / largest) ** 2))
        units.append(unit)
    known = [math.log(unit) for unit in units if unit]
    typical = math.exp(sum(known) / len(known)) if known else 1.0
    return [unit or typical for unit in units]


def standardised(losses: FloatArray, unit: float) -> FloatArray:
    """Losses (n,) of a task minus their median, divided by twice the unit, within +- `LARGEST`."""
    if not len(losses):
        return losses
    with np.errstate(over="ignore"):
        y: FloatArray = (losses / 2.0 - np.median(losses / 2.0)) / unit
    return np.clip(y, -LARGEST, LARGEST)


def good_and_random(losses: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Sorted indices of 1 to `count` losses: the best and random others.

    Args:
        losses: The losses, shape (n,).
        count: Number of losses to choose.
        rng: Draws the others; not used if all losses are chosen.
    """
    count = max(1, count)
    if len(losses) <= count:
        return np.arange(len(losses))
    order = np.argsort(losses, kind="stable")
    good = math.ceil(GOOD * count)
    return np.sort(np.append(order[:good], rng.permutation(order[good:])[: count - good]))


SPECS = (
    MethodSpec(
        name="ordered-gp",
        method=OrderedGP,
        summary="One Gaussian process over the last tasks and this one: levels, scales, drift.",
        source=(
            "this package; drift as in Bogunovic et al. (2016), with a Matern-5/2 kernel and "
            "expected improvement (Jones et al. 1998)"
        ),
        changed_spaces=True,
    ),
)
