"""Writes a report: a page for people, a summary, figures, and the numbers as CSV."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hpobench_ordered.analysis.scoring import BenchmarkScores, runs_of, score_benchmarks
from hpobench_ordered.errors import ExperimentError, StoreError
from hpobench_ordered.files import write_atomically

if TYPE_CHECKING:
    import pandas as pd

    from hpobench_ordered.experiment.overview import Overview


@dataclass(frozen=True)
class ReportInput:
    """What a report is made of.

    Attributes:
        trials: One row a trial of the finished runs, as `Store.read` gives.
        overview: What became of the planned runs; default: all runs of the trials are finished.
        timings: One row a run, as `Store.timings` gives; default: no times are shown.
        configurations: Gives the configurations of runs of one benchmark by their keys, as
            `Store.configurations`; default: no landscapes are drawn.
        limits: Known limits of the surrogates, by benchmark.
    """

    trials: "pd.DataFrame"
    overview: "Overview | None" = None
    timings: "pd.DataFrame | None" = None
    configurations: "Callable[[Iterable[str]], pd.DataFrame] | None" = None
    limits: Mapping[str, Sequence[str]] = field(default_factory=dict)


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


def write_report(content: ReportInput, folder: Path) -> Report:
    """Write a report.

    The files are `report.html`, a page that needs nothing else; `summary.md`, its words and tables;
    `leaderboard.csv` and `leaderboard.tex`; `means.csv`, means after every trial; `pairs.csv`, how
    methods compare two by two; `failures.csv`; and in `figures` the figures for use elsewhere.

    Args:
        content: What it is made of.
        folder: Where the files go; files of the same names are replaced.

    Raises:
        ExperimentError: There are no runs.
        StoreError: The folder cannot be written.
    """
    from hpobench_ordered.reporting.page import PAGE, report_files

    runs = runs_of(content.trials) if content.overview is None else content.overview.runs
    if not len(runs):
        raise ExperimentError("there are no runs to report")
    scored, unscored = score_benchmarks(content.trials, runs, content.timings)
    files = report_files(content, runs, scored, unscored)
    try:
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, data)
    except OSError as error:
        raise StoreError(f"cannot write the report to {folder}: {error}") from None
    paths = tuple(folder / name for name in files)
    return Report(tuple(scored), tuple(unscored), paths, folder / PAGE)
