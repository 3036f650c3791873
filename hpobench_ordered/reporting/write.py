"""Writes a report: a page for people, a summary, figures, and the numbers as CSV."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup
from hpobench_ordered.analysis.bootstrap import MIN_SAMPLES_OF_INTERVAL
from hpobench_ordered.analysis.curves import curves
from hpobench_ordered.analysis.labels import format_count, label_protocol
from hpobench_ordered.analysis.leaderboard import leaderboard
from hpobench_ordered.analysis.scoring import (
    BenchmarkScores,
    group_by_protocol,
    runs_of_trials,
    score_benchmarks,
)
from hpobench_ordered.analysis.verdict import Verdict, verdicts
from hpobench_ordered.data.identity import hash_bytes
from hpobench_ordered.data.writing import write_atomically
from hpobench_ordered.errors import ExperimentError, StoreError
from hpobench_ordered.experiment.api import Results
from hpobench_ordered.experiment.overview import Overview, State
from hpobench_ordered.experiment.scored import (
    explain_left_out,
    find_families,
    find_limits,
    select_measured,
)
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.reporting.charts.evaluations import Configurations
from hpobench_ordered.reporting.charts.figures import FigureData
from hpobench_ordered.reporting.figures import ReportFigure, make_report_figures
from hpobench_ordered.reporting.formats import TextTable, csv_bytes, latex, markdown, markdown_text
from hpobench_ordered.reporting.interactive import collect_page_data, list_columns
from hpobench_ordered.reporting.render import render, render_part
from hpobench_ordered.reporting.tables import (
    STATES,
    agreement_tables,
    experiment_table,
    leaderboard_tables,
    leaders_table,
    session_table,
    speedup_tables,
    states_table,
    tabulate_pairs,
)
from hpobench_ordered.runtime.machine import PACKAGE, package_versions

if TYPE_CHECKING:
    import pandas as pd

PAGE = "report.html"
PARTS = "report_parts"
"""Folder beside the page with the numbers that it loads when they are selected."""

MAX_FAILURES_ON_PAGE = 200
"""The page shows at most this many failures; a file lists all."""

MEASURED_ONLY = (
    "Measured tasks alone: those whose values are interpolated are left out, and so are surrogates "
    "that stand in for others."
)

READING = (
    "Everything is of the best trial so far. A number is a mean over seeds and tasks, but for the "
    "first task of ordered runs, which has no history; over several benchmarks the mean of theirs, "
    "in which benchmarks of one family count once together.",
    "Scores, normalised regrets and ranks are better the lower they are, and relative to the "
    "methods compared here: compare them within one report only.",
    "Bands and intervals are 95 % intervals over seeds: what other seeds might have given on the "
    f"same tasks; fewer than {MIN_SAMPLES_OF_INTERVAL} seeds have none. What is "
    "said of these benchmarks is about other seeds and other tasks of theirs; only families of "
    "benchmarks are samples of others, which benchmarks of one family are not: they resemble each "
    "other.",
    "A mean is over all seeds that a method has finished, a comparison of two methods over those "
    "that both have. A method that finished fewer than half of its planned seeds on a benchmark is "
    "not compared there.",
)


@dataclass(frozen=True)
class ReportInput:
    """The content of a report.

    Attributes:
        trials: One row per trial of the finished runs, as `Store.read` gives.
        overview: States of the planned runs; default: all runs of the trials are finished.
        timings: One row per run, as `Store.timings` gives; default: no times are shown.
        configurations: Gives the configurations of runs of one benchmark by their keys, as
            `Store.configurations`; default: no landscapes are drawn.
        limits: Known limits of the surrogates, by benchmark.
        left_out: Why means over benchmarks leave a benchmark out, by its name and surrogate.
        families: Families of benchmarks, by name.
        measured_only: Whether the trials are without interpolated tasks and stand-in surrogates.
    """

    trials: "pd.DataFrame"
    overview: Overview | None = None
    timings: "pd.DataFrame | None" = None
    configurations: Configurations | None = None
    limits: Mapping[str, Sequence[str]] = field(default_factory=dict)
    left_out: Mapping[tuple[str, str], str] = field(default_factory=dict)
    families: Mapping[str, str] = field(default_factory=dict)
    measured_only: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """A written report.

    Attributes:
        benchmarks: Scores by benchmark.
        unscored: Why others could not be scored, one sentence each.
        files: The files that were written.
        page: The page, one of the files.
    """

    benchmarks: tuple[BenchmarkScores, ...] = field(repr=False)
    unscored: tuple[str, ...]
    files: tuple[Path, ...] = field(repr=False)
    page: Path


def report(
    results: Results | str | Path, folder: str | Path | None = None, *, measured_only: bool = False
) -> Report:
    """Write a report of runs: one page, tables and figures, each with its data.

    Args:
        results: What `run` returned, or the folder of a store.
        folder: Where the report goes; default: the folder `report` in that of the results.
        measured_only: Whether to leave out interpolated tasks and stand-in surrogates.

    Returns:
        Scores by benchmark, and the files written.

    Raises:
        StoreError: There are no runs, they cannot be read, or the folder cannot be written.
    """
    if not isinstance(results, Results):
        results = Results(Store(Path(results)), ())
    content = collect_content(results, measured_only=measured_only)
    return write_report(content, Path(folder or results.store.folder / "report"))


def collect_content(results: Results, *, measured_only: bool = False) -> ReportInput:
    """Collect the content of a report of results.

    Args:
        results: The results.
        measured_only: Whether to leave out interpolated tasks and stand-in surrogates.

    Raises:
        StoreError: There are no runs, or they cannot be read.
    """
    store = results.joined
    overview = results.overview()
    if overview.runs.empty:
        raise StoreError(f"there are no runs in {store.folder}")

    finished = overview.keys(State.DONE)
    trials = store.read(finished)
    if measured_only:
        trials = select_measured(trials)
        overview = replace(overview, runs=select_measured(overview.runs))
        if overview.runs.empty:
            raise StoreError(f"every run in {store.folder} is on a stand-in surrogate")

    return ReportInput(
        trials=trials,
        overview=overview,
        timings=store.timings(finished),
        configurations=store.configurations if store.has_all_trials else None,
        limits=find_limits(overview.runs),
        left_out=explain_left_out(overview.runs),
        families=find_families(overview.runs),
        measured_only=measured_only,
    )


def write_report(content: ReportInput, folder: Path) -> Report:
    """Write a report of its content.

    The files are `report.html`, the page, and in `report_parts` numbers that it loads when they are
    selected; `summary.md`, its words and tables; `leaderboard.csv` and `leaderboard.tex`;
    `means.csv`, means after every trial; `pairs.csv`, how methods compare two by two;
    `failures.csv`; and in `figures` the figures for use elsewhere.

    Args:
        content: Its content.
        folder: Where the files go; files of the same names are replaced.

    Raises:
        ExperimentError: There are no runs.
        StoreError: The folder cannot be written.
    """
    runs = runs_of_trials(content.trials) if content.overview is None else content.overview.runs
    if not len(runs):
        raise ExperimentError("there are no runs to report")
    scored, unscored = score_benchmarks(
        content.trials, runs, content.timings, content.left_out, content.families
    )
    files = _files(content, runs, scored, unscored)
    try:
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, data)
    except OSError as error:
        raise StoreError(f"cannot write the report to {folder}: {error}") from None
    paths = tuple(folder / name for name in files)
    return Report(tuple(scored), tuple(unscored), paths, folder / PAGE)


def _files(
    content: ReportInput,
    runs: "pd.DataFrame",
    scored: Sequence[BenchmarkScores],
    unscored: Sequence[str],
) -> dict[str, bytes]:
    """Make the contents of all files of the report, by name.

    They are the page, the parts that it loads, the summary, the numbers and the figures.
    """
    means = curves(scored)
    board = leaderboard(scored)
    board_tables = list(leaderboard_tables(board))
    verdicts_of_protocols = _group_verdicts(scored)
    sections = list(_sections(content, runs, scored, board))
    scope = [MEASURED_ONLY] if content.measured_only else []
    failures = () if content.overview is None else content.overview.failures
    leaders = {}
    for label, protocol_verdicts in verdicts_of_protocols.items():
        leaders[label] = leaders_table(protocol_verdicts)

    files: dict[str, bytes] = {}
    if scored:
        files |= _number_files(scored, means, board, board_tables)
    if failures:
        # The reason is an enumeration; the file has its value.
        records = [asdict(failure) | {"reason": failure.reason.value} for failure in failures]
        files["failures.csv"] = csv_bytes(records)

    values = _head(content, runs) | {
        "unscored": unscored,
        "scope": scope,
        "left_out": {item.label: item.left_out for item in scored if item.left_out},
        "leaders": leaders,
        "board": board_tables[0] if board_tables else None,
        "columns": list_columns(board),
        "sections": sections,
        "failures": failures,
        "most_failures": MAX_FAILURES_ON_PAGE,
        "reading": READING,
        "parts_folder": PARTS,
        "files": sorted(files),  # those with numbers, which the page offers
    }
    if scored:
        data, parts = collect_page_data(scored, means, board)
        part_files = {f"{PARTS}/{name}.js": render_part(name, part) for name, part in parts.items()}
        # Part of the address of parts, so that browsers keep no parts of an earlier report.
        edition = hash_bytes(b"".join(part_files.values()))[:12]
        files[PAGE] = render(values, data | {"folder": PARTS, "edition": edition}).encode()
        files |= part_files
    else:
        files[PAGE] = render(values, None).encode()

    notes = list(scope)
    for item in scored:
        notes += [f"{item.label}: {note}" for note in item.notes()]
    notes += unscored
    files["summary.md"] = _summary(verdicts_of_protocols, board_tables, notes).encode()

    for _, _, figures, _ in sections:
        for figure in figures:
            for ending, data_of_file in figure.files.items():
                files[f"figures/{figure.stem}.{ending}"] = data_of_file
    return files


def _group_verdicts(scored: Sequence[BenchmarkScores]) -> dict[str, list[Verdict]]:
    """Compute the verdicts, and group them by the label of their protocol."""
    verdicts_of_protocols: dict[str, list[Verdict]] = {}
    for verdict in verdicts(scored):
        label = label_protocol(verdict.protocol)
        verdicts_of_protocols.setdefault(label, []).append(verdict)
    return verdicts_of_protocols


def _number_files(
    scored: Sequence[BenchmarkScores],
    means: "pd.DataFrame",
    board: "pd.DataFrame",
    boards: Sequence[TextTable],
) -> dict[str, bytes]:
    """Make the contents of the files with numbers, by name.

    Args:
        scored: Scores by benchmark.
        means: Means after every trial, as `curves` gives.
        board: The leaderboard.
        boards: The leaderboard as tables of texts, for LaTeX.
    """
    is_mean_over_tasks = means["task"] == ""  # the other rows are of single tasks
    return {
        "leaderboard.csv": csv_bytes(board),
        "leaderboard.tex": "\n".join(map(latex, boards)).encode(),
        "means.csv": csv_bytes(means[is_mean_over_tasks].drop(columns="task")),
        "pairs.csv": csv_bytes(tabulate_pairs(scored)),
    }


def _summary(
    verdicts_of_protocols: Mapping[str, Sequence[Verdict]],
    board_tables: Sequence[TextTable],
    notes: Sequence[str],
) -> str:
    """Write the verdicts, leaderboards and notes as Markdown, for `summary.md`."""
    paragraphs = []
    for label, protocol_verdicts in verdicts_of_protocols.items():
        paragraphs.append(f"## {markdown_text(label)}")
        paragraphs += [markdown_text(verdict.sentence) for verdict in protocol_verdicts]
    paragraphs += [markdown(table).rstrip() for table in board_tables]
    paragraphs += map(markdown_text, notes)
    return "\n\n".join(paragraphs) + "\n"


def _sections(
    content: ReportInput,
    runs: "pd.DataFrame",
    scored: Sequence[BenchmarkScores],
    board: "pd.DataFrame",
) -> Iterator[tuple[str, str, list[ReportFigure], list[TextTable]]]:
    """Make the sections of the page that have figures or tables.

    Each section is a tuple of its id, its title, its figures and its tables.
    """
    groups = group_by_protocol(scored)
    data_of_protocols = [
        FigureData(
            group=BenchmarkGroup.for_means(items),
            board=board[board["protocol"] == protocol],
            runs=runs,
            configurations=content.configurations,
            is_one_of_several=len(groups) > 1,
        )
        for protocol, items in groups.items()
    ]
    for kind, figures in make_report_figures(data_of_protocols):
        yield kind.name, kind.heading, figures, []

    speedups = list(speedup_tables(scored))
    if speedups:
        yield "speedups", "Speed-ups", [], speedups
    agreement = list(agreement_tables(scored))
    if agreement:
        yield "surrogates", "Surrogates", [], agreement


def _head(content: ReportInput, runs: "pd.DataFrame") -> dict[str, Any]:
    """Collect the values that the page's template shows about all runs together, by name."""
    overview = content.overview
    sessions = () if overview is None else overview.sessions
    n_finished = int((runs["state"] == "done").sum())
    alert = _describe_unfinished(runs)  # "" if there is nothing to warn of
    coverage = alert or "Every planned run is finished."
    if overview is not None and overview.superseded:
        older = f"{overview.superseded:,} runs of other versions of a method"
        coverage += f" {older} are there and count nowhere."

    each_protocol = dict.fromkeys(runs["protocol"])  # once, in the order of the runs
    protocols = "; ".join(map(label_protocol, each_protocol))
    n_seeds = runs["seed"].nunique()
    versions: set[str] = set()  # such as "numpy 2.1.0", from all starts of the runner
    for session in sessions:
        packages = session.get("packages", {})
        versions |= {f"{package} {number}" for package, number in packages.items()}
    return {
        "title": f"{_name_or_count(runs, 'method')} on {_name_or_count(runs, 'benchmark')}",
        "version": package_versions()[PACKAGE],
        "summary": f"{n_finished:,} of {len(runs):,} runs are finished, over "
        f"{format_count(n_seeds, 'seed')}, under {protocols}.",
        "when": _describe_days(sessions),
        "limits": content.limits,
        "coverage": coverage,
        "alert": alert,
        "unfinished": states_table(runs, unfinished=True),
        "experiment": experiment_table(runs),
        "sessions": session_table(sessions) if sessions else None,
        "packages": sorted(versions),
    }


def _describe_unfinished(runs: "pd.DataFrame") -> str:
    """Say how many runs are not finished, by their state; "" if all are."""
    parts = []
    for state in STATES[1:]:  # the first is "done"
        n_runs = int((runs["state"] == state).sum())
        if n_runs:
            parts.append(f"{n_runs:,} {state}")
    if not parts:
        return ""
    return f"Not finished, of {len(runs):,} runs: {', '.join(parts)}."


def _describe_days(sessions: Sequence[Mapping[str, Any]]) -> str:
    """Write the days of the first and the last start of the runner; "" if none is known."""
    starts = [str(session["started"]) for session in sessions if session.get("started")]
    if not starts:
        return ""
    # Times in ISO format sort as texts. The day stands before the "T".
    first = min(starts).partition("T")[0]
    last = max(starts).partition("T")[0]
    return first if first == last else f"{first} to {last}"


def _name_or_count(runs: "pd.DataFrame", noun: str) -> str:
    """Name the only method or benchmark of the runs, or say how many there are.

    `noun` is "method" or "benchmark", the column of the runs.
    """
    names = runs[noun].unique()
    return str(names[0]) if len(names) == 1 else format_count(len(names), noun)
