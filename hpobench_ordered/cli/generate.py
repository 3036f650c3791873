"""The command that regenerates a benchmark's artifact from raw evaluations."""

from pathlib import Path

import click

from hpobench_ordered.cli._show import progress_bar
from hpobench_ordered.errors import UnknownNameError
from hpobench_ordered.registry import generators


@click.command(
    epilog="Example:  hpobench-ordered generate newsvendor --output artifacts; "
    "then load it by its path:  hpobench-ordered info artifacts/newsvendor"
)
@click.argument("name")
@click.option("--source", help="Where the evaluations come from; see the message for a wrong one.")
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
@click.option("--seed", default=0, show_default=True, help="Seed of everything random.")
@click.option("--workers", default=1, show_default=True, help="Number of processes.")
@click.option("--sizes", help="Training-set sizes, such as 56,155,433 (sources that train).")
@click.option("--configs", type=click.IntRange(1), help="Number of configurations.")
def generate(
    name: str,
    source: str | None,
    local: Path | None,
    output: Path,
    seed: int,
    workers: int,
    sizes: str | None,
    configs: int | None,
) -> None:
    """Regenerate a benchmark's artifact: surrogate, best known values and quality card."""
    from hpobench_ordered.generation.base import Request

    generator = generators().get(name)
    if generator is None:
        raise UnknownNameError("benchmark to generate", name, generators())
    source = source or next(iter(generator.sources))
    if source not in generator.sources:
        raise UnknownNameError(f"source of {name}", source, generator.sources)
    with progress_bar() as move:
        written = generator.generate(
            Request(
                folder=output / name,
                source=source,
                local=local,
                seed=seed,
                workers=workers,
                sizes=_sizes(sizes),
                configurations=configs,
                progress=move,
            )
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
