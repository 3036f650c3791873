"""Pages of the registered methods: the hand-written text and the facts that go with it."""

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from markdown_text import code, facts, plain, table

import hpobench_ordered as hbo
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.registry import method_spec

MARKER = "<!-- facts -->"
"""Where the facts go in a hand-written page."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A constant of a method's module.

    Attributes:
        name: Its name, or those of several set together.
        value: Its value as written.
        meaning: Its description.
    """

    name: str
    value: str
    meaning: str


def settings(source: str) -> Iterator[Setting]:
    """Find the described constants of a module.

    Args:
        source: Text of the module.
    """
    body = ast.parse(source).body
    for statement, following in pairwise(body):
        if not (isinstance(statement, ast.Assign) and isinstance(following, ast.Expr)):
            continue
        names = [name.id for name in ast.walk(statement.targets[0]) if isinstance(name, ast.Name)]
        value = following.value
        if all(map(str.isupper, names)) and isinstance(value, ast.Constant):
            written = ast.unparse(statement.value).strip("()")
            yield Setting(", ".join(names), written, str(value.value))


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
                "yes" if spec.changed_spaces else "no",
            )
        )
    return table(("method", "summary", ">earlier tasks", "changed spaces"), rows)


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
    return text.replace(MARKER, described(spec)) + _reference(spec)


def described(spec: MethodSpec) -> str:
    """What the registry and the module say of a method."""
    module = inspect.getmodule(spec.method)
    if module is None:
        raise ValueError(f"method {spec.name!r} is in no module")
    changed = "yes" if spec.changed_spaces else "no: it needs its history on the same space"
    listed = facts(
        [
            ("Name", code(spec.name)),
            ("Source", plain(spec.source)),
            ("Earlier tasks it needs", str(spec.min_history)),
            ("Copes with changed search spaces", changed),
            ("Module", code(module.__name__)),
        ]
    )
    rows = [(code(s.name), code(s.value), plain(s.meaning)) for s in settings(_text(module))]
    if not rows:
        return listed
    return f"{listed}\n\n## Settings\n\n{table(('constant', 'value', 'meaning'), rows)}"


def _text(module: object) -> str:
    return inspect.getsource(module)  # type: ignore[arg-type]


def _reference(spec: MethodSpec) -> str:
    path = f"{spec.method.__module__}.{spec.method.__qualname__}"
    return f"\n\n## Class\n\n::: {path}\n    options:\n      members: false\n"
