"""Methods as Optuna's samplers.

A trial for which the method was asked records what another sampler with the same arguments needs to
repeat that, in another process: [hash of the arguments, number of earlier records, numbers of the
trials that the method was told since the last record, number of the record whose configuration this
is: its own, or an earlier one if the trial replaces an interrupted one].
"""

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from hpobench_ordered._typing import Config
from hpobench_ordered._wording import join_words
from hpobench_ordered.adapters._optuna_space import distribution, space_of
from hpobench_ordered.adapters.optimiser import BUDGET, METHOD, Optimiser, check_use
from hpobench_ordered.adapters.optuna.studies import history_from_studies, is_same
from hpobench_ordered.core.history import Evaluations, as_evaluations
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.errors import (
    ExperimentError,
    HistoryWarning,
    InvalidConfigError,
    UnknownNameError,
)
from hpobench_ordered.runtime.threads import Lock
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.conversion import SpaceLike, to_search_space
from hpobench_ordered.user_methods.factory import as_method_spec

RECORD = "hpobench_ordered:asked"
NOT_EVALUATED = "hpobench_ordered:not evaluated"
"""Marks trials whose objective suggests what the space does not have."""


class OptunaSampler(BaseSampler):  # type: ignore[misc]  # mypy does not follow Optuna
    """A method as the sampler of a study of one objective.

    It suggests what `hpobench_ordered.optimiser` with the same arguments suggests. Several trials
    may run at once (`n_jobs`). A new sampler with the same arguments resumes a study in a storage
    with the same results; trials that were running when it stopped are suggested again first.

    Trials from elsewhere and enqueued ones (`enqueue_trial`) are told to the method, missing
    hyperparameters with their default; it is not asked for values that were enqueued. Failed
    trials count as failed, pruned ones have their last value. A trial that does not fit the space
    is left out with a warning.

    Args:
        method: A name, a class, a MethodSpec, or whatever an experiment takes. The default learns
            from the history, and equals `bo` without one.
        space: What the method optimises: a search space, ConfigSpace's, or Optuna's distributions.
            The objective may suggest nothing else: another name, or a range that does not hold what
            the method suggests, is an error; fix what is not tuned (`enqueue_trial`, or a range of
            one value), or add it to the space. Inactive hyperparameters are drawn at random.
            Default: that of the study's first complete trial; until there is one, trials are
            random, and so are parameters that it did not have.
        history: Evaluations of earlier tasks, oldest first, such as `history_from_studies` gives.
        context: Numbers known of the task beforehand, by the same names as in the history.
        budget: Number of trials the method expects.
        seed: Seed of everything random.
        shared: Whether other processes work on the study at the same time, each with such a
            sampler: their running trials are then not taken for interrupted ones.

    Raises:
        UnknownNameError: No method of that name.
        ExperimentError: Not a method, or one that needs a longer history.
        InvalidSpaceError: The space has a feature that is not supported.
    """

    def __init__(
        self,
        method: object = METHOD,
        *,
        space: "SpaceLike | None" = None,
        history: Sequence[Evaluations] = (),
        context: Mapping[str, float] | None = None,
        budget: int = BUDGET,
        seed: int = 0,
        shared: bool = False,
    ) -> None:
        self._spec, self._history = as_method_spec(method), as_evaluations(history)
        self._is_given = space is not None
        self._space = None if space is None else _described(space)
        check_use(self._spec, self._history, self._space)
        # Distributions have no conditions, so a missing hyperparameter may be inactive.
        self._is_whole = isinstance(space, SearchSpace) or hasattr(space, "to_serialized_dict")
        self._context = {} if context is None else context
        self._budget, self._seed, self._shared = budget, seed, shared
        self._lock = Lock()  # Optuna calls from several threads
        self._optimiser: Optimiser | None = None
        self._study_name = self._identity = ""
        self._next = 0  # number of the next record
        self._configs: dict[int, Config] = {}  # by number of the record
        self._asked: dict[int, int] = {}  # number of the configuration's record, by trial
        self._told: set[int] = set()  # numbers of trials
        self._unrecorded: list[int] = []  # those told since the last record
        self._interrupted: list[int] = []  # configurations to suggest again, by record
        self._is_of_studies = False  # whether the space is that of the earlier studies
        self._compared: set[str] = set()  # hyperparameters that were warned of or compared

    @classmethod
    def from_studies(
        cls,
        method: object,
        studies: Iterable[Study],
        *,
        space: "SpaceLike | None" = None,
        drop_invalid: bool = False,
        clip: bool = False,
        context: Mapping[str, float] | None = None,
        contexts: Mapping[str, Mapping[str, float]] | None = None,
        rename: Mapping[str, str] = MappingProxyType({}),
        budget: int = BUDGET,
        seed: int = 0,
        shared: bool = False,
    ) -> Self:
        """Make a sampler that starts from earlier studies of the same objective.

        The studies, oldest first, and `drop_invalid`, `clip`, `contexts` and `rename` are those of
        `history_from_studies`, the others those of the class. Default of `space`: that of the last
        study.

        Raises:
            EvaluationsError: The studies cannot be read as history; or, in the first trial, they
                are of another direction than the study.
            ExperimentError: Not a method, or one that needs more studies.

        Examples:
            >>> import optuna
            >>> from hpobench_ordered.adapters import OptunaSampler
            >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
            >>> def objective(trial):
            ...     return (trial.suggest_float("x", 0, 1) - 0.3) ** 2
            >>> may = optuna.create_study(study_name="May")
            >>> may.optimize(objective, n_trials=9)
            >>> june = optuna.create_study(
            ...     study_name="June", sampler=OptunaSampler.from_studies("simple-ordered", [may])
            ... )
            >>> june.optimize(objective, n_trials=3)
            >>> june.trials[0].params == may.best_params
            True
        """
        history = history_from_studies(
            studies,
            space=space,
            drop_invalid=drop_invalid,
            clip=clip,
            contexts=contexts,
            rename=rename,
        )
        sampler = cls(
            method,
            space=history[-1].space if space is None else space,
            history=history,
            context=context,
            budget=budget,
            seed=seed,
            shared=shared,
        )
        sampler._is_of_studies = space is None
        return sampler

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Create the method once the search space is known.

        Here, as Optuna does not catch errors that are raised before a trial.

        Raises:
            ExperimentError: The study has several objectives, or is another one than before.
            EvaluationsError: The history does not fit the study, see `check_history`.
        """
        with self._lock:
            self._begin(study)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return an empty space: all hyperparameters are sampled independently."""
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return nothing: all hyperparameters are sampled independently."""
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
            ExperimentError: The objective's range does not hold what the method suggests.
        """
        with self._lock:
            self._begin(study)
            if self._space is not None and param_name in _names(self._space):
                config = {} if self._optimiser is None else self._suggestion(study, trial)
                if param_name in config:
                    value, is_held = _within(param_distribution, config[param_name])
                    if is_held:
                        self._warn_of_other_range(param_name, param_distribution)
                        return value
                    if self._is_given:
                        self._take_back(study, trial)
                        raise ExperimentError(
                            f"the objective suggests {param_name!r} from {param_distribution}, "
                            f"but the method suggests {config[param_name]!r}: its search space "
                            "has another range"
                        )
            elif self._is_given and self._space is not None:
                self._take_back(study, trial)
                hint = (
                    " (the search space is that of the earlier studies, unless `space=` is given)"
                )
                raise UnknownNameError("hyperparameter", param_name, _names(self._space), hint=hint)
        draw = f"{self._seed} {trial.number} {param_name}".encode()
        seed = int.from_bytes(hashlib.sha256(draw).digest()[:4])
        sampler = RandomSampler(seed=seed)  # the same when the study is resumed
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def _warn_of_other_range(self, name: str, suggested: BaseDistribution) -> None:
        """Warn once if the range in the objective differs from that of the earlier studies."""
        if not self._is_of_studies or self._space is None or name in self._compared:
            return
        self._compared.add(name)
        if not is_same(self._space, name, suggested):
            constants = self._space.constants
            searched = constants[name] if name in constants else distribution(self._space[name])
            _warn(
                f"the objective suggests {name!r} from {suggested}, but the search space is that "
                f"of the earlier studies, {searched}; give the current one as `space=`"
            )

    def _warn_of_what_is_gone(self, trial: FrozenTrial, space: SearchSpace) -> None:
        """Warn once of hyperparameters that the method suggests and the objective does not use."""
        config = self._configs.get(self._asked.get(trial.number, -1), {})
        gone = config.keys() & set(space.names) - trial.params.keys() - self._compared
        if gone:
            self._compared |= gone
            _warn(
                f"the objective does not suggest {join_words(map(repr, sorted(gone)))}, which is "
                "tuned nevertheless; give the current search space as `space=`"
            )

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Tell the method what was evaluated, if it fits its space."""
        with self._lock:
            self._begin(study)
            if self._optimiser is not None and trial.number not in self._told:
                self._tell(self._optimiser, trial, values)
                if state is TrialState.COMPLETE and self._is_whole:
                    self._warn_of_what_is_gone(trial, self._optimiser.space)

    def reseed_rng(self) -> None:
        """Do nothing: concurrent trials share one method, which is asked by one at a time."""

    def _begin(self, study: Study) -> None:
        """Create the method once the search space is known, and replay the study."""
        if self._optimiser is not None:
            if study.study_name != self._study_name:
                raise ExperimentError("an OptunaSampler belongs to one study; make another one")
            return
        if len(study.directions) != 1:
            raise ExperimentError(f"the study must have one objective, but has {study.directions}")
        if self._space is None:
            self._space = _inferred(study.get_trials(deepcopy=False))
        if self._space is None:
            return
        made = Optimiser(
            self._spec,
            space=self._space,
            direction=Direction.of(study.direction.name.lower()),
            history=self._history,
            context=self._context,
            budget=self._budget,
            seed=self._seed,
        )
        described = json.dumps(made.settings, sort_keys=True)
        self._identity = hashlib.sha256(described.encode()).hexdigest()[:16]
        self._study_name = study.study_name
        trials = self._repeated(study, made)
        kept = {self._asked.get(t.number) for t in trials if self._shared or t.state.is_finished()}
        self._interrupted = [number for number in self._configs if number not in kept]
        self._optimiser = made

    def _repeated(self, study: Study, made: Optimiser) -> list[FrozenTrial]:
        """Repeat what samplers recorded since the last time; return the trials that count."""
        trials: list[FrozenTrial] = study.get_trials(deepcopy=False)
        new = [t for t in trials if t.number not in self._asked]
        records = [(*t.system_attrs.get(RECORD, [""]), t.number) for t in new]
        for _, place, told, source, number in sorted(r for r in records if r[0] == self._identity):
            for earlier in told:
                self._tell(made, trials[earlier], trials[earlier].values)
            self._unrecorded = [n for n in self._unrecorded if n not in told]
            if source not in self._configs:
                self._configs[source] = made.ask()
            self._asked[number] = source
            self._next = max(self._next, place + 1)
        return [t for t in trials if NOT_EVALUATED not in t.system_attrs]

    def _suggestion(self, study: Study, trial: FrozenTrial) -> Config:
        """The configuration of a trial, asked for if it has none yet."""
        assert self._optimiser is not None
        if trial.number not in self._asked:
            trials = self._repeated(study, self._optimiser)
            new = [t for t in trials if t.state.is_finished() and t.number not in self._told]
            for one in new:
                self._tell(self._optimiser, one, one.values)
            if self._interrupted:
                source = self._interrupted.pop(0)
            else:
                source = self._next
                self._configs[source] = self._optimiser.ask()
            self._asked[trial.number] = source
            record = [self._identity, self._next, self._unrecorded, source]
            study._storage.set_trial_system_attr(trial._trial_id, RECORD, record)
            self._next, self._unrecorded = self._next + 1, []
        return self._configs[self._asked[trial.number]]

    def _take_back(self, study: Study, trial: FrozenTrial) -> None:
        """Let the configuration of a trial be suggested again, as it was not evaluated."""
        study._storage.set_trial_system_attr(trial._trial_id, NOT_EVALUATED, True)
        self._told.add(trial.number)
        if trial.number in self._asked:
            self._interrupted.append(self._asked[trial.number])

    def _tell(self, made: Optimiser, trial: FrozenTrial, values: Sequence[float] | None) -> None:
        """Tell the value of a trial; a failed trial counts only with a complete configuration."""
        if trial.number in self._told:
            return
        self._told.add(trial.number)
        self._unrecorded.append(trial.number)
        source = self._asked.get(trial.number, -1)
        self._interrupted = [number for number in self._interrupted if number != source]
        taken = {name: x for name, x in trial.params.items() if name in made.space.names}
        config = self._configs.get(source, {}) | taken
        if values is not None:
            config = {p.name: p.default for p in made.space.parameters} | config
        try:
            made.tell(config, None if values is None else values[0])
        except InvalidConfigError as error:
            if values is not None:
                _warn(f"trial {trial.number} is left out: {error}")


def _warn(message: str) -> None:
    warnings.warn(message, HistoryWarning, stacklevel=3)


def _described(description: SpaceLike) -> SearchSpace:
    """A search space from any description, Optuna's distributions included."""
    if isinstance(description, Mapping) and description:
        distributions = dict(description)
        if all(isinstance(one, BaseDistribution) for one in distributions.values()):
            return space_of(distributions)
    return to_search_space(description)


def _names(space: SearchSpace) -> tuple[str, ...]:
    return (*space.names, *space.constants)


def _inferred(trials: Iterable[FrozenTrial]) -> SearchSpace | None:
    """The space of the first complete trial with anything to tune."""
    for trial in trials:
        tunable = {n: d for n, d in trial.distributions.items() if not d.single()}
        if trial.state is TrialState.COMPLETE and tunable:
            return space_of(tunable)
    return None


def _within(distribution: BaseDistribution, value: Any) -> tuple[Any, bool]:
    """A value as represented by a distribution, and whether that contains it."""
    try:
        internal = distribution.to_internal_repr(value)
    except ValueError:
        return value, False
    return distribution.to_external_repr(internal), bool(distribution._contains(internal))
