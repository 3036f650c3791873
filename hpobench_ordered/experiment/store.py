"""Result stores: a folder of runs, each written once and atomically.

    store.json                the format
    runs/KEY-HASH.parquet     a finished run: one row per trial
    packed/HASH.parquet       many finished runs in one file, see `Store.compact`
    failures/KEY-HASH.json    a failed run, with its error
    methods/VERSION-HASH.json the files that a method from outside had loaded
    running/KEY.json          the process that is at a run
    experiments/HASH.json     what was planned
    sessions.jsonl            starts of the runner: when, where, with what versions
    timings.jsonl             how long each run took, and with what version
    damaged/                  damaged files that were moved out of the way

KEY is the hash of what identifies a run, HASH that of the file's content. Files are written under
another name and then renamed. A run is the same bytes wherever it is made, so several processes may
make the same one: files with the same run count once, and different results for one key are an
error. Only `compact` removes runs, after the file that replaces theirs was written and read back.
A folder without `store.json` is a store if it has files with such names.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from hpobench_ordered.data.identity import hash_json
from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment._files import (
    EXPERIMENT_FILES,
    FAILURE_FILES,
    KEY_LENGTH,
    PACKED_FILES,
    RUN_FILES,
    RUNNING_FILES,
    DamagedFileError,
    FileKind,
    StoredFile,
    decode_json,
    has_named_files,
    list_files,
    list_paths,
    parse_name,
    read_bytes,
    write_whole,
    writing,
)
from hpobench_ordered.experiment._run_file import (
    CONFIG_PREFIX,
    FORMAT,
    KEY,
    READABLE_FORMATS,
    TRIAL_COLUMNS,
    check_runs,
    describe_runs,
    digest_runs,
    encode_runs,
    iter_runs,
    name_run,
    other_format,
    read_runs,
)
from hpobench_ordered.experiment.method_records import METHOD_FILES
from hpobench_ordered.experiment.plan import IDENTITY
from hpobench_ordered.experiment.records import Failure, Record, Records, check_record
from hpobench_ordered.experiment.stored_runs import Cells, StoredRuns

if TYPE_CHECKING:
    from collections.abc import Collection

    import pandas as pd
    import pyarrow as pa

MARKER_NAME = "store.json"
DAMAGED_FOLDER = "damaged"
FILE_KINDS = (
    RUN_FILES,
    PACKED_FILES,
    EXPERIMENT_FILES,
    FAILURE_FILES,
    RUNNING_FILES,
    METHOD_FILES,
)
CELL_COLUMNS = ("benchmark", "surrogate", "method", "seed", "protocol")

MIN_FILES_TO_PACK = 1000
"""Number of files of single runs from which on they are packed automatically."""
MAX_PACKED_RUNS = 5000
"""Most runs in one file."""
MAX_NAMED_RUNS = 20
"""Most runs that an error names."""

MARKER_REMEDY = "delete it: the folder is recognised by its other files"


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
        self._marker = folder / MARKER_NAME
        # Keys of the runs in each packed file that was read, by its name: it has the content's
        # hash, so that no file needs to be read twice.
        self._keys_of_packed: dict[str, frozenset[str]] = {}
        names = self._list_names()
        if MARKER_NAME in names:
            self._check_format()
        else:
            self._check_no_other_files(names)

    def _list_names(self) -> list[str]:
        """Names of what is in the folder; none if there is no folder yet.

        Raises:
            StoreError: There cannot be such a folder, or it cannot be read.
        """
        path = str(self.folder)
        if "\0" in path:
            raise StoreError(f"a folder cannot be named {path!r}: it has a null character")
        try:
            return os.listdir(self.folder) if self.folder.exists() else []  # noqa: PTH208
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.folder} is not a folder that can be read: {error}") from None

    def _check_no_other_files(self, names: Iterable[str]) -> None:
        """Raise a `StoreError` if the folder, which has no marker, has files of something else.

        It may be empty, or a store that lost its marker, which is known by the names of its files.

        Args:
            names: Names of what is in the folder.
        """
        # A process that was killed while it wrote the marker leaves a file ".store.json...".
        others = [name for name in names if not name.startswith(f".{MARKER_NAME}")]
        if others and not self.is_prepared:
            raise StoreError(
                f"{self.folder} is not a result store: it holds other files; choose another folder"
            )

    def _check_format(self) -> None:
        """Raise a `StoreError` unless the marker (store.json) tells a format that can be read."""
        data = read_bytes(self._marker)
        try:
            marker = decode_json(self._marker, data, Marker)
        except DamagedFileError as error:
            # A damaged marker can be deleted, as `MARKER_REMEDY` tells the user.
            raise DamagedFileError(self._marker, "it is no marker", MARKER_REMEDY) from error
        if marker.format not in READABLE_FORMATS:
            hint = f"; if {self._marker.name} alone is damaged, {MARKER_REMEDY}"
            raise other_format(self.folder, marker.format, hint)

    @classmethod
    def open(cls, folder: str | Path, hint: str = "") -> "Store":
        """Open the store in a folder.

        Raises:
            StoreError: There is none; the message ends with `hint`.
        """
        store = cls(Path(folder))
        if not store.is_prepared:
            raise StoreError(f"{folder} is not a result store{hint}")
        return store

    @property
    def is_prepared(self) -> bool:
        """Whether it is a store: it has the marker, store.json, or files named as in a store."""
        recognised = (RUN_FILES, PACKED_FILES, EXPERIMENT_FILES, FAILURE_FILES)
        return self._marker.exists() or has_named_files(self.folder, recognised)

    def prepare(self) -> None:
        """Create the marker, and the folders in which the store has its files."""
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            # The marker comes first: a folder with other contents and no marker is not a store.
            if not self._marker.exists():
                write_whole(self._marker, json.dumps({"format": FORMAT}).encode())
            for kind in FILE_KINDS:
                (self.folder / kind.folder).mkdir(exist_ok=True)

    def keys(self) -> frozenset[str]:
        """Keys of the finished runs; only files of several runs are opened for them."""
        keys: set[str] = set()
        for file in self._run_files():
            keys |= self._keys_in(file)
        return frozenset(keys)

    def has(self, key: str) -> bool:
        """Whether a run is finished or has failed."""
        return self.records.has_failure(key) or self._is_finished(key)

    def _is_finished(self, key: str) -> bool:
        """Whether a file of a single run is named after the key, or a packed file holds it."""
        for path in list_paths(self.folder / RUN_FILES.folder):
            if path.name[:KEY_LENGTH] == key:  # a name is KEY-HASH.parquet
                return True
        return any(key in self._keys_in(file) for file in list_files(self.folder, PACKED_FILES))

    def write(self, table: "pa.Table") -> None:
        """Write a finished run, a table made by `make_run_table`; it no longer counts as failed.

        Its key is in every row, and in the name of its file, KEY-HASH.parquet.
        """
        key = str(table[KEY][0])
        name, data = encode_runs(table)
        write_whole(self.folder / RUN_FILES.folder / f"{key}-{name}", data)
        self.records.forget_failures([key])

    def read(self, keys: Iterable[str] | None = None) -> "pd.DataFrame":
        """Trials of runs, by default of all, one row per trial, sorted by key.

        Regret is NaN where the best value of the task is unknown.
        """
        return self._read_sorted([KEY, *CELL_COLUMNS, *TRIAL_COLUMNS], keys).to_pandas()

    def configurations(self, keys: Iterable[str]) -> "pd.DataFrame":
        """Configurations of runs on one benchmark, one row per trial; missing where inactive.

        Files have a column config.NAME for each hyperparameter, which is here named NAME.
        """
        frame = self._read_sorted(None, keys).to_pandas()  # None: all columns
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

    def in_progress(self) -> frozenset[str]:
        """Keys of the runs in progress."""
        return self.records.in_progress()

    def sessions(self) -> tuple[Record, ...]:
        """Starts of the runner, in their order."""
        return self.records.sessions()

    def cells(self, planned: Cells | None = None) -> Cells:
        """What identifies each finished run, by key.

        `planned` are runs of which it is known already what identifies them, so that their files
        need not be opened; default: those of all experiments that were planned in this store.
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
        for table in self._read_once(IDENTITY, unplanned):
            cells |= describe_runs(table)
        return cells

    def digest(self) -> str:
        """Hash of all values of all finished runs, however they were made and stored."""
        digests: list[tuple[str, str]] = []  # key and hash of each run
        for table in self._read_once(None):  # None: all columns
            digests += digest_runs(table).items()
        return hash_json(sorted(digests))

    def set_aside_damaged(self) -> list[Path]:
        """Move damaged files to the folder "damaged", and return where they are now.

        The next start of the experiment makes again what they held.
        """
        moved = []
        # Files of other kinds stay: what a method had loaded could not be recorded again.
        for kind in (RUN_FILES, PACKED_FILES, EXPERIMENT_FILES, FAILURE_FILES):
            for path in list_paths(self.folder / kind.folder):
                try:
                    _check_file(path, kind)
                except DamagedFileError:
                    moved.append(self._set_aside(path))
                except FileNotFoundError:  # another process has just joined it into a packed file
                    continue
        return moved

    def _set_aside(self, path: Path) -> Path:
        """Move a file to the folder "damaged", under a name that is free there."""
        folder = self.folder / DAMAGED_FOLDER
        target = folder / path.name
        number = 1
        while target.exists():
            number += 1
            target = folder / f"{path.name}-{number}"
        # The file is gone if another process has moved it.
        with writing(self.folder), suppress(FileNotFoundError):
            folder.mkdir(exist_ok=True)
            path.replace(target)
        return target

    def compact(self, *, at_least: int = 0) -> int:
        """Join small files of runs into larger ones; return the number of removed files.

        Files are removed after all joined files were written and read back. Any number of processes
        may write, read and compact at the same time.

        Args:
            at_least: Nothing is done if there are fewer files of single runs.
        """
        if len(list_paths(self.folder / RUN_FILES.folder)) < at_least:
            return 0
        self.prepare()
        cells = self.cells()
        files_to_join = set()
        keys_to_join: set[str] = set()
        for file in self._run_files():
            keys = self._keys_in(file)
            is_full = len(keys) >= MAX_PACKED_RUNS
            has_new_runs = not keys <= cells.keys()  # they finished after `cells` was read
            if not is_full and not has_new_runs:
                files_to_join.add(file.path)
                keys_to_join |= keys

        joined_files = set()
        for keys_of_file in _group_by_file(sorted(keys_to_join), cells):
            joined_files.add(self._pack(keys_of_file))

        # A file that was joined with no other is written again under the same name, which has the
        # hash of its content: it must not be removed.
        replaced = files_to_join - joined_files
        with writing(self.folder):
            for path in replaced:
                path.unlink(missing_ok=True)
        return len(replaced)

    def merge(self, *others: "Store") -> None:
        """Add everything from other stores.

        All is read and checked before anything is written, so that a merge that fails changes
        nothing.

        Raises:
            StoreError: A file of any of them or of this store is damaged, or two results of a run
                differ.
        """
        _check_same_results((self, *others))
        self.records.read_all()  # only to raise if a record is damaged
        snapshots = [other.records.read_all() for other in others]

        self.prepare()
        for other, snapshot in zip(others, snapshots, strict=True):
            self._copy_runs(other)
            self.records.add(snapshot)
        # A run that failed in one store may have finished in another.
        self.records.forget_failures(self.keys() & self.failures().keys())

    def _copy_runs(self, other: "Store") -> None:
        """Copy the files of another store that have runs which this one lacks.

        The contents were checked before; a file's name has their hash, so it is still the same.
        """
        finished = self.keys()
        for file in other._run_files():
            # A file is gone if its runs have just been joined into another one, which comes later.
            with suppress(FileNotFoundError):
                has_all = other._keys_in(file) <= finished
                if not has_all:
                    target = self.folder / file.path.parent.name / file.path.name
                    write_whole(target, file.read())

    def _run_files(self) -> Iterator[StoredFile]:
        """Yield all files of runs, also those that another process writes in the meantime.

        While the caller reads the files, another process may join some of them into a larger one
        and remove them. Therefore the folders are listed again until no file is new.
        """
        seen: set[Path] = set()
        while True:
            # Files of single runs, and files of many runs.
            files = list_files(self.folder, RUN_FILES) + list_files(self.folder, PACKED_FILES)
            new_files = [file for file in files if file.path not in seen]
            if not new_files:
                return
            yield from new_files
            seen.update(file.path for file in new_files)

    def _keys_in(self, file: StoredFile) -> frozenset[str]:
        """Keys of the runs in a file; none if it is gone, its runs joined into a larger file."""
        if file.key is not None:  # the file of a single run is named after its key
            return frozenset([file.key])

        name = file.path.name
        if name not in self._keys_of_packed:
            try:
                table = read_runs(file, [KEY])
            except FileNotFoundError:  # its runs are in a larger file, which `_run_files` yields
                return frozenset()
            self._keys_of_packed[name] = frozenset(table[KEY].unique().to_pylist())
        return self._keys_of_packed[name]

    def _read_once(
        self, names: Iterable[str] | None, keys: Set[str] | None = None
    ) -> list["pa.Table"]:
        """Read finished runs, each from one file only, even if several files hold it.

        Args:
            names: Columns to read besides the key; default: all.
            keys: Keys of the runs to read; default: all.

        Returns:
            A table for each file that was read.

        Raises:
            StoreError: Two files have different results of one run.
        """
        columns = None if names is None else [KEY, *names]
        tables = []
        file_of_key: dict[str, StoredFile] = {}  # the file that each run is read from
        files_to_compare: list[StoredFile] = []  # they hold runs that another file holds, too
        for file in self._run_files():
            keys_in_file = self._keys_in(file)
            wanted = keys_in_file if keys is None else keys_in_file & keys
            if not wanted:
                continue
            try:
                table = read_runs(file, columns)
            except FileNotFoundError:  # joined into another file, which comes later
                continue

            keys_read_before = wanted & file_of_key.keys()
            if keys_read_before:
                files_to_compare.append(file)
                files_to_compare += [file_of_key[key] for key in keys_read_before]

            new_keys = wanted - keys_read_before
            if new_keys == keys_in_file:
                tables.append(table)
            elif new_keys:
                tables.append(_select_keys(table, new_keys))
            for key in new_keys:
                file_of_key[key] = file
        _check_same_in_files(dict.fromkeys(files_to_compare))  # each once
        return tables

    def _read_sorted(self, names: list[str] | None, keys: Iterable[str] | None) -> "pa.Table":
        """Read runs, sorted by key, one row per trial.

        Args:
            names: Columns to read; default: all.
            keys: Keys of the runs to read; default: all.
        """
        import pyarrow as pa

        wanted_keys = None if keys is None else set(keys)
        tables = self._read_once(names, wanted_keys)
        if not tables:
            empty_columns = names or (KEY, *TRIAL_COLUMNS)
            return pa.table({name: [] for name in empty_columns})
        try:
            # One dictionary and one chunk per column, as the next step expects.
            runs = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
        except pa.ArrowInvalid:
            raise StoreError(
                f"runs in {self.folder} on one benchmark have different hyperparameters"
            ) from None
        # A column of texts is a dictionary: a list of its texts, and the index of each row's text.
        # Once the list is sorted, the indices of keys sort like the keys.
        columns = [_sort_dictionary(column.chunk(0)) for column in runs.columns]
        runs = pa.table(columns, runs.column_names)
        order = np.argsort(runs[KEY].chunk(0).indices, kind="stable")
        return runs.select(names or runs.column_names).take(order)

    def _pack(self, keys: Iterable[str]) -> Path:
        """Write runs to one file, read it back, and return its path.

        Raises:
            StoreError: The file does not hold the same values.
        """
        runs = self._read_sorted(None, keys)  # None: all columns
        name, data = encode_runs(runs)
        path = self.folder / PACKED_FILES.folder / name
        write_whole(path, data)
        with suppress(FileNotFoundError):  # another process has joined it into another file
            written_runs = read_runs(parse_name(path, PACKED_FILES))
            if digest_runs(written_runs) != digest_runs(runs):
                raise StoreError(f"{path} does not hold what was written to it")
        return path


def _check_file(path: Path, kind: FileKind) -> None:
    """Raise a `DamagedFileError` if a file of a store is damaged."""
    if kind in (RUN_FILES, PACKED_FILES):
        # Opening it compares the whole content with the hash in the name, so one column is enough.
        read_runs(parse_name(path, kind), [KEY])
    else:  # the record of a failure or of what was planned, in JSON
        check_record(path)


def _group_by_file(keys: Iterable[str], cells: Cells) -> list[list[str]]:
    """Divide runs into groups, each of which can be joined into one file.

    A file holds runs of one benchmark, as hyperparameters are its columns, and a limited number.

    Args:
        keys: Keys of the runs.
        cells: What identifies each run, by key.
    """
    keys_of_benchmark = defaultdict(list)
    for key in keys:
        keys_of_benchmark[cells[key]["benchmark"]].append(key)

    groups = []
    for benchmark_keys in keys_of_benchmark.values():
        for start in range(0, len(benchmark_keys), MAX_PACKED_RUNS):
            groups.append(benchmark_keys[start : start + MAX_PACKED_RUNS])
    return groups


def _select_keys(table: "pa.Table", keys: Iterable[str]) -> "pa.Table":
    """Select the rows of some runs from a table with one row per trial, by its column `KEY`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return table.filter(pc.is_in(table[KEY], pa.array(sorted(keys), pa.string())))


def _check_same_results(stores: Iterable[Store]) -> None:
    """Check all files of runs, and that all stores and files have the same results of each run.

    Raises:
        StoreError: A file is damaged, or two results of one run differ.
    """
    files = chain.from_iterable(store._run_files() for store in stores)
    _check_same_in_files(files, checks_runs=True)


def _check_same_in_files(files: Iterable[StoredFile], *, checks_runs: bool = False) -> None:
    """Raise a `StoreError` if two files have different results of one run.

    Args:
        files: The files, each with one or more runs.
        checks_runs: Whether to check each run, too: its key, and that it has all trials.
    """
    first_digest_of_key: dict[str, str] = {}  # hash of the first result of each run, by its key
    contradicted_runs: dict[str, str] = {}  # names of runs with a second, other result, by key
    for file in files:
        try:
            table = read_runs(file)
        except FileNotFoundError:  # another process has just joined it into a packed file
            continue
        if checks_runs:
            check_runs(file, table)
        digest_of_key = digest_runs(table)
        for key, rows in iter_runs(table):
            digest = digest_of_key[key]
            first_digest = first_digest_of_key.setdefault(key, digest)
            if digest != first_digest:
                contradicted_runs[key] = name_run(table, rows)

    if contradicted_runs:
        examples = list(contradicted_runs.values())[:MAX_NAMED_RUNS]
        raise StoreError(
            f"{len(contradicted_runs)} runs have two different results, such as "
            f"{'; '.join(examples)}. Remove the wrong files, which have these keys in their names"
        )


def _sort_dictionary(column: "pa.Array") -> "pa.Array":
    """Sort the dictionary of a column of texts, and drop its unused entries.

    A dictionary lists each text once; the column holds indices into it. In which order it lists
    them depends on the order in which runs were read. Sorted, the same runs are the same bytes.
    The texts of the rows stay as they are; so does a column of another type.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        return column
    sorted_texts = column.unique().dictionary_decode().sort()
    new_index_of_old = pc.index_in(column.dictionary, value_set=sorted_texts)
    new_index_of_row = new_index_of_old.take(column.indices)
    return pa.DictionaryArray.from_arrays(new_index_of_row, sorted_texts)
