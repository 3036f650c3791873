"""What tells one version of a method from another.

A registered method of this package says its version. Every other one is known by the Python files
that it is made from, by the versions of installed packages and by what it was given:

- The file that it stands in, all that this file imports (anywhere in it, and on from there), and
  where a file is part of a package every file of that package. What is part of Python or of this
  package is left out; of this package's methods those count that a file imports or names, by
  their versions.
- Of an installed package its version; every file too if the method itself comes from it, or if it
  did not come from an index, where a version says what is in it.
- The values in `functools.partial`, in objects, and in the enclosing variables and defaults of
  functions that were made while a program ran.

What has no file, as it was typed into a session, and what cannot be told apart, such as a class
made by a function, is another method each time. What a method reads while it is loaded or runs
(data, settings of the environment, modules whose names are computed) is not seen.
"""

import ast
import hashlib
import importlib.util
import io
import json
import os
import pickle
import secrets
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from importlib import import_module, metadata
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES
from operator import attrgetter
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from hpobench_ordered.adapters._edited import refuse_edited
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.registry import list_methods, method_spec
from hpobench_ordered.runtime.machine import package_versions

PACKAGE = "hpobench_ordered"
METHODS = f"{PACKAGE}.methods"
ONCE = "once-"
"""Begins a version that is used once."""
_INSTALLED = {"site-packages", "dist-packages"}
_STANDARD = {Path(os.__file__).parent, Path(sysconfig.get_path("platstdlib"))}
_CODE = {Path(f"a{suffix}").suffix for suffix in (*SOURCE_SUFFIXES, *EXTENSION_SUFFIXES)}


class _UnknownError(Exception):
    """Something cannot be told apart from another thing like it."""


def method_version(spec: MethodSpec) -> str:
    """What tells one version of a method from another.

    Returns:
        The spec's version of a method registered by this package; of any other the hash of what it
        is made from, and where that cannot be known, a text that begins with `ONCE`.

    Raises:
        ExperimentError: A file was edited after it was loaded.
    """
    if spec.name in list_methods() and is_ours(spec):
        return str(spec.version)
    try:
        given = _Given(spec.method)
        described = [given.digest, *_sources(given.modules, given.bases)]
    except _UnknownError:
        return ONCE + secrets.token_hex(6)
    described += map(str, (spec.version, spec.min_history, spec.changed_spaces, spec.uses_data))
    if spec.min_history:  # it is `bo` that runs where there is less
        described.append(_version_of_ours("bo"))
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()[:12]


def is_ours(spec: MethodSpec) -> bool:
    """Whether a method is a class of this package."""
    return _module_of(spec.method).startswith(METHODS)


class _Given(pickle.Pickler):
    """Pickles what was given to a method: values as they are, classes and functions by name.

    Attributes:
        digest: Hash of it; equal things have equal hashes in every process.
        modules: Names of the modules that the classes and functions are from.
        bases: Those that the bases of the classes, and what was put into these, are from.

    Raises:
        _UnknownError: It holds what cannot be told apart.
    """

    def __init__(self, thing: object) -> None:
        content = io.BytesIO()
        super().__init__(content, protocol=4)
        self.fast = True  # equal values are the same bytes, whether they are one object or two
        self.modules, self.bases = set[str](), set[str]()
        self._seen: set[FunctionType] = set()
        try:
            self.dump(thing)
        except Exception as error:  # whatever pickling somebody else's objects may raise
            raise _UnknownError from error
        self.digest = hashlib.sha256(content.getvalue()).hexdigest()

    def persistent_id(self, thing: object) -> object:
        """Name of what has one; None for values, which are pickled."""
        if isinstance(thing, ModuleType):
            self.modules.add(thing.__name__)
            return thing.__name__
        if isinstance(thing, set | frozenset):  # its order differs from process to process
            return sorted(thing, key=repr)
        if _is_named(thing):
            self.modules.add(_module_of(thing))
            if isinstance(thing, type):
                self.bases |= _modules_behind(thing)
            return _module_of(thing), getattr(thing, "__qualname__", "")
        if isinstance(thing, type):
            raise _UnknownError
        return self._unnamed(thing) if isinstance(thing, FunctionType) else None

    def _unnamed(self, function: FunctionType) -> object:
        """Where a function stands that has no name in its module, and the values that it holds."""
        self.modules.add(function.__module__)
        place = [function.__qualname__, str([*function.__code__.co_positions()])]
        if function in self._seen:  # it calls itself
            return place
        self._seen.add(function)
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        return [*place, function.__defaults__, function.__kwdefaults__, cells, vars(function)]


def _module_of(thing: object) -> str:
    """Name of the module that something says it is from; "" if it says none."""
    name = getattr(thing, "__module__", None)
    return name if isinstance(name, str) else ""


def _is_named(thing: object) -> bool:
    """Whether something is what its module has by its name."""
    name, module = getattr(thing, "__qualname__", None), sys.modules.get(_module_of(thing))
    with suppress(AttributeError):
        return isinstance(name, str) and attrgetter(name)(module) is thing
    return False


def _modules_behind(kind: type) -> set[str]:
    """Modules of the bases of a class, and of the functions put into it and them."""
    members = [m for base in kind.__mro__ for m in (base, *vars(base).values())]
    functions = [getattr(member, "__func__", member) for member in members]
    return set(filter(None, map(_module_of, functions)))


def _sources(own: set[str], imported: set[str]) -> list[str]:
    """Describe what modules are made from: the method's own ones, and those it imports.

    Raises:
        _UnknownError: One of its own has no file.
        ExperimentError: A file was edited after it was loaded.
    """
    own_tops = {name.partition(".")[0] for name in own}
    loaded = {getattr(module, "__file__", ""): module for module in [*sys.modules.values()]}
    described, seen, left = set[str](), set[str](), own | imported
    while left:
        name = left.pop()
        top = name.partition(".")[0]
        if top == PACKAGE:
            described |= _ours(name)
        elif top not in seen:
            seen.add(top)
            more, mentioned = _described(top, loaded, is_own=top in own_tops)
            described |= more
            left |= mentioned
    return sorted(described)


def _described(
    top: str, loaded: Mapping[str, ModuleType], *, is_own: bool
) -> tuple[set[str], set[str]]:
    """Describe a module or package by name, version and content; what its files import.

    `loaded` are the modules by their files.
    """
    places = _places(top)
    if any(map(_is_standard, places)) or (not places and top in sys.stdlib_module_names):
        return set(), set()
    if not places and (is_own or top == "__main__"):
        raise _UnknownError
    installed = _distributions(top) if any(map(is_installed, places)) else []
    described = {f"{name} {metadata.version(name)}" for name in installed} or {top}
    if installed and not is_own and all(map(_is_from_index, installed)):
        return described, set()
    mentioned = {getattr(sys.modules.get(top), "__package__", None) or top}  # of python -m a.b
    for name, path in _files(places):
        content = path.read_bytes()
        described.add(f"{name} {hashlib.sha256(content).hexdigest()}")
        if not installed and path.suffix in SOURCE_SUFFIXES:
            imported, texts = _mentioned(content)
            mentioned |= imported
            described |= {_version_of_ours(method) for method in texts.intersection(list_methods())}
            refuse_edited(loaded.get(str(path)), path, content)
    return described, mentioned


def _places(top: str) -> list[Path]:
    """The file of a module, or the folders of a package; empty where neither can be found."""
    module: Any = sys.modules.get(top)
    if module is None:
        with suppress(ImportError, ValueError):
            module = importlib.util.find_spec(top)  # imports nothing
    folders = getattr(module, "__path__", getattr(module, "submodule_search_locations", None))
    if folders:
        return [*map(Path, folders)]
    file = getattr(module, "__file__", getattr(module, "origin", None))
    is_typed = top == "__main__" and hasattr(sys, "ps1")
    return [Path(file)] if isinstance(file, str) and Path(file).is_file() and not is_typed else []


def _files(places: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """The files of modules that can be imported from there, with names that say not where."""
    for place in places:
        if place.is_file():
            yield place.name, place
        for path in sorted(place.rglob("*")):
            inside = path.relative_to(place.parent)
            hidden = any(part[0] == "." or part in _INSTALLED for part in inside.parts)
            if path.suffix in _CODE and not hidden and path.is_file():
                yield inside.as_posix(), path


def is_installed(place: Path) -> bool:
    """Whether a file or folder is one of installed packages."""
    return not _INSTALLED.isdisjoint(place.parts)


def _is_standard(place: Path) -> bool:
    """Whether a file or folder is part of Python."""
    return not is_installed(place) and any(map(place.is_relative_to, _STANDARD))


def _distributions(top: str) -> list[str]:
    """Names of what was installed that a module or package is from."""
    with suppress(metadata.PackageNotFoundError):
        if f"\n{top}/" in (metadata.distribution(top).read_text("RECORD") or ""):
            return [top]
    return sorted(set(_all_distributions().get(top, [])))


_all_distributions = cache(metadata.packages_distributions)  # takes long


def _is_from_index(name: str) -> bool:
    """Whether a version of what is installed is always the same (PEP 610)."""
    distribution = metadata.distribution(name)
    return bool(distribution.read_text("RECORD")) and not distribution.read_text("direct_url.json")


@lru_cache(maxsize=1024)  # a version asks every file of the user's packages, and runs ask often
def _mentioned(content: bytes) -> tuple[frozenset[str], frozenset[str]]:
    """The modules that a file imports, anywhere in it, and the texts in it."""
    imported, texts = set[str](), set[str]()
    with suppress(SyntaxError, ValueError):  # of another Python, or half written
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported |= {f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
    return frozenset(imported), frozenset(texts)


def _ours(name: str) -> set[str]:
    """Versions of the methods in a module of this package; of what methods share, the package's."""
    if not name.startswith(f"{METHODS}.") or name.startswith(f"{METHODS}.base"):
        return set()
    with suppress(ImportError):
        module = import_module(".".join(name.split(".")[:3]))
        if specs := getattr(module, "SPECS", ()):
            return {_version_of_ours(spec.name) for spec in specs}
    return {f"{PACKAGE} {package_versions()['hpobench-ordered']}"}


def _version_of_ours(name: str) -> str:
    return f"{name} {method_spec(name).version}"
