"""Commands that download and check files: fetch, verify."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import click

from hpobench_ordered.cli._completion import complete_benchmark
from hpobench_ordered.cli._show import progress_bar, say
from hpobench_ordered.core.marks import Marks
from hpobench_ordered.core.specs import BenchmarkSpec
from hpobench_ordered.errors import (
    ArtifactError,
    DownloadError,
    HPOBenchOrderedError,
    UnknownNameError,
)
from hpobench_ordered.files.bundle import find_card
from hpobench_ordered.files.remote import RemoteFile, cache_folder
from hpobench_ordered.generation.base import silent
from hpobench_ordered.registry import benchmark_families, benchmark_spec, list_benchmarks
from hpobench_ordered.testing.golden import check_golden, golden_options, read_golden

FEW = 3  # with at most this many benchmarks the check takes two seconds, without progress bar
Outcome = tuple[list[str], list[str]]  # what was checked, and what is wrong


@click.command(
    epilog="Example:  hpobench-ordered fetch xgboost-mnist --from aggregated_experiments.json"
)
@click.argument("name", shell_complete=complete_benchmark)
@click.option("--surrogate", help="Fetch what this surrogate needs.  [default: all files]")
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, path_type=Path),
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
            option.extra.check(f"surrogate {option.name!r} of {spec.name}")
    if not files:
        say(f"{spec.id}: nothing to fetch, it comes with the package")
    for file in files:
        if file.is_fetched:
            file.open_path()
            say(f"{file.name}: already in the cache")
        elif source is not None:
            file.store(_local_copy(source, file))
            say(f"{file.name}: copied")
        else:
            _download(file)
    click.echo(str(cache_folder()))


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
    golden = read_golden()
    checks: dict[str, list[Callable[[], str]]] = {}
    for name in names or list_benchmarks():
        try:
            spec = benchmark_spec(name)
        except UnknownNameError:
            raise
        except HPOBenchOrderedError:
            checks[name] = [partial(_unreadable, name)]
        else:
            files = partial(_files, spec, spec.files)
            rest = [partial(_golden, spec, golden), partial(_card, spec), partial(_marks, spec)]
            checks[spec.id] = [files, *rest]
    for family in () if names else benchmark_families():
        checks[family.pattern] = [partial(_files, None, family.files())]
    wrong = False
    with progress_bar() if len(checks) > FEW else nullcontext(silent) as move:
        for done, (label, parts) in enumerate(checks.items()):
            move("verifying", done, len(checks))
            checked, problems = _outcome(parts)
            wrong |= bool(problems)
            for line in _lines(label, checked, problems):
                # A path may not be valid text.
                click.echo(line.encode(errors="backslashreplace").decode())
        move("verifying", len(checks), len(checks))
    if wrong:
        raise ArtifactError("some benchmarks are damaged")


def _lines(label: str, checked: list[str], problems: list[str]) -> Iterator[str]:
    for problem in problems:
        yield f"damaged  {label}: {' '.join(problem.split())}"
    if not problems:
        said = ", ".join(checked)
        yield (f"ok       {label}: {said}" if said else f"-        {label}: nothing to check")


def _unreadable(name: str) -> str:
    return benchmark_spec(name).id  # raises what is wrong


def _outcome(parts: Sequence[Callable[[], str]]) -> Outcome:
    """Run several checks, each of which describes itself; all are run even if one fails."""
    checked, problems = [], []
    for part in parts:
        try:
            checked.append(part())
        except HPOBenchOrderedError as error:
            problems.append(str(error))
    return [text for text in checked if text], list(dict.fromkeys(problems))


def _files(spec: BenchmarkSpec | None, files: Sequence[RemoteFile]) -> str:
    packaged = 0 if spec is None or spec.artifact is None else spec.artifact.check()
    fetched = [file for file in files if file.is_fetched]
    for file in fetched:
        file.open_path()
    count = packaged + len(fetched)
    return f"{count} file{'s' * (count != 1)}" if count else ""


def _golden(spec: BenchmarkSpec, golden: Mapping[str, Any]) -> str:
    if spec.is_local or spec.id not in golden:  # another package's, or of a family
        return ""
    count = check_golden(spec, golden)
    lacking = sorted({option.lacks for option in golden_options(spec) if not option.is_ready})
    text = f"{count} golden values" if count else ""
    return ", ".join(filter(None, [text, *(f"without golden values ({x})" for x in lacking)]))


def _card(spec: BenchmarkSpec) -> str:
    from hpobench_ordered.files.verification import check_card

    if spec.artifact is None or find_card(spec.artifact) is None:
        return ""
    check_card(spec, spec.artifact)
    return "card"


def _marks(spec: BenchmarkSpec) -> str:
    stored = spec.marks
    if not spec.option().is_ready:
        return ""
    if stored is None:
        is_marked = spec.name in list_benchmarks() and not spec.is_local
        return "without marks" if is_marked and not spec.option().trains else ""
    stored.check(Marks.of(spec.load()))
    return "marks"


def _local_copy(source: Path, file: RemoteFile) -> Path:
    """The file itself, or that of the same name anywhere in a folder, maybe compressed."""
    if source.is_file():
        return source
    name_there = Path(file.name)
    for name in (name_there.name, name_there.name + ".gz"):
        matches = sorted(source.rglob(name))
        nearest = [m for m in matches if m.parent.name == name_there.parent.name] or matches
        if nearest:
            return nearest[0]
    raise DownloadError(f"no file {name_there.name} in {source}")


def _download(file: RemoteFile) -> None:
    with progress_bar() as move:
        file.download(progress=lambda done, total: move(file.name, done, total))
