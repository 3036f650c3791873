"""Ends calls into methods that take too long, and knows whether it was the user who ended one.

First a signal raises an exception inside the call, again and again, which any Python code notices,
sleeping or not. If that does not help, because the method is inside compiled code or catches the
exception, the process is ended: a process made for runs alone, never the user's.
"""

import faulthandler
import signal
import threading
from time import perf_counter  # this one, whatever a method puts in its place
from types import FrameType

from hpobench_ordered.runtime.child import crash_report

FEWEST_SIGNALS = 4
"""Signals within a limit's time."""
LONGEST_WAIT = 1.0
"""Seconds between two signals, and by how much the end of the process may be late."""
GRACE = 2.0
"""Seconds between the first signal and the end of the process."""
ENDED = "Timeout ("
"""How the last words of a process begin that was ended so."""


class Overdue(BaseException):
    """Raised inside a call that takes too long; no `except Exception` catches it."""


def can_interrupt() -> bool:
    """Whether signals reach the calls of this thread: the main one, not on Windows."""
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()


class Watchdog:
    """Watches the calls of one method on one task, each of which may take `limit` seconds.

    Attributes:
        interrupted: Whether the user has pressed Ctrl-C.
    """

    def __init__(self, limit: float | None) -> None:
        self.limit = limit
        self._is_inside = False
        self._armed: float | None = None
        self._signals = limit is not None and can_interrupt()
        self._previous = signal.signal(signal.SIGALRM, self._raise) if self._signals else None
        self.interrupted = False
        self._hears = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if self._hears:
            signal.signal(signal.SIGINT, self._interrupt)

    def begin(self) -> None:
        """A call begins."""
        if self.limit is None:
            return
        now = perf_counter()
        if crash_report and now - (self._armed or 0.0) > LONGEST_WAIT:
            self._armed = now  # rarely: it starts a thread
            late = self.limit + GRACE + LONGEST_WAIT
            faulthandler.dump_traceback_later(late, exit=True, file=crash_report[0])
        if self._signals:
            self._is_inside = True
            again = min(LONGEST_WAIT, self.limit / FEWEST_SIGNALS)
            signal.setitimer(signal.ITIMER_REAL, self.limit, again)

    def end(self) -> None:
        """The call is over."""
        self._is_inside = False
        if self._signals:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def close(self) -> None:
        """There are no more calls."""
        self.end()
        if self._armed is not None:
            faulthandler.cancel_dump_traceback_later()
        if self._signals:
            signal.signal(signal.SIGALRM, self._previous)
        if self._hears:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.interrupted = True
        raise KeyboardInterrupt

    def _raise(self, number: int, frame: FrameType | None) -> None:
        if self._is_inside:
            raise Overdue
