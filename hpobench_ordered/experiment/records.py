"""Records of a store beside the results: failures, planned experiments, sessions and timings."""

import re
import traceback
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from hpobench_ordered.data.identity import hash_bytes
from hpobench_ordered.errors import (
    BenchmarkFailedError,
    InvalidSuggestionError,
    MethodError,
    ProcessDiedError,
    SuggestionTimeoutError,
)
from hpobench_ordered.experiment._files import (
    append_lines,
    encode_json,
    read_bytes,
    read_json,
    read_lines,
    write_file,
    writing,
)
from hpobench_ordered.experiment.method_records import METHODS_FOLDER, read_method_records
from hpobench_ordered.experiment.plan import Cell, cells_of_grid

if TYPE_CHECKING:
    import pandas as pd

FAILURES_FOLDER = "failures"
EXPERIMENTS_FOLDER = "experiments"
SESSIONS_FILE = "sessions.jsonl"
TIMINGS_FILE = "timings.jsonl"

EXPERIMENT_HASH_LENGTH = 20
"""Digits of the name of an experiment, a hash of what was planned."""

Record = Mapping[str, Any]

MAX_MESSAGE, MAX_TRACEBACK = 10_000, 200_000
"""Most characters stored of a message (its beginning) and a traceback (its end)."""

CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that terminals would interpret, and those that are no text; not tabs, line breaks."""


class PlannedGrid(msgspec.Struct, frozen=True):
    """Content of a file of a planned experiment: its grid, see `grid_of_cells`."""

    benchmarks: list[tuple[str, str]] = msgspec.field(name="benchmark surrogate")
    methods: list[tuple[str, str]] = msgspec.field(name="method method_version")
    seeds: list[tuple[int]] = msgspec.field(name="seed")
    protocols: list[tuple[str]] = msgspec.field(name="protocol")


class Timing(msgspec.Struct, frozen=True):
    """A line of timings, see `Records.timings`."""

    key: str
    benchmark: str
    surrogate: str
    method: str
    method_version: str
    seed: int
    protocol: str
    suggestions: int
    seconds: float
    method_cpu_seconds: float
    version: str


TIMING_COLUMNS = Timing.__struct_fields__
"""Keys of the timing of a run."""


class Reason(StrEnum):
    """Why a run failed."""

    RAISED = "raised"
    INVALID = "invalid configuration"
    TIMED_OUT = "timed out"
    DIED = "process died"
    BENCHMARK = "benchmark failed"


_REASON_OF_ERROR = {
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
    def from_error(cls, cell: Cell, error: MethodError, *, printed: str = "") -> Self:
        """Describe a failed run.

        Args:
            cell: The run.
            error: Why it failed; the traceback is that of its cause.
            printed: What stands in place of the traceback if the error has no cause, such as a
                traceback from another process or a crash report; "" if there is none.
        """
        if error.__cause__ is not None:  # what the method raised in this process
            printed = "".join(traceback.format_exception(error.__cause__))
        return cls(
            key=cell.key,
            **cell.describe(),
            reason=_REASON_OF_ERROR[type(error)],  # such as "timed out"
            message=_replace_control_characters(str(error))[:MAX_MESSAGE],  # its beginning
            task=error.task,
            when=error.when,
            # Its end, where the error is named.
            traceback=_replace_control_characters(printed)[-MAX_TRACEBACK:],
        )


class Records:
    """Failures, planned experiments, sessions and timings of a store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write_failure(self, failure: Failure) -> None:
        """Record a failed run, in place of an earlier failure of it."""
        write_file(self._failure_path(failure.key), encode_json(asdict(failure)))

    def failures(self) -> dict[str, Failure]:
        """Failed runs, by key."""
        failures = {}
        for path in self._list_files(FAILURES_FOLDER):
            failure = read_json(path, Failure)
            failures[failure.key] = failure
        return failures

    def has_failure(self, key: str) -> bool:
        """Whether a run is recorded as failed."""
        return self._failure_path(key).exists()

    def forget_failures(self, keys: Iterable[str]) -> None:
        """Remove records of failed runs, so that they are run again."""
        with writing(self.folder):
            for key in keys:
                self._failure_path(key).unlink(missing_ok=True)

    def write_experiment(self, grid: Mapping[str, Any]) -> str:
        """Record what was planned (a `grid_of_cells`); return the record's name, a hash of it."""
        content = encode_json(grid)
        name = hash_bytes(content)[:EXPERIMENT_HASH_LENGTH]
        write_file(self.folder / EXPERIMENTS_FOLDER / f"{name}.json", content)
        return name

    def experiments(self) -> dict[str, Mapping[str, Record]]:
        """What identifies each planned run, by experiment and key."""
        experiments: dict[str, Mapping[str, Record]] = {}
        for path in self._list_files(EXPERIMENTS_FOLDER):
            grid = read_json(path, PlannedGrid)
            experiments[path.stem] = cells_of_grid(msgspec.to_builtins(grid))
        return experiments

    def write_session(self, session: Record) -> None:
        """Add a session: one start of the runner."""
        append_lines(self.folder / SESSIONS_FILE, encode_json(session))

    def sessions(self) -> tuple[Record, ...]:
        """Sessions in the order in which they were started."""
        sessions = read_lines(self.folder / SESSIONS_FILE, dict[str, Any])
        return tuple(sorted(sessions, key=lambda session: str(session.get("started"))))

    def write_timing(self, timing: Record) -> None:
        """Add the timing of a run, with the fields of `Timing`."""
        append_lines(self.folder / TIMINGS_FILE, encode_json(timing))

    def timings(self, keys: Collection[str] | None = None) -> "pd.DataFrame":
        """Timings of runs, by default of all, one row per run.

        A run is missing if its process died before its timing was written. Of a run that was
        repeated, the shortest time counts.

        Returns:
            The columns `TIMING_COLUMNS`: what identifies the run; `suggestions`, their number, also
            of those that only make a history; `seconds`, the time that passed in the run,
            evaluations included; `method_cpu_seconds`, the CPU time of the method's calls, of all
            threads, without numba's compiling; and `version`, that of this package.
        """
        import pandas as pd

        timings = read_lines(self.folder / TIMINGS_FILE, Timing)
        rows = [msgspec.structs.astuple(timing) for timing in timings]
        frame = pd.DataFrame(rows, columns=list(TIMING_COLUMNS))
        if keys is not None:
            frame = frame[frame["key"].isin(keys)]
        frame = frame.sort_values(["key", "method_cpu_seconds", "seconds"])
        return frame.drop_duplicates("key", ignore_index=True)

    def check(self) -> None:
        """Raise a `StoreError` if a file of a failure, an experiment or a method is damaged."""
        self.failures()
        self.experiments()
        read_method_records(self.folder)

    def add(self, other: Self) -> None:
        """Add the records of another store that this one lacks."""
        for folder in (FAILURES_FOLDER, EXPERIMENTS_FOLDER, METHODS_FOLDER):
            for path in other._list_files(folder):
                target = self.folder / folder / path.name
                if not target.exists():
                    write_file(target, read_bytes(path))

        for name in (SESSIONS_FILE, TIMINGS_FILE):
            own_lines = set(_split_lines(self.folder / name))
            new_lines = [
                line for line in _split_lines(other.folder / name) if line not in own_lines
            ]
            if new_lines:
                append_lines(self.folder / name, b"\n".join(new_lines))

    def _failure_path(self, key: str) -> Path:
        """The file of a failed run, whether it exists or not."""
        return self.folder / FAILURES_FOLDER / f"{key}.json"

    def _list_files(self, folder: str) -> list[Path]:
        """The files of a folder of the store, sorted by name."""
        return sorted((self.folder / folder).glob("*.json"))


def _split_lines(path: Path) -> list[bytes]:
    """Read the lines of a file; none if there is no file."""
    return read_bytes(path).splitlines() if path.exists() else []


def _replace_control_characters(text: str) -> str:
    """Replace control characters, which terminals would interpret."""
    return CONTROL_CHARACTERS.sub("\ufffd", text)
