"""RGPE: a ranking-weighted ensemble of the tasks' Gaussian processes.

=======  =======  =================================================================================
symbol   shape    meaning
=======  =======  =================================================================================
T        scalar   tasks, the current one last
n        scalar   evaluations of the current task whose ranking is used
S        scalar   samples of every process
X        (n, p)   features of the evaluated configurations
y        (n,)     their standardised losses
f        (S, n)   samples of one process at these configurations, jointly; the current task's
                  process predicts each evaluation from all others
=======  =======  =================================================================================

The ranking loss of a sample is the number of pairs of evaluations that it orders wrongly; the
weight of a process is the share of the samples in which its ranking loss is the smallest.

Feurer, Letham and Bakshy (2018), section 3.
"""

from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._model_based import Scorer
from hpobench_ordered.methods._sources import Ensemble, Predict, find_ordered_pairs
from hpobench_ordered.methods.base import MethodSpec

if TYPE_CHECKING:
    from hpobench_ordered.methods._gp.model import GaussianProcess

SAMPLES = 256
"""Number of samples of the ranking losses, S."""
MIN_RANKED = 3
"""Smallest number of evaluations of the current task to learn weights; before, they are equal."""
MAX_RANKED = 50
"""Largest number of evaluations whose ranking is used; more are subsampled."""
DILUTION_QUANTILE = 0.95
"""A process is left out if its median loss is above this quantile of the current task's losses."""


class RGPE(Ensemble):
    """Bayesian optimisation with a ranking-weighted ensemble of Gaussian processes.

    A task's weight is the probability that its process ranks the evaluations of the current task
    best, under samples of all processes; that of the current task predicts each evaluation from the
    others. Processes that clearly rank worse than the current task's are left out, so that many
    poor ones do not dilute the weights.
    """

    def compute_weights(
        self, X: FloatArray, y: FloatArray, target: "GaussianProcess"
    ) -> FloatArray:
        """Estimate the probability (T,) that each process ranks this task's evaluations best."""
        process_count = len(self.processes) + 1
        if len(y) < MIN_RANKED:
            return np.full(process_count, 1.0 / process_count)

        rows = self.rng.permutation(len(y))[:MAX_RANKED]
        normal = self.rng.standard_normal((process_count, SAMPLES, len(rows)))

        losses = []
        for process, draws in zip(self.processes, normal[:-1], strict=True):
            samples = process.sample(X[rows], draws)
            losses.append(compute_ranking_losses(samples, y[rows]))

        mean, sd = target.predict_leave_one_out()
        target_samples = mean[rows] + sd[rows] * normal[-1]
        losses.append(compute_left_out_ranking_losses(target_samples, y[rows]))
        return compute_ranking_weights(np.array(losses))

    def make_acquisition(self, predict: Predict, best: float) -> Scorer:
        """Score by the improvement on the lowest prediction for a tried configuration.

        The lowest loss itself is no measure: the ensemble's mean is on a scale of its own.
        """
        tried = np.concatenate([self.evaluated_units(), self.pending_units()])
        means, _ = predict(self.features(tried))
        return super().make_acquisition(predict, float(means.min()))

    def combine_sds(self, weights: FloatArray, sds: FloatArray) -> FloatArray:
        """Compute the standard deviation (m,) of a weighted sum of independent processes."""
        combined: FloatArray = np.sqrt(weights**2 @ sds**2)
        return combined


def compute_ranking_losses(f: FloatArray, y: FloatArray) -> FloatArray:
    """Count the ordered pairs of losses y (n,) that each sample f (S, n) misranks, shape (S,).

    The paper's sum is over pairs (j, k) and (k, j), so each misranked pair counts twice.
    """
    lower, higher = find_ordered_pairs(y)
    is_misranked = f[:, lower] >= f[:, higher]
    losses: FloatArray = 2.0 * is_misranked.sum(axis=1)
    return losses


def compute_left_out_ranking_losses(f: FloatArray, y: FloatArray) -> FloatArray:
    """Count the pairs that the current task's process misranks, shape (S,).

    A sample f (S, n) of a left-out evaluation is compared with the observed losses y (n,) of the
    others, so that a pair (j, k) is tested twice: with j left out and with k left out.
    """
    lower, higher = find_ordered_pairs(y)
    wrong_without_lower = (f[:, lower] >= y[higher]).sum(axis=1)
    wrong_without_higher = (f[:, higher] <= y[lower]).sum(axis=1)
    losses: FloatArray = (wrong_without_lower + wrong_without_higher).astype(np.float64)
    return losses


def compute_ranking_weights(losses: FloatArray) -> FloatArray:
    """Compute the share of the samples in which a process ranks best, (T,).

    A sample in which several processes rank best is divided evenly among them. Processes that would
    dilute the weights (`DILUTION_QUANTILE`) get weight 0.

    Args:
        losses: Ranking losses of the processes, the current task's last, shape (T, S).
    """
    dilutes = np.median(losses, axis=1) > np.quantile(losses[-1], DILUTION_QUANTILE)
    dilutes[-1] = False
    allowed_losses = np.where(dilutes[:, None], np.inf, losses)
    is_best = allowed_losses == allowed_losses.min(axis=0)
    share_of_sample = is_best / is_best.sum(axis=0)
    weights: FloatArray = share_of_sample.mean(axis=1)
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
