"""A failed evaluation is the worst, in every measure, table and page."""

import math

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from reporting_support import made_up_trials

import hpobench_ordered as hbo
from hpobench_ordered.analysis.leaderboard import leaderboard
from hpobench_ordered.analysis.scoring import score_benchmarks
from hpobench_ordered.cli import app
from hpobench_ordered.core.benchmark import Definition, TaskDefinition
from hpobench_ordered.core.objective import Objective

TRIALS = 6
MEASURES = ("rank", "score", "regret", "regret_over_trials", "simple_regret")


def make_worse(trials: pd.DataFrame, share: float, seed: int) -> pd.DataFrame:
    """Copy the trials of bo as those of another method, of which a share failed."""
    worse = trials[trials["method"] == "bo"].assign(method="worse")
    has_failed = np.random.default_rng(seed).random(len(worse)) < share
    worse.loc[has_failed, ["value", "loss", "regret"]] = [math.nan, math.inf, math.inf]
    return worse


@given(share=st.floats(0, 1), seed=st.integers(0, 50), seeds=st.integers(1, 6))
def test_method_that_fails_more_is_never_better(share, seed, seeds):
    """It suggests what bo suggests, after each trial, in each measure."""
    trials = made_up_trials(
        "x@1", methods=["random-search", "bo"], seeds=seeds, tasks=3, trials=TRIALS
    )
    together = pd.concat([trials, make_worse(trials, share, seed)], ignore_index=True)

    (scores,), _ = score_benchmarks(together)

    bo, worse = scores.place("bo"), scores.place("worse")
    for measure in MEASURES:
        means = scores.measures[measure].mean
        assert np.all(means[worse] >= means[bo] - 1e-12) or np.isnan(means).all()


class FailingSurrogate:
    """A bowl, of which the upper share of x fails."""

    def __init__(self, share: float, failure: float) -> None:
        self.share = share
        self.failure = failure

    def predict(self, values, task):
        bowl = (values[:, 0] - 0.3) ** 2 + (values[:, 1] - 0.1 * task) ** 2
        return np.where(values[:, 0] > 1 - self.share, self.failure, bowl)

    def predict_one(self, row, task):
        return float(self.predict(row[None], task)[0])


def make_benchmark(share: float, failure: float) -> hbo.Benchmark:
    """A benchmark of two tasks on which a share of the space fails; its best value is 0."""
    space = hbo.SearchSpace([hbo.Parameter.number(name, 0, 1) for name in ("x", "y")])
    definition = Definition(
        "failing",
        1,
        "Fails in a part of the space.",
        space,
        Objective("error", "", hbo.Direction.MINIMIZE),
        tuple(TaskDefinition(name, {}) for name in "ab"),
        hbo.Provenance("", "", ""),
    )
    return hbo.Benchmark.build(
        definition,
        surrogate="bowl",
        model=FailingSurrogate(share, failure),
        best_values=[0.0, 0.0],
        model_version=f"{share} {failure}",
    )


@pytest.mark.parametrize("failure", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("share", [1 / 3, 1.1], ids=["third", "all"])
@pytest.mark.parametrize("methods", [["bo"], ["random-search", "bo"]], ids=["one", "two"])
def test_failures_go_through_all_outputs(tmp_path, share, failure, methods):
    """Tables, pages and exports are made; the numbers of failed evaluations are theirs."""
    results = hbo.run(
        benchmarks=[make_benchmark(share, failure)],
        methods=methods,
        seeds=range(3),
        protocol=hbo.Ordered(trials=6),
        folder=tmp_path / "results",
        workers=0,
    )

    board = results.leaderboard()
    hbo.report(results, tmp_path / "report")
    words = ["export", str(results.store.folder), "--output", str(tmp_path / "trials.csv")]
    export = CliRunner().invoke(app, words)

    trials = results.frame()
    failed = trials.groupby("method")["loss"].apply(lambda losses: int(np.isinf(losses).sum()))
    rows = board[board["benchmark"] != "all"].drop_duplicates("method").set_index("method")
    assert rows["failed_evaluations"].to_dict() == failed.to_dict()
    assert not trials["loss"].isna().any()
    assert export.exit_code == 0
    if share > 1:  # all are equally bad
        assert rows["rank"].nunique() == 1


def test_leaderboard_of_few_seeds_has_no_interval_of_no_width():
    """The others never vary against each other, so that nothing tells how much it varies."""
    trials = made_up_trials(
        "x@1", methods=["random-search", "bo", "tpe"], seeds=6, tasks=1, trials=2
    )
    order = trials["method"].map({"random-search": 3.0, "bo": 1.0, "tpe": 2.0})
    trials["loss"] = trials["value"] = trials["regret"] = order
    is_few = (trials["method"] == "tpe") & (trials["seed"] >= 4)

    scores, _ = score_benchmarks(trials[~is_few])
    board = leaderboard(scores).set_index("method")

    assert board.loc["tpe", ["rank_low", "rank_high"]].isna().all()
