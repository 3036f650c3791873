"""Draws retrain.png from the reference results, and prints a table of ranks: a minute.

    python docs/images/retrain.py

The table is of the methods that need neither networks nor training data nor a model of each task,
on the benchmarks of the paper, on retraining, and on both with others (`wide`).
"""

from pathlib import Path

import altair as alt
import pandas as pd

import hpobench_ordered as hbo
from hpobench_ordered.analysis.leaderboard import ALL
from hpobench_ordered.generation._reference import QUICK
from hpobench_ordered.reporting import charts

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
IN_TABLE = (
    *DRAWN,
    "simple-ordered-shuffled",
    "transfer-gp-best-first",
    "gp-best-first",
    "gp-transfer-closest",
    "dre-ordered",
)
TRIALS = (1, 5, 10, 25)
TITLES = {"othpo": "The ten benchmarks of the paper", "retrain": "Retraining on real streams"}


def rank_methods(suite: str) -> pd.DataFrame:
    """Mean ranks on a suite among the quick methods: a row a method, a column a trial."""
    results = hbo.reference(suite, methods=QUICK)
    ranks = {}
    for trial in TRIALS:
        board = results.leaderboard(trial)
        means = board[board["benchmark"] == ALL]
        ranks[f"{suite}: {trial}"] = means.set_index("method")["rank"]
    return pd.DataFrame(ranks)


def print_ranks() -> None:
    """Print the table in Markdown, the best method after the last trial of `wide` first."""
    ranks = pd.concat([rank_methods(suite) for suite in (*TITLES, "wide")], axis=1)
    ranks = ranks.loc[list(IN_TABLE)].sort_values(ranks.columns[-1])
    print(f"among {len(QUICK)} methods")
    print(f"| method | {' | '.join(ranks.columns)} |")
    print("|---|" + "--:|" * len(ranks.columns))
    for method, row in ranks.iterrows():
        cells = [f"{rank:.1f}" for rank in row]
        print(f"| `{method}` | {' | '.join(cells)} |")


if __name__ == "__main__":
    print_ranks()

    charts = []
    for suite, title in TITLES.items():
        results = hbo.reference(suite, methods=DRAWN)
        chart = results.plot.curves("rank", benchmark="all", size=(360, 300))
        charts.append(chart.properties(title=title))
    config = charts[0].config  # that of the two of them together
    for chart in charts:
        chart.config = alt.Undefined
    charts.save(alt.hconcat(*charts, config=config), Path(__file__).with_name("retrain.png"))
