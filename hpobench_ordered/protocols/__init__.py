"""Protocols: which tasks a method is run on, in which order, and with which history."""

from hpobench_ordered.protocols.adjustment import Adjustment
from hpobench_ordered.protocols.base import Assignment, Protocol
from hpobench_ordered.protocols.leave_one_out import LeaveOneOut
from hpobench_ordered.protocols.ordered import Ordered
from hpobench_ordered.protocols.text import (
    PROTOCOLS,
    format_protocol,
    parse_protocol,
    parse_protocol_name,
    parse_protocol_settings,
)

__all__ = [
    "PROTOCOLS",
    "Adjustment",
    "Assignment",
    "LeaveOneOut",
    "Ordered",
    "Protocol",
    "format_protocol",
    "parse_protocol",
    "parse_protocol_name",
    "parse_protocol_settings",
]
