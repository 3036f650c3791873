"""Copula Thompson sampling (CTS): a model of the quantiles of all previous tasks, sampled.

=======  ======  ==================================================================================
symbol   shape   meaning
=======  ======  ==================================================================================
n        scalar  evaluations of a task
m        scalar  candidates
d        scalar  hyperparameters
z        (n,)    normal scores of a task's losses: Phi^-1 of the share of losses that are lower
Phi              standard normal distribution function
=======  ======  ==================================================================================

Salinas, Shen and Perrone (2020), A quantile-based approach for hyperparameter transfer learning.
"""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._candidates import iter_candidate_blocks
from hpobench_ordered.methods._model_based import (
    ModelBased,
    ModelError,
    Scorer,
)
from hpobench_ordered.methods.base import MethodSpec

if TYPE_CHECKING:
    from hpobench_ordered.data.history import Evaluations
    from hpobench_ordered.methods._boosting.model import BoostedTrees

CANDIDATES = 100_000
"""All suggestions of a task are chosen from this many random configurations."""
HELD_OUT = 0.1
"""The standard deviation is estimated on this share of the evaluations."""
MAX_EVALUATIONS = 20_000
"""The model is fitted to at most this many random evaluations, which takes seconds."""


def compute_normal_scores(losses: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Map the losses of one task to z = Phi^-1(F(loss)) (Salinas et al. 2020).

    F is the empirical distribution function, winsorised to [delta, 1 - delta] with
    delta = 1 / (4 n^(1/4) sqrt(pi log n)). As in the authors' implementation, F is the share of the
    losses that rank lower, where ties are ordered at random.

    Args:
        losses: Losses, shape (n,) with n >= 1; infinite where the evaluation failed, which is a tie
            of the worst.
        rng: Breaks ties.

    Returns:
        z, shape (n,); 0, the median, if n = 1.
    """
    from scipy.special import ndtri

    n = len(losses)
    if n == 1:
        return np.zeros(1)

    ascending = np.sort(losses)
    lower_count = np.searchsorted(ascending, losses, side="left")
    lower_or_equal_count = np.searchsorted(ascending, losses, side="right")
    # A loss may have any rank among its equals; without ties there is only one.
    rank = rng.integers(lower_count, lower_or_equal_count)

    delta = 1.0 / (4.0 * n**0.25 * math.sqrt(math.pi * math.log(n)))
    z: FloatArray = ndtri(np.clip(rank / n, delta, 1.0 - delta))
    return z


class CopulaThompsonSampling(ModelBased):
    """Thompson sampling from one model of the normal scores on all previous tasks.

    z of `compute_normal_scores` is modelled as normal at each configuration: its mean by boosted
    trees fitted to 90 % of the evaluations, its standard deviation, which is constant, by that of
    the residuals on the other 10 %. Every suggestion draws z independently for each of 100 000
    random configurations, which stay the same, and takes the smallest. Evaluations of the current
    task are not used.

    This is the authors' implementation in Syne Tune, which Hellan et al. (2023) ran; in the paper,
    a neural network predicts mean and standard deviation.
    """

    random_trials = 0

    def prepare(self) -> None:
        """Fit the model, and draw the candidates, a block in the unit cube (m, d).

        The model is a mean, `_model`, and a standard deviation, `_sd`, of the normal scores of
        losses.
        """
        super().prepare()
        tasks = [task for task in self.history if np.isfinite(task.losses).any()]
        self._model: BoostedTrees | None = None  # None without finite losses
        if tasks:
            self._model, self._sd = self._fit(tasks)

        # All suggestions choose among the same candidates, so their means are computed once.
        self._first_block = next(iter_candidate_blocks(self.region, self.rng, size=CANDIDATES))
        self._mean_of_first_block = self._predict_mean(self._first_block)

    def iter_candidates(self) -> Iterator[FloatArray]:
        """Yield the candidates drawn at the start, `_first_block`; others if all were tried.

        Yields:
            Configurations in the unit cube, shape (m, d).
        """
        yield self._first_block
        yield from super().iter_candidates()

    def make_scorer(self) -> Scorer:
        """Make a function that draws the normal score z of each candidate; its score is -z.

        z is normal, with a mean that the model predicts and the standard deviation `_sd`.

        Raises:
            ModelError: The history holds no finite loss.
        """
        if self._model is None:
            raise ModelError("the history holds no finite loss")

        def score(unit: FloatArray) -> FloatArray:
            """Draw minus the normal score z (m,) of the loss of candidates in the unit cube.

            z has the mean that the model predicts and the standard deviation `_sd`.
            """
            # The candidates of the start are the same array at each suggestion, so "is" recognises
            # them, and their means, the slow part, are not computed again.
            is_first_block = unit is self._first_block
            mean = self._mean_of_first_block if is_first_block else self._predict_mean(unit)
            # Much faster than `rng.normal` of a whole array of means, and equal.
            return -(mean + self._sd * self.rng.standard_normal(len(mean)))

        return score

    def _predict_mean(self, unit: FloatArray) -> FloatArray:
        """Predict the mean of the normal scores z (m,) at configurations in the unit cube, (m, d).

        Without a model it is 0, the median of normal scores.
        """
        if self._model is None:
            return np.zeros(len(unit))
        return self._model.predict(self.region.features(unit))

    def _fit(self, tasks: "Sequence[Evaluations]") -> "tuple[BoostedTrees, float]":
        """Fit the mean of the normal scores z; estimate their sd from held-out residuals.

        z maps the losses of each task, by their ranks, to a standard normal distribution. The share
        `HELD_OUT` of the evaluations is held out.

        Args:
            tasks: Evaluations of the previous tasks, not all of which failed.

        Returns:
            The model of the mean, and the standard deviation.
        """
        from hpobench_ordered.methods._boosting.model import BoostedTrees

        values = np.concatenate([task.values for task in tasks])
        X = self.region.features(self.space.encode(values))
        z = np.concatenate([compute_normal_scores(task.losses, self.rng) for task in tasks])

        rows = self.rng.permutation(len(z))[:MAX_EVALUATIONS]  # a fit to more takes too long
        held_out_count = math.ceil(HELD_OUT * len(rows))
        if held_out_count >= 2:
            held_out, fitted = np.split(rows, [held_out_count])
        else:  # one residual has no standard deviation
            held_out = fitted = rows
        model = BoostedTrees.fit(X[fitted], z[fitted])
        residuals = z[held_out] - model.predict(X[held_out])
        return model, float(np.std(residuals))


SPECS = (
    MethodSpec(
        name="cts",
        method=CopulaThompsonSampling,
        summary="Thompson sampling from one model of all previous tasks' normal scores.",
        source=(
            "Salinas et al. (2020), as Hellan et al. (2023) ran it (section 5.1): mean by boosted "
            "trees (XGBoost's defaults), constant standard deviation, 100 000 candidates"
        ),
        min_history=1,
        version=3,
    ),
)
