"""The examples in the documentation strings of all public modules, run as they stand."""

import doctest
import importlib
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType

import pytest

import hpobench_ordered as hbo

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def public_modules() -> Iterator[ModuleType]:
    """Every module of the package without an underscore anywhere in its name."""
    for module in pkgutil.walk_packages(hbo.__path__, f"{hbo.__name__}."):
        if not any(part.startswith("_") for part in module.name.split(".")):
            yield importlib.import_module(module.name)


def examples() -> dict[str, doctest.DocTest]:
    """The examples of every object that has some, by the object's full name."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    tests = (test for module in public_modules() for test in finder.find(module))
    return {test.name: test for test in tests if test.examples}


EXAMPLES = examples()


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_example_gives_what_it_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    runner.run(EXAMPLES[name], out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


@pytest.mark.parametrize("name", [name for name in hbo.__all__ if not name.startswith("__")])
def test_public_name_has_an_example(name, root):
    """In its documentation string, or on a page whose code is run."""
    public = getattr(hbo, name)
    full_name = f"{getattr(public, '__module__', '')}.{getattr(public, '__qualname__', '')}"
    pages = "".join(page.read_text() for page in (root / "docs").glob("*.md"))
    assert full_name in EXAMPLES or re.search(rf"hbo\.{name}\b", pages)
