"""What another process needs to load a method from its files.

A method is pickled so that its classes and functions are named by where they are, and only the
values of arguments are stored. A process that unpickles it imports them afresh: whatever was
edited, set or patched in the user's session is not there. What has no file, such as a class typed
into a session or made by a function, is stored with its code instead.
"""

import hashlib
import io
import marshal
import pickle
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.machinery import PathFinder
from operator import attrgetter
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from hpobench_ordered.experiment.user_methods.loading import (
    MethodSource,
    Script,
    end_script,
    find_function,
)
from hpobench_ordered.experiment.user_methods.module_files import (
    is_installed,
    is_of_package,
    is_standard,
)
from hpobench_ordered.methods.wrapping.naming import SCRIPT_NAMES
from hpobench_ordered.runtime.child import cloudpickle, pickle_call

SHARED_PACKAGES = frozenset({"hpobench_ordered", "numpy"})
"""Packages that every process has, and whose objects are part of arguments."""


def source_in_files(method: object) -> MethodSource | None:
    """Describe where the code of a method is; None if some of it has no file.

    None, too, if the values of its arguments cannot be hashed such that equal ones have the same
    hash in every process.
    """
    end_script()  # ends the program here if it is only executed to load a method from it
    pickler = _ReferencePickler()
    try:
        pickler.dump(method)
        digest = digest_of_method(method)
    except Exception:  # pickling a user's objects may raise anything
        return None
    module_names = pickler.module_names
    if not all(map(_has_file, module_names)):
        return None
    # The user's program, if some of the method is defined there.
    is_in_script = any(name in module_names for name in SCRIPT_NAMES)
    script = _find_script() if is_in_script else None
    return _make_source(pickler.content, module_names, digest=digest, script=script)


def source_by_value(method: object) -> MethodSource:
    """Describe a method by its pickle, with the code of what cannot be imported.

    Raises:
        ExperimentError: It refers to what cannot be sent to another process, such as a lock.
    """
    end_script()  # ends the program here if it is only executed to load a method from it
    content, module_names = _pickle_by_value(method)
    # Without a hash, as nothing identifies code that has no file.
    return _make_source(content, module_names, digest="", script=None)


def _make_source(
    content: bytes, module_names: Iterable[str], *, digest: str, script: Script | None
) -> MethodSource:
    """Add what any process needs to import the modules: their files, `sys.path` and `sys.argv`."""
    return MethodSource(
        content=content,
        digest=digest,
        modules=tuple(_list_user_modules(module_names)),
        script=script,
        search_path=tuple(sys.path),
        arguments=tuple(sys.argv),
    )


def uses_only_this_package(method: object) -> bool:
    """Whether all classes and functions of a method are of this package or Python's own."""
    pickler = _ReferencePickler()
    try:
        pickler.dump(method)
    except Exception:  # pickling a user's objects may raise anything
        return False
    top_modules = {name.partition(".")[0] for name in pickler.module_names}
    # `SHARED_PACKAGES` are this package and numpy, whose objects may be arguments.
    return all(map(_is_standard_module, top_modules - SHARED_PACKAGES))


def rebuild_function(
    module: str,
    code: bytes,
    defaults: tuple[object, ...] | None,
    keyword_defaults: dict[str, object] | None,
    closure: tuple[object, ...],
    attributes: dict[str, object],
) -> Callable[..., object]:
    """Make a lambda or an inner function again, from its file as it is now.

    Args:
        module: Name of its module, which is loaded.
        code: Its compiled code, by which it is found in the file, as bytes of `marshal`.
        defaults: Default values of positional arguments.
        keyword_defaults: Default values of other arguments.
        closure: Values of the variables that it uses from the functions around it.
        attributes: Attributes that were set on it.
    """
    function = find_function(module, marshal.loads(code), closure)
    function.__defaults__ = defaults
    function.__kwdefaults__ = keyword_defaults
    vars(function).update(attributes)
    return function


def find_attribute(module: str, qualified_name: str) -> Any:
    """A class or function of a loaded module."""
    return attrgetter(qualified_name)(sys.modules[module])


class _ReferencePickler(pickle.Pickler):
    """Pickles code by name, lambdas and inner functions by their place in the file."""

    def __init__(self) -> None:
        """Pickle into memory; `content` is the pickle."""
        self._file = io.BytesIO()
        super().__init__(self._file, protocol=5)
        # Modules of classes and functions, in the order of their first use; a dict as ordered set.
        self.module_names: dict[str, None] = {}

    @property
    def content(self) -> bytes:
        return self._file.getvalue()

    def persistent_id(self, thing: object) -> None:
        """Note the module of a class, function or module.

        `pickle` calls this for every object. As nothing is returned, it is pickled as usual.
        """
        if isinstance(thing, type | FunctionType):
            self.module_names.setdefault(thing.__module__)
        elif isinstance(thing, ModuleType):
            self.module_names.setdefault(thing.__name__)

    def reducer_override(self, thing: object) -> Any:
        """What is pickled in place of an object: a function and arguments that make it again.

        That is so for modules, unnamed functions, and what is loaded from a file alone. For others
        NotImplemented tells `pickle` to proceed as usual.
        """
        if isinstance(thing, ModuleType):
            return import_module, (thing.__name__,)
        if isinstance(thing, FunctionType) and _is_unnamed(thing):
            code = marshal.dumps(thing.__code__)
            return rebuild_function, (thing.__module__, code, *_list_function_values(thing))
        if _is_loaded_from_file_alone(thing):
            return find_attribute, _find_place(thing)
        return NotImplemented


class _DigestPickler(pickle.Pickler):
    """Pickles equal values to equal bytes, in every process."""

    def __init__(self) -> None:
        """Pickle into memory; `content` is the pickle."""
        self._file = io.BytesIO()
        super().__init__(self._file, protocol=4)
        # No memo: it would tell whether objects are identical or only equal.
        self.fast = True

    @property
    def content(self) -> bytes:
        return self._file.getvalue()

    def persistent_id(self, thing: object) -> object:
        """What is pickled in place of an object whose pickle differs between processes.

        These are modules, sets, unnamed functions, and what is loaded from a file alone. None: the
        object is pickled as usual.
        """
        if isinstance(thing, ModuleType):
            return thing.__name__
        if isinstance(thing, set | frozenset):  # its order differs from process to process
            return sorted(thing, key=repr)
        if isinstance(thing, FunctionType) and _is_unnamed(thing):
            positions = str(list(thing.__code__.co_positions()))
            return [thing.__qualname__, positions, *_list_function_values(thing)]
        if _is_loaded_from_file_alone(thing):
            return _find_place(thing)
        return None


def digest_of_method(method: object) -> str:
    """Hash of the names and arguments of a method; equal ones have the same in every process."""
    pickler = _DigestPickler()
    pickler.dump(method)
    return hashlib.sha256(pickler.content).hexdigest()


def _pickle_by_value(method: object) -> tuple[bytes, dict[str, None]]:
    """Pickle a method with the code of what cannot be imported.

    Returns:
        The pickle, and the names of the modules of its classes and functions, in the order of
        their first use.
    """
    module_names: dict[str, None] = {}  # as an ordered set

    class Pickler(cloudpickle().Pickler):  # type: ignore[misc]
        def persistent_id(self, thing: object) -> None:
            """Note the module of a class or function.

            `pickle` calls this for every object. As nothing is returned, it is pickled as usual.
            """
            if isinstance(thing, type | FunctionType):
                module_names.setdefault(thing.__module__)

    file = io.BytesIO()
    try:
        Pickler(file).dump(method)
    except Exception:
        pickle_call(lambda: method)  # raises an `ExperimentError` that says what cannot be sent
        raise  # reached only if that could be pickled after all
    return file.getvalue(), module_names


def _is_loaded_from_file_alone(thing: object) -> bool:
    """Whether a class or function is of a module whose package cannot be imported.

    Test runners load a file as package.module without the package being on the path. pickle would
    import the package, and fail.
    """
    if not isinstance(thing, type | FunctionType):
        return False
    package, dot, _ = thing.__module__.partition(".")
    # `SHARED_PACKAGES`: this package and numpy.
    is_standard_or_ours = package in sys.stdlib_module_names or package in SHARED_PACKAGES
    is_in_package = dot != ""
    return is_in_package and not is_standard_or_ours and PathFinder.find_spec(package) is None


def _find_place(thing: Any) -> tuple[str, str]:
    """Module and name of a class or function.

    Raises:
        pickle.PicklingError: Something else is there under its name.
    """
    if find_attribute(thing.__module__, thing.__qualname__) is not thing:
        raise pickle.PicklingError(f"{thing!r} is not what its module has under its name")
    return thing.__module__, thing.__qualname__


def _is_unnamed(function: FunctionType) -> bool:
    """Whether a function is a lambda or inside of another one, so that no import finds it.

    Its name then contains "<lambda>" or "<locals>".
    """
    return "<" in function.__qualname__


def _list_function_values(function: FunctionType) -> list[object]:
    """What a function has beside its code: defaults, the values it encloses, and attributes."""
    closure = tuple(cell.cell_contents for cell in function.__closure__ or ())
    return [function.__defaults__, function.__kwdefaults__, closure, vars(function)]


def _has_file(name: str) -> bool:
    """Whether the code of a module is in a file, or part of Python."""
    if name in SCRIPT_NAMES:  # the user's program or session
        return _find_script() is not None
    return _is_standard_module(name) or _find_file(name) is not None


def _is_standard_module(name: str) -> bool:
    """Whether a module is Python's own, and not a file of the user with the same name."""
    if name.partition(".")[0] not in sys.stdlib_module_names:
        return False
    file = _find_file(name)
    return file is None or is_standard(file)


def _find_file(name: str) -> Path | None:
    """The file of a loaded module; None if it has none."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if isinstance(file, str) and Path(file).exists():
        return Path(file).absolute()
    return None


def _find_script() -> Script | None:
    """The user's program; None in an interactive session."""
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    is_interactive = hasattr(sys, "ps1")  # the prompt, which only interactive sessions have
    if is_interactive or file is None or not Path(file).is_file():
        return None
    spec = getattr(main, "__spec__", None)  # that of MODULE after `python -m MODULE`, else None
    module = "" if spec is None else spec.name
    return Script(str(Path(file).absolute()), module)


def _list_user_modules(names: Iterable[str]) -> list[tuple[str, str]]:
    """Names and files of the user's modules, neither installed nor of Python or this package.

    The user's program (`SCRIPT_NAMES`) is left out: it is not imported as a module, but described
    as a script.
    """
    modules = []
    for name in names:
        file = _find_file(name)
        if name in SCRIPT_NAMES or file is None:
            continue
        is_of_user = not (is_standard(file) or is_installed(file) or is_of_package(file))
        if is_of_user:
            modules.append((name, str(file)))
    return modules
