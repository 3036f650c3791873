"""ordered-gp: one Gaussian process over the last tasks and the current one.

=======  ======  ==================================================================================
symbol   shape   meaning
=======  ======  ==================================================================================
T        scalar  tasks of the model, the current one last
S        scalar  evaluations of the earlier tasks that the model uses
n        scalar  evaluations of the current task
d        scalar  hyperparameters
q        scalar  context quantities that are inputs of the model, 0 or at least two
p        scalar  inputs of the model: features of a configuration, then the q of its task
=======  ======  ==================================================================================

Every task's losses are standardised by two robust numbers of its own (`_robust_losses`): a centre,
about the median over the space, and a unit, about the distance of the best loss from the centre.
"""

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.methods._candidates import LOG_ADVANTAGE, draw_near, iter_candidate_blocks
from hpobench_ordered.methods._carry_over import convert_history
from hpobench_ordered.methods._model_based import Scorer, replace_failed_evaluations
from hpobench_ordered.methods._multi_task import (
    append_task_groups,
    standardise_contexts,
    tabulate_contexts,
)
from hpobench_ordered.methods._robust_losses import (
    compute_centre,
    compute_median,
    compute_units,
    standardise_robustly,
)
from hpobench_ordered.methods._task_order import compute_order_p_value, find_best_on_average
from hpobench_ordered.methods.base import MethodKind, MethodSpec
from hpobench_ordered.methods.bo import BayesianOptimisation

if TYPE_CHECKING:
    from hpobench_ordered.methods._gp.model import TaskPriors
    from hpobench_ordered.methods._gp.tasks import Fit, Observations, TaskProcess

LOGGER = logging.getLogger(__name__)

MAX_SOURCES = 200
"""The model uses at most this many evaluations of earlier tasks, of each task the same number."""
MAX_FITTED_SOURCES = 100
"""The hyperparameters are fitted to at most this many of these evaluations."""
MAX_CURRENT = 200
"""The model uses at most this many evaluations of the current task."""
GOOD_SHARE = 0.25
"""If a part of the evaluations is used, this share are the best; the others are drawn at random."""
FIT_INTERVAL = 3
"""Number of suggestions between fits of the hyperparameters."""
FIRST_STEPS, LATER_STEPS = 30, 4
"""Number of steps of the first fit, and of each later one, which continues from the last."""
TRUSTED_CORRELATION = 0.95
"""Early trials need not be the best configurations of earlier tasks if the nearest task has at
least this correlation with the current one."""
MIN_INPUTS = 2
"""Common context quantities are inputs of the model if there are at least this many; a single one
only gives the order of the tasks."""
CENTRES = 3
"""Number of best configurations of the current task that candidates are drawn near."""
MIN_TESTED_TASKS = 8
"""The order of tasks without contexts is tested if there are at least this many earlier tasks."""
MAX_TESTED_TASKS = 50
"""The test, and the average over tasks, use at most this many earlier tasks, the latest ones."""
MAX_P_VALUE = 0.1
"""The order of tasks matters if the p-value of the test is at most this."""
MAX_AVERAGED = 300
"""The average over tasks uses at most this many evaluations of each task."""
AVERAGED_CANDIDATES = 10
"""Number of best configurations of each task among which the best one on average is chosen."""


@dataclass(frozen=True, eq=False, slots=True)
class Sources:
    """Evaluations of earlier tasks that the model uses, those of the nearest task last.

    Attributes:
        points: Configurations in the unit cube, shape (S, d), grouped by task.
        losses: Their losses as returned by `standardise_robustly`, shape (S,).
        counts: Number of evaluations of each task, shape (T - 1,).
        fitted_rows: Indices of those that the hyperparameters are fitted to, ascending.
        fitted_counts: Number of these for each task, shape (T - 1,).
        best_points: Best configuration of each task, the nearest task's first, in the unit cube,
            shape (T - 1, d).
        best_values: The same as coded values, shape (T - 1, d).
        nearest_unit: Unit of the nearest task's losses, also used for the current task's.
    """

    points: FloatArray
    losses: FloatArray
    counts: IntArray
    fitted_rows: IntArray
    fitted_counts: IntArray
    best_points: FloatArray
    best_values: FloatArray
    nearest_unit: float

    @classmethod
    def choose(cls, tasks: Sequence[Evaluations], rng: np.random.Generator) -> "Sources":
        """Choose evaluations for the model: of each task some of the best, and random others.

        The model's hyperparameters are fitted to a part of them, chosen in the same way.

        Args:
            tasks: Finite evaluations of at least one earlier task on the current search space, the
                nearest task last.
            rng: Draws the random ones.
        """
        # The totals of evaluations are divided evenly among the tasks.
        max_per_task = MAX_SOURCES // len(tasks)
        max_fitted_per_task = MAX_FITTED_SOURCES // len(tasks)

        # Lists have an entry for each task.
        chosen_rows = [choose_good_and_random(task.losses, max_per_task, rng) for task in tasks]
        # Centres and units are those of all of a task's losses, not only of those chosen.
        centres = [compute_centre(task) for task in tasks]
        units = compute_units([task.losses for task in tasks], centres)
        values = []
        losses = []
        for task, rows, centre, unit in zip(tasks, chosen_rows, centres, units, strict=True):
            values.append(task.values[rows])
            losses.append(standardise_robustly(task.losses[rows], centre, unit))
        counts = np.array([len(rows) for rows in chosen_rows])

        # Of those chosen, the ones that hyperparameters are fitted to: rows within each task, and
        # among the chosen evaluations of all tasks.
        fitted_of_task = [choose_good_and_random(y, max_fitted_per_task, rng) for y in losses]
        first_rows = np.cumsum(counts) - counts
        fitted_rows = [first + rows for first, rows in zip(first_rows, fitted_of_task, strict=True)]

        best_values = np.stack([task.values[task.losses.argmin()] for task in reversed(tasks)])
        space = tasks[0].space
        return cls(
            points=space.canonical(space.encode(np.concatenate(values))),
            losses=np.concatenate(losses),
            counts=counts,
            fitted_rows=np.concatenate(fitted_rows),
            fitted_counts=np.array([len(rows) for rows in fitted_of_task]),
            best_points=space.canonical(space.encode(best_values)),
            best_values=best_values,
            nearest_unit=units[-1],
        )


class OrderedGP(BayesianOptimisation):
    """Bayesian optimisation with one Gaussian process over the last tasks and the current one.

    Every task has its own level and scale. The correlation of two tasks decays with their distance,
    and has a factor that is the same for any two (`_gp.tasks`). The model learns both from the
    earlier tasks, and so whether their order matters.

    The candidates of the first `early_trials` are the best configurations of the earlier tasks. The
    first trial has the lowest posterior mean, the others have the highest expected improvement. If
    the nearest task is nearly the same as the current one, another configuration may take their
    place that the model is sure to be better. Later trials maximise expected improvement over
    random candidates; a candidate near a good configuration is chosen only if it is clearly better.

    The distance of two tasks is the difference of their contexts, compared by rank; without a
    common context quantity, the difference of their indices in the history. Two or more common
    quantities are inputs of the model, too. Without a finite evaluation of an earlier task it is
    `bo`.

    Without a common context quantity, or if all are the same, the order of tasks may say nothing:
    for example, the tasks may be data sets in a folder. A permutation test of the tasks' best
    configurations decides this (`_task_order`). If the order says nothing, the first suggestion is
    the configuration that is best on average over many tasks.

    Attributes:
        max_earlier_tasks: Number of nearest earlier tasks that the model uses.
        early_trials: Number of trials at the start that choose among the best configurations of
            these tasks.
        random_candidates: Number of random candidates of a suggestion.
        near_candidates: Number of candidates near good configurations.
        order_p_value: p-value of the test whether the order of earlier tasks matters, low if it
            does. None if it is not tested: with contexts that differ, or few earlier tasks.
    """

    max_earlier_tasks = 8
    early_trials = 5
    random_candidates = 2000
    near_candidates = 1000

    def prepare(self) -> None:
        """Choose the evaluations of earlier tasks to use, and start without a model."""
        history = replace_failed_evaluations(convert_history(self.history, self.space, self.rng))
        contexts = [task.context for task in history]
        distances = compute_task_distances(contexts, self.context)
        distances_from_current = distances[-1, :-1]
        # Farthest first; of equally near tasks, the latest comes last.
        nearest_last = np.argsort(-distances_from_current, kind="stable")
        earlier_rows = nearest_last[-self.max_earlier_tasks :]  # of the tasks in the model
        current_row = len(history)
        model_rows = np.append(earlier_rows, current_row)
        # Of the tasks in the model, the current one last: distances (T, T), and inputs (T, q).
        self._distances = distances[np.ix_(model_rows, model_rows)]
        self._task_inputs = compute_task_inputs(contexts, self.context)[model_rows]

        self.sources: Sources | None = None  # None without an earlier task
        if len(earlier_rows):
            self.sources = Sources.choose([history[row] for row in earlier_rows], self.rng)
        super().prepare()
        if self.sources:  # they take the place of initial random trials
            self.random_trials = 0

        self.order_p_value: float | None = None
        # Coded values, (d,); None if the order of tasks matters or is not tested.
        self._best_on_average: FloatArray | None = None
        table = tabulate_contexts(contexts, self.context)  # (tasks, common quantities)
        have_contexts_that_differ = bool((table != table[0]).any())
        if not have_contexts_that_differ and len(history) >= MIN_TESTED_TASKS:
            tasks = history[-MAX_TESTED_TASKS:]
            self.order_p_value = self._test_order(tasks)
            if self.order_p_value > MAX_P_VALUE:
                self._best_on_average = self._find_best_on_average(tasks)

        self._process: TaskProcess | None = None  # the model
        self._last_fit: Fit | None = None  # of the hyperparameters; the next one continues from it
        # Of this task's evaluations: the rows that the model uses, their number when the model was
        # updated last, and their number at which it will be refitted.
        self._used_rows: IntArray = np.empty(0, dtype=np.int64)
        self._conditioned_count = 0
        self._next_fit_count = 0

    def _test_order(self, tasks: Sequence[Evaluations]) -> float:
        """Compute the p-value of a test whether the order of earlier tasks matters; low if it does.

        The result is also written to the log.
        """
        best_values = np.stack([task.values[task.losses.argmin()] for task in tasks])
        p_value = compute_order_p_value(self._encode_features(best_values), self.rng)
        verdict = "matters" if p_value <= MAX_P_VALUE else "is not seen to matter"
        LOGGER.info("the order of the earlier tasks %s (p = %.2f)", verdict, p_value)
        return p_value

    def _find_best_on_average(self, tasks: Sequence[Evaluations]) -> FloatArray:
        """Find the configuration that is best on average over tasks, as coded values (d,).

        Candidates are some of the best configurations of each task.
        """
        candidates = []
        points = []
        losses = []
        centres = [compute_centre(task) for task in tasks]
        units = compute_units([task.losses for task in tasks], centres)
        for task, centre, unit in zip(tasks, centres, units, strict=True):
            best_first = np.argsort(task.losses, kind="stable")
            candidates.append(task.values[best_first[:AVERAGED_CANDIDATES]])
            rows = choose_good_and_random(task.losses, MAX_AVERAGED, self.rng)
            points.append(self._encode_features(task.values[rows]))
            standardised = standardise_robustly(task.losses[rows], centre, unit)
            losses.append(self.transform_losses(standardised))
        candidate_values = np.concatenate(candidates)
        row = find_best_on_average(self._encode_features(candidate_values), points, losses)
        best: FloatArray = candidate_values[row]
        return best

    def _encode_features(self, values: FloatArray) -> FloatArray:
        """Features (m, p) of configurations given as coded values, (m, d)."""
        return self.region.features(self.space.canonical(self.space.encode(values)))

    @property
    def task_correlations(self) -> FloatArray:
        """Correlation of the current task with the earlier ones in the model, nearest first.

        Shape (T - 1,). They fall from one task to the next if the order of tasks matters, and are
        all the same if it does not. Where contexts are inputs of the model, they are the
        correlations that would be left if all contexts were the same. Empty before the first
        suggestion, and without earlier tasks.
        """
        if self._process is None:
            return np.empty(0)
        nearest_last = self._process.correlate_tasks()
        return nearest_last[::-1]

    def features(self, unit: FloatArray) -> FloatArray:
        """Inputs of the model (m, p) for configurations in the unit cube, (m, d), on this task."""
        return self._join_inputs(unit, np.tile(self._task_inputs[-1], (len(unit), 1)))

    def _join_inputs(self, unit: FloatArray, task_inputs: FloatArray) -> FloatArray:
        """Join features of configurations (m, d) and the inputs of their tasks, (m, q): (m, p)."""
        return np.concatenate([super().features(unit), task_inputs], axis=1)

    def group_features(self) -> IntArray:
        """Index of the length scale of each input of the model, (p,).

        Each hyperparameter has one, and each context quantity.
        """
        quantities = self._task_inputs.shape[1]
        return append_task_groups(super().group_features(), quantities)

    def priors(self) -> "TaskPriors":
        """Priors of the model's hyperparameters."""
        from hpobench_ordered.methods._gp.model import TaskPriors

        return TaskPriors()

    def make_scorer(self) -> Scorer:
        """Condition the model, and make the function that scores candidates.

        The score is the log expected improvement on the lowest loss so far. For the first
        suggestion there is no loss to improve on, so that it is minus the posterior mean.
        """
        if self.sources is None:
            return super().make_scorer()

        process = self._update_process(self.sources)
        is_first_suggestion = not self.evaluation_count and not self._pending
        if is_first_suggestion:

            def score_by_mean(unit: FloatArray) -> FloatArray:
                """Compute minus the posterior mean (m,) of candidates in the unit cube, (m, d)."""
                mean, _ = process.predict(self.features(unit))
                return -mean

            return score_by_mean

        if self.evaluation_count:
            best = float(process.scale_current_losses().min())  # in the units of predictions
        else:  # the lowest loss that is predicted for the earlier tasks' best configurations
            predicted_means, _ = process.predict(self.features(self.sources.best_points))
            best = float(predicted_means.min())
        if self._pending:  # they count as evaluated, as if they had given the posterior mean
            process, pending_means = process.with_fantasies(self.features(self.pending_units()))
            best = min(best, float(pending_means.min()))
        # Scores that cannot decide may be rough, which saves time. Those within the distance
        # `slack` of the largest are exact, as candidates near good configurations are chosen only
        # if their score is larger than others by `LOG_ADVANTAGE`.
        return lambda unit: process.score_candidates(self.features(unit), best, slack=LOG_ADVANTAGE)

    def transform_losses(self, y: FloatArray) -> FloatArray:
        """Transform standardised losses y (n,) to log(1 + y) above the centre, which is 0.

        Losses below the centre stay as they are. How bad a bad configuration is says little about
        where the good ones are.
        """
        compressed = np.log1p(np.maximum(y, 0.0))  # no logarithm of a negative number
        return np.where(y > 0.0, compressed, y)

    def iter_candidates(self) -> Iterator[FloatArray]:
        """Yield blocks of candidates in the unit cube, (m, d); see `iter_candidate_blocks`.

        Without an earlier task they are those of `bo`.
        """
        if self.sources is None:
            return super().iter_candidates()
        return iter_candidate_blocks(self.region, self.rng, size=self.random_candidates)

    def _choose_best_untried(
        self, scorer: Scorer, near_best: FloatArray | None = None
    ) -> FloatArray:
        """Choose the best candidate that was not tried, coded values (d,).

        In the early trials, the best configurations of the earlier tasks are the only candidates,
        until all of them were tried. The exception is a candidate that the model is sure to be
        better. If the order of the earlier tasks does not matter, the first trial is the
        configuration that is best on average over them.

        Args:
            scorer: Scores candidates in the unit cube.
            near_best: Candidates near good configurations, also there.
        """
        trials = self.evaluation_count + len(self._pending)
        if trials == 0 and self._best_on_average is not None:
            return self._best_on_average
        if self.sources and trials < self.early_trials:
            # The same configurations in two forms: points of the unit cube, which are scored, and
            # coded values, which are suggested.
            scores = scorer(self.sources.best_points)
            for row in np.argsort(-scores, kind="stable"):
                values: FloatArray = self.sources.best_values[row]
                if values not in self._tried:
                    better = self._find_surely_better(self.sources.best_points[row], near_best)
                    return values if better is None else better
        return super()._choose_best_untried(scorer, near_best)

    def _find_surely_better(
        self, point: FloatArray, near_best: FloatArray | None
    ) -> FloatArray | None:
        """Find a candidate that is surely better than a point and all evaluations of this task.

        It is the untried one with the lowest sum of posterior mean and standard deviation, if that
        is below the posterior mean of the point and below the lowest loss. The model is trusted
        only if the nearest task is nearly the same as the current one (`TRUSTED_CORRELATION`):
        where tasks differ, its deviations are too small.

        Args:
            point: A point in the unit cube, (d,).
            near_best: Candidates near good configurations, beside the random ones.

        Returns:
            Its coded values, (d,); None if there is none, or the model is not trusted.
        """
        process = self._process
        if process is None or not self.evaluation_count:
            return None
        nearest_correlation = self.task_correlations[0]
        if nearest_correlation < TRUSTED_CORRELATION:
            return None

        unit = next(self.iter_candidates())  # a block of random candidates
        if near_best is not None:
            unit = np.concatenate([unit, near_best])
        means, deviations = process.predict(self.features(unit))
        highest_likely = means + deviations
        untried = self._tried.find_best_untried(unit, -highest_likely)
        if untried is None:
            return None
        row, values = untried
        (mean_of_point,), _ = process.predict(self.features(point[None]))
        lowest_loss = process.scale_current_losses().min()
        is_better = highest_likely[row] < min(mean_of_point, lowest_loss)
        return values if is_better else None

    def _draw_near_best(self) -> FloatArray | None:
        """Draw candidates near the best configurations of this task and of earlier ones.

        Centres are the `CENTRES` best of this task, and the best of each earlier one.

        Returns:
            Candidates in the unit cube (m, d), or None where they do not help: on a plateau, where
            an earlier one was exactly as good as a known configuration, or if this search is
            switched off, as it is for small spaces.
        """
        if self.sources is None:  # no earlier task
            return super()._draw_near_best()
        if not self._searches_near_best or self._is_on_plateau:
            return None
        best_rows = np.argsort(self.evaluated_losses(), kind="stable")[:CENTRES]
        best_of_this_task = self.evaluated_units()[best_rows]
        centres = np.concatenate([best_of_this_task, self.sources.best_points])
        return draw_near(self.region, centres, self._near_rng, count=self.near_candidates)

    def _update_process(self, sources: Sources) -> "TaskProcess":
        """Condition the model on new evaluations, and refit it every `FIT_INTERVAL` of them.

        Args:
            sources: The evaluations of earlier tasks.

        Returns:
            The model, conditioned on all evaluations told so far; it is stored for the next call.
        """
        is_fit_due = self.evaluation_count >= self._next_fit_count
        if self._process is None or is_fit_due:
            is_first_fit = self._process is None
            self._process = self._refit_process(sources)
            if is_first_fit:
                LOGGER.info(
                    "correlation with the earlier tasks, nearest first: %s",
                    np.array2string(self.task_correlations, precision=2),
                )
            self._next_fit_count = self.evaluation_count + FIT_INTERVAL
        elif self.evaluation_count > self._conditioned_count:
            self._process = self._extend_process(sources, self._process)
        self._conditioned_count = self.evaluation_count
        return self._process

    def _refit_process(self, sources: Sources) -> "TaskProcess":
        """Choose evaluations of this task, fit the hyperparameters, and condition the model."""
        from hpobench_ordered.methods._gp.tasks import TaskProcess, fit_hyperparameters

        # Which evaluations of this task the model uses until the next fit.
        self._used_rows = choose_good_and_random(self.evaluated_losses(), MAX_CURRENT, self.rng)
        observed = self._collect_observations(sources)
        # A later fit continues from the last one, so that few steps suffice.
        self._last_fit = fit_hyperparameters(
            select_fitted_part(observed, sources),
            self.priors(),
            self._last_fit,
            steps=LATER_STEPS if self._last_fit else FIRST_STEPS,
        )
        return TaskProcess(observed, self._last_fit.x)

    def _extend_process(self, sources: Sources, process: "TaskProcess") -> "TaskProcess":
        """Condition the model also on the evaluations since the last update, without a fit."""
        # Observations are those of earlier tasks, then the used ones of this task.
        first_new_row = len(sources.points) + len(self._used_rows)
        new_rows = np.arange(self._conditioned_count, self.evaluation_count)
        self._used_rows = np.append(self._used_rows, new_rows)
        observed = self._collect_observations(sources)
        # All losses are passed, as new ones change how they are standardised.
        return process.with_observations(observed.X[first_new_row:], observed.y)

    def _collect_observations(self, sources: Sources) -> "Observations":
        """Join the earlier tasks' evaluations and the used ones of this task.

        All losses together are scaled to a standard deviation of 1, which the priors assume.
        """
        from hpobench_ordered.methods._gp.model import Kernel
        from hpobench_ordered.methods._gp.tasks import Observations

        if self._kernel is None:
            self._kernel = Kernel(self.group_features())
        used_losses = self.evaluated_losses()[self._used_rows]
        current_losses = standardise_robustly(
            used_losses, compute_median(used_losses), sources.nearest_unit
        )
        # The earlier tasks come first, the current one last, as in `counts` and `distances`.
        y = self.transform_losses(np.concatenate([sources.losses, current_losses]))
        points = np.concatenate([sources.points, self.evaluated_units()[self._used_rows]])
        counts = np.append(sources.counts, len(current_losses))
        return Observations(
            X=self._join_inputs(points, np.repeat(self._task_inputs, counts, axis=0)),
            y=y / (y.std() or 1.0),  # unchanged if all are equal
            counts=counts,
            distances=self._distances,
            kernel=self._kernel,
            level=self.priors().level,
        )


def select_fitted_part(observed: "Observations", sources: Sources) -> "Observations":
    """Select the observations that the hyperparameters are fitted to.

    They are some of the earlier tasks' (`Sources.fitted_rows`) and all of this task's, which come
    last.
    """
    current_rows = np.arange(len(sources.points), len(observed.y))
    rows = np.append(sources.fitted_rows, current_rows)
    counts = np.append(sources.fitted_counts, len(current_rows))
    return replace(observed, X=observed.X[rows], y=observed.y[rows], counts=counts)


def compute_task_distances(
    history: Sequence[Mapping[str, float]], context: Mapping[str, float]
) -> FloatArray:
    """Compute the distances of all pairs of T tasks, those of the history and the current one.

    Tasks are ranked by each context quantity that all of them have; the distance is the mean
    difference of ranks. Without such a quantity it is the difference of the tasks' indices, which
    is the same as with a single quantity that grows from task to task.

    Args:
        history: Contexts of the earlier tasks, oldest first.
        context: Context of the current task.

    Returns:
        Distances, shape (T, T), the current task last.
    """
    table = tabulate_contexts(history, context)
    has_shared_context = table.shape[1] > 0
    if not has_shared_context:
        table = np.arange(float(len(table)))[:, None]  # the tasks' indices
    ranks = np.stack([rank_values(column) for column in table.T])  # (quantities, tasks)
    rank_differences = np.abs(ranks[:, :, None] - ranks[:, None, :])
    distances: FloatArray = rank_differences.mean(axis=0)
    return distances


def compute_task_inputs(
    history: Sequence[Mapping[str, float]], context: Mapping[str, float]
) -> FloatArray:
    """Compute the model's inputs of all tasks, those of the history and the current one.

    They are the context quantities that all tasks have, standardised, if there are at least
    `MIN_INPUTS`. A single one only orders the tasks, as a date does: a drift continues from the
    last task, which a smooth function of time does not express. Without earlier tasks there are
    none.

    Args:
        history: Contexts of the earlier tasks, oldest first.
        context: Context of the current task.

    Returns:
        The inputs, shape (T, q), the current task last; q is 0 if there are none.
    """
    table = tabulate_contexts(history, context)
    if not history or table.shape[1] < MIN_INPUTS:
        return np.empty((len(table), 0))
    return standardise_contexts(table)


def rank_values(values: FloatArray) -> IntArray:
    """Rank values (n,) from 0, ascending; equal values have equal ranks, without gaps."""
    _, ranks = np.unique(values, return_inverse=True)
    return ranks


def choose_good_and_random(losses: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Choose the best and random other losses; return their indices, ascending.

    The share `GOOD_SHARE` of those chosen are the best.

    Args:
        losses: The losses, shape (n,).
        count: Number of losses to choose; one if it is 0, so that no task is left without any.
        rng: Draws the others; not used if all losses are chosen.
    """
    count = max(1, count)
    if len(losses) <= count:
        return np.arange(len(losses))
    order = np.argsort(losses, kind="stable")
    good_count = math.ceil(GOOD_SHARE * count)
    others = rng.permutation(order[good_count:])[: count - good_count]
    return np.sort(np.append(order[:good_count], others))


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
        kind=MethodKind.ANY_HISTORY,
        version=6,
    ),
)
