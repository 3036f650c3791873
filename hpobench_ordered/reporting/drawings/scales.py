"""Axes: where data lie between the ends of a panel, and which numbers stand beside it.

Notation:
    u   position along an axis: 0 at its beginning, 1 at its end
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from hpobench_ordered._typing import FloatArray

ZERO_SHARE = 0.1
"""Share of a logarithmic axis with a zero that is below the smallest number."""

MOST_DECADES = 6.0
"""A logarithmic axis is no longer: what is below is drawn as zero."""

FEW_DECADES = 1.7
"""A shorter logarithmic axis has more than powers of ten as ticks."""

ROUNDING = 1e-9
"""Relative differences of this size, and negative numbers of it, are taken for zero."""

NICE_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)

THOUSAND = 1000
PLAIN_BELOW = 10_000
PLAIN_ABOVE = 1e-3


class Spacing(Enum):
    """How numbers lie along an axis."""

    LINEAR = "linear"
    LOGARITHMIC = "logarithmic"
    LOGARITHMIC_WITH_ZERO = "logarithmic with zero"


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis.

    Attributes:
        low: Number at u = 0; with a zero, the smallest number above it.
        high: Number at u = 1.
        spacing: How numbers lie in between.
        ticks: Numbers that are marked.
        labels: What stands beside them.
    """

    low: float
    high: float
    spacing: Spacing
    ticks: tuple[float, ...]
    labels: tuple[str, ...]

    def __call__(self, numbers: FloatArray) -> FloatArray:
        """Positions of numbers, at the ends where they are beyond; NaN stays NaN."""
        numbers = np.asarray(numbers, dtype=np.float64)
        if self.spacing is Spacing.LINEAR:
            return np.clip((numbers - self.low) / (self.high - self.low), 0, 1)
        positive = np.where(numbers > 0, numbers, np.where(np.isnan(numbers), np.nan, self.low))
        u = np.log(positive / self.low) / math.log(self.high / self.low)
        if self.spacing is Spacing.LOGARITHMIC:
            return np.clip(u, 0, 1)
        u = ZERO_SHARE + (1 - ZERO_SHARE) * np.clip(u, 0, 1)
        return np.where(numbers < self.low, 0.0, u)


def linear(low: float, high: float, *, most: int = 4) -> Scale:
    """A linear axis.

    Args:
        low: Its lower end.
        high: Its upper end; where it is hardly higher, both are moved apart.
        most: Largest number of ticks.
    """
    if not high - low > ROUNDING * max(abs(low), abs(high)):
        margin = abs(low) / 10 or 1.0
        low, high = low - margin, high + margin
    ticks, step = _nice_ticks(low, high, most)
    return Scale(low, high, Spacing.LINEAR, ticks, _decimals(ticks, step))


def whole(low: int, high: int, *, most: int = 6) -> Scale:
    """A linear axis of whole numbers, with half a step on either side."""
    step = math.ceil((high - low + 1) / most)
    ticks = tuple(float(number) for number in range(low, high + 1, step))
    labels = tuple(f"{tick:.0f}" for tick in ticks)
    return Scale(low - 0.5, high + 0.5, Spacing.LINEAR, ticks, labels)


def log_scale(low: float, high: float, *, most: int = 4, zero: bool = False) -> Scale:
    """A logarithmic axis.

    Args:
        low: Its lower end, above 0.
        high: Its upper end.
        most: Largest number of ticks.
        zero: Whether there is a zero at its beginning, and all below the lower end is drawn there.
    """
    if not high > low:
        low, high = low / 2, high * 2
    ticks = _log_ticks(low, high, most - zero)
    labels = tuple(map(short, ticks))
    if not zero:
        return Scale(low, high, Spacing.LOGARITHMIC, ticks, labels)
    return Scale(low, high, Spacing.LOGARITHMIC_WITH_ZERO, (0.0, *ticks), ("0", *labels))


def trials_scale(last: int) -> Scale:
    """The axis of trials: logarithmic, since most happens during the first ones."""
    if last == 1:
        return Scale(0.5, 2.0, Spacing.LOGARITHMIC, (1.0,), ("1",))
    usual = [t for t in (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000) if t < last / 1.7]
    ticks = (*usual, last)
    labels = tuple(map(short, ticks))
    return Scale(1.0, float(last), Spacing.LOGARITHMIC, tuple(map(float, ticks)), labels)


def spans_decades(numbers: FloatArray) -> bool:
    """Whether numbers, of which none is negative, are more than a factor of ten apart."""
    positive = numbers[np.isfinite(numbers) & (numbers > 0)]
    if not len(positive) or not is_nowhere_negative(numbers):
        return False
    return bool(positive.max() > 10 * positive.min())


def is_nowhere_negative(numbers: FloatArray) -> bool:
    """Whether no finite number is negative, give or take what floating point does."""
    known = numbers[np.isfinite(numbers)]
    return bool(known.min(initial=0.0) >= -ROUNDING * np.abs(known).max(initial=0.0))


def spanning(numbers: FloatArray, *, logarithmic: bool, most: int = 4) -> Scale:
    """The axis that fits some numbers.

    Args:
        numbers: The numbers, of which at least one is finite.
        logarithmic: Whether the axis is, with a zero if need be; then no number is negative.
        most: Largest number of ticks.
    """
    known = numbers[np.isfinite(numbers)]
    low, high = float(known.min()), float(known.max())
    positive = known[known > 0]
    if logarithmic and len(positive):
        smallest = max(float(positive.min()), high * 10**-MOST_DECADES)
        return log_scale(smallest / 1.1, high * 1.1, most=most, zero=low < smallest)
    margin = 0.04 * (high - low)
    beginning = 0.0 if 0 <= low <= margin else low - margin
    return linear(beginning, high + margin, most=most)


def short(number: float) -> str:
    """A number in few characters, such as "0.01", "20k" or "1e-7"."""
    size = abs(number)
    if size >= PLAIN_BELOW and size < THOUSAND**2:
        return f"{number / THOUSAND:g}k"
    if size and (size < PLAIN_ABOVE or size >= PLAIN_BELOW):
        mantissa, exponent = f"{number:.2e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    return f"{number:.4g}"


def _nice_ticks(low: float, high: float, most: int) -> tuple[tuple[float, ...], float]:
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    for nice in (*NICE_STEPS, 20.0):
        step = nice * power
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            break
    return tuple(n * step for n in range(first, last + 1)), step


def _decimals(ticks: Sequence[float], step: float) -> tuple[str, ...]:
    """Labels of equally spaced ticks, all with as many decimals as their step needs."""
    largest = max((abs(tick) for tick in ticks), default=0.0)
    if largest >= PLAIN_BELOW or 0 < largest < PLAIN_ABOVE:
        return tuple(map(short, ticks))
    decimals = next((d for d in range(8) if abs(round(step, d) - step) < 1e-6 * step), 8)
    return tuple(f"{tick + 0.0:.{decimals}f}" for tick in ticks)


def _log_ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    decades = math.log10(high / low)
    exponents = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    for steps in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        if len(steps) > 1 and decades > FEW_DECADES:
            continue
        found = [step * 10.0**e for e in exponents for step in steps]
        ticks = [tick for tick in found if low <= tick <= high]
        if len(ticks) <= most:
            break
    stride = max(1, math.ceil(len(ticks) / max(most, 1)))
    if not ticks:
        return ((low * high) ** 0.5,)
    return tuple(ticks[(len(ticks) - 1) % stride :: stride])
