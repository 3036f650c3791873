"""Imports classes and functions given as text: "package.module:name" or "path/to/file.py:name"."""

import importlib
import importlib.util
import sys
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from hpobench_ordered.core.extras import OPTUNA
from hpobench_ordered.errors import ExperimentError, UnknownNameError

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
    where, _, name = text.rpartition(":")
    if not (where and name):
        raise ExperimentError(
            "an object to import must be 'package.module:name' or 'path/to/file.py:name', but "
            f"got {text!r}"
        )
    if where.partition(".")[0] == OPTUNA.module:
        OPTUNA.check(text)
    is_file = where.endswith(".py")
    module = _import_file(Path(where).absolute()) if is_file else _import_name(where)
    item: object = module
    for part in name.split("."):
        if not hasattr(item, part):
            allowed = [attribute for attribute in dir(item) if not attribute.startswith("_")]
            raise UnknownNameError(f"name of {where}", name, allowed)
        item = getattr(item, part)
    return item


def _import_name(name: str) -> ModuleType:
    _search_first(Path.cwd())
    try:
        return importlib.import_module(name)
    except Exception as error:
        missing = getattr(error, "name", None) or ""
        is_missing_itself = f"{name}.".startswith(f"{missing}.")
        if not (isinstance(error, ImportError) and is_missing_itself):
            raise _import_error(name, error) from error
    parent = missing.rpartition(".")[0]
    folders = getattr(sys.modules.get(parent), "__path__", []) if parent else [str(Path.cwd())]
    allowed = [f"{parent}.{module.name}".lstrip(".") for module in iter_modules(folders)]
    raise UnknownNameError("module", name, allowed)


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        allowed = [neighbour.name for neighbour in path.parent.glob("*.py")]
        raise UnknownNameError("file", path.name, allowed, hint=f" (in {path.parent})")
    _search_first(Path.cwd())
    _search_first(path.parent)
    module: Any = sys.modules.get(path.stem) or importlib.util.find_spec(path.stem)
    is_importable = str(path) in (getattr(module, "__file__", ""), getattr(module, "origin", ""))
    name = path.stem if is_importable else FILE_PREFIX + path.stem
    try:
        return importlib.import_module(name) if is_importable else _load_file(name, path)
    except Exception as error:
        raise _import_error(path, error) from error


def _load_file(name: str, path: Path) -> ModuleType:
    """Import a file whose name is that of another module."""
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
    importlib.invalidate_caches()  # the file may be newer than the cached folder listing
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
