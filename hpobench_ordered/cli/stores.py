"""Commands on results: status, merge and compact."""

from dataclasses import asdict
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import click

from hpobench_ordered.analysis.labels import counted
from hpobench_ordered.cli._options import FOLDER, RESULTS, json_option
from hpobench_ordered.cli._show import print_json, print_table
from hpobench_ordered.experiment.api import merge_stores
from hpobench_ordered.experiment.overview import Overview, overview
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.reporting.tables import STATES, states_table

_method = attrgetter("method")


@click.command(epilog="Example:  hpobench-ordered status results --failures")
@click.argument("results", type=RESULTS)
@click.option("--failures", is_flag=True, help="Show every failed run with its traceback.")
@click.option("--digest", is_flag=True, help="Show a hash of all values, equal for equal results.")
@json_option
def status(results: Path, failures: bool, digest: bool, as_json: bool) -> None:
    """Show how many runs of an experiment are done, running, failed or missing."""
    store = Store.there(results)
    found = overview(store)
    if as_json:
        known = [asdict(failure) | {"reason": failure.reason.value} for failure in found.failures]
        counts = found.counts().to_dict("records")
        hashed = {"digest": store.digest()} if digest else {}
        print_json({"counts": counts, "failures": known} | hashed)
        return
    _print_counts(found)
    if failures:
        for failure in found.failures:
            click.echo(f"\n{failure.benchmark}, seed {failure.seed}, {failure.reason.value}:")
            click.echo(f"{failure.message}\n{failure.traceback}".rstrip())
    else:
        by_method = groupby(sorted(found.failures, key=_method), _method)
        for method, (first, *others) in by_method:
            more = f"; and {counted(len(others), 'more run')} (--failures)" if others else ""
            where = f"{method} on {first.benchmark}, seed {first.seed}"
            click.echo(f"failed: {where}: {first.message}{more}")
    if digest:
        click.echo(f"digest: {store.digest()}")


@click.command(epilog="Example:  hpobench-ordered merge all part-0 part-1")
@click.argument("into", type=FOLDER)
@click.argument("results", nargs=-1, required=True, type=RESULTS)
def merge(into: Path, results: tuple[Path, ...]) -> None:
    """Join the RESULTS of several machines or parts INTO one folder.

    Runs that several of them hold count once; the RESULTS are not changed.
    """
    _print_counts(overview(merge_stores(into, results)))


@click.command(epilog="Example:  hpobench-ordered compact results")
@click.argument("results", type=RESULTS)
def compact(results: Path) -> None:
    """Join the files of RESULTS into few, as long experiments do at their end."""
    click.echo(f"{Store.there(results).compact()} files of runs were joined")


def _print_counts(found: Overview) -> None:
    if shown := states_table(found.runs):
        print_table(shown.header, shown.rows)
    totals = found.runs["state"].value_counts()
    states = [state for state in STATES if state in totals]
    click.echo(", ".join(f"{totals[state]} {state}" for state in states) or "no runs")
    if found.superseded:
        click.echo(f"{found.superseded} runs of older versions of methods are ignored")
