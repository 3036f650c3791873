"""TST-R and TAF-R: processes of earlier tasks, weighted by similarity of their rankings.

=========  ======  ================================================================================
symbol     shape   meaning
=========  ======  ================================================================================
T          scalar  tasks, the current one last
n, m       scalar  evaluations of the current task, candidates
X          (n, p)  features of the evaluated configurations
y          (n,)    their standardised losses
distance   (T,)    share of the pairs of evaluations that the mean of a task's process misranks;
                   0 for the current task
rho        scalar  bandwidth
weight     (T,)    3/4 (1 - (distance / rho)^2) up to a distance of rho, then 0
=========  ======  ================================================================================

Wistuba, Schilling and Schmidt-Thieme (2016), section 4; (2018), section 5.
"""

from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._model_based import Scorer
from hpobench_ordered.methods._sources import Ensemble, Predict, find_ordered_pairs
from hpobench_ordered.methods.base import MethodSpec

if TYPE_CHECKING:
    from hpobench_ordered.methods._gp.model import GaussianProcess

BANDWIDTH = 0.1
"""Share of misranked pairs above which a task has weight 0, rho."""


class TSTR(Ensemble):
    """Bayesian optimisation with a two-stage transfer surrogate with rankings.

    The mean is a weighted mean over the processes of all tasks, where the weight depends on how
    well a process ranks the evaluations of the current task. The standard deviation is that of the
    current task's process.
    """

    def compute_weights(
        self, X: FloatArray, y: FloatArray, target: "GaussianProcess"
    ) -> FloatArray:
        """Compute weights (T,) of the earlier tasks' `processes` and, last, of this task's.

        The distance of an earlier task is the share of the pairs of this task's evaluations that
        its process misranks; the Epanechnikov kernel turns distances into weights, which are 0 from
        the distance `BANDWIDTH` on.

        Args:
            X: Features of this task's evaluations, shape (n, p).
            y: Their standardised losses, shape (n,).
            target: The process of this task, which is not needed: its distance is 0 by definition.
        """
        distances = []
        for process in self.processes:
            predicted_losses, _ = process.predict(X)
            distances.append(compute_share_of_misranked_pairs(predicted_losses, y))
        distances.append(0.0)  # from this task to itself
        return evaluate_epanechnikov_kernel(np.array(distances) / BANDWIDTH)

    def combine_sds(self, weights: FloatArray, sds: FloatArray) -> FloatArray:
        """Return the standard deviation (m,) of this task's process alone, as in the paper.

        Args:
            weights: Weights of the processes, shape (K,); not used.
            sds: Their standard deviations at m configurations, shape (K, m), this task's last.
        """
        sd_of_target: FloatArray = sds[-1]
        return sd_of_target


class TAFR(TSTR):
    """Bayesian optimisation with the transfer acquisition function with rankings.

    The score is the weighted mean of this task's expected improvement and of the improvements
    predicted by the processes of the earlier tasks, over their best prediction for the
    configurations evaluated on this task; weights are those of `TSTR`.
    """

    def make_acquisition(self, predict: Predict, best: float) -> Scorer:
        """Make the function that scores candidates by the log of the weighted mean improvement.

        `used_processes` are the processes with a positive weight, this task's last, and
        `used_weights` their weights, of sum 1; `fit_posterior` has set both.

        Args:
            predict: Prediction of their weighted mean; not used, as each predicts for itself.
            best: Lowest standardised loss of this task so far.
        """
        from hpobench_ordered.methods._gp.acquisition import log_expected_improvement

        *sources, target = self.used_processes
        *source_weights, target_weight = self.used_weights

        # An earlier task's process has its own scale of losses: the improvement that it predicts is
        # over its own lowest prediction for a configuration tried on this task.
        tried_units = np.concatenate([self.evaluated_units(), self.pending_units()])
        tried_X = self.features(tried_units)
        lowest_predictions = []
        for process in sources:
            mean_of_tried, _ = process.predict(tried_X)
            lowest_predictions.append(mean_of_tried.min())

        def score(unit: FloatArray) -> FloatArray:
            """Compute the log of the weighted mean improvement (m,) of candidates in the unit cube.

            An earlier task's process, one of `sources`, predicts an improvement where its mean is
            below its own lowest prediction for a configuration tried on this task. For this task's
            process, `target`, it is the expected improvement.
            """
            X = self.features(unit)
            means = np.empty((len(sources), len(X)))
            for i, process in enumerate(sources):
                means[i], _ = process.predict(X)
            lowest = np.array(lowest_predictions)[:, None]  # of each process
            improvements = np.maximum(lowest - means, 0.0)
            source_part = np.array(source_weights) @ improvements
            with np.errstate(divide="ignore"):  # the log of no improvement is -inf
                log_source_part = np.log(source_part)

            # The sum of both parts is computed from their logarithms, as expected improvements may
            # be too small for a float.
            target_mean, target_sd = target.predict(X)
            log_improvement = log_expected_improvement(target_mean, target_sd, best)
            log_target_part = np.log(target_weight) + log_improvement
            log_mean: FloatArray = np.logaddexp(log_source_part, log_target_part)
            return log_mean

        return score


def compute_share_of_misranked_pairs(predicted_losses: FloatArray, losses: FloatArray) -> float:
    """Compute the share of the pairs of evaluations whose order predictions get wrong.

    Pairs of equal losses do not count. Without any pair the share is 0.

    Args:
        predicted_losses: Predictions for n evaluations, shape (n,).
        losses: Their true losses, shape (n,).
    """
    better, worse = find_ordered_pairs(losses)  # indices of both evaluations of each pair
    pair_count = len(better)
    if pair_count == 0:
        return 0.0
    is_misranked = predicted_losses[better] >= predicted_losses[worse]
    return float(is_misranked.mean())


def evaluate_epanechnikov_kernel(distances: FloatArray) -> FloatArray:
    """Compute 3/4 (1 - t^2) of each distance t; 0 where t is above 1.

    Args:
        distances: Distances in units of the kernel's bandwidth, shape (T,).
    """
    weights: FloatArray = 0.75 * np.maximum(1.0 - distances**2, 0.0)
    return weights


PAPER = "Wistuba, Schilling and Schmidt-Thieme"

SPECS = (
    MethodSpec(
        name="tst-r",
        method=TSTR,
        summary="Gaussian processes of all tasks, weighted by similarity of their rankings.",
        source=f"{PAPER} (2016), section 4: rankings as meta-features, bandwidth {BANDWIDTH}",
        min_history=1,
        changed_spaces=True,
    ),
    MethodSpec(
        name="taf-r",
        method=TAFR,
        summary="bo with improvements predicted by models of earlier tasks, weighted as in tst-r.",
        source=f"{PAPER} (2018), section 5: rankings as meta-features, bandwidth {BANDWIDTH}",
        min_history=1,
        changed_spaces=True,
    ),
)
