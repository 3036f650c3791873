"""The axes of trials and of measures that may span decades."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from hpobench_ordered._typing import FloatArray

MAX_RATIO_OF_LINEAR_AXIS = 30.0
"""Positive numbers whose largest is more times the smallest get a logarithmic axis."""

PAPER_SCORE = "normalised score"
"""The measure of Hellan et al. (2023), which only the reproduction of that paper draws."""

TITLES = {"regret": "normalised regret", "rank": "mean rank", "value": "objective"}
"""Titles of the axes of measures; default: the measure's name."""

LINEAR = frozenset({"score", PAPER_SCORE, "rank", "similarity"})
"""Measures that never get a logarithmic axis: their zero is arbitrary, or they have none."""

TICKS_OF_MANY_TRIALS = (1, 3, 10, 25, 50, 100, 200, 500, 1000, 2000, 5000, 10000)


def title_of(measure: str) -> str:
    """Find the title of a measure's axis: its name, unless `TITLES` has another."""
    return TITLES.get(measure, measure)


def trial_axis(last: int) -> alt.X:
    """Make the horizontal axis of trials, logarithmic if there are more than two."""
    candidates = TICKS_OF_MANY_TRIALS if last >= 10 else (1, 2, 3, 5)
    # The last trial has a tick. Other ticks keep away from it, or their labels would overlap.
    ticks = [trial for trial in candidates if trial < 0.75 * last] + [last]
    end = max(last, 2)  # an axis needs two ends
    scale = alt.Scale(type="log" if last > 2 else "linear", domain=[1, end], nice=False)
    return alt.X("trial:Q", title="trial", scale=scale, axis=alt.Axis(values=ticks, format="d"))


def seconds_axis() -> alt.X:
    """Make the horizontal, logarithmic axis of simulated seconds."""
    scale = alt.Scale(type="log", nice=False)
    axis = alt.Axis(format="~s", tickCount=4)
    return alt.X("seconds:Q", title="simulated seconds", scale=scale, axis=axis)


def spaced_trials(last: int, count: int) -> list[int]:
    """Choose at most `count` of the trials from 1 to `last`, evenly spaced on a logarithmic axis.

    If there are no more than `count`, all are chosen.
    """
    if last <= count:
        return list(range(1, last + 1))
    rounded = np.rint(np.geomspace(1, last, count))  # the first few may be the same trial
    return [int(trial) for trial in np.unique(rounded)]


def measure_axis(measure: str, numbers: Iterable[float], *, top: float | None = None) -> alt.Y:
    """Make the vertical axis of a measure, with a range that shows all given numbers.

    The axis is logarithmic if the largest number is more than `MAX_RATIO_OF_LINEAR_AXIS` times the
    smallest positive one, unless the measure is in `LINEAR` or a number is negative.

    Args:
        measure: Name of the measure.
        numbers: The numbers, at least one of which is finite.
        top: Upper end of the axis, if lower than the largest number.
    """
    finite = np.array([number for number in numbers if math.isfinite(number)])
    low = float(finite.min())
    high = float(finite.max())
    if measure in ("score", PAPER_SCORE):
        low = min(low, 0.0)  # the best score, which should always be in sight
    if top is not None:
        high = min(high, top)

    lowest_positive = float(finite[finite > 0].min(initial=math.inf))
    spans_decades = high > MAX_RATIO_OF_LINEAR_AXIS * lowest_positive
    if measure in LINEAR or low < 0 or not spans_decades:
        margin = 0.04 * (high - low) or 0.5  # where all numbers are the same
        scale = alt.Scale(domain=[low - margin, high + margin], nice=False, zero=False)
        return alt.Y("mean:Q", scale=scale, axis=alt.Axis(title=title_of(measure), tickCount=5))

    if low > 0:
        ends = [low / 1.1, high * 1.1]
        scale = alt.Scale(type="log", domain=ends, nice=False, clamp=True)
        ticks = _logarithmic_ticks(*ends)
    else:
        # Zero has no logarithm: the axis is linear up to a small number, and logarithmic above.
        linear_up_to = max(lowest_positive, high / 1e6)
        ends = [0, high * 1.1]
        scale = alt.Scale(type="symlog", constant=linear_up_to, domain=ends, nice=False, clamp=True)
        ticks = [0.0, *_logarithmic_ticks(linear_up_to, high * 1.1)]
    axis = alt.Axis(title=title_of(measure), values=ticks, format="~r")
    return alt.Y("mean:Q", scale=scale, axis=axis)


Transform = Callable[[FloatArray], FloatArray]


def unit_of(scale: Mapping[str, Any]) -> tuple[Transform, Transform]:
    """Make functions from numbers to their places along an axis, from 0 to 1, and back.

    Args:
        scale: Scale of the axis in Vega-Lite: linear, logarithmic or symlog.

    Returns:
        `to_unit`, which moves numbers beyond the axis to its ends, and `from_unit`, its inverse.
    """
    # For each type of scale: the function after which the axis is linear, and its inverse.
    transforms: dict[str, tuple[Any, Any]] = {
        "linear": (np.asarray, np.asarray),
        "log": (np.log, np.exp),
        "symlog": (
            lambda number: np.log1p(number / scale["constant"]),
            lambda transformed: np.expm1(transformed) * scale["constant"],
        ),
    }
    transform, inverse = transforms[scale.get("type", "linear")]
    # The ends of the axis, where it is linear.
    linear_low, linear_high = transform(np.array(scale["domain"], dtype=np.float64))

    def to_unit(values: FloatArray) -> FloatArray:
        """Turn numbers into places from 0, the lower end, to 1, the upper end."""
        clipped = np.clip(values, *scale["domain"])
        return np.asarray((transform(clipped) - linear_low) / (linear_high - linear_low))

    def from_unit(places: FloatArray) -> FloatArray:
        """Turn places from 0 to 1 back into numbers."""
        return np.asarray(inverse(linear_low + places * (linear_high - linear_low)))

    return to_unit, from_unit


def spread(places: FloatArray, *, gap: float, end: float) -> FloatArray:
    """Move places so that they are at least `gap` apart and none is above `end`.

    The order of the places does not change. Places that are far enough from the others do not move.
    """
    moved = places.astype(np.float64)
    order = np.argsort(places, kind="stable")
    for before, after in itertools.pairwise(order):  # upwards, from the lowest place
        moved[after] = max(moved[after], moved[before] + gap)

    # Places that are now above the end move back to it, and push the places below them down.
    limit = end
    for index in order[::-1]:
        moved[index] = min(moved[index], limit)
        limit = moved[index] - gap
    return moved


def _logarithmic_ticks(low: float, high: float) -> Sequence[float]:
    """Choose at most six ticks of a logarithmic axis from `low` to `high`.

    They are powers of ten, or 1, 2 and 5 times these if there are fewer than three such powers.
    """
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    powers = [10.0**exponent for exponent in exponents]
    ticks = [power for power in powers if low <= power <= high]
    if len(ticks) < 3:
        multiples = [factor * power for power, factor in itertools.product(powers, (1, 2, 5))]
        ticks = [multiple for multiple in multiples if low <= multiple <= high]

    step = math.ceil(len(ticks) / 6)  # of more than six, only every second or third
    return ticks[::step]
