"""What a store knows of its runs beside their results: see `Store` for the files."""

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

from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment._files import (
    DamagedFileError,
    content_hash,
    listed,
    read_bytes,
    read_checked,
    read_json,
    writing,
)
from hpobench_ordered.experiment.failures import Failure
from hpobench_ordered.experiment.plan import grid_cells
from hpobench_ordered.files import write_atomically

if TYPE_CHECKING:
    import pandas as pd

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a run took: one line of timings.jsonl.

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

    Methods raise a `StoreError` where the folder cannot be written or a record is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write_failure(self, failure: Failure) -> None:
        """Record a failed run."""
        with writing(self.folder):
            write_atomically(self._failure(failure.key), _text(failure.to_json()).encode())

    def has_failed(self, key: str) -> bool:
        """Whether a run is recorded as failed."""
        return self._failure(key).exists()

    def failures(self) -> dict[str, Failure]:
        """The runs that are recorded as failed, by key."""
        return {p.stem: read_failure(p) for p in listed(self.folder / "failures")}

    def forget_failures(self, keys: Iterable[str]) -> None:
        """Remove the records of failed runs, so that they are run again."""
        with writing(self.folder):
            for key in keys:
                self._failure(key).unlink(missing_ok=True)

    @contextmanager
    def running(self, key: str) -> Iterator[None]:
        """Say, while inside, that this process is at a run."""
        with writing(self.folder):
            text = json.dumps({"host": socket.gethostname(), "pid": os.getpid()})
            self._running(key).write_text(text)
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
        paths = listed(self.folder / "running")
        return frozenset(p.stem for p in paths if p.suffix == ".json" and _is_alive(p) is alive)

    def forget_progress(self, keys: Iterable[str]) -> None:
        """Remove what says that a process is at these runs."""
        for key in keys:
            with suppress(OSError):
                self._running(key).unlink(missing_ok=True)

    def write_experiment(self, grid: Mapping[str, Any]) -> str:
        """Record what is asked for; returns its name, the same for the same."""
        content = _text(grid).encode()
        path = self.folder / "experiments" / f"{content_hash(content, 20)}.json"
        with writing(self.folder):
            if not path.exists():
                write_atomically(path, content)
        return path.stem

    def experiments(self) -> dict[str, dict[str, Record]]:
        """What identifies each run that was asked for, by key, by the name of the experiment."""
        return {p.stem: read_experiment(p) for p in listed(self.folder / "experiments")}

    def write_session(self, session: Mapping[str, Any]) -> None:
        """Add a start of the runner, any JSON object."""
        self._append("sessions.jsonl", session)

    def sessions(self) -> tuple[Record, ...]:
        """The starts of the runner in the order they were added: a clock may have been set back."""
        return tuple(_lines(self.folder / "sessions.jsonl"))

    def write_timing(self, timing: Timing) -> None:
        """Add how long a run took."""
        self._append("timings.jsonl", asdict(timing))

    def timings(self) -> "pd.DataFrame":
        """Read how long the runs took.

        Returns:
            One row a run, with the attributes of `Timing` as columns; of a run that was made more
            than once the shortest time. A run lacks its row if its process was killed between
            writing the run and its time.
        """
        import pandas as pd

        columns = [field.name for field in fields(Timing)]
        lines = [r for r in _lines(self.folder / "timings.jsonl") if r.keys() == set(columns)]
        frame = pd.DataFrame(lines, columns=columns)
        return frame.sort_values(["key", "seconds"]).drop_duplicates("key", ignore_index=True)

    def merge(self, other: "Records") -> None:
        """Take over the records of another store, but for runs in progress.

        The sessions of each store stay in their order; between the two, their times decide.
        """
        failures = self.failures()
        for key, failure in other.failures().items():
            known_failure = failures.get(key, failure)
            self.write_failure(min(failure, known_failure, key=lambda f: _text(f.to_json())))
        with writing(self.folder):
            for path in listed(other.folder / "experiments"):
                write_atomically(self.folder / "experiments" / path.name, read_checked(path))
            for name in ("sessions.jsonl", "timings.jsonl"):
                mine = list(_lines(self.folder / name))
                known = set(map(_text, mine))
                new = [r for r in _lines(other.folder / name) if _text(r) not in known]
                if new:
                    joined = heapq.merge(mine, new, key=lambda r: (str(r.get("started")), _text(r)))
                    write_atomically(self.folder / name, "\n".join(map(_text, joined)).encode())

    def _failure(self, key: str) -> Path:
        return self.folder / "failures" / f"{key}.json"

    def _running(self, key: str) -> Path:
        return self.folder / "running" / f"{key}.json"

    def _append(self, name: str, record: Mapping[str, Any]) -> None:
        """Append a line of JSON in one piece: several processes may do so at the same time.

        It begins with a line break: a line that a crash broke off ends there.
        """
        line = f"\n{json.dumps(record)}\n".encode()
        with writing(self.folder), (self.folder / name).open("ab", buffering=0) as file:
            if file.write(line) != len(line):
                raise OSError(f"{name} could be written in part only: is the disk full?")


def now() -> str:
    """The time, to the second, as ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_failure(path: Path) -> Failure:
    """Read the record of a failed run."""
    record = read_json(path)
    try:
        return Failure.from_json(record)
    except StoreError as error:
        raise DamagedFileError(path, error) from None


def read_experiment(path: Path) -> dict[str, Record]:
    """Read what identifies each run that was asked for, by key."""
    try:
        return grid_cells(json.loads(read_checked(path)))
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFileError(path, f"it is no record of an experiment: {error!r}") from None


def _text(record: Mapping[str, Any]) -> str:
    return json.dumps(record, sort_keys=True)


def _lines(path: Path) -> Iterator[Record]:
    """The objects in a file of JSON lines; those that a crash broke off are left out."""
    try:
        lines = read_bytes(path).splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        with suppress(ValueError):
            if isinstance(record := json.loads(line), dict):
                yield record


def _is_alive(path: Path) -> bool | None:
    """Whether the process that wrote the file lives; None if the file is not there any more."""
    try:
        process = read_json(path)
        if process["host"] == socket.gethostname():
            os.kill(process["pid"], 0)
    except FileNotFoundError:
        return None
    except (DamagedFileError, ProcessLookupError, KeyError, TypeError):
        return False  # it has ended, or did so while it wrote the file
    except PermissionError:
        pass  # it lives, and is somebody else's
    return True
