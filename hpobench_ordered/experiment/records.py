"""Records of a store beside the results; `Store` lists the files."""

import heapq
import json
import os
import re
import socket
import traceback
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from hpobench_ordered.errors import (
    BenchmarkFailedError,
    InvalidSuggestionError,
    MethodError,
    ProcessDiedError,
    SuggestionTimeoutError,
)
from hpobench_ordered.experiment._files import (
    append_line,
    content_hash,
    listed,
    parsed,
    read_bytes,
    read_checked,
    read_lines,
    text_of,
    write_whole,
    writing,
)
from hpobench_ordered.experiment.plan import IDENTITY, Cell, grid_cells

if TYPE_CHECKING:
    import pandas as pd

RUNNING, EXPERIMENTS, FAILURES = "running", "experiments", "failures"
SESSIONS, TIMINGS = JOURNALS = ("sessions.jsonl", "timings.jsonl")

TIMING = ("key", *IDENTITY, "suggestions", "seconds", "method_seconds", "version")
"""Keys of the timing of a run, see `Records.timings`."""

Record = Mapping[str, Any]

MAX_MESSAGE, MAX_TRACEBACK = 10_000, 200_000
"""Most characters stored of a message (its beginning) and a traceback (its end)."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class Reason(StrEnum):
    """Why a run failed."""

    RAISED = "raised"
    INVALID = "invalid configuration"
    TIMED_OUT = "timed out"
    DIED = "process died"
    BENCHMARK = "benchmark failed"


_REASONS = {
    MethodError: Reason.RAISED,
    InvalidSuggestionError: Reason.INVALID,
    SuggestionTimeoutError: Reason.TIMED_OUT,
    ProcessDiedError: Reason.DIED,
    BenchmarkFailedError: Reason.BENCHMARK,
}


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed run; the fields up to `protocol` are as in the results."""

    key: str
    benchmark: str
    surrogate: str
    method: str
    method_version: str
    seed: int
    protocol: str
    reason: Reason
    message: str  # one line
    task: str = ""  # "" if unknown
    when: str = ""  # such as "trial 3"
    traceback: str = ""  # "" if there is none

    @classmethod
    def of(cls, cell: Cell, error: MethodError, *, said: str = "") -> Self:
        """Describe a failed run, with its traceback or what its process printed."""
        if error.__cause__ is not None:
            said = "".join(traceback.format_exception(error.__cause__))
        return cls(
            key=cell.key,
            **cell.describe(),
            reason=_REASONS[type(error)],
            message=_printable(str(error))[:MAX_MESSAGE],
            task=error.task,
            when=error.when,
            traceback=_printable(said)[-MAX_TRACEBACK:],
        )


class Records:
    """Failures, runs in progress, planned experiments, sessions and timings of a store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write_failure(self, failure: Failure) -> None:
        """Record a failed run."""
        write_whole(self._path(FAILURES, failure.key), text_of(asdict(failure)).encode())

    def failures(self) -> dict[str, Failure]:
        """Failed runs, by key."""
        failures = {}
        for path in listed(self.folder / FAILURES):
            with suppress(FileNotFoundError):  # the run has just been finished
                failures[path.stem] = read_failure(path)
        return failures

    def forget_failures(self, keys: Iterable[str]) -> None:
        """Remove records of failed runs, so that they are run again."""
        with writing(self.folder):
            for key in keys:
                self._path(FAILURES, key).unlink(missing_ok=True)

    @contextmanager
    def running(self, key: str) -> Iterator[None]:
        """Mark a run as in progress in this process, while inside."""
        with writing(self.folder):
            text = json.dumps({"host": socket.gethostname(), "pid": os.getpid()})
            self._path(RUNNING, key).write_text(text)
        try:
            yield
        finally:
            self.forget_progress(key)

    def in_progress(self) -> frozenset[str]:
        """Keys of the runs in progress."""
        return frozenset(p.stem for p in listed(self.folder / RUNNING) if _is_alive(p))

    def forget_progress(self, key: str) -> None:
        """Remove the mark of a run in progress."""
        with suppress(OSError):
            self._path(RUNNING, key).unlink(missing_ok=True)

    def write_experiment(self, grid: Mapping[str, Any]) -> str:
        """Record what was planned (a `grid`); return the record's name, a hash of it."""
        content = text_of(grid).encode()
        path = self._path(EXPERIMENTS, content_hash(content, 20))
        write_whole(path, content)
        return path.stem

    def experiments(self) -> dict[str, Mapping[str, Record]]:
        """What identifies each planned run, by experiment and key."""
        paths = listed(self.folder / EXPERIMENTS)
        return {p.stem: parsed(p, read_checked(p), grid_cells) for p in paths}

    def write_session(self, session: Record) -> None:
        """Add a session: one start of the runner."""
        append_line(self.folder / SESSIONS, session)

    def sessions(self) -> tuple[Record, ...]:
        """Sessions in the order they were added, as clocks may be set back."""
        return tuple(read_lines(self.folder / SESSIONS))

    def write_timing(self, timing: Record) -> None:
        """Add the timing of a run: `TIMING`."""
        append_line(self.folder / TIMINGS, timing)

    def timings(self, keys: Collection[str] | None = None) -> "pd.DataFrame":
        """Timings of runs, by default all, one row per run: the columns `TIMING`.

        `suggestions` include those that only make a history, `method_seconds` exclude numba's
        compiling. Of repeated runs the shortest time counts; a run whose process died right after
        it may be missing.
        """
        import pandas as pd

        lines = [r for r in read_lines(self.folder / TIMINGS) if r.keys() == set(TIMING)]
        frame = pd.DataFrame(lines, columns=TIMING)
        if keys is not None:
            frame = frame[frame["key"].isin(keys)]
        return frame.sort_values(["key", "seconds"]).drop_duplicates("key", ignore_index=True)

    def merge(self, other: "Records") -> None:
        """Add the records of another store, except runs in progress; times decide the order."""
        known = self.failures()
        for key, failure in other.failures().items():
            both = (failure, known.get(key, failure))
            self.write_failure(min(both, key=lambda one: text_of(asdict(one))))
        for path in listed(other.folder / EXPERIMENTS):
            write_whole(self.folder / EXPERIMENTS / path.name, read_checked(path))
        for name in JOURNALS:
            mine, theirs = read_lines(self.folder / name), read_lines(other.folder / name)
            texts = set(map(text_of, mine))
            new = [record for record in theirs if text_of(record) not in texts]
            if new:
                joined = heapq.merge(mine, new, key=lambda r: (str(r.get("started")), text_of(r)))
                write_whole(self.folder / name, "\n".join(map(text_of, joined)).encode())

    def _path(self, kind: str, name: str) -> Path:
        return self.folder / kind / f"{name}.json"


def read_failure(path: Path) -> Failure:
    """Read the record of a failed run."""
    content = read_bytes(path)
    return parsed(path, content, lambda r: Failure(**{**r, "reason": Reason(r["reason"])}))


def _is_alive(path: Path) -> bool:
    """Whether the process that wrote the file is alive; assumed on other machines."""
    try:
        process = json.loads(path.read_bytes())
        if process["host"] == socket.gethostname():
            os.kill(process["pid"], 0)
    except PermissionError:  # another user's process
        return True
    except (OSError, LookupError, TypeError, ValueError):  # it ended, perhaps while writing this
        return False
    return True


def _printable(text: str) -> str:
    """Replace control characters, which terminals would interpret."""
    return _CONTROL.sub("\ufffd", text)
