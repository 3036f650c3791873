"""Modules whose file says something else than what was loaded from it."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from hpobench_ordered.errors import ExperimentError

_PLAIN = (type(None), bool, int, float, complex, str, bytes, tuple)


def refuse_edited(module: ModuleType | None, path: Path, content: bytes) -> None:
    """Refuse a module if its functions, or constants that are written out, are not its file's.

    Modules that are changed while they are loaded, as pytest does, are not looked at.

    Raises:
        ExperimentError: The file was edited since it was loaded, or a constant was set elsewhere.
    """
    if type(getattr(module, "__loader__", None)) is not SourceFileLoader:
        return
    try:
        tree = ast.parse(content)
        codes = {*_codes(compile(content, path, "exec", dont_inherit=True))}
    except (SyntaxError, ValueError):
        edited = ["its text"]
    else:
        stored = Counter(_stored(tree))
        edited = [*_edited(tree.body, vars(module), codes, {n for n in stored if stored[n] == 1})]
    if edited:
        raise ExperimentError(
            f"{edited[0]} in {path} is not what was loaded: the file was edited since, or the "
            "value was set from elsewhere. Start Python anew or reload the module, and give "
            "settings as arguments, so that what is recorded is what is run"
        )


def _edited(
    body: list[ast.stmt], loaded: Mapping[str, object], codes: set[CodeType], once: set[str]
) -> Iterator[str]:
    """What a module or class has by names of its text, and is not of its text.

    That is a function with other code than any in `codes`, or another constant of a name that is
    given a value `once`.
    """
    files = {Path(code.co_filename).name for code in codes}
    for node in body:
        if isinstance(node, ast.ClassDef) and isinstance(kind := loaded.get(node.name), type):
            yield from _edited(node.body, vars(kind), codes, once)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = loaded.get(node.name)
            code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
            if code and Path(code.co_filename).name in files and code not in codes:
                yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and target.id in once:
                    value = loaded.get(target.id, ...)
                    if isinstance(value, _PLAIN) and not _says(node.value, value):
                        yield target.id


def _says(text: ast.expr, value: object) -> bool:
    """Whether a text is that of a value, or has it computed."""
    try:
        return bool(ast.literal_eval(text) == value)
    except (TypeError, ValueError):
        return True


def _stored(tree: ast.AST) -> Iterator[str]:
    """Names that are given a value anywhere, once for each time."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.Global):
            yield from node.names


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a module or function, and of those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
