"""Methods as Optuna's samplers."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from hpobench_ordered._typing import Config
from hpobench_ordered.adapters._optuna_space import distribution, space_of
from hpobench_ordered.adapters.factory import as_method_spec, draw_seed
from hpobench_ordered.errors import ExperimentError, InvalidConfigError
from hpobench_ordered.history import Evaluations, aligned, check_history, listed
from hpobench_ordered.methods.base import Method
from hpobench_ordered.objective import Direction
from hpobench_ordered.space import SearchSpace

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace

BUDGET = 100
"""Trials that a method in a study expects, where nothing is said."""


class OptunaSampler(BaseSampler):  # type: ignore[misc]  # mypy does not follow Optuna
    """Lets a method drive a study of one objective, one trial after the other (n_jobs=1).

    Trials that the study has already, and those it is given (`enqueue_trial`), are told to the
    method where they fit the space; failed ones with the loss NaN, pruned ones with their last
    value.

    Args:
        method: The method: a name, a class, a MethodSpec, or whatever an experiment takes.
        space: What the method optimises: a search space, of which conditional hyperparameters are
            given where they are active, or Optuna's distributions. An objective suggests ordinals
            as categoricals. Default: that of the study's first complete trial, and until there is
            one, trials are random. Other parameters that an objective suggests are random.
        history: Evaluations of earlier tasks, oldest first, of an objective of the study's
            direction; on the same space, or one that the method copes with.
        context: What is known of the task beforehand.
        budget: Number of trials the method expects.
        seed: Seed of everything random.

    Raises:
        UnknownNameError: No method of that name.
        ExperimentError: Not a method, or one that needs a longer history.
        EvaluationsError: The history is no list of `Evaluations`.
        InvalidSpaceError: The space cannot be described.
    """

    def __init__(
        self,
        method: object,
        *,
        space: "SearchSpace | ConfigurationSpace | Mapping[str, BaseDistribution] | None" = None,
        history: Sequence[Evaluations] = (),
        context: Mapping[str, float] | None = None,
        budget: int = BUDGET,
        seed: int = 0,
    ) -> None:
        self._spec, self._history = as_method_spec(method), listed(history)
        if len(self._history) < self._spec.min_history:
            raise ExperimentError(
                f"{self._spec.name} needs a history of {self._spec.min_history} earlier tasks, "
                f"got {len(self._history)}"
            )
        self._space, self._distributions = _described(space)
        self._context, self._budget = dict(context or {}), budget
        self._rng = np.random.default_rng(seed)
        self._independent = RandomSampler(seed=draw_seed(self._rng))
        self._method: Method | None = None
        self._study_name = ""
        self._asked: dict[int, Config] = {}

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Make the method, once its space is known: here, where a study catches no error of that.

        Raises:
            ExperimentError: The study has several objectives.
            EvaluationsError: The history does not fit the study, see `check_history`.
        """
        if self._method is None:
            self._start(study)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The distributions of all hyperparameters of the space; none while it is unknown.

        Raises:
            ExperimentError: The study is another one than before.
        """
        if self._method is not None and study.study_name != self._study_name:
            raise ExperimentError("an OptunaSampler belongs to one study; make another one")
        return dict(self._distributions) if self._method is not None else {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Ask the method; hyperparameters that are inactive are not given."""
        if self._method is None:
            return {}
        config = self._method.ask()
        self._asked[trial.number] = config
        return {name: value for name, value in config.items() if name in self._distributions}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Draw a parameter that the method does not give."""
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Tell the method what was evaluated, if it fits its space."""
        self._tell(study, trial, values)

    def reseed_rng(self) -> None:
        """Refuse trials at the same time; Optuna calls this for each of several threads.

        Raises:
            ExperimentError: Always.
        """
        raise ExperimentError("an OptunaSampler makes one trial after the other: use n_jobs=1")

    def _start(self, study: Study) -> None:
        """Make the method, once its space is known, and tell it of the trials there are."""
        if len(study.directions) != 1:
            raise ExperimentError(f"a study of one objective is needed: {study.directions}")
        before = study.get_trials(
            deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)
        )
        if self._space is None:
            self._space, self._distributions = _inferred(before)
        if self._space is None:
            return
        maximised = study.direction is StudyDirection.MAXIMIZE
        history = aligned(self._history, self._space)
        check_history(
            history,
            self._space,
            Direction.MAXIMIZE if maximised else Direction.MINIMIZE,
            changed_spaces=self._spec.changed_spaces,
        )
        self._study_name = study.study_name
        self._method = self._spec.method(
            space=self._space,
            rng=self._rng,
            history=history,
            context=self._context,
            budget=self._budget,
        )
        for trial in before:
            self._tell(study, trial, trial.values)

    def _tell(self, study: Study, trial: FrozenTrial, values: Sequence[float] | None) -> None:
        if self._method is None or self._space is None:
            return
        asked = self._asked.pop(trial.number, {})
        # A trial that was enqueued, or whose objective has other ranges, evaluates something else.
        taken = {k: v for k, v in trial.params.items() if k in self._distributions}
        config = asked if all(asked.get(k) == v for k, v in taken.items()) else asked | taken
        try:
            self._space.validate(config)
        except InvalidConfigError:
            return
        sign = -1.0 if study.direction is StudyDirection.MAXIMIZE else 1.0
        self._method.tell(config, math.nan if values is None else sign * values[0])


def _described(
    description: "SearchSpace | ConfigurationSpace | Mapping[str, BaseDistribution] | None",
) -> tuple[SearchSpace | None, dict[str, BaseDistribution]]:
    """A space and the distributions of its tunable hyperparameters."""
    if description is None:
        return None, {}
    if isinstance(description, SearchSpace):
        space = description
    elif hasattr(description, "to_serialized_dict"):  # ConfigSpace's spaces are mappings too
        space = SearchSpace.from_configspace(description)
    else:
        space = space_of(description)
        return space, {name: description[name] for name in space.names}
    return space, {p.name: distribution(p) for p in space.parameters}


def _inferred(
    trials: Iterable[FrozenTrial],
) -> tuple[SearchSpace | None, dict[str, BaseDistribution]]:
    """The space of the first complete trial that has anything to tune."""
    for trial in trials:
        tunable = {n: d for n, d in trial.distributions.items() if not d.single()}
        if trial.state is TrialState.COMPLETE and tunable:
            return _described(tunable)
    return None, {}
