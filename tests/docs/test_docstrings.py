"""The examples in the documentation strings of all public modules, run as they stand."""

import doctest
import importlib
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType

import pytest

import hpobench_ordered as hbo
from hpobench_ordered.errors import MissingExtraError

TOLERANCE_OF_OUTPUT = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
"""Amounts of space do not matter, and "..." in an example stands for any output."""


def iter_public_modules() -> Iterator[ModuleType]:
    """Every module of the package without an underscore anywhere in its name.

    Methods of other tools are left out where their tool is not installed.
    """
    for module in pkgutil.walk_packages(hbo.__path__, f"{hbo.__name__}."):
        is_private = any(part.startswith("_") for part in module.name.split("."))
        if is_private:
            continue
        try:
            imported = importlib.import_module(module.name)
        except MissingExtraError:
            assert module.name.startswith("hpobench_ordered.tuning.tools.")
            continue
        yield imported


def find_examples() -> dict[str, doctest.DocTest]:
    """Find the examples of every object that has some, by the object's full name."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    examples = {}
    for module in iter_public_modules():
        for test in finder.find(module):
            if test.examples:
                examples[test.name] = test
    return examples


EXAMPLES = find_examples()


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_example_gives_what_it_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failures: list[str] = []
    runner = doctest.DocTestRunner(optionflags=TOLERANCE_OF_OUTPUT)

    runner.run(EXAMPLES[name], out=failures.append)

    summary = runner.summarize(verbose=False)
    assert summary.failed == 0, "".join(failures)


PUBLIC_NAMES = [name for name in hbo.__all__ if not name.startswith("__")]


@pytest.mark.parametrize("name", PUBLIC_NAMES)
def test_public_name_has_an_example(name, root):
    """The example is in its docstring, or on a page that uses it."""
    public_object = getattr(hbo, name)
    # Constants have no docstring, nor a module and a name of their own.
    module_name = getattr(public_object, "__module__", "")
    own_name = getattr(public_object, "__qualname__", "")
    has_docstring_example = f"{module_name}.{own_name}" in EXAMPLES

    pages = "".join(page.read_text() for page in (root / "docs").glob("*.md"))
    is_used_on_a_page = re.search(rf"hbo\.{name}\b", pages) is not None

    assert has_docstring_example or is_used_on_a_page
