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
    """Transform the losses of one task by their ranks to a standard normal distribution.

    The normal score of a loss is z = Phi^-1(F(loss)) (Salinas et al. 2020), where Phi is the
    standard normal distribution function. F is the share of losses of lower rank, as in the
    authors' implementation. It is clipped to [delta, 1 - delta], so that scores are finite, with
    delta = 1 / (4 n^(1/4) sqrt(pi log n)).

    Args:
        losses: Losses, shape (n,) with n >= 1; infinite where the evaluation failed. Failed
            evaluations are equally bad and worse than all others.
        rng: Orders equal losses at random.

    Returns:
        The normal scores z, shape (n,); 0, the median, if n = 1.
    """
    from scipy.special import ndtri

    n = len(losses)
    if n == 1:
        return np.zeros(1)

    ascending_losses = np.sort(losses)
    lower_count = np.searchsorted(ascending_losses, losses, side="left")
    lower_or_equal_count = np.searchsorted(ascending_losses, losses, side="right")
    # A loss gets a random rank among those of its equals; without equals there is only one. The
    # lowest rank is 0.
    rank = rng.integers(lower_count, lower_or_equal_count)

    delta = 1.0 / (4.0 * n**0.25 * math.sqrt(math.pi * math.log(n)))
    share_lower = np.clip(rank / n, delta, 1.0 - delta)
    normal_scores: FloatArray = ndtri(share_lower)  # the inverse of Phi
    return normal_scores


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
        """Fit the model to the previous tasks, and draw the candidates of all suggestions."""
        super().prepare()
        tasks = [task for task in self.history if np.isfinite(task.losses).any()]
        # The model of normal scores: trees for the mean, and a constant standard deviation.
        self._model: BoostedTrees | None = None  # None if the history holds no finite loss
        if tasks:
            self._model, self._sd = self._fit(tasks)

        # Candidates in the unit cube, (m, d), and the means of their normal scores, (m,). All
        # suggestions choose among these, so that their means are computed only once.
        self._first_block = next(iter_candidate_blocks(self.region, self.rng, size=CANDIDATES))
        self._mean_of_first_block = self._predict_mean(self._first_block)

    def iter_candidates(self) -> Iterator[FloatArray]:
        """Yield the candidates that `prepare` has drawn, then others in case all were tried.

        Yields:
            Configurations in the unit cube, shape (m, d).
        """
        yield self._first_block
        yield from super().iter_candidates()

    def make_scorer(self) -> Scorer:
        """Make the function that scores candidates by a random draw from the model.

        The model says that the normal score z of a candidate's loss is normal, with a mean that
        depends on the candidate and a constant standard deviation. As low losses have low z, the
        score to be maximised is minus a draw of z.

        Raises:
            ModelError: The history holds no finite loss, so that there is no model.
        """
        if self._model is None:
            raise ModelError("the history holds no finite loss")

        def score(unit: FloatArray) -> FloatArray:
            """Draw z of each candidate in the unit cube (m, d) from the model; return -z (m,)."""
            # `iter_candidates` yields the very array `_first_block`, so that `is` recognises it.
            # The means, the slow part, are not predicted again.
            if unit is self._first_block:
                mean = self._mean_of_first_block
            else:
                mean = self._predict_mean(unit)
            # This is what `rng.normal(mean, self._sd)` would draw, but much faster.
            z = mean + self._sd * self.rng.standard_normal(len(mean))
            return -z

        return score

    def _predict_mean(self, unit: FloatArray) -> FloatArray:
        """Predict the mean normal score of the loss, (m,), of configurations in the unit cube.

        Without a model it is 0, the median of all normal scores.

        Args:
            unit: The configurations, shape (m, d).
        """
        if self._model is None:
            return np.zeros(len(unit))
        return self._model.predict(self.region.features(unit))

    def _fit(self, tasks: "Sequence[Evaluations]") -> "tuple[BoostedTrees, float]":
        """Fit a model to the normal scores of the losses of all previous tasks together.

        Boosted trees predict the mean normal score of a configuration. The standard deviation is
        estimated from their errors on the share `HELD_OUT` of the evaluations, to which the trees
        are not fitted.

        Args:
            tasks: Evaluations of the previous tasks, each with a finite loss.

        Returns:
            The trees, and the standard deviation.
        """
        from hpobench_ordered.methods._boosting.model import BoostedTrees

        values = np.concatenate([task.values for task in tasks])
        X = self.region.features(self.space.encode(values))
        # Scores are ranks within each task, so that tasks of different scales can be joined.
        scores_of_tasks = [compute_normal_scores(task.losses, self.rng) for task in tasks]
        z = np.concatenate(scores_of_tasks)

        used_rows = self.rng.permutation(len(z))[:MAX_EVALUATIONS]  # a fit to more takes too long
        held_out_count = math.ceil(HELD_OUT * len(used_rows))
        if held_out_count >= 2:
            held_out_rows = used_rows[:held_out_count]
            fitted_rows = used_rows[held_out_count:]
        else:
            # A single error has no standard deviation, so that no evaluation is held out.
            held_out_rows = used_rows
            fitted_rows = used_rows
        model = BoostedTrees.fit(X[fitted_rows], z[fitted_rows])
        errors = z[held_out_rows] - model.predict(X[held_out_rows])
        return model, float(np.std(errors))


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
