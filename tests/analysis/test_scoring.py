"""Scores of benchmarks, from a table of trials: which runs and tasks count, and what is noted."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from reporting_support import made_up_trials

from hpobench_ordered.analysis.scoring import BenchmarkScores, runs_of_trials, score_benchmarks
from hpobench_ordered.data.protocol_text import parse_protocol_name

METHODS = ("bo", "random-search", "simple-ordered")
LAST_TRIAL = 12


def make_trials(seeds: int = 3, **changes: object) -> pd.DataFrame:
    """Make trials of three methods on four tasks, with random losses; some columns are changed."""
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
    """Score the trials, of the planned runs, on a single benchmark."""
    (scores,), unscored = score_benchmarks(frame, planned)
    assert unscored == []
    return scores


def without_runs(frame: pd.DataFrame, method: str, seeds: Sequence[int]) -> pd.DataFrame:
    """Leave out the trials of a method with these seeds, as if those runs had failed."""
    return frame[(frame["method"] != method) | ~frame["seed"].isin(seeds)]


def test_benchmarks_and_protocols_are_separate():
    """There are trials on two benchmarks under a protocol, and on one under another protocol."""
    frames = [make_trials(), make_trials(benchmark="y@1"), make_trials(protocol="other()")]

    all_scores, _ = score_benchmarks(pd.concat(frames))

    labels = [f"{scores.label}, {parse_protocol_name(scores.protocol)}" for scores in all_scores]
    assert labels == ["x@1 (forest), ordered", "x@1 (forest), other", "y@1 (forest), ordered"]


def test_random_search_is_first_of_methods():
    """Other methods are in alphabetical order."""
    methods_in_trials = list(make_trials()["method"].unique())
    assert methods_in_trials == ["bo", "random-search", "simple-ordered"]
    scores = score_one_benchmark(make_trials())
    assert scores.methods == ("random-search", "bo", "simple-ordered")


def test_scores_have_no_scale():
    """All losses, and so regrets, are multiplied by 5."""
    frame = make_trials()
    scaled = make_trials(loss=5 * frame["loss"], regret=5 * frame["regret"])
    np.testing.assert_allclose(
        score_one_benchmark(scaled).measures["score"].values,
        score_one_benchmark(frame).measures["score"].values,
    )


def test_first_ordered_task_does_not_count():
    """Under the ordered protocol the first of four tasks has no history; under others it has."""
    ordered = score_one_benchmark(make_trials())
    leave_one_out = score_one_benchmark(make_trials(protocol="leave-one-out()"))
    assert ordered.over_tasks("value", LAST_TRIAL).tasks == 3
    assert leave_one_out.over_tasks("value", LAST_TRIAL).tasks == 4


def test_first_ordered_task_counts_alone():
    """The first task is left out only where there are others."""
    frame = make_trials()
    scores = score_one_benchmark(frame[frame["task"] == 0])
    assert scores.over_tasks("value", LAST_TRIAL).tasks == 1


def test_missing_first_task_changes_nothing():
    """The first of the four tasks does not count anyway, as it has no history."""
    frame = make_trials()
    without_first_task = frame[frame["task"] > 0]

    expected = score_one_benchmark(frame).over_tasks("value", LAST_TRIAL)
    summary = score_one_benchmark(without_first_task).over_tasks("value", LAST_TRIAL)

    assert summary.tasks == 3
    np.testing.assert_allclose(summary.mean, expected.mean)


def select_best_trials(frame: pd.DataFrame, *, trials: int) -> pd.DataFrame:
    """Select the best of the first trials of each run, which is a method, seed and task."""
    first_trials = frame[frame["trial"] <= trials]
    best_rows = first_trials.groupby(["method", "seed", "task"])["loss"].idxmin()
    return frame.loc[best_rows]


@pytest.mark.parametrize(("measure", "column"), [("value", "value"), ("simple_regret", "regret")])
def test_measures_belong_to_best_trial(measure, column):
    """The value and the regret of a run are those of its trial of lowest loss.

    The mean is over tasks and seeds, and its error over seeds.
    """
    # The objective is maximised: the best trial has the highest value. Under this protocol the
    # first task counts, too.
    frame = make_trials(protocol="adjustment()", value=lambda trials: -2 * trials["loss"])
    scores = score_one_benchmark(frame)
    assert scores.is_maximised

    computed = scores.over_tasks(measure, trial=10)

    best = select_best_trials(frame, trials=10)
    mean_of_seed = best.groupby(["method", "seed"])[column].mean()
    for method, mean, two_errors in zip(
        scores.methods, computed.mean, computed.two_standard_errors, strict=True
    ):
        assert mean == pytest.approx(mean_of_seed[method].mean())
        assert two_errors == pytest.approx(2 * mean_of_seed[method].sem())


def test_ranks_are_of_lowest_losses():
    """Methods are ranked in each pair of a seed and a task; the mean rank is over all pairs."""
    frame = make_trials(protocol="adjustment()")  # under which the first task counts
    scores = score_one_benchmark(frame)

    computed = scores.over_tasks("rank", trial=10).mean

    lowest_losses = select_best_trials(frame, trials=10).set_index(["method", "seed", "task"])[
        "loss"
    ]
    ranks = lowest_losses.groupby(["seed", "task"]).rank()
    mean_rank_of_method = ranks.groupby("method").mean()
    np.testing.assert_allclose(computed, mean_rank_of_method[list(scores.methods)])


def test_regret_is_relative_to_worst_loss():
    """The regret of a run is (incumbent - best) / (worst - best).

    `regret_over_trials` is its mean over the trials so far. The run is that of bo with seed 1 on
    task 2.
    """
    frame = make_trials()
    seed, task = 1, 2
    is_on_task = frame["task"] == task
    is_run = (frame["method"] == "bo") & (frame["seed"] == seed) & is_on_task
    best = -0.5  # as the made-up regret is the loss + 0.5
    worst = frame.loc[is_on_task, "loss"].max()

    scores = score_one_benchmark(frame)

    incumbents = np.minimum.accumulate(frame.loc[is_run, "loss"].to_numpy())
    regrets = (incumbents - best) / (worst - best)
    means_so_far = np.cumsum(regrets) / np.arange(1, LAST_TRIAL + 1)
    run = (scores.place("bo"), seed, task)
    np.testing.assert_allclose(scores.measures["regret"].values[run], regrets)
    np.testing.assert_allclose(scores.measures["regret_over_trials"].values[run], means_so_far)


@pytest.mark.parametrize("measure", ["value", "simple_regret", "regret"])
def test_failed_run_changes_no_other_mean(measure):
    """Means are over all seeds that a method has, not over those that every method has.

    So those of other methods stay the same if bo fails with three of 20 seeds.
    """
    frame = make_trials(seeds=20)
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
    finished = without_runs(make_trials(seeds=20), "bo", [3, 8, 11])
    scores = score_one_benchmark(finished)
    scores_of_bo_alone = score_one_benchmark(finished[finished["method"] == "bo"])

    means = scores.over_tasks("value", LAST_TRIAL).mean
    (expected,) = scores_of_bo_alone.over_tasks("value", LAST_TRIAL).mean

    assert means[scores.place("bo")] == pytest.approx(expected)


def test_note_names_unfinished_seeds():
    frame = make_trials(seeds=20)
    finished = without_runs(frame, "bo", [3, 8, 11])
    scores = score_one_benchmark(finished, runs_of_trials(frame))
    assert scores.seed_numbers == tuple(range(20))
    assert scores.notes() == ["bo has not finished seeds 3, 8, 11."]


def test_note_names_methods_planned_with_fewer_seeds():
    """No seed is missing, as the others were not planned for bo and simple-ordered."""
    finished = without_runs(make_trials(seeds=6), "bo", range(3, 6))
    finished = without_runs(finished, "simple-ordered", range(3, 6))
    scores = score_one_benchmark(finished)
    assert scores.notes() == ["Only run with seeds 0 to 2: bo, simple-ordered."]


def test_ranks_compare_on_common_seeds():
    """The rank is 1 plus, for each other method, the share of common runs in which it is better.

    The method bo failed with seeds 0 and 5, in which it is not compared.
    """
    frame = make_trials(seeds=8)
    scores = score_one_benchmark(without_runs(frame, "bo", [0, 5]))

    ranks = scores.over_tasks("rank", LAST_TRIAL).mean

    counting = frame[frame["task"] > 0]  # an ordered run's first task does not count
    lowest_losses = counting.groupby(["seed", "task", "method"])["loss"].min().unstack("method")
    of_common_seeds = lowest_losses.drop(index=[0, 5], level="seed")
    share_better_of_random_search = (
        lowest_losses["random-search"] < lowest_losses["simple-ordered"]
    ).mean()
    share_better_of_bo = (of_common_seeds["bo"] < of_common_seeds["simple-ordered"]).mean()
    rank_of_simple_ordered = ranks[scores.place("simple-ordered")]
    assert rank_of_simple_ordered == pytest.approx(
        1 + share_better_of_random_search + share_better_of_bo
    )
    # The sum is that without failures.
    assert ranks.sum() == pytest.approx(1 + 2 + 3)


def test_method_with_few_seeds_is_excluded():
    """Compared are methods with at least half of their planned seeds; bo has one of three."""
    frame = make_trials()
    scores = score_one_benchmark(without_runs(frame, "bo", [0, 2]), runs_of_trials(frame))
    assert scores.methods == ("random-search", "simple-ordered")
    assert scores.notes() == [
        "Not compared, with fewer than half of their runs finished: bo (1 of 3)."
    ]


def test_method_with_enough_seeds_stays():
    """Compared are methods with at least half of their planned seeds; bo has two of three."""
    frame = make_trials()
    scores = score_one_benchmark(without_runs(frame, "bo", [2]), runs_of_trials(frame))
    assert "bo" in scores.methods


@pytest.mark.parametrize(("planned_seeds", "is_compared"), [(3, True), (6, True), (7, False)])
def test_method_is_held_to_its_own_plan(planned_seeds, is_compared):
    """The method bo has finished three seeds, the others all of the ten planned for them."""
    frame = make_trials(seeds=10)
    planned = without_runs(frame, "bo", range(planned_seeds, 10))
    finished = without_runs(frame, "bo", range(3, 10))

    scores = score_one_benchmark(finished, runs_of_trials(planned))

    assert ("bo" in scores.methods) == is_compared


@pytest.mark.parametrize("finished_seeds", [0, 1])
def test_excluded_method_changes_no_measure(finished_seeds):
    """The method bo has finished fewer than half of three seeds, and is not compared."""
    frame = make_trials()
    is_of_bo = frame["method"] == "bo"
    others = frame[~is_of_bo]
    finished = frame[~is_of_bo | (frame["seed"] < finished_seeds)]
    planned = runs_of_trials(frame)

    scores = score_one_benchmark(finished, planned)

    # Runs are counted of all methods, but only some are compared.
    excluded_methods = set(scores.runs) - set(scores.methods)
    assert excluded_methods == {"bo"}
    for name, expected in score_one_benchmark(others).measures.items():
        np.testing.assert_array_equal(scores.measures[name].values, expected.values)


def plan_runs_of_failing_method(frame: pd.DataFrame) -> pd.DataFrame:
    """Plan the runs of these trials, and runs of a method `worse` with 20 seeds, which all fail."""
    runs = runs_of_trials(frame)
    is_template = (runs["method"] == "bo") & (runs["seed"] == 0)
    failed_run = runs[is_template].assign(method="worse", state="failed")
    failed_runs = [failed_run.assign(seed=seed) for seed in range(20)]
    return pd.concat([runs, *failed_runs])


def test_method_that_always_failed_is_counted():
    """A method of which all runs failed is not compared with others, but its runs are counted."""
    frame = make_trials()
    scores = score_one_benchmark(frame, plan_runs_of_failing_method(frame))
    assert "worse" not in scores.methods
    assert scores.runs["worse"].planned == 20
    assert scores.runs["worse"].failed == 20


def test_method_that_always_failed_changes_no_measure():
    """The failing method is planned with 20 seeds, of which the other methods have three."""
    frame = make_trials()
    scores = score_one_benchmark(frame, plan_runs_of_failing_method(frame))
    for name, expected in score_one_benchmark(frame).measures.items():
        np.testing.assert_array_equal(scores.measures[name].values, expected.values)


def test_score_needs_random_search():
    """Scores compare with random search, as the note says; regrets do not."""
    frame = make_trials()
    scores = score_one_benchmark(frame[frame["method"] != "random-search"])
    (note,) = scores.notes()
    assert note.startswith("The score is not available: scores compare with 'random-search'")
    assert not scores.is_defined("score")
    assert scores.is_defined("regret")


def test_regrets_need_best_values():
    """A regret is a distance from the best known value; no other measure needs that."""
    no_best_value_known = np.nan
    scores = score_one_benchmark(make_trials(regret=no_best_value_known))
    undefined = {name for name in scores.measures if not scores.is_defined(name)}
    assert undefined == {"regret", "regret_over_trials", "simple_regret"}


def test_note_counts_tasks_without_regret():
    """A task without a best known value has no regret; a note says so, and means leave it out."""
    frame = make_trials()
    frame.loc[frame["task"] == 2, "regret"] = np.nan
    scores = score_one_benchmark(frame)
    n_tasks_with_regret = scores.over_tasks("regret", LAST_TRIAL).defined
    assert scores.notes() == ["1 task without a regret: no best value is known."]
    # Tasks 1 and 3: the first task, 0, never counts.
    assert n_tasks_with_regret == 2


def test_note_counts_fallbacks():
    """A trial has the number of fallbacks of its run so far: in one run of bo, 2 from trial 5 on.

    The note counts them once, though eight trials have them.
    """
    frame = make_trials()
    is_run = (frame["method"] == "bo") & (frame["seed"] == 1) & (frame["task"] == 2)
    is_late = frame["trial"] >= 5
    frame.loc[is_run & is_late, "fallbacks"] = 2
    notes = score_one_benchmark(frame).notes()
    assert "bo fell back to 2 random suggestions." in notes


def test_unfinished_benchmark_is_named():
    """All runs on y@1 failed, so that it has no scores; its name is returned besides them."""
    frame = make_trials()
    failed_runs = runs_of_trials(make_trials(benchmark="y@1")).assign(state="failed")
    planned = pd.concat([runs_of_trials(frame), failed_runs])
    _, unscored = score_benchmarks(frame, planned)
    assert unscored == ["y@1 (forest), ordered, 12 trials: no run is finished."]


def test_methods_without_common_seed_are_ranked():
    """Methods without a common seed cannot be compared, and count as tied.

    Here bo has seed 1 alone, the others have seed 0. A rank is 1, plus 0.5 for each tie.
    """
    frame = make_trials(seeds=2)
    finished = without_runs(frame, "bo", [0])
    for method in ("random-search", "simple-ordered"):
        finished = without_runs(finished, method, [1])
    scores = score_one_benchmark(finished)

    ranks = scores.over_tasks("rank", LAST_TRIAL).mean

    assert scores.seed_numbers == (0, 1)
    assert ranks[scores.place("bo")] == 1 + 0.5 + 0.5
    assert ranks.sum() == pytest.approx(1 + 2 + 3)
