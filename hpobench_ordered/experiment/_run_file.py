"""Finished runs: tables of one row per trial, in Parquet files of one or many runs on a benchmark.

A file name contains the HASH of the content, which is checked before parsing, so that damage by a
failing disk or an interrupted copy is detected. What identifies a run is repeated in columns, as
dictionaries.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.core.benchmark import Benchmark
from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment._files import DamagedFileError, content_hash, read_checked
from hpobench_ordered.experiment.outcome import Outcome
from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.runtime.machine import package_versions
from hpobench_ordered.space.parameters import Kind, Parameter

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

FORMAT = 5
METADATA = b"hpobench_ordered"
KEY_LENGTH, HASH_LENGTH, DIGEST_LENGTH = 20, 16, 32
KEY = "key"
DIGEST = "digest"  # hash of all values of a run, independent of its file
TRIAL_COLUMNS = ("task", "task_name", "trial", "value", "loss", "regret", "fallbacks", "optimiser")
CONFIG_PREFIX = "config."


def other_format(path: Path, written: object) -> StoreError:
    """The error for a store or file in another format."""
    version = package_versions()["hpobench-ordered"]
    return StoreError(
        f"{path} is in store format {written!r}, this is version {version} of hpobench-ordered "
        f"with format {FORMAT}: choose another folder, or use the version that wrote it"
    )


def run_table(cell: Cell, benchmark: Benchmark, outcomes: Sequence[Outcome]) -> "pa.Table":
    """Table of a run: what identifies it and its recorded outcomes."""
    import pyarrow as pa

    lengths = [len(o.losses) for o in outcomes]
    tasks = [benchmark.tasks[o.task] for o in outcomes]
    regrets = [
        np.full(n, np.nan) if task.best_value is None else task.regret(o.objective)
        for task, o, n in zip(tasks, outcomes, lengths, strict=True)
    ]
    identity = {KEY: cell.key, **cell.describe()}
    columns = {name: _repeated([value], [sum(lengths)]) for name, value in identity.items()} | {
        "task": pa.array(np.repeat([o.task for o in outcomes], lengths), pa.int32()),
        "task_name": _repeated([o.task_name for o in outcomes], lengths),
        "trial": pa.array(np.concatenate([np.arange(1, n + 1) for n in lengths]), pa.int32()),
        "value": pa.array(np.concatenate([o.objective for o in outcomes])),
        "loss": pa.array(np.concatenate([o.losses for o in outcomes])),
        "regret": pa.array(np.concatenate(regrets), from_pandas=True),  # unknown ones are null
        "fallbacks": pa.array(np.concatenate([o.fallbacks for o in outcomes]), pa.int32()),
        "optimiser": _repeated([o.optimiser for o in outcomes], lengths),
    }
    values = np.concatenate([o.values for o in outcomes])
    for parameter, coded in zip(benchmark.space.parameters, values.T, strict=True):
        columns[CONFIG_PREFIX + parameter.name] = _native(parameter, coded)
    return pa.table(columns)


def with_digest(table: "pa.Table") -> "pa.Table":
    """Add the digest to the table of one run."""
    return table.append_column(DIGEST, _repeated([_digest(table)], [table.num_rows]))


def _digest(table: "pa.Table") -> str:
    return content_hash(json.dumps(table.to_pydict()).encode(), DIGEST_LENGTH)


def encode(table: "pa.Table") -> tuple[str, bytes]:
    """File name HASH.parquet and content, byte by byte the same for the same runs."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = pa.BufferOutputStream()
    marked = table.replace_schema_metadata({METADATA: json.dumps(FORMAT)})
    pq.write_table(marked, buffer, compression="zstd", write_statistics=False)
    data = bytes(buffer.getvalue())
    return f"{content_hash(data, HASH_LENGTH)}.parquet", data


def read_runs(path: Path, columns: Sequence[str] | None) -> "pa.Table":
    """Read columns, including `KEY`, of a file of runs; a single run has the key in its name."""
    table = open_runs(path).read(columns, use_threads=False)
    key = path.name.partition("-")[0]
    if len(key) == KEY_LENGTH and table[KEY].unique().to_pylist() != [key]:
        raise DamagedFileError(path, "its name is that of another run")
    return table


def open_runs(path: Path) -> "pq.ParquetFile":
    """Open a file of runs."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # For small files this is several times faster than `read_table`.
    file = pq.ParquetFile(pa.BufferReader(read_checked(path)))
    written = json.loads(file.schema_arrow.metadata[METADATA])
    if written != FORMAT:
        raise other_format(path, written)
    return file


def digests(table: "pa.Table") -> dict[str, str]:
    """Digest of each run in a table, by key; unique, in the order of the runs."""
    keys, hashes = (table[name].unique().to_pylist() for name in (KEY, DIGEST))
    return dict(zip(keys, hashes, strict=True))


def check_digests(path: Path) -> None:
    """Raise a `DamagedFileError` unless all runs in a file have their digests."""
    table = open_runs(path).read(use_threads=False)
    values, held, start = table.drop_columns([DIGEST]), digests(table), 0
    lengths = {count["values"]: count["counts"] for count in table[KEY].value_counts().to_pylist()}
    for key, digest in held.items():  # runs are one after the other
        if _digest(values.slice(start, lengths[key])) != digest:
            raise DamagedFileError(path, f"the values of run {key} do not have its digest")
        start += lengths[key]


def _repeated(values: Sequence[str | int], lengths: Sequence[int]) -> "pa.Array":
    """Repeat each value `lengths` times; text as a dictionary."""
    import pyarrow as pa

    array = pa.array(values).take(pa.array(np.repeat(np.arange(len(values)), lengths)))
    return array.dictionary_encode() if array.type == pa.string() else array


def _native(parameter: Parameter, coded: FloatArray) -> "pa.Array":
    """Native values of a hyperparameter, (n,), choices as text; null where inactive."""
    import pyarrow as pa

    active = pa.array(coded, mask=np.isnan(coded))
    if parameter.choices:
        return pa.array(list(map(str, parameter.choices))).take(active.cast(pa.int32()))
    return active.cast(pa.int64()) if parameter.kind is Kind.INTEGER else active
