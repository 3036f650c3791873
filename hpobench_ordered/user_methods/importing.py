"""Imports classes and functions given as text: "package.module:name" or "path/to/file.py:name"."""

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from hpobench_ordered.core.extras import OPTUNA
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.runtime.child import cloudpickle
from hpobench_ordered.user_methods.identity import is_installed

FILE_PREFIX = "_file_"  # prefix of the name of a module whose file has the name of another module


def import_object(text: str) -> object:
    """Import an object given as text.

    The folder of the file, then the current one, are searched first, as when Python runs a script
    there, and stay on the path. Objects from there are sent to other processes with their code.

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
    item: object = _from_file(Path(where).absolute()) if is_file else _from_name(where)
    for part in name.split("."):
        if not hasattr(item, part):
            allowed = [n for n in dir(item) if not n.startswith("_")]
            raise UnknownNameError(f"name of {where}", name, allowed)
        item = getattr(item, part)
    return item


def _from_name(name: str) -> ModuleType:
    folder = Path.cwd()
    _search_first(folder)
    try:
        return _loaded(name, folder)
    except ExperimentError as error:
        missing = getattr(error.__cause__, "name", None) or ""
        if not f"{name}.".startswith(f"{missing}."):
            raise
    parent = missing.rpartition(".")[0]
    around = getattr(sys.modules.get(parent), "__path__", []) if parent else [str(folder)]
    there = [f"{parent}.{module.name}".lstrip(".") for module in iter_modules(around)]
    raise UnknownNameError("module", name, there)


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        there = [p.name for p in path.parent.glob("*.py")]
        raise UnknownNameError("file", path.name, there, hint=f" (in {path.parent})")
    _search_first(Path.cwd())
    _search_first(path.parent)
    known: Any = sys.modules.get(path.stem) or importlib.util.find_spec(path.stem)
    if str(path) in (getattr(known, "__file__", None), getattr(known, "origin", None)):
        return _loaded(path.stem, path.parent)
    return _loaded(FILE_PREFIX + path.stem, path.parent, path)


def _loaded(name: str, folder: Path, file: Path | None = None) -> ModuleType:
    """Import a module, from `file` if it needs another name than that; or return the loaded one."""
    before = set(sys.modules)
    try:
        spec = importlib.util.spec_from_file_location(name, file) if file else None
        if spec is not None and spec.loader is not None:
            sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[name])
        module = importlib.import_module(name)
    except Exception as error:
        if file:
            sys.modules.pop(name, None)
        said = f"importing {file or name} raised {type(error).__name__}: {error}"
        raise ExperimentError(said) from error
    _send_with_their_code({name, *(set(sys.modules) - before)}, folder)
    return module


def _search_first(folder: Path) -> None:
    importlib.invalidate_caches()  # the file may be newer than the cached folder listing
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _send_with_their_code(names: Iterable[str], folder: Path) -> None:
    """Let joblib send objects of modules in the folder, which workers do not search, by value."""
    for name in names:
        module = sys.modules[name]
        file = Path(getattr(module, "__file__", None) or "")
        if file.is_relative_to(folder) and not is_installed(file):
            cloudpickle().register_pickle_by_value(module)
