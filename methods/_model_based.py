"""Base of the methods that score random candidates: initial trials, and untried configurations."""

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
    from hpobench_ordered.core.history import Evaluations

RANDOM_DRAWS = 100  # of single configurations, before a systematic search for untried ones

Scorer = Callable[[FloatArray], FloatArray]
"""Scores (m,), higher is better, of candidates, canonical unit vectors (m, d)."""


class ModelError(HPOBenchOrderedError):
    """A model cannot be fitted to the evaluations."""


class ModelBased(Method):
    """Initial trials, then the candidate that scores best among about 1000 random ones.

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
        """Set up the region and the initial configurations."""
        self.region = self.choose_region()
        self._initial = deque(self.initial_configurations())
        self._tried = TriedConfigurations(self.space)
        self._pending: dict[bytes, FloatArray] = {}
        self._told: list[FloatArray] = []
        self._losses: list[float] = []
        # In a small region all configurations are candidates anyway.
        self._searches_near_best = self.searches_near_best and self.region.size > CANDIDATES
        # A separate generator, so that random candidates are the same with and without these.
        self._near_rng = self.rng.spawn(1)[0] if self._searches_near_best else self.rng
        self._steps: set[bytes] = set()  # suggestions near the best one, not told yet
        self._on_plateau = False

    def initial_configurations(self) -> Sequence[Config]:
        """Configurations to evaluate first, in this order. Default: none."""
        return ()

    def choose_region(self) -> Region:
        """The part of the space to search: all of it."""
        return Region(self.space)

    def ask(self) -> Config:
        """Suggest an initial configuration, or the best candidate."""
        values = self._next_initial()
        if values is None:
            early = self.evaluation_count < self.random_trials
            values = self._suggest_before_model() if early else self._suggest_with_model()
        self._pending[self._tried.add(values)] = values
        return self.space.configs(values[None])[0]

    def tell(self, config: Config, loss: float) -> None:
        """Add an evaluation; the configuration need not be one that was asked for.

        Raises:
            InvalidConfigError: The configuration is not valid in the search space.
        """
        values = self.space.row(config)
        added = self._tried.add(values)
        self._pending.pop(added, None)
        if added in self._steps and loss in self._losses:
            self._on_plateau = True
        self._told.append(self._code(values))
        self._losses.append(loss)

    @property
    def evaluation_count(self) -> int:
        """Number of evaluations told so far, n."""
        return len(self._losses)

    def evaluated_units(self) -> FloatArray:
        """Configurations evaluated on this task, canonical unit vectors, shape (n, d)."""
        return np.array(self._told).reshape(self.evaluation_count, self.space.dimension)

    def pending_units(self) -> FloatArray:
        """Configurations asked for and not told yet, canonical unit vectors, shape (k, d)."""
        values = np.array(list(self._pending.values())).reshape(-1, self.space.dimension)
        return self.space.encode(values)

    def evaluated_losses(self) -> FloatArray:
        """Losses told so far, shape (n,), made finite as by `replace_failed_losses`."""
        return replace_failed_losses(np.array(self._losses, dtype=np.float64))

    @abstractmethod
    def make_scorer(self) -> Scorer:
        """Make a function that scores candidates, for instance by fitting a model.

        Raises:
            ModelError: Fitting failed; the suggestion is then made at random.
        """

    def iter_candidates(self) -> Iterator[FloatArray]:
        """Blocks of candidates, canonical unit vectors (m, d), see `iter_candidate_blocks`."""
        return iter_candidate_blocks(self.region, self.rng)

    def _code(self, values: FloatArray) -> FloatArray:
        """Unit vector (d,) of coded values (d,)."""
        unit: FloatArray = self.space.encode(values[None])[0]
        return unit

    def _next_initial(self) -> FloatArray | None:
        """Coded values (d,) of the next initial configuration; None if all were suggested."""
        while self._initial:
            values = self.space.row(self._initial.popleft())
            if values not in self._tried:
                return values
        return None

    def _draw_untried(self) -> FloatArray:
        """Coded values (d,) of a random configuration, untried if possible."""
        for count in (1, RANDOM_DRAWS - 1):
            before = self.rng.bit_generator.state
            values = self.space.decode(self.region.sample_unit(self.rng, count))
            if (row := self._tried.find_first_untried(values)) is not None:
                self.rng.bit_generator.state = before
                self.region.draw(self.rng, row + 1)  # as many draws as one by one
                found: FloatArray = values[row]
                return found
        return self._choose_best_untried(lambda unit: self.rng.random(len(unit)))

    def _suggest_before_model(self) -> FloatArray:
        """Coded values (d,) of a suggestion before there is a model."""
        return self._draw_untried()

    def _suggest_with_model(self) -> FloatArray:
        """Coded values (d,) of the candidate with the highest score."""
        if self.random_fraction and self.rng.random() < self.random_fraction:
            return self._draw_untried()
        try:
            scorer = self.make_scorer()
        except ModelError:
            self.fallbacks += 1
            return self._draw_untried()
        return self._choose_best_untried(scorer, self._draw_near_best())

    def _draw_near_best(self) -> Sequence[FloatArray]:
        """Candidates near the best configuration so far, one array (m, d), or none."""
        if not self._searches_near_best or self._on_plateau or not self.evaluation_count:
            return ()
        best = self._told[int(np.argmin(self.evaluated_losses()))]
        return (draw_near(self.region, best[None], self._near_rng),)

    def _choose_best_untried(self, scorer: Scorer, near: Sequence[FloatArray] = ()) -> FloatArray:
        """Coded values (d,) of the best untried candidate in the first block that has one.

        The candidates of `_near` are added to the first block. If all have been tried, the best
        candidate of all blocks is repeated.
        """
        best, exhausted = -math.inf, np.empty(0)
        for block in self.iter_candidates():
            unit = np.concatenate([block, *near]) if near else block
            scores = scorer(unit)
            scores[len(block) :] -= LOG_ADVANTAGE
            if (found := self._tried.find_best_untried(unit, scores)) is not None:
                row, values = found
                if row >= len(block):
                    self._steps.add(configuration_key(values))
                return values
            near = ()
            top = int(np.argmax(scores))
            if not len(exhausted) or scores[top] > best:
                best, exhausted = float(scores[top]), unit[top]
        repeated: FloatArray = self.space.decode(exhausted[None])[0]
        return repeated


class DesignOnly(ModelBased):
    """Initial trials, then random untried configurations."""

    random_trials = 0

    def make_scorer(self) -> Scorer:
        """Score at random."""
        return lambda unit: self.rng.random(len(unit))


def replace_failed_losses(losses: FloatArray) -> FloatArray:
    """Replace losses (n,) that are not finite by the largest finite one; by 0 if none is finite."""
    finite = np.isfinite(losses)
    if finite.all():
        return losses
    return np.where(finite, losses, losses[finite].max(initial=-math.inf) if finite.any() else 0.0)


def remove_failed_evaluations(history: "Sequence[Evaluations]") -> "list[Evaluations]":
    """Remove evaluations whose loss is not finite, and tasks without finite losses."""
    from dataclasses import replace

    cleaned = []
    for task in history:
        finite = np.isfinite(task.losses)
        if finite.all() and len(task):
            cleaned.append(task)
        elif finite.any():
            values, objective = task.values[finite], task.objective[finite]
            cleaned.append(replace(task, values=values, objective=objective))
    return cleaned
