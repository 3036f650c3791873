"""Strategies after a search space was changed: Stoll et al. (2020), with TPE or `bo`.

The old step is the last task of the history: after an adjustment, the same task on the old search
space; under other protocols, the previous task, whose search space is the same. `SpaceChange`
determines which hyperparameters are shared and which are new.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import BoolArray, Config, FloatArray
from hpobench_ordered.core.extras import SKLEARN, Extra
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.methods._candidates import Region
from hpobench_ordered.methods._model_based import ModelBased, Scorer
from hpobench_ordered.methods.base import MethodFactory, MethodSpec
from hpobench_ordered.methods.bo import BayesianOptimisation, group_features
from hpobench_ordered.methods.bounding_box import Box
from hpobench_ordered.methods.tpe import TPE
from hpobench_ordered.space import SpaceChange

ROUNDING = 1e-9
"""Tolerance when importances, which are fractions of a variance, are compared."""


@dataclass(frozen=True, eq=False, slots=True)
class OldStep:
    """Evaluations from before the search space was changed.

    Attributes:
        evaluations: All evaluations, on the old space.
        change: How the space changed; at least one hyperparameter is shared.
        ranking: Values of the configurations in the shared space, best first, failed ones last;
            equal losses in order of evaluation, shape (n, k).
    """

    evaluations: Evaluations
    change: SpaceChange
    ranking: FloatArray


class AfterChange(ModelBased):
    """Base of the strategies: the old step, and the completion of configurations.

    Without a history, or if the spaces share no hyperparameter or no old configuration lies in the
    new space, there is no old step and the method is TPE or `bo`.
    """

    def prepare(self) -> None:
        """Extract the usable part of the history."""
        self.old = self._old_step()
        super().prepare()

    def old_best(self) -> FloatArray:
        """Best old configuration of the shared space as new values (d,), NaN where only new."""
        assert self.old is not None
        best: FloatArray = self.old.change.to_new(self.old.ranking[:1])[0]
        return best

    def completed(self, values: FloatArray) -> FloatArray:
        """Draw missing (NaN), active entries of coded values (d,) from the prior."""
        drawn = self.rng.random(self.space.dimension)
        prior = [p.decode(u) for p, u in zip(self.space.parameters, drawn, strict=True)]
        whole: FloatArray = np.where(np.isnan(values), prior, values)
        whole[~self.space.active(whole[None])[0]] = np.nan
        return whole

    def _old_step(self) -> OldStep | None:
        if not self.history:
            return None
        last = self.history[-1]
        change = SpaceChange.between(last.space, self.space)
        if not change.shared:
            warnings.warn(
                f"the search space shares no hyperparameter with the one of {last.task!r}: nothing "
                f"can be transferred. {'; '.join(change.describe())}",
                stacklevel=2,
            )
            return None
        shared = last.in_shared(change)
        losses = np.where(np.isfinite(shared.losses), shared.losses, np.inf)
        ranking = shared.values[np.argsort(losses, kind="stable")]
        return OldStep(last, change, ranking) if len(ranking) else None


class BestFirst(AfterChange):
    """The best old configuration first; new hyperparameters are drawn from the prior."""

    def initial_configurations(self) -> Sequence[Config]:
        """The best old configuration, completed."""
        if self.old is None:
            return ()
        return self.space.configs(self.completed(self.old_best())[None])


class Transfer(AfterChange):
    """Use a model of the old ranking on the shared space until there is one of the new space.

    Algorithm 1 of the paper. A model of the ranking needs two configurations.
    """

    plain: type[ModelBased]

    def prepare(self) -> None:
        """Fit the model of the shared space, M_both, to the ranks (lines 1 to 4)."""
        super().prepare()
        self._shared: ModelBased | None = None
        if self.old is None or len(self.old.ranking) < 2:
            return
        space = self.old.change.shared_space()
        self._shared = self.plain(
            space=space, rng=self.rng, history=(), context={}, budget=self.budget
        )
        for rank, config in enumerate(space.configs(self.old.ranking)):
            self._shared.tell(config, float(rank))
        self._score: Scorer = self._shared.make_scorer()

    def _suggest_before_model(self) -> FloatArray:
        """Coded values (d,) of an untried suggestion (lines 6 to 15)."""
        shared = self._shared
        if shared is None or self.rng.random() < self.random_fraction:
            return self._draw_untried()
        unit = next(shared.iter_candidates())
        for row in np.argsort(-self._score(unit), kind="stable"):
            values = self._combined(shared.space.decode(unit[row : row + 1]))
            if values not in self._tried:
                return values
        return self._draw_untried()

    def _combined(self, values: FloatArray) -> FloatArray:
        """Add new hyperparameters to a configuration of the shared space (1, k), shape (d,)."""
        assert self.old is not None
        change = self.old.change
        combined: FloatArray = change.to_new(values)[0]
        for j, name in enumerate(self.space.names):
            if name in change.shared and self.rng.random() < change.new_share(name):
                combined[j] = change.draw_only_new(name, self.rng)
        return self.completed(combined)


class PartlyFixed(AfterChange):
    """Fixes some shared hyperparameters at the best old configuration and searches the others."""

    def choose_region(self) -> Region:
        """The part of the space that is searched."""
        if self.old is None:
            return super().choose_region()
        fixed = np.where(self.are_fixed(self.old), self.old_best(), np.nan)
        return Box(self.space, fixed[None])

    def ask(self) -> Config:
        """Suggest the best old configuration if there is nothing to search."""
        if self.region.free.any():
            return super().ask()
        return self.space.configs(self.old_best()[None])[0]

    def are_fixed(self, old: OldStep) -> BoolArray:
        """Which hyperparameters of the new space stay as they were, shape (d,)."""
        return np.array([name in old.change.shared for name in self.space.names])


class OnlyOptimizeNew(PartlyFixed):
    """Fixes all shared hyperparameters at the best old configuration.

    If no hyperparameter is new, that configuration is repeated.
    """


class DropUnimportant(PartlyFixed):
    """Fixes shared hyperparameters of below-average importance at the best old configuration.

    Importance is the total effect in a functional analysis of variance of a forest that is fitted
    to the finite evaluations of the old step. With fewer than two of them nothing is fixed.
    """

    def are_fixed(self, old: OldStep) -> BoolArray:
        """Which hyperparameters of the new space stay as they were, shape (d,)."""
        from hpobench_ordered.analysis.anova import importance

        space = old.change.old
        finite = np.isfinite(old.evaluations.losses)
        if finite.sum() < 2:
            return np.zeros(self.space.dimension, dtype=np.bool_)
        total = importance(
            space.features(space.encode(old.evaluations.values[finite])),
            old.evaluations.losses[finite],
            rng=self.rng,
            groups=group_features(space),
        ).total
        unimportant = {
            name
            for name, effect in zip(space.names, total, strict=True)
            if effect < total.mean() - ROUNDING
        }
        fixed: BoolArray = np.array([name in unimportant for name in self.space.names])
        fixed &= super().are_fixed(old)
        return fixed


class TransferTPE(Transfer, TPE):
    """Transfer of a TPE model, then TPE."""

    plain = TPE


class TPEBestFirst(BestFirst, TPE):
    """The best old configuration, then TPE."""


class TransferTPEBestFirst(BestFirst, TransferTPE):
    """The best old configuration, then transfer of a TPE model."""


class OnlyOptimizeNewTPE(OnlyOptimizeNew, TPE):
    """TPE on the new hyperparameters."""


class DropUnimportantTPE(DropUnimportant, TPE):
    """TPE on the new and the important hyperparameters."""


class TransferGP(Transfer, BayesianOptimisation):
    """Transfer of a Gaussian process, then `bo`."""

    plain = BayesianOptimisation


class GPBestFirst(BestFirst, BayesianOptimisation):
    """The best old configuration, then `bo`."""


class TransferGPBestFirst(BestFirst, TransferGP):
    """The best old configuration, then transfer of a Gaussian process."""


class OnlyOptimizeNewGP(OnlyOptimizeNew, BayesianOptimisation):
    """`bo` on the new hyperparameters."""


class DropUnimportantGP(DropUnimportant, BayesianOptimisation):
    """`bo` on the new and the important hyperparameters."""


PAPER = "Stoll et al. (2020)"


def _spec(
    name: str, method: MethodFactory, summary: str, source: str, *extras: Extra
) -> MethodSpec:
    return MethodSpec(
        name,
        method,
        summary,
        source,
        min_history=1,
        changed_spaces=True,
        extras=extras,
        version=2,
    )


SPECS = (
    _spec(
        "transfer-tpe",
        TransferTPE,
        "tpe that follows the previous task's ranking until there is a model.",
        f"{PAPER}, algorithm 1",
    ),
    _spec(
        "best-first",
        TPEBestFirst,
        "tpe started with the previous task's best configuration.",
        f"{PAPER}: best-first",
    ),
    _spec(
        "transfer-tpe-best-first",
        TransferTPEBestFirst,
        "transfer-tpe started with the previous task's best configuration.",
        f"{PAPER}: the combination of transfer TPE and best-first",
    ),
    _spec(
        "only-optimize-new",
        OnlyOptimizeNewTPE,
        "tpe on the new hyperparameters alone, the others as in the best old configuration.",
        f"{PAPER}: only-optimize-new",
    ),
    _spec(
        "drop-unimportant",
        DropUnimportantTPE,
        "tpe on the new and the important hyperparameters, the others as in the old best.",
        f"{PAPER}: drop-unimportant, functional ANOVA (Hutter et al. 2014)",
        SKLEARN,
    ),
    _spec(
        "transfer-gp",
        TransferGP,
        "bo that follows the previous task's ranking until there is a model.",
        f"{PAPER}, algorithm 1 with a Gaussian process",
    ),
    _spec(
        "gp-best-first",
        GPBestFirst,
        "bo started with the previous task's best configuration.",
        f"{PAPER}: best-first with a Gaussian process",
    ),
    _spec(
        "transfer-gp-best-first",
        TransferGPBestFirst,
        "transfer-gp started with the previous task's best configuration.",
        f"{PAPER}: the combination, with a Gaussian process",
    ),
    _spec(
        "gp-only-optimize-new",
        OnlyOptimizeNewGP,
        "bo on the new hyperparameters alone, the others as in the best old configuration.",
        f"{PAPER}: only-optimize-new with a Gaussian process",
    ),
    _spec(
        "gp-drop-unimportant",
        DropUnimportantGP,
        "bo on the new and the important hyperparameters, the others as in the old best.",
        f"{PAPER}: drop-unimportant with a Gaussian process",
        SKLEARN,
    ),
)
