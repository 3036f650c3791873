"""What makes a method of somebody else's the same: the files it is made from, and what it got."""

import functools
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module, invalidate_caches, reload
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from optimisers import Sampling, pair

import hpobench_ordered as hbo
from hpobench_ordered.adapters import as_method_spec, identity
from hpobench_ordered.adapters.identity import ONCE, method_version
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.methods.random_search import RandomSearch
from hpobench_ordered.registry import method_spec

MINE = """
import enum, functools, importlib
from collections import namedtuple
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np, pandas as pd
import scipy.special as special

import circle_there, helpers_there as aliased
import hpobench_ordered as hbo
import theirs_installed
from bases_there import Base
from decorators_there import decorated, registered
from helpers_there import *
from helpers_there import ask as imported, scale
from package_there import inner, unused
if TYPE_CHECKING:
    from typed_there import Typed
try:
    import optional_there
except ImportError:
    optional_there = None

FACTOR, OTHER = 1, 2
SETTINGS = {"rate": 0.1, "inside": [1, {"deep": 3}]}
TABLE = pd.DataFrame({"a": [1, 2]})
SINGLE = np.float32(0.5)
ARRAY = np.arange(3)
OBJECTS = np.array([1, None], dtype=object)
NUMBERS = range(10)
EXACT = Decimal("0.10")
RATIO = Fraction(1, 3)
MISSING = float("nan")
NAMES = frozenset({"a", "b"})
RAW = b"raw"
IMAGINARY = 1j
SLICE = slice(1, 2)
PART = functools.partial(np.add, 1)
CURVE = functools.partial(special.expit, 0.25)
PAIR = namedtuple("Pair", "left right")
COMPILED = np.vectorize(lambda x: x - 7)
NESTED = lambda x: (
    x + 11
)
ORDERED = sorted([3, 1, 2], key=lambda x: -x)
TEXT = f"{FACTOR} and more"
LISTED = [n for n in range(12)]

class Colour(enum.Enum):
    RED = 21
    def shade(self): return self.value + 31

class Limits(NamedTuple):
    low: float = 0.01
    def width(self): return 1 - self.low

@dataclass(frozen=True, slots=True)
class Slotted:
    size: int = 41
    def twice(self): return self.size * 51

class Meta(type):
    def __call__(cls, *args, **kwargs): return super().__call__(*args, **kwargs) or 61

class Descriptor:
    def __get__(self, owner, kind): return 71

class Holder:
    def __init__(self):
        self.kept = 81

HELD = Holder()

def helper(x, *, scaled=91): return inner_helper(x) + scaled

def inner_helper(x): return x + 101

def generator():
    yield 111

@functools.cache
def cached(x): return x * 121

def closed(number):
    def inside(): return number
    return inside

class Mine(Base, hbo.Method):
    \"\"\"Docstring.\"\"\"
    ask = imported
    held = HELD
    table = {"a": [131]}
    limit: float = 0.75
    choices = [1, 2]
    __slots__ = ("slot_a",)
    descriptor = Descriptor()
    made = closed(141)
    alias = staticmethod(scale)
    class Inside:
        deep = 151
    @property
    def rate(self): return SETTINGS["rate"] + 161
    @rate.setter
    def rate(self, value):
        self.kept_rate = value + 171
    @functools.cached_property
    def slow(self): return 181
    @classmethod
    def other(cls): return 191
    @staticmethod
    def third(): return 201
    @decorated
    def fourth(self): return 211
    def __getattr__(self, name): return 221
    def prepare(self):
        import late_there
        from package_there.deep import later
        self.late = late_there.here(), later.there()
    async def fifth(self): return 231
    def tell(self, config, loss):
        match config:
            case {"x": 241}:
                pass

@registered
class Second(Mine): pass

@dataclass
class Data:
    space: object
    rng: object
    rate: float = 251
    table: dict = field(default_factory=lambda: {"a": 261})
    def ask(self): return self.space.sample(self.rng)
    def tell(self, config, loss): ...

def made(space, rng): return Data(space, rng, rate=271)

def given(space, rng, **settings): return Data(space, rng)

anonymous = lambda space, rng: Data(space, rng)
if __name__ != "never":
    CONDITIONAL = 281
for _number in range(3):
    LAST = _number + 291
del _number
"""
FILES = {
    "mine_there.py": MINE,
    "helpers_there.py": """
from further_there import *

def ask(self): return 301

def scale(x): return x * 311
""",
    "further_there.py": "import mine_there\nFURTHER = 321\n",
    "bases_there.py": """
class Base:
    number = 331

    def __init_subclass__(cls):
        cls.marked = 341
""",
    "decorators_there.py": """
def decorated(function):
    def inside(*args): return function(*args) + 351
    return inside

def registered(kind):
    kind.extra = 361
    return kind
""",
    "circle_there.py": "import circle_there, mine_there\nROUND = 371\n",
    "typed_there.py": "Typed = 381\n",
    "late_there.py": "def here():\n    from . import nothing\n    return 391\n",
    "package_there/__init__.py": "from package_there import circle\nunused = 401\n",
    "package_there/inner.py": "from . import circle\nINNER = 411\n",
    "package_there/circle.py": "import package_there as pk\nROUND = 421\n",
    "package_there/plugins/computed.py": "FOUND = 431\n",
    "package_there/deep/__init__.py": "",
    "package_there/deep/later.py": "def there():\n    return 441\n",
    "site-packages/theirs_installed.py": "VALUE = 0\n",
    "site-packages/apart_installed/__init__.py": "from apart_installed.method import Apart\n",
    "site-packages/apart_installed/helpers.py": "def draw():\n    return 451\n",
    "site-packages/apart_installed/method.py": """
from apart_installed.helpers import draw

class Apart:
    def __init__(self, space, rng): ...
    def ask(self): return draw() + 461
    def tell(self, config, loss): ...
""",
}
for _name in ("theirs", "apart"):
    _info = f"site-packages/{_name}-1.0.dist-info"
    FILES[f"{_info}/METADATA"] = f"Metadata-Version: 2.1\nName: {_name}\nVersion: 1.0\n"
    FILES[f"{_info}/top_level.txt"] = f"{_name}_installed\n"
    FILES[f"{_info}/RECORD"] = f"{_name}_installed.py,sha256=a,1\n"

NUMBERS = [
    pytest.param(name, number[0], "0", marks=pytest.mark.slow)
    for name, text in FILES.items()
    for number in re.finditer(r"\b\d+1\b", text)
]
"""Every number in a function, class, default, decorator or import: all end in 1."""
OTHERS = [
    ("mine_there.py", *change)
    for change in [
        ("FACTOR, OTHER = 1, 2", "FACTOR, OTHER = 2, 2"),
        ('{"rate": 0.1', '{"rate": 0.2'),
        ('{"deep": 3}', '{"deep": 4}'),
        ("[1, 2]})", "[1, 3]})"),
        ("np.float32(0.5)", "np.float32(0.25)"),
        ("np.float32(0.5)", "np.float64(0.5)"),
        ("np.arange(3)", "np.arange(4)"),
        ("[1, None]", "[2, None]"),
        ("range(10)", "range(9)"),
        ('Decimal("0.10")', 'Decimal("0.1")'),
        ("Fraction(1, 3)", "Fraction(1, 4)"),
        ('float("nan")', 'float("inf")'),
        ('{"a", "b"}', '{"a", "c"}'),
        ('b"raw"', 'b"war"'),
        ("IMAGINARY = 1j", "IMAGINARY = 2j"),
        ("slice(1, 2)", "slice(1, 3)"),
        ("partial(np.add, 1)", "partial(np.add, 2)"),
        ("partial(np.add, 1)", "partial(np.subtract, 1)"),
        ("special.expit, 0.25", "special.logit, 0.25"),
        ("special.expit, 0.25", "special.expit, 0.75"),
        ('"left right"', '"right left"'),
        ("x - 7", "x - 8"),
        ("lambda x: -x", "lambda x: x"),
        ("and more", "and less"),
        ("0.01", "0.02"),
        ("1 - self.low", "2 - self.low"),
        ("frozen=True, slots=True", "frozen=True, slots=True, order=True"),
        ("kwargs) or", "kwargs) and"),
        ("inner_helper(x) + scaled", "inner_helper(x) - scaled"),
        ("@functools.cache\n", ""),
        ("class Mine(Base, hbo.Method)", "class Mine(hbo.Method)"),
        ("class Inside:", "class Inside(metaclass=Meta):"),
        ("ask = imported", "ask = scale"),
        ("held = HELD", "held = Holder()"),
        ("limit: float = 0.75", "limit: float = 0.5"),
        ("choices = [1, 2]", "choices = [2, 1]"),
        ('("slot_a",)', '("slot_b",)'),
        ("alias = staticmethod(scale)", "alias = staticmethod(imported)"),
        ("    @staticmethod\n    def third()", "    @classmethod\n    def third(self)"),
        ("    @decorated\n", ""),
        ("@registered\n", ""),
        ("async def fifth", "def fifth"),
        ("self.space.sample(self.rng)", "dict(self.space.sample(self.rng))"),
        ("import *", "import scale"),
        ("import inner, unused", "import inner"),
        ("except ImportError:", "except ModuleNotFoundError:"),
        ('"never"', '"ever"'),
        ("range(3)", "range(4)"),
    ]
] + [
    ("optional_there.py", "", "VALUE = 1"),
    ("package_there/new.py", "", "VALUE = 1"),
    ("site-packages/theirs-1.0.dist-info/METADATA", "Version: 1.0", "Version: 1.1"),
    ("site-packages/apart-1.0.dist-info/METADATA", "Version: 1.0", "Version: 1.1"),
    ("site-packages/theirs-1.0.dist-info/direct_url.json", "", "{}"),
]


def write(folder: Path, changed: str = "", old: str = "", new: str = "") -> Path:
    """A folder of a user's files, one of them with another text or new."""
    texts = dict(FILES)
    if changed:
        assert old in texts.get(changed, "")
        texts[changed] = texts[changed].replace(old, new, 1) if old else new
    for name, text in texts.items():
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


METHODS = ("mine_there:Mine", "mine_there:Data", "mine_there:anonymous", "apart_installed:Apart")


def versions(folder: Path, names: Sequence[str] = METHODS) -> list[str]:
    """Versions of methods in a folder."""
    with importing(folder):
        made = [getattr(import_module(m), n) for m, n in (name.split(":") for name in names)]
        return [method_version(as_method_spec(method, name="mine")) for method in made]


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory):
    """Versions by name."""
    identity._all_distributions.cache_clear()
    folder = write(tmp_path_factory.mktemp("unchanged"))
    return dict(zip(METHODS, versions(folder), strict=True))


@pytest.mark.parametrize(("name", "old", "new"), [*NUMBERS, *OTHERS])
def test_whatever_changes_in_the_files_of_a_method_makes_it_another_one(
    tmp_path, unchanged, name, old, new
):
    method = METHODS[-1 if "apart" in name else 0]
    (version,) = versions(write(tmp_path, name, old, new), [method])
    assert version != unchanged[method]


def test_a_method_of_which_nothing_changed_is_the_same(tmp_path, unchanged):
    here, there = write(tmp_path / "here"), write(tmp_path / "there")
    (there / "unrelated_there.py").write_text("RATE = 1\n")
    assert versions(here) == versions(there) == [*unchanged.values()]
    assert len({*unchanged.values()}) == len(METHODS)
    assert not any(version.startswith(ONCE) for version in unchanged.values())


SCRIPT = """
import sys
from hpobench_ordered.adapters import as_method_spec
from hpobench_ordered.adapters.identity import method_version
for name in ["mine_there:Mine", "mine_there.py:Data", "apart_installed:Apart", "mine_there:made"]:
    print(method_version(as_method_spec(name)))
from functools import partial
import mine_there
given = {"names": {"a", "b", "c"}, "held": mine_there.HELD, "kind": mine_there.Slotted}
print(method_version(as_method_spec(partial(mine_there.given, **given), name="given")))
"""


@pytest.mark.slow
def test_it_is_the_same_in_every_process_and_folder(tmp_path):
    said = set()
    for number in range(4):
        folder = write(tmp_path / f"checkout{number}")
        paths = os.pathsep.join([str(folder / "site-packages"), str(Path(hbo.__file__).parents[1])])
        env = os.environ | {"PYTHONHASHSEED": str(number), "PYTHONPATH": paths}
        command = [sys.executable, "-c", SCRIPT]
        said.add(
            subprocess.run(command, cwd=folder, env=env, check=True, stdout=-1).stdout.decode()
        )
    (versions,) = said
    assert len(versions.split()) == 5 and ONCE not in versions


def test_what_was_given_counts():
    def version(method: object) -> str:
        return method_version(as_method_spec(method, name="given"))

    def made(scale: object) -> object:
        def factory(space, rng):
            return Sampling(space, rng) if scale else None

        return factory

    given = [1, 2.0, {"a"}, {"a", "b"}, np.arange(3), np.arange(4), [1, {"deep": (2,)}], Sampling]
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
        ("from hpobench_ordered.methods.bo import BayesianOptimisation", "", True),
        ("from hpobench_ordered.methods import bo", "", True),
        ("import hpobench_ordered.methods.bo as ours", "", True),
        ("import hpobench_ordered as hbo", "bo", True),
        ("import hpobench_ordered as hbo", "random-search", False),
        ("from hpobench_ordered.methods.base import Method", "", False),
        ("from hpobench_ordered.methods.tpe import TPE", "", True),
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
        ("    limit: float = 0.75", "    limit: float = 0.5"),
        ('RAW = b"raw"', 'RAW = b"war"'),
        ("return x + 101", "return x + 102"),
        ("return 191", "return 192"),
        ("self.kept = 81", "self.kept = 82"),
        ("class Mine(", "class Mine"),
    ],
)
def test_a_file_that_was_edited_after_it_was_loaded_is_refused(tmp_path, old, new):
    with importing(write(tmp_path)):
        mine = import_module("mine_there")
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
        mine.Mine.third = lambda self: 2
        assert method_version(as_method_spec(mine.Mine)) != first
        bases.Base.number = 332
        with pytest.raises(ExperimentError, match=r"number in .*bases_there.py is not"):
            method_version(as_method_spec(mine.Mine))


def test_what_is_imported_from_a_file_of_the_same_name_is_no_edit(tmp_path):
    (tmp_path / "pair_there").mkdir()
    (tmp_path / "pair_there" / "mine_there.py").write_text("def twin():\n    return 1\n")
    text = f"from pair_there.mine_there import twin\n{MINE}"
    with importing(write(tmp_path, "mine_there.py", MINE, text)):
        method_version(as_method_spec(import_module("mine_there").Mine))
