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
        """Compute the weight of each task's process from its distance to the current task.

        The distance of an earlier task is the share of the pairs of this task's evaluations whose
        order its process predicts wrongly. The lower the distance, the higher the weight, which is
        0 from the distance `BANDWIDTH` on (the Epanechnikov kernel).

        Args:
            X: Features of this task's evaluations, shape (n, p).
            y: Their standardised losses, shape (n,).
            target: The process of this task, which is not needed, as its distance is 0.

        Returns:
            Weights of the earlier tasks' `processes` and, last, of `target`, shape (T,).
        """
        distances = []
        for process in self.processes:
            predicted_losses, _ = process.predict(X)
            distances.append(compute_share_of_misranked_pairs(predicted_losses, y))
        distances.append(0.0)  # from this task to itself
        relative_distances = np.array(distances) / BANDWIDTH
        return evaluate_epanechnikov_kernel(relative_distances)

    def combine_sds(self, weights: FloatArray, sds: FloatArray) -> FloatArray:
        """Return the standard deviation (m,) of this task's process alone, as in the paper.

        Args:
            weights: Weights of K processes, shape (K,); not used.
            sds: Standard deviations of the processes, this task's last, at m configurations, shape
                (K, m).
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

        The mean is over the processes that have a positive weight, `used_processes`. These are
        processes of earlier tasks and, last, that of this task. Their weights have the sum 1.

        Args:
            predict: Predicts the weighted mean of the losses. It is not used, as each process
                predicts an improvement of its own.
            best: Lowest standardised loss of this task so far.
        """
        from hpobench_ordered.methods._gp.acquisition import log_expected_improvement

        *sources, target = self.used_processes
        *source_weights, target_weight = self.used_weights

        # An earlier task's process has its own scale of losses. The improvement that it predicts is
        # therefore over its own lowest prediction for a configuration tried on this task.
        tried_units = np.concatenate([self.evaluated_units(), self.pending_units()])
        tried_X = self.features(tried_units)
        lowest_predictions = []
        for process in sources:
            mean_of_tried, _ = process.predict(tried_X)
            lowest_predictions.append(mean_of_tried.min())

        def score(unit: FloatArray) -> FloatArray:
            """Compute the log of the weighted mean improvement (m,) of candidates in the unit cube.

            The processes of earlier tasks, `sources`, predict improvements where their means are
            below their lowest predictions for tried configurations. The improvement of this task's
            process, `target`, is the expected one.
            """
            X = self.features(unit)
            improvements = np.empty((len(sources), len(X)))  # predicted by each earlier process
            for i, process in enumerate(sources):
                mean, _ = process.predict(X)
                improvements[i] = np.maximum(lowest_predictions[i] - mean, 0.0)
            source_part = np.array(source_weights) @ improvements
            with np.errstate(divide="ignore"):  # the log of no improvement is -inf
                log_source_part = np.log(source_part)

            target_mean, target_sd = target.predict(X)
            log_improvement = log_expected_improvement(target_mean, target_sd, best)
            log_target_part = np.log(target_weight) + log_improvement
            # The log of the sum of both parts is computed from their logarithms, as expected
            # improvements may be too small for a float.
            log_sum: FloatArray = np.logaddexp(log_source_part, log_target_part)
            return log_sum

        return score


def compute_share_of_misranked_pairs(predicted_losses: FloatArray, losses: FloatArray) -> float:
    """Compute the share of the pairs of evaluations whose order the predictions get wrong.

    Pairs of equal losses do not count. Without any pair the share is 0.

    Args:
        predicted_losses: Predictions for n evaluations, shape (n,).
        losses: Their true losses, shape (n,).
    """
    # Indices of both evaluations of each pair, the one with the lower loss first.
    better, worse = find_ordered_pairs(losses)
    pair_count = len(better)
    if pair_count == 0:
        return 0.0
    is_misranked = predicted_losses[better] >= predicted_losses[worse]
    return float(is_misranked.mean())


def evaluate_epanechnikov_kernel(distances: FloatArray) -> FloatArray:
    """Compute the kernel 3/4 (1 - t^2) of each distance t, which is 0 for t above 1.

    Args:
        distances: Distances in units of the kernel's bandwidth, shape (T,).
    """
    kernel_values: FloatArray = 0.75 * np.maximum(1.0 - distances**2, 0.0)
    return kernel_values


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
