"""Classes and functions found by a text: "package.module:name" or "path/to/file.py:name"."""

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from hpobench_ordered.adapters.identity import is_installed
from hpobench_ordered.core.extras import OPTUNA
from hpobench_ordered.errors import ExperimentError, UnknownNameError

FILE_PREFIX = "_file_"
"""Stands before the name of a module whose file is called like another module."""


def import_object(text: str) -> object:
    """Import what a text names.

    The folder of the file, and then the current one, are searched first, as when Python runs a
    script there, and stay importable. What is imported from there is sent to other processes with
    its code: they need not find it.

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
            "what is imported is named 'package.module:name' or 'path/to/file.py:name', "
            f"got {text!r}"
        )
    if where.partition(".")[0] == OPTUNA.module:
        OPTUNA.check(text)
    module = _from_file(Path(where)) if where.endswith(".py") else _from_name(where)
    item: object = module
    for part in name.split("."):
        if not hasattr(item, part):
            allowed = [n for n in vars(item) if not n.startswith("_")]
            raise UnknownNameError(f"name of {where}", name, allowed)
        item = getattr(item, part)
    return item


def _from_name(name: str) -> ModuleType:
    folder = Path.cwd()
    _search_first(folder)
    parent = name.rpartition(".")[0]
    around = getattr(_from_name(parent), "__path__", []) if parent else [str(folder)]
    try:
        spec = importlib.util.find_spec(name)
    except (ModuleNotFoundError, ValueError):  # the parent is no package, or is half made by hand
        spec = None
    if spec is None and name not in sys.modules:
        prefix = f"{parent}." if parent else ""
        raise UnknownNameError("module", name, [prefix + m.name for m in iter_modules(around)])
    return _imported(name, folder)


def _from_file(path: Path) -> ModuleType:
    path = path.absolute()
    if not path.is_file():
        there = [p.name for p in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise UnknownNameError("file", path.name, there, hint=f" (in {path.parent})")
    _search_first(Path.cwd())
    _search_first(path.parent)
    if _finds(path):
        return _imported(path.stem, path.parent)
    name = FILE_PREFIX + path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ExperimentError(f"{path} cannot be imported")
    before = set(sys.modules)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise _failed(str(path), error) from error
    _send_with_their_code({name, *(set(sys.modules) - before)}, path.parent)
    return module


def _finds(path: Path) -> bool:
    """Whether importing the file's name gives the file, and not another module of that name."""
    known = sys.modules.get(path.stem)
    if known is not None:
        return getattr(known, "__file__", None) == str(path)
    spec = importlib.util.find_spec(path.stem)
    return spec is not None and spec.origin == str(path)


def _imported(name: str, folder: Path) -> ModuleType:
    before = set(sys.modules)
    try:
        module = importlib.import_module(name)
    except Exception as error:
        raise _failed(name, error) from error
    _send_with_their_code({name, *(set(sys.modules) - before)}, folder)
    return module


def _failed(what: str, error: Exception) -> ExperimentError:
    return ExperimentError(f"importing {what} raised {type(error).__name__}: {error}")


def _search_first(folder: Path) -> None:
    importlib.invalidate_caches()  # a file may be younger than the last look into its folder
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _send_with_their_code(names: Iterable[str], folder: Path) -> None:
    """Let joblib's processes get by value what the modules define that are in the folder.

    Processes that run already do not search the folder, so that they find none of them.
    """
    for name in names:
        module = sys.modules[name]
        file = Path(getattr(module, "__file__", None) or "")
        if file.is_relative_to(folder) and not is_installed(file):
            cloudpickle().register_pickle_by_value(module)


def cloudpickle() -> Any:
    """The cloudpickle that joblib uses: before 1.6 a copy of its own."""
    try:
        return importlib.import_module("joblib.externals.cloudpickle")
    except ModuleNotFoundError:
        return importlib.import_module("cloudpickle")
