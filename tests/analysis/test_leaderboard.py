import numpy as np
import pandas as pd
import pytest
from reporting_support import made_up_trials

from hpobench_ordered.analysis.benchmark_group import (
    BenchmarkGroup,
    Unit,
    compare_pairs,
    count_all_wins,
    rank_and_compare,
)
from hpobench_ordered.analysis.curves import attainment_curves, curves
from hpobench_ordered.analysis.leader_comparison import leader_differences
from hpobench_ordered.analysis.leaderboard import ALL, MEASURES, leaderboard
from hpobench_ordered.analysis.scoring import BenchmarkScores, runs_of_trials, score_benchmarks
from hpobench_ordered.analysis.significance import pairwise_wilcoxon
from hpobench_ordered.analysis.verdict import (
    ComparedMethods,
    Verdict,
    final_verdicts,
    surrogate_agreement,
    verdicts,
)
from hpobench_ordered.errors import ExperimentError

BETTER = ("random-search", "bo", "cts")
"""Each is better than the one before."""


def trials_on(
    name: str, *, tasks: int = 3, seeds: int = 5, surrogate: str = "forest", entropy: int = 0
) -> pd.DataFrame:
    """Trials of the methods on a benchmark; its name and `entropy` decide the numbers."""
    trials = made_up_trials(
        name,
        protocol="leave-one-out(trials=6)",
        methods=BETTER,
        tasks=tasks,
        seeds=seeds,
        entropy=[entropy, *name.encode()],
    )
    return trials.assign(surrogate=surrogate)


def scores_of(*frames: pd.DataFrame) -> list[BenchmarkScores]:
    return score_benchmarks(pd.concat(frames))[0]


@pytest.fixture(scope="module")
def eight_benchmarks():
    """Eight benchmarks, of one to eight tasks."""
    return scores_of(*(trials_on(f"b{number}@1", tasks=1 + number) for number in range(8)))


def overall_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of the means over all benchmarks, by method."""
    return table[table["benchmark"] == ALL].set_index("method")


def test_leaderboard_is_sorted_by_rank(eight_benchmarks):
    table = leaderboard(eight_benchmarks)
    assert list(table["benchmark"].drop_duplicates()) == [ALL, *(f"b{k}@1" for k in range(8))]
    for _, rows in table.groupby(["benchmark"]):
        assert rows["rank"].is_monotonic_increasing


@pytest.mark.parametrize("measure", MEASURES)
def test_overall_rows_count_benchmarks_once(eight_benchmarks, measure):
    table = leaderboard(eight_benchmarks)
    by_method = table[table["benchmark"] != ALL].groupby("method")
    overall = overall_rows(table).loc[sorted(BETTER)]
    np.testing.assert_allclose(overall[measure], by_method[measure].mean())
    assert overall[measure].between(overall[f"{measure}_low"], overall[f"{measure}_high"]).all()
    assert (overall["benchmarks"] == 8).all()


def test_overall_rows_add_wins(eight_benchmarks):
    table = leaderboard(eight_benchmarks)
    wins_on_benchmarks = table.loc[table["benchmark"] != ALL, "wins"].sum()
    overall = overall_rows(table)
    assert overall["wins"].sum() == overall["losses"].sum() == wins_on_benchmarks


def test_surrogates_count_once_together():
    frames = [trials_on("a@1"), trials_on("a@1", surrogate="nearest", entropy=1), trials_on("b@1")]
    table = leaderboard(scores_of(*frames))
    ranks = table.pivot_table(index="method", columns=["benchmark", "surrogate"], values="rank")
    ranks_on_a = (ranks["a@1", "forest"] + ranks["a@1", "nearest"]) / 2
    np.testing.assert_allclose(ranks[ALL, ""], (ranks_on_a + ranks["b@1", "forest"]) / 2)


@pytest.fixture(scope="module")
def benchmarks_with_family():
    """Seven benchmarks of one to seven tasks, of which the first three are one family."""
    frames = [trials_on(f"b{number}@1", tasks=1 + number) for number in range(7)]
    families = {"b0@1": "f", "b1@1": "f", "b2@1": "f", "b3@1": ""}
    return score_benchmarks(pd.concat(frames), families=families)[0]


@pytest.mark.parametrize("measure", MEASURES)
def test_family_counts_once_in_means(benchmarks_with_family, measure):
    table = leaderboard(benchmarks_with_family)
    means = table.pivot_table(index="method", columns="benchmark", values=measure)
    mean_of_family = means[["b0@1", "b1@1", "b2@1"]].mean(axis=1)
    sum_of_others = means[["b3@1", "b4@1", "b5@1", "b6@1"]].sum(axis=1)
    np.testing.assert_allclose(means[ALL], (mean_of_family + sum_of_others) / 5)


def test_leaderboard_counts_benchmarks_and_families(benchmarks_with_family):
    overall = overall_rows(leaderboard(benchmarks_with_family))
    assert (overall["benchmarks"] == 7).all()
    assert (overall["families"] == 5).all()


def test_family_counts_once_in_tests(benchmarks_with_family):
    ranking = rank_and_compare(BenchmarkGroup.for_means(benchmarks_with_family))
    assert ranking is not None
    assert ranking.samples == 5
    ranks = overall_rows(leaderboard(benchmarks_with_family))["rank"]
    np.testing.assert_allclose(ranking.mean_ranks, ranks.loc[list(ranking.methods)])


def test_every_task_of_family_is_sample(benchmarks_with_family):
    group = BenchmarkGroup.for_means(benchmarks_with_family)
    last_trial = 6
    assert len(group.samples(Unit.TASKS, last_trial)) == 1 + 2 + 3 + 4 + 5 + 6 + 7


def test_verdict_counts_families_ahead(benchmarks_with_family):
    sentence = verdicts(benchmarks_with_family)[-1].sentence
    assert "ahead of it on 5 of 5 families" in sentence
    assert sentence.endswith("five families are too few to say so of others.")


def test_verdict_on_single_family_is_limited():
    frames = [trials_on(f"b{number}@1") for number in range(7)]
    families = {f"b{number}@1": "f" for number in range(7)}
    scores, _ = score_benchmarks(pd.concat(frames), families=families)
    sentence = verdicts(scores)[-1].sentence
    assert sentence.endswith("a single family is too few to say so of others.")


@pytest.fixture(scope="module")
def benchmarks_one_left_out():
    """Three benchmarks, of which the second is left out of means."""
    # The benchmarks b0, b1 and b2 have 1, 2 and 3 tasks.
    frames = [trials_on(f"b{number}@1", tasks=1 + number) for number in range(3)]
    return score_benchmarks(pd.concat(frames), left_out={("b1@1", "forest"): "It is odd."})[0]


@pytest.mark.slow
def test_left_out_benchmark_changes_no_mean(benchmarks_one_left_out):
    overall = overall_rows(leaderboard(benchmarks_one_left_out))
    counting = [benchmarks_one_left_out[0], benchmarks_one_left_out[2]]
    pd.testing.assert_frame_equal(overall, overall_rows(leaderboard(counting)))
    assert (overall["benchmarks"] == 2).all()
    assert verdicts(benchmarks_one_left_out) == verdicts(counting)


@pytest.mark.slow
def test_left_out_benchmark_changes_no_curve(benchmarks_one_left_out):
    shown = curves(benchmarks_one_left_out)
    expected = curves([benchmarks_one_left_out[0], benchmarks_one_left_out[2]])
    np.testing.assert_array_equal(
        shown.loc[shown["benchmark"].astype(str) == ALL, "mean"],
        expected.loc[expected["benchmark"].astype(str) == ALL, "mean"],
    )
    assert "b1@1" in set(shown["benchmark"])


@pytest.mark.slow
def test_left_out_benchmark_is_shown_alone(benchmarks_one_left_out):
    """The second of three benchmarks, b1, is left out of means over benchmarks."""
    table = leaderboard(benchmarks_one_left_out)
    of_benchmark_alone = leaderboard(scores_of(trials_on("b1@1", tasks=2)))
    pd.testing.assert_frame_equal(
        table[table["benchmark"] == "b1@1"].reset_index(drop=True),
        of_benchmark_alone[of_benchmark_alone["benchmark"] == "b1@1"].reset_index(drop=True),
    )


def test_left_out_benchmark_says_why(benchmarks_one_left_out):
    assert benchmarks_one_left_out[1].notes()[0].endswith("leave it out. It is odd.")


def test_single_left_out_benchmark_counts():
    trials = trials_on("a@1")
    left_out, _ = score_benchmarks(trials, left_out={("a@1", "forest"): "It is odd."})
    pd.testing.assert_frame_equal(leaderboard(left_out), leaderboard(scores_of(trials)))


def test_left_out_surrogate_still_agrees():
    """A surrogate left out of means is still compared with the others."""
    trials = pd.concat([trials_on("a@1"), trials_on("a@1", surrogate="nearest", entropy=1)])
    scores, _ = score_benchmarks(trials, left_out={("a@1", "forest"): "It is odd."})
    assert set(surrogate_agreement(scores)["surrogate"]) == {"forest", "nearest"}
    assert BenchmarkGroup.for_means(scores).items == (scores[1],)


@pytest.mark.parametrize("method", BETTER)
def test_leaderboard_after_earlier_trial(eight_benchmarks, method):
    item = eight_benchmarks[3]
    table = leaderboard(eight_benchmarks, trial=2).set_index(["benchmark", "method"])
    mean_ranks = item.over_tasks("rank", 2).mean
    assert table.loc[(item.benchmark, method), "rank"] == mean_ranks[item.place(method)]
    assert (table["trial"] == 2).all()


@pytest.mark.parametrize("trial", [0, 7])
def test_trial_must_be_within_runs(eight_benchmarks, trial):
    with pytest.raises(ExperimentError, match="1 to 6"):
        leaderboard(eight_benchmarks, trial=trial)


@pytest.mark.parametrize("measure", MEASURES)
def test_curves_agree_with_leaderboard(eight_benchmarks, measure):
    table = leaderboard(eight_benchmarks, trial=5).set_index(["benchmark", "method"]).sort_index()
    points = curves(eight_benchmarks, measures=[measure]).query("task == '' and trial == 5")
    points = points.astype({"benchmark": str, "method": str})
    points = points.set_index(["benchmark", "method"]).sort_index()
    np.testing.assert_allclose(
        points[["mean", "low", "high"]], table[[measure, f"{measure}_low", f"{measure}_high"]]
    )


def test_critical_differences_agree_with_leaderboard(eight_benchmarks):
    ranking = rank_and_compare(BenchmarkGroup.for_means(eight_benchmarks), trial=5)
    assert ranking is not None
    ranks = overall_rows(leaderboard(eight_benchmarks, trial=5))["rank"]
    np.testing.assert_allclose(ranking.mean_ranks, ranks.loc[list(ranking.methods)])


def test_samples_of_tests_are_benchmarks(eight_benchmarks):
    test = compare_pairs(BenchmarkGroup.for_means(eight_benchmarks))
    assert test is not None
    assert test.samples == 8
    regrets = np.stack([item.over_tasks("regret", 6).mean for item in eight_benchmarks])
    expected = pairwise_wilcoxon(regrets, test.methods)
    np.testing.assert_array_equal(test.adjusted, expected.adjusted)


def test_samples_of_tests_can_be_tasks(eight_benchmarks):
    test = compare_pairs(BenchmarkGroup.for_means(eight_benchmarks), unit=Unit.TASKS)
    assert test is not None
    assert test.samples == 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8


@pytest.fixture(scope="module")
def group_with_failed_seed():
    """Eight benchmarks, on all of which cts failed with seed 1."""
    trials = pd.concat([trials_on(f"b{number}@1") for number in range(8)])
    return BenchmarkGroup.for_means(scores_of(trials.query("method != 'cts' or seed != 1")))


def test_failed_runs_change_no_other_comparison(group_with_failed_seed):
    trials = pd.concat([trials_on(f"b{number}@1") for number in range(8)])
    complete = BenchmarkGroup.for_means(scores_of(trials))

    test = compare_pairs(group_with_failed_seed)
    expected = compare_pairs(complete)

    assert test is not None
    assert expected is not None
    assert test.p_values[0, 1] == expected.p_values[0, 1]
    # Methods 0 and 1 are random search and bo; method 2, cts, has failed.
    wins = count_all_wins(group_with_failed_seed).wins
    assert wins[0, 1] == count_all_wins(complete).wins[0, 1]


def test_pairs_are_compared_on_common_seeds(group_with_failed_seed):
    trials = pd.concat([trials_on(f"b{number}@1") for number in range(8)])
    common = BenchmarkGroup.for_means(scores_of(trials.query("seed != 1")))

    test = compare_pairs(group_with_failed_seed)
    expected = compare_pairs(common)

    assert test is not None
    assert expected is not None
    # Method 2 is cts, which failed.
    # The worst loss met, which regrets are relative to, may be one of the left out seed.
    assert test.p_values[0, 2] == pytest.approx(expected.p_values[0, 2], abs=0.1)
    wins = count_all_wins(group_with_failed_seed).wins
    np.testing.assert_array_equal(wins[2], count_all_wins(common).wins[2])


def test_partly_failed_method_has_no_mean():
    """bo failed with all seeds but one on b@1, so that its mean over both is undefined."""
    trials = pd.concat([trials_on("a@1"), trials_on("b@1")])
    runs = runs_of_trials(trials)
    is_bad_run = "method == 'bo' and benchmark == 'b@1' and seed > 0"
    has_failed = runs.eval(is_bad_run)
    runs.loc[has_failed, "state"] = "failed"
    times = runs[~has_failed].assign(suggestions=10, method_cpu_seconds=1.0)

    scores, _ = score_benchmarks(trials[~trials.eval(is_bad_run)], runs, times)
    table = leaderboard(scores).set_index(["benchmark", "method"])

    last = table.loc[ALL].iloc[-1]
    assert last.name == "bo"
    assert np.isnan(last["rank"])
    assert last["wins"] is pd.NA
    runs_on_both, failed_on_b, benchmarks_with_mean = 2 * 5, 4, 1
    counts = (last["runs"], last["failed"], last["benchmarks"])
    assert counts == (runs_on_both, failed_on_b, benchmarks_with_mean)
    assert last["seconds"] == pytest.approx(1.0 / 10)  # of method time for each suggestion
    assert table.loc[("a@1", "bo"), "rank"] > 0


def test_verdicts_are_of_two_trials(eight_benchmarks):
    first_trial, last_trial = 1, 6
    assert [verdict.trial for verdict in verdicts(eight_benchmarks)] == [first_trial, last_trial]


def test_leader_is_better_on_these_benchmarks(eight_benchmarks):
    verdict = verdicts(eight_benchmarks)[-1]
    assert verdict.leaders == ("cts",)
    assert verdict.on_these == ComparedMethods(("bo", "random-search"), ())


def test_verdict_says_both_questions(eight_benchmarks):
    sentence = verdicts(eight_benchmarks)[-1].sentence
    assert sentence.startswith("After 6 trials cts leads: mean rank ")
    assert (
        "On these 8 benchmarks it is better than the two others (5 % for all together)" in sentence
    )
    assert "on others, of which these 8 benchmarks are samples, it is better than" in sentence


def test_few_families_have_no_test(eight_benchmarks):
    """A test needs eight families; a benchmark without one counts as its own."""
    verdict = verdicts(eight_benchmarks[:7])[-1]
    assert verdict.on_others is None
    assert verdict.sentence.endswith("seven benchmarks are too few to say so of others.")


def test_chance_gives_no_significant_difference():
    rng = np.random.default_rng(0)
    frames = []
    for number in range(6):
        trials = trials_on(f"b{number}@1")
        frames.append(trials.assign(loss=rng.random(len(trials))))
    verdict = verdicts(scores_of(*frames))[-1]
    assert "it is not told apart from the two others" in verdict.sentence


def verdict_of_two(*, mean_rank: float, next_rank: float) -> Verdict:
    """A verdict on two methods on one benchmark, without tests."""
    return Verdict(
        protocol="ordered(trials=6)",
        trial=6,
        leaders=("cts",),
        mean_rank=mean_rank,
        interval=(np.nan, np.nan),
        methods=2,
        benchmarks=1,
        families=1,
        next_method="bo",
        next_rank=next_rank,
    )


def test_close_ranks_have_two_decimals():
    verdict = verdict_of_two(mean_rank=1.42, next_rank=1.44)
    assert "mean rank 1.42; next bo, 1.44" in verdict.sentence


def test_other_ranks_have_one_decimal():
    verdict = verdict_of_two(mean_rank=1.42, next_rank=1.58)
    assert "mean rank 1.4; next bo, 1.6" in verdict.sentence


def test_final_verdict_is_after_last_trial(eight_benchmarks):
    assert final_verdicts(eight_benchmarks) == verdicts(eight_benchmarks)[-1:]


def test_final_verdict_is_after_chosen_trial(eight_benchmarks):
    (verdict,) = final_verdicts(eight_benchmarks, trial=2)
    assert verdict.trial == 2


def test_differences_from_leader_are_those_of_leaderboard(benchmarks_with_family):
    frame = leader_differences(BenchmarkGroup.for_means(benchmarks_with_family))
    ranks = overall_rows(leaderboard(benchmarks_with_family))["rank"]
    of_methods = frame.drop_duplicates("method").set_index("method")["mean_difference"]
    np.testing.assert_allclose(of_methods, (ranks - ranks["cts"])[of_methods.index])


def test_differences_of_families_average_to_theirs(benchmarks_with_family):
    frame = leader_differences(BenchmarkGroup.for_means(benchmarks_with_family))
    by_method = frame.groupby("method")
    expected = by_method["mean_difference"].first()
    np.testing.assert_allclose(by_method["difference"].mean(), expected)


def test_equal_methods_share_rank():
    frames = [trials_on(f"b{n}@1").assign(loss=1.0, value=1.0, regret=1.0) for n in range(6)]
    verdict = verdicts(scores_of(*frames))[-1]
    assert verdict.sentence == "After 6 trials all 3 methods share the mean rank."


def test_surrogates_may_disagree():
    forest = trials_on("a@1", seeds=8)  # "cts" is the best of three methods
    opposite = forest.assign(surrogate="nearest", loss=-forest["loss"], regret=2 - forest["loss"])
    agreement = surrogate_agreement(scores_of(forest, opposite, trials_on("b@1")))
    places = agreement.pivot_table(index="method", columns="surrogate", values="place")
    assert set(agreement["benchmark"]) == {"a@1"}  # the other has one surrogate
    assert not agreement["is_same"].any()
    assert places.loc["cts"].to_dict() == {"forest": 1, "nearest": 3}


def test_equal_surrogates_agree():
    forest = trials_on("a@1", seeds=8)
    agreement = surrogate_agreement(scores_of(forest, forest.assign(surrogate="nearest")))
    assert agreement["is_same"].all()


def test_last_run_attains_worst_regret():
    (item,) = scores_of(trials_on("a@1"))
    levels = attainment_curves([item], fractions=(0.5, 1.0))
    last_levels = levels.query("trial == 6 and fraction == 1").set_index("method")["level"]
    worst_regrets = item.measures["regret"].values[..., 5].max(axis=(1, 2))
    assert last_levels[list(item.methods)].tolist() == worst_regrets.tolist()


@pytest.mark.parametrize("compute", [leaderboard, curves, attainment_curves, verdicts])
def test_no_results_give_nothing(compute):
    assert len(compute([])) == 0


def test_single_method_is_not_compared():
    (alone,) = scores_of(trials_on("a@1").query("method == 'bo'"))
    assert len(leaderboard([alone])) == 2  # overall, and on its benchmark
    assert rank_and_compare(BenchmarkGroup.for_means([alone])) is None


def test_runs_without_cpu_time_do_not_dilute_times():
    """A run of each method has a known time, 10 suggestions in a second, the others have none."""
    times = runs_of_trials(trials_on("a@1")).assign(suggestions=10, method_cpu_seconds=1.0)
    times.loc[times["seed"] > 0, "method_cpu_seconds"] = np.nan
    scores, _ = score_benchmarks(trials_on("a@1"), None, times)
    np.testing.assert_allclose(leaderboard(scores)["seconds"], 0.1)


def test_unknown_times_stay_unknown():
    """Times are known on a@1 alone: 10 suggestions in a second."""
    trials = pd.concat([trials_on("a@1"), trials_on("b@1")])
    times = runs_of_trials(trials_on("a@1")).assign(suggestions=10, method_cpu_seconds=1.0)
    scores, _ = score_benchmarks(trials, None, times)
    seconds = leaderboard(scores).set_index("benchmark")["seconds"]
    np.testing.assert_allclose(seconds[[ALL, "a@1"]], 1 / 10)
    assert seconds["b@1"].isna().all()
