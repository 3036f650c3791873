"""Bayesian optimisation with a Gaussian process and expected improvement.

========  ===============  =====================================================================
symbol    shape            meaning
========  ===============  =====================================================================
n, m      scalars          evaluations, candidates
d, p      scalars          hyperparameters, columns of features
unit      (n or m, d)      configurations in the unit cube
X         (n, p)           features of the evaluated configurations
y         (n,)             their standardised losses
theta     (g + 2,)         hyperparameters of the Gaussian process, as in `_gp.compiled`
========  ===============  =====================================================================
"""

from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.methods._model_based import ModelBased, Scorer
from hpobench_ordered.methods.base import MethodKind, MethodSpec
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Kind

if TYPE_CHECKING:
    from hpobench_ordered.methods._gp.model import GaussianProcess, Kernel, Priors

MAX_TWO_STARTS = 8
"""Up to this many evaluations, every fit of the model has two starting points."""

FIT_INTERVAL = 5
"""Number of suggestions between two fits with a second start. With many evaluations there is no
second start, and this is the number of suggestions between any two fits."""

MAX_CONDITIONED = 300
"""Largest number of evaluations the model is conditioned on; a suggestion takes O(n^2) time."""

BEST_CONDITIONED = MAX_CONDITIONED // 4
"""This many of them are the best ones; the others are drawn at random, as in Syne Tune."""


class BayesianOptimisation(ModelBased):
    """Makes a few initial trials, then suggests the candidate of highest expected improvement.

    The model is a Gaussian process on `SearchSpace.features` with a Matern-5/2 kernel and one
    length scale for each hyperparameter. The suggestion has the highest log expected improvement of
    about 1000 new random candidates, or is near the best configuration if that is clearly better.
    Pending evaluations are assumed to give the posterior mean.

    With more than `MAX_CONDITIONED` evaluations, every suggestion uses that many: the best, which
    indicate where the optimum may be, and a random subset of the rest. The subset is redrawn each
    time, so that no unsuccessful region is forgotten for long.
    """

    searches_near_best = True

    def prepare(self) -> None:
        """Start without a model."""
        super().prepare()
        self._kernel: Kernel | None = None
        self._theta: FloatArray | None = None  # the model's hyperparameters, as fitted last
        # How many suggestions were made with a model.
        self._suggestions = 0

    def make_scorer(self) -> Scorer:
        """Fit the model, and make the function that scores candidates.

        The score is the log expected improvement on the incumbent, the lowest loss so far.
        """
        from hpobench_ordered.methods._gp.acquisition import log_expected_improvement

        X, y = self.observations()
        if not len(y):  # without losses no configuration is better than another
            return lambda unit: self.rng.random(len(unit))
        model = self._fit(X, y)
        self._theta = model.theta  # the next fit starts from it
        best = self.incumbent(model, y)
        if self._pending:  # they count as evaluated, as if they had given the posterior mean
            model, pending_losses = model.with_fantasies(self.features(self.pending_units()))
            best = min(best, float(pending_losses.min()))

        def score(unit: FloatArray) -> FloatArray:
            mean, sd = model.predict(self.features(unit))
            return log_expected_improvement(mean, sd, best)

        return score

    def observations(self) -> tuple[FloatArray, FloatArray]:
        """Features (n, p) and standardised losses (n,) that the model is fitted to.

        With more than `MAX_CONDITIONED` evaluations, the best and random others, as the time of a
        suggestion grows with the square of their number.
        """
        from hpobench_ordered.methods._gp.model import standardise

        y = standardise(self.evaluated_losses())
        rows = choose_best_and_random(y, self.rng)
        return self.features(self.evaluated_units()[rows]), y[rows]

    def incumbent(self, model: "GaussianProcess", y: FloatArray) -> float:
        """Standardised loss to improve on: the lowest so far.

        Args:
            model: The fitted model. It is not needed here; methods whose task may have no
                evaluations yet override this and predict the loss with it.
            y: Standardised losses it was fitted to, shape (n,).
        """
        return float(y.min())

    def features(self, unit: FloatArray) -> FloatArray:
        """Features (m, p) of configurations in the unit cube, (m, d), on this task."""
        return self.region.features(unit)

    def group_features(self) -> IntArray:
        """Index of the length scale of each feature column, shape (p,).

        Each hyperparameter has one, so that the columns of a categorical share it.
        """
        return group_features(self.space)

    def choose_priors(self) -> "Priors":
        """Choose the priors of the model's hyperparameters. Default: the weak ones of `Priors`."""
        from hpobench_ordered.methods._gp.model import Priors

        return Priors()

    def _fit(self, X: FloatArray, y: FloatArray) -> "GaussianProcess":
        """Condition the model on features (n, p) and standardised losses (n,).

        Its hyperparameters, theta, are fitted, starting from the last ones. As their posterior
        often has several modes, some fits have the prior's mean as a second start, to leave a wrong
        mode:

        - with few evaluations, at most `MAX_TWO_STARTS`, every fit;
        - with more, a fit every `FIT_INTERVAL` suggestions;
        - with many, more than `COMPILED_LIMIT`, none. A fit is expensive then and changes little,
          so that there is one only at this interval; in between, the last theta is used.
        """
        from hpobench_ordered.methods._gp.model import (
            COMPILED_LIMIT,
            GaussianProcess,
            Kernel,
            stack_priors,
        )

        if self._kernel is None:
            self._kernel = Kernel(self.group_features())
        kernel = self._kernel
        priors = self.choose_priors()
        prior_mean = stack_priors(priors, kernel.length_scales).mean
        # Whether a second start or, with many evaluations, a fit is due.
        is_due = self._suggestions % FIT_INTERVAL == 0
        self._suggestions += 1

        has_many_evaluations = len(y) > COMPILED_LIMIT
        has_few_evaluations = len(y) <= MAX_TWO_STARTS
        if self._theta is None:  # not fitted yet
            starts = [prior_mean]
        elif has_many_evaluations:
            if not is_due:
                return GaussianProcess(X, y, kernel=kernel, theta=self._theta)
            starts = [self._theta]
        elif has_few_evaluations or is_due:
            starts = [self._theta, prior_mean]
        else:
            starts = [self._theta]
        return GaussianProcess.fit(X, y, kernel=kernel, starts=starts, priors=priors)


def choose_best_and_random(losses: FloatArray, rng: np.random.Generator) -> IntArray:
    """Choose `MAX_CONDITIONED` of n losses: the `BEST_CONDITIONED` lowest, and random others.

    All are chosen if there are no more than `MAX_CONDITIONED`.

    Args:
        losses: The losses, shape (n,).
        rng: Draws the others.

    Returns:
        Indices of the chosen losses, ascending.
    """
    if len(losses) <= MAX_CONDITIONED:
        return np.arange(len(losses))
    order = np.argsort(losses, kind="stable")
    best = order[:BEST_CONDITIONED]
    others = rng.permutation(order[BEST_CONDITIONED:])
    chosen = np.concatenate([best, others])[:MAX_CONDITIONED]
    return np.sort(chosen)


def group_features(space: SearchSpace) -> IntArray:
    """Compute the index of the hyperparameter of each column of `SearchSpace.features`, (p,).

    A categorical has a column for each choice, all others have one.
    """
    columns = []
    for j, parameter in enumerate(space.parameters):
        width = len(parameter.choices) if parameter.kind is Kind.CATEGORICAL else 1
        columns += [j] * width
    return np.array(columns)


SPECS = (
    MethodSpec(
        name="bo",
        method=BayesianOptimisation,
        summary="Bayesian optimisation: Gaussian process, expected improvement.",
        source=(
            "Hellan et al. (2023), section 5.1 and appendix E: Matern-5/2 kernel, expected "
            "improvement (Jones et al. 1998), three random initial trials"
        ),
        uses_history=False,
        changed_spaces=True,
        kind=MethodKind.WITHOUT_TRANSFER,
        version=2,
    ),
)
