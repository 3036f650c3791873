"""TPE: the tree-structured Parzen estimator (Bergstra et al. 2011)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._model_based import ModelBased, Scorer
from hpobench_ordered.methods.base import MethodKind, MethodSpec

if TYPE_CHECKING:
    from hpobench_ordered.methods._tpe import ParzenModel

CANDIDATES = 64
"""Number of candidates, drawn around good configurations."""
RANDOM_FRACTION = 1.0 / 3.0
"""Share of the suggestions that are random."""


class TPE(ModelBased):
    """Suggests the candidate with the highest ratio of two densities: good and bad configurations.

    A model is fitted from 2 (d + 1) evaluations on, for d hyperparameters. Before, and in a third
    of the cases, suggestions are random. Pending evaluations are not suggested again and otherwise
    ignored.
    """

    random_fraction = RANDOM_FRACTION

    def prepare(self) -> None:
        """Determine which hyperparameters are in the model, and how many evaluations it needs.

        Suggestions are random for that number of trials, `random_trials`.
        """
        from hpobench_ordered.methods._coding import count_choices
        from hpobench_ordered.methods._tpe import count_needed_evaluations

        super().prepare()
        # Whether each hyperparameter has more than one value; the others are not in the model.
        self._is_searched = self.region.is_searched
        # Number of choices of each hyperparameter in the model; 0 for numbers.
        self._choices = count_choices(self.space.parameters)[self._is_searched]
        searched_count = len(self._choices)
        self.random_trials = count_needed_evaluations(searched_count)
        # The model as fitted last, from which candidates are drawn; None before the first fit.
        self._model: ParzenModel | None = None

    def make_scorer(self) -> Scorer:
        """Fit the densities of good and bad configurations, and make the function that scores.

        The score of a candidate is the logarithm of the ratio of both densities there.
        """
        from hpobench_ordered.methods._tpe import ParzenModel

        is_searched = self._is_searched
        evaluated = self.evaluated_units()[:, is_searched]
        model = ParzenModel.fit(evaluated, self.evaluated_losses(), self._choices)
        self._model = model  # candidates are drawn from it

        def score(unit: FloatArray) -> FloatArray:
            """Compute the log ratio (m,) of both densities at candidates in the unit cube, (m, d).

            Hyperparameters with a single value are not in the model.
            """
            return model.score(np.ascontiguousarray(unit[:, is_searched]))

        return score

    def iter_candidates(self) -> Iterator[FloatArray]:
        """Yield candidates around good configurations, then random ones in case all were tried.

        The former are `CANDIDATES` draws from the model's density of good configurations. Before
        there is a model, all candidates are random.

        Yields:
            Configurations in the unit cube, shape (m, d).
        """
        if self._model is not None:
            # The model has only the hyperparameters with more than one value, where `_is_searched`
            # is true. The others have their single value in the middle of the region.
            unit = np.tile(self.region.middle, (CANDIDATES, 1))
            unit[:, self._is_searched] = self._model.good.sample(self.rng, CANDIDATES)
            # `canonical` moves discrete values to the middle of their bins, and makes inactive ones
            # NaN.
            yield self.space.canonical(unit)
        yield from super().iter_candidates()


SPECS = (
    MethodSpec(
        name="tpe",
        method=TPE,
        summary="Tree-structured Parzen estimator: densities of good and bad configurations.",
        source=(
            "Stoll et al. (2020), after Bergstra et al. (2011) and Falkner et al. (2018): 15% are "
            "good, 64 candidates, a third of the suggestions random"
        ),
        uses_history=False,
        changed_spaces=True,
        kind=MethodKind.WITHOUT_TRANSFER,
    ),
)
