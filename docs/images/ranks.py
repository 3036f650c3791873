"""Draws ranks.png, the figure of the README, from the reference results.

python docs/images/ranks.py
"""

from pathlib import Path

import hpobench_ordered as hbo
from hpobench_ordered.reporting import charts

METHODS = (
    "ordered-gp",
    "random-search",
    "bo",
    "zero-shot",
    "cts",
    "simple-ordered-shuffled",
    "simple-ordered",
    "simple-previous",
)

if __name__ == "__main__":
    results = hbo.reference("othpo", methods=METHODS)
    chart = hbo.plots.curves(results, "rank", benchmark="all", size=(520, 300))
    title = "Mean rank of eight methods on the suite othpo"
    charts.save(chart.properties(title=title), Path(__file__).with_name("ranks.png"))
