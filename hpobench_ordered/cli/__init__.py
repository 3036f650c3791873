"""The command line: `hpobench-ordered`."""

import signal
import sys

import click

from hpobench_ordered.cli._output import allow_all_characters
from hpobench_ordered.cli.benchmarks import info, list_
from hpobench_ordered.cli.experiments import check, compare, report, run
from hpobench_ordered.cli.export import export
from hpobench_ordered.cli.fetch import fetch
from hpobench_ordered.cli.generate import generate
from hpobench_ordered.cli.leaderboard import leaderboard
from hpobench_ordered.cli.reproduce import reproduce
from hpobench_ordered.cli.stores import merge, status
from hpobench_ordered.cli.tuning import suggest
from hpobench_ordered.errors import (
    DuplicateNameError,
    EvaluationsError,
    ExperimentError,
    HPOBenchOrderedError,
    InvalidConfigError,
    InvalidNameError,
    InvalidSpaceError,
    UnknownNameError,
)

FAILED = 1
MISUSED = 2
INTERRUPTED = 130  # as shells report a process that SIGINT ended

CONTINUED_COMMANDS = frozenset({"compare", "generate", "reproduce", "run"})
"""Commands that continue where they were interrupted."""

MISUSES = (
    DuplicateNameError,
    EvaluationsError,
    ExperimentError,
    InvalidConfigError,
    InvalidNameError,
    InvalidSpaceError,
    UnknownNameError,
)
"""Errors in what the user asked for or wrote; all others are failures."""


@click.group(
    epilog="Start with:  hpobench-ordered run --benchmark newsvendor",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="hpobench-ordered", prog_name="hpobench-ordered")
def app() -> None:
    """Benchmarks and methods for ordered transfer hyperparameter optimisation.

    Results go to standard output, progress and messages to standard error. Exit codes: 0
    success, 1 something failed, 2 invalid arguments or input, 130 interrupted.
    """


COMMANDS = (
    list_,
    info,
    fetch,
    generate,
    check,
    run,
    compare,
    status,
    merge,
    leaderboard,
    report,
    export,
    reproduce,
    suggest,
)

for command in COMMANDS:
    app.add_command(command)


def main() -> None:
    """Run the command line; errors give one message and an exit code instead of a traceback."""
    # Treat a job scheduler's SIGTERM like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    allow_all_characters()
    try:
        # Standalone, click would print errors and exit by itself. Here it raises errors, and
        # returns None, for success, or the exit code that a command chose.
        code = app(prog_name="hpobench-ordered", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        message = "interrupted"
        if not CONTINUED_COMMANDS.isdisjoint(sys.argv[1:2]):  # the name of the command
            message += "; finished runs are stored: repeat the command to continue"
        click.echo(message, err=True)
        code = INTERRUPTED
    except HPOBenchOrderedError as error:
        click.echo(f"error: {error}", err=True)
        code = MISUSED if isinstance(error, MISUSES) else FAILED
    sys.exit(code)
