"""Methods given by where they can be imported from."""

import sys

import numpy as np
import pytest

from hpobench_ordered import Ordered, run
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.methods.wrapping.importing import FILE_PREFIX
from hpobench_ordered.tuning import as_method_spec, import_object

SOURCE_OF_METHOD = """
from helper_of_mine import draw

class Mine:
    class Inner:
        pass

    def __init__(self, space, rng):
        self.space, self.rng = space, rng

    def ask(self):
        return draw(self.space, self.rng)

    def tell(self, config, loss):
        pass
"""
SOURCE_OF_HELPER = "def draw(space, rng):\n    return space.sample(rng)\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with modules of a user; what is imported is forgotten again."""
    (tmp_path / "optimiser_of_mine.py").write_text(SOURCE_OF_METHOD)
    (tmp_path / "helper_of_mine.py").write_text(SOURCE_OF_HELPER)
    (tmp_path / "package_of_mine").mkdir()
    (tmp_path / "package_of_mine" / "__init__.py").write_text("")
    (tmp_path / "package_of_mine" / "inner_of_mine.py").write_text(SOURCE_OF_METHOD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    modules_before = set(sys.modules)

    yield tmp_path

    for name in set(sys.modules) - modules_before:
        if "of_mine" in name or name.startswith(FILE_PREFIX):
            del sys.modules[name]


PLACES_OF_METHOD = [
    "optimiser_of_mine:Mine",
    "optimiser_of_mine.py:Mine",
    "package_of_mine.inner_of_mine:Mine",
    "package_of_mine/inner_of_mine.py:Mine",
]


@pytest.mark.parametrize("place", PLACES_OF_METHOD)
def test_class_is_imported_by_module_or_file(folder, place):
    """The place is MODULE:CLASS or FILE:CLASS."""
    imported = import_object(place)

    assert isinstance(imported, type)
    assert imported.__qualname__ == "Mine"


@pytest.mark.parametrize("place", PLACES_OF_METHOD)
def test_inner_class_is_imported(folder, place):
    """An inner class has the place of the outer one, with its own name after a dot."""
    outer = import_object(place)

    inner = import_object(f"{place}.Inner")

    assert inner is outer.Inner


@pytest.mark.parametrize("place", PLACES_OF_METHOD)
def test_imported_class_gives_method_its_name(folder, place):
    """The method has the names of its module and of its class."""
    imported = import_object(place)

    spec = as_method_spec(place)

    assert spec.name == f"{imported.__module__}.Mine"


def test_file_replaces_no_module_of_python(folder):
    """A user's file may have the name of a module of Python, such as `random`."""
    (folder / "random.py").write_text("class Mine:\n    pass\n")

    imported = import_object("random.py:Mine")

    assert imported.__module__ == f"{FILE_PREFIX}random"
    assert hasattr(sys.modules["random"], "getrandbits")  # a function of Python's module


@pytest.mark.slow
@pytest.mark.parametrize("place", ["optimiser_of_mine:Mine", "optimiser_of_mine.py:Mine"])
def test_other_processes_need_not_find_module(folder, place):
    """The module is in the working folder, which is not on the import path of workers."""

    def run_losses(workers: int):
        """Run the method at `place` with so many worker processes, and return the losses."""
        result = run(
            benchmarks=["newsvendor"],
            methods=[as_method_spec(place)],
            seeds=[0, 1],
            protocol=Ordered(trials=3, tasks=1),
            workers=workers,
        )
        return result.frame()["loss"]

    losses = run_losses(workers=2)

    assert len(losses) == 2 * 3  # seeds, trials
    np.testing.assert_array_equal(losses, run_losses(workers=1))


MISSPELT_PLACES = {
    "optimiser_of_mine:Mime": "did you mean 'Mine'",
    "optimizer_of_mine:Mine": "did you mean 'optimiser_of_mine'",
    "package_of_mine.inners_of_mine:Mine": "unknown module",
    "optimizer_of_mine.py:Mine": "did you mean 'optimiser_of_mine.py'",
    "nowhere/at_all.py:Mine": "unknown file",
    "helper_of_mine.draw:x": "unknown module",
}


@pytest.mark.parametrize(("place", "message"), MISSPELT_PLACES.items())
def test_misspelt_place_suggests_nearest(folder, place, message):
    with pytest.raises(UnknownNameError, match=message):
        import_object(place)


@pytest.mark.parametrize("text", ["optimiser_of_mine", ":Mine", "optimiser_of_mine:", ":"])
def test_place_without_two_parts_is_refused(folder, text):
    with pytest.raises(ExperimentError, match=r"package.module:name"):
        import_object(text)


@pytest.mark.parametrize("place", ["broken_of_mine:x", "broken_of_mine.py:x", "random.py:x"])
def test_exception_during_import_is_the_cause(folder, place):
    """The module, or the file, imports a module that does not exist."""
    for name in ("broken_of_mine.py", "random.py"):
        (folder / name).write_text("import missing_module_of_mine\n")

    with pytest.raises(ExperimentError, match="ModuleNotFoundError") as caught:
        import_object(place)

    cause = caught.value.__cause__
    assert isinstance(cause, ModuleNotFoundError)
    assert cause.name == "missing_module_of_mine"
