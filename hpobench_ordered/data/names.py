"""Names of benchmarks, tasks and methods: one line of text that fits into a file name."""

from hpobench_ordered.errors import InvalidNameError

MAX_BYTES = 200  # most bytes of a name in UTF-8; file systems allow 255, suffixes included


def check_name(what: str, name: object) -> None:
    """Check that a name can be printed on a terminal and be part of a file's name.

    Args:
        what: What has the name, for the message, such as "task".
        name: The name.

    Raises:
        InvalidNameError: It is no text, blank, has characters such as line breaks, or is too long.
    """
    if not isinstance(name, str):
        raise InvalidNameError(f"the name of a {what} must be text, but got {type(name).__name__}")
    if not name.strip() or not name.isprintable():
        raise InvalidNameError(
            f"the name of a {what} must be one line of printable characters, got {name[:80]!r}"
        )
    if len(name.encode()) > MAX_BYTES:
        raise InvalidNameError(
            f"the name of a {what} must have at most {MAX_BYTES} bytes, but {name[:40]!r}... has "
            f"{len(name.encode())}"
        )
