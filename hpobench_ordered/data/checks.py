"""Checks of numbers that users give."""

from numbers import Integral

from hpobench_ordered.errors import ExperimentError


def check_count(number: object, *, noun: str) -> None:
    """Raise an `ExperimentError` unless a number of things is a positive integer.

    Args:
        number: How many there are.
        noun: What is counted, in the singular, for the message: "at least 1 ... is needed".
    """
    if not isinstance(number, Integral) or number < 1:
        raise ExperimentError(f"at least 1 {noun} is needed (whole number), but got {number!r}")


def check_seed(seed: object) -> None:
    """Raise an `ExperimentError` unless a seed is a non-negative integer."""
    if not isinstance(seed, Integral) or seed < 0:
        raise ExperimentError(f"a seed must be a whole number from 0, but got {seed!r}")
