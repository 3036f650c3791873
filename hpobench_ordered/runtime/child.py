"""Processes in which functions run, so that a crash, an endless loop or a patch stays in there.

The parent watches: a function announces the steps that may take too long (`step`), and the parent
kills the process when one of them exceeds its limit. Nothing in the process itself keeps the time,
since what runs there may break anything. Steps are announced in memory that both processes share,
which costs no system call.

A process writes messages to its parent: a kind (one byte), the number of the call, the length of
the content (four bytes each), and the content. A method may fork, and its copy reply once more: a
message with the number of an earlier call is ignored.

    READY   the process has started
    REPLY   the result and the exception of a call, one of them None, pickled

What begins with another byte is the report of a crash: faulthandler writes it as text.
"""

import atexit
import faulthandler
import importlib
import mmap
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from hpobench_ordered.errors import ExperimentError

T = TypeVar("T")

IDLE_SECONDS = 60.0  # a process without work ends after this time
DUMP_SECONDS = 1.0  # time that an overdue process has to report where it is, before it is killed
POLL_SECONDS = 0.1  # how often the parent looks at a silent process

READY, REPLY = b"\x80", b"\x81"
_HEADER = struct.Struct("<cII")
_CRASH = b"\x82"  # the process has ended; the content is its report
_NOTHING = b""

_START = (
    "import pickle, sys; sys.path[:], board = pickle.load(sys.stdin.buffer); "
    "from hpobench_ordered.runtime import child; child.serve(board)"
)


class StepBoard:
    """Memory shared by a process and its parent, which tells the current step.

    It holds the number of steps so far, the limit of the current one in seconds (0: none), and the
    length and characters of its name.
    """

    _LAYOUT = struct.Struct("<QdH")
    _MAX_NAME = 1000  # bytes
    _SHARED_MEMORY = Path("/dev/shm")  # where files are in memory; a full disk does not matter

    def __init__(self, file: IO[bytes]) -> None:
        """Map an open file into memory: room for numbers, `_LAYOUT`, and the name of a step."""
        self._memory = mmap.mmap(file.fileno(), self._LAYOUT.size + self._MAX_NAME)
        # How many steps this process has begun.
        self._number = 0

    @classmethod
    def create(cls) -> tuple["StepBoard", str]:
        """Make a board; return it with the file by which another process opens it.

        The file may be removed once both processes have opened it: the memory stays.
        """
        # None: the folder for temporary files.
        folder = cls._SHARED_MEMORY if cls._SHARED_MEMORY.is_dir() else None
        descriptor, path = tempfile.mkstemp(prefix="hpobench_ordered-", dir=folder)
        with os.fdopen(descriptor, "r+b") as file:
            file.write(bytes(cls._LAYOUT.size + cls._MAX_NAME))  # zeros: no step yet
            file.flush()
            return cls(file), path

    @classmethod
    def open(cls, path: str) -> "StepBoard":
        """Open, in the child process, the board that its parent has made in a file."""
        with Path(path).open("r+b") as file:
            return cls(file)

    def begin(self, name: str, limit: float) -> None:
        """Announce a step, with its limit in seconds.

        `_LAYOUT` is that of the first bytes: number of the step, limit, length of the name. The
        name follows them. It is written first, as the parent notices the step by its number.
        """
        text = name.encode()[: self._MAX_NAME]
        start = self._LAYOUT.size
        self._memory[start : start + len(text)] = text

        self._number += 1
        self._LAYOUT.pack_into(self._memory, 0, self._number, limit, len(text))

    def end(self) -> None:
        """Announce that the step is over: its number stays, with no limit and no name."""
        self._LAYOUT.pack_into(self._memory, 0, self._number, 0.0, 0)

    def read(self) -> tuple[int, float, str]:
        """Number, limit (0: none) and name of the current step."""
        number, limit, length = self._LAYOUT.unpack_from(self._memory)
        start = self._LAYOUT.size
        name = self._memory[start : start + length].decode(errors="replace")
        return number, limit, name


@dataclass
class _Reply:
    """In a child process: its messages to the parent.

    Attributes:
        stream: Where they are written; None in other processes.
        call: Number of the call.
        board: Where steps are announced.
    """

    stream: IO[bytes] | None = None
    call: int = 0
    board: StepBoard | None = None


_reply = _Reply()


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
        """Start the process, and wait until it is ready; it serves the calls of a group."""
        self.group = group
        self._messages: queue.SimpleQueue[tuple[bytes, bytes]] = queue.SimpleQueue()
        self._calls = 0  # number of the current call; 0 while the process starts
        self._board, board_path = StepBoard.create()
        # A session of its own, so that all processes that a method starts can be killed with it.
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=os.name == "posix",
        )
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            self._write(pickle.dumps((sys.path, board_path)))  # what `_START` reads
            self._next_message()  # that it is ready
        except ChildDiedError:
            raise ExperimentError(
                "a process ended before it was ready: is there enough memory?"
            ) from None
        finally:
            with suppress(OSError):  # some systems keep open files
                Path(board_path).unlink()

    @property
    def is_alive(self) -> bool:
        """Whether the process exists."""
        return self._process.poll() is None

    def call(self, request: bytes) -> Any:
        """Run a pickled call (`pickle_call`) there, and return its result or raise its exception.

        Raises:
            StepTimeoutError: A step took longer than its limit.
            ChildDiedError: The process ended, or replied with what is no message.
        """
        self._calls += 1
        self._write(pickle.dumps((self._calls, request)))
        return self._unpickle(self._next_message())

    def close(self) -> None:
        """Kill the process and all that it started."""
        with suppress(OSError):  # it has ended already
            if os.name == "posix":
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        with suppress(OSError):  # closing writes what is left, which nobody reads any more
            cast("Any", self._process.stdin).close()
        self._process.wait()

    def _write(self, content: bytes) -> None:
        """Write to the process; if it has ended, nothing happens here."""
        stream = cast("Any", self._process.stdin)
        with suppress(OSError):  # the process has ended; `_next_message` will notice
            stream.write(content)
            stream.flush()

    def _listen(self) -> None:
        """Read what the process writes, and put the messages into the queue.

        Runs in a thread of the parent until the stream ends. A message is a header (its kind, the
        number of the call, the length of the content) and the content. The last message put into
        the queue is `_CRASH`, with what the process wrote in place of a message, such as a crash
        report; b"" if nothing.
        """
        stream = cast("Any", self._process.stdout)
        report = b""
        with stream, suppress(OSError):
            while True:
                header = stream.read(_HEADER.size)
                if len(header) < _HEADER.size:  # the stream has ended, perhaps in a short report
                    report = header
                    break
                kind, call, length = _HEADER.unpack(header)
                if kind not in (READY, REPLY):
                    report = header + stream.read()
                    break
                content = stream.read(length)
                is_of_this_call = call == self._calls  # not of a copy that forked in an earlier one
                if is_of_this_call:
                    self._messages.put((kind, content))
        self._messages.put((_CRASH, report))

    def _next_message(self) -> bytes:
        """Wait for a message; return its content.

        While none comes, it is checked whether the process is alive and its current step within the
        limit. The end of the stream does not suffice to notice the end of the process: another
        process that it started may hold the stream open.

        Raises:
            StepTimeoutError: A step took longer than its limit.
            ChildDiedError: There will be no message.
        """
        last_step = None  # number of the step that was seen last
        step_seen_at = 0.0  # when it was seen first
        # `POLL_SECONDS` without a message count as `_NOTHING`. `_CRASH` means that the process has
        # ended; the content is then its report.
        while True:
            # Asked before the queue: if the process ends now, its last message is still waited for.
            was_alive = self.is_alive
            try:
                kind, content = self._messages.get(timeout=POLL_SECONDS)
            except queue.Empty:
                kind = _NOTHING if was_alive else _CRASH
                content = b""
            if kind == _CRASH:
                self.close()
                raise ChildDiedError(content.decode(errors="replace"))
            if kind != _NOTHING:
                return content

            step_number, limit, name = self._board.read()
            now = time.monotonic()
            has_limit = limit > 0
            if step_number != last_step:
                last_step = step_number
                step_seen_at = now
            elif has_limit and now - step_seen_at > limit:
                raise StepTimeoutError(name, limit, self._report_and_kill())

    def _unpickle(self, content: bytes) -> Any:
        """Return the result in a reply, or raise the exception in it.

        Raises:
            ChildDiedError: The reply cannot be read, which counts as a crash.
        """
        try:
            result, error = pickle.loads(content)
        except Exception as reason:
            self.close()
            raise ChildDiedError(f"it replied with what cannot be read: {reason!r}") from None
        if isinstance(error, BaseException):
            raise error
        return result

    def _report_and_kill(self) -> str:
        """Kill a process that is overdue, and return where it was, as a traceback.

        The process is told to abort; its faulthandler then writes the traceback, which arrives as
        a message. "" if it writes none in time, or the system is not POSIX.
        """
        report = b""
        if os.name == "posix":
            self._process.send_signal(signal.SIGABRT)
            with suppress(queue.Empty):  # it writes nothing for `DUMP_SECONDS`
                _, report = self._messages.get(timeout=DUMP_SECONDS)
        self.close()
        return report.decode(errors="replace")


class Children:
    """Processes for calls of several threads, reused by the calls of the same group.

    Args:
        limit: Most processes that exist at the same time; None: one for each thread that calls.
    """

    def __init__(self, limit: int | None = None) -> None:
        """Begin without processes: they are started when calls need them."""
        self._limit = limit
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._busy: list[Child] = []

    def call(self, group: str, function: Callable[..., T], *args: object) -> T:
        """Call a function in a process of its group.

        If the function raises, the process is killed, as the function may have left anything there.
        """
        request = pickle_call(function, *args)
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
            # Threads that wait for busy processes notice, and give them back.
            self._idle.clear()

    def _borrow(self, group: str) -> Child:
        """Take an idle process of the group, or start a new one.

        If there are as many processes as allowed, the one that has been idle longest is killed.
        """
        with self._lock:
            for child in [*self._idle]:
                if not child.is_alive:  # it was idle for too long
                    child.close()
                    self._idle.remove(child)

            for child in self._idle:
                if child.group == group:
                    self._idle.remove(child)
                    self._busy.append(child)
                    return child

            processes = len(self._idle) + len(self._busy)
            is_at_limit = self._limit is not None and processes >= self._limit
            if is_at_limit and self._idle:
                oldest = self._idle.pop(0)
                oldest.close()

        child = Child(group)  # without the lock, as a process takes long to start
        with self._lock:
            self._busy.append(child)
        return child

    def _give_back(self, child: Child) -> None:
        """Keep a process for the next call of its group, or forget it if it has ended."""
        with self._lock:  # several threads call
            if child in self._busy:
                self._busy.remove(child)
            if child.is_alive:
                self._idle.append(child)
            else:
                child.close()


CHILDREN = Children()  # shared by all of this process that have no pool of their own
atexit.register(CHILDREN.close)


def pickle_call(function: Callable[..., object], *args: object) -> bytes:
    """Pickle a function and its arguments, to be called in another process."""
    return pickle_value((function, args))


def pickle_value(value: object) -> bytes:
    """Pickle a value for another process; what is defined in a script is sent with its code.

    Raises:
        ExperimentError: It cannot be pickled.
    """
    try:
        return bytes(cloudpickle().dumps(value))
    except Exception as error:
        raise _not_sendable_error(error) from error


def cloudpickle() -> Any:
    """Import the cloudpickle that joblib uses: its own copy before joblib 1.6."""
    try:
        return importlib.import_module("joblib.externals.cloudpickle")
    except ModuleNotFoundError:
        return importlib.import_module("cloudpickle")


def is_child() -> bool:
    """Whether this process was started to run functions for another one."""
    return _reply.stream is not None


@contextmanager
def step(name: str, limit: float | None) -> Iterator[None]:
    """Announce to the parent process that a block may take `limit` seconds at most.

    If it takes longer, the parent kills this process. Without effect if `limit` is None, or outside
    of child processes.

    Args:
        name: What the parent says in its error.
        limit: Seconds.
    """
    if limit is None or _reply.board is None:  # only child processes have a board
        yield
        return
    _reply.board.begin(name, limit)
    try:
        yield
    finally:
        _reply.board.end()


def serve(board: str) -> None:
    """Run the calls that this child process reads, until its parent is gone; never returns.

    Args:
        board: File of the memory where steps are announced.
    """
    _reply.board = StepBoard.open(board)
    # Calls are read from standard input, messages written to standard output, by copies of both.
    calls = os.fdopen(os.dup(0), "rb")
    _reply.stream = os.fdopen(os.dup(1), "wb")

    # Methods get other descriptors 0 and 1: they read nothing, and print to standard error.
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)

    faulthandler.enable(_reply.stream.fileno())
    _forbid_core_files()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it

    requests: queue.SimpleQueue[tuple[int, bytes]] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(calls, requests), daemon=True).start()
    _send(READY)  # the parent waits for it before it sends a call
    with suppress(queue.Empty, BrokenPipeError):
        while True:  # until there is no call for `IDLE_SECONDS`
            _reply.call, request = requests.get(timeout=IDLE_SECONDS)
            _send(REPLY, _answer(request))
    os._exit(0)


def _send(kind: bytes, content: bytes = b"") -> None:
    """Write a message to the parent: a header with the number of the call, and the content.

    Without effect outside of child processes, which have no stream for it.
    """
    if _reply.stream is not None:
        _reply.stream.write(_HEADER.pack(kind, _reply.call, len(content)) + content)
        _reply.stream.flush()


def _forbid_core_files() -> None:
    """Let crashes leave no files; only POSIX has them."""
    with suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _read_requests(calls: IO[bytes], requests: "queue.SimpleQueue[tuple[int, bytes]]") -> None:
    """Read calls into the queue; end this process as soon as its parent is gone."""
    try:
        while True:
            requests.put(pickle.load(calls))
    finally:  # the stream has ended
        os._exit(1)


def _answer(request: bytes) -> bytes:
    """Run a pickled call; return the pickled pair of its result and exception, one of them None.

    An exception that the parent could not unpickle is replaced by a `RuntimeError` with its
    traceback as the message.
    """
    try:
        function, args = pickle.loads(request)
    except Exception as error:  # here, too, the function could not be sent
        return pickle.dumps((None, _not_sendable_error(error)))
    try:
        return bytes(pickle.dumps((function(*args), None)))
    except BaseException as error:
        with suppress(Exception):
            content = pickle.dumps((None, error))
            pickle.loads(content)  # some exceptions can be pickled, but not unpickled
            return content
        report = "".join(traceback.format_exception(error))
        return pickle.dumps((None, RuntimeError(report)))


def _not_sendable_error(error: Exception) -> ExperimentError:
    """The error for what cannot be pickled or unpickled, with the reason that pickle gives."""
    return ExperimentError(
        "a method cannot be sent to another process: define it in a module that can be imported "
        f"there, or use no other process (workers=0) ({type(error).__name__}: {error})"
    )
