"""Commands on results: status, merge and compact."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpobench_ordered.analysis.labels import protocol_label
from hpobench_ordered.cli._options import json_option
from hpobench_ordered.cli._show import print_json, print_table
from hpobench_ordered.errors import StoreError

if TYPE_CHECKING:
    from hpobench_ordered.experiment.overview import Overview

RESULTS = click.Path(exists=True, file_okay=False, path_type=Path)
SHOWN = 10
"""Failures that are shown without being asked for."""


@click.command(epilog="Example:  hpobench-ordered status results --failures")
@click.argument("results", type=RESULTS)
@click.option("--failures", is_flag=True, help="Show every failed run with its traceback.")
@click.option(
    "--digest", is_flag=True, help="Show the hash of all values: equal for equal results."
)
@json_option
def status(results: Path, failures: bool, digest: bool, as_json: bool) -> None:
    """Show what of an experiment is done, running, failed or missing."""
    from hpobench_ordered.experiment.overview import overview
    from hpobench_ordered.experiment.store import Store

    store = Store(results)
    if not store.is_prepared:
        raise StoreError(f"{results} is not a result store")
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
        for failure in found.failures[:SHOWN]:
            click.echo(f"failed: {failure.benchmark}, seed {failure.seed}: {failure.message}")
        if len(found.failures) > SHOWN:
            click.echo(f"and {len(found.failures) - SHOWN} more; --failures shows all")
    if digest:
        click.echo(f"digest: {store.digest()}")


@click.command(epilog="Example:  hpobench-ordered merge all part-0 part-1")
@click.argument("into", type=click.Path(file_okay=False, path_type=Path))
@click.argument("results", nargs=-1, required=True, type=RESULTS)
def merge(into: Path, results: tuple[Path, ...]) -> None:
    """Join the RESULTS of several machines or parts INTO one folder.

    What several of them hold counts once; the RESULTS stay as they are.
    """
    from hpobench_ordered.experiment.api import merge_stores
    from hpobench_ordered.experiment.overview import overview

    _print_counts(overview(merge_stores(into, results)))


@click.command(epilog="Example:  hpobench-ordered compact results")
@click.argument("results", type=RESULTS)
def compact(results: Path) -> None:
    """Join the files of RESULTS into few; a run of many runs does so at its end."""
    from hpobench_ordered.experiment.store import Store

    store = Store(results)
    if not store.is_prepared:
        raise StoreError(f"{results} is not a result store")
    click.echo(f"{store.compact()} files of runs were joined")


def _print_counts(found: "Overview") -> None:
    counts = found.counts()
    shown = counts.assign(protocol=[protocol_label(str(p)) for p in counts["protocol"]])
    rows = [tuple(map(str, row)) for row in shown.itertuples(index=False)]
    print_table(tuple(counts.columns), rows)
    totals = found.runs["state"].value_counts()
    states = [state for state in counts.columns if state in totals]
    click.echo(", ".join(f"{totals[state]} {state}" for state in states) or "no runs")
    if found.superseded:
        click.echo(f"{found.superseded} runs of older versions of methods count no more")
