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
    results_of_suite = {}
    smallest_first = sorted(suites(), key=lambda name: len(suites()[name]))
    for name in smallest_first:
        with suppress(ExperimentError):  # this suite has no reference results
            results_of_suite[name] = hbo.reference(name)
    return results_of_suite


def _missing() -> str:
    """Methods without reference results, by the reason."""
    have_results: set[str] = set()
    for results in _results().values():
        have_results |= set(results.overview().runs["method"])
    specs = [method_spec(name) for name in hbo.list_methods() if name not in have_results]
    using_data = [spec.name for spec in specs if spec.uses_data]
    others = [spec.name for spec in specs if not spec.uses_data]
    return (
        f"{len(using_data)} methods look at the training data of the tasks "
        f"({', '.join(using_data)}); "
        f"{len(others)} need up to seconds for a suggestion, or are newer than the runs "
        f"({', '.join(others)})."
    )


def _sections() -> Iterator[str]:
    """A section with a table for each suite and protocol."""
    for name, results in _results().items():
        scores, _ = results.scored()
        for protocol, items in group_by_protocol(scores).items():
            link = (
                f'<a href="{FOLDER}/{name}/report.html">Sort, filter, choose a trial, a '
                "benchmark and a task; curves and figures</a>"
            )
            introduction = f"{_describe(name, protocol, items)} {link}."
            yield f"### {name}\n\n{introduction}\n\n{_table(items)}"


def _describe(name: str, protocol: str, items: list[BenchmarkScores]) -> str:
    """The sentences above a table: protocol, benchmarks and seeds, and what is left out."""
    scope = BenchmarkGroup.for_means(items).scope
    seeds: set[int] = set()
    for item in items:
        seeds |= set(item.seed_numbers)
    sentences = [
        f"{label_protocol(protocol).capitalize()}; mean over {scope}, seeds {format_ranges(seeds)}."
    ]

    have_results = {BenchmarkIdentity.parse(item.benchmark).name for item in items}
    missing = [benchmark for benchmark in suites()[name] if benchmark not in have_results]
    if missing:
        count = format_count(len(missing), "benchmark")
        sentences.append(f"{count} of the suite have no reference results yet.")
    for item in items:
        if item.left_out:
            sentences.append(f"Left out is {item.label}. {item.left_out}")
    return plain(" ".join(sentences))


def _table(items: list[BenchmarkScores]) -> str:
    """Methods by mean rank after the last trial, with the ranks after earlier ones."""
    last_trial = min(item.last_trial for item in items)
    trials = sorted({trial for trial in TRIALS if trial < last_trial} | {last_trial})
    board_after_trial = {}
    for trial in trials:
        board = leaderboard(items, trial=trial)
        board_after_trial[trial] = board[board["benchmark"] == ALL].set_index("method")

    rows = []
    for method, row in board_after_trial[last_trial].iterrows():
        ranks = [board.loc[method, "rank"] for board in board_after_trial.values()]
        rows.append(
            (
                f"[{method}](methods/{method}.md)",
                *(number(rank, 2) for rank in ranks),
                number(row["score"], 1),
                number(row["regret"], 4),
                number(1000 * row["seconds"], 2),
            )
        )
    rank_headers = [f">rank at {trial}" for trial in trials]
    header = ("method", *rank_headers, f">score at {last_trial}", ">regret", ">ms per suggestion")
    return table(header, rows)
