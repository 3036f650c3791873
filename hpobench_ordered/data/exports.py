"""Finds what modules of this package, and of installed packages, export under a fixed name.

Modules of `hpobench_ordered.benchmarks` and `hpobench_ordered.methods` may export `SPECS`, a tuple
of specs. Other packages register modules that export the same through the entry-point groups
`hpobench_ordered.benchmarks` and `hpobench_ordered.methods`.
"""

import pkgutil
import warnings
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any

from hpobench_ordered.errors import BrokenPluginWarning, DuplicateNameError


def iter_exports(package: str, attribute: str, kind: type[Any]) -> Iterator[tuple[Any, str]]:
    """Yield what modules export in tuples of this name, each item with the package it is of.

    Args:
        package: This package's folder of modules, and the entry-point group of other packages.
        attribute: Name of the tuples.
        kind: Class of their items.

    Yields:
        This package's items with "", then those of other packages with words that name them.
    """
    for item in _iter_own_exports(package, attribute):
        yield item, ""
    yield from _iter_exports_of_others(package, attribute, kind)


def _iter_own_exports(package: str, attribute: str) -> Iterator[Any]:
    """Yield the items of this package's modules that are public."""
    for info in pkgutil.iter_modules(import_module(package).__path__):
        if not info.name.startswith("_"):
            module = import_module(f"{package}.{info.name}")
            yield from getattr(module, attribute, ())


def _iter_exports_of_others(
    package: str, attribute: str, kind: type[Any]
) -> Iterator[tuple[Any, str]]:
    """Yield the items of other packages and their owners; warn of packages that are broken."""
    for entry in sorted(entry_points(group=package)):
        owner = "an unknown package" if entry.dist is None else f"package {entry.dist.name!r}"
        label = f"{owner} registers {entry.name!r} in {package}"
        try:
            items = getattr(entry.load(), attribute, ())
        except Exception as error:  # whatever importing another package's module may raise
            reason = f"cannot be loaded ({type(error).__name__}: {error})"
            _warn_of_plugin(f"{label}, but {entry.value!r} {reason}")
            continue
        if not isinstance(items, tuple) or not all(isinstance(item, kind) for item in items):
            reason = f"{attribute} of {entry.value} is not a tuple of {kind.__name__}"
            _warn_of_plugin(f"{label}, but {reason}")
            continue
        for item in items:
            yield item, owner


def _warn_of_plugin(problem: str) -> None:
    message = f"{problem}; it is left out: repair or uninstall that package"
    warnings.warn(message, BrokenPluginWarning, stacklevel=2)


def specs_by_name(package: str, attribute: str, kind: type[Any]) -> Mapping[str, Any]:
    """All specs of a kind by name; two of one name are an error, or left out if from elsewhere."""
    specs: dict[str, Any] = {}
    for spec, owner in iter_exports(package, attribute, kind):
        if specs.setdefault(spec.name, spec) is spec:
            continue
        problem = f"{spec.name!r} is registered twice in {package}"
        if not owner:
            raise DuplicateNameError(problem)
        _warn_of_plugin(f"{problem}, the second time by {owner}")
    return MappingProxyType(specs)
