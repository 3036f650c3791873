"""How another process loads a method: from its files, as they are now.

A method is pickled: its classes and functions by their names, and only its arguments by value. The
process that unpickles it imports the names afresh, so that whatever was edited, set or patched in
the user's session is not there. What no import finds, such as a lambda or a class that was typed
into a notebook, is sent with its code instead.
"""

import io
import pickle
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.experiment.user_methods.loaded_code import find_user_files
from hpobench_ordered.methods.wrapping.naming import SCRIPT_NAMES
from hpobench_ordered.runtime.child import pickle_value

SHARED_PACKAGES = frozenset({"hpobench_ordered", "numpy"})
"""Packages that every process has, and whose objects are arguments of this package's methods."""


class EndOfScriptError(BaseException):
    """Ends the execution of the user's program here, where it would start an experiment."""


class Script(NamedTuple):
    """The user's program: its file, and its package ("" unless started by `python -m`)."""

    file: str
    package: str


@dataclass(frozen=True)
class MethodSource:
    """A method in the form in which another process loads it; calling it there makes an optimiser.

    Attributes:
        content: The pickled method.
        folder: The folder of the method's first file.
        script: The user's program, if the method needs something that is defined there.
        files: Names and files of all modules of the user.
        search_path: `sys.path`.
        arguments: `sys.argv`.
    """

    content: bytes
    folder: Path
    script: Script | None
    # These change in the process of the user, who imports other modules, too.
    files: tuple[tuple[str, str], ...] = field(compare=False)
    search_path: tuple[str, ...] = field(compare=False)
    arguments: tuple[str, ...] = field(compare=False)

    def __call__(self, **settings: Any) -> Any:
        """Make the optimiser of one task; the method is loaded once in a process."""
        return load_method(self)(**settings)


_running_scripts = set[str]()
"""Files of the user's programs that this process executes, only to define what is in them."""


def end_script() -> None:
    """End the user's program if this process executes it only to load a method from it.

    Experiments call this first, so that a program without `if __name__ == "__main__":` does not
    start its experiment again in every process of it.

    Raises:
        EndOfScriptError: This process is such a one.
    """
    if _running_scripts:
        raise EndOfScriptError


def find_source(method: object) -> MethodSource:
    """Describe how a method is loaded from its files.

    Raises:
        ExperimentError: Some of it is defined in an interactive session, which has no file.
        Exception: It cannot be pickled, for example because it is a lambda.
    """
    content = pickle.dumps(method)
    modules = list_modules(content)
    is_in_script = any(name in modules for name in SCRIPT_NAMES)
    script = _find_script() if is_in_script else None
    return _make_source(content, modules, script)


def find_source_by_value(method: object) -> MethodSource:
    """Describe how a method is loaded from its pickle, which has the code of what has no name.

    Raises:
        ExperimentError: It refers to what cannot be sent to another process, such as a lock.
    """
    return _make_source(pickle_value(method), modules=(), script=None)


def uses_only_this_package(method: object) -> bool:
    """Whether all classes and functions of a method are of this package or Python's own."""
    try:
        modules = list_modules(pickle.dumps(method))
    except Exception:  # pickling a user's objects may raise anything
        return False
    top_modules = {name.partition(".")[0] for name in modules}
    return top_modules <= SHARED_PACKAGES | sys.stdlib_module_names


def list_modules(content: bytes) -> list[str]:
    """List the modules of the classes and functions in a pickle, in the order of their use."""
    modules = []

    class Lister(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            """Note the module of a class or function; `pickle` calls this for each."""
            modules.append(module)
            return super().find_class(module, name)

    Lister(io.BytesIO(content)).load()
    return list(dict.fromkeys(modules))


@cache
def load_method(source: MethodSource) -> Any:
    """Import what a method needs, and return the method, the same one each time.

    Raises:
        Exception: Whatever the user's files raise; or they do not define it.
    """
    # As in the process that the user started, so that the same files are imported.
    sys.path[:] = dict.fromkeys((*source.search_path, *sys.path))
    sys.argv[:] = source.arguments
    sys.meta_path.insert(0, _UserModuleFinder(dict(source.files)))
    if source.script is not None:
        _run_script(source.script)
    return pickle.loads(source.content)


class _UserModuleFinder(MetaPathFinder):
    """Finds the user's modules in the files from which the user's process has imported them."""

    def __init__(self, files: Mapping[str, str]) -> None:
        """Remember the file of each module, by its name."""
        self._files = files

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module; Python calls this whenever one is imported, with the path of its package.

        Test runners load a file as package.module, where no import finds the package. It is then an
        empty one.
        """
        if name in self._files:
            return spec_from_file_location(name, self._files[name])
        has_files = any(module.startswith(f"{name}.") for module in self._files)
        if has_files and PathFinder.find_spec(name, path) is None:
            return ModuleSpec(name, loader=None, is_package=True)
        return None


def _make_source(content: bytes, modules: Sequence[str], script: Script | None) -> MethodSource:
    """Add what any process needs to import the modules: their files, `sys.path` and `sys.argv`."""
    files = find_user_files()
    method_files = [files[name] for name in modules if name in files]
    imported_files = [(name, str(file)) for name, file in files.items() if name not in SCRIPT_NAMES]
    return MethodSource(
        content=content,
        folder=method_files[0].parent if method_files else Path.cwd(),
        script=script,
        files=tuple(imported_files),
        search_path=tuple(map(str, sys.path)),
        arguments=tuple(sys.argv),
    )


def _find_script() -> Script:
    """The user's program.

    Raises:
        ExperimentError: There is none, but an interactive session.
    """
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    is_interactive = hasattr(sys, "ps1")  # the prompt, which only interactive sessions have
    if is_interactive or file is None or not Path(file).is_file():
        raise ExperimentError("what is defined in an interactive session has no file")
    return Script(str(Path(file).absolute()), main.__package__ or "")


def _run_script(script: Script) -> None:
    """Execute the user's program up to where it would start an experiment.

    What it defines is then in a module, which can be found under both `SCRIPT_NAMES`: "__main__",
    as the method's pickle names it, and "__mp_main__". The latter is its `__name__`, so that
    `if __name__ == "__main__":` is False here.
    """
    module = ModuleType(SCRIPT_NAMES[1])
    module.__file__ = script.file
    module.__package__ = script.package
    for name in SCRIPT_NAMES:
        sys.modules[name] = module
    code = compile(Path(script.file).read_bytes(), script.file, "exec", dont_inherit=True)
    _running_scripts.add(script.file)
    try:
        exec(code, vars(module))
    except EndOfScriptError:  # it came to an experiment: all that the method needs is defined
        pass
    finally:
        _running_scripts.remove(script.file)
