"""The code and the commands in the README and the pages, run or read as they stand.

The Python of a page is one program, run in an empty folder. A block is left out if the comment
`<!-- skip: reason -->` stands before it. After `<!-- needs: module -->`, it runs only in a test of
its own, where that module of another tool is installed. Commands are not run, but parsed: their
options exist and have values of the right kind.
"""

import re
import runpy
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from hpobench_ordered.cli import app
from hpobench_ordered.reporting.paper_table import paper_table

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAM = "hpobench-ordered"
OPENING_FENCE_PATTERN = re.compile(r"^(?P<indent> *)```(?P<language>\w*) *$")
COMMENT_PATTERN = re.compile(r"^ *<!-- (?P<kind>skip|needs): (?P<text>\S.*) -->$")


@dataclass(frozen=True)
class Block:
    """A block of code in a page, between two fences (lines of three backquotes).

    Attributes:
        language: The name after the first fence, "" where there is none.
        line: Number of the block's first line of code in the page, from 1.
        text: The code.
        skip_reason: Why the block is never run, "" if it is.
        needed_module: Module of another tool that the block imports, "" if it needs none.
    """

    language: str
    line: int
    text: str
    skip_reason: str = ""
    needed_module: str = ""


def read_comment(lines_before: list[str], kind: str) -> str:
    """Read the text in a comment such as `<!-- skip: text -->` before a block; "" without one.

    Args:
        lines_before: All lines of the page before the block. Empty ones may follow the comment.
        kind: The word at the beginning of the comment, "skip" or "needs".
    """
    lines_with_text = [line for line in lines_before if line.strip()]
    if not lines_with_text:
        return ""
    comment = COMMENT_PATTERN.match(lines_with_text[-1])
    if comment is None:
        return ""
    if comment["kind"] != kind:
        return ""
    return comment["text"]


def find_blocks(text: str) -> Iterator[Block]:
    """Find the blocks of code in a page; one without an end is an error."""
    lines = text.splitlines()
    index = 0
    while index < len(lines):
        opening_fence = OPENING_FENCE_PATTERN.match(lines[index])
        if opening_fence is None:
            index += 1
            continue

        closing_fence = f"{opening_fence['indent']}```"
        first_of_code = index + 1
        end_of_code = lines.index(closing_fence, first_of_code)
        code = lines[first_of_code:end_of_code]
        yield Block(
            language=opening_fence["language"],
            line=first_of_code + 1,  # lines are numbered from 1, indexes from 0
            text=textwrap.dedent("\n".join(code)),
            skip_reason=read_comment(lines[:index], "skip"),
            needed_module=read_comment(lines[:index], "needs"),
        )
        index = end_of_code + 1


def join_python_blocks(text: str, installed_module: str = "") -> str:
    """Build the Python program of a page, without the blocks that are skipped.

    Every line has the number that it has in the page, so that errors name lines of the page.

    Args:
        text: The page.
        installed_module: The only module of another tool that blocks may need.
    """
    lines = [""] * len(text.splitlines())
    for block in find_blocks(text):
        if block.skip_reason:
            continue
        is_tool_missing = block.needed_module not in ("", installed_module)
        if is_tool_missing:
            continue

        if block.language == "python":
            code = block.text.splitlines()
            first = block.line - 1
            lines[first : first + len(code)] = code
    return "\n".join(lines) + "\n"


def join_continued_lines(shell: str) -> str:
    """Write every shell command on one line: a backslash at the end of a line continues it."""
    return shell.replace("\\\n", " ")


def find_commands(text: str) -> list[list[str]]:
    """Find the package's commands in a page, each as its words after `hpobench-ordered`."""
    shell_lines = []
    for block in find_blocks(text):
        if block.language == "sh":
            shell_lines.extend(join_continued_lines(block.text).splitlines())

    commands = []
    for line in shell_lines:
        words = shlex.split(line, comments=True)
        if words and words[0] == PROGRAM:
            commands.append(words[1:])
    return commands


def name_of(page: Path) -> str:
    """The path of a page in the checkout, as "docs/tuning.md"."""
    return page.relative_to(ROOT).as_posix()


PAGE_ON_TUNING = ROOT / "docs" / "tuning.md"
"""A page whose Python reads files that its commands write; another test runs both in turn."""
PAGE_ON_REPORTS = ROOT / "docs" / "report.md"
"""A page that shows what its code prints; another test runs it, and compares that."""


def find_pages_with_python() -> list[Path]:
    """Find the pages whose Python is run by itself: all but those that other tests run."""
    pages = []
    for page in PAGES:
        has_python = join_python_blocks(page.read_text()).strip() != ""
        if has_python and page not in (PAGE_ON_TUNING, PAGE_ON_REPORTS):
            pages.append(page)
    return pages


def find_recipes() -> list[tuple[Path, str]]:
    """Find the modules of other tools that blocks of pages need: pairs of a page and a module."""
    recipes: list[tuple[Path, str]] = []
    for page in PAGES:
        for block in find_blocks(page.read_text()):
            recipe = (page, block.needed_module)
            is_new = recipe not in recipes
            if block.needed_module and is_new:
                recipes.append(recipe)
    return recipes


def find_commands_of_all_pages() -> dict[str, list[str]]:
    """Find the words of every command, by the command as a line."""
    words_of_command = {}
    for page in PAGES:
        for words in find_commands(page.read_text()):
            words_of_command[shlex.join(words)] = words
    return words_of_command


COMMANDS = find_commands_of_all_pages()
RECIPES = find_recipes()


# The page on changed search spaces is about such tasks, and says that there is a warning.
@pytest.mark.filterwarnings("ignore:earlier tasks are on another search space")
# The page on machines starts a cluster of Dask, whose usual port another one may have.
@pytest.mark.filterwarnings("ignore:Port 8787 is already in use")
@pytest.mark.slow
@pytest.mark.parametrize("page", find_pages_with_python(), ids=name_of)
def test_python_of_page_runs(page, own_folder):
    """The Python code of a page, all its blocks together, runs without an error."""
    # Written to a file, as the package reads the source of methods that a page defines.
    script = own_folder / "page.py"
    script.write_text(join_python_blocks(page.read_text()))

    # Fails if it raises an error.
    runpy.run_path(str(script), run_name="__main__")


# Other tools warn of what they call themselves.
@pytest.mark.filterwarnings("default")
@pytest.mark.slow
@pytest.mark.parametrize(("page", "module"), RECIPES, ids=[module for _, module in RECIPES])
def test_recipe_for_other_tool_runs(page, module, own_folder):
    """The code of a page that needs no other tool runs, together with that for one tool."""
    pytest.importorskip(module, reason=f"{module} is not installed")
    script = own_folder / "page.py"
    script.write_text(join_python_blocks(page.read_text(), module))

    # Fails if it raises an error.
    runpy.run_path(str(script), run_name="__main__")


@pytest.mark.slow
def test_report_page_shows_table_of_its_code(own_folder):
    """The page shows the table in Markdown of the variable `result`."""
    page = PAGE_ON_REPORTS.read_text()
    script = own_folder / "page.py"
    script.write_text(join_python_blocks(page))

    result = runpy.run_path(str(script), run_name="__main__")["result"]

    assert paper_table(result, "markdown") in page


def is_placeholder_of_path(word: str) -> bool:
    """Whether a word of a command, such as RESULTS or part-1, stands for an existing path."""
    is_in_capitals = word.isalpha() and word.isupper()
    return is_in_capitals or word.startswith(("results", "all", "part-"))


def parse_command(words: list[str], folder: Path) -> None:
    """Let the command line parse a command without running it; raises an error if it is invalid.

    Args:
        words: The words after `hpobench-ordered`.
        folder: Where the placeholders of paths, such as RESULTS, are made as empty folders.
    """
    for word in words:
        if is_placeholder_of_path(word):
            (folder / word).mkdir(exist_ok=True)

    context = click.Context(app, info_name=PROGRAM)
    name, command, arguments = app.resolve_command(context, list(words))
    if arguments == ["--help"]:
        return  # the arguments that the command requires may be missing

    # At --help, click would exit instead of parsing the other arguments.
    to_parse = [word for word in arguments if word != "--help"]
    # A shell replaces variables, such as $SLURM_ARRAY_TASK_ID, by numbers.
    to_parse = [re.sub(r"\$\w+", "0", word) for word in to_parse]
    command.make_context(name, to_parse, parent=context)


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_command_is_understood(words, own_folder):
    # Raises an error if it is misused.
    parse_command(words, own_folder)


def run_tuning_page() -> dict[str, Any]:
    """Run the Python and the commands of the page on tuning in turn; returns its variables."""
    variables: dict[str, Any] = {}
    for block in find_blocks(PAGE_ON_TUNING.read_text()):
        if block.language == "python":
            # Tracebacks name the line of the page in the place of a file.
            code = compile(block.text, f"line {block.line}", "exec")
            exec(code, variables)
        else:
            # All other blocks of this page are a single command of the package.
            program_name, *words = shlex.split(join_continued_lines(block.text))
            assert program_name == PROGRAM
            result = CliRunner().invoke(app, words, catch_exceptions=False)
            assert result.exit_code == 0, result.output
    return variables


@pytest.mark.slow
def test_page_on_tuning_runs_with_its_commands(own_folder):
    """On the page a study tunes first, then the command `suggest`: both begin with the same.

    The command suggests five configurations at once, without their losses, the study one by one.
    """
    variables = run_tuning_page()

    configs_of_command = variables["configs"].to_dict("records")
    assert len(configs_of_command) == 5  # the command has the option --trials 5
    first_trial_of_study = variables["study"].trials[0]
    assert configs_of_command[0] == first_trial_of_study.params


PAGE_OF_FOUR_BLOCKS = """a

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

<!-- needs: ray -->

```python
import ray
```
"""


def test_blocks_have_language_line_and_comment():
    """The second block is preceded by a comment that skips it, as it is slow."""
    assert list(find_blocks(PAGE_OF_FOUR_BLOCKS)) == [
        Block(language="python", line=4, text="x = 1"),
        Block(language="python", line=10, text="y = 1", skip_reason="slow"),
        Block(language="sh", line=14, text="c"),
        Block(language="python", line=20, text="import ray", needed_module="ray"),
    ]


def test_program_has_line_numbers_of_page():
    """The block of the page with x = 1 begins at its fourth line."""
    program = join_python_blocks(PAGE_OF_FOUR_BLOCKS)

    assert program.splitlines().index("x = 1") + 1 == 4


def test_program_has_blocks_of_installed_tool():
    without_tool = join_python_blocks(PAGE_OF_FOUR_BLOCKS)
    with_tool = join_python_blocks(PAGE_OF_FOUR_BLOCKS, "ray")

    assert without_tool.split() == ["x", "=", "1"]
    assert with_tool.split() == ["x", "=", "1", "import", "ray"]


def test_unknown_option_is_noticed(own_folder):
    with pytest.raises(click.NoSuchOption):
        parse_command(["run", "--benchmrk", "newsvendor"], own_folder)


def test_few_blocks_are_skipped():
    """At most three examples are not run: they may be wrong without being noticed."""
    blocks = []
    for page in PAGES:
        # The recipes of that page need packages that are not installed for tests.
        if page.name != "other-tools.md":
            blocks.extend(find_blocks(page.read_text()))

    skipped = [block for block in blocks if block.skip_reason]

    assert len(skipped) <= 3
