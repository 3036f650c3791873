"""Files of finished runs: Parquet, one row a trial, under a name that tells their content.

    runs/KEY-HASH.parquet   one run
    packed/HASH.parquet     many runs with the same columns, one after the other

HASH is the beginning of the SHA-256 of the file. It is checked before anything is parsed: what was
changed by a failing disk or an interrupted copy is noticed, whichever bit it is. The metadata of
the schema say which runs a file holds, and the format.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment._files import content_hash, read_checked
from hpobench_ordered.experiment.plan import IDENTITY

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

FORMAT = 4
METADATA = b"hpobench_ordered"
KEY_LENGTH, HASH_LENGTH = 20, 16


@dataclass(frozen=True, eq=False, slots=True)
class Run:
    """A finished run.

    Attributes:
        key: Its key.
        cell: What identifies it, as `Cell.describe` gives it.
        version: Version of the package that made it.
        trials: One row a trial, without metadata.
    """

    key: str
    cell: Mapping[str, Any]
    version: str
    trials: "pa.Table"

    def digest(self) -> str:
        """Hash of all values: the same wherever the run was made, and in whatever file it is."""
        total = hashlib.sha256(f"{self.key} {self.trials.schema}".encode())
        for column in self.trials.columns:
            has_nulls = column.null_count > 0  # three times faster where there are none
            valid = column.is_valid() if has_nulls else np.ones(len(column), dtype=bool)
            total.update(np.asarray(valid).tobytes())
            if str(column.type) == "string":
                total.update(json.dumps(column.to_pylist()).encode())
            else:
                total.update(np.asarray(column.fill_null(0) if has_nulls else column).tobytes())
        return total.hexdigest()


@cache
def package_version() -> str:
    """Version of this package."""
    return version("hpobench-ordered")


def other_format(path: Path, written: object) -> StoreError:
    """The error for what is in another format than this version reads."""
    return StoreError(
        f"{path} is in store format {written!r}, this is version {package_version()} of "
        f"hpobench-ordered with format {FORMAT}: choose another folder, or use the version that "
        "wrote it"
    )


def run_metadata(cell: Mapping[str, Any]) -> dict[bytes, bytes]:
    """Metadata of the table of one run, from what `Cell.describe` gives."""
    content = {**cell, "format": FORMAT, "version": package_version()}
    return {METADATA: json.dumps(content, sort_keys=True).encode()}


def encode_run(key: str, table: "pa.Table") -> tuple[str, bytes]:
    """Name and content of the file of one run; the same run gives the same bytes."""
    data = _encode(table, compression="lz4")
    return f"{key}-{content_hash(data, HASH_LENGTH)}.parquet", data


def encode_packed(runs: Sequence[Run]) -> tuple[str, bytes]:
    """Name and content of a file of many runs with the same columns."""
    import pyarrow as pa

    described = [
        {**r.cell, "key": r.key, "version": r.version, "rows": r.trials.num_rows} for r in runs
    ]
    content = json.dumps({"format": FORMAT, "runs": described}).encode()
    joined = pa.concat_tables(run.trials for run in runs)
    data = _encode(joined.replace_schema_metadata({METADATA: content}), compression="zstd")
    return f"{content_hash(data, HASH_LENGTH)}.parquet", data


def described_runs(path: Path) -> dict[str, dict[str, Any]]:
    """Read what identifies the runs in a file, by key."""
    _, runs = _open(path)
    return {run["key"]: {name: run[name] for name in IDENTITY} for run in runs}


def load_runs(path: Path, columns: Sequence[str] | None = None) -> Iterator[Run]:
    """Read the runs in a file with these columns, by default all."""
    file, runs = _open(path)
    table, start = file.read(columns, use_threads=False).replace_schema_metadata(), 0
    for run in runs:
        cell = {name: run[name] for name in IDENTITY}
        yield Run(run["key"], cell, run["version"], table.slice(start, run["rows"]))
        start += run["rows"]


def _encode(table: "pa.Table", *, compression: str) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression=compression)
    return bytes(buffer.getvalue())


def _open(path: Path) -> "tuple[pq.ParquetFile, list[dict[str, Any]]]":
    """Open a file of runs; and what it says of each run: identity, key, version and rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # For small files this is several times faster than `read_table`.
    file = pq.ParquetFile(pa.BufferReader(read_checked(path)), thrift_string_size_limit=2**31 - 1)
    content = json.loads(file.schema_arrow.metadata[METADATA])
    if content["format"] != FORMAT:
        raise other_format(path, content["format"])
    if "runs" in content:
        return file, content["runs"]
    return file, [{**content, "key": path.name[:KEY_LENGTH], "rows": file.metadata.num_rows}]
