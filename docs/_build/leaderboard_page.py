"""Tables of the leaderboard's page and the pages that it links to, from the reference results."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from markdown_text import plain, table

import hpobench_ordered as hbo
from hpobench_ordered.core.identity import BenchmarkIdentity
from hpobench_ordered.analysis.labels import format_count, label_protocol, format_ranges
from hpobench_ordered.analysis.leaderboard import ALL, leaderboard
from hpobench_ordered.analysis.scoring import BenchmarkScores, group_by_protocol
from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.registry import method_spec, suites
from hpobench_ordered.reporting.formats import number

MARKER = "<!-- leaderboards -->"
MISSING = "<!-- missing -->"
TRIALS = (1, 5, 10, 25)
FOLDER = "leaderboard"
"""Folder of the site with a report of each suite."""


def filled(text: str) -> str:
    """Replace the markers by the tables of all suites and by the methods without results."""
    return text.replace(MARKER, "\n\n".join(_sections())).replace(MISSING, _missing())


def write_reports(site: Path) -> None:
    """Write the reports of all suites, as the command `report --reference --suite` does."""
    for name, results in _results().items():
        hbo.report(results, site / FOLDER / name)


@cache
def _results() -> Mapping[str, hbo.Results]:
    """The reference results by suite, that of the fewest benchmarks first."""
    found = {}
    for name in sorted(suites(), key=lambda one: len(suites()[one])):
        with suppress(ExperimentError):  # this suite has no reference results
            found[name] = hbo.reference(name)
    return found


def _missing() -> str:
    """Methods without reference results, by the reason."""
    there = {name for one in _results().values() for name in one.overview().runs["method"]}
    specs = [method_spec(name) for name in hbo.list_methods() if name not in there]
    data = [spec.name for spec in specs if spec.uses_data]
    others = [spec.name for spec in specs if not spec.uses_data]
    return (
        f"{len(data)} methods look at the training data of the tasks ({', '.join(data)}); "
        f"{len(others)} need up to seconds for a suggestion, or are newer than the runs "
        f"({', '.join(others)})."
    )


def _sections() -> Iterator[str]:
    for name, results in _results().items():
        scores, _ = results.scored()
        for protocol, items in group_by_protocol(scores).items():
            page = f'<a href="{FOLDER}/{name}/report.html">Sort, filter, choose a trial, a '
            page += "benchmark and a task; curves and figures</a>"
            said = f"{_said(name, protocol, items)} {page}."
            yield f"### {name}\n\n{said}\n\n{_table(items)}"


def _said(name: str, protocol: str, items: list[BenchmarkScores]) -> str:
    """The sentence above a table: protocol, benchmarks and seeds."""
    together = BenchmarkGroup.for_means(items)
    there, every = {BenchmarkIdentity.parse(item.benchmark).name for item in items}, suites()[name]
    said = f"{label_protocol(protocol).capitalize()}; mean over {together.scope}, "
    said += f"seeds {format_ranges({seed for item in items for seed in item.seed_numbers})}."
    if lacking := len([one for one in every if one not in there]):
        said += f" {format_count(lacking, 'benchmark')} of the suite have no reference results yet."
    for item in items:
        if item.left_out:
            said += f" Left out is {item.label}. {item.left_out}"
    return plain(said)


def _table(items: list[BenchmarkScores]) -> str:
    """Methods by mean rank after the last trial, with the ranks after earlier ones."""
    boards = {}
    for trial in sorted({*TRIALS, min(item.last_trial for item in items)}):
        if trial <= min(item.last_trial for item in items):
            board = leaderboard(items, trial=trial)
            boards[trial] = board[board["benchmark"] == ALL].set_index("method")
    last = max(boards)
    rows = [
        (
            f"[{method}](methods/{method}.md)",
            *(number(board.loc[method, "rank"], 2) for board in boards.values()),
            number(row["score"], 1),
            number(row["regret"], 4),
            number(1000 * row["seconds"], 2),
        )
        for method, row in boards[last].iterrows()
    ]
    ranks = [f">rank at {trial}" for trial in boards]
    return table(("method", *ranks, f">score at {last}", ">regret", ">ms per suggestion"), rows)
