"""Imports classes and functions given as text: "package.module:name" or "path/to/file.py:name"."""

import importlib
import importlib.util
import sys
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, cast

from hpobench_ordered.data.extras import OPTUNA
from hpobench_ordered.errors import ExperimentError, MissingExtraError, UnknownNameError

if TYPE_CHECKING:
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec

FILE_PREFIX = "_file_"  # prefix of the name of a module whose file has the name of another module


def import_object(text: str) -> object:
    """Import the class, function or other object that a text names.

    Python's path for imports is extended by the folder of the file and by the current folder, which
    are searched before all others, as when Python runs a script there.

    Args:
        text: "package.module:name" or "path/to/file.py:name"; the name may have dots.

    Raises:
        UnknownNameError: There is no such file or module, or it has no such name.
        ExperimentError: The text is of another form, or importing the module raised an exception.
        MissingExtraError: The object is one of Optuna's, and Optuna is not installed.
    """
    module_or_file, _, name = text.rpartition(":")
    if not (module_or_file and name):
        raise ExperimentError(
            "an object to import must be 'package.module:name' or 'path/to/file.py:name', but "
            f"got {text!r}"
        )
    package, _, _ = module_or_file.partition(".")
    if package == OPTUNA.module:
        OPTUNA.check(text)  # its error says how to install Optuna
    if module_or_file.endswith(".py"):
        module = _import_file(Path(module_or_file).absolute())
    else:
        module = _import_module(module_or_file)
    return _find_attribute(module, name, module_or_file)


def _find_attribute(module: ModuleType, dotted_name: str, module_or_file: str) -> object:
    """Find a class, function or other object in a module.

    Args:
        module: The module.
        dotted_name: Name of the object, such as "name" or "Class.name".
        module_or_file: What the error message calls the module.

    Raises:
        UnknownNameError: The module has no such name.
    """
    item: object = module
    for name in dotted_name.split("."):
        if not hasattr(item, name):
            public_names = [attribute for attribute in dir(item) if not attribute.startswith("_")]
            raise UnknownNameError(f"name of {module_or_file}", dotted_name, public_names)
        item = getattr(item, name)
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
        if not _says_that_module_is_missing(error, name):
            raise _import_error(name, error) from error
    modules_here = [module.name for module in iter_modules([str(Path.cwd())])]
    raise UnknownNameError("module", name, modules_here)


def _says_that_module_is_missing(error: Exception, name: str) -> bool:
    """Whether an error says that there is no module of a name, or no package that contains it.

    An error about another module, which the module itself imports, does not say so.
    """
    if not isinstance(error, ImportError):
        return False
    missing_module = error.name or ""  # an `ImportError` need not say which module it is about
    # The dots keep "a.bc" from counting as a module in "a.b".
    return f"{name}.".startswith(f"{missing_module}.")


def _import_file(path: Path) -> ModuleType:
    """Import a file as a module; a file that was imported before is not imported again.

    The module has the name of the file, with a prefix if another module has that name.

    Raises:
        UnknownNameError: There is no such file.
        ExperimentError: The file raised an exception.
    """
    if not path.is_file():
        neighbours = [neighbour.name for neighbour in path.parent.glob("*.py")]
        raise UnknownNameError("file", path.name, neighbours, hint=f" (in {path.parent})")
    _search_first(Path.cwd())
    _search_first(path.parent)
    name = path.stem
    module_of_same_name = sys.modules.get(name)
    if module_of_same_name is not None:
        is_same_file = getattr(module_of_same_name, "__file__", "") == str(path)
        if is_same_file:
            return module_of_same_name
        name = FILE_PREFIX + name  # the other module, such as one of Python, keeps its name
    try:
        return _load_file(name, path)
    except Exception as error:
        raise _import_error(path, error) from error


def _load_file(name: str, path: Path) -> ModuleType:
    """Run a file as a new module of a name; if it raises, the module is removed again."""
    spec = cast("ModuleSpec", importlib.util.spec_from_file_location(name, path))
    module = importlib.util.module_from_spec(spec)
    # Registered before it runs, as Python does it: the module may look itself up.
    sys.modules[name] = module
    try:
        cast("Loader", spec.loader).exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _import_error(module_or_file: str | Path, error: Exception) -> ExperimentError:
    """Make the error that says what importing a user's module or file raised."""
    return ExperimentError(f"importing {module_or_file} raised {type(error).__name__}: {error}")


def _search_first(folder: Path) -> None:
    """Put a folder first where Python looks for modules, unless it is among them already."""
    importlib.invalidate_caches()  # the file may be newer than the cached folder listing
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
