"""Output in terminals and pipes whose encoding lacks characters."""

import io
import json
from contextlib import contextmanager, redirect_stdout

from hpobench_ordered.cli._output import allow_all_characters, print_json, print_table


@contextmanager
def stdout_in(encoding):
    """Let standard output have an encoding; yields its bytes."""
    stream = io.BytesIO()
    with redirect_stdout(io.TextIOWrapper(stream, encoding, write_through=True)):
        yield stream


def test_table_is_printed_in_any_encoding():
    """A question mark stands for the en rule, which the encoding lacks."""
    with stdout_in("cp437") as printed:
        allow_all_characters()
        print_table(["method", "score"], [["bo", "\u2013"]])
        words = printed.getvalue().split()
    assert words == [b"method", b"score", b"bo", b"?"]


def test_json_is_plain():
    """JSON has escapes in place of characters that an encoding may lack."""
    with stdout_in("ascii") as printed:
        print_json({"\u8cea": 1})
        content = json.loads(printed.getvalue())
    assert content == {"\u8cea": 1}
