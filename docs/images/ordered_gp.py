"""Draws ordered-gp.png, what the method learned on two streams: `python docs/images/ordered_gp.py`.

The method follows each stream of retraining, 25 trials a period. After its last suggestion of a
period the model says how alike the losses of two periods are, by how far they are apart (their
correlation, exp(-distance / l_t - h)), and by what number those of a period are multiplied beside
those of the period before. The test of the order, which the method itself makes only without
contexts, says whether it is seen in the best configurations of the earlier periods.
"""

from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config
from hpobench_ordered.methods.ordered_gp import MAX_P_VALUE, MIN_TESTED_TASKS, OrderedGP
from hpobench_ordered.reporting import charts

STREAMS = ("weather-xgboost", "flights-linear", "metro-traffic-linear")
APART = np.arange(1, 9)


def follow_stream(stream: str) -> pd.DataFrame:
    """Run the method on a stream; what its last model of each period learned, one row a period."""
    rows: list[dict[str, float]] = []

    class Watched(OrderedGP):
        def tell(self, config: Config, loss: float) -> None:
            super().tell(config, loss)
            if self.sources is not None and self.evaluation_count == self.budget:
                process = self._process
                assert process is not None
                g = process.observed.g  # number of length scales, which come first
                memory, novelty = np.exp(process.x[g + 1 : g + 3]).tolist()
                unit = self.sources.nearest_unit * float(np.exp(process.x[-1]))
                row = {"period": self.context["period"], "memory": memory}
                rows.append(row | {"novelty": novelty, "unit": unit, "p_value": self.test_order()})

        def test_order(self) -> float:
            """The p-value of the test of the order; NaN for few earlier periods."""
            if len(self.history) < MIN_TESTED_TASKS:
                return np.nan
            return self._test_order(self.history)

    spec = hbo.MethodSpec("watched", Watched, "ordered-gp", "this page", changed_spaces=True)
    hbo.run(benchmarks=[f"retrain-{stream}"], methods=[spec], seeds=[0], workers=0, progress=False)
    return pd.DataFrame(rows).assign(stream=stream)


def draw_drift(frame: pd.DataFrame) -> alt.LayerChart:
    """Draw the correlation of two periods' losses: median over periods, and their middle half."""
    rows = []
    for stream, periods in frame.groupby("stream", sort=False):
        for apart in APART:
            correlations = np.exp(-apart / periods["memory"] - periods["novelty"])
            low, middle, high = np.quantile(correlations, (0.25, 0.5, 0.75))
            row = {"stream": stream, "apart": apart, "low": low, "middle": middle, "high": high}
            rows.append(row)
    base = alt.Chart(pd.DataFrame(rows), title="What was learned of drift").encode(
        x=alt.X("apart:Q", title="periods apart"), color=alt.Color("stream:N", sort=STREAMS)
    )
    correlation = alt.Y("middle:Q", title="correlation of losses", scale=alt.Scale(domain=(0, 1)))
    return alt.layer(
        base.mark_area(opacity=0.2).encode(y="low:Q", y2="high:Q"),
        base.mark_line().encode(y=correlation),
    )


def draw_tests(frame: pd.DataFrame) -> alt.LayerChart:
    """Draw the p-value of the test of the order, and the level that it is compared with."""
    level = pd.DataFrame({"level": [MAX_P_VALUE]})
    p_values = (
        alt.Chart(frame.dropna(subset="p_value"), title="Is the order of periods seen?")
        .mark_line()
        .encode(
            x=alt.X("period:Q", title="period"),
            y=alt.Y("p_value:Q", title="p-value, low if it is").scale(domain=(0, 1)),
            color=alt.Color("stream:N", sort=STREAMS),
        )
    )
    return alt.layer(alt.Chart(level).mark_rule(strokeDash=[4, 4]).encode(y="level:Q"), p_values)


def draw_scales(frame: pd.DataFrame) -> alt.Chart:
    """Draw the scale of each period's losses, relative to the stream's median."""
    relative = frame.unit / frame.groupby("stream").unit.transform("median")
    return (
        alt.Chart(frame.assign(relative=relative), title="What was learned of scales")
        .mark_line(point=True)
        .encode(
            x=alt.X("period:Q", title="period"),
            y=alt.Y("relative:Q", title="scale of losses, 1 is typical").scale(type="log"),
            color=alt.Color("stream:N", sort=STREAMS),
        )
    )


if __name__ == "__main__":
    frame = pd.concat([follow_stream(stream) for stream in STREAMS], ignore_index=True)
    charts = [
        draw(frame).properties(width=260, height=220)
        for draw in (draw_drift, draw_tests, draw_scales)
    ]
    charts.save(alt.hconcat(*charts), Path(__file__).with_name("ordered-gp.png"))
