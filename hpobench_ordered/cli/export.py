"""The command that exports results: trials, a leaderboard, a table for a paper or a figure."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from hpobench_ordered.analysis.incumbent_trials import select_incumbents
from hpobench_ordered.cli._completion import complete_benchmark, complete_method
from hpobench_ordered.cli._options import FILE, open_results, results_arguments
from hpobench_ordered.cli._output import output_file
from hpobench_ordered.data.writing import write_atomically
from hpobench_ordered.errors import UnknownNameError
from hpobench_ordered.experiment.api import Results
from hpobench_ordered.reporting.paper_table import COLUMNS, FORMATS, MEASURES

if TYPE_CHECKING:
    import pandas as pd

FIGURES = ("curves", "ranks", "heatmap", "leader-differences", "critical-differences")

CONTENTS_OF_SUFFIX = {
    ".csv": ("trials", "incumbents", "leaderboard"),
    ".parquet": ("trials", "incumbents", "leaderboard"),
    ".tex": ("leaderboard",),
    ".md": ("leaderboard",),
    ".pdf": FIGURES,
    ".svg": FIGURES,
    ".png": FIGURES,
}
"""What a file can hold by its suffix, the default first."""

FORMAT_OF_SUFFIX = {".tex": "latex", ".md": "markdown"}
"""Formats of the table for a paper, by the suffix of its file."""

EPILOG = """\b
Examples:
  hpobench-ordered export results --output trials.parquet
  hpobench-ordered export results --output best.csv --what incumbents
  hpobench-ordered export results --reference --output table.tex
      a table for LaTeX, of the package's methods and those in results
  hpobench-ordered export --reference --suite retrain --format markdown \\
      --columns families --method hyperbo --method bo --trial 10
  hpobench-ordered export --reference --suite retrain --output ranks.pdf --what ranks
"""


@click.command(epilog=EPILOG)
@results_arguments
@click.option(
    "--output",
    type=FILE,
    help="The file: .csv or .parquet, .tex or .md, or .pdf, .svg or .png.",
)
@click.option(
    "--format",
    "table_format",
    type=click.Choice(list(FORMATS)),
    help="Print a table, if no file is to be written.",
)
@click.option(
    "--what",
    "content",
    type=click.Choice(["trials", "incumbents", "leaderboard", *FIGURES]),
    help="All trials; of these the incumbents, better than all before; the leaderboard; or a "
    "figure.  [default: trials, leaderboard as .tex and .md, curves as .pdf, .svg and .png]",
)
@click.option(
    "--columns",
    type=click.Choice(COLUMNS),
    default="benchmarks",
    show_default=True,
    help="Of a table: one measure on each benchmark or family, or all measures over all.",
)
@click.option(
    "--measure",
    type=click.Choice(MEASURES),
    help="Of a table: the measure on benchmarks or families.  [default: score]",
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    shell_complete=complete_method,
    help="Of a table: a method; repeat.  [default: all, by mean rank]",
)
@click.option(
    "--benchmark",
    "benchmarks",
    multiple=True,
    shell_complete=complete_benchmark,
    help="Of a table: a benchmark; repeat.  [default: all that count in means]",
)
@click.option("--trial", type=int, help="Of a table: after this trial.  [default: the last]")
@click.option(
    "--intervals/--no-intervals",
    default=True,
    show_default=True,
    help="Of a table: whether it has 95 % intervals over seeds.",
)
@click.pass_context
def export(
    context: click.Context,
    /,
    results: Path | None,
    with_reference: bool,
    suite_names: tuple[str, ...],
    output: Path | None,
    table_format: str | None,
    content: str | None,
    methods: tuple[str, ...],
    benchmarks: tuple[str, ...],
    **other_table_options: Any,
) -> None:
    """Write results for use elsewhere: trials with configurations, a table, or a figure.

    In trials each hyperparameter is a column `config.NAME`, empty where it is inactive or belongs
    to another benchmark. A leaderboard as .csv or .parquet has every number. As .tex or .md it is
    one table for a paper: a row for each method, the best results in bold. LaTeX needs the package
    booktabs, and graphicx if titles are long.
    """
    table_options = {
        "methods": methods or None,  # none are named: all
        "benchmarks": benchmarks or None,
        **other_table_options,
    }
    if output is None:
        if table_format is None:
            raise click.UsageError("give --output, or --format to print a table")
        if content not in (None, "leaderboard"):
            raise click.UsageError(f"{content} cannot be printed as {table_format}")
        opened = open_results(results, with_reference=with_reference, suite_names=suite_names)
        click.echo(opened.table(table_format, **table_options), nl=False)
        return

    suffix = output.suffix.lower()
    content = _choose_content(suffix, content)
    if table_format not in (None, FORMAT_OF_SUFFIX.get(suffix)):
        raise click.UsageError(f"{table_format} cannot be written as {suffix}")
    if suffix not in FORMAT_OF_SUFFIX:
        _refuse_options(context, table_options)

    opened = open_results(results, with_reference=with_reference, suite_names=suite_names)
    if suffix in FORMAT_OF_SUFFIX:
        text = opened.table(FORMAT_OF_SUFFIX[suffix], **table_options)
        _write_file(output, text.encode())
    elif content in FIGURES:
        _write_figure(opened, content, output)
    else:
        frame = _make_frame(opened, content)
        _write_file(output, _encode(frame, suffix))
    click.echo(str(output))


def _choose_content(suffix: str, content: str | None) -> str:
    """Choose what a file is to hold: the content that is asked for, or the default of its suffix.

    Raises:
        UnknownNameError: Nothing can be written with this suffix.
        click.UsageError: The content cannot be written with it.
    """
    if suffix not in CONTENTS_OF_SUFFIX:
        raise UnknownNameError("format", suffix, CONTENTS_OF_SUFFIX)
    possible = CONTENTS_OF_SUFFIX[suffix]
    if content is None:
        return possible[0]
    if content not in possible:
        raise click.UsageError(f"{content} cannot be written as {suffix}")
    return content


def _refuse_options(context: click.Context, names: Iterable[str]) -> None:
    """Raise an error if one of some options was used, which only tables for papers have."""
    option_of_name = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    for name in names:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise click.UsageError(
                f"{option_of_name[name]} is only for tables: .tex, .md or --format"
            )


def _write_file(path: Path, content: bytes) -> None:
    """Write a file, and its folder if there is none."""
    with output_file(path):
        write_atomically(path, content)


def _write_figure(results: Results, name: str, output: Path) -> None:
    """Draw a figure of results, one of `FIGURES`, and write it to a file."""
    from hpobench_ordered.reporting.charts.saving import save

    draw = getattr(results.plot, name.replace("-", "_"))  # its methods are named like the figures
    chart = draw()
    with output_file(output):
        save(chart, output)


def _make_frame(results: Results, content: str) -> "pd.DataFrame":
    """Make the table to write: the "leaderboard", all "trials", or the "incumbents" of these."""
    if content == "leaderboard":
        return results.leaderboard(full=True)
    trials = results.frame(configurations=True)
    return select_incumbents(trials) if content == "incumbents" else trials


def _encode(table: "pd.DataFrame", suffix: str) -> bytes:
    """Encode a table as the content of a file, ".parquet" or ".csv"."""
    from hpobench_ordered.reporting.formats import csv_bytes

    if suffix == ".parquet":
        return bytes(table.to_parquet(index=False))
    return csv_bytes(table)
