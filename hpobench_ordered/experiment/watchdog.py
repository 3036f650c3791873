"""Ends calls into methods that take too long, and detects whether the user interrupted one.

First a repeated signal raises an exception inside the call, even while it sleeps. If that does not
help, because the method is inside compiled code or catches the exception, the process is ended:
only ever a process made for runs, never the user's.
"""

import faulthandler
import signal
import threading
from time import perf_counter  # imported now, as a method may replace it
from types import FrameType

from hpobench_ordered.runtime.child import crash_report

FEWEST_SIGNALS = 4  # fewest signals per time limit
LONGEST_WAIT = 1.0
"""Most seconds between two signals, and by which the end of the process may be late."""
GRACE = 2.0  # seconds between the first signal and the end of the process
ENDED = "Timeout ("  # beginning of the crash report of a process that was ended


class Overdue(BaseException):
    """Raised inside a call that takes too long; not caught by `except Exception`."""


def can_interrupt() -> bool:
    """Whether signals reach calls of this thread: only the main one, and not on Windows."""
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()


class Watchdog:
    """Limits the time of calls of one method on one task, and notes if the user interrupts them."""

    def __init__(self, limit: float | None) -> None:
        self.limit = limit
        self._is_inside = False
        self._armed: float | None = None
        self._signals = limit is not None and can_interrupt()
        self._previous = signal.signal(signal.SIGALRM, self._raise) if self._signals else None
        self.interrupted = False
        self._heard = [
            number
            for number in (signal.SIGINT, signal.SIGTERM)  # the command line treats both alike
            if threading.current_thread() is threading.main_thread()
            and signal.getsignal(number) is signal.default_int_handler
        ]
        for number in self._heard:
            signal.signal(number, self._interrupt)

    def begin(self) -> None:
        """Start the clock of a call."""
        if self.limit is None:
            return
        now = perf_counter()
        if crash_report and now - (self._armed or 0.0) > LONGEST_WAIT:
            self._armed = now  # seldom, since it starts a thread
            late = self.limit + GRACE + LONGEST_WAIT
            faulthandler.dump_traceback_later(late, exit=True, file=crash_report[0])
        if self._signals:
            self._is_inside = True
            again = min(LONGEST_WAIT, self.limit / FEWEST_SIGNALS)
            signal.setitimer(signal.ITIMER_REAL, self.limit, again)

    def end(self) -> None:
        """Stop the clock of a call."""
        self._is_inside = False
        if self._signals:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def close(self) -> None:
        """Restore the handlers of signals."""
        self.end()
        if self._armed is not None:
            faulthandler.cancel_dump_traceback_later()
        if self._signals:
            signal.signal(signal.SIGALRM, self._previous)
        for number in self._heard:
            signal.signal(number, signal.default_int_handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.interrupted = True
        raise KeyboardInterrupt

    def _raise(self, number: int, frame: FrameType | None) -> None:
        if self._is_inside:
            raise Overdue
