"""Options and arguments shared by several commands."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from hpobench_ordered.cli._completion import complete_suite
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.experiment.api import Results, reference
from hpobench_ordered.experiment.joined import read_reference_for
from hpobench_ordered.experiment.parallel import TIME_LIMIT
from hpobench_ordered.experiment.store import Store

CHECK_LIMIT = 30.0  # default time limit, in seconds, of a call while a method is checked

MOST_SEEDS = 1_000_000

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
RESULTS = click.Path(exists=True, file_okay=False, path_type=Path)

Command = Callable[..., Any]

time_limit_option = click.option(
    "--time-limit",
    type=click.FloatRange(min=0),
    show_default=f"{TIME_LIMIT:g}, and {CHECK_LIMIT:g} in checks",
    help="Seconds a method may take for one suggestion, 0 for no limit.",
)

workers_option = click.option(
    "--workers",
    type=click.IntRange(1),
    default=lambda: os.cpu_count() or 1,
    show_default="all processors",
    help="Number of processes.",
)

measured_only_option = click.option(
    "--measured-only",
    is_flag=True,
    help="Leave out interpolated tasks, and surrogates that stand in for others.",
)

dask_option = click.option(
    "--dask", metavar="ADDRESS", help="Run on the workers of this Dask scheduler."
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")


def with_options(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    """Add options to a command, in the order of its help."""
    for option in reversed(options):
        command = option(command)
    return command


def seeds_of(context: click.Context, option: click.Parameter, text: str | None) -> list[int] | None:
    """Read seeds: "5" is 0 to 4, "10-19" a range with both ends, "3,7" a list."""
    if text is None:
        return None
    seeds: Sequence[int]
    try:
        if "," in text:
            seeds = [int(part) for part in text.split(",")]
        else:
            first, dash, last = text.partition("-")
            seeds = range(int(first), int(last) + 1) if dash else range(int(first))
        too_many = bool(seeds[MOST_SEEDS:])
    except (ValueError, OverflowError):
        seeds, too_many = (), False
    if not seeds:
        raise click.BadParameter(
            f"must be a number of seeds (5), a range (10-19) or a list (3,7), but got {text!r}"
        )
    if too_many:
        raise click.BadParameter(f"there must be at most {MOST_SEEDS} seeds, but got {text}")
    return list(seeds)


def shard_of(
    context: click.Context, option: click.Parameter, text: str | None
) -> tuple[int, int] | None:
    """Read a shard such as "0/4"."""
    if text is None:
        return None
    first, _, second = text.partition("/")
    try:
        return int(first), int(second)
    except ValueError:
        raise click.BadParameter(
            f"a part must be such as 0/4, the first of four, but got {text!r}"
        ) from None


def sizes_of(context: click.Context, option: click.Parameter, text: str | None) -> list[int] | None:
    """Read training-set sizes from a list such as 56,155,433."""
    try:
        return None if text is None else [int(part) for part in text.split(",")]
    except ValueError:
        message = f"must be a list such as 56,155,433, but got {text!r}"
        raise click.BadParameter(message) from None


def pairs(words: Sequence[str], option: str, form: str) -> dict[str, str]:
    """Read words such as NAME=VALUE, each name once."""
    read: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (name and equals) or name in read:
            raise ExperimentError(f"{option} must be {form}, each name once, but got {word!r}")
        read[name] = value
    return read


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


def chosen_results(folder: Path | None, *, with_reference: bool, suite_name: str | None) -> Results:
    """The results that a command is asked to read, from at least one source."""
    if suite_name is not None and (folder is not None or not with_reference):
        raise click.UsageError("--suite needs --reference, and no RESULTS")
    if folder is None:
        if not with_reference:
            raise click.UsageError("give a folder of RESULTS, or --reference")
        return reference(*([suite_name] if suite_name else []))
    store = Store(folder)
    return Results(store, (), read_reference_for(store) if with_reference else None)
