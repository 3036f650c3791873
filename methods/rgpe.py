"""RGPE: a ranking-weighted ensemble of the tasks' Gaussian processes.

=======  ============  ============================================================================
symbol   shape         meaning
=======  ============  ============================================================================
T        scalar        tasks, the current one last
n, S     scalars       evaluations of the current task, samples
f_i      (S, n)        samples of the process of task i at these evaluations, jointly; of the
                       current one each at the evaluation that is left out
l_i      (S,)          ranking losses
w_i      scalar        weight
=======  ============  ============================================================================

Feurer, Letham and Bakshy (2018), section 3.
"""

from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._model_based import Scorer
from hpobench_ordered.methods._sources import Ensemble, Predict, ordered_pairs
from hpobench_ordered.methods.base import MethodSpec

if TYPE_CHECKING:
    from hpobench_ordered.methods._gp.model import GaussianProcess

SAMPLES = 256
"""Samples of the ranking losses, S."""
FIRST = 3
"""Smallest number of evaluations of the current task to learn weights; before, they are equal."""
RANKED = 50
"""Largest number of evaluations whose ranking is used; more are subsampled."""
DILUTING = 0.95
"""A process is left out if its median loss is above this quantile of the current task's losses."""


class RGPE(Ensemble):
    """Bayesian optimisation with a ranking-weighted ensemble of Gaussian processes.

    A task's weight is the probability that its process ranks the evaluations of the current task
    best, under samples of all processes; that of the current task predicts each evaluation from the
    others. Processes that clearly rank worse than the current task's are left out, so that many
    poor ones do not dilute the weights.
    """

    def weights(self, X: FloatArray, y: FloatArray, target: "GaussianProcess") -> FloatArray:
        """Probabilities (T,) of ranking best."""
        if len(y) < FIRST:
            return np.full(len(self.processes) + 1, 1.0 / (len(self.processes) + 1))
        rows = self.rng.permutation(len(y))[:RANKED]
        mean, sd = (of_all[rows] for of_all in target.leave_one_out())
        normal = self.rng.standard_normal((len(self.processes) + 1, SAMPLES, len(rows)))
        losses = [
            ranking_losses(process.samples(X[rows], draws), y[rows])
            for process, draws in zip(self.processes, normal[:-1], strict=True)
        ]
        losses.append(left_out_losses(mean + sd * normal[-1], y[rows]))
        return ranking_weights(np.array(losses))

    def acquisition(self, predict: Predict, best: float) -> Scorer:
        """Score against the lowest prediction for tried configurations, on the ensemble's scale."""
        tried = self.features(np.concatenate([self.evaluated_units(), self.pending_units()]))
        return super().acquisition(predict, float(predict(tried)[0].min()))

    def spread(self, weights: FloatArray, sds: FloatArray) -> FloatArray:
        """Standard deviation (m,) of a weighted sum of independent processes."""
        spread: FloatArray = np.sqrt(weights**2 @ sds**2)
        return spread


def ranking_losses(f: FloatArray, y: FloatArray) -> FloatArray:
    """Number of pairs of losses y (n,) that samples f (S, n) misrank, shape (S,)."""
    lower, higher = ordered_pairs(y)
    losses: FloatArray = 2.0 * (f[:, lower] >= f[:, higher]).sum(axis=1)
    return losses


def left_out_losses(f: FloatArray, y: FloatArray) -> FloatArray:
    """The same, but each sample f (S, n) is compared with the other observed losses."""
    lower, higher = ordered_pairs(y)
    wrong = (f[:, lower] >= y[higher]).sum(axis=1) + (f[:, higher] <= y[lower]).sum(axis=1)
    losses: FloatArray = wrong.astype(np.float64)
    return losses


def ranking_weights(losses: FloatArray) -> FloatArray:
    """Share of the samples in which a process ranks best, (T,), divided evenly in ties.

    Args:
        losses: Ranking losses of the processes, the current task's last, shape (T, S).
    """
    diluting = np.median(losses, axis=1) > np.quantile(losses[-1], DILUTING)
    diluting[-1] = False
    allowed = np.where(diluting[:, None], np.inf, losses)
    best = allowed == allowed.min(axis=0)
    weights: FloatArray = (best / best.sum(axis=0)).mean(axis=1)
    return weights


SPECS = (
    MethodSpec(
        name="rgpe",
        method=RGPE,
        summary="Ranking-weighted ensemble of Gaussian processes, one for each task.",
        source=(
            f"Feurer, Letham and Bakshy (2018), section 3: {SAMPLES} samples, leave-one-out, guard "
            "against weight dilution"
        ),
        min_history=1,
        changed_spaces=True,
    ),
)
