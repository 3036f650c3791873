"""What makes a method of somebody else's the same: the files it is made from, and what it got."""

import functools
import json
import os
import runpy
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module, invalidate_caches, reload
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from optimisers import Sampling, pair

import hpobench_ordered as hbo
from hpobench_ordered.adapters import as_method_spec
from hpobench_ordered.core.identity import ONCE
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.methods.random_search import RandomSearch
from hpobench_ordered.registry import method_spec
from hpobench_ordered.user_methods import identity
from hpobench_ordered.user_methods.identity import method_version

MINE = """
import functools

import circle_there
import hpobench_ordered as hbo
import theirs_installed
from bases_there import Base
from helpers_there import ask as imported
try:
    import optional_there
except ImportError:
    optional_there = None

CALLS = 0
RAW = b"raw"

def helper(x):
    global CALLS
    CALLS += 1
    return x + 101

@functools.cache
def cached(x): return x * 121

class Holder:
    def __init__(self):
        self.kept = 81

HELD = Holder()

class Mine(Base, hbo.Method):
    ask = imported
    class Inside:
        limit: float = 0.75
    @classmethod
    def other(cls): return 191
    def prepare(self):
        import late_there
        from package_there.deep import later
    def tell(self, config, loss): ...

def made(space, rng, **settings): return Holder()

anonymous = lambda space, rng: Holder()
"""
FILES = {
    "mine_there.py": MINE,
    "helpers_there.py": "from further_there import *\ndef ask(self): return 1\n",
    "further_there.py": "import mine_there\nFURTHER = 1\n",
    "bases_there.py": "class Base:\n    number = 1\n",
    "circle_there.py": "import circle_there, mine_there\n",
    "late_there.py": "HERE = 1\n",
    "package_there/__init__.py": "from . import used\n",
    "package_there/used.py": "import package_there as pk\n",
    "package_there/plugins/computed.py": "FOUND = 1\n",
    "package_there/deep/__init__.py": "",
    "package_there/deep/later.py": "LATER = 1\n",
    "site-packages/theirs_installed.py": "VALUE = 0\n",
    "site-packages/apart_installed/__init__.py": """
from apart_installed.helpers import draw

class Apart:
    def __init__(self, space, rng): ...
    def ask(self): return draw()
    def tell(self, config, loss): ...
""",
    "site-packages/apart_installed/helpers.py": "def draw(): return 1\n",
}
THEIRS, APART = ("site-packages/theirs-1.0.dist-info/", "site-packages/apart-1.0.dist-info/")
for _name, _info in (("theirs", THEIRS), ("apart", APART)):
    FILES[f"{_info}METADATA"] = f"Metadata-Version: 2.1\nName: {_name}\nVersion: 1.0\n"
    FILES[f"{_info}top_level.txt"] = f"{_name}_installed\n"
    FILES[f"{_info}RECORD"] = f"{_name}_installed.py,sha256=a,1\n"


def write(folder: Path, changed: Mapping[str, str] = FILES) -> Path:
    """A folder of a user's files, some of them with another text or new."""
    for name, text in (FILES | changed).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@contextmanager
def importing(folder: Path) -> Iterator[None]:
    """Import from a folder, and forget that again."""
    before, paths, sys.dont_write_bytecode = set(sys.modules), [*sys.path], True
    sys.path[:0] = [str(folder), str(folder / "site-packages")]
    invalidate_caches()
    try:
        yield
    finally:
        sys.path[:], sys.dont_write_bytecode = paths, False
        for name in set(sys.modules) - before:
            if name.partition(".")[0].endswith(("_there", "_installed")):
                del sys.modules[name]


METHODS = ("mine_there:Mine", "mine_there:made", "mine_there:anonymous", "apart_installed:Apart")


def versions(folder: Path) -> list[str]:
    """Versions of methods in a folder."""
    with importing(folder):
        made = [getattr(import_module(m), n) for m, n in (name.split(":") for name in METHODS)]
        return [method_version(as_method_spec(method, name="mine")) for method in made]


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory):
    identity._all_distributions.cache_clear()
    return versions(write(tmp_path_factory.mktemp("unchanged")))


@pytest.mark.parametrize(
    ("name", "new"),
    [
        ("mine_there.py", MINE.replace("x + 101", "x + 102")),
        ("mine_there.py", f"{MINE}# a comment"),
        ("bases_there.py", "class Base:\n    number = 2\n"),
        ("further_there.py", "import mine_there\nFURTHER = 2\n"),  # by way of another file
        ("late_there.py", "HERE = 2\n"),
        ("optional_there.py", "VALUE = 1"),  # which there was not
        ("package_there/used.py", ""),
        ("package_there/plugins/computed.py", "FOUND = 2\n"),  # imported nowhere
        ("package_there/new.py", "VALUE = 1"),
        (f"{THEIRS}METADATA", FILES[f"{THEIRS}METADATA"].replace("1.0", "1.1")),
        (f"{THEIRS}direct_url.json", "{}"),
    ],
)
def test_whatever_changes_in_the_files_of_a_method_makes_it_another_one(
    tmp_path, unchanged, name, new
):
    changed = versions(write(tmp_path, {name: new}))
    assert set(changed) & set(unchanged) == {unchanged[-1]}


@pytest.mark.parametrize(
    ("name", "new"),
    [
        ("site-packages/apart_installed/helpers.py", "def draw(): return 2\n"),
        (f"{APART}METADATA", FILES[f"{APART}METADATA"].replace("1.0", "1.1")),
    ],
)
def test_so_does_what_changes_in_the_package_that_it_is_from(tmp_path, unchanged, name, new):
    *mine, apart = versions(write(tmp_path, {name: new}))
    assert mine == unchanged[:-1] and apart != unchanged[-1]


def test_a_method_of_which_nothing_changed_is_the_same(tmp_path, unchanged):
    here, there = write(tmp_path / "here"), write(tmp_path / "there", {"other_there.py": ""})
    assert versions(here) == versions(there) == unchanged
    assert len(set(unchanged)) == len(METHODS)
    assert not any(version.startswith(ONCE) for version in unchanged)


MAIN = """
from hpobench_ordered.adapters import as_method_spec
from hpobench_ordered.user_methods.identity import method_version
VERSION = method_version(as_method_spec(lambda space, rng: None, name="mine"))
"""


def test_of_a_module_that_is_run_the_whole_package_counts(tmp_path):
    said = set()
    for changed in ("used", "new"):
        files = {"package_there/main.py": MAIN, f"package_there/{changed}.py": "VALUE = 3\n"}
        with importing(write(tmp_path / changed, files)):
            ran = runpy.run_module("package_there.main", run_name="__main__", alter_sys=True)
            said.add(ran["VERSION"])
    assert len(said) == 2 and ONCE not in " ".join(said)


SCRIPT = """
import sys
from hpobench_ordered.adapters import as_method_spec
from hpobench_ordered.user_methods.identity import method_version
for name in ["mine_there:Mine", "mine_there.py:made", "apart_installed:Apart"]:
    print(method_version(as_method_spec(name)))
from functools import partial
import mine_there
given = {"names": {"a", "b", "c"}, "held": mine_there.HELD, "kind": mine_there.Holder}
print(method_version(as_method_spec(partial(mine_there.made, **given), name="given")))
"""


@pytest.mark.slow
def test_it_is_the_same_in_every_process_and_folder(tmp_path):
    said = set()
    for number in range(3):
        folder = write(tmp_path / f"checkout{number}")
        paths = os.pathsep.join([str(folder / "site-packages"), str(Path(hbo.__file__).parents[1])])
        env = os.environ | {"PYTHONHASHSEED": str(number), "PYTHONPATH": paths}
        command = [sys.executable, "-c", SCRIPT]
        said.add(subprocess.run(command, cwd=folder, env=env, check=True, stdout=-1).stdout)
    (versions,) = said
    assert len(versions.split()) == 4 and ONCE.encode() not in versions


def test_what_was_given_counts():
    def version(method: object) -> str:
        return method_version(as_method_spec(method, name="given"))

    def made(scale: object) -> object:
        def factory(space, rng):
            return Sampling(space, rng) if scale else None

        return factory

    given = [1, 2.0, {"a"}, {"a", "b"}, np.arange(3), np.arange(4), [1, {"deep": (2,)}], Sampling]
    given.append(json)  # a module
    versions = [version(made(one)) for one in given]
    assert versions == [version(made(one)) for one in given]
    assert len(set(versions)) == len(given)
    three, again, four = (version(functools.partial(pair, budget=n)) for n in (3, 3, 4))
    assert three == again != four
    assert version(lambda space, rng: (space, 2)) != version(lambda space, rng: (space, 1))


def test_what_cannot_be_told_apart_is_never_the_same(monkeypatch):
    class Local(RandomSearch):
        pass

    typed = {"__name__": "typed_into_a_session", "RandomSearch": RandomSearch}
    module = ModuleType("typed_into_a_session")
    exec("class Typed(RandomSearch): ...", vars(module) | typed, vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    holds_a_lock = functools.partial(pair, budget=threading.Lock())
    for method in (Local, module.Typed, holds_a_lock):
        spec = as_method_spec(method, name="new")
        assert method_version(spec).startswith(ONCE)
        assert method_version(spec) != method_version(spec)


USES = """
{imported}
class Uses:
    def __init__(self, space, rng): ...
    def ask(self): return {{}}
    def tell(self, config, loss): return {named!r}
"""


@pytest.mark.parametrize(
    ("imported", "named", "counts"),
    [
        ("from hpobench_ordered.methods.tpe import TPE", "", True),
        ("from hpobench_ordered.methods import bo", "", True),
        ("import hpobench_ordered.methods.bo as ours", "", True),
        ("import hpobench_ordered as hbo", "bo", True),
        ("import hpobench_ordered as hbo", "random-search", False),
        ("from hpobench_ordered.methods.base import Method", "", False),
    ],
)
def test_the_versions_of_this_packages_methods_count_where_they_are_used(
    tmp_path, monkeypatch, imported, named, counts
):
    now = method_spec("bo").version
    assert method_version(as_method_spec("bo")) == str(now)
    (tmp_path / "uses_there.py").write_text(USES.format(imported=imported, named=named))
    with importing(tmp_path):
        spec = as_method_spec(import_module("uses_there").Uses)
        before = method_version(spec)
        newer = {"bo": replace(method_spec("bo"), version=now + 1)}
        monkeypatch.setattr(identity, "method_spec", lambda n: newer.get(n) or method_spec(n))
        assert (method_version(spec) != before) == counts


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("class Mine(", "\nclass Mine("),
        ("limit: float = 0.75", "limit: float = 0.5"),
        ('RAW = b"raw"', 'RAW = b"war"'),
        ("return x + 101", "return x + 102"),
        ("return x * 121", "return x * 122"),
        ("return 191", "return 192"),
        ("self.kept = 81", "self.kept = 82"),
        ("class Mine(", "class Mine"),
    ],
)
def test_a_file_that_was_edited_after_it_was_loaded_is_refused(tmp_path, old, new):
    with importing(write(tmp_path)):
        mine = import_module("mine_there")
        mine.helper(0)
        first = method_version(as_method_spec(mine.made))
        (tmp_path / "mine_there.py").write_text(MINE.replace(old, new, 1))
        with pytest.raises(ExperimentError, match=r"mine_there.py is not what was loaded"):
            method_version(as_method_spec(mine.made))
        if "class Mine" not in old:
            assert method_version(as_method_spec(reload(mine).made)) != first


def test_a_constant_or_function_that_is_set_from_elsewhere_is_seen(tmp_path):
    with importing(write(tmp_path)):
        mine, bases = import_module("mine_there"), import_module("bases_there")
        first = method_version(as_method_spec(mine.Mine))
        mine.Mine.other = lambda self: 2
        assert method_version(as_method_spec(mine.Mine)) != first
        bases.Base.number = 332
        with pytest.raises(ExperimentError, match=r"number in .*bases_there.py is not"):
            method_version(as_method_spec(mine.Mine))


def test_what_is_imported_from_a_file_of_the_same_name_is_no_edit(tmp_path):
    text = f"from pair_there.mine_there import twin\n{MINE}"
    twin = {"pair_there/mine_there.py": "def twin():\n    return 1\n", "mine_there.py": text}
    with importing(write(tmp_path, twin)):
        method_version(as_method_spec(import_module("mine_there").Mine))
