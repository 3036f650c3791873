"""Reads and checks tables of evaluations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.errors import EvaluationsError, InvalidConfigError, suggestion
from hpobench_ordered.space import SearchSpace

if TYPE_CHECKING:
    from pandas import DataFrame

LARGEST = 1e150
"""Largest objective value: surrogates square it."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of task, objective and contexts, and the context that tasks are sorted by."""

    task: str
    objective: str
    context: tuple[str, ...]
    ordered: str | None

    def roles(self) -> list[tuple[str, str]]:
        """The role of each column, for messages, and its name."""
        named = [("the task", self.task), ("the objective", self.objective)]
        return named + [("context", column) for column in self.context]


@dataclass(frozen=True, eq=False)
class TaskEvaluations:
    """Evaluations of one task, n rows of the table.

    `values` are configurations as coded by `SearchSpace.values`, (n, d), in the order of the table,
    `objective` is in its own units, (n,), and `rows` are the rows in the table, (n,).
    """

    name: str
    context: Mapping[str, float]
    values: FloatArray
    objective: FloatArray
    rows: IntArray

    def __len__(self) -> int:
        return len(self.objective)


def read_frame(
    frame: "DataFrame", space: SearchSpace, columns: Columns, *, drop_invalid: bool
) -> tuple[TaskEvaluations, ...]:
    """Read and check a table of evaluations, one per row; other columns are ignored.

    With `drop_invalid` rows are left out whose objective is not finite or whose configuration is
    not in the search space; whatever else is invalid raises an EvaluationsError.
    """
    _check_columns(frame, space, columns)
    if drop_invalid:
        frame = frame[_is_usable(frame, space, columns)]
        if frame.empty:
            raise EvaluationsError("the table has no usable row")
    rows_of = _rows_of_tasks(frame, columns.task)
    contexts = _contexts(frame, columns, rows_of)
    values = _values(frame, space)
    objective = numbers(frame, columns.objective)
    finite = np.isfinite(objective)
    if not finite.all():
        raise EvaluationsError(
            f"column {columns.objective!r} is not finite in {(~finite).sum()} of {len(frame)} "
            f"rows, the first being row {np.argmin(finite)}; drop_invalid=True leaves them out"
        )
    largest = np.abs(objective).max()
    if largest > LARGEST:
        raise EvaluationsError(
            f"column {columns.objective!r} has values up to {largest:g}, whose squares "
            "overflow: give them in other units"
        )
    tasks = [
        TaskEvaluations(name, contexts[name], values[rows], objective[rows], rows)
        for name, rows in rows_of.items()
    ]
    if columns.ordered is not None:
        tasks.sort(key=lambda t: t.context[str(columns.ordered)])
    return tuple(tasks)


def _check_columns(frame: "DataFrame", space: SearchSpace, columns: Columns) -> None:
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise EvaluationsError(f"the table must be a DataFrame, but got {type(frame).__name__}")
    present = list(frame.columns)
    hyperparameters = [(f"hyperparameter {name}", name) for name in space.names]
    for what, name in columns.roles() + hyperparameters:
        if present.count(name) != 1:
            problem = "several columns" if name in present else "no column"
            hint = "" if name in present else suggestion(name, map(str, present))
            raise EvaluationsError(f"the table has {problem} {name!r} for {what}{hint}")
    for what, name in columns.roles():
        if name in space.names or name in space.constants:
            raise EvaluationsError(f"column {name!r} is a hyperparameter; it cannot be {what}")
    if columns.objective in (columns.task, *columns.context):
        raise EvaluationsError(
            f"column {columns.objective!r} is the objective; it cannot be the task or a context"
        )
    if columns.ordered is not None and columns.ordered not in columns.context:
        hint = suggestion(columns.ordered, columns.context)
        raise EvaluationsError(
            f"ordered must be one of the contexts, but got {columns.ordered!r}{hint}"
        )


def _rows_of_tasks(frame: "DataFrame", column: str) -> dict[str, IntArray]:
    """Rows of each task, by its name, in the order in which tasks first appear."""
    missing = frame[column].isna().to_numpy()
    if missing.any():
        raise EvaluationsError(
            f"column {column!r} names no task in {missing.sum()} of {len(frame)} rows, the first "
            f"being row {np.argmax(missing)}"
        )
    rows: dict[str, list[int]] = {}
    for row, label in enumerate(frame[column].tolist()):
        rows.setdefault(str(label), []).append(row)
    if not rows:
        raise EvaluationsError("the table has no rows")
    return {name: np.array(members) for name, members in rows.items()}


def _contexts(
    frame: "DataFrame", columns: Columns, rows_of: Mapping[str, IntArray]
) -> dict[str, dict[str, float]]:
    """Context of each task, integers if the column's type is."""
    contexts: dict[str, dict[str, float]] = {name: {} for name in rows_of}
    for column in columns.context:
        values = numbers(frame, column)
        is_whole = frame[column].dtype.kind in "iu"
        for name, rows in rows_of.items():
            distinct = np.unique(values[rows])
            if len(distinct) > 1 or not np.isfinite(distinct[0]):
                problem = "several values" if len(distinct) > 1 else "no finite value"
                raise EvaluationsError(
                    f"context {column!r} has {problem} on task {name!r}: {distinct[:3].tolist()}"
                )
            contexts[name][column] = int(distinct[0]) if is_whole else float(distinct[0])
    return contexts


def _configs(frame: "DataFrame", space: SearchSpace) -> "DataFrame":
    return frame[[name for name in (*space.names, *space.constants) if name in frame.columns]]


def _is_usable(frame: "DataFrame", space: SearchSpace, columns: Columns) -> NDArray[np.bool_]:
    """Whether rows have a finite objective and a valid configuration, (n,)."""
    usable = np.isfinite(numbers(frame, columns.objective))
    configs = _configs(frame, space)
    try:
        space.values(configs)
    except InvalidConfigError:
        usable &= [_is_valid(config, space) for config in configs.to_dict("records")]
    return usable


def _values(frame: "DataFrame", space: SearchSpace) -> FloatArray:
    configs = _configs(frame, space)
    try:
        return space.values(configs)
    except InvalidConfigError as error:
        bad = sum(not _is_valid(config, space) for config in configs.to_dict("records"))
        raise EvaluationsError(
            f"{error}; {bad} of {len(frame)} rows are not in the search "
            "space; drop_invalid=True leaves them out"
        ) from None


def _is_valid(config: Mapping[str, object], space: SearchSpace) -> bool:
    try:
        space.validate(config)  # type: ignore[arg-type]  # whatever the table holds
    except InvalidConfigError:
        return False
    return True


def numbers(frame: "DataFrame", column: str) -> FloatArray:
    """A column as numbers, (n,), NaN where a value is missing."""
    if column not in frame:
        raise EvaluationsError(f"the table has no column {column!r}")
    try:
        column_values: FloatArray = frame[column].to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise EvaluationsError(f"column {column!r} must hold numbers: {error}") from None
    return column_values
