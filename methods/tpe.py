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
        """Determine which hyperparameters are searched, and from when on there is a model.

        Until then, for `random_trials` results, suggestions are random.
        """
        from hpobench_ordered.methods._coding import count_choices
        from hpobench_ordered.methods._tpe import count_needed_evaluations

        super().prepare()
        # Which hyperparameters have more than one value, (d,).
        self._is_searched = self.region.is_searched
        self._choices = count_choices(self.space.parameters)[self._is_searched]  # 0 for numbers
        self.random_trials = count_needed_evaluations(len(self._choices))
        # The last model, which candidates are drawn from.
        self._model: ParzenModel | None = None

    def make_scorer(self) -> Scorer:
        """Fit the densities of good and bad configurations; the score is their log ratio."""
        from hpobench_ordered.methods._tpe import ParzenModel

        is_searched = self._is_searched  # hyperparameters with one value are not in the model
        unit = self.evaluated_units()[:, is_searched]
        model = ParzenModel.fit(unit, self.evaluated_losses(), self._choices)
        self._model = model  # candidates are drawn from it
        return lambda unit: model.score(np.ascontiguousarray(unit[:, is_searched]))

    def iter_candidates(self) -> Iterator[FloatArray]:
        """Yield candidates around good configurations; if all of these were tried, random ones.

        `CANDIDATES` are drawn from the density of good configurations of the last model; before
        there is one, all candidates are random.

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
