"""Result stores: a folder with one parquet file a run, written once and as a whole.

    store.json              format of the store and version of the package that writes it
    runs/KEY.parquet        one row a trial; what identifies the run is in the file's metadata
    timings.jsonl           how long each run took, one line a run

Stores are merged by copying `runs` together and joining the timings. A file is written under
another name and then renamed, so a run is there as a whole or not at all. A run is the same bytes
wherever and whenever it is made; how long it took is not, and therefore kept beside it.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered.artifact import write_atomically
from hpobench_ordered.errors import StoreError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FORMAT = 2
MARKER = "store.json"
TIMINGS = "timings.jsonl"
RUN_METADATA = b"hpobench_ordered"
CELL_COLUMNS = ("benchmark", "surrogate", "method", "seed", "protocol")
TRIAL_COLUMNS = (
    "task",
    "task_name",
    "trial",
    "value",
    "loss",
    "regret",
    "fallbacks",
    "optimiser",
)
CONFIG_PREFIX = "config."


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a run took.

    Attributes:
        key: The cell's key.
        benchmark: As in the results.
        surrogate: As in the results.
        method: As in the results.
        seed: As in the results.
        protocol: As in the results.
        suggestions: Number of trials, those included that only make a history.
        seconds: Time of the whole run.
        method_seconds: Time spent inside the methods: when they were made, asked and told.
    """

    key: str
    benchmark: str
    surrogate: str
    method: str
    seed: int
    protocol: str
    suggestions: int
    seconds: float
    method_seconds: float


class Store:
    """A folder of finished runs.

    Args:
        folder: The folder; made when something is first written.

    Raises:
        StoreError: The folder holds something else, or a store of another version.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._check()

    @property
    def runs(self) -> Path:
        """Folder of the runs."""
        return self.folder / "runs"

    def prepare(self) -> None:
        """Make the folders, and mark them as a store of this version.

        Raises:
            StoreError: The folder cannot be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            marker = {"format": FORMAT, "version": package_version()}
            # First of all: a folder with something else in it is not taken for a store.
            write_atomically(self.folder / MARKER, json.dumps(marker).encode())
            self.runs.mkdir(exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot write results to {self.folder}: {error}") from None

    def keys(self) -> frozenset[str]:
        """Keys of the finished runs."""
        return frozenset(path.stem for path in self.runs.glob("*.parquet"))

    def write(self, key: str, table: "pa.Table") -> None:
        """Write a finished run, atomically.

        Args:
            key: The cell's key.
            table: One row a trial.

        Raises:
            StoreError: The folder cannot be written.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        buffer = pa.BufferOutputStream()
        pq.write_table(table, buffer, compression="lz4")
        try:
            write_atomically(self.runs / f"{key}.parquet", buffer.getvalue().to_pybytes())
        except OSError as error:
            raise StoreError(f"cannot write results to {self.folder}: {error}") from None

    def write_timing(self, timing: Timing) -> None:
        """Add how long a run took.

        Any number of processes may do so at the same time: a line is appended in one piece. It
        begins with a line break of its own, so that a line broken off by a crash ends there.

        Raises:
            StoreError: The folder cannot be written.
        """
        line = f"\n{json.dumps(asdict(timing))}\n".encode()
        try:
            file = os.open(self.folder / TIMINGS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                os.write(file, line)
            finally:
                os.close(file)
        except OSError as error:
            raise StoreError(f"cannot write results to {self.folder}: {error}") from None

    def timings(self) -> "pd.DataFrame":
        """Read how long the runs took.

        Returns:
            One row a run, with the attributes of `Timing` as columns. Damaged lines are left out;
            of several with the same key the last counts. A run may be without, if its process was
            killed between writing the two.
        """
        import pandas as pd

        latest = {timing.key: timing for timing in self._timings()}
        columns = [field.name for field in fields(Timing)]
        return pd.DataFrame([asdict(timing) for timing in latest.values()], columns=columns)

    def read(self, keys: Iterable[str] | None = None) -> "pd.DataFrame":
        """Read runs, one row a trial.

        Args:
            keys: The runs to read; all of them without.

        Returns:
            Columns benchmark, surrogate, method, seed, protocol (with its settings), task,
            task_name, trial, value, loss, regret (NaN where no best value is known), fallbacks and
            optimiser. Configurations are read by `configurations`.

        Raises:
            StoreError: There is no run, or a file is damaged.
        """
        import pyarrow as pa

        wanted = self.keys() if keys is None else frozenset(keys)
        loaded = [self._load(path, TRIAL_COLUMNS) for path in self._paths() if path.stem in wanted]
        if not loaded:
            raise StoreError(f"no finished runs in {self.folder}")
        trials = pa.concat_tables(table.replace_schema_metadata() for table, _ in loaded)
        run_of_trial = np.repeat(np.arange(len(loaded)), [len(table) for table, _ in loaded])
        columns = {
            name: pa.array([cell[name] for _, cell in loaded]).take(pa.array(run_of_trial))
            for name in CELL_COLUMNS
        }
        columns |= {name: trials[name] for name in TRIAL_COLUMNS}
        return pa.table(columns).to_pandas()

    def configurations(self, key: str) -> "pd.DataFrame":
        """Read the configurations of one run, one row a trial, a column a hyperparameter."""
        table, _ = self._load(self.runs / f"{key}.parquet")
        columns = [c for c in table.column_names if c.startswith(CONFIG_PREFIX)]
        frame = table.select(["task", "trial", *columns]).to_pandas()
        return frame.rename(columns=lambda c: c.removeprefix(CONFIG_PREFIX))

    # -- internals -----------------------------------------------------------------------------

    def _check(self) -> None:
        marker = self.folder / MARKER
        if not self.folder.exists():
            return
        if not self.folder.is_dir():
            raise StoreError(f"{self.folder} is not a folder")
        if not marker.exists():
            if any(not path.name.startswith(f".{MARKER}") for path in self.folder.iterdir()):
                raise StoreError(
                    f"{self.folder} is not empty and not a result store; choose another folder"
                )
            return
        try:
            content = json.loads(marker.read_text())
            written = content["format"], content["version"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{marker} is damaged: {error}") from None
        _check_version(self.folder, *written)

    def _timings(self) -> Iterator[Timing]:
        path = self.folder / TIMINGS
        if not path.exists():
            return
        for line in path.read_bytes().splitlines():
            try:
                yield Timing(**json.loads(line))
            except (ValueError, TypeError):  # no JSON, or not these fields
                continue

    def _paths(self) -> Sequence[Path]:
        return sorted(self.runs.glob("*.parquet"))

    def _load(
        self, path: Path, columns: Sequence[str] | None = None
    ) -> "tuple[pa.Table, dict[str, Any]]":
        """Read these columns of a run, or all; and what identifies the run."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            # For small files this is several times faster than `read_table`.
            with pq.ParquetFile(path) as file:
                table = file.read(columns, use_threads=False)
        except (OSError, pa.ArrowInvalid) as error:
            raise StoreError(f"{path} is damaged: {error}; delete it and run again") from None
        cell = _metadata(path, table.schema)
        _check_version(path, cell.get("format", 1), cell["version"])
        return table, cell


@cache
def package_version() -> str:
    """Version of this package; looking it up takes longer than reading a run."""
    return version("hpobench-ordered")


def _check_version(path: Path, written_format: int, written_by: str) -> None:
    here = package_version()
    if (written_format, written_by) != (FORMAT, here):
        raise StoreError(
            f"{path} was written by version {written_by} (store format {written_format}), this is "
            f"version {here} (format {FORMAT}): results of two versions are not mixed; choose "
            "another folder"
        )


def _metadata(path: Path, schema: "pa.Schema") -> dict[str, Any]:
    try:
        cell: dict[str, Any] = json.loads((schema.metadata or {})[RUN_METADATA])
    except (KeyError, ValueError):
        raise StoreError(f"{path} is not a run: it does not say what it belongs to") from None
    return cell
