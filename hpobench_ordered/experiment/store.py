"""Result stores: a folder of runs, each written once and as a whole.

    store.json              format of the store and version of the package that writes it
    runs/KEY.parquet        a finished run: one row a trial; its metadata say what it is
    folded/NAME.parquet     many finished runs in one file
    failures/KEY.json       a run that failed, with what was raised
    running/KEY.json        which process is at a run just now
    experiments/NAME.json   what was asked for
    sessions.jsonl          when, where and with what versions the runner was started
    timings.jsonl           how long each run took, one line a run
    damaged/                files that were set aside because they could not be read

A file is written under another name and then renamed, so a run is there as a whole or not at all.
A run is the same bytes wherever and whenever it is made; how long it took is not, and therefore
kept beside it. Runs are folded once there are many; a file is removed only after the one that
holds its runs was written and read back, so that at any moment every run is in some file. A run
that is in two counts once.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment import _parquet
from hpobench_ordered.experiment._files import (
    DamagedFileError,
    listed,
    one_line,
    printable,
    read_json,
)
from hpobench_ordered.experiment._folding import fold
from hpobench_ordered.experiment._parquet import KEY, TRIAL_TYPES
from hpobench_ordered.experiment._segments import (
    CELL_COLUMNS,
    FOLDED,
    FORMAT,
    RUNS,
    Segment,
    check_version,
    describe_segment,
    encode_run,
    load_segment,
    package_version,
    run_tables,
)
from hpobench_ordered.experiment.failures import Failure
from hpobench_ordered.experiment.records import (
    Records,
    read_experiment,
    read_failure,
    writing,
)
from hpobench_ordered.files import write_atomically

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

T = TypeVar("T")

MARKER = "store.json"
TRIAL_COLUMNS = tuple(TRIAL_TYPES)
CONFIG_PREFIX = _parquet.CONFIG_PREFIX
RUN_SUFFIX = ".parquet"
DAMAGED = "damaged"
ATTEMPTS = 5
"""How often runs are looked for while somebody else is folding them."""


class Store:
    """A folder of runs.

    Attributes:
        folder: The folder; made when something is first written.
        records: What there is to know of the runs beside their results.

    Raises:
        StoreError: The folder holds something else, or a store of another version.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records = Records(folder)
        self._check()

    @property
    def runs(self) -> Path:
        """Folder of the runs that are not folded."""
        return self.folder / RUNS

    @property
    def folded(self) -> Path:
        """Folder of the folded runs."""
        return self.folder / FOLDED

    @property
    def is_prepared(self) -> bool:
        """Whether the folder is there, and marked as a store."""
        return (self.folder / MARKER).is_file()

    def prepare(self) -> None:
        """Make the folders, and mark them as a store of this version.

        Raises:
            StoreError: The folder cannot be written.
        """
        marker = json.dumps({"format": FORMAT, "version": package_version()}).encode()
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            # First of all: a folder with something else in it is not taken for a store.
            write_atomically(self.folder / MARKER, marker)
            for name in (RUNS, FOLDED, "failures", "running", "experiments"):
                (self.folder / name).mkdir(exist_ok=True)

    # -- finished runs -------------------------------------------------------------------------

    def keys(self) -> frozenset[str]:
        """Keys of the finished runs.

        Raises:
            StoreError: A file of folded runs is damaged.
        """
        return self._patiently(lambda: frozenset(self._places()))

    def has(self, key: str) -> bool:
        """Whether a run has been finished, and not been folded yet, or has failed."""
        return (self.runs / f"{key}.parquet").exists() or self.records.has_failed(key)

    def write(self, key: str, table: "pa.Table") -> None:
        """Write a finished run, atomically.

        Args:
            key: The cell's key.
            table: One row a trial.

        Raises:
            StoreError: The folder cannot be written.
        """
        with writing(self.folder):
            write_atomically(self.runs / f"{key}.parquet", encode_run(table))
            self.records.forget_failures([key])

    def read(self, keys: Iterable[str] | None = None) -> "pd.DataFrame":
        """Read runs, one row a trial, in the order of their keys.

        Args:
            keys: The runs to read; all of them without.

        Returns:
            Columns key, benchmark, surrogate, method, seed, protocol (with its settings), task,
            task_name, trial, value, loss, regret (NaN where no best value is known), fallbacks and
            optimiser. Configurations are read by `configurations`.

        Raises:
            StoreError: There is no run, or a file is damaged.
        """
        return self._read(keys, TRIAL_COLUMNS).to_pandas()

    @staticmethod
    def no_trials() -> "pd.DataFrame":
        """What `read` would give of no runs: its columns, without a row."""
        import pandas as pd

        return pd.DataFrame(columns=[KEY, *CELL_COLUMNS, *TRIAL_COLUMNS])

    def configurations(self, keys: Iterable[str]) -> "pd.DataFrame":
        """Read the configurations of runs on one benchmark, one row a trial.

        Args:
            keys: The runs.

        Returns:
            Columns key, task, trial, value, loss, and one a hyperparameter: empty where it is
            inactive.

        Raises:
            StoreError: There is no run, a file is damaged, or the runs have different
                hyperparameters.
        """
        table = self._read(keys, None)
        names = [name for name in table.column_names if name.startswith(CONFIG_PREFIX)]
        frame = table.select([KEY, "task", "trial", "value", "loss", *names]).to_pandas()
        return frame.rename(columns=lambda name: name.removeprefix(CONFIG_PREFIX))

    def cells(self) -> dict[str, Mapping[str, Any]]:
        """What identifies each finished run, by key.

        Raises:
            StoreError: A file is damaged.
        """
        segments = self._patiently(lambda: [describe_segment(p) for p in self._paths()])
        return {key: cell for segment in segments for key, cell in segment.cells.items()}

    def digest(self) -> str:
        """Hash of all values of all finished runs: the same wherever and however they were made.

        Raises:
            StoreError: A file is damaged.
        """
        tables = {
            key: run
            for segment, table in self._patiently(lambda: self._load(None, None))
            for key, run in run_tables(segment, table).items()
        }
        total = hashlib.sha256()
        for key, table in sorted(tables.items()):
            total.update(f"{key} {table.schema}".encode())
            for column in table.columns:
                total.update(_bytes_of(column))
        return total.hexdigest()

    def failures(self) -> dict[str, Failure]:
        """The runs that failed, by key; not those that were finished after all.

        Raises:
            StoreError: A record is damaged.
        """
        finished = self.keys()
        return {k: failure for k, failure in self.records.failures().items() if k not in finished}

    def set_aside_damaged(self) -> list[Path]:
        """Move what is damaged out of the way, so that it is made again.

        That are files of one run, records of failed runs and of what was asked for. A file of many
        runs stays where it is: whether to give all of them up is not decided here.

        Returns:
            Where the files are now: in the folder "damaged".

        Raises:
            StoreError: A file is of another version, or the folder cannot be written.
        """
        readers = (
            (RUNS, RUN_SUFFIX, load_segment),
            ("failures", ".json", read_failure),
            ("experiments", ".json", read_experiment),
        )
        moved = []
        for name, suffix, read in readers:
            for path in listed(self.folder / name, suffix):
                try:
                    read(path)
                except FileNotFoundError:  # just folded
                    continue
                except DamagedFileError:
                    moved.append(self._set_aside(path))
        return moved

    def fold(self, *, at_least: int = 1) -> int:
        """Put the runs that have a file of their own into files of many.

        Any number of processes may write, read and fold at the same time.

        Args:
            at_least: Do nothing while there are fewer of them.

        Returns:
            The number of runs that were folded.

        Raises:
            StoreError: The folder cannot be written.
        """
        self._paths()  # raises if a folder is a link: nothing is removed elsewhere
        with writing(self.folder):
            return fold(self.runs, self.folded, at_least=at_least)

    # -- joining ----------------------------------------------------------------------------

    def merge(self, other: "Store") -> None:
        """Take over what another store holds; what both hold is the same.

        Raises:
            StoreError: A file of the other is damaged, or this folder cannot be written.
        """
        self.prepare()
        mine = self.keys()
        other._patiently(lambda: self._take(other._paths(), mine))
        self.records.merge(other.records)
        self.records.forget_failures(self.keys())

    # -- internals -----------------------------------------------------------------------------

    def _check(self) -> None:
        marker = self.folder / MARKER
        try:
            if not self.folder.exists():
                return
            if not self.folder.is_dir():
                raise StoreError(f"{printable(self.folder)} is not a folder")
            names = {path.name for path in self.folder.iterdir()}
        except (OSError, ValueError) as error:
            raise StoreError(
                f"{printable(self.folder)} cannot be read: {one_line(error)}"
            ) from None
        if MARKER not in names:
            if any(not name.startswith(f".{MARKER}") for name in names):
                raise StoreError(
                    f"{printable(self.folder)} is not a result store: it holds other files; choose "
                    "another folder"
                )
            return
        content = read_json(marker)
        if not isinstance(content, dict):
            raise StoreError(f"{printable(marker)} is damaged: it does not say what it is")
        check_version(self.folder, content.get("format"), content.get("version"))

    def _paths(self) -> Sequence[Path]:
        """All files of runs; folded ones last, so that nothing is missed that is just folded."""
        return [*listed(self.runs, RUN_SUFFIX), *listed(self.folded, RUN_SUFFIX)]

    def _places(self) -> dict[str, Path]:
        """Where each finished run is."""
        loose = {path.stem: path for path in listed(self.runs, RUN_SUFFIX)}
        folded = map(describe_segment, listed(self.folded, RUN_SUFFIX))
        return loose | {key: segment.path for segment in folded for key in segment.keys}

    def _set_aside(self, path: Path) -> Path:
        """Move a file to the folder of damaged ones; of the same name the last is kept."""
        damaged = self.folder / DAMAGED
        with writing(self.folder), suppress(FileNotFoundError):
            damaged.mkdir(exist_ok=True)
            path.replace(damaged / path.name)
        return damaged / path.name

    def _take(self, paths: Iterable[Path], mine: frozenset[str]) -> None:
        """Copy files of another store that hold other runs than there are here; others not read."""
        for path in paths:
            if not mine.issuperset(describe_segment(path).keys):
                load_segment(path)  # a damaged file is not passed on
                with writing(self.folder):
                    write_atomically(self.folder / path.parent.name / path.name, path.read_bytes())

    def _patiently(self, look: Callable[[], T]) -> T:
        """Look again if a file has just been folded into another."""
        for _ in range(ATTEMPTS - 1):
            with suppress(FileNotFoundError):
                return look()
        try:
            return look()
        except FileNotFoundError as error:
            raise StoreError(f"{error.filename} vanished while it was read") from None

    def _read(self, keys: Iterable[str] | None, columns: Sequence[str] | None) -> "pa.Table":
        """Runs with what identifies them, one row a trial, in the order of their keys."""
        import pyarrow as pa

        wanted = None if keys is None else frozenset(keys)
        loaded = self._patiently(lambda: self._load(wanted, columns))
        if not loaded:
            raise StoreError(f"no finished runs in {self.folder}")
        try:
            trials = pa.concat_tables(table.replace_schema_metadata() for _, table in loaded)
        except pa.ArrowException:
            raise StoreError("runs on several benchmarks have different hyperparameters") from None
        cells = [(key, cell) for segment, _ in loaded for key, cell in segment.cells.items()]
        rows = np.concatenate([segment.rows for segment, _ in loaded]).astype(np.int64)
        kept = _first_of_each([key for key, _ in cells], wanted)
        starts = np.concatenate([[0], np.cumsum(rows)[:-1]])
        chosen = rows[kept]
        run_of_trial = pa.array(np.repeat(kept, chosen))
        within = np.arange(chosen.sum()) - np.repeat(np.cumsum(chosen) - chosen, chosen)
        trials = trials.take(pa.array(np.repeat(starts[kept], chosen) + within))
        identity = {KEY: [key for key, _ in cells]}
        identity |= {name: [cell[name] for _, cell in cells] for name in CELL_COLUMNS}
        columns_of_run = {name: pa.array(x).take(run_of_trial) for name, x in identity.items()}
        return pa.table(columns_of_run | {name: trials[name] for name in trials.column_names})

    def _load(
        self, wanted: frozenset[str] | None, columns: Sequence[str] | None
    ) -> "list[tuple[Segment, pa.Table]]":
        """Read every file that holds a wanted run."""
        paths = self._paths()
        if wanted is not None:
            places = self._places()
            needed = {places[key] for key in wanted if key in places}
            paths = [path for path in paths if path in needed]
        return [load_segment(path, columns) for path in paths]


# -- internals -------------------------------------------------------------------------------------


def _first_of_each(
    keys: Sequence[str], wanted: frozenset[str] | None
) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """Where each wanted key stands first, in the order of the keys."""
    first: dict[str, int] = {}
    for place, key in enumerate(keys):
        if wanted is None or key in wanted:
            first.setdefault(key, place)
    return np.array([first[key] for key in sorted(first)], dtype=np.int64)


def _bytes_of(column: "pa.ChunkedArray") -> bytes:
    """The values of a column of numbers or text, and which there are."""
    import pyarrow as pa

    known = np.asarray(column.is_valid()).tobytes()
    if pa.types.is_string(column.type):
        return known + json.dumps(column.to_pylist()).encode()
    return known + np.asarray(column.fill_null(0)).tobytes()
