"""Failed runs: what went wrong, and where; each a JSON file in a store."""

import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

from hpobench_ordered.errors import (
    InvalidSuggestionError,
    MethodError,
    ProcessDiedError,
    SuggestionTimeoutError,
)

if TYPE_CHECKING:
    from hpobench_ordered.experiment.plan import Cell

MAX_MESSAGE, MAX_TRACEBACK = 10_000, 200_000
"""Most characters that are stored: the beginning of a message, the end of a traceback."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class Reason(StrEnum):
    """Why a run failed."""

    RAISED = "raised"
    INVALID = "invalid configuration"
    TIMED_OUT = "timed out"
    DIED = "process died"


_REASONS = {
    MethodError: Reason.RAISED,
    InvalidSuggestionError: Reason.INVALID,
    SuggestionTimeoutError: Reason.TIMED_OUT,
    ProcessDiedError: Reason.DIED,
}


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that failed, which it alone did.

    Attributes:
        key: The cell's key; the next six are as in the results.
        reason: Why it failed.
        message: One line.
        task: Name of the task it failed on; empty where that is not known.
        when: When on that task, such as "trial 3".
        traceback: What Python printed of it; empty where there is none.
    """

    key: str
    benchmark: str
    surrogate: str
    method: str
    method_version: str
    seed: int
    protocol: str
    reason: Reason
    message: str
    task: str = ""
    when: str = ""
    traceback: str = ""

    @classmethod
    def of(cls, cell: "Cell", error: MethodError, *, said: str = "") -> Self:
        """Describe what a method did in a run, and what its process said if it ended."""
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

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Read one that was stored; raises what a constructor does where it is something else."""
        return cls(**{**record, "reason": Reason(record["reason"])})


def _printable(text: str) -> str:
    """A text without what a terminal would take for commands."""
    return _CONTROL.sub("\ufffd", text)
