"""Methods on the user's own tasks: ask for a configuration, evaluate it, tell its value."""

import math
import os
import reprlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hpobench_ordered._typing import Config, ConfigLike
from hpobench_ordered._wording import join_words
from hpobench_ordered.adapters._journal import Journal, digest_of, plain
from hpobench_ordered.adapters._rows import warn
from hpobench_ordered.adapters._tables import contexts_of
from hpobench_ordered.analysis.labels import format_count
from hpobench_ordered.core.checks import check_count, check_seed
from hpobench_ordered.core.data import TaskData
from hpobench_ordered.core.history import (
    Evaluations,
    align_history,
    as_evaluations,
    check_history,
    describe_differences,
)
from hpobench_ordered.core.identity import NEW_AT_EACH_START
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.errors import (
    EvaluationsError,
    ExperimentError,
    InvalidConfigError,
    InvalidSuggestionError,
    StoreError,
)
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.runtime.threads import Lock, one_thread
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.conversion import SpaceLike, to_search_space
from hpobench_ordered.user_methods.factory import as_method_spec
from hpobench_ordered.user_methods.identity import method_version

if TYPE_CHECKING:
    from pandas import DataFrame


METHOD = "ordered-gp"  # default method
BUDGET = 100  # default number of trials that a method expects


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
    method: object = METHOD,
    *,
    space: SpaceLike,
    direction: Direction | str,
    history: Sequence[Evaluations] = (),
    context: Mapping[str, float] | None = None,
    data: Sequence[TaskData | None] = (),
    budget: int = BUDGET,
    seed: int = 0,
    file: str | os.PathLike[str] | None = None,
) -> "Optimiser":
    """Make an optimiser of a task of your own.

    Args:
        method: A name, a class, a MethodSpec, or whatever an experiment takes. The default learns
            from the history, and equals `bo` without one.
        space: What is tuned.
        direction: Whether the objective is to "minimize" or "maximize".
        history: Evaluations of earlier tasks, oldest first, such as `history_from_frame` or
            `history_from_studies` give.
        context: Numbers known of the task beforehand, by the same names as in the history.
        data: For a method that uses them (`MethodSpec.uses_data`): training data of the models of
            each task in the history, None where unknown, and then of this task.
        budget: Number of trials the method expects; it can be asked for more.
        seed: Seed of everything random: the same seed, history and values give the same
            suggestions.
        file: Journal of every configuration asked for and every value told, each written at once.
            Where it exists, the optimiser goes on from it as if it had never been stopped.

    Raises:
        UnknownNameError: No method of that name.
        ExperimentError: Not a method, one that needs a longer history, or no trials.
        InvalidSpaceError: The search space has a feature that is not supported.
        EvaluationsError: An invalid search space, direction or context, or a history that does not
            fit the task.
        StoreError: The journal is of another optimiser, or damaged; the message says what differs.

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
    spec, given, described = as_method_spec(method), as_evaluations(history), to_search_space(space)
    checked = _checked_data(spec, data, len(given))
    check_use(spec, given, described)
    journal = None if file is None else Journal(file)
    made = Optimiser(
        spec,
        space=described,
        direction=Direction.of(direction),
        history=given,
        context={} if context is None else context,
        data=checked,
        budget=budget,
        seed=seed,
    )
    return made if journal is None else made._resumed(journal)


def _checked_data(spec: MethodSpec, data: object, earlier: int) -> tuple[TaskData | None, ...]:
    """Check the training data, those of the earlier tasks and then of this one."""
    data_of_tasks = tuple(data) if isinstance(data, Iterable) else None
    if data_of_tasks is None or not all(isinstance(one, TaskData | None) for one in data_of_tasks):
        said = f"data must be a list of TaskData or None, but got {reprlib.repr(data)}"
        raise EvaluationsError(said)
    if not spec.uses_data:
        if data_of_tasks:
            raise ExperimentError(
                f"{spec.name} does not use training data, but got some (a method of your own needs "
                "uses_data=True in its MethodSpec)"
            )
    elif len(data_of_tasks) != earlier + 1 or data_of_tasks[-1] is None:
        last = ", none for this one" if data_of_tasks and data_of_tasks[-1] is None else ""
        raise EvaluationsError(
            f"{spec.name} uses training data: `data` must be a TaskData (or None) for each of the "
            f"{earlier} earlier tasks and then this task's, {earlier + 1} in all, but got "
            f"{len(data_of_tasks)}{last}"
        )
    return data_of_tasks


class Optimiser:
    """A method on a task of one's own; made by `hpobench_ordered.optimiser`.

    Several configurations may be asked for before one is told, from several threads too. With a
    journal, an optimiser that was stopped knows all that was asked for and told; what was in
    flight is `pending`, to be evaluated again.

    Attributes:
        space: What is tuned.
        direction: Whether the objective is minimised or maximised.
        settings: The arguments that it was made with, as JSON: they and the values told determine
            the suggestions.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> space = hbo.SearchSpace([hbo.Parameter.number("depth", 1, 9, integer=True)])
        >>> tuner = hbo.optimiser("bo", space=space, direction="minimize")
        >>> isinstance(tuner, hbo.Optimiser)
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
        check_count("trial", budget)
        check_seed(seed)
        check_context(context, history)
        history = align_history(history, space)
        check_history(history, space, direction, changed_spaces=spec.changed_spaces)
        self.space, self.direction = space, direction
        settings = {
            "method": spec.name,
            "version": "" if (v := method_version(spec)).startswith(NEW_AT_EACH_START) else v,
            "direction": direction.value,
            "seed": seed,
            "budget": budget,
            "context": context,
            "history": [[e.task, digest_of(e)] for e in history],
            "space": space.to_json(),
        }
        digests = {"data": [None if d is None else d.digest for d in data]} if data else {}
        self.settings = plain(settings | digests)
        self._lock = Lock()
        self._trials: list[Trial] = []
        # In flight, by coded row: index of the trial, as asked.
        self._asked: dict[bytes, list[tuple[int, Config]]] = defaultdict(list)
        self._journal: Journal | None = None
        task: dict[str, Any] = {"space": space, "history": history, "context": context}
        if spec.uses_data:
            task["data"] = data
        with one_thread():
            self._method = spec.method(rng=np.random.default_rng(seed), budget=budget, **task)

    def __repr__(self) -> str:
        best = self._best()
        return (
            f"Optimiser({self.settings['method']!r}, {self.direction.value}, history of "
            f"{len(self.settings['history'])} tasks, {len(self._trials)} trials, best "
            f"{None if best is None else best.value})"
        )

    def ask(self) -> Config:
        """Suggest the next configuration to evaluate.

        Raises:
            InvalidSuggestionError: The suggestion is not a configuration of the space.
        """
        with self._lock:
            with one_thread():
                asked = self._method.ask()
            try:
                row = self.space.row(asked)
            except InvalidConfigError as error:
                name = self.settings["method"]
                raise InvalidSuggestionError(f"{name} suggested {asked!r}: {error}") from error
            config = self.space.configs(row[None])[0]
            self._write({"ask": config})
            self._asked[row.tobytes()].append((len(self._trials), asked))
            self._trials.append(Trial(config, None))
            return dict(config)

    def tell(self, config: ConfigLike, value: float | None) -> None:
        """Tell the value of a configuration, asked for or not.

        Args:
            config: The configuration; inactive hyperparameters and constants may be left out.
            value: The objective's value in its own units, whether minimised or maximised; None or
                what is not finite where the evaluation failed.

        Raises:
            InvalidConfigError: The configuration does not fit the space.
            EvaluationsError: The value is no number.
        """
        row, number = self.space.row(config), _number(value)
        with self._lock:
            known = self.space.configs(row[None])[0]
            self._write({"tell": known, "value": None if math.isnan(number) else number})
            waiting = self._asked[row.tobytes()]
            trial, asked = waiting.pop(0) if waiting else (len(self._trials), known)
            self._trials[trial : trial + 1] = [Trial(known, number)]
            with one_thread():
                self._method.tell(asked, self.direction.sign * number)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All that was asked for or told, in that order."""
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
        best = self._best()
        if best is None:
            raise ExperimentError("there is no best trial yet: no value has been told")
        return best

    def _best(self) -> Trial | None:
        told = [t for t in self.trials if t.value is not None and math.isfinite(t.value)]
        return min(told, key=lambda t: self.direction.sign * (t.value or 0.0), default=None)

    def frame(self, *, objective: str = "objective") -> "DataFrame":
        """The trials that were told, as a table.

        With a column of the task's name added, `history_from_frame` reads it for the next task.

        Args:
            objective: Column of the values.

        Returns:
            A row per trial; a column per hyperparameter, None where it is inactive, then the
            constants and the values, NaN where the evaluation failed.
        """
        import pandas as pd

        names = [*self.space.names, *self.space.constants]
        told = [trial for trial in self.trials if trial.value is not None]
        columns = {name: [trial.config.get(name) for trial in told] for name in names}
        return pd.DataFrame(columns | {objective: [trial.value for trial in told]})

    def _write(self, event: Mapping[str, Any]) -> None:
        if self._journal is not None:
            self._journal.append(event)

    def _resumed(self, journal: Journal) -> Self:
        """This optimiser after the events of a journal, in order; it writes there from now on."""
        journal.begin(self.settings)
        for number, event in enumerate(journal.lines[1:], start=2):
            if "tell" in event:
                self.tell(event["tell"], event["value"])
                continue
            before, again = event["ask"], self.ask()
            if self.space.row(again).tobytes() != self.space.row(before).tobytes():
                raise StoreError(
                    f"line {number} of {journal.path}: the method suggested {before}, but now "
                    f"suggests {again}; has it, or a library that it uses, changed?"
                )
        self._journal = journal
        return self


def check_use(spec: MethodSpec, history: Sequence[Evaluations], space: SearchSpace | None) -> None:
    """Check that a method is installed and its history long enough; warn of one of no use to it."""
    spec.check_installed()
    if len(history) < spec.min_history:
        raise ExperimentError(
            f"{spec.name} needs a history of {format_count(spec.min_history, 'earlier task')}, got "
            f"{len(history)}; 'bo' needs none"
        )
    if history and not spec.uses_history:
        warn(
            f"{spec.name} does not use the history of {format_count(len(history), 'task')}; "
            "'simple-ordered' does, and `hpobench-ordered methods` lists others"
        )
        return
    if space is None or not spec.changed_spaces:  # other methods refuse such a history
        return
    other: dict[str, list[str]] = {}
    for e in align_history(history, space):
        if not e.is_on(space):
            other.setdefault("; ".join(describe_differences(e.space, space)), []).append(
                repr(e.task)
            )
    if other:
        said = "".join(f"\n- {join_words(tasks)}: {what}" for what, tasks in other.items())
        warn(f"earlier tasks are on another search space than this one:{said}")


def check_context(context: Mapping[str, float], history: Sequence[Evaluations]) -> None:
    """Check that a context is numeric; warn if earlier tasks have other contexts."""
    here = "the task at hand"
    if not isinstance(context, Mapping):
        raise EvaluationsError(f"a context must be a mapping of numbers, but got {context!r}")
    contexts_of({here: context}, [here])
    others = [repr(e.task) for e in history if set(e.context) != set(context)]
    if context and others:
        warn(
            f"the context of {here} has {sorted(context)}, which differs from that of "
            f"{join_words(others)}: a method may not use it"
        )


def _number(value: float | None) -> float:
    """Convert an objective value; NaN for a failure."""
    try:
        number = math.nan if value is None else float(value)
        if not isinstance(value, str):  # float() accepts text
            return number if math.isfinite(number) else math.nan
    except (TypeError, ValueError, OverflowError):
        pass
    raise EvaluationsError(
        f"an objective value must be a number, or None for a failure, but got {value!r}"
    )
