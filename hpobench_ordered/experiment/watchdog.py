"""Ends calls into methods that take too long.

Python cannot end a call from outside, so there are two steps. First an exception is raised inside
the call, which any Python code notices, sleeping or not where the process can be sent a signal. If
that does not help, because the method is inside compiled code or caught the exception, the process
is given up: a worker's own process alone, never the user's.
"""

import contextlib
import ctypes
import faulthandler
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import cache
from types import FrameType, TracebackType
from typing import Any, Self

FEWEST_LOOKS = 4
"""Looks at the clock within the limit."""
LONGEST_WAIT = 1.0
"""Seconds between two looks."""
GRACE = 2.0
"""Seconds between the exception and the end of the process."""


class Overdue(BaseException):
    """Raised inside a call that takes too long; no `except Exception` catches it."""


class Watchdog:
    """Watches the calls of one run from a thread of its own.

    Args:
        limit: Seconds that a call may take; None: no limit.
        give_up: Called with the stack of a call that goes on all the same; the process ends right
            after. None where it must not be ended.
    """

    def __init__(
        self, limit: float | None, *, give_up: Callable[[str], None] | None = None
    ) -> None:
        self.limit = limit
        self.since: float | None = None
        self._give_up = give_up
        self._stop = threading.Event()
        self._watched = threading.get_ident()
        self._thread: threading.Thread | None = None
        self._previous: Any = None

    def __enter__(self) -> Self:
        if self.limit is not None:
            self._rearm(self.limit)
            if self._has_signals:
                self._previous = signal.signal(signal.SIGALRM, self._raise)
            self._thread = threading.Thread(target=self._watch, args=(self.limit,), daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        stack: TracebackType | None,
    ) -> None:
        if self._thread is None:
            return
        self._stop.set()
        self._thread.join()
        if self._has_signals:
            signal.signal(signal.SIGALRM, self._previous)

    def begin(self) -> float:
        """A call begins; returns the time."""
        self.since = time.perf_counter()
        return self.since

    def end(self) -> None:
        """The call is over."""
        self.since = None

    @property
    def _has_signals(self) -> bool:
        """Whether the watched thread can be sent one: the main thread of a Unix process."""
        return hasattr(signal, "pthread_kill") and self._watched == threading.main_thread().ident

    def _overdue(self, limit: float) -> bool:
        since = self.since
        return since is not None and time.perf_counter() - since > limit

    def _watch(self, limit: float) -> None:
        wait = min(LONGEST_WAIT, limit / FEWEST_LOOKS)
        while not self._stop.wait(wait):
            self._rearm(limit)
            if self._overdue(limit + GRACE) and self._give_up is not None:
                self._give_up(self._stack())
                os._exit(1)
            if self._overdue(limit):
                self._interrupt()
        if self._give_up is not None:
            faulthandler.cancel_dump_traceback_later()

    def _rearm(self, limit: float) -> None:
        """End the process unless called again soon: for calls that let no other thread run."""
        if self._give_up is not None:
            late = limit + GRACE + 2 * LONGEST_WAIT
            faulthandler.dump_traceback_later(late, exit=True, file=_nowhere())

    def _interrupt(self) -> None:
        if self._has_signals:
            signal.pthread_kill(self._watched, signal.SIGALRM)
        else:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._watched), ctypes.py_object(Overdue)
            )

    def _raise(self, number: int, frame: FrameType | None) -> None:
        # The call may have ended since the signal was sent.
        if self.limit is not None and self._overdue(self.limit):
            raise Overdue

    def _stack(self) -> str:
        frame = None
        with contextlib.suppress(KeyError):
            frame = sys._current_frames()[self._watched]
        return "".join(traceback.format_stack(frame)) if frame else ""


@cache
def _nowhere() -> int:
    """A descriptor that stays open: what is written to it is lost."""
    return os.open(os.devnull, os.O_WRONLY)


UNWATCHED = Watchdog(None)
"""Lets calls take as long as they like."""
