"""Numbers of the interactive page are short, close to the exact ones, and valid JSON."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hpobench_ordered.reporting.interactive import (
    SIGNIFICANT_DIGITS,
    TINY,
    _round_for_page,
)

numbers = st.one_of(
    st.just(0.0),
    st.floats(min_value=1e-15, max_value=1e15),
    st.floats(min_value=-1e15, max_value=-1e-15),
)
"""Numbers whose rounding needs powers of ten that are exact as floats; others get more digits."""


def round_number(value: float) -> float:
    """Round one number as the numbers of a curve are rounded."""
    rounded: float = _round_for_page(np.array([value])).item()
    return rounded


@given(value=numbers)
def test_numbers_have_five_digits(value):
    """A rounded number does not change when it is written with five significant digits."""
    rounded = round_number(value)

    assert float(f"{rounded:.{SIGNIFICANT_DIGITS}g}") == rounded


@given(value=numbers)
def test_numbers_are_rounded_to_nearest(value):
    """A rounded number is at most half a unit of its fifth digit away from the number."""
    rounded = round_number(value)

    if value == 0.0:
        assert rounded == 0.0
        return
    # The fifth digit counts 10^-4 of the power of ten of the first digit.
    unit_of_last_digit = 10.0 ** (math.floor(math.log10(abs(value))) - 4)
    half_a_unit = 0.5 * unit_of_last_digit * (1 + 1e-9)  # and an allowance for rounding errors
    assert abs(rounded - value) <= half_a_unit


def test_missing_numbers_are_null():
    """JSON has neither NaN nor infinities: they become None, which is written as null."""
    rounded = _round_for_page(np.array([np.nan, np.inf, -np.inf]))

    assert rounded.tolist() == [None, None, None]


def test_tiny_numbers_are_zero():
    """Numbers below `TINY` become 0, as the power of ten that would scale them overflows."""
    assert round_number(TINY / 10.0) == 0.0
