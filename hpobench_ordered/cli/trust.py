"""Commands that download and check files: fetch, verify."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import click

from hpobench_ordered.benchmarks.registry import benchmark_families, benchmark_spec, list_benchmarks
from hpobench_ordered.cli._completion import complete_benchmark
from hpobench_ordered.cli._options import EXISTING_PATH
from hpobench_ordered.cli._output import progress_bar, say
from hpobench_ordered.data.file_interfaces import PublishedFile
from hpobench_ordered.data.local_copy import find_local_copy
from hpobench_ordered.data.remote import cache_folder
from hpobench_ordered.errors import ArtifactError, HPOBenchOrderedError, UnknownNameError
from hpobench_ordered.generation.base import silent
from hpobench_ordered.testing.golden import read_golden
from hpobench_ordered.testing.verification import Verification, verify_benchmark, verify_family

MAX_WITHOUT_BAR = 3  # this many benchmarks are verified in two seconds, without a progress bar


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


def _fetch_file(file: PublishedFile, source: Path | None, *, benchmark: str) -> None:
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


@click.command(
    epilog="Examples:  hpobench-ordered verify newsvendor\n\n"
    "hpobench-ordered verify ./artifacts/mine"
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_benchmark)
def verify(names: tuple[str, ...]) -> None:
    """Check the files of benchmarks, their values, and what their cards claim.

    If no NAME is given, all benchmarks are checked.

    Every file, packaged or fetched, must have its recorded hash. Every surrogate that comes with a
    package must give the golden values recorded when it was released. Definition, best known
    values, sizes, numbers and figures of a card are compared with what is there, and marks with
    what random configurations give. A NAME may be the path of an artifact, which has no golden
    values.

    Exits with 1 if anything is wrong, after everything was checked.
    """
    _check_names(names)
    verifiers = _make_verifiers(names, read_golden())
    is_damaged = False
    has_bar = len(verifiers) > MAX_WITHOUT_BAR
    with progress_bar() if has_bar else nullcontext(silent) as show_progress:
        for number_done, verify_next in enumerate(verifiers):
            show_progress("verifying", number_done, len(verifiers))
            verification = verify_next()
            is_damaged |= bool(verification.problems)
            for line in _describe(verification):
                # A path may have bytes that are no text, and that no terminal can show.
                click.echo(line.encode(errors="backslashreplace").decode())
        show_progress("verifying", len(verifiers), len(verifiers))
    if is_damaged:
        raise ArtifactError("some benchmarks are damaged")


def _check_names(names: Sequence[str]) -> None:
    """Raise an UnknownNameError for a name of no benchmark, before anything is verified."""
    for name in names:
        try:
            benchmark_spec(name)
        except UnknownNameError:
            raise
        except HPOBenchOrderedError:
            # It is damaged, which is reported with the other benchmarks.
            pass


def _make_verifiers(
    names: Sequence[str], golden: Mapping[str, Any]
) -> list[Callable[[], Verification]]:
    """Functions that verify each of some benchmarks; without names all, and the families."""
    verifiers: list[Callable[[], Verification]] = []
    for name in names or list_benchmarks():
        verifiers.append(partial(verify_benchmark, name, golden))
    if not names:
        verifiers += [partial(verify_family, family) for family in benchmark_families()]
    return verifiers


def _describe(verification: Verification) -> Iterator[str]:
    """A line for each problem, or a line that says what was checked."""
    label = verification.label
    for problem in verification.problems:
        on_one_line = " ".join(problem.split())
        yield f"damaged  {label}: {on_one_line}"
    if not verification.problems:
        checked = ", ".join(verification.checked)
        yield f"ok       {label}: {checked}" if checked else f"-        {label}: nothing to check"
