"""The command that makes the reference results."""

from pathlib import Path

import click

from hpobench_ordered.cli._options import FOLDER, dask_option, workers_option
from hpobench_ordered.cli._show import say


@click.command("reference", epilog="Example:  hpobench-ordered generate reference results")
@click.argument("results", type=FOLDER)
@click.option(
    "--run/--no-run",
    "with_runs",
    default=True,
    show_default=True,
    help="Run first what RESULTS lacks; after a stop, the same command continues.",
)
@workers_option
@dask_option
@click.option(
    "--output",
    type=FOLDER,
    default=Path("artifacts/reference"),
    show_default=True,
    help="Folder of the files, of which those that are there are replaced.",
)
def reference(results: Path, with_runs: bool, workers: int, dask: str | None, output: Path) -> None:
    """Make the reference results that come with the package, from the runs in RESULTS.

    Methods, benchmarks and seeds are listed in hpobench_ordered/generation/_reference.py.
    """
    from hpobench_ordered.generation._reference import run_missing, write_reference

    if with_runs:
        run_missing(results, workers=workers, dask=dask)
    size = missing = 0
    for path, done, lacking in write_reference(results, output):
        click.echo(f"{path.name}: {done} runs, {path.stat().st_size:,} bytes")
        size, missing = size + path.stat().st_size, missing + lacking
    click.echo(f"{size:,} bytes in {output}")
    if missing:
        say(f"{missing} runs are left out, as not all methods finished their seeds")
