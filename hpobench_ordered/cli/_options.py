"""Options and arguments shared by several commands, and how their values are read."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from hpobench_ordered.benchmarks.registry import suites
from hpobench_ordered.cli._completion import complete_suite
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.experiment.api import Results, reference
from hpobench_ordered.experiment.joined import read_reference_for
from hpobench_ordered.experiment.parallel import TIME_LIMIT
from hpobench_ordered.experiment.store import Store

CHECK_LIMIT = 30.0  # default time limit, in seconds, of a call while a method is checked

MAX_SEEDS = 1_000_000

Command = Callable[..., Any]


PATH = click.Path(path_type=Path)
EXISTING_PATH = click.Path(exists=True, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
EXISTING_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)

time_limit_option = click.option(
    "--time-limit",
    type=click.FloatRange(min=0),
    show_default=f"{TIME_LIMIT:g}, and {CHECK_LIMIT:g} in checks",
    help="Seconds a method may take for one suggestion, 0 for no limit. "
    "The process of your own method is killed when it takes longer.",
)

workers_option = click.option(
    "--workers",
    type=click.IntRange(1),
    default=lambda: os.cpu_count() or 1,
    show_default="all processors",
    help="Number of processes.",
)

workers_of_runs_option = click.option(
    "--workers",
    type=click.IntRange(0),
    default=lambda: os.cpu_count() or 1,
    show_default="all processors",
    help="Number of processes; 0: none but this one, for debuggers.",
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


def add_options(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    """Add options to a command, in the order of its help."""
    # Help begins with the option that was added last.
    for option in reversed(options):
        command = option(command)
    return command


def parse_seeds(
    context: click.Context, option: click.Parameter, text: str | None
) -> list[int] | None:
    """Read seeds: "5" is 0 to 4, "10-19" a range with both ends, "3,7" a list.

    Click calls it for the value of an option, None if that is not used; it passes the context and
    the option, too, which are not needed.
    """
    if text is None:
        return None

    try:
        seeds = _parse_seeds(text)
    except ValueError:
        seeds = ()
    if not seeds:
        raise click.BadParameter(
            f"must be a number of seeds (5), a range (10-19) or a list (3,7), but got {text!r}"
        )

    # Not by len(seeds), which overflows for a huge range.
    has_too_many = bool(seeds[MAX_SEEDS:])
    if has_too_many:
        raise click.BadParameter(f"there must be at most {MAX_SEEDS} seeds, but got {text}")
    return list(seeds)


def _parse_seeds(text: str) -> Sequence[int]:
    """Read seeds: "3,7" lists them, "10-19" is a range with both ends, "5" is 0 to 4.

    Raises:
        ValueError: The text has none of these forms.
    """
    if "," in text:
        return [int(part) for part in text.split(",")]
    first, dash, last = text.partition("-")
    if dash:
        return range(int(first), int(last) + 1)
    return range(int(text))


def parse_shard(
    context: click.Context, option: click.Parameter, text: str | None
) -> tuple[int, int] | None:
    """Read a shard such as "0/4": its index from 0, and the number of shards.

    Click calls it for the value of an option, None if that is not used; it passes the context and
    the option, too, which are not needed.
    """
    if text is None:
        return None
    index, _, count = text.partition("/")
    try:
        return int(index), int(count)
    except ValueError:
        raise click.BadParameter(
            f"a part must be such as 0/4, the first of four, but got {text!r}"
        ) from None


def parse_sizes(
    context: click.Context, option: click.Parameter, text: str | None
) -> list[int] | None:
    """Read training-set sizes from a list such as 56,155,433.

    Click calls it for the value of an option, None if that is not used; it passes the context and
    the option, too, which are not needed.
    """
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        message = f"must be a list such as 56,155,433, but got {text!r}"
        raise click.BadParameter(message) from None


def parse_pairs(words: Sequence[str], option: str, form: str) -> dict[str, str]:
    """Read words such as NAME=VALUE, each name once.

    Args:
        words: What the option was given.
        option: The option, for errors.
        form: What a word should look like, for errors.
    """
    value_of_name: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or not equals or name in value_of_name:
            raise ExperimentError(f"{option} must be {form}, each name once, but got {word!r}")
        value_of_name[name] = value
    return value_of_name


_RESULTS_ARGUMENTS = (
    click.argument("results", required=False, type=EXISTING_FOLDER),
    click.option(
        "--reference",
        "with_reference",
        is_flag=True,
        help="The reference results of the package's methods, together with RESULTS if given.",
    ),
    click.option(
        "--suite",
        "suite_names",
        multiple=True,
        shell_complete=complete_suite,
        help=f"Only the reference results on this suite; repeat: {', '.join(suites())}.  "
        "[default: all]",
    ),
)


def results_arguments(command: Command) -> Command:
    """Add RESULTS, `--reference` and `--suite`, the arguments of `open_results`."""
    return add_options(command, _RESULTS_ARGUMENTS)


def open_results(
    folder: Path | None, *, with_reference: bool, suite_names: Sequence[str]
) -> Results:
    """Open the results in a folder, the reference results, or both together.

    Args:
        folder: The folder, if any.
        with_reference: Whether to open the reference results.
        suite_names: Suites to which reference results without a folder are limited; empty: all.
    """
    if suite_names and (folder is not None or not with_reference):
        raise click.UsageError("--suite needs --reference, and no RESULTS")
    if folder is None and not with_reference:
        raise click.UsageError("give a folder of RESULTS, or --reference")

    for name in suite_names:
        if name not in suites():  # `reference` takes names of benchmarks, too
            raise UnknownNameError("suite", name, suites())

    if folder is None:
        return reference(*suite_names)
    store = Store(folder)
    reference_results = read_reference_for(store) if with_reference else None
    # Of cells, which are planned runs, none are chosen: all runs of the store count.
    return Results(store, cells=(), against=reference_results)
