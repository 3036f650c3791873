"""Options that choose a protocol."""

import functools
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import click

from hpobench_ordered.cli._options import Command, with_options
from hpobench_ordered.protocols import PROTOCOLS, Adjustment, Ordered, Protocol

_TRIALS = ", ".join(f"{name} {protocol().trials}" for name, protocol in PROTOCOLS.items())
SETTINGS = ("trials", "tasks", "workers_simulated", "history", "first_trials", "first_method")
FLAGS = {"workers_simulated": "--simulated-workers"}
"""Options whose names differ from that of the setting."""


def make_protocol(
    name: str, settings: Mapping[str, int | str | tuple[str, ...] | None]
) -> Protocol:
    """Make the protocol of a name; settings that are None keep their default."""
    chosen = {setting: value for setting, value in settings.items() if value is not None}
    known = [field.name for field in fields(PROTOCOLS[name]) if field.name in settings]
    for setting in chosen:
        if setting not in known:
            raise click.UsageError(
                f"the protocol {name} does not take {_flag(setting)}; it takes "
                f"{', '.join(map(_flag, known))}"
            )
    protocol: Protocol = PROTOCOLS[name](**chosen)
    return protocol


def tasks_of(
    context: click.Context, option: click.Parameter, text: str | None
) -> int | tuple[str, ...] | None:
    """Read a number of tasks, or names separated by commas."""
    if text is None:
        return None
    return int(text) if text.isdecimal() else tuple(part.strip() for part in text.split(","))


_OPTIONS = (
    click.option(
        "--protocol",
        "protocol_name",
        type=click.Choice(list(PROTOCOLS)),
        default="ordered",
        show_default=True,
        help="Which history methods have, and in which order tasks come.",
    ),
    click.option("--trials", type=int, help=f"Evaluations per task.  [default: {_TRIALS}]"),
    click.option(
        "--tasks",
        callback=tasks_of,
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
    """Add the options of protocols to a command, as its argument `protocol`."""

    @functools.wraps(command)
    def called(protocol_name: str, **given: Any) -> None:
        settings = {name: given.pop(name) for name in SETTINGS}
        is_left_open = protocol_name == Ordered().name and not any(
            v is not None for v in settings.values()
        )
        protocol = None if is_left_open else make_protocol(protocol_name, settings)
        command(protocol=protocol, **given)

    return with_options(called, _OPTIONS)


def _flag(setting: str) -> str:
    return FLAGS.get(setting, f"--{setting.replace('_', '-')}")
