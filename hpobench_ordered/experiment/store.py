"""Result stores: a folder of runs, each in a file of its own.

    store.json                the format; this file makes the folder a store
    runs/KEY.parquet          a finished run: one row per trial
    packed/HASH.parquet       many finished runs in one file, written by `merge`
    failures/KEY.json         a failed run, with its error
    methods/VERSION-HASH.json the files that a method from outside had loaded
    experiments/HASH.json     what was planned
    sessions.jsonl            starts of the runner: when, where, with what versions
    timings.jsonl             how long each run took, and with what version

KEY is the hash of what identifies a run, HASH that of a file's content. A file is written under
another name and then renamed, so that it is complete or absent. A run is the same bytes wherever it
is made, so several processes may make the same one: the last file stays. Nothing is repaired: a
damaged file is named by an error, the user deletes it, and the experiment makes its runs again.
"""

import json
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hpobench_ordered.data.identity import hash_bytes, hash_json
from hpobench_ordered.data.tables import CONFIG_PREFIX, ColumnType, encode_table, type_of_column
from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment._files import DamagedFileError, read_json, write_file, writing
from hpobench_ordered.experiment.method_records import METHODS_FOLDER
from hpobench_ordered.experiment.plan import IDENTITY
from hpobench_ordered.experiment.records import (
    EXPERIMENTS_FOLDER,
    FAILURES_FOLDER,
    Failure,
    Record,
    Records,
)
from hpobench_ordered.experiment.run_tables import (
    KEY,
    TRIAL_COLUMNS,
    describe_runs,
    digest_runs,
    list_keys,
    read_runs,
)
from hpobench_ordered.experiment.stored_runs import Cells, StoredRuns

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

MARKER = "store.json"
RUNS_FOLDER = "runs"
PACKED_FOLDER = "packed"
FOLDERS = (RUNS_FOLDER, PACKED_FOLDER, FAILURES_FOLDER, METHODS_FOLDER, EXPERIMENTS_FOLDER)

FORMAT = 7
"""Number of the format of a store, raised when files of earlier stores can no longer be read."""

CELL_COLUMNS = ("benchmark", "surrogate", "method", "seed", "protocol")

HASH_LENGTH = 16
"""Digits of the name of a packed file."""
MAX_PACKED_RUNS = 5000
"""Most runs in one file."""
MAX_NAMED_RUNS = 20
"""Most runs that an error names."""


class Marker(msgspec.Struct, frozen=True):
    """Content of the file that makes a folder a store."""

    format: int


class Store(StoredRuns):
    """A folder of runs, created when something is first written; `records` are all the rest."""

    has_all_trials = True

    def __init__(self, folder: Path) -> None:
        """Use a folder as a store; nothing is written yet.

        Args:
            folder: A store, an empty folder, or one that does not exist.

        Raises:
            StoreError: It holds something else, cannot be read, or was written by a version of the
                package with another format.
        """
        self.folder = folder
        self.records = Records(folder)
        # Keys of the runs in each packed file that was read, by its name, the hash of its content.
        self._keys_of_packed: dict[str, frozenset[str]] = {}
        self._check_folder()

    def _check_folder(self) -> None:
        """Raise a `StoreError` unless the folder is a store, empty, or does not exist."""
        try:
            names = os.listdir(self.folder) if self.folder.exists() else []  # noqa: PTH208
        except OSError as error:
            message = f"{self.folder} is not a folder that can be read: {error.strerror}"
            raise StoreError(message) from None

        if MARKER in names:
            marker = read_json(self.folder / MARKER, Marker, f"it should hold {_encode_marker()!r}")
            if marker.format != FORMAT:
                raise StoreError(
                    f"{self.folder} is in store format {marker.format}, but this version of "
                    f"hpobench-ordered has format {FORMAT}: choose another folder, or use the "
                    "version that wrote it"
                )
        # Hidden files do not count, such as that of a process that was killed while it began one.
        elif any(not name.startswith(".") for name in names):
            raise StoreError(
                f"{self.folder} is not a result store: it holds other files; choose another folder"
            )

    @classmethod
    def open(cls, folder: str | Path, hint: str = "") -> "Store":
        """Open the store in a folder.

        Raises:
            StoreError: There is none; the message ends with `hint`.
        """
        store = cls(Path(folder))
        if not (store.folder / MARKER).exists():
            raise StoreError(f"{folder} is not a result store{hint}")
        return store

    def prepare(self) -> None:
        """Create the folders in which the store has its files, and the file that marks it."""
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            # The marker comes first: a folder with other contents and no marker is not a store.
            if not (self.folder / MARKER).exists():
                write_file(self.folder / MARKER, _encode_marker().encode())
            for name in FOLDERS:
                (self.folder / name).mkdir(exist_ok=True)

    def keys(self) -> frozenset[str]:
        """Return the keys of the finished runs.

        A file of a single run is named after its key, so that only packed files are opened.
        """
        return frozenset(self._find_files())

    def has(self, key: str) -> bool:
        """Whether a run is finished or has failed."""
        if self._run_path(key).exists() or self.records.has_failure(key):
            return True
        return any(key in self._keys_in_packed(path) for path in self._list_files(PACKED_FOLDER))

    def write(self, table: "pa.Table") -> None:
        """Write a finished run, a table made by `make_run_table`; it no longer counts as failed."""
        key = str(table[KEY][0])
        write_file(self._run_path(key), encode_table(table))
        self.records.forget_failures([key])

    def read(self, keys: Iterable[str] | None = None) -> "pd.DataFrame":
        """Trials of runs, by default of all, one row per trial, sorted by key.

        Regret is NaN where the best value of the task is unknown.
        """
        return self._read_frame([KEY, *CELL_COLUMNS, *TRIAL_COLUMNS], keys)

    def configurations(self, keys: Iterable[str]) -> "pd.DataFrame":
        """Configurations of runs on one benchmark, one row per trial; missing where inactive.

        Files have a column config.NAME for each hyperparameter, which is here named NAME. Integers
        stay integers, also beside missing values.
        """
        frame = self._read_frame(None, keys)  # None: all columns
        names = [name for name in frame if name.startswith(CONFIG_PREFIX)]
        chosen = frame[[KEY, "task", "trial", "value", "loss", *names]].astype({KEY: str})
        return chosen.rename(columns=lambda name: name.removeprefix(CONFIG_PREFIX))

    def timings(self, keys: "Collection[str] | None" = None) -> "pd.DataFrame":
        """Timings of runs, see `Records.timings`."""
        return self.records.timings(keys)

    def experiments(self) -> Mapping[str, Cells]:
        """What identifies each planned run, by experiment and key."""
        return self.records.experiments()

    def failures(self) -> Mapping[str, Failure]:
        """Failed runs, by key."""
        return self.records.failures()

    def sessions(self) -> tuple[Record, ...]:
        """Starts of the runner, in their order."""
        return self.records.sessions()

    def cells(self, planned: Cells | None = None) -> Cells:
        """Return what identifies each finished run (benchmark, method and so on), by its key.

        Args:
            planned: What identifies runs that may be finished, so that their files need not be
                opened; default: the runs of all experiments that were planned in this store.
        """
        if planned is None:
            planned = {}
            for experiment in self.experiments().values():
                planned |= experiment
        finished = self.keys()
        cells: dict[str, Mapping[str, Any]] = {
            key: cell for key, cell in planned.items() if key in finished
        }
        unplanned = finished - cells.keys()
        for table in self._read_tables([KEY, *IDENTITY], unplanned):
            cells |= describe_runs(table)
        return cells

    def digest(self) -> str:
        """Hash all values of all finished runs; the hash does not depend on how they are stored."""
        digests: list[tuple[str, str]] = []  # key and hash of each run
        for table in self._read_tables(None, self.keys()):  # None: all columns
            digests += digest_runs(table).items()
        return hash_json(sorted(digests))

    def merge(self, *others: "Store") -> None:
        """Add everything from other stores; runs that this one lacks are packed into few files.

        All is read and checked before anything is written, so that a merge that fails changes
        nothing. No other process may write to this store in the meantime.

        Raises:
            StoreError: A file of any of them or of this store is damaged, or two results of a run
                differ.
        """
        stores = (self, *others)
        _check_same_results(stores)
        for store in stores:
            store.records.check()

        self.prepare()
        for other in others:
            self._pack_new_runs(other)
            self.records.add(other.records)
        # A run that failed in one store may have finished in another.
        self.records.forget_failures(self.keys() & self.failures().keys())

    def _pack_new_runs(self, other: "Store") -> None:
        """Write the runs of another store that this one lacks, in a few files."""
        new_keys = other.keys() - self.keys()
        for keys in _group_by_file(new_keys, other.cells()):
            content = encode_table(_concatenate(other._read_tables(None, keys)))
            name = hash_bytes(content)[:HASH_LENGTH]
            write_file(self.folder / PACKED_FOLDER / f"{name}.parquet", content)

    def _run_path(self, key: str) -> Path:
        """Return the path of the file of a single run, whether it exists or not."""
        return self.folder / RUNS_FOLDER / f"{key}.parquet"

    def _list_files(self, folder: str) -> list[Path]:
        """List the files of runs in one folder of the store, such as "packed", sorted by name."""
        return sorted((self.folder / folder).glob("*.parquet"))

    def _find_files(self) -> dict[str, Path]:
        """Find the file of each finished run, by the run's key.

        A run may be in a packed file and in a file of its own, which is then the one to read.
        """
        file_of_key = {}
        for path in self._list_files(PACKED_FOLDER):
            for key in self._keys_in_packed(path):
                file_of_key[key] = path
        for path in self._list_files(RUNS_FOLDER):
            file_of_key[path.stem] = path
        return file_of_key

    def _keys_in_packed(self, path: Path) -> frozenset[str]:
        """Return the keys of the runs in a packed file, which is read only in the first call."""
        if path.name not in self._keys_of_packed:
            self._keys_of_packed[path.name] = frozenset(list_keys(_read_file(path, [KEY])))
        return self._keys_of_packed[path.name]

    def _read_tables(self, names: list[str] | None, keys: Collection[str]) -> list["pa.Table"]:
        """Read some finished runs, each from one file only.

        Args:
            names: Columns to read, the key among them; None: all.
            keys: Keys of the runs.

        Returns:
            A table for each file that was read.
        """
        wanted_keys = frozenset(keys)
        keys_of_file = defaultdict[Path, list[str]](list)
        for key, path in self._find_files().items():
            if key in wanted_keys:
                keys_of_file[path].append(key)

        tables = []
        for path, keys_to_read in keys_of_file.items():
            table = _read_file(path, names)
            is_packed = path.parent.name == PACKED_FOLDER
            if is_packed and len(keys_to_read) < len(self._keys_in_packed(path)):
                table = _select_runs(table, keys_to_read)
            tables.append(table)
        return tables

    def _read_frame(self, names: list[str] | None, keys: Iterable[str] | None) -> "pd.DataFrame":
        """Read runs, sorted by key, one row per trial.

        Args:
            names: Columns to read; None: all.
            keys: Keys of the runs to read; None: all.
        """
        import pandas as pd

        tables = self._read_tables(names, self.keys() if keys is None else list(keys))
        if not tables:
            return pd.DataFrame(columns=names or [KEY, *TRIAL_COLUMNS])
        table = _concatenate(tables)
        frame = table.to_pandas()
        for name in table.column_names:  # pandas would turn integers into other numbers
            column = table[name]
            if column.null_count and type_of_column(column.type) is ColumnType.INTEGER:
                frame[name] = column.to_pandas().astype("Int64")
        if names is not None:  # files without costs lack that column
            frame = frame.reindex(columns=names)
        # The categories of a column are its texts, so far in the order in which runs were read.
        for name in frame.select_dtypes("category"):
            texts = frame[name].cat.remove_unused_categories()
            frame[name] = texts.cat.reorder_categories(sorted(texts.cat.categories))
        return frame.sort_values(KEY, kind="stable", ignore_index=True)


def _encode_marker() -> str:
    """Encode the content of `store.json`, the file that makes a folder a store."""
    return json.dumps({"format": FORMAT})


def _read_file(path: Path, names: list[str] | None = None) -> "pa.Table":
    """Read columns of a file of runs, the key among them; None: all columns.

    Raises:
        DamagedFileError: It is not a table of runs, or of another run than the one in its name.
    """
    table = read_runs(path, names)
    if path.parent.name == RUNS_FOLDER and list_keys(table) != [path.stem]:
        raise DamagedFileError(path, "its name is that of another run")
    return table


def _group_by_file(keys: Iterable[str], cells: Cells) -> list[list[str]]:
    """Divide runs into groups, each of which is written to one file.

    A file holds runs of one benchmark, as hyperparameters are its columns, and a limited number.

    Args:
        keys: Keys of the runs.
        cells: What identifies each run, by key.
    """
    keys_of_benchmark = defaultdict(list)
    for key in sorted(keys):
        keys_of_benchmark[cells[key]["benchmark"]].append(key)

    groups = []
    for benchmark_keys in keys_of_benchmark.values():
        for start in range(0, len(benchmark_keys), MAX_PACKED_RUNS):
            groups.append(benchmark_keys[start : start + MAX_PACKED_RUNS])
    return groups


def _concatenate(tables: Iterable["pa.Table"]) -> "pa.Table":
    """Concatenate tables, the texts of each column in one dictionary."""
    import pyarrow as pa

    return pa.concat_tables(tables, promote_options="default").unify_dictionaries()


def _select_runs(table: "pa.Table", keys: Iterable[str]) -> "pa.Table":
    """Select the rows of some runs from a table with one row per trial, by its column `KEY`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return table.filter(pc.is_in(table[KEY], pa.array(keys, pa.string())))


def _check_same_results(stores: Iterable[Store]) -> None:
    """Check that all stores, and all files of each, have the same results of each run.

    Raises:
        StoreError: A file is damaged, or two results of one run differ.
    """
    # The hash of the first result of each run, and the file that holds this result, by key.
    first_result: dict[str, tuple[str, Path]] = {}
    # A text about each run with two different results, by key.
    contradictions: dict[str, str] = {}
    for store in stores:
        for path in store._list_files(RUNS_FOLDER) + store._list_files(PACKED_FOLDER):
            table = _read_file(path)
            for key, digest in digest_runs(table).items():
                first_digest, first_path = first_result.setdefault(key, (digest, path))
                if digest != first_digest:
                    identity = describe_runs(table)[key]
                    run = "{benchmark}, {method}, seed {seed}".format(**identity)
                    contradictions[key] = f"{run} ({first_path} and {path})"

    if contradictions:
        examples = list(contradictions.values())[:MAX_NAMED_RUNS]
        raise StoreError(
            f"{len(contradictions)} runs have two different results, such as "
            f"{'; '.join(examples)}. Delete the wrong files"
        )
