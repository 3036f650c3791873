"""Commands on experiments: run, compare, report and check."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from hpobench_ordered.adapters import as_method_spec
from hpobench_ordered.analysis.scores import RANDOM_SEARCH
from hpobench_ordered.cli._completion import (
    complete_benchmark,
    complete_method,
    complete_suite,
    complete_surrogate,
)
from hpobench_ordered.cli._options import (
    FOLDER,
    chosen_results,
    dask_option,
    measured_only_option,
    results_arguments,
    seeds_of,
    shard_of,
    time_limit_option,
    workers_option,
)
from hpobench_ordered.cli._protocol import protocol_options
from hpobench_ordered.cli._show import progress_bar, say
from hpobench_ordered.cli.leaderboard import show_scores
from hpobench_ordered.core.suites import suite
from hpobench_ordered.errors import FailedRunsWarning
from hpobench_ordered.experiment import api
from hpobench_ordered.experiment.overview import overview
from hpobench_ordered.experiment.parallel import TIME_LIMIT
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.registry import suites

METHODS = (RANDOM_SEARCH, "bo", "simple-ordered")

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

EPILOG = """\b
Protocols:
  ordered        the tasks of a benchmark in order; what a method evaluated
                 is its history on the later tasks
  leave-one-out  each task in turn; the history is evaluations of all other
                 tasks, the same for every method
  adjustment     each task twice: on the old search space by the first
                 method, then on the new one with that as history

\b
Examples:
  hpobench-ordered run --benchmark newsvendor --method bo --seeds 20 --output results
      bo and random search, which the scores are relative to
  hpobench-ordered run --method mine.py:Mine --method bo --seeds 10
      a method of your own, in a file of this folder
  hpobench-ordered run --method mine.py:Mine --suite retrain --against reference
      its place among all methods of this package, without running these
  hpobench-ordered run --protocol leave-one-out --benchmark newsvendor --history 50
      every task with 50 random evaluations of each other task as history
  hpobench-ordered run --protocol adjustment --suite adjustments --first-trials 10
      every task after 10 evaluations on the search space before its adjustment
"""


@click.command(epilog=EPILOG)
@click.option(
    "--suite",
    "suite_name",
    shell_complete=complete_suite,
    help=f"Benchmarks to run on: {', '.join(suites())}.  "
    "[default: othpo if there is no --benchmark]",
)
@click.option(
    "--benchmark",
    "benchmarks",
    multiple=True,
    shell_complete=complete_benchmark,
    help="Run on this one, in addition to a --suite; repeat.",
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    default=METHODS,
    show_default=True,
    shell_complete=complete_method,
    help="Method to run: a name, or where yours is: package.module:Class or file.py:Class; repeat.",
)
@click.option(
    "--against",
    metavar="reference|FOLDER",
    help="Rank the methods among those of the reference results, which come with the package, or "
    "of the results in a folder: with their seeds, under their protocol. Only methods that are "
    "named by --method are run.",
)
@click.option(
    "--seeds",
    callback=seeds_of,
    help="How many (5), a range (10-19), a list (3,7).  [default: 5; or as --against]",
)
@protocol_options
@click.option(
    "--surrogate",
    "surrogates",
    multiple=True,
    metavar="[BENCHMARK=]SURROGATE",
    shell_complete=complete_surrogate,
    help="Evaluate on this one instead of the default; repeat.",
)
@workers_option
@time_limit_option
@dask_option
@click.option(
    "--shard",
    metavar="I/N",
    callback=shard_of,
    help="Run part I, from 0, of N parts of the experiment; `merge` joins the results.",
)
@click.option("--retry-failed", is_flag=True, help="Repeat runs that failed before.")
@click.option(
    "--check/--no-check",
    default=True,
    show_default=True,
    help="Check methods of your own first, as `check` does.",
)
@click.option(
    "--report/--no-report", "with_report", default=True, show_default=True, help="Write a report."
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Folder of the results; running again with the same folder continues.",
)
def run(
    suite_name: str | None,
    benchmarks: tuple[str, ...],
    methods: tuple[str, ...],
    against: str | None,
    surrogates: tuple[str, ...],
    time_limit: float | None,
    check: bool,
    with_report: bool,
    output: Path,
    **settings: Any,
) -> None:
    """Run methods on benchmarks, then show scores and write a report.

    Each run is stored when it finishes: after a stop, repeat the command to continue. If a run
    fails, the others go on: `status` says why, and the exit code is 1.
    """
    given = _specs(_to_run(methods, against), check=check, time_limit=time_limit)
    listed = () if benchmarks and suite_name is None else _listed(suite_name or "othpo")
    chosen = tuple(dict.fromkeys([*listed, *benchmarks]))
    with progress_bar() as move, warnings.catch_warnings():
        warnings.simplefilter("ignore", FailedRunsWarning)  # printed below
        results = api.run(
            benchmarks=chosen,
            methods=given,
            surrogates=_surrogates(surrogates, chosen),
            folder=output,
            against=against,
            time_limit=TIME_LIMIT if time_limit is None else time_limit or None,
            progress=lambda done, total: move("runs", done, total),
            **settings,
        )
    shown = results if against else replace(results, cells=())  # with those of earlier commands
    if settings["shard"] is not None:
        say("this part is done; join it with the others by hpobench-ordered merge")
    elif with_report:
        _report(shown, output / "report", folder=output)
    else:
        show_scores(*shown.scored(), folder=output, own=_own(results))
    if failures := results.failures():
        say(f"{len(failures)} of {len(results.cells)} runs failed, such as: {failures[0].message}")
        say(f"all of them, with tracebacks: hpobench-ordered status {output} --failures")
        click.get_current_context().exit(1)


@click.command(epilog="Example:  hpobench-ordered compare mine.py:Mine")
@click.argument("methods", metavar="METHOD...", nargs=-1, required=True)
@workers_option
@time_limit_option
@click.option(
    "--output",
    type=FOLDER,
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


@click.command(epilog="Example:  hpobench-ordered report results --output report")
@results_arguments
@click.option(
    "--output", type=FOLDER, help="Folder of the report.  [default: report in RESULTS, or here]"
)
@measured_only_option
def report(
    results: Path | None,
    with_reference: bool,
    suite_name: str | None,
    output: Path | None,
    measured_only: bool,
) -> None:
    """Show scores of finished runs, and write them as a page with tables and figures."""
    chosen = chosen_results(results, with_reference=with_reference, suite_name=suite_name)
    target = output or (results or Path()) / "report"
    _report(chosen, target, folder=results or Path("--reference"), measured_only=measured_only)


@click.command(epilog="Example:  hpobench-ordered check mine.py:Mine")
@click.argument("method", shell_complete=complete_method)
@click.option("--learns", is_flag=True, help="Require also that it beats random search.")
@time_limit_option
def check(method: str, learns: bool, time_limit: float | None) -> None:
    """Check a METHOD before anything long starts: a name, package.module:Class or file.py:Class.

    On small problems, with and without conditions, it must suggest valid configurations, as many
    as asked for and in time; be deterministic given the seed; and share nothing between runs or
    with the global random state. It is checked in a separate process; the verdict comes last.
    """
    from hpobench_ordered.cli._checking import verdict

    verdict(method, time_limit=time_limit, learns=learns)


def _specs(names: Iterable[str], *, check: bool, time_limit: float | None) -> list[MethodSpec]:
    """The methods, those of the user checked first if asked, and the numerics compiled."""
    names = list(dict.fromkeys(names))
    given = [as_method_spec(name) for name in names]
    if check:
        from hpobench_ordered.cli._checking import check_own

        check_own(names, time_limit=time_limit)
    if any(spec.name != RANDOM_SEARCH for spec in given):
        announce_compiling()
    return given


def _listed(name: str) -> tuple[str, ...]:
    """The available benchmarks of a suite; prints which are missing."""
    there = suite(name)
    lacking = [benchmark for benchmark in suites()[name] if benchmark not in there]
    if lacking:
        say(
            f"{len(lacking)} more benchmarks of suite {name}, such as {lacking[0]}, are missing; "
            f"make them with: hpobench-ordered generate --suite {name}"
        )
    return there


def _surrogates(given: Sequence[str], benchmarks: Sequence[str]) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for text in given:
        benchmark, equals, surrogate = text.rpartition("=")
        chosen |= dict.fromkeys([benchmark] if equals else benchmarks, surrogate)
    return chosen


def _report(
    results: api.Results, target: Path, *, folder: Path, measured_only: bool = False
) -> None:
    """Write a report of results and print the scores."""
    written = api.report(results, target, measured_only=measured_only)
    show_scores(written.benchmarks, written.unscored, folder=folder, own=_own(results))
    click.echo(f"{written.page} and {len(written.files) - 1} more files in {target}")


def announce_compiling() -> None:
    """Announce that the first experiment begins with compilation."""
    from hpobench_ordered.methods._gp import compiled  # noqa: F401  defines the functions to compile
    from hpobench_ordered.runtime.compiling import is_compiled

    if not is_compiled():
        say("compiling the numerics, once: about half a minute")


def _own(results: api.Results) -> list[str]:
    """The methods that are compared with other results."""
    if results.against is None:
        return []
    return sorted(overview(results.store, results.cells or None).runs["method"].unique())


def _to_run(methods: tuple[str, ...], against: str | None) -> tuple[str, ...]:
    """The methods, and the one that scores are relative to unless its runs exist."""
    if against is not None:
        if methods == METHODS:
            raise click.UsageError("--against needs a --method to compare")
        return methods
    if RANDOM_SEARCH in methods:
        return methods
    say(f"{RANDOM_SEARCH} runs too: the scores are relative to it")
    return (RANDOM_SEARCH, *methods)
