"""Strategies after a search space was changed: Stoll et al. (2020), with TPE or `bo`.

The old step is the last task of the history: after an adjustment, the same task on the old search
space; under other protocols, the previous task, whose search space is the same. `SpaceChange`
determines which hyperparameters are shared and which are new.

=======  ======  ==================================================================================
symbol   shape   meaning
=======  ======  ==================================================================================
d        scalar  hyperparameters of the new search space
k        scalar  hyperparameters of the shared space
n        scalar  old configurations that lie in the shared space
M_both           model of the shared space, X_both in the paper
=======  ======  ==================================================================================

"Line" is a line of the paper's algorithm 1.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import BoolArray, Config, FloatArray
from hpobench_ordered.data.extras import SKLEARN, Extra
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.errors import HistoryWarning
from hpobench_ordered.methods._candidates import Region
from hpobench_ordered.methods._model_based import ModelBased, Scorer
from hpobench_ordered.methods.base import MethodFactory, MethodKind, MethodSpec
from hpobench_ordered.methods.bo import BayesianOptimisation, group_features
from hpobench_ordered.methods.bounding_box import Box
from hpobench_ordered.methods.tpe import TPE
from hpobench_ordered.space import SpaceChange
from hpobench_ordered.space.differences import allows

ROUNDING = 1e-9
"""Tolerance when importances, which are fractions of a variance, are compared."""


@dataclass(frozen=True, eq=False, slots=True)
class OldStep:
    """Evaluations from before the search space was changed.

    Attributes:
        evaluations: All evaluations, on the old space.
        change: How the space changed; at least one hyperparameter is shared.
        ranking: Configurations of the shared space as coded values, best first, failed ones last;
            equal losses in order of evaluation, shape (n, k).
        lacks_best: Whether the ranking lacks the best evaluation, as it is not in the shared space.
    """

    evaluations: Evaluations
    change: SpaceChange
    ranking: FloatArray
    lacks_best: bool


class AfterChange(ModelBased):
    """Base of the strategies, which extracts the old step and completes configurations.

    Without a history, or if the spaces share no hyperparameter or no old configuration lies in the
    new space, there is no old step and the method is TPE or `bo`.
    """

    def prepare(self) -> None:
        """Extract the usable part of the history, evaluations before the change, as `old`."""
        self.old = self._extract_old_step()
        # This chooses the region and the initial configurations, for which `old` is needed.
        super().prepare()

    def convert_best(self, old: OldStep) -> FloatArray:
        """Convert the best old configuration to coded values of the new space, (d,).

        Coded values are numbers as they are, and choices as their index. They are NaN for
        hyperparameters that only the new space has.
        """
        best_of_ranking = old.ranking[:1]  # the ranking is best first
        best: FloatArray = old.change.to_new(best_of_ranking)[0]
        return best

    def complete(self, values: FloatArray) -> FloatArray:
        """Complete coded values (d,): draw those that are NaN and active from the prior.

        The prior is uniform on a hyperparameter's scale. Hyperparameters that the completed others
        make inactive become NaN.
        """
        parameters = self.space.parameters
        unit = self.rng.random(len(parameters))
        # All are drawn: only the completed values tell which hyperparameters are active.
        drawn = [parameter.decode(u) for parameter, u in zip(parameters, unit, strict=True)]
        completed: FloatArray = np.where(np.isnan(values), drawn, values)
        is_active = self.space.active(completed[None])[0]
        completed[~is_active] = np.nan
        return completed

    def _extract_old_step(self) -> OldStep | None:
        """Rank the last task's configurations that lie in the shared space, best first.

        Returns:
            The ranking, or None if there is nothing to transfer: no history, no shared
            hyperparameter, or no configuration in the shared space.
        """
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
        shared = last.in_shared(change)  # evaluations whose values the new space allows, too
        if not len(shared):
            if len(last):
                warnings.warn(
                    f"the search space allows no configuration of {last.task!r}: nothing can be "
                    "transferred",
                    HistoryWarning,
                    stacklevel=2,
                )
            return None
        best_first = np.argsort(shared.losses, kind="stable")  # those that failed come last
        lacks_best = bool(last.losses.min() < shared.losses.min())
        return OldStep(last, change, shared.values[best_first], lacks_best)


class BestFirst(AfterChange):
    """Begins with the best old configuration; draws new hyperparameters from the prior."""

    def initial_configurations(self) -> Sequence[Config]:
        """Choose the best old configuration; its new hyperparameters are drawn from the prior.

        Without usable evaluations from before the change (`old`) there is none.

        Warns:
            HistoryWarning: The new space does not allow the best one of all, but only others.
        """
        if self.old is None:
            return ()
        if self.old.lacks_best:
            self._warn_of_other_first(self.old)
        best_values = self.convert_best(self.old)  # NaN for new hyperparameters
        completed_values = self.complete(best_values)
        return self.space.configs(completed_values[None])

    def _warn_of_other_first(self, old: OldStep) -> None:
        """Warn that the first suggestion is not the best old configuration, and why."""
        best = old.evaluations.best or {}
        refused = []  # empty if the best lacks a hyperparameter that is always active now
        for name in old.change.shared:
            if name in best and not allows(self.space[name], best[name]):
                refused.append(f"{name} = {best[name]!r}")
        reason = f" ({', '.join(refused)})" if refused else ""
        warnings.warn(
            f"the search space does not allow the best configuration of {old.evaluations.task!r}"
            f"{reason}: the best of those that it allows is suggested first",
            HistoryWarning,
            stacklevel=2,
        )


class Transfer(AfterChange):
    """Use a model of the old ranking on the shared space until there is one of the new space.

    Algorithm 1 of the paper. A model of the ranking needs two configurations.

    Attributes:
        shared_method: The method whose model is fitted to the ranking.
    """

    shared_method: type[ModelBased]

    def prepare(self) -> None:
        """Fit a model to the ranks of old configurations in the shared space.

        The shared space has the hyperparameters and values that the old and the new space have.
        These are lines 1 to 4 of the paper's algorithm 1.
        """
        super().prepare()
        self._shared: ModelBased | None = None  # the method whose model is fitted to the ranks
        if self.old is None or len(self.old.ranking) < 2:  # a model needs two configurations
            return
        shared_space = self.old.change.shared_space()
        self._shared = self.shared_method(
            space=shared_space, rng=self.rng, history=(), context={}, budget=self.budget
        )
        for rank, config in enumerate(shared_space.configs(self.old.ranking)):
            self._shared.tell(config, float(rank))  # the rank stands for the loss
        # Scores configurations of the shared space by the model.
        self._score: Scorer = self._shared.make_scorer()

    def _suggest_before_model(self) -> FloatArray:
        """Suggest an untried configuration, coded values (d,), by the model of the shared space.

        These are lines 6 to 15 of the paper's algorithm 1, for the trials before there is a model
        of the new space: the share `random_fraction` of them is random. `old` has the evaluations
        from before the change; the model, `_shared`, was fitted to their ranks.
        """
        if self.old is None or self._shared is None or self.rng.random() < self.random_fraction:
            return self._draw_untried()

        candidates = next(self._shared.iter_candidates())  # in the unit cube of the shared space
        best_first = np.argsort(-self._score(candidates), kind="stable")
        for row in best_first:
            candidate = candidates[row : row + 1]
            shared_values = self._shared.space.decode(candidate)
            values = self._extend_to_new_space(self.old, shared_values)
            if values not in self._tried:
                return values
        return self._draw_untried()

    def _extend_to_new_space(self, old: OldStep, shared_values: FloatArray) -> FloatArray:
        """Extend a configuration of the shared space (1, k) to the new space, coded values (d,).

        Where the range of a shared hyperparameter has grown, the model knows nothing of the added
        part. A value from there replaces the shared one with a probability p: the added part's
        share of the new range (lines 11 and 12 of the paper's algorithm 1). Hyperparameters that
        the old space did not have are drawn from the prior.
        """
        change = old.change
        # NaN for hyperparameters that the old space did not have.
        values: FloatArray = change.to_new(shared_values)[0]
        for j, name in enumerate(self.space.names):
            if name not in change.shared:
                continue
            p = change.new_share(name)
            if self.rng.random() < p:
                values[j] = change.draw_only_new(name, self.rng)  # from the added part
        # Hyperparameters that are NaN are drawn.
        return self.complete(values)


class PartlyFixed(AfterChange):
    """Fixes some shared hyperparameters at the best old configuration and searches the others."""

    def choose_region(self) -> Region:
        """Choose the part of the space with the fixed hyperparameters at their best old values.

        Without usable evaluations from before the change (`old`) it is the whole space.
        """
        if self.old is None:
            return super().choose_region()
        best_values = self.convert_best(self.old)
        # NaN: the box does not restrict the hyperparameter.
        fixed_values = np.where(self.are_fixed(self.old), best_values, np.nan)
        return Box(self.space, fixed_values[None])

    def ask(self) -> Config:
        """Suggest a configuration.

        If the values of all hyperparameters are fixed, it is the best old configuration each time.
        """
        if self.old is None or self.region.is_searched.any():
            return super().ask()
        best_values = self.convert_best(self.old)
        return self.space.configs(best_values[None])[0]

    def are_fixed(self, old: OldStep) -> BoolArray:
        """Whether each hyperparameter of the new space stays at its best old value, shape (d,).

        All hyperparameters that both spaces have are fixed; subclasses may fix fewer.
        """
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
        """Whether each hyperparameter of the new space stays at its best old value, shape (d,).

        These are the ones that both spaces have and whose importance in the old step was below
        average.
        """
        unimportant = self._find_unimportant(old)  # names
        is_unimportant: BoolArray = np.array([name in unimportant for name in self.space.names])
        is_shared = super().are_fixed(old)
        return is_unimportant & is_shared

    def _find_unimportant(self, old: OldStep) -> set[str]:
        """Find the names of old hyperparameters whose importance is below the mean.

        Importances are total effects in a functional analysis of variance of a forest, which is
        fitted to the finite evaluations.
        """
        from hpobench_ordered.methods._anova import estimate_effects

        old_space = old.change.old
        is_finite = np.isfinite(old.evaluations.losses)
        if is_finite.sum() < 2:  # too few to fit a forest to
            return set()

        unit = old_space.encode(old.evaluations.values[is_finite])
        importances = estimate_effects(
            old_space.features(unit),
            old.evaluations.losses[is_finite],
            rng=self.rng,
            groups=group_features(old_space),  # the hyperparameter of each feature
        ).total  # with interactions
        # Equal importances may differ from their mean by rounding errors.
        is_below_mean = importances < importances.mean() - ROUNDING
        return {old_space.names[j] for j in np.flatnonzero(is_below_mean)}


class TransferTPE(Transfer, TPE):
    """Transfers a TPE model, then continues as TPE."""

    shared_method = TPE


class TPEBestFirst(BestFirst, TPE):
    """Begins with the best old configuration, then continues as TPE."""


class TransferTPEBestFirst(BestFirst, TransferTPE):
    """Begins with the best old configuration, then transfers a TPE model."""


class OnlyOptimizeNewTPE(OnlyOptimizeNew, TPE):
    """Optimises the new hyperparameters by TPE."""


class DropUnimportantTPE(DropUnimportant, TPE):
    """Optimises the new and the important hyperparameters by TPE."""


class TransferGP(Transfer, BayesianOptimisation):
    """Transfers a Gaussian process, then continues as `bo`."""

    shared_method = BayesianOptimisation


class GPBestFirst(BestFirst, BayesianOptimisation):
    """Begins with the best old configuration, then continues as `bo`."""


class TransferGPBestFirst(BestFirst, TransferGP):
    """Begins with the best old configuration, then transfers a Gaussian process."""


class OnlyOptimizeNewGP(OnlyOptimizeNew, BayesianOptimisation):
    """Optimises the new hyperparameters by `bo`."""


class DropUnimportantGP(DropUnimportant, BayesianOptimisation):
    """Optimises the new and the important hyperparameters by `bo`."""


PAPER = "Stoll et al. (2020)"


def _spec(
    name: str, method: MethodFactory, summary: str, source: str, *extras: Extra
) -> MethodSpec:
    """Make the specification of a method for changed search spaces, which needs one earlier task.

    Args:
        name: Name in the registry.
        method: The class.
        summary: One line.
        source: Paper, section and settings.
        extras: Optional dependencies that the method needs.
    """
    return MethodSpec(
        name,
        method,
        summary,
        source,
        min_history=1,
        changed_spaces=True,
        extras=extras,
        kind=MethodKind.CHANGED_SPACE,
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
