"""Draws retrain.png from the reference results: `python docs/images/retrain.py`, a minute."""

from pathlib import Path

import altair as alt

import hpobench_ordered as hbo
from hpobench_ordered.reporting import charts

METHODS = (
    "ordered-gp",
    "random-search",
    "bo",
    "tpe",
    "bounding-box",
    "zero-shot",
    "cts",
    "simple-ordered",
    "simple-previous",
    "transfer-tpe-best-first",
    "transfer-bo",
)
TITLES = {"othpo": "The ten benchmarks of the paper", "retrain": "Retraining on real streams"}


if __name__ == "__main__":
    panels = []
    for suite, title in TITLES.items():
        results = hbo.reference(suite, methods=METHODS)
        chart = hbo.plots.curves(results, "rank", benchmark="all", size=(360, 300))
        panels.append(chart.properties(title=title))
    config = panels[0].config  # that of the two of them together
    for chart in panels:
        chart.config = alt.Undefined
    charts.save(alt.hconcat(*panels, config=config), Path(__file__).with_name("retrain.png"))
