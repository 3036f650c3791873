"""References to the exports of a module that a page does not describe by hand."""

import re
from importlib import import_module

MARKER = re.compile(r"<!-- rest: ([\w.]+) -->")
DESCRIBED = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)


def filled(text: str) -> str:
    """Replace every marker by references to the exports that the page does not describe."""
    described = set(DESCRIBED.findall(text))
    return MARKER.sub(lambda match: "\n\n".join(_missing(match[1], described)), text)


def _missing(module: str, described: set[str]) -> list[str]:
    names = (f"{module}.{name}" for name in sorted(import_module(module).__all__, key=str.lower))
    return [f"::: {name}" for name in names if name not in described]
