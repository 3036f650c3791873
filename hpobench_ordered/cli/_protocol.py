"""The protocols and their options."""

from collections.abc import Mapping
from dataclasses import fields

import click

from hpobench_ordered.protocols import Adjustment, LeaveOneOut, Ordered, Protocol

PROTOCOLS = {"ordered": Ordered, "leave-one-out": LeaveOneOut, "adjustment": Adjustment}

FLAGS = {"workers_simulated": "--simulated-workers"}
"""Options that are not called as the setting is."""


def make_protocol(
    name: str, settings: Mapping[str, int | str | tuple[str, ...] | None]
) -> Protocol:
    """Make a protocol.

    Args:
        name: Its name.
        settings: Its settings; None leaves one as it is by default.

    Raises:
        click.UsageError: The protocol does not have one of the settings.
        ExperimentError: A setting is not allowed.
    """
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


def default_trials() -> str:
    """Number of trials of each protocol, for the help."""
    return ", ".join(f"{name} {protocol().trials}" for name, protocol in PROTOCOLS.items())


def _flag(setting: str) -> str:
    return FLAGS.get(setting, f"--{setting.replace('_', '-')}")
