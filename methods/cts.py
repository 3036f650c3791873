"""Copula Thompson sampling (CTS): a model of the quantiles of all previous tasks, sampled.

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
    remove_failed_evaluations,
)
from hpobench_ordered.methods.base import MethodSpec

if TYPE_CHECKING:
    from hpobench_ordered.core.history import Evaluations
    from hpobench_ordered.methods._boosting.model import BoostedTrees

CANDIDATES = 2000
"""Number of random configurations that all suggestions of a task are chosen from."""
HELD_OUT = 0.1
"""Share of the evaluations that the standard deviation is estimated on."""
MAX_EVALUATIONS = 20_000
"""Largest number of evaluations to fit, a random subset of the history: that takes seconds."""


def normal_scores(losses: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Map the losses of one task to z = Phi^-1(F(loss)) (Salinas et al. 2020).

    F is the empirical distribution function, winsorised to [delta, 1 - delta] with
    delta = 1 / (4 n^(1/4) sqrt(pi log n)). As in the authors' implementation, F is the share of the
    losses that rank lower, where ties are ordered at random.

    Args:
        losses: Finite losses, shape (n,) with n >= 1.
        rng: Breaks ties.

    Returns:
        z, shape (n,); 0, the median, if n = 1.
    """
    from scipy.special import ndtri

    n = len(losses)
    if n == 1:
        return np.zeros(1)
    ascending = np.sort(losses)
    first = np.searchsorted(ascending, losses, side="left")
    last = np.searchsorted(ascending, losses, side="right")
    delta = 1.0 / (4.0 * n**0.25 * math.sqrt(math.pi * math.log(n)))
    z: FloatArray = ndtri(np.clip(rng.integers(first, last) / n, delta, 1.0 - delta))
    return z


class CopulaThompsonSampling(ModelBased):
    """Thompson sampling from one model of the normal scores on all previous tasks.

    z of `normal_scores` is modelled as normal at each configuration: its mean by boosted trees
    fitted to 90 % of the evaluations, its standard deviation, which is constant, by that of the
    residuals on the other 10 %. Every suggestion draws z independently for each of about 2000
    random configurations, which stay the same, and takes the smallest. Evaluations of the current
    task are not used.

    This is the authors' implementation in Syne Tune, which Hellan et al. (2023) ran; in the paper,
    a neural network predicts mean and standard deviation.
    """

    random_trials = 0

    def prepare(self) -> None:
        """Fit the model, and draw the candidates."""
        super().prepare()
        tasks = remove_failed_evaluations(self.history)
        self._model: BoostedTrees | None = None
        if tasks:
            self._model, self._sd = self._fit(tasks)
        self._block = next(iter_candidate_blocks(self.region, self.rng, size=CANDIDATES))
        self._block_mean = self._mean(self._block)

    def iter_candidates(self) -> Iterator[FloatArray]:
        """The configurations drawn at the start, then others when all of them have been tried."""
        yield self._block
        yield from super().iter_candidates()

    def make_scorer(self) -> Scorer:
        """Draw z of each candidate; the score is -z.

        Raises:
            ModelError: The history holds no finite loss.
        """
        if self._model is None:
            raise ModelError("the history holds no finite loss")

        def score(unit: FloatArray) -> FloatArray:
            mean = self._block_mean if unit is self._block else self._mean(unit)
            return -self.rng.normal(mean, self._sd)

        return score

    def _mean(self, unit: FloatArray) -> FloatArray:
        """Mean of z (m,) at canonical unit vectors (m, d): 0, the median, if there is none."""
        if self._model is None:
            return np.zeros(len(unit))
        return self._model.predict(self.region.features(unit))

    def _fit(self, tasks: "Sequence[Evaluations]") -> "tuple[BoostedTrees, float]":
        """The model of the mean of z, and the standard deviation."""
        from hpobench_ordered.methods._boosting.model import BoostedTrees

        X = self.region.features(self.space.encode(np.concatenate([task.values for task in tasks])))
        z = np.concatenate([normal_scores(task.losses, self.rng) for task in tasks])
        order = self.rng.permutation(len(z))[:MAX_EVALUATIONS]
        held_out = math.ceil(HELD_OUT * len(order))
        fitted, tested = order[held_out:], order[:held_out]
        if held_out < 2:  # one residual has no standard deviation
            fitted = tested = order
        model = BoostedTrees.fitted(X[fitted], z[fitted])
        return model, float(np.std(z[tested] - model.predict(X[tested])))


SPECS = (
    MethodSpec(
        name="cts",
        method=CopulaThompsonSampling,
        summary="Thompson sampling from one model of all previous tasks' normal scores.",
        source=(
            "Salinas et al. (2020), as Hellan et al. (2023) ran it (section 5.1): mean by boosted "
            "trees (XGBoost's defaults), constant standard deviation, 2000 candidates"
        ),
        min_history=1,
        version=2,
    ),
)
