"""What every measure of the leaderboard has in common: who is better, and possible values."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.leaderboard import MEASURES, leaderboard
from hpobench_ordered.analysis.scores import normalised_scores
from hpobench_ordered.analysis.scoring import score_benchmarks

METHODS = ("random-search", "bo", "cts")
LOWEST = {"rank": 1, "score": 0, "regret": 0, "regret_over_trials": 0}
HIGHEST = {"rank": len(METHODS), "score": 100, "regret": 1, "regret_over_trials": 1}
"""Possible values of each measure."""
ROUNDING = 1e-9


def make_leaderboard(*losses_on_benchmarks: FloatArray, best: float = 0.0) -> pd.DataFrame:
    """Make the leaderboard of METHODS on benchmarks b0@1, b1@1 and so on.

    Losses are of shape (methods, seeds, tasks, trials); `best` is the best known one on all tasks.
    """
    frames = []
    for number, losses in enumerate(losses_on_benchmarks):
        trials = make_trials(losses, best)
        frames.append(trials.assign(benchmark=f"b{number}@1"))
    scores, _ = score_benchmarks(pd.concat(frames))
    return leaderboard(scores)


def make_trials(losses: FloatArray, best: float) -> pd.DataFrame:
    """Make the table of trials, as results have it, of losses (methods, seeds, tasks, trials)."""
    _, n_seeds, n_tasks, n_trials = losses.shape
    index = pd.MultiIndex.from_product(
        [METHODS, range(n_seeds), range(n_tasks), range(1, n_trials + 1)],
        names=["method", "seed", "task", "trial"],
    )
    trials = pd.DataFrame({"loss": losses.ravel()}, index=index).reset_index()
    return trials.assign(
        surrogate="forest",
        protocol="leave-one-out()",
        fallbacks=0,
        task_name=trials["task"].map(str),
        value=trials["loss"],
        regret=trials["loss"] - best,
    )


def draw_losses(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Draw losses with ties, with outliers, or of tasks that are solved at once."""
    if kind == "ties":
        return rng.integers(0, 3, shape).astype(float)
    if kind == "outliers":
        return np.exp(4 * rng.standard_normal(shape))
    size = np.where(rng.random(shape) < 0.7, 1e-9, 1.0)  # most losses are nearly 0
    return size * rng.random(shape)


@st.composite
def losses_on_benchmarks(draw: st.DrawFn) -> list[FloatArray]:
    """Losses (methods, seeds, tasks, trials) on each of one to three benchmarks."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_seeds = draw(st.integers(1, 7))
    n_trials = draw(st.integers(1, 3))
    n_benchmarks = draw(st.integers(1, 3))

    losses = []
    for _ in range(n_benchmarks):
        n_tasks = draw(st.integers(1, 3))
        shape = (len(METHODS), n_seeds, n_tasks, n_trials)
        kind = draw(st.sampled_from(["ties", "outliers", "solved tasks"]))
        losses.append(draw_losses(kind, shape, rng))
    return losses


@settings(max_examples=8)
@given(losses_on_benchmarks(), st.floats(-0.5, 0.5))
def test_means_stay_within_possible_values(losses, best):
    """No mean of a measure is below its lowest possible value, or above its highest."""
    table = make_leaderboard(*losses, best=best)
    for measure in MEASURES:
        means = table[measure].dropna()
        highest = HIGHEST[measure] + ROUNDING
        assert means.between(LOWEST[measure], highest).all()


@pytest.mark.parametrize("suffix", ["", "_tasks"])
@settings(max_examples=8)
@given(losses=losses_on_benchmarks(), best=st.floats(-0.5, 0.5))
def test_intervals_stay_within_possible_values(losses, best, suffix):
    """Intervals contain the mean and lie within the possible values of their measure.

    They are over seeds or, in columns that end in `_tasks`, over tasks.
    """
    table = make_leaderboard(*losses, best=best)
    for measure in MEASURES:
        columns = [f"{measure}_low{suffix}", measure, f"{measure}_high{suffix}"]
        low, mean, high = table[columns].to_numpy().T
        np.testing.assert_array_equal(np.isnan(low), np.isnan(high))

        is_defined = ~np.isnan(low)
        assert (low >= LOWEST[measure])[is_defined].all()
        assert (high <= HIGHEST[measure] + ROUNDING)[is_defined].all()
        assert (low <= mean + ROUNDING)[is_defined].all()
        assert (mean <= high + ROUNDING)[is_defined].all()


@settings(max_examples=8)
@given(losses_on_benchmarks(), st.permutations(METHODS))
def test_dominating_method_is_better_everywhere(losses, order):
    """A method that is never worse than another one is not behind it in any measure.

    For that, all losses of one method are lowered to those of another where they were higher.
    """
    better, worse, _ = order
    for losses_of_methods in losses:
        losses_of_better = losses_of_methods[METHODS.index(better)]
        losses_of_worse = losses_of_methods[METHODS.index(worse)]
        losses_of_better[:] = np.minimum(losses_of_better, losses_of_worse)

    table = make_leaderboard(*losses).set_index(["benchmark", "method"])

    for measure in MEASURES:  # lower is better in all of them
        means = table[measure].unstack("method")
        gain = (means[worse] - means[better]).dropna()
        assert (gain >= -ROUNDING).all(), measure


@pytest.fixture
def losses_near_best():
    """Losses (methods, seeds, tasks, trials) that end near the best, 0, on the first of four tasks.

    There random search ends at 1e-4, bo at 0.02 and cts at the best. On the three other tasks bo
    ends at 0.05, random search above 0.5, and cts above 0.7.
    """
    rng = np.random.default_rng(0)
    shape = (6, 4, 8)  # (seeds, tasks, trials)
    random_search = rng.uniform(0.5, 1, shape)
    bo = rng.uniform(0.5, 1, shape)
    cts = rng.uniform(0.7, 1.2, shape)
    bo[:, :, -1] = 0.05

    first_task = 0
    random_search[:, first_task, -1] = 1e-4
    bo[:, first_task, -1] = 0.02
    cts[:, first_task, -1] = 0.0
    return np.stack([random_search, bo, cts])


def test_lucky_random_search_reverses_nothing(losses_near_best):
    """No measure puts bo behind random search, which is better by chance on one of four tasks.

    The score of the paper does: it divides by the tiny loss that random search has there.
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
    losses_of_random_search = [[1, 5, 3], [9, 2, 6]]  # (seeds, trials)
    losses_of_bo = [[8, 8, 0], [8, 8, 3]]
    losses_of_cts = [[8, 8, 8], [8, 8, 8]]
    losses_of_methods = np.array([losses_of_random_search, losses_of_bo, losses_of_cts], float)
    losses = losses_of_methods[:, :, None]  # on a single task

    scores = make_leaderboard(losses).set_index(["benchmark", "method"])["score"]["b0@1"]

    score_of_random_search = 100 * (1 / 4 + 2 / 4) / 2
    score_of_bo = 100 * (0 / 4 + 3 / 4) / 2
    assert scores["random-search"] == score_of_random_search
    assert scores["bo"] == score_of_bo
    # Without the limit it would be 200, as all losses are twice the median.
    assert scores["cts"] == 100
