"""Makes the page and the files that belong to it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hpobench_ordered.reporting.drawings.drawing import Drawing
from hpobench_ordered.reporting.labels import protocol_label
from hpobench_ordered.reporting.page.board_table import board_table
from hpobench_ordered.reporting.page.coverage import STATES, Coverage, coverage, coverage_table
from hpobench_ordered.reporting.page.formats import table_files
from hpobench_ordered.reporting.page.landscape import landscape
from hpobench_ordered.reporting.page.leaderboard import leaderboard
from hpobench_ordered.reporting.page.provenance import (
    experiment_table,
    packages,
    seconds_by_method,
    session_table,
    timing_table,
)
from hpobench_ordered.reporting.page.render import render
from hpobench_ordered.reporting.page.sections import make_parts
from hpobench_ordered.reporting.page.view import CAPTION, COLUMNS, CUSTOM, READING, View, first_view
from hpobench_ordered.reporting.scoring import BenchmarkScores

if TYPE_CHECKING:
    import pandas as pd

    from hpobench_ordered.experiment.failures import Failure
    from hpobench_ordered.reporting.page.landscape import Configurations

MOST_FAILURES = 200
"""So many are shown on the page; a file lists all."""

PAGE = "report.html"

RULES = (
    "A seed that some compared method has not finished counts for none, so that all methods are "
    "compared on the same seeds.",
    "A method that has finished fewer than half of the planned seeds of a benchmark is not "
    "compared there; the leaderboard shows it unranked.",
)
"""Which runs count, as the page says it."""


@dataclass(frozen=True)
class Content:
    """What a page is made of.

    Attributes:
        runs: One row a planned run, as `Overview.runs`.
        superseded: Number of runs of older source, which count nowhere.
        failures: The failed runs.
        sessions: The starts of the runner.
        timings: One row a run, as `Store.timings` gives; None where nothing is known.
        configurations: Gives the configurations of runs by their keys; None where they are not
            known.
        scored: Scores by benchmark.
        unscored: Why others could not be scored.
        version: Version of the package.
    """

    runs: "pd.DataFrame"
    superseded: int
    failures: "Sequence[Failure]"
    sessions: Sequence[Mapping[str, Any]]
    timings: "pd.DataFrame | None"
    configurations: "Configurations | None"
    scored: Sequence[BenchmarkScores]
    unscored: Sequence[str]
    version: str


def page_files(content: Content) -> dict[str, bytes]:
    """The page, and the figures and tables that it links to, by file name."""
    found = coverage(content.runs)
    has_timings = content.timings is not None and len(content.timings) > 0
    seconds = seconds_by_method(content.timings) if has_timings else {}
    boards = leaderboard(content.scored, found, seconds)
    views = [first_view(board) for board in boards]
    parts = make_parts(content.scored, lambda item: _landscape(content, item))
    tables = {
        "experiment": experiment_table(content.runs),
        "timings": timing_table(content.timings) if has_timings else None,
        "sessions": session_table(content.sessions) if content.sessions else None,
    }
    values = {
        **tables,
        "title": _title(found),
        "version": content.version,
        "summary": _summary(content, found),
        "when": _when(content.sessions),
        "packages": packages(content.sessions),
        "coverage": found,
        "coverage_sentence": _coverage_sentence(content, found),
        "alert": "" if found.is_complete else _unfinished(found),
        "rules": RULES,
        "failures": [_failure(failure) for failure in content.failures[:MOST_FAILURES]],
        "more_failures": max(0, len(content.failures) - MOST_FAILURES),
        "unscored": content.unscored,
        "boards": views,
        "columns": COLUMNS,
        "reading": READING,
        "parts": parts,
    }
    page = render(values, _data(boards, views))
    shown = [table for table in tables.values() if table is not None]
    shown += [coverage_table(found), *map(board_table, views, boards)]
    shown += [table for part in parts for table in part.all_tables()]
    return {
        PAGE: page.encode(),
        **_figure_files(drawing for part in parts for drawing in part.all_drawings()),
        **{f"tables/{n}": b for table in shown for n, b in table_files(table).items()},
        **_failure_file(content.failures),
    }


def _landscape(content: Content, item: BenchmarkScores) -> Drawing | None:
    """The landscape of a benchmark, if it is known."""
    if content.configurations is None:
        return None
    runs = content.runs
    label = runs["benchmark"] + " (" + runs["surrogate"] + ")"
    own = (label == item.benchmark) & (runs["protocol"] == item.protocol)
    return landscape(item, runs[own & (runs["state"] == "done")], content.configurations)


def _data(boards: Sequence[Mapping[str, Any]], views: Sequence[View]) -> dict[str, Any]:
    """What the script of the page knows."""
    return {
        "boards": [
            {**board, "sorted_by": view.sorted_by}
            for board, view in zip(boards, views, strict=True)
        ],
        "columns": [
            {"key": column.key, "title": column.title, "decimals": column.decimals}
            for column in COLUMNS
        ],
        "states": STATES,
        "texts": {"caption": CAPTION, "custom": CUSTOM},
    }


def _figure_files(drawings: Iterable[Drawing]) -> dict[str, bytes]:
    files = {}
    for drawing in drawings:
        files[f"figures/{drawing.stem}.png"] = drawing.png
        files[f"figures/{drawing.stem}.svg"] = drawing.svg
        files[f"figures/{drawing.stem}.pdf"] = drawing.pdf
        files[f"figures/{drawing.stem}.csv"] = drawing.data.to_csv(index=False).encode()
    return files


def _title(found: Coverage) -> str:
    names = [benchmark.partition(" (")[0] for benchmark, _ in found.rows]
    names = list(dict.fromkeys(names))
    what = names[0] if len(names) == 1 else f"{len(names)} benchmarks"
    methods = found.methods
    who = methods[0] if len(methods) == 1 else f"{len(methods)} methods"
    return f"{who} on {what}"


def _summary(content: Content, found: Coverage) -> str:
    protocols = list(dict.fromkeys(protocol_label(protocol) for _, protocol in found.rows))
    states = found.totals
    seeds = content.runs["seed"].nunique()
    return (
        f"{states.states['done']:,} of {states.planned:,} runs are finished, over {seeds:,} "
        f"{'seed' if seeds == 1 else 'seeds'}, under {'; '.join(protocols)}."
    )


def _when(sessions: Sequence[Mapping[str, Any]]) -> str:
    """The day of the runs, or the first and the last; empty where it is not known."""
    days = sorted(str(s["started"]).partition("T")[0] for s in sessions if s.get("started"))
    return " to ".join(dict.fromkeys((days[0], days[-1]))) if days else ""


def _coverage_sentence(content: Content, found: Coverage) -> str:
    if found.is_complete:
        sentence = "Every planned run is finished."
    else:
        sentence = f"Of {found.totals.planned:,} planned runs: {_counted(found, STATES)}."
    if content.superseded:
        sentence += (
            f" {content.superseded:,} runs of an older source of a method are there as well and "
            "count nowhere."
        )
    return sentence


def _unfinished(found: Coverage) -> str:
    """What a reader must know before the leaderboard."""
    return f"Not finished, of {found.totals.planned:,} runs: {_counted(found, STATES[1:])}."


def _counted(found: Coverage, states: Sequence[str]) -> str:
    counts = found.totals.states
    return ", ".join(f"{counts[state]:,} {state}" for state in states if counts[state])


def _failure(failure: "Failure") -> dict[str, Any]:
    return {
        "method": failure.method,
        "benchmark": failure.benchmark,
        "surrogate": failure.surrogate,
        "seed": failure.seed,
        "reason": failure.reason.value,
        "where": ", ".join(filter(None, (failure.task and f"task {failure.task}", failure.when))),
        "message": failure.message,
        "traceback": failure.traceback,
    }


def _failure_file(failures: "Sequence[Failure]") -> dict[str, bytes]:
    """All failures as CSV, if there are any."""
    import pandas as pd

    if not failures:
        return {}
    records = [asdict(failure) | {"reason": failure.reason.value} for failure in failures]
    return {"tables/failures.csv": pd.DataFrame(records).to_csv(index=False).encode()}
