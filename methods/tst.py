"""TST-R and TAF-R: processes of earlier tasks, weighted by similarity of their rankings.

=======  ============  ============================================================================
symbol   shape         meaning
=======  ============  ============================================================================
T        scalar        tasks, the current one last
n        scalar        evaluations of the current task
mu_i     (n,)          mean predicted by the process of task i for them
d_i      scalar        distance of task i: share of the pairs of evaluations that mu_i misranks
rho      scalar        bandwidth
w_i      scalar        weight, 3/4 (1 - (d_i / rho)^2) up to d_i = rho, then 0
=======  ============  ============================================================================

Wistuba, Schilling and Schmidt-Thieme (2016), section 4; (2018), section 5.
"""

from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._model_based import Scorer
from hpobench_ordered.methods._sources import Ensemble, Predict, ordered_pairs
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

    def weights(self, X: FloatArray, y: FloatArray, target: "GaussianProcess") -> FloatArray:
        """Weights (T,) by the Epanechnikov kernel."""
        means = [process.predict(X)[0] for process in self.processes]
        distances = [discordance(mean, y) for mean in means]
        return epanechnikov(np.array([*distances, 0.0]) / BANDWIDTH)

    def spread(self, weights: FloatArray, sds: FloatArray) -> FloatArray:
        """Standard deviation (m,) of this task's process."""
        of_target: FloatArray = sds[-1]
        return of_target


class TAFR(TSTR):
    """Bayesian optimisation with the transfer acquisition function with rankings.

    The score is the weighted mean of this task's expected improvement and of the improvements
    predicted by the processes of the earlier tasks, over their best prediction for the
    configurations evaluated on this task; weights are those of `TSTR`.
    """

    def acquisition(self, predict: Predict, best: float) -> Scorer:
        """Score by the logarithm of the weighted mean of improvements."""
        from hpobench_ordered.methods._gp.acquisition import log_expected_improvement

        *sources, target = self.used
        weights = self.used_weights
        seen = np.concatenate([self.evaluated_units(), self.pending_units()])
        lowest = np.array([process.predict(self.features(seen))[0].min() for process in sources])

        def score(unit: FloatArray) -> FloatArray:
            X = self.features(unit)
            means = np.array([process.predict(X)[0] for process in sources]).reshape(-1, len(X))
            predicted = weights[:-1] @ np.maximum(lowest[:, None] - means, 0.0)
            own = np.log(weights[-1]) + log_expected_improvement(*target.predict(X), best)
            with np.errstate(divide="ignore"):
                total: FloatArray = np.logaddexp(np.log(predicted), own)
            return total

        return score


def discordance(mean: FloatArray, y: FloatArray) -> float:
    """Share of the pairs of different losses y (n,) that means (n,) misrank; 0 without pairs."""
    lower, higher = ordered_pairs(y)
    return float((mean[lower] >= mean[higher]).mean()) if len(lower) else 0.0


def epanechnikov(distances: FloatArray) -> FloatArray:
    """The Epanechnikov kernel of distances in units of the bandwidth, elementwise."""
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
