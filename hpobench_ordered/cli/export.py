"""The command that exports results: trials, a table or a figure."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpobench_ordered.cli._options import FILE, chosen_results, results_arguments
from hpobench_ordered.errors import UnknownNameError
from hpobench_ordered.experiment.api import Results
from hpobench_ordered.files.writing import write_atomically

if TYPE_CHECKING:
    import pandas as pd

DEFAULT = {
    **dict.fromkeys((".csv", ".parquet"), "trials"),
    ".tex": "leaderboard",
    **dict.fromkeys((".pdf", ".svg", ".png"), "curves"),
}
"""Contents that files of a suffix can have."""
FIGURES = ("curves", "ranks", "heatmap", "critical-differences")

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
    type=click.Choice(["trials", "incumbents", "leaderboard", *FIGURES]),
    help="All trials; of these the incumbents, better than all before; the leaderboard; or a "
    "figure.  [default: trials, leaderboard as .tex, curves as .pdf, .svg and .png]",
)
def export(
    results: Path | None,
    with_reference: bool,
    suite_name: str | None,
    output: Path,
    what: str | None,
) -> None:
    """Write results for use elsewhere: trials with configurations, a table, or a figure.

    In trials each hyperparameter is a column `config.NAME`, empty where it is inactive or belongs
    to another benchmark. Tables for LaTeX need its package booktabs.
    """
    from hpobench_ordered.plotting.saving import save

    suffix = output.suffix.lower()
    if suffix not in DEFAULT:
        raise UnknownNameError("format", suffix, DEFAULT)
    chosen = chosen_results(results, with_reference=with_reference, suite_name=suite_name)
    asked = what or DEFAULT[suffix]
    if (asked in FIGURES) != (DEFAULT[suffix] == "curves"):
        raise click.UsageError(f"{asked} cannot be written as {suffix}")
    if asked in FIGURES:
        save(getattr(chosen.plot, asked.replace("-", "_"))(), output)
    else:
        write_atomically(output, _encoded(_table(chosen, asked), suffix))
    click.echo(str(output))


def _table(results: Results, what: str) -> "pd.DataFrame":
    if what == "leaderboard":
        return results.leaderboard(full=True)
    trials = results.frame(configurations=True)
    if what == "trials":
        return trials
    runs = [trials["key"], trials["task"]]
    best = trials["loss"].groupby(runs).cummin()
    before = best.groupby(runs).shift()
    return trials[before.isna() | (trials["loss"] < before)]


def _encoded(table: "pd.DataFrame", suffix: str) -> bytes:
    from hpobench_ordered.reporting.formats import csv_bytes, latex
    from hpobench_ordered.reporting.tables import leaderboard_tables

    if suffix == ".parquet":
        return bytes(table.to_parquet(index=False))
    if suffix == ".csv":
        return csv_bytes(table)
    if "wins" not in table:
        raise click.UsageError("trials cannot be written as .tex")
    return "\n".join(map(latex, leaderboard_tables(table))).encode()
