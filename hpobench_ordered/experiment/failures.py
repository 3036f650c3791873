"""Failed runs: what went wrong, and where; each a JSON file in a store."""

import re
import traceback
from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Self

from hpobench_ordered.errors import (
    InvalidSuggestionError,
    MethodError,
    StoreError,
    SuggestionTimeoutError,
)
from hpobench_ordered.experiment.plan import IDENTITY

if TYPE_CHECKING:
    from hpobench_ordered.experiment.plan import Cell

MAX_MESSAGE, MAX_TRACEBACK = 10_000, 200_000
"""Most characters that are kept: the beginning of a message, the end of a traceback."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class Reason(Enum):
    """Why a run failed."""

    RAISED = "raised"
    INVALID = "invalid configuration"
    TIMED_OUT = "timed out"
    DIED = "process died"


_REASONS = {InvalidSuggestionError: Reason.INVALID, SuggestionTimeoutError: Reason.TIMED_OUT}
"""Of errors; any other is what the method raised."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that failed, which it alone did.

    Attributes:
        key: The cell's key.
        benchmark: As in the results.
        surrogate: As in the results.
        method: As in the results.
        method_version: As in the results.
        seed: As in the results.
        protocol: As in the results.
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
    def of(cls, cell: "Cell", error: MethodError, *, stack: str = "") -> Self:
        """Describe what a method did in a run.

        Args:
            cell: The run.
            error: What was raised.
            stack: Where the method was, if nothing was raised inside it.
        """
        cause = error.__cause__
        if cause is not None and not stack:
            stack = "".join(traceback.format_exception(cause))
        return cls(
            key=cell.key,
            **cell.describe(),
            reason=_REASONS.get(type(error), Reason.RAISED),
            message=str(error),
            task=error.task,
            when=error.when,
            traceback=stack,
        )

    @classmethod
    def died(cls, cell: "Cell", stack: str) -> Self:
        """Describe a run whose process ended without a word.

        Args:
            cell: The run.
            stack: What the process could still say; empty if nothing.
        """
        return cls(
            key=cell.key,
            **cell.describe(),
            reason=Reason.DIED,
            message=f"{cell.method.name}: its process crashed, ran out of memory or was killed",
            traceback=stack,
        )

    def to_json(self) -> dict[str, Any]:
        """As JSON; what is very long is cut."""
        return asdict(self) | {
            "reason": self.reason.value,
            "message": self.message[:MAX_MESSAGE],
            "traceback": self.traceback[-MAX_TRACEBACK:],
        }

    @classmethod
    def from_json(cls, record: Any) -> Self:
        """Read what `to_json` gave; what a terminal cannot show of its texts is replaced.

        Raises:
            StoreError: It is something else, or of another run than its key says.
        """
        try:
            cell: dict[str, Any] = {name: record[name] for name in IDENTITY}
            reason = Reason(record["reason"])
            told: dict[str, Any] = {name: _shown(record.get(name, "")) for name in _TOLD}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StoreError(f"not the record of a failed run: {error}") from None
        return cls(key=record["key"], **cell, reason=reason, **told)


_TOLD = ("message", "task", "when", "traceback")


def _shown(text: object) -> str:
    if not isinstance(text, str):
        raise TypeError("what went wrong is no text")
    return _CONTROL.sub("\ufffd", text)[-MAX_TRACEBACK:]
