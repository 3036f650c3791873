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
        """Extract what can be transferred from the history, then set up the search."""
        # Evaluations from before the change; None if nothing can be transferred.
        self.old = self._extract_old_step()
        # This chooses the region and the initial configurations, for which `old` is needed.
        super().prepare()

    def convert_best(self, old: OldStep) -> FloatArray:
        """Convert the best old configuration to coded values of the new space, (d,).

        Only configurations that the new space allows count. Coded values are numbers as they are,
        and choices as their index. They are NaN for hyperparameters that only the new space has.
        """
        best_of_ranking = old.ranking[:1]  # (1, k), as the ranking is best first
        converted = old.change.to_new(best_of_ranking)  # (1, d)
        best: FloatArray = converted[0]
        return best

    def complete(self, values: FloatArray) -> FloatArray:
        """Replace missing values of a configuration by random ones.

        Args:
            values: Coded values, shape (d,), NaN where a value is missing.

        Returns:
            The completed coded values, shape (d,). Where they make a hyperparameter inactive, it is
            NaN.
        """
        parameters = self.space.parameters
        # Values are drawn for all hyperparameters, uniformly on the scale of each, because only the
        # completed values tell which hyperparameters are active.
        uniform = self.rng.random(len(parameters))
        random_values = []
        for parameter, number in zip(parameters, uniform, strict=True):
            random_values.append(parameter.decode(number))
        completed: FloatArray = np.where(np.isnan(values), random_values, values)
        is_active = self.space.active(completed[None])[0]
        completed[~is_active] = np.nan
        return completed

    def _extract_old_step(self) -> OldStep | None:
        """Rank the last task's configurations that lie in the shared space, best first.

        Returns:
            The ranking with the evaluations that it comes from, or None if there is nothing to
            transfer: no history, no shared hyperparameter, or no configuration in the shared space.

        Warns:
            UserWarning: The old and the new space share no hyperparameter.
            HistoryWarning: No old configuration lies in the shared space.
        """
        if not self.history:
            return None
        last_task = self.history[-1]
        change = SpaceChange.between(last_task.space, self.space)
        if not change.shared:
            warnings.warn(
                "the search space shares no hyperparameter with the one of "
                f"{last_task.task!r}: nothing can be transferred. {'; '.join(change.describe())}",
                stacklevel=2,
            )
            return None

        # Evaluations whose values of the shared hyperparameters the new space allows, too.
        allowed = last_task.in_shared(change)
        if not len(allowed):
            if len(last_task):
                warnings.warn(
                    f"the search space allows no configuration of {last_task.task!r}: nothing can "
                    "be transferred",
                    HistoryWarning,
                    stacklevel=2,
                )
            return None
        best_first = np.argsort(allowed.losses, kind="stable")  # failed ones, infinite, come last
        return OldStep(
            evaluations=last_task,
            change=change,
            ranking=allowed.values[best_first],
            lacks_best=bool(last_task.losses.min() < allowed.losses.min()),
        )


class BestFirst(AfterChange):
    """Begins with the best old configuration; draws new hyperparameters from the prior."""

    def initial_configurations(self) -> Sequence[Config]:
        """Return the best old configuration, with random values of its new hyperparameters.

        It is the best of those that the new space allows. If nothing can be transferred from before
        the change, there is no initial configuration.

        Warns:
            HistoryWarning: The new space does not allow the best of all old configurations.
        """
        if self.old is None:
            return ()
        if self.old.lacks_best:
            self._warn_that_best_is_refused(self.old)
        best_values = self.convert_best(self.old)  # NaN for new hyperparameters
        completed_values = self.complete(best_values)
        return self.space.configs(completed_values[None])

    def _warn_that_best_is_refused(self, old: OldStep) -> None:
        """Warn that the new space does not allow the best old configuration, and say why."""
        best = old.evaluations.best or {}
        # Values that the new space does not allow. There are none if the best configuration lacks a
        # hyperparameter that is always active now.
        refused_values = []
        for name in old.change.shared:
            if name in best and not allows(self.space[name], best[name]):
                refused_values.append(f"{name} = {best[name]!r}")
        reason = f" ({', '.join(refused_values)})" if refused_values else ""
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

        The shared space has the hyperparameters and values that the old and the new space have in
        common. These are lines 1 to 4 of the paper's algorithm 1.
        """
        super().prepare()
        # The method on the shared space; None if there are too few configurations for its model.
        self._shared: ModelBased | None = None
        if self.old is None or len(self.old.ranking) < 2:
            return
        shared_space = self.old.change.shared_space()
        self._shared = self.shared_method(
            space=shared_space, rng=self.rng, history=(), context={}, budget=self.budget
        )
        best_first = shared_space.configs(self.old.ranking)
        for rank, config in enumerate(best_first):
            self._shared.tell(config, float(rank))  # the rank takes the place of the loss
        # The model's scores, higher for better ones, of configurations of the shared space.
        self._score: Scorer = self._shared.make_scorer()

    def _suggest_before_model(self) -> FloatArray:
        """Suggest an untried configuration while there is no model of the new space yet.

        Candidates of the shared space are extended to the new space, the one with the best score of
        the old model first, until one is untried. With the probability `random_fraction`, or
        without an old model, the configuration is random. These are lines 6 to 15 of the paper's
        algorithm 1.

        Returns:
            Coded values, shape (d,).
        """
        if self.old is None or self._shared is None:  # nothing to transfer
            return self._draw_untried()
        if self.rng.random() < self.random_fraction:
            return self._draw_untried()

        candidates = next(self._shared.iter_candidates())  # in the unit cube of the shared space
        scores = self._score(candidates)
        best_first = np.argsort(-scores, kind="stable")
        for row in best_first:
            candidate = candidates[row : row + 1]
            shared_values = self._shared.space.decode(candidate)
            values = self._extend_to_new_space(self.old, shared_values)
            if values not in self._tried:
                return values
        return self._draw_untried()

    def _extend_to_new_space(self, old: OldStep, shared_values: FloatArray) -> FloatArray:
        """Extend a configuration of the shared space to one of the new space.

        Where the range of a shared hyperparameter has grown, the old model knows nothing of the
        added part. A random value of the added part therefore replaces the shared one, with a
        probability that is the added part's share of the new range (lines 11 and 12 of the paper's
        algorithm 1). Hyperparameters that only the new space has are drawn at random.

        Args:
            old: What is known from before the change.
            shared_values: Coded values of the configuration, shape (1, k).

        Returns:
            Coded values of the extended configuration, shape (d,).
        """
        change = old.change
        # NaN for hyperparameters that only the new space has.
        values: FloatArray = change.to_new(shared_values)[0]
        for j, name in enumerate(self.space.names):
            if name not in change.shared:
                continue
            added_share = change.new_share(name)
            if self.rng.random() < added_share:
                values[j] = change.draw_only_new(name, self.rng)
        return self.complete(values)  # draws what is NaN


class PartlyFixed(AfterChange):
    """Fixes some shared hyperparameters at the best old configuration and searches the others."""

    def choose_region(self) -> Region:
        """Choose the part of the space with the fixed hyperparameters at their best old values.

        It is the whole space if nothing can be transferred from before the change.
        """
        if self.old is None:
            return super().choose_region()
        best_values = self.convert_best(self.old)
        # A box does not restrict a hyperparameter that is NaN.
        fixed_values = np.where(self.are_fixed(self.old), best_values, np.nan)
        return Box(self.space, fixed_values[None])

    def ask(self) -> Config:
        """Suggest a configuration; the best old one each time if all hyperparameters are fixed."""
        if self.old is None:
            return super().ask()
        all_are_fixed = not self.region.is_searched.any()
        if not all_are_fixed:
            return super().ask()
        best_values = self.convert_best(self.old)
        return self.space.configs(best_values[None])[0]

    def are_fixed(self, old: OldStep) -> BoolArray:
        """Return for each hyperparameter of the new space whether it is fixed, shape (d,).

        Those that both spaces have are fixed, at their values in the best old configuration.
        Subclasses may fix fewer.
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
        """Return for each hyperparameter of the new space whether it is fixed, shape (d,).

        Those are fixed, at their values in the best old configuration, that both spaces have and
        whose importance before the change was below average.
        """
        unimportant_names = self._find_unimportant(old)
        is_unimportant: BoolArray = np.array(
            [name in unimportant_names for name in self.space.names]
        )
        is_shared = super().are_fixed(old)
        return is_unimportant & is_shared

    def _find_unimportant(self, old: OldStep) -> set[str]:
        """Find the names of old hyperparameters whose importance is below the mean.

        A forest is fitted to the finite evaluations from before the change. The importance of a
        hyperparameter is its share of the variance of the forest's predictions, including its
        interactions with others (the total effect in a functional analysis of variance).
        """
        from hpobench_ordered.methods._anova import estimate_effects

        old_space = old.change.old
        is_finite = np.isfinite(old.evaluations.losses)
        if is_finite.sum() < 2:  # too few to fit a forest to
            return set()

        unit = old_space.encode(old.evaluations.values[is_finite])
        effects = estimate_effects(
            old_space.features(unit),
            old.evaluations.losses[is_finite],
            rng=self.rng,
            groups=group_features(old_space),  # the hyperparameter of each feature
        )
        importances = effects.total  # with interactions, one for each hyperparameter
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
