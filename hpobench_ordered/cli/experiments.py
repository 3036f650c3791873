"""Commands on experiments: run, compare, report and check."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from hpobench_ordered.analysis.scores import RANDOM_SEARCH
from hpobench_ordered.benchmarks.registry import suite, suites
from hpobench_ordered.cli._completion import (
    complete_benchmark,
    complete_method,
    complete_suite,
    complete_surrogate,
)
from hpobench_ordered.cli._options import (
    FOLDER,
    PATH,
    dask_option,
    measured_only_option,
    open_results,
    parse_seeds,
    parse_shard,
    results_arguments,
    time_limit_option,
    workers_of_runs_option,
)
from hpobench_ordered.cli._output import progress_bar, say
from hpobench_ordered.cli._protocol import protocol_options
from hpobench_ordered.cli.leaderboard import show_scores
from hpobench_ordered.errors import FailedRunsWarning
from hpobench_ordered.experiment import api
from hpobench_ordered.experiment.overview import make_overview
from hpobench_ordered.experiment.parallel import TIME_LIMIT
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.wrapping.factory import as_method_spec

DEFAULT_METHODS = (RANDOM_SEARCH, "bo", "simple-ordered", "ordered-gp")
DEFAULT_SEEDS = tuple(range(3))  # of these methods: they take at most a minute on two cores
DEFAULT_SUITE = "othpo"

COMPARED_BENCHMARKS = (
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
"""Those of `compare`: of each family in othpo and retrain, the first one that counts in means."""

COMPARED_TASKS = 10  # number of first tasks of each benchmark that `compare` runs on
COMPARED_SEEDS = 2  # number of seeds of `compare`

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
    "suite_names",
    multiple=True,
    shell_complete=complete_suite,
    help=f"Benchmarks to run on; repeat: {', '.join(suites())}.  "
    f"[default: {DEFAULT_SUITE} if there is no --benchmark]",
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
    default=DEFAULT_METHODS,
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
    callback=parse_seeds,
    help="How many (5), a range (10-19), a list (3,7).  [default: 5, or as --against; 3 of the "
    "default methods]",
)
@protocol_options
@click.option(
    "--surrogate",
    "surrogate_words",
    multiple=True,
    metavar="[BENCHMARK=]SURROGATE",
    shell_complete=complete_surrogate,
    help="Evaluate on this one instead of the default; repeat.",
)
@workers_of_runs_option
@time_limit_option
@dask_option
@click.option(
    "--shard",
    metavar="I/N",
    callback=parse_shard,
    help="Run part I, from 0, of N parts of the experiment; `merge` joins the results.",
)
@click.option("--retry-failed", is_flag=True, help="Repeat runs that failed before.")
@click.option(
    "--check/--no-check",
    "with_check",
    default=True,
    show_default=True,
    help="Check methods of your own first, as `check` does.",
)
@click.option(
    "--report/--no-report", "with_report", default=True, show_default=True, help="Write a report."
)
@click.option(
    "--output",
    type=PATH,
    default=Path("results"),
    show_default=True,
    help="Folder of the results; running again with the same folder continues.",
)
def run(
    suite_names: tuple[str, ...],
    benchmarks: tuple[str, ...],
    methods: tuple[str, ...],
    against: str | None,
    seeds: list[int] | None,
    surrogate_words: tuple[str, ...],
    time_limit: float | None,
    with_check: bool,
    with_report: bool,
    output: Path,
    **settings: Any,
) -> None:
    """Run methods on benchmarks, then show scores and write a report.

    Each run is stored when it finishes: after a stop, repeat the command to continue. If a run
    fails, the others go on: `status` says why, and the exit code is 1.
    """
    names_to_run = _choose_methods(methods, against)
    specs = [as_method_spec(name) for name in names_to_run]
    if with_check:
        _check_own_methods(names_to_run, time_limit)
    if any(spec.name != RANDOM_SEARCH for spec in specs):
        announce_compiling()

    all_benchmarks = _choose_benchmarks(suite_names, benchmarks)
    if seeds is None and methods == DEFAULT_METHODS:
        seeds = list(DEFAULT_SEEDS)
    if time_limit is None:
        time_limit = TIME_LIMIT
    results = _run(
        specs,
        all_benchmarks,
        seeds=seeds,
        surrogates=_parse_surrogates(surrogate_words, all_benchmarks),
        folder=output,
        against=against,
        time_limit=time_limit or None,  # 0 is no limit
        **settings,
    )

    # Without --against, runs of earlier commands in the same folder are shown too.
    shown = results if against else replace(results, cells=())
    if settings["shard"] is not None:
        say("this part is done; join it with the others by hpobench-ordered merge")
    elif with_report:
        _write_report(shown, output / "report", folder=output)
    else:
        scores, unscored = shown.scored()
        show_scores(scores, unscored, folder=output, own_methods=_own_methods(results))
    _exit_if_runs_failed(results, output)


@click.command(epilog="Example:  hpobench-ordered compare mine.py:Mine")
@click.argument("methods", metavar="METHOD...", nargs=-1, required=True)
@workers_of_runs_option
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
    # The other options of `run` have their defaults.
    context.invoke(
        run,
        methods=methods,
        benchmarks=COMPARED_BENCHMARKS,
        tasks=COMPARED_TASKS,
        seeds=list(range(COMPARED_SEEDS)),
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
    suite_names: tuple[str, ...],
    output: Path | None,
    measured_only: bool,
) -> None:
    """Show scores of finished runs, and write them as a page with tables and figures."""
    opened = open_results(results, with_reference=with_reference, suite_names=suite_names)
    if output is None:
        output = (results or Path()) / "report"
    folder = results or Path("--reference")
    _write_report(opened, output, folder=folder, measured_only=measured_only)


@click.command(epilog="Example:  hpobench-ordered check mine.py:Mine")
@click.argument("method", shell_complete=complete_method)
@click.option(
    "--learns",
    "must_beat_random_search",
    is_flag=True,
    help="Require also that it beats random search.",
)
@time_limit_option
def check(method: str, must_beat_random_search: bool, time_limit: float | None) -> None:
    """Check a METHOD before anything long starts: a name, package.module:Class or file.py:Class.

    On small problems, with and without conditions, it must suggest valid configurations, as many
    as asked for and in time; be deterministic given the seed; and share nothing between runs or
    with the global random state. It is checked in a separate process; the verdict comes last.
    """
    from hpobench_ordered.cli._checking import check_and_report

    check_and_report(method, time_limit=time_limit, must_beat_random_search=must_beat_random_search)


def announce_compiling() -> None:
    """Announce that the first experiment begins with compilation."""
    from hpobench_ordered.methods._gp import compiled  # noqa: F401  defines the functions to compile
    from hpobench_ordered.runtime.compiling import is_compiled

    if not is_compiled():
        say("compiling the numerics, once: about half a minute")


def _choose_methods(methods: tuple[str, ...], against: str | None) -> list[str]:
    """Choose the methods to run, each once.

    Random search is added, as scores are relative to it, unless the runs are compared with other
    results (`against`), which have its runs.
    """
    if against is not None and methods == DEFAULT_METHODS:
        raise click.UsageError("--against needs a --method to compare")
    if against is None and RANDOM_SEARCH not in methods:
        say(f"{RANDOM_SEARCH} runs too: the scores are relative to it")
        methods = (RANDOM_SEARCH, *methods)
    return list(dict.fromkeys(methods))


def _check_own_methods(names: Sequence[str], time_limit: float | None) -> None:
    """Check the methods that do not come with the package."""
    # Imported here, as most commands do not need it and start faster without it.
    from hpobench_ordered.cli._checking import check_own_methods

    check_own_methods(names, time_limit=time_limit)


def _choose_benchmarks(suite_names: Sequence[str], benchmarks: Sequence[str]) -> tuple[str, ...]:
    """List the benchmarks of the suites and the benchmarks named besides, each once.

    If neither a suite nor a benchmark is named, the default suite is taken. The function prints
    which benchmarks of the suites are missing.
    """
    if not suite_names and not benchmarks:
        suite_names = [DEFAULT_SUITE]

    chosen: list[str] = []
    for suite_name in suite_names:
        available = suite(suite_name)  # without those that must be generated first
        missing = [name for name in suites()[suite_name] if name not in available]
        if missing:
            say(
                f"{len(missing)} more benchmarks of suite {suite_name}, such as {missing[0]}, are "
                f"missing; make them with: hpobench-ordered generate --suite {suite_name}"
            )
        chosen += available
    return tuple(dict.fromkeys([*chosen, *benchmarks]))


def _parse_surrogates(words: Sequence[str], benchmarks: Sequence[str]) -> dict[str, str]:
    """Read the surrogate of each benchmark from words of a command.

    A word is SURROGATE, for all benchmarks, or BENCHMARK=SURROGATE. Of several words on the same
    benchmark the last one counts.
    """
    surrogate_of_benchmark: dict[str, str] = {}
    for word in words:
        benchmark, equals, surrogate = word.rpartition("=")  # a path to a benchmark may have a "="
        names = [benchmark] if equals else benchmarks
        surrogate_of_benchmark |= dict.fromkeys(names, surrogate)
    return surrogate_of_benchmark


def _run(methods: Sequence[MethodSpec], benchmarks: Sequence[str], **settings: Any) -> api.Results:
    """Run the experiment with a progress bar; the command itself reports failed runs.

    `settings` are further arguments of `hpobench_ordered.run`.
    """
    with progress_bar() as show_progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", FailedRunsWarning)
        return api.run(
            benchmarks=benchmarks,
            methods=methods,
            progress=lambda done, total: show_progress("runs", done, total),
            **settings,
        )


def _exit_if_runs_failed(results: api.Results, folder: Path) -> None:
    """Say how many runs failed, and end the command with exit code 1, if there are any."""
    failures = results.failures()
    if failures:
        say(f"{len(failures)} of {len(results.cells)} runs failed, such as: {failures[0].message}")
        say(f"all of them, with tracebacks: hpobench-ordered status {folder} --failures")
        click.get_current_context().exit(1)


def _write_report(
    results: api.Results, output: Path, *, folder: Path, measured_only: bool = False
) -> None:
    """Write a report of results and print the scores.

    Args:
        results: The results.
        output: Folder of the report.
        folder: Folder of the results, for the command that shows more.
        measured_only: Whether to leave out interpolated tasks and stand-in surrogates.
    """
    # Imported here, as most commands draw nothing and start faster without it.
    from hpobench_ordered.reporting.write import report as write_report

    written = write_report(results, output, measured_only=measured_only)
    show_scores(
        written.benchmarks, written.unscored, folder=folder, own_methods=_own_methods(results)
    )
    click.echo(f"{written.page} and {len(written.files) - 1} more files in {output}")


def _own_methods(results: api.Results) -> list[str]:
    """List the user's methods, whose runs are compared with other results.

    The list is empty if there are no other results.
    """
    if results.against is None:
        return []
    # Without a choice of planned runs, cells, the overview is of all runs of the store.
    chosen_cells = results.cells or None
    runs = make_overview(results.store, chosen_cells).runs
    return sorted(runs["method"].unique())
