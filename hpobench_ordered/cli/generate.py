"""Commands that generate: artifacts of benchmarks, marks, and reference results."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from hpobench_ordered.analysis.marks import FILE_NAME as MARKS
from hpobench_ordered.analysis.marks import Marks, SourceOfMarks, write_marks
from hpobench_ordered.benchmarks.registry import benchmark_spec, list_benchmarks, suites
from hpobench_ordered.cli._completion import complete_benchmark, complete_suite
from hpobench_ordered.cli._options import (
    EXISTING_PATH,
    FILE,
    FOLDER,
    dask_option,
    parse_sizes,
    workers_option,
)
from hpobench_ordered.cli._output import output_file, print_table, progress_bar, say
from hpobench_ordered.data.local import local_folder
from hpobench_ordered.data.specs import BenchmarkSpec
from hpobench_ordered.errors import UnknownNameError
from hpobench_ordered.generation.base import generator, generator_families, generators
from hpobench_ordered.methods.registry import method_spec

EXAMPLES = """\b
Examples:
  hpobench-ordered generate newsvendor --output mine
  hpobench-ordered info mine/newsvendor
      regenerates a benchmark of this package; it is loaded by its path
  hpobench-ordered generate --suite wide
      makes what that suite has beyond the package: yahpo-xgboost-*, yahpo-rpart-*
"""


def list_sources() -> list[tuple[str, str]]:
    """List for the help the benchmarks that can be generated, from each of their sources.

    Returns:
        Pairs of the arguments of the command and a summary of the source. A name like
        yahpo-svm-1220 ends in a number. Benchmarks whose names and summaries are the same but for
        this number share a pair: ("yahpo-svm-ID --source evaluations", "... ID: 1220, 458.").
    """
    # The numbers at the ends of names, by arguments and summary; none for a name without a number.
    numbers_of_pair: dict[tuple[str, str], list[str]] = {}
    for name, generator_of_name in sorted(generators().items()):
        stem, _, ending = name.rpartition("-")
        has_number = ending.isdecimal()
        pattern = f"{stem}-ID" if has_number else name
        for source_name, source in generator_of_name.sources.items():
            arguments = f"{pattern} --source {source_name}"
            numbers = numbers_of_pair.setdefault((arguments, source.summary), [])
            if has_number:
                numbers.append(ending)

    pairs = []
    for (arguments, summary), numbers in numbers_of_pair.items():
        ids = f" ID: {', '.join(numbers)}." if numbers else ""
        pairs.append((arguments, f"{summary}{ids}"))
    return pairs


class _GenerateNamed(click.Command):
    """`generate NAME`: the help lists benchmarks and sources, looked up when it is shown."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usage, with the name before the options."""
        formatter.write_usage(ctx.command_path.strip(), "NAME [OPTIONS]")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and then the benchmarks with their sources."""
        records = [parameter.get_help_record(ctx) for parameter in self.get_params(ctx)]
        options = [record for record in records if record is not None]  # None of arguments
        with formatter.section("Options of generate NAME"):
            formatter.write_dl(options)

        families = [(family.pattern, "Further ones.") for family in generator_families()]
        with formatter.section("Benchmarks and their sources, the default one first"):
            formatter.write_dl([*list_sources(), *families], col_max=40)


class _GenerateGroup(click.Group):
    """A group whose unknown command names are benchmarks; options may come first."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the words after `generate`, as click asks a group to.

        Returns:
            The command's name, the command, and the words left for it. Words that do not begin with
            a command, such as `newsvendor --seed 1`, are all for `generate_named`, which has no
            name on the command line.
        """
        is_subcommand = args[0] in self.commands
        if is_subcommand:
            return super().resolve_command(ctx, args)
        no_name = ""
        return no_name, generate_named, args

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usage of `generate NAME`, and below it that of the group's commands."""
        generate_named.format_usage(ctx, formatter)
        for name in self.commands:
            prefix = " " * len("Usage: ")
            formatter.write_usage(ctx.command_path, f"{name} [OPTIONS]", prefix=prefix)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the group's commands, then the options and benchmarks of `generate NAME`."""
        entries = [
            (f"{name} --help", command.get_short_help_str(limit=100))
            for name, command in self.commands.items()
        ]
        with formatter.section("Marks and reference results"):
            formatter.write_dl(entries)
        generate_named.format_options(ctx, formatter)


@click.group(cls=_GenerateGroup, context_settings={"ignore_unknown_options": True}, epilog=EXAMPLES)
def generate() -> None:
    """Make a benchmark's artifact: surrogate, best known values and quality card.

    `generate NAME` regenerates one of this package's benchmarks, of those below, from its raw
    evaluations. `generate marks` finds benchmarks on which methods hardly differ. `generate
    reference` makes the reference results that methods are compared with. A benchmark of your own
    is made in Python, by `hpobench_ordered.from_evaluations`.
    """


@click.command("named", cls=_GenerateNamed, epilog=EXAMPLES)
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
    type=EXISTING_PATH,
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
    callback=parse_sizes,
    help="Training-set sizes, such as 56,155,433 (sources that train).",
)
@click.option(
    "--configs", "configurations", type=click.IntRange(1), help="Number of configurations."
)
@click.option("--tasks", help="Names of tasks, such as 37,49.  [default: all]")
def generate_named(
    name: str | None, suite_name: str | None, output: Path | None, tasks: str | None, **options: Any
) -> None:
    """Regenerate a benchmark's artifact: surrogate, best known values and quality card.

    A source rejects options that it does not use.
    """
    has_name = name is not None
    has_suite = suite_name is not None
    if has_name == has_suite:
        raise click.UsageError("give either the NAME of a benchmark or --suite")
    names = [name] if name is not None else _list_without_artifact(str(suite_name))
    task_names = None if tasks is None else tasks.split(",")
    for benchmark in names:
        generator_of_name = generator(benchmark)
        folder = generator_of_name.home() if output is None else output
        with progress_bar() as show_progress:
            written = generator_of_name.generate(
                folder / benchmark, tasks=task_names, progress=show_progress, **options
            )
        click.echo(str(written))


def _list_without_artifact(suite_name: str) -> list[str]:
    """List the benchmarks of a suite that can be generated and have no artifact yet."""
    if suite_name not in suites():
        raise UnknownNameError("suite", suite_name, suites())
    names = [name for name in suites()[suite_name] if name in generators()]
    missing = [name for name in names if benchmark_spec(name).artifact is None]
    if not missing:
        say(f"suite {suite_name}: nothing to generate, every artifact is there")
    return missing


@click.command(epilog="Example:  hpobench-ordered generate marks openml-ranger")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_benchmark)
@click.option(
    "--output",
    type=FILE,
    help="The file.  [default: marks.json in the folder of your own benchmarks]",
)
def marks(names: tuple[str, ...], output: Path | None) -> None:
    """Mark benchmarks that are plateaus, or that copying or a portfolio solves.

    Without NAME: all that come with the package, can be evaluated at once and train no model.

    A plateau: on two thirds of the tasks more than a tenth of random configurations are within 5 %
    of the distance from the median to the best known value. Copying: on two thirds of the tasks
    the best configuration of the task before leaves less than 5 % of that distance. Portfolio: the
    same of the configuration that is best on average on all other tasks. `list` and `info` show the
    marks; after a benchmark changes they show none until this is run again.
    """
    specs = [benchmark_spec(name) for name in names] or _list_markable()
    marks_of_specs = _compute_marks(specs)
    path = local_folder() / MARKS if output is None else output
    command = " ".join(["hpobench-ordered generate marks", *names])
    with output_file(path):
        write_marks(path, marks_of_specs, command=command)
    for source, computed in marks_of_specs:
        if computed.names:
            click.echo(f"{source.id}: {computed.describe()}")
    click.echo(str(path))


def _list_markable() -> list[BenchmarkSpec]:
    """List the benchmarks of the package that can be evaluated at once and train no model."""
    specs = map(benchmark_spec, list_benchmarks(ready=True))
    return [spec for spec in specs if not spec.is_local and not spec.option().trains]


def _compute_marks(specs: Sequence[BenchmarkSpec]) -> list[tuple[SourceOfMarks, Marks]]:
    """Compute the marks of benchmarks, with what they are computed from."""
    computed = []
    with progress_bar() as show_progress:
        for number_done, spec in enumerate(specs):
            show_progress("marking", number_done, len(specs))
            computed.append((SourceOfMarks.from_spec(spec), Marks.compute(spec.load())))
        show_progress("marking", len(specs), len(specs))
    return computed


@click.command("reference", epilog="Example:  hpobench-ordered generate reference results")
@click.argument("results", type=FOLDER)
@click.option(
    "--method",
    "methods",
    multiple=True,
    help="Run only this method, such as one with a new version; repeat.",
)
@click.option(
    "--run/--no-run",
    "with_runs",
    default=True,
    show_default=True,
    help="Run first what RESULTS and the files lack; after a stop, the same command continues.",
)
@click.option(
    "--submissions",
    type=EXISTING_PATH,
    help="Take in the results that others submitted to this folder, and leave out submitted "
    "methods that it does not describe.  [default: keep those in the files]",
)
@click.option(
    "--times",
    "with_times",
    is_flag=True,
    help="Measure the CPU time of suggestions again, all methods in turn; the machine should have "
    "nothing else to do.",
)
@workers_option
@dask_option
@click.option(
    "--output",
    type=FOLDER,
    default=Path("artifacts/reference"),
    show_default=True,
    help="Folder of the files. What they have of the same versions is kept.",
)
def reference(
    results: Path,
    methods: tuple[str, ...],
    with_runs: bool,
    submissions: Path | None,
    with_times: bool,
    workers: int,
    dask: str | None,
    output: Path,
) -> None:
    """Bring the reference results that come with the package up to date with the runs in RESULTS.

    Methods, benchmarks and seeds are listed in hpobench_ordered/generation/_reference.py. They may
    be run piece by piece, on several machines: give the folder of each, in any order.
    """
    from hpobench_ordered.generation._reference import (
        measure_times,
        run_missing,
        write_reference,
    )

    for name in methods:
        method_spec(name)  # raises if there is no such method
    if with_runs:
        with progress_bar() as show_progress:
            run_missing(
                results,
                output,
                methods=methods,
                workers=workers,
                dask=dask,
                progress=lambda done, total: show_progress("runs", done, total),
            )
    times = measure_times() if with_times else None
    files = write_reference(results, output, submissions=submissions, times=times)
    for file in files:
        click.echo(f"{file.name}: {file.runs} runs, {file.size:,} bytes")
    _print_progress(output)
    size = sum(file.size for file in files)
    click.echo(f"{size:,} bytes in {output}")


def _print_progress(folder: Path) -> None:
    """Print how much of each part of the plan the reference results in a folder have."""
    from hpobench_ordered.generation._reference import find_progress

    rows = []
    for progress in find_progress(folder):
        part = progress.part
        n_missing = sum(progress.missing.values())
        rows.append(
            (
                part.suite,
                part.protocol.name,
                str(len(part.methods)),
                str(part.seeds),
                f"{progress.planned - n_missing} of {progress.planned}",
                ", ".join(f"{name} {number}" for name, number in progress.missing.items()),
            )
        )
    header = ("suite", "protocol", "methods", "seeds", "runs", "missing runs by method")
    print_table(header, rows)


for command in (marks, reference):
    generate.add_command(command)
