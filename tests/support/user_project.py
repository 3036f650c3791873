"""The files of a user's method, with a part for each way in which code may be changed.

The method suggests prices that depend on `total()`, to which every part contributes, so that any
change of behaviour changes the first suggestion.
"""

import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import hpobench_ordered

MINE = """
import abc
import dataclasses
import enum
import functools
import importlib
import pkgutil
import typing

import circle_of_user
from archived_of_user import ARCHIVED
from bases_of_user import Base, Mixin, decorate, register
from helpers_of_user import contribute, scale as imported_scale
import helpers_of_user as helpers
import package_of_user.inner.leaf
import installed_of_user
from numpy import floor as rounded

COMPUTED = importlib.import_module("computed_" + "of_user")
RESOLVED = pkgutil.resolve_name("resolved_of_user:RESOLVED")
DUNDER = __import__("dunder_of_user")

CONSTANT = 1
NEGATIVE = -2
TEXT = "abc"
RAW = b"abc"
TUPLE = (1, 2)
LIST = [1, 2]
SETTINGS = {"c": 1, "nested": {"d": 2}}
SET = {1, 2}
ALIAS = helpers.NUMBER
if CONSTANT:
    INSIDE_IF = 3
else:
    INSIDE_IF = 30
try:
    IN_TRY = 4
except ImportError:
    IN_TRY = 40
for _number in range(2):
    FROM_LOOP = _number + 5
UNPACKED, OTHER = 6, 7
AUGMENTED = 1
AUGMENTED += 8
FORMATTED = f"{9}x"
COMPREHENSION = [n + 10 for n in range(2)]
LAMBDAS = {"one": lambda: 11}
PARTIAL = functools.partial(pow, 2)
CONDITIONAL = 12 if CONSTANT else 13

def plain(x=14, *, y=15):
    return x + y + 16

@functools.cache
def cached(x):
    return x + 17

@decorate(18)
def decorated():
    return 19

@register
def registered():
    return 20

def generator():
    yield 21

def outer():
    inside = 22
    def inner():
        return inside + 23
    return inner

async def coroutine():
    return 24

def run_coroutine():
    try:
        coroutine().send(None)
    except StopIteration as stop:
        return stop.value

@dataclasses.dataclass
class Data:
    plain: int = 25
    made: list = dataclasses.field(default_factory=lambda: [26])
    field: int = dataclasses.field(default=27)

class Colour(enum.Enum):
    RED = 28

class Pair(typing.NamedTuple):
    first: int = 29

class Meta(type):
    bonus = 30

class WithMeta(metaclass=Meta):
    pass

class Descriptor:
    def __get__(self, instance, owner):
        return 31

class Mine(Base, Mixin):
    attribute = 32
    described = Descriptor()
    annotated: int = 33
    shared = {"a": 34}
    __slots__ = ("space", "rng", "own")

    class Nested:
        limit = 35

    def __init__(self, space, rng, weight=36):
        self.space, self.rng = space, rng
        self.own = weight

    @property
    def managed(self):
        return 37

    @staticmethod
    def static():
        return 38

    @classmethod
    def of_class(cls):
        return 39

    def __len__(self):
        return 40

    def ask(self):
        import late_of_user
        total = TOTAL(self) + late_of_user.LATE + self.load_hidden()
        return {"price_0": total % 21, "price_1": total // 21 % 21, "price_2": total // 441 % 21}

    def load_hidden(self):
        import sys
        from pathlib import Path
        folder = str(Path(__file__).parent / "hidden")
        if folder not in sys.path:
            sys.path.append(folder)
        import hidden_of_user
        return hidden_of_user.HIDDEN

    def tell(self, config, loss): ...

def hashed(value):
    return sum(ord(letter) * (place + 1) for place, letter in enumerate(repr(value)))

def TOTAL(mine):
    parts = [
        CONSTANT, NEGATIVE, TEXT, RAW, TUPLE, LIST, SETTINGS, sorted(SET), ALIAS, INSIDE_IF, IN_TRY,
        FROM_LOOP, UNPACKED, OTHER, AUGMENTED, FORMATTED, COMPREHENSION, LAMBDAS["one"](),
        PARTIAL(3), CONDITIONAL, plain(), cached(1), decorated(), registered(), [*generator()],
        outer()(), run_coroutine(), Data(), Colour.RED.value, Pair(), WithMeta.bonus,
        mine.attribute, mine.described, mine.annotated, mine.shared, mine.Nested.limit, mine.own,
        mine.managed, mine.static(), mine.of_class(), len(mine), mine.base_value, mine.mix(),
        mine.inherited(), contribute(1), imported_scale, ARCHIVED, COMPUTED.VALUE, RESOLVED,
        DUNDER.VALUE, package_of_user.inner.leaf.LEAF, package_of_user.SIBLING,
        installed_of_user.VALUE, float(rounded(41.5)), circle_of_user.CIRCLE,
    ]
    return hashed(parts)
"""

FILES = {
    "mine_of_user.py": MINE,
    "circle_of_user.py": "import mine_of_user\nCIRCLE = 51\n",
    "bases_of_user.py": """
class Root:
    base_value = 52
    def inherited(self):
        return super().__thisclass__.__name__ and 53

class Base(Root):
    pass

class Mixin:
    def mix(self):
        return 54

def decorate(bonus):
    def wrap(function):
        return lambda: function() + bonus + 55
    return wrap

REGISTRY = []

def register(function):
    REGISTRY.append(function)
    return lambda: function() + len(REGISTRY) + 56
""",
    "helpers_of_user.py": """
from further_of_user import *
NUMBER = 57
scale = 58

def contribute(x):
    return x + FURTHER + 59
""",
    "further_of_user.py": "FURTHER = 60\n",
    "computed_of_user.py": "VALUE = 61\n",
    "resolved_of_user.py": "RESOLVED = 62\n",
    "dunder_of_user.py": "VALUE = 63\n",
    "late_of_user.py": "from later_still_of_user import LATER\nLATE = 64 + LATER\n",
    "later_still_of_user.py": "LATER = 65\n",
    "hidden/hidden_of_user.py": "HIDDEN = 66\n",
    "package_of_user/__init__.py": "from .sibling import SIBLING\n",
    "package_of_user/sibling.py": "SIBLING = 67\n",
    "package_of_user/inner/__init__.py": "",
    "package_of_user/inner/leaf.py": "from ..sibling import SIBLING\nLEAF = 68 + SIBLING\n",
    "linked_target/__init__.py": "",
    "site-packages/installed_of_user.py": "VALUE = 69\n",
    "site-packages/installed-1.0.dist-info/METADATA": (
        "Metadata-Version: 2.1\nName: installed\nVersion: 1.0\n"
    ),
    "site-packages/installed-1.0.dist-info/top_level.txt": "installed_of_user\n",
    "site-packages/installed-1.0.dist-info/RECORD": "installed_of_user.py,,\n",
}
ARCHIVE = "archive.zip"
ARCHIVED_MODULE = "ARCHIVED = 70\n"


def write_project(
    folder: Path, *, changed: Mapping[str, str] | None = None, archived: str = ARCHIVED_MODULE
) -> Path:
    """Write the files of the method, and an archive of one module; return the folder.

    Args:
        folder: Where to write them.
        changed: Texts by name, of files that replace the usual ones or are added to them.
        archived: Source of the module in the archive.
    """
    texts = FILES | dict(changed or {})
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    with zipfile.ZipFile(folder / ARCHIVE, "w") as archive:
        # A fixed date, so that the archive has the same bytes whenever it is written.
        member = zipfile.ZipInfo("archived_of_user.py", date_time=(2020, 1, 1, 0, 0, 0))
        archive.writestr(member, archived)
    return folder


def search_path(folder: Path) -> str:
    """The PYTHONPATH with which the method can import its files and this package."""
    package_root = Path(hpobench_ordered.__file__).parents[1]
    places = [folder, folder / "site-packages", folder / ARCHIVE, package_root]
    return os.pathsep.join(map(str, places))


def run_python(folder: Path, *arguments: str, **environment: str) -> str:
    """Run Python in the folder; return what it prints."""
    settings = os.environ | {"PYTHONPATH": search_path(folder)} | environment
    finished = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout
