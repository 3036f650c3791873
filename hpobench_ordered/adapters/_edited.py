"""Detects modules whose source file was edited after it was loaded."""

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from hpobench_ordered.errors import ExperimentError

_PLAIN = (type(None), bool, int, float, complex, str, bytes, tuple)


def loaded_modules() -> defaultdict[str, list[ModuleType]]:
    """Loaded modules by file."""
    modules = defaultdict[str, list[ModuleType]](list)
    for module in [*sys.modules.values()]:
        modules[str(getattr(module, "__file__", ""))].append(module)
    return modules


def refuse_edited(module: ModuleType, path: Path, content: bytes) -> None:
    """Raise an ExperimentError if functions or literal constants differ from those loaded."""
    is_as_written = type(module.__loader__) is SourceFileLoader
    if is_as_written and (edited := next(_edited(module, path, content), "")):
        raise ExperimentError(
            f"{edited} in {path} is not what was loaded: the file was edited since, or the "
            "value was set from elsewhere. Start Python anew or reload the module, and give "
            "settings as arguments, so that what is recorded is what is run"
        )


def _edited(module: ModuleType, path: Path, content: bytes) -> Iterator[str]:
    """Names of functions and constants that differ between a loaded module and its file."""
    try:
        tree = ast.parse(content)
        codes = [compile(content, path, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        yield "its text"
        return
    for outer in codes:  # grows as nested code is found
        codes += [inner for inner in outer.co_consts if isinstance(inner, CodeType)]
    constants = _constants(tree)
    for name, value in _named(vars(module), module.__name__):
        code = getattr(getattr(value, "__wrapped__", value), "__code__", None)
        is_function = isinstance(code, CodeType) and Path(code.co_filename).absolute() == path
        is_constant = name in constants and isinstance(value, _PLAIN)
        if (is_function and code not in codes) or (is_constant and constants[name] != value):
            yield name


def _named(loaded: Mapping[str, Any], module: str, inside: str = "") -> Iterator[tuple[str, Any]]:
    """The members of a module and of its classes, by qualified name."""
    for name, value in [*loaded.items()]:
        yield inside + name, value
        own = (module, inside + name)
        if isinstance(value, type) and (value.__module__, value.__qualname__) == own:
            yield from _named(vars(value), module, f"{inside}{name}.")


def _constants(tree: ast.Module) -> dict[str, object]:
    """Literal constants of a module and its classes that are assigned exactly once."""
    stored = Counter(
        getattr(node, "id", None) or getattr(node, "attr", None)
        for node in ast.walk(tree)
        if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
    )
    constants: dict[str, object] = {}
    blocks: list[tuple[str, ast.Module | ast.ClassDef]] = [("", tree)]
    for inside, block in blocks:  # grows as nested classes are found
        for part in block.body:
            if isinstance(part, ast.ClassDef):
                blocks.append((f"{inside}{part.name}.", part))
            elif isinstance(part, ast.Assign | ast.AnnAssign) and part.value is not None:
                for target in part.targets if isinstance(part, ast.Assign) else [part.target]:
                    if isinstance(target, ast.Name) and stored[target.id] == 1:
                        with suppress(TypeError, ValueError):  # not a literal
                            constants[inside + target.id] = ast.literal_eval(part.value)
    return constants
