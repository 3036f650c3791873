"""Benchmarks from tables of evaluations of one's own."""

from hpobench_ordered.user_benchmarks.making import from_evaluations, save

__all__ = ["from_evaluations", "save"]
