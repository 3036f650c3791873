"""The command `fetch`, which downloads the published files of a benchmark."""

from pathlib import Path

import click

from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.cli._completion import complete_benchmark
from hpobench_ordered.cli._options import EXISTING_PATH
from hpobench_ordered.cli._output import progress_bar, say
from hpobench_ordered.data.local_copy import find_local_copy
from hpobench_ordered.data.remote import RemoteFile, cache_folder


@click.command(
    epilog="Example:  hpobench-ordered fetch xgboost-mnist --from aggregated_experiments.json"
)
@click.argument("name", shell_complete=complete_benchmark)
@click.option("--surrogate", help="Fetch what this surrogate needs.  [default: all files]")
@click.option(
    "--from",
    "source",
    type=EXISTING_PATH,
    help="A local copy instead of a download: the file, or a folder that holds the files.",
)
def fetch(name: str, surrogate: str | None, source: Path | None) -> None:
    """Download the published files of a benchmark: for further surrogates, and the tasks' data.

    Files are checked against their SHA-256 and stored in the cache folder, which the environment
    variable HPOBENCH_ORDERED_CACHE may name. With HPOBENCH_ORDERED_OFFLINE=1 nothing is
    downloaded.
    """
    spec = benchmark_spec(name)
    options = spec.surrogates if surrogate is None else (spec.option(surrogate),)
    files = spec.files if surrogate is None else options[0].files
    for option in options:
        if option.files and option.extra is not None:
            # Raises an error if a package is missing that evaluates these files.
            option.extra.check(f"surrogate {option.name!r} of {spec.name}")

    if not files:
        say(f"{spec.id}: nothing to fetch, it comes with the package")
    for file in files:
        _fetch_file(file, source, benchmark=spec.name)
    click.echo(str(cache_folder()))


def _fetch_file(file: RemoteFile, source: Path | None, *, benchmark: str) -> None:
    """Check a file in the cache, or else copy it from a source, or else download it."""
    if file.is_fetched:
        file.open_path()  # raises unless its hash is right
        say(f"{file.name}: already in the cache")
    elif source is not None:
        file.store(find_local_copy(source, file))
        say(f"{file.name}: copied")
    else:
        with progress_bar() as show_progress:
            file.download(
                benchmark=benchmark,
                progress=lambda done, total: show_progress(file.name, done, total),
            )
