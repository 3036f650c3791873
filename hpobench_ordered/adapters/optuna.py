"""Optuna's samplers as methods, and methods as Optuna's samplers. Needs the extra `optuna`."""

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from hpobench_ordered._typing import Config, Value
from hpobench_ordered.adapters._define_by_run import define_by_run
from hpobench_ordered.adapters._optuna_space import distribution, space_of, suggest
from hpobench_ordered.adapters._pending import Pending
from hpobench_ordered.adapters.factory import (
    SEED,
    as_method_spec,
    draw_seed,
    first_line_of,
    name_of,
)
from hpobench_ordered.adapters.identity import FromElsewhere
from hpobench_ordered.benchmark import Evaluations
from hpobench_ordered.errors import (
    ExperimentError,
    InvalidConfigError,
    MethodError,
    MissingExtraError,
)
from hpobench_ordered.methods.base import Method, MethodSpec
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Kind, Parameter

try:
    import optuna
    from optuna.distributions import BaseDistribution, IntDistribution
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.study import Study, StudyDirection
    from optuna.trial import FrozenTrial, Trial, TrialState, create_trial
except ModuleNotFoundError as error:
    if error.name != "optuna":
        raise
    raise MissingExtraError("optuna", extra="optuna", purpose="an adapter for Optuna") from error

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace

BUDGET = 100
"""Trials that a method in a study expects, where nothing is said."""


def optuna_method(
    sampler: type[BaseSampler] | Callable[[int], BaseSampler],
    *,
    name: str | None = None,
    history: bool = False,
) -> MethodSpec:
    """Describe an Optuna sampler as a method.

    Every task gets a study of its own, in memory, with a sampler seeded from the method's `rng`.
    Conditional hyperparameters are suggested where they are active alone, ordinals as integers, and
    losses that are not finite are told as failed trials.

    Args:
        sampler: The sampler's class; or a function of a seed that makes a sampler with settings.
        name: Its name; without, "optuna." and the class's name, or the function's name.
        history: Whether the evaluations of the earlier tasks are put into the study as finished
            trials, as if they were of this task; else the method learns from its own trials alone.

    Raises:
        ExperimentError: It is neither, its class takes no seed, or a function has no name and none
            is given.
    """
    if isinstance(sampler, BaseSampler):
        kind = type(sampler).__name__
        raise ExperimentError(
            f"{kind}(...) is one sampler that all runs would share; pass the class {kind}, or "
            f"optuna_method(lambda seed: {kind}(seed=seed), name=...)"
        )
    if not callable(sampler):
        raise ExperimentError(
            f"a sampler's class or a function of a seed is expected, got {sampler!r}"
        )
    if isinstance(sampler, type) and SEED not in inspect.signature(sampler).parameters:
        raise ExperimentError(
            f"{sampler.__name__} takes no seed; pass a function of a seed that makes it"
        )
    return MethodSpec(
        name=name or _name(sampler),
        method=FromSampler(sampler, history),
        summary=first_line_of(sampler),
        source=f"optuna {optuna.__version__}",
        changed_spaces=not history,
    )


@dataclass(frozen=True)
class FromSampler(FromElsewhere):
    """Makes a method of an Optuna sampler.

    Attributes:
        sampler: The sampler's class, or a function of a seed.
        history: Whether the history is put into the study.
    """

    sampler: type[BaseSampler] | Callable[[int], BaseSampler]
    history: bool

    def __call__(
        self,
        *,
        space: SearchSpace,
        rng: np.random.Generator,
        history: Sequence[Evaluations],
        context: Mapping[str, float],
        budget: int,
    ) -> Method:
        """Make the method of one task.

        Raises:
            MethodError: The function made no sampler.
        """
        seed = draw_seed(rng)
        with quiet():
            make = cast("Callable[..., object]", self.sampler)
            made = make(seed=seed) if isinstance(self.sampler, type) else make(seed)
        return OptunaMethod(
            sampler=made,
            replay=self.history,
            space=space,
            rng=rng,
            history=history,
            context=context,
            budget=budget,
        )


class OptunaMethod(Method):
    """A study of one task.

    Args:
        sampler: The study's own sampler.
        replay: Whether the history is put into the study.

    Raises:
        MethodError: It is no sampler.
    """

    def __init__(
        self,
        *,
        sampler: object,
        replay: bool = False,
        space: SearchSpace,
        rng: np.random.Generator,
        history: Sequence[Evaluations],
        context: Mapping[str, float],
        budget: int,
    ) -> None:
        super().__init__(space=space, rng=rng, history=history, context=context, budget=budget)
        if not isinstance(sampler, BaseSampler):
            raise MethodError(f"an Optuna sampler is expected, got {sampler!r}")
        self._pending: Pending[Trial] = Pending()
        with quiet():
            self._study = optuna.create_study(sampler=sampler)
            for evaluations in history if replay else ():
                configs = space.configs(evaluations.values)
                for config, loss in zip(configs, evaluations.losses.tolist(), strict=True):
                    self._study.add_trial(self._finished(config, loss))

    def ask(self) -> Config:
        """Begin a trial."""
        with quiet():
            trial = self._study.ask()
            config = define_by_run(self.space, lambda parameter: _suggest(trial, parameter))
        self._pending.add(config, trial)
        return config

    def tell(self, config: Config, loss: float) -> None:
        """Finish its trial; of a configuration that was not asked for, add one."""
        trial = self._pending.take(config)
        with quiet():
            if trial is None:
                self._study.add_trial(self._finished(config, loss))
            elif math.isfinite(loss):
                self._study.tell(trial, loss)
            else:
                self._study.tell(trial, state=TrialState.FAIL)

    def _finished(self, config: Config, loss: float) -> FrozenTrial:
        """The finished trial of a configuration."""
        coded = self.space.row(config).tolist()
        active = [
            (p, value)
            for p, value in zip(self.space.parameters, coded, strict=True)
            if not math.isnan(value)
        ]
        finite = math.isfinite(loss)
        return create_trial(
            state=TrialState.COMPLETE if finite else TrialState.FAIL,
            value=loss if finite else None,
            params={p.name: int(x) if _is_ordinal(p) else p.value(x) for p, x in active},
            distributions={p.name: _distribution(p) for p, _ in active},
        )


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Optuna from reporting every study and trial; its verbosity is as before afterwards."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(before, optuna.logging.ERROR))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


class OptunaSampler(BaseSampler):  # type: ignore[misc]  # mypy does not follow Optuna
    """Lets a method drive a study of one objective, one trial after the other (n_jobs=1).

    Trials that the study has already, and those it is given (`enqueue_trial`), are told to the
    method where they fit the space; failed ones with the loss NaN, pruned ones with their last
    value.

    Args:
        method: The method: a name, a class, a MethodSpec, or whatever an experiment takes.
        space: What the method optimises: a search space, of which conditional hyperparameters are
            given where they are active, or Optuna's distributions. An objective suggests ordinals
            as categoricals. Without, that of the study's first complete trial, and until there is
            one, trials are random. Other parameters that an objective suggests are random.
        history: Evaluations of earlier tasks, on the same space.
        context: What is known of the task beforehand.
        budget: Number of trials the method expects.
        seed: Seed of everything random.

    Raises:
        UnknownNameError: No method of that name.
        ExperimentError: Not a method, or one that needs a longer history.
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
        self._spec = as_method_spec(method)
        if len(history) < self._spec.min_history:
            raise ExperimentError(
                f"{self._spec.name} needs a history of {self._spec.min_history} earlier tasks, "
                f"got {len(history)}"
            )
        self._space, self._distributions = _described(space)
        self._history, self._context, self._budget = tuple(history), dict(context or {}), budget
        self._rng = np.random.default_rng(seed)
        self._independent = RandomSampler(seed=draw_seed(self._rng))
        self._method: Method | None = None
        self._study_name = ""
        self._asked: dict[int, Config] = {}

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The distributions of all hyperparameters of the space; none while it is unknown.

        Raises:
            ExperimentError: The study has several objectives, or is another one than before.
        """
        if self._method is None:
            self._start(study)
        elif study.study_name != self._study_name:
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
        self._study_name = study.study_name
        self._method = self._spec.method(
            space=self._space,
            rng=self._rng,
            history=self._history,
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


def _name(sampler: type[BaseSampler] | Callable[[int], BaseSampler]) -> str:
    """Optuna's own samplers by the name they are imported by."""
    name = getattr(sampler, "__name__", "")
    return f"optuna.{name}" if getattr(optuna.samplers, name, None) is sampler else name_of(sampler)


def _is_ordinal(parameter: Parameter) -> bool:
    return parameter.kind is Kind.ORDINAL


def _suggest(trial: Trial, parameter: Parameter) -> Value:
    """Suggest a native value; of an ordinal by its index, so that the sampler knows the order."""
    if not _is_ordinal(parameter):
        return suggest(trial, parameter)
    index: int = trial.suggest_int(parameter.name, 0, len(parameter.choices) - 1)
    return parameter.choices[index]


def _distribution(parameter: Parameter) -> BaseDistribution:
    """What `_suggest` suggests from."""
    if not _is_ordinal(parameter):
        return distribution(parameter)
    return IntDistribution(0, len(parameter.choices) - 1)


def _described(
    given: "SearchSpace | ConfigurationSpace | Mapping[str, BaseDistribution] | None",
) -> tuple[SearchSpace | None, dict[str, BaseDistribution]]:
    """A space and the distributions of its tunable hyperparameters."""
    if given is None:
        return None, {}
    if isinstance(given, SearchSpace):
        space = given
    elif hasattr(given, "to_serialized_dict"):  # ConfigSpace's spaces are mappings too
        space = SearchSpace.from_configspace(given)
    else:
        space = space_of(given)
        return space, {name: given[name] for name in space.names}
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
