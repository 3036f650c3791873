"""Computes which method to use, for the package, the README and the pages.

In each situation the method of lowest mean rank is recommended, among those that fit the situation,
on the benchmarks and after the trial that `SITUATIONS` lists. All suites are of real data, as ranks
on formulas would hide who leads on data sets. Other tools fit as methods of the package do. Every
fitting method is named whose rank differs from the first one's by no more than chance explains: the
test is that of verdicts (`compare_with_leader`: seeds and tasks, 5 % for all together). Of these,
the one of lowest mean rank that needs at most half of the time for a suggestion is pointed out.
Methods that fit are ranked among themselves.

`python docs/_build/recommend.py` writes `artifacts/recommendations.json` and the table in
README.md. Run it after the reference results or docs/times.md have changed. The pages read the
file when they are built.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from markdown_text import plain, table

from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup
from hpobench_ordered.analysis.labels import is_submitted
from hpobench_ordered.analysis.leader_comparison import (
    compare_with_leader,
    seed_and_task_influences,
)
from hpobench_ordered.data.writing import write_atomically
from hpobench_ordered.experiment.api import reference
from hpobench_ordered.methods.registry import method_spec
from hpobench_ordered.reporting.recommendations import (
    FILE,
    HEADERS,
    NOTE,
    Recommendation,
    read_recommendations,
)

ROOT = Path(__file__).absolute().parents[2]
MARKER = "<!-- which method -->"
"""Where a page shows the table."""
END = "<!-- end of which method -->"
"""Where the table ends in README.md, which holds it as text."""

ROW_OF_TIMES = re.compile(r"^\| \[`(?P<method>[\w-]+)`\]\([^)]*\) \| (?P<cells>.*) \|$", re.M)
"""A row of docs/times.md: method, then milliseconds with 200 and 1000 evaluations."""
COLUMN_OF_200 = 0  # among the cells after the method


MAX_MILLISECONDS = 0.1
"""CPU time of a suggestion, other than the first, of methods that suggest in microseconds."""

MAX_SHARE_OF_TIME = 0.5
"""A method is cheaper than another if its suggestions take at most this share of the time."""

TOOLS_WITH_HISTORY = ("optuna-tpe-best-first*",)
"""Other tools that use earlier tasks; the descriptions of submissions do not say so."""

MillisecondsOfMethod = Mapping[str, float]
"""CPU milliseconds of a suggestion by method; methods that were not measured are missing."""


@dataclass(frozen=True, slots=True)
class Situation:
    """A situation in which somebody looks for a method.

    Attributes:
        name: The situation in words.
        suite: The suite whose reference results decide.
        trial: The trial, counted from 1, after which ranks are compared; the tables of the
            leaderboard have a column for it.
        fits: Whether a method, by its name, can be used in the situation.
    """

    name: str
    suite: str
    trial: int
    fits: Callable[[str, MillisecondsOfMethod], bool]


def fits_always(method: str, milliseconds: MillisecondsOfMethod) -> bool:
    """Whether a method fits a situation that any method fits: True."""
    return True


def ignores_history(method: str, milliseconds: MillisecondsOfMethod) -> bool:
    """Whether a method does not use earlier tasks."""
    if is_submitted(method):
        return method not in TOOLS_WITH_HISTORY
    return not method_spec(method).uses_history


def suggests_in_microseconds(method: str, milliseconds: MillisecondsOfMethod) -> bool:
    """Whether a suggestion takes at most `MAX_MILLISECONDS`; False if it was not measured."""
    return milliseconds.get(method, np.inf) <= MAX_MILLISECONDS


SITUATIONS = (
    Situation("earlier tasks in order, such as months", "retrain", 25, fits_always),
    Situation("earlier tasks without an order, such as customers", "openml", 25, fits_always),
    Situation("the search space has changed", "adjustments", 25, fits_always),
    Situation("only one trial", "retrain", 1, fits_always),
    Situation("no earlier tasks", "retrain", 25, ignores_history),
    Situation("suggestions in microseconds, after a first one of 60 ms", "retrain", 25, suggests_in_microseconds),
)


def recommend_methods(milliseconds: MillisecondsOfMethod) -> list[Recommendation]:
    """Compute a recommendation for each situation from the reference results."""
    group_of_suite: dict[str, BenchmarkGroup] = {}
    recommendations = []
    for situation in SITUATIONS:
        if situation.suite not in group_of_suite:
            scores, _ = reference(situation.suite).scored()
            group_of_suite[situation.suite] = BenchmarkGroup.for_means(scores)
        group = group_of_suite[situation.suite]
        recommendations.append(recommend_method(situation, group, milliseconds))
    return recommendations


def recommend_method(
    situation: Situation, group: BenchmarkGroup, milliseconds: MillisecondsOfMethod
) -> Recommendation:
    """Compute the recommendation for one situation from the results on its suite.

    At least two of the group's methods must fit the situation, and the best of these must be in
    the package: the table links to its page.
    """
    fitting = tuple(name for name in group.methods if situation.fits(name, milliseconds))
    fitting_group = BenchmarkGroup.of_all([item.among(fitting) for item in group.items])
    mean_ranks = fitting_group.by_family("rank", situation.trial).mean(axis=0)
    best, second, *_ = np.argsort(mean_ranks, kind="stable")
    best_method = fitting[best]

    within_error = find_methods_within_error(fitting_group, situation.trial)
    cheaper_method = ""
    for name in within_error:  # by mean rank, so that the first cheaper one is the best of them
        if is_cheaper(name, best_method, milliseconds):
            cheaper_method = name
            break
    return Recommendation(
        situation=situation.name,
        method=best_method,
        rank=round(float(mean_ranks[best]), 4),
        methods=len(group.methods),
        fitting=len(fitting),
        suite=situation.suite,
        trial=situation.trial,
        next_method=fitting[second],
        next_rank=round(float(mean_ranks[second]), 4),
        within_error=tuple(within_error),
        cheaper_method=cheaper_method,
    )


def find_methods_within_error(group: BenchmarkGroup, trial: int) -> list[str]:
    """Find the methods whose mean rank is not significantly worse than the best one's.

    Args:
        group: The benchmarks.
        trial: The trial, counted from 1.

    Returns:
        Their names, by mean rank, without the best.

    Raises:
        ValueError: There are too few seeds and tasks for the test.
    """
    mean_ranks = group.by_family("rank", trial).mean(axis=0)
    comparison = compare_with_leader(mean_ranks, *seed_and_task_influences(group, trial))
    if comparison is None:
        raise ValueError("reference results have too few seeds and tasks for the test")
    names = []
    for number in np.argsort(mean_ranks, kind="stable"):
        if number != comparison.leader and not comparison.is_worse[number]:
            names.append(group.methods[number])
    return names


def is_cheaper(method: str, other: str, milliseconds: MillisecondsOfMethod) -> bool:
    """Whether a method needs at most `MAX_SHARE_OF_TIME` of another's time for a suggestion.

    False if either of them was not measured.
    """
    if method not in milliseconds or other not in milliseconds:
        return False
    return milliseconds[method] <= MAX_SHARE_OF_TIME * milliseconds[other]


def write_recommendations(path: Path, recommendations: Sequence[Recommendation]) -> None:
    """Write recommendations to a file."""
    content = [asdict(recommendation) for recommendation in recommendations]
    write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())


def read_milliseconds(page: Path = ROOT / "docs" / "times.md") -> dict[str, float]:
    """Read the CPU milliseconds of a suggestion with 200 evaluations, by method."""
    milliseconds = {}
    for row in ROW_OF_TIMES.finditer(page.read_text(encoding="utf-8")):
        milliseconds[row["method"]] = float(row["cells"].split(" | ")[COLUMN_OF_200])
    return milliseconds


def format_recommendations(recommendations: list[Recommendation], *, methods_folder: str) -> str:
    """Make the table of recommendations, with the note on it below.

    Args:
        recommendations: The recommendations.
        methods_folder: The folder with the pages of methods, which ends with "/".
    """
    rows = []
    for recommendation in recommendations:
        situation, _, evidence, needs = map(plain, recommendation.row)
        links = [f"[`{name}`]({methods_folder}{name}.md)" for name in recommendation.recommended]
        rows.append((situation, " or ".join(links), evidence, needs))
    return f"{table(HEADERS, rows)}\n\n{plain(NOTE)}"


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
