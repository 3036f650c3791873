"""Reads tables of evaluations: finds the columns and groups the rows by task."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hpobench_ordered._wording import join_words, suggest_allowed
from hpobench_ordered.errors import EvaluationsError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.tuning.reading.rows import (
    READ_ON_OLD_SPACE,
    Reader,
    Rows,
    State,
    TaskRows,
    is_missing,
    parse_number,
    warn,
)

if TYPE_CHECKING:
    from pandas import DataFrame, Series

TASK = "task"
"""Column of the task's name, unless another one is named."""
OBJECTIVE = "objective"
"""Column of the objective, unless another one is named."""
PREFIXES = ("params_", "param_", "params.", "params/", "config/", "config.", "config_")
"""What packages write before the name of a hyperparameter in the name of its column.

Optuna, scikit-learn and MLflow, Ray Tune, Weights & Biases.
"""
STATE_COLUMNS = ("state", "status")  # in lower case
STATE_OF_TEXT: Mapping[str, State] = {
    **dict.fromkeys(("complete", "completed", "finished", "terminated"), State.COMPLETE),
    **dict.fromkeys(("success", "succeeded", "successful", "done", "ok"), State.COMPLETE),
    **dict.fromkeys(("fail", "failed", "failure", "error", "errored"), State.FAILED),
    **dict.fromkeys(("crash", "crashed", "killed", "diverged", "exception"), State.FAILED),
    **dict.fromkeys(("timeout", "timed out", "oom", "out of memory"), State.FAILED),
    **dict.fromkeys(("pruned", "stopped"), State.PRUNED),
    **dict.fromkeys(("running", "waiting", "pending", "paused"), State.UNFINISHED),
    **dict.fromkeys(("queued", "scheduled"), State.UNFINISHED),
    **dict.fromkeys(("cancelled", "canceled", "aborted", "preempted"), State.UNFINISHED),
}
"""What became of an evaluation, by the words of Optuna, MLflow, Ray Tune, Weights & Biases and
Slurm, and by other common ones; in lower case, with spaces between words."""
USUAL_OBJECTIVES = ("value", "mean_test_score", "score", "loss", "values_0")
"""Columns of the objective in other packages, which messages suggest."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns that are not hyperparameters.

    Attributes:
        task: Column of the task's name; None: `TASK` if there is one, else the table is one task.
        objective: Column of the objective's value; None: `OBJECTIVE`.
        context: Columns of the contexts.
        order: Column by which the tasks are sorted; None: they keep the order of the table.
    """

    task: str | None = None
    objective: str | None = None
    context: Sequence[str] = ()
    order: str | None = None

    def list_roles(self) -> dict[str, str]:
        """Return what each column that the user named is for, in words for messages."""
        roles: dict[str, str] = {}
        if self.task is not None:
            roles[self.task] = "the task"
        if self.objective is not None:
            roles[self.objective] = "the objective"
        for name in self.context:
            roles[name] = "a context"
        if self.order is not None:
            roles[self.order] = "the order of tasks"
        return roles


@dataclass(frozen=True)
class Table:
    """A table of evaluations, one per row.

    Attributes:
        frame: The table; columns that are not needed are ignored.
        name: Its name in messages.
        task: Name of its task if it has no column of tasks.
    """

    frame: "DataFrame"
    name: str = "the table"
    task: str = "earlier task"


def split_table(
    table: Table,
    space: SearchSpace,
    columns: Columns,
    reader: Reader,
    *,
    rename: Mapping[str, str] = MappingProxyType({}),
) -> list[TaskRows]:
    """Find the columns of a table, and split its rows by task.

    Tasks come in the order in which they first appear, or in that of the column which the user
    names. Columns of constants may be left out.

    Args:
        table: The table.
        space: The search space.
        columns: Names of the columns that are not hyperparameters.
        reader: Collects what is wrong with rows, and has the words of messages.
        rename: New names of columns by their old ones.

    Raises:
        EvaluationsError: The columns are not as described.
    """
    frame = table.frame
    check_renaming(rename, list(frame.columns))
    frame = _rename_spellings(frame.rename(columns=rename), space, columns)
    columns = _complete(columns, frame, space)
    state_column = _find_state_column(frame, space, columns)
    ignored = _check_columns(frame, space, columns, reader, table.name)
    reader.ignored += [name for name in ignored if name != state_column]

    names_of_rows = _name_rows(frame)
    if columns.task is None:
        rows_of_task = {table.task: list(range(len(frame)))}
    else:
        rows_of_task = _group_rows(frame, columns.task, names_of_rows, reader)
    if columns.order is not None:
        rows_of_task = _sort_tasks(frame[columns.order], rows_of_task)
    contexts = _read_contexts(frame, columns.context, rows_of_task, names_of_rows)

    states = None if state_column is None else _read_states(frame[state_column])
    cells: dict[str, Any] = {}
    for name in (*space.names, *space.constants):
        if name in frame:
            cells[name] = frame[name].to_numpy()
    all_rows = Rows("", names_of_rows, cells, frame[columns.objective].tolist(), states)
    return [
        TaskRows(replace(all_rows.select(rows), task=task), space, contexts[task], table.name)
        for task, rows in rows_of_task.items()
    ]


def _rename_spellings(frame: "DataFrame", space: SearchSpace, columns: Columns) -> "DataFrame":
    """Rename columns such as "params_x" to the hyperparameter "x", and warn of it.

    A column "params_x" is renamed only if the table has no column "x", and if the user did not name
    it as the column of the task, the objective or the like.
    """
    present = list(frame.columns)
    used = columns.list_roles()
    spelling_of: dict[str, str] = {}
    for name in (*space.names, *space.constants):
        if name in present:
            continue
        spellings = [f"{prefix}{name}" for prefix in PREFIXES]
        found = [spelling for spelling in spellings if spelling in present]
        found = [spelling for spelling in found if spelling not in used]
        if len(found) > 1:
            raise EvaluationsError(
                f"hyperparameter {name!r} may be column {' or '.join(map(repr, found))}: remove "
                "all but one"
            )
        if found:
            spelling_of[name] = found[0]
    if spelling_of:
        pairs = [f"{spelling!r} as {name!r}" for name, spelling in spelling_of.items()]
        warn(f"columns are read as hyperparameters: {join_words(pairs)}")
    return frame.rename(columns={spelling: name for name, spelling in spelling_of.items()})


def _complete(columns: Columns, frame: "DataFrame", space: SearchSpace) -> Columns:
    """Fill in the columns of the task and the objective if the user did not name them."""
    task = columns.task
    if task is None and TASK in frame.columns and TASK not in (*space.names, *space.constants):
        task = TASK
    return replace(columns, task=task, objective=columns.objective or OBJECTIVE)


def _find_state_column(frame: "DataFrame", space: SearchSpace, columns: Columns) -> str | None:
    """Find the column of states, such as "failed" or "pruned"; None if there is none.

    It has the right name, and at least one cell says a state. A column with other words alone, such
    as names of places, is not a column of states.
    """
    used = {*columns.list_roles(), *space.names, *space.constants}
    for name in frame.columns:
        is_named_so = isinstance(name, str) and name.lower() in STATE_COLUMNS
        if not is_named_so or name in used:
            continue
        if any(_parse_state(cell) is not None for cell in frame[name].tolist()):
            return str(name)
    return None


def _parse_state(cell: object) -> State | None:
    """Find the state that a cell says; None if it says another word."""
    _, _, last_part = str(cell).rpartition(".")  # "PRUNED" of "TrialState.PRUNED"
    word = last_part.strip().lower().replace("_", " ")
    return STATE_OF_TEXT.get(word)


def _read_states(column: "Series[Any]") -> list[State]:
    """Read the state of each evaluation from a column.

    Where a cell is empty, the objective alone tells whether the evaluation has failed.

    Raises:
        EvaluationsError: A cell has another word, which may stand for a failure.
    """
    states: list[State] = []
    unknown_words: dict[str, None] = {}  # each once, in order
    for cell in column.tolist():
        state = State.COMPLETE if is_missing(cell) else _parse_state(cell)
        if state is None:
            unknown_words[repr(cell)] = None
        else:
            states.append(state)
    if unknown_words:
        raise EvaluationsError(
            f"column {column.name!r} says what became of evaluations; unknown words in it: "
            f"{join_words(unknown_words)}; write complete, failed, pruned or running instead, or "
            "rename the column if it says something else"
        )
    return states


def _name_rows(frame: "DataFrame") -> list[str]:
    """Make a name for each row of a table, for messages.

    A row is named by its index, such as "line 7", if the index has a name, else by its number.
    """
    if frame.index.name is None:
        return [f"row {number}" for number in range(len(frame))]
    return [f"{frame.index.name} {label}" for label in frame.index]


def _group_rows(
    frame: "DataFrame", column: str, names_of_rows: Sequence[str], reader: Reader
) -> dict[str, list[int]]:
    """Find the positions of each task's rows; tasks are in the order of their first rows.

    Args:
        frame: The table.
        column: The column of tasks.
        names_of_rows: Name of each row in messages.
        reader: Records the rows whose cell in this column is empty.
    """
    rows_of_task: dict[str, list[int]] = {}
    for i, label in enumerate(frame[column].tolist()):
        # A text such as "NA", which may mean a missing cell, is taken as the name of a task.
        is_text = isinstance(label, str) and label.strip() != ""
        if is_missing(label) and not is_text:
            reader.leave_out(f"column {column!r} names no task", names_of_rows[i])
        else:
            rows_of_task.setdefault(_to_task_name(label), []).append(i)
    return rows_of_task


def _sort_tasks(
    column: "Series[Any]", rows_of_task: Mapping[str, list[int]]
) -> dict[str, list[int]]:
    """Sort tasks by the smallest number, or the earliest time, that a column has in their rows.

    Texts are read as numbers or, unless all of them are numbers, as times.

    Raises:
        EvaluationsError: The column has neither numbers nor times.
    """
    import pandas as pd

    keys: Series[Any] = column
    if column.dtype == object or pd.api.types.is_string_dtype(column):
        numbers = [parse_number(cell) for cell in column.tolist()]
        keys = pd.Series(numbers, index=column.index)
        if keys.isna().any():
            keys = pd.to_datetime(column, errors="coerce", format="ISO8601")
    if keys.isna().any():
        raise EvaluationsError(
            f"column {column.name!r} must hold numbers, or dates such as 2026-05-31, to sort the "
            f"tasks by, but has {column[keys.isna()].iloc[0]!r}"
        )
    first_of_task = {task: keys.iloc[list(rows)].min() for task, rows in rows_of_task.items()}
    tasks_in_order = sorted(first_of_task, key=first_of_task.__getitem__)
    return {task: rows_of_task[task] for task in tasks_in_order}


def check_contexts(
    contexts: Mapping[str, Mapping[str, float]] | None,
    tasks: Sequence[str],
    *,
    others: Sequence[str] = (),
) -> Mapping[str, Mapping[str, float]]:
    """Check that the contexts of all tasks have the same names and finite numbers, and return them.

    Args:
        contexts: Context of each task, by the task's name. None means that all are empty.
        tasks: Names of the tasks that must have a context.
        others: Names of tasks that may have one, such as studies without a usable trial.

    Raises:
        EvaluationsError: A number is missing or not finite, or a task is unknown.
    """
    if contexts is None:
        return {task: {} for task in tasks}
    if not isinstance(contexts, Mapping) or not all(
        isinstance(context, Mapping) for context in contexts.values()
    ):
        raise EvaluationsError(
            "contexts must be a dict of numbers for each task, such as "
            f"{{'May': {{'rows': 52e3}}}}, but got {contexts!r}"
        )
    for name in contexts:
        if name not in {*tasks, *others}:
            raise EvaluationsError(
                f"contexts of the unknown task {name!r}{suggest_allowed(name, tasks)}"
            )
    missing = [repr(task) for task in tasks if task not in contexts]
    if missing:
        raise EvaluationsError(f"no context of {join_words(missing)}")
    for task in tasks:
        first_task = tasks[0]
        _check_context(task, contexts[task], first_task, contexts[first_task])
    return contexts


def _check_context(
    task: str, context: Mapping[str, float], other_task: str, other_context: Mapping[str, float]
) -> None:
    """Raise an `EvaluationsError` unless a context has finite numbers and the names of another.

    Args:
        task: Name of the task.
        context: Its context.
        other_task: Name of another task.
        other_context: Context of the other task, which must have the same names.
    """
    if set(context) != set(other_context):
        raise EvaluationsError(
            f"the context of task {task!r} has {sorted(context)}, that of {other_task!r} "
            f"{sorted(other_context)}"
        )
    for name, value in context.items():
        if isinstance(value, str) or not math.isfinite(parse_number(value)):
            raise EvaluationsError(
                f"context {name!r} of task {task!r} must be a finite number, but got {value!r}"
            )


def check_renaming(rename: Mapping[str, str], *sources: Collection[str]) -> None:
    """Raise an `EvaluationsError` unless renaming gives unique names in each source.

    Args:
        rename: A mapping of old to new names. Each old name must be in at least one source.
        sources: Collections of names, such as the columns of a table or the parameters of a study.
    """
    if not isinstance(rename, Mapping) or not all(isinstance(n, str) for n in rename.values()):
        raise EvaluationsError(f"rename must be a mapping of old to new names, but got {rename!r}")
    for old in rename:
        if not any(old in names for names in sources):
            all_names: dict[str, None] = {}  # each once, in order
            for names in sources:
                all_names |= dict.fromkeys(map(str, names))
            hint = suggest_allowed(str(old), all_names)
            raise EvaluationsError(f"{old!r} cannot be renamed{hint}")
    for names in sources:
        new_names = {rename.get(name, name) for name in names}
        if len(new_names) < len(set(names)):
            raise EvaluationsError(
                f"renaming by {dict(rename)} gives two of {sorted(names)} the same name"
            )


def _check_columns(
    frame: "DataFrame",
    space: SearchSpace,
    columns: Columns,
    reader: Reader,
    source: str,
) -> list[str]:
    """Check that every column needed is there once; returns those that may be hyperparameters.

    These are all that are not needed; but where the hyperparameters have a prefix, such as
    "params_x", only the others with a prefix. Columns of constants are not needed.

    Args:
        frame: The table.
        space: The search space.
        columns: Names of the columns that are not hyperparameters. Each has a role, which is what
            it is for, in words such as "the task".
        reader: Says whether the rows are a history.
        source: Name of the table in messages.
    """
    roles = columns.list_roles()
    for name, role in roles.items():
        if not isinstance(name, str):
            raise EvaluationsError(f"column names must be text, but got {name!r} for {role}")
        if name in (*space.names, *space.constants):
            raise EvaluationsError(f"column {name!r} is a hyperparameter; it cannot be {role}")
    if columns.objective in (columns.task, *columns.context):
        raise EvaluationsError(
            f"column {columns.objective!r} is the objective; it cannot be the task or a context"
        )

    present = list(frame.columns)
    role_of_column = roles | dict.fromkeys(space.names, "a hyperparameter")
    usable = [*role_of_column, *space.constants]
    others = [str(name) for name in dict.fromkeys(present) if name not in usable]

    problems = [f"two columns {name!r}" for name in usable if present.count(name) > 1]
    missing = [name for name in role_of_column if name not in present]
    for name in missing:
        hint = ""
        if name == columns.objective:
            likely = [other for other in USUAL_OBJECTIVES if other in others]
            names = " or ".join(map(repr, likely))
            hint = f" (if it is {names}, say so by `objective`)" if likely else ""
        problems.append(f"no column {name!r} for {role_of_column[name]}{hint}")
    if missing and others:
        hint = " (`rename` gives columns other names)" if reader.is_history else ""
        problems.append(f"columns without a use: {join_words(map(repr, others))}{hint}")
    if problems:
        lines = "".join(f"\n- {problem}" for problem in problems)
        lacks_hyperparameter = any(name not in present for name in space.names)
        if lacks_hyperparameter and reader.is_history:
            lines += f"\nif the rows were evaluated on another search space, {READ_ON_OLD_SPACE}"
        raise EvaluationsError(f"{source} cannot be read:{lines}")

    with_prefix = [name for name in others if name.startswith(PREFIXES)]
    return with_prefix or others


def _read_contexts(
    frame: "DataFrame",
    columns: Sequence[str],
    rows_of_task: Mapping[str, Sequence[int]],
    names_of_rows: Sequence[str],
) -> dict[str, dict[str, float]]:
    """Read the context of each task from columns, which must be constant within a task.

    Numbers of a column of integers become integers, all others become floats.

    Args:
        frame: The table.
        columns: The columns of contexts.
        rows_of_task: Positions of the rows of each task.
        names_of_rows: Name of each row in messages.
    """
    contexts: dict[str, dict[str, float]] = {task: {} for task in rows_of_task}
    for column in columns:
        cells = frame[column].tolist()
        is_integer = frame[column].dtype.kind in "iu"  # signed and unsigned integers
        for task, rows in rows_of_task.items():
            first = parse_number(cells[rows[0]])
            for i in rows:
                number = parse_number(cells[i])
                if not math.isfinite(number) or number != first:
                    raise EvaluationsError(
                        f"column {column!r} must hold one finite number for each task, but task "
                        f"{task!r} has {cells[i]!r} in {names_of_rows[i]}"
                    )
            contexts[task][column] = int(first) if is_integer else first
    return contexts


def _to_task_name(label: object) -> str:
    """Convert a cell to the name of a task.

    A whole number loses the ".0" that pandas adds where other cells of the column are empty.
    """
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)
