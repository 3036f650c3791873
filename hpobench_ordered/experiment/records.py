"""What a store knows of its runs beside their results: see `Store` for the files."""

import hashlib
import json
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment import _journal
from hpobench_ordered.experiment._files import (
    DamagedFileError,
    listed,
    printable,
    read_bytes,
    read_json,
)
from hpobench_ordered.experiment._identity import (
    MAX_RUNS,
    grid_size,
    is_duration,
    is_text,
    is_whole,
)
from hpobench_ordered.experiment._sessions import checked_session
from hpobench_ordered.experiment.failures import Failure
from hpobench_ordered.files import write_atomically

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
        paths = listed(self.folder / "failures", ".json")
        return {path.stem: read_failure(path) for path in paths}

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
            path.unlink(missing_ok=True)  # nothing is written through a link
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

        Raises:
            StoreError: The folder cannot be read.
        """
        paths = listed(self.folder / "running", ".json")
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
        with suppress(OSError, StoreError):
            text = read_bytes(path).decode(errors="replace")
            path.unlink()
            return text
        return ""

    # -- experiments, sessions and timings -----------------------------------------------------

    def write_experiment(self, grid: Mapping[str, Any]) -> str:
        """Record what was asked for; returns its name, the same for the same.

        Raises:
            StoreError: The folder cannot be written, or these are too many runs for one store.
        """
        if grid_size(grid) > MAX_RUNS:
            raise StoreError(f"a store is asked for at most {MAX_RUNS} runs; use several folders")
        text, name = _named(grid)
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
        paths = listed(self.folder / "experiments", ".json")
        found = {path.stem: read_experiment(path) for path in paths}
        if sum(map(grid_size, found.values())) > MAX_RUNS:
            raise StoreError(
                f"{printable(self.folder / 'experiments')} asks for more than {MAX_RUNS} runs; "
                "remove what is not needed any more"
            )
        return found

    def write_session(self, session: Mapping[str, Any]) -> None:
        """Record a start of the runner.

        Raises:
            StoreError: The folder cannot be written.
        """
        with writing(self.folder):
            _journal.append(self.folder / "sessions.jsonl", session)

    def sessions(self) -> tuple[dict[str, Any], ...]:
        """The starts of the runner, earliest first.

        Of a session, what is not as the runner writes it is left out.

        Raises:
            StoreError: The file cannot be read.
        """
        found = map(checked_session, _journal.records(self.folder / SESSIONS))
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

        Raises:
            StoreError: The file cannot be read.
        """
        import pandas as pd

        latest = {record["key"]: record for record in self._timings()}
        return pd.DataFrame(list(latest.values()), columns=[f.name for f in fields(Timing)])

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
            _journal.append_new(self.folder / SESSIONS, other.sessions())
            _journal.append_new(self.folder / TIMINGS, other._timings())

    # -- internals -----------------------------------------------------------------------------

    def _timings(self) -> Iterator[dict[str, Any]]:
        return filter(_is_timing, _journal.records(self.folder / TIMINGS))

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


def read_failure(path: Path) -> Failure:
    """Read the record of a failed run.

    Raises:
        FileNotFoundError: The file is not there any more.
        StoreError: It is damaged, or of another run than its name says.
    """
    record = read_json(path)
    try:
        failure = Failure.from_json(record)
    except StoreError as error:
        raise DamagedFileError(path, error) from None
    if failure.key != path.stem:
        raise DamagedFileError(path, "it is the record of another run")
    return failure


def read_experiment(path: Path) -> dict[str, Any]:
    """Read what was asked for.

    Raises:
        FileNotFoundError: The file is not there any more.
        StoreError: It is damaged, or something else than its name says.
    """
    grid = read_json(path)
    try:
        grid_size(grid)
    except ValueError as error:
        raise DamagedFileError(path, error) from None
    if _named(grid)[1] != path.stem:
        raise DamagedFileError(path, "it is another experiment than its name says")
    return dict(grid)


# -- internals -------------------------------------------------------------------------------------


def _named(grid: Mapping[str, Any]) -> tuple[str, str]:
    """The text of an experiment, and the name that goes with it."""
    text = json.dumps(grid, sort_keys=True, indent=1)
    return text, hashlib.sha256(text.encode()).hexdigest()[:20]


def _is_timing(record: Mapping[str, Any]) -> bool:
    """Whether a line says what `Timing` does."""
    return record.keys() == _TIMING.keys() and all(
        is_right(record[name]) for name, is_right in _TIMING.items()
    )


_CHECKS: dict[Any, Callable[[object], bool]] = {str: is_text, int: is_whole, float: is_duration}
_TIMING = {field.name: _CHECKS[field.type] for field in fields(Timing)}


def _is_alive(path: Path) -> bool | None:
    """Whether the process that wrote the file lives; None if the file is not there any more."""
    try:
        me = read_json(path)
        host, pid = me["host"], me["pid"]
    except FileNotFoundError:
        return None
    except (StoreError, KeyError, TypeError):
        return False  # half written when its process ended
    if host != socket.gethostname():
        return True
    return is_whole(pid) and pid > 0 and _is_process(pid)


def _is_process(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
