"""Makes the page and the files that belong to it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from hpobench_ordered.analysis.curves import curves
from hpobench_ordered.analysis.labels import counted, protocol_label
from hpobench_ordered.analysis.leaderboard import leaderboard
from hpobench_ordered.analysis.scoring import BenchmarkScores
from hpobench_ordered.analysis.verdict import verdicts
from hpobench_ordered.reporting.boards import (
    agreement_table,
    leaderboard_tables,
    pair_frames,
    speedup_tables,
)
from hpobench_ordered.reporting.figures import Figure, sections_of
from hpobench_ordered.reporting.formats import (
    Table,
    csv_bytes,
    markdown,
    markdown_text,
    table_files,
)
from hpobench_ordered.reporting.interactive import COLUMNS, first_board, interactive
from hpobench_ordered.reporting.provenance import (
    STATES,
    experiment_table,
    packages,
    session_table,
    timing_table,
    unfinished_table,
)
from hpobench_ordered.reporting.render import render

if TYPE_CHECKING:
    import pandas as pd

    from hpobench_ordered.experiment.failures import Failure
    from hpobench_ordered.reporting.write import ReportInput

PAGE = "report.html"
MOST_FAILURES = 200
"""So many are shown on the page; a file lists all."""

READING = (
    "Everything is of the best trial so far. A number is a mean over seeds and tasks; of ordered "
    "runs the first task does not count, which has no history. Over several benchmarks it is the "
    "mean of theirs, so that each benchmark counts once, however many tasks it has.",
    "Scores, normalised regrets and ranks are relative to the methods compared here: compare them "
    "within one report only. Values in the objective's own units do not depend on other methods.",
    "Bands of curves and intervals in tables are 95 % intervals over seeds: what other seeds might "
    "have given on the same tasks. A single seed has none.",
    "Verdicts and critical differences are over benchmarks: tasks of one benchmark resemble each "
    "other, so that tests over tasks find differences too easily. They are a second view.",
    "A mean is over all seeds that a method has finished, a comparison of two methods over those "
    "that both have. A method that finished fewer than half of its planned seeds on a benchmark is "
    "not compared there.",
)


@dataclass(frozen=True)
class Section:
    """A part of the page with figures and tables.

    Attributes:
        id: Its id on the page.
        title: Its heading.
        figures: Its figures.
        tables: Its tables.
    """

    id: str
    title: str
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()


def page_files(
    content: "ReportInput",
    runs: "pd.DataFrame",
    scored: Sequence[BenchmarkScores],
    unscored: Sequence[str],
) -> dict[str, bytes]:
    """The page, and the figures and tables that it links to, by file name.

    Args:
        content: What the report is made of.
        runs: One row a planned run, as `Overview.runs`.
        scored: Scores by benchmark.
        unscored: Why others could not be scored.
    """
    parts = _parts(scored)
    means = curves(scored, tasks=False)
    board = leaderboard(scored)
    boards = list(leaderboard_tables(board))
    agreement = agreement_table(scored)
    sections = [
        Section(name, title, figures)
        for name, title, figures in sections_of(content, runs, scored, means, board)
    ]
    others = [
        Section("speedups", "Speed-ups", tables=list(speedup_tables(scored))),
        Section("surrogates", "Surrogates", tables=[] if agreement is None else [agreement]),
    ]
    provenance = _provenance(content, runs)
    unfinished = unfinished_table(runs)
    values = {
        **_head(content, runs),
        "unscored": unscored,
        "parts": parts,
        "sections": [*sections, *others],
        "unfinished": unfinished,
        "provenance": provenance,
    }
    page = _page(values, scored, means)
    tables = [*boards, *provenance, *(table for one in others for table in one.tables)]
    tables += [] if unfinished is None else [unfinished]
    frames = {f"tables/{name}": frame for name, frame in pair_frames(scored).items()}
    frames |= {"means": means, "scores": _by_task(scored)} if scored else {}
    figures = [figure for section in sections for figure in section.figures]
    return {
        PAGE: page.encode(),
        **{name: data for figure in figures for name, data in figure.files().items()},
        **{f"tables/{n}": b for table in tables for n, b in table_files(table).items()},
        **{f"{name}.csv": csv_bytes(frame) for name, frame in frames.items()},
        **_failure_file(content),
        "summary.md": _summary(parts, scored, unscored, boards).encode(),
    }


def _page(
    values: Mapping[str, Any], scored: Sequence[BenchmarkScores], means: "pd.DataFrame"
) -> str:
    data, tasks = interactive(scored, means) if scored else (None, [])
    shown = [s for s in values["sections"] if s.figures or s.tables]
    contents = [
        ("verdict", "Who leads"),
        *([("leaderboard", "Curves and leaderboard")] if data else []),
        *((section.id, section.title) for section in shown),
        ("failures", "Failures and missing runs"),
        ("run", "What was run"),
        ("reading", "How to read it"),
    ]
    board = None if data is None else first_board(data)
    more = {"contents": contents, "board": board, "columns": COLUMNS, "reading": READING}
    return render({**values, **more}, data, tasks)


def _head(content: "ReportInput", runs: "pd.DataFrame") -> dict[str, Any]:
    """What the page says of the runs as a whole."""
    overview = content.overview
    failures = () if overview is None else overview.failures
    sessions = () if overview is None else overview.sessions
    counts = {state: int((runs["state"] == state).sum()) for state in STATES}
    others = ", ".join(f"{counts[s]:,} {s}" for s in STATES[1:] if counts[s])
    not_done = f"Not finished, of {len(runs):,} runs: {others}." if others else ""
    older = 0 if overview is None else overview.superseded
    sentence = not_done or "Every planned run is finished."
    if older:
        sentence += f" {older:,} runs of other versions of a method are there and count nowhere."
    protocols = "; ".join(map(protocol_label, dict.fromkeys(runs["protocol"])))
    names = [list(dict.fromkeys(runs[column])) for column in ("method", "benchmark")]
    who, what = (
        values[0] if len(values) == 1 else counted(len(values), noun)
        for values, noun in zip(names, ("method", "benchmark"), strict=True)
    )
    days = sorted(str(s["started"]).partition("T")[0] for s in sessions if s.get("started"))
    return {
        "title": f"{who} on {what}",
        "version": version("hpobench-ordered"),
        "summary": f"{counts['done']:,} of {len(runs):,} runs are finished, over "
        f"{counted(runs['seed'].nunique(), 'seed')}, under {protocols}.",
        "when": " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "",
        "packages": packages(sessions),
        "has_sessions": bool(sessions),
        "limits": content.limits,
        "coverage_sentence": sentence,
        "alert": not_done,
        "failures": [_failure(failure) for failure in failures[:MOST_FAILURES]],
        "more_failures": max(0, len(failures) - MOST_FAILURES),
    }


def _parts(scored: Sequence[BenchmarkScores]) -> list[dict[str, Any]]:
    """The verdicts by protocol, in sentences."""
    parts: dict[str, list[str]] = {}
    for verdict in verdicts(scored):
        parts.setdefault(verdict.protocol, []).append(verdict.sentence)
    return [{"title": protocol_label(name), "verdict": said} for name, said in parts.items()]


def _provenance(content: "ReportInput", runs: "pd.DataFrame") -> list[Table]:
    sessions = () if content.overview is None else content.overview.sessions
    tables = [experiment_table(runs)]
    if content.timings is not None and len(content.timings):
        tables.append(timing_table(content.timings))
    return [*tables, *([session_table(sessions)] if sessions else [])]


def _failure(failure: "Failure") -> dict[str, Any]:
    where = ", ".join(filter(None, (failure.task and f"task {failure.task}", failure.when)))
    return {**asdict(failure), "reason": failure.reason.value, "where": where}


def _failure_file(content: "ReportInput") -> dict[str, bytes]:
    """All failures as CSV, if there are any."""
    import pandas as pd

    failures = () if content.overview is None else content.overview.failures
    if not failures:
        return {}
    records = [asdict(failure) | {"reason": failure.reason.value} for failure in failures]
    return {"tables/failures.csv": csv_bytes(pd.DataFrame(records))}


def _by_task(scored: Sequence[BenchmarkScores]) -> "pd.DataFrame":
    """Means over seeds of every measure by benchmark, task, method and trial."""
    import pandas as pd

    frames = []
    for item in scored:
        columns: dict[str, Any] = {}
        for measure, values in item.measures.items():
            columns[measure] = values.mean.ravel()
            columns[f"{measure}_two_standard_errors"] = values.two_standard_errors.ravel()
        levels = {
            "protocol": [item.protocol],
            "benchmark": [item.benchmark],
            "surrogate": [item.surrogate],
            "method": item.methods,
            "task": item.task_names,
            "trial": range(1, item.last_trial + 1),
        }
        index = pd.MultiIndex.from_product(levels.values(), names=list(levels))
        frames.append(pd.DataFrame(columns, index=index).reset_index())
    return pd.concat(frames, ignore_index=True)


def _summary(
    parts: Sequence[Mapping[str, Any]],
    scored: Sequence[BenchmarkScores],
    unscored: Sequence[str],
    boards: Sequence[Table],
) -> str:
    """The verdicts and leaderboards as Markdown."""
    texts = [
        "\n\n".join([f"## {markdown_text(part['title'])}", *map(markdown_text, part["verdict"])])
        for part in parts
    ]
    texts += [markdown(table).rstrip() for table in boards]
    for item in scored:
        texts += [markdown_text(f"{item.label}: {note}") for note in item.notes()]
    return "\n\n".join([*texts, *map(markdown_text, unscored)]) + "\n"
