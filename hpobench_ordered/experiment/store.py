"""Result stores: a folder of runs, each written once and as a whole.

    store.json                the format
    runs/KEY-HASH.parquet     a finished run: one row a trial; its metadata say what it is
    packed/HASH.parquet       many finished runs in one file, see `Store.compact`
    failures/KEY.json         a run that failed, with what was raised
    running/KEY.json          which process is at a run just now
    experiments/HASH.json     what was asked for
    sessions.jsonl            when, where and with what versions the runner was started
    timings.jsonl             how long each run took
    damaged/                  files that were set aside because they could not be read

KEY is the hash of what identifies a run, HASH that of the file's content. A file is written under
another name and then renamed: it is there as a whole or not at all. A run is the same bytes
wherever it is made, so any number of processes may make the same one. Two files that hold the same
run count once; two results that differ for one key are refused, and both are named. Nothing but
`compact` removes a run, and only after the file that holds it too was written and read back.
"""

import hashlib
import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment._files import (
    DamagedFileError,
    listed,
    read_checked,
    read_json,
    writing,
)
from hpobench_ordered.experiment._run_file import (
    FORMAT,
    KEY_LENGTH,
    Run,
    described_runs,
    encode_packed,
    encode_run,
    load_runs,
    other_format,
    package_version,
)
from hpobench_ordered.experiment.failures import Failure
from hpobench_ordered.experiment.records import Records, read_failure
from hpobench_ordered.files import write_atomically

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

P = ParamSpec("P")
T = TypeVar("T")

MARKER = "store.json"
RUNS, PACKED, EXPERIMENTS, FAILURES = FOLDERS = ("runs", "packed", "experiments", "failures")
NAME = re.compile(r"([0-9a-f]{20}-)?[0-9a-f]{16}\.parquet|[0-9a-f]{20}\.json")
"""Files as only a store has them."""
KEY = "key"
CELL_COLUMNS = ("benchmark", "surrogate", "method", "seed", "protocol")
TRIAL_COLUMNS = ("task", "task_name", "trial", "value", "loss", "regret", "fallbacks", "optimiser")
CONFIG_PREFIX = "config."
MANY = 1000
"""Files of single runs that are packed without being asked for."""
PACK = 5000
"""Most runs in one file."""
ATTEMPTS = 5
"""How often runs are looked for while somebody else packs them."""

Cells = Mapping[str, Mapping[str, Any]]
"""What identifies runs, by key."""


def _patient(
    method: Callable[Concatenate["Store", P], T],
) -> Callable[Concatenate["Store", P], T]:
    """Let a method look again if a file has just been packed into another."""

    def again(store: "Store", /, *args: P.args, **options: P.kwargs) -> T:
        for _ in range(ATTEMPTS):
            try:
                return method(store, *args, **options)
            except FileNotFoundError as error:
                vanished = error.filename
        raise StoreError(f"{vanished} vanished while it was read")

    again.__doc__ = method.__doc__
    return again


class Store:
    """A folder of runs.

    Attributes:
        folder: The folder; made when something is first written.
        records: What there is to know of the runs beside their results.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records = Records(folder)
        self._marker = folder / MARKER
        try:
            names = os.listdir(folder) if folder.exists() else []  # noqa: PTH208
        except (OSError, ValueError) as error:
            raise StoreError(f"{folder} is not a folder that can be read: {error}") from None
        if self._marker.exists():
            content = read_json(self._marker)
            if not isinstance(content, dict) or "format" not in content:
                raise DamagedFileError(self._marker, "it does not say which format the store has")
            if content["format"] != FORMAT:
                raise other_format(folder, content["format"])
        elif not self.is_prepared and any(not name.startswith(f".{MARKER}") for name in names):
            raise StoreError(
                f"{folder} is not a result store: it holds other files; choose another folder"
            )

    @property
    def is_prepared(self) -> bool:
        """Whether it is a store: by its marker or, if that was lost, by its files."""
        folders = (self.folder / name for name in (RUNS, PACKED, EXPERIMENTS))
        names = (path.name for folder in folders for path in listed(folder))
        return self._marker.exists() or any(map(NAME.fullmatch, names))

    def prepare(self) -> None:
        """Make the folders, and mark them as a store."""
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            if not self._marker.exists():  # first of all: a folder of other things is no store
                content = {"format": FORMAT, "version": package_version()}
                write_atomically(self._marker, json.dumps(content).encode())
            for name in (*FOLDERS, "running"):
                (self.folder / name).mkdir(exist_ok=True)

    @_patient
    def keys(self) -> frozenset[str]:
        """Keys of the finished runs; files of one run are not opened."""
        return frozenset(key for held in self._files().values() for key in held)

    def has(self, key: str) -> bool:
        """Whether a run has been finished, and not been packed yet, or has failed."""
        is_finished = any((self.folder / RUNS).glob(f"{key}-*"))
        return is_finished or self.records.has_failed(key)

    def write(self, key: str, table: "pa.Table") -> None:
        """Write a finished run, atomically: a table as `run_table` makes it, and its key."""
        self._write(RUNS, *encode_run(key, table))
        self.records.forget_failures([key])

    def read(self, keys: Iterable[str] | None = None) -> "pd.DataFrame":
        """Read runs, one row a trial, in the order of their keys.

        Args:
            keys: The runs to read. Default: all.

        Returns:
            Columns key, benchmark, surrogate, method, seed, protocol (with its settings), task,
            task_name, trial, value, loss, regret (NaN where no best value is known), fallbacks and
            optimiser. Texts are categories, which take no time and little memory; configurations
            are read by `configurations`.
        """
        return self._table(None if keys is None else set(keys), TRIAL_COLUMNS).to_pandas()

    @staticmethod
    def no_trials() -> "pd.DataFrame":
        """What `read` would return for no runs: its columns, without a row."""
        import pandas as pd

        return pd.DataFrame(columns=[KEY, *CELL_COLUMNS, *TRIAL_COLUMNS])

    def configurations(self, keys: Iterable[str]) -> "pd.DataFrame":
        """Read the configurations of runs on one benchmark, one row a trial.

        Args:
            keys: The runs.

        Returns:
            Columns key, task, trial, value, loss, and one a hyperparameter: empty where it is
            inactive.
        """
        table = self._table(set(keys), None)
        names = [name for name in table.column_names if name.startswith(CONFIG_PREFIX)]
        frame = table.select([KEY, "task", "trial", "value", "loss", *names]).to_pandas()
        frame[KEY] = frame[KEY].astype(str)
        return frame.rename(columns=lambda name: name.removeprefix(CONFIG_PREFIX))

    @_patient
    def cells(self, known: Cells | None = None) -> Cells:
        """What identifies each finished run, by key.

        Args:
            known: What identifies runs that were asked for, by key: of these files of one run are
                not opened. Default: read from the experiments of the store.
        """
        if known is None:
            known = {k: c for run in self.records.experiments().values() for k, c in run.items()}
        cells: dict[str, Mapping[str, Any]] = {}
        for path, held in self._files().items():
            for key, cell in held.items():
                cells[key] = cell or known.get(key) or described_runs(path)[key]
        return cells

    @_patient
    def digest(self) -> str:
        """Hash of all values of all finished runs: the same wherever and however they were made."""
        digests = {run.key: run.digest() for run in self._runs()}
        return hashlib.sha256(json.dumps(sorted(digests.items())).encode()).hexdigest()

    def failures(self) -> dict[str, Failure]:
        """The runs that failed, by key; not those that were finished after all."""
        finished = self.keys()
        return {k: failure for k, failure in self.records.failures().items() if k not in finished}

    def set_aside_damaged(self) -> list[Path]:
        """Move what is damaged to the folder "damaged", so that it is made again; says where to."""
        moved = []
        for path in (p for name in FOLDERS for p in listed(self.folder / name)):
            try:
                read_failure(path) if path.parent.name == FAILURES else read_checked(path)
            except DamagedFileError:
                target = self.folder / "damaged" / path.name
                with writing(self.folder), suppress(FileNotFoundError):
                    target.parent.mkdir(exist_ok=True)
                    path.replace(target)
                    moved.append(target)
            except FileNotFoundError:  # just packed
                continue
        return moved

    @_patient
    def compact(self, *, at_least: int = 0) -> int:
        """Join files of one run, and those of many that are not full, into files of many.

        They are removed after all of the joined files were written and read back. Any number of
        processes may write, read and compact at the same time.

        Args:
            at_least: Do nothing while there are fewer files of one run.

        Returns:
            The number of files that were removed.
        """
        if len(listed(self.folder / RUNS)) < at_least:
            return 0
        self.prepare()
        cells = self.cells()
        sources = {path: held for path, held in self._files().items() if len(held) < PACK}
        keys = {key for held in sources.values() for key in held}
        in_order = sorted(keys, key=lambda key: (cells[key]["benchmark"], key))
        written: set[Path] = set()
        for start in range(0, len(in_order), PACK):
            written |= self._pack(in_order[start : start + PACK])
        removed = sources.keys() - written
        with writing(self.folder):
            for path in removed:
                path.unlink(missing_ok=True)
        return len(removed)

    @_patient
    def merge(self, *others: "Store") -> None:
        """Take over what other stores hold.

        Raises:
            StoreError: As elsewhere; results that differ are found before anything is taken over.
        """
        stores_of = Counter(chain.from_iterable(store.keys() for store in (self, *others)))
        shared = {key for key, stores in stores_of.items() if stores > 1}
        _refuse_different(run for store in (self, *others) for run in store._runs(shared))
        self.prepare()
        for other in others:
            known = self.keys()
            for path, held in other._files().items():
                if not held.keys() <= known:
                    self._write(path.parent.name, path.name, read_checked(path))
            self.records.merge(other.records)
        self.records.forget_failures(self.keys() & self.records.failures().keys())

    def _write(self, folder: str, name: str, data: bytes) -> Path:
        path = self.folder / folder / name
        with writing(self.folder):
            write_atomically(path, data)
        return path

    def _files(self) -> dict[Path, Cells]:
        """What identifies the runs in each file, by key; empty for files of one run.

        Packed files come last, so that no run is missed that is just being packed.
        """
        files: dict[Path, Cells] = {}
        for path in listed(self.folder / RUNS):
            files[path] = {path.name[:KEY_LENGTH]: {}}
        return files | {path: described_runs(path) for path in listed(self.folder / PACKED)}

    def _runs(
        self, keys: Collection[str] | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[Run]:
        """Read runs, each once, by default all with all columns."""
        places = defaultdict(list)
        for path, held in self._files().items():
            for key in held if keys is None else held.keys() & keys:
                places[key].append(path)
        twice = {key for key, paths in places.items() if len(paths) > 1}
        copies = {path for key in twice for path in places[key]}
        _refuse_different(r for path in sorted(copies) for r in load_runs(path) if r.key in twice)
        chosen = {key: paths[0] for key, paths in places.items()}
        for path in sorted(set(chosen.values())):
            yield from (run for run in load_runs(path, columns) if chosen.get(run.key) == path)

    def _pack(self, keys: Collection[str]) -> set[Path]:
        """Write runs to a file for each set of columns, and read them back."""
        groups: dict[str, list[Run]] = defaultdict(list)
        for run in sorted(self._runs(keys), key=lambda run: run.key):
            groups[str(run.trials.schema)].append(run)
        written = set()
        for group in groups.values():
            path = self._write(PACKED, *encode_packed(group))
            if [run.digest() for run in load_runs(path)] != [run.digest() for run in group]:
                raise StoreError(f"{path} does not hold what was written to it")
            written.add(path)
        return written

    @_patient
    def _table(self, keys: Collection[str] | None, columns: Sequence[str] | None) -> "pa.Table":
        """Runs with what identifies them, one row a trial, in the order of their keys."""
        import pyarrow as pa

        runs = sorted(self._runs(keys, columns), key=lambda run: run.key)
        if not runs:
            raise StoreError(f"no finished runs in {self.folder}")
        try:
            trials = pa.concat_tables(run.trials for run in runs)
        except pa.ArrowException:
            raise StoreError("runs on several benchmarks have different hyperparameters") from None
        run_of_trial = pa.array(np.repeat(np.arange(len(runs)), [r.trials.num_rows for r in runs]))
        identity = {KEY: [run.key for run in runs]}
        identity |= {name: [run.cell[name] for run in runs] for name in CELL_COLUMNS}
        parts = {
            name: _encoded(pa.array(ones)).take(run_of_trial) for name, ones in identity.items()
        }
        for name, column in zip(trials.column_names, trials.columns, strict=True):
            is_name = columns is not None and column.type == pa.string()
            parts[name] = _encoded(column.combine_chunks()) if is_name else column
        return pa.table(parts)


def _encoded(values: "pa.Array") -> "pa.Array":
    """Texts as places in their sorted dictionary, which pandas reads as categories."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if values.type != pa.string():
        return values
    names = values.unique().drop_null().sort()
    return pa.DictionaryArray.from_arrays(pc.index_in(values, value_set=names), names)


def _refuse_different(runs: Iterable[Run]) -> None:
    """Check that runs of the same key are the same."""
    digests: dict[str, str] = {}
    different = {}
    for run in runs:
        digest = run.digest()
        if digests.setdefault(run.key, digest) != digest:
            different[run.key] = "{benchmark}, {method}, seed {seed}".format(**run.cell)
    if different:
        named = "; ".join(f"{what} ({key})" for key, what in list(different.items())[:20])
        raise StoreError(
            f"{len(different)} runs have two different results, such as {named}. Remove those that "
            "are wrong, their files have these keys in their names"
        )
