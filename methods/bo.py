"""Bayesian optimisation with a Gaussian process and expected improvement."""

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._parameters import Kind
from hpobench_ordered._typing import Config, FloatArray, IntArray
from hpobench_ordered.methods._gp.candidates import Tried, candidate_blocks
from hpobench_ordered.methods.base import Method, MethodSpec
from hpobench_ordered.space import SearchSpace

if TYPE_CHECKING:
    from hpobench_ordered.benchmark import Evaluations
    from hpobench_ordered.methods._gp.model import GaussianProcess

RANDOM_DRAWS = 100  # of single configurations, before untried ones are looked for systematically


class BayesianOptimisation(Method):
    """A few initial trials, then the candidate of highest expected improvement.

    The model is a Gaussian process on `SearchSpace.features` with one Matern-5/2 length scale a
    hyperparameter, its hyperparameters refitted before every suggestion, starting from the last
    ones. Among about 2000 fresh random candidates the one with the highest log expected
    improvement is suggested, without local refinement and without extra candidates near the best:
    both land on plateaus already tried where the surrogate is a nearest neighbour, and neither
    gained anything on smooth objectives.

    No configuration is suggested twice before every other one has been tried, as far as that can
    be told (`candidates.candidate_blocks`); then the one with the highest expected improvement is
    repeated. Initial configurations are suggested as given, repeated ones once.

    `fallbacks` counts suggestions made at random because the model could not be fitted.

    Args:
        space: The search space.
        rng: Source of all randomness.
        history: Not used.
        context: Not used.
        budget: Number of trials.
        initial: Configurations to evaluate first, in this order, in the place of random ones.
        random_trials: Number of random initial trials if `initial` is empty, each drawn exactly as
            random search does.
    """

    def __init__(
        self,
        *,
        space: SearchSpace,
        rng: np.random.Generator,
        history: "Sequence[Evaluations]",
        context: Mapping[str, float],
        budget: int,
        initial: Sequence[Config] = (),
        random_trials: int = 3,
    ) -> None:
        super().__init__(space=space, rng=rng, history=history, context=context, budget=budget)
        self._initial = deque(initial)
        self._random_trials = 0 if initial else random_trials
        self._tried = Tried(space)
        self._features: list[FloatArray] = []
        self._losses: list[float] = []
        self._groups = _feature_groups(space)
        self._theta: FloatArray | None = None

    def ask(self) -> Config:
        """Suggest an initial configuration, or the best candidate."""
        values = self._next_initial()
        if values is None:
            values = self._suggest()
        self._tried.add(values)
        return self.space.configs(values[None])[0]

    def tell(self, config: Config, loss: float) -> None:
        """Add an evaluation, of a configuration asked for or of any other.

        Raises:
            InvalidConfigError: The configuration does not fit the search space.
            ValueError: The loss is not finite.
        """
        if not math.isfinite(loss):
            raise ValueError(f"a loss must be finite, got {loss} for {config}")
        values = self.space.row(config)
        self._tried.add(values)
        self._features.append(self.space.features(self.space.encode(values[None]))[0])
        self._losses.append(loss)

    def _next_initial(self) -> FloatArray | None:
        """Coded values (d,) of the next trial of the initial design; None when it is over."""
        while self._initial:
            values = self.space.row(self._initial.popleft())
            if values not in self._tried:
                return values
        if self._random_trials > 0 or not self._losses:
            self._random_trials -= 1
            return self._random()
        return None

    def _random(self) -> FloatArray:
        """Coded values (d,) of a random configuration, untried if there still is one."""
        for _ in range(RANDOM_DRAWS):
            values = self.space.row(self.space.sample(self.rng))
            if values not in self._tried:
                return values
        return self._best_untried(
            (unit, self.rng.random(len(unit))) for unit in candidate_blocks(self.space, self.rng)
        )

    def _suggest(self) -> FloatArray:
        """Coded values (d,) of the candidate with the highest expected improvement."""
        from hpobench_ordered.methods._gp.acquisition import log_expected_improvement
        from hpobench_ordered.methods._gp.model import ModelError, standardise

        losses = standardise(np.array(self._losses))
        try:
            model = self._fit(losses)
        except ModelError:
            self.fallbacks += 1
            return self._random()
        self._theta = model.theta
        best = float(losses.min())

        def scored() -> Iterator[tuple[FloatArray, FloatArray]]:
            for unit in candidate_blocks(self.space, self.rng):
                features = np.ascontiguousarray(self.space.features(unit))
                yield unit, log_expected_improvement(*model.predict(features), best)

        return self._best_untried(scored())

    def _fit(self, losses: FloatArray) -> "GaussianProcess":
        """Fit the model to the evaluations so far and their standardised losses (n,).

        Up to `COMPILED_LIMIT` evaluations the posterior of the hyperparameters often has several
        modes, and the prior's mean is a second start; with more, the last fit is near enough.
        """
        from hpobench_ordered.methods._gp.model import COMPILED_LIMIT, GaussianProcess, Priors

        priors = Priors()
        starts = [] if self._theta is None else [self._theta]
        if not starts or len(losses) <= COMPILED_LIMIT:
            starts.append(priors.mean(self.space.dimension))
        features = np.array(self._features)
        return GaussianProcess.fitted(
            features, losses, groups=self._groups, starts=starts, priors=priors
        )

    def _best_untried(self, blocks: Iterator[tuple[FloatArray, FloatArray]]) -> FloatArray:
        """Coded values (d,) of the best untried candidate in the first block that has one.

        If everything has been tried, the best candidate of all blocks is repeated.

        Args:
            blocks: Candidates (m, d), canonical unit vectors, and their scores (m,).
        """
        tops: list[tuple[float, FloatArray]] = []
        for unit, scores in blocks:
            values = self._tried.first_new(unit, scores)
            if values is not None:
                return values
            top = int(np.argmax(scores))
            tops.append((float(scores[top]), unit[top : top + 1]))
        _, exhausted = max(tops, key=lambda scored: scored[0])
        repeated: FloatArray = self.space.decode(exhausted)[0]
        return repeated


def _feature_groups(space: SearchSpace) -> IntArray:
    """Length scale of each feature column, (p,): the columns of a categorical share one."""
    widths = [len(p.choices) if p.kind is Kind.CATEGORICAL else 1 for p in space.parameters]
    groups: IntArray = np.repeat(np.arange(space.dimension), widths)
    return groups


SPECS = (
    MethodSpec(
        name="bo",
        method=BayesianOptimisation,
        summary="Bayesian optimisation: Gaussian process, expected improvement.",
        source=(
            "Hellan et al. (2023), section 5.1 and appendix E: Matern-5/2 kernel, expected "
            "improvement (Jones et al. 1998), three random initial trials; no input warping"
        ),
    ),
)
