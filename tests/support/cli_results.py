"""What tests of the command line expect of a result."""

import json
from subprocess import CompletedProcess

FAILURE = 1
"""Exit code of a command that was called rightly but failed, as where a file is damaged."""
MISUSE = 2
"""Exit code of a command that was called wrongly, as with an unknown name."""


def assert_fails(result: CompletedProcess[str], code: int, *parts: str) -> None:
    """Check that a command failed with this exit code, and said why on standard error alone.

    Args:
        parts: Texts that the message contains.
    """
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    for part in parts:
        assert part in result.stderr


def read_names(result: CompletedProcess[str]) -> list[str]:
    """The names of the entries that a command prints with --json."""
    return [entry["name"] for entry in json.loads(result.stdout)]
