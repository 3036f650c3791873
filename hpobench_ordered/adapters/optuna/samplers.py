"""Methods as Optuna's samplers.

What a sampler asked of its method, and told it, is noted in the trials, so that a sampler of the
same kind in another process can do the same again:

    ASKED   [identity, event]: what the method was made with, and which event the ask was
    TOLD    [identity, event]: the same of telling

Events count from 0. Trials that were interrupted are suggested again, as the same event.
"""

import hashlib
import json
import math
import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from hpobench_ordered._typing import Config
from hpobench_ordered.adapters._optuna_space import space_of
from hpobench_ordered.adapters.factory import as_method_spec
from hpobench_ordered.adapters.optimiser import (
    BUDGET,
    Optimiser,
    check_length,
    optimiser,
    search_space,
)
from hpobench_ordered.errors import (
    ExperimentError,
    InvalidConfigError,
    LeftOutWarning,
    UnknownNameError,
)
from hpobench_ordered.history import Evaluations
from hpobench_ordered.space import SearchSpace

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace

ASKED, TOLD = "hpobench_ordered:asked", "hpobench_ordered:told"
FINISHED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)


class OptunaSampler(BaseSampler):  # type: ignore[misc]  # mypy does not follow Optuna
    """Lets a method drive a study of one objective.

    It suggests what `hpobench_ordered.optimiser` with the same arguments suggests. Several trials
    may run at once (`n_jobs`). A study in a storage goes on as if it had never been stopped, if it
    is given a new sampler made with the same arguments; trials that were running when it was
    stopped are suggested again first.

    Trials that the study has from elsewhere, and those it is given (`enqueue_trial`), are told to
    the method, which is not asked for what is given; a hyperparameter that a trial did not need is
    told with its default. Failed trials count as failed, pruned ones have their last value. A trial
    that does not fit the space is left out with a warning.

    Args:
        method: The method: a name, a class, a MethodSpec, or whatever an experiment takes.
        space: What the method optimises: a search space, ConfigSpace's, or Optuna's distributions.
            The objective may suggest nothing else: another name, or a range that does not hold what
            the method suggests, is an error; fix what is not tuned (`enqueue_trial`, or a range of
            one value), or add it to the space. What is inactive is drawn at random. Default: that
            of the study's first complete trial; until there is one, trials are random, and so are
            parameters that it did not have.
        history: Evaluations of earlier tasks, oldest first, such as `history_from_studies` gives.
        context: What is known of the task beforehand, by the same names as in the history.
        budget: Number of trials the method expects.
        seed: Seed of everything random.
        shared: Whether other processes work on the study at the same time, each with such a
            sampler: what they are running is then not taken for interrupted.

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
        shared: bool = False,
    ) -> None:
        self._spec = as_method_spec(method)
        check_length(self._spec, history)
        self._is_given = space is not None
        self._space = None if space is None else _described(space)
        self._history, self._context = tuple(history), dict(context or {})
        self._budget, self._seed, self._shared = budget, seed, shared
        self._lock = threading.RLock()  # Optuna calls from several threads
        self._optimiser: Optimiser | None = None
        self._study_name = self._identity = ""
        self._next = 0  # event
        self._configs: dict[int, Config] = {}  # asked for, by event
        self._events: dict[int, int] = {}  # by number of the trial that has the configuration
        self._told: set[int] = set()  # numbers of trials
        self._interrupted: dict[int, Config] = {}  # by event

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
        """Nothing: what is suggested does not depend on the objective's distributions."""
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Nothing, as all is given one hyperparameter at a time."""
        return {}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Give a hyperparameter of the configuration that the method suggests for a trial.

        Raises:
            UnknownNameError: The space that was given has no such hyperparameter.
            ExperimentError: The objective's range does not hold what the method suggests; or the
                study has several objectives, or is another one than before.
        """
        with self._lock:
            self._begin(study)
            if self._space is not None and param_name in _names(self._space):
                config = {} if self._optimiser is None else self._suggestion(study, trial)
                if param_name in config:
                    value, is_held = _within(param_distribution, config[param_name])
                    if is_held:
                        return value
                    if self._is_given:
                        raise ExperimentError(
                            f"the objective suggests {param_name!r} from {param_distribution}, "
                            f"where the method suggests {config[param_name]!r}: its search space "
                            "has another range"
                        )
            elif self._is_given and self._space is not None:
                raise UnknownNameError("hyperparameter", param_name, _names(self._space))
        draw = f"{self._seed} {trial.number} {param_name}".encode()
        seed = int.from_bytes(hashlib.sha256(draw).digest()[:4])
        sampler = RandomSampler(seed=seed)  # the same again when the study goes on
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Tell the method what was evaluated, if it fits its space."""
        with self._lock:
            self._begin(study)
            if self._optimiser is not None:
                self._note(study, trial, TOLD, self._event())
                self._tell(self._optimiser, trial, values)

    def reseed_rng(self) -> None:
        """Nothing: trials at the same time are asked for one after the other."""

    def _begin(self, study: Study) -> None:
        """Make the method, once its space is known, and repeat what happened in the study."""
        if self._optimiser is not None:
            if study.study_name != self._study_name:
                raise ExperimentError("an OptunaSampler belongs to one study; make another one")
            return
        if len(study.directions) != 1:
            raise ExperimentError(f"a study of one objective is needed: {study.directions}")
        if self._space is None:
            self._space = _inferred(study.get_trials(deepcopy=False))
        if self._space is None:
            return
        made = optimiser(
            self._spec,
            space=self._space,
            direction=study.direction.name.lower(),
            history=self._history,
            context=self._context,
            trials=self._budget,
            seed=self._seed,
        )
        described = json.dumps(made.settings, sort_keys=True)
        self._identity = hashlib.sha256(described.encode()).hexdigest()[:16]
        self._study_name = study.study_name
        trials = self._catch_up(study, made)
        done = {self._events.get(t.number) for t in trials if t.state is not TrialState.RUNNING}
        if not self._shared:
            self._interrupted = {e: c for e, c in self._configs.items() if e not in done}
        self._optimiser = made

    def _catch_up(self, study: Study, made: Optimiser) -> list[FrozenTrial]:
        """Ask and tell what was done in the study, but not by this sampler; return all trials.

        What was done by a sampler of the same kind is repeated event by event; other trials are
        told before the method is asked for one with a higher number.
        """
        trials: list[FrozenTrial] = study.get_trials(
            deepcopy=False, states=(*FINISHED, TrialState.RUNNING)
        )
        asks, tells = self._noted(trials, ASKED), self._noted(trials, TOLD)
        steps: list[tuple[float, bool, int, FrozenTrial]] = [
            (asks[t.number], False, t.number, t)
            for t in trials
            if t.number in asks and t.number not in self._events
        ]
        for trial in trials:
            if trial.state is not TrialState.RUNNING and trial.number not in self._told:
                later = min((e for n, e in asks.items() if n > trial.number), default=math.inf)
                when = tells.get(trial.number, max(later - 1, asks.get(trial.number, -1)))
                steps.append((when, True, trial.number, trial))
        for _, is_told, number, trial in sorted(steps, key=lambda step: step[:3]):
            if is_told:
                self._tell(made, trial, trial.values)
                continue
            self._events[number] = event = asks[number]
            if event not in self._configs:
                self._configs[event] = made.ask()
        self._next = max([self._next, *(1 + e for e in (*asks.values(), *tells.values()))])
        return trials

    def _noted(self, trials: Iterable[FrozenTrial], what: str) -> dict[int, int]:
        """Event of each trial that a sampler of the same kind asked for, or told."""
        noted = ((t.number, t.system_attrs.get(what, ("", 0))) for t in trials)
        return {number: event for number, (by, event) in noted if by == self._identity}

    def _note(self, study: Study, trial: FrozenTrial, what: str, event: int) -> None:
        study._storage.set_trial_system_attr(trial._trial_id, what, [self._identity, event])

    def _suggestion(self, study: Study, trial: FrozenTrial) -> Config:
        """The configuration of a trial, asked for where it has none yet."""
        assert self._optimiser is not None
        if trial.number not in self._events:
            self._catch_up(study, self._optimiser)
            if self._interrupted:
                event = next(iter(self._interrupted))
                self._interrupted.pop(event)
            else:
                event = self._event()
                self._configs[event] = self._optimiser.ask()
            self._note(study, trial, ASKED, event)
            self._events[trial.number] = event
        return self._configs[self._events[trial.number]]

    def _event(self) -> int:
        self._next += 1
        return self._next - 1

    def _tell(self, made: Optimiser, trial: FrozenTrial, values: Sequence[float] | None) -> None:
        """Tell what was evaluated; of a failed trial only what it was asked for, or has whole."""
        self._told.add(trial.number)
        event = self._events.get(trial.number, -1)
        self._interrupted.pop(event, None)
        taken = {name: x for name, x in trial.params.items() if name in made.space.names}
        config = self._configs.get(event, {}) | taken
        if values is not None:
            config = {p.name: p.default for p in made.space.parameters} | config
        try:
            made.tell(config, None if values is None else values[0])
        except InvalidConfigError as error:
            if values is not None:
                warnings.warn(
                    f"trial {trial.number} is left out: {error}", LeftOutWarning, stacklevel=2
                )


def _described(
    description: "SearchSpace | ConfigurationSpace | Mapping[str, BaseDistribution]",
) -> SearchSpace:
    """A space, whatever it was described by."""
    if isinstance(description, Mapping) and not hasattr(description, "to_serialized_dict"):
        return space_of(dict(description))
    return search_space(description)


def _names(space: SearchSpace) -> tuple[str, ...]:
    return (*space.names, *space.constants)


def _inferred(trials: Iterable[FrozenTrial]) -> SearchSpace | None:
    """The space of the first complete trial that has anything to tune."""
    for trial in trials:
        tunable = {n: d for n, d in trial.distributions.items() if not d.single()}
        if trial.state is TrialState.COMPLETE and tunable:
            return space_of(tunable)
    return None


def _within(distribution: BaseDistribution, value: Any) -> tuple[Any, bool]:
    """A value as a distribution has it, and whether it does."""
    try:
        internal = distribution.to_internal_repr(value)
    except ValueError:
        return value, False
    return distribution.to_external_repr(internal), bool(distribution._contains(internal))
