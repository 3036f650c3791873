"""What tells one version of somebody's code from another: source texts, settings, versions."""

import functools
import hashlib
import inspect
import secrets
import sys
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, MethodType, ModuleType

import numpy as np

from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.registry import list_methods

_PLAIN = (type(None), bool, int, float, complex, str, bytes)


class _UnknownError(Exception):
    """Something cannot be told apart from another thing like it."""


def method_version(spec: MethodSpec) -> str:
    """What tells one version of a method from another.

    Returns:
        The spec's version of a method registered by this package; of any other the hash of its
        source, and where that cannot be read, a text that is used once.
    """
    if spec.name in list_methods():
        return str(spec.version)
    made_by = spec.method
    known = getattr(made_by, "identity", None) if not isinstance(made_by, type) else None
    text = known if known is not None else identity_of(made_by)
    return hashlib.sha256((text or secrets.token_hex()).encode()).hexdigest()[:12]


def identity_of(thing: object) -> str:
    """Describe a class, function or other callable so that a changed one is described otherwise.

    The description holds the source text of a class and its bases, or of a function; the values it
    was given by defaults, closures, `functools.partial` or attributes; the plain constants of its
    module that it mentions; and the versions of the libraries that it, or what it mentions by a
    global name, comes from. Not the source text of what it calls.

    Returns:
        The description; "" where there is no source text, or a value has no description.
    """
    try:
        return "\n".join(_code(thing, set()))
    except _UnknownError:
        return ""


def library_of(thing: object) -> str:
    """Name and version of the library that something comes from; "" where it has no version."""
    name = thing.__name__ if isinstance(thing, ModuleType) else getattr(thing, "__module__", None)
    top = str(name).partition(".")[0]
    version = getattr(sys.modules.get(top), "__version__", None)
    return f"{top} {version}" if isinstance(version, str) else ""


# -- internals -------------------------------------------------------------------------------------


def _code(thing: object, seen: set[int]) -> Iterator[str]:
    """Descriptions of the parts of a callable; of those already seen, none."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, functools.partial):
        yield from _code(thing.func, seen)
        yield from _value([thing.args, thing.keywords], seen)
    elif isinstance(thing, MethodType):
        yield from _value(thing.__self__, seen)
        yield from _code(thing.__func__, seen)
    elif isinstance(thing, type):
        for kind in thing.__mro__[:-1]:
            yield _source(kind)
            yield library_of(kind)
            for member in vars(kind).values():
                if isinstance(member, FunctionType):
                    yield from _globals(member)
    elif isinstance(thing, FunctionType):
        yield _source(thing)
        yield library_of(thing)
        yield from _globals(thing)
        yield from _value([thing.__defaults__, thing.__kwdefaults__], seen)
        yield from _value(dict(inspect.getclosurevars(thing).nonlocals), seen)
    elif callable(thing) and hasattr(thing, "__dict__"):
        yield from _code(type(thing), seen)
        yield from _value(vars(thing), seen)
    else:
        raise _UnknownError


def _value(value: object, seen: set[int]) -> Iterator[str]:
    """Descriptions of a setting.

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
            yield from _value(item, seen)
    elif isinstance(value, list | tuple):
        yield f"{len(value)} of"
        for item in value:
            yield from _value(item, seen)
    elif callable(value):
        yield from _code(value, seen)
    elif " at 0x" in repr(value):  # the default, which names nothing but an address
        raise _UnknownError
    else:
        yield repr(value)


def _globals(function: FunctionType) -> Iterator[str]:
    """Constants of the module, and versions of the libraries, that a function mentions."""
    mentioned = {
        name: function.__globals__[name]
        for name in sorted(_names(function.__code__))
        if name in function.__globals__
    }
    for name, value in mentioned.items():
        if isinstance(value, _PLAIN):
            yield f"{name} = {value!r}"
        else:
            yield library_of(value)


def _names(code: CodeType) -> set[str]:
    """Names that a function, or one inside it, mentions."""
    inside = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inside)


def _source(thing: type | FunctionType) -> str:
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        raise _UnknownError from None
