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
        """Estimate the probability (T,) that each process ranks this task's evaluations best.

        `processes` are those of the T - 1 earlier tasks; this task's comes last.

        Args:
            X: Features of this task's evaluations, shape (n, p).
            y: Their standardised losses, shape (n,).
            target: The process of this task.
        """
        process_count = len(self.processes) + 1
        if len(y) < MIN_RANKED:  # too few to learn weights from: all are equal
            return np.full(process_count, 1.0 / process_count)

        # A random subset if there are many evaluations, as there are even more pairs.
        ranked_rows = self.rng.permutation(len(y))[:MAX_RANKED]
        ranked_X = X[ranked_rows]
        ranked_y = y[ranked_rows]
        # Random numbers for `SAMPLES` samples of each process at these configurations.
        normal = self.rng.standard_normal((process_count, SAMPLES, len(ranked_rows)))
        normal_of_earlier = normal[:-1]
        normal_of_target = normal[-1]

        # A sample's ranking loss is the number of pairs of evaluations that it orders wrongly.
        losses = []  # of all samples of each process, (SAMPLES,)
        for process, draws in zip(self.processes, normal_of_earlier, strict=True):
            samples = process.sample(ranked_X, draws)
            losses.append(compute_ranking_losses(samples, ranked_y))

        # This task's process was fitted to these evaluations and would rank them too well: it
        # predicts each of them from the others.
        mean, sd = target.predict_leave_one_out()
        target_samples = mean[ranked_rows] + sd[ranked_rows] * normal_of_target
        losses.append(compute_left_out_ranking_losses(target_samples, ranked_y))
        return compute_ranking_weights(np.array(losses))

    def make_acquisition(self, predict: Predict, best: float) -> Scorer:
        """Score by the improvement on the lowest prediction for a tried configuration.

        The score is the log of its expected value.

        Args:
            predict: The prediction function of the ensemble.
            best: Lowest standardised loss of this task; not used, as the ensemble's mean, which
                mixes standardised tasks, is on a scale of its own.
        """
        tried_units = np.concatenate([self.evaluated_units(), self.pending_units()])
        means_of_tried, _ = predict(self.features(tried_units))
        lowest_prediction = float(means_of_tried.min())
        return super().make_acquisition(predict, lowest_prediction)

    def combine_sds(self, weights: FloatArray, sds: FloatArray) -> FloatArray:
        """Compute the standard deviation (m,) of a weighted sum of independent processes.

        Args:
            weights: Weights of the processes, shape (K,).
            sds: Their standard deviations at m configurations, shape (K, m).
        """
        combined: FloatArray = np.sqrt(weights**2 @ sds**2)
        return combined


def compute_ranking_losses(samples: FloatArray, y: FloatArray) -> FloatArray:
    """Count the pairs of evaluations whose order each sample of a process gets wrong, shape (S,).

    Each counts twice, as the paper sums over the pairs (j, k) and (k, j). Pairs of equal losses do
    not count.

    Args:
        samples: S samples of a process at n evaluated configurations, shape (S, n).
        y: Losses of these evaluations, shape (n,).
    """
    better, worse = find_ordered_pairs(y)  # indices of both evaluations of each pair
    is_misranked = samples[:, better] >= samples[:, worse]
    losses: FloatArray = 2.0 * is_misranked.sum(axis=1)
    return losses


def compute_left_out_ranking_losses(samples: FloatArray, y: FloatArray) -> FloatArray:
    """Count the pairs of evaluations that samples of the current task's process misrank, (S,).

    The process knows these evaluations, so each is left out once: what is predicted for it from the
    others is compared with their losses. A pair is tested twice, with either evaluation left out.

    Args:
        samples: S samples of n evaluations, each predicted from the n - 1 others, shape (S, n).
        y: Losses of these evaluations, shape (n,).
    """
    better, worse = find_ordered_pairs(y)  # indices of both evaluations of each pair
    # Where the better one is left out, its sample should be below the loss of the worse one.
    errors_on_better = (samples[:, better] >= y[worse]).sum(axis=1)
    errors_on_worse = (samples[:, worse] <= y[better]).sum(axis=1)
    losses: FloatArray = (errors_on_better + errors_on_worse).astype(np.float64)
    return losses


def compute_ranking_weights(losses: FloatArray) -> FloatArray:
    """Compute the share (T,) of the samples in which each process has the lowest ranking loss.

    A sample in which several processes have the lowest is divided evenly among them. A process
    whose median loss is above a high quantile, `DILUTION_QUANTILE`, of the losses of the current
    task's process gets weight 0: many such processes, each the best in a few samples by chance,
    would dilute the weights of the good.

    Args:
        losses: Ranking losses of the processes, the current task's last, shape (T, S).
    """
    losses_of_target = losses[-1]
    limit = np.quantile(losses_of_target, DILUTION_QUANTILE)
    is_left_out = np.median(losses, axis=1) > limit
    is_left_out[-1] = False  # the current task's process always takes part
    allowed_losses = np.where(is_left_out[:, None], np.inf, losses)
    is_best = allowed_losses == allowed_losses.min(axis=0)  # in each sample, (T, S)
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
