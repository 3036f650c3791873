"""Where a search records its evaluations, and finds those of earlier tasks.

A recorder belongs to one task. It has what an interrupted search of the task has recorded, and
appends each new evaluation so that it is on disk when the call returns.
"""

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import chain, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpobench_ordered._typing import Config
from hpobench_ordered._wording import join_words
from hpobench_ordered.adapters._journal import as_json
from hpobench_ordered.adapters._optuna_space import distribution
from hpobench_ordered.adapters._rows import Reader
from hpobench_ordered.adapters._tables import Columns, read_table
from hpobench_ordered.core.extras import import_extra
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.errors import ExperimentError, StoreError
from hpobench_ordered.files.writing import write_atomically
from hpobench_ordered.space import SearchSpace, SpaceChange
from hpobench_ordered.space.differences import CHANGES_OF_RANGE

if TYPE_CHECKING:
    import pyarrow as pa
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial

SETTINGS_ENTRY = "hpobench_ordered:settings"
"""Attribute of a study, and entry of a Parquet file's metadata: the settings of a search."""
RESULTS_ATTRIBUTE = "hpobench_ordered:results"
"""Attribute of a trial: its configuration and the results of its folds."""
TASK_COLUMN, SCORE_COLUMN, RESULTS_COLUMN = "task", "score", "results"
"""Columns of a Parquet file beside those of the hyperparameters."""
SQLITE_SUFFIXES = (".db", ".sqlite", ".sqlite3")
JOURNAL_SUFFIXES = (".log", ".journal")


@dataclass(frozen=True)
class Evaluation:
    """A configuration that was cross-validated.

    Attributes:
        config: The configuration.
        folds: For each fold, its times in seconds and its scores, by the names that scikit-learn
            has for them; [] if every fold failed.
        score: What the search maximises, the mean over the folds; NaN if the evaluation failed.
    """

    config: Config
    folds: Sequence[Mapping[str, Any]]
    score: float

    @property
    def results(self) -> dict[str, Any]:
        """What is stored beside the score."""
        return as_json({"config": self.config, "folds": list(self.folds)})


class Recorder(ABC):
    """Records the evaluations of one task, and reads those of earlier tasks.

    Attributes:
        evaluations: What was recorded before, in the order of evaluation.
        settings: Settings of the search that made these evaluations; None if there are none.
    """

    evaluations: Sequence[Evaluation] = ()
    settings: dict[str, Any] | None = None

    @abstractmethod
    def read_earlier(self, space: SearchSpace) -> tuple[Evaluations, ...]:
        """Read the evaluations of the tasks that were begun before this one, oldest first."""

    @abstractmethod
    def begin(self, settings: Mapping[str, Any]) -> None:
        """Record the settings of a task without evaluations."""

    @abstractmethod
    def append(self, evaluation: Evaluation, space: SearchSpace) -> None:
        """Record an evaluation."""


class NoRecorder(Recorder):
    """Records nothing: the search forgets everything but its own attributes."""

    def read_earlier(self, space: SearchSpace) -> tuple[Evaluations, ...]:
        """Return no tasks."""
        return ()

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Do nothing."""

    def append(self, evaluation: Evaluation, space: SearchSpace) -> None:
        """Do nothing."""


class ParquetRecorder(Recorder):
    """Records in a Parquet file, one row an evaluation, which is rewritten with each of them.

    Columns are the task, every hyperparameter, the score, and the results of the folds as JSON.

    Raises:
        StoreError: It is no such file.
    """

    def __init__(self, path: Path, task: str) -> None:
        """Read the file if it exists: all rows, of which those of this task are `evaluations`."""
        self._path = path
        self._task = task
        self._settings_of_task: dict[str, Any] = {}
        self._rows: list[dict[str, Any]] = []
        if path.exists():
            self._read()
        self._version = self._find_version()

        own_rows = [row for row in self._rows if row[TASK_COLUMN] == task]
        self.evaluations = [self._read_evaluation(row) for row in own_rows]
        if self.evaluations:  # else the search is a new one, with settings of its own
            self.settings = self._settings_of_task.get(task)

    def read_earlier(self, space: SearchSpace) -> tuple[Evaluations, ...]:
        """Read the rows above the first one of this task.

        A task is read on the space of its own search if that differs from `space` in more than
        ranges of numbers. Rows out of range are left out with a warning.
        """
        rows_of_task: dict[str, list[dict[str, Any]]] = {}
        for row in takewhile(lambda row: row[TASK_COLUMN] != self._task, self._rows):
            rows_of_task.setdefault(row[TASK_COLUMN], []).append(row)

        reader = Reader(drop_invalid=True, clip=False, source=str(self._path))
        history: list[Evaluations | None] = []
        for task, rows in rows_of_task.items():
            # A task on which every evaluation failed, so that no row has a score, is left out.
            if any(row[SCORE_COLUMN] is not None for row in rows):
                space_of_task = self._choose_space(task, space)
                history += self._read_task(rows, space_of_task, reader)
        return reader.finish(history) if history else ()

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Record the settings; they are written with the first evaluation."""
        self._settings_of_task[self._task] = dict(settings)

    def append(self, evaluation: Evaluation, space: SearchSpace) -> None:
        """Write the file with one more row.

        Raises:
            StoreError: Another process has written to it.
        """
        was_changed = self._find_version() != self._version  # since this recorder last used it
        if was_changed:
            raise StoreError(
                f"another process writes to {self._path}; several at once need an Optuna storage, "
                "such as history='tuning.db'"
            )
        values = {name: evaluation.config.get(name) for name in space.names}
        row = {
            TASK_COLUMN: self._task,
            **values,
            SCORE_COLUMN: None if math.isnan(evaluation.score) else evaluation.score,
            RESULTS_COLUMN: json.dumps(evaluation.results),
        }
        self._rows.append(row)
        write_atomically(self._path, self._to_bytes())
        self._version = self._find_version()

    def _read(self) -> None:
        """Read all rows, and the settings of all tasks."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(BytesIO(self._path.read_bytes()))
        except pa.ArrowException as error:
            raise StoreError(f"{self._path} is no Parquet file: {error}") from None
        for column in (TASK_COLUMN, SCORE_COLUMN):
            if column not in table.column_names:
                columns = join_words(map(repr, table.column_names))
                raise StoreError(f"{self._path} has no column {column!r}, but {columns}")
        self._rows = table.to_pylist()
        metadata = table.schema.metadata or {}
        self._settings_of_task = json.loads(metadata.get(SETTINGS_ENTRY.encode(), b"{}"))

    def _read_evaluation(self, row: Mapping[str, Any]) -> Evaluation:
        """Read an evaluation of this task; a `StoreError` if another program has written it."""
        if row.get(RESULTS_COLUMN) is None:
            raise StoreError(_describe_foreign(self._task, self._path))
        results = json.loads(row[RESULTS_COLUMN])
        is_failed = row[SCORE_COLUMN] is None
        score = math.nan if is_failed else row[SCORE_COLUMN]
        return Evaluation(results["config"], results["folds"], score)

    def _choose_space(self, task: str, space: SearchSpace) -> SearchSpace:
        """The space to read a task on: `space` if it differs at most in ranges, else its own.

        The task's own space is among the settings of its search; a table from elsewhere has none.
        """
        if task not in self._settings_of_task:
            return space
        own_space = SearchSpace.from_json(self._settings_of_task[task]["space"])
        changes_by_parameter = SpaceChange(own_space, space).changes
        kinds_of_changes = set(chain(*changes_by_parameter.values()))
        differs_in_ranges_only = kinds_of_changes <= CHANGES_OF_RANGE
        return space if differs_in_ranges_only else own_space

    def _read_task(
        self, rows: Sequence[Mapping[str, Any]], space: SearchSpace, reader: Reader
    ) -> list[Evaluations | None]:
        """Read the rows of one task, as a list of one; other columns are those of other spaces."""
        import pandas as pd

        frame = pd.DataFrame(rows)
        needed = [TASK_COLUMN, *space.names, SCORE_COLUMN]
        # A column that is missing is reported by `read_table`.
        present = [name for name in needed if name in frame]
        return read_table(
            frame[present],
            space,
            Columns(TASK_COLUMN, SCORE_COLUMN),
            reader,
            direction=Direction.MAXIMIZE,
        )

    def _to_bytes(self) -> bytes:
        """The content of the file; missing cells are empty."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        names = dict.fromkeys(chain(*self._rows))  # each once, in order
        columns = {name: to_column([row.get(name) for row in self._rows]) for name in names}
        table = pa.table(columns).replace_schema_metadata(
            {SETTINGS_ENTRY: json.dumps(self._settings_of_task)}
        )
        buffer = BytesIO()
        pq.write_table(table, buffer)
        return buffer.getvalue()

    def _find_version(self) -> tuple[int, ...]:
        """What changes whenever the file is written; () if there is none.

        A file that is rewritten is a new one in its place, with another inode.
        """
        if not self._path.exists():
            return ()
        status = self._path.stat()
        return (status.st_ino, status.st_mtime_ns, status.st_size)


def to_column(values: Sequence[object]) -> "pa.Array":
    """Convert values to a column; to text if they are of several types, such as 0.5 and "sqrt"."""
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values])


class OptunaRecorder(Recorder):
    """Records in an Optuna storage: a study for each task, a trial for each evaluation.

    Raises:
        MissingExtraError: Optuna is not installed.
        StoreError: The study of the task is another one's.
    """

    def __init__(self, storage: "str | BaseStorage", task: str) -> None:
        """Open the study named like the task, or create it, and read its trials."""
        import_extra("optuna", package="optuna", extra="optuna", purpose="a history in a storage")
        import optuna

        from hpobench_ordered.adapters.optuna.methods import quiet

        self._task = task
        with quiet():
            self._study = optuna.create_study(
                study_name=task, storage=storage, direction="maximize", load_if_exists=True
            )
        if self._study.direction is not optuna.study.StudyDirection.MAXIMIZE:
            raise StoreError(_describe_foreign(task, "the storage"))
        trials = self._study.get_trials(deepcopy=False)
        self.evaluations = [self._read_evaluation(trial) for trial in trials]
        if self.evaluations:  # else the search is a new one, with settings of its own
            self.settings = self._study.user_attrs.get(SETTINGS_ENTRY)

    def read_earlier(self, space: SearchSpace) -> tuple[Evaluations, ...]:
        """Read the studies with a complete trial whose first trial started before this one's.

        Trials out of range are left out with a warning.
        """
        from optuna.trial import TrialState

        from hpobench_ordered.adapters.optuna.studies import history_from_studies, load_studies

        studies = load_studies(self._study._storage, "*")  # oldest first
        earlier = []
        for study in takewhile(lambda study: study.study_name != self._task, studies):
            if study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
                earlier.append(study)
        if not earlier:
            return ()
        return history_from_studies(earlier, space=space, drop_invalid=True)

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Record the settings."""
        self._study.set_user_attr(SETTINGS_ENTRY, dict(settings))

    def append(self, evaluation: Evaluation, space: SearchSpace) -> None:
        """Add a finished trial, a failed one if there is no score."""
        from optuna.trial import TrialState, create_trial

        from hpobench_ordered.adapters.optuna.methods import quiet

        params: Config = {}
        for name in space.names:
            if name in evaluation.config:  # it is active
                params[name] = evaluation.config[name]
        is_failed = math.isnan(evaluation.score)
        trial = create_trial(
            state=TrialState.FAIL if is_failed else TrialState.COMPLETE,
            value=None if is_failed else evaluation.score,
            params=params,
            distributions={name: distribution(space[name]) for name in params},
            user_attrs={RESULTS_ATTRIBUTE: evaluation.results},
        )
        with quiet():
            self._study.add_trial(trial)

    def _read_evaluation(self, trial: "FrozenTrial") -> Evaluation:
        """Read an evaluation of this task; a `StoreError` if another program has made the trial."""
        if RESULTS_ATTRIBUTE not in trial.user_attrs:
            raise StoreError(_describe_foreign(self._task, "the storage"))
        results = trial.user_attrs[RESULTS_ATTRIBUTE]
        score = math.nan if trial.value is None else trial.value
        return Evaluation(results["config"], results["folds"], score)


def open_recorder(history: str | os.PathLike[str] | None, task: str | None) -> Recorder:
    """Open the recorder of a task.

    Args:
        history: A Parquet file, a file of Optuna's SQLite or journal storage, each known by its
            suffix, or the URL of an Optuna storage; None to record nothing.
        task: Name of the task; it must have one if anything is recorded.

    Raises:
        ExperimentError: No task, or another suffix.
        MissingExtraError: Optuna is needed and not installed.
        StoreError: The file is another one.
    """
    if history is None:
        return NoRecorder()
    if task is None:
        raise ExperimentError(
            f"history={str(history)!r} needs the name of this task, such as task='2026-07'"
        )
    text = os.fspath(history)
    if "://" in text:
        return OptunaRecorder(text, task)
    path = Path(text)
    if path.suffix == ".parquet":
        return ParquetRecorder(path, task)
    if path.suffix in SQLITE_SUFFIXES:
        return OptunaRecorder(f"sqlite:///{path}", task)
    if path.suffix in JOURNAL_SUFFIXES:
        return OptunaRecorder(_open_journal(path), task)
    suffixes = ", ".join([".parquet", *SQLITE_SUFFIXES, *JOURNAL_SUFFIXES])
    raise ExperimentError(
        f"history must be a file that ends in one of {suffixes}, or the URL of an Optuna storage, "
        f"but got {text!r}"
    )


def _open_journal(path: Path) -> "BaseStorage":
    """Open a journal storage of Optuna."""
    backends = import_extra(
        "optuna.storages.journal",
        package="optuna",
        extra="optuna",
        purpose="a history in a journal",
    )
    from optuna.storages import JournalStorage

    return JournalStorage(backends.JournalFileBackend(str(path)))


def _describe_foreign(task: str, place: object) -> str:
    """Say that a task was not evaluated by a search of this kind, so that it cannot go on."""
    return (
        f"task {task!r} in {place} was not evaluated by an OrderedSearchCV; choose another name "
        "for this one"
    )
