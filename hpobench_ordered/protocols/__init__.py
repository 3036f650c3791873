"""Protocols: what a method gets to see, and in which order."""

from hpobench_ordered.protocols.base import Assignment, Protocol
from hpobench_ordered.protocols.ordered import Ordered

__all__ = ["Assignment", "Ordered", "Protocol"]
