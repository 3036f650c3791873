"""What a store knows of its runs beside their results: see `Store` for the files."""

import hashlib
import heapq
import json
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpobench_ordered.errors import ExperimentError, StoreError
from hpobench_ordered.experiment._files import (
    DamagedFileError,
    listed,
    one_line,
    read_bytes,
    read_json,
)
from hpobench_ordered.experiment.failures import Failure
from hpobench_ordered.experiment.plan import grid_cells
from hpobench_ordered.files import write_atomically

if TYPE_CHECKING:
    import pandas as pd

SESSIONS, TIMINGS = "sessions.jsonl", "timings.jsonl"
JSON = ".json"

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a run took.

    Attributes:
        key: The cell's key; the next five are as in the results.
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


class Records:
    """Failures, runs in progress, planned experiments, sessions and timings of a store.

    Methods that write raise a `StoreError` where the folder cannot be written, methods that read
    where a record is damaged or cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write_failure(self, failure: Failure) -> None:
        """Record a failed run, atomically."""
        with writing(self.folder):
            write_atomically(self._failure(failure.key), _failure_text(failure).encode())

    def has_failed(self, key: str) -> bool:
        """Whether a run is recorded as failed."""
        return self._failure(key).exists()

    def failures(self) -> dict[str, Failure]:
        """The runs that are recorded as failed, by key."""
        return {p.stem: read_failure(p) for p in listed(self.folder / "failures", JSON)}

    def forget_failures(self, keys: Iterable[str]) -> None:
        """Remove the records of failed runs, so that they are run again."""
        with writing(self.folder):
            for key in keys:
                self._failure(key).unlink(missing_ok=True)

    @contextmanager
    def running(self, key: str) -> Iterator[None]:
        """Say, while inside, that this process is at a run."""
        path = self.folder / "running" / f"{key}.json"
        with writing(self.folder):
            path.write_text(json.dumps({"host": socket.gethostname(), "pid": os.getpid()}))
        try:
            yield
        finally:
            self.forget_progress([key])

    def in_progress(self, *, alive: bool) -> frozenset[str]:
        """Keys of the runs that a process is at, or was at when it ended.

        Args:
            alive: True for the former, False for the latter. Processes on other machines cannot
                be asked: they count as alive.
        """
        paths = listed(self.folder / "running", JSON)
        return frozenset(path.stem for path in paths if _is_alive(path) is alive)

    def forget_progress(self, keys: Iterable[str]) -> None:
        """Remove what says that a process is at these runs."""
        for key in keys:
            with suppress(OSError):
                (self.folder / "running" / f"{key}.json").unlink(missing_ok=True)

    def crash_file(self, key: str) -> Path:
        """Where the process that is at a run may say why it crashes."""
        return self.folder / "running" / f"{key}.crash"

    def crash_text(self, key: str) -> str:
        """Read what it said, and remove it."""
        path = self.crash_file(key)
        with suppress(OSError, StoreError):
            text = read_bytes(path).decode(errors="replace")
            path.unlink()
            return text
        return ""

    def write_experiment(self, grid: Mapping[str, Any]) -> str:
        """Record what is asked for; returns its name, the same for the same."""
        content = json.dumps(grid, sort_keys=True, indent=1).encode()
        path = self.folder / "experiments" / f"{_hash(content)}.json"
        with writing(self.folder):
            if not path.exists():
                write_atomically(path, content)
        return path.stem

    def experiments(self) -> dict[str, dict[str, Record]]:
        """What identifies each run that was asked for, by key, by the name of the experiment."""
        paths = listed(self.folder / "experiments", JSON)
        return {path.stem: read_experiment(path) for path in paths}

    def write_session(self, session: Mapping[str, Any]) -> None:
        """Add a start of the runner, any JSON object."""
        with writing(self.folder):
            _append(self.folder / SESSIONS, session)

    def sessions(self) -> tuple[Record, ...]:
        """The starts of the runner in the order they were added; damaged lines are left out.

        Their times do not count: a clock may have been set back.
        """
        return tuple(_lines(self.folder / SESSIONS))

    def write_timing(self, timing: Timing) -> None:
        """Add how long a run took."""
        with writing(self.folder):
            _append(self.folder / TIMINGS, asdict(timing))

    def timings(self) -> "pd.DataFrame":
        """Read how long the runs took.

        Returns:
            One row a run, with the attributes of `Timing` as columns; of a run that was made more
            than once the shortest time. Damaged lines are left out, and a run may lack its line if
            its process was killed between writing the two.
        """
        import pandas as pd

        lines = list(filter(_is_timing, _lines(self.folder / TIMINGS)))
        frame = pd.DataFrame(lines, columns=[field.name for field in fields(Timing)])
        return frame.sort_values(["key", "seconds"]).drop_duplicates("key", ignore_index=True)

    def merge(self, other: "Records") -> None:
        """Take over the records of another store, but for runs in progress.

        The sessions of each store stay in their order; between the two, their times decide.
        """
        failures = self.failures()
        for key, failure in other.failures().items():
            self.write_failure(min(failure, failures.get(key, failure), key=_failure_text))
        for path in listed(other.folder / "experiments", JSON):
            read_experiment(path)
            with writing(self.folder):
                write_atomically(self.folder / "experiments" / path.name, read_bytes(path))
        for name in (SESSIONS, TIMINGS):
            mine, theirs = list(_lines(self.folder / name)), list(_lines(other.folder / name))
            known = set(map(_text, mine))
            if new := [record for record in theirs if _text(record) not in known]:
                joined = heapq.merge(mine, new, key=lambda r: (str(r.get("started")), _text(r)))
                with writing(self.folder):
                    write_atomically(self.folder / name, "\n".join(map(_text, joined)).encode())

    def _failure(self, key: str) -> Path:
        return self.folder / "failures" / f"{key}.json"


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Say that a store cannot be written where that is so."""
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise StoreError(f"cannot write results to {folder}: {why}") from None


def now() -> str:
    """The time, to the second, as ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_failure(path: Path) -> Failure:
    """Read the record of a failed run."""
    record = read_json(path)
    try:
        failure = Failure.from_json(record)
    except StoreError as error:
        raise DamagedFileError(path, error) from None
    if failure.key != path.stem:
        raise DamagedFileError(path, "it is the record of another run")
    return failure


def read_experiment(path: Path) -> dict[str, Record]:
    """Read what identifies each run that was asked for, by key."""
    if _hash(read_bytes(path)) != path.stem:
        raise DamagedFileError(path, "its content does not have the hash in its name")
    try:
        return grid_cells(read_json(path))
    except ExperimentError as error:
        raise DamagedFileError(path, one_line(error)) from None


_TYPES: dict[Any, tuple[type, ...]] = {str: (str,), int: (int,), float: (float, int)}


def _is_timing(record: Record) -> bool:
    """Whether a line says what `Timing` does."""
    return record.keys() == {field.name for field in fields(Timing)} and all(
        type(record[field.name]) in _TYPES[field.type] for field in fields(Timing)
    )


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:20]


def _text(record: Mapping[str, Any]) -> str:
    return json.dumps(record, sort_keys=True)


def _failure_text(failure: Failure) -> str:
    return json.dumps(failure.to_json(), indent=1)


def _append(path: Path, record: Mapping[str, Any]) -> None:
    """Append a line of JSON in one piece: several processes may do so at the same time.

    It begins with a line break of its own: a line that a crash broke off ends there.
    """
    line = f"\n{json.dumps(record)}\n".encode()
    with path.open("ab", buffering=0) as file:
        if file.write(line) != len(line):
            raise OSError(f"{path} could be written in part only: is the disk full?")


def _lines(path: Path) -> Iterator[Record]:
    """The objects in a file of JSON lines; damaged lines are left out."""
    try:
        lines = read_bytes(path).splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        with suppress(ValueError, RecursionError):
            if isinstance(record := json.loads(line), dict):
                yield record


def _is_alive(path: Path) -> bool | None:
    """Whether the process that wrote the file lives; None if the file is not there any more."""
    try:
        record = read_json(path)
        host, pid = record["host"], int(record["pid"])
        if host == socket.gethostname():
            os.kill(pid, 0)
    except FileNotFoundError:
        return None
    except PermissionError:
        return True  # it lives, and is somebody else's
    except (OSError, OverflowError, StoreError, KeyError, TypeError, ValueError):
        return False  # it has ended, or did so while it wrote the file
    return True
