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
        """Start the process, which serves the calls of a group."""
        self.group = group
        self._replies: queue.SimpleQueue[tuple[Any, Exception | None]] = queue.SimpleQueue()
        descriptor, path = tempfile.mkstemp(prefix="hpobench_ordered-")
        os.close(descriptor)  # both processes open it by its path
        self._report = Path(path)
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
        """Whether the process exists."""
        return self._process.poll() is None

    def call(self, request: bytes) -> Any:
        """Run a pickled function with its arguments in the process, and return its result.

        Raises:
            StepTimeoutError: A step took longer than its limit.
            ChildDiedError: The process ended, or replied with what cannot be read.
            HPOBenchOrderedError: The function raised it.
            RuntimeError: The function raised another exception; the message is its traceback.
        """
        stream = cast("IO[bytes]", self._process.stdin)
        with suppress(OSError):  # the process has ended; `_wait_for_reply` notices it
            pickle.dump(request, stream)
            stream.flush()
        result, error = self._wait_for_reply()
        if error is not None:
            raise error
        return result

    def close(self) -> None:
        """Kill the process and all that it started."""
        with suppress(OSError):  # it has ended already
            if os.name == "posix":
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        with suppress(OSError):  # closing writes what is left, which nobody reads any more
            cast("IO[bytes]", self._process.stdin).close()
        self._process.wait()
        self._report.unlink(missing_ok=True)

    def _listen(self) -> None:
        """Read replies and put them into the queue, until nothing more can be read.

        This runs in a thread of its own.
        """
        stream = cast("IO[bytes]", self._process.stdout)
        with stream, suppress(Exception):  # the stream has ended, or holds something else
            while True:
                result, error = pickle.load(stream)
                self._replies.put((result, error))
        self._process.kill()  # it may not have ended yet; `_wait_for_reply` notices it

    def _wait_for_reply(self) -> tuple[Any, Exception | None]:
        """Wait for the reply to a call: its result and its exception, one of which is None.

        Raises:
            StepTimeoutError: A step took longer than its limit.
            ChildDiedError: There will be no reply.
        """
        while True:
            # This is asked before reading the queue. If the process ends in between, its last reply
            # is still read in the next round.
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
        step_text, _ = self._read_report()
        if not step_text:  # it is in no such step
            return
        start, limit, name = step_text.split("\n", 2)
        if time.monotonic() - float(start) <= float(limit):
            return

        if os.name == "posix":
            self._process.send_signal(signal.SIGABRT)  # faulthandler reports where it is
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(DUMP_SECONDS)
        _, report = self._read_report()
        self.close()
        raise StepTimeoutError(name, float(limit), report)

    def _read_report(self) -> tuple[str, str]:
        """Read the step that the process has announced, and the report of its faulthandler."""
        try:
            content = self._report.read_bytes()
        except FileNotFoundError:  # another thread has closed this object
            content = b""
        announced = content[:STEP_SIZE].rstrip(b"\0")
        return announced.decode(errors="replace"), content[STEP_SIZE:].decode(errors="replace")


class Children:
    """Processes for calls of several threads, reused by the calls of the same group.

    Args:
        workers: How many calls there may be at the same time.
    """

    def __init__(self, workers: int = 1) -> None:
        """Set the limit on processes, which are started only when calls need them."""
        self._limit = max(workers, FEWEST_PROCESSES)
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._busy: list[Child] = []

    def call(self, group: str, function: Callable[..., T], *args: object) -> T:
        """Call a function in a process of a group, and return its result.

        Errors are those of `Child.call`. If the function raises one, the process is killed, as its
        state may then be wrong for later calls.
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
        """Keep a process for the next call of its group, or forget it if it has ended."""
        with self._lock:
            self._busy.remove(child)
            if child.is_alive:
                self._idle.append(child)


CHILDREN = Children()  # shared by all of this process that have no pool of their own
atexit.register(CHILDREN.close)


def pickle_value(value: object) -> bytes:
    """Pickle a value for another process, including the code of what a script defines.

    Raises:
        ExperimentError: It cannot be pickled.
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
"""In a child process, the file for reports."""


def is_child() -> bool:
    """Whether this process was started to run functions for another one."""
    return _report is not None


@contextmanager
def step(name: str, limit: float | None) -> Iterator[None]:
    """Announce to the parent process that a block may take `limit` seconds at most.

    If the block takes longer, the parent kills this process. Nothing happens if `limit` is None, or
    if this is not a child process.

    Args:
        name: Name of the step, which the parent gives in its error.
        limit: Largest number of seconds; None if there is no limit.
    """
    if limit is None:
        yield
        return
    _announce(f"{time.monotonic()}\n{limit}\n{name}")
    try:
        yield
    finally:
        _announce("")


def _announce(text: str) -> None:
    """Write a text to the first `STEP_SIZE` bytes of the report file, in child processes only."""
    if _report is not None:
        _report.seek(0)
        _report.write(text.encode()[:STEP_SIZE].ljust(STEP_SIZE, b"\0"))


def serve(report_path: str) -> None:
    """Run the calls that this child process reads, and write replies.

    The process ends when its parent has ended, or when no call has come for `IDLE_SECONDS`.

    Args:
        report_path: The file for the announced step and for the report of a crash.
    """
    global _report  # noqa: PLW0603 - set once, when the process starts
    _report = open(report_path, "r+b", buffering=0)  # noqa: PTH123, SIM115 - open until the end
    _announce("")
    faulthandler.enable(_report.fileno())
    with suppress(ImportError):  # no core dump is written after a crash; only POSIX has them
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    # Calls and replies use copies of standard input and output. The originals are redirected, so
    # that a method reads nothing, and what it prints goes to standard error.
    calls = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)

    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(calls, requests), daemon=True).start()
    own_pid = os.getpid()
    with suppress(queue.Empty):
        while True:  # until there is no call for a while
            reply = _answer(requests.get(timeout=IDLE_SECONDS))
            if os.getpid() != own_pid:  # this is a copy of the process, which the function forked
                break
            replies.write(reply)
            replies.flush()
    os._exit(0)


def _read_requests(calls: IO[bytes], requests: "queue.SimpleQueue[bytes]") -> None:
    """Read calls into the queue; end this process as soon as its parent is gone."""
    try:
        while True:
            requests.put(pickle.load(calls))
    finally:
        os._exit(0)


def _answer(request: bytes) -> bytes:
    """Run a pickled call; return the pickled pair of its result and exception, one of them None.

    An exception that is not of this package may not exist in the parent process. It is replaced by
    a `RuntimeError` with its traceback as the message.
    """
    try:
        function, args = pickle.loads(request)
        return pickle.dumps((function(*args), None))
    except HPOBenchOrderedError as error:
        return pickle.dumps((None, error))
    except BaseException as error:
        report = "".join(traceback.format_exception(error))
        return pickle.dumps((None, RuntimeError(report)))
