"""Draws retrain.png: `python docs/images/retrain.py FOLDER`, about an hour on two cores.

Every method that needs neither networks nor training data runs on the suite `wide`, which holds the
ten benchmarks of the paper and the retraining benchmarks. The folder keeps the results: given
again, it is drawn from them.
"""

import sys
from pathlib import Path

import altair as alt
import pandas as pd

import hpobench_ordered as hbo
from hpobench_ordered import plotting
from hpobench_ordered.registry import benchmark_spec

DRAWN = (
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
SEEDS = {"othpo": 5, "retrain": 5, "wide": 3}
TRIALS = (1, 5, 10, 25)
TITLES = {"othpo": "The ten benchmarks of the paper", "retrain": "Retraining on real streams"}


def run_suite(suite: str, methods: tuple[str, ...]) -> hbo.Results:
    """Run methods on the benchmarks of a suite that can be used at once."""
    benchmarks = [name for name in hbo.suite(suite) if benchmark_spec(name).option().is_ready]
    folder = Path(sys.argv[1])
    seeds = range(SEEDS[suite])
    return hbo.run(benchmarks=benchmarks, methods=methods, seeds=seeds, workers=2, folder=folder)


if __name__ == "__main__":
    for name in ("othpo", "retrain", "wide"):
        result = run_suite(name, METHODS)
        ranks = {}
        for trial in TRIALS:
            board = result.leaderboard(trial).query("benchmark == 'all'")
            ranks[trial] = board.set_index("method")["rank"]
        print(name, pd.DataFrame(ranks).sort_values(25).round(2).to_string(), sep="\n")
    charts = []
    for name, title in TITLES.items():
        chart = run_suite(name, DRAWN).plot.curves("rank", benchmark="all", size=(360, 300))
        charts.append(chart.properties(title=title))
    config = charts[0].config  # that of the two of them together
    for chart in charts:
        chart.config = alt.Undefined
    plotting.save(alt.hconcat(*charts, config=config), Path(__file__).with_name("retrain.png"))
