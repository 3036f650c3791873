"""Writes a report of a store: a summary, all numbers as CSV, and a figure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hpobench_ordered.artifact import write_atomically
from hpobench_ordered.errors import ExperimentError, StoreError
from hpobench_ordered.reporting.figure import draw_scores
from hpobench_ordered.reporting.scoring import BenchmarkScores, score_benchmarks
from hpobench_ordered.reporting.tables import LEGEND, mean_table, summary_rows, task_table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Report:
    """What a report consists of.

    Attributes:
        benchmarks: Scores by benchmark.
        unscored: Why others could not be scored, one sentence each.
        files: The files that were written.
    """

    benchmarks: tuple[BenchmarkScores, ...] = field(repr=False)
    unscored: tuple[str, ...]
    files: tuple[Path, ...]


def write_report(results: "pd.DataFrame", folder: Path) -> Report:
    """Write a report.

    The files are `summary.md`; `means.csv`, means over tasks after every trial; `scores.csv`, the
    same by task; and the figure of normalised scores as PNG and SVG.

    Args:
        results: One row a trial, as `Store.read` gives.
        folder: Where the files go; files of the same names are replaced.

    Raises:
        ExperimentError: Nothing of the results can be scored.
        StoreError: The folder cannot be written.
    """
    scored, unscored = score_benchmarks(results)
    if not scored:
        raise ExperimentError(" ".join(unscored))
    contents = {
        "summary.md": _markdown(scored, unscored).encode(),
        "means.csv": mean_table(scored).to_csv(index=False).encode(),
        "scores.csv": task_table(scored).to_csv(index=False).encode(),
        **draw_scores(scored, trial=1),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            write_atomically(folder / name, content)
    except OSError as error:
        raise StoreError(f"cannot write the report to {folder}: {error}") from None
    return Report(tuple(scored), tuple(unscored), tuple(folder / name for name in contents))


def _markdown(scored: Sequence[BenchmarkScores], unscored: Sequence[str]) -> str:
    lines = [line for paragraph in LEGEND for line in (paragraph, "")]
    for item in scored:
        header, *rows = summary_rows(item)
        lines += [f"## {item.title}", ""]
        lines += [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows)]
        lines += [line for note in item.notes() for line in ("", note)] + [""]
    lines += [line for note in unscored for line in (note, "")]
    return "\n".join(lines[:-1]) + "\n"
