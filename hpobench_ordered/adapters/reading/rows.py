"""Reads rows of earlier evaluations: checks every value and reports all problems at once.

Notation:
    n   number of rows
    d   number of hyperparameters
"""

import math
import numbers
import re
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, SupportsInt, cast

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import BoolArray, FloatArray, Value
from hpobench_ordered._wording import join_words
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.errors import EvaluationsError, HistoryWarning, InvalidConfigError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter

RELATIVE_ROUNDING = 1e-9  # by which a number may differ from a choice, from being printed, say
NUMBER_PATTERN = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
DIGITS_PATTERN = re.compile("[0-9]+")
EARLIEST_YEAR = 1900  # numbers at the end of names from here on are years
TEXTS_READ_AS_EMPTY = ("None", "NA", "N/A", "NaN", "nan", "NULL", "null", "")
"""Texts in a file that pandas reads as empty cells."""


@dataclass(frozen=True)
class Rows:
    """Raw evaluations of one task, n rows.

    Attributes:
        task: Name of the task.
        where: Name of each row in messages, such as "row 3".
        columns: Native values of each hyperparameter, (n,), None or NaN where missing; constants
            may be left out.
        objective: Value of each row; None or NaN if the evaluation failed.
    """

    task: str
    where: Sequence[str]
    columns: Mapping[str, NDArray[Any]]
    objective: Sequence[object]


@dataclass(frozen=True, slots=True)
class Remedies:
    """What messages advise where rows cannot be used: arguments in Python, options in the shell.

    Attributes:
        drop_invalid: Leaves out the rows; the others are "" where there is no such argument.
        clip: Moves numbers that are out of range to the nearest bound.
        rename: Gives columns other names.
        old_space: Where the search space goes that the rows were evaluated on.
    """

    drop_invalid: str = "drop_invalid=True"
    clip: str = ""
    rename: str = ""
    old_space: str = ""


@dataclass
class Reader:
    """Converts rows to evaluations and collects problems.

    Attributes:
        drop_invalid: Whether unusable rows are left out, instead of being an error.
        clip: Whether numbers that are out of range are moved to the nearest bound.
        source: Name of the input in messages.
        allows_failed: Whether a row may have no objective value.
        refuses_repeated: Whether a row that repeats another of its task is an error: so in tables
            of a history, but not in studies, whose trials have numbers.
        remedies: What messages advise.
        ignored: Columns that are not read.
        rows_with_problem: Names of the rows that have a problem, by its description.
        unusable_tasks: Tasks without any usable evaluation, in words.
    """

    drop_invalid: bool
    clip: bool
    source: str
    allows_failed: bool = True
    refuses_repeated: bool = False
    remedies: Remedies = Remedies()
    ignored: list[str] = field(default_factory=list)
    rows_with_problem: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    unusable_tasks: list[str] = field(default_factory=list)
    _n_rows: int = 0
    _n_dropped: int = 0  # rows with a problem
    _has_invalid_config: bool = False
    _has_number_to_clip: bool = False  # which is out of range, and would be moved if wanted
    # Numbers that were moved into the range, by hyperparameter.
    _n_moved: dict[str, int] = field(default_factory=lambda: defaultdict(int))

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
        """
        n_rows = len(rows.where)
        is_good = np.ones(n_rows, dtype=np.bool_)  # each of the next steps rules out invalid rows
        values = self._read_configs(rows, space, is_good)
        objective = self._read_objective(rows, is_good)
        if self.refuses_repeated:
            # Different numbers may be moved to the same bound, which makes no row a repeat.
            values_as_written = _undo_moves(rows, space, values) if self.clip else values
            self._check_repeated(rows, values_as_written, objective, is_good)
        self._n_rows += n_rows
        self._n_dropped += n_rows - int(is_good.sum())
        if not is_good.any():
            self.unusable_tasks.append(f"task {rows.task!r}")
            return None
        return Evaluations(
            rows.task,
            context or {},
            values[is_good],
            objective[is_good],
            space=space,
            direction=direction,
        )

    def leave_out(self, problem: str, where: str) -> None:
        """Record a problem of a row that belongs to no task; `where` names the row."""
        self.rows_with_problem[problem].append(where)
        self._n_rows += 1
        self._n_dropped += 1

    def refuse(self, hint: str = "") -> None:
        """Raise an EvaluationsError if any row has a problem; its message ends with the hint."""
        if self.rows_with_problem:
            count = f"{self._n_dropped} of {self._n_rows} evaluations"
            raise EvaluationsError(
                f"{self.source} cannot be read, because of {count}:{self._problems()}{hint}"
            )

    def _advise(self) -> str:
        """Say what the user can do about the rows with a problem."""
        remedies = self.remedies
        sentences = [f"{remedies.drop_invalid} leaves these evaluations out"]
        if remedies.clip and self._has_number_to_clip:
            sentences.append(
                f"{remedies.clip} moves numbers that are out of range to the nearest bound"
            )
        if remedies.old_space and self._has_invalid_config:
            sentences.append(
                f"if they were evaluated on another search space, give that as {remedies.old_space}"
            )
        return "; ".join(sentences)

    def _problems(self) -> str:
        """A line for each problem, with the rows that have it; "" without problems."""
        lines = []
        for problem, names_of_rows in self.rows_with_problem.items():
            lines.append(f"\n- {problem}: {join_words(names_of_rows)}")
        return "".join(lines)

    def finish(self, history: Iterable[Evaluations | None]) -> tuple[Evaluations, ...]:
        """The usable evaluations by task, after all checks that need the whole history.

        Args:
            history: Evaluations of each task; None for a task without a usable row.

        Raises:
            EvaluationsError: Rows cannot be used, unless such rows are left out; no row can; or two
                tasks are identical.

        Warns:
            HistoryWarning: Rows are left out, numbers were moved, tasks are not in order, or
                columns are ignored.
        """
        evaluations = self.usable(history)
        _check_different(evaluations)
        _check_order([of_task.task for of_task in evaluations])
        self.warn_of_ignored()
        return evaluations

    def warn_of_ignored(self) -> None:
        """Warn of columns that are not read: the space may lack a hyperparameter."""
        if self.ignored:
            names = join_words(map(repr, self.ignored))
            warn(f"columns that are not hyperparameters of the search space are ignored: {names}")

    def usable(self, history: Iterable[Evaluations | None]) -> tuple[Evaluations, ...]:
        """The usable evaluations by task; warns of, or refuses, what is left out or moved.

        `history` has None for a task without a usable row.
        """
        if not self.drop_invalid:
            self.refuse(f"\n{self._advise()}")
        problems = self._problems()
        evaluations = tuple(e for e in history if e is not None)
        has_value = any(np.isfinite(e.objective).any() for e in evaluations)
        if not has_value:
            raise EvaluationsError(f"no usable evaluation with a value in {self.source}{problems}")
        if self._n_dropped:
            count = f"{self._n_dropped} of {self._n_rows} evaluations"
            on_tasks = ""
            if self.unusable_tasks:
                on_tasks = f"; nothing is left of {join_words(self.unusable_tasks)}"
            warn(f"{count} are left out{on_tasks}:{problems}")
        elif self.unusable_tasks:
            warn(f"no evaluations of {join_words(self.unusable_tasks)}")
        if self._n_moved:
            counts = ", ".join(f"{n} of {name!r}" for name, n in self._n_moved.items())
            warn(f"numbers out of range were moved to the nearest bound: {counts}")
        return evaluations

    def _read_configs(self, rows: Rows, space: SearchSpace, is_good: BoolArray) -> FloatArray:
        """Code the configurations, (rows, hyperparameters); NaN where one is inactive.

        `is_good`, (rows,), is set to False for invalid rows. Parents are read before their
        children, whose conditions are on the codes of the parents.
        """
        coded = np.full((len(is_good), space.dimension), np.nan)
        active = np.ones(coded.shape, dtype=np.bool_)
        for j, condition in space.ordered_conditions.items():
            is_asked = active[:, j]  # in which rows a value is needed
            if condition is not None:
                active[:, j] = condition.holds(coded, active)
                # Where the parent's value is invalid, it is unknown whether one is needed. Such
                # rows are left out anyway, so none is asked for there.
                is_asked = active[:, j] & is_good
            coded[:, j] = self._read_column(rows, space.parameters[j], is_asked, is_good)
        for name, constant in space.constants.items():
            if name in rows.columns:
                self._check_constant(rows, name, constant, is_good)
        return coded

    def _read_column(
        self, rows: Rows, parameter: Parameter, is_asked: BoolArray, is_good: BoolArray
    ) -> FloatArray:
        """Code a hyperparameter where it is asked for, (rows,); NaN elsewhere and where invalid.

        `is_good`, (rows,), is set to False for rows with an invalid value, which are reported.
        """
        column = rows.columns[parameter.name]
        coded = _code_valid_column(parameter, column, is_asked)
        if coded is not None:  # the usual case: all at once, which is faster
            return coded

        coded = np.full(len(column), np.nan)
        cells = column.tolist()
        asked_rows = np.flatnonzero(is_asked).tolist()
        # If so, the column is probably not what the space describes, but in other units, say.
        are_all_outside = _are_all_outside(parameter, [cells[i] for i in asked_rows])
        hint = f"; all values on task {rows.task!r} are outside" if are_all_outside else ""
        for i in asked_rows:
            coded[i], problem = self._code(parameter, cells[i], hint)
            if problem:
                self._has_invalid_config = True
                self.rows_with_problem[problem].append(f"{rows.where[i]} ({cells[i]!r})")
                is_good[i] = False
        return coded

    def _check_constant(self, rows: Rows, name: str, constant: Value, is_good: BoolArray) -> None:
        """Set `is_good` to False for rows with another value of a constant, and report them."""
        for i, value in enumerate(rows.columns[name].tolist()):
            if is_missing(value):  # a constant may be left out
                continue
            is_same = value == constant or _is_alike(value, constant)
            if not is_same:
                self.rows_with_problem[f"{name!r} must be {constant!r}"].append(
                    f"{rows.where[i]} ({value!r})"
                )
                is_good[i] = False

    def _code(self, parameter: Parameter, value: object, hint: str) -> tuple[float, str]:
        """Code one value.

        A number out of range is moved to the nearest bound if that is wanted (`clip`), unless all
        numbers of the column are out of range.

        Args:
            parameter: The hyperparameter.
            value: Its value.
            hint: If all numbers of the column are out of range, the end of a message that says so;
                else "".

        Returns:
            The code and ""; or NaN and what is wrong with the value.
        """
        try:
            return parameter.code(cast("Value", value)), ""
        except InvalidConfigError:
            pass
        problem = f"{parameter.name!r} must be {parameter.describe()}"
        if is_missing(value):
            return math.nan, f"{problem}, but is empty{_explain_empty(parameter)}"

        if parameter.choices:
            code = _code_alike_choice(parameter.choices, value)
            is_like_no_choice = math.isnan(code)
            return code, (problem if is_like_no_choice else "")

        number = number_of(value)
        is_outside = math.isfinite(number) and not parameter.lower <= number <= parameter.upper
        if is_outside and hint:
            return math.nan, problem + hint
        if is_outside and self.clip:
            self._n_moved[parameter.name] += 1
            number = min(max(number, parameter.lower), parameter.upper)
        elif is_outside:
            self._has_number_to_clip = True
        is_allowed = parameter.allows(np.array(number))
        return (number, "") if is_allowed else (math.nan, problem)

    def _read_objective(self, rows: Rows, is_good: BoolArray) -> FloatArray:
        """The objective values, (rows,), NaN where the evaluation failed.

        `is_good`, (rows,), is set to False for rows with an invalid value, which are reported.
        """
        objective = np.array([number_of(value) for value in rows.objective], dtype=np.float64)
        problem = "the objective must be a finite number"
        if self.allows_failed:
            problem += ", or empty where the evaluation failed"
        for i in np.flatnonzero(~np.isfinite(objective)).tolist():
            value = rows.objective[i]
            is_failed = self.allows_failed and is_missing(value)
            if not is_failed:
                place = f"{rows.where[i]} ({value!r}){explain_rounding(value)}"
                self.rows_with_problem[problem].append(place)
                is_good[i] = False
        return objective

    def _check_repeated(
        self, rows: Rows, values: FloatArray, objective: FloatArray, is_good: BoolArray
    ) -> None:
        """Set `is_good` to False for rows that repeat an earlier one, and report them.

        Args:
            rows: The rows, which messages name.
            values: Coded configurations, (rows, hyperparameters), before numbers were moved.
            objective: Objective values, (rows,).
            is_good: Whether each row is usable so far, (rows,); it is changed.
        """
        first_row_with: dict[bytes, int] = {}  # index of the first row with each content
        for i in np.flatnonzero(is_good).tolist():
            # As bytes, NaN equals NaN: inactive hyperparameters and failures are compared, too.
            content = values[i].tobytes() + objective[i].tobytes()
            if content in first_row_with:
                repeated = rows.where[first_row_with[content]]
                self.rows_with_problem["rows that repeat another row of their task"].append(
                    f"{rows.where[i]} ({repeated})"
                )
                is_good[i] = False
            else:
                first_row_with[content] = i


def is_missing(value: object) -> bool:
    """Whether a cell is empty: None, NaN, NA, NaT, or a text that pandas reads as empty."""
    import pandas as pd

    is_empty_text = isinstance(value, str) and value.strip() in TEXTS_READ_AS_EMPTY
    is_na = pd.isna(value) is True  # compared with True, as `isna` of a list is an array
    return is_empty_text or is_na


def number_of(value: object) -> float:
    """Convert a cell, which may be text, to a number; NaN if that is impossible or would round."""
    if isinstance(value, str):
        is_number = NUMBER_PATTERN.fullmatch(value.strip()) is not None
        return float(value) if is_number else math.nan
    is_truth_value = isinstance(value, bool | np.bool_)  # which Python counts as numbers
    if not isinstance(value, numbers.Real) or is_truth_value:
        return math.nan
    if isinstance(value, numbers.Integral) and is_rounded(value):
        return math.nan
    return float(value)


def is_rounded(number: SupportsInt) -> bool:
    """Whether a float cannot hold an integer exactly."""
    integer = int(number)
    try:
        return int(float(integer)) != integer
    except OverflowError:
        return True


def explain_rounding(value: object) -> str:
    """Explain why an integer is no valid cell, "" for other values."""
    if isinstance(value, numbers.Integral) and is_rounded(value):
        return " (an integer that floats round)"
    return ""


def _explain_empty(parameter: Parameter) -> str:
    """Explain why a cell may be empty that was a choice in the file, "" if there is no reason."""
    if any(choice in TEXTS_READ_AS_EMPTY for choice in parameter.choices):
        return " (pandas reads such a text as empty unless keep_default_na=False)"
    return ""


def _code_alike_choice(choices: Sequence[Value], value: object) -> float:
    """Code of the only choice that a value is like, as "1" is like 1; NaN if none or several are.

    The code of a choice is its index.
    """
    alike = [code for code, choice in enumerate(choices) if _is_alike(value, choice)]
    return float(alike[0]) if len(alike) == 1 else math.nan


def _is_alike(value: object, choice: Value) -> bool:
    """Whether a value equals a choice up to rounding, or is the choice written as text."""
    if isinstance(value, str) and value.strip() == str(choice):
        return True
    if isinstance(choice, str):
        return False
    return math.isclose(number_of(value), number_of(choice), rel_tol=RELATIVE_ROUNDING)


def _undo_moves(rows: Rows, space: SearchSpace, values: FloatArray) -> FloatArray:
    """Replace numbers that were moved to a bound by those in the rows.

    Args:
        rows: The rows.
        space: The search space.
        values: Coded configurations, (rows, hyperparameters).
    """
    as_written = values.copy()
    for j, parameter in enumerate(space.parameters):
        if parameter.choices:
            continue
        # Only a number at a bound can have been moved there.
        is_at_bound = (values[:, j] == parameter.lower) | (values[:, j] == parameter.upper)
        cells = rows.columns[parameter.name]
        for i in np.flatnonzero(is_at_bound).tolist():
            as_written[i, j] = number_of(cells[i])
    return as_written


def _code_valid_column(
    parameter: Parameter, column: NDArray[Any], is_asked: BoolArray
) -> FloatArray | None:
    """Code a column in the rows where it is asked for, NaN elsewhere; None if any is invalid."""
    try:
        coded = parameter.code_column(column, is_asked)
    except InvalidConfigError:
        return None
    return coded if parameter.allows(coded[is_asked]).all() else None


def _are_all_outside(parameter: Parameter, cells: Sequence[object]) -> bool:
    """Whether there are several numbers, all out of range; a single one may be an accident."""
    numbers_of_cells = np.array([number_of(cell) for cell in cells], dtype=np.float64)
    finite = numbers_of_cells[np.isfinite(numbers_of_cells)]
    if parameter.choices or len(finite) < 2:  # choices have no range
        return False
    is_inside = (finite >= parameter.lower) & (finite <= parameter.upper)
    return not is_inside.any()


def _check_different(history: Sequence[Evaluations]) -> None:
    """Check that no two tasks have identical evaluations, such as a study and its copy."""
    first_task_with: dict[Any, str] = {}
    for evaluations in history:
        if np.isfinite(evaluations.objective).sum() < 2:
            continue  # a single evaluation may be the same by chance
        content = (
            evaluations.names,
            evaluations.values.tobytes(),
            evaluations.objective.tobytes(),
        )
        task = evaluations.task
        first_task = first_task_with.setdefault(content, task)
        if first_task != task:
            raise EvaluationsError(
                f"tasks {first_task!r} and {task!r} have identical evaluations: give them once"
            )


def _check_order(tasks: Sequence[str]) -> None:
    """Warn if names that differ only in numbers, or dates, are not in the order of these.

    Other names, such as those of months, have no order that could be checked.
    """
    names_without_numbers = {DIGITS_PATTERN.sub("0", task) for task in tasks}
    differ_only_in_numbers = len(names_without_numbers) == 1
    if not differ_only_in_numbers:
        return

    numbers_in_names: list[list[int]] = []
    for task in tasks:
        numbers_in_names.append([int(digits) for digits in DIGITS_PATTERN.findall(task)])
    if all(_ends_with_year(in_name) for in_name in numbers_in_names):
        # Dates such as 24.12.2026 are in order if their reverse is: by year, month and day.
        numbers_in_names = [in_name[::-1] for in_name in numbers_in_names]
    if numbers_in_names != sorted(numbers_in_names):
        warn(
            f"tasks are taken in the order {join_words(tasks)}, the last one as the latest, which "
            "is not that of the numbers in their names: sort them by their time, if they have one"
        )


def _ends_with_year(numbers: Sequence[int]) -> bool:
    """Whether the last number is a year and the first one is not."""
    return len(numbers) > 0 and numbers[0] < EARLIEST_YEAR <= numbers[-1]


def warn(message: str) -> None:
    """Issue a HistoryWarning that points to the user's code, a few calls further up."""
    warnings.warn(message, HistoryWarning, stacklevel=4)
