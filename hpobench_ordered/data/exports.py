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
    """Yield the items that modules of this and of other packages export, with their owners.

    A module exports items, such as the specs of methods, by a tuple with an agreed name.

    Args:
        package: Name of the package whose modules are searched, such as "hpobench_ordered.methods".
            Other packages register their modules in the entry-point group of the same name.
        attribute: Name of the tuple in each module, such as "SPECS".
        kind: Class that the items must have.

    Yields:
        Each item and its owner. First come the items of this package, whose owner is "". Those of
        other packages follow; the owner is then a text such as "package 'mine'".
    """
    for item in _iter_own_exports(package, attribute):
        yield item, ""
    yield from _iter_exports_of_others(package, attribute, kind)


def _iter_own_exports(package: str, attribute: str) -> Iterator[Any]:
    """Yield the items that the public modules of a package of ours export.

    Args:
        package: Name of the package, such as "hpobench_ordered.methods".
        attribute: Name of the tuple of items in each module, such as "SPECS"; a module may have
            none.
    """
    folder = import_module(package).__path__
    for module_info in pkgutil.iter_modules(folder):
        is_public = not module_info.name.startswith("_")
        if is_public:
            module = import_module(f"{package}.{module_info.name}")
            yield from getattr(module, attribute, ())


def _iter_exports_of_others(
    package: str, attribute: str, kind: type[Any]
) -> Iterator[tuple[Any, str]]:
    """Yield the items that other packages export, each with a text that names the package.

    A package that cannot be imported, or whose items are of another class, is left out with a
    warning.

    Args:
        package: Entry-point group in which other packages register modules, such as
            "hpobench_ordered.methods".
        attribute: Name of the tuple of items in each module, such as "SPECS".
        kind: Class that the items must have.
    """
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
    """Warn that another package is left out because of a problem."""
    message = f"{problem}; it is left out: repair or uninstall that package"
    warnings.warn(message, BrokenPluginWarning, stacklevel=2)


def collect_specs(package: str, attribute: str, kind: type[Any]) -> Mapping[str, Any]:
    """Collect the specs that modules of this and of other packages export, by name.

    A spec of another package is left out with a warning if its name exists already.

    Args:
        package: Name of the package whose modules are searched, such as "hpobench_ordered.methods".
        attribute: Name of the tuple of specs in each module, such as "SPECS".
        kind: Class of the specs.

    Raises:
        DuplicateNameError: Two specs of this package have the same name.
    """
    specs: dict[str, Any] = {}
    for spec, owner in iter_exports(package, attribute, kind):
        first_spec = specs.setdefault(spec.name, spec)
        if first_spec is spec:  # the name is new, or several modules export the same spec
            continue
        problem = f"{spec.name!r} is registered twice in {package}"
        is_of_this_package = owner == ""
        if is_of_this_package:
            raise DuplicateNameError(problem)
        _warn_of_plugin(f"{problem}, the second time by {owner}")
    return MappingProxyType(specs)
