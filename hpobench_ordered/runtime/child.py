"""Child processes that run functions; when one crashes, the others go on."""

import atexit
import faulthandler
import importlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar, cast

from hpobench_ordered.errors import ExperimentError

P = ParamSpec("P")
T = TypeVar("T")

IDLE_SECONDS = 60.0  # idle time after which a process exits
_START = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from hpobench_ordered.runtime import child; child.serve()"
)
_REPLY = pickle.PROTO
"""First byte of a reply, which is a pickle; a crash report begins with another byte."""

crash_report: list[int] = []
"""In a child process: the file descriptor for crash reports; else empty."""


class ChildDiedError(Exception):
    """The process ended without a reply; the message is its crash report."""


class Child:
    """A Python process that runs functions of one group, one at a time."""

    def __init__(self, group: str = "") -> None:
        self.group = group
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            self._write(pickle.dumps(sys.path))
            self._read()
        except ChildDiedError:
            raise ExperimentError(
                "a process ended before it was ready: is there enough memory?"
            ) from None

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function there; functions defined in scripts are sent with their code."""
        self._write(pickle.dumps(pickled(function, *args, **kwargs)))
        result, error = pickle.loads(self._read())
        if error is not None:
            raise error
        return cast("T", result)

    def close(self) -> None:
        """Kill the process."""
        self._process.kill()
        with suppress(OSError):
            cast("Any", self._process.stdin).close()
        cast("Any", self._process.stdout).close()
        self._process.wait()

    def _write(self, content: bytes) -> None:
        stream = cast("Any", self._process.stdin)
        with suppress(OSError):  # it has ended, which is noticed when its reply is read
            stream.write(content)
            stream.flush()

    def _read(self) -> bytes:
        stream = cast("Any", self._process.stdout)
        if stream.peek(1)[:1] == _REPLY:
            with suppress(EOFError, pickle.UnpicklingError):  # the reply is incomplete
                return cast("bytes", pickle.load(stream))
        said = stream.read()
        self.close()
        raise ChildDiedError(said.decode(errors="replace"))


class Children:
    """One process for each calling thread and group, started on demand and reused."""

    def __init__(self) -> None:
        self._own = threading.local()
        self._all: list[Child] = []

    def call_apart(
        self, group: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a function in a process of its group; kill that if the function raises."""
        child: Child | None = getattr(self._own, "child", None)
        if child is None or child.group != group or child._process.poll() is not None:
            if child is not None:
                child.close()
            child = self._own.child = Child(group)
            self._all.append(child)
        try:
            return child.call(function, *args, **kwargs)
        except BaseException:
            child.close()
            raise

    def close(self) -> None:
        """Kill all processes."""
        for child in self._all:
            child.close()


CHILDREN = Children()  # the shared pool of this process, used by Dask workers
atexit.register(CHILDREN.close)


def pickled(function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> bytes:
    """A function call as bytes, to be sent to another process."""
    try:
        return bytes(cloudpickle().dumps((function, args, kwargs)))
    except Exception as error:
        raise _not_sendable(error) from error


def cloudpickle() -> Any:
    """The cloudpickle that joblib uses: its own copy before joblib 1.6."""
    try:
        return importlib.import_module("joblib.externals.cloudpickle")
    except ModuleNotFoundError:
        return importlib.import_module("cloudpickle")


def serve() -> None:
    """Main loop of a child process: run the calls it reads, until its parent is gone."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keep what methods print out of the replies
    crash_report.append(replies.fileno())
    faulthandler.enable(replies.fileno())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # its parent ends it
    calls: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(calls,), daemon=True).start()
    reply = b""
    with suppress(queue.Empty, BrokenPipeError):
        while True:
            replies.write(pickle.dumps(reply))
            replies.flush()
            reply = _answer(calls.get(timeout=IDLE_SECONDS))
    os._exit(0)


def _listen(calls: "queue.SimpleQueue[bytes]") -> None:
    """Read calls; end this process as soon as its parent is gone."""
    try:
        while True:
            calls.put(pickle.load(sys.stdin.buffer))
    finally:
        os._exit(1)


def _answer(payload: bytes) -> bytes:
    """Run a call; return its result or exception, pickled."""
    try:
        function, args, kwargs = pickle.loads(payload)
    except Exception as error:
        return pickle.dumps((None, _not_sendable(error)))
    try:
        return bytes(pickle.dumps((function(*args, **kwargs), None)))
    except BaseException as error:
        with suppress(Exception):
            pickle.loads(content := pickle.dumps((None, error)))
            return content
        return pickle.dumps((None, RuntimeError("".join(traceback.format_exception(error)))))


def _not_sendable(error: Exception) -> ExperimentError:
    return ExperimentError(
        "a method cannot be sent to another process: define it in a module that can be imported "
        f"there, or use one worker ({type(error).__name__}: {error})"
    )
