"""Benchmarks made from the user's tables of evaluations."""

from hpobench_ordered.tuning.own_benchmarks.making import from_evaluations
from hpobench_ordered.tuning.own_benchmarks.saving import save

__all__ = ["from_evaluations", "save"]
