"""Protocols: which tasks a method is run on, in which order, and with which history."""

from hpobench_ordered.experiment.protocols.adjustment import Adjustment
from hpobench_ordered.experiment.protocols.base import Assignment, Protocol
from hpobench_ordered.experiment.protocols.leave_one_out import LeaveOneOut
from hpobench_ordered.experiment.protocols.ordered import Ordered
from hpobench_ordered.experiment.protocols.text import (
    PROTOCOLS,
    format_protocol,
    parse_protocol,
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
]
