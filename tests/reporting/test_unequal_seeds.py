"""Results in which methods have unequal numbers of seeds, from scores to the report.

There are four methods on three benchmarks. All have ten seeds, of which `cts` loses some: it is the
best method, and random search meets the worst losses. So `cts` is not what others are scaled by.
"""

import numpy as np
import pandas as pd
import pytest
from reporting_support import made_up_trials

from hpobench_ordered.analysis.leaderboard import leaderboard
from hpobench_ordered.analysis.scoring import BenchmarkScores, runs_of_trials, score_benchmarks
from hpobench_ordered.analysis.verdict import verdicts
from hpobench_ordered.reporting.tables import experiment_table, tabulate_pairs
from hpobench_ordered.reporting.write import ReportInput, write_report

METHODS = ("random-search", "bo", "rgpe", "cts")
BENCHMARKS = ("a@1", "b@1", "c@1")
FEW = "cts"

pytestmark = pytest.mark.filterwarnings("error")


def make_trials(*, seeds_of_few: int) -> pd.DataFrame:
    """Trials of all methods, of which `FEW` has the first seeds of ten alone."""
    frames = [
        made_up_trials(name, methods=METHODS, seeds=10, entropy=number)
        for number, name in enumerate(BENCHMARKS)
    ]
    trials = pd.concat(frames, ignore_index=True)
    return trials[(trials["method"] != FEW) | (trials["seed"] < seeds_of_few)]


def make_scores(*, seeds_of_few: int) -> list[BenchmarkScores]:
    """Compute the scores of the trials that `make_trials` returns."""
    scores, unscored = score_benchmarks(make_trials(seeds_of_few=seeds_of_few))
    assert unscored == []
    return scores


def make_board(*, seeds_of_few: int) -> pd.DataFrame:
    """The leaderboard of these trials, by benchmark and method."""
    board = leaderboard(make_scores(seeds_of_few=seeds_of_few))
    return board.set_index(["benchmark", "method"]).sort_index()


@pytest.mark.parametrize("seeds_of_few", [1, 3])
def test_fewer_seeds_change_no_other_score(seeds_of_few):
    """Means and intervals of other methods are the same; ranks are not, as they compare."""
    columns = []
    for measure in ("score", "regret", "regret_over_trials"):
        columns += [measure, f"{measure}_low", f"{measure}_high"]
    others = [name for name in METHODS if name != FEW]

    complete = make_board(seeds_of_few=10).loc[pd.IndexSlice[:, others], columns]
    unequal = make_board(seeds_of_few=seeds_of_few).loc[pd.IndexSlice[:, others], columns]

    pd.testing.assert_frame_equal(unequal, complete, check_exact=True)


@pytest.mark.parametrize("seeds_of_few", [1, 3])
def test_few_seeds_have_no_interval(seeds_of_few):
    """A method with fewer than five seeds has no interval; others have one of some width."""
    board = make_board(seeds_of_few=seeds_of_few)
    for measure in ("score", "regret", "rank"):
        widths = board[f"{measure}_high"] - board[f"{measure}_low"]
        is_few = widths.index.get_level_values("method") == FEW
        assert widths[is_few].isna().all()
        assert (widths[~is_few] > 0).all()


@pytest.mark.parametrize("seeds_of_few", [1, 3])
def test_rank_against_few_seeds_has_no_interval(seeds_of_few):
    """The ranks of two methods rest on the seeds of both, so that ten of one are not enough."""
    trials = make_trials(seeds_of_few=seeds_of_few)
    two_methods = trials[trials["method"].isin(["random-search", FEW])]
    scores, _ = score_benchmarks(two_methods)

    board = leaderboard(scores).set_index("method")

    assert board["rank"].notna().all()
    assert board[["rank_low", "rank_high"]].isna().all(axis=None)
    assert board.loc["random-search", ["score_low", "score_high"]].notna().all(axis=None)


@pytest.mark.parametrize("seeds_of_few", [1, 3])
def test_verdicts_name_all_methods(seeds_of_few):
    *_, last = verdicts(make_scores(seeds_of_few=seeds_of_few))
    assert last.leaders == (FEW,)
    assert last.on_these is not None
    named = last.on_these.better_than + last.on_these.not_told_apart
    assert set(named) == set(METHODS) - {FEW}


def test_single_seed_on_one_task_decides_nothing():
    """One run of a method is far better than all others, but nothing tells how much it varies.

    There are two methods, and ten seeds of the other one.
    """
    trials = make_trials(seeds_of_few=1)
    is_one_task = (trials["benchmark"] == "a@1") & (trials["task"] == 1)
    two_methods = trials[is_one_task & trials["method"].isin(["random-search", FEW])].copy()
    two_methods.loc[two_methods["method"] == FEW, "loss"] -= 0.4
    scores, _ = score_benchmarks(two_methods)

    *_, last = verdicts(scores)

    assert last.leaders == (FEW,)
    assert last.on_these is None
    assert np.isnan(last.interval).all()


def test_report_is_written(tmp_path):
    trials = make_trials(seeds_of_few=3)

    report = write_report(ReportInput(trials), tmp_path)

    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert report.unscored == ()
    assert "3 to 10 seeds" in summary
    assert "leads" in summary
    assert len(tabulate_pairs(report.benchmarks)) == 4 * 3


def test_experiment_lists_seeds_of_methods():
    """Methods of the same seeds share a row."""
    runs = runs_of_trials(make_trials(seeds_of_few=3))
    rows = [row[2:] for row in experiment_table(runs).rows]
    assert rows == [("bo, random-search, rgpe", "0 to 9"), ("cts", "0 to 2")]
