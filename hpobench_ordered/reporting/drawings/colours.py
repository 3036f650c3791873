"""Colours of numbers: a sequence for losses, and one with two ends for shares.

The sequence gets lighter at every step, so that its order is seen with any kind of colour blindness
and in prints without colour. The other is lightest in the middle; its ends are orange and blue, a
pair that all readers tell apart. Both are the same on white and on dark pages.
"""

from collections.abc import Sequence

import numpy as np

from hpobench_ordered._typing import FloatArray

ON_LIGHT, ON_DARK = "#111111", "#FFFFFF"
"""Colours of what is drawn on light and on dark colours."""

SEQUENCE = ("#123A63", "#1F5F8B", "#3B86A8", "#6FAFBF", "#A9D0CC", "#DCE9D5", "#F7F6E6")
"""From the lowest to the highest."""

ENDS = ("#9A4A00", "#E08A2E", "#F6CFA0", "#F2F2F0", "#AFCBE3", "#4E8CC0", "#124E86")
"""From 0 over 1/2 to 1."""

SHADES = ("#FFFFFF", "#FFE6CC", "#FFCC99", "#FFAE66", "#F98B36", "#E4660F", "#B84A00", "#7F3000")
"""Of points, from the first trial to the last; they stand out from `SEQUENCE` in hue."""

DARK_BELOW = 0.19
"""Relative luminance of colours that white stands out from."""


def sequential(u: float) -> str:
    """Colour of a number: dark blue at 0, nearly white at 1."""
    return _between(SEQUENCE, u)


def diverging(share: float) -> str:
    """Colour of a share: orange at 0, nearly white at 1/2, blue at 1."""
    return _between(ENDS, share)


def is_dark(colour: str) -> bool:
    """Whether white stands out from a colour better than black."""
    rgb = _rgb(colour) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return bool(linear @ [0.2126, 0.7152, 0.0722] < DARK_BELOW)


def _between(colours: Sequence[str], u: float) -> str:
    place = min(max(u, 0.0), 1.0) * (len(colours) - 1)
    lower = min(int(place), len(colours) - 2)
    first, second = _rgb(colours[lower]), _rgb(colours[lower + 1])
    mixed = np.rint(first + (place - lower) * (second - first)).astype(int)
    return "#" + "".join(f"{part:02X}" for part in mixed)


def _rgb(colour: str) -> FloatArray:
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)], dtype=np.float64)
