from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from reporting_support import made_up_trials

from hpobench_ordered.analysis.scoring import BenchmarkScores, runs_of_trials, score_benchmarks
from hpobench_ordered.protocols import parse_protocol_name

METHODS = ("bo", "random-search", "simple-ordered")


def random_trials(seeds: int = 3, **changes: object) -> pd.DataFrame:
    """Random losses of three methods, as a store gives them, with some columns changed."""
    trials = made_up_trials(
        "x@1",
        protocol="ordered(trials=12, tasks=None)",
        methods=METHODS,
        seeds=seeds,
        tasks=4,
        trials=12,
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
    """The results as if these runs had failed."""
    return frame[(frame["method"] != method) | ~frame["seed"].isin(seeds)]


def test_benchmarks_and_protocols_are_separate():
    frame = random_trials()
    frames = [frame, random_trials(benchmark="y@1"), random_trials(protocol="other()")]

    items, _ = score_benchmarks(pd.concat(frames))

    labels = [f"{scores.label}, {parse_protocol_name(scores.protocol)}" for scores in items]
    assert labels == ["x@1 (forest), ordered", "x@1 (forest), other", "y@1 (forest), ordered"]
    assert {scores.methods for scores in items} == {("random-search", "bo", "simple-ordered")}


def test_scores_have_no_scale():
    frame = random_trials()
    scaled = random_trials(loss=5 * frame["loss"], regret=5 * frame["regret"])
    np.testing.assert_allclose(
        score_one_benchmark(scaled).measures["score"].values,
        score_one_benchmark(frame).measures["score"].values,
    )


def test_first_ordered_task_does_not_count():
    """It has no history, unlike those of other protocols, whose first task counts."""
    ordered = score_one_benchmark(random_trials())
    leave_one_out = score_one_benchmark(random_trials(protocol="leave-one-out()"))
    assert ordered.over_tasks("value", 12).tasks == 3
    assert leave_one_out.over_tasks("value", 12).tasks == 4


def test_first_ordered_task_counts_alone():
    """The first task is left out only where there are others."""
    frame = random_trials()
    only_first_task = frame[frame["task"] == 0]
    assert score_one_benchmark(only_first_task).over_tasks("value", 12).tasks == 1


def test_missing_first_task_changes_nothing():
    frame = random_trials()
    summary = score_one_benchmark(frame).over_tasks("value", 12)
    later = score_one_benchmark(frame[frame["task"] > 0]).over_tasks("value", 12)
    assert later.tasks == 3
    np.testing.assert_allclose(later.mean, summary.mean)


def best_trials(frame: pd.DataFrame, *, trials: int) -> pd.DataFrame:
    """The row of the lowest loss of each method, seed and task within its first trials."""
    runs = frame[frame["trial"] <= trials].groupby(["method", "seed", "task"])
    return frame.loc[runs["loss"].idxmin()]


@pytest.mark.parametrize(("measure", "column"), [("value", "value"), ("simple_regret", "regret")])
def test_measures_belong_to_best_trial(measure, column):
    frame = random_trials(protocol="adjustment()", value=lambda trials: -2 * trials["loss"])
    scores = score_one_benchmark(frame)
    assert scores.is_maximised

    computed = scores.over_tasks(measure, 10)

    best = best_trials(frame, trials=10)
    means_by_seed = best.groupby(["method", "seed"])[column].mean().unstack()
    expected = means_by_seed.loc[list(scores.methods)]
    np.testing.assert_allclose(computed.mean, expected.mean(axis=1))
    np.testing.assert_allclose(computed.two_standard_errors, 2 * expected.sem(axis=1))


def test_ranks_are_of_lowest_losses():
    frame = random_trials(protocol="adjustment()")
    scores = score_one_benchmark(frame)

    computed = scores.over_tasks("rank", 10).mean

    losses = best_trials(frame, trials=10).set_index(["method", "seed", "task"])["loss"]
    mean_ranks = losses.groupby(["seed", "task"]).rank().groupby("method").mean()
    np.testing.assert_allclose(computed, mean_ranks[list(scores.methods)])


def test_regret_is_relative_to_worst_loss():
    frame = random_trials()
    is_run = (frame["method"] == "bo") & (frame["seed"] == 1) & (frame["task"] == 2)
    best = -0.5  # the regret is the loss + 0.5
    worst = frame.loc[frame["task"] == 2, "loss"].max()

    measures = score_one_benchmark(
        frame
    ).measures  # (A, S, T, M); bo is method 1, after random search
    of_run = (1, 1, 2)

    incumbents = np.minimum.accumulate(frame.loc[is_run, "loss"].to_numpy())
    regrets = (incumbents - best) / (worst - best)
    running_means = np.cumsum(regrets) / np.arange(1, 13)
    np.testing.assert_allclose(measures["regret"].values[of_run], regrets)
    np.testing.assert_allclose(measures["regret_over_trials"].values[of_run], running_means)


@pytest.mark.parametrize("measure", ["value", "simple_regret", "regret"])
def test_failed_run_changes_no_other_mean(measure):
    """Means are over all seeds that a method has, not over those that every method has."""
    frame = random_trials(seeds=20)
    complete = score_one_benchmark(frame)
    lacking = score_one_benchmark(without_runs(frame, "bo", [3, 8, 11]))

    expected = complete.over_tasks(measure, 12)
    computed = lacking.over_tasks(measure, 12)

    others = [complete.place(method) for method in ("random-search", "simple-ordered")]
    np.testing.assert_array_equal(computed.mean[others], expected.mean[others])
    np.testing.assert_array_equal(
        computed.two_standard_errors[others], expected.two_standard_errors[others]
    )


def test_mean_is_over_finished_seeds():
    frame = random_trials(seeds=20)
    lacking = score_one_benchmark(without_runs(frame, "bo", [3, 8, 11]))
    alone = score_one_benchmark(frame[(frame["method"] == "bo") & ~frame["seed"].isin([3, 8, 11])])
    bo = lacking.place("bo")
    mean_among_others = lacking.over_tasks("value", 12).mean[bo]
    mean_alone = alone.over_tasks("value", 12).mean[0]
    assert mean_among_others == pytest.approx(mean_alone)


def test_note_names_unfinished_seeds():
    scores = score_one_benchmark(without_runs(random_trials(seeds=20), "bo", [3, 8, 11]))
    assert scores.seed_numbers == tuple(range(20))
    assert scores.notes() == ["bo has not finished seeds 3, 8, 11."]


def test_ranks_compare_on_common_seeds():
    """The rank is 1 and, for each other method, the share of common runs in which it is better."""
    frame = random_trials(seeds=8)
    scores = score_one_benchmark(without_runs(frame, "bo", [0, 5]))

    ranks = scores.over_tasks("rank", 12).mean

    counting = frame[frame["task"] > 0]  # an ordered run's first task does not count
    best = counting.groupby(["method", "seed", "task"])["loss"].min().unstack("method")
    common = best[~best.index.get_level_values("seed").isin([0, 5])]
    random_search_is_better = (best["random-search"] < best["simple-ordered"]).mean()
    bo_is_better = (common["bo"] < common["simple-ordered"]).mean()
    expected = 1 + random_search_is_better + bo_is_better
    assert ranks[scores.place("simple-ordered")] == pytest.approx(expected)
    assert ranks.sum() == pytest.approx(1 + 2 + 3)


def test_method_with_few_seeds_is_excluded():
    frame = random_trials()
    scores = score_one_benchmark(without_runs(frame, "bo", [0, 2]), runs_of_trials(frame))
    assert scores.methods == ("random-search", "simple-ordered")
    assert scores.notes() == [
        "Not compared, with fewer than half of their runs finished: bo (1 of 3)."
    ]


def test_method_with_half_its_seeds_stays():
    frame = random_trials()
    scores = score_one_benchmark(without_runs(frame, "bo", [2]), runs_of_trials(frame))
    assert "bo" in scores.methods


@pytest.mark.parametrize("finished", [0, 1])
def test_excluded_method_changes_no_measure(finished):
    frame = random_trials()
    others = frame[frame["method"] != "bo"]
    bo = frame[frame["method"] == "bo"]
    planned = runs_of_trials(frame)

    scores = score_one_benchmark(pd.concat([others, bo[bo["seed"] < finished]]), planned)

    assert set(scores.runs) - set(scores.methods) == {"bo"}
    for name, expected in score_one_benchmark(others).measures.items():
        np.testing.assert_array_equal(scores.measures[name].values, expected.values)


def test_method_that_always_failed_is_counted():
    frame = random_trials()
    never = runs_of_trials(frame[frame["method"] == "bo"]).assign(method="worse", state="failed")
    further_seeds = [never.assign(seed=seed) for seed in range(20)]  # more than others have

    scores = score_one_benchmark(frame, pd.concat([runs_of_trials(frame), *further_seeds]))

    assert "worse" not in scores.methods
    assert scores.runs["worse"].failed == scores.runs["worse"].planned > 0
    for name, expected in score_one_benchmark(frame).measures.items():
        np.testing.assert_array_equal(scores.measures[name].values, expected.values)


def test_score_needs_random_search():
    frame = random_trials()
    scores = score_one_benchmark(frame[frame["method"] != "random-search"])
    (note,) = scores.notes()
    assert note.startswith("The score is not available: scores compare with")
    assert not scores.is_defined("score")
    assert scores.is_defined("regret")


def test_regrets_need_best_values():
    scores = score_one_benchmark(random_trials(regret=np.nan))
    undefined = {name for name in scores.measures if not scores.is_defined(name)}
    assert undefined == {"regret", "regret_over_trials", "simple_regret"}


def test_note_counts_tasks_without_regret():
    frame = random_trials()
    frame.loc[frame["task"] == 2, "regret"] = np.nan
    scores = score_one_benchmark(frame)
    assert scores.notes() == ["1 task without a regret: no best value is known."]
    assert (
        scores.over_tasks("regret", trial=12).defined == 2
    )  # of tasks 1 to 3: the first never counts


def test_note_counts_fallbacks():
    frame = random_trials()
    is_run = (frame["method"] == "bo") & (frame["seed"] == 1) & (frame["task"] == 2)
    frame.loc[is_run & (frame["trial"] >= 5), "fallbacks"] = 2
    assert "bo fell back to 2 random suggestions." in score_one_benchmark(frame).notes()


def test_unfinished_benchmark_is_named():
    frame = random_trials()
    other = runs_of_trials(random_trials(benchmark="y@1")).assign(state="failed")
    _, unscored = score_benchmarks(frame, pd.concat([runs_of_trials(frame), other]))
    assert unscored == ["y@1 (forest), ordered, 12 trials: no run is finished."]


def test_methods_without_common_seed_are_ranked():
    """bo has seed 1 alone, the others have seed 0: it ties with both, which counts half each."""
    frame = random_trials(seeds=2)
    scores = score_one_benchmark(frame[(frame["method"] == "bo") == (frame["seed"] == 1)])
    ranks = scores.over_tasks("rank", 12).mean
    assert scores.seed_numbers == (0, 1)
    assert ranks[scores.place("bo")] == 1 + 0.5 + 0.5
    assert ranks.sum() == pytest.approx(1 + 2 + 3)
