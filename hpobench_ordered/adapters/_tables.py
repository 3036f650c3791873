"""Reads tables of evaluations: finds the columns and groups the rows by task."""

import difflib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hpobench_ordered._wording import join_words, suggest_allowed
from hpobench_ordered.adapters._rows import Reader, Rows, is_missing, number_of
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
        """The name of each column and what it is for."""
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
    rename: Mapping[str, str] | None = None,
) -> list[Evaluations | None]:
    """Read a table, one evaluation per row, by task in the order in which tasks first appear.

    Columns are identified by name; those that are not needed are ignored. Constants may be left
    out. Problems of columns and contexts raise an EvaluationsError, `reader` collects those of
    rows. `contexts` are those of each task; default: from their columns. `rename` has new names of
    columns; None if the user cannot give any.
    """
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise EvaluationsError(f"the table must be a DataFrame, but got {type(frame).__name__}")
    check_renaming(rename or {}, list(frame.columns))
    frame = frame.rename(columns=rename or {})
    reader.ignored = _check_columns(
        list(frame.columns), space, columns, reader.source, can_rename=rename is not None
    )
    is_named = frame.index.name is not None
    labels = frame.index if is_named else range(len(frame))
    where = [f"{frame.index.name if is_named else 'row'} {label}" for label in labels]
    members = _rows_of_tasks(frame, columns.task, where, reader)
    tuned = (*space.names, *space.constants)
    cells: dict[str, Any] = {name: frame[name].to_numpy() for name in tuned if name in frame}
    objective = frame[columns.objective].tolist()
    if contexts is None:
        contexts = _contexts(frame, columns.context, members, where)
    contexts, read = contexts_of(contexts, list(members)), []
    for task, rows in members.items():
        one = Rows(
            task,
            [where[i] for i in rows],
            {name: column[rows] for name, column in cells.items()},
            [objective[i] for i in rows],
        )
        read.append(reader.read(one, space, direction=direction, context=contexts[task]))
    return read


def _rows_of_tasks(
    frame: "DataFrame", column: str, where: Sequence[str], reader: Reader
) -> dict[str, list[int]]:
    """Rows of each task, in the order in which tasks first appear."""
    members: dict[str, list[int]] = {}
    for i, label in enumerate(frame[column].tolist()):
        if is_missing(label) and not (isinstance(label, str) and label.strip()):
            reader.leave_out(f"column {column!r} names no task", where[i])
        else:
            members.setdefault(_text(label), []).append(i)
    return members


def contexts_of(
    contexts: Mapping[str, Mapping[str, float]] | None,
    tasks: Sequence[str],
    *,
    others: Sequence[str] = (),
) -> Mapping[str, Mapping[str, float]]:
    """Check that contexts have finite numbers of the same names; without any, each is empty."""
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
    if without := [task for task in tasks if task not in contexts]:
        raise EvaluationsError(f"no context of {join_words(map(repr, without))}")
    expected = list(contexts[tasks[0]]) if tasks else []
    for task in tasks:
        context = contexts[task]
        if set(context) != set(expected):
            raise EvaluationsError(
                f"the context of task {task!r} has {sorted(context)}, that of {tasks[0]!r} "
                f"{sorted(expected)}"
            )
        for name, value in context.items():
            if isinstance(value, str) or not math.isfinite(number_of(value)):
                raise EvaluationsError(
                    f"context {name!r} of task {task!r} must be a finite number, but got {value!r}"
                )
    return contexts


def check_renaming(rename: Mapping[str, str], *sources: Collection[str]) -> None:
    """Check that renaming from old to new names is valid and gives unique names in each source."""
    if not isinstance(rename, Mapping) or not all(isinstance(n, str) for n in rename.values()):
        raise EvaluationsError(f"rename must be a mapping of old to new names, but got {rename!r}")
    for old in rename:
        if not any(old in names for names in sources):
            known = dict.fromkeys(str(name) for names in sources for name in names)
            raise EvaluationsError(f"{old!r} cannot be renamed{suggest_allowed(str(old), known)}")
    for names in sources:
        if len({rename.get(name, name) for name in names}) < len(set(names)):
            raise EvaluationsError(
                f"renaming by {dict(rename)} gives two of {sorted(names)} the same name"
            )


def _check_columns(
    present: Sequence[object],
    space: SearchSpace,
    columns: Columns,
    source: str,
    *,
    can_rename: bool,
) -> list[str]:
    """Check that every column needed is there once; returns the names of those not needed."""
    for name, role in columns.roles():
        if not isinstance(name, str):
            raise EvaluationsError(f"column names must be text, but got {name!r} for {role}")
        if name in (*space.names, *space.constants):
            raise EvaluationsError(f"column {name!r} is a hyperparameter; it cannot be {role}")
    if columns.objective in (columns.task, *columns.context):
        raise EvaluationsError(
            f"column {columns.objective!r} is the objective; it cannot be the task or a context"
        )
    needed = dict(columns.roles()) | dict.fromkeys(space.names, "a hyperparameter")
    known = [*needed, *space.constants]
    others = [str(name) for name in dict.fromkeys(present) if name not in known]
    wrong = [f"two columns {n!r}" for n in known if present.count(n) > 1]
    missing = [name for name in needed if name not in present]
    for name in missing:
        hint = suggest_allowed(name, others) if others else ""
        near = difflib.get_close_matches(name, others, n=1)
        if can_rename and (near := near or others[: len(missing) == len(others) == 1]):
            hint = f"; is {near[0]!r} now called {name!r}? (rename={{{near[0]!r}: {name!r}}})"
        wrong.append(f"no column {name!r} for {needed[name]}{hint}")
    if wrong:
        raise EvaluationsError(f"{source} cannot be read:" + "".join(f"\n- {w}" for w in wrong))
    return others


def _contexts(
    frame: "DataFrame",
    names: Sequence[str],
    members: Mapping[str, Sequence[int]],
    where: Sequence[str],
) -> dict[str, dict[str, float]]:
    """Context of each task from its rows, integers if the column's type is."""
    contexts: dict[str, dict[str, float]] = {task: {} for task in members}
    for name in names:
        cells, is_whole = frame[name].tolist(), frame[name].dtype.kind in "iu"
        for task, rows in members.items():
            for i in rows:
                number = number_of(cells[i])
                if not math.isfinite(number) or contexts[task].setdefault(name, number) != number:
                    raise EvaluationsError(
                        f"column {name!r} must hold one finite number for each task, but task "
                        f"{task!r} has {cells[i]!r} in {where[i]}"
                    )
            if is_whole:
                contexts[task][name] = int(contexts[task][name])
    return contexts


def _text(label: object) -> str:
    """A task's name; whole numbers lose the .0 that pandas adds where some are missing."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)
