"""The command that exports results: trials, a leaderboard, a table for a paper or a figure."""

from pathlib import Path

import click

from hpobench_ordered.analysis.incumbent_trials import select_incumbents
from hpobench_ordered.cli._options import FILE, open_results, results_arguments
from hpobench_ordered.cli._output import output_file
from hpobench_ordered.data.tables import encode_table
from hpobench_ordered.data.writing import write_atomically
from hpobench_ordered.errors import UnknownNameError
from hpobench_ordered.experiment.api import Results
from hpobench_ordered.experiment.run_tables import make_trials_table

TABLES = ("trials", "incumbents", "leaderboard")
FIGURES = ("curves", "ranks", "heatmap", "leader-differences")

CONTENTS_OF_SUFFIX = {
    ".csv": TABLES,
    ".parquet": TABLES,
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
  hpobench-ordered export --reference --suite retrain --output ranks.pdf --what ranks
  hpobench-ordered export --reference --suite retrain --output best.csv --what incumbents
      the best loss so far of each method, seed and task
"""


@click.command(epilog=EPILOG)
@results_arguments
@click.option(
    "--output",
    type=FILE,
    required=True,
    help="The file: .csv or .parquet, .tex or .md, or .pdf, .svg or .png.",
)
@click.option(
    "--what",
    "content",
    type=click.Choice([*TABLES, *FIGURES]),
    help="All trials; of these the incumbents, better than all before, which reference results "
    "have without configurations; the leaderboard; or a figure.  "
    "[default: trials, leaderboard as .tex and .md, curves as .pdf, .svg and .png]",
)
def export(
    results: Path | None,
    with_reference: bool,
    suite_names: tuple[str, ...],
    output: Path,
    content: str | None,
) -> None:
    """Write results for use elsewhere: trials with configurations, a table, or a figure.

    In trials each hyperparameter is a column `config.NAME`, empty where it is inactive or belongs
    to another benchmark. A leaderboard as .csv or .parquet has every number. As .tex or .md it is
    one table for a paper: a row for each method, with its score on each benchmark and its mean
    rank, the best in bold. LaTeX needs the package booktabs.
    """
    suffix = output.suffix.lower()
    content = _choose_content(suffix, content)
    opened = open_results(results, with_reference=with_reference, suite_names=suite_names)
    if content in FIGURES:
        _write_figure(opened, content, output)
    else:
        data = _encode(opened, content, suffix)
        with output_file(output):
            write_atomically(output, data)
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


def _write_figure(results: Results, name: str, output: Path) -> None:
    """Draw a figure of results, one of `FIGURES`, and write it to a file."""
    from hpobench_ordered.reporting import plots
    from hpobench_ordered.reporting.charts.saving import save

    draw = getattr(plots, name.replace("-", "_"))  # its functions are named like the figures
    chart = draw(results)
    with output_file(output):
        save(chart, output)


def _encode(results: Results, content: str, suffix: str) -> bytes:
    """Encode the content of a table, one of `TABLES`, for a file with this suffix."""
    if suffix in FORMAT_OF_SUFFIX:
        from hpobench_ordered.reporting.paper_table import paper_table

        return paper_table(results, FORMAT_OF_SUFFIX[suffix]).encode()

    if content == "leaderboard":
        table = results.leaderboard(full=True)
        if suffix == ".parquet":
            return bytes(table.to_parquet(index=False))
    elif content == "incumbents" and not results.joined.has_all_trials:
        table = results.incumbents()
    else:
        table = results.frame(configurations=True)
        if content == "incumbents":
            table = select_incumbents(table)
    if suffix == ".parquet":
        return encode_table(make_trials_table(table))
    return bytes(table.to_csv(index=False, lineterminator="\r\n").encode())
