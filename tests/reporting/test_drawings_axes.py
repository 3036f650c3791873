"""Axes, colours and texts of drawings."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpobench_ordered.reporting.drawings.colours import (
    ON_DARK,
    ON_LIGHT,
    diverging,
    is_dark,
    sequential,
)
from hpobench_ordered.reporting.drawings.dimensions import Dimension
from hpobench_ordered.reporting.drawings.scales import Spacing, linear, log_scale, short
from hpobench_ordered.reporting.drawings.scene import shortened, text_width


def test_text_on_colours_has_contrast() -> None:
    for share in np.linspace(0, 1, 41):
        colour = diverging(float(share))
        ink = ON_DARK if is_dark(colour) else ON_LIGHT
        levels = sorted(_luminance(c) + 0.05 for c in (colour, ink))
        assert levels[1] / levels[0] >= 4.3


def test_the_sequence_gets_lighter_at_every_step() -> None:
    levels = [_luminance(sequential(u)) for u in np.linspace(0, 1, 12)]
    assert (np.diff(levels) > 0).all()


def test_dimensions_are_recognised() -> None:
    frame = pd.DataFrame(
        {"rate": [1e-4, 0.5, 1.0], "depth": [1, 5, None], "kernel": ["radial", "linear", None]}
    )
    rate, depth, kernel = (Dimension.of_column(name, frame[name]) for name in frame)
    assert rate.scale.spacing is Spacing.LOGARITHMIC
    assert depth.scale.spacing is Spacing.LINEAR
    assert kernel.choices == ("linear", "radial")
    places = kernel.places(pd.Series(["radial", "linear", None]))
    np.testing.assert_array_equal(places, [0.75, 0.25, np.nan])
    np.testing.assert_allclose(rate.places(pd.Series([1e-4, 1e-2, 1.0])), [0, 0.5, 1])


@given(
    low=st.floats(-1e6, 1e6, allow_subnormal=False),
    width=st.floats(1e-6, 1e7),
    most=st.integers(2, 6),
)
@settings(deadline=None)
def test_ticks_are_few_inside_and_told_apart(low: float, width: float, most: int) -> None:
    scale = linear(low, low + width, most=most)
    assert 1 <= len(scale.ticks) <= most
    slack = 1e-6 * (scale.high - scale.low)
    assert all(scale.low - slack <= tick <= scale.high + slack for tick in scale.ticks)
    if width > 1e-4 * abs(low):
        assert len(set(scale.labels)) == len(scale.labels)


@given(
    low=st.floats(1e-9, 1e6),
    factor=st.floats(1.01, 1e9),
    most=st.integers(2, 6),
    zero=st.booleans(),
)
@settings(deadline=None)
def test_logarithmic_ticks_are_few_and_inside(
    low: float, factor: float, most: int, zero: bool
) -> None:
    scale = log_scale(low, low * factor, most=most, zero=zero)
    assert 1 <= len(scale.ticks) <= most
    places = scale(np.array(scale.ticks))
    assert ((places >= 0) & (places <= 1)).all() and (np.diff(places) > 0).all()
    assert not zero or places[0] == 0


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0, "0"), (25, "25"), (0.01, "0.01"), (20_000, "20k"), (1e-7, "1e-7"), (2.5e6, "2.5e6")],
)
def test_short_numbers(number: float, text: str) -> None:
    assert short(number) == text


def test_texts_are_cut_where_they_are_too_wide() -> None:
    assert shortened("abc", width=100) == "abc"
    cut = shortened("a long name of a task", width=50)
    assert cut.endswith("…") and text_width(cut, size=10) <= 50


def _luminance(colour: str) -> float:
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear_rgb = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear_rgb @ [0.2126, 0.7152, 0.0722])
