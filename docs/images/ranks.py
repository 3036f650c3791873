"""Draws ranks.png, the figure of the README: `python docs/images/ranks.py FOLDER`, a few minutes.

The folder keeps the results: given again, it is drawn from them.
"""

import sys
from pathlib import Path

import hpobench_ordered as hbo
from hpobench_ordered import plotting

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
    result = hbo.run(
        benchmarks=hbo.suite("othpo"),
        methods=METHODS,
        seeds=range(5),
        workers=2,
        folder=Path(sys.argv[1]),
    )
    chart = result.plot.curves("rank", benchmark="all", size=(520, 300))
    title = "Mean rank of eight methods on the suite othpo"
    plotting.save(chart.properties(title=title), Path(__file__).with_name("ranks.png"))
