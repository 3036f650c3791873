"""Failed evaluations: they are the worst in every measure, counted, and stop no analysis."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from reporting_support import made_up_trials

from hpobench_ordered.analysis.leaderboard import leaderboard
from hpobench_ordered.analysis.samples import replace_failures
from hpobench_ordered.analysis.scores import ranks_by_seed
from hpobench_ordered.analysis.scoring import BenchmarkScores, score_benchmarks
from hpobench_ordered.analysis.verdict import verdicts

TRIALS = 6
TEN_METHODS = ("random-search", *(f"method-{number}" for number in range(9)))

pytestmark = pytest.mark.filterwarnings("error")


def fail(trials: pd.DataFrame, has_failed: pd.Series | np.ndarray) -> pd.DataFrame:
    """Make some of the trials fail."""
    changed = trials.copy()
    changed.loc[has_failed, "loss"] = np.inf
    changed.loc[has_failed, "regret"] = np.inf
    changed.loc[has_failed, "value"] = np.nan
    return changed


def make_trials(
    *, share: float = 0.0, methods: tuple[str, ...] = ("random-search", "bo"), **changes: int
) -> pd.DataFrame:
    """Make random trials of methods on three tasks, a share of which fail."""
    trials = made_up_trials("x@1", methods=methods, trials=TRIALS, **changes)
    draws = np.random.default_rng(1).random(len(trials))
    return fail(trials, draws < share)


def score(trials: pd.DataFrame) -> BenchmarkScores:
    """Score the trials on their benchmark."""
    (scores,), unscored = score_benchmarks(trials)
    assert unscored == []
    return scores


def make_twins(share: float, more: float, seed: int) -> BenchmarkScores:
    """Score random search and two methods of the same trials, of which more of one's fail.

    Args:
        share: Share of all trials that fail.
        more: Share of the second twin's other trials that fail, too.
        seed: Seed of the random trials.
    """
    rng = np.random.default_rng(seed)
    trials = made_up_trials("x@1", methods=("random-search", "twin"), trials=TRIALS, entropy=seed)
    trials = fail(trials, rng.random(len(trials)) < share)
    twin = trials[trials["method"] == "twin"]
    failing_twin = fail(twin, rng.random(len(twin)) < more).assign(method="failing-twin")
    return score(pd.concat([trials, failing_twin], ignore_index=True))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("more", [0.1, 0.5, 1.0])
def test_more_failures_are_never_better(share, more, seed):
    """Of two methods that differ in failures alone, the failing one is never ahead.

    That holds for each measure, in each run after each trial.
    """
    scores = make_twins(share, more, seed)
    twin, failing_twin = scores.place("twin"), scores.place("failing-twin")

    for name, measure in scores.measures.items():
        sign = -1 if name == "value" else 1  # the objective is maximised
        difference = sign * (measure.values[failing_twin] - measure.values[twin])
        assert (difference[~np.isnan(difference)] >= 0).all(), name


@given(hnp.arrays(float, (3, 4, 2, 5), elements=st.sampled_from([0.0, 1.0, 2.0, np.inf])))
def test_ranks_compare_failures_as_worst(losses):
    """A method without success shares the last rank with all others without."""
    ranks = ranks_by_seed(losses, "abc").values
    best = np.minimum.accumulate(losses, axis=-1)
    for a in range(3):
        is_better = (best < best[a]).sum(axis=0)
        is_equal = (best == best[a]).sum(axis=0)
        np.testing.assert_array_equal(ranks[a], is_better + (is_equal + 1) / 2)


def test_failures_have_worst_loss_of_their_task():
    """Of four evaluations on each of two tasks, two of the first failed, and all of the second."""
    losses = np.array([[[[np.inf, 3.0]], [[1.0, np.inf]]]])  # (1, seeds, 1, trials)
    losses = np.concatenate([losses, np.full_like(losses, np.inf)], axis=2)
    regrets = losses - 0.5

    replaced = replace_failures({"loss": losses, "regret": regrets})

    np.testing.assert_array_equal(replaced["loss"][0, :, 0], [[3, 3], [1, 3]])
    np.testing.assert_array_equal(replaced["regret"][0, :, 0], [[2.5, 2.5], [0.5, 2.5]])
    assert np.isnan(replaced["loss"][0, :, 1]).all()


def test_leaderboard_counts_failed_evaluations():
    """A third or so of the evaluations fail: the counts are those of infinite losses."""
    trials = make_trials(share=1 / 3)
    n_failed = trials[np.isinf(trials["loss"])]["method"].value_counts()

    board = leaderboard([score(trials)])

    for row in board.to_dict("records"):
        assert row["failed"] == 0  # no run
        assert row["failed_evaluations"] == n_failed[row["method"]]
        assert row["evaluations"] == 90


def test_note_names_tasks_where_all_failed():
    """Of the two tasks that count, all evaluations of one failed."""
    trials = make_trials()
    scores = score(fail(trials, trials["task"] == 2))

    assert "1 task without a score, regret or value: all evaluations failed." in scores.notes()
    assert scores.over_tasks("score", TRIALS).defined == 1
    assert scores.over_tasks("rank", TRIALS).defined == 2


@pytest.mark.parametrize("methods", [("random-search",), ("bo",), TEN_METHODS])
def test_all_methods_share_ranks_where_all_failed(methods):
    """There is no score, as a note says."""
    scores = score(make_trials(share=1.0, methods=methods))

    ranks = scores.over_tasks("rank", TRIALS).mean
    assert (ranks == (len(methods) + 1) / 2).all()
    assert "The score is not available: all evaluations failed." in scores.notes()


@pytest.mark.parametrize("share", [1 / 3, 1 / 2, 1.0])
@pytest.mark.parametrize("methods", [("random-search",), ("bo",), TEN_METHODS])
def test_failures_stop_no_verdict(share, methods):
    """A third, half or all of the evaluations fail, on ten benchmarks; means are finite."""
    frames = []
    for number in range(10):
        trials = make_trials(share=share, methods=methods, entropy=number)
        frames.append(trials.assign(benchmark=f"x-{number}@1"))
    scores, _ = score_benchmarks(pd.concat(frames, ignore_index=True))

    board = leaderboard(scores)
    all_verdicts = verdicts(scores)

    assert np.isfinite(board["rank"]).all()
    has_verdict = len(methods) > 1
    assert bool(all_verdicts) == has_verdict
    assert all(verdict.sentence for verdict in all_verdicts)
