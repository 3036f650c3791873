"""Every measure of the leaderboard agrees on who is better, and no interval is impossible."""

from typing import Any

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
HIGHEST = {"rank": len(METHODS), "score": 100, "regret": 1, "regret_over_trials": 1}


def board(*benchmarks: FloatArray, best: float = 0.0) -> pd.DataFrame:
    """The leaderboard of losses, shape (A, S, T, M), one array a benchmark."""
    frames = []
    for place, losses in enumerate(benchmarks):
        levels = [METHODS, *map(range, losses.shape[1:3]), range(1, losses.shape[3] + 1)]
        index = pd.MultiIndex.from_product(levels, names=["method", "seed", "task", "trial"])
        frame = pd.DataFrame({"loss": losses.ravel()}, index=index).reset_index()
        frames.append(frame.assign(benchmark=f"b{place}@1"))
    frame = pd.concat(frames)
    names: dict[str, Any] = {"surrogate": "forest", "protocol": "leave-one-out()", "fallbacks": 0}
    frame = frame.assign(**names, task_name=frame["task"].map(str), value=frame["loss"])
    scores, _ = score_benchmarks(frame.assign(regret=frame["loss"] - best))
    return leaderboard(scores)


@st.composite
def experiments(draw: st.DrawFn) -> list[FloatArray]:
    """Losses on one to three benchmarks, with ties, outliers and tasks that are solved at once."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    seeds, trials = draw(st.integers(1, 7)), draw(st.integers(1, 3))
    found = []
    for _ in range(draw(st.integers(1, 3))):
        shape = (len(METHODS), seeds, draw(st.integers(1, 3)), trials)
        kind = draw(st.sampled_from(["ties", "outliers", "solved"]))
        if kind == "ties":
            found.append(rng.integers(0, 3, shape).astype(float))
        elif kind == "outliers":
            found.append(np.exp(4 * rng.standard_normal(shape)))
        else:
            found.append(np.where(rng.random(shape) < 0.7, 1e-9, 1.0) * rng.random(shape))
    return found


@settings(max_examples=8)
@given(experiments(), st.floats(-0.5, 0.5))
def test_intervals_stay_within_possible_values(losses, best):
    table = board(*losses, best=best)
    for measure in MEASURES:
        low, high = 1.0 if measure == "rank" else 0.0, HIGHEST[measure] + 1e-12
        mean = table[measure]
        assert mean.dropna().between(low, high).all()
        for over in ("", "_tasks"):
            lower, upper = (table[f"{measure}_{end}{over}"] for end in ("low", "high"))
            assert (lower.isna() == upper.isna()).all()
            known = lower.notna()
            assert (lower[known] >= low).all() and (upper[known] <= high).all()
            assert (lower[known] <= mean[known] + 1e-9).all()
            assert (mean[known] <= upper[known] + 1e-9).all()
        if losses[0].shape[1] < MIN_SAMPLES_OF_INTERVAL:
            assert table[[f"{measure}_low", f"{measure}_high"]].isna().all(axis=None)
        elif measure == "rank":
            assert table["rank_low"].notna().all()


@settings(max_examples=8)
@given(experiments(), st.permutations(METHODS))
def test_dominating_method_is_better_everywhere(losses, order):
    better, worse = map(METHODS.index, order[:2])
    for one in losses:
        one[better] = np.minimum(one[better], one[worse])
    table = board(*losses).set_index(["benchmark", "method"])
    for measure in MEASURES:
        means = table[measure].unstack("method")
        gain = (means[order[1]] - means[order[0]]).dropna()
        assert (gain >= -1e-9).all(), measure


@pytest.fixture(name="near")
def near_the_best():
    """Random search ends within 1e-4 of the best on one task, and far from it on three."""
    losses = np.random.default_rng(0).uniform(0.5, 1, (3, 6, 4, 8))
    losses[1, :, :, -1] = 0.05
    losses[2] += 0.2
    losses[0, :, 0, -1], losses[1, :, 0, -1] = 1e-4, 2e-2
    losses[2, :, 0, -1] = 0.0
    return losses


def test_lucky_random_search_reverses_nothing(near):
    paper = normalised_scores(near, METHODS).over_tasks(trial=8).mean
    assert paper[1] > paper[0]
    table = board(near).set_index(["benchmark", "method"])
    for measure in MEASURES:
        bo, random_search = (table.loc[("b0@1", m), measure] for m in ("bo", "random-search"))
        assert bo < random_search


def test_score_computed_by_hand():
    """By hand: random search's losses are 1, 5, 3 and 9, 2, 6, of median 4; the best is 0."""
    losses = np.full((3, 2, 1, 3), 8.0)
    losses[0, :, 0] = [[1, 5, 3], [9, 2, 6]]
    losses[1, :, 0, -1] = [0, 3]
    scores = board(losses).set_index(["benchmark", "method"])["score"]["b0@1"]
    assert scores.to_dict() == {"random-search": (25 + 50) / 2, "bo": (0 + 75) / 2, "cts": 100}


def test_solved_task_has_no_score():
    losses = np.zeros((3, 5, 2, 4))
    losses[:, :, 1] = np.random.default_rng(2).random((3, 5, 4))
    alone = board(losses[:, :, 1:])
    pd.testing.assert_series_equal(board(losses)["score"], alone["score"])
