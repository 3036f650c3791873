"""Draws retrain.png: `python docs/images/retrain.py FOLDER`, about two hours.

Every method that needs neither networks nor training data runs on the suite `wide`, which holds the
ten benchmarks of the paper and the retraining benchmarks. The folder keeps the results: given
again, it is drawn from them.
"""

import sys
from pathlib import Path

import altair as alt

import hpobench_ordered as hbo
from hpobench_ordered import plotting

DRAWN = (
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
METHODS = (
    *DRAWN,
    "best-first",
    "dre-ordered",
    "drop-unimportant",
    "gp-best-first",
    "gp-drop-unimportant",
    "gp-only-optimize-new",
    "gp-transfer-closest",
    "gp-transfer-subsample",
    "only-optimize-new",
    "simple-ordered-shuffled",
    "simple-previous-no-bo",
    "transfer-gp",
    "transfer-gp-best-first",
    "transfer-tpe",
)
SEEDS = range(5)
TITLES = {"othpo": "The ten benchmarks of the paper", "retrain": "Retraining on real streams"}

if __name__ == "__main__":
    charts = []
    for name, title in TITLES.items():
        result = hbo.run(
            benchmarks=hbo.suite(name),
            methods=METHODS,
            seeds=range(5),
            workers=2,
            folder=Path(sys.argv[1], name),
        )
        for trial in (1, 5, 10, 25):
            table = result.leaderboard(trial).query("benchmark == 'all'")
            print(name, trial, table[["method", "rank", "score"]].to_string(index=False), sep="\n")
        chart = result.plot.curves("rank", benchmark="all", size=(360, 300))
        charts.append(chart.properties(title=title))
    config = charts[0].config  # that of the two of them together
    for chart in charts:
        chart.config = alt.Undefined
    plotting.save(alt.hconcat(*charts, config=config), Path(__file__).with_name("retrain.png"))
