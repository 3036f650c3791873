"""Reads rows of earlier evaluations: checks every value and reports all problems at once.

Notation:
    n   number of rows
    d   number of hyperparameters
"""

import math
import numbers
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import BoolArray, FloatArray, Value
from hpobench_ordered._wording import join_words
from hpobench_ordered.analysis.labels import format_count
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.errors import (
    EvaluationsError,
    HistoryWarning,
    InvalidConfigError,
    warn_user,
)
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

RELATIVE_ROUNDING = 1e-9  # by which a number may differ from a choice, from being printed, say
NUMBER_PATTERN = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
TEXTS_READ_AS_EMPTY = ("None", "NA", "N/A", "NaN", "nan", "NULL", "null", "")
"""Texts in a file that pandas reads as empty cells."""
INFINITE_TEXTS = ("inf", "infinity")  # in lower case, without a sign
TEXTS_OF_BOOLEANS = {"true": 1.0, "false": 0.0}  # in lower case
READ_ON_OLD_SPACE = "read them on that one (--history-space), and give the new one to the optimiser"
"""What can be done about evaluations that do not fit the search space."""


class State(Enum):
    """What became of an evaluation; the value says it as part of a sentence."""

    COMPLETE = "complete"
    FAILED = "failed"
    PRUNED = "pruned"
    UNFINISHED = "not finished"


@dataclass(frozen=True)
class Rows:
    """Raw evaluations of one task, n rows.

    Attributes:
        task: Name of the task.
        where: Name of each row in messages, such as "row 3".
        columns: Native values of each hyperparameter, (n,), None or NaN where missing; constants
            may be left out.
        objective: Value of each row; None, NaN or infinite if the evaluation failed.
        states: What became of each evaluation; None if the objective alone tells it.
    """

    task: str
    where: Sequence[str]
    columns: Mapping[str, NDArray[Any]]
    objective: Sequence[object]
    states: Sequence[State] | None = None

    def select(self, rows: Sequence[int]) -> "Rows":
        """Select the rows of these numbers, which count from 0."""
        columns: dict[str, NDArray[Any]] = {}
        for name, column in self.columns.items():
            columns[name] = column[list(rows)]
        states = None
        if self.states is not None:
            states = [self.states[i] for i in rows]
        return Rows(
            task=self.task,
            where=[self.where[i] for i in rows],
            columns=columns,
            objective=[self.objective[i] for i in rows],
            states=states,
        )


@dataclass(frozen=True)
class OpenedStudy:
    """A study of Optuna.

    Attributes:
        study: The study.
        origin: Name of the storage that it was found in; "" if in none.
        before: Trials that ended at this time or later are not read; None: all are.
    """

    study: "Study"
    origin: str = ""
    before: datetime | None = None

    def list_trials(self) -> "list[FrozenTrial]":
        """List the trials that are read, in order."""
        trials: list[FrozenTrial] = self.study.get_trials(deepcopy=False)
        if self.before is None:
            return trials
        ended_before: list[FrozenTrial] = []
        for trial in trials:
            end = trial.datetime_complete
            if end is not None and end < self.before:
                ended_before.append(trial)
        return ended_before


@dataclass(frozen=True)
class TaskRows:
    """The rows of a task, and what it takes to read them.

    Attributes:
        rows: The rows.
        space: The search space that they are read on.
        context: What is known of the task beforehand.
        origin: Where they are from, which tells tasks of one name apart; "" if unknown.
    """

    rows: Rows
    space: SearchSpace
    context: Mapping[str, float] = field(default_factory=dict)
    origin: str = ""


@dataclass(frozen=True)
class _Verdicts:
    """What is known of each row while the rows are read; all arrays have shape (n,).

    Attributes:
        is_good: Whether nothing is wrong with it so far.
        has_failed: Whether the evaluation failed.
        is_unknown: Whether it failed before all of its hyperparameters had values. Such a row is
            left out without a word.
    """

    is_good: BoolArray
    has_failed: BoolArray
    is_unknown: BoolArray

    @classmethod
    def begin(cls, n_rows: int) -> "_Verdicts":
        """Make the verdicts before any row is read: every row is good."""
        nowhere = np.zeros(n_rows, dtype=np.bool_)
        return cls(~nowhere, nowhere.copy(), nowhere)


@dataclass
class Reader:
    """Converts rows to evaluations and collects problems.

    Attributes:
        drop_invalid: Whether unusable rows are left out, instead of being an error.
        clip: Whether numbers that are out of range are moved to the nearest bound.
        source: Name of the input in messages.
        is_history: Whether the rows are earlier tasks, where a configuration gets one value on a
            task.
        allows_failed: Whether an evaluation may have failed; a surrogate needs a value in each row.
        may_be_empty: Whether there may be no usable row at all.
        ignored: Columns that are not read.
        rows_with_problem: Names of the rows that have a problem, by its description.
        unusable_tasks: Tasks without any usable evaluation, in words.
    """

    drop_invalid: bool
    clip: bool
    source: str
    is_history: bool = True
    allows_failed: bool = True
    may_be_empty: bool = False
    ignored: list[str] = field(default_factory=list)
    rows_with_problem: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    unusable_tasks: list[str] = field(default_factory=list)
    _n_rows: int = 0
    _n_dropped: int = 0  # rows with a problem
    _has_invalid_config: bool = False
    _has_number_to_clip: bool = False  # which is out of range, and would be moved if wanted
    # Numbers that were moved, by hyperparameter: into the range, or onto a step.
    _n_moved: Counter[str] = field(default_factory=Counter)
    _n_on_step: Counter[str] = field(default_factory=Counter)
    # Rows that repeat another one, and configurations with several values, of which the mean is
    # taken.
    _n_repeated: int = 0
    _n_averaged: int = 0
    _n_in_state: Counter[State] = field(default_factory=Counter)
    # Smallest and largest number of each column with numbers that are out of range.
    _extents: dict[str, tuple[float, float]] = field(default_factory=dict)
    _problem_of_range: dict[str, str] = field(default_factory=dict)  # by hyperparameter

    def read(
        self,
        rows: Rows,
        space: SearchSpace,
        *,
        direction: Direction,
        context: Mapping[str, float] | None = None,
    ) -> Evaluations | None:
        """Read the usable rows of one task; None if there are none.

        What is wrong with the other rows is recorded, and reported when all tasks are read.

        Args:
            rows: The rows of the task.
            space: The search space.
            direction: Whether the objective is minimised or maximised.
            context: The context of the task; None: it has none.
        """
        rows = self._leave_out_unfinished(rows)
        n_rows = len(rows.where)
        verdicts = _Verdicts.begin(n_rows)  # each of the next steps rules out invalid rows
        objective = self._read_objective(rows, verdicts)
        values = self._read_configs(rows, space, verdicts)
        self._n_rows += n_rows
        self._n_dropped += int(np.sum(~verdicts.is_good))
        # The configuration of a failed evaluation is unknown if a value is missing.
        is_usable = verdicts.is_good & ~verdicts.is_unknown
        values = values[is_usable]
        objective = objective[is_usable]
        if self.is_history:
            values, objective = self._merge_repeated(values, objective)
        if not len(objective):
            self.unusable_tasks.append(f"task {rows.task!r}")
            return None
        return Evaluations(
            rows.task, context or {}, values, objective, space=space, direction=direction
        )

    def leave_out(self, problem: str, where: str) -> None:
        """Record that a row has a problem and belongs to no task; `where` names the row."""
        self.rows_with_problem[problem].append(where)
        self._n_rows += 1
        self._n_dropped += 1

    def refuse(self, hint: str = "") -> None:
        """Raise an EvaluationsError if any row has a problem; its message ends with the hint."""
        if self.rows_with_problem:
            count = f"{self._n_dropped} of {self._n_rows} evaluations"
            raise EvaluationsError(
                f"{self.source} cannot be read, because of {count}:{self._list_problems()}{hint}"
            )

    def finish(self, history: Iterable[Evaluations | None]) -> tuple[Evaluations, ...]:
        """Return the usable evaluations of each task, after the checks of the whole history.

        Args:
            history: Evaluations of each task; None for a task without a usable row.

        Raises:
            EvaluationsError: Rows cannot be used, and `drop_invalid` is not set; or no row of the
                whole history can be used.

        Warns:
            HistoryWarning: Rows are left out or merged, numbers were moved, or columns are ignored.
        """
        evaluations = self.select_usable(history)
        self.warn_of_ignored()
        return evaluations

    def select_usable(self, history: Iterable[Evaluations | None]) -> tuple[Evaluations, ...]:
        """Return the usable evaluations of each task, and warn of rows left out and numbers moved.

        Args:
            history: Evaluations of each task; None for a task without a usable row.

        Raises:
            EvaluationsError: Rows cannot be used, and `drop_invalid` is not set; or no row of the
                whole history can be used.
        """
        if not self.drop_invalid:
            self.refuse(f"\n{self._advise()}")
        problems = self._list_problems()
        evaluations = tuple(e for e in history if e is not None)
        has_value = any(np.isfinite(e.objective).any() for e in evaluations)
        if not has_value and not self.may_be_empty:
            raise EvaluationsError(f"no usable evaluation with a value in {self.source}{problems}")
        if self._n_dropped:
            count = f"{self._n_dropped} of {self._n_rows} evaluations"
            on_tasks = ""
            if self.unusable_tasks:
                on_tasks = f"; nothing is left of {join_words(self.unusable_tasks)}"
            warn(f"{count} are left out{on_tasks}:{problems}")
        elif self.unusable_tasks:
            warn(f"no evaluations of {join_words(self.unusable_tasks)}")
        self._warn_of_changes()
        return evaluations

    def warn_of_ignored(self) -> None:
        """Warn of columns that are not read: one may be a hyperparameter that the space lacks."""
        if self.ignored:
            names = join_words(map(repr, dict.fromkeys(self.ignored)))
            warn(f"columns that are not hyperparameters of the search space are ignored: {names}")

    def _warn_of_changes(self) -> None:
        """Warn of evaluations that were left out or merged, and of numbers that were moved."""
        pruned = self._n_in_state[State.PRUNED]
        if pruned:
            warn(
                f"{format_count(pruned, 'evaluation')} pruned, and left out: the last intermediate "
                "value is not the objective, and no method here uses it as a bound"
            )
        unfinished = self._n_in_state[State.UNFINISHED]
        if unfinished:
            warn(f"{format_count(unfinished, 'evaluation')} not finished, and left out")
        if self._n_repeated:
            count = format_count(self._n_repeated, "evaluation")
            warn(f"{count} merged with an equal one of the same task")
        if self._n_averaged:
            count = format_count(self._n_averaged, "configuration")
            warn(f"{count} with several values on a task: the mean of each is taken")
        if self._n_moved:
            counts = _list_counts(self._n_moved)
            warn(f"numbers out of range were moved to the nearest bound: {counts}")
        if self._n_on_step:
            counts = _list_counts(self._n_on_step)
            warn(f"numbers between two steps were moved to the nearest one: {counts}")

    def _advise(self) -> str:
        """Say what the user can do about the rows with a problem, in Python or in a shell."""
        sentences = ["drop_invalid (--drop-invalid) leaves these evaluations out"]
        if self.is_history and self._has_number_to_clip:
            sentences.append("clip (--clip) moves numbers out of range to the nearest bound")
        if self.is_history and self._has_invalid_config:
            sentences.append(f"if they were evaluated on another search space, {READ_ON_OLD_SPACE}")
        return "; ".join(sentences)

    def _list_problems(self) -> str:
        """List each problem on a line of its own, with the rows that have it.

        A problem with the range of a column also says which numbers the column holds. The result is
        "" if there is no problem.
        """
        extent_of_problem: dict[str, str] = {}
        for name, problem in self._problem_of_range.items():
            smallest, largest = self._extents[name]
            extent = f" (the numbers of the column go from {smallest:.10g} to {largest:.10g})"
            extent_of_problem[problem] = extent
        lines = []
        for problem, names_of_rows in self.rows_with_problem.items():
            extent = extent_of_problem.get(problem, "")
            lines.append(f"\n- {problem}{extent}: {join_words(names_of_rows)}")
        return "".join(lines)

    def _leave_out_unfinished(self, rows: Rows) -> Rows:
        """Return the rows without pruned and unfinished evaluations, and count what is left out."""
        if rows.states is None:
            return rows
        ended: list[int] = []
        for i, state in enumerate(rows.states):
            if state in (State.PRUNED, State.UNFINISHED):
                self._n_in_state[state] += 1
            else:
                ended.append(i)
        return rows.select(ended)

    def _read_configs(self, rows: Rows, space: SearchSpace, verdicts: _Verdicts) -> FloatArray:
        """Code the configurations of n rows, (n, d), with NaN where a hyperparameter is inactive.

        A hyperparameter with a condition, the child, is active if others, its parents, have certain
        values. Parents are therefore read before their children.
        """
        coded = np.full((len(rows.where), space.dimension), np.nan)
        active = np.ones(coded.shape, dtype=np.bool_)
        for j, condition in space.ordered_conditions.items():
            is_asked = active[:, j]  # whether each row needs a value of this hyperparameter
            if condition is not None:
                active[:, j] = condition.holds(coded, active)
                # If the value of the parent is invalid, nobody knows whether the child is active.
                # Such a row is left out anyway, so its value of the child is not read.
                is_asked = active[:, j] & verdicts.is_good & ~verdicts.is_unknown
            coded[:, j] = self._read_column(rows, space.parameters[j], is_asked, verdicts)
        for name, constant in space.constants.items():
            if name in rows.columns:
                self._check_constant(rows, name, constant, verdicts)
        return coded

    def _read_column(
        self, rows: Rows, parameter: Parameter, is_asked: BoolArray, verdicts: _Verdicts
    ) -> FloatArray:
        """Code one column of n rows, (n,).

        Rows in which the hyperparameter is not asked for get NaN. So do rows with an invalid value,
        which are reported.
        """
        column = rows.columns[parameter.name]
        coded = _code_valid_column(parameter, column, is_asked)
        if coded is not None:  # usually all values are valid: coding them at once is faster
            self._extend_range(parameter, coded)
            return coded

        coded = np.full(len(column), np.nan)
        cells = column.tolist()
        asked_rows = np.flatnonzero(is_asked).tolist()
        numbers_asked_for = np.array([parse_number(cells[i]) for i in asked_rows], dtype=np.float64)
        self._extend_range(parameter, numbers_asked_for)
        # If all numbers are out of range, the column is probably in other units than the space.
        # Moving them to a bound would hide that.
        may_move = self.clip and not _are_all_outside(parameter, numbers_asked_for)
        for i in asked_rows:
            coded[i], problem = self._code_value(parameter, cells[i], may_move=may_move)
            if problem and verdicts.has_failed[i] and is_missing(cells[i]):
                verdicts.is_unknown[i] = True
            elif problem:
                self._has_invalid_config = True
                self.rows_with_problem[problem].append(f"{rows.where[i]} ({cells[i]!r})")
                verdicts.is_good[i] = False
        return coded

    def _extend_range(self, parameter: Parameter, numbers_of_column: FloatArray) -> None:
        """Update the smallest and the largest number that a column holds on the tasks so far."""
        finite = numbers_of_column[np.isfinite(numbers_of_column)]
        if parameter.choices or not len(finite):
            return
        smallest, largest = self._extents.get(parameter.name, (math.inf, -math.inf))
        self._extents[parameter.name] = (
            min(smallest, float(finite.min())),
            max(largest, float(finite.max())),
        )

    def _check_constant(self, rows: Rows, name: str, constant: Value, verdicts: _Verdicts) -> None:
        """Report the rows with another value of a constant."""
        for i, value in enumerate(rows.columns[name].tolist()):
            if is_missing(value):  # a constant may be left out
                continue
            is_same = value == constant or _is_alike(value, constant)
            if not is_same:
                self.rows_with_problem[f"{name!r} must be {constant!r}"].append(
                    f"{rows.where[i]} ({value!r})"
                )
                verdicts.is_good[i] = False

    def _code_value(
        self, parameter: Parameter, value: object, *, may_move: bool
    ) -> tuple[float, str]:
        """Code one value.

        Args:
            parameter: The hyperparameter.
            value: Its value.
            may_move: Whether a number that is out of range is moved to the nearest bound.

        Returns:
            The code and ""; or NaN and what is wrong with the value.
        """
        problem = f"{parameter.name!r} must be {parameter.describe()}"
        if is_missing(value) and None in parameter.choices:
            value = None
        code = _code_or_nan(parameter, value)
        if not math.isnan(code):
            return code, ""
        if is_missing(value):
            return math.nan, f"{problem}, but is empty{_explain_empty(parameter)}"
        if parameter.choices:
            code = self._code_choice(parameter, value)
        else:
            code = self._code_number(parameter, parse_number(value), problem, may_move=may_move)
        return code, (problem if math.isnan(code) else "")

    def _code_number(
        self, parameter: Parameter, number: float, problem: str, *, may_move: bool
    ) -> float:
        """Code a number of a column, and count it if it is moved into the range.

        Args:
            parameter: The hyperparameter, whose values are a range of numbers.
            number: The number; NaN if the cell holds none.
            problem: The message about this column, to which the column's extent is added later.
            may_move: Whether a number that is out of range is moved to the nearest bound.

        Returns:
            The code; NaN if the hyperparameter does not allow the number.
        """
        code = _code_or_nan(parameter, number)
        is_allowed = not math.isnan(code)
        is_outside = math.isfinite(number) and not parameter.lower <= number <= parameter.upper
        if is_allowed or not is_outside:  # such as 2.5 for an integer: not allowed, but in range
            return code
        if may_move:
            self._n_moved[parameter.name] += 1
            return min(max(number, parameter.lower), parameter.upper)
        # The error's message will advise `clip`, and say from where to where the column goes.
        self._has_number_to_clip = True
        self._problem_of_range[parameter.name] = problem
        return math.nan

    def _code_choice(self, parameter: Parameter, value: object) -> float:
        """Return the code of the choice that a value stands for; NaN if there is none.

        If the choices are the steps of a range, a number between two steps stands for the nearest
        one. Such numbers are counted.
        """
        code = _code_alike_choice(parameter.choices, value)
        number = parse_number(value)
        is_choice = not math.isnan(code)
        is_number = not math.isnan(number)
        if is_choice or not parameter.has_steps or not is_number:
            return code
        code = parameter.find_nearest_step(number)
        if not math.isnan(code):
            self._n_on_step[parameter.name] += 1
        return code

    def _read_objective(self, rows: Rows, verdicts: _Verdicts) -> FloatArray:
        """Read the objective values of n rows, (n,), with NaN in rows without a value.

        There are three kinds of rows. An evaluation has failed if its state says so, or if its cell
        is empty or infinite: this is noted, or reported as a problem if failures are not allowed.
        Any other cell must be a finite number, and is reported if it is none, such as a text.
        """
        problem = "the objective must be a finite number"
        if self.allows_failed:
            problem = "the objective must be a number, or empty where the evaluation failed"
        n_rows = len(rows.objective)
        states = rows.states or [State.COMPLETE] * n_rows
        objective = np.full(n_rows, np.nan)
        for i, cell in enumerate(rows.objective):
            has_failed = states[i] is State.FAILED or is_missing(cell) or _is_infinite(cell)
            value = parse_number(cell)
            if has_failed and self.allows_failed:
                verdicts.has_failed[i] = True
            elif has_failed or not math.isfinite(value):
                self.rows_with_problem[problem].append(f"{rows.where[i]} ({cell!r})")
                verdicts.is_good[i] = False
            else:
                objective[i] = value
        return objective

    def _merge_repeated(
        self, values: FloatArray, objective: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Merge repeated evaluations of a configuration into one, and count what was merged.

        The merged value is the mean of the different finite values: one value that is stored twice
        counts once. It is NaN if all evaluations of the configuration failed. Configurations are in
        the order of their first evaluations.

        Args:
            values: Coded configurations, (n, d).
            objective: Objective values, (n,), NaN where the evaluation failed.
        """
        rows_of_config: dict[bytes, list[int]] = {}
        for i in range(len(values)):
            # Bytes are compared, as NaN, which marks inactive hyperparameters, is not equal to NaN.
            rows_of_config.setdefault(values[i].tobytes(), []).append(i)
        if len(rows_of_config) == len(values):
            return values, objective

        merged: list[float] = []
        for repeated in rows_of_config.values():
            objective_of_config = objective[repeated]
            different = np.unique(objective_of_config[np.isfinite(objective_of_config)])
            if len(different) > 1:
                self._n_averaged += 1
            else:
                self._n_repeated += len(repeated) - 1
            merged.append(float(different.mean()) if len(different) else math.nan)
        first_rows = [repeated[0] for repeated in rows_of_config.values()]
        return values[first_rows], np.array(merged)


def is_missing(value: object) -> bool:
    """Whether a cell is empty: None, NaN, NA, NaT, or a text that pandas reads as empty."""
    import pandas as pd

    if value is None:
        return True
    is_empty_text = isinstance(value, str) and value.strip() in TEXTS_READ_AS_EMPTY
    is_na = pd.isna(value) is True  # compared with True, as `isna` of a list is an array
    return is_empty_text or is_na


def parse_number(value: object) -> float:
    """Convert a cell, which may be text, to a number; NaN if it is none, such as a boolean."""
    if isinstance(value, str):
        is_number = NUMBER_PATTERN.fullmatch(value.strip()) is not None
        return float(value) if is_number else math.nan
    is_truth_value = isinstance(value, bool | np.bool_)  # which Python counts as numbers
    if not isinstance(value, numbers.Real) or is_truth_value:
        return math.nan
    return float(value)


def _is_infinite(value: object) -> bool:
    """Whether a cell is an infinite number, perhaps as text."""
    if isinstance(value, str):
        return value.strip().lstrip("+-").lower() in INFINITE_TEXTS
    return isinstance(value, numbers.Real) and math.isinf(value)


def _explain_empty(parameter: Parameter) -> str:
    """Say what an empty cell of a hyperparameter may mean that needs a value.

    pandas may have read a text such as "None" or "NA", which is a choice, as an empty cell. Or the
    hyperparameter is conditional, but the search space does not say so.
    """
    if any(choice in TEXTS_READ_AS_EMPTY for choice in parameter.choices):
        return " (pandas reads such a text as empty unless keep_default_na=False)"
    return (
        " (if it has no effect in these rows, give the space the condition under which it has one, "
        "as a ConfigurationSpace or its JSON)"
    )


def _code_alike_choice(choices: Sequence[Value], value: object) -> float:
    """Return the code of the choice that a value stands for, as the text "1" stands for 1.

    The code of a choice is its index. The result is NaN if the value may stand for several choices,
    or for none.
    """
    alike = [code for code, choice in enumerate(choices) if _is_alike(value, choice)]
    return float(alike[0]) if len(alike) == 1 else math.nan


def _is_alike(value: object, choice: Value) -> bool:
    """Whether a value stands for a choice although it may be written in another way.

    It does if it is the choice as text, the same list or tuple, the same truth value such as "yes",
    or the same number up to rounding.
    """
    if isinstance(value, str) and value.strip() == str(choice):
        return True
    if isinstance(choice, str):
        return _normalise_text(value) == _normalise_text(choice)
    if isinstance(choice, bool):
        return _parse_boolean(value) == choice
    return math.isclose(parse_number(value), parse_number(choice), rel_tol=RELATIVE_ROUNDING)


def _normalise_text(value: object) -> str | None:
    """Return the text of a value in a form in which spellings of the same sequence are equal.

    A list, a tuple, and a text such as "[1, 2]" or "(1, 2)" become "1,2". Any other text stays as
    it is. The result is None for a value that is neither text nor a sequence.
    """
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        value = str(tuple(value))
    if not isinstance(value, str):
        return None
    is_sequence = value.strip()[:1] in ("[", "(")
    if not is_sequence:
        return value
    # Removes spaces, brackets, and the last comma of a tuple such as "(1,)".
    return re.sub(r"[\s\[\]()]|,(?=[\])])", "", value)


def _parse_boolean(value: object) -> float:
    """Return 1 for true and 0 for false, in any spelling that tables use.

    A number, or the text of one, is returned as a number. The result is NaN for anything else.
    """
    if isinstance(value, bool | np.bool_):
        return float(value)
    if isinstance(value, str) and value.strip().lower() in TEXTS_OF_BOOLEANS:
        return TEXTS_OF_BOOLEANS[value.strip().lower()]
    return parse_number(value)


def _code_or_nan(parameter: Parameter, value: object) -> float:
    """Code a native value; NaN if the hyperparameter does not allow it."""
    try:
        return parameter.code(cast("Value", value))
    except InvalidConfigError:
        return math.nan


def _code_valid_column(
    parameter: Parameter, column: NDArray[Any], is_asked: BoolArray
) -> FloatArray | None:
    """Code a whole column, with NaN in the rows in which it is not asked for.

    The result is None if any value that is asked for is invalid or missing.
    """
    try:
        coded = parameter.code_column(column, is_asked)
    except InvalidConfigError:
        return None
    return coded if parameter.allows(coded[is_asked]).all() else None


def _are_all_outside(parameter: Parameter, numbers_of_column: FloatArray) -> bool:
    """Whether a column has at least two numbers, and all of them are out of range.

    A single number out of range may be an accident, so it does not count.
    """
    finite = numbers_of_column[np.isfinite(numbers_of_column)]
    if parameter.choices or len(finite) < 2:  # choices have no range
        return False
    is_inside = (finite >= parameter.lower) & (finite <= parameter.upper)
    return not is_inside.any()


def _list_counts(counts: Mapping[str, int]) -> str:
    """List counts by hyperparameter, such as "2 of 'depth', 1 of 'rate'"."""
    return ", ".join(f"{n} of {name!r}" for name, n in counts.items())


def warn(message: str) -> None:
    """Issue a HistoryWarning that points to the user's code."""
    warn_user(message, HistoryWarning)
