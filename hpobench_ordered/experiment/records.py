"""What a store knows of its runs beside their results: see `Store` for the files."""

import hashlib
import json
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpobench_ordered.artifact import write_atomically
from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment import _journal
from hpobench_ordered.experiment.failures import Failure

if TYPE_CHECKING:
    import pandas as pd

SESSIONS, TIMINGS = "sessions.jsonl", "timings.jsonl"


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


class Records:
    """Failures, runs in progress, what was asked for, sessions and timings of a store.

    Args:
        folder: The store's folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # -- failed runs ---------------------------------------------------------------------------

    def write_failure(self, failure: Failure) -> None:
        """Record a failed run, atomically.

        Raises:
            StoreError: The folder cannot be written.
        """
        with writing(self.folder):
            write_atomically(
                self._failure(failure.key), json.dumps(failure.to_json(), indent=1).encode()
            )

    def has_failed(self, key: str) -> bool:
        """Whether a run is recorded as failed."""
        return self._failure(key).exists()

    def failures(self) -> dict[str, Failure]:
        """The runs that are recorded as failed, by key.

        Raises:
            StoreError: A record is damaged.
        """
        paths = sorted((self.folder / "failures").glob("*.json"))
        return {path.stem: _read_failure(path) for path in paths}

    def forget_failures(self, keys: Iterable[str]) -> None:
        """Remove the records of failed runs, so that they are run again.

        Raises:
            StoreError: The folder cannot be written.
        """
        with writing(self.folder):
            for key in keys:
                self._failure(key).unlink(missing_ok=True)

    # -- runs in progress ----------------------------------------------------------------------

    @contextmanager
    def running(self, key: str) -> Iterator[None]:
        """Say, while inside, that this process is at a run.

        Raises:
            StoreError: The folder cannot be written.
        """
        path = self.folder / "running" / f"{key}.json"
        me = {"host": socket.gethostname(), "pid": os.getpid(), "started": now()}
        with writing(self.folder):
            path.write_text(json.dumps(me))
        try:
            yield
        finally:
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def in_progress(self, *, alive: bool) -> frozenset[str]:
        """Keys of the runs that a process is at, or was at when it ended.

        Args:
            alive: Whether to give the former or the latter. Of a process on another machine
                nobody can say, it is taken for alive.
        """
        paths = (self.folder / "running").glob("*.json")
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
        """What it said, which is then removed."""
        path = self.crash_file(key)
        with suppress(OSError):
            text = path.read_text(errors="replace")
            path.unlink()
            return text
        return ""

    # -- experiments, sessions and timings -----------------------------------------------------

    def write_experiment(self, grid: Mapping[str, Any]) -> str:
        """Record what was asked for; returns its name, the same for the same.

        Raises:
            StoreError: The folder cannot be written.
        """
        text = json.dumps(grid, sort_keys=True, indent=1)
        name = hashlib.sha256(text.encode()).hexdigest()[:20]
        path = self.folder / "experiments" / f"{name}.json"
        with writing(self.folder):
            if not path.exists():
                write_atomically(path, text.encode())
        return name

    def experiments(self) -> dict[str, dict[str, Any]]:
        """What was asked for, by name.

        Raises:
            StoreError: A record is damaged.
        """
        found = {}
        for path in sorted((self.folder / "experiments").glob("*.json")):
            try:
                found[path.stem] = dict(json.loads(path.read_bytes()))
            except (OSError, ValueError, TypeError, RecursionError) as error:
                raise StoreError(f"{path} is damaged: {error}") from None
        return found

    def write_session(self, session: Mapping[str, Any]) -> None:
        """Record a start of the runner.

        Raises:
            StoreError: The folder cannot be written.
        """
        with writing(self.folder):
            _journal.append(self.folder / "sessions.jsonl", session)

    def sessions(self) -> tuple[dict[str, Any], ...]:
        """The starts of the runner, earliest first."""
        found = _journal.records(self.folder / SESSIONS)
        return tuple(sorted(found, key=lambda session: str(session.get("started"))))

    def write_timing(self, timing: Timing) -> None:
        """Add how long a run took.

        Raises:
            StoreError: The folder cannot be written.
        """
        with writing(self.folder):
            _journal.append(self.folder / "timings.jsonl", asdict(timing))

    def timings(self) -> "pd.DataFrame":
        """Read how long the runs took.

        Returns:
            One row a run, with the attributes of `Timing` as columns. Damaged lines are left out;
            of several with the same key the last counts. A run may be without, if its process was
            killed between writing the two.
        """
        import pandas as pd

        columns = [field.name for field in fields(Timing)]
        latest = {}
        for record in _journal.records(self.folder / TIMINGS):
            if record.keys() == set(columns):
                latest[record["key"]] = record
        return pd.DataFrame(list(latest.values()), columns=columns)

    def merge(self, other: "Records") -> None:
        """Take over the records of another store, but for runs in progress.

        Raises:
            StoreError: A record is damaged, or this folder cannot be written.
        """
        for failure in other.failures().values():
            self.write_failure(failure)
        for grid in other.experiments().values():
            self.write_experiment(grid)
        with writing(self.folder):
            for name in (SESSIONS, TIMINGS):
                _journal.append_new(self.folder / name, other.folder / name)

    # -- internals -----------------------------------------------------------------------------

    def _failure(self, key: str) -> Path:
        return self.folder / "failures" / f"{key}.json"


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Say that a store cannot be written where that is so.

    Raises:
        StoreError: It cannot.
    """
    try:
        yield
    except OSError as error:
        raise StoreError(f"cannot write results to {folder}: {error}") from None


def now() -> str:
    """The time, to the second, as ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


# -- internals -------------------------------------------------------------------------------------


def _read_failure(path: Path) -> Failure:
    try:
        return Failure.from_json(json.loads(path.read_bytes()))
    except (OSError, ValueError, RecursionError, StoreError) as error:
        raise StoreError(f"{path} is damaged: {error}") from None


def _is_alive(path: Path) -> bool | None:
    """Whether the process that wrote the file lives; None if the file is not there any more."""
    try:
        me = json.loads(path.read_bytes())
        host, pid = me["host"], int(me["pid"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return False  # half written when its process ended
    if host != socket.gethostname():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
