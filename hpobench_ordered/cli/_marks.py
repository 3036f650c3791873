"""The command that finds benchmarks on which methods hardly differ."""

from pathlib import Path

import click

from hpobench_ordered.cli._completion import complete_benchmark
from hpobench_ordered.cli._show import progress_bar
from hpobench_ordered.core.marks import FILE, Marks, write_marks
from hpobench_ordered.core.specs import BenchmarkSpec
from hpobench_ordered.files.local import local_folder
from hpobench_ordered.registry import benchmark_spec, list_benchmarks

COMMAND = "hpobench-ordered generate marks"


@click.command(epilog="Example:  hpobench-ordered generate marks digits-forest")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_benchmark)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file.  [default: marks.json in the folder of your own benchmarks]",
)
def marks(names: tuple[str, ...], output: Path | None) -> None:
    """Mark benchmarks that are plateaus, or that copying solves.

    Without NAME: all that come with the package, can be evaluated at once and train no model.

    A plateau: on two thirds of the tasks more than a tenth of random configurations are within 5 %
    of the distance from the median to the best known value. Copying: on two thirds of the tasks
    the best configuration of the task before leaves less than 5 % of that distance. `list` and
    `info` show the marks; after a benchmark changes they show none until this is run again.
    """
    specs = [benchmark_spec(name) for name in names] or _packaged()
    found = []
    with progress_bar() as move:
        for done, spec in enumerate(specs):
            move("marking", done, len(specs))
            found.append((spec.marked, Marks.of(spec.load())))
        move("marking", len(specs), len(specs))
    path = local_folder() / FILE if output is None else output
    write_marks(path, found, command=" ".join([COMMAND, *names]))
    for marked, one in found:
        if one.names:
            click.echo(f"{marked.id}: {one.describe()}")
    click.echo(str(path))


def _packaged() -> list[BenchmarkSpec]:
    specs = map(benchmark_spec, list_benchmarks(ready=True))
    return [spec for spec in specs if not spec.is_local and not spec.option().trains]
