"""Commands on results: status and merge."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import click

from hpobench_ordered.analysis.labels import format_count
from hpobench_ordered.cli._options import EXISTING_FOLDER, FOLDER, json_option
from hpobench_ordered.cli._output import print_json, print_table
from hpobench_ordered.experiment.api import merge_stores
from hpobench_ordered.experiment.overview import Overview, make_overview
from hpobench_ordered.experiment.records import Failure
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.reporting.tables import STATES, states_table


@click.command(epilog="Example:  hpobench-ordered status results --failures")
@click.argument("results", type=EXISTING_FOLDER)
@click.option("--failures", is_flag=True, help="Show every failed run with its traceback.")
@click.option("--digest", is_flag=True, help="Show a hash of all values, equal for equal results.")
@json_option
def status(results: Path, failures: bool, digest: bool, as_json: bool) -> None:
    """Show how many runs of an experiment are done, failed or missing."""
    store = Store.open(results)
    state = make_overview(store)
    if as_json:
        content = _describe_as_json(state)
        if digest:
            content["digest"] = store.digest()
        print_json(content)
        return

    _print_counts(state)
    # In the store they are sorted by hash.
    failed_runs = sorted(state.failures, key=attrgetter("method", "benchmark", "seed"))
    if failures:
        _print_failures(failed_runs)
    else:
        _print_failing_methods(failed_runs)
    if digest:
        click.echo(f"digest: {store.digest()}")


@click.command(epilog="Example:  hpobench-ordered merge all part-0 part-1")
@click.argument("into", type=FOLDER)
@click.argument("results", nargs=-1, required=True, type=EXISTING_FOLDER)
def merge(into: Path, results: tuple[Path, ...]) -> None:
    """Join the RESULTS of several machines or parts INTO one folder.

    Runs that several of them hold count once; the RESULTS are not changed. INTO holds many runs in
    one file, so that it is smaller and read faster, also if RESULTS is only one folder.
    """
    merged = merge_stores(into, results)
    _print_counts(make_overview(merged))


def _describe_as_json(state: Overview) -> dict[str, object]:
    """Collect the number of runs by method and state, and every failed run, for JSON."""
    failures = []
    for failure in state.failures:
        failures.append(asdict(failure) | {"reason": failure.reason.value})
    return {"counts": state.counts().to_dict("records"), "failures": failures}


def _print_counts(state: Overview) -> None:
    """Print the number of runs in each state, by method and in all."""
    table = states_table(state.runs)
    if table:
        print_table(table.header, table.rows)
    totals = state.runs["state"].value_counts()
    # `STATES` are the names of all states, in the order in which they are shown.
    counts = [f"{totals[name]} {name}" for name in STATES if name in totals]
    click.echo(", ".join(counts) or "no runs")
    if state.superseded:
        click.echo(f"{state.superseded} runs of older versions of methods are ignored")


def _print_failures(failures: Sequence[Failure]) -> None:
    """Print every failed run with its traceback."""
    for failure in failures:
        click.echo(f"\n{failure.benchmark}, seed {failure.seed}, {failure.reason.value}:")
        click.echo(f"{failure.message}\n{failure.traceback}".rstrip())


def _print_failing_methods(failures: Sequence[Failure]) -> None:
    """Print a line for each method with failed runs: its first one, and how many more.

    Args:
        failures: Failed runs, sorted by method.
    """
    for method, failures_of_method in groupby(failures, attrgetter("method")):
        first, *others = failures_of_method
        line = f"failed: {method} on {first.benchmark}, seed {first.seed}: {first.message}"
        if others:
            line += f"; and {format_count(len(others), 'more run')} (--failures)"
        click.echo(line)
