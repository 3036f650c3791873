"""Modules import each other in one direction."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import hpobench_ordered

ROOT = Path(hpobench_ordered.__file__).parent
NAME = "hpobench_ordered"


def modules() -> dict[str, Path]:
    """All modules of the package by their dotted names."""
    paths = {}
    for path in [*ROOT.rglob("*.py"), *(p for link in links() for p in link.rglob("*.py"))]:
        parts = [NAME, *path.relative_to(ROOT).with_suffix("").parts]
        paths[".".join(parts).removesuffix(".__init__")] = path
    return paths


def links() -> Iterator[Path]:
    return (path for path in ROOT.iterdir() if path.is_symlink() and path.name != "artifacts")


def imports(path: Path) -> Iterator[str]:
    """Names that a module imports, those in functions and those for types alone included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_imports_form_no_circle():
    known = modules()
    assert len(known) > 150
    graph: dict[str, set[str]] = {}
    for name, path in known.items():
        targets = set()
        for imported in imports(path):
            target = imported if imported in known else imported.rpartition(".")[0]
            if target in known and target != name:
                targets.add(target)
        graph[name] = targets
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(f"imports in a circle: {' -> '.join(error.args[1])}") from None
