"""Makes the page and the files that belong to it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from hpobench_ordered.analysis.curve_frames import curves
from hpobench_ordered.analysis.labels import counted, protocol_label
from hpobench_ordered.analysis.leaderboard import leaderboard
from hpobench_ordered.analysis.scoring import BenchmarkScores, by_protocol
from hpobench_ordered.analysis.together import Together
from hpobench_ordered.analysis.verdict import verdicts
from hpobench_ordered.reporting.figures import SECTIONS, Figure, Material
from hpobench_ordered.reporting.formats import Table, csv_bytes, latex, markdown, markdown_text
from hpobench_ordered.reporting.interactive import COLUMNS, interactive
from hpobench_ordered.reporting.render import render
from hpobench_ordered.reporting.tables import (
    STATES,
    agreement_table,
    experiment_table,
    leaderboard_tables,
    packages,
    pairs,
    session_table,
    unfinished_table,
)

if TYPE_CHECKING:
    import pandas as pd

    from hpobench_ordered.reporting.write import ReportInput

PAGE = "report.html"
MOST_FAILURES = 200
"""So many are shown on the page; a file lists all."""

READING = (
    "Everything is of the best trial so far. A number is a mean over seeds and "
    "tasks; of ordered runs the first task does not count, which has no history. Over several "
    "benchmarks it is the mean of theirs: each counts once, however many tasks it has.",
    "Scores, normalised regrets and ranks are better the lower they are, and relative to the "
    "methods compared here: compare them within one report only. Values in the objective's own "
    "units do not depend on other methods.",
    "Bands of curves and intervals in tables are 95 % intervals over seeds: what other seeds might "
    "have given on the same tasks. A single seed has none.",
    "Verdicts and critical differences are over benchmarks: tasks of one benchmark resemble each "
    "other, so that tests over tasks find differences too easily. They are a second view.",
    "A mean is over all seeds that a method has finished, a comparison of two methods over those "
    "that both have. A method that finished fewer than half of its planned seeds on a benchmark is "
    "not compared there.",
)


def report_files(
    content: "ReportInput",
    runs: "pd.DataFrame",
    scored: Sequence[BenchmarkScores],
    unscored: Sequence[str],
) -> dict[str, bytes]:
    """The page, and what it links to, by file name.

    Args:
        content: What the report is made of.
        runs: One row a planned run, as `Overview.runs`.
        scored: Scores by benchmark.
        unscored: Why others could not be scored.
    """
    means, board = curves(scored), leaderboard(scored)
    boards = list(leaderboard_tables(board))
    parts: dict[str, list[str]] = {}
    for verdict in verdicts(scored):
        parts.setdefault(protocol_label(verdict.protocol), []).append(verdict.sentence)
    sections = list(_sections(content, runs, scored, means, board))
    files = {f"figures/{f.stem}.{e}": d for s in sections for f in s[2] for e, d in f.files()}
    if scored:
        by_benchmark = means[means["task"] == ""].drop(columns="task")
        files |= {
            "leaderboard.csv": csv_bytes(board),
            "leaderboard.tex": "\n".join(map(latex, boards)).encode(),
            "means.csv": csv_bytes(by_benchmark),
            "pairs.csv": csv_bytes(pairs(scored)),
        }
    failures = () if content.overview is None else content.overview.failures
    if failures:
        import pandas as pd

        records = [asdict(failure) | {"reason": failure.reason.value} for failure in failures]
        files["failures.csv"] = csv_bytes(pd.DataFrame(records))
    values = {
        **_head(content, runs),
        "unscored": unscored,
        "parts": parts,
        "board": boards[0] if boards else None,
        "columns": COLUMNS,
        "sections": sections,
        "failures": failures,
        "most_failures": MOST_FAILURES,
        "reading": READING,
        "files": sorted(name for name in files if "/" not in name),
    }
    page = render(values, *(interactive(scored, means, board) if scored else (None, ())))
    notes = [f"{item.label}: {note}" for item in scored for note in item.notes()]
    return {
        PAGE: page.encode(),
        "summary.md": _summary(parts, boards, [*notes, *unscored]).encode(),
        **files,
    }


def _sections(
    content: "ReportInput",
    runs: "pd.DataFrame",
    scored: Sequence[BenchmarkScores],
    means: "pd.DataFrame",
    board: "pd.DataFrame",
) -> Iterator[tuple[str, str, list[Figure], list[Table]]]:
    """Parts of the page with figures or tables: id, title, figures and tables of each."""
    of_tasks = means["task"] != ""
    materials = [
        Material(
            Together.of(items),
            means[(means["protocol"] == protocol) & ~of_tasks],
            board[board["protocol"] == protocol],
            runs,
            content.configurations,
        )
        for protocol, items in by_protocol(scored).items()
    ]
    for name, title, make in SECTIONS:
        figures = [figure for material in materials for figure in make(material)]
        if figures:
            yield name, title, figures, []
    agreement = agreement_table(scored)
    if agreement is not None:
        yield "surrogates", "Surrogates", [], [agreement]


def _head(content: "ReportInput", runs: "pd.DataFrame") -> dict[str, Any]:
    """What the page says of the runs as a whole."""
    overview = content.overview
    sessions = () if overview is None else overview.sessions
    counts = {state: int((runs["state"] == state).sum()) for state in STATES}
    others = ", ".join(f"{counts[s]:,} {s}" for s in STATES[1:] if counts[s])
    alert = f"Not finished, of {len(runs):,} runs: {others}." if others else ""
    coverage = alert or "Every planned run is finished."
    if overview is not None and overview.superseded:
        older = f"{overview.superseded:,} runs of other versions of a method"
        coverage += f" {older} are there and count nowhere."
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
        "limits": content.limits,
        "coverage": coverage,
        "alert": alert,
        "unfinished": unfinished_table(runs),
        "experiment": experiment_table(runs),
        "sessions": session_table(sessions) if sessions else None,
        "packages": packages(sessions),
    }


def _summary(
    parts: Mapping[str, Sequence[str]], boards: Sequence[Table], notes: Sequence[str]
) -> str:
    """The verdicts and leaderboards as Markdown."""
    texts = [
        "\n\n".join([f"## {markdown_text(title)}", *map(markdown_text, sentences)])
        for title, sentences in parts.items()
    ]
    texts += [markdown(table).rstrip() for table in boards]
    return "\n\n".join([*texts, *map(markdown_text, notes)]) + "\n"
