"""Failed runs: what went wrong, and where; each a JSON file in a store."""

import re
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

from hpobench_ordered.errors import (
    InvalidSuggestionError,
    MethodError,
    StoreError,
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


_REASONS = {InvalidSuggestionError: Reason.INVALID, SuggestionTimeoutError: Reason.TIMED_OUT}
"""Of errors; any other is what the method raised."""


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
    def of(cls, cell: "Cell", error: MethodError) -> Self:
        """Describe what a method did in a run."""
        cause = error.__cause__
        said = "" if cause is None else "".join(traceback.format_exception(cause))
        reason = _REASONS.get(type(error), Reason.RAISED)
        return cls._of(cell, reason, str(error), said, task=error.task, when=error.when)

    @classmethod
    def died(cls, cell: "Cell", said: str, *, limit: float | None = None) -> Self:
        """Describe a run whose process ended.

        Args:
            cell: The run.
            said: What the process could still say.
            limit: If it was ended because a call took longer than this: the seconds.
        """
        if limit is not None:
            message = f"{cell.method.name}: took longer than {limit:g} s"
            return cls._of(cell, Reason.TIMED_OUT, message, said)
        message = f"{cell.method.name}: its process crashed, ran out of memory or was killed"
        return cls._of(cell, Reason.DIED, message, said)

    @classmethod
    def _of(cls, cell: "Cell", reason: Reason, message: str, said: str, **where: str) -> Self:
        return cls(
            key=cell.key,
            **cell.describe(),
            reason=reason,
            message=_printable(message)[:MAX_MESSAGE],
            traceback=_printable(said)[-MAX_TRACEBACK:],
            **where,
        )

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Read what `to_json` gave.

        Raises:
            StoreError: It is something else.
        """
        try:
            return cls(**{**record, "reason": Reason(record["reason"])})
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"not the record of a failed run: {error}") from None


def _printable(text: str) -> str:
    """A text without what a terminal would take for commands."""
    return _CONTROL.sub("\ufffd", text)
