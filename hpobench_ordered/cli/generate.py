"""Commands that generate: artifacts of benchmarks, marks, and reference results."""

from pathlib import Path
from typing import Any

import click

from hpobench_ordered.cli._completion import complete_benchmark, complete_suite
from hpobench_ordered.cli._options import FILE, FOLDER, dask_option, sizes_of, workers_option
from hpobench_ordered.cli._own_trainings import COMMANDS
from hpobench_ordered.cli._show import progress_bar, say
from hpobench_ordered.core.marks import FILE as MARKS
from hpobench_ordered.core.marks import Marks, write_marks
from hpobench_ordered.core.specs import BenchmarkSpec
from hpobench_ordered.errors import UnknownNameError
from hpobench_ordered.files.local import local_folder
from hpobench_ordered.registry import (
    benchmark_spec,
    generator,
    generator_families,
    generators,
    list_benchmarks,
    suites,
)

EXAMPLES = """\b
Examples:
  hpobench-ordered generate newsvendor --output mine
  hpobench-ordered info mine/newsvendor
      regenerates a benchmark of this package; it is loaded by its path
  hpobench-ordered generate --suite wide
      makes what that suite has beyond the package: yahpo-xgboost-*, yahpo-rpart-*
  hpobench-ordered generate custom --name digits-forest \\
      --model sklearn.ensemble:RandomForestClassifier --data sklearn:digits \\
      --sizes 60,92,141,217,332,510,782,1200
  hpobench-ordered run --benchmark digits-forest
      makes a new benchmark, which is loaded by its name
"""


def _sources() -> list[tuple[str, str]]:
    """Help on the benchmarks and their sources; benchmarks with the same ones share a line."""
    alike: dict[tuple[str, str], list[str]] = {}
    for name, one in sorted(generators().items()):
        stem, _, number = name.rpartition("-")
        shown = f"{stem}-ID" if number.isdecimal() else name
        for source, described in one.sources.items():
            alike.setdefault((f"{shown} --source {source}", described.summary), []).append(number)
    return [
        (shown, f"{summary} ID: {', '.join(numbers)}." if "-ID " in shown else summary)
        for (shown, summary), numbers in alike.items()
    ]


class _Named(click.Command):
    """`generate NAME`: the help lists benchmarks and sources, looked up when it is shown."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path.strip(), "NAME [OPTIONS]")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        records = [parameter.get_help_record(ctx) for parameter in self.get_params(ctx)]
        with formatter.section("Options of generate NAME"):
            formatter.write_dl([record for record in records if record is not None])
        with formatter.section("Benchmarks and their sources, the default one first"):
            families = [(family.pattern, "Further ones.") for family in generator_families()]
            formatter.write_dl([*_sources(), *families], col_max=40)


class _Generate(click.Group):
    """A group whose unknown command names are benchmarks; options may come first."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in self.commands:
            return super().resolve_command(ctx, args)
        return "", named, args

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        named.format_usage(ctx, formatter)
        for name in self.commands:
            prefix = " " * len("Usage: ")
            formatter.write_usage(ctx.command_path, f"{name} [OPTIONS]", prefix=prefix)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("A benchmark of your own, marks, and reference results"):
            formatter.write_dl(
                [
                    (f"{name} --help", command.get_short_help_str(limit=100))
                    for name, command in self.commands.items()
                ]
            )
        named.format_options(ctx, formatter)


@click.group(cls=_Generate, context_settings={"ignore_unknown_options": True}, epilog=EXAMPLES)
def generate() -> None:
    """Make a benchmark's artifact: surrogate, best known values and quality card.

    `generate NAME` regenerates one of this package's benchmarks, of those below, from its raw
    evaluations. `generate custom` and `generate retrain` make a benchmark of your own, whose
    evaluations they make, too: any model is trained on any data, over growing training sets, as
    xgboost-mnist was made, or again in every period, as the retrain benchmarks were. What they make
    is an artifact of the same kind. `generate marks` finds benchmarks on which methods hardly
    differ. `generate reference` makes the reference results that methods are compared with.
    """


@click.command(cls=_Named, epilog=EXAMPLES)
@click.argument("name", required=False)
@click.option(
    "--suite",
    "suite_name",
    shell_complete=complete_suite,
    help="Instead of NAME: all benchmarks of this suite that have no artifact yet.",
)
@click.option("--source", help="Where the evaluations come from, see below.")
@click.option(
    "--from",
    "local",
    type=click.Path(exists=True, path_type=Path),
    help="A local copy of the raw data, instead of a download.",
)
@click.option(
    "--output",
    type=FOLDER,
    help="Folder that gets the artifact, in a folder of the benchmark's name.  [default: "
    "artifacts; for what does not come with the package, where it is found by its name]",
)
@click.option("--seed", type=click.IntRange(0), help="Seed of everything random.  [default: 0]")
@click.option("--workers", type=click.IntRange(1), help="Number of processes.  [default: 1]")
@click.option(
    "--sizes",
    callback=sizes_of,
    help="Training-set sizes, such as 56,155,433 (sources that train).",
)
@click.option(
    "--configs", "configurations", type=click.IntRange(1), help="Number of configurations."
)
@click.option("--tasks", help="Names of tasks, such as 37,49.  [default: all]")
def named(
    name: str | None, suite_name: str | None, output: Path | None, tasks: str | None, **options: Any
) -> None:
    """Regenerate a benchmark's artifact: surrogate, best known values and quality card.

    A source rejects options that it does not use.
    """
    for one in _to_generate(name, suite_name):
        chosen = generator(one)
        with progress_bar() as move:
            written = chosen.generate(
                (chosen.home() if output is None else output) / one,
                tasks=None if tasks is None else tasks.split(","),
                progress=move,
                **options,
            )
        click.echo(str(written))


def _to_generate(name: str | None, suite_name: str | None) -> list[str]:
    """The benchmark of that name, or those of a suite that have no artifact yet."""
    if (name is None) == (suite_name is None):
        raise click.UsageError("give either the NAME of a benchmark or --suite")
    if suite_name is not None:
        if suite_name not in suites():
            raise UnknownNameError("suite", suite_name, suites())
        made = [one for one in suites()[suite_name] if one in generators()]
        lacking = [one for one in made if benchmark_spec(one).artifact is None]
        if not lacking:
            say(f"suite {suite_name}: nothing to generate, every artifact is there")
        return lacking
    generator(str(name))
    return [str(name)]


@click.command(epilog="Example:  hpobench-ordered generate marks digits-forest")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_benchmark)
@click.option(
    "--output",
    type=FILE,
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
    path = local_folder() / MARKS if output is None else output
    write_marks(path, found, command=" ".join(["hpobench-ordered generate marks", *names]))
    for marked, one in found:
        if one.names:
            click.echo(f"{marked.id}: {one.describe()}")
    click.echo(str(path))


def _packaged() -> list[BenchmarkSpec]:
    specs = map(benchmark_spec, list_benchmarks(ready=True))
    return [spec for spec in specs if not spec.is_local and not spec.option().trains]


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
    files = write_reference(results, output)
    for file in files:
        click.echo(f"{file.name}: {file.runs} runs, {file.size:,} bytes")
    size = sum(file.size for file in files)
    click.echo(f"{size:,} bytes in {output}")
    left_out = sum(file.left_out for file in files)
    if left_out:
        say(f"{left_out} runs are left out, as not all methods finished their seeds")


for command in (*COMMANDS, marks, reference):
    generate.add_command(command)
