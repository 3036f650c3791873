"""DREOrdered: SimpleOrdered with density-ratio estimation instead of the Gaussian process.

Hellan et al. (2023), appendix G.7; Tiao et al. (2021), BORE: Bayesian optimization by
density-ratio estimation.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from hpobench_ordered._typing import BoolArray, Config, FloatArray
from hpobench_ordered.methods._carry_over import convert_history
from hpobench_ordered.methods._model_based import ModelBased, Scorer
from hpobench_ordered.methods.base import MethodKind, MethodSpec
from hpobench_ordered.methods.simple_ordered import TRANSFERRED, order_configurations

GAMMA = 0.25
"""Share of the evaluations that count as good, gamma."""
CANDIDATES = 500
"""A suggestion is chosen from this many random configurations."""
MIN_EVALUATIONS = 6
"""A classifier is fitted if there are at least this many evaluations."""


def is_good(losses: FloatArray) -> BoolArray:
    """Return for each loss (n,) whether it is below the quantile of all losses at `GAMMA`.

    So about the share `GAMMA` of the evaluations counts as good.
    """
    # Where the quantile lies between two losses, numpy would interpolate, which may overflow. The
    # higher one of the two splits the losses in the same way.
    threshold = np.quantile(losses, GAMMA, method="higher")
    return losses < threshold


class DREOrdered(ModelBased):
    """Density-ratio estimation that starts with the best configurations of the previous tasks.

    A classifier, boosted trees, learns which evaluations of this task are below the gamma-quantile
    of the losses. The suggestion is the untried one of 500 random configurations with the highest
    predicted probability. Trees give many of them the same probability; the first one drawn is
    chosen. With XGBoost's defaults no tree is split before about ten results: until then
    suggestions are random. Pending evaluations are not repeated and otherwise ignored.
    """

    random_trials = MIN_EVALUATIONS

    def initial_configurations(self) -> Sequence[Config]:
        """Choose `TRANSFERRED` of the best configurations of the previous tasks.

        They are those with which the method simple-ordered starts, converted to this search space.
        """
        previous_tasks = convert_history(self.history, self.space, self.rng)
        coded_values = order_configurations(previous_tasks, count=TRANSFERRED)
        return self.space.configs(coded_values)

    def iter_candidates(self) -> Iterator[FloatArray]:
        """Yield a block of `CANDIDATES` random configurations, then others in case all were tried.

        Yields:
            Configurations in the unit cube, shape (m, number of hyperparameters).
        """
        yield self.region.sample_unit(self.rng, CANDIDATES)
        yield from super().iter_candidates()

    def make_scorer(self) -> Scorer:
        """Fit a classifier to this task's evaluations, and make the function that scores by it.

        The classifier learns which evaluations are good, that is among the lowest losses. The score
        of a candidate is the log odds, as predicted by the classifier, that it is good.
        """
        from hpobench_ordered.methods._boosting.model import BoostedTrees, Loss

        X = self.region.features(self.evaluated_units())
        labels = is_good(self.evaluated_losses()).astype(np.float64)  # 1 if good, 0 if not
        classifier = BoostedTrees.fit(X, labels, loss=Loss.LOGISTIC)
        return lambda unit: classifier.predict(self.region.features(unit))


SPECS = (
    MethodSpec(
        name="dre-ordered",
        method=DREOrdered,
        summary="simple-ordered with density-ratio estimation instead of a Gaussian process.",
        source=(
            "Hellan et al. (2023), appendix G.7; Tiao et al. (2021) with gamma = 1/4, boosted "
            "trees (XGBoost's defaults) and 500 random candidates; N = 5"
        ),
        min_history=1,
        changed_spaces=True,
        kind=MethodKind.ORDERED,
        version=2,
    ),
)
