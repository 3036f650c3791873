"""Files of a store that hold runs: one run each, or many folded together.

Both are parquet with one row a trial, the rows of a run next to each other. The metadata of the
schema say which runs a file holds; a folded file also has a column "key".
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered._typing import IntArray
from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment._files import DamagedFileError, parse_json, printable
from hpobench_ordered.experiment._identity import cell_of, check_key, is_text, is_whole
from hpobench_ordered.experiment._parquet import KEY, Trials, describe_trials, read_trials

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 3
RUNS, FOLDED = "runs", "folded"
"""Folders of files of one run, and of many."""
RUN_METADATA = b"hpobench_ordered"
CELL_COLUMNS = ("benchmark", "surrogate", "method", "seed", "protocol")
MAX_METADATA = 24 * 2**20
"""Most bytes of what a file says of its runs: it is there twice in the file, once in base 64."""


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

    Raises:
        StoreError: They are more than one file can describe.
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
    described = json.dumps(content).encode()
    if len(described) > MAX_METADATA:
        raise StoreError(f"{len(tables)} runs with such long names do not fit into one file")
    joined = joined.add_column(0, KEY, keys)
    return _encode(
        joined.replace_schema_metadata({RUN_METADATA: described}),
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
    return _segment(path, describe_trials(path))


def load_segment(path: Path, columns: Sequence[str] | None = None) -> "tuple[Segment, pa.Table]":
    """Read runs.

    Args:
        path: The file.
        columns: The columns to read; all but the key without.

    Returns:
        Which runs these are, and one row a trial, without metadata.

    Raises:
        FileNotFoundError: The file is not there any more.
        StoreError: It is damaged, or of another version.
    """
    trials, table = read_trials(path, columns)
    segment = _segment(path, trials)
    try:
        _check_trials(table, np.array(segment.rows))
    except ValueError as error:
        raise DamagedFileError(path, error) from None
    return segment, table


def run_tables(segment: Segment, table: "pa.Table") -> "dict[str, pa.Table]":
    """Take runs apart that were read together, by key."""
    tables, start = {}, 0
    for key, rows in zip(segment.keys, segment.rows, strict=True):
        tables[key] = table.slice(start, rows)
        start += rows
    return tables


def is_same(one: "pa.Table", other: "pa.Table") -> bool:
    """Whether two runs are the same, where `Table.equals` takes NaN for another NaN."""
    return one.equals(other) or (
        one.schema.remove_metadata() == other.schema.remove_metadata()
        and all(map(_is_same_column, one.columns, other.columns))
    )


# -- internals -------------------------------------------------------------------------------------


def _encode(table: "pa.Table", *, compression: str) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression=compression, write_page_checksum=True)
    return bytes(buffer.getvalue().to_pybytes())


def _is_same_column(one: "pa.ChunkedArray", other: "pa.ChunkedArray") -> bool:
    import pyarrow as pa

    if not pa.types.is_floating(one.type):
        return bool(one.equals(other))
    valid, values = one.is_valid(), np.asarray(one.fill_null(0))
    return bool(valid.equals(other.is_valid())) and np.array_equal(
        values, np.asarray(other.fill_null(0)), equal_nan=True
    )


_UNSAID = "it is not a run: it does not say what it is"


def _segment(path: Path, trials: Trials) -> Segment:
    """Which runs a file holds, if they are what its name says."""
    try:
        content = _described(trials.metadata)
        check_version(path, content.get("format", 1), content.get("version"))
        return _runs(path, content, trials.num_rows)
    except (AttributeError, KeyError, TypeError):
        raise DamagedFileError(path, _UNSAID) from None
    except ValueError as error:
        raise DamagedFileError(path, error) from None


def _described(metadata: Mapping[bytes, bytes]) -> dict[str, Any]:
    """What a file says of itself."""
    text = metadata[RUN_METADATA]
    if len(text) > MAX_METADATA:
        raise ValueError(f"it says more of its runs than the {MAX_METADATA} bytes allowed")
    return dict(parse_json(text))


def _runs(path: Path, content: Mapping[str, Any], num_rows: int) -> Segment:
    is_folded = "runs" in content
    if is_folded is not (path.parent.name == FOLDED):
        raise ValueError("it is in the folder of another kind of files")
    cells: dict[str, dict[str, Any]] = {}
    rows = []
    for run in content["runs"] if is_folded else [{**content, KEY: path.stem, "rows": num_rows}]:
        cells[run[KEY]] = cell = cell_of(run)
        check_key(run[KEY], cell)
        rows.append(run["rows"])
    if len(cells) < len(rows) or not all(is_whole(n) and n > 0 for n in rows):
        raise ValueError("it does not hold the runs it says")
    if not rows or sum(rows) != num_rows:
        raise ValueError("it does not hold the trials it says")
    if is_folded and path.name != folded_name(cells):
        raise ValueError("its name is not that of the runs in it")
    return Segment(path, cells, tuple(rows))


def _check_trials(table: "pa.Table", rows: IntArray) -> None:
    """Check that the trials of each run are task by task, each task once, numbered from 1.

    Args:
        table: At least the columns task, task_name and trial, (n,).
        rows: Number of trials of each run, positive, summing to n.

    Raises:
        ValueError: They are not.
    """
    import pyarrow.compute as pc

    task, trial = (np.asarray(table[name]) for name in ("task", "trial"))
    begins = trial == 1
    starts = np.cumsum(rows) - rows
    follows = np.zeros(len(trial), dtype=bool)
    follows[1:] = (trial[1:] == trial[:-1] + 1) & (task[1:] == task[:-1])
    follows[starts] = False
    if not (begins | follows).all() or task.min() < 0:
        raise ValueError("its trials are not numbered from 1 in each task")
    run = np.repeat(np.arange(len(rows)), rows)[begins]
    if len(np.unique(run * 2**31 + task[begins])) < len(run):
        raise ValueError("it has a task twice")
    names = table["task_name"]
    is_same = np.asarray(pc.equal(names.slice(1), names.slice(0, len(names) - 1)))
    if not (is_same | begins[1:]).all():
        raise ValueError("it has a task of several names")


def check_version(path: Path, written_format: object, written_by: object) -> None:
    """Refuse what another version wrote.

    Raises:
        StoreError: It did.
    """
    here = package_version()
    if (written_format, written_by) == (FORMAT, here):
        return
    if not is_whole(written_format) or not is_text(written_by, longest=100):
        raise StoreError(f"{printable(path)} is damaged: it does not say what version wrote it")
    raise StoreError(
        f"{printable(path)} was written by version {written_by} (store format {written_format}), "
        f"this is version {here} (format {FORMAT}): results of two versions are not mixed; choose "
        "another folder"
    )
