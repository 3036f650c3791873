"""Parquet files of others: read only if their columns have the expected names and kinds."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAX_ROWS = 100_000_000
"""Most rows of a file: few compressed bytes may stand for any number."""

CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that terminals would interpret, and those that are no text; not tabs, line breaks."""


class ColumnType(Enum):
    """What a column holds."""

    TEXT = "text"
    INTEGER = "integers"
    NUMBER = "floating-point numbers"


@dataclass(frozen=True, slots=True)
class Column:
    """What a column must hold."""

    kind: ColumnType
    may_be_null: bool = False
    may_be_absent: bool = False


def open_parquet(data: bytes, columns: Mapping[str, Column]) -> "pq.ParquetFile":
    """Open a file that must have these columns, of these kinds.

    Raises:
        ValueError: It is not such a file; the message says why.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _arrow_errors_as_value_errors():
        # For small files this is several times faster than `pyarrow.parquet.read_table`.
        file = pq.ParquetFile(pa.BufferReader(data))
        schema = file.schema_arrow
    if file.metadata.num_rows > MAX_ROWS:
        raise ValueError(f"it has more than {MAX_ROWS:,} rows")
    if len(set(schema.names)) < len(schema.names):
        raise ValueError("two columns have the same name")
    for name, column in columns.items():
        if name not in schema.names:
            if column.may_be_absent:
                continue
            raise ValueError(f"it has no column {name!r}")
        if type_of_column(schema.field(name).type) is not column.kind:
            raise ValueError(f"the column {name!r} must hold {column.kind.value}")
    return file


def read_columns(
    file: "pq.ParquetFile", columns: Mapping[str, Column], names: Sequence[str]
) -> "pa.Table":
    """Read columns of an open file.

    Args:
        file: The file.
        columns: What each column must hold, by name.
        names: Names of the columns to read.

    Raises:
        ValueError: A column has missing values that it may not have, or control characters.
    """
    with _arrow_errors_as_value_errors():
        table = file.read(list(names), use_threads=False)
    for name in names:
        column = columns[name]
        values = table[name]
        if values.null_count and not column.may_be_null:
            raise ValueError(f"the column {name!r} has missing values")
        if column.kind is ColumnType.TEXT:
            _check_texts(name, values)
    return table


def type_of_column(data_type: "pa.DataType") -> ColumnType | None:
    """What a column of an Arrow type holds; None for types that are not expected."""
    import pyarrow as pa

    if pa.types.is_dictionary(data_type):  # the column holds indices into a list of its values
        data_type = data_type.value_type
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
        return ColumnType.TEXT
    if pa.types.is_signed_integer(data_type):
        return ColumnType.INTEGER
    if pa.types.is_float64(data_type):
        return ColumnType.NUMBER
    return None


def _check_texts(name: str, values: "pa.ChunkedArray") -> None:
    """Raise a `ValueError`, which names the column, if one of its texts has control characters."""
    for text in values.unique().to_pylist():
        if text is not None and CONTROL_CHARACTERS.search(text):
            raise ValueError(f"the column {name!r} has control characters")


@contextmanager
def _arrow_errors_as_value_errors() -> Iterator[None]:
    """Turn pyarrow's errors in a block that reads a file into a `ValueError`.

    The file comes from elsewhere and may have any content, so any of these errors may occur.
    """
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"it is not a Parquet file that can be read: {error}") from None
