"""Methods named by where they are."""

import sys

import numpy as np
import pytest

from hpobench_ordered import Ordered, run
from hpobench_ordered.adapters import as_method_spec, import_object
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.user_methods.importing import FILE_PREFIX

SOURCE = """
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
HELPER = "def draw(space, rng):\n    return space.sample(rng)\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with modules of a user, the current one; what is imported is forgotten again."""
    (tmp_path / "optimiser_of_mine.py").write_text(SOURCE)
    (tmp_path / "helper_of_mine.py").write_text(HELPER)
    (tmp_path / "package_of_mine").mkdir()
    (tmp_path / "package_of_mine" / "__init__.py").write_text("")
    (tmp_path / "package_of_mine" / "inside.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if "of_mine" in name or name.startswith(FILE_PREFIX):
            del sys.modules[name]


@pytest.mark.parametrize(
    "text",
    [
        "optimiser_of_mine:Mine",
        "optimiser_of_mine.py:Mine",
        "package_of_mine.inside:Mine",
        "package_of_mine/inside.py:Mine",
    ],
)
def test_a_class_is_found_by_its_module_and_by_its_file(folder, text):
    imported = import_object(text)
    assert isinstance(imported, type)
    assert imported.__qualname__ == "Mine"
    assert as_method_spec(text).name == f"{imported.__module__}.Mine"
    assert import_object(f"{text}.Inner") is imported.Inner
    (folder / "random.py").write_text("class Mine:\n    pass\n")
    assert import_object("random.py:Mine").__module__ == f"{FILE_PREFIX}random"
    assert hasattr(sys.modules["random"], "getrandbits")  # a file takes no other module's place


@pytest.mark.slow
@pytest.mark.parametrize("text", ["optimiser_of_mine:Mine", "optimiser_of_mine.py:Mine"])
def test_other_processes_need_not_find_the_module(folder, text):
    spec = as_method_spec(text)
    protocol = Ordered(trials=3, tasks=1)
    options = {"methods": [spec], "seeds": [0, 1], "protocol": protocol}
    one, two = (run(benchmarks=["newsvendor"], **options, workers=n).frame() for n in (1, 2))
    assert len(two) == 6
    np.testing.assert_array_equal(one["loss"], two["loss"])


def test_a_missing_module_file_or_name_is_named_with_the_nearest(folder):
    for text, said in {
        "optimiser_of_mine:Mime": "did you mean 'Mine'",
        "optimizer_of_mine:Mine": "did you mean 'optimiser_of_mine'",
        "package_of_mine.insides:Mine": "did you mean 'package_of_mine.inside'",
        "optimizer_of_mine.py:Mine": "did you mean 'optimiser_of_mine.py'",
        "nowhere/at_all.py:Mine": "unknown file",
        "helper_of_mine.draw:x": "unknown module",
    }.items():
        with pytest.raises(UnknownNameError, match=said):
            import_object(text)
    for text in ("optimiser_of_mine", ":Mine", "optimiser_of_mine:", ":"):
        with pytest.raises(ExperimentError, match=r"package.module:name"):
            import_object(text)


@pytest.mark.parametrize("text", ["broken_of_mine:x", "broken_of_mine.py:x", "random.py:x"])
def test_what_raises_while_it_is_imported_is_the_cause(folder, text):
    for name in ("broken_of_mine.py", "random.py"):
        (folder / name).write_text("import nothing_of_this_name_of_mine\n")
    with pytest.raises(ExperimentError, match="ModuleNotFoundError") as caught:
        import_object(text)
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)
    assert caught.value.__cause__.name == "nothing_of_this_name_of_mine"
