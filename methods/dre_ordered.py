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
    """Whether each loss (n,) is below the gamma-quantile of all, shape (n,).

    `GAMMA` is about the share of good ones. Any threshold between two neighbouring losses gives the
    same split as an interpolated quantile; the upper loss is used, because interpolation may
    overflow.
    """
    return losses < np.quantile(losses, GAMMA, method="higher")


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
        """Choose the initial configurations, those of the method simple-ordered.

        They are `TRANSFERRED` of the best of the previous tasks, converted to this search space.
        """
        sources = convert_history(self.history, self.space, self.rng)
        return self.space.configs(order_configurations(sources, count=TRANSFERRED))

    def iter_candidates(self) -> Iterator[FloatArray]:
        """Yield a block of `CANDIDATES` random configurations, then others if all were tried.

        Yields:
            Configurations in the unit cube, shape (m, number of hyperparameters).
        """
        yield self.region.sample_unit(self.rng, CANDIDATES)
        yield from super().iter_candidates()

    def make_scorer(self) -> Scorer:
        """Fit the classifier of this task's evaluations, good (1) or not (0).

        The score is its log odds of being good, that is below the gamma-quantile of the losses.
        """
        from hpobench_ordered.methods._boosting.model import BoostedTrees, Loss

        good = is_good(self.evaluated_losses())
        model = BoostedTrees.fit(
            self.region.features(self.evaluated_units()),
            good.astype(np.float64),
            loss=Loss.LOGISTIC,
        )
        return lambda unit: model.predict(self.region.features(unit))


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
