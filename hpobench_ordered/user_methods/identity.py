"""Version identifiers of methods, which change whenever the method may behave differently.

A registered method of this package has a version number. Any other is identified by its source file
and all files that this imports (anywhere in it, recursively; of a package every file); by the
versions of the installed packages, and of this package's methods, that these files name; and by its
arguments. A method without a file, or one whose identity cannot be determined, such as a class made
by a function, gets a new version each time. What a method reads while it is loaded or runs is not
seen: data, environment variables, modules whose names are computed. A file that was edited after it
was loaded is refused.
"""

import ast
import hashlib
import importlib.util
import io
import json
import os
import pickle
import re
import secrets
import sys
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from importlib import metadata
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from hpobench_ordered.core.identity import ONCE
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.registry import list_methods, method_spec

METHODS = "hpobench_ordered.methods."
_TEXT = re.compile(r"['\"]([\w-]+)['\"]")
_INSTALLED = {"site-packages", "dist-packages"}
_STANDARD = {Path(os.__file__).parent, Path(sysconfig.get_path("platstdlib"))}
_LITERAL = (type(None), int, float, complex, str, bytes, tuple)
_CODE = {Path(f"a{suffix}").suffix for suffix in (*SOURCE_SUFFIXES, *EXTENSION_SUFFIXES)}


class _UnknownError(Exception):
    """The identity of an object cannot be determined."""


def method_version(spec: MethodSpec) -> str:
    """Version of a method: its own, a hash of its sources and arguments, or `ONCE` and a token."""
    if spec.name in list_methods() and is_ours(spec):
        return str(spec.version)
    try:
        given = _Given(spec.method)
        described = [given.digest, *_sources(given.modules, given.bases)]
    except _UnknownError:
        return ONCE + secrets.token_hex(6)
    described += map(str, (spec.version, spec.min_history, spec.changed_spaces, spec.uses_data))
    described += _versions(["bo"] if spec.min_history else [])  # runs on short histories
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()[:12]


def is_ours(spec: MethodSpec) -> bool:
    """Whether a method is a class of this package."""
    return _module_of(spec.method).startswith(METHODS)


class _Given(pickle.Pickler):
    """Hash of a method's arguments, and the modules that it and its bases are defined in."""

    def __init__(self, thing: object) -> None:
        content = io.BytesIO()
        super().__init__(content, protocol=4)
        self.fast = True  # no memo: equal values give the same bytes, identical or not
        self.modules, self.bases = set[str](), set[str]()
        try:
            self.dump(thing)
        except Exception as error:  # pickling a user's objects may raise anything
            raise _UnknownError from error
        self.digest = hashlib.sha256(content.getvalue()).hexdigest()

    def persistent_id(self, thing: object) -> object:
        """Replacement for modules, sets and functions; None for what is pickled as usual."""
        if isinstance(thing, ModuleType):
            self.modules.add(thing.__name__)
            return thing.__name__
        if isinstance(thing, set | frozenset):  # its order differs from process to process
            return sorted(thing, key=repr)
        if isinstance(thing, type | FunctionType):
            self.modules.add(thing.__module__)
        if isinstance(thing, type):
            members = [m for base in thing.__mro__ for m in (base, *vars(base).values())]
            self.bases |= {_module_of(getattr(m, "__func__", m)) for m in members} - {""}
        if not isinstance(thing, FunctionType) or "<" not in thing.__qualname__:
            return None  # pickled by its qualified name
        place = [thing.__qualname__, str([*thing.__code__.co_positions()])]
        cells = [cell.cell_contents for cell in thing.__closure__ or ()]
        return [*place, thing.__defaults__, thing.__kwdefaults__, cells, vars(thing)]


def _module_of(thing: object) -> str:
    """Name of the module that an object was defined in; "" if unknown."""
    return str(getattr(thing, "__module__", None) or "")


def _sources(own: set[str], others: set[str]) -> list[str]:
    """Describe the sources of modules: the method's own, others, and what these import."""
    own_tops = {name.partition(".")[0] for name in own}
    described, seen, left = set[str](), {"hpobench_ordered"}, own | others
    loaded = defaultdict[str, list[ModuleType]](list)
    for module in [*sys.modules.values()]:
        loaded[str(getattr(module, "__file__", ""))].append(module)
    while left:
        name = left.pop()
        if name.startswith(METHODS) and not name.startswith(f"{METHODS}base"):
            described |= _versions(list_methods())
        top = name.partition(".")[0]
        if top in seen:
            continue
        seen.add(top)
        places = _places(top)
        if any(map(_is_standard, places)) or (not places and top in sys.stdlib_module_names):
            continue
        if not places and top in {*own_tops, "__main__"}:
            raise _UnknownError
        installed = _all_distributions().get(top, []) if any(map(is_installed, places)) else []
        described |= {f"{name} {metadata.version(name)}" for name in installed} or {top}
        if installed and top not in own_tops and all(map(_is_from_index, installed)):
            continue
        left.add(getattr(sys.modules.get(top), "__package__", None) or top)  # python -m a.b
        for file, path in _files(places):
            content = path.read_bytes()
            described.add(f"{file} {hashlib.sha256(content).hexdigest()}")
            if not installed and path.suffix in SOURCE_SUFFIXES:
                for module in loaded[str(path)]:
                    _refuse_edited(module, path, content)
                imported, texts = _mentioned(content)
                left |= imported
                described |= _versions(texts)
    return sorted(described)


def _places(top: str) -> list[Path]:
    """The file of a module, or the folders of a package; empty if neither can be found."""
    module: Any = sys.modules.get(top)
    if module is None:
        with suppress(ImportError, ValueError):
            module = importlib.util.find_spec(top)  # does not import it
    folders = getattr(module, "__path__", getattr(module, "submodule_search_locations", None))
    if folders:
        return [*map(Path, folders)]
    file = getattr(module, "__file__", getattr(module, "origin", None))
    is_typed = top == "__main__" and hasattr(sys, "ps1")
    return [Path(file)] if isinstance(file, str) and Path(file).is_file() and not is_typed else []


def _files(places: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Importable files below some places, with names relative to these."""
    for place in places:
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            inside = path.relative_to(place.parent)
            hidden = any(part[0] == "." or part in _INSTALLED for part in inside.parts)
            if path.suffix in _CODE and not hidden and path.is_file():
                yield inside.as_posix(), path


def is_installed(place: Path) -> bool:
    """Whether a file or folder is one of installed packages."""
    return not _INSTALLED.isdisjoint(place.parts)


def _is_standard(place: Path) -> bool:
    """Whether a file or folder belongs to Python's standard library."""
    return not is_installed(place) and any(map(place.is_relative_to, _STANDARD))


_all_distributions = cache(metadata.packages_distributions)  # slow


def _is_from_index(name: str) -> bool:
    """Whether the version of an installed package determines its content (PEP 610)."""
    distribution = metadata.distribution(name)
    return bool(distribution.read_text("RECORD")) and not distribution.read_text("direct_url.json")


@lru_cache(maxsize=1024)  # asked for every file, on every run
def _mentioned(content: bytes) -> tuple[frozenset[str], frozenset[str]]:
    """Modules and names that a file imports, anywhere in it, and its short string literals."""
    imported = set[str]()
    with suppress(SyntaxError, ValueError):  # for another Python version, or incomplete
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported |= {f"{node.module}.{alias.name}" for alias in node.names}
    texts = _TEXT.findall(content.decode(errors="replace"))
    return frozenset(imported), frozenset(texts)


def _versions(names: Iterable[str]) -> set[str]:
    """Versions of this package's methods among the names."""
    return {f"{name} {method_spec(name).version}" for name in {*names} & {*list_methods()}}


def _refuse_edited(module: ModuleType, path: Path, content: bytes) -> None:
    """Raise an ExperimentError if functions or literal constants differ from those loaded."""
    is_as_written = type(module.__loader__) is SourceFileLoader
    if is_as_written and (edited := next(_edited(module, path, content), "")):
        raise ExperimentError(
            f"{edited} in {path} is not what was loaded: the file was edited since, or the "
            "value was set from elsewhere. Start Python anew or reload the module, and give "
            "settings as arguments, so that what is recorded is what is run"
        )


def _edited(module: ModuleType, path: Path, content: bytes) -> Iterator[str]:
    """Names of functions and constants that differ between a loaded module and its file."""
    try:
        tree = ast.parse(content)
        codes = [compile(content, path, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        yield "its text"
        return
    for outer in codes:  # grows as nested code is found
        codes += [inner for inner in outer.co_consts if isinstance(inner, CodeType)]
    constants = _constants(tree)
    for name, value in _named(vars(module), module.__name__):
        code = getattr(getattr(value, "__wrapped__", value), "__code__", None)
        is_function = isinstance(code, CodeType) and Path(code.co_filename).absolute() == path
        is_constant = name in constants and isinstance(value, _LITERAL)
        if (is_function and code not in codes) or (is_constant and constants[name] != value):
            yield name


def _named(loaded: Mapping[str, Any], module: str, inside: str = "") -> Iterator[tuple[str, Any]]:
    """The members of a module and of its classes, by qualified name."""
    for name, value in [*loaded.items()]:
        yield inside + name, value
        own = (module, inside + name)
        if isinstance(value, type) and (value.__module__, value.__qualname__) == own:
            yield from _named(vars(value), module, f"{inside}{name}.")


def _constants(tree: ast.Module) -> dict[str, object]:
    """Literal constants of a module and its classes that are assigned exactly once."""
    stored = Counter(
        getattr(node, "id", None) or getattr(node, "attr", None)
        for node in ast.walk(tree)
        if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
    )
    constants: dict[str, object] = {}
    blocks: list[tuple[str, ast.Module | ast.ClassDef]] = [("", tree)]
    for inside, block in blocks:  # grows as nested classes are found
        for part in block.body:
            if isinstance(part, ast.ClassDef):
                blocks.append((f"{inside}{part.name}.", part))
            elif isinstance(part, ast.Assign | ast.AnnAssign) and part.value is not None:
                for target in part.targets if isinstance(part, ast.Assign) else [part.target]:
                    if isinstance(target, ast.Name) and stored[target.id] == 1:
                        with suppress(TypeError, ValueError):  # not a literal
                            constants[inside + target.id] = ast.literal_eval(part.value)
    return constants
