"""Commands on experiments: run and report."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpobench_ordered.analysis.scores import RANDOM_SEARCH
from hpobench_ordered.cli._show import print_table, progress_bar, say
from hpobench_ordered.protocols import Ordered
from hpobench_ordered.suites import SUITES, suite

if TYPE_CHECKING:
    from hpobench_ordered.experiment.api import Results

METHODS = (RANDOM_SEARCH, "bo", "simple-ordered")


@click.command(
    epilog="Example:  hpobench-ordered run --benchmark newsvendor --method bo "
    "--method random-search --seeds 20 --output results"
)
@click.option(
    "--suite",
    "suite_name",
    default="othpo",
    show_default=True,
    help=f"Benchmarks to run on: {', '.join(SUITES)}.",
)
@click.option("--benchmark", "benchmarks", multiple=True, help="Run on this one instead; repeat.")
@click.option(
    "--method",
    "methods",
    multiple=True,
    default=METHODS,
    show_default=True,
    help="Method to run; repeat.",
)
@click.option(
    "--seeds", default="5", show_default=True, help="How many (5), a range (10-19), a list (3,7)."
)
@click.option("--trials", default=25, show_default=True, help="Evaluations per task.")
@click.option("--tasks", type=int, help="Only the first so many tasks.")
@click.option(
    "--simulated-workers",
    default=1,
    show_default=True,
    help="Trials in flight: so many configurations are asked for before the first result is told, "
    "then one after every result. The authors of the paper ran 4. Not the number of processes.",
)
@click.option(
    "--surrogate",
    "surrogates",
    multiple=True,
    metavar="[BENCHMARK=]SURROGATE",
    help="Evaluate on this one instead of the default; repeat.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=lambda: os.cpu_count() or 1,
    show_default="all processors",
    help="Number of processes.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Folder of the results; running again with the same folder continues.",
)
def run(
    suite_name: str,
    benchmarks: tuple[str, ...],
    methods: tuple[str, ...],
    seeds: str,
    trials: int,
    tasks: int | None,
    simulated_workers: int,
    surrogates: tuple[str, ...],
    workers: int,
    output: Path,
) -> None:
    """Run methods over sequences of tasks, then show scores and draw the figure.

    Every method optimises the tasks of a benchmark in order; what it evaluated is its history on
    the later tasks. Each finished run is kept at once: stopping loses nothing, the same command
    continues.
    """
    from hpobench_ordered.experiment import api

    chosen = benchmarks or suite(suite_name)
    with progress_bar() as move:
        results = api.run(
            benchmarks=chosen,
            methods=_with_reference(methods),
            seeds=parse_seeds(seeds),
            protocol=Ordered(trials=trials, tasks=tasks, workers_simulated=simulated_workers),
            surrogates=_surrogates(surrogates, chosen),
            folder=output,
            workers=workers,
            progress=lambda done, total: move("runs", done, total),
        )
    _report(results, output / "report")


@click.command(epilog="Example:  hpobench-ordered report results --output report")
@click.argument("results", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the report; RESULTS/report without.",
)
def report(results: Path, output: Path | None) -> None:
    """Show scores of finished runs and draw the figure."""
    _report(results, output or results / "report")


def parse_seeds(text: str) -> list[int]:
    """Read seeds: "5" is 0 to 4, "10-19" those, "3,7" those.

    Raises:
        click.BadParameter: It is none of these.
    """
    try:
        if "," in text:
            return [int(part) for part in text.split(",")]
        first, dash, last = text.partition("-")
        seeds = range(int(first), int(last) + 1) if dash else range(int(first))
    except ValueError:
        seeds = range(0)
    if not seeds:
        message = f"{text!r} is neither a number of seeds nor a range such as 10-19"
        raise click.BadParameter(message, param_hint="--seeds")
    return list(seeds)


def _surrogates(given: Sequence[str], benchmarks: Sequence[str]) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for text in given:
        benchmark, equals, surrogate = text.rpartition("=")
        chosen |= dict.fromkeys([benchmark] if equals else benchmarks, surrogate)
    return chosen


def _report(results: "Results | Path", folder: Path) -> None:
    from hpobench_ordered.experiment import api
    from hpobench_ordered.reporting.write import score_rows

    written = api.report(results, folder)
    for item in written.benchmarks:
        header, *rows = score_rows(item)
        print_table(header, rows, title=item.title)
        click.echo("".join(f"{note}\n" for note in item.notes()))
    click.echo("Normalised score ± two standard errors, mean over the tasks with history; lower is")
    click.echo("better. 0: best method, 100: random search, both after the last trial.")
    for note in written.unscored:
        say(f"not scored: {note}")
    for path in written.files:
        click.echo(str(path))


def _with_reference(methods: tuple[str, ...]) -> tuple[str, ...]:
    """The methods, and the one that scores are relative to."""
    if RANDOM_SEARCH in methods:
        return methods
    say(f"{RANDOM_SEARCH} runs too: the scores are relative to it")
    return (RANDOM_SEARCH, *methods)
