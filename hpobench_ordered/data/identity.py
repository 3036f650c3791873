"""What tells contents apart: hashes, and the identity of a benchmark's values.

All hashes are SHA-256, as hexadecimal digits; callers keep the first ones where fewer are enough.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from numpy.typing import NDArray

DIGITS_OF_CONTENT = 12
"""Number of hexadecimal digits of a content's hash that an identity keeps."""

NEW_AT_EACH_START = "once-"
"""Beginning of the version of a method that cannot be identified: it is never used again."""

# "name", "name@version" or "name@version+content".
_IDENTITY = re.compile(
    r"(?P<name>.*?)(@(?P<version>0|[1-9][0-9]*)(\+(?P<content>[0-9a-f]+))?)?", re.DOTALL
)


def hash_bytes(content: bytes | bytearray) -> str:
    """Hash bytes, such as the content of a file, or an encoded text."""
    return hashlib.sha256(content).hexdigest()


def hash_file(path: Path) -> str:
    """Hash a file, without reading it into memory as a whole."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_json(content: Any, *, sort_keys: bool = False) -> str:
    """Hash an object that can be written as JSON.

    Args:
        content: Nested lists, mappings, texts and numbers.
        sort_keys: Whether mappings have the same hash whatever the order of their keys.
    """
    return hash_bytes(json.dumps(content, sort_keys=sort_keys).encode())


def hash_arrays(*arrays: NDArray[Any], description: str = "") -> str:
    """Hash the bytes of arrays, in C order.

    Args:
        arrays: The arrays. Their types and shapes are not part of the hash.
        description: A text that is hashed, too, such as the names of the arrays and their shapes.
    """
    content = bytearray(description.encode())
    for array in arrays:
        content += array.tobytes()
    return hash_bytes(content)


@dataclass(frozen=True, slots=True)
class BenchmarkIdentity:
    """What identifies the values of a benchmark, as text "newsvendor@1" or "mine@2+0123456789ab".

    Results and run keys hold this text.

    Attributes:
        name: Name of the benchmark.
        version: Its version; None in a text that is a name alone.
        content: Hash of its content, hexadecimal; "" if name and version determine the values.
    """

    name: str
    version: int | None
    content: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an identity from "name@version" or "name@version+content".

        If the text does not end like one of these, all of it is the name.
        """
        match = _IDENTITY.fullmatch(text)
        assert match is not None, "the name takes any text"
        version = None if match["version"] is None else int(match["version"])
        content = match["content"] or ""
        return cls(match["name"], version, content)

    def __str__(self) -> str:
        """Return the text from which `parse` reads the identity."""
        return f"{self.id}+{self.content}" if self.content else self.id

    @property
    def id(self) -> str:
        """Name and version without the content, such as "newsvendor@1"; `load` takes it."""
        return self.name if self.version is None else f"{self.name}@{self.version}"
