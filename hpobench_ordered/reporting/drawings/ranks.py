"""Mean ranks over trials, one panel a benchmark and one for all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered.analysis.bootstrap import Intervals
from hpobench_ordered.analysis.samples import Resampling
from hpobench_ordered.reporting.drawings.curves import (
    FEWEST_SAMPLES,
    Band,
    band_kinds,
    curve_frame,
    draw_methods,
    of_trials,
    shown_trials,
    trial_numbers,
)
from hpobench_ordered.reporting.drawings.drawing import Drawing, Kind, count, finish, listed
from hpobench_ordered.reporting.drawings.multiples import small_multiples
from hpobench_ordered.reporting.drawings.panels import WIDTH
from hpobench_ordered.reporting.drawings.scales import spanning, trials_scale
from hpobench_ordered.reporting.style import styles

if TYPE_CHECKING:
    import pandas as pd

PANEL_WIDTH = 480.0
"""Width of a drawing of a single panel."""


@dataclass(frozen=True, slots=True)
class RankCurves:
    """Mean ranks on a benchmark, or on several together.

    Attributes:
        title: Name of the benchmark, or of what they are.
        ranks: Mean ranks after every trial, shape (A, M); 1 is best.
    """

    title: str
    ranks: Intervals


def draw_ranks(
    panels: Sequence[RankCurves],
    methods: Sequence[str],
    *,
    about: str,
    resampling: Resampling = Resampling.TASKS,
) -> Drawing:
    """Draw mean ranks over trials.

    Args:
        panels: The panels; the first is larger where there are six or more.
        methods: Names of the methods, length A, the same in all panels.
        about: What the panels have in common, such as the name of a suite or a benchmark.
        resampling: What the bands are over.
    """
    shown = [shown_trials(panel.ranks.mean.shape[-1]) for panel in panels]
    curves = [of_trials(panel.ranks, s) for panel, s in zip(panels, shown, strict=True)]
    means = np.concatenate([curve.mean.ravel() for curve in curves])
    names = [panel.title for panel in panels]
    title, looks = f"mean rank over trials: {about}", styles(methods)
    scene, placed = small_multiples(
        names,
        [spanning(means, logarithmic=False, most=5)] * len(names),
        [trials_scale(int(places[-1]) + 1) for places in shown],
        title=title,
        y_name=f"mean rank of {len(methods)} methods",
        looks=looks,
        width=min(WIDTH, PANEL_WIDTH * len(names)),
        large_first=True,
    )
    bands = band_kinds([curve.samples for curve in curves], outlined=True)
    trials = list(map(trial_numbers, shown))
    draw_methods(scene, placed, curves, looks, methods, trials, bands=bands)
    return finish(
        scene,
        Kind.RANKS,
        about=about,
        title=title,
        caption=_caption(panels, resampling, bands),
        alt=f"Curves of the mean rank of {listed(methods)} over trials on {listed(names)}.",
        data=_table(names, methods, curves, shown),
    )


def _caption(panels: Sequence[RankCurves], resampling: Resampling, bands: Sequence[Band]) -> str:
    numbers = sorted({panel.ranks.samples for panel in panels})
    noun = resampling.value.removesuffix("s")
    samples = " to ".join(map(str, {numbers[0]: None, numbers[-1]: None}))
    counted = count(numbers[0], noun) if len(numbers) == 1 else f"{samples} {noun}s"
    drawn = "Thin lines" if bands[0] is Band.OUTLINE else "Bands"
    text = (
        "Mean ranks among the methods, 1 is best: each seed ranked by itself, then averaged over "
        f"seeds; every task counts the same. {drawn} are {panels[0].ranks.confidence:.0%} "
        f"intervals over {counted}"
    )
    if Band.NONE in bands:
        text += f"; panels of fewer than {FEWEST_SAMPLES} {noun}s have none"
    return f"{text}. The trials are on a logarithmic axis."


def _table(
    names: Sequence[str],
    methods: Sequence[str],
    curves: Sequence[Intervals],
    shown: Sequence[NDArray[np.intp]],
) -> "pd.DataFrame":
    import pandas as pd

    return pd.concat(
        [
            curve_frame(curve, methods, places + 1).assign(panel=name)
            for name, curve, places in zip(names, curves, shown, strict=True)
        ],
        ignore_index=True,
    )
