"""Whether finished runs of a user's method are resumed after its files were changed."""

import json
import py_compile
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from user_project import FILES, run_python, write_project

RUN_IN_STORES = """
import json, sys, warnings
import hpobench_ordered as hbo
from hpobench_ordered.experiment.store import Store
warnings.simplefilter("error")
method, *stores = sys.argv[1:]
stores_read = []
for store in stores:
    folder, workers = store.split("=")
    result = hbo.run(
        benchmarks=["newsvendor"], methods=[method], seeds=[0],
        protocol=hbo.Ordered(trials=1, tasks=1), folder=folder, workers=int(workers),
        progress=False,
    )
    config = result.frame(configurations=True).iloc[0]
    prices = [int(config[f"config.price_{n}"]) for n in range(3)]
    stores_read.append([len(Store(result.store.folder).keys()), *prices])
print(json.dumps(stores_read))
"""
"""Runs a method in stores; prints the number of runs, and the first suggestion, of each store.

Its arguments are the method and, for each store, FOLDER=WORKERS.
"""
METHOD = "mine_of_user.py:Mine"
STORES = ("one=1", "two=2")
"""Two stores, as FOLDER=WORKERS: folder "one" with one worker, and "two" with two."""


class StoreState(NamedTuple):
    """What is in a store after a method ran.

    Attributes:
        runs: Number of finished runs, which grows only if none was resumed.
        prices: The configuration that the method suggested first: the prices of three products.
    """

    runs: int
    prices: list[int]


def run_in_stores(
    folder: Path, *stores: str, method: str = METHOD, **environment: str
) -> list[StoreState]:
    """Run a method in one store after the other, all of them in a new process.

    Args:
        folder: Where the files of the method and the stores are.
        stores: Each as FOLDER=WORKERS.
        method: The method, by its file or module and its name.
        environment: Variables of the environment.
    """
    output = run_python(folder, "-c", RUN_IN_STORES, method, *stores, **environment)
    last_line = output.splitlines()[-1]
    return [StoreState(runs, prices) for runs, *prices in json.loads(last_line)]


def run_and_count(folder: Path, *stores: str, method: str = METHOD) -> list[int]:
    """Run a method as `run_in_stores` does, and count the finished runs in each store."""
    return [state.runs for state in run_in_stores(folder, *stores, method=method)]


def assert_run_is_resumed(folder: Path, method: str) -> None:
    """Run a method twice in an empty store: one run stays one, as it is resumed."""
    assert run_and_count(folder, "store=1", method=method) == [1]
    assert run_and_count(folder, "store=1", method=method) == [1]


def assert_run_again(states: Sequence[StoreState]) -> None:
    """Check that each store, which had one run, has a second: the same in all of them.

    `prices` are what the method suggested first.
    """
    assert all(state.runs == 2 for state in states)
    assert all(state.prices == states[0].prices for state in states)


@pytest.fixture(scope="module")
def finished_project(tmp_path_factory):
    """A folder in which the unchanged method has run once in each of two stores."""
    folder = write_project(tmp_path_factory.mktemp("project"))
    assert run_and_count(folder, *STORES) == [1, 1]
    return folder


@pytest.fixture(scope="module")
def prices_of_unchanged(finished_project, tmp_path_factory):
    """What the unchanged method suggests first, as prices of products: the same in both stores."""
    copy = tmp_path_factory.mktemp("copy") / "project"
    shutil.copytree(finished_project, copy)
    state_of_one, state_of_two = run_in_stores(copy, *STORES)
    assert state_of_one == state_of_two
    return state_of_one.prices


def in_file(name: str, old: str, new: str) -> dict[str, str]:
    """Replace a piece of text in a file of the project; returns its whole text by its name."""
    text = FILES[name]
    assert old in text, old
    return {name: text.replace(old, new, 1)}


def in_mine(old: str, new: str) -> dict[str, str]:
    """Replace a piece of text in the file of the method, as `in_file` does."""
    return in_file("mine_of_user.py", old, new)


CHANGES_OF_MINE = {
    "constant": ("CONSTANT = 1", "CONSTANT = 2"),
    "negative": ("NEGATIVE = -2", "NEGATIVE = -3"),
    "text": ('TEXT = "abc"', 'TEXT = "abd"'),
    "bytes": ('RAW = b"abc"', 'RAW = b"abd"'),
    "tuple": ("TUPLE = (1, 2)", "TUPLE = (1, 3)"),
    "list": ("LIST = [1, 2]", "LIST = [1, 3]"),
    "dict": ('{"c": 1', '{"c": 2'),
    "nested dict": ('{"d": 2}', '{"d": 3}'),
    "dict key": ('{"c": 1', '{"e": 1'),
    "set": ("SET = {1, 2}", "SET = {1, 3}"),
    "alias": ("ALIAS = helpers.NUMBER", "ALIAS = helpers.scale"),
    "inside if": ("    INSIDE_IF = 3\n", "    INSIDE_IF = 4\n"),
    "condition": ("if CONSTANT:", "if not CONSTANT:"),
    "in try": ("    IN_TRY = 4\n", "    IN_TRY = 5\n"),
    "loop": ("FROM_LOOP = _number + 5", "FROM_LOOP = _number + 6"),
    "loop range": ("in range(2):\n    FROM", "in range(3):\n    FROM"),
    "unpacked": ("UNPACKED, OTHER = 6, 7", "UNPACKED, OTHER = 8, 7"),
    "augmented": ("AUGMENTED += 8", "AUGMENTED += 9"),
    "f-string": ('f"{9}x"', 'f"{9}y"'),
    "comprehension": ("[n + 10 for", "[n + 11 for"),
    "lambda in a dict": ("lambda: 11", "lambda: 12"),
    "partial": ("functools.partial(pow, 2)", "functools.partial(pow, 3)"),
    "conditional expression": ("12 if CONSTANT", "14 if CONSTANT"),
    "default": ("plain(x=14", "plain(x=15"),
    "keyword default": ("y=15", "y=16"),
    "body": ("x + y + 16", "x + y + 17"),
    "operator": ("x + y + 16", "x - y + 16"),
    "cached function": ("return x + 17", "return x + 18"),
    "argument of a decorator": ("@decorate(18)", "@decorate(19)"),
    "decorated function": ("    return 19\n", "    return 18\n"),
    "registered function": ("    return 20\n", "    return 21\n"),
    "decorator removed": ("@register\n", ""),
    "generator": ("yield 21", "yield 22"),
    "closure": ("inside = 22", "inside = 23"),
    "inner function": ("inside + 23", "inside + 24"),
    "coroutine": ("    return 24\n", "    return 25\n"),
    "dataclass default": ("plain: int = 25", "plain: int = 26"),
    "dataclass factory": ("lambda: [26]", "lambda: [27]"),
    "dataclass field": ("default=27", "default=28"),
    "dataclass without repr": ("@dataclasses.dataclass\n", "@dataclasses.dataclass(order=True)\n"),
    "enum": ("RED = 28", "RED = 29"),
    "named tuple": ("first: int = 29", "first: int = 30"),
    "metaclass": ("bonus = 30", "bonus = 31"),
    "descriptor": ("        return 31\n", "        return 32\n"),
    "class attribute": ("attribute = 32", "attribute = 33"),
    "annotated attribute": ("annotated: int = 33", "annotated: int = 34"),
    "shared dict": ('{"a": 34}', '{"a": 35}'),
    "nested class": ("limit = 35", "limit = 36"),
    "argument of __init__": ("weight=36", "weight=37"),
    "body of __init__": ("self.own = weight", "self.own = weight + 1"),
    "property": ("        return 37\n", "        return 38\n"),
    "static method": ("        return 38\n", "        return 39\n"),
    "class method": ("        return 39\n", "        return 40\n"),
    "special method": ("        return 40\n", "        return 41\n"),
    "bases": ("class Mine(Base, Mixin):", "class Mine(Mixin, Base):"),
    "ask": ("total % 21,", "total % 20,"),
    "imported name": ("import floor as", "import ceil as"),
    "from another module": ("contribute, scale as", "contribute, NUMBER as"),
    "import removed": ("import abc\n", ""),
    "comment": ("import abc\n", "import abc  # a comment\n"),
    "blank line": ("import abc\n", "import abc\n\n"),
    "docstring": ("def outer():\n", 'def outer():\n    "Outer."\n'),
    "annotation": ("def static():", "def static() -> int:"),
    "order of definitions": ("LIST = [1, 2]\n", "LIST = [1, 2]; EXTRA = 1\n"),
    "encoding comment": ("\nimport abc\n", "# -*- coding: utf-8 -*-\nimport abc\n"),
    "slots": ('"rng", "own")', '"rng", "own", "more")'),
    "global function renamed": ("def run_coroutine", "def run_it(): ...\ndef run_coroutine"),
    "raise instead": (
        "except StopIteration as stop:",
        "except (StopIteration, ValueError) as stop:",
    ),
    "hash": ("(place + 1)", "(place + 2)"),
    "computed name": ('"computed_" + "of_user"', '"resolved_" + "of_user"'),
    "resolved name": ("resolved_of_user:RESOLVED", "computed_of_user:VALUE"),
    "dunder import": ('__import__("dunder_of_user")', '__import__("computed_of_user")'),
    "late import": ("import late_of_user\n", "import late_of_user, json\n"),
    "path set in a function": ('parent / "hidden"', 'parent / "./hidden"'),
}
CHANGES = {f"mine: {kind}": in_mine(*change) for kind, change in CHANGES_OF_MINE.items()}
CHANGES["mine: computed name"] |= {"resolved_of_user.py": "RESOLVED = 62\nVALUE = 62\n"}
CHANGES |= {
    "base attribute": in_file("bases_of_user.py", "base_value = 52", "base_value = 53"),
    "inherited method": in_file("bases_of_user.py", "and 53", "and 54"),
    "mixin": in_file("bases_of_user.py", "return 54", "return 55"),
    "decorator": in_file("bases_of_user.py", "bonus + 55", "bonus + 56"),
    "registering decorator": in_file(
        "bases_of_user.py", "len(REGISTRY) + 56", "len(REGISTRY) + 57"
    ),
    "base class added": in_file(
        "bases_of_user.py", "class Base(Root):", "class Base(Root, object):"
    ),
    "imported constant": in_file("helpers_of_user.py", "NUMBER = 57", "NUMBER = 58"),
    "imported value": in_file("helpers_of_user.py", "scale = 58", "scale = 59"),
    "imported function": in_file("helpers_of_user.py", "FURTHER + 59", "FURTHER + 60"),
    "helper's comment": in_file("helpers_of_user.py", "scale = 58", "scale = 58  # a comment"),
    "by way of another file": in_file("further_of_user.py", "60", "61"),
    "computed import": in_file("computed_of_user.py", "61", "62"),
    "resolved by name": in_file("resolved_of_user.py", "62", "63"),
    "imported by __import__": in_file("dunder_of_user.py", "63", "64"),
    "circle": in_file("circle_of_user.py", "51", "52"),
    "imported in a function": in_file("late_of_user.py", "64", "65"),
    "imported by that": in_file("later_still_of_user.py", "65", "66"),
    "on a path set in a function": in_file("hidden/hidden_of_user.py", "66", "67"),
    "relative import": in_file("package_of_user/sibling.py", "67", "68"),
    "inner package": in_file("package_of_user/inner/leaf.py", "68", "69"),
    "empty __init__": {"package_of_user/inner/__init__.py": "# no longer empty\n"},
    "package's __init__": in_file("package_of_user/__init__.py", "SIBLING\n", "SIBLING  # it\n"),
    "module that hides a late one": {
        "site-packages/unused.py": "",
        "late_of_user/__init__.py": "LATE = 1000\n",
    },
    "package in place of a module": {
        "helpers_of_user/__init__.py": FILES["helpers_of_user.py"] + "# a package\n"
    },
    "installed package's version": {
        "site-packages/installed-1.0.dist-info/METADATA": (
            "Metadata-Version: 2.1\nName: installed\nVersion: 1.1\n"
        )
    },
    "installed package not from an index": {
        "site-packages/installed-1.0.dist-info/direct_url.json": "{}"
    },
    "installed package edited in place": {
        "site-packages/installed-1.0.dist-info/direct_url.json": "{}",
        "site-packages/installed_of_user.py": "VALUE = 70\n",
    },
    "user's module in place of an installed one": {"installed_of_user.py": "VALUE = 71\n"},
    "one more import of a file": in_mine("import abc\n", "import abc, unrelated_of_user\n")
    | {"unrelated_of_user.py": ""},
}
for number in range(12):
    old, new = f" = {number + 51}\n", f" = {number + 151}\n"
    for name in ("circle_of_user.py", "computed_of_user.py", "dunder_of_user.py"):
        if old in FILES[name]:
            CHANGES[f"number {number + 51} in {name}"] = in_file(name, old, new)


def run_changed_copy(finished_project: Path, tmp_path: Path, **change) -> list[StoreState]:
    """Run a changed copy of the project in its stores, which have a run from before the change."""
    copy = tmp_path / "project"
    shutil.copytree(finished_project, copy)
    write_project(copy, **change)
    return run_in_stores(copy, *STORES)


@pytest.mark.long
@pytest.mark.parametrize("kind", CHANGES)
def test_changed_method_is_run_again(finished_project, tmp_path, kind):
    """Each kind of change of the method's files, or of what they import."""
    states = run_changed_copy(finished_project, tmp_path, changed=CHANGES[kind])

    assert_run_again(states)


EVERY_TWELFTH_CHANGE = [*CHANGES][::12]


@pytest.mark.slow
@pytest.mark.parametrize("kind", EVERY_TWELFTH_CHANGE)
def test_some_changed_methods_are_run_again(finished_project, tmp_path, kind):
    """A part of the changes of the method's files, as all of them take long."""
    states = run_changed_copy(finished_project, tmp_path, changed=CHANGES[kind])

    assert_run_again(states)


@pytest.mark.slow
def test_changed_archive_is_run_again(finished_project, tmp_path):
    """The archive is a ZIP file that holds a module."""
    states = run_changed_copy(finished_project, tmp_path, archived="ARCHIVED = 71\n")

    assert_run_again(states)


@pytest.mark.slow
def test_values_are_those_of_changed_code(finished_project, prices_of_unchanged, tmp_path):
    """Python caches bytecode by the size of a file and the second of its last change.

    The changed file may have both in common with the unchanged one, but must be compiled anew.
    """
    changed = in_mine("CONSTANT = 1", "CONSTANT = 2")

    states = run_changed_copy(finished_project, tmp_path, changed=changed)

    for state in states:
        assert state.prices != prices_of_unchanged


@pytest.mark.slow
@pytest.mark.parametrize("hash_seed", ["0", "1", "77"])
def test_unchanged_method_is_resumed(finished_project, prices_of_unchanged, tmp_path, hash_seed):
    """Neither another folder, nor a file that it does not import, nor Python's hashes matter."""
    copy = tmp_path / "elsewhere"
    shutil.copytree(finished_project, copy)
    (copy / "unrelated.py").write_text("VALUE = 1\n")

    states = run_in_stores(copy, *STORES, PYTHONHASHSEED=hash_seed)

    for state in states:
        assert state == StoreState(runs=1, prices=prices_of_unchanged)


@pytest.mark.slow
def test_method_changed_back_is_resumed(finished_project, tmp_path):
    """A method that is as it was at first resumes its first run, which is still in the store.

    The unchanged method has one finished run in each of two stores.
    """
    copy = tmp_path / "project"
    shutil.copytree(finished_project, copy)
    write_project(copy, changed=in_file("late_of_user.py", "64", "65"))
    assert run_and_count(copy, *STORES) == [2, 2]

    write_project(copy)  # as it was at first

    assert run_and_count(copy, *STORES) == [2, 2]


@pytest.mark.slow
def test_method_changed_twice_is_run_again(finished_project, tmp_path):
    """The unchanged method and each of two changes have a run of their own in each store.

    The unchanged method has one finished run in each of two stores before.
    """
    copy = tmp_path / "project"
    shutil.copytree(finished_project, copy)
    write_project(copy, changed=in_file("late_of_user.py", "64", "65"))
    assert run_and_count(copy, *STORES) == [2, 2]

    write_project(copy, changed=in_file("late_of_user.py", "64", "66"))

    assert run_and_count(copy, *STORES) == [3, 3]


METHOD_OF_BYTECODE_AND_LINK = """
import functools
import compiled_of_user
import linked_of_user.inner

@functools.lru_cache
def cached(x):
    return x

class Mine:
    def __init__(self, space, rng, function=cached):
        self.number = compiled_of_user.NUMBER + linked_of_user.inner.NUMBER + function(1)
    def ask(self):
        return {"price_0": self.number, "price_1": 0, "price_2": 0}
    def tell(self, config, loss): ...

def make(space, rng, function=cached):
    return Mine(space, rng, function)
"""


def write_method_of_bytecode_and_link(
    folder: Path,
    *,
    number_in_bytecode: int = 1,
    number_in_linked_package: int = 2,
    source: str = METHOD_OF_BYTECODE_AND_LINK,
) -> None:
    """Write a method that imports bytecode without source, and a package behind a link."""
    write_bytecode(folder, number_in_bytecode)
    write_linked_package(folder, number_in_linked_package)
    (folder / "mine_of_user.py").write_text(source)


def write_bytecode(folder: Path, number: int) -> None:
    """Write a module as bytecode alone, as its source is removed."""
    source = folder / "source.py"
    source.write_text(f"NUMBER = {number}\n")
    py_compile.compile(str(source), cfile=str(folder / "compiled_of_user.pyc"))
    source.unlink()


def write_linked_package(folder: Path, number: int) -> None:
    """Write a package that is imported by the name of a link to it."""
    package = folder / "target"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").write_text("")
    (package / "inner.py").write_text(f"NUMBER = {number}\n")
    link = folder / "linked_of_user"
    if not link.exists():
        link.symlink_to(package)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"number_in_bytecode": 3},
        {"number_in_linked_package": 4},
        {"source": METHOD_OF_BYTECODE_AND_LINK.replace("return x\n", "return x + 1\n")},
        {"source": METHOD_OF_BYTECODE_AND_LINK.replace("@functools.lru_cache\n", "")},
    ],
    ids=["bytecode", "linked package", "cached argument", "cache"],
)
def test_bytecode_links_and_cached_arguments_count(tmp_path, change):
    """A change of bytecode, of a linked package or of a cached argument repeats the run."""
    method = "mine_of_user.py:make"
    write_method_of_bytecode_and_link(tmp_path)
    assert_run_is_resumed(tmp_path, method)

    write_method_of_bytecode_and_link(tmp_path, **change)

    assert run_and_count(tmp_path, "store=1", method=method) == [2]


INSTALLED_PACKAGES = {
    "site-packages/method_of_user/__init__.py": "from method_of_user.deep import Mine\n",
    "site-packages/method_of_user/deep.py": """
from number_of_user import NUMBER
class Mine:
    def __init__(self, space, rng): ...
    def ask(self):
        return {"price_0": NUMBER, "price_1": 0, "price_2": 0}
    def tell(self, config, loss): ...
""",
    "site-packages/number_of_user.py": "NUMBER = 1\n",
}
METADATA = "Metadata-Version: 2.1\nName: {}\nVersion: {}\n"
_FILES_OF_PACKAGE = {
    "method": "method_of_user/__init__.py,,\nmethod_of_user/deep.py,,\n",
    "number": "number_of_user.py,,\n",
}
for _name, _files in _FILES_OF_PACKAGE.items():
    _info = f"site-packages/{_name}-1.0.dist-info"
    INSTALLED_PACKAGES[f"{_info}/METADATA"] = METADATA.format(_name, "1.0")
    INSTALLED_PACKAGES[f"{_info}/top_level.txt"] = f"{_name}_of_user\n"
    INSTALLED_PACKAGES[f"{_info}/RECORD"] = _files
NOT_FROM_INDEX = {"site-packages/method-1.0.dist-info/direct_url.json": "{}"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "change"),
    [
        ({}, {"site-packages/method-1.0.dist-info/METADATA": METADATA.format("method", "1.1")}),
        ({}, {"site-packages/number-1.0.dist-info/METADATA": METADATA.format("number", "1.1")}),
        (
            NOT_FROM_INDEX,
            {
                "site-packages/method_of_user/deep.py": INSTALLED_PACKAGES[
                    "site-packages/method_of_user/deep.py"
                ]
                + "# edited\n"
            },
        ),
    ],
)
def test_installed_methods_and_their_imports_count(tmp_path, before, change):
    """The project has two installed packages: the method's, and one that it imports.

    A new version of either, or an edited file, repeats the run. The files `before` are there from
    the first run on, those of the `change` only in the last.
    """
    method = "method_of_user:Mine"
    write_project(tmp_path, changed=INSTALLED_PACKAGES | before)
    assert_run_is_resumed(tmp_path, method)

    write_project(tmp_path, changed=INSTALLED_PACKAGES | before | change)

    assert run_and_count(tmp_path, "store=1", method=method) == [2]


PROGRAM = """
import sys, json
import hpobench_ordered as hbo
from hpobench_ordered.experiment.store import Store
from helpers_of_user import NUMBER
import mine_of_user

class InScript:
    bonus = 1
    def __init__(self, space, rng): ...
    def ask(self):
        return {"price_0": self.bonus, "price_1": NUMBER % 21, "price_2": 0}
    def tell(self, config, loss): ...

result = hbo.run(
    benchmarks=["newsvendor"], methods=[InScript], seeds=[0],
    protocol=hbo.Ordered(trials=1, tasks=1), folder="script-results", progress=False,
)
print(len(Store(result.store.folder).keys()))
"""
"""Runs the method that it defines, and prints the number of finished runs in the store."""


def run_program_and_count(folder: Path, name: str) -> int:
    """Run the program, which prints the number of finished runs in its store."""
    return int(run_python(folder, name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["program.py", "program", ".hidden-program"])
def test_program_resumes_until_its_method_changes(tmp_path, name):
    """The program defines a method and runs it; it must not matter how its file is called."""
    write_project(tmp_path, changed={name: PROGRAM})
    assert run_program_and_count(tmp_path, name) == 1
    assert run_program_and_count(tmp_path, name) == 1

    (tmp_path / name).write_text(PROGRAM.replace("bonus = 1", "bonus = 2"))

    assert run_program_and_count(tmp_path, name) == 2
    assert run_program_and_count(tmp_path, name) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["program.py", "program", ".hidden-program"])
def test_program_runs_again_after_imports_change(tmp_path, name):
    """The program defines a method and runs it; it imports another file, which is edited."""
    write_project(tmp_path, changed={name: PROGRAM})
    assert run_program_and_count(tmp_path, name) == 1

    imported_file = tmp_path / "helpers_of_user.py"
    imported_file.write_text(FILES["helpers_of_user.py"] + "# more\n")

    assert run_program_and_count(tmp_path, name) == 2


SESSION = """
import json, sys
from pathlib import Path
import hpobench_ordered as hbo
from hpobench_ordered.experiment.store import Store
import mine_of_user

def run():
    result = hbo.run(
        benchmarks=["newsvendor"], methods=[mine_of_user.Mine], seeds=[0],
        protocol=hbo.Ordered(trials=1, tasks=1), folder="session-results", progress=False,
        workers=WORKERS,
    )
    config = result.frame(configurations=True).iloc[0]
    prices = [int(config[f"config.price_{n}"]) for n in range(3)]
    return [len(Store(result.store.folder).keys()), prices]

first = run()
CHANGE
print(json.dumps([first, run()]))
"""
"""Runs a method before and after a CHANGE, with WORKERS; both stand for code.

It prints for both the number of finished runs in the store, and the first suggestion.
"""


def run_session(folder: Path, change: str, *, workers: str) -> tuple[StoreState, StoreState]:
    """Run a session that makes a change; returns the states of the store before and after it."""
    script = SESSION.replace("CHANGE", change).replace("WORKERS", workers)
    before, after = json.loads(run_python(folder, "-c", script))
    return StoreState(*before), StoreState(*after)


EDITS_OF_FILE = {
    "default": ("plain(x=14", "plain(x=15"),
    "property": ("        return 37\n", "        return 38\n"),
    "decorated": ("    return 19\n", "    return 18\n"),
    "argument of a decorator": ("@decorate(18)", "@decorate(19)"),
    "partial": ("functools.partial(pow, 2)", "functools.partial(pow, 3)"),
    "lambda in a dict": ("lambda: 11", "lambda: 12"),
    "dict": ('{"c": 1', '{"c": 2'),
    "list": ("LIST = [1, 2]", "LIST = [1, 3]"),
    "field": ("default=27", "default=28"),
    "enum": ("RED = 28", "RED = 29"),
    "named tuple": ("first: int = 29", "first: int = 30"),
    "inside if": ("    INSIDE_IF = 3\n", "    INSIDE_IF = 4\n"),
}
"""Texts in the file of the method, and what they are replaced by during a session."""
PATCHES_OF_MODULE = [
    'mine_of_user.SETTINGS["c"] = 2',
    "mine_of_user.plain = lambda x=0, y=0: 1000",
    "mine_of_user.plain.__defaults__ = (99,)",
    "mine_of_user.Data = type('Data', (), {})",
    "mine_of_user.Mine.attribute = 99",
    "mine_of_user.Mine.mix = lambda self: 99",
    "import bases_of_user; bases_of_user.Root.base_value = 99",
    "mine_of_user.INSIDE_IF = 99",
]
"""Code that changes the imported module, but no file."""


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("kind", EDITS_OF_FILE)
def test_edit_during_session_is_run(tmp_path, kind, workers):
    """A session runs a method, edits its file and runs it again: as the file is now."""
    write_project(tmp_path)
    old_text, new_text = EDITS_OF_FILE[kind]
    code_that_edits = (
        "path = Path('mine_of_user.py'); text = path.read_text(); "
        f"path.write_text(text.replace({old_text!r}, {new_text!r}, 1))"
    )

    before, after = run_session(tmp_path, code_that_edits, workers=workers)

    (in_new_process,) = run_in_stores(tmp_path, "empty-store=1")
    assert (before.runs, after.runs) == (1, 2)
    assert after.prices != before.prices
    assert after.prices == in_new_process.prices


@pytest.mark.slow
@pytest.mark.parametrize("code_that_patches", PATCHES_OF_MODULE)
def test_patch_in_session_is_not_run(tmp_path, code_that_patches):
    """A session patches the imported module between two runs; what counts is the file.

    It has not changed, so that the second run resumes the first.
    """
    write_project(tmp_path)

    before, after = run_session(tmp_path, code_that_patches, workers="1")

    assert before.runs == 1
    assert after == before


RUN_WITH_FOUR_SEEDS = """
import hpobench_ordered as hbo
result = hbo.run(
    benchmarks=["newsvendor"], methods=["editing_of_user.py:Edits"], seeds=range(4),
    protocol=hbo.Ordered(trials=2, tasks=1), folder="edited", progress=False, workers=WORKERS,
)
print(len(result.store.keys()), *[failure.message for failure in result.failures()], sep="\\n")
"""
"""Runs a method with four seeds and a number of WORKERS, which is to be filled in.

It prints the number of finished runs, and the messages of all failures.
"""
METHOD_THAT_EDITS = """
from pathlib import Path
import helpers_of_user
class Edits:
    def __init__(self, space, rng):
        self.space, self.rng = space, rng
    def ask(self):
        path = Path(__file__).with_name("EDITED")
        path.write_text(path.read_text() + "# edited\\n")
        return self.space.sample(self.rng)
    def tell(self, config, loss): ...
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("edited", ["editing_of_user.py", "helpers_of_user.py"])
def test_files_edited_during_runs_fail(tmp_path, workers, edited):
    """The method edits its own file, or one that it imports, whenever it suggests something."""
    source = METHOD_THAT_EDITS.replace("EDITED", edited)
    write_project(tmp_path, changed={"editing_of_user.py": source})
    script = RUN_WITH_FOUR_SEEDS.replace("WORKERS", workers)

    # Warnings of the failures are not printed.
    output = run_python(tmp_path, "-W", "ignore", "-c", script)

    finished_runs, *messages = output.splitlines()
    assert finished_runs == "0"
    assert len(messages) == 4  # one of each seed
    module = edited.removesuffix(".py")
    expected = f"editing_of_user.Edits: its files changed while it ran: {module}"
    assert all(message.startswith(expected) for message in messages)


@pytest.mark.slow
@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_class_of_script_works_in_pool_of_user(tmp_path, start):
    """In such a process the user's program is called `__mp_main__`."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(f"""
            import multiprocessing
            import hpobench_ordered as hbo

            class Mine:
                def __init__(self, space, rng):
                    self.space, self.rng = space, rng

                def ask(self):
                    return self.space.sample(self.rng)

                def tell(self, config, loss): ...

            def count_trials(seed):
                protocol = hbo.LeaveOneOut(trials=2)
                results = hbo.run(
                    benchmarks=["forrester"], methods=[Mine], seeds=[seed], protocol=protocol
                )
                return len(results.frame()), set(results.frame()["method"])

            if __name__ == "__main__":
                with multiprocessing.get_context("{start}").Pool(1) as pool:
                    print(pool.map(count_trials, [0]))
        """)
    )

    result = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)

    assert result.stdout == "[(20, {'Mine'})]\n"
