"""Scores of benchmarks, from a table of trials: which runs and tasks count, and what is noted."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from reporting_support import made_up_trials

from hpobench_ordered.analysis.scoring import BenchmarkScores, runs_of_trials, score_benchmarks
from hpobench_ordered.protocols import parse_protocol_name

METHODS = ("bo", "random-search", "simple-ordered")
LAST_TRIAL = 12


def random_trials(seeds: int = 3, **changes: object) -> pd.DataFrame:
    """Random losses of three methods on four tasks, as a store gives them; some columns changed."""
    trials = made_up_trials(
        "x@1",
        protocol=f"ordered(trials={LAST_TRIAL}, tasks=None)",
        methods=METHODS,
        seeds=seeds,
        tasks=4,
        trials=LAST_TRIAL,
    )
    return trials.assign(**changes)


def score_one_benchmark(
    frame: pd.DataFrame, planned: pd.DataFrame | None = None
) -> BenchmarkScores:
    """Scores of results on a single benchmark."""
    (scores,), unscored = score_benchmarks(frame, planned)
    assert unscored == []
    return scores


def without_runs(frame: pd.DataFrame, method: str, seeds: Sequence[int]) -> pd.DataFrame:
    """Leave out the trials of a method with these seeds, as if those runs had failed."""
    return frame[(frame["method"] != method) | ~frame["seed"].isin(seeds)]


def test_benchmarks_and_protocols_are_separate():
    """Results of two benchmarks under a protocol, and of one under another protocol."""
    frame = random_trials()
    frames = [frame, random_trials(benchmark="y@1"), random_trials(protocol="other()")]

    items, _ = score_benchmarks(pd.concat(frames))

    labels = [f"{scores.label}, {parse_protocol_name(scores.protocol)}" for scores in items]
    assert labels == ["x@1 (forest), ordered", "x@1 (forest), other", "y@1 (forest), ordered"]


def test_random_search_is_first_of_methods():
    """Other methods are in alphabetical order."""
    methods_in_trials = list(random_trials()["method"].unique())
    assert methods_in_trials == ["bo", "random-search", "simple-ordered"]
    scores = score_one_benchmark(random_trials())
    assert scores.methods == ("random-search", "bo", "simple-ordered")


def test_scores_have_no_scale():
    """All losses, and so regrets, are multiplied by 5."""
    frame = random_trials()
    scaled = random_trials(loss=5 * frame["loss"], regret=5 * frame["regret"])
    np.testing.assert_allclose(
        score_one_benchmark(scaled).measures["score"].values,
        score_one_benchmark(frame).measures["score"].values,
    )


def test_first_ordered_task_does_not_count():
    """It has no history, unlike the first of the four tasks under other protocols."""
    ordered = score_one_benchmark(random_trials())
    leave_one_out = score_one_benchmark(random_trials(protocol="leave-one-out()"))
    assert ordered.over_tasks("value", LAST_TRIAL).tasks == 3
    assert leave_one_out.over_tasks("value", LAST_TRIAL).tasks == 4


def test_first_ordered_task_counts_alone():
    """The first task is left out only where there are others."""
    frame = random_trials()
    scores = score_one_benchmark(frame[frame["task"] == 0])
    assert scores.over_tasks("value", LAST_TRIAL).tasks == 1


def test_missing_first_task_changes_nothing():
    """The first of the four tasks does not count anyway, as it has no history."""
    frame = random_trials()
    without_first_task = frame[frame["task"] > 0]

    expected = score_one_benchmark(frame).over_tasks("value", LAST_TRIAL)
    summary = score_one_benchmark(without_first_task).over_tasks("value", LAST_TRIAL)

    assert summary.tasks == 3
    np.testing.assert_allclose(summary.mean, expected.mean)


def best_trials(frame: pd.DataFrame, *, trials: int) -> pd.DataFrame:
    """Rows of the lowest losses within the first trials, one for each method, seed and task."""
    runs = frame[frame["trial"] <= trials].groupby(["method", "seed", "task"])
    return frame.loc[runs["loss"].idxmin()]


@pytest.mark.parametrize(("measure", "column"), [("value", "value"), ("simple_regret", "regret")])
def test_measures_belong_to_best_trial(measure, column):
    """Here of an objective to maximise, whose loss is negative, under a protocol of all tasks."""
    frame = random_trials(protocol="adjustment()", value=lambda trials: -2 * trials["loss"])
    scores = score_one_benchmark(frame)
    assert scores.is_maximised

    computed = scores.over_tasks(measure, trial=10)

    best = best_trials(frame, trials=10)
    means_by_seed = best.groupby(["method", "seed"])[column].mean().unstack()
    expected = means_by_seed.loc[list(scores.methods)]
    np.testing.assert_allclose(computed.mean, expected.mean(axis=1))
    np.testing.assert_allclose(computed.two_standard_errors, 2 * expected.sem(axis=1))


def test_ranks_are_of_lowest_losses():
    frame = random_trials(protocol="adjustment()")  # under which the first task counts
    scores = score_one_benchmark(frame)

    computed = scores.over_tasks("rank", trial=10).mean

    losses = best_trials(frame, trials=10).set_index(["method", "seed", "task"])["loss"]
    mean_ranks = losses.groupby(["seed", "task"]).rank().groupby("method").mean()
    np.testing.assert_allclose(computed, mean_ranks[list(scores.methods)])


def test_regret_is_relative_to_worst_loss():
    """Of one run: (incumbent - best) / (worst - best), and its mean over the trials so far."""
    frame = random_trials()
    is_run = (frame["method"] == "bo") & (frame["seed"] == 1) & (frame["task"] == 2)
    best = -0.5  # the made-up regret is the loss + 0.5
    worst = frame.loc[frame["task"] == 2, "loss"].max()

    scores = score_one_benchmark(frame)

    incumbents = np.minimum.accumulate(frame.loc[is_run, "loss"].to_numpy())
    regrets = (incumbents - best) / (worst - best)
    running_means = np.cumsum(regrets) / np.arange(1, LAST_TRIAL + 1)
    run = (scores.place("bo"), 1, 2)  # method, seed and task
    np.testing.assert_allclose(scores.measures["regret"].values[run], regrets)
    np.testing.assert_allclose(scores.measures["regret_over_trials"].values[run], running_means)


@pytest.mark.parametrize("measure", ["value", "simple_regret", "regret"])
def test_failed_run_changes_no_other_mean(measure):
    """Means are over all seeds that a method has, not over those that every method has."""
    frame = random_trials(seeds=20)
    complete = score_one_benchmark(frame)
    incomplete = score_one_benchmark(without_runs(frame, "bo", [3, 8, 11]))

    expected = complete.over_tasks(measure, LAST_TRIAL)
    computed = incomplete.over_tasks(measure, LAST_TRIAL)

    others = [complete.place(method) for method in ("random-search", "simple-ordered")]
    np.testing.assert_array_equal(computed.mean[others], expected.mean[others])
    np.testing.assert_array_equal(
        computed.two_standard_errors[others], expected.two_standard_errors[others]
    )


def test_mean_is_over_finished_seeds():
    """A method's mean is that of its finished runs, as if there were no others."""
    finished = without_runs(random_trials(seeds=20), "bo", [3, 8, 11])
    scores = score_one_benchmark(finished)
    scores_of_bo_alone = score_one_benchmark(finished[finished["method"] == "bo"])

    means = scores.over_tasks("value", LAST_TRIAL).mean
    (expected,) = scores_of_bo_alone.over_tasks("value", LAST_TRIAL).mean

    assert means[scores.place("bo")] == pytest.approx(expected)


def test_note_names_unfinished_seeds():
    scores = score_one_benchmark(without_runs(random_trials(seeds=20), "bo", [3, 8, 11]))
    assert scores.seed_numbers == tuple(range(20))
    assert scores.notes() == ["bo has not finished seeds 3, 8, 11."]


def test_ranks_compare_on_common_seeds():
    """The rank is 1 plus, for each other method, the share of common runs in which it is better."""
    frame = random_trials(seeds=8)
    scores = score_one_benchmark(without_runs(frame, "bo", [0, 5]))

    ranks = scores.over_tasks("rank", LAST_TRIAL).mean

    counting = frame[frame["task"] > 0]  # an ordered run's first task does not count
    best = counting.groupby(["method", "seed", "task"])["loss"].min().unstack("method")
    common = best[~best.index.get_level_values("seed").isin([0, 5])]
    random_search_is_better = (best["random-search"] < best["simple-ordered"]).mean()
    bo_is_better = (common["bo"] < common["simple-ordered"]).mean()
    expected = 1 + random_search_is_better + bo_is_better
    assert ranks[scores.place("simple-ordered")] == pytest.approx(expected)
    # The sum is that without failures.
    assert ranks.sum() == pytest.approx(1 + 2 + 3)


def test_method_with_few_seeds_is_excluded():
    """Of the seeds 0, 1 and 2 only one is left."""
    frame = random_trials()
    scores = score_one_benchmark(without_runs(frame, "bo", [0, 2]), runs_of_trials(frame))
    assert scores.methods == ("random-search", "simple-ordered")
    assert scores.notes() == [
        "Not compared, with fewer than half of their runs finished: bo (1 of 3)."
    ]


def test_method_with_half_its_seeds_stays():
    """Of the seeds 0, 1 and 2 two are left."""
    frame = random_trials()
    scores = score_one_benchmark(without_runs(frame, "bo", [2]), runs_of_trials(frame))
    assert "bo" in scores.methods


@pytest.mark.parametrize("finished_seeds", [0, 1])
def test_excluded_method_changes_no_measure(finished_seeds):
    """Methods with fewer than half of their seeds, here of three, are not compared."""
    frame = random_trials()
    others = frame[frame["method"] != "bo"]
    finished = frame[(frame["method"] != "bo") | (frame["seed"] < finished_seeds)]
    planned = runs_of_trials(frame)

    scores = score_one_benchmark(finished, planned)

    assert set(scores.runs) - set(scores.methods) == {"bo"}
    for name, expected in score_one_benchmark(others).measures.items():
        np.testing.assert_array_equal(scores.measures[name].values, expected.values)


def test_method_that_always_failed_is_counted():
    """A method `worse` is planned with 20 seeds, and fails with each.

    The others have three: also seeds that they lack must change no measure of theirs.
    """
    frame = random_trials()
    runs = runs_of_trials(frame)
    failed_run = runs[runs["method"] == "bo"].assign(method="worse", state="failed")
    failed_runs = [failed_run.assign(seed=seed) for seed in range(20)]

    scores = score_one_benchmark(frame, pd.concat([runs, *failed_runs]))

    assert "worse" not in scores.methods
    assert scores.runs["worse"].failed == scores.runs["worse"].planned > 0
    for name, expected in score_one_benchmark(frame).measures.items():
        np.testing.assert_array_equal(scores.measures[name].values, expected.values)


def test_score_needs_random_search():
    frame = random_trials()
    scores = score_one_benchmark(frame[frame["method"] != "random-search"])
    (note,) = scores.notes()
    assert note.startswith("The score is not available: scores compare with")  # random search
    assert not scores.is_defined("score")
    assert scores.is_defined("regret")


def test_regrets_need_best_values():
    no_best_value_known = np.nan
    scores = score_one_benchmark(random_trials(regret=no_best_value_known))
    undefined = {name for name in scores.measures if not scores.is_defined(name)}
    assert undefined == {"regret", "regret_over_trials", "simple_regret"}


def test_note_counts_tasks_without_regret():
    frame = random_trials()
    frame.loc[frame["task"] == 2, "regret"] = np.nan
    scores = score_one_benchmark(frame)
    tasks_with_regret = scores.over_tasks("regret", LAST_TRIAL).defined
    assert scores.notes() == ["1 task without a regret: no best value is known."]
    # Tasks 1 and 3: the first task, 0, never counts.
    assert tasks_with_regret == 2


def test_note_counts_fallbacks():
    """A trial has the number of fallbacks of its run so far: here two by the fifth trial."""
    frame = random_trials()
    is_run = (frame["method"] == "bo") & (frame["seed"] == 1) & (frame["task"] == 2)
    frame.loc[is_run & (frame["trial"] >= 5), "fallbacks"] = 2
    notes = score_one_benchmark(frame).notes()
    assert "bo fell back to 2 random suggestions." in notes


def test_unfinished_benchmark_is_named():
    frame = random_trials()
    failed_runs = runs_of_trials(random_trials(benchmark="y@1")).assign(state="failed")
    planned = pd.concat([runs_of_trials(frame), failed_runs])
    _, unscored = score_benchmarks(frame, planned)
    assert unscored == ["y@1 (forest), ordered, 12 trials: no run is finished."]


def test_methods_without_common_seed_are_ranked():
    """bo has seed 1 alone, the others have seed 0: it ties with both, which counts half each."""
    frame = random_trials(seeds=2)
    finished = without_runs(frame, "bo", [0])
    for method in ("random-search", "simple-ordered"):
        finished = without_runs(finished, method, [1])
    scores = score_one_benchmark(finished)

    ranks = scores.over_tasks("rank", LAST_TRIAL).mean

    assert scores.seed_numbers == (0, 1)
    assert ranks[scores.place("bo")] == 1 + 0.5 + 0.5
    assert ranks.sum() == pytest.approx(1 + 2 + 3)
