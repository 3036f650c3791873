"""Tables of finished runs: one row per trial, with what identifies the run, task and trial.

What identifies a run is the same in all of its rows. The rows of a run follow one another, as do
those of a task. A file holds one run, or many runs on one benchmark.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.data.benchmark import Benchmark
from hpobench_ordered.data.identity import hash_bytes
from hpobench_ordered.data.tables import (
    CONFIG_PREFIX,
    COST,
    ColumnType,
    decode_table,
    type_of_column,
)
from hpobench_ordered.experiment._files import DamagedFileError, read_bytes
from hpobench_ordered.experiment.outcome import Outcome
from hpobench_ordered.experiment.plan import IDENTITY, Cell
from hpobench_ordered.space.parameters import Kind, Parameter

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

KEY = "key"
TRIAL_COLUMNS = (
    "task",
    "task_name",
    "trial",
    "value",
    "loss",
    "regret",
    "fallbacks",
    "optimiser",
    COST,
)

COLUMNS = {
    KEY: ColumnType.TEXT,
    "benchmark": ColumnType.TEXT,
    "surrogate": ColumnType.TEXT,
    "method": ColumnType.TEXT,
    "method_version": ColumnType.TEXT,
    "seed": ColumnType.INTEGER,
    "protocol": ColumnType.TEXT,
    "task": ColumnType.INTEGER,
    "task_name": ColumnType.TEXT,
    "trial": ColumnType.INTEGER,
    "value": ColumnType.NUMBER,
    "loss": ColumnType.NUMBER,
    "regret": ColumnType.NUMBER,
    "fallbacks": ColumnType.INTEGER,
    "optimiser": ColumnType.TEXT,
}
"""What each column holds, beside those of the configurations, which are named config.NAME."""

NULL_INTEGER = np.iinfo(np.int64).min
"""Stands for a missing integer in digests; no hyperparameter has it."""


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

    costs = [benchmark.tasks[outcome.task].costs(outcome.values) for outcome in outcomes]
    known_costs = [costs_of_task for costs_of_task in costs if costs_of_task is not None]
    if len(known_costs) == len(outcomes):  # otherwise the benchmark has none
        columns[COST] = pa.array(np.concatenate(known_costs))

    coded_configs = np.concatenate([outcome.values for outcome in outcomes])  # (trials, parameters)
    # The column of a hyperparameter is named config.NAME.
    for parameter, coded in zip(benchmark.space.parameters, coded_configs.T, strict=True):
        columns[CONFIG_PREFIX + parameter.name] = _decode_parameter(parameter, coded)
    return pa.table(columns)


def make_trials_table(trials: "pd.DataFrame") -> "pa.Table":
    """Make an Arrow table of trials whose types do not depend on the values.

    Texts, 64-bit integers and 64-bit floating-point numbers keep their type where all cells of a
    column are missing, so that files of several experiments can be read together.

    Args:
        trials: A row per trial, with columns as in `COLUMNS`, and those of configurations.
    """
    import pyarrow as pa

    fields = []
    for name, dtype in trials.dtypes.items():
        if dtype.kind in "iu":  # integers, signed and unsigned
            fields.append(pa.field(name, pa.int64()))
        elif dtype.kind == "f":
            fields.append(pa.field(name, pa.float64()))
        else:
            fields.append(pa.field(name, pa.string()))
    return pa.Table.from_pandas(trials, pa.schema(fields), preserve_index=False)


def _compute_regrets(benchmark: Benchmark, outcome: Outcome) -> FloatArray:
    """Compute the regret of each trial, (trials,).

    It is infinite where the evaluation failed, and NaN in all trials if the best value of the task
    is unknown.
    """
    task = benchmark.tasks[outcome.task]
    if task.best_value is None:
        return np.full(len(outcome.losses), np.nan)
    return np.asarray(task.regret(outcome.objective))


def read_runs(path: Path, names: Sequence[str] | None = None) -> "pa.Table":
    """Read a file of runs.

    Args:
        path: The file. That of a single run is named after the run's key.
        names: Names of the columns to read; default: all.

    Raises:
        DamagedFileError: It is not a table of runs.
    """
    try:
        return decode_table(read_bytes(path), COLUMNS, names)
    except ValueError as error:
        raise DamagedFileError(path, error) from None


def iter_runs(table: "pa.Table") -> Iterator[tuple[str, slice]]:
    """Yield the key of each run of a table, from the column `KEY`, and the slice of its rows."""
    if not table.num_rows:
        return
    # As a dictionary: a list of the different keys, and for each row the index of its key.
    encoded = _encode_as_dictionary(table[KEY].combine_chunks())
    keys = encoded.dictionary.to_pylist()
    run_of_row = encoded.indices.to_numpy()
    # Rows where another run begins; before the first row, -1 stands for no run.
    starts = np.flatnonzero(np.diff(run_of_row, prepend=-1))

    stops = [*starts[1:], table.num_rows]
    for start, stop in zip(starts, stops, strict=True):
        yield keys[run_of_row[start]], slice(int(start), int(stop))


def list_keys(table: "pa.Table") -> list[str]:
    """List the keys of the runs of a table."""
    keys: list[str] = table[KEY].unique().to_pylist()
    return keys


def digest_runs(table: "pa.Table") -> dict[str, str]:
    """Hash all values of each run of a table; return the hashes by the keys of the runs.

    The table must have all columns. A hash does not depend on how the values are stored: in what
    order of columns, with which other runs in the file, or on what machine.
    """
    names = sorted(table.column_names)
    columns = [_represent_as_integers(table[name].combine_chunks()) for name in names]
    values = np.column_stack(columns)  # (trials, columns)
    header = json.dumps(names).encode()  # values of other columns shall have another hash
    digests = {}
    for key, rows in iter_runs(table):
        # "<u8": the same order of bytes on every machine.
        content = header + np.ascontiguousarray(values[rows], dtype="<u8").tobytes()
        digests[key] = hash_bytes(content)
    return digests


def _represent_as_integers(column: "pa.Array") -> NDArray[np.uint64]:
    """Represent each value of a column by 64 bits, which are the same in every file, (rows,).

    A number is represented by its own bits, and a text by a hash of it. A missing integer becomes
    `NULL_INTEGER`, which no hyperparameter has, a missing number NaN, and a missing text 0.
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
    hash_of_missing_text = 0
    hash_of_index = np.array([*hashes, hash_of_missing_text], dtype=np.uint64)
    # Index -1, that of the last entry, stands for a missing text.
    index_of_row: IntArray = texts.indices.fill_null(-1).to_numpy()
    return hash_of_index[index_of_row]


def _encode_as_dictionary(column: "pa.Array") -> "pa.DictionaryArray":
    """Encode a column as a dictionary column, unless it is one already."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        return column
    return column.dictionary_encode()


def _hash_text(text: str) -> int:
    """Return the first 64 bits of the SHA-256 of a text as a number."""
    hexadecimal = hash_bytes(text.encode())
    return int(hexadecimal[:16], 16)  # a digit has 4 bits


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
    """Decode the values of a hyperparameter in each trial: numbers, or the texts of choices.

    Args:
        parameter: The hyperparameter.
        coded: The number itself, or the index of the choice, of each trial, (trials,); NaN where
            the hyperparameter is inactive. The result is null there.
    """
    import pyarrow as pa

    codes = pa.array(coded, mask=np.isnan(coded))  # null where inactive
    if parameter.choices:
        choices = pa.array([str(choice) for choice in parameter.choices])
        return choices.take(codes.cast(pa.int32()))
    if parameter.kind is Kind.INTEGER:
        return codes.cast(pa.int64())
    return codes


def describe_runs(table: "pa.Table") -> Mapping[str, Mapping[str, object]]:
    """Return what identifies each run of a table, by the key of the run.

    These are the columns `IDENTITY` (benchmark, method, seed and so on), which are equal in all
    rows of a run.
    """
    identities = table.select(IDENTITY)
    identity_of_run = {}
    for key, rows in iter_runs(table):
        (identity,) = identities.slice(rows.start, 1).to_pylist()  # the first row of the run
        identity_of_run[key] = identity
    return identity_of_run
