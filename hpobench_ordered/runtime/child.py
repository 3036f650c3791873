"""Processes in which functions run, so that a crash, an endless loop or a patch stays in there.

A parent sends calls to a child's standard input and reads replies from its standard output, both as
pickles. Each process also has a file for reports. At its beginning the child writes which step it
has begun that may take too long (`step`); the parent looks there, and kills the process when the
step exceeds its limit. faulthandler adds its traceback when the process crashes or is killed.

The pools of multiprocessing, pebble and loky do not serve here: the workers of Dask, which are
daemons, must not start their processes; they limit the time of a whole run, not of a call into a
method; and each new process executes the user's script, or gets the method with its code.
"""

import atexit
import faulthandler
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import cloudpickle

from hpobench_ordered.errors import ExperimentError, HPOBenchOrderedError

T = TypeVar("T")

IDLE_SECONDS = 60.0  # a process without work ends after this time
DUMP_SECONDS = 1.0  # time that an overdue process has to report where it is, before it is killed
POLL_SECONDS = 0.1  # how often the parent looks at a silent process
STEP_SIZE = 500  # bytes at the beginning of a report file, which tell the current step
FEWEST_PROCESSES = 4  # of a pool, even with fewer workers: methods that take turns keep theirs

_START = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from hpobench_ordered.runtime import child; child.serve(sys.argv[1])"
)


class ChildDiedError(Exception):
    """The process ended without a reply; the message is its crash report."""


class StepTimeoutError(Exception):
    """A step took too long, so the process was killed.

    Attributes:
        step: Name of the step.
        limit: Seconds that it was allowed.
        report: Where the process was, as a traceback; "" if it could not say.
    """

    def __init__(self, step: str, limit: float, report: str) -> None:
        """Note which step took longer than its limit, and where the process was."""
        super().__init__(step)
        self.step = step
        self.limit = limit
        self.report = report


class Child:
    """A Python process that runs functions of one group, one at a time."""

    def __init__(self, group: str = "") -> None:
        """Start the process, which serves the calls of a group.

        Args:
            group: Name of the calls that may share a process, such as those of one method.
        """
        self.group = group
        # Each reply is the result of a call and its exception, one of which is None.
        self._replies: queue.SimpleQueue[tuple[Any, Exception | None]] = queue.SimpleQueue()
        descriptor, path = tempfile.mkstemp(prefix="hpobench_ordered-")
        os.close(descriptor)  # both processes open the file by its path
        self._report_file = Path(path)
        # In a session of its own, it can be killed together with all processes that methods start.
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, path, *map(str, sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=os.name == "posix",
        )
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def is_alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    def call(self, request: bytes) -> Any:
        """Run a function in the process, and return its result.

        Args:
            request: The pickled pair of the function and the tuple of its arguments.

        Raises:
            StepTimeoutError: A step took longer than its limit.
            ChildDiedError: The process ended, or sent a reply that cannot be read.
            HPOBenchOrderedError: The function raised this error.
            RuntimeError: The function raised another exception; the message is its traceback.
        """
        stream = cast("IO[bytes]", self._process.stdin)
        with suppress(OSError):  # the process has ended; `_wait_for_reply` notices it
            pickle.dump(request, stream)  # pickled once more, so that its end can be found
            stream.flush()
        result, error = self._wait_for_reply()
        if error is not None:
            raise error
        return result

    def close(self) -> None:
        """Kill the process and all processes that it started, and delete the file for reports."""
        with suppress(OSError):  # the process has ended already
            if os.name == "posix":
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        with suppress(OSError):  # closing writes buffered bytes, which nobody reads any more
            cast("IO[bytes]", self._process.stdin).close()
        self._process.wait()
        self._report_file.unlink(missing_ok=True)

    def _listen(self) -> None:
        """Put the replies of the process into the queue, until no more replies can be read.

        This runs in a thread of its own, which then kills the process.
        """
        stream = cast("IO[bytes]", self._process.stdout)
        with stream, suppress(Exception):  # the stream has ended, or has bytes that are no reply
            while True:
                result, error = pickle.load(stream)
                self._replies.put((result, error))
        # The process may still run, but cannot be used any more. `_wait_for_reply` notices its end.
        self._process.kill()

    def _wait_for_reply(self) -> tuple[Any, Exception | None]:
        """Wait for the reply to a call: its result and its exception, one of which is None.

        Raises:
            StepTimeoutError: A step took longer than its limit.
            ChildDiedError: There will be no reply.
        """
        while True:
            # This must come before the queue is read. If the process ends in between, the next
            # round still reads its last reply.
            was_alive = self.is_alive
            with suppress(queue.Empty):
                return self._replies.get(timeout=POLL_SECONDS)
            if not was_alive:
                _, report = self._read_report()
                self.close()
                raise ChildDiedError(report)
            self._check_step()

    def _check_step(self) -> None:
        """Kill the process, and raise a `StepTimeoutError`, if its current step takes too long."""
        announced_step, _ = self._read_report()
        if not announced_step:  # the process is in no step with a limit
            return
        start, limit, name = announced_step.split("\n", 2)
        elapsed = time.monotonic() - float(start)
        if elapsed <= float(limit):
            return

        if os.name == "posix":
            # At this signal faulthandler reports where the process is, and the process ends.
            self._process.send_signal(signal.SIGABRT)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(DUMP_SECONDS)
        _, crash_report = self._read_report()
        self.close()
        raise StepTimeoutError(name, float(limit), crash_report)

    def _read_report(self) -> tuple[str, str]:
        """Read the file for reports, which the process writes.

        Returns:
            The step that the process has announced, as `step` writes it, "" if it is in none; and
            the traceback that faulthandler has written, "" if the process has not crashed.
        """
        try:
            content = self._report_file.read_bytes()
        except FileNotFoundError:  # another thread has closed this object
            content = b""
        announced_step = content[:STEP_SIZE].rstrip(b"\0")  # is padded with null bytes
        crash_report = content[STEP_SIZE:]
        return announced_step.decode(errors="replace"), crash_report.decode(errors="replace")


class Children:
    """Processes for calls of several threads, reused by the calls of the same group."""

    def __init__(self, workers: int = 1) -> None:
        """Make a pool without processes, which are started when calls need them.

        Args:
            workers: Number of calls that are expected at the same time.
        """
        # Even with one worker, methods that are called in turns each keep a process.
        self._limit = max(workers, FEWEST_PROCESSES)  # largest number of processes
        self._lock = threading.Lock()  # held while the lists change
        self._idle: list[Child] = []  # the one that has been idle longest first
        self._busy: list[Child] = []

    def call(self, group: str, function: Callable[..., T], *args: object) -> T:
        """Call a function in a process of a group, and return its result.

        If the call fails, the process is killed, as its state may be wrong for later calls.

        Args:
            group: Name of the calls that may share a process, such as those of one method.
            function: The function.
            args: Its arguments.

        Raises:
            ExperimentError: The function or an argument cannot be pickled.
            StepTimeoutError: A step took longer than its limit.
            ChildDiedError: The process ended.
            HPOBenchOrderedError: The function raised this error.
            RuntimeError: The function raised another exception; the message is its traceback.
        """
        request = pickle_value((function, args))
        child = self._borrow(group)
        try:
            result = child.call(request)
        except BaseException:
            child.close()
            raise
        finally:
            self._give_back(child)
        return cast("T", result)

    def close(self) -> None:
        """Kill all processes."""
        with self._lock:
            for child in (*self._idle, *self._busy):
                child.close()
            # Threads that wait for a busy process notice its end, and remove it from `_busy`.
            self._idle.clear()

    def _borrow(self, group: str) -> Child:
        """Take an idle process of the group, or start a new one.

        If there are as many processes as allowed, the one that has been idle longest is killed.
        """
        with self._lock:
            for child in self._idle:
                if child.group == group and child.is_alive:
                    self._idle.remove(child)
                    self._busy.append(child)
                    return child

            is_at_limit = len(self._idle) + len(self._busy) >= self._limit
            if is_at_limit and self._idle:
                self._idle.pop(0).close()

        child = Child(group)  # without the lock, as a process takes long to start
        with self._lock:
            self._busy.append(child)
        return child

    def _give_back(self, child: Child) -> None:
        """Make a busy process idle, for the next call of its group; forget one that has ended."""
        with self._lock:
            self._busy.remove(child)
            if child.is_alive:
                self._idle.append(child)


CHILDREN = Children()  # for callers in this process that have no pool of their own
atexit.register(CHILDREN.close)


def pickle_value(value: object) -> bytes:
    """Pickle a value for another process, with the code of functions and classes of scripts.

    Raises:
        ExperimentError: The value cannot be pickled.
    """
    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:
        raise ExperimentError(
            "a method cannot be sent to another process: define it in a module that can be "
            "imported there, or use no other process (workers=0) "
            f"({type(error).__name__}: {error})"
        ) from error


_report: IO[bytes] | None = None
"""In a child process, the open file for reports; None in all other processes."""


def is_child() -> bool:
    """Whether this process was started to run functions for another one.

    Only such a process has a file for reports, which `serve` opens.
    """
    return _report is not None


@contextmanager
def step(name: str, limit: float | None) -> Iterator[None]:
    """Limit the time of a `with` block: if it takes longer, the parent kills this process.

    The limit has no effect if this is not a child process.

    Args:
        name: Name of the step, which the parent gives in its error.
        limit: Largest number of seconds; None if there is no limit.
    """
    if limit is None:
        yield
        return
    _announce(f"{time.monotonic()}\n{limit}\n{name}")  # `Child._check_step` reads this
    try:
        yield
    finally:
        _announce("")  # this process is in no step any more


def _announce(text: str) -> None:
    """Write a text for the parent process into the file for reports, if there is one.

    The text fills the first `STEP_SIZE` bytes: it is cut, or padded with null bytes.
    """
    if _report is None:
        return
    cut = text.encode()[:STEP_SIZE]
    padded = cut.ljust(STEP_SIZE, b"\0")
    _report.seek(0)
    _report.write(padded)


def serve(report_path: str) -> None:
    """Run, in a child process, the calls that its parent sends, and reply to them.

    The process ends when its parent has ended, or when no call has come for `IDLE_SECONDS`.

    Args:
        report_path: The file for the announced step and for the report of a crash.
    """
    _open_report(report_path)
    calls, replies = _redirect_standard_streams()
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(calls, requests), daemon=True).start()
    own_pid = os.getpid()
    with suppress(queue.Empty):
        while True:  # until there is no call for a while
            reply = _answer(requests.get(timeout=IDLE_SECONDS))
            is_fork = os.getpid() != own_pid  # a copy of the process, which the function made
            if is_fork:
                break
            replies.write(reply)
            replies.flush()
    os._exit(0)


def _open_report(path: str) -> None:
    """Open the file for reports of this child process, for announced steps and for crashes."""
    global _report  # noqa: PLW0603 - set once, when the process starts
    _report = open(path, "r+b", buffering=0)  # noqa: PTH123, SIM115 - open until the end
    _announce("")
    faulthandler.enable(_report.fileno())
    with suppress(ImportError):  # only POSIX has this module, and core dumps
        import resource

        no_core_dump = (0, 0)
        resource.setrlimit(resource.RLIMIT_CORE, no_core_dump)


def _redirect_standard_streams() -> tuple[IO[bytes], IO[bytes]]:
    """Keep standard input and output for calls and replies, and give others to methods.

    From now on this process reads nothing from standard input, and what it prints goes to standard
    error.

    Returns:
        Copies of the standard input, for calls, and of the standard output, for replies.
    """
    standard_input, standard_output, standard_error = (0, 1, 2)
    calls = os.fdopen(os.dup(standard_input), "rb")
    replies = os.fdopen(os.dup(standard_output), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), standard_input)
    os.dup2(standard_error, standard_output)
    return calls, replies


def _read_requests(calls: IO[bytes], requests: "queue.SimpleQueue[bytes]") -> None:
    """Put calls that the parent sends into the queue; end this process when the parent is gone.

    This runs in a thread of its own.
    """
    try:
        while True:
            requests.put(pickle.load(calls))
    finally:  # the stream ends with the parent process
        os._exit(0)


def _answer(request: bytes) -> bytes:
    """Run a call, and return the reply: the pickled pair of its result and its exception.

    One of both is None. An exception that is not of this package may not exist in the parent
    process. It is replaced by a `RuntimeError` with its traceback as the message.

    Args:
        request: The pickled pair of a function and the tuple of its arguments.
    """
    try:
        function, args = pickle.loads(request)
        return pickle.dumps((function(*args), None))
    except HPOBenchOrderedError as error:
        return pickle.dumps((None, error))
    except BaseException as error:
        report = "".join(traceback.format_exception(error))
        return pickle.dumps((None, RuntimeError(report)))
