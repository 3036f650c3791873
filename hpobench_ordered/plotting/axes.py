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
    """The title of a measure's axis."""
    return TITLES.get(measure, measure)


def trial_axis(last: int) -> alt.X:
    """Trials from 1 to the last, on a logarithmic axis if there are more than two."""
    candidates = TICKS_OF_MANY_TRIALS if last >= 10 else (1, 2, 3, 5)
    # None so near the last trial that their labels would overlap.
    ticks = [trial for trial in candidates if trial < 0.75 * last] + [last]
    scale = alt.Scale(type="log" if last > 2 else "linear", domain=[1, max(last, 2)], nice=False)
    return alt.X("trial:Q", title="trial", scale=scale, axis=alt.Axis(values=ticks, format="d"))


def spaced_trials(last: int, count: int) -> list[int]:
    """At most `count` trials, evenly spaced along the axis; all of them if there are no more."""
    if last <= count:
        return list(range(1, last + 1))
    return [int(place) for place in np.unique(np.rint(np.geomspace(1, last, count)))]


def measure_axis(measure: str, numbers: Iterable[float], *, top: float | None = None) -> alt.Y:
    """The vertical axis of the column `mean`, on which all of some numbers can be seen."""
    finite = np.array([number for number in numbers if math.isfinite(number)])
    low = float(finite.min())
    high = float(finite.max())
    if measure in ("score", PAPER_SCORE):
        low = min(low, 0.0)
    if top is not None:
        high = min(high, top)
    lowest_positive = float(finite[finite > 0].min(initial=math.inf))

    spans_decades = high > MAX_RATIO_OF_LINEAR_AXIS * lowest_positive
    if measure in LINEAR or low < 0 or not spans_decades:
        margin = 0.04 * (high - low) or 0.5
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
    """How to get from numbers to their places along an axis, from 0 to 1, and back.

    Args:
        scale: Scale of the axis in Vega-Lite: linear, logarithmic or symlog.

    Returns:
        `to_unit` and `from_unit`, its inverse.
    """
    transforms: dict[str, tuple[Any, Any]] = {
        "linear": (np.asarray, np.asarray),
        "log": (np.log, np.exp),
        "symlog": (
            lambda x: np.log1p(x / scale["constant"]),
            lambda y: np.expm1(y) * scale["constant"],
        ),
    }
    transform, inverse = transforms[scale.get("type", "linear")]
    low, high = transform(np.array(scale["domain"], dtype=np.float64))

    def to_unit(values: FloatArray) -> FloatArray:
        clipped = np.clip(values, *scale["domain"])
        return np.asarray((transform(clipped) - low) / (high - low))

    def from_unit(places: FloatArray) -> FloatArray:
        return np.asarray(inverse(low + places * (high - low)))

    return to_unit, from_unit


def spread(places: FloatArray, *, gap: float, end: float) -> FloatArray:
    """Move places so that they are at least `gap` apart and none is above `end`, in their order."""
    moved = places.astype(np.float64)
    order = np.argsort(places, kind="stable")
    for before, after in itertools.pairwise(order):
        moved[after] = max(moved[after], moved[before] + gap)

    # Those that were moved beyond the end push the others back.
    limit = end
    for index in order[::-1]:
        moved[index] = min(moved[index], limit)
        limit = moved[index] - gap
    return moved


def _logarithmic_ticks(low: float, high: float) -> Sequence[float]:
    """At most seven ticks of a logarithmic axis: powers of ten, or 1, 2, 5 times these."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1,), (1, 2, 5)):
        numbers = [
            factor * 10.0**exponent for exponent, factor in itertools.product(exponents, factors)
        ]
        ticks = [number for number in numbers if low <= number <= high]
        if len(ticks) >= 3:
            break
    step = math.ceil(len(ticks) / 6)
    return ticks[::step]
