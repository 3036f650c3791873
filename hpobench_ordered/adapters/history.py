"""Tables of earlier tuning as history.

    frame = pd.read_csv("tuning.csv")      # columns month, rate, depth, error
    history = history_from_frame(
        frame, space, objective="error", direction="minimize", task="month"
    )

Results of experiments are read by `hpobench_ordered.experiment.history`, studies of Optuna by
`hpobench_ordered.adapters.optuna.studies`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from hpobench_ordered.adapters._rows import (
    Reader,
    Rows,
    check_renaming,
    contexts_of,
    is_missing,
    near,
)
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.errors import EvaluationsError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.given import search_space

if TYPE_CHECKING:
    from pandas import DataFrame

    from hpobench_ordered.space.given import SpaceLike


def history_from_frame(
    frame: "DataFrame",
    space: "SpaceLike",
    *,
    objective: str,
    direction: Direction | str,
    task: str,
    drop_invalid: bool = False,
    clip: bool = False,
    contexts: Mapping[str, Mapping[str, float]] | None = None,
    rename: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Evaluations, ...]:
    """Read a table of earlier evaluations, one row each, as history.

    Columns are identified by name, not by order: the task, the objective, and native values of
    each hyperparameter; constants may be left out. A conditional hyperparameter may be empty where
    it is inactive; a value there is ignored. An empty objective marks an evaluation that failed.
    Numbers may be text, as pandas reads every cell of a column in which any is not a number.

    Args:
        frame: The table.
        space: The search space.
        objective: Column of the objective's value in its own units.
        direction: Whether the objective is minimised or maximised: "minimize", "maximize", or a
            `Direction`.
        task: Column of the task's name; tasks come in the order in which they first appear, which
            should be that of their time.
        drop_invalid: Leave out rows that cannot be used, and say in a warning how many, instead of
            rejecting the table.
        clip: Move numbers that are out of range to the nearest bound, and say in a warning how
            many, instead of treating their rows as invalid.
        contexts: Context of each task (numbers known before it is tuned), by its name.
        rename: New names of columns by their old ones, where the space has others, such as
            `{"learning_rate": "lr"}`.

    Returns:
        The evaluations of each task.

    Raises:
        EvaluationsError: A column is missing, repeated, or not a hyperparameter; its values
            are out of range, of another type, empty, or on another scale; a row repeats another;
            or a context is not as described. The message lists all of it by row and column.

    Warns:
        HistoryWarning: Rows are left out, numbers were moved, or the tasks, by the numbers in their
            names, are not in order.

    Examples:
        >>> import pandas as pd
        >>> import hpobench_ordered as hbo
        >>> from ConfigSpace import ConfigurationSpace
        >>> frame = pd.DataFrame(
        ...     {"month": ["May", "May", "June"], "depth": [2, 7, 3], "error": [0.3, 0.4, None]}
        ... )
        >>> space = ConfigurationSpace({"depth": (1, 9)})
        >>> history = hbo.history_from_frame(
        ...     frame, space, objective="error", direction="minimize", task="month"
        ... )
        >>> [(one.task, len(one)) for one in history]
        [('May', 2), ('June', 1)]
    """
    described, wanted = search_space(space), Direction.of(direction)
    _check_table(frame)
    if not (isinstance(task, str) and isinstance(objective, str)):
        raise EvaluationsError(f"column names must be text, but got {task!r} and {objective!r}")
    check_renaming(rename, list(frame.columns))
    frame = frame.rename(columns=rename)
    _check_columns(frame, described, task=task, objective=objective)
    reader = Reader(drop_invalid, clip, "the table")
    tasks = _rows_by_task(frame, described, reader, task=task, objective=objective)
    context = contexts_of(contexts, [rows.task for rows in tasks])
    read = [
        reader.read(rows, described, direction=wanted, context=context[rows.task]) for rows in tasks
    ]
    return reader.finish(read)


def _check_table(frame: object) -> None:
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise EvaluationsError(f"the table must be a DataFrame, but got {type(frame).__name__}")


def _check_columns(frame: "DataFrame", space: SearchSpace, *, task: str, objective: str) -> None:
    """Check that the columns are the task, the objective and the hyperparameters, each once."""
    present = list(frame.columns)
    needed = {task: "of the task", objective: "of the objective"}
    needed |= dict.fromkeys(space.names, "of a hyperparameter")
    if len(needed) < 2 + space.dimension or task in space.constants or objective in space.constants:
        raise EvaluationsError(
            f"task {task!r} and objective {objective!r} must be two columns, but not those of "
            f"hyperparameters ({', '.join(map(repr, space.names))})"
        )
    known = [*needed, *space.constants]
    extra = [name for name in dict.fromkeys(present) if name not in known]
    missing = [name for name in needed if name not in present]
    wrong = [f"two columns {name!r}" for name in known if present.count(name) > 1]
    for name in missing:
        wrong.append(f"no column {name!r} {needed[name]}{near(name, map(str, extra))}")
    for name in extra:
        hint = near(str(name), missing)
        if len(missing) == len(extra) == 1 and missing[0] in space.names:
            hint = f"; is it now called {missing[0]!r}? (rename={{{name!r}: {missing[0]!r}}})"
        wrong.append(f"column {name!r} is not a hyperparameter: rename or drop it{hint}")
    if wrong:
        raise EvaluationsError(
            "the table cannot be read as history:" + "".join(f"\n- {text}" for text in wrong)
        )


def _rows_by_task(
    frame: "DataFrame", space: SearchSpace, reader: Reader, *, task: str, objective: str
) -> list[Rows]:
    """The rows of each task, in the order in which tasks first appear."""
    members: dict[str, list[int]] = {}
    is_named = frame.index.name is not None
    labels = frame.index if is_named else range(len(frame))
    where = [f"{frame.index.name if is_named else 'row'} {label}" for label in labels]
    for i, label in enumerate(frame[task].tolist()):
        if is_missing(label) and not (isinstance(label, str) and label.strip()):
            reader.leave_out(f"column {task!r} names no task", where[i])
        else:
            members.setdefault(_text(label), []).append(i)
    names = [n for n in (*space.names, *space.constants) if n in frame.columns]
    columns = {name: frame[name].tolist() for name in (*names, objective)}
    return [
        Rows(
            name,
            [where[i] for i in rows],
            {column: [columns[column][i] for i in rows] for column in names},
            [columns[objective][i] for i in rows],
            refuses_repeated=True,
        )
        for name, rows in members.items()
    ]


def _text(label: object) -> str:
    """A task's name; whole numbers lose the .0 that pandas adds where some are missing."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)
