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
from hpobench_ordered.methods.base import MethodKind, MethodSpec
from hpobench_ordered.methods.bo import FIT_INTERVAL, BayesianOptimisation, choose_best_and_random

if TYPE_CHECKING:
    from hpobench_ordered.methods._gp.model import TaskPriors
    from hpobench_ordered.methods._gp.tasks import Fit, Observations, TaskProcess

LOGGER = logging.getLogger(__name__)

MAX_FITTED_SOURCES = 200
"""The hyperparameters are fitted to at most this many evaluations of earlier tasks, of each task
the same number."""
MIN_PER_TASK = 25
"""The model uses as many evaluations of each earlier task as the fit, but at least this many, or
all that the task has."""


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
        """Draw evaluations of each task for the model, and a part of them for its fits.

        Args:
            tasks: Finite evaluations of at least one earlier task on the current search space, the
                nearest task last.
            rng: Draws the evaluations.
        """
        max_per_task = max(MIN_PER_TASK, MAX_FITTED_SOURCES // len(tasks))
        rows_of_tasks = [draw_rows(len(task), max_per_task, rng) for task in tasks]
        values = [task.values[rows] for task, rows in zip(tasks, rows_of_tasks, strict=True)]
        losses, units = standardise_chosen_losses(tasks, rows_of_tasks)
        fitted_rows, fitted_counts = draw_fitted_rows([len(rows) for rows in rows_of_tasks], rng)

        # The best configuration of each task is a candidate for the first trials.
        nearest_first = tuple(reversed(tasks))
        best_values = np.stack([task.values[task.losses.argmin()] for task in nearest_first])
        space = tasks[0].space
        return cls(
            points=space.canonical(space.encode(np.concatenate(values))),
            losses=np.concatenate(losses),
            counts=np.array([len(rows) for rows in rows_of_tasks]),
            fitted_rows=fitted_rows,
            fitted_counts=fitted_counts,
            best_points=space.canonical(space.encode(best_values)),
            best_values=best_values,
            nearest_unit=units[-1],
        )


def standardise_chosen_losses(
    tasks: Sequence[Evaluations], rows_of_tasks: Sequence[IntArray]
) -> tuple[list[FloatArray], list[float]]:
    """Standardise some losses of each task robustly.

    The centre and the unit of a task's losses are computed from all of its losses.

    Args:
        tasks: Finite evaluations of each task.
        rows_of_tasks: Rows of the chosen evaluations of each task, shape (n,).

    Returns:
        The standardised losses (n,) of each task, and the unit of each task's losses.
    """
    centres = [compute_centre(task) for task in tasks]
    units = compute_units([task.losses for task in tasks], centres)
    standardised_losses = []
    for task, rows, centre, unit in zip(tasks, rows_of_tasks, centres, units, strict=True):
        standardised_losses.append(standardise_robustly(task.losses[rows], centre, unit))
    return standardised_losses, units


def draw_fitted_rows(counts: Sequence[int], rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw the evaluations to which the model's hyperparameters are fitted.

    There are at most `MAX_FITTED_SOURCES`, divided evenly among the tasks.

    Args:
        counts: Number of the model's evaluations of each task.
        rng: Draws the evaluations.

    Returns:
        Rows of the drawn evaluations when those of all tasks are joined, and how many there are of
        each task, shape (T - 1,).
    """
    max_per_task = MAX_FITTED_SOURCES // len(counts)
    drawn_rows = []
    first_row = 0  # of the task's evaluations among those of all tasks
    for count in counts:
        drawn_rows.append(first_row + draw_rows(count, max_per_task, rng))
        first_row += count
    return np.concatenate(drawn_rows), np.array([len(rows) for rows in drawn_rows])


class OrderedGP(BayesianOptimisation):
    """Bayesian optimisation with one Gaussian process over the last tasks and the current one.

    Every task has its own level and scale. The correlation of two tasks decays with their distance,
    and has a factor that is the same for any two (`_gp.tasks`). The model learns both from the
    earlier tasks, and so whether their order matters.

    The first trial is the best configuration of an earlier task that has the lowest posterior mean.
    Later trials, too, are best configurations of earlier tasks, the one with the highest expected
    improvement, until all were tried, unless another candidate is clearly better: by its expected
    improvement, or as the model is sure. Other candidates are random, and near good configurations.

    The distance of two tasks is the difference of their contexts, compared by rank; without a
    common context quantity, the difference of their indices in the history. Two or more common
    quantities are inputs of the model, too. Without a finite evaluation of an earlier task it is
    `bo`.

    Attributes:
        max_earlier_tasks: Number of nearest earlier tasks that the model uses.
        random_candidates: Number of random candidates of a suggestion.
        near_candidates: Number of candidates near good configurations.
        nearest_bests: Number of earlier tasks, the nearest ones, near whose best configurations
            candidates are drawn.
    """

    max_earlier_tasks = 24
    random_candidates = 2000
    near_candidates = 1000
    nearest_bests = 8

    def prepare(self) -> None:
        """Choose the evaluations of earlier tasks to use."""
        converted = convert_history(self.history, self.space, self.rng)
        history = replace_failed_evaluations(converted)
        nearest_tasks = self._choose_nearest_tasks(history)
        self.sources: Sources | None = None  # None without an earlier task
        if nearest_tasks:
            self.sources = Sources.choose(nearest_tasks, self.rng)
        super().prepare()
        if self.sources:
            # The model of earlier tasks makes initial random trials unnecessary.
            self.random_trials = 0

        self._process: TaskProcess | None = None  # the model; None before the first suggestion
        # The last fit of the hyperparameters, from which the next one continues.
        self._last_fit: Fit | None = None
        # Rows of this task's evaluations that the model uses.
        self._used_rows: IntArray = np.empty(0, dtype=np.int64)
        # Number of this task's evaluations when the model was updated last.
        self._conditioned_count = 0
        # Number of this task's evaluations at which the hyperparameters are fitted again.
        self._next_fit_count = 0

    def _choose_nearest_tasks(self, history: Sequence[Evaluations]) -> list[Evaluations]:
        """Choose the `max_earlier_tasks` tasks that are nearest to the current one.

        Sets `_distances`, the distances (T, T) of all pairs of the chosen tasks and the current
        one, which comes last, and `_task_inputs`, their inputs (T, q) of the model.

        Returns:
            The chosen tasks, the nearest one last.
        """
        contexts = [task.context for task in history]
        distances = compute_task_distances(contexts, self.context)
        distances_from_current = distances[-1, :-1]
        # Farthest first; of equally near tasks, the latest comes last.
        nearest_last = np.argsort(-distances_from_current, kind="stable")
        chosen_rows = nearest_last[-self.max_earlier_tasks :]

        current_row = len(history)
        model_rows = np.append(chosen_rows, current_row)
        self._distances = distances[np.ix_(model_rows, model_rows)]
        self._task_inputs = compute_task_inputs(contexts, self.context)[model_rows]
        return [history[row] for row in chosen_rows]

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
        """Compute inputs of the model (m, p) for configurations in the unit cube, (m, d).

        They are the features of a configuration, followed by the inputs that describe the current
        task, which are the same for all.
        """
        current_task_inputs = np.tile(self._task_inputs[-1], (len(unit), 1))
        return self._join_inputs(unit, current_task_inputs)

    def _join_inputs(self, unit: FloatArray, task_inputs: FloatArray) -> FloatArray:
        """Compute inputs of the model (m, p) for configurations on any tasks.

        Args:
            unit: The configurations in the unit cube, shape (m, d).
            task_inputs: The inputs that describe the task of each, shape (m, q).
        """
        configuration_features = super().features(unit)
        return np.concatenate([configuration_features, task_inputs], axis=1)

    def group_features(self) -> IntArray:
        """Return the index of the length scale of each input of the model, (p,).

        Each hyperparameter has a length scale, and so has each context quantity.
        """
        quantity_count = self._task_inputs.shape[1]
        return append_task_groups(super().group_features(), quantity_count)

    def priors(self) -> "TaskPriors":
        """Return the priors of the model's hyperparameters, those of `TaskPriors` by default."""
        from hpobench_ordered.methods._gp.model import TaskPriors

        return TaskPriors()

    def make_scorer(self) -> Scorer:
        """Condition the model, and make the function that scores candidates.

        The score is the log expected improvement on the lowest loss so far. For the first
        suggestion there is no loss to improve on, so that the score is minus the posterior mean.
        Without an earlier task it is the score of `bo`.
        """
        if self.sources is None:
            return super().make_scorer()

        process = self._update_process(self.sources)
        is_first_suggestion = self.evaluation_count == 0 and not self._pending
        if is_first_suggestion:
            return self._make_mean_scorer(process)

        lowest_loss = self._find_lowest_loss(process, self.sources)
        if self._pending:  # they count as evaluated, as if they had given the posterior mean
            process, pending_means = process.with_fantasies(self.features(self.pending_units()))
            lowest_loss = min(lowest_loss, float(pending_means.min()))

        def score_roughly(unit: FloatArray) -> FloatArray:
            """Compute log expected improvement (m,) of candidates in the unit cube, (m, d)."""
            # Low scores cannot decide and may be rough, which saves time. Those within the distance
            # `slack` of the largest are exact, as candidates near good configurations are chosen
            # only if their score is larger than others by `LOG_ADVANTAGE`.
            return process.score_candidates(self.features(unit), lowest_loss, slack=LOG_ADVANTAGE)

        def score(unit: FloatArray) -> FloatArray:
            """Score candidates in the unit cube, (m, d), such that the best untried one is exact.

            Its score would be rough if a tried candidate had a larger one. Then tried candidates
            have the score minus infinity, unless all were tried.
            """
            scores = score_roughly(unit)
            best_row = scores.argmax()
            best_values = self.space.decode(unit[[best_row]])[0]
            if best_values not in self._tried:
                return scores

            is_tried = self._tried.find_tried(self.space.decode(unit))
            if is_tried.all():
                return scores
            scores[is_tried] = -np.inf
            scores[~is_tried] = score_roughly(unit[~is_tried])
            return scores

        return score

    def _make_mean_scorer(self, process: "TaskProcess") -> Scorer:
        """Make the function that scores candidates by minus their posterior mean loss."""

        def score(unit: FloatArray) -> FloatArray:
            """Compute minus the posterior mean (m,) of candidates in the unit cube, (m, d)."""
            return -process.predict_mean(self.features(unit))

        return score

    def _find_lowest_loss(self, process: "TaskProcess", sources: Sources) -> float:
        """Find the lowest loss of this task so far, on the scale of the model's predictions.

        Before the first evaluation, it is the lowest loss that the model predicts on this task for
        the best configurations of the earlier tasks.
        """
        if self.evaluation_count > 0:
            return float(process.scale_current_losses().min())
        predicted_means = process.predict_mean(self.features(sources.best_points))
        return float(predicted_means.min())

    def transform_losses(self, y: FloatArray) -> FloatArray:
        """Compress the standardised losses y (n,) above their centre, 0, to log(1 + y).

        Losses below the centre stay as they are. High losses are compressed because the degree to
        which a configuration is bad says little about where the good ones are.
        """
        logarithms = np.log1p(np.maximum(y, 0.0))  # no logarithm of a negative number
        return np.where(y > 0.0, logarithms, y)

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

        As long as a best configuration of an earlier task was not tried, another candidate is
        chosen only if it is clearly better (`_find_clearly_better`).

        Args:
            scorer: Scores candidates in the unit cube.
            near_best: Candidates near good configurations, in the unit cube.
        """
        if self.sources is None:
            return super()._choose_best_untried(scorer, near_best)
        # The same configurations in two forms: points of the unit cube, which are scored, and
        # coded values, which are suggested.
        scores = scorer(self.sources.best_points)
        best_first = np.argsort(-scores, kind="stable")
        for row in best_first:
            values: FloatArray = self.sources.best_values[row]
            if values not in self._tried:
                better = self._find_clearly_better(self.sources.best_points[row], scorer, near_best)
                return values if better is None else better
        return super()._choose_best_untried(scorer, near_best)

    def _find_clearly_better(
        self, point: FloatArray, scorer: Scorer, near_best: FloatArray | None
    ) -> FloatArray | None:
        """Find a candidate that is clearly better than the best configuration of an earlier task.

        It is the candidate with the highest expected improvement, if that is higher by the factor
        for which `LOG_ADVANTAGE` stands; otherwise one that the model is sure to be better. Before
        the first evaluation, none is clearly better.

        Args:
            point: The configuration of an earlier task, in the unit cube, shape (d,).
            scorer: Scores candidates in the unit cube.
            near_best: Candidates near good configurations, in the unit cube.

        Returns:
            The coded values of the candidate, (d,); None if there is none.
        """
        process = self._process
        if process is None or not self.evaluation_count:
            return None
        values = super()._choose_best_untried(scorer, near_best)
        unit = self.space.canonical(self.space.encode(values[None]))
        score, score_of_point = scorer(np.concatenate([unit, point[None]]))
        if score > score_of_point + LOG_ADVANTAGE:
            return values
        return self._find_surely_better(process, point, near_best)

    def _find_surely_better(
        self, process: "TaskProcess", point: FloatArray, near_best: FloatArray | None
    ) -> FloatArray | None:
        """Find a candidate that is surely better than a configuration and this task's evaluations.

        The candidate is surely better if the sum of its posterior mean and standard deviation is
        below the posterior mean of the configuration and below the lowest loss of this task. Only
        the untried candidate with the lowest sum is looked at.

        Args:
            process: The model.
            point: The configuration in the unit cube, shape (d,).
            near_best: Candidates near good configurations; other candidates are not looked at.

        Returns:
            The coded values of the candidate, (d,); None if there is none.
        """
        if near_best is None:
            return None
        (mean_of_point,) = process.predict_mean(self.features(point[None]))
        lowest_loss = process.scale_current_losses().min()
        loss_to_beat = min(mean_of_point, lowest_loss)

        # Standard deviations take most of the time; those of the others would not matter.
        means = process.predict_mean(self.features(near_best))
        unit = near_best[means < loss_to_beat]
        if not len(unit):
            return None
        means, sds = process.predict(self.features(unit))
        upper_bounds = means + sds
        best_untried = self._tried.find_best_untried(unit, -upper_bounds)
        if best_untried is None:  # all candidates were tried
            return None
        row, values = best_untried
        is_surely_better = upper_bounds[row] < loss_to_beat
        return values if is_surely_better else None

    def _draw_near_best(self) -> FloatArray | None:
        """Draw candidates near the best configurations of this task and of earlier ones.

        They are drawn around the best configuration of this task, and around those of the
        `nearest_bests` nearest earlier tasks. Without an earlier task they are those of `bo`.

        Returns:
            Candidates in the unit cube, (m, d). None in a small space, where all configurations are
            candidates, and on a plateau, where many configurations are equally good.
        """
        if self.sources is None:
            return super()._draw_near_best()
        if not self._searches_near_best or self._is_on_plateau:
            return None
        best_first = np.argsort(self.evaluated_losses(), kind="stable")
        best_of_this_task = self.evaluated_units()[best_first[:1]]  # none before the first trial
        bests_of_nearest_tasks = self.sources.best_points[: self.nearest_bests]
        centres = np.concatenate([best_of_this_task, bests_of_nearest_tasks])
        near = draw_near(self.region, centres, self._near_rng, count=self.near_candidates)
        # Some equal their centre, and are no new candidates. Centres are used in turn.
        centre_of_each = np.resize(centres, near.shape)
        is_moved = (near != centre_of_each).any(axis=1)
        moved: FloatArray = near[is_moved]
        return moved

    def _update_process(self, sources: Sources) -> "TaskProcess":
        """Bring the model up to date with the evaluations told so far, and return it.

        Its hyperparameters are fitted at the first call, and again after every `FIT_INTERVAL`
        evaluations; in between it is only conditioned on the new evaluations.

        Args:
            sources: The evaluations of earlier tasks.
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
        """Choose evaluations of this task, fit the hyperparameters, and condition a new model."""
        from hpobench_ordered.methods._gp.model import MAX_ITERATIONS
        from hpobench_ordered.methods._gp.tasks import TaskProcess, fit_hyperparameters

        # Until the next fit, the model uses these evaluations of this task, and later ones.
        self._used_rows = choose_best_and_random(self.evaluated_losses(), self.rng)
        observed = self._collect_observations(sources)
        self._last_fit = fit_hyperparameters(
            select_fitted_part(observed, sources),
            self.priors(),
            self._last_fit,
            steps=MAX_ITERATIONS,
        )
        return TaskProcess(observed, self._last_fit.x)

    def _extend_process(self, sources: Sources, process: "TaskProcess") -> "TaskProcess":
        """Condition the model also on the evaluations since the last update, without a fit."""
        # Observations are those of earlier tasks, then the used ones of this task.
        old_observation_count = len(sources.points) + len(self._used_rows)
        new_rows = np.arange(self._conditioned_count, self.evaluation_count)
        self._used_rows = np.append(self._used_rows, new_rows)
        observed = self._collect_observations(sources)
        new_X = observed.X[old_observation_count:]
        # All losses are passed, the old ones, too, as new losses change how all are standardised.
        return process.with_observations(new_X, observed.y)

    def _collect_observations(self, sources: Sources) -> "Observations":
        """Join the evaluations of the earlier tasks and the used ones of this task.

        This task's losses are standardised by their median and the unit of the nearest task, as a
        few losses do not determine a unit. All losses together are scaled to a standard deviation
        of 1, which the priors assume.
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
        sd = y.std() or 1.0  # 1 if all losses are equal
        points = np.concatenate([sources.points, self.evaluated_units()[self._used_rows]])
        counts = np.append(sources.counts, len(current_losses))
        task_inputs = np.repeat(self._task_inputs, counts, axis=0)  # of each evaluation's task
        return Observations(
            X=self._join_inputs(points, task_inputs),
            y=y / sd,
            counts=counts,
            distances=self._distances,
            kernel=self._kernel,
            level=self.priors().level,
        )


def select_fitted_part(observed: "Observations", sources: Sources) -> "Observations":
    """Select the observations to which the hyperparameters are fitted.

    They are some of the earlier tasks' observations, those at `Sources.fitted_rows`, and all of
    this task's, which come last.
    """
    current_rows = np.arange(len(sources.points), len(observed.y))
    rows = np.append(sources.fitted_rows, current_rows)
    counts = np.append(sources.fitted_counts, len(current_rows))
    return replace(observed, X=observed.X[rows], y=observed.y[rows], counts=counts)


def compute_task_distances(
    history: Sequence[Mapping[str, float]], context: Mapping[str, float]
) -> FloatArray:
    """Compute the distances of all pairs of T tasks, those of the history and the current one.

    Tasks are ranked by each context quantity that all of them have. The distance of two tasks is
    the mean of the absolute differences of their ranks. Without such a quantity it is the
    difference of their indices in the history.

    Args:
        history: Contexts of the earlier tasks, oldest first.
        context: Context of the current task.

    Returns:
        Distances, shape (T, T), the current task last.
    """
    table = tabulate_contexts(history, context)  # (T, common quantities)
    has_common_quantity = table.shape[1] > 0
    if not has_common_quantity:
        indices = np.arange(float(len(table)))
        table = indices[:, None]  # the index takes the place of a quantity
    ranks = np.stack([rank_values(quantity) for quantity in table.T])  # (quantities, T)
    rank_differences = np.abs(ranks[:, :, None] - ranks[:, None, :])  # (quantities, T, T)
    distances: FloatArray = rank_differences.mean(axis=0)
    return distances


def compute_task_inputs(
    history: Sequence[Mapping[str, float]], context: Mapping[str, float]
) -> FloatArray:
    """Compute the inputs of the model that describe each task of the history and the current one.

    They are the standardised context quantities that all tasks have, if there are two or more of
    them. A single quantity, such as a date, is no input but only orders the tasks: a drift
    continues from the last task, which a smooth function of the date does not express. Without
    earlier tasks there are no inputs.

    Args:
        history: Contexts of the earlier tasks, oldest first.
        context: Context of the current task.

    Returns:
        The inputs, shape (T, q), the current task last; q is 0 if there are no inputs.
    """
    table = tabulate_contexts(history, context)  # (T, common quantities)
    task_count, quantity_count = table.shape
    if not history or quantity_count <= 1:
        return np.empty((task_count, 0))
    return standardise_contexts(table)


def rank_values(values: FloatArray) -> IntArray:
    """Rank values (n,) from 0 for the lowest; equal values share a rank, and no rank is skipped."""
    # `np.unique` also gives the index of each value among the sorted distinct ones: its rank.
    _, ranks = np.unique(values, return_inverse=True)
    return ranks


def draw_rows(available: int, count: int, rng: np.random.Generator) -> IntArray:
    """Draw `count` of the rows from 0 to `available` - 1, or all if they are fewer; ascending."""
    if available <= count:
        return np.arange(available)
    drawn = rng.permutation(available)[:count]
    return np.sort(drawn)


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
        version=12,
    ),
)
