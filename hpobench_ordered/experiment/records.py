"""Records of a store beside the results; `Store` lists the files."""

import heapq
import json
import math
import os
import socket
import traceback
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import msgspec

from hpobench_ordered.errors import (
    BenchmarkFailedError,
    ExperimentError,
    InvalidSuggestionError,
    MethodError,
    ProcessDiedError,
    StoreError,
    SuggestionTimeoutError,
)
from hpobench_ordered.experiment._files import (
    EXPERIMENT_FILES,
    EXPERIMENT_HASH_LENGTH,
    FAILURE_FILES,
    HASH_LENGTH,
    KEY_LENGTH,
    RUNNING_FILES,
    DamagedFileError,
    StoredFile,
    append_line,
    decode_json,
    encode_json,
    hash_content,
    list_files,
    list_paths,
    parse_name,
    read_bytes,
    read_lines,
    write_whole,
    writing,
)
from hpobench_ordered.experiment._parquet import CONTROL_CHARACTERS
from hpobench_ordered.experiment.method_records import (
    read_method_records,
    write_method_record,
)
from hpobench_ordered.experiment.plan import IDENTITY, Cell, cells_of_grid, key_of
from hpobench_ordered.experiment.user_methods.identity import MethodRecord

if TYPE_CHECKING:
    import pandas as pd

SESSIONS_FILE, TIMINGS_FILE = "sessions.jsonl", "timings.jsonl"

Record = Mapping[str, Any]

MAX_MESSAGE, MAX_TRACEBACK = 10_000, 200_000
"""Most characters stored of a message (its beginning) and a traceback (its end)."""

MAX_PLANNED_RUNS = 500_000
"""Most runs of an experiment: a short list of methods and of seeds may stand for any number."""

Seed = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class PlannedGrid(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Content of a file of a planned experiment: its grid, see `grid_of_cells`."""

    benchmarks: list[tuple[str, str]] = msgspec.field(name="benchmark surrogate")
    methods: list[tuple[str, str]] = msgspec.field(name="method method_version")
    seeds: list[tuple[Seed]] = msgspec.field(name="seed")
    protocols: list[tuple[str]] = msgspec.field(name="protocol")

    def count_runs(self) -> int:
        """Number of the planned runs: every combination is one."""
        axes = (self.benchmarks, self.methods, self.seeds, self.protocols)
        return math.prod(len(axis) for axis in axes)


class Session(msgspec.Struct, frozen=True):
    """What is read of a line of sessions; other fields are shown as they are."""

    started: str | None = None
    experiment: str | None = None
    shard: str | None = None
    workers: int | None = None
    backend: str | None = None
    time_limit: float | None = None
    python: str | None = None
    platform: str | None = None
    processor: str | None = None
    cores: int | None = None
    packages: dict[str, str] = {}


class Timing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of timings, see `Records.timings`.

    Earlier versions wrote `method_seconds`, the time that passed in the method's calls, instead
    of CPU time. It depends on what else the machine did, so it is accepted but not used.
    """

    key: str
    benchmark: str
    surrogate: str
    method: str
    method_version: str
    seed: Seed
    protocol: str
    suggestions: int
    seconds: float
    method_cpu_seconds: float | None = None
    method_seconds: float | None = None
    version: str


TIMING_COLUMNS = tuple(name for name in Timing.__struct_fields__ if name != "method_seconds")
"""Keys of the timing of a run."""


class RunningMark(msgspec.Struct, frozen=True):
    """Content of the file of a run in progress: the process that makes it."""

    host: str
    pid: Annotated[int, msgspec.Meta(gt=0, lt=2**31)]


LINE_TYPE_OF_JOURNAL: Mapping[str, type] = {SESSIONS_FILE: Session, TIMINGS_FILE: Timing}


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
            message=_printable(str(error))[:MAX_MESSAGE],  # its beginning
            task=error.task,
            when=error.when,
            traceback=_printable(printed)[-MAX_TRACEBACK:],  # its end, where the error is named
        )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All records of a store, read and checked, except runs in progress."""

    failures: Mapping[str, Failure]  # by key
    experiments: Mapping[str, bytes]  # contents by file name
    journals: Mapping[str, list[dict[str, Any]]]  # lines by file name
    methods: list[MethodRecord]


class Records:
    """Failures, runs in progress, planned experiments, sessions and timings of a store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write_failure(self, failure: Failure) -> None:
        """Record a failed run, in a file of its own, KEY-HASH.json."""
        content = encode_json(asdict(failure))
        name = f"{failure.key}-{hash_content(content, HASH_LENGTH)}.json"
        write_whole(self.folder / FAILURE_FILES.folder / name, content)

    def failures(self) -> dict[str, Failure]:
        """Failed runs, by key.

        A run may have several records, as two machines may have made it: one of them is chosen.
        """
        failures: dict[str, Failure] = {}
        for file in list_files(self.folder, FAILURE_FILES):
            # Another process removes the record when it has finished the run.
            with suppress(FileNotFoundError):
                failure = read_failure(file)
                records = [failure]
                if failure.key in failures:
                    records.append(failures[failure.key])
                # Any would do, but which one must not depend on the order of the files.
                failures[failure.key] = min(records, key=_encode_failure)
        return failures

    def has_failure(self, key: str) -> bool:
        """Whether a run is recorded as failed; the record is not opened."""
        # The name of a record begins with the key of its run.
        folder = self.folder / FAILURE_FILES.folder
        return any(path.name[:KEY_LENGTH] == key for path in list_paths(folder))

    def forget_failures(self, keys: Iterable[str]) -> None:
        """Remove records of failed runs, so that they are run again.

        The name of a record begins with the key of its run.
        """
        keys = set(keys)
        for path in list_paths(self.folder / FAILURE_FILES.folder):
            if path.name[:KEY_LENGTH] in keys:
                with writing(self.folder):
                    path.unlink(missing_ok=True)

    @contextmanager
    def running(self, key: str) -> Iterator[None]:
        """Mark a run as in progress in this process, as long as the context is open.

        The mark is a file with the host and the process, so that others can see if it is alive.
        """
        with writing(self.folder):
            text = json.dumps({"host": socket.gethostname(), "pid": os.getpid()})
            self._running_path(key).write_text(text)
        try:
            yield
        finally:
            self.forget_progress(key)

    def in_progress(self) -> frozenset[str]:
        """Keys of the runs in progress: those whose process is alive.

        Marks that a killed process left behind, or that cannot be read, do not count.
        """
        keys = set()
        for path in list_paths(self.folder / RUNNING_FILES.folder):
            if RUNNING_FILES.pattern.fullmatch(path.name) and _is_alive(path):
                keys.add(path.stem)
        return frozenset(keys)

    def forget_progress(self, key: str) -> None:
        """Remove the mark of a run in progress, if possible.

        A mark that stays does no harm: once its process has ended, it does not count.
        """
        with suppress(OSError):
            self._running_path(key).unlink(missing_ok=True)

    def write_experiment(self, grid: Mapping[str, Any]) -> str:
        """Record what was planned (a `grid_of_cells`); return the record's name, a hash of it."""
        count = msgspec.convert(grid, PlannedGrid).count_runs()
        if count > MAX_PLANNED_RUNS:
            raise ExperimentError(
                f"an experiment can have at most {MAX_PLANNED_RUNS:,} runs, but this one has "
                f"{count:,}: make several of it"
            )
        content = encode_json(grid)
        name = hash_content(content, EXPERIMENT_HASH_LENGTH)
        write_whole(self.folder / EXPERIMENT_FILES.folder / f"{name}.json", content)
        return name

    def experiments(self) -> dict[str, Mapping[str, Record]]:
        """What identifies each planned run, by experiment and key."""
        experiments: dict[str, Mapping[str, Record]] = {}
        for file in list_files(self.folder, EXPERIMENT_FILES):
            name = file.path.stem  # the hash of what was planned
            experiments[name] = expand_experiment(file, file.read())
        return experiments

    def write_session(self, session: Record) -> None:
        """Add a session: one start of the runner."""
        append_line(self.folder / SESSIONS_FILE, session)

    def sessions(self) -> tuple[Record, ...]:
        """Sessions in the order they were added, as clocks may be set back."""
        return tuple(read_lines(self.folder / SESSIONS_FILE, Session))

    def write_timing(self, timing: Record) -> None:
        """Add the timing of a run, with the fields of `Timing`."""
        append_line(self.folder / TIMINGS_FILE, timing)

    def timings(self, keys: Collection[str] | None = None) -> "pd.DataFrame":
        """Timings of runs, by default of all, one row per run.

        A run is missing if its process died before its timing was written. Of a run that was
        repeated, the shortest time counts.

        Returns:
            The columns `TIMING_COLUMNS`: what identifies the run; `suggestions`, their number, also
            of those that only make a history; `seconds`, the time that passed in the run,
            evaluations included; `method_cpu_seconds`, the CPU time of the method's calls, of all
            threads, without numba's compiling, NaN for runs of older versions of this package,
            which did not record it; and `version`, that of this package.
        """
        import pandas as pd

        lines = read_lines(self.folder / TIMINGS_FILE, Timing)
        frame = pd.DataFrame(lines, columns=list(TIMING_COLUMNS))
        frame = frame.astype({"method_cpu_seconds": float})
        if keys is not None:
            frame = frame[frame["key"].isin(keys)]
        # Missing CPU times come last: a repetition that has one is preferred.
        frame = frame.sort_values(["key", "method_cpu_seconds", "seconds"])
        return frame.drop_duplicates("key", ignore_index=True)

    def read_all(self) -> Snapshot:
        """Read and check all records except runs in progress.

        Raises:
            StoreError: A record is damaged.
        """
        experiments = {}  # content of each file, by its name
        for file in list_files(self.folder, EXPERIMENT_FILES):
            content = file.read()
            expand_experiment(file, content)  # only to raise if it is damaged
            experiments[file.path.name] = content
        # Journals are the files of JSON lines, of sessions and of timings.
        journals = {
            name: read_lines(self.folder / name, line_type)
            for name, line_type in LINE_TYPE_OF_JOURNAL.items()
        }
        methods = read_method_records(self.folder)
        return Snapshot(self.failures(), experiments, journals, methods)

    def add(self, snapshot: Snapshot) -> None:
        """Add the records of another store, which `snapshot` holds, to this one."""
        for failure in snapshot.failures.values():
            self.write_failure(failure)
        for name, content in snapshot.experiments.items():
            write_whole(self.folder / EXPERIMENT_FILES.folder / name, content)
        for record in snapshot.methods:
            write_method_record(self.folder, record)
        for name, lines in snapshot.journals.items():
            self._add_lines(name, lines)

    def _add_lines(self, name: str, lines: list[dict[str, Any]]) -> None:
        """Add another store's lines to a file of JSON lines, except those that it has already.

        The two lists are merged by time. The lines of one store keep their own order, even where
        they are not sorted by time, as when a clock was set back.
        """
        type_of_line = LINE_TYPE_OF_JOURNAL[name]
        own_lines = read_lines(self.folder / name, type_of_line)
        own_texts = {encode_json(line) for line in own_lines}
        new_lines = [line for line in lines if encode_json(line) not in own_texts]
        if new_lines:
            # Compares only the first lines that are left of each list, so neither is reordered.
            merged = heapq.merge(own_lines, new_lines, key=_order_in_journal)
            content = b"\n".join(encode_json(line) for line in merged)
            write_whole(self.folder / name, content)

    def _running_path(self, key: str) -> Path:
        return self.folder / RUNNING_FILES.folder / f"{key}.json"


def read_failure(file: StoredFile) -> Failure:
    """Read the record of a failed run; it must be that of the run in the file's name."""
    failure = decode_json(file.path, file.read(), Failure)
    # A run's key is the hash of what identifies it: benchmark, method, seed and so on.
    identity = {name: getattr(failure, name) for name in IDENTITY}
    if failure.key != file.key or failure.key != key_of(identity):
        raise DamagedFileError(file.path, "it is that of another run")
    return failure


def expand_experiment(file: StoredFile, content: bytes) -> dict[str, dict[str, Any]]:
    """What identifies each run of a planned experiment, by key.

    The content lists benchmarks, methods, seeds and protocols; every combination is a run. Thus a
    short file can stand for more runs than fit into memory.

    Args:
        file: The file, for the message.
        content: Its content, a `grid_of_cells` in JSON.

    Raises:
        DamagedFileError: It is no grid, or one of more than `MAX_PLANNED_RUNS` runs.
    """
    grid = decode_json(file.path, content, PlannedGrid)
    if grid.count_runs() > MAX_PLANNED_RUNS:
        raise DamagedFileError(file.path, f"it has more than {MAX_PLANNED_RUNS:,} runs")
    return cells_of_grid(msgspec.to_builtins(grid))


def check_record(path: Path) -> None:
    """Raise a `DamagedFileError` if a file of a failed run or a planned experiment is damaged."""
    if path.parent.name == FAILURE_FILES.folder:
        read_failure(parse_name(path, FAILURE_FILES))
    else:
        file = parse_name(path, EXPERIMENT_FILES)
        expand_experiment(file, file.read())


def _is_alive(path: Path) -> bool:
    """Whether the process that marked a run as in progress is alive.

    A process of another machine or of another user cannot be asked, and counts as alive.

    Args:
        path: The file that the process wrote, with its host and number (`RunningMark`).
    """
    try:
        process = msgspec.json.decode(read_bytes(path), type=RunningMark)
        if process.host == socket.gethostname():
            os.kill(process.pid, 0)  # signal 0 only raises an error if there is no such process
    except PermissionError:  # another user's process
        return True
    except (OSError, StoreError, msgspec.MsgspecError):  # it ended, perhaps while it wrote the file
        return False
    return True


def _encode_failure(failure: Failure) -> bytes:
    """The failure as JSON, by which failures can be ordered."""
    return encode_json(asdict(failure))


def _order_in_journal(line: Record) -> tuple[str, bytes]:
    """Sort key of a line of sessions or timings: the time of a session's start, then the line.

    Lines of timings have no such time, so that only their text counts.
    """
    return str(line.get("started")), encode_json(line)


def _printable(text: str) -> str:
    """Replace control characters, which terminals would interpret."""
    return CONTROL_CHARACTERS.sub("\ufffd", text)
