"""Scores over simulated seconds are those after the trials that have ended by then."""

import numpy as np
import pytest
from reporting_support import made_up_trials

from hpobench_ordered.analysis.curves import curves_over_seconds
from hpobench_ordered.analysis.scoring import BenchmarkScores, score_benchmarks
from hpobench_ordered.analysis.seconds import score_at_times
from hpobench_ordered.errors import ExperimentError

METHODS = ("random-search", "bo")
QUICK, SLOW = 1.0, 10.0
"""Seconds of an evaluation of each method."""


def score(cost_of_method: dict[str, float] | None) -> BenchmarkScores:
    """Score six trials of two methods, whose evaluations take so many seconds."""
    trials = made_up_trials("x@1", methods=METHODS)
    if cost_of_method is not None:
        trials = trials.assign(cost=trials["method"].map(cost_of_method))
    (scores,), _ = score_benchmarks(trials)
    return scores


@pytest.fixture
def scores():
    return score({"random-search": QUICK, "bo": SLOW})


@pytest.mark.parametrize(("method", "seconds"), [("random-search", QUICK), ("bo", SLOW)])
def test_scores_are_those_of_ended_trials(scores, method, seconds):
    """A run has its regret after the trials that have ended; before the first one it has 1."""
    at_times, times = score_at_times(scores)
    place = scores.place(method)
    over_trials = scores.measures["regret"].values[place]

    over_times = at_times.measures["regret"].values[place]

    for number, time in enumerate(times):
        n_ended = min(int(time // seconds), scores.last_trial)
        expected = over_trials[..., n_ended - 1] if n_ended else np.ones(over_trials.shape[:2])
        assert np.array_equal(over_times[..., number], expected)


def test_times_end_when_quickest_method_has(scores):
    _, times = score_at_times(scores)
    assert times[0] == pytest.approx(QUICK)
    assert times[-1] == pytest.approx(scores.last_trial * QUICK)


def test_run_without_trials_has_worst_rank(scores):
    """By the last time, the slow method has not ended one evaluation."""
    at_times, _ = score_at_times(scores)
    ranks = at_times.measures["rank"].values[..., -1]
    assert (ranks[scores.place("random-search")] == 1).all()
    assert (ranks[scores.place("bo")] == 2).all()


@pytest.mark.parametrize("costs", [None, {"random-search": QUICK}])
def test_unknown_costs_give_no_curves(costs):
    """Costs must be known of all trials; here they are known of none, or of one method."""
    scores = score(costs)
    assert scores.costs is None
    assert curves_over_seconds([scores]).empty
    with pytest.raises(ExperimentError, match="seconds of evaluations are unknown on x@1"):
        score_at_times(scores)


def test_curves_have_seconds_of_each_benchmark(scores):
    frame = curves_over_seconds([scores])

    _, times = score_at_times(scores)
    for _, curve in frame.groupby(["method", "measure"]):
        assert curve["seconds"].tolist() == times.tolist()
    assert frame["measure"].unique().tolist() == ["rank", "regret"]
