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
        """Estimate the probability that each task's process ranks this task's evaluations best.

        Samples are drawn from all processes. The probability is the share of the samples in which a
        process orders the fewest pairs of evaluations wrongly.

        Args:
            X: Features of this task's evaluations, shape (n, p).
            y: Their standardised losses, shape (n,).
            target: The process of this task.

        Returns:
            The probabilities, of the earlier tasks' `processes` and, last, of `target`, shape (T,).
        """
        process_count = len(self.processes) + 1
        if len(y) < MIN_RANKED:  # too few to learn weights from: all are equal
            return np.full(process_count, 1.0 / process_count)

        # A random subset if there are many evaluations, as there are even more pairs.
        ranked_rows = self.rng.permutation(len(y))[:MAX_RANKED]
        ranked_X = X[ranked_rows]
        ranked_y = y[ranked_rows]
        # Standard normal numbers, from which samples of each process are made.
        normal = self.rng.standard_normal((process_count, SAMPLES, len(ranked_rows)))
        normal_of_earlier = normal[:-1]
        normal_of_target = normal[-1]

        ranking_losses = []  # of the samples of each process, (SAMPLES,)
        for process, normal_of_process in zip(self.processes, normal_of_earlier, strict=True):
            samples = process.sample(ranked_X, normal_of_process)
            ranking_losses.append(compute_ranking_losses(samples, ranked_y))

        # This task's process was fitted to these evaluations and would rank them too well.
        # Therefore it predicts each of them from the others.
        mean, sd = target.predict_leave_one_out()
        target_samples = mean[ranked_rows] + sd[ranked_rows] * normal_of_target
        ranking_losses.append(compute_left_out_ranking_losses(target_samples, ranked_y))
        return compute_ranking_weights(np.array(ranking_losses))

    def make_acquisition(self, predict: Predict, best: float) -> Scorer:
        """Make the function that scores candidates by their log expected improvement.

        The improvement is that on the lowest loss which the ensemble predicts for a configuration
        that was evaluated or is pending.

        Args:
            predict: The prediction function of the ensemble.
            best: Lowest standardised loss of this task. It is not used, as it cannot be compared
                with the ensemble's predictions: these are means over tasks that were standardised
                separately.
        """
        tried_units = np.concatenate([self.evaluated_units(), self.pending_units()])
        predicted_means, _ = predict(self.features(tried_units))
        lowest_prediction = float(predicted_means.min())
        return super().make_acquisition(predict, lowest_prediction)

    def combine_sds(self, weights: FloatArray, sds: FloatArray) -> FloatArray:
        """Compute the standard deviation (m,) of a weighted sum of independent processes.

        Its variance is the sum of the processes' variances times their squared weights.

        Args:
            weights: Weights of the processes, shape (K,).
            sds: Their standard deviations at m configurations, shape (K, m).
        """
        variance = weights**2 @ sds**2
        combined_sd: FloatArray = np.sqrt(variance)
        return combined_sd


def compute_ranking_losses(samples: FloatArray, y: FloatArray) -> FloatArray:
    """Compute the ranking loss of each sample of a process: how many pairs it orders wrongly.

    A pair counts twice, as the paper sums over the pairs (j, k) and (k, j). Pairs of equal losses
    do not count.

    Args:
        samples: S samples of a process at n evaluated configurations, shape (S, n).
        y: Losses of these evaluations, shape (n,).

    Returns:
        The ranking losses, shape (S,).
    """
    # Indices of both evaluations of each pair, the one with the lower loss first.
    better, worse = find_ordered_pairs(y)
    is_misranked = samples[:, better] >= samples[:, worse]  # (S, number of pairs)
    ranking_losses: FloatArray = 2.0 * is_misranked.sum(axis=1)
    return ranking_losses


def compute_left_out_ranking_losses(samples: FloatArray, y: FloatArray) -> FloatArray:
    """Compute the ranking loss of each sample of the current task's process.

    The process was fitted to the evaluations that it is to rank. Therefore each evaluation is left
    out once, and a sample of it, predicted from the others, is compared with their actual losses. A
    pair is tested twice: with the better evaluation left out, and with the worse one. The ranking
    loss is the number of these tests with a wrong order.

    Args:
        samples: S samples of n evaluations, each predicted from the n - 1 others, shape (S, n).
        y: Losses of these evaluations, shape (n,).

    Returns:
        The ranking losses, shape (S,).
    """
    # Indices of both evaluations of each pair, the one with the lower loss first.
    better, worse = find_ordered_pairs(y)
    is_wrong_without_better = samples[:, better] >= y[worse]  # (S, number of pairs)
    is_wrong_without_worse = samples[:, worse] <= y[better]
    error_counts = is_wrong_without_better.sum(axis=1) + is_wrong_without_worse.sum(axis=1)
    ranking_losses: FloatArray = error_counts.astype(np.float64)
    return ranking_losses


def compute_ranking_weights(losses: FloatArray) -> FloatArray:
    """Compute each process's weight: the share of samples in which its ranking loss is lowest.

    If several processes have the lowest ranking loss in a sample, it is shared evenly among them.

    A process is left out, with the weight 0, if its median ranking loss is above the quantile
    `DILUTION_QUANTILE` of the current task's process. Many such poor processes, each the best in a
    few samples by chance, would dilute the weights of the good ones.

    Args:
        losses: Ranking losses of T processes, the current task's last, in S samples, shape (T, S).

    Returns:
        The weights, of sum 1, shape (T,).
    """
    losses_of_target = losses[-1]
    largest_median = np.quantile(losses_of_target, DILUTION_QUANTILE)
    is_left_out = np.median(losses, axis=1) > largest_median
    is_left_out[-1] = False  # the current task's process always takes part

    # With an infinite ranking loss, a process is the best in no sample.
    comparable_losses = np.where(is_left_out[:, None], np.inf, losses)
    is_best = comparable_losses == comparable_losses.min(axis=0)  # in each sample, (T, S)
    best_count = is_best.sum(axis=0)  # of processes, in each sample
    share_of_sample = is_best / best_count
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
