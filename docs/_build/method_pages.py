"""Pages of the registered methods: hand-written text and generated facts."""

import ast
import inspect
import sys
from collections.abc import Iterator
from itertools import pairwise

from markdown_text import code, facts, plain, table

import hpobench_ordered as hbo
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.registry import method_spec

MARKER = "<!-- facts -->"
"""Where the facts go in a hand-written page."""


def settings(source: str) -> Iterator[tuple[str, str, str]]:
    """Find the described constants of a module: name (or names), value as written, description."""
    for statement, following in pairwise(ast.parse(source).body):
        if not isinstance(statement, ast.Assign) or not isinstance(following, ast.Expr):
            continue
        targets = ast.walk(statement.targets[0])
        names = [node.id for node in targets if isinstance(node, ast.Name)]
        is_constant = all(name.isupper() for name in names)
        description = following.value
        if is_constant and isinstance(description, ast.Constant):
            value = ast.unparse(statement.value).strip("()")
            yield ", ".join(names), value, str(description.value)


def overview() -> str:
    """The table of all methods."""
    rows = []
    for name in hbo.list_methods():
        spec = method_spec(name)
        rows.append(
            (
                f"[{name}]({name}.md)",
                plain(spec.summary),
                str(spec.min_history),
                _yes_or_no(spec.changed_spaces),
                _yes_or_no(spec.uses_data),
            )
        )
    columns = ("method", "summary", ">earlier tasks", "changed spaces", "training data")
    return table(columns, rows)


def draft(spec: MethodSpec) -> str:
    """The page of a method that has no hand-written one."""
    return f"# {spec.name}\n\n{plain(spec.summary)}\n\n{MARKER}\n"


def filled(text: str, spec: MethodSpec) -> str:
    """Put the facts in their place, and the class's description at the end.

    Raises:
        ValueError: The page has no place for them.
    """
    if MARKER not in text:
        raise ValueError(f"the page of method {spec.name!r} lacks {MARKER}")
    path = f"{spec.method.__module__}.{spec.method.__qualname__}"
    reference = f"\n\n## Class\n\n::: {path}\n    options:\n      members: false\n"
    return text.replace(MARKER, described(spec)) + reference


def described(spec: MethodSpec) -> str:
    """The facts about a method, from the registry and its module."""
    facts_of_spec = facts(
        [
            ("Name", code(spec.name)),
            ("Source", plain(spec.source)),
            ("Earlier tasks it needs", str(spec.min_history)),
            ("Copes with changed search spaces", _yes_or_no(spec.changed_spaces)),
            ("Looks at training data", _yes_or_no(spec.uses_data)),
            ("Module", code(spec.method.__module__)),
        ]
    )
    source = inspect.getsource(sys.modules[spec.method.__module__])
    rows = [(code(name), code(value), plain(text)) for name, value, text in settings(source)]
    if not rows:
        return facts_of_spec
    return f"{facts_of_spec}\n\n## Settings\n\n{table(('constant', 'value', 'meaning'), rows)}"


def _yes_or_no(answer: bool) -> str:
    return "yes" if answer else "no"
