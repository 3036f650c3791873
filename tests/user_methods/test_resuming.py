"""Whether finished runs are resumed after a change, from the first process to the last."""

import json
import py_compile
import shutil
from pathlib import Path

import pytest
from user_project import FILES, run_python, write_project

RUN = """
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
METHOD = "mine_of_user.py:Mine"
STORES = ("one=1", "two=2")


def run_stores(folder: Path, *stores: str, method: str = METHOD, **environment: str):
    """Run the method in a new process, in each of the stores.

    A store is given as FOLDER=WORKERS. For each, the result is the number of finished runs in it,
    which grows only if none was resumed, and the prices that the method suggested first.
    """
    output = run_python(folder, "-c", RUN, method, *stores, **environment)
    return json.loads(output.splitlines()[-1])


def count_runs(folder: Path, *stores: str, method: str = METHOD) -> list[int]:
    """Run a method with stores as in `run_stores`; return the number of finished runs in each."""
    return [runs for runs, *_ in run_stores(folder, *stores, method=method)]


@pytest.fixture(scope="module")
def finished_project(tmp_path_factory):
    """A folder in which the unchanged method has run, and its first suggestion."""
    folder = write_project(tmp_path_factory.mktemp("project"))
    one, two = run_stores(folder, *STORES)
    assert one == two
    runs, *suggestion = one
    assert runs == 1
    return folder, suggestion


def in_file(name: str, old: str, new: str) -> dict[str, str]:
    """The changed text of a file of the project, by its name."""
    text = FILES[name]
    assert old in text, old
    return {name: text.replace(old, new, 1)}


def in_mine(old: str, new: str) -> dict[str, str]:
    """The changed text of the file of the method, by its name."""
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


def run_changed(finished_project, tmp_path: Path, **change):
    """Change a copy of the project, and run it with the stores of before."""
    folder, _ = finished_project
    copy = tmp_path / "project"
    shutil.copytree(folder, copy)
    write_project(copy, **change)
    return run_stores(copy, *STORES)


@pytest.mark.long
@pytest.mark.parametrize("kind", CHANGES)
def test_changed_method_is_run_again(finished_project, tmp_path, kind):
    one, two = run_changed(finished_project, tmp_path, changed=CHANGES[kind])
    assert one == two
    assert one[0] == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*CHANGES][::12])
def test_some_changed_methods_are_run_again(finished_project, tmp_path, kind):
    one, two = run_changed(finished_project, tmp_path, changed=CHANGES[kind])
    assert one == two
    assert one[0] == 2


@pytest.mark.slow
def test_changed_archive_is_run_again(finished_project, tmp_path):
    one, two = run_changed(finished_project, tmp_path, archived="ARCHIVED = 71\n")
    assert one == two
    assert one[0] == 2


@pytest.mark.slow
def test_values_are_those_of_changed_code(finished_project, tmp_path):
    """A file of the same size, changed within a second, is not told apart by Python's bytecode."""
    _, suggestion_before = finished_project
    changed = in_mine("CONSTANT = 1", "CONSTANT = 2")
    for _, *suggestion in run_changed(finished_project, tmp_path, changed=changed):
        assert suggestion != suggestion_before


@pytest.mark.slow
@pytest.mark.parametrize("hash_seed", ["0", "1", "77"])
def test_unchanged_method_is_resumed(finished_project, tmp_path, hash_seed):
    folder, before = finished_project
    copy = tmp_path / "elsewhere"
    shutil.copytree(folder, copy)
    (copy / "unrelated.py").write_text("VALUE = 1\n")
    for finished_runs, *suggestion in run_stores(copy, "one=1", "two=2", PYTHONHASHSEED=hash_seed):
        assert finished_runs == 1, "it was run once more"
        assert suggestion == before


@pytest.mark.slow
def test_method_changed_back_is_resumed(finished_project, tmp_path):
    folder, _ = finished_project
    copy = tmp_path / "project"
    shutil.copytree(folder, copy)
    write_project(copy, changed=in_file("late_of_user.py", "64", "65"))
    assert count_runs(copy, *STORES) == [2, 2]
    write_project(copy)  # as it was at first
    assert count_runs(copy, *STORES) == [2, 2]
    write_project(copy, changed=in_file("late_of_user.py", "64", "66"))
    assert count_runs(copy, *STORES) == [3, 3]


OTHER_KINDS = """
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


def write_other_kinds(folder: Path, *, compiled: int = 1, linked: int = 2, text: str = OTHER_KINDS):
    """A method that imports bytecode without source and a package behind a link."""
    source = folder / "source.py"
    (folder / "target").mkdir(parents=True, exist_ok=True)
    source.write_text(f"NUMBER = {compiled}\n")
    py_compile.compile(str(source), cfile=str(folder / "compiled_of_user.pyc"))
    source.unlink()
    (folder / "target" / "__init__.py").write_text("")
    (folder / "target" / "inner.py").write_text(f"NUMBER = {linked}\n")
    if not (folder / "linked_of_user").exists():
        (folder / "linked_of_user").symlink_to(folder / "target")
    (folder / "mine_of_user.py").write_text(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"compiled": 3},
        {"linked": 4},
        {"text": OTHER_KINDS.replace("return x\n", "return x + 1\n")},
        {"text": OTHER_KINDS.replace("@functools.lru_cache\n", "")},
    ],
)
def test_bytecode_links_and_cached_arguments_count(tmp_path, change):
    write_other_kinds(tmp_path)
    method = "mine_of_user.py:make"
    assert count_runs(tmp_path, "one=1", method=method) == [1]
    assert count_runs(tmp_path, "one=1", method=method) == [1]
    write_other_kinds(tmp_path, **change)
    assert count_runs(tmp_path, "one=1", method=method) == [2]


INSTALLED = {
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
for _name, _files in {
    "method": "method_of_user/__init__.py,,\nmethod_of_user/deep.py,,\n",
    "number": "number_of_user.py,,\n",
}.items():
    _info = f"site-packages/{_name}-1.0.dist-info"
    INSTALLED[f"{_info}/METADATA"] = f"Metadata-Version: 2.1\nName: {_name}\nVersion: 1.0\n"
    INSTALLED[f"{_info}/top_level.txt"] = f"{_name}_of_user\n"
    INSTALLED[f"{_info}/RECORD"] = _files
NOT_FROM_INDEX = {"site-packages/method-1.0.dist-info/direct_url.json": "{}"}
NEWER = "Metadata-Version: 2.1\nName: {}\nVersion: 1.1\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "change"),
    [
        ({}, {"site-packages/method-1.0.dist-info/METADATA": NEWER.format("method")}),
        ({}, {"site-packages/number-1.0.dist-info/METADATA": NEWER.format("number")}),
        (
            NOT_FROM_INDEX,
            {
                "site-packages/method_of_user/deep.py": INSTALLED[
                    "site-packages/method_of_user/deep.py"
                ]
                + "# edited\n"
            },
        ),
    ],
)
def test_installed_methods_and_their_imports_count(tmp_path, before, change):
    method = "method_of_user:Mine"
    write_project(tmp_path, changed=INSTALLED | before)
    assert count_runs(tmp_path, "one=1", method=method) == [1]
    assert count_runs(tmp_path, "one=1", method=method) == [1]
    write_project(tmp_path, changed=INSTALLED | before | change)
    assert count_runs(tmp_path, "one=1", method=method) == [2]


SCRIPT = """
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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["program.py", "program", ".hidden-program"])
def test_unchanged_program_is_resumed(tmp_path, name):
    write_project(tmp_path, changed={name: SCRIPT})
    assert [run_python(tmp_path, name) for _ in range(2)] == ["1\n", "1\n"]
    (tmp_path / name).write_text(SCRIPT.replace("bonus = 1", "bonus = 2"))
    assert [run_python(tmp_path, name) for _ in range(2)] == ["2\n", "2\n"]
    (tmp_path / "helpers_of_user.py").write_text(FILES["helpers_of_user.py"] + "# more\n")
    assert run_python(tmp_path, name) == "3\n"


IN_SESSION = """
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
EDITS = {
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
PATCHES_IN_SESSION = [
    'mine_of_user.SETTINGS["c"] = 2',
    "mine_of_user.plain = lambda x=0, y=0: 1000",
    "mine_of_user.plain.__defaults__ = (99,)",
    "mine_of_user.Data = type('Data', (), {})",
    "mine_of_user.Mine.attribute = 99",
    "mine_of_user.Mine.mix = lambda self: 99",
    "import bases_of_user; bases_of_user.Root.base_value = 99",
    "mine_of_user.INSIDE_IF = 99",
]


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("kind", EDITS)
def test_edit_during_session_is_run(tmp_path, kind, workers):
    write_project(tmp_path)
    old, new = EDITS[kind]
    edit = (
        "path = Path('mine_of_user.py'); text = path.read_text(); "
        f"path.write_text(text.replace({old!r}, {new!r}, 1))"
    )
    script = IN_SESSION.replace("CHANGE", edit).replace("WORKERS", workers)
    (first_runs, first), (runs, second) = json.loads(run_python(tmp_path, "-c", script))
    assert (first_runs, runs) == (1, 2)
    ((_, *expected),) = run_stores(tmp_path, "fresh=1")
    assert second == expected != first


@pytest.mark.slow
@pytest.mark.parametrize("patch", PATCHES_IN_SESSION)
def test_patch_in_session_is_not_run(tmp_path, patch):
    write_project(tmp_path)
    script = IN_SESSION.replace("CHANGE", patch).replace("WORKERS", "1")
    first, second = json.loads(run_python(tmp_path, "-c", script))
    assert first == second
    assert first[0] == 1


WHILE_IT_RUNS = """
import hpobench_ordered as hbo
result = hbo.run(
    benchmarks=["newsvendor"], methods=["editing_of_user.py:Edits"], seeds=range(4),
    protocol=hbo.Ordered(trials=2, tasks=1), folder="edited", progress=False, workers=WORKERS,
)
print(len(result.store.keys()), *[failure.message for failure in result.failures()], sep="\\n")
"""
EDITING = """
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
    text = EDITING.replace("EDITED", edited).replace(
        "import Path\n", "import Path\nimport helpers_of_user\n"
    )
    write_project(tmp_path, changed={"editing_of_user.py": text})
    script = WHILE_IT_RUNS.replace("WORKERS", workers)
    runs, *messages = run_python(tmp_path, "-W", "ignore", "-c", script).splitlines()
    assert runs == "0"
    assert len(messages) == 4
    expected = (
        f"editing_of_user.Edits: its files changed while it ran: {edited.removesuffix('.py')}"
    )
    assert all(message.startswith(expected) for message in messages)
