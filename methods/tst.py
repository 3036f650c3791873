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
        """Compute weights (T,) by the Epanechnikov kernel of the distances of rankings."""
        distances = []
        for process in self.processes:
            mean, _ = process.predict(X)
            distances.append(share_of_misranked_pairs(mean, y))
        distance_of_target = 0.0
        return epanechnikov(np.array([*distances, distance_of_target]) / BANDWIDTH)

    def combine_sds(self, weights: FloatArray, sds: FloatArray) -> FloatArray:
        """Return the standard deviation (m,) of this task's process, which comes last."""
        sd_of_target: FloatArray = sds[-1]
        return sd_of_target


class TAFR(TSTR):
    """Bayesian optimisation with the transfer acquisition function with rankings.

    The score is the weighted mean of this task's expected improvement and of the improvements
    predicted by the processes of the earlier tasks, over their best prediction for the
    configurations evaluated on this task; weights are those of `TSTR`.
    """

    def make_acquisition(self, predict: Predict, best: float) -> Scorer:
        """Score by the logarithm of the weighted mean of improvements."""
        from hpobench_ordered.methods._gp.acquisition import log_expected_improvement

        *sources, target = self.used_processes
        *source_weights, target_weight = self.used_weights
        tried = self.features(np.concatenate([self.evaluated_units(), self.pending_units()]))
        best_predictions = [process.predict(tried)[0].min() for process in sources]

        def score(unit: FloatArray) -> FloatArray:
            """Log of the weighted mean of improvements (m,) at unit vectors (m, d)."""
            X = self.features(unit)
            means = np.empty((len(sources), len(X)))
            for i, process in enumerate(sources):
                means[i], _ = process.predict(X)
            improvements = np.maximum(np.array(best_predictions)[:, None] - means, 0.0)
            source_part = np.array(source_weights) @ improvements
            target_improvement = log_expected_improvement(*target.predict(X), best)
            log_target_part = np.log(target_weight) + target_improvement
            with np.errstate(divide="ignore"):  # the log of no improvement is -inf
                log_source_part = np.log(source_part)
            log_mean: FloatArray = np.logaddexp(log_source_part, log_target_part)
            return log_mean

        return score


def share_of_misranked_pairs(mean: FloatArray, y: FloatArray) -> float:
    """Compute the share of the pairs of different losses y (n,) that means (n,) misrank.

    It is 0 if there is no pair.
    """
    lower, higher = find_ordered_pairs(y)
    if not len(lower):
        return 0.0
    return float((mean[lower] >= mean[higher]).mean())


def epanechnikov(distances: FloatArray) -> FloatArray:
    """Evaluate the Epanechnikov kernel at distances in units of the bandwidth, elementwise."""
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
