"""Methods as Optuna's samplers.

`OptunaSampler` gives trials their values. `Replay` keeps a method and a study in step: all that the
method was asked and told is recorded in the study, so that another sampler with the same arguments
can repeat it, in another process too.

If several processes share a study, two may ask at the same time, each before it can see what the
other one was suggested. Trials are numbered by the storage, so each process leaves the next
suggestions to the running trials of lower numbers that have none yet, and takes the one after.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from hpobench_ordered._typing import Config
from hpobench_ordered._wording import join_words
from hpobench_ordered.data.history import Evaluations, align_history
from hpobench_ordered.data.identity import hash_bytes, hash_json
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.errors import (
    ExperimentError,
    HistoryWarning,
    InvalidConfigError,
    UnknownNameError,
)
from hpobench_ordered.methods.wrapping.factory import as_method_spec
from hpobench_ordered.runtime.threads import Lock
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.conversion import (
    SpaceLike,
    is_value,
    name_choice,
    to_search_space,
)
from hpobench_ordered.space.optuna_space import convert_distributions
from hpobench_ordered.tuning._settings import HASH_LENGTH
from hpobench_ordered.tuning.optimiser import DEFAULT_BUDGET, DEFAULT_METHOD, Optimiser, check_use
from hpobench_ordered.tuning.reading.read import as_history, read_history
from hpobench_ordered.tuning.reading.sources import Source
from hpobench_ordered.tuning.reading.studies import has_same_range

RECORD_ATTRIBUTE = "hpobench_ordered:suggestion"
"""Attribute of trials: the fields of a `Record`."""
NOT_EVALUATED_ATTRIBUTE = "hpobench_ordered:not evaluated"
"""Attribute that marks trials whose objective suggests what the space does not have."""
ENQUEUED_ATTRIBUTE = "fixed_params"
"""Attribute that Optuna gives to trials whose values were enqueued."""


class OptunaSampler(BaseSampler):  # type: ignore[misc]  # mypy does not follow Optuna
    """A method as the sampler of studies of one objective.

    It suggests what `hpobench_ordered.optimiser` with the same arguments suggests. Several trials
    may run at once (`n_jobs`). A new sampler with the same arguments resumes a study in a storage
    with the same results; trials that were running when it stopped are suggested again first. If a
    sampler is used for another study, the method starts anew: it learns nothing from the study
    before.

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
        history: Evaluations of earlier tasks, oldest first: what `read_history` gives, or what it
            reads if no more has to be said, such as studies or "sqlite:///churn.db".
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
        method: object = DEFAULT_METHOD,
        *,
        space: "SpaceLike | None" = None,
        history: "Source | Sequence[Evaluations] | None" = (),
        context: Mapping[str, float] | None = None,
        budget: int = DEFAULT_BUDGET,
        seed: int = 0,
        shared: bool = False,
    ) -> None:
        """Check the arguments; the method itself is made in the first trial, see `_begin`."""
        self._spec = as_method_spec(method)
        self._is_space_given = space is not None
        self._space: SearchSpace | None = None if space is None else _to_search_space(space)
        self._history = as_history(history, self._space, direction=None)
        if self._space is not None:
            self._history = align_history(self._history, self._space)
        check_use(self._spec, self._history, self._space)
        # Optuna's distributions do not say under which conditions the objective suggests them. So
        # only these two types of spaces tell an unused hyperparameter from an inactive one.
        is_of_configspace = hasattr(space, "to_serialized_dict")  # a method of ConfigSpace's spaces
        self._has_known_conditions = isinstance(space, SearchSpace) or is_of_configspace
        self._context = {} if context is None else context
        self._budget = budget
        self._seed = seed
        self._is_shared = shared
        self._lock = Lock()  # Optuna calls from several threads
        # Made in a study's first trial for which the space is known.
        self._replay: Replay | None = None
        self._is_space_of_studies = False  # `from_studies` sets it if the space is theirs
        # Names of the hyperparameters that have been checked: each causes at most one warning.
        self._checked_names: set[str] = set()

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
        budget: int = DEFAULT_BUDGET,
        seed: int = 0,
        shared: bool = False,
    ) -> Self:
        """Make a sampler that starts from earlier studies of the same objective.

        Args:
            method: As for the class.
            studies: The earlier studies, the oldest first; [] if there are none yet.
            space: The search space. Default: that of the last study.
            drop_invalid: As for `read_history`.
            clip: As for `read_history`.
            context: As for the class.
            contexts: As for `read_history`.
            rename: As for `read_history`.
            budget: As for the class.
            seed: As for the class.
            shared: As for the class.

        Raises:
            EvaluationsError: The studies cannot be read as history; or, in the first trial, they
                are of another direction than the study.
            ExperimentError: Not a method, or one that needs more studies.
            InvalidSpaceError: The space has a feature that is not supported.

        Examples:
            >>> import optuna
            >>> from hpobench_ordered.tuning import OptunaSampler
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
        # The class gets the space as it is: not all of its forms say what is conditional.
        search_space = None if space is None else _to_search_space(space)
        is_first = isinstance(studies, Sequence) and not studies
        if is_first:  # the first study has no earlier ones
            return cls(
                method, space=space, context=context, budget=budget, seed=seed, shared=shared
            )
        history = read_history(
            studies,
            search_space,
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
        sampler._is_space_of_studies = space is None
        return sampler

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Create the method once the search space is known.

        It is created here rather than when a trial asks for a value: `study.optimize(catch=...)`
        would catch an error there, and fail trial after trial, but catches none from here. `trial`
        is part of Optuna's interface; the method does not depend on it.

        Raises:
            ExperimentError: The study has several objectives.
            EvaluationsError: The history does not fit the study, see `check_history`.
        """
        with self._lock:
            self._begin(study)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return an empty space, so that Optuna calls `sample_independent` for every parameter."""
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return nothing: `sample_independent` gives the values of all hyperparameters."""
        return {}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return the value of one hyperparameter, from the method's suggestion for the trial.

        The value is drawn at random if the method has none. It is also drawn if the space was
        inferred, and the objective's range does not contain the method's value.

        Raises:
            UnknownNameError: The space that was given has no such hyperparameter.
            ExperimentError: The objective's range does not hold what the method suggests.
        """
        with self._lock:
            self._begin(study)
            suggestion = self._suggest(study, trial, param_name)
            if suggestion is None:  # the method has no value for it
                return self._draw(study, trial, param_name, param_distribution)

            value, is_contained = _convert_to_range(
                param_name, param_distribution, suggestion.value
            )
            if is_contained:
                self._warn_of_other_range(param_name, param_distribution)
                return value
            if not self._is_space_given:  # it was inferred from trials with another range
                return self._draw(study, trial, param_name, param_distribution)

            self._take_back(study, trial)
            raise ExperimentError(
                f"the objective suggests {param_name!r} from {param_distribution}, but the method "
                f"suggests {suggestion.value!r}: its search space has another range"
            )

    def _suggest(self, study: Study, trial: FrozenTrial, name: str) -> "_Suggestion | None":
        """Return the method's value of a hyperparameter; None if the method has no value.

        The value is wrapped in a `_Suggestion`, as it may itself be None.
        """
        if self._space is None:  # not known before the first complete trial
            return None
        names = (*self._space.names, *self._space.constants)
        if name not in names:
            if not self._is_space_given:  # a space that was inferred may lack a hyperparameter
                return None
            self._take_back(study, trial)
            # `from_studies` gives the space of the last study unless the user gives one.
            hint = " (the search space is that of the earlier studies, unless `space=` is given)"
            raise UnknownNameError("hyperparameter", name, names, hint=hint)
        if self._replay is None:
            return None
        config = self._replay.suggest(study, trial)
        return _Suggestion(config[name]) if name in config else None

    def _draw(
        self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Any:
        """Draw a value at random, which is the same for this trial when the study is resumed."""
        text = f"{self._seed} {trial.number} {name}"  # the value depends on these alone
        hash_text = hash_bytes(text.encode())
        seed = int(hash_text[:8], 16)  # eight hexadecimal digits are 32 bits
        return RandomSampler(seed=seed).sample_independent(study, trial, name, distribution)

    def _take_back(self, study: Study, trial: FrozenTrial) -> None:
        """Free the suggestion of a trial that is about to fail, so that another trial gets it."""
        if self._replay is not None:
            self._replay.take_back(study, trial)

    def _warn_of_other_range(self, name: str, suggested: BaseDistribution) -> None:
        """Warn once if the objective's range differs from that of the earlier studies.

        This matters only if the search space was taken from those studies.
        """
        if not self._is_space_of_studies or self._space is None or name in self._checked_names:
            return
        self._checked_names.add(name)
        if not has_same_range(self._space, name, suggested):
            in_space: Any = self._space.constants.get(name)
            if name in self._space.names:
                in_space = self._space[name].to_optuna()
            _warn(
                f"the objective suggests {name!r} from {suggested}, but the search space is that "
                f"of the earlier studies, {in_space}; give the current one as `space=`"
            )

    def _warn_of_unused(self, trial: FrozenTrial, replay: "Replay") -> None:
        """Warn once of each hyperparameter that the method suggests, but the objective ignores."""
        suggested = replay.config_of(trial).keys() & set(replay.optimiser.space.names)
        unused = suggested - trial.params.keys() - self._checked_names
        if unused:
            self._checked_names |= unused
            _warn(
                f"the objective does not suggest {join_words(map(repr, sorted(unused)))}, which is "
                "tuned nevertheless; give the current search space as `space=`"
            )

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Tell the method the value of a finished trial, if the trial fits the search space."""
        with self._lock:
            self._begin(study)
            # Without a replay the search space, and so the method, is not known yet.
            if self._replay is None or self._replay.is_told(trial):
                return
            self._replay.tell(trial, values)
            # Where conditions are unknown, what the objective does not suggest may be inactive.
            if state is TrialState.COMPLETE and self._has_known_conditions:
                self._warn_of_unused(trial, self._replay)

    def reseed_rng(self) -> None:
        """Do nothing: concurrent trials share one method, which one of them asks at a time."""

    def _begin(self, study: Study) -> None:
        """Create the method, and repeat with it what the study has recorded.

        Nothing is done if this was done before for the study. `self._replay` holds the method. It
        stays None as long as no space is known: if none was given, and the study has no complete
        trial to infer it from.
        """
        if self._replay is not None and self._replay.is_of(study):
            return
        self._replay = None
        if len(study.directions) != 1:
            raise ExperimentError(f"the study must have one objective, but has {study.directions}")
        if not self._is_space_given:
            self._space = _infer_space(study.get_trials(deepcopy=False))
        if self._space is None:
            return
        optimiser = Optimiser(
            self._spec,
            space=self._space,
            direction=Direction.of(study.direction.name.lower()),
            history=align_history(self._history, self._space),
            context=self._context,
            budget=self._budget,
            seed=self._seed,
        )
        self._replay = Replay(optimiser, study, is_shared=self._is_shared)


class _Suggestion(NamedTuple):
    """A value that the method suggests, which may be None."""

    value: Any


class Record(NamedTuple):
    """What a sampler was told and asked for one trial.

    Attributes:
        identity: Hash of the sampler's arguments.
        order: Number of earlier records.
        told: Numbers of the trials that the method was told since the last record.
        suggestion: Number of the suggestion that the trial got; suggestions are counted as the
            method makes them, and an interrupted trial leaves its own to another one.
    """

    identity: str
    order: int
    told: list[int]
    suggestion: int


class Replay:
    """Keeps a method and a study in step, by records in the study.

    Attributes:
        optimiser: The method, which knows all that happened in the study when it was last asked.
    """

    def __init__(self, optimiser: Optimiser, study: Study, *, is_shared: bool) -> None:
        """Repeat with a new method what the study recorded of it.

        Args:
            optimiser: The method, which has not been asked or told anything.
            study: The study, perhaps one that is resumed.
            is_shared: Whether other processes work on the study at the same time.
        """
        self.optimiser = optimiser
        self._storage = study._storage
        self._study_id = study._study_id
        self._identity = hash_json(optimiser.settings, sort_keys=True)[:HASH_LENGTH]
        self._is_shared = is_shared

        # A suggestion is identified by its number: the method makes numbers 0, 1, 2, ... in this
        # order. A trial is identified by its number in the study.
        self._suggested_configs: list[Config] = []
        self._suggestion_of_trial: dict[int, int] = {}
        self._free_suggestions: list[int] = []  # suggestions that no trial has
        self._next_order = 0  # of the next record in the study
        self._told_trials: set[int] = set()  # trials that the method was told, or never will be
        self._told_since_record: list[int] = []  # trials told since the last record

        trials = self.catch_up(study)
        self._free_suggestions = self._list_unused_suggestions(trials)

    def _list_unused_suggestions(self, trials: Sequence[FrozenTrial]) -> list[int]:
        """List the numbers of the suggestions that none of the trials needs, in ascending order.

        If no other process works on the study, a trial that seems to run was interrupted, and does
        not need its suggestion any more.
        """
        used: set[int] = set()
        for trial in trials:
            is_interrupted = not self._is_shared and not trial.state.is_finished()
            if not is_interrupted and trial.number in self._suggestion_of_trial:
                used.add(self._suggestion_of_trial[trial.number])
        all_suggestions = range(len(self._suggested_configs))
        return [number for number in all_suggestions if number not in used]

    def is_of(self, study: Study) -> bool:
        """Whether a study is the one of this replay.

        The storage is compared, too: studies of two storages may have the same name and id.
        """
        return study._storage is self._storage and study._study_id == self._study_id

    def is_told(self, trial: FrozenTrial) -> bool:
        """Whether the method was told of a trial, or shall not be."""
        return trial.number in self._told_trials

    def config_of(self, trial: FrozenTrial) -> Config:
        """The configuration that was suggested for a trial; empty if none was."""
        if trial.number not in self._suggestion_of_trial:
            return {}
        suggestion = self._suggestion_of_trial[trial.number]
        return self._suggested_configs[suggestion]

    def catch_up(self, study: Study) -> list[FrozenTrial]:
        """Repeat with the method what samplers have recorded in the study since the last call.

        The attribute `RECORD_ATTRIBUTE` of a trial holds the fields of a `Record`.

        Returns:
            All trials but those with the attribute `NOT_EVALUATED_ATTRIBUTE`, which failed because
            the objective's hyperparameters did not fit the space.
        """
        trials: list[FrozenTrial] = study.get_trials(deepcopy=False)
        new_records: list[tuple[Record, int]] = []
        for trial in trials:
            is_new = trial.number not in self._suggestion_of_trial
            if is_new and RECORD_ATTRIBUTE in trial.system_attrs:
                record = Record(*trial.system_attrs[RECORD_ATTRIBUTE])
                if record.identity == self._identity:  # of a sampler with the same arguments
                    new_records.append((record, trial.number))

        # The records have the same identity, so they are sorted by their order.
        for record, trial_number in sorted(new_records):
            for number in record.told:
                self.tell(trials[number], trials[number].values)
            self._told_since_record = [n for n in self._told_since_record if n not in record.told]
            # The method makes suggestions in order, so all up to the recorded one are made.
            while len(self._suggested_configs) <= record.suggestion:
                self._ask()
            self._assign(record.suggestion, trial_number)
            self._next_order = max(self._next_order, record.order + 1)
        return [trial for trial in trials if NOT_EVALUATED_ATTRIBUTE not in trial.system_attrs]

    def suggest(self, study: Study, trial: FrozenTrial) -> Config:
        """Return the configuration of a trial, which gets a suggestion if it has none yet.

        The method is first told all finished trials. The study records what the method was told and
        which suggestion the trial got, so that another sampler can repeat it.
        """
        if trial.number in self._suggestion_of_trial:
            return self.config_of(trial)

        trials = self.catch_up(study)
        for other in trials:
            if other.state.is_finished():
                self.tell(other, other.values)

        # Trials that wait in other processes get the first free suggestions, this one the next.
        n_waiting = self._count_waiting(trials, before=trial.number)
        while len(self._free_suggestions) <= n_waiting:
            self._ask()  # adds a free suggestion
        suggestion = self._free_suggestions[n_waiting]
        self._assign(suggestion, trial.number)

        record = Record(self._identity, self._next_order, self._told_since_record, suggestion)
        study._storage.set_trial_system_attr(trial._trial_id, RECORD_ATTRIBUTE, list(record))
        self._next_order += 1
        self._told_since_record = []
        return self.config_of(trial)

    def _ask(self) -> None:
        """Ask the method for another suggestion, which no trial has yet.

        Suggestions are known by their number, the index in `_suggested_configs`.
        """
        number = len(self._suggested_configs)
        self._free_suggestions.append(number)
        self._suggested_configs.append(self.optimiser.ask())

    def _assign(self, suggestion: int, trial_number: int) -> None:
        """Give a trial the suggestion of this number, which is then no longer free."""
        self._suggestion_of_trial[trial_number] = suggestion
        still_free = [number for number in self._free_suggestions if number != suggestion]
        self._free_suggestions = still_free

    def _count_waiting(self, trials: Sequence[FrozenTrial], *, before: int) -> int:
        """Count the running trials with a lower number than `before` that wait for a suggestion.

        Other processes run these trials. The count is 0 if no other process works on the study.
        """
        if not self._is_shared:
            return 0
        count = 0
        for trial in trials:
            # Trials whose values were enqueued (`ENQUEUED_ATTRIBUTE`) need no suggestion.
            needs_suggestion = not trial.params and ENQUEUED_ATTRIBUTE not in trial.system_attrs
            has_suggestion = trial.number in self._suggestion_of_trial
            is_waiting = needs_suggestion and not has_suggestion
            if trial.number < before and trial.state is TrialState.RUNNING and is_waiting:
                count += 1
        return count

    def take_back(self, study: Study, trial: FrozenTrial) -> None:
        """Let the configuration of a trial be suggested again, as it was not evaluated.

        The trial is marked in the study, so that other processes and a resumed study know.
        """
        study._storage.set_trial_system_attr(trial._trial_id, NOT_EVALUATED_ATTRIBUTE, True)
        self._told_trials.add(trial.number)  # as if the method were told, so that it never is
        if trial.number in self._suggestion_of_trial:
            self._free_suggestions.append(self._suggestion_of_trial[trial.number])

    def tell(self, trial: FrozenTrial, values: Sequence[float] | None) -> None:
        """Tell the method the value of a trial, unless it has been told already.

        A trial of another sampler may lack hyperparameters, which then get their defaults. A failed
        trial that lacks some is not told.

        Args:
            trial: The trial.
            values: Its value, in a sequence of one; None if it failed.
        """
        if trial.number in self._told_trials:
            return
        self._told_trials.add(trial.number)
        self._told_since_record.append(trial.number)  # the next record in the study names it
        if trial.number in self._suggestion_of_trial:
            # The suggestion may have been freed because the trial seemed interrupted. The trial was
            # evaluated after all, so no other trial shall get this suggestion.
            self._assign(self._suggestion_of_trial[trial.number], trial.number)

        # The values that the objective has really used replace the suggested ones.
        space = self.optimiser.space
        config: dict[str, Any] = dict(self.config_of(trial))
        for name, value in trial.params.items():
            if name in space.names:
                config[name] = name_choice(name, value)

        value_or_failure = None
        if values is not None:
            value_or_failure = values[0]
            defaults = {parameter.name: parameter.default for parameter in space.parameters}
            config = defaults | config
        try:
            self.optimiser.tell(config, value_or_failure)
        except InvalidConfigError as error:
            if values is not None:  # a failed trial often lacks hyperparameters: no warning
                _warn(f"trial {trial.number} is left out: {error}")


def _warn(message: str) -> None:
    """Warn the user of something that is left out or differs."""
    warnings.warn(message, HistoryWarning, stacklevel=3)


def _to_search_space(description: SpaceLike) -> SearchSpace:
    """Convert any description of a search space, Optuna's distributions included."""
    if isinstance(description, Mapping) and description:
        distributions = dict(description)
        if all(isinstance(d, BaseDistribution) for d in distributions.values()):
            return convert_distributions(distributions)
    return to_search_space(description)


def _infer_space(trials: Iterable[FrozenTrial]) -> SearchSpace | None:
    """Infer the search space from the first complete trial that has anything to tune.

    The result is None if there is no such trial.
    """
    for trial in trials:
        if trial.state is not TrialState.COMPLETE:
            continue
        tunable = {}
        for name, distribution in trial.distributions.items():
            if not distribution.single():  # a single value is nothing to tune
                tunable[name] = distribution
        if tunable:
            return convert_distributions(tunable)
    return None


def _convert_to_range(name: str, distribution: BaseDistribution, value: Any) -> tuple[Any, bool]:
    """Convert a value that the method suggests to the one that the objective gets.

    A number gets the type of the distribution, such as 3.0 for 3. A search space has a text instead
    of a choice that is neither text, number, boolean nor None, for example "(1, 2)" instead of a
    tuple: the method suggests the text, and the objective gets the tuple.

    Args:
        name: Name of the hyperparameter, for messages.
        distribution: The range or the choices from which the objective asks for a value.
        value: The suggested value.

    Returns:
        The converted value, and whether the distribution contains it. A value that cannot be
        converted is returned as it is, with False.
    """
    if isinstance(distribution, CategoricalDistribution):
        for choice in distribution.choices:
            if is_value(choice):  # the search space has the choice itself
                continue
            text_in_space = name_choice(name, choice)
            if text_in_space == value:
                return choice, True
    try:
        internal = distribution.to_internal_repr(value)
    except ValueError:
        return value, False
    return distribution.to_external_repr(internal), bool(distribution._contains(internal))
