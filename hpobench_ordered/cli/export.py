"""The command that exports results: trials, a table or a figure."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpobench_ordered.analysis.incumbent_trials import select_incumbents
from hpobench_ordered.cli._options import FILE, open_results, results_arguments
from hpobench_ordered.cli._output import output_file
from hpobench_ordered.errors import UnknownNameError
from hpobench_ordered.experiment.api import Results
from hpobench_ordered.files.writing import write_atomically

if TYPE_CHECKING:
    import pandas as pd

FIGURES = ("curves", "ranks", "heatmap", "leader-differences", "critical-differences")

CONTENTS_OF_SUFFIX = {
    ".csv": ("trials", "incumbents", "leaderboard"),
    ".parquet": ("trials", "incumbents", "leaderboard"),
    ".tex": ("leaderboard",),
    ".pdf": FIGURES,
    ".svg": FIGURES,
    ".png": FIGURES,
}
"""What a file can hold by its suffix, the default first."""

EPILOG = """\b
Examples:
  hpobench-ordered export results --output trials.parquet
  hpobench-ordered export results --output best.csv --what incumbents
  hpobench-ordered export results --reference --output table.tex
      a leaderboard for LaTeX, of the package's methods and those in results
  hpobench-ordered export --reference --suite retrain --output ranks.pdf --what ranks
"""


@click.command(epilog=EPILOG)
@results_arguments
@click.option(
    "--output",
    type=FILE,
    required=True,
    help="The file: .csv or .parquet, .tex, or .pdf, .svg or .png.",
)
@click.option(
    "--what",
    "content",
    type=click.Choice(["trials", "incumbents", "leaderboard", *FIGURES]),
    help="All trials; of these the incumbents, better than all before; the leaderboard; or a "
    "figure.  [default: trials, leaderboard as .tex, curves as .pdf, .svg and .png]",
)
def export(
    results: Path | None,
    with_reference: bool,
    suite_name: str | None,
    output: Path,
    content: str | None,
) -> None:
    """Write results for use elsewhere: trials with configurations, a table, or a figure.

    In trials each hyperparameter is a column `config.NAME`, empty where it is inactive or belongs
    to another benchmark. Tables for LaTeX need its package booktabs.
    """
    suffix = output.suffix.lower()
    if suffix not in CONTENTS_OF_SUFFIX:
        raise UnknownNameError("format", suffix, CONTENTS_OF_SUFFIX)
    possible = CONTENTS_OF_SUFFIX[suffix]
    if content is None:
        content = possible[0]
    if content not in possible:
        raise click.UsageError(f"{content} cannot be written as {suffix}")

    opened = open_results(results, with_reference=with_reference, suite_name=suite_name)
    if content in FIGURES:
        _write_figure(opened, content, output)
    else:
        table = _make_table(opened, content)
        encoded = _encode(table, suffix)
        with output_file(output):
            write_atomically(output, encoded)
    click.echo(str(output))


def _write_figure(results: Results, name: str, output: Path) -> None:
    """Draw a figure of results, one of `FIGURES`, and write it to a file."""
    from hpobench_ordered.plotting.saving import save

    draw = getattr(results.plot, name.replace("-", "_"))  # its methods are named like the figures
    chart = draw()
    with output_file(output):
        save(chart, output)


def _make_table(results: Results, content: str) -> "pd.DataFrame":
    """Make the table to write: the "leaderboard", all "trials", or the "incumbents" of these."""
    if content == "leaderboard":
        return results.leaderboard(full=True)
    trials = results.frame(configurations=True)
    return select_incumbents(trials) if content == "incumbents" else trials


def _encode(table: "pd.DataFrame", suffix: str) -> bytes:
    """Encode a table as the content of a file: ".parquet", ".csv", or a leaderboard as ".tex"."""
    from hpobench_ordered.reporting.formats import csv_bytes, latex
    from hpobench_ordered.reporting.tables import leaderboard_tables

    if suffix == ".parquet":
        return bytes(table.to_parquet(index=False))
    if suffix == ".csv":
        return csv_bytes(table)
    return "\n".join(map(latex, leaderboard_tables(table))).encode()
