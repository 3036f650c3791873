"""The command that compares a method with the reference results on a small part of them."""

from pathlib import Path

import click

from hpobench_ordered.cli._options import time_limit_option, workers_option
from hpobench_ordered.cli.experiments import run

SMALL = (
    "newsvendor",
    "xgboost-mnist",
    "yahpo-svm-1220",
    "yahpo-aknn-4538",
    "yahpo-ranger-40978",
    "retrain-electricity-xgboost",
    "retrain-weather-xgboost",
    "retrain-bike-sharing-xgboost",
    "retrain-metro-traffic-xgboost",
    "retrain-flights-xgboost",
)
"""The first benchmark, of those that count in means, of every family in othpo and retrain."""

TASKS, SEEDS = 10, 2


@click.command(epilog="Example:  hpobench-ordered compare mine.py:Mine")
@click.argument("methods", metavar="METHOD...", nargs=-1, required=True)
@workers_option
@time_limit_option
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("comparison"),
    show_default=True,
    help="Folder of the results; running again with the same folder continues.",
)
@click.pass_context
def compare(
    context: click.Context,
    methods: tuple[str, ...],
    workers: int,
    time_limit: float | None,
    output: Path,
) -> None:
    """Rank METHODs among those of the package, on a small part of the reference, in a minute.

    A METHOD is a name, or where yours is: package.module:Class or file.py:Class. It runs on one
    benchmark of every family of the suites othpo and retrain, on the first ten tasks with two
    seeds. For a figure of a paper run the whole: run --suite retrain --against reference.
    """
    context.invoke(
        run,
        methods=methods,
        benchmarks=SMALL,
        tasks=TASKS,
        seeds=list(range(SEEDS)),
        against="reference",
        workers=workers,
        time_limit=time_limit,
        with_report=False,
        output=output,
    )
