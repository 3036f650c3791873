"""Result stores: a folder with one parquet file a run, written once and as a whole.

    store.json              format of the store and version of the package that writes it
    runs/KEY.parquet        one row a trial; what identifies the run is in the file's metadata

Stores are merged by copying `runs` together. A file is written under another name
and then renamed, so a run is there as a whole or not at all.
"""

import json
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpobench_ordered.artifact import write_atomically
from hpobench_ordered.errors import StoreError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FORMAT = 1
MARKER = "store.json"
RUN_METADATA = b"hpobench_ordered"


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
            marker = {"format": FORMAT, "version": version("hpobench-ordered")}
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
        pq.write_table(table, buffer, compression="zstd")
        try:
            write_atomically(self.runs / f"{key}.parquet", buffer.getvalue().to_pybytes())
        except OSError as error:
            raise StoreError(f"cannot write results to {self.folder}: {error}") from None

    def read(self, keys: Iterable[str] | None = None) -> "pd.DataFrame":
        """Read runs, one row a trial.

        Args:
            keys: The runs to read; all of them without.

        Returns:
            Columns benchmark, surrogate, method, seed, protocol (with its settings), task,
            task_name, trial, value, loss, fallbacks and optimiser. Configurations are read by
            `configurations`.

        Raises:
            StoreError: There is no run, or a file is damaged.
        """
        import pandas as pd

        wanted = None if keys is None else frozenset(keys)
        frames = []
        for path in self._paths():
            if wanted is None or path.stem in wanted:
                table, cell = self._load(path)
                columns = [c for c in table.column_names if not c.startswith(CONFIG_PREFIX)]
                frame = table.select(columns).to_pandas()
                for position, name in enumerate(CELL_COLUMNS):
                    frame.insert(position, name, cell[name])
                frames.append(frame)
        if not frames:
            raise StoreError(f"no finished runs in {self.folder}")
        return pd.concat(frames, ignore_index=True)

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

    def _paths(self) -> Sequence[Path]:
        return sorted(self.runs.glob("*.parquet"))

    def _load(self, path: Path) -> "tuple[pa.Table, dict[str, Any]]":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise StoreError(f"{path} is damaged: {error}; delete it and run again") from None
        cell = _metadata(path, table.schema)
        _check_version(path, FORMAT, cell["version"])
        return table, cell


CELL_COLUMNS = ("benchmark", "surrogate", "method", "seed", "protocol")
CONFIG_PREFIX = "config."


def _check_version(path: Path, written_format: int, written_by: str) -> None:
    here = version("hpobench-ordered")
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
