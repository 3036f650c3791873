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


def test_first_ordered_task_does_not_count():
    """Under the ordered protocol the first of four tasks has no history; under others it has."""
    ordered = score_one_benchmark(make_trials())
    leave_one_out = score_one_benchmark(make_trials(protocol="leave-one-out()"))
    assert ordered.over_tasks("value", LAST_TRIAL).tasks == 3
    assert leave_one_out.over_tasks("value", LAST_TRIAL).tasks == 4


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
