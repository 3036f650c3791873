"""Methods on the user's own tasks: ask for a configuration, evaluate it, tell its value."""

import math
import reprlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsFloat

import numpy as np

from hpobench_ordered._typing import Config, ConfigLike, FloatArray
from hpobench_ordered._wording import join_words
from hpobench_ordered.analysis.labels import format_count
from hpobench_ordered.data.checks import check_count, check_seed
from hpobench_ordered.data.extras import import_extra
from hpobench_ordered.data.history import (
    Evaluations,
    align_history,
    check_history,
    describe_differences,
)
from hpobench_ordered.data.identity import NEW_AT_EACH_START
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.data.task_data import TaskData
from hpobench_ordered.errors import (
    EvaluationsError,
    ExhaustedSpaceWarning,
    ExperimentError,
    InvalidConfigError,
    InvalidSuggestionError,
    StoreError,
    warn_user,
)
from hpobench_ordered.experiment.user_methods.identity import method_version
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.wrapping.factory import as_method_spec
from hpobench_ordered.runtime import announcements
from hpobench_ordered.runtime.progress import show_progress
from hpobench_ordered.runtime.threads import Lock, one_thread
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.conversion import SpaceLike, to_search_space
from hpobench_ordered.tuning._settings import as_json, hash_evaluations
from hpobench_ordered.tuning.reading.read import as_history
from hpobench_ordered.tuning.reading.rows import warn
from hpobench_ordered.tuning.reading.sources import Source, is_storage
from hpobench_ordered.tuning.reading.tables import check_contexts

if TYPE_CHECKING:
    from pandas import DataFrame

    from hpobench_ordered.tuning.recording import Recorder


DEFAULT_METHOD = "ordered-gp"
DEFAULT_BUDGET = 100  # number of trials that a method expects


@dataclass(frozen=True, slots=True)
class Trial:
    """A configuration that was asked for, or told without having been asked for.

    Attributes:
        config: The configuration.
        value: Value in the objective's units; NaN if the evaluation failed, None until told.
    """

    config: Config
    value: float | None


def optimiser(
    method: object = DEFAULT_METHOD,
    *,
    space: SpaceLike,
    direction: Direction | str,
    history: "Source | Sequence[Evaluations] | None" = (),
    task: str | None = None,
    context: Mapping[str, float] | None = None,
    data: Sequence[TaskData | None] = (),
    budget: int = DEFAULT_BUDGET,
    seed: int = 0,
) -> "Optimiser":
    """Make an optimiser of a task of your own.

    Args:
        method: A name, a class, a MethodSpec, or whatever an experiment takes. The default learns
            from the history, and equals `bo` without one.
        space: What is tuned.
        direction: Whether the objective is to "minimize" or "maximize".
        history: Evaluations of earlier tasks, oldest first: what `read_history` gives, or what it
            reads if no more has to be said, such as "churn.db"; None or [] for none.
        task: Name of this task, such as "2026-07". With it, `history` is an Optuna storage (a file
            such as "churn.db", which need not exist yet, or a URL), and every configuration asked
            for and every value told is recorded there at once, in a study of this name. Studies
            that were begun before are the earlier tasks. If the study exists, the optimiser goes on
            from it as if it had never been stopped.
        context: Numbers known of the task beforehand, by the same names as in the history.
        data: For a method that uses them (`MethodSpec.uses_data`): training data of the models of
            each task in the history, None where unknown, and then of this task.
        budget: Number of trials the method expects; it can be asked for more.
        seed: Seed of everything random: the same seed, history and values give the same
            suggestions.

    Raises:
        UnknownNameError: No method of that name.
        ExperimentError: Not a method, one that needs a longer history, or no trials.
        InvalidSpaceError: The search space has a feature that is not supported.
        EvaluationsError: An invalid search space, direction or context, or a history that does not
            fit the task.
        StoreError: The task was begun with other settings (the message says what differs), or the
            storage cannot be written.
        MissingExtraError: A storage is used, and Optuna is not installed.

    Warns:
        HistoryWarning: The method does not use the history; or that is on another search space, or
            has another context.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> from ConfigSpace import ConfigurationSpace
        >>> space = ConfigurationSpace({"depth": (1, 9), "rate": (0.0, 1.0)})
        >>> tuner = hbo.optimiser("bo", space=space, direction="maximize")
        >>> for _ in range(5):
        ...     config = tuner.ask()
        ...     tuner.tell(config, config["rate"] - config["depth"])
        >>> tuner.best.value == max(trial.value for trial in tuner.trials)
        True
    """
    spec = as_method_spec(method)
    search_space = to_search_space(space)
    chosen_direction = Direction.of(direction)
    recorder = None
    if task is None:
        evaluations = as_history(history, search_space, chosen_direction)
    else:
        recorder = open_recorder(history, task, chosen_direction)
        evaluations = recorder.read_earlier(search_space)
    earlier_tasks = align_history(evaluations, search_space)
    data_of_tasks = check_data(spec, data, len(earlier_tasks))
    check_use(spec, earlier_tasks, search_space)
    tuner = Optimiser(
        spec,
        space=search_space,
        direction=chosen_direction,
        history=earlier_tasks,
        context={} if context is None else context,
        data=data_of_tasks,
        budget=budget,
        seed=seed,
    )
    if recorder is not None:
        recorder.begin(tuner.settings)
        tuner.resume(recorder)
    return tuner


def open_recorder(storage: object, task: str, direction: Direction) -> "Recorder":
    """Open the record of a task in an Optuna storage.

    Raises:
        ExperimentError: There is no storage, but something that is only read.
        MissingExtraError: Optuna is not installed.
        StoreError: The task was tuned by another program.
    """
    if not is_storage(storage):
        raise ExperimentError(
            f"task {task!r} is recorded in an Optuna storage, such as history='tuning.db', and "
            f"tables are only read, but got {reprlib.repr(storage)}; `record_history` puts what "
            "`read_history` reads into a storage"
        )
    import_extra("optuna", package="optuna", extra="optuna", purpose="recording evaluations")
    from hpobench_ordered.tuning.recording import Recorder

    return Recorder(storage, task, direction)


def check_data(
    spec: MethodSpec, data: Sequence[TaskData | None], earlier_task_count: int
) -> tuple[TaskData | None, ...]:
    """Check the training data: those of each earlier task, and then those of this task.

    Those of an earlier task may be None, which means that they are unknown; those of this task must
    be given. A method that does not use training data must get none at all.

    Returns:
        The data as a tuple, () for a method that does not use any.
    """
    data_of_tasks = tuple(data)
    if not spec.uses_data:
        if data_of_tasks:
            raise ExperimentError(
                f"{spec.name} does not use training data, but got some (a method of your own needs "
                "uses_data=True in its MethodSpec)"
            )
        return ()

    task_count = earlier_task_count + 1
    if len(data_of_tasks) != task_count or data_of_tasks[-1] is None:
        raise EvaluationsError(
            f"{spec.name} uses training data: `data` must be a TaskData (or None) for each of the "
            f"{earlier_task_count} earlier tasks and then this task's TaskData, {task_count} in "
            f"all, but got {len(data_of_tasks)}, the last one for this task"
        )
    return data_of_tasks


class _Asked(NamedTuple):
    """A configuration in flight: its position among the trials, and as the method suggested it."""

    position: int
    suggestion: Config


class Optimiser:
    """A method on a task of one's own; made by `hpobench_ordered.optimiser`.

    Several configurations may be asked for before one is told, from several threads too. An
    optimiser that is recorded and was stopped knows all that was asked for and told; what was in
    flight is `pending`, to be evaluated again.

    Attributes:
        space: What is tuned.
        direction: Whether the objective is minimised or maximised.
        settings: The arguments that it was made with, as JSON: they and the values told determine
            the suggestions.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> from hpobench_ordered.tuning.optimiser import Optimiser
        >>> space = hbo.SearchSpace([hbo.Parameter.number("depth", 1, 9, integer=True)])
        >>> tuner = hbo.optimiser("bo", space=space, direction="minimize")
        >>> isinstance(tuner, Optimiser)
        True
        >>> first, second = tuner.ask(), tuner.ask()
        >>> tuner.tell(second, 0.25)
        >>> tuner.tell({"depth": 9}, None)  # it failed
        >>> tuner.pending == [first], tuner.best.config == second
        (True, True)
        >>> for config in tuner.pending:
        ...     tuner.tell(config, 0.5)
        >>> len(tuner.frame())
        3
    """

    def __init__(
        self,
        spec: MethodSpec,
        *,
        space: SearchSpace,
        direction: Direction,
        history: tuple[Evaluations, ...],
        context: Mapping[str, float],
        data: tuple[TaskData | None, ...] = (),
        budget: int,
        seed: int,
    ) -> None:
        """Check the arguments, which are those of `hpobench_ordered.optimiser`; make the method.

        `history` is aligned with the space, and `data` are checked already.
        """
        check_count(budget, noun="trial")
        check_seed(seed)
        check_context(context, history)
        check_history(history, space, direction, changed_spaces=spec.changed_spaces)
        self.space = space
        self.direction = direction
        self.settings = describe_settings(
            spec, space, direction, history, context=context, data=data, budget=budget, seed=seed
        )
        self._lock = Lock()
        self._trials: list[Trial] = []
        # What was asked for or told, by the bytes of its code.
        self._known_rows: set[bytes] = set()
        self._is_exhausted = False  # and the user was told
        # What was asked for and not told yet, by the bytes of its code; a list, as the same
        # configuration may be asked for twice.
        self._in_flight: dict[bytes, list[_Asked]] = defaultdict(list)
        self._recorder: Recorder | None = None
        task: dict[str, Any] = {"space": space, "history": history, "context": context}
        if spec.uses_data:  # other methods do not take this argument
            task["data"] = data
        # The first suggestions may wait until a method is compiled: tell who waits for them.
        announcements.announces_compiling = True
        with one_thread():
            self._method = spec.method(rng=np.random.default_rng(seed), budget=budget, **task)

    def __repr__(self) -> str:
        """Describe the method, the number of trials so far, and the best value."""
        best = self._find_best()
        best_value = None if best is None else best.value
        return (
            f"Optimiser({self.settings['method']!r}, {self.direction.value}, history of "
            f"{len(self.settings['history'])} tasks, {len(self._trials)} trials, best {best_value})"
        )

    def ask(self) -> Config:
        """Suggest the next configuration to evaluate.

        Raises:
            InvalidSuggestionError: The suggestion is not a configuration of the space.

        Warns:
            ExhaustedSpaceWarning: The space has no configuration left that was not suggested.
        """
        with self._lock:
            try:
                with one_thread():
                    suggestion = self._method.ask()
                row = self.space.row(suggestion)
            except BaseException as error:
                # The error has left the method in an unknown state, which a resumed optimiser
                # could not reach again. So nothing more is recorded.
                if self._recorder is not None:
                    self._recorder.stop("a suggestion was not finished: make the optimiser again")
                if not isinstance(error, InvalidConfigError):  # the method itself has failed
                    raise
                name = self.settings["method"]
                raise InvalidSuggestionError(f"{name} suggested {suggestion!r}: {error}") from error

            # The user and the record get the values in the types of the space. The method is later
            # told its own suggestion, which `_Asked` keeps.
            config = self._decode(row)
            if self._recorder is not None:
                self._recorder.ask(config, self.space)
            self._warn_if_exhausted(row)
            self._in_flight[row.tobytes()].append(_Asked(len(self._trials), suggestion))
            self._trials.append(Trial(config, None))
            return dict(config)

    def _warn_if_exhausted(self, row: FloatArray) -> None:
        """Warn once when a finite space may have no configuration left that is not known.

        `row` is the code of the method's latest suggestion.
        """
        is_repeated = row.tobytes() in self._known_rows
        self._known_rows.add(row.tobytes())
        # If the space has conditions, its size is only an upper bound of their number.
        may_be_all = len(self._known_rows) >= self.space.size or self.space.conditions
        if is_repeated and may_be_all and not self._is_exhausted:
            self._is_exhausted = True
            warn_user(
                f"{self.settings['method']} suggests configurations again, after "
                f"{len(self._known_rows)} different ones: the search space has at most "
                f"{self.space.size:.0f}",
                ExhaustedSpaceWarning,
            )

    def tell(self, config: ConfigLike, value: float | None) -> None:
        """Tell the value of a configuration, which need not have been asked for.

        Args:
            config: The configuration; inactive hyperparameters and constants may be left out.
            value: The objective's value in its own units, whether minimised or maximised. None and
                numbers that are not finite mean that the evaluation failed.

        Raises:
            InvalidConfigError: The configuration does not fit the space.
            EvaluationsError: The value is no number.
        """
        self.tell_with_results(config, value)

    def tell_with_results(
        self, config: ConfigLike, value: float | None, results: object = None
    ) -> None:
        """Tell the value of a configuration, and record what else its evaluation gave.

        Args:
            config: As for `tell`.
            value: As for `tell`.
            results: What is recorded beside the value, as JSON; None if there is no more.
        """
        row = self.space.row(config)
        number = to_objective_value(value)
        with self._lock:
            trial = Trial(self._decode(row), number)
            self._known_rows.add(row.tobytes())
            # The configuration may have been asked for several times and not been told yet.
            waiting = self._in_flight[row.tobytes()]
            self._record(trial, waiting, results)
            if waiting:
                asked = waiting.pop(0)
                self._trials[asked.position] = trial
                told_config = asked.suggestion  # as the method itself wrote it
            else:
                self._trials.append(trial)
                told_config = trial.config

            loss = self.direction.loss(number)
            with one_thread():
                self._method.tell(told_config, loss)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials in the order in which they were asked for, or told without being asked for."""
        with self._lock:
            return tuple(Trial(dict(t.config), t.value) for t in self._trials)

    @property
    def pending(self) -> list[Config]:
        """What was asked for and not told yet, in the order of asking."""
        return [trial.config for trial in self.trials if trial.value is None]

    @property
    def best(self) -> Trial:
        """The trial with the best value so far; the first of equal ones.

        Raises:
            ExperimentError: No value has been told yet, or only failures.
        """
        best = self._find_best()
        if best is None:
            raise ExperimentError("there is no best trial yet: no value has been told")
        return best

    def _find_best(self) -> Trial | None:
        """The first of the best trials; None if no value was told, or only failures."""
        best: Trial | None = None
        lowest_loss = math.inf
        for trial in self.trials:
            if trial.value is None:  # not told yet
                continue
            loss = self.direction.loss(trial.value)
            if loss < lowest_loss:  # never true for a failure, whose loss is infinite
                best = trial
                lowest_loss = loss
        return best

    def frame(self, *, objective: str = "objective") -> "DataFrame":
        """Return the trials that were told as a table, which `read_history` can read.

        Args:
            objective: Column of the values.

        Returns:
            A row per trial; a column per hyperparameter, None where it is inactive, then the
            constants and the values, NaN where the evaluation failed.
        """
        import pandas as pd

        told = [trial for trial in self.trials if trial.value is not None]
        columns: dict[str, list[Any]] = {}
        for name in (*self.space.names, *self.space.constants):
            columns[name] = [trial.config.get(name) for trial in told]
        columns[objective] = [trial.value for trial in told]
        return pd.DataFrame(columns)

    def resume(self, recorder: "Recorder") -> None:
        """Repeat the events of a record in their order, and continue the record afterwards.

        The method is asked again for every suggestion, as what it suggests depends on all that
        it has computed before.

        Raises:
            StoreError: The method suggests something else than before.
        """
        with show_progress(True, unit="trials restored") as report_progress:
            for event in recorder.events:
                recorded = recorder.trials[event.trial]
                if event.is_told:
                    self.tell(recorded.config, recorded.value)
                else:
                    self._ask_again(recorded.config, f"trial {event.trial} of {recorder.place}")
                if report_progress is not None:
                    report_progress(event.number + 1, len(recorder.events))
        # The recorder is set only now, so that the repeated events are not recorded twice.
        self._recorder = recorder

    def _ask_again(self, expected: Config, place: str) -> None:
        """Ask the method for a suggestion, and check that it equals the recorded one.

        Args:
            expected: The recorded suggestion.
            place: Which trial it is, for the message.

        Raises:
            StoreError: The method suggests another configuration.
        """
        config = self.ask()
        # Bytes are compared, as NaN, which marks inactive hyperparameters, is not equal to NaN.
        is_same = self.space.row(config).tobytes() == self.space.row(expected).tobytes()
        if not is_same:
            raise StoreError(
                f"{place}: the method suggested {expected}, but now suggests {config}; has it, or "
                "a library that it uses, changed? Use another name for this task"
            )

    def _record(self, trial: Trial, waiting: Sequence[_Asked], results: object) -> None:
        """Record the value of a trial, if there is a record.

        If trials with this configuration wait for a value, the first of them gets it. Otherwise a
        new trial is recorded.
        """
        if self._recorder is None or trial.value is None:
            return
        if waiting:
            # Trials are recorded in their order, and so have the same number there.
            self._recorder.tell(waiting[0].position, trial.value, results)
        else:
            self._recorder.add(trial.config, self.space, trial.value)

    def _decode(self, row: FloatArray) -> Config:
        """Decode a row, (number of hyperparameters,), to a configuration."""
        (config,) = self.space.configs(row[None])
        return config


def describe_settings(
    spec: MethodSpec,
    space: SearchSpace,
    direction: Direction,
    history: Sequence[Evaluations],
    *,
    context: Mapping[str, float],
    data: Sequence[TaskData | None],
    budget: int,
    seed: int,
) -> dict[str, Any]:
    """Describe, as JSON, everything that determines an optimiser's suggestions."""
    version = method_version(spec)
    settings: dict[str, Any] = {
        "method": spec.name,
        # If the source of a method cannot be read, its version is new at each start. It would
        # always differ from the recorded one, so it is left out of the comparison.
        "version": "" if version.startswith(NEW_AT_EACH_START) else version,
        "direction": direction.value,
        "seed": seed,
        "budget": budget,
        "context": context,
        "history": [[earlier.task, hash_evaluations(earlier)] for earlier in history],
        "space": space.to_json(),
    }
    if data:
        digests: list[str | None] = []
        for data_of_task in data:  # None where they are unknown
            digests.append(None if data_of_task is None else data_of_task.digest)
        settings["data"] = digests
    return as_json(settings)


def check_use(spec: MethodSpec, history: Sequence[Evaluations], space: SearchSpace | None) -> None:
    """Check that a method can be used with a history, and warn if the history is of little use.

    Args:
        spec: The method.
        history: Evaluations of earlier tasks, aligned with the space.
        space: The search space of the task at hand; None if it is not known yet.
    """
    spec.check_installed()
    if len(history) < spec.min_history:
        raise ExperimentError(
            f"{spec.name} needs a history of {format_count(spec.min_history, 'earlier task')}, got "
            f"{len(history)}; 'bo' needs none"
        )
    if history and not spec.uses_history:
        warn(
            f"{spec.name} does not use the history of {format_count(len(history), 'task')}; "
            "'simple-ordered' does, and `hpobench-ordered list --methods` lists others"
        )
    elif space is not None and spec.changed_spaces:  # other methods refuse such a history
        lines = describe_other_spaces(history, space)
        if lines:
            warn(f"earlier tasks are on another search space than this one:{''.join(lines)}")


def describe_other_spaces(history: Sequence[Evaluations], space: SearchSpace) -> list[str]:
    """Describe how the spaces of earlier tasks differ from a space.

    Returns:
        A line for each difference, which names all tasks whose spaces differ in this way.
    """
    tasks_with_difference: dict[str, list[str]] = defaultdict(list)
    for evaluations in history:
        if evaluations.is_on(space):
            continue
        difference = "; ".join(describe_differences(evaluations.space, space))
        tasks_with_difference[difference].append(repr(evaluations.task))

    lines: list[str] = []
    for difference, tasks in tasks_with_difference.items():
        lines.append(f"\n- {join_words(tasks)}: {difference}")
    return lines


def check_context(context: Mapping[str, float], history: Sequence[Evaluations]) -> None:
    """Check that a context is numeric; warn if earlier tasks have contexts of other names.

    Raises:
        EvaluationsError: The context is no mapping, or one of its values is no finite number.
    """
    if not isinstance(context, Mapping):
        raise EvaluationsError(f"a context must be a mapping of numbers, but got {context!r}")
    # `check_contexts` takes the contexts of several tasks; its errors name the task.
    task = "the task at hand"
    check_contexts({task: context}, [task])  # raises an error unless all numbers are finite

    tasks_that_differ = []
    for evaluations in history:
        if evaluations.context.keys() != context.keys():
            tasks_that_differ.append(repr(evaluations.task))
    if context and tasks_that_differ:
        warn(
            f"the context of {task} has {sorted(context)}, which differs from that of "
            f"{join_words(tasks_that_differ)}: a method may not use it"
        )


def to_objective_value(value: float | None) -> float:
    """Convert what a user tells to an objective value; NaN for a failure.

    None, NaN and infinite values are failures.

    Raises:
        EvaluationsError: The value is no number.
    """
    if value is None:
        return math.nan
    is_number = isinstance(value, SupportsFloat)  # not a text, which `float` would read
    if not is_number or np.ndim(value) > 0:  # an array converts itself only if it has no axes
        raise EvaluationsError(
            f"an objective value must be a number, or None for a failure, but got {value!r}"
        )
    number = float(value)
    return number if math.isfinite(number) else math.nan
