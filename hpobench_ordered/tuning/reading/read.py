"""Reads earlier evaluations, whatever they are in, as the history of a method."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from hpobench_ordered._wording import join_words
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.errors import EvaluationsError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.conversion import SpaceLike, to_search_space
from hpobench_ordered.tuning.reading.rows import OpenedStudy, Reader, TaskRows, warn
from hpobench_ordered.tuning.reading.sources import Source, open_source
from hpobench_ordered.tuning.reading.tables import TASK, Columns, Table, check_contexts, split_table


@dataclass(frozen=True)
class Settings:
    """How earlier evaluations are read, apart from what `Reader` has.

    Attributes:
        columns: Columns of tables.
        direction: Whether the objective is minimised or maximised; None: as in the studies.
        studies: Pattern of the names of studies in storages.
        contexts: Context of each task, by its name; None: from the columns of contexts.
        rename: New names of columns and parameters by their old ones.
    """

    columns: Columns = field(default_factory=Columns)
    direction: Direction | None = None
    studies: str = "*"
    contexts: Mapping[str, Mapping[str, float]] | None = None
    rename: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def read_history(
    source: Source,
    space: "SpaceLike | None" = None,
    *,
    objective: str | None = None,
    direction: Direction | str | None = None,
    task: str | None = None,
    order: str | None = None,
    studies: str = "*",
    drop_invalid: bool = False,
    clip: bool = False,
    contexts: Mapping[str, Mapping[str, float]] | None = None,
    rename: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Evaluations, ...]:
    """Read earlier evaluations as history, from tables and from studies of Optuna.

    A table has a row for each evaluation, and columns for the task, the objective, and the native
    values of each hyperparameter, which may also be named as Optuna, scikit-learn, Ray Tune, MLflow
    and Weights & Biases name them (`params_x`, `param_x`, `config/x`, `params.x`). Constants may be
    left out, other columns are ignored with a warning, as one of them may be a hyperparameter that
    the space lacks. A conditional hyperparameter may be empty where it is inactive; an empty cell
    of one that has the choice None is None. Numbers and booleans may be text. An evaluation whose
    objective is empty or infinite has failed. A column `state` or `status` with the words of these
    packages says which evaluations failed, were pruned or are not finished; the last two are left
    out.

    A configuration has one value on a task: repeated rows are merged, and of different values the
    mean is taken. Numbers that miss a bound by rounding are moved onto it, and numbers between two
    steps to the nearest one.

    Args:
        source: A DataFrame; a file of a table (CSV, perhaps compressed by gzip, or Parquet) or of
            an Optuna storage (SQLite or journal), known by its content; the URL of a storage; a
            storage or a study; or a list of these, the oldest first.
        space: The search space that tables were evaluated on. A study is read on it if it has the
            same ranges, or else on its own space. The one to be tuned now may differ: `optimiser`
            takes that, and methods for changed spaces carry the evaluations over. Default, for
            studies alone: their common space, or else each one's own.
        objective: Column of the objective's value in its own units; default: "objective".
        direction: Whether the objective is minimised or maximised: "minimize", "maximize", or a
            `Direction`. Studies know it.
        task: Column of the task's name; default: "task". A table without such a column is one task,
            named after its file.
        order: Column of numbers, or of dates such as 2026-05-31, by which the tasks of a table are
            sorted; default: tasks come in the order in which they first appear, which should be
            that of their time. Studies of a storage come in the order in which they were begun.
        studies: Pattern of the names of studies in storages, as in a shell: "churn-*".
        drop_invalid: Leave out rows that cannot be used, and say in a warning how many, instead of
            rejecting them all. A study that differs from `space` only in ranges of numbers is then
            read on it, as with `clip`.
        clip: Move numbers that are out of range to the nearest bound, and say in a warning how
            many; not where all values of a task are out of range.
        contexts: Context of each task (numbers known before it is tuned), by its name.
        rename: New names of columns or parameters by their old ones, where the space has others,
            such as `{"learning_rate": "lr"}`.

    Returns:
        The evaluations of each task that has any with a value.

    Raises:
        EvaluationsError: The source cannot be read; a column is missing or repeated; values are out
            of range, of another type or empty; two tasks are identical; studies have other
            directions or several objectives, or their search space cannot be inferred; or a context
            is not as described. The message lists all of it by row and column.
        UnknownNameError: There is no such file, or no study matches.
        MissingExtraError: Optuna is needed and not installed.

    Warns:
        HistoryWarning: Columns are read by another name or ignored, rows are left out or merged, or
            numbers were moved.

    Examples:
        >>> import pandas as pd
        >>> import hpobench_ordered as hbo
        >>> frame = pd.DataFrame(
        ...     {"month": ["May", "May", "June"], "depth": [2, 7, 3], "error": [0.3, 0.4, None]}
        ... )
        >>> history = hbo.read_history(
        ...     frame, {"depth": (1, 9)}, objective="error", direction="minimize", task="month"
        ... )
        >>> [(one.task, len(one)) for one in history]
        [('May', 2), ('June', 1)]

        >>> import optuna
        >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
        >>> storage = optuna.storages.InMemoryStorage()
        >>> for name in ("churn-May", "churn-June", "fraud"):
        ...     study = optuna.create_study(study_name=name, storage=storage)
        ...     study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
        >>> [one.task for one in hbo.read_history(storage, studies="churn-*")]
        ['churn-May', 'churn-June']
    """
    settings = Settings(
        Columns(task, objective, order=order),
        None if direction is None else Direction.of(direction),
        studies,
        contexts,
        rename,
    )
    reader = Reader(drop_invalid, clip, "the history")
    search_space = None if space is None else to_search_space(space)
    return read_source(source, search_space, settings, reader)


def as_history(
    source: "Source | Sequence[Evaluations] | None",
    space: SearchSpace | None,
    direction: Direction | None,
) -> tuple[Evaluations, ...]:
    """Return a list of `Evaluations` as a tuple; read any other source like `read_history`.

    None stands for no evaluations. All settings of `read_history` but the space and the direction
    have their defaults.
    """
    if source is None:
        return ()
    if not isinstance(source, str) and isinstance(source, Sequence):
        evaluations = [item for item in source if isinstance(item, Evaluations)]
        if len(evaluations) == len(source):
            return tuple(evaluations)
    return read_source(
        source,
        space,
        Settings(direction=direction),
        Reader(drop_invalid=False, clip=False, source="the history"),
    )


def read_source(
    source: Source, space: SearchSpace | None, settings: Settings, reader: Reader
) -> tuple[Evaluations, ...]:
    """Read earlier evaluations, as `read_history` does.

    Args:
        source: The tables, studies or storages that hold the evaluations.
        space: The search space; None if it is that of the studies.
        settings: The settings of `read_history`, except `drop_invalid` and `clip`.
        reader: Reads the rows of each task, and collects what is wrong with them. It has the
            settings `drop_invalid` and `clip`.
    """
    opened = open_source(source, settings.studies)
    reader.source = _name_source(opened)
    direction = _choose_direction(opened, settings.direction)
    tasks = _split_by_task(opened, space, settings, reader)
    names = [task.rows.task for task in tasks]
    contexts: Mapping[str, Mapping[str, float]] = {
        name: task.context for name, task in zip(names, tasks, strict=True)
    }
    if settings.contexts is not None:
        # A study without a usable trial may have a context, too.
        study_names = [item.study.study_name for item in opened if isinstance(item, OpenedStudy)]
        contexts = check_contexts(settings.contexts, names, others=study_names)
    history: list[Evaluations | None] = []
    for task in tasks:
        context = contexts[task.rows.task]
        history.append(reader.read(task.rows, task.space, direction=direction, context=context))
    return reader.finish(history)


def read_surrogate_data(
    table: Table,
    space: SearchSpace,
    columns: Columns,
    *,
    direction: Direction,
    drop_invalid: bool = False,
) -> tuple[Evaluations, ...]:
    """Read a table of evaluations that a surrogate will be fitted to.

    Every row needs a value of the objective. Repeated evaluations of a configuration are kept.

    Args:
        table: The table.
        space: The search space.
        columns: Columns of the table.
        direction: Whether the objective is minimised or maximised.
        drop_invalid: Whether rows that cannot be used are left out, instead of being an error.

    Warns:
        HistoryWarning: The table has no column of tasks, and other columns that are not used.
    """
    reader = Reader(
        drop_invalid, clip=False, source=table.name, is_history=False, allows_failed=False
    )
    history = [
        reader.read(of_task.rows, space, direction=direction, context=of_task.context)
        for of_task in split_table(table, space, columns, reader)
    ]
    is_one_task = columns.task is None and TASK not in table.frame.columns
    if is_one_task and reader.ignored:
        names = join_words(map(repr, reader.ignored))
        warn(f"all rows are read as one task; if a column names the task, say so by task=: {names}")
    return reader.select_usable(history)


def _name_source(opened: Sequence[Table | OpenedStudy]) -> str:
    """Choose the words for a source in messages: the name of a single table, or a general noun."""
    tables = [item for item in opened if isinstance(item, Table)]
    if not tables:
        return "the studies"
    return tables[0].name if len(opened) == 1 else "the history"


def _choose_direction(
    opened: Sequence[Table | OpenedStudy], direction: Direction | None
) -> Direction:
    """Choose the direction of all earlier tasks: the given one, else that of the studies.

    Args:
        opened: The tables and studies.
        direction: The direction that the user gave; None if the user gave none.

    Raises:
        EvaluationsError: The directions differ; or there are tables, and `direction` is None.
    """
    studies = [item.study for item in opened if isinstance(item, OpenedStudy)]
    if len(studies) < len(opened) and direction is None:
        raise EvaluationsError("say whether the objective is to minimize or maximize: `direction`")

    word_of_study: dict[str, str] = {}
    for study in studies:
        if len(study.directions) == 1:  # studies of several objectives are refused later
            word_of_study[study.study_name] = study.direction.name.lower()
    words = set(word_of_study.values())
    if direction is not None:
        words.add(direction.value)
    if len(words) > 1:
        listing = ", ".join(f"{name!r} to {word}" for name, word in word_of_study.items())
        here = "" if direction is None else f"; the task at hand is to {direction.value}"
        raise EvaluationsError(
            f"studies must have the same direction, but got {listing}{here}; "
            'read_history(..., studies="NAME-*") and --studies choose some of them'
        )
    return Direction.of(words.pop()) if words else Direction.MINIMIZE


def _split_by_task(
    opened: Sequence[Table | OpenedStudy],
    space: SearchSpace | None,
    settings: Settings,
    reader: Reader,
) -> list[TaskRows]:
    """Split tables and studies by task, and make the names of the tasks unique.

    The tasks are in the order of the tables and studies that they are from.
    """
    studies = [item for item in opened if isinstance(item, OpenedStudy)]
    rows_of_studies = iter(_split_studies(studies, space, settings, reader))
    several_tables = len(opened) - len(studies) > 1
    tasks: list[TaskRows] = []
    for item in opened:
        if isinstance(item, Table):
            if space is None:
                raise EvaluationsError(f"say on which search space {item.name} was made: `space`")
            for of_task in split_table(
                item, space, settings.columns, reader, rename=settings.rename
            ):
                rows = of_task.rows
                if several_tables:
                    rows = replace(rows, where=[f"{where} of {item.name}" for where in rows.where])
                tasks.append(replace(of_task, rows=rows))
        else:
            of_study = next(rows_of_studies)
            if of_study is not None:
                tasks.append(of_study)
    return _tell_apart(tasks)


def _split_studies(
    studies: Sequence[OpenedStudy],
    space: SearchSpace | None,
    settings: Settings,
    reader: Reader,
) -> list[TaskRows | None]:
    """Convert the trials of each study to rows; None for a study without a complete trial."""
    if not studies:  # Optuna, which the next import needs, may not be installed
        return []
    from hpobench_ordered.tuning.reading.studies import split_studies

    return split_studies(studies, reader, space=space, rename=settings.rename)


def _tell_apart(tasks: Sequence[TaskRows]) -> list[TaskRows]:
    """Rename tasks that have the same name, by adding the storage or file that they are from.

    Raises:
        EvaluationsError: Tasks from the same place have the same name.
    """
    counts = Counter(task.rows.task for task in tasks)
    renamed: list[TaskRows] = []
    for task in tasks:
        name = task.rows.task
        is_repeated = counts[name] > 1 and task.origin != ""
        new_name = f"{name} of {task.origin}" if is_repeated else name
        renamed.append(replace(task, rows=replace(task.rows, task=new_name)))
    names = [task.rows.task for task in renamed]
    repeated = [repr(name) for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise EvaluationsError(f"several earlier tasks have the same name: {', '.join(repeated)}")
    return renamed
