"""The results that a command reads: a folder, the reference results, or both."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpobench_ordered.cli._completion import complete_suite
from hpobench_ordered.cli._options import RESULTS, Command, with_options

if TYPE_CHECKING:
    from hpobench_ordered.experiment.api import Results

_ARGUMENTS = (
    click.argument("results", required=False, type=RESULTS),
    click.option(
        "--reference",
        "with_reference",
        is_flag=True,
        help="The reference results of the package's methods, together with RESULTS if given.",
    ),
    click.option(
        "--suite",
        "suite_name",
        shell_complete=complete_suite,
        help="Only the reference results on this suite.  [default: all]",
    ),
)


def results_arguments(command: Command) -> Command:
    """Add RESULTS, `--reference` and `--suite`, the arguments of `chosen_results`."""
    return with_options(command, _ARGUMENTS)


def chosen_results(
    folder: Path | None, *, with_reference: bool, suite_name: str | None
) -> "Results":
    """The results that a command is asked to read, from at least one source."""
    from hpobench_ordered.experiment.api import Results, reference
    from hpobench_ordered.experiment.joined import with_reference_results
    from hpobench_ordered.experiment.store import Store

    if suite_name is not None and (folder is not None or not with_reference):
        raise click.UsageError("--suite needs --reference, and no RESULTS")
    if folder is None:
        if not with_reference:
            raise click.UsageError("give a folder of RESULTS, or --reference")
        return reference(*([suite_name] if suite_name else []))
    store = Store(folder)
    return Results(store, (), with_reference_results(store) if with_reference else None)
