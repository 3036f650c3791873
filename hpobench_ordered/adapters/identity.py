"""What tells one version of a method from another.

A registered method of this package says its version. Of every other method it is a hash of its
code: the source of the class and its bases or of the function, of whatever functions and classes
of the user these mention, and so on; the values of the constants they mention, of defaults,
closures and `functools.partial`; and the versions of the libraries they mention. What is looked up
while it runs (data files, `getattr` with a computed name) is not seen.
"""

import dis
import functools
import hashlib
import inspect
import secrets
import sys
from collections.abc import Iterator, Mapping, Set
from contextlib import suppress
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType

import numpy as np

from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.registry import list_methods, method_spec

PACKAGE = "hpobench_ordered"
METHODS = f"{PACKAGE}.methods"
_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_INSTALLED = {"site-packages", "dist-packages"}
_STANDARD = sys.stdlib_module_names - {"__main__"}


class _UnknownError(Exception):
    """Something cannot be told apart from another thing like it."""


def method_version(spec: MethodSpec) -> str:
    """What tells one version of a method from another.

    Returns:
        The spec's version of a method registered by this package; of any other the hash of its
        code, and where that cannot be known, a text that is used once.
    """
    if spec.name in list_methods() and _module_of(spec.method).startswith(METHODS):
        return str(spec.version)
    described = identity_of(spec.method) or secrets.token_hex()
    text = f"{described}\n{spec.version}\n{spec.min_history}"
    if spec.min_history:  # it is `bo` that runs where there is less
        text += f"\nbo {method_spec('bo').version}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def identity_of(thing: object) -> str:
    """Describe a class, function or other callable so that a changed one is described otherwise.

    Returns:
        The description; "" where there is no source text, or a value has no description.
    """
    try:
        return "\n".join(_Description(thing).of_code(thing))
    except _UnknownError:
        return ""


def is_installed(module: ModuleType) -> bool:
    """Whether every process finds a module: part of a library, of Python or of this package."""
    top = module.__name__.partition(".")[0]
    file = getattr(module, "__file__", None)
    return (
        top in (PACKAGE, *_STANDARD)
        or (file is None and top != "__main__" and not hasattr(module, "__path__"))
        or (file is not None and not _INSTALLED.isdisjoint(Path(file).parts))
    )


class FromElsewhere:
    """Base of the factories that make a method of what they hold: that is what identifies them."""


class _Description:
    """Descriptions of all that one callable consists of.

    Args:
        root: The callable. What its module, and those of its bases, define is described by source
            text even in an installed library.
    """

    def __init__(self, root: object) -> None:
        self._roots = _modules_of(root)
        self._seen: dict[int, object] = {}  # holds what it has seen: ids are used again

    def of_code(self, thing: object) -> Iterator[str]:
        """Parts of a callable; nothing of one already seen.

        Raises:
            _UnknownError: Its source or a value is unknown.
        """
        if id(thing) in self._seen:
            return
        self._seen[id(thing)] = thing
        wrapped = getattr(thing, "__wrapped__", getattr(thing, "py_func", None))
        if isinstance(thing, functools.partial):
            yield from self.of_code(thing.func)
            yield from self.of_value([thing.args, thing.keywords])
        elif isinstance(thing, MethodType):
            yield from self.of_value(thing.__self__)
            yield from self.of_code(thing.__func__)
        elif isinstance(thing, FromElsewhere):
            yield from self.of_value(vars(thing))
        elif not self._is_read(thing):
            yield _library(thing)
        elif isinstance(thing, type):
            yield from self._of_class(thing)
        elif isinstance(thing, FunctionType):
            yield from self._of_function(thing)
        elif callable(wrapped):  # cached, or compiled by numba
            yield from self.of_code(wrapped)
        elif callable(thing) and hasattr(thing, "__dict__"):
            yield from self.of_code(type(thing))
            yield from self.of_value(vars(thing))
        else:
            raise _UnknownError

    def of_value(self, value: object) -> Iterator[str]:
        """Parts of a setting or constant.

        Raises:
            _UnknownError: It cannot be described.
        """
        if isinstance(value, _PLAIN):
            yield repr(value)
        elif isinstance(value, np.ndarray) and value.dtype != object:
            yield f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
        elif isinstance(value, Mapping):
            for key, item in value.items():
                yield repr(key)
                yield from self.of_value(item)
        elif isinstance(value, list | tuple):
            yield f"{len(value)} of"
            for item in value:
                yield from self.of_value(item)
        elif isinstance(value, Set):  # its order differs from process to process
            yield from sorted("\n".join(self.of_value(item)) for item in value)
        elif isinstance(value, ModuleType):
            yield _library(value)
        elif callable(value) or (self._is_read(value) and hasattr(value, "__dict__")):
            yield from self.of_code(value) if callable(value) else self._of_object(value)
        elif " at 0x" in repr(value):  # the default, which names nothing but an address
            raise _UnknownError
        else:
            yield repr(value)
            yield _library(type(value))

    def _of_object(self, value: object) -> Iterator[str]:
        if id(value) not in self._seen:
            self._seen[id(value)] = value
            yield from self.of_code(type(value))
            yield from self.of_value(vars(value))

    def _of_class(self, thing: type) -> Iterator[str]:
        yield _source(thing)
        for base in thing.__mro__[1:-1]:
            yield from self.of_code(base)
        for name, member in vars(thing).items():
            plain = getattr(member, "__func__", getattr(member, "func", member))
            if isinstance(member, property):
                for part in (member.fget, member.fset):
                    yield from self._mentioned_by(part) if isinstance(part, FunctionType) else ()
            elif isinstance(plain, FunctionType):
                yield from self._mentioned_by(plain)
            elif isinstance(plain, (*_PLAIN, tuple, np.ndarray)) and not name.startswith("__"):
                yield from self.of_value(plain)
            elif isinstance(plain, type):
                yield from self.of_code(plain)

    def _of_function(self, thing: FunctionType) -> Iterator[str]:
        yield _source(thing)
        yield from self._mentioned_by(thing)

    def _mentioned_by(self, function: FunctionType) -> Iterator[str]:
        """What a function gets from outside its own text: defaults, closure, globals, imports."""
        yield from self.of_value([function.__defaults__, function.__kwdefaults__])
        yield from self.of_value(_closure(function))
        names = _names(function.__code__)
        for name in sorted(names & function.__globals__.keys()):
            yield from self._of_global(name, function.__globals__[name], names)
        for name in sorted(_imported(function.__code__)):
            yield f"{name} {_version(name.partition('.')[0])}"
            module = _find(name, str(function.__globals__.get("__package__")))
            if module is not None:
                yield from self._of_global(name, module, names)

    def _of_global(self, name: str, value: object, names: Set[str]) -> Iterator[str]:
        """A name of a module that code mentions: of a module those in it that are mentioned."""
        if isinstance(value, ModuleType) and self._is_read(value):
            if id(value) not in self._seen:
                for inner in sorted(names & vars(value).keys()):
                    yield from self._of_global(f"{name}.{inner}", vars(value)[inner], names)
        elif self._is_read(value) or isinstance(value, (*_PLAIN, Mapping, list, tuple, Set)):
            yield f"{name} ="
            yield from self.of_value(value)
        elif isinstance(value, np.ndarray):
            yield from self.of_value(value)
        else:
            yield _library(value)

    def _is_read(self, thing: object) -> bool:
        """Whether something is described by its source text, not by the version of a library."""
        name = _module_of(thing)
        module = sys.modules.get(name)
        return name in self._roots or module is None or not is_installed(module)


def _modules_of(thing: object) -> set[str]:
    """Names of the modules that a callable, or what it wraps, is defined in."""
    if isinstance(thing, functools.partial):
        return _modules_of(thing.func)
    if isinstance(thing, FromElsewhere):
        return set().union(*(_modules_of(part) for part in vars(thing).values() if callable(part)))
    return {_module_of(thing)}


def _module_of(thing: object) -> str:
    """Name of the module that something, or its class, is defined in."""
    if isinstance(thing, functools.partial):
        return _module_of(thing.func)
    if isinstance(thing, ModuleType):
        return thing.__name__
    name = getattr(thing, "__module__", None)
    return name if isinstance(name, str) else type(thing).__module__


def _library(thing: object) -> str:
    """Name and version of the library that something comes from; of this package the method's."""
    module = _module_of(thing)
    top = module.partition(".")[0]
    if top in _STANDARD:
        return ""
    if top != PACKAGE:
        return f"{top} {_version(top)}"
    if not module.startswith(METHODS) or module == f"{METHODS}.base":
        return ""
    versions = [s.version for s in map(method_spec, list_methods()) if s.method is thing]
    return f"{getattr(thing, '__qualname__', module)} {versions or _version('hpobench-ordered')}"


@functools.cache
def _version(top: str) -> str:
    version = getattr(sys.modules.get(top), "__version__", None)
    if isinstance(version, str):
        return version
    try:
        return metadata.version(top)
    except metadata.PackageNotFoundError:
        return ""


def _closure(function: FunctionType) -> list[object]:
    """Values of the enclosing functions' variables, of those that have one yet."""
    values = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):
            values.append(cell.cell_contents)
    return values


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _names(code: CodeType) -> set[str]:
    return {name for one in _codes(code) for name in one.co_names}


def _imported(code: CodeType) -> set[str]:
    """Names of the modules that code imports while it runs, as they are written."""
    steps = (step for one in _codes(code) for step in dis.get_instructions(one))
    return {str(step.argval) for step in steps if step.opname == "IMPORT_NAME"}


def _find(name: str, package: str) -> ModuleType | None:
    """A module of the user that code imports; None for one of a library, or that is not there."""
    for full in (name, f"{package}.{name}"):
        with suppress(ImportError, ValueError):
            spec = find_spec(full)
            if spec is not None and _INSTALLED.isdisjoint(Path(spec.origin or "").parts):
                return import_module(full)
    return None


def _source(thing: type | FunctionType) -> str:
    try:
        return inspect.getsource(thing if isinstance(thing, type) else thing.__code__)
    except (OSError, TypeError):
        raise _UnknownError from None
