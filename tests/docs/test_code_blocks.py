"""The code and the commands in the README and the pages, run or read as they stand.

The Python of a page is one program, run in an empty folder; a block is left out if the comment
`<!-- skip: reason -->` stands before it. Commands are not run, but parsed: their options exist and
have values of the right kind.
"""

import re
import runpy
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hpobench_ordered.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAM = "hpobench-ordered"
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*) *$")
SKIPPED = re.compile(r"^ *<!-- skip: (?P<reason>\S.*) -->$")


@dataclass(frozen=True)
class Block:
    """A block of code in a page: its language, "" where none is named, and its first line, from 1;
    and why it is not run, "" if it is.
    """

    language: str
    line: int
    text: str
    skipped: str


def blocks(text: str) -> Iterator[Block]:
    """Find the blocks of code in a page; one without an end is an error."""
    lines = text.splitlines()
    i = 0
    while i < len(lines):
        begin = FENCE.match(lines[i])
        if begin is not None:
            end = lines.index(f"{begin['indent']}```", i + 1)
            before = next((line for line in reversed(lines[:i]) if line.strip()), "")
            reason = SKIPPED.match(before)
            code = textwrap.dedent("\n".join(lines[i + 1 : end]))
            yield Block(begin["language"], i + 2, code, reason["reason"] if reason else "")
            i = end
        i += 1


def program(text: str) -> str:
    """The Python of a page; every line has the number that it has in the page."""
    lines = [""] * len(text.splitlines())
    for block in blocks(text):
        if block.language == "python" and not block.skipped:
            code = block.text.splitlines()
            lines[block.line - 1 : block.line - 1 + len(code)] = code
    return "\n".join(lines) + "\n"


def commands(text: str) -> list[list[str]]:
    """The words of every command of the package in a page."""
    shell = "\n".join(block.text for block in blocks(text) if block.language == "sh")
    lines = shell.replace("\\\n", " ").splitlines()
    split = (shlex.split(line, comments=True) for line in lines)
    return [words[1:] for words in split if words and words[0] == PROGRAM]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


TUNING = ROOT / "docs" / "tuning.md"  # run below, with its commands
WITH_PYTHON = [page for page in PAGES if page != TUNING and program(page.read_text()).strip()]
COMMANDS = {shlex.join(words): words for page in PAGES for words in commands(page.read_text())}


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
def test_python_runs(page, own_folder):
    rng = np.random.default_rng(0)
    evaluations = {"task": ["a", "b"] * 10, "depth": rng.integers(1, 10, 20)}
    frame = pd.DataFrame(evaluations | {"rate": rng.random(20), "error": rng.random(20)})
    frame.to_csv("evaluations.csv", index=False)  # what the README reads
    script = own_folder / "page.py"
    script.write_text(program(page.read_text()))
    runpy.run_path(str(script), run_name="__main__")  # as a script: its classes have a source text


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_command_is_understood(words, own_folder):
    for word in words:  # a path that has to exist stands for one
        if (word.isalpha() and word.isupper()) or word.startswith(("results", "all", "part-")):
            (own_folder / word).mkdir(exist_ok=True)
    context = click.Context(app, info_name=PROGRAM)
    name, command, rest = app.resolve_command(context, list(words))
    arguments = [re.sub(r"\$\w+", "0", word) for word in rest if word != "--help"]
    if arguments or "--help" not in rest:
        command.make_context(name, arguments, parent=context)


@pytest.mark.slow
def test_page_on_tuning_runs_with_its_commands(own_folder):
    """All its blocks in their order, the commands too."""
    names = {}
    for block in blocks(TUNING.read_text()):
        if block.language == "python":
            exec(compile(block.text, f"line {block.line}", "exec"), names)
        else:
            program_name, *words = shlex.split(block.text.replace("\\\n", " "))
            assert program_name == PROGRAM
            result = CliRunner().invoke(app, words, catch_exceptions=False)
            assert result.exit_code == 0, result.output
    first = [trial.params for trial in names["study"].trials[:5]]
    assert names["configs"].to_dict("records") == first


PAGE = """a

```python
x = 1
```

<!-- skip: slow -->

```python
y = 1
```
1. b
   ```sh
   c
   ```
"""


def test_blocks_have_language_line_and_reason():
    assert list(blocks(PAGE)) == [
        Block("python", 4, "x = 1", ""),
        Block("python", 10, "y = 1", "slow"),
        Block("sh", 14, "c", ""),
    ]


def test_program_leaves_out_skipped_blocks():
    assert program(PAGE).splitlines()[3] == "x = 1"
    assert "y" not in program(PAGE)


def test_block_without_end_is_an_error():
    with pytest.raises(ValueError, match="not in list"):
        list(blocks("```python\nx = 1\n"))


def test_unknown_option_is_noticed(own_folder):
    with pytest.raises(click.NoSuchOption):
        test_command_is_understood(["run", "--benchmrk", "newsvendor"], own_folder)


def test_few_blocks_are_skipped():
    skipped = [block for page in PAGES for block in blocks(page.read_text()) if block.skipped]
    assert len(skipped) <= 3
