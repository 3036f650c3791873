"""Every measure of the leaderboard agrees on who is better, and no interval is impossible."""

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


def board(*benchmarks: FloatArray, best: float = 0.0) -> pd.DataFrame:
    """The leaderboard of losses, (A, S, T, M), one array a benchmark; `best` is the best known."""
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
            losses = np.where(rng.random(shape) < 0.7, 1e-9, 1.0) * rng.random(shape)
        benchmarks.append(losses)
    return benchmarks


@settings(max_examples=8)
@given(experiments(), st.floats(-0.5, 0.5))
def test_means_stay_within_possible_values(losses, best):
    table = board(*losses, best=best)
    for measure in MEASURES:
        assert table[measure].dropna().between(LOWEST[measure], HIGHEST[measure] + 1e-12).all()


@pytest.mark.parametrize("suffix", ["", "_tasks"])
@settings(max_examples=8)
@given(losses=experiments(), best=st.floats(-0.5, 0.5))
def test_intervals_stay_within_possible_values(losses, best, suffix):
    table = board(*losses, best=best)
    for measure in MEASURES:
        intervals = table[[measure, f"{measure}_low{suffix}", f"{measure}_high{suffix}"]]
        intervals = intervals.set_axis(["mean", "low", "high"], axis="columns")
        assert (intervals["low"].isna() == intervals["high"].isna()).all()

        defined = intervals.dropna(subset=["low"])
        assert (defined["low"] >= LOWEST[measure]).all()
        assert (defined["high"] <= HIGHEST[measure] + 1e-12).all()
        assert (defined["low"] <= defined["mean"] + 1e-9).all()
        assert (defined["mean"] <= defined["high"] + 1e-9).all()


@settings(max_examples=8)
@given(experiments())
def test_intervals_need_five_seeds(losses):
    table = board(*losses)
    seeds = losses[0].shape[1]
    if seeds < MIN_SAMPLES_OF_INTERVAL:
        for measure in MEASURES:
            assert table[[f"{measure}_low", f"{measure}_high"]].isna().all(axis=None)
    else:
        assert table["rank_low"].notna().all()  # other measures may be undefined


@settings(max_examples=8)
@given(experiments(), st.permutations(METHODS))
def test_dominating_method_is_better_everywhere(losses, order):
    better, worse, _ = order
    row_of_better = METHODS.index(better)
    row_of_worse = METHODS.index(worse)
    for array in losses:
        array[row_of_better] = np.minimum(array[row_of_better], array[row_of_worse])

    table = board(*losses).set_index(["benchmark", "method"])

    for measure in MEASURES:
        means = table[measure].unstack("method")
        gain = (means[worse] - means[better]).dropna()
        assert (gain >= -1e-9).all(), measure


@pytest.fixture(name="losses_near_best")
def near_the_best():
    """Random search ends within 1e-4 of the best on one task, and far from it on three."""
    losses = np.random.default_rng(0).uniform(0.5, 1, (3, 6, 4, 8))  # (A, S, T, M)
    random_search, bo, cts = losses
    bo[:, :, -1] = 0.05
    cts += 0.2
    random_search[:, 0, -1] = 1e-4
    bo[:, 0, -1] = 2e-2
    cts[:, 0, -1] = 0.0
    return losses


def test_lucky_random_search_reverses_nothing(losses_near_best):
    """On one task all losses are tiny, and the score of the paper divides by random search's.

    There it puts bo, which is better on the three other tasks, far behind.
    """
    score_of_paper = normalised_scores(losses_near_best, METHODS).over_tasks(trial=8).mean
    # Lower is better in all measures here.
    assert score_of_paper[METHODS.index("bo")] > score_of_paper[METHODS.index("random-search")]

    means = board(losses_near_best).set_index(["benchmark", "method"]).loc["b0@1"]

    for measure in MEASURES:
        assert means.loc["bo", measure] < means.loc["random-search", measure]


def test_score_computed_by_hand():
    """By hand: random search's losses are 1, 5, 3 and 9, 2, 6, of median 4; the best is 0."""
    losses = np.full((3, 2, 1, 3), 8.0)
    losses[0, :, 0] = [[1, 5, 3], [9, 2, 6]]
    losses[1, :, 0, -1] = [0, 3]
    scores = board(losses).set_index(["benchmark", "method"])["score"]["b0@1"]
    assert scores.to_dict() == {"random-search": (25 + 50) / 2, "bo": (0 + 75) / 2, "cts": 100}


def test_solved_task_has_no_score():
    losses = np.zeros((3, 5, 2, 4))  # (A, S, T, M), of which task 0 is solved at once
    losses[:, :, 1] = np.random.default_rng(2).random((3, 5, 4))
    both_tasks = board(losses)
    only_other_task = board(losses[:, :, 1:])
    pd.testing.assert_series_equal(both_tasks["score"], only_other_task["score"])
