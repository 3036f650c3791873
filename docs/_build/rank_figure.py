"""The figure of the leaderboard: mean ranks over trials, a few methods named and the rest grey."""

from collections.abc import Mapping, Sequence

import altair as alt
import pandas as pd

from hpobench_ordered.analysis.curves import curves
from hpobench_ordered.analysis.leaderboard import ALL
from hpobench_ordered.analysis.scores import RANDOM_SEARCH
from hpobench_ordered.analysis.scoring import BenchmarkScores
from hpobench_ordered.reporting.charts.axes import trial_axis
from hpobench_ordered.reporting.charts.saving import svg_of
from hpobench_ordered.reporting.charts.theme import (
    DARK_COLOURS,
    GREY,
    by_method,
    configured,
    panel_title,
    recoloured,
)

NAMED_METHODS = 8
"""Number of methods that are named: `bo`, random search, and the best of the others."""

ALWAYS_NAMED = ("bo", RANDOM_SEARCH)
"""Methods without transfer, which the others are compared with."""

PANEL_SIZE = (330, 300)
"""Width and height of the panel of a suite, in pixels."""


def draw_ranks(scores_of_suite: Mapping[str, Sequence[BenchmarkScores]]) -> tuple[str, str]:
    """Draw mean ranks over trials, a panel for each suite, as SVG for light and dark pages."""
    frame = rank_curves(scores_of_suite)
    named = choose_named_methods(frame)
    panels = []
    for suite in scores_of_suite:
        panels.append(draw_panel(frame[frame["suite"] == suite], suite, named))
    chart = configured(
        alt.hconcat(*panels, spacing=30).resolve_scale(y="shared"),
        title="Mean rank over trials, lower is better",
        description=f"Mean ranks of methods over trials on {' and '.join(scores_of_suite)}.",
    )
    light = svg_of(chart)
    return light, recoloured(light, DARK_COLOURS)


def rank_curves(scores_of_suite: Mapping[str, Sequence[BenchmarkScores]]) -> pd.DataFrame:
    """Mean ranks of all methods after every trial: columns suite, method, trial and mean."""
    frames = []
    for suite, scores in scores_of_suite.items():
        all_curves = curves(scores, measures=("rank",), tasks=False)
        overall = all_curves[all_curves["benchmark"] == ALL]
        text = overall.astype({"method": str})
        frames.append(text[["method", "trial", "mean"]].assign(suite=suite))
    return pd.concat(frames, ignore_index=True)


def choose_named_methods(frame: pd.DataFrame) -> list[str]:
    """Choose `NAMED_METHODS` by their rank after the last trial, averaged over the suites."""
    last = frame[frame["trial"] == frame["trial"].max()]
    ranks = last.groupby("method")["mean"].mean().sort_values(kind="stable")
    others = [method for method in ranks.index if method not in ALWAYS_NAMED]
    best = others[: NAMED_METHODS - len(ALWAYS_NAMED)]
    return [*best, *ALWAYS_NAMED]


def draw_panel(frame: pd.DataFrame, suite: str, named: Sequence[str]) -> alt.LayerChart:
    """Draw the curves of one suite, those of methods without a name thin and grey."""
    x = trial_axis(int(frame["trial"].max()))
    y = alt.Y("mean:Q", title="mean rank", scale=alt.Scale(zero=False))
    is_named = frame["method"].isin(named)
    looks = by_method(named, named)

    others = alt.Chart(frame[~is_named]).mark_line(color=GREY, strokeWidth=0.8, opacity=0.6)
    others = others.encode(x=x, y=y, detail="method:N")
    base = alt.Chart(frame[is_named]).encode(x=x, y=y, color=looks["color"])
    lines = base.mark_line(strokeWidth=2).encode(strokeDash=looks["strokeDash"])
    is_marked = alt.FieldOneOfPredicate(field="trial", oneOf=[1, 2, 5, 10, 25])
    markers = base.transform_filter(is_marked).mark_point(filled=True, size=40, opacity=1)
    markers = markers.encode(shape=looks["shape"])
    width, height = PANEL_SIZE
    panel = alt.layer(others, lines, markers).properties(width=width, height=height)
    return panel.properties(title=panel_title(suite))
