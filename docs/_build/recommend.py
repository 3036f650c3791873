"""Computes which method to use, for the package, the README and the pages.

`python docs/_build/recommend.py` writes `artifacts/recommendations.json` and the table in
README.md. Run it after the reference results or docs/times.md have changed. The pages read the
file when they are built.
"""

import re
from pathlib import Path

from markdown_text import plain, table

from hpobench_ordered.reporting.recommendations import (
    FILE,
    HEADERS,
    Recommendation,
    read_recommendations,
    recommend_methods,
    write_recommendations,
)

ROOT = Path(__file__).absolute().parents[2]
MARKER = "<!-- which method -->"
"""Where a page shows the table."""
END = "<!-- end of which method -->"
"""Where the table ends in README.md, which holds it as text."""

ROW_OF_TIMES = re.compile(r"^\| \[`(?P<method>[\w-]+)`\]\([^)]*\) \| (?P<cells>.*) \|$", re.M)
"""A row of docs/times.md: method, then milliseconds with 25, 200 and 1000 evaluations."""
COLUMN_OF_200 = 1  # among the cells after the method


def read_milliseconds(page: Path = ROOT / "docs" / "times.md") -> dict[str, float]:
    """Read the CPU milliseconds of a suggestion with 200 evaluations, by method."""
    milliseconds = {}
    for row in ROW_OF_TIMES.finditer(page.read_text(encoding="utf-8")):
        milliseconds[row["method"]] = float(row["cells"].split(" | ")[COLUMN_OF_200])
    return milliseconds


def format_recommendations(recommendations: list[Recommendation], *, methods_folder: str) -> str:
    """Make the table of recommendations; method pages are in the folder, which ends with "/"."""
    rows = []
    for recommendation in recommendations:
        situation, method, evidence, needs = map(plain, recommendation.row)
        link = f"[`{recommendation.method}`]({methods_folder}{recommendation.method}.md)"
        rows.append((situation, link, evidence, needs))
    return table(HEADERS, rows)


def fill_page(text: str, *, methods_folder: str) -> str:
    """Replace the marker in a page by the table that comes with the package."""
    if MARKER not in text:
        return text
    card = format_recommendations(read_recommendations(), methods_folder=methods_folder)
    # The class lays the table out for telephones.
    return text.replace(MARKER, f'<div class="card" markdown>\n\n{card}\n\n</div>')


def fill_readme(text: str, recommendations: list[Recommendation]) -> str:
    """Replace the table between the markers in README.md."""
    before, _, rest = text.partition(MARKER)
    _, _, after = rest.partition(END)
    card = format_recommendations(recommendations, methods_folder="docs/methods/")
    return f"{before}{MARKER}\n\n{card}\n\n{END}{after}"


if __name__ == "__main__":
    computed = recommend_methods(read_milliseconds())
    write_recommendations(ROOT / "artifacts" / FILE, computed)
    readme = ROOT / "README.md"
    readme.write_text(fill_readme(readme.read_text(encoding="utf-8"), computed), encoding="utf-8")
