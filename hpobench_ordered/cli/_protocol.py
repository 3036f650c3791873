"""Options that choose a protocol."""

import functools
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import click

from hpobench_ordered.cli._options import Command, add_options
from hpobench_ordered.experiment.protocols import PROTOCOLS, Adjustment, Ordered, Protocol

DEFAULT_TRIALS = ", ".join(f"{name} {protocol().trials}" for name, protocol in PROTOCOLS.items())

SETTINGS = ("trials", "tasks", "workers_simulated", "history", "first_trials", "first_method")
"""Names of the settings of protocols, each of which is set by an option."""

RENAMED_OPTIONS = {"workers_simulated": "--simulated-workers"}
"""Options whose names differ from that of the setting."""


def make_protocol(
    name: str, settings: Mapping[str, int | str | tuple[str, ...] | None]
) -> Protocol:
    """Make the protocol of a name; settings that are None keep their default.

    Args:
        name: Name of the protocol.
        settings: Values of the options that set up any protocol, by the name of the setting.

    Raises:
        UsageError: An option is used that this protocol does not have.
    """
    protocol_class = PROTOCOLS[name]
    names_of_fields = [field.name for field in fields(protocol_class)]
    possible = [setting for setting in names_of_fields if setting in settings]
    chosen = {setting: value for setting, value in settings.items() if value is not None}
    for setting in chosen:
        if setting not in possible:
            options = ", ".join(map(format_option, possible))
            raise click.UsageError(
                f"the protocol {name} does not take {format_option(setting)}; it takes {options}"
            )
    protocol: Protocol = protocol_class(**chosen)
    return protocol


def format_option(setting: str) -> str:
    """Return the option that sets a setting of a protocol: "first_trials" gives --first-trials."""
    return RENAMED_OPTIONS.get(setting, f"--{setting.replace('_', '-')}")


def parse_tasks(
    context: click.Context, option: click.Parameter, text: str | None
) -> int | tuple[str, ...] | None:
    """Read a number of tasks, or names separated by commas.

    Click calls it for the value of an option, and also passes the context and the option.
    """
    if text is None:  # the option is not used
        return None
    if text.isdecimal():
        return int(text)
    return tuple(part.strip() for part in text.split(","))


_OPTIONS = (
    click.option(
        "--protocol",
        "protocol_name",
        type=click.Choice(list(PROTOCOLS)),
        default="ordered",
        show_default=True,
        help="Which history methods have, and in which order tasks come.",
    ),
    click.option("--trials", type=int, help=f"Evaluations per task.  [default: {DEFAULT_TRIALS}]"),
    click.option(
        "--tasks",
        callback=parse_tasks,
        help="Number of tasks, from the first on; leave-one-out and adjustment: or names of tasks, "
        "separated by commas.",
    ),
    click.option(
        "--simulated-workers",
        "workers_simulated",
        type=int,
        help="ordered: how many trials run at once. With 4, as the authors of the paper ran, four "
        "configurations are asked for before the first result is told, then one after each result. "
        "Not the number of processes.  [default: 1]",
    ),
    click.option(
        "--history",
        type=int,
        help="leave-one-out: evaluations per source task.  [default: all that are recorded, or the "
        "benchmark's own number]",
    ),
    click.option(
        "--first-trials",
        type=int,
        help="adjustment: evaluations per task on the old search space.  "
        f"[default: {Adjustment().first_trials}]",
    ),
    click.option(
        "--first-method",
        help=f"adjustment: method on the old search space.  [default: {Adjustment().first_method}]",
    ),
)


def protocol_options(command: Command) -> Command:
    """Add the options of protocols to a command, as its argument `protocol`.

    It is None if nothing is chosen, so that `run --against` can take the other results' protocol.
    """

    @functools.wraps(command)
    def command_with_protocol(protocol_name: str, **options: Any) -> None:
        """Call the command with a protocol in place of the options that describe it."""
        settings = {name: options.pop(name) for name in SETTINGS}
        has_settings = any(value is not None for value in settings.values())
        if protocol_name == Ordered().name and not has_settings:  # the defaults
            protocol = None
        else:
            protocol = make_protocol(protocol_name, settings)
        command(protocol=protocol, **options)

    return add_options(command_with_protocol, _OPTIONS)
