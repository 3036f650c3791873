"""The one format of raw evaluations: a Parquet file with one row for each evaluation.

    task                    name of the task
    training                number of the training that the evaluation was read from; several
                            evaluations of a task may share it, such as one model after different
                            numbers of rounds
    config.<hyperparameter> native value, null where inactive
    value                   the objective, in its own units
    spread                  standard deviation over what the value is the mean of; null if unknown

and further columns, such as `seconds`. The file's metadata hold an `About` as JSON.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.data.raw_evaluations import RawEvaluations
from hpobench_ordered.data.tables import CONFIG_PREFIX, ColumnType, decode_table, write_table
from hpobench_ordered.errors import ArtifactError, EvaluationsError, UnknownNameError
from hpobench_ordered.space import Kind, Parameter, SearchSpace
from hpobench_ordered.tuning.reading.read import read_surrogate_data
from hpobench_ordered.tuning.reading.tables import Columns, Table

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    "task": ColumnType.TEXT,
    "training": ColumnType.INTEGER,
    "value": ColumnType.NUMBER,
    "spread": ColumnType.NUMBER,
}
"""What each column holds that every table has, beside those of hyperparameters."""
SECONDS = "seconds"
"""Column of the seconds that each evaluation took; not every table has it."""
_METADATA_KEY = b"hpobench_ordered"
"""Key of the `About` in a file's metadata."""


@dataclass(frozen=True)
class About:
    """Metadata of a table of raw evaluations."""

    benchmark: str
    source: str
    licence: str
    limits: tuple[str, ...] = ()
    contexts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Make the metadata from JSON; undoes `asdict`, but for tuples, which JSON makes lists."""
        limits = tuple(content.get("limits", ()))
        return cls(**{**content, "limits": limits})


@dataclass(frozen=True, eq=False)
class RawTable:
    """Raw evaluations of a benchmark."""

    about: About
    tasks: Mapping[str, RawEvaluations]
    seconds: Mapping[str, FloatArray] = field(default_factory=dict)
    """Seconds that each evaluation of a task took, by task; empty if the table does not say."""

    def select_tasks(self, names: Sequence[str]) -> "RawTable":
        """Return a table with some of the tasks, in the order that they have in this table.

        Raises:
            UnknownNameError: This table has no such task.
        """
        for name in names:
            if name not in self.tasks:
                raise UnknownNameError(
                    f"task with evaluations of {self.about.benchmark}", name, self.tasks
                )
        selected = {name: raw for name, raw in self.tasks.items() if name in names}
        seconds = {name: values for name, values in self.seconds.items() if name in names}
        return RawTable(self.about, selected, seconds)


def make_raw_frame(
    rows: Iterable[Mapping[str, Any]], space: SearchSpace, further_types: Mapping[str, str]
) -> "pd.DataFrame":
    """Make a frame of raw evaluations, whose columns have the types of the format.

    Args:
        rows: The evaluations, each as a value for each column.
        space: Search space of their configurations.
        further_types: Pandas' types of columns beyond those of the format, by column.
    """
    import pandas as pd

    types_of_config = {
        f"{CONFIG_PREFIX}{parameter.name}": _choose_pandas_type(parameter)
        for parameter in space.parameters
    }
    type_of_column = {
        "task": "object",
        "training": "int64",
        **types_of_config,
        "value": "float64",
        "spread": "float64",
        **further_types,
    }
    frame = pd.DataFrame.from_records(list(rows), columns=list(type_of_column))
    # Columns of objects, such as texts, stay as they are.
    types_to_set = {column: dtype for column, dtype in type_of_column.items() if dtype != "object"}
    frame = frame.astype(types_to_set)

    for parameter in space.parameters:
        types_of_choices = {type(choice) for choice in parameter.choices}
        if len(types_of_choices) > 1:  # a Parquet column has one type, so choices become texts
            column = f"{CONFIG_PREFIX}{parameter.name}"
            frame[column] = frame[column].map(str, na_action="ignore")
    return frame


def _choose_pandas_type(parameter: Parameter) -> str:
    """Choose pandas' type of a hyperparameter's column, which holds nulls where it is inactive."""
    if parameter.choices:
        return "object"
    # "int64" without a capital letter could not hold nulls.
    return "Int64" if parameter.kind is Kind.INTEGER else "float64"


def name_config_columns(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a configuration by their columns in a frame of raw evaluations."""
    return {f"{CONFIG_PREFIX}{name}": value for name, value in config.items()}


def write_raw(path: Path, frame: "pd.DataFrame", about: About) -> None:
    """Write raw evaluations and their metadata to a Parquet file, atomically."""
    import pyarrow as pa

    table = pa.Table.from_pandas(frame, preserve_index=False)
    about_as_json = json.dumps(asdict(about)).encode()
    metadata = {**(table.schema.metadata or {}), _METADATA_KEY: about_as_json}
    write_table(path, table.replace_schema_metadata(metadata))


def read_raw(path: Path, *, benchmark: str, space: SearchSpace) -> RawTable:
    """Read and check the raw evaluations of a benchmark, as `write_raw` writes them.

    Args:
        path: The file.
        benchmark: Name of the benchmark, which the file's metadata must state.
        space: Search space of the configurations.

    Raises:
        ArtifactError: The file holds no raw evaluations, those of another benchmark, or some that
            the space does not allow.
    """
    try:
        table = decode_table(path.read_bytes(), COLUMNS)
        metadata = table.schema.metadata or {}
        about = About.from_json(json.loads(metadata[_METADATA_KEY]))
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise ArtifactError(f"{path} is not a table of raw evaluations: {error!r}") from None
    if about.benchmark != benchmark:
        raise ArtifactError(f"{path} holds evaluations of {about.benchmark!r}, not {benchmark!r}")
    try:
        frame = table.to_pandas()
        return RawTable(about, code_tasks(frame, space), _read_seconds(frame))
    except ArtifactError as error:
        raise ArtifactError(f"{path}: {error}") from None


def _read_seconds(frame: "pd.DataFrame") -> dict[str, FloatArray]:
    """Read the seconds that each evaluation took, by task; empty without a column `seconds`."""
    if SECONDS not in frame:
        return {}
    return {
        str(task): seconds.to_numpy(dtype=np.float64)
        for task, seconds in frame.groupby("task")[SECONDS]
    }


def code_tasks(frame: "pd.DataFrame", space: SearchSpace) -> dict[str, RawEvaluations]:
    """Check a frame of raw evaluations, and code those of each task as arrays, by task.

    The reader is the same as for evaluations of users. The spread and the number of the training,
    which it does not know, are added.

    Raises:
        ArtifactError: The space does not allow some of the evaluations.
    """
    frame = frame.rename(columns=lambda column: column.removeprefix(CONFIG_PREFIX))
    try:
        evaluations_of_tasks = read_surrogate_data(
            Table(frame),
            space,
            Columns("task", "value"),
            direction=Direction.MINIMIZE,  # whatever the objective's, so that values stay as is
        )
    except EvaluationsError as error:
        raise ArtifactError(str(error)) from None

    spread = frame["spread"].to_numpy(dtype=np.float64)
    training = frame["training"].to_numpy(dtype=np.int64)
    rows_of_task = frame.groupby("task").indices  # the reader keeps the order of a task's rows
    raw_of_task = {}
    for evaluations in evaluations_of_tasks:
        rows = rows_of_task[evaluations.task]
        raw_of_task[evaluations.task] = RawEvaluations(
            evaluations.values, evaluations.objective, spread[rows], training[rows]
        )
    return raw_of_task
