"""ordered-gp: one Gaussian process over the last tasks and this one."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import Config, FloatArray, IntArray
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.methods._candidates import fine_steps
from hpobench_ordered.methods._carry_over import carried_over
from hpobench_ordered.methods._model_based import Scorer, finite_history
from hpobench_ordered.methods._multi_task import context_table
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.bo import BayesianOptimisation
from hpobench_ordered.methods.simple_ordered import ordered_configurations

if TYPE_CHECKING:
    from hpobench_ordered.methods._gp.tasks import Fit, Observed, TaskPriors, TaskProcess

NEAREST = 8
"""Earlier tasks that the model sees, K."""
MAX_SOURCES = 200
"""Evaluations of these that the model sees at most."""
MAX_HERE = 200
"""Evaluations of the current task that it sees at most."""
EVERY = 3
"""Suggestions from one fit of the hyperparameters to the next."""
FIRST_STEPS, LATER_STEPS = 30, 4
"""Steps of the first fit, and of later ones, which go on from the last."""
CENTRES = 3
"""Best configurations of the current task, around which there are candidates."""


class OrderedGP(BayesianOptimisation):
    """A Gaussian process over the last tasks and this one, each with a level and a scale of its own.

    Without a history with a finite loss it is `bo`.
    """

    start = 5
    nearest = NEAREST
    max_sources = MAX_SOURCES
    steps = (FIRST_STEPS, LATER_STEPS)
    every = EVERY
    fit_sources = 100
    fit_best = True
    local = 500
    candidates_count = 1000

    def prepare(self) -> None:
        """Choose the tasks and their evaluations that the model sees."""
        history = finite_history(carried_over(self.history, self.space, self.rng))
        self._tasks, self._distances = self._nearest(history)
        super().prepare()
        if not self._tasks:
            return
        self.random_trials = 0
        parts = [self._part(task) for task in self._tasks]
        self._counts = np.array([len(rows) for rows in parts])
        self._sources = self._encoded(
            np.concatenate([t.values[rows] for t, rows in zip(self._tasks, parts, strict=True)])
        )
        self._bests = self._encoded(
            np.stack([task.values[np.argmin(task.losses)] for task in reversed(self._tasks)])
        )
        centres, units = zip(*(centre_and_unit(t.losses) for t in self._tasks), strict=True)
        self._units = filled(np.array(units))
        self._source_losses = np.concatenate(
            [
                (t.losses[rows] - centre) / unit
                for t, rows, centre, unit in zip(
                    self._tasks, parts, centres, self._units, strict=True
                )
            ]
        )
        self._source_features = self.region.features(self._sources)
        task = np.repeat(np.arange(len(self._counts)), self._counts)
        most = max(1, self.fit_sources // len(self._tasks))
        if self.fit_best:
            rows = [best_and_random(self._source_losses[task == i], most, self.rng) + np.flatnonzero(task == i)[0] if (task == i).sum() > most else np.flatnonzero(task == i) for i in range(len(self._counts))]
        else:
            rows = [np.sort(self.rng.permutation(np.flatnonzero(task == i))[:most]) for i in range(len(self._counts))]
        self._fit_rows = np.concatenate(rows)
        self._fit_counts = np.array([len(r) for r in rows])
        self._fit_of_tasks: Fit | None = None
        self._process: TaskProcess | None = None
        self._asked = 0

    def _encoded(self, values: FloatArray) -> FloatArray:
        return self.space.canonical(self.space.encode(values))

    def _nearest(self, history: Sequence[Evaluations]) -> tuple[list[Evaluations], FloatArray]:
        """The nearest tasks, the nearest last, and distances of them and this one."""
        distances = task_distances(history, self.context)
        order = np.argsort(-distances[-1, :-1], kind="stable")[-self.nearest :]
        if not len(order):
            return [], distances
        rows = np.append(order, len(history))
        return [history[i] for i in order], distances[np.ix_(rows, rows)]

    def _part(self, task: Evaluations) -> IntArray:
        most = max(1, self.max_sources // len(self._tasks))
        if len(task) <= most:
            return np.arange(len(task))
        return best_and_random(task.losses, most, self.rng)

    def initial_configurations(self) -> Sequence[Config]:
        """The best configuration of each of the last tasks, the latest first."""
        if not self._tasks:
            return ()
        return self.space.configs(ordered_configurations(self._tasks, count=self.start))

    def scorer(self) -> Scorer:
        """Condition the model; the score is log expected improvement."""
        if not self._tasks:
            return super().scorer()
        from hpobench_ordered.methods._gp.acquisition import log_expected_improvement

        process = self._condition()
        best = self.improve_on(process)
        if self._pending:
            X = self.features(self.pending())
            fantasies = process.predict(X)[0]
            process = process.extended(X, fantasies)
            best = min(best, float(fantasies.min()))
        return lambda unit: log_expected_improvement(*process.predict(self.features(unit)), best)

    def improve_on(self, process: "TaskProcess") -> float:
        if self.results:
            return float(process.here().min())
        return float(process.predict(self.region.features(self._bests))[0].min())

    def _condition(self) -> "TaskProcess":
        from hpobench_ordered.methods._gp.tasks import TaskProcess, fitted

        due = self._asked % self.every == 0
        self._asked += 1
        losses = self.losses()
        if due or self._process is None:
            self._rows = np.arange(self.results)
            if self.results > MAX_HERE:
                self._rows = best_and_random(losses, MAX_HERE, self.rng)
            observed = self._observed(losses)
            part = self._fit_observed(observed)
            first = self._fit_of_tasks is None
            self._fit_of_tasks = fitted(
                part, self.priors(), self._fit_of_tasks, steps=self.steps[0 if first else 1]
            )
            self._process = TaskProcess(observed, self._fit_of_tasks.x)
        else:
            new = np.arange(self._until, self.results)
            self._rows = np.append(self._rows, new)
            X = self.features(self.told()[new])
            self._process = self._process.extended(X, self._losses_by_task(losses))
        self._until = self.results
        return self._process

    def _fit_observed(self, observed: "Observed") -> "Observed":
        from dataclasses import replace

        rows = np.append(self._fit_rows, np.arange(len(self._source_losses), len(observed.y)))
        counts = np.append(self._fit_counts, observed.counts[-1])
        return replace(observed, X=observed.X[rows], y=observed.y[rows], counts=counts)

    def candidates(self):
        if not self._tasks:
            return super().candidates()
        from hpobench_ordered.methods._candidates import candidate_blocks

        return candidate_blocks(self.region, self.rng, size=self.candidates_count)

    def priors(self) -> "TaskPriors":
        from hpobench_ordered.methods._gp.tasks import TaskPriors

        return TaskPriors()

    def _losses_by_task(self, losses: FloatArray) -> FloatArray:
        here = losses[self._rows]
        if len(here):
            here = (here - np.median(here)) / self._units[-1]
        y = np.concatenate([self._source_losses, here])
        spread = y.std()
        return y / spread if spread > 0.0 else y

    def _observed(self, losses: FloatArray) -> "Observed":
        from hpobench_ordered.methods._gp.model import Kernel
        from hpobench_ordered.methods._gp.tasks import Observed

        if self._kernel is None:
            self._kernel = Kernel(self.feature_groups())
        X = np.concatenate([self._source_features, self.features(self.told()[self._rows])])
        return Observed(
            X,
            self._losses_by_task(losses),
            np.append(self._counts, len(self._rows)),
            self._distances,
            self._kernel,
            self.priors().level,
        )

    def _near(self) -> Sequence[FloatArray]:
        if not self._tasks:
            return super()._near()
        if not self._looks_near or self._on_plateau:
            return ()
        order = np.argsort(self.losses(), kind="stable")[:CENTRES]
        centres = np.concatenate([self.told()[order], self._bests])
        return (fine_steps(self.region, centres, self._near_rng, count=self.local),)


def task_distances(history: Sequence[Evaluations], context: object) -> FloatArray:
    """Distances of the tasks of a history and of the current one, last, (T, T)."""
    table = context_table([task.context for task in history], context)
    if not table.shape[1]:
        table = np.arange(float(len(table)))[:, None]
    ranks = np.stack([np.unique(column, return_inverse=True)[1] for column in table.T], axis=1)
    return np.abs(ranks[:, None] - ranks[None]).mean(axis=2).astype(np.float64)


def centre_and_unit(losses: FloatArray) -> tuple[float, float]:
    """Median of finite losses (n,), and how far the best is from it; NaN for nothing."""
    median = float(np.median(losses))
    unit = median - float(losses.min())
    if not unit > 0.0:
        unit = float(losses.std())
    return median, unit if unit > 0.0 else math.nan


def filled(units: FloatArray) -> FloatArray:
    known = units[np.isfinite(units)]
    return np.where(np.isfinite(units), units, np.exp(np.log(known).mean()) if len(known) else 1.0)


def best_and_random(losses: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    order = np.argsort(losses, kind="stable")
    best = count // 4
    return np.sort(np.append(order[:best], rng.permutation(order[best:])[: count - best]))


SPECS = (
    MethodSpec(
        name="ordered-gp",
        method=OrderedGP,
        summary="One Gaussian process over the last tasks: levels, scales, drift.",
        source="this package",
        changed_spaces=True,
    ),
)
