"""Tables of evaluations as Parquet files: their only writer and their only reader.

Runs, reference results and raw evaluations are such tables. A row is an evaluation: it has what
identifies it (such as the method), its `task` and `trial`, the configuration in columns config.NAME
(null where a hyperparameter is inactive), and its `value`. The module of each kind of table lists
all of its columns.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpobench_ordered.data.writing import write_atomically

if TYPE_CHECKING:
    import pyarrow as pa

CONFIG_PREFIX = "config."
"""Beginning of the name of a hyperparameter's column."""

COST = "cost"
"""Column of the seconds that evaluations take; only runs on benchmarks with costs have it."""


class ColumnType(Enum):
    """What a column holds."""

    TEXT = "text"
    INTEGER = "integers"
    NUMBER = "floating-point numbers"


def write_table(path: Path, table: "pa.Table") -> None:
    """Write a table to a file atomically; its folder is created if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, encode_table(table))


def encode_table(table: "pa.Table") -> bytes:
    """Encode a table, with its metadata, as the content of a Parquet file that is read fast.

    The same table gives the same bytes. The file has checksums, so that damage is noticed.
    """
    return _encode(table, write_page_checksum=True)


def encode_small_table(table: "pa.Table", *, distinct: Collection[str]) -> bytes:
    """Encode a table in as few bytes as possible, which takes longer.

    Args:
        table: The table.
        distinct: Names of the columns whose numbers are mostly different. All first bytes of such
            numbers are stored together, then all second bytes and so on, which compresses better.
    """
    return _encode(
        table,
        compression="zstd",
        compression_level=19,
        store_schema=False,
        use_dictionary=[name for name in table.column_names if name not in distinct],
        column_encoding=dict.fromkeys(distinct, "BYTE_STREAM_SPLIT"),
    )


def _encode(table: "pa.Table", **options: Any) -> bytes:
    """Encode a table as a Parquet file, with options of `pyarrow.parquet.write_table`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, write_statistics=False, **options)
    return bytes(buffer.getvalue())


def decode_table(
    content: bytes, columns: Mapping[str, ColumnType], names: Sequence[str] | None = None
) -> "pa.Table":
    """Decode the content of a Parquet file, and check its columns.

    Args:
        content: The content of the file.
        columns: Columns that the file must have: the type of each by its name.
        names: Names of the columns to return; default: all columns of the file.

    Raises:
        ValueError: The content is not such a file; the message says why.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # For small files this is several times faster than `pyarrow.parquet.read_table`.
        file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
        schema = file.schema_arrow
        for name, column_type in columns.items():
            if name not in schema.names:
                raise ValueError(f"it has no column {name!r}")
            if type_of_column(schema.field(name).type) is not column_type:
                raise ValueError(f"the column {name!r} must hold {column_type.value}")
        table = file.read(names, use_threads=False)
        table.validate(full=True)  # checks the bytes, such as whether texts are valid UTF-8
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"it is not a Parquet file that can be read: {error}") from None
    return table


def type_of_column(data_type: "pa.DataType") -> ColumnType | None:
    """Return what a column of an Arrow type holds; None for types that no table here has."""
    import pyarrow as pa

    if pa.types.is_dictionary(data_type):  # a compressed column: indices into a list of values
        data_type = data_type.value_type
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
        return ColumnType.TEXT
    if pa.types.is_signed_integer(data_type):
        return ColumnType.INTEGER
    if pa.types.is_float64(data_type):
        return ColumnType.NUMBER
    return None
