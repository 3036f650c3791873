"""Imports classes and functions given as text: "package.module:name" or "path/to/file.py:name"."""

import importlib
import importlib.util
import sys
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

from hpobench_ordered.data.extras import OPTUNA
from hpobench_ordered.errors import ExperimentError, MissingExtraError, UnknownNameError

FILE_PREFIX = "_file_"  # prefix of the name of a module whose file has the name of another module


def import_object(text: str) -> object:
    """Import an object given as text.

    The folder of the file, then the current one, are searched first, as when Python runs a script
    there, and stay on the path.

    Args:
        text: "package.module:name" or "path/to/file.py:name"; the name may have dots.

    Returns:
        The object.

    Raises:
        UnknownNameError: There is no such file, module or name in it.
        ExperimentError: The text is of another form, or importing the module raised; the exception
            is the cause.
        MissingExtraError: It is of Optuna, which is not installed.
    """
    place, _, name = text.rpartition(":")
    if not (place and name):
        raise ExperimentError(
            "an object to import must be 'package.module:name' or 'path/to/file.py:name', but "
            f"got {text!r}"
        )
    if place.partition(".")[0] == OPTUNA.module:
        OPTUNA.check(text)  # its error says how to install it
    is_file = place.endswith(".py")
    module = _import_file(Path(place).absolute()) if is_file else _import_module(place)
    return _find_attribute(module, name, place)


def _find_attribute(module: ModuleType, name: str, place: str) -> object:
    """The class, function or object of a name in a module; the name may have dots.

    Raises:
        UnknownNameError: There is no such name in the place.
    """
    item: object = module
    for part in name.split("."):
        if not hasattr(item, part):
            public = [attribute for attribute in dir(item) if not attribute.startswith("_")]
            raise UnknownNameError(f"name of {place}", name, public)
        item = getattr(item, part)
    return item


def _import_module(name: str) -> ModuleType:
    """Import a module by its name.

    Raises:
        UnknownNameError: There is no such module.
        MissingExtraError: It is one of this package, and needs an extra that is not installed.
        ExperimentError: The module raised an exception, or imports one that is missing.
    """
    _search_first(Path.cwd())
    try:
        return importlib.import_module(name)
    except MissingExtraError:  # its message says what to install
        raise
    except Exception as error:
        missing = getattr(error, "name", None) or ""  # the module that an ImportError is about
        # With the dots, only the module itself or a package that it is in is a beginning.
        is_missing_itself = f"{name}.".startswith(f"{missing}.")
        if not (isinstance(error, ImportError) and is_missing_itself):
            raise _import_error(name, error) from error
    raise UnknownNameError("module", name, _list_neighbours(missing))


def _list_neighbours(missing: str) -> list[str]:
    """Names of the modules that are where one is missing, to suggest instead.

    Where it is missing is the package in its name, or else the current folder.
    """
    package = missing.rpartition(".")[0]
    if not package:
        return [module.name for module in iter_modules([str(Path.cwd())])]
    folders = getattr(sys.modules.get(package), "__path__", [])
    return [f"{package}.{module.name}" for module in iter_modules(folders)]


def _import_file(path: Path) -> ModuleType:
    """Import a file, under its own name unless that leads to another module.

    Raises:
        UnknownNameError: There is no such file.
        ExperimentError: The file raised an exception.
    """
    if not path.is_file():
        neighbours = [neighbour.name for neighbour in path.parent.glob("*.py")]
        raise UnknownNameError("file", path.name, neighbours, hint=f" (in {path.parent})")
    _search_first(Path.cwd())
    _search_first(path.parent)
    is_importable = _leads_to_file(path.stem, path)
    try:
        if is_importable:
            return importlib.import_module(path.stem)
        # Another module has the file's name, such as a module of Python: it gets a prefix.
        return _load_file(FILE_PREFIX + path.stem, path)
    except Exception as error:
        raise _import_error(path, error) from error


def _leads_to_file(name: str, path: Path) -> bool:
    """Whether a module of a name was, or would be, imported from a file."""
    loaded = sys.modules.get(name)
    if loaded:
        return getattr(loaded, "__file__", "") == str(path)
    spec = importlib.util.find_spec(name)  # finds the file, but does not run it
    return spec is not None and spec.origin == str(path)


def _load_file(name: str, path: Path) -> ModuleType:
    """Import a file under another name, as its own is that of another module.

    If it raises, the module is removed again.
    """
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(sys.modules[name])
    except BaseException:
        del sys.modules[name]
        raise
    return sys.modules[name]


def _import_error(place: str | Path, error: Exception) -> ExperimentError:
    return ExperimentError(f"importing {place} raised {type(error).__name__}: {error}")


def _search_first(folder: Path) -> None:
    """Put a folder first where Python looks for modules, unless it is among them already."""
    importlib.invalidate_caches()  # the file may be newer than the cached folder listing
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
