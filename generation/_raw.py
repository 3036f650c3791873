"""The one format of raw evaluations: a parquet file, one row per evaluation.

    task                    name of the task
    training                number of the training that the evaluation was read from; several
                            evaluations of a task may share it, such as one model after different
                            numbers of rounds
    config.<hyperparameter> native value, null where inactive
    value                   the objective, in its own units
    spread                  standard deviation over what the value is the mean of; null if unknown

and further columns, such as `seconds`. The file's metadata hold an `About` as JSON.
"""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hpobench_ordered.adapters._rows import Reader
from hpobench_ordered.adapters._tables import Columns, read_table
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.errors import ArtifactError, EvaluationsError, UnknownNameError
from hpobench_ordered.files.raw_evaluations import RawEvaluations
from hpobench_ordered.files.writing import write_atomically
from hpobench_ordered.space import Kind, Parameter, SearchSpace

if TYPE_CHECKING:
    import pandas as pd

PREFIX = "config."
_METADATA = b"hpobench_ordered"


@dataclass(frozen=True)
class About:
    """Metadata of a table of raw evaluations."""

    benchmark: str
    source: str
    licence: str
    limits: tuple[str, ...] = ()
    contexts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """The inverse of `asdict`."""
        return cls(**{**content, "limits": tuple(content.get("limits", ()))})


@dataclass(frozen=True, eq=False)
class RawTable:
    """Raw evaluations of a benchmark."""

    about: About
    tasks: Mapping[str, RawEvaluations]

    def only(self, names: Sequence[str]) -> "RawTable":
        """The given tasks, in the table's order."""
        for name in names:
            if name not in self.tasks:
                raise UnknownNameError(
                    f"task with evaluations of {self.about.benchmark}", name, self.tasks
                )
        return RawTable(self.about, {n: raw for n, raw in self.tasks.items() if n in names})


def raw_frame(
    rows: Iterable[Mapping[str, Any]], space: SearchSpace, further: Mapping[str, str]
) -> "pd.DataFrame":
    """Make a table with one row per evaluation; `further` are the types of further columns."""
    import pandas as pd

    types = {
        "task": "object",
        "training": "int64",
        **{f"{PREFIX}{parameter.name}": _dtype(parameter) for parameter in space.parameters},
        "value": "float64",
        "spread": "float64",
        **further,
    }
    frame = pd.DataFrame.from_records(list(rows), columns=list(types))
    frame = frame.astype({column: kind for column, kind in types.items() if kind != "object"})
    for parameter in space.parameters:
        if len({type(choice) for choice in parameter.choices}) > 1:  # a column has one type
            column = f"{PREFIX}{parameter.name}"
            frame[column] = frame[column].map(str, na_action="ignore")
    return frame


def _dtype(parameter: Parameter) -> str:
    if parameter.choices:
        return "object"
    return "Int64" if parameter.kind is Kind.INTEGER else "float64"


def configured(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with the names of its columns."""
    return {f"{PREFIX}{name}": value for name, value in config.items()}


def write_raw(path: Path, frame: "pd.DataFrame", about: About) -> None:
    """Write raw evaluations atomically; rows are as described above."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(frame, preserve_index=False)
    described = {**(table.schema.metadata or {}), _METADATA: json.dumps(asdict(about)).encode()}
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(described), buffer)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, buffer.getvalue())
    except OSError as error:
        raise ArtifactError(f"cannot write the evaluations {path}: {error}") from None


def read_raw(path: Path, *, benchmark: str, space: SearchSpace) -> RawTable:
    """Read and check raw evaluations of a benchmark."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
        about = About.from_json(json.loads((table.schema.metadata or {})[_METADATA]))
    except (OSError, pa.ArrowException, KeyError, ValueError, TypeError) as error:
        raise ArtifactError(f"{path} is not a table of raw evaluations: {error!r}") from None
    if about.benchmark != benchmark:
        raise ArtifactError(f"{path} holds evaluations of {about.benchmark!r}, not {benchmark!r}")
    try:
        return RawTable(about, coded_tasks(table.to_pandas(), space))
    except ArtifactError as error:
        raise ArtifactError(f"{path}: {error}") from None


def coded_tasks(frame: "pd.DataFrame", space: SearchSpace) -> dict[str, RawEvaluations]:
    """Check and code the rows of a table by task, as `from_evaluations` does."""
    named = frame.rename(columns=lambda column: column.removeprefix(PREFIX))
    known = {PREFIX + name for name in (*space.names, *space.constants)}
    reader = Reader(drop_invalid=False, clip=False, source="the table", allows_failed=False)
    if unknown := [c for c in frame if c.startswith(PREFIX) and c not in known]:
        raise ArtifactError(f"columns of unknown hyperparameters: {', '.join(unknown)}")
    try:
        columns, of = Columns("task", "value"), Direction.MINIMIZE  # objectives stay as they are
        tasks = reader.usable(read_table(named, space, columns, reader, direction=of))
    except EvaluationsError as error:
        raise ArtifactError(str(error)) from None
    for name in ("spread", "training"):
        if name not in named:
            raise ArtifactError(f"the table has no column {name!r}")
    if not named["training"].notna().all():
        raise ArtifactError("column 'training' must hold whole numbers")
    rows = named.groupby("task").indices
    return {
        one.task: RawEvaluations(
            one.values,
            one.objective,
            named["spread"].to_numpy(dtype=np.float64)[rows[one.task]],
            named["training"].to_numpy(dtype=np.int64)[rows[one.task]],
        )
        for one in tasks
    }
