"""Reads tables of evaluations: finds the columns and groups the rows by task."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hpobench_ordered._wording import join_words, suggest_allowed
from hpobench_ordered.adapters._rows import (
    Reader,
    Remedies,
    Rows,
    explain_rounding,
    is_missing,
    number_of,
)
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.errors import EvaluationsError
from hpobench_ordered.space import SearchSpace

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns that are not hyperparameters: of the task, the objective and the contexts."""

    task: str
    objective: str
    context: Sequence[str] = ()

    def roles(self) -> list[tuple[str, str]]:
        """The name of each column and what it is for, in words for messages."""
        contexts = [(name, "a context") for name in self.context]
        return [(self.task, "the task"), (self.objective, "the objective"), *contexts]


def read_table(
    frame: "DataFrame",
    space: SearchSpace,
    columns: Columns,
    reader: Reader,
    *,
    direction: Direction,
    contexts: Mapping[str, Mapping[str, float]] | None = None,
    rename: Mapping[str, str] = MappingProxyType({}),
) -> list[Evaluations | None]:
    """Read a table, one evaluation per row, by task in the order in which tasks first appear.

    Columns are identified by name; those that are not needed are ignored. Constants may be left
    out.

    Args:
        frame: The table.
        space: The search space.
        columns: Names of the columns that are not hyperparameters.
        reader: Reads the rows of each task, and collects what is wrong with them.
        direction: Whether the objective is minimised or maximised.
        contexts: Context of each task, by its name; default: from the columns of contexts.
        rename: New names of columns by their old ones.

    Returns:
        The evaluations of each task; None for a task without a usable row.

    Raises:
        EvaluationsError: The columns or contexts are not as described.
    """
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise EvaluationsError(f"the table must be a DataFrame, but got {type(frame).__name__}")
    check_renaming(rename, list(frame.columns))
    frame = frame.rename(columns=rename)
    reader.ignored = _check_columns(
        list(frame.columns), space, columns, reader.source, reader.remedies
    )

    names_of_rows = _name_rows(frame)
    rows_of_task = _group_rows(frame, columns.task, names_of_rows, reader)
    if contexts is None:
        contexts = _read_contexts(frame, columns.context, rows_of_task, names_of_rows)
    checked_contexts = contexts_of(contexts, list(rows_of_task))

    objective = frame[columns.objective].tolist()
    cells: dict[str, Any] = {}
    for name in (*space.names, *space.constants):
        if name in frame:
            cells[name] = frame[name].to_numpy()

    history: list[Evaluations | None] = []
    for task, rows in rows_of_task.items():
        raw = Rows(
            task,
            where=[names_of_rows[i] for i in rows],
            columns={name: column[rows] for name, column in cells.items()},
            objective=[objective[i] for i in rows],
        )
        context = checked_contexts[task]
        history.append(reader.read(raw, space, direction=direction, context=context))
    return history


def _name_rows(frame: "DataFrame") -> list[str]:
    """Name each row of a table in messages: by its index if that has a name, else by its number."""
    if frame.index.name is None:
        return [f"row {number}" for number in range(len(frame))]
    return [f"{frame.index.name} {label}" for label in frame.index]


def _group_rows(
    frame: "DataFrame", column: str, names_of_rows: Sequence[str], reader: Reader
) -> dict[str, list[int]]:
    """Positions of the rows of each task, in the order in which tasks first appear.

    Args:
        frame: The table.
        column: The column of tasks.
        names_of_rows: Name of each row in messages.
        reader: Records the rows whose cell in this column is empty.
    """
    rows_of_task: dict[str, list[int]] = {}
    for i, label in enumerate(frame[column].tolist()):
        # A text such as "NA" may be the name of a task, although it may also mean a missing cell.
        is_text = isinstance(label, str) and label.strip() != ""
        if is_missing(label) and not is_text:
            reader.leave_out(f"column {column!r} names no task", names_of_rows[i])
        else:
            rows_of_task.setdefault(_to_task_name(label), []).append(i)
    return rows_of_task


def contexts_of(
    contexts: Mapping[str, Mapping[str, float]] | None,
    tasks: Sequence[str],
    *,
    others: Sequence[str] = (),
) -> Mapping[str, Mapping[str, float]]:
    """Check that contexts have finite numbers of the same names, and return them by task.

    Args:
        contexts: Context of each task, by its name; None: all are empty.
        tasks: Tasks that must have a context.
        others: Tasks that may have one, such as studies without a usable trial.

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
    """Raise an `EvaluationsError` unless a context has finite numbers, and the right names.

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
        if isinstance(value, str) or not math.isfinite(number_of(value)):
            raise EvaluationsError(
                f"context {name!r} of task {task!r} must be a finite number, but got {value!r}"
                f"{explain_rounding(value)}"
            )


def check_renaming(rename: Mapping[str, str], *sources: Collection[str]) -> None:
    """Raise an `EvaluationsError` unless renaming is valid and gives unique names in each source.

    Args:
        rename: New names by old ones, of which each must be in some source.
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
    present: Sequence[object],
    space: SearchSpace,
    columns: Columns,
    source: str,
    remedies: Remedies,
) -> list[str]:
    """Check that every column needed is there once; returns the names of those not needed.

    Columns of constants are not needed.

    Args:
        present: Names of the table's columns.
        space: The search space.
        columns: Names of the columns that are not hyperparameters. Each has a role, which is what
            it is for, in words such as "the task".
        source: Name of the table in messages.
        remedies: What messages advise.
    """
    for name, role in columns.roles():
        if not isinstance(name, str):
            raise EvaluationsError(f"column names must be text, but got {name!r} for {role}")
        if name in (*space.names, *space.constants):
            raise EvaluationsError(f"column {name!r} is a hyperparameter; it cannot be {role}")
    if columns.objective in (columns.task, *columns.context):
        raise EvaluationsError(
            f"column {columns.objective!r} is the objective; it cannot be the task or a context"
        )

    role_of_column = dict(columns.roles()) | dict.fromkeys(space.names, "a hyperparameter")
    usable = [*role_of_column, *space.constants]
    others = [str(name) for name in dict.fromkeys(present) if name not in usable]

    problems = [f"two columns {name!r}" for name in usable if present.count(name) > 1]
    is_incomplete = False
    for name, role in role_of_column.items():
        if name not in present:
            is_incomplete = True
            problems.append(f"no column {name!r} for {role}")
    if is_incomplete and others:
        hint = f" ({remedies.rename} gives columns other names)" if remedies.rename else ""
        problems.append(f"columns without a use: {join_words(map(repr, others))}{hint}")
    if problems:
        lines = "".join(f"\n- {problem}" for problem in problems)
        lacks_hyperparameter = any(name not in present for name in space.names)
        if lacks_hyperparameter and remedies.old_space:
            lines += (
                "\nif the rows were evaluated on another search space, give that as "
                f"{remedies.old_space}"
            )
        raise EvaluationsError(f"{source} cannot be read:{lines}")
    return others


def _read_contexts(
    frame: "DataFrame",
    columns: Sequence[str],
    rows_of_task: Mapping[str, Sequence[int]],
    names_of_rows: Sequence[str],
) -> dict[str, dict[str, float]]:
    """Context of each task from the columns of contexts, which must not change within a task.

    Numbers are integers if the column's type is.

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
            first = number_of(cells[rows[0]])
            for i in rows:
                number = number_of(cells[i])
                if not math.isfinite(number) or number != first:
                    raise EvaluationsError(
                        f"column {column!r} must hold one finite number for each task, but task "
                        f"{task!r} has {cells[i]!r} in {names_of_rows[i]}"
                        f"{explain_rounding(cells[i])}"
                    )
            contexts[task][column] = int(first) if is_integer else first
    return contexts


def _to_task_name(label: object) -> str:
    """A task's name; whole numbers lose the .0 that pandas adds where some are missing."""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)
