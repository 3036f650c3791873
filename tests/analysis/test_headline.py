"""What every measure of the leaderboard has in common: who is better, and possible values."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.bootstrap import MIN_SAMPLES_OF_INTERVAL
from hpobench_ordered.analysis.leaderboard import MEASURES, leaderboard
from hpobench_ordered.analysis.scores import normalised_scores
from hpobench_ordered.analysis.scoring import score_benchmarks

METHODS = ("random-search", "bo", "cts")
LOWEST = {"rank": 1, "score": 0, "regret": 0, "regret_over_trials": 0}
HIGHEST = {"rank": len(METHODS), "score": 100, "regret": 1, "regret_over_trials": 1}
"""Possible values of each measure."""
ROUNDING = 1e-9


def make_leaderboard(*benchmarks: FloatArray, best: float = 0.0) -> pd.DataFrame:
    """Make the leaderboard of METHODS from losses (methods, seeds, tasks, trials).

    There is one array for each benchmark; `best` is the best known loss on all tasks.
    """
    frames = []
    for number, losses in enumerate(benchmarks):
        _, seeds, tasks, trials = losses.shape
        index = pd.MultiIndex.from_product(
            [METHODS, range(seeds), range(tasks), range(1, trials + 1)],
            names=["method", "seed", "task", "trial"],
        )
        frame = pd.DataFrame({"loss": losses.ravel()}, index=index).reset_index()
        frames.append(frame.assign(benchmark=f"b{number}@1"))

    trials = pd.concat(frames)
    trials = trials.assign(
        surrogate="forest",
        protocol="leave-one-out()",
        fallbacks=0,
        task_name=trials["task"].map(str),
        value=trials["loss"],
        regret=trials["loss"] - best,
    )
    scores, _ = score_benchmarks(trials)
    return leaderboard(scores)


@st.composite
def experiments(draw: st.DrawFn) -> list[FloatArray]:
    """Losses on one to three benchmarks, with ties, outliers and tasks that are solved at once."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    seeds = draw(st.integers(1, 7))
    trials = draw(st.integers(1, 3))

    benchmarks = []
    for _ in range(draw(st.integers(1, 3))):
        tasks = draw(st.integers(1, 3))
        shape = (len(METHODS), seeds, tasks, trials)
        kind = draw(st.sampled_from(["ties", "outliers", "solved"]))
        if kind == "ties":
            losses = rng.integers(0, 3, shape).astype(float)
        elif kind == "outliers":
            losses = np.exp(4 * rng.standard_normal(shape))
        else:
            size = np.where(rng.random(shape) < 0.7, 1e-9, 1.0)  # most losses are nearly 0
            losses = size * rng.random(shape)
        benchmarks.append(losses)
    return benchmarks


@settings(max_examples=8)
@given(experiments(), st.floats(-0.5, 0.5))
def test_means_stay_within_possible_values(losses, best):
    table = make_leaderboard(*losses, best=best)
    for measure in MEASURES:
        means = table[measure].dropna()
        highest = HIGHEST[measure] + ROUNDING
        assert means.between(LOWEST[measure], highest).all()


@pytest.mark.parametrize("suffix", ["", "_tasks"])
@settings(max_examples=8)
@given(losses=experiments(), best=st.floats(-0.5, 0.5))
def test_intervals_stay_within_possible_values(losses, best, suffix):
    """Intervals over seeds, and those over tasks, whose columns end in `_tasks`."""
    table = make_leaderboard(*losses, best=best)
    for measure in MEASURES:
        intervals = table[[measure, f"{measure}_low{suffix}", f"{measure}_high{suffix}"]]
        intervals = intervals.set_axis(["mean", "low", "high"], axis="columns")
        assert (intervals["low"].isna() == intervals["high"].isna()).all()

        defined = intervals.dropna(subset=["low"])
        assert (defined["low"] >= LOWEST[measure]).all()
        assert (defined["high"] <= HIGHEST[measure] + ROUNDING).all()
        assert (defined["low"] <= defined["mean"] + ROUNDING).all()
        assert (defined["mean"] <= defined["high"] + ROUNDING).all()


@settings(max_examples=8)
@given(experiments())
def test_intervals_need_five_seeds(losses):
    table = make_leaderboard(*losses)
    _, seeds, _, _ = losses[0].shape  # the same on all benchmarks
    if seeds < MIN_SAMPLES_OF_INTERVAL:
        for measure in MEASURES:
            assert table[[f"{measure}_low", f"{measure}_high"]].isna().all(axis=None)
    else:
        # Other measures may be undefined.
        assert table["rank_low"].notna().all()


@settings(max_examples=8)
@given(experiments(), st.permutations(METHODS))
def test_dominating_method_is_better_everywhere(losses, order):
    """Each loss of one method is lowered to that of another where it was higher."""
    better, worse, _ = order
    row_of_better = METHODS.index(better)
    row_of_worse = METHODS.index(worse)
    for losses_on_benchmark in losses:
        lower = np.minimum(losses_on_benchmark[row_of_better], losses_on_benchmark[row_of_worse])
        losses_on_benchmark[row_of_better] = lower

    table = make_leaderboard(*losses).set_index(["benchmark", "method"])

    for measure in MEASURES:
        means = table[measure].unstack("method")
        gain = (means[worse] - means[better]).dropna()
        assert (gain >= -ROUNDING).all(), measure


@pytest.fixture
def losses_near_best():
    """Losses (methods, seeds, tasks, trials) that end near the best, 0, on the first of four tasks.

    There random search ends at 1e-4, bo at 0.02 and cts at the best. On the three other tasks bo
    ends at 0.05, random search above 0.5, and cts above 0.7.
    """
    losses = np.random.default_rng(0).uniform(0.5, 1, (3, 6, 4, 8))
    random_search, bo, cts = losses  # parts of the array, each (seeds, tasks, trials)
    bo[:, :, -1] = 0.05
    cts += 0.2

    random_search[:, 0, -1] = 1e-4
    bo[:, 0, -1] = 0.02
    cts[:, 0, -1] = 0.0
    return losses


def test_lucky_random_search_reverses_nothing(losses_near_best):
    """On one task all losses are tiny, and the score of the paper divides by random search's.

    There it puts bo, which is better on the three other tasks, far behind.
    """
    scores_of_paper = normalised_scores(losses_near_best, METHODS).over_tasks(trial=8).mean
    score_of_paper = dict(zip(METHODS, scores_of_paper, strict=True))
    assert score_of_paper["bo"] > score_of_paper["random-search"]  # lower is better

    means = make_leaderboard(losses_near_best).set_index(["benchmark", "method"]).loc["b0@1"]

    for measure in MEASURES:  # lower is better in all of them
        assert means.loc["bo", measure] < means.loc["random-search", measure]


def test_score_computed_by_hand():
    """The score of a run is 100 (lowest loss - best) / (median - best), and at most 100.

    The median, here 4, is that of all losses of random search; the best known loss is 0. Scores are
    means over the two seeds.
    """
    losses = np.full((3, 2, 1, 3), 8.0)  # (methods, seeds, tasks, trials)
    random_search, bo, _ = losses
    random_search[:, 0] = [[1, 5, 3], [9, 2, 6]]
    bo[:, 0, -1] = [0, 3]

    scores = make_leaderboard(losses).set_index(["benchmark", "method"])["score"]["b0@1"]

    score_of_random_search = 100 * (1 / 4 + 2 / 4) / 2
    score_of_bo = 100 * (0 / 4 + 3 / 4) / 2
    assert scores["random-search"] == score_of_random_search
    assert scores["bo"] == score_of_bo
    # Its losses are 8, twice the median.
    assert scores["cts"] == 100


def test_solved_task_has_no_score():
    """On task 0 all losses are the best known one, 0; random search's median is no worse."""
    losses = np.zeros((3, 5, 2, 4))  # (methods, seeds, tasks, trials)
    losses[:, :, 1] = np.random.default_rng(2).random((3, 5, 4))

    both_tasks = make_leaderboard(losses)
    only_other_task = make_leaderboard(losses[:, :, 1:])

    pd.testing.assert_series_equal(both_tasks["score"], only_other_task["score"])
