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
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment._files import DamagedFileError, listed, read_json
from hpobench_ordered.experiment._run_file import (
    FORMAT,
    NAME,
    SUFFIX,
    described_runs,
    other_format,
    package_version,
    read_checked,
)
from hpobench_ordered.experiment._run_folder import Cells, RunFolder, refuse_conflicts
from hpobench_ordered.experiment.failures import Failure
from hpobench_ordered.experiment.records import Records, read_experiment, read_failure, writing
from hpobench_ordered.files import write_atomically

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

T = TypeVar("T")

MARKER, RUNS, PACKED, EXPERIMENTS = "store.json", "runs", "packed", "experiments"
JSON = ".json"
KEY = "key"
CELL_COLUMNS = ("benchmark", "surrogate", "method", "seed", "protocol")
TRIAL_COLUMNS = ("task", "task_name", "trial", "value", "loss", "regret", "fallbacks", "optimiser")
CONFIG_PREFIX = "config."
MANY = 1000
"""Files of single runs that are packed without being asked for."""
ATTEMPTS = 5
"""How often runs are looked for while somebody else packs them."""


class Store:
    """A folder of runs.

    Attributes:
        folder: The folder; made when something is first written.
        records: What there is to know of the runs beside their results.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records = Records(folder)
        self._files = RunFolder(folder)
        self._check()

    @property
    def is_prepared(self) -> bool:
        """Whether the folder is there, and is a store."""
        return (self.folder / MARKER).exists() or self._has_runs_or_plans()

    def prepare(self) -> None:
        """Make the folders, and mark them as a store."""
        marker = self.folder / MARKER
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            if not marker.exists():  # first of all: a folder of other things is no store
                content = {"format": FORMAT, "version": package_version()}
                write_atomically(marker, json.dumps(content).encode())
            for name in (RUNS, PACKED, "failures", "running", EXPERIMENTS):
                (self.folder / name).mkdir(exist_ok=True)

    def keys(self) -> frozenset[str]:
        """Keys of the finished runs; files of one run are not opened."""
        return frozenset(self._patiently(self._files.places))

    def has(self, key: str) -> bool:
        """Whether a run has been finished, and not been packed yet, or has failed."""
        is_finished = any((self.folder / RUNS).glob(f"{key}-*"))
        return is_finished or self.records.has_failed(key)

    def write(self, key: str, table: "pa.Table") -> None:
        """Write a finished run, atomically: a table as `run_table` makes it, and its key."""
        with writing(self.folder):
            self._files.write(key, table)
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
        return self._table(keys, TRIAL_COLUMNS).to_pandas(split_blocks=True)

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
        table = self._table(keys, None)
        names = [name for name in table.column_names if name.startswith(CONFIG_PREFIX)]
        frame = table.select([KEY, "task", "trial", "value", "loss", *names]).to_pandas()
        frame[KEY] = frame[KEY].astype(str)
        return frame.rename(columns=lambda name: name.removeprefix(CONFIG_PREFIX))

    def cells(self, known: Cells | None = None) -> Cells:
        """What identifies each finished run, by key.

        Args:
            known: What identifies runs that were asked for, by key: of these files of one run are
                not opened. Default: read from the experiments of the store.
        """
        planned = self._planned() if known is None else known
        return self._patiently(lambda: self._files.cells(planned))

    def digest(self) -> str:
        """Hash of all values of all finished runs: the same wherever and however they were made."""
        digests = self._patiently(lambda: {run.key: run.digest() for run in self._files.load()})
        return hashlib.sha256(json.dumps(sorted(digests.items())).encode()).hexdigest()

    def failures(self) -> dict[str, Failure]:
        """The runs that failed, by key; not those that were finished after all."""
        finished = self.keys()
        return {k: failure for k, failure in self.records.failures().items() if k not in finished}

    def set_aside_damaged(self) -> list[Path]:
        """Move what is damaged to the folder "damaged", so that it is made again; says where to."""
        readers: Sequence[tuple[str, str, Callable[[Path], object]]] = (
            (RUNS, SUFFIX, read_checked),
            (PACKED, SUFFIX, read_checked),
            ("failures", JSON, read_failure),
            (EXPERIMENTS, JSON, read_experiment),
        )
        moved = []
        for name, suffix, read in readers:
            for path in listed(self.folder / name, suffix):
                try:
                    read(path)
                except FileNotFoundError:  # just packed
                    continue
                except DamagedFileError:
                    target = self.folder / "damaged" / path.name
                    with writing(self.folder), suppress(FileNotFoundError):
                        target.parent.mkdir(exist_ok=True)
                        path.replace(target)
                        moved.append(target)
        return moved

    def compact(self, *, at_least: int = 0) -> int:
        """Join the runs of each benchmark into files of many runs.

        What is joined are files of one run and files of many that are not full. They are removed
        after all of the joined files were written and read back. Any number of processes may
        write, read and compact at the same time.

        Args:
            at_least: Do nothing while there are fewer files of one run.

        Returns:
            The number of files that were removed.
        """
        self.prepare()
        planned = self._planned()
        with writing(self.folder):
            return self._patiently(lambda: self._files.compact(planned, at_least=at_least))

    def merge(self, *others: "Store") -> None:
        """Take over what other stores hold.

        Raises:
            StoreError: As elsewhere; results that differ are found before anything is taken over.
        """
        folders = [store._files for store in (self, *others)]
        self._patiently(lambda: refuse_conflicts(folders))
        self.prepare()
        with writing(self.folder):
            for folder in folders[1:]:
                self._patiently(lambda folder=folder: self._files.take(folder))  # type: ignore[misc]
        for other in others:
            self.records.merge(other.records)
        self.records.forget_failures(self.keys() & self.records.failures().keys())

    def _check(self) -> None:
        marker = self.folder / MARKER
        try:
            if not self.folder.exists():
                return
            names = [n for n in os.listdir(self.folder) if not n.startswith(f".{MARKER}")]  # noqa: PTH208
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.folder} is not a folder that can be read: {error}") from None
        if MARKER in names:
            content = read_json(marker)
            if not isinstance(content, dict) or "format" not in content:
                raise DamagedFileError(marker, "it does not say which format the store has")
            if content["format"] != FORMAT:
                raise other_format(self.folder, content["format"])
        elif names and not self._has_runs_or_plans():
            raise StoreError(
                f"{self.folder} is not a result store: it holds other files, such as {names[0]!r}; "
                "choose another folder"
            )

    def _has_runs_or_plans(self) -> bool:
        """Whether there are files as only a store has them: it is one whose marker was lost."""
        runs, plans = self._files.files(), listed(self.folder / EXPERIMENTS, JSON)
        if any(NAME.fullmatch(path.name) is None for path in runs):
            return False
        with suppress(FileNotFoundError, DamagedFileError):
            return bool(
                (runs and described_runs(runs[-1])) or (plans and read_experiment(plans[0]))
            )
        return bool(runs)

    def _planned(self) -> Cells:
        """What identifies each run that was asked for, by key."""
        return {k: c for cells in self.records.experiments().values() for k, c in cells.items()}

    def _table(self, keys: Iterable[str] | None, columns: Sequence[str] | None) -> "pa.Table":
        """Runs with what identifies them, one row a trial, in the order of their keys."""
        import pyarrow as pa

        requested = None if keys is None else frozenset(keys)
        loaded = self._patiently(lambda: list(self._files.load(requested, columns)))
        if not loaded:
            raise StoreError(f"no finished runs in {self.folder}")
        runs = sorted(loaded, key=lambda run: run.key)
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

    def _patiently(self, look: Callable[[], T]) -> T:
        """Look again if a file has just been packed into another."""
        for _ in range(ATTEMPTS - 1):
            with suppress(FileNotFoundError):
                return look()
        try:
            return look()
        except FileNotFoundError as error:
            raise StoreError(f"{error.filename} vanished while it was read") from None


def _encoded(values: "pa.Array") -> "pa.Array":
    """Texts as places in their sorted dictionary, which pandas reads as categories."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if values.type != pa.string():
        return values
    names = values.unique().drop_null().sort()
    return pa.DictionaryArray.from_arrays(pc.index_in(values, value_set=names), names)
