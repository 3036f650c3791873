"""The command that regenerates a benchmark's artifact from raw evaluations."""

from pathlib import Path

import click

from hpobench_ordered.cli._show import progress_bar
from hpobench_ordered.errors import UnknownNameError
from hpobench_ordered.registry import generators


class _ListsSources(click.Command):
    """Adds the benchmarks and their sources to the help; they are looked up only then."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        with formatter.section("Benchmarks and their sources, the default one first"):
            formatter.write_dl(
                [
                    (f"{name} --source {source}", described.summary)
                    for name, generator in sorted(generators().items())
                    for source, described in generator.sources.items()
                ],
                col_max=40,
            )


@click.command(
    cls=_ListsSources,
    epilog="Example:  hpobench-ordered generate newsvendor --output artifacts; "
    "then load it by its path:  hpobench-ordered info artifacts/newsvendor",
)
@click.argument("name")
@click.option("--source", help="Where the evaluations come from, see below.")
@click.option(
    "--from",
    "local",
    type=click.Path(exists=True, path_type=Path),
    help="A local copy of the raw data, instead of a download.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("artifacts"),
    show_default=True,
    help="Folder that gets the artifact, in a folder of the benchmark's name.",
)
@click.option("--seed", type=click.IntRange(0), help="Seed of everything random.  [default: 0]")
@click.option("--workers", type=click.IntRange(1), help="Number of processes.  [default: 1]")
@click.option("--sizes", help="Training-set sizes, such as 56,155,433 (sources that train).")
@click.option("--configs", type=click.IntRange(1), help="Number of configurations.")
def generate(
    name: str,
    source: str | None,
    local: Path | None,
    output: Path,
    seed: int | None,
    workers: int | None,
    sizes: str | None,
    configs: int | None,
) -> None:
    """Regenerate a benchmark's artifact: surrogate, best known values and quality card.

    A source refuses an option that it has no use for.
    """
    generator = generators().get(name)
    if generator is None:
        raise UnknownNameError("benchmark to generate", name, generators())
    with progress_bar() as move:
        written = generator.generate(
            output / name,
            source=source,
            local=local,
            seed=seed,
            workers=workers,
            sizes=_sizes(sizes),
            configurations=configs,
            progress=move,
        )
    click.echo(str(written))


def _sizes(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        message = f"{text!r} is not a list such as 56,155,433"
        raise click.BadParameter(message, param_hint="--sizes") from None
