"""Result stores: a folder of runs, each written once and atomically.

    store.json                the format
    runs/KEY-HASH.parquet     a finished run: one row per trial
    packed/HASH.parquet       many finished runs in one file, see `Store.compact`
    failures/KEY.json         a failed run, with its error
    running/KEY.json          the process that is at a run
    experiments/HASH.json     what was planned
    sessions.jsonl            starts of the runner: when, where, with what versions
    timings.jsonl             how long each run took, and with what version
    damaged/                  damaged files that were moved out of the way

KEY is the hash of what identifies a run, HASH that of the file's content. Files are written under
another name and then renamed. A run is the same bytes wherever it is made, so several processes may
make the same one: files with the same run count once, and different results for one key are an
error. Only `compact` removes runs, after the file that replaces theirs was written and read back.
"""

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment._files import (
    DamagedFileError,
    listed,
    parsed,
    read_bytes,
    read_checked,
    write_whole,
    writing,
)
from hpobench_ordered.experiment._run_file import (
    CONFIG_PREFIX,
    DIGEST,
    FORMAT,
    KEY,
    KEY_LENGTH,
    TRIAL_COLUMNS,
    check_digests,
    digests,
    encode,
    open_runs,
    other_format,
    read_runs,
    with_digest,
)
from hpobench_ordered.experiment.plan import IDENTITY
from hpobench_ordered.experiment.records import (
    EXPERIMENTS,
    FAILURES,
    RUNNING,
    Failure,
    Record,
    Records,
    read_failure,
)
from hpobench_ordered.experiment.stored_runs import Cells, StoredRuns

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

MARKER, RUNS, PACKED = "store.json", "runs", "packed"
CELL_COLUMNS = ("benchmark", "surrogate", "method", "seed", "protocol")
NAMED = (KEY, DIGEST, "benchmark", "method", "seed")  # columns that identify results in errors
MANY = 1000  # files of single runs from which on they are packed automatically
PACK = 5000  # most runs in one file

Columns = Sequence[str] | None  # names of columns; None: all


class Store(StoredRuns):
    """A folder of runs, created when something is first written; `records` are all the rest."""

    has_all_trials = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records = Records(folder)
        self._marker = folder / MARKER
        try:
            names = os.listdir(folder) if folder.exists() else []  # noqa: PTH208
        except (OSError, ValueError) as error:
            raise StoreError(f"{folder} is not a folder that can be read: {error}") from None
        if MARKER in names:
            written = parsed(self._marker, read_bytes(self._marker), itemgetter("format"))
            if written != FORMAT:
                raise other_format(folder, written)
        elif any(not name.startswith(f".{MARKER}") for name in names):
            raise StoreError(
                f"{folder} is not a result store: it holds other files; choose another folder"
            )

    @classmethod
    def there(cls, folder: str | Path, hint: str = "") -> "Store":
        """The store in a folder; a `StoreError` if there is none."""
        store = cls(Path(folder))
        if not store.is_prepared:
            raise StoreError(f"{folder} is not a result store{hint}")
        return store

    @property
    def is_prepared(self) -> bool:
        """Whether it is a store."""
        return self._marker.exists()

    def prepare(self) -> None:
        """Create the folders and the marker."""
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            if not self._marker.exists():  # first, since other folders without it are no stores
                write_whole(self._marker, json.dumps({"format": FORMAT}).encode())
            for name in (RUNS, PACKED, EXPERIMENTS, FAILURES, RUNNING):
                (self.folder / name).mkdir(exist_ok=True)

    def keys(self) -> frozenset[str]:
        """Keys of the finished runs; files of single runs are not opened."""
        return frozenset(chain.from_iterable(map(_held, self._paths())))

    def has(self, key: str) -> bool:
        """Whether a run has failed, or is finished and not packed yet."""
        is_finished = any((self.folder / RUNS).glob(f"{key}-*"))
        return is_finished or (self.folder / FAILURES / f"{key}.json").exists()

    def write(self, table: "pa.Table") -> None:
        """Write a finished run, a table made by `run_table`."""
        key, (name, data) = str(table[KEY][0]), encode(with_digest(table))
        write_whole(self.folder / RUNS / f"{key}-{name}", data)
        self.records.forget_failures([key])

    def read(self, keys: Iterable[str] | None = None) -> "pd.DataFrame":
        """Runs, by default all, a row per trial, by key; regret is NaN where no best is known."""
        return self._table([KEY, *CELL_COLUMNS, *TRIAL_COLUMNS], keys).to_pandas()

    def configurations(self, keys: Iterable[str]) -> "pd.DataFrame":
        """Configurations of runs on one benchmark, by trial, empty where inactive."""
        frame = self._table(None, keys).to_pandas()
        names = [name for name in frame if name.startswith(CONFIG_PREFIX)]
        chosen = frame[[KEY, "task", "trial", "value", "loss", *names]].astype({KEY: str})
        return chosen.rename(columns=lambda name: name.removeprefix(CONFIG_PREFIX))

    def timings(self, keys: Collection[str] | None = None) -> "pd.DataFrame":
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
        """What identifies each finished run; files of `planned` runs stay closed."""
        if planned is None:
            planned = {}
            for experiment in self.experiments().values():
                planned |= experiment
        finished = self.keys()
        cells = {key: cell for key, cell in planned.items() if key in finished}
        for table in self._runs(IDENTITY, finished - cells.keys()):
            runs = table.select([KEY, *IDENTITY]).to_pandas().drop_duplicates(KEY)
            cells |= {run.pop(KEY): run for run in runs.to_dict("records")}
        return cells

    def digest(self) -> str:
        """Hash of all values of all finished runs, however they were made and stored."""
        results = chain.from_iterable(digests(table).items() for table in self._runs([]))
        return hashlib.sha256(json.dumps(sorted(results)).encode()).hexdigest()

    def set_aside_damaged(self) -> list[Path]:
        """Move damaged files to the folder "damaged", so that they are made again; return them."""
        moved, folders = [], (RUNS, PACKED, EXPERIMENTS, FAILURES)
        for path in chain.from_iterable(listed(self.folder / name) for name in folders):
            try:
                read_failure(path) if path.parent.name == FAILURES else read_checked(path)
                if path.parent.name == RUNS:
                    read_runs(path, [KEY])
            except DamagedFileError:
                target = self.folder / "damaged" / path.name
                with writing(self.folder), suppress(FileNotFoundError):
                    target.parent.mkdir(exist_ok=True)
                    path.replace(target)
                    moved.append(target)
            except FileNotFoundError:  # just packed
                continue
        return moved

    def compact(self, *, at_least: int = 0) -> int:
        """Join files of single runs and of few runs; return the number of removed files.

        They are removed after all joined files were written and read back. Any number of processes
        may write, read and compact at the same time. Does nothing with fewer than `at_least` single
        runs.
        """
        if len(listed(self.folder / RUNS)) < at_least:
            return 0
        self.prepare()
        cells = self.cells()
        held = {path: _held(path) for path in self._paths()}
        sources = {p for p, keys in held.items() if len(keys) < PACK and keys <= cells.keys()}
        by_benchmark = defaultdict(list)
        for key in sorted(frozenset().union(*(held[path] for path in sources))):
            by_benchmark[cells[key]["benchmark"]].append(key)
        written = {
            self._pack(frozenset(keys[start : start + PACK]))
            for keys in by_benchmark.values()
            for start in range(0, len(keys), PACK)
        }
        with writing(self.folder):
            for path in sources - written:
                path.unlink(missing_ok=True)
        return len(sources - written)

    def merge(self, *others: "Store") -> None:
        """Add everything from other stores, if their files are intact and no results differ."""
        for path in chain.from_iterable(store._paths() for store in others):
            with suppress(FileNotFoundError):  # just packed
                check_digests(path)
        _distinct(chain.from_iterable(store._tables(NAMED) for store in (self, *others)))
        self.prepare()
        for other in others:
            known = self.keys()
            for path in other._paths():
                with suppress(FileNotFoundError):  # just packed
                    if not _held(path) <= known:
                        write_whole(self.folder / path.parent.name / path.name, read_checked(path))
            self.records.merge(other.records)
        self.records.forget_failures(self.keys() & self.records.failures().keys())

    def _paths(self) -> Iterator[Path]:
        """Files of runs, including those they are joined into in the meantime."""
        folders, seen = (self.folder / RUNS, self.folder / PACKED), set[Path]()
        while new := [p for folder in folders for p in listed(folder) if p not in seen]:
            yield from new
            seen.update(new)

    def _tables(self, columns: Columns, keys: Set[str] | None = None) -> Iterator["pa.Table"]:
        """Tables of the files that hold any of these runs, by default all."""
        for path in self._paths():
            with suppress(FileNotFoundError):  # joined into another file, which comes later
                if keys is None or not keys.isdisjoint(_held(path)):
                    yield read_runs(path, columns)

    def _runs(self, columns: Columns, keys: Set[str] | None = None) -> list["pa.Table"]:
        """Runs, by default all, each once, with `NAMED` and these columns."""
        wanted = None if columns is None else [*dict.fromkeys((*NAMED, *columns))]
        return _distinct(self._tables(wanted, keys), keys)

    def _table(self, columns: Columns, keys: Iterable[str] | None) -> "pa.Table":
        """Runs, by default all, sorted by key, one row per trial."""
        import pyarrow as pa

        tables = self._runs(columns, None if keys is None else set(keys))
        if not tables:
            return pa.table({name: [] for name in columns or (KEY, *TRIAL_COLUMNS)})
        runs = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
        sorted_runs = pa.table(
            [_with_sorted_names(column.chunk(0)) for column in runs.columns], runs.column_names
        )
        order = np.argsort(sorted_runs[KEY].chunk(0).indices, kind="stable")
        return sorted_runs.select(columns or runs.column_names).take(order)

    def _pack(self, keys: Set[str]) -> Path:
        """Write runs to one file, and read it back."""
        runs = self._table(None, keys)
        name, data = encode(runs)
        path = self.folder / PACKED / name
        write_whole(path, data)
        with suppress(FileNotFoundError):  # another process has joined it into another file
            if digests(open_runs(path).read([KEY, DIGEST])) != digests(runs):
                raise StoreError(f"{path} does not hold what was written to it")
        return path


def _held(path: Path) -> frozenset[str]:
    """Keys of the runs in a file; none if it was joined into another."""
    if path.parent.name == RUNS:
        return frozenset([path.name[:KEY_LENGTH]])
    with suppress(FileNotFoundError):
        return frozenset(open_runs(path).read([KEY])[KEY].unique().to_pylist())
    return frozenset()


def _distinct(tables: Iterable["pa.Table"], keys: Set[str] | None = None) -> list["pa.Table"]:
    """Runs, by default all, each once; a `StoreError` if one key has two results."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known: dict[str, str] = {}
    different: dict[str, str] = {}
    chosen = []
    for table in tables:
        held = digests(table)
        for key in [k for k, digest in held.items() if known.get(k, digest) != digest]:
            (run,) = table.filter(pc.equal(table[KEY], key)).select(NAMED).slice(0, 1).to_pylist()
            different[key] = "{benchmark}, {method}, seed {seed} ({key})".format(**run)
        new = [k for k in held if k not in known and (keys is None or k in keys)]
        if len(new) < len(held):
            table = table.filter(pc.is_in(table[KEY], pa.array(new, pa.string())))  # noqa: PLW2901
        chosen.append(table)
        known |= held
    if different:
        named = "; ".join(list(different.values())[:20])
        raise StoreError(
            f"{len(different)} runs have two different results, such as {named}. Remove the wrong "
            "files, which have these keys in their names"
        )
    return chosen


def _with_sorted_names(column: "pa.Array") -> "pa.Array":
    """Sort a column's dictionary, without unused entries, so that it is deterministic."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        return column
    names = column.unique().dictionary_decode().sort()
    places = pc.index_in(column.dictionary, value_set=names)
    return pa.DictionaryArray.from_arrays(places.take(column.indices), names)
