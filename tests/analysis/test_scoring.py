from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from reporting_support import made_up_trials

from hpobench_ordered.analysis.scoring import BenchmarkScores, runs_of_trials, score_benchmarks
from hpobench_ordered.protocols import parse_protocol_name

METHODS = ("bo", "random-search", "simple-ordered")


def results(seeds: int = 3, **changes: object) -> pd.DataFrame:
    """Random losses of three methods, as a store gives them."""
    options = {"protocol": "ordered(trials=12, tasks=None)", "trials": 12, "tasks": 4}
    return made_up_trials("x@1", methods=METHODS, seeds=seeds, **options).assign(**changes)


def scored(frame: pd.DataFrame, planned: pd.DataFrame | None = None) -> BenchmarkScores:
    (item,), unscored = score_benchmarks(frame, planned)
    assert unscored == []
    return item


def without(frame: pd.DataFrame, method: str, seeds: Sequence[int]) -> pd.DataFrame:
    """The results as if these runs had failed."""
    return frame[(frame["method"] != method) | ~frame["seed"].isin(seeds)]


def test_benchmarks_and_protocols_are_scored_separately():
    frame = results()
    scaled = results(benchmark="y@1", loss=5 * frame["loss"], regret=5 * frame["regret"])
    items, _ = score_benchmarks(pd.concat([frame, scaled, results(protocol="other()")]))
    assert {item.methods for item in items} == {("random-search", "bo", "simple-ordered")}
    found = [f"{item.label}, {parse_protocol_name(item.protocol)}" for item in items]
    assert found == ["x@1 (forest), ordered", "x@1 (forest), other", "y@1 (forest), ordered"]
    one, other = (items[place].measures["score"].values for place in (0, 2))
    np.testing.assert_allclose(one, other)


def test_first_ordered_task_does_not_count():
    """It has no history in ordered runs."""
    frame = results()
    assert scored(frame).over_tasks("value", 12).tasks == 3
    assert scored(results(protocol="leave-one-out()")).over_tasks("value", 12).tasks == 4
    assert scored(frame[frame["task"] == 0]).over_tasks("value", 12).tasks == 1
    later = scored(frame[frame["task"] > 0])  # such as the measured ones alone
    assert later.over_tasks("value", 12).tasks == 3
    np.testing.assert_allclose(
        later.over_tasks("value", 12).mean, scored(frame).over_tasks("value", 12).mean
    )


def test_measures_belong_to_best_trial():
    frame = results(protocol="adjustment()", value=lambda f: -2 * f["loss"])
    item = scored(frame)
    assert item.is_maximised
    runs = frame[frame["trial"] <= 10].groupby(["method", "seed", "task"])
    best = frame.loc[runs["loss"].idxmin()]
    for measure, column in (("value", "value"), ("simple_regret", "regret")):
        per_seed = best.groupby(["method", "seed"])[column].mean().unstack()
        computed = item.over_tasks(measure, 10)
        expected = per_seed.loc[list(item.methods)]
        np.testing.assert_allclose(computed.mean, expected.mean(axis=1))
        np.testing.assert_allclose(computed.two_standard_errors, 2 * expected.sem(axis=1))
    ranks = best.set_index(["method", "seed", "task"])["loss"].groupby(["seed", "task"]).rank()
    expected = ranks.groupby("method").mean()[list(item.methods)]
    np.testing.assert_allclose(item.over_tasks("rank", 10).mean, expected)


def test_regret_is_relative_to_worst_loss():
    frame = results()
    one = frame[(frame["method"] == "bo") & (frame["seed"] == 1) & (frame["task"] == 2)]
    best, worst = -0.5, frame.loc[frame["task"] == 2, "loss"].max()  # the regret is the loss + 0.5
    expected = (np.minimum.accumulate(one["loss"].to_numpy()) - best) / (worst - best)
    item = scored(frame)
    np.testing.assert_allclose(item.measures["regret"].values[1, 1, 2], expected)
    running = item.measures["regret_over_trials"].values[1, 1, 2]
    np.testing.assert_allclose(running, np.cumsum(expected) / np.arange(1, 13))


def test_failed_run_changes_no_other_mean():
    """Means are over all seeds that a method has, not over those that every method has."""
    frame = results(seeds=20)
    all_there, lacking = scored(frame), scored(without(frame, "bo", [3, 8, 11]))
    assert lacking.seed_numbers == tuple(range(20))
    others = [all_there.place(method) for method in ("random-search", "simple-ordered")]
    for measure in ("value", "simple_regret", "regret"):
        for kind in ("mean", "two_standard_errors"):
            one, other = (getattr(x.over_tasks(measure, 12), kind) for x in (all_there, lacking))
            np.testing.assert_array_equal(one[others], other[others])
    alone = scored(frame[(frame["method"] == "bo") & ~frame["seed"].isin([3, 8, 11])])
    bo = lacking.over_tasks("value", 12).mean[1]
    assert bo == pytest.approx(alone.over_tasks("value", 12).mean[0])
    assert lacking.notes() == ["bo has not finished seeds 3, 8, 11."]


def test_ranks_compare_on_common_seeds():
    frame = results(seeds=8)
    item = scored(without(frame, "bo", [0, 5]))
    best = frame.groupby(["method", "seed", "task"])["loss"].min().unstack("method")
    best = best[best.index.get_level_values("task") > 0]
    common = best[~best.index.get_level_values("seed").isin([0, 5])]
    expected = 1 + (best["random-search"] < best["simple-ordered"]).mean()
    expected += (common["bo"] < common["simple-ordered"]).mean()
    assert item.over_tasks("rank", 12).mean[2] == pytest.approx(expected)
    assert item.over_tasks("rank", 12).mean.sum() == pytest.approx(1 + 2 + 3)


def test_method_with_few_seeds_is_excluded():
    frame = results()
    item = scored(without(frame, "bo", [0, 2]), runs_of_trials(frame))
    assert item.methods == ("random-search", "simple-ordered")
    assert item.notes() == [
        "Not compared, with fewer than half of their runs finished: bo (1 of 3)."
    ]
    assert scored(without(frame, "bo", [2]), runs_of_trials(frame)).methods[1] == "bo"


@pytest.mark.parametrize("finished", [0, 1])
def test_excluded_method_changes_nothing(finished):
    frame = results()
    others, bad = frame[frame["method"] != "bo"], frame[frame["method"] == "bo"]
    never = runs_of_trials(bad).assign(method="worse", state="failed")
    more = [never.assign(seed=seed) for seed in range(20)]  # of more seeds than the others
    item = scored(
        pd.concat([others, bad[bad["seed"] < finished]]), pd.concat([runs_of_trials(frame), *more])
    )
    alone = scored(others)
    assert set(item.runs) - set(item.methods) == {"bo", "worse"}
    assert item.runs["worse"].failed == item.runs["worse"].planned > 0
    for name, scores in alone.measures.items():
        np.testing.assert_array_equal(item.measures[name].values, scores.values)


def test_score_needs_random_search():
    frame = results()
    item = scored(frame[frame["method"] != "random-search"])
    (note,) = item.notes()
    assert note.startswith("The score is not available: scores compare with")
    assert not item.is_defined("score")
    assert item.is_defined("regret")


def test_regrets_need_best_values():
    item = scored(results(regret=np.nan))
    undefined = {name for name in item.measures if not item.is_defined(name)}
    assert undefined == {"regret", "regret_over_trials", "simple_regret"}


def test_note_counts_tasks_without_regret():
    frame = results()
    frame.loc[frame["task"] == 2, "regret"] = np.nan
    item = scored(frame)
    assert item.notes() == ["1 task without a regret: no best value is known."]
    assert item.over_tasks("regret", 12).defined == 2


def test_note_counts_fallbacks():
    frame = results()
    is_run = (frame["method"] == "bo") & (frame["seed"] == 1) & (frame["task"] == 2)
    frame.loc[is_run & (frame["trial"] >= 5), "fallbacks"] = 2
    assert "bo fell back to 2 random suggestions." in scored(frame).notes()


def test_unfinished_benchmark_is_named():
    frame = results()
    other = runs_of_trials(results(benchmark="y@1")).assign(state="failed")
    _, unscored = score_benchmarks(frame, pd.concat([runs_of_trials(frame), other]))
    assert unscored == ["y@1 (forest), ordered, 12 trials: no run is finished."]


def test_methods_without_common_seed_are_ranked():
    frame = results()
    has_no_common_seed = (frame["method"] == "bo") ^ (frame["seed"] == 1)
    item = scored(frame[has_no_common_seed & (frame["seed"] < 2)])
    assert set(item.over_tasks("rank", 12).mean) == {1.5, 2.0} or item.seed_numbers == (0, 1)
