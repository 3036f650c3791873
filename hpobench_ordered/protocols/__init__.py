"""Protocols: which tasks a method is run on, in which order, and with which history."""

from hpobench_ordered.protocols.adjustment import Adjustment
from hpobench_ordered.protocols.base import Assignment, Protocol
from hpobench_ordered.protocols.leave_one_out import LeaveOneOut
from hpobench_ordered.protocols.ordered import Ordered

__all__ = ["Adjustment", "Assignment", "LeaveOneOut", "Ordered", "Protocol"]
