"""The one format of raw evaluations: a parquet file, one row an evaluation.

    task                    name of the task
    training                number of the training that the evaluation was read from; several
                            evaluations of a task may share it, such as one model after different
                            numbers of rounds
    config.<hyperparameter> native value, null where inactive
    value                   the objective, in its own units
    spread                  standard deviation over what the value is the mean of; null if unknown

and whatever further columns, such as `seconds`. The file's metadata hold, as JSON, what is said of
them (`About`).
"""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray
from hpobench_ordered.errors import ArtifactError, InvalidConfigError, UnknownNameError
from hpobench_ordered.files import write_atomically
from hpobench_ordered.raw_evaluations import RawEvaluations
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter

if TYPE_CHECKING:
    import pandas as pd

PREFIX = "config."
_METADATA = b"hpobench_ordered"
_FIXED = ("task", "training", "value", "spread")


@dataclass(frozen=True)
class About:
    """What is said of a table of raw evaluations.

    Attributes:
        benchmark: Name of the benchmark.
        source: Where the evaluations come from, in words.
        licence: Their licence.
        limits: What a user should know of them, one sentence each.
        contexts: What is known of each task beforehand, by the task's name.
        dropped: Numbers of evaluations that were left out, by the reason.
        versions: Versions of the software that made them, by package.
    """

    benchmark: str
    source: str
    licence: str
    limits: tuple[str, ...] = ()
    contexts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read what `asdict` gives."""
        return cls(**{**content, "limits": tuple(content.get("limits", ()))})


@dataclass(frozen=True, eq=False)
class RawTable:
    """Raw evaluations of a benchmark.

    Attributes:
        about: What is said of them.
        tasks: Evaluations by the task's name, in the order of their first rows.
    """

    about: About
    tasks: Mapping[str, RawEvaluations]

    def only(self, names: Sequence[str]) -> "RawTable":
        """The tasks of these names, in the table's order.

        Raises:
            UnknownNameError: There is no such task.
        """
        for name in names:
            if name not in self.tasks:
                raise UnknownNameError(
                    f"task with evaluations of {self.about.benchmark}", name, self.tasks
                )
        return RawTable(self.about, {n: found for n, found in self.tasks.items() if n in names})


def write_raw(path: Path, frame: "pd.DataFrame", about: About) -> None:
    """Write raw evaluations; the file appears as a whole.

    Args:
        path: The file; its folder is made if need be.
        frame: Rows as described above.
        about: What is said of them.

    Raises:
        ArtifactError: The file cannot be written.
    """
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
    """Read raw evaluations and check every one of them.

    Args:
        path: The file.
        benchmark: Name of the benchmark that they should be of.
        space: Its search space.

    Raises:
        ArtifactError: No such file, or of another format or benchmark; a column is missing; or some
            configurations or values are not allowed, of which the message says how many.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
        about = About.from_json(json.loads((table.schema.metadata or {})[_METADATA]))
    except (OSError, pa.ArrowException, KeyError, ValueError, TypeError) as error:
        raise ArtifactError(f"{path} is no table of raw evaluations: {error!r}") from None
    if about.benchmark != benchmark:
        raise ArtifactError(f"{path} holds evaluations of {about.benchmark!r}, not {benchmark!r}")
    try:
        return RawTable(about, coded_tasks(table.to_pandas(), space))
    except ArtifactError as error:
        raise ArtifactError(f"{path}: {error}") from None


def coded_tasks(frame: "pd.DataFrame", space: SearchSpace) -> dict[str, RawEvaluations]:
    """Check the rows of a table and code them, by the task's name.

    Raises:
        ArtifactError: A column is missing, or some configurations or values are not allowed.
    """
    _check_columns(list(frame.columns), space)
    values = _coded(frame, space)
    objective = _numbers(frame, "value")
    spread = _numbers(frame, "spread", may_lack=True)
    training = _numbers(frame, "training").astype(np.int64)
    nameless = frame["task"].isna().to_numpy()
    if nameless.any() or not len(frame):
        raise ArtifactError(f"task: {_count(nameless)} are null" if len(frame) else "no rows")
    names = frame["task"].astype(str)
    found = {}
    for name in names.unique():
        rows = (names == name).to_numpy()
        found[name] = RawEvaluations(values[rows], objective[rows], spread[rows], training[rows])
    return found


def _check_columns(columns: Sequence[str], space: SearchSpace) -> None:
    wanted = [*_FIXED, *(f"{PREFIX}{name}" for name in space.names)]
    missing = [column for column in wanted if column not in columns]
    unknown = [c for c in columns if c.startswith(PREFIX) and c not in wanted]
    if missing:
        raise ArtifactError(f"columns are missing: {', '.join(missing)}")
    if unknown:
        raise ArtifactError(f"columns of unknown hyperparameters: {', '.join(unknown)}")


def _numbers(frame: "pd.DataFrame", column: str, *, may_lack: bool = False) -> FloatArray:
    """A column of finite numbers, shape (n,); NaN where null if it may lack some."""
    import pandas as pd

    numbers: FloatArray = pd.to_numeric(frame[column], errors="coerce").to_numpy(
        np.float64, na_value=np.nan
    )
    bad = ~np.isfinite(numbers)
    if may_lack:
        bad &= frame[column].notna().to_numpy()
    if bad.any():
        raise ArtifactError(f"{column}: {_count(bad)} are not finite numbers")
    return numbers


def _coded(frame: "pd.DataFrame", space: SearchSpace) -> FloatArray:
    """Configurations as coded by the space, shape (n, d).

    Raises:
        ArtifactError: Values are missing, not allowed, or given where they are inactive.
    """
    columns = [frame[f"{PREFIX}{parameter.name}"] for parameter in space.parameters]
    pairs = zip(space.parameters, columns, strict=True)
    values = np.stack([_code(parameter, column) for parameter, column in pairs], axis=1)
    active = space.active(values)
    for j, parameter in enumerate(space.parameters):
        is_null = np.isnan(values[:, j])
        wrong = active[:, j] & ~is_null & ~parameter.allows(values[:, j])
        if wrong.any():
            example = columns[j].iloc[int(np.argmax(wrong))]
            raise ArtifactError(
                f"{PREFIX}{parameter.name}: {_count(wrong)} are not {parameter.describe()}, "
                f"such as {example}"
            )
        for bad, what in (
            (active[:, j] & is_null, "are null where the hyperparameter is active"),
            (~active[:, j] & ~is_null, "are given where the hyperparameter is inactive"),
        ):
            if bad.any():
                raise ArtifactError(f"{PREFIX}{parameter.name}: {_count(bad)} {what}")
    return values


def _code(parameter: Parameter, column: "pd.Series[Any]") -> FloatArray:
    """Coded values of a column, shape (n,); NaN where null, infinite where not allowed."""
    if parameter.choices or column.dtype.kind not in "fiu":
        codes = {value: _code_or_infinity(parameter, value) for value in column.dropna().unique()}
        column = column.map(codes)
    coded: FloatArray = column.to_numpy(np.float64, na_value=np.nan)
    return coded


def _code_or_infinity(parameter: Parameter, value: Any) -> float:
    try:
        return parameter.code(value)
    except InvalidConfigError:
        return np.inf


def _count(bad: BoolArray) -> str:
    return f"{int(bad.sum())} of {len(bad)} values"
