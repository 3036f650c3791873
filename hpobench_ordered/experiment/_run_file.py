"""Finished runs: tables of one row per trial, in Parquet files of one or many runs on a benchmark.

What identifies a run is repeated in columns, as dictionaries. The rows of a run follow one another,
as do those of a task.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.data.benchmark import Benchmark
from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment._files import (
    HASH_LENGTH,
    KEY_PATTERN,
    DamagedFileError,
    StoredFile,
    hash_content,
)
from hpobench_ordered.experiment._parquet import (
    Column,
    ColumnType,
    open_parquet,
    read_columns,
    type_of_column,
)
from hpobench_ordered.experiment.outcome import Outcome
from hpobench_ordered.experiment.plan import IDENTITY, Cell, key_of
from hpobench_ordered.runtime.machine import PACKAGE, package_versions
from hpobench_ordered.space.parameters import Kind, Parameter

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

FORMAT = 6
READABLE_FORMATS = (5, 6)  # in format 5 runs have a column more, and failures no hash
FORMAT_ENTRY = b"hpobench_ordered"
"""Entry of a Parquet file's metadata that holds the number of its format."""

KEY = "key"
TRIAL_COLUMNS = ("task", "task_name", "trial", "value", "loss", "regret", "fallbacks", "optimiser")
CONFIG_PREFIX = "config."

COLUMNS = {
    KEY: Column(ColumnType.TEXT),
    "benchmark": Column(ColumnType.TEXT),
    "surrogate": Column(ColumnType.TEXT),
    "method": Column(ColumnType.TEXT),
    "method_version": Column(ColumnType.TEXT),
    "seed": Column(ColumnType.INTEGER),
    "protocol": Column(ColumnType.TEXT),
    "task": Column(ColumnType.INTEGER),
    "task_name": Column(ColumnType.TEXT),
    "trial": Column(ColumnType.INTEGER),
    "value": Column(ColumnType.NUMBER),
    "loss": Column(ColumnType.NUMBER),
    "regret": Column(ColumnType.NUMBER, may_be_null=True),
    "fallbacks": Column(ColumnType.INTEGER),
    "optimiser": Column(ColumnType.TEXT),
}
"""Columns of every file, beside those of the configurations, `CONFIG_PREFIX` and a name."""

NULL_INTEGER = np.iinfo(np.int64).min
"""Stands for a missing integer in digests; no hyperparameter has it."""


def other_format(path: Path, written: object, hint: str = "") -> StoreError:
    """The error for a store or file in another format.

    Args:
        path: The store or file.
        written: Its format.
        hint: What else the user can do, as the end of the message.
    """
    version = package_versions()[PACKAGE]
    return StoreError(
        f"{path} is in store format {written!r}, this is version {version} of hpobench-ordered "
        f"with format {FORMAT}: choose another folder, or use the version that wrote it{hint}"
    )


def make_run_table(cell: Cell, benchmark: Benchmark, outcomes: Sequence[Outcome]) -> "pa.Table":
    """Make the table of a run, one row per trial.

    Its columns are what identifies the run, the same in all rows; what happened in the trial; and
    the hyperparameters of its configuration.

    Args:
        cell: The run.
        benchmark: Its benchmark.
        outcomes: What the method did on each task that is recorded.
    """
    import pyarrow as pa

    lengths = [len(outcome.losses) for outcome in outcomes]
    regrets = [_compute_regrets(benchmark, outcome) for outcome in outcomes]
    trials = [np.arange(1, length + 1) for length in lengths]
    tasks = np.repeat([outcome.task for outcome in outcomes], lengths)  # index of each trial's task

    columns = {}
    identity = {KEY: cell.key, **cell.describe()}  # benchmark, method, seed and so on
    number_of_rows = sum(lengths)
    for name, value in identity.items():
        columns[name] = _repeat([value], [number_of_rows])

    columns |= {
        "task": pa.array(tasks, pa.int32()),
        "task_name": _repeat([outcome.task_name for outcome in outcomes], lengths),
        "trial": pa.array(np.concatenate(trials), pa.int32()),
        "value": pa.array(np.concatenate([outcome.objective for outcome in outcomes])),
        "loss": pa.array(np.concatenate([outcome.losses for outcome in outcomes])),
        "regret": pa.array(np.concatenate(regrets), from_pandas=True),  # unknown ones are null
        "fallbacks": pa.array(
            np.concatenate([outcome.fallbacks for outcome in outcomes]), pa.int32()
        ),
        "optimiser": _repeat([outcome.optimiser for outcome in outcomes], lengths),
    }

    coded_configs = np.concatenate([outcome.values for outcome in outcomes])  # (trials, parameters)
    # The column of a hyperparameter is named config.NAME.
    for parameter, coded in zip(benchmark.space.parameters, coded_configs.T, strict=True):
        columns[CONFIG_PREFIX + parameter.name] = _decode_parameter(parameter, coded)
    return pa.table(columns)


def _compute_regrets(benchmark: Benchmark, outcome: Outcome) -> FloatArray:
    """Regret of each trial, (trials,); NaN if the best value of the task is unknown.

    It is infinite where the evaluation failed.
    """
    task = benchmark.tasks[outcome.task]
    if task.best_value is None:
        return np.full(len(outcome.losses), np.nan)
    return np.asarray(task.regret(outcome.objective))


def encode_runs(table: "pa.Table") -> tuple[str, bytes]:
    """File name and content of a file of runs, byte by byte the same for the same runs.

    The name is HASH.parquet, with the hash of the content.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = pa.BufferOutputStream()
    # The format is stored in the file's metadata, so that readers can refuse another one.
    table_with_format = table.replace_schema_metadata({FORMAT_ENTRY: json.dumps(FORMAT)})
    pq.write_table(table_with_format, buffer, compression="zstd", write_statistics=False)
    data = bytes(buffer.getvalue())
    return f"{hash_content(data, HASH_LENGTH)}.parquet", data


def read_runs(file: StoredFile, names: Sequence[str] | None = None) -> "pa.Table":
    """Read a file of runs as a table with one row per trial.

    Args:
        file: The file.
        names: Columns to read, besides that of the runs' keys (`KEY`); default: all.

    Raises:
        DamagedFileError: Its content does not have the hash or the key in its name, or is not a
            table of runs.
        StoreError: It is in another format.
    """
    data = file.read()
    try:
        parquet = open_parquet(data, COLUMNS)
        _check_format(file.path, parquet)
        columns = _columns_of(parquet)
        if names is None:
            names = list(columns)
        other_names = [name for name in names if name != KEY]
        table = read_columns(parquet, columns, [KEY, *other_names])
        _check_keys(table, file.key)  # the key in the file's name, or None
    except ValueError as error:
        raise DamagedFileError(file.path, error) from None
    return _mark_failures(table)


def _mark_failures(table: "pa.Table") -> "pa.Table":
    """Give failed evaluations the loss infinity and the value NaN.

    Files of earlier versions of this package have what the benchmark returned: NaN, or an infinite
    value of either sign.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if "loss" not in table.column_names:
        return table
    has_failed = pc.invert(pc.is_finite(table["loss"]))
    if not pc.any(has_failed).as_py():
        return table
    for name, replacement in (("loss", np.inf), ("value", np.nan)):
        if name in table.column_names:
            marked = pc.if_else(has_failed, pa.scalar(replacement), table[name])
            table = table.set_column(table.column_names.index(name), name, marked)
    return table


def _check_format(path: Path, parquet: "pq.ParquetFile") -> None:
    """Check that a file is in a format that this version of the package can read.

    Raises:
        ValueError: The file's metadata does not tell its format.
        StoreError: The format is another one.
    """
    metadata = parquet.schema_arrow.metadata or {}
    format_as_json = metadata.get(FORMAT_ENTRY, b"")  # a number; empty text raises the error, too
    try:
        written_format = msgspec.json.decode(format_as_json, type=int)
    except msgspec.DecodeError:
        raise ValueError("it does not tell its format") from None
    if written_format not in READABLE_FORMATS:
        raise other_format(path, written_format)


def _columns_of(parquet: "pq.ParquetFile") -> dict[str, Column]:
    """What each column of a file must hold, by name; a `ValueError` if one has an odd type.

    To the columns that every file has (`COLUMNS`), one is added for each hyperparameter: it is
    named config.NAME, and null where the hyperparameter is inactive.
    """
    columns = dict(COLUMNS)
    for field in parquet.schema_arrow:
        if field.name.startswith(CONFIG_PREFIX):
            kind = type_of_column(field.type)
            if kind is None:
                raise ValueError(f"the column {field.name!r} has the type {field.type}")
            columns[field.name] = Column(kind, may_be_null=True)
    return columns


def _check_keys(table: "pa.Table", key_in_name: str | None) -> None:
    """Check the form of the keys in a file, and that a file named after a run holds that run.

    Args:
        table: The file's content, one row per trial.
        key_in_name: The key in the name of a file of one run; None for a file of many runs.

    Raises:
        ValueError: A key is wrong, or the rows of a run do not follow one another.
    """
    keys = [key for key, _ in iter_runs(table)]
    if key_in_name is not None and keys != [key_in_name]:
        raise ValueError("its name is that of another run")
    # A key has 20 hexadecimal digits.
    if not all(re.fullmatch(KEY_PATTERN, key, re.ASCII) for key in keys):
        raise ValueError("a run has no proper key")


def check_runs(file: StoredFile, table: "pa.Table") -> None:
    """Check the keys and the trials of all runs in a file.

    A run's key must be the hash of its benchmark, method and so on, and no trial may be missing.

    Args:
        file: The file, for the message.
        table: Its content.

    Raises:
        DamagedFileError: A key is wrong, or a trial is missing.
    """
    try:
        _check_identities(table)
        _check_trials(table)
    except ValueError as error:
        raise DamagedFileError(file.path, error) from None


def _check_identities(table: "pa.Table") -> None:
    """Raise a `ValueError` unless the key of each run is the hash of what identifies it.

    These are the columns `IDENTITY`: benchmark, method and so on, the same in all rows of a run.
    """
    runs = table.select([KEY, *IDENTITY]).to_pandas().drop_duplicates()
    # More than one row a key means that rows of one run differ.
    if len(runs) > len(table[KEY].unique()):
        raise ValueError("all trials of a run must have the same benchmark, method and so on")
    for run in runs.to_dict("records"):
        key = run.pop(KEY)
        if key != key_of(run):
            raise ValueError(f"the key {key} is not that of its run")


def _check_trials(table: "pa.Table") -> None:
    """Raise a `ValueError` unless tasks and trials of each run are in order, trials from 1."""
    task = table["task"].to_numpy()
    trial = table["trial"].to_numpy()
    first_rows_of_runs = [rows.start for _, rows in iter_runs(table)]
    is_first_of_task = np.zeros(len(trial), dtype=np.bool_)
    is_first_of_task[first_rows_of_runs] = True
    is_first_of_task[1:] |= task[1:] != task[:-1]  # where the row before is of another task

    follows_trial_before = np.zeros(len(trial), dtype=np.bool_)
    follows_trial_before[1:] = trial[1:] == trial[:-1] + 1
    is_in_order = np.where(is_first_of_task, trial == 1, follows_trial_before)
    if not is_in_order.all():
        raise ValueError("the trials of each task must be numbered from 1")


def iter_runs(table: "pa.Table") -> Iterator[tuple[str, slice]]:
    """Yield the key of each run of a table, from the column `KEY`, and the slice of its rows.

    Raises a `ValueError` unless the rows of each run follow one another.
    """
    if not table.num_rows:
        return
    # As a dictionary: a list of the different keys, and for each row the index of its key.
    encoded = _encode_as_dictionary(table[KEY].combine_chunks())
    keys = encoded.dictionary.to_pylist()
    run_of_row = encoded.indices.to_numpy()
    # Rows where another run begins; before the first row, -1 stands for no run.
    starts = np.flatnonzero(np.diff(run_of_row, prepend=-1))

    keys_in_order = [keys[run_of_row[start]] for start in starts]
    if len(set(keys_in_order)) < len(keys_in_order):
        raise ValueError("the rows of a run must follow one another")

    stops = [*starts[1:], table.num_rows]
    for key, start, stop in zip(keys_in_order, starts, stops, strict=True):
        yield key, slice(int(start), int(stop))


def digest_runs(table: "pa.Table") -> dict[str, str]:
    """Hash of all values of each run of a table with all columns, by key.

    It does not depend on how the values are stored: in what order of columns, with which other runs
    in the file, or on what machine.
    """
    names = sorted(table.column_names)
    values = np.column_stack([_represent_values(table[name].combine_chunks()) for name in names])
    header = json.dumps(names).encode()  # values of other columns shall have another hash
    digests = {}
    for key, rows in iter_runs(table):
        # "<u8": the same order of bytes on every machine.
        content = header + np.ascontiguousarray(values[rows], dtype="<u8").tobytes()
        digests[key] = hashlib.sha256(content).hexdigest()
    return digests


def _represent_values(column: "pa.Array") -> NDArray[np.uint64]:
    """A 64-bit number for each value of a column, to be hashed with those of other columns.

    It is the bits of a number, or a hash of a text: the same in every file that holds the value.
    Missing values are represented, too: an integer by `NULL_INTEGER`, which no hyperparameter has,
    a number by NaN, and a text by 0.
    """
    kind = type_of_column(column.type)
    if kind is ColumnType.INTEGER:
        integers: IntArray = column.cast("int64").fill_null(NULL_INTEGER).to_numpy()
        return integers.view(np.uint64)
    if kind is ColumnType.NUMBER:
        numbers: FloatArray = column.fill_null(np.nan).to_numpy()
        return numbers.view(np.uint64)
    # A dictionary column has a list of its different texts, and for each row an index into it.
    texts = _encode_as_dictionary(column)
    hashes = [_hash_text(text) for text in texts.dictionary.to_pylist()]
    hash_of_index = np.array([*hashes, 0], dtype=np.uint64)  # the last one, -1, is for no text
    index_of_row: IntArray = texts.indices.fill_null(-1).to_numpy()
    return hash_of_index[index_of_row]


def _encode_as_dictionary(column: "pa.Array") -> "pa.DictionaryArray":
    """Encode a column as a dictionary column, unless it is one already."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        return column
    return column.dictionary_encode()


def _hash_text(text: str) -> int:
    """The first 64 bits of the SHA-256 of a text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


def _repeat(values: Sequence[str | int], lengths: Sequence[int]) -> "pa.Array":
    """Make an Arrow column in which value i is repeated `lengths[i]` times.

    Texts are stored once, in a dictionary, with an index in each row.
    """
    import pyarrow as pa

    index_of_row = np.repeat(np.arange(len(values)), lengths)
    column = pa.array(values).take(pa.array(index_of_row))
    if column.type == pa.string():
        return column.dictionary_encode()
    return column


def _decode_parameter(parameter: Parameter, coded: FloatArray) -> "pa.Array":
    """Native values of a hyperparameter in each trial, choices as text; null where inactive.

    `coded`, (trials,), has the number itself or the index of the choice; NaN where inactive.
    """
    import pyarrow as pa

    codes = pa.array(coded, mask=np.isnan(coded))  # null where inactive
    if parameter.choices:
        choices = pa.array([str(choice) for choice in parameter.choices])
        return choices.take(codes.cast(pa.int32()))
    if parameter.kind is Kind.INTEGER:
        return codes.cast(pa.int64())
    return codes


def name_run(table: "pa.Table", rows: slice) -> str:
    """Benchmark, method, seed and key of a run in a table, for messages."""
    columns = (KEY, "benchmark", "method", "seed")  # `KEY` is the name of the column "key"
    (run,) = table.select(columns).slice(rows.start, 1).to_pylist()  # same in all of its rows
    return "{benchmark}, {method}, seed {seed} ({key})".format(**run)


def describe_runs(table: "pa.Table") -> Mapping[str, Mapping[str, object]]:
    """What identifies each run of a table (`IDENTITY`: benchmark, method and so on), by key."""
    runs = {}
    for key, rows in iter_runs(table):
        (identity,) = table.select(IDENTITY).slice(rows.start, 1).to_pylist()  # of its first row
        runs[key] = identity
    return runs
