"""Protocols as text, such as "ordered(trials=25, tasks=None, workers_simulated=1)".

Results and run keys hold this text. A text may also be of a protocol from outside the package: its
name and settings can be read, but not the protocol itself.
"""

import ast
from collections.abc import Mapping
from typing import Any

from hpobench_ordered.data.protocol_text import parse_protocol_name, parse_protocol_settings
from hpobench_ordered.experiment.protocols.adjustment import Adjustment
from hpobench_ordered.experiment.protocols.base import Protocol
from hpobench_ordered.experiment.protocols.leave_one_out import LeaveOneOut
from hpobench_ordered.experiment.protocols.ordered import Ordered

PROTOCOLS: Mapping[str, Any] = {
    protocol().name: protocol for protocol in (Ordered, LeaveOneOut, Adjustment)
}
"""The protocols of this package by name."""


def format_protocol(protocol: Protocol) -> str:
    """The text of a protocol: its name, with its settings in parentheses.

    Such as "ordered(trials=25, tasks=None, workers_simulated=1)".
    """
    settings = [f"{name}={value}" for name, value in protocol.settings().items()]
    return f"{protocol.name}({', '.join(settings)})"


def parse_protocol(text: str) -> Protocol:
    """Make the protocol that a text such as "ordered(trials=25, tasks=None)" describes.

    It is the inverse of `format_protocol`, for the protocols of this package.
    """
    settings: dict[str, Any] = {}
    for setting, value in parse_protocol_settings(text).items():
        try:
            settings[setting] = ast.literal_eval(value)
        except (ValueError, SyntaxError):  # a text such as a method's name, without quotes
            settings[setting] = value

    protocol_class = PROTOCOLS[parse_protocol_name(text)]
    protocol: Protocol = protocol_class(**settings)
    return protocol
