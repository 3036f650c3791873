"""Loads a method from its files, in a process that was started for it.

The files are compiled as they are now: Python's cached bytecode, which is compared by size and by
seconds, may be older. The hash of what was compiled is noted, so that it is known exactly, even if
a file is edited a moment later.
"""

import hashlib
import importlib.util
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader, all_suffixes
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from hpobench_ordered.experiment.user_methods.module_files import (
    is_installed,
    is_of_package,
    is_standard,
)
from hpobench_ordered.methods.wrapping.naming import SCRIPT_NAMES

LOADABLE_SUFFIXES = frozenset(all_suffixes())
"""Suffixes of files whose kind Python knows; others are read as Python source."""


class EndOfScriptError(BaseException):
    """Ends the execution of the user's program here, where it would start an experiment."""


@dataclass(frozen=True)
class Script:
    """The program that was started: `python file` or `python -m module`."""

    file: str
    module: str  # "" if it was started by its file


@dataclass(frozen=True)
class MethodSource:
    """A method in the form in which another process loads it; calling it there makes an optimiser.

    Attributes:
        content: The pickled method.
        digest: Hash of what its classes, functions and arguments are, without the code of those
            with a file; the same in every process. "" if something has no file.
        modules: Names and files of the user's modules that it needs.
        script: The user's program, if it needs something defined there.
        search_path: `sys.path`.
        arguments: `sys.argv`.
    """

    content: bytes
    digest: str
    modules: tuple[tuple[str, str], ...]
    script: Script | None
    search_path: tuple[str, ...]
    arguments: tuple[str, ...]

    def __call__(self, **setting: Any) -> Any:
        """Make the optimiser of one task; the method is loaded once in a process."""
        return load_method(self)(**setting)

    @property
    def folder(self) -> Path:
        """The folder of its first file, which the places of others are relative to."""
        files = [file for _, file in self.modules]
        if self.script is not None:
            files.append(self.script.file)
        if not files:  # all of it is installed or of this package
            return Path.cwd()
        return Path(files[0]).absolute().parent


@dataclass
class _Loading:
    """What this process has loaded from files.

    Attributes:
        compiled: File and hash of the compiled text of each module.
        methods: Loaded methods by their pickles.
        is_running_script: Whether the user's program is being executed to define what is in it.
    """

    compiled: dict[str, tuple[Path, str]] = field(default_factory=dict)
    methods: dict[bytes, Any] = field(default_factory=dict)
    is_running_script: bool = False


_loading = _Loading()


def end_script() -> None:
    """End the user's program if this process executes it only to load a method from it.

    Experiments call this first, so that a program without `if __name__ == "__main__":` does not
    start its experiment again in every process of it.

    Raises:
        EndOfScriptError: This process is such a one.
    """
    if _loading.is_running_script:
        raise EndOfScriptError


def compiled_files() -> dict[str, tuple[Path, str]]:
    """File and hash of the text that was compiled, by name of the module."""
    return dict(_loading.compiled)


def load_method(source: MethodSource) -> Any:
    """Import what a method needs, and return the method, the same one each time.

    Raises:
        Exception: Whatever the user's files raise; or they do not define it.
    """
    if source.content in _loading.methods:
        return _loading.methods[source.content]

    # As in the process that the user started, so that the same files are imported, and never
    # from cached bytecode, which may be older than they are.
    sys.path[:] = dict.fromkeys((*source.search_path, *sys.path))
    sys.argv[:] = source.arguments
    SourceFileLoader.get_code = _compile_as_it_is  # type: ignore[method-assign, assignment]

    if source.script is not None:
        _run_script(source.script)
    for name, file in source.modules:
        _import_from_file(name, file)

    method = pickle.loads(source.content)
    _loading.methods[source.content] = method
    return method


def find_function(
    module: str, code: CodeType, closure: tuple[object, ...]
) -> Callable[..., object]:
    """Make a lambda or inner function, which has no name to import it by, from its module's file.

    It is the function there that has the same code as when the method was pickled.

    Args:
        module: Name of the module, which is loaded.
        code: The compiled code of the function as it was then.
        closure: Values of the variables that the function uses from the functions around it.

    Raises:
        LookupError: There is none: the file has changed.
    """
    namespace = sys.modules[module]
    file = Path(str(namespace.__file__))
    unsearched = [compile(file.read_bytes(), file, "exec", dont_inherit=True)]
    while unsearched:
        candidate = unsearched.pop(0)
        if candidate == code:
            cells = tuple(map(CellType, closure))
            return FunctionType(candidate, vars(namespace), closure=cells)
        # The code of inner functions and classes is among the constants of the outer code.
        unsearched += [inner for inner in candidate.co_consts if isinstance(inner, CodeType)]
    raise LookupError(f"{code.co_qualname} is not in {file} any more")


def _compile_as_it_is(loader: SourceFileLoader, name: str) -> CodeType | None:
    """Replacement of `SourceFileLoader.get_code` that reads no cached bytecode of user's files.

    Cached bytecode may be older than a file that was edited within the same second. Other files,
    which nobody edits, are loaded as always.
    """
    file = Path(loader.get_filename(name)).absolute()
    is_of_user = not (is_installed(file) or is_standard(file) or is_of_package(file))
    if is_of_user:
        return _compile_and_hash(name, file)
    # Only `SourceFileLoader` has the replacement: its base class has the method as it was.
    return super(SourceFileLoader, loader).get_code(name)


def _compile_and_hash(name: str, file: Path) -> CodeType:
    """Compile the file of a module, and note the hash of the text that was compiled."""
    text = file.read_bytes()
    _loading.compiled[name] = (file, hashlib.sha256(text).hexdigest())
    code: CodeType = compile(text, file, "exec", dont_inherit=True)
    return code


def _run_script(script: Script) -> None:
    """Execute the user's program up to where it would start an experiment.

    What it defines is then in a module, which can be found under both `SCRIPT_NAMES`: "__main__",
    as the method's pickle names it, and "__mp_main__". The latter is its `__name__`, so that
    `if __name__ == "__main__":` is False here.
    """
    module = ModuleType(SCRIPT_NAMES[1])
    module.__file__ = script.file
    if script.module:
        module.__package__ = script.module.rpartition(".")[0]
    for name in SCRIPT_NAMES:
        sys.modules[name] = module
    code = _compile_and_hash(SCRIPT_NAMES[0], Path(script.file))
    _loading.is_running_script = True
    try:
        exec(code, vars(module))
    except EndOfScriptError:  # it came to an experiment: all that the method needs is defined
        pass
    finally:
        _loading.is_running_script = False


def _import_from_file(name: str, file: str) -> None:
    """Import a module by its name if that leads to its file, else from the file.

    Does nothing if a module of the name is loaded.
    """
    if name in sys.modules:
        return
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # such as a package of its name that is missing
        spec = None
    leads_to_file = spec is not None and spec.origin == file  # not to another of the same name
    if leads_to_file:
        importlib.import_module(name)
        return

    # Python chooses a loader by the suffix; a file of an unknown suffix is read as Python source.
    loader = None
    if Path(file).suffix not in LOADABLE_SUFFIXES:
        loader = SourceFileLoader(name, file)
    spec = importlib.util.spec_from_file_location(name, file, loader=loader)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs, as Python does: the module may look itself up
    spec.loader.exec_module(module)
