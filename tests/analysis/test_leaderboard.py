"""Leaderboards and verdicts over benchmarks, on made-up trials of three methods."""

import numpy as np
import pandas as pd
import pytest
from reporting_support import made_up_trials

from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup, count_all_wins
from hpobench_ordered.analysis.curves import attainment_curves, curves
from hpobench_ordered.analysis.leader_comparison import leader_differences
from hpobench_ordered.analysis.leaderboard import ALL, MEASURES, leaderboard
from hpobench_ordered.analysis.scoring import BenchmarkScores, runs_of_trials, score_benchmarks
from hpobench_ordered.analysis.verdict import (
    ComparedMethods,
    Verdict,
    final_verdicts,
    surrogate_agreement,
    verdicts,
)
from hpobench_ordered.errors import ExperimentError

METHODS = ("random-search", "bo", "cts")
"""Each is better than the one before, in the trials that are made up."""
LAST_TRIAL = 6


def make_trials(
    name: str, *, tasks: int = 3, seeds: int = 5, surrogate: str = "forest", entropy: int = 0
) -> pd.DataFrame:
    """Make up trials of METHODS on a benchmark; its name and `entropy` decide the numbers."""
    trials = made_up_trials(
        name,
        protocol=f"leave-one-out(trials={LAST_TRIAL})",
        trials=LAST_TRIAL,
        methods=METHODS,
        tasks=tasks,
        seeds=seeds,
        entropy=[entropy, *name.encode()],
    )
    return trials.assign(surrogate=surrogate)


def score_trials(*frames: pd.DataFrame) -> list[BenchmarkScores]:
    """Score the benchmarks of these tables of trials, one item a benchmark and surrogate."""
    scores, _ = score_benchmarks(pd.concat(frames))
    return scores


def find_last_verdict(scores: list[BenchmarkScores]) -> Verdict:
    """Find the verdict after the last trial; verdicts are in the order of trials."""
    return verdicts(scores)[-1]


@pytest.fixture(scope="module")
def eight_benchmarks():
    """Eight benchmarks, of one to eight tasks."""
    return score_trials(*(make_trials(f"b{number}@1", tasks=1 + number) for number in range(8)))


def select_overall_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Select the rows of means over all benchmarks, by method."""
    return table[table["benchmark"] == ALL].set_index("method")


def test_leaderboard_is_sorted_by_rank(eight_benchmarks):
    """The means over all benchmarks come first, then each benchmark."""
    table = leaderboard(eight_benchmarks)
    names = [f"b{number}@1" for number in range(8)]
    assert list(table["benchmark"].drop_duplicates()) == [ALL, *names]
    for _, rows in table.groupby(["benchmark"]):
        assert rows["rank"].is_monotonic_increasing


@pytest.mark.parametrize("measure", MEASURES)
def test_overall_rows_count_benchmarks_once(eight_benchmarks, measure):
    """Each of the benchmarks has the same weight, though they have one to eight tasks."""
    table = leaderboard(eight_benchmarks)
    overall = select_overall_rows(table)
    rows_of_benchmarks = table[table["benchmark"] != ALL]
    for method in METHODS:
        rows_of_method = rows_of_benchmarks[rows_of_benchmarks["method"] == method]
        expected = rows_of_method[measure].mean()
        assert overall.loc[method, measure] == pytest.approx(expected)
    assert (overall["benchmarks"] == 8).all()


def test_overall_rows_add_wins(eight_benchmarks):
    """Wins are summed over benchmarks; each win of a method is the loss of another one."""
    table = leaderboard(eight_benchmarks)
    wins_on_benchmarks = table.loc[table["benchmark"] != ALL, "wins"].sum()
    overall = select_overall_rows(table)
    assert overall["wins"].sum() == wins_on_benchmarks
    assert overall["losses"].sum() == wins_on_benchmarks


def test_surrogates_count_once_together():
    """The benchmark a, on two surrogates, has the same weight as b, on one."""
    a_on_forest = make_trials("a@1")
    a_on_nearest = make_trials("a@1", surrogate="nearest", entropy=1)
    b_on_forest = make_trials("b@1")

    table = leaderboard(score_trials(a_on_forest, a_on_nearest, b_on_forest))

    ranks = table.pivot_table(index="method", columns=["benchmark", "surrogate"], values="rank")
    ranks_on_a = (ranks["a@1", "forest"] + ranks["a@1", "nearest"]) / 2
    ranks_on_both = (ranks_on_a + ranks["b@1", "forest"]) / 2
    np.testing.assert_allclose(ranks[ALL, ""], ranks_on_both)


def test_ranks_of_group_are_among_its_methods():
    """The method cts, which was run on one benchmark alone, does not count in the others' ranks.

    The mean rank of M methods is (M + 1) / 2, and wins and losses are each other's.
    """
    a, b = make_trials("a@1"), make_trials("b@1").query("method != 'cts'")

    table = leaderboard(score_trials(a, b)).set_index(["benchmark", "method"])

    compared = table.loc[ALL].loc[["random-search", "bo"]]
    assert compared["rank"].mean() == pytest.approx((2 + 1) / 2)
    assert compared["wins"].sum() == compared["losses"].sum()
    assert np.isnan(table.loc[(ALL, "cts"), "rank"])
    assert table.loc[("a@1", "cts"), "rank"] < 2  # alone, the benchmark ranks all three


@pytest.fixture(scope="module")
def benchmarks_with_family():
    """Seven benchmarks of one to seven tasks, of which the first three are one family."""
    frames = [make_trials(f"b{number}@1", tasks=1 + number) for number in range(7)]
    # A benchmark of no family has the family "", or is left out.
    families = {"b0@1": "f", "b1@1": "f", "b2@1": "f", "b3@1": ""}
    scores, _ = score_benchmarks(pd.concat(frames), families=families)
    return scores


@pytest.mark.parametrize("measure", MEASURES)
def test_family_counts_once_in_means(benchmarks_with_family, measure):
    """The family has the same weight as each of the four other benchmarks."""
    table = leaderboard(benchmarks_with_family)
    means = table.pivot_table(index="method", columns="benchmark", values=measure)
    mean_of_family = means[["b0@1", "b1@1", "b2@1"]].mean(axis=1)
    sum_of_others = means[["b3@1", "b4@1", "b5@1", "b6@1"]].sum(axis=1)
    np.testing.assert_allclose(means[ALL], (mean_of_family + sum_of_others) / (1 + 4))


def test_verdict_counts_families_ahead(benchmarks_with_family):
    """Three of seven benchmarks are one family, so that there are five; cts leads on each.

    Whether it would on other families, too, is only tested with eight or more.
    """
    sentence = find_last_verdict(benchmarks_with_family).sentence
    assert "ahead of bo on 5 of 5 families" in sentence
    assert sentence.endswith("five families are too few to say so of others.")


def test_verdict_on_single_family_is_limited():
    """Seven benchmarks are one family; what holds on others is only tested with eight families."""
    frames = [make_trials(f"b{number}@1") for number in range(7)]
    families = {f"b{number}@1": "f" for number in range(7)}
    scores, _ = score_benchmarks(pd.concat(frames), families=families)
    sentence = find_last_verdict(scores).sentence
    assert sentence.endswith("a single family is too few to say so of others.")


@pytest.fixture(scope="module")
def benchmarks_one_left_out():
    """Benchmarks b0, b1 and b2 of one, two and three tasks; b1 is left out of means."""
    frames = [make_trials(f"b{number}@1", tasks=1 + number) for number in range(3)]
    reasons = {("b1@1", "forest"): "It is odd."}
    scores, _ = score_benchmarks(pd.concat(frames), left_out=reasons)
    return scores


@pytest.mark.slow
def test_left_out_benchmark_changes_no_mean(benchmarks_one_left_out):
    """Means and verdicts are those of the two other benchmarks alone."""
    first, _, last = benchmarks_one_left_out

    overall = select_overall_rows(leaderboard(benchmarks_one_left_out))

    pd.testing.assert_frame_equal(overall, select_overall_rows(leaderboard([first, last])))
    assert (overall["benchmarks"] == 2).all()
    assert verdicts(benchmarks_one_left_out) == verdicts([first, last])


def test_left_out_benchmark_says_why(benchmarks_one_left_out):
    _, left_out, _ = benchmarks_one_left_out
    first_note = left_out.notes()[0]
    assert first_note.endswith("leave it out. It is odd.")


@pytest.fixture
def scores_on_forest_and_nearest():
    """Scores on two surrogates of a benchmark, of which the forest is left out of means."""
    trials = pd.concat([make_trials("a@1"), make_trials("a@1", surrogate="nearest", entropy=1)])
    scores, _ = score_benchmarks(trials, left_out={("a@1", "forest"): "It is odd."})
    return scores


def test_left_out_surrogate_counts_in_no_mean(scores_on_forest_and_nearest):
    _, on_nearest = scores_on_forest_and_nearest
    assert BenchmarkGroup.for_means(scores_on_forest_and_nearest).items == (on_nearest,)


@pytest.mark.parametrize("method", METHODS)
def test_leaderboard_after_earlier_trial(eight_benchmarks, method):
    """The rank of a method on the fourth benchmark, after two of six trials."""
    scores_on_fourth = eight_benchmarks[3]

    table = leaderboard(eight_benchmarks, trial=2).set_index(["benchmark", "method"])

    mean_ranks = scores_on_fourth.over_tasks("rank", trial=2).mean
    expected = mean_ranks[scores_on_fourth.place(method)]
    assert table.loc[(scores_on_fourth.benchmark, method), "rank"] == expected
    assert (table["trial"] == 2).all()


@pytest.mark.parametrize("trial", [0, 7])
def test_trial_must_be_within_runs(eight_benchmarks, trial):
    with pytest.raises(ExperimentError, match=f"1 to {LAST_TRIAL}"):
        leaderboard(eight_benchmarks, trial=trial)


@pytest.mark.parametrize("measure", MEASURES)
def test_curves_agree_with_leaderboard(eight_benchmarks, measure):
    """Curves after five trials have the means of the leaderboard, and the ends of intervals."""
    table = leaderboard(eight_benchmarks, trial=5).set_index(["benchmark", "method"])
    points = curves(eight_benchmarks, measures=[measure])
    over_all_tasks = ""
    points = points[(points["task"] == over_all_tasks) & (points["trial"] == 5)]

    assert len(points) == len(table)
    for point in points.itertuples():
        row = table.loc[(point.benchmark, point.method)]
        expected = [row[measure], row[f"{measure}_low"], row[f"{measure}_high"]]
        np.testing.assert_allclose([point.mean, point.low, point.high], expected)


def score_eight_benchmarks(finished_runs: str) -> BenchmarkGroup:
    """Score the runs on eight benchmarks for which a condition on `method` and `seed` holds."""
    trials = pd.concat([make_trials(f"b{number}@1") for number in range(8)])
    group = BenchmarkGroup.for_means(score_trials(trials.query(finished_runs)))
    assert group.methods == METHODS  # in the order that the rows and columns below have
    return group


@pytest.fixture(scope="module")
def group_with_failed_seed():
    """Eight benchmarks, on all of which cts failed with seed 1."""
    return score_eight_benchmarks(finished_runs="method != 'cts' or seed != 1")


@pytest.fixture(scope="module")
def group_without_seed():
    """The same eight benchmarks, as they would be if no method had been run with seed 1."""
    return score_eight_benchmarks(finished_runs="seed != 1")


def test_wins_are_counted_on_common_seeds(group_with_failed_seed, group_without_seed):
    """Wins of cts, which failed with seed 1, are counted as if no method had that seed."""
    wins = count_all_wins(group_with_failed_seed).wins
    expected = count_all_wins(group_without_seed).wins
    cts = METHODS.index("cts")
    np.testing.assert_array_equal(wins[cts], expected[cts])


@pytest.fixture(scope="module")
def leaderboard_with_failures():
    """The leaderboard of two benchmarks, by benchmark and method.

    On b@1 the method bo failed with all but one of five seeds. All other runs took a second for ten
    suggestions.
    """
    trials = pd.concat([make_trials("a@1"), make_trials("b@1")])
    runs = runs_of_trials(trials)
    failed_run = "method == 'bo' and benchmark == 'b@1' and seed > 0"
    has_failed = runs.eval(failed_run)
    runs.loc[has_failed, "state"] = "failed"
    times = runs[~has_failed].assign(suggestions=10, method_cpu_seconds=1.0)

    finished_trials = trials[~trials.eval(failed_run)]
    scores, _ = score_benchmarks(finished_trials, runs, times)
    return leaderboard(scores).set_index(["benchmark", "method"])


def test_partly_failed_method_has_no_overall_mean(leaderboard_with_failures):
    """The method bo has no mean on b@1, and so none over both benchmarks: it comes last."""
    overall = leaderboard_with_failures.loc[ALL]
    last_method = overall.index[-1]
    assert last_method == "bo"
    assert np.isnan(overall.loc["bo", "rank"])
    assert overall.loc["bo", "wins"] is pd.NA
    assert leaderboard_with_failures.loc[("a@1", "bo"), "rank"] > 0


def test_overall_row_counts_failed_runs(leaderboard_with_failures):
    """Of ten runs of bo, with five seeds on two benchmarks, four failed and have no times."""
    row_of_bo = leaderboard_with_failures.loc[ALL].loc["bo"]
    assert row_of_bo["runs"] == 2 * 5
    assert row_of_bo["failed"] == 4
    assert row_of_bo["benchmarks"] == 2  # on which bo was run
    assert row_of_bo["seeds"] == 1  # on b@1, where bo has the fewest
    seconds_of_suggestion = 1.0 / 10
    assert row_of_bo["seconds"] == pytest.approx(seconds_of_suggestion)


def test_verdicts_are_of_two_trials(eight_benchmarks):
    """Verdicts are after the first, the tenth and the last trial; these runs have only six."""
    trials_of_verdicts = [verdict.trial for verdict in verdicts(eight_benchmarks)]
    assert trials_of_verdicts == [1, LAST_TRIAL]


def test_leader_is_better_on_these_benchmarks(eight_benchmarks):
    """The trials are made up so that cts is the best of the three methods."""
    verdict = find_last_verdict(eight_benchmarks)
    expected = ComparedMethods(better_than=("bo", "random-search"), not_told_apart=())
    assert verdict.leaders == ("cts",)
    assert verdict.on_these == expected


def test_verdict_answers_both_questions(eight_benchmarks):
    """The sentence says whether the leader is better here, and on other benchmarks like these."""
    sentence = find_last_verdict(eight_benchmarks).sentence
    assert sentence.startswith("After 6 trials cts leads: mean rank ")
    assert (
        "On these 8 benchmarks it is better than the two others (5 % for all together)" in sentence
    )
    assert "on others, of which these 8 benchmarks are samples, it is better than" in sentence


def test_chance_gives_no_significant_difference():
    """One of three methods leads by chance, as all their losses are random."""
    rng = np.random.default_rng(0)
    frames = []
    for number in range(6):
        trials = make_trials(f"b{number}@1")
        random_losses = rng.random(len(trials))
        frames.append(trials.assign(loss=random_losses))

    verdict = find_last_verdict(score_trials(*frames))

    assert len(verdict.leaders) == 1
    assert "it is not told apart from the two others" in verdict.sentence


def make_verdict_on_two_methods(*, mean_rank: float, next_rank: float) -> Verdict:
    """Make a verdict on two methods on one benchmark, without tests."""
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


@pytest.mark.parametrize(
    ("next_rank", "text"),
    [(1.44, "mean rank 1.42; next bo, 1.44"), (1.58, "mean rank 1.4; next bo, 1.6")],
)
def test_close_ranks_have_two_decimals(next_rank, text):
    verdict = make_verdict_on_two_methods(mean_rank=1.42, next_rank=next_rank)
    assert text in verdict.sentence


def test_final_verdict_is_after_chosen_trial(eight_benchmarks):
    (verdict,) = final_verdicts(eight_benchmarks, trial=2)
    assert verdict.trial == 2


def test_differences_from_leader_are_those_of_leaderboard(benchmarks_with_family):
    """The difference of a method is its mean rank less that of cts, which leads."""
    frame = leader_differences(BenchmarkGroup.for_means(benchmarks_with_family))
    ranks = select_overall_rows(leaderboard(benchmarks_with_family))["rank"]
    assert set(frame["method"]) == {"random-search", "bo"}
    for row in frame.itertuples():
        assert row.mean_difference == pytest.approx(ranks[row.method] - ranks["cts"])


def test_equal_methods_share_rank():
    """All three methods have the same losses in all trials."""
    frames = []
    for number in range(6):
        trials = make_trials(f"b{number}@1")
        frames.append(trials.assign(loss=1.0, value=1.0, regret=1.0))
    verdict = find_last_verdict(score_trials(*frames))
    assert verdict.sentence == "After 6 trials all 3 methods share the mean rank."


def test_surrogates_may_disagree():
    """On one surrogate of a@1 cts is the best of three methods, on the other one the worst.

    The benchmark b@1 has a single surrogate, with which nothing can be compared.
    """
    forest = make_trials("a@1", seeds=8)
    # Negated losses turn the order of methods round. Regrets are losses and a constant.
    negated = -forest["loss"]
    opposite = forest.assign(surrogate="nearest", loss=negated, regret=negated + 2)
    with_one_surrogate = make_trials("b@1")

    agreement = surrogate_agreement(score_trials(forest, opposite, with_one_surrogate))

    places_of_cts = agreement[agreement["method"] == "cts"].set_index("surrogate")["place"]
    assert places_of_cts.to_dict() == {"forest": 1, "nearest": 3}
    assert not agreement["is_same"].any()
    assert set(agreement["benchmark"]) == {"a@1"}


def test_last_run_attains_worst_regret():
    """The level that all runs of a method attain is the regret of the worst of them."""
    (scores,) = score_trials(make_trials("a@1"))

    levels = attainment_curves([scores], fractions=(0.5, 1.0))

    is_of_all_runs = (levels["trial"] == LAST_TRIAL) & (levels["fraction"] == 1)
    level_of_method = levels[is_of_all_runs].set_index("method")["level"]
    last_regrets = scores.measures["regret"].values[..., -1]  # (methods, seeds, tasks)
    worst_regrets = last_regrets.max(axis=(1, 2))
    assert level_of_method[list(scores.methods)].tolist() == worst_regrets.tolist()


@pytest.mark.parametrize("compute", [leaderboard, curves, attainment_curves, verdicts])
def test_no_results_give_nothing(compute):
    assert len(compute([])) == 0


def test_single_method_is_not_compared():
    (alone,) = score_trials(make_trials("a@1").query("method == 'bo'"))
    assert len(leaderboard([alone])) == 2  # overall, and on its benchmark
    assert verdicts([alone]) == []


def test_runs_without_cpu_time_do_not_dilute_times():
    """One run of each method took a second for ten suggestions; times of the others are unknown."""
    times = runs_of_trials(make_trials("a@1")).assign(suggestions=10, method_cpu_seconds=1.0)
    times.loc[times["seed"] > 0, "method_cpu_seconds"] = np.nan
    scores, _ = score_benchmarks(make_trials("a@1"), None, times)
    seconds_of_suggestion = leaderboard(scores)["seconds"]
    np.testing.assert_allclose(seconds_of_suggestion, 1 / 10)
