"""Base of the methods that score random candidates: initial trials, and untried configurations.

Configurations are arrays in one of two codings:

=============  ======  ============================================================================
name           shape   meaning
=============  ======  ============================================================================
values         (d,)    coded values: a number as it is, a choice as its index; NaN where inactive
unit           (d,)    the same as a point of the unit cube, as models see it
=============  ======  ============================================================================

d is the number of hyperparameters; several configurations have shape (m, d).
"""

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.errors import HPOBenchOrderedError
from hpobench_ordered.methods._candidates import (
    CANDIDATES,
    LOG_ADVANTAGE,
    Region,
    TriedConfigurations,
    configuration_key,
    draw_near,
    iter_candidate_blocks,
)
from hpobench_ordered.methods.base import Method

if TYPE_CHECKING:
    from hpobench_ordered.data.history import Evaluations

RANDOM_DRAWS = 100
"""Number of random configurations looked at for an untried one before a systematic search."""

Scorer = Callable[[FloatArray], FloatArray]
"""Scores (m,), higher is better, of candidates in the unit cube, (m, d)."""


class ModelError(HPOBenchOrderedError):
    """A model cannot be fitted to the evaluations."""


class ModelBased(Method):
    """Makes initial trials, then suggests the best of about 1000 random candidates by a score.

    No configuration is suggested twice before all others have been tried, as far as
    `iter_candidate_blocks` can find them; after that, the one with the highest score is repeated.
    Initial configurations are suggested in order, without repetitions.

    Several configurations may be asked for before the first loss is told. A loss that is not finite
    means a failed evaluation and counts as the largest finite loss so far.

    `fallbacks` counts suggestions made at random because the model could not be fitted.

    Attributes:
        random_trials: Number of results up to which configurations after the initial ones are
            random, drawn exactly as by random search.
        random_fraction: Share of the later suggestions that are random, too.
        searches_near_best: Whether there are also candidates near the best configuration of this
            task (`draw_near`); for methods whose score is a log expected improvement.
        region: The part of the space that is searched; initial configurations may lie elsewhere.
    """

    random_trials = 3
    random_fraction = 0.0
    searches_near_best = False

    def prepare(self) -> None:
        """Set up the region and the initial configurations, before the first suggestion.

        Configurations are told apart by `configuration_key`, the bytes of their coded values.
        """
        self.region = self.choose_region()
        self._initial = deque(self.initial_configurations())  # those not suggested yet
        self._tried = TriedConfigurations(self.space)  # those suggested or evaluated
        # Coded values of configurations that were suggested and not evaluated yet, by their key.
        self._pending: dict[bytes, FloatArray] = {}
        # The evaluated ones, points of the unit cube, and their losses, in the order of evaluation.
        self._evaluated_units: list[FloatArray] = []
        self._losses: list[float] = []

        # In a small region all configurations are candidates, and no others are needed.
        is_large_region = self.region.size > CANDIDATES
        self._searches_near_best = self.searches_near_best and is_large_region
        # Candidates near the best configuration have a generator of their own, so that all other
        # random numbers are the same with and without them.
        self._near_rng = self.rng.spawn(1)[0] if self._searches_near_best else self.rng
        # Keys of the suggestions that were candidates near the best configuration.
        self._suggested_near_best: set[bytes] = set()
        # Whether the loss of such a suggestion equalled an earlier loss.
        self._is_on_plateau = False

    def initial_configurations(self) -> Sequence[Config]:
        """Configurations to evaluate first, in this order. Default: none."""
        return ()

    def choose_region(self) -> Region:
        """Choose the part of the space to search. Default: all of it."""
        return Region(self.space)

    def ask(self) -> Config:
        """Suggest the next initial configuration or, after the initial ones, a candidate.

        The suggestion counts as tried, so that it is not suggested again, and is pending until its
        loss is told.
        """
        values = self._next_initial()
        if values is None:  # no initial configuration is left
            if self.evaluation_count < self.random_trials:
                values = self._suggest_before_model()
            else:
                values = self._suggest_with_model()
        key = self._tried.add(values)
        self._pending[key] = values
        values_as_row = values[None]
        return self.space.configs(values_as_row)[0]

    def tell(self, config: Config, loss: float) -> None:
        """Add an evaluation; the configuration need not be one that was asked for.

        It counts as tried, and is no longer pending.

        Raises:
            InvalidConfigError: The configuration is not valid in the search space.
        """
        values = self.space.row(config)
        key = self._tried.add(values)
        self._pending.pop(key, None)
        # A configuration near the best one that is exactly as good as an earlier one lies on a
        # plateau, where neighbours are of no use. Failures are equally bad, not equally good.
        is_as_good = math.isfinite(loss) and loss in self._losses
        if key in self._suggested_near_best and is_as_good:
            self._is_on_plateau = True

        unit = self.space.encode(values[None])[0]
        self._evaluated_units.append(unit)
        self._losses.append(loss)

    @property
    def evaluation_count(self) -> int:
        """Number of evaluations told so far, n."""
        return len(self._losses)

    def evaluated_units(self) -> FloatArray:
        """Return the configurations evaluated on this task, in the unit cube, shape (n, d).

        Inactive hyperparameters are NaN.
        """
        # Reshaped so that there are d columns even before the first evaluation.
        return np.array(self._evaluated_units).reshape(self.evaluation_count, self.space.dimension)

    def pending_units(self) -> FloatArray:
        """Return the configurations asked for and not told yet, in the unit cube, shape (k, d).

        Inactive hyperparameters are NaN.
        """
        rows = list(self._pending.values())  # coded values, (d,) each
        # Reshaped so that there are d columns even if none is pending.
        values = np.array(rows).reshape(-1, self.space.dimension)
        return self.space.encode(values)

    def evaluated_losses(self) -> FloatArray:
        """Return the losses told so far, shape (n,), in which failures have the worst finite loss.

        If all evaluations failed, all losses are 0.
        """
        return replace_failed_losses(np.array(self._losses, dtype=np.float64))

    @abstractmethod
    def make_scorer(self) -> Scorer:
        """Make the function that scores candidates, for instance by fitting a model.

        Raises:
            ModelError: Fitting failed; the suggestion is then made at random.
        """

    def iter_candidates(self) -> Iterator[FloatArray]:
        """Yield blocks of candidates in the unit cube, (m, d); see `iter_candidate_blocks`."""
        return iter_candidate_blocks(self.region, self.rng)

    def _next_initial(self) -> FloatArray | None:
        """Take the next initial configuration that was not tried, as coded values (d,).

        It is removed from the initial ones, and so are those before it, which were tried already.

        Returns:
            Its coded values; None if no initial configuration is left.
        """
        while self._initial:
            values = self.space.row(self._initial.popleft())
            if values not in self._tried:
                return values
        return None

    def _draw_untried(self) -> FloatArray:
        """Draw coded values (d,) of a random configuration, untried if possible.

        Many configurations are drawn at once, which is fast, but the generator is left as if they
        had been drawn one by one until an untried one came. So suggestions are the same as random
        search's.
        """
        # Mostly the first configuration is untried; only otherwise many are drawn.
        for count in (1, RANDOM_DRAWS - 1):
            state_before = self.rng.bit_generator.state
            values = self.space.decode(self.region.sample_unit(self.rng, count))
            untried_row = self._tried.find_first_untried(values)
            if untried_row is not None:
                # Set the generator back, and draw again only as many as were needed: `draw` takes
                # the same random numbers as `sample_unit`.
                self.rng.bit_generator.state = state_before
                self.region.draw(self.rng, untried_row + 1)
                untried: FloatArray = values[untried_row]
                return untried

        # Few are untried: search all configurations if they are not too many. Scores are random, so
        # that any untried one may be chosen.
        def score_at_random(unit: FloatArray) -> FloatArray:
            """Give each configuration a random score."""
            return self.rng.random(len(unit))

        return self._choose_best_untried(score_at_random)

    def _suggest_before_model(self) -> FloatArray:
        """Return coded values (d,) of a suggestion before there is a model: a random one.

        Methods that know something better override this.
        """
        return self._draw_untried()

    def _suggest_with_model(self) -> FloatArray:
        """Return coded values (d,) of the untried candidate with the highest score.

        The share `random_fraction` of suggestions is random. If no model can be fitted, the
        suggestion is random, too, and is counted in `fallbacks`.
        """
        if self.random_fraction and self.rng.random() < self.random_fraction:
            return self._draw_untried()
        try:
            scorer = self.make_scorer()
        except ModelError:
            self.fallbacks += 1
            return self._draw_untried()
        return self._choose_best_untried(scorer, self._draw_near_best())

    def _draw_near_best(self) -> FloatArray | None:
        """Draw candidates near the best configuration so far, if the method uses such candidates.

        They come from a generator of their own, `_near_rng`, so that random candidates are the same
        with and without them.

        Returns:
            Candidates in the unit cube, (m, d); None for methods that do not search near the best
            configuration, before the first evaluation, and on a plateau, where an earlier such
            candidate was exactly as good as a known configuration.
        """
        if not self._searches_near_best or self._is_on_plateau or not self.evaluation_count:
            return None
        best_row = int(np.argmin(self.evaluated_losses()))
        best_unit = self._evaluated_units[best_row]
        return draw_near(self.region, best_unit[None], self._near_rng)

    def _choose_best_untried(
        self, scorer: Scorer, near_best: FloatArray | None = None
    ) -> FloatArray:
        """Return coded values (d,) of the best untried candidate in the first block that has one.

        Candidates come in blocks from `iter_candidates`, in the unit cube. If all have been tried,
        the best of all is repeated.

        Args:
            scorer: Scores candidates.
            near_best: Candidates of `_draw_near_best`, which are added to the first block. Their
                scores are logarithms of expected improvement.
        """
        best_score = -math.inf  # of the candidates seen so far, which were all tried
        best_unit: FloatArray | None = None
        for block in self.iter_candidates():
            unit = block if near_best is None else np.concatenate([block, near_best])
            scores = scorer(unit)
            # Candidates near the best configuration come after the block. They are chosen only if
            # they are better by a factor.
            first_near_best = len(block)
            scores[first_near_best:] -= LOG_ADVANTAGE

            untried = self._tried.find_best_untried(unit, scores)
            if untried is not None:
                row, values = untried
                is_near_best = row >= first_near_best
                if is_near_best:
                    self._suggested_near_best.add(configuration_key(values))
                return values

            near_best = None  # all were tried; further blocks go without them
            top_row = int(np.argmax(scores))
            # The first candidate counts even if its score is minus infinity.
            if best_unit is None or scores[top_row] > best_score:
                best_score = float(scores[top_row])
                best_unit = unit[top_row]
        assert best_unit is not None  # there is at least one block
        repeated: FloatArray = self.space.decode(best_unit[None])[0]
        return repeated


class DesignOnly(ModelBased):
    """Initial trials, then random untried configurations."""

    random_trials = 0

    def make_scorer(self) -> Scorer:
        """Make a function that scores candidates at random, so that any untried one is chosen."""
        return lambda unit: self.rng.random(len(unit))


def replace_failed_losses(losses: FloatArray) -> FloatArray:
    """Replace losses that are not finite, those of failed evaluations, by the largest finite one.

    Args:
        losses: Shape (n,).

    Returns:
        Finite losses, (n,); all 0 if none was finite.
    """
    is_finite = np.isfinite(losses)
    if is_finite.all():
        return losses
    if not is_finite.any():
        return np.zeros(len(losses))
    worst = losses[is_finite].max()
    return np.where(is_finite, losses, worst)


def replace_failed_evaluations(history: "Sequence[Evaluations]") -> "list[Evaluations]":
    """Give failed evaluations the worst value of their task; remove tasks on which all failed.

    If a model did not know of failed evaluations, it would take the region where they failed for
    untried.

    Args:
        history: Evaluations of each task; the order of tasks is kept.
    """
    from dataclasses import replace

    replaced = []
    for task in history:
        is_finite = np.isfinite(task.losses)
        if not is_finite.any():
            continue
        if is_finite.all():
            replaced.append(task)
        else:
            worst_row = task.losses[is_finite].argmax()
            # In the units of the objective, from which losses are computed.
            worst_value = task.objective[is_finite][worst_row]
            objective = np.where(is_finite, task.objective, worst_value)
            replaced.append(replace(task, objective=objective))
    return replaced


def remove_failed_evaluations(history: "Sequence[Evaluations]") -> "list[Evaluations]":
    """Remove evaluations whose loss is not finite, and tasks without finite losses.

    Args:
        history: Evaluations of each task; the order of tasks is kept.
    """
    from dataclasses import replace

    cleaned = []
    for task in history:
        is_finite = np.isfinite(task.losses)
        if not is_finite.any():
            continue
        if is_finite.all():
            cleaned.append(task)
        else:
            # Losses are computed from the objective, so the objective is cut.
            finite_values = task.values[is_finite]
            finite_objective = task.objective[is_finite]
            cleaned.append(replace(task, values=finite_values, objective=finite_objective))
    return cleaned
