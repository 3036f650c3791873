"""Records the tuning of a task in a study of an Optuna storage, and reads it again.

Each configuration that a method is asked for becomes a running trial, which is finished when its
value is told. Attributes of the trials hold the order of all that was asked and told, so that an
optimiser which was interrupted can be led through the same events again. Needs the extra `optuna`.
"""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any

import optuna
from optuna.storages import get_storage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from hpobench_ordered._typing import Config
from hpobench_ordered._wording import join_words
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.errors import StoreError
from hpobench_ordered.runtime.optuna_log import quiet
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.tuning._settings import describe_changes
from hpobench_ordered.tuning.reading.passwords import hide_password
from hpobench_ordered.tuning.reading.read import Settings, read_source
from hpobench_ordered.tuning.reading.rows import OpenedStudy, Reader, warn
from hpobench_ordered.tuning.reading.sources import open_storage
from hpobench_ordered.tuning.reading.studies import SETTINGS_ENTRY, load_studies

ASKED_ATTRIBUTE = "hpobench_ordered:asked"
"""Attribute of a trial: number of the event in which the method was asked for it."""
TOLD_ATTRIBUTE = "hpobench_ordered:told"
"""Attribute of a finished trial: number of the event in which the method was told its value."""
RESULTS_ATTRIBUTE = "hpobench_ordered:results"
"""Attribute of a trial: what else its evaluation gave, as JSON."""
DELETE_STUDY = "delete its study (optuna.delete_study)"
"""What messages advise those who do not need the trials of a task any more."""


@dataclass(frozen=True, order=True)
class Event:
    """Something that happened to an optimiser.

    Attributes:
        number: Number of the event, from 0.
        trial: Number of the trial.
        is_told: Whether the method was told the value of the trial, or else asked for it.
    """

    number: int
    trial: int
    is_told: bool


@dataclass(frozen=True)
class RecordedTrial:
    """A trial that was recorded.

    Attributes:
        config: The active hyperparameters.
        value: Value in the objective's own units; None if it failed or is not finished.
        results: What else its evaluation gave; None if nothing was recorded.
    """

    config: Config
    value: float | None
    results: Any


class Recorder:
    """Records the tuning of one task in a study that has the task's name.

    One process may write to the study at a time.

    Attributes:
        place: The task and the storage, for messages.
        trials: The trials that the study had when it was opened, in order.
        events: What had happened to the optimiser by then, in order.
        settings_of_earlier: Settings recorded with each earlier task that was read, by its name.

    Raises:
        MissingExtraError: Optuna is not installed.
        StoreError: The study was not recorded by this package, has another direction, or cannot be
            read.
    """

    def __init__(
        self, storage: "str | os.PathLike[str] | object", task: str, direction: Direction
    ) -> None:
        """Open the storage, and read the trials of the task if it has been begun."""
        self.place = f"task {task!r} in {hide_password(storage)}"
        self._task = task
        self._direction = direction
        # The error after which nothing more can be recorded; "" if there was none.
        self._failure = ""
        if isinstance(storage, str | os.PathLike):
            try:
                storage = open_storage(storage, purpose="recording evaluations")
            except OSError as error:  # a new journal is created at once
                raise StoreError(f"{self.place} cannot be recorded: {error}") from error
        # The study of the task; `begin` creates that of a new task.
        self._study: Study
        trials: list[FrozenTrial] = []
        with self._naming_errors(), quiet():
            self._storage = get_storage(storage)
            if task in optuna.get_all_study_names(self._storage):
                self._study = optuna.load_study(study_name=task, storage=self._storage)
                trials = self._study.get_trials(deepcopy=False)
        # The storage's id of each trial, by the number of the trial in the study.
        self._id_of_trial = [trial._trial_id for trial in trials]
        # When the task was begun; None if it has no trials.
        self._start: datetime | None = trials[0].datetime_start if trials else None
        # The settings of the optimiser that made the trials.
        self._settings: dict[str, Any] | None = None
        if trials:
            self._settings = self._study.user_attrs.get(SETTINGS_ENTRY)
        self.events = sorted(_list_events(trials))
        # Each trial of this package was asked for or told, which are events.
        trials_with_event = {event.trial for event in self.events}
        has_other_trials = len(trials_with_event) < len(trials)
        if has_other_trials or (trials and self._settings is None):
            raise StoreError(
                f"{self.place} was tuned by another program; choose another name for this one"
            )
        if trials:
            self._check_direction()
        self.trials = [_read_trial(trial) for trial in trials]
        self.settings_of_earlier: dict[str, Mapping[str, Any]] = {}
        self._next_event = len(self.events)  # number of the event that is recorded next

    def _check_direction(self) -> None:
        """Raise a `StoreError` if the trials of the task have another direction."""
        directions = _list_directions(self._study)
        if directions != [self._direction.value]:
            raise StoreError(
                f"{self.place} was begun to {join_words(directions)}, now to "
                f"{self._direction.value}; use another name for this task, or {DELETE_STUDY}"
            )

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of the optimiser that made the trials; empty if there are no trials."""
        return self._settings or {}

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Record the settings of a new task, or check that a continued task has the same ones.

        A new task gets its study here, so that none is left behind if its settings are refused.

        Raises:
            StoreError: The settings differ from the recorded ones.
        """
        if not self.trials:
            with self._naming_errors(), quiet():
                self._study = self._create_study()
                self._study.set_user_attr(SETTINGS_ENTRY, dict(settings))
            return
        if "method" not in self.settings:
            raise StoreError(
                f"{self.place} was written by `record_history`, so that it cannot be continued; "
                "choose another name for this one"
            )
        changes = describe_changes(self.settings, settings)
        if changes:
            raise StoreError(
                f"{self.place} was begun with other settings: {'; '.join(changes)}. Use those "
                f"again, or another name for this task, or {DELETE_STUDY}"
            )

    def _create_study(self) -> Study:
        """Create the study of the task, in place of one without trials."""
        study = optuna.create_study(
            study_name=self._task,
            storage=self._storage,
            direction=self._direction.value,
            load_if_exists=True,
        )
        has_direction = _list_directions(study) == [self._direction.value]
        if has_direction or study.get_trials(deepcopy=False):
            return study
        optuna.delete_study(study_name=self._task, storage=self._storage)
        return self._create_study()

    def read_earlier(self, space: SearchSpace) -> tuple[Evaluations, ...]:
        """Read the earlier tasks of the storage, oldest first.

        They are the studies whose first trial started before the first trial of this task. Only
        trials that ended before this task began are read, so that the history of the task never
        changes. Trials that are outside of `space` are left out with a warning, and so are studies
        of another direction, which belong to something else.
        """
        is_empty = not optuna.get_all_study_names(self._storage)
        if is_empty:
            return ()
        studies = load_studies(self._storage, "*")  # oldest first
        earlier: list[OpenedStudy] = []
        others: list[str] = []
        for study in takewhile(lambda study: study.study_name != self._task, studies):
            opened = OpenedStudy(study, before=self._start)
            if not any(trial.state is TrialState.COMPLETE for trial in opened.list_trials()):
                continue
            if _list_directions(study) == [self._direction.value]:
                earlier.append(opened)
                settings = study.user_attrs.get(SETTINGS_ENTRY, {})
                self.settings_of_earlier[study.study_name] = settings
            else:
                others.append(repr(study.study_name))
        if others:
            warn(f"studies of another direction are no earlier tasks: {join_words(others)}")
        if not earlier:
            return ()
        reader = Reader(drop_invalid=True, clip=False, source="the studies", may_be_empty=True)
        return read_source(earlier, space, Settings(), reader)

    def stop(self, reason: str) -> None:
        """Refuse to record anything from now on; errors give the reason.

        The first reason stays if there is one already.
        """
        self._failure = self._failure or reason

    def ask(self, config: Config, space: SearchSpace) -> int:
        """Record a configuration that the method has suggested, and return its trial's number."""
        trial = self._make_trial(config, space, TrialState.RUNNING, None)
        trial.user_attrs[ASKED_ATTRIBUTE] = self._next_event
        return self._add(trial)

    def tell(self, number: int, value: float, results: Any) -> None:
        """Record the value of a trial, and further results of its evaluation.

        Args:
            number: Number of the trial.
            value: Value of the objective; NaN if the evaluation failed.
            results: Further results, as JSON; None if there are none.
        """
        trial_id = self._id_of_trial[number]
        storage = self._storage
        with self._naming_errors():
            self._check_only_writer()
            storage.set_trial_user_attr(trial_id, TOLD_ATTRIBUTE, self._next_event)
            if results is not None:
                storage.set_trial_user_attr(trial_id, RESULTS_ATTRIBUTE, results)
            if math.isnan(value):
                storage.set_trial_state_values(trial_id, TrialState.FAIL)
            else:
                storage.set_trial_state_values(trial_id, TrialState.COMPLETE, [value])
        self._next_event += 1

    def add(self, config: Config, space: SearchSpace, value: float) -> None:
        """Record a configuration that was evaluated although the method did not suggest it.

        `value` is NaN if the evaluation failed.
        """
        is_failed = math.isnan(value)
        state = TrialState.FAIL if is_failed else TrialState.COMPLETE
        trial = self._make_trial(config, space, state, None if is_failed else value)
        trial.user_attrs[TOLD_ATTRIBUTE] = self._next_event
        self._add(trial)

    def _make_trial(
        self, config: Config, space: SearchSpace, state: TrialState, value: float | None
    ) -> FrozenTrial:
        """Make a trial with the active hyperparameters of a configuration."""
        params = {name: config[name] for name in space.names if name in config}
        return create_trial(
            state=state,
            value=value,
            params=params,
            distributions={name: space[name].to_optuna() for name in params},
        )

    def _add(self, trial: FrozenTrial) -> int:
        """Add a trial to the study, and return its number.

        Raises:
            StoreError: The trial cannot be written, or another process has written to the study.
        """
        storage = self._storage
        number = len(self._id_of_trial)
        with self._naming_errors(), quiet():
            self._check_only_writer()
            self._id_of_trial.append(storage.create_new_trial(self._study._study_id, trial))
        self._next_event += 1
        return number

    def _check_only_writer(self) -> None:
        """Raise a `StoreError` if another process has added trials or values to the study.

        The study then has more trials or events than this recorder has written or read.
        """
        trials = self._study.get_trials(deepcopy=False)
        n_events = len(list(_list_events(trials)))
        has_own_trials_only = len(trials) == len(self._id_of_trial)
        has_own_events_only = n_events == self._next_event
        if not (has_own_trials_only and has_own_events_only):
            raise StoreError(
                f"another optimiser writes to {self.place}; each needs a task of its own"
            )

    @contextmanager
    def _naming_errors(self) -> Iterator[None]:
        """Turn an error of the storage within a block into a `StoreError`.

        Nothing can be recorded after such an error: the optimiser then knows more than the study,
        so repeating the study's events would not restore the optimiser.
        """
        if self._failure:
            raise StoreError(self._failure)
        try:
            yield
        except Exception as error:  # the class depends on the storage
            first_line = str(error).partition("\n")[0]
            names_the_place = isinstance(error, StoreError)  # of `_check_only_writer`
            if names_the_place:
                self._failure = first_line
            else:
                self._failure = f"{self.place} cannot be recorded: {first_line}"
            raise StoreError(self._failure) from error


def record_history(
    history: Sequence[Evaluations], storage: "str | os.PathLike[str] | object"
) -> None:
    """Record earlier tasks in an Optuna storage, as a study each.

    Searches and optimisers that are recorded in the storage then start from them.

    Args:
        history: The evaluations of each task, oldest first, such as `read_history` gives.
        storage: The storage; its URL; or a file, which need not exist yet.

    Raises:
        MissingExtraError: Optuna is not installed.
        StoreError: A study of the same name has trials already, or the storage cannot be written.
    """
    for evaluations in history:
        recorder = Recorder(storage, evaluations.task, evaluations.direction)
        if recorder.trials:
            raise StoreError(f"{recorder.place} has trials already")
        context = dict(evaluations.context)
        recorder.begin({"space": evaluations.space.to_json(), "context": context})
        configs = evaluations.space.configs(evaluations.values)
        for config, value in zip(configs, evaluations.objective.tolist(), strict=True):
            recorder.add(config, evaluations.space, value)


def _list_directions(study: Study) -> list[str]:
    """List the direction of each objective of a study: "minimize" or "maximize"."""
    return [direction.name.lower() for direction in study.directions]


def _list_events(trials: Sequence[FrozenTrial]) -> Iterator[Event]:
    """Yield the events of trials that attributes record: one for asking, one for telling.

    The events follow the order of the trials, which need not be the order in which they happened.
    """
    for trial in trials:
        if ASKED_ATTRIBUTE in trial.user_attrs:
            yield Event(trial.user_attrs[ASKED_ATTRIBUTE], trial.number, is_told=False)
        if trial.state.is_finished() and TOLD_ATTRIBUTE in trial.user_attrs:
            yield Event(trial.user_attrs[TOLD_ATTRIBUTE], trial.number, is_told=True)


def _read_trial(trial: FrozenTrial) -> RecordedTrial:
    """Convert a trial of the study to a `RecordedTrial`."""
    results = trial.user_attrs.get(RESULTS_ATTRIBUTE)
    return RecordedTrial(config=dict(trial.params), value=trial.value, results=results)
