"""The journal of an optimiser: JSON lines, a header and then one line per event.

Each line ends with a checksum of the file up to there.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpobench_ordered.core.history import Evaluations, describe_differences
from hpobench_ordered.errors import StoreError
from hpobench_ordered.space import SearchSpace

FORMAT_VERSION = 2  # in the header
FIRST_BYTES = b'{"journal":'  # of every journal
HASH_LENGTH = 16  # hexadecimal digits that are kept of a hash; enough to notice any change
LINE_END = b', "checksum": "%s"}'
"""End of the JSON object on every line: its last entry, the checksum, and the closing brace."""
LINE_END_LENGTH = len(LINE_END % bytes(HASH_LENGTH))


class Journal:
    """A file with a line for each event, which is on disk when `append` returns.

    A last line that was cut off, as the process was killed while it wrote, is removed.

    Attributes:
        path: Path of the file.
        lines: The lines that the file had when it was opened, the header first; [] for a new file.

    Raises:
        StoreError: The file is no journal, or damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Read and check the lines of the file, and remove a last one that was cut off."""
        self.path = Path(path)
        # Of all lines so far: the checksum of a line covers those before it, too.
        self._hash_of_lines = hashlib.sha256()
        content = self.path.read_bytes() if self.path.exists() else b""
        finished = content[: content.rfind(b"\n") + 1]  # all lines that end with a line break

        # A file without any finished line is a journal if it is the beginning of a header that was
        # cut off; anything else is another file, which must not be overwritten.
        if not finished and not content.startswith(FIRST_BYTES[: len(content)]):
            raise self._error_in_line(1)

        *lines, unfinished = content.split(b"\n")  # the rest is empty unless one was cut off
        self.lines = [self._read_line(n, line) for n, line in enumerate(lines, start=1)]
        # If the rest is a whole line and one more byte, its line break was damaged, not cut off.
        is_line_and_byte = self._has_right_checksum(unfinished[:-1])
        if is_line_and_byte:
            raise self._error_in_line(len(lines) + 1)

        if len(finished) < len(content):
            with self.path.open("r+b") as file:
                file.truncate(len(finished))
        self._size = len(finished)  # bytes that the file has, unless others write to it
        # Why nothing can be written any more; "" as long as all went well.
        self._failure = ""

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Write the header of a new journal, or check that this one has the same settings."""
        if not self.lines:
            self.append({"journal": FORMAT_VERSION, **settings})
            return
        changes = describe_changes(self.lines[0], settings)
        if changes:
            raise StoreError(
                f"{self.path} is the journal of another optimiser: {'; '.join(changes)}. Use the "
                "settings that it was created with, or another file"
            )

    def append(self, line: Mapping[str, Any]) -> None:
        """Write one line and sync it to disk; a StoreError if another process wrote meanwhile.

        After a failure nothing is written any more: a line may be incomplete.
        """
        if self._failure:  # why writing failed before; "" if it never did
            raise StoreError(self._failure)
        try:
            self._append(line)
        except OSError as error:
            self._failure = (
                f"the journal {self.path} cannot be written: {error}. Fix that and create the "
                "optimiser again: it continues from the journal"
            )
            raise StoreError(self._failure) from error

    def _append(self, line: Mapping[str, Any]) -> None:
        """Write one line; the checksum becomes the last entry of its JSON object.

        `self._size` is the size that the file had after the last line: if it has another one now,
        somebody else wrote to it.
        """
        json_text = json.dumps(line, allow_nan=False, default=_as_python_number).encode()
        content = json_text.removesuffix(b"}")  # `LINE_END` closes the object again
        text = content + LINE_END % self._checksum(content) + b"\n"
        self._hash_of_lines.update(content)
        with self.path.open("ab") as file:
            if os.fstat(file.fileno()).st_size != self._size:
                raise StoreError(
                    f"another optimiser writes to {self.path}; each needs a file of its own"
                )
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        self._size += len(text)

    def _read_line(self, number: int, text: bytes) -> dict[str, Any]:
        """Read one line, which follows those that were read before; returns its JSON object.

        The checksum is removed from it. Raises a `StoreError` if it is wrong.
        """
        if not self._has_right_checksum(text):
            raise self._error_in_line(number)
        line: dict[str, Any] = json.loads(text)
        if number == 1 and line.get("journal") != FORMAT_VERSION:
            raise self._error_in_line(number)
        self._hash_of_lines.update(text[:-LINE_END_LENGTH])  # the next checksum covers it, too
        del line["checksum"]
        return line

    def _has_right_checksum(self, text: bytes) -> bool:
        """Whether a line ends with the right checksum.

        Every line ends with `LINE_END`, that is `, "checksum": "..."}`, which has a fixed length.
        """
        content = text[:-LINE_END_LENGTH]
        end = text[-LINE_END_LENGTH:]
        return end == LINE_END % self._checksum(content)

    def _checksum(self, content: bytes) -> bytes:
        """Checksum of a line: the hash of all lines before it and of its content."""
        hash_with_line = self._hash_of_lines.copy()  # the hash of the lines before stays as it is
        hash_with_line.update(content)
        return hash_with_line.hexdigest()[:HASH_LENGTH].encode()

    def _error_in_line(self, number: int) -> StoreError:
        """Make the error of a damaged or foreign line, counted from 1."""
        return StoreError(
            f"line {number} of {self.path} is not one of an optimiser's journal, or is damaged"
        )


def as_json(content: Mapping[str, Any]) -> dict[str, Any]:
    """A value after a round trip through JSON, so that it equals what is read from a file."""
    read: dict[str, Any] = json.loads(json.dumps(content, default=_as_python_number))
    return read


def _as_python_number(value: Any) -> Any:
    """Convert a NumPy number, which `json.dumps` cannot write, to a Python number."""
    return value.item()


def describe_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Describe each setting that differs from what it was before."""
    changes: list[str] = []
    for name, value in now.items():
        change = describe_change(name, before.get(name), value)
        if change:
            changes.append(change)
    return changes


def describe_change(name: str, before: Any, now: Any) -> str:
    """Describe how a setting differs, "" if it does not."""
    if name == "space":
        return describe_change_of_space(before, now)
    if before == now:
        return ""
    if name == "history":
        return describe_change_of_history(before, now)
    return f"{name} was {before!r}, now {now!r}"


def describe_change_of_space(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Describe how two search spaces, as JSON, differ; "" if they code configurations alike."""
    old = SearchSpace.from_json(before)
    new = SearchSpace.from_json(now)
    if new.codes_as(old):  # defaults may differ
        return ""
    return f"the search space differs ({'; '.join(describe_differences(old, new))})"


def describe_change_of_history(before: list[list[str]], now: list[list[str]]) -> str:
    """Describe how two histories differ; each is a list of pairs of a task's name and a hash."""
    old_tasks = [task for task, _ in before]
    new_tasks = [task for task, _ in now]
    if old_tasks != new_tasks:
        return f"the history was of {old_tasks}, now of {new_tasks}"
    changed: list[str] = []
    for old, new in zip(before, now, strict=True):
        if old != new:
            changed.append(repr(old[0]))  # the name of the task
    return f"the evaluations of {', '.join(changed)} in the history differ"


def hash_evaluations(evaluations: Evaluations) -> str:
    """Hash of all that a method sees of an earlier task: its space, context and evaluations."""
    space_and_context = [evaluations.space.to_json(), dict(evaluations.context)]
    digest = hashlib.sha256(json.dumps(space_and_context, default=float).encode())
    digest.update(evaluations.values.tobytes() + evaluations.losses.tobytes())
    return digest.hexdigest()[:HASH_LENGTH]
