"""Writes a report: a page for people, a summary, all numbers as CSV, figures and tables."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from hpobench_ordered.errors import ExperimentError, StoreError
from hpobench_ordered.files import write_atomically
from hpobench_ordered.reporting.page.formats import markdown_row, markdown_text
from hpobench_ordered.reporting.page.page import PAGE, Content, page_files
from hpobench_ordered.reporting.scoring import BenchmarkScores, runs_of, score_benchmarks
from hpobench_ordered.reporting.tables import legend, mean_table, summary_rows, task_table

if TYPE_CHECKING:
    import pandas as pd

    from hpobench_ordered.experiment.overview import Overview


@dataclass(frozen=True)
class ReportInput:
    """What a report is made of.

    Attributes:
        trials: One row a trial of the finished runs that count, as `Store.read` gives.
        overview: What became of the planned runs; without, those of the trials are all there is.
        timings: One row a run, as `Store.timings` gives; without, no times are shown.
        configurations: Gives the configurations of runs of one benchmark by their keys, as
            `Store.configurations`; without, no landscapes are drawn.
    """

    trials: "pd.DataFrame"
    overview: "Overview | None" = None
    timings: "pd.DataFrame | None" = None
    configurations: "Callable[[Iterable[str]], pd.DataFrame] | None" = None


@dataclass(frozen=True, slots=True)
class Report:
    """What a report consists of.

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


def write_report(given: ReportInput, folder: Path) -> Report:
    """Write a report.

    The files are `report.html`, a page that needs nothing else; `summary.md`; `means.csv`, means
    over tasks after every trial; `scores.csv`, the same by task; and in `figures` and `tables` what
    the page shows, for use elsewhere.

    Args:
        given: What it is made of.
        folder: Where the files go; files of the same names are replaced.

    Raises:
        ExperimentError: There are no runs.
        StoreError: The folder cannot be written.
    """
    runs = runs_of(given.trials) if given.overview is None else given.overview.runs
    if not len(runs):
        raise ExperimentError("there are no runs to report")
    scored, unscored = score_benchmarks(given.trials, runs)
    contents = _contents(given, runs, scored, unscored)
    try:
        for name, content in contents.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content)
    except OSError as error:
        raise StoreError(f"cannot write the report to {folder}: {error}") from None
    files = tuple(folder / name for name in contents)
    return Report(tuple(scored), tuple(unscored), files, folder / PAGE)


def _contents(
    given: ReportInput,
    runs: "pd.DataFrame",
    scored: Sequence[BenchmarkScores],
    unscored: Sequence[str],
) -> dict[str, bytes]:
    overview = given.overview
    content = Content(
        runs=runs,
        superseded=0 if overview is None else overview.superseded,
        failures=() if overview is None else overview.failures,
        sessions=() if overview is None else overview.sessions,
        timings=given.timings,
        configurations=given.configurations,
        scored=scored,
        unscored=unscored,
        version=version("hpobench-ordered"),
    )
    tables = {}
    if scored:
        tables = {
            "means.csv": mean_table(scored).to_csv(index=False).encode(),
            "scores.csv": task_table(scored).to_csv(index=False).encode(),
        }
    return {
        **page_files(content),
        "summary.md": _markdown(scored, unscored).encode(),
        **tables,
    }


def _markdown(scored: Sequence[BenchmarkScores], unscored: Sequence[str]) -> str:
    lines = [line for paragraph in legend() for line in (paragraph, "")]
    for item in scored:
        header, *rows = summary_rows(item)
        lines += [f"## {markdown_text(item.title)}", ""]
        lines += [markdown_row(header), markdown_row(["---"] * len(header))]
        lines += map(markdown_row, rows)
        lines += [line for note in item.notes() for line in ("", markdown_text(note))] + [""]
    lines += [line for note in unscored for line in (markdown_text(note), "")]
    return "\n".join(lines[:-1]) + "\n"
