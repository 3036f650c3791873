"""Pages of the registered methods: hand-written text and generated facts."""

import ast
import inspect
import math
import sys
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from leaderboard_page import ranks_after_last_trial
from markdown_text import code, facts, plain, table
from recommend import read_milliseconds

import hpobench_ordered as hbo
from hpobench_ordered.methods.base import MethodKind, MethodSpec
from hpobench_ordered.methods.registry import method_spec
from hpobench_ordered.reporting.formats import NOTHING, number

MARKER = "<!-- facts -->"
"""Where the facts go in a hand-written page."""
RANKED_SUITES = ("othpo", "retrain")
"""Suites on which the overview gives the mean rank of each method."""


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
    """A table of methods for each kind."""
    return "\n\n".join(f"### {kind.value}\n\n{_table_of_kind(kind)}" for kind in MethodKind)


def _table_of_kind(kind: MethodKind) -> str:
    """The methods of a kind, by their mean rank on `RANKED_SUITES`; those without come last."""
    milliseconds = read_milliseconds()
    specs = [method_spec(name) for name in hbo.list_methods()]
    rows_with_rank = []
    for spec in specs:
        if spec.kind is not kind:
            continue
        ranks = [ranks_after_last_trial(suite).get(spec.name, math.nan) for suite in RANKED_SUITES]
        row = (
            f"[{spec.name}]({spec.name}.md)",
            *(number(rank, 1) for rank in ranks),
            _format_milliseconds(milliseconds.get(spec.name)),
            ", ".join(spec.needs),
            plain(spec.summary),
        )
        rows_with_rank.append((np.nan_to_num(np.mean(ranks), nan=np.inf), row))

    rows_with_rank.sort()
    header = ("method", *(f">{suite}" for suite in RANKED_SUITES), ">ms", "needs", "summary")
    body = table(header, [row for _, row in rows_with_rank])
    return f'<div class="sortable" markdown>\n\n{body}\n\n</div>'


def _format_milliseconds(milliseconds: float | None) -> str:
    """Milliseconds with two significant digits, a dash for None."""
    if milliseconds is None:
        return NOTHING
    return f"{float(f'{milliseconds:.2g}'):g}"


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
