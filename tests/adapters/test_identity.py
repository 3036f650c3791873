"""What makes a method of somebody else's the same: its code, and whatever that mentions."""

import functools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from optimisers import Sampling, pair

from hpobench_ordered.adapters import as_method_spec
from hpobench_ordered.adapters.identity import identity_of, method_version

FILES = {
    "helpers_there.py": "def scale(x):\n    return x * 1\n\n\ndef unrelated():\n    return 0\n",
    "mine_there.py": """
import hpobench_ordered as hbo
import helpers_there
from helpers_there import scale

FACTOR = 1
SETTINGS = {"rate": 0.1}
UNUSED = 0


def helper(x):
    return inner(x) + FACTOR


def inner(x):
    return x + 0


class Base(hbo.Method):
    number = 7

    @property
    def rate(self):
        return SETTINGS["rate"]

    def tell(self, config, loss): ...


class Mine(Base):
    def ask(self):
        import late_there

        late_there.here(), helper(1), helpers_there.scale(2)
        return self.space.sample(self.rng)


class Told:
    def __init__(self, space, rng):
        self.space, self.rng = space, rng

    ask = Mine.ask

    def tell(self, config, loss):
        scale(loss)


def made(space, rng):
    return Told(space, rng)


class Other:
    pass
""",
    "late_there.py": "def here():\n    return 5\n",
}
SCRIPT = """
import sys
from hpobench_ordered.experiment.plan import plan
import hpobench_ordered as hbo
make = dict(benchmarks=["newsvendor"], seeds=[0], protocol=hbo.Ordered(tasks=1))
for name in sys.argv[1:]:
    print(plan(methods=[name], **make)[0].key)
"""
METHODS = ("mine_there:Mine", "mine_there.py:Told", "mine_there:made", "theirs")


def keys(folder: Path) -> dict[str, str]:
    """Keys of a run of each method, made in another process."""
    command = [sys.executable, "-c", SCRIPT, *METHODS]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return dict(zip(METHODS, done.stdout.split(), strict=True))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with modules of a user, one of which is registered as a package's would be."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[hpobench_ordered.methods]\ntheirs = theirs_there\n")
    (tmp_path / "theirs_there.py").write_text(
        "import hpobench_ordered as hbo, mine_there\n"
        'SPECS = (hbo.MethodSpec("theirs", mine_there.Mine, "", ""),)\n'
    )
    return tmp_path


@pytest.mark.slow
def test_what_a_method_is_made_of_changes_its_key_and_nothing_else_does(folder: Path) -> None:
    first = keys(folder)
    assert len(set(first.values())) == len(METHODS)
    changes = [
        ("mine_there.py", "UNUSED = 0", "UNUSED = 1", ()),
        ("mine_there.py", "class Other:\n    pass", "class Other:\n    more = 1", ()),
        ("helpers_there.py", "return 0", "return 1", ()),
        ("mine_there.py", "number = 7", "number = 8", ("mine_there:Mine", "theirs")),
        ("mine_there.py", "x + 0", "x + 1", METHODS),
        ("mine_there.py", "FACTOR = 1", "FACTOR = 2", METHODS),
        ("helpers_there.py", "x * 1", "x * 2", METHODS),
        ("late_there.py", "5", "6", METHODS),
    ]
    for name, old, new, expected in changes:
        path = folder / name
        path.write_text(path.read_text().replace(old, new))
        now = keys(folder)
        different = {method for method in METHODS if now[method] != first[method]}
        assert different == set(expected), (name, old)
        first = now


def test_settings_and_library_versions_count() -> None:
    def made(scale: float):
        def factory(space, rng):
            return Sampling(space, rng) if scale else None

        return identity_of(factory)

    assert made(1.0) == made(1.0) != made(2.0)
    three, four = (identity_of(functools.partial(pair, budget=n)) for n in (3, 4))
    assert three != four
    assert "def pair" in three
    assert f"numpy {np.__version__}" in three
    assert identity_of(functools.partial(pair, budget=object())) == ""


def test_what_cannot_be_told_apart_is_never_the_same() -> None:
    opaque = as_method_spec(functools.partial(pair, budget=object()), name="opaque")
    assert method_version(opaque) != method_version(opaque)
    assert method_version(as_method_spec("bo")) == "1"


def test_the_description_of_a_class_holds_that_of_its_bases() -> None:
    class Child(Sampling):
        pass

    described = identity_of(Child)
    assert "class Child" in described
    assert "self.space.sample" in described
