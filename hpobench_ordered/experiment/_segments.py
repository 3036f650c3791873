"""Files of a store that hold runs: one run each, or many folded together.

Both are parquet with one row a trial, the rows of a run next to each other. The metadata of the
schema say which runs a file holds; a folded file also has a column "key".
"""

import hashlib
import json
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpobench_ordered.errors import StoreError

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 3
RUN_METADATA = b"hpobench_ordered"
KEY = "key"
CELL_COLUMNS = ("benchmark", "surrogate", "method", "seed", "protocol")
LARGEST_METADATA = 256 * 2**20
"""Bytes of metadata a file may announce: far more than the largest folded file has."""


@cache
def package_version() -> str:
    """Version of this package; looking it up takes longer than reading a run."""
    return version("hpobench-ordered")


@dataclass(frozen=True)
class Segment:
    """Runs as they are in one file, in the order of its rows.

    Attributes:
        path: The file.
        cells: What identifies each run, by key.
        rows: Number of rows of each run, in the same order.
    """

    path: Path
    cells: Mapping[str, Mapping[str, Any]]
    rows: tuple[int, ...]

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Keys of the runs."""
        return tuple(self.cells)


def run_metadata(cell: Mapping[str, Any]) -> dict[bytes, bytes]:
    """Metadata of the file of one run."""
    content = {**cell, "format": FORMAT, "version": package_version()}
    return {RUN_METADATA: json.dumps(content, sort_keys=True).encode()}


def encode_run(table: "pa.Table") -> bytes:
    """Encode one run; the same run gives the same bytes."""
    return _encode(table, compression="lz4")


def encode_folded(
    tables: "Mapping[str, pa.Table]", cells: Mapping[str, Mapping[str, Any]]
) -> bytes:
    """Encode many runs with the same columns.

    Args:
        tables: Runs by key.
        cells: What identifies each, by key.
    """
    import pyarrow as pa

    joined = pa.concat_tables(table.replace_schema_metadata() for table in tables.values())
    rows = [table.num_rows for table in tables.values()]
    keys = pa.DictionaryArray.from_arrays(
        pa.array([i for i, n in enumerate(rows) for _ in range(n)], pa.int32()), list(tables)
    )
    content = {
        "format": FORMAT,
        "version": package_version(),
        "runs": [{KEY: key, "rows": n, **cells[key]} for key, n in zip(tables, rows, strict=True)],
    }
    joined = joined.add_column(0, KEY, keys)
    return _encode(
        joined.replace_schema_metadata({RUN_METADATA: json.dumps(content).encode()}),
        compression="zstd",
    )


def folded_name(keys: Iterable[str]) -> str:
    """File name of these runs folded together."""
    return f"{hashlib.sha256(' '.join(sorted(keys)).encode()).hexdigest()[:20]}.parquet"


def describe_segment(path: Path) -> Segment:
    """Read which runs a file holds.

    Raises:
        FileNotFoundError: The file is not there any more.
        StoreError: It is damaged, or of another version.
    """
    schema, num_rows = _schema(path)
    return _segment(path, schema, num_rows)


def load_segment(path: Path, columns: Sequence[str] | None = None) -> "tuple[Segment, pa.Table]":
    """Read runs.

    Args:
        path: The file.
        columns: The columns to read; all but the key without.

    Raises:
        FileNotFoundError: The file is not there any more.
        StoreError: It is damaged, or of another version.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # For small files this is several times faster than `read_table`.
        with pq.ParquetFile(path, **_LIMITS) as file:
            wanted = columns or [name for name in file.schema_arrow.names if name != KEY]
            table = file.read(list(wanted), use_threads=False)
            missing = [name for name in wanted if name not in table.column_names]
    except FileNotFoundError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _damaged(path, error) from None
    if missing:
        raise StoreError(f"{path} is not a run: it has no column {missing[0]!r}")
    return _segment(path, table.schema, table.num_rows), table


def run_tables(segment: Segment, table: "pa.Table") -> "dict[str, pa.Table]":
    """Take runs apart that were read together, by key."""
    tables, start = {}, 0
    bare = table.replace_schema_metadata()
    for key, rows in zip(segment.keys, segment.rows, strict=True):
        tables[key] = bare.slice(start, rows)
        start += rows
    return tables


# -- internals -------------------------------------------------------------------------------------

_LIMITS: dict[str, Any] = {
    "thrift_string_size_limit": LARGEST_METADATA,
    "thrift_container_size_limit": 10_000_000,
}


def _encode(table: "pa.Table", *, compression: str) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression=compression)
    return bytes(buffer.getvalue().to_pybytes())


def _schema(path: Path) -> "tuple[pa.Schema, int]":
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, **_LIMITS) as file:
            return file.schema_arrow, file.metadata.num_rows
    except FileNotFoundError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> StoreError:
    return StoreError(f"{path} is damaged: {error}; delete it and run again")


def _segment(path: Path, schema: "pa.Schema", num_rows: int) -> Segment:
    try:
        content = json.loads((schema.metadata or {})[RUN_METADATA])
        check_version(path, content.get("format", 1), content["version"])
        runs = content.get("runs", [{**content, KEY: path.stem, "rows": num_rows}])
        cells = {run[KEY]: {name: run[name] for name in (*CELL_COLUMNS, "code")} for run in runs}
        rows = tuple(operator.index(run["rows"]) for run in runs)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        raise StoreError(f"{path} is not a run: it does not say what it belongs to") from None
    if sum(rows) != num_rows or len(cells) != len(runs) or any(n < 0 for n in rows):
        raise StoreError(f"{path} is damaged: it does not hold the runs it says")
    return Segment(path, cells, rows)


def check_version(path: Path, written_format: object, written_by: object) -> None:
    """Refuse what another version wrote.

    Raises:
        StoreError: It did.
    """
    here = package_version()
    if (written_format, written_by) != (FORMAT, here):
        raise StoreError(
            f"{path} was written by version {written_by} (store format {written_format}), this is "
            f"version {here} (format {FORMAT}): results of two versions are not mixed; choose "
            "another folder"
        )
