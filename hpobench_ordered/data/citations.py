"""What to cite: BibTeX entries of the works that methods and benchmarks name as their sources.

`references.bib` has an entry for each of these works, below the words by which texts cite it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files

THIS_PACKAGE = "this package"
"""The words that cite this package."""
VERSION = "VERSION"
"""What stands for the installed version in the entry of this package."""
_ENTRY = re.compile(r"^cited as: (.+)\n(@\w+\{\w+,\n(?:  .+\n)+\}\n)", re.MULTILINE)
"""The words that cite a work, and its entry."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A work that can be cited.

    Attributes:
        citation: The words by which texts cite it, without parentheses, such as "Law et al. 2019".
        bibtex: Its BibTeX entry.
    """

    citation: str
    bibtex: str


@cache
def read_references() -> Sequence[Reference]:
    """Read all entries of `references.bib`, in its order."""
    path = files("hpobench_ordered") / "data" / "references.bib"
    text = path.read_text(encoding="utf-8")
    references: list[Reference] = []
    for citation, bibtex in _ENTRY.findall(text):
        references.append(Reference(citation, bibtex))
    return references


def find_references(text: str) -> list[Reference]:
    """Find the works that a text cites, in the order of the text.

    An example is "Perrone et al. (2018), after Jones et al. (1998)".
    """
    without_parentheses = text.replace("(", "").replace(")", "")
    cited = [ref for ref in read_references() if ref.citation in without_parentheses]
    return sorted(cited, key=lambda ref: without_parentheses.index(ref.citation))


def format_bibtex(text: str) -> str:
    """Format the BibTeX entries of the works that a text cites, and last that of this package."""
    entries: list[str] = []
    for reference in find_references(text):
        if reference.citation != THIS_PACKAGE:
            entries.append(reference.bibtex)
    entries.append(_format_own_entry())
    return "\n".join(entries)


def _format_own_entry() -> str:
    """Format the BibTeX entry of this package, with the version that is installed."""
    try:
        installed_version = version("hpobench-ordered")
    except PackageNotFoundError:
        installed_version = "unknown"
    (package,) = find_references(THIS_PACKAGE)
    return package.bibtex.replace(VERSION, installed_version)
