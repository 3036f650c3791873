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
from hpobench_ordered.analysis.leaderboard import ALL, MEASURES, leaderboard
from hpobench_ordered.analysis.scoring import BenchmarkScores, runs_of_trials, score_benchmarks
from hpobench_ordered.analysis.significance import pairwise_wilcoxon
from hpobench_ordered.analysis.verdict import surrogate_agreement, verdicts
from hpobench_ordered.errors import ExperimentError

BETTER = ("random-search", "bo", "cts")
"""Each is better than the one before."""


def frame(
    name: str, *, tasks: int = 3, seeds: int = 5, surrogate: str = "forest", entropy: int = 0
) -> pd.DataFrame:
    options = {"protocol": "leave-one-out(trials=6)", "tasks": tasks, "seeds": seeds}
    made = made_up_trials(name, methods=BETTER, entropy=[entropy, *name.encode()], **options)
    return made.assign(surrogate=surrogate)


def scores_of(*frames: pd.DataFrame) -> list[BenchmarkScores]:
    return score_benchmarks(pd.concat(frames))[0]


@pytest.fixture(scope="module")
def several():
    """Eight benchmarks of different numbers of tasks."""
    return scores_of(*(frame(f"b{place}@1", tasks=1 + place) for place in range(8)))


def test_overall_rows_count_benchmarks_once(several):
    table = leaderboard(several)
    assert list(table["benchmark"].drop_duplicates()) == [ALL, *(f"b{k}@1" for k in range(8))]
    for _, group in table.groupby(["benchmark"]):
        assert group["rank"].is_monotonic_increasing
    by_benchmark = table[table["benchmark"] != ALL].groupby("method")
    overall = table[table["benchmark"] == ALL].set_index("method").loc[sorted(BETTER)]
    for measure in MEASURES:
        np.testing.assert_allclose(overall[measure], by_benchmark[measure].mean())
        assert overall[measure].between(overall[f"{measure}_low"], overall[f"{measure}_high"]).all()
    assert overall["wins"].sum() == overall["losses"].sum() == by_benchmark["wins"].sum().sum()
    assert (overall["benchmarks"] == 8).all()


def test_surrogates_count_once_together():
    one, other = frame("a@1"), frame("a@1", surrogate="nearest", entropy=1)
    table = leaderboard(scores_of(one, other, frame("b@1")))
    means = table.pivot_table(index="method", columns=["benchmark", "surrogate"], values="rank")
    expected = ((means["a@1", "forest"] + means["a@1", "nearest"]) / 2 + means["b@1", "forest"]) / 2
    np.testing.assert_allclose(means[ALL, ""], expected)


@pytest.fixture(scope="module")
def with_family():
    """Seven benchmarks, of which the first three are one family."""
    frames = [frame(f"b{number}@1", tasks=1 + number) for number in range(7)]
    families = {"b0@1": "f", "b1@1": "f", "b2@1": "f", "b3@1": ""}
    return score_benchmarks(pd.concat(frames), families=families)[0]


def test_family_counts_once_in_means(with_family):
    table = leaderboard(with_family)
    means = table.pivot_table(index="method", columns="benchmark", values=list(MEASURES))
    for measure in MEASURES:
        of_family = means[measure][["b0@1", "b1@1", "b2@1"]].mean(axis=1)
        others = means[measure][[f"b{place}@1" for place in (3, 4, 5, 6)]].sum(axis=1)
        np.testing.assert_allclose(means[measure][ALL], (of_family + others) / 5)
    overall = table[table["benchmark"] == ALL]
    assert (overall["benchmarks"] == 7).all() and (overall["families"] == 5).all()


def test_family_counts_once_in_tests(with_family):
    group = BenchmarkGroup.for_means(with_family)
    ranking = rank_and_compare(group)
    assert ranking is not None and ranking.samples == 5
    table = leaderboard(with_family)
    ranks = table[table["benchmark"] == ALL].set_index("method")["rank"]
    np.testing.assert_allclose(ranking.mean_ranks, ranks.loc[list(ranking.methods)])
    assert len(group.samples(Unit.TASKS, 6)) == sum(range(1, 8))


def test_verdict_says_that_families_count_once(with_family):
    sentence = verdicts(with_family)[-1].sentence
    assert "over 7 benchmarks, each of 5 families counting once" in sentence


def test_single_family_says_nothing_of_others():
    frames = [frame(f"b{number}@1") for number in range(7)]
    families = {f"b{number}@1": "f" for number in range(7)}
    scores, _ = score_benchmarks(pd.concat(frames), families=families)
    assert "on 7 benchmarks of one family: this says nothing" in verdicts(scores)[-1].sentence


@pytest.mark.slow
def test_left_out_benchmark_is_shown_alone():
    frames = [frame(f"b{place}@1", tasks=1 + place) for place in range(3)]
    scores, _ = score_benchmarks(pd.concat(frames), left_out={("b1@1", "forest"): "It is odd."})
    counting = [scores[0], scores[2]]
    table, expected = leaderboard(scores), leaderboard(counting)
    overall = table[table["benchmark"] == ALL]
    pd.testing.assert_frame_equal(overall, expected[expected["benchmark"] == ALL])
    assert (overall["benchmarks"] == 2).all()
    alone = table[table["benchmark"] == "b1@1"].reset_index(drop=True)
    own = leaderboard(score_benchmarks(frames[1])[0])
    own = own[own["benchmark"] == "b1@1"].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, own)
    both = curves(scores), curves(counting)
    means = [one[one["benchmark"] == ALL].astype({"benchmark": str}) for one in both]
    np.testing.assert_array_equal(means[0]["mean"], means[1]["mean"])
    assert "b1@1" in set(both[0]["benchmark"])
    assert verdicts(scores) == verdicts(counting)
    assert scores[1].notes()[0].endswith("leave it out. It is odd.")


def test_left_out_benchmark_counts_alone():
    frames = [frame("a@1"), frame("a@1", surrogate="nearest", entropy=1)]
    reasons = {("a@1", "forest"): "It is odd."}
    (odd,), _ = score_benchmarks(frames[0], left_out=reasons)
    (plain,), _ = score_benchmarks(frames[0])
    pd.testing.assert_frame_equal(leaderboard([odd]), leaderboard([plain]))
    scores, _ = score_benchmarks(pd.concat(frames), left_out=reasons)
    agreement = surrogate_agreement(scores)
    assert set(agreement["surrogate"]) == {"forest", "nearest"}
    assert BenchmarkGroup.for_means(scores).items == (scores[1],)


def test_leaderboard_after_earlier_trial(several):
    table = leaderboard(several, trial=2).set_index(["benchmark", "method"])
    item = several[3]
    for method in BETTER:
        place = item.place(method)
        assert table.loc[(item.benchmark, method), "rank"] == item.over_tasks("rank", 2).mean[place]
    assert (table["trial"] == 2).all()
    for trial in (0, 7):
        with pytest.raises(ExperimentError, match="1 to 6"):
            leaderboard(several, trial=trial)


def test_curves_and_tests_agree_with_leaderboard(several):
    """One mean rank: in the table, in curves, and in the critical differences."""
    table = leaderboard(several, trial=5).set_index(["benchmark", "method"]).sort_index()
    shown = curves(several, measures=MEASURES)
    at = shown[(shown["task"] == "") & (shown["trial"] == 5)]
    at = at.astype({"benchmark": str, "method": str}).set_index(["benchmark", "method"])
    for measure in MEASURES:
        mine = at[at["measure"] == measure].sort_index()
        names = [measure, f"{measure}_low", f"{measure}_high"]
        np.testing.assert_allclose(mine[["mean", "low", "high"]], table[names])
    computed = rank_and_compare(BenchmarkGroup.for_means(several), trial=5)
    assert computed is not None
    ranks = table.loc[ALL, "rank"].loc[list(computed.methods)]
    np.testing.assert_allclose(computed.mean_ranks, ranks)


def test_samples_are_benchmarks_or_tasks(several):
    together = BenchmarkGroup.for_means(several)
    over = compare_pairs(together)
    means = np.stack([item.over_tasks("regret", 6).mean for item in several])
    assert over is not None
    np.testing.assert_array_equal(over.adjusted, pairwise_wilcoxon(means, over.methods).adjusted)
    by_task = compare_pairs(together, unit=Unit.TASKS)
    assert by_task is not None
    assert (over.samples, by_task.samples) == (8, 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8)


def test_pairs_are_compared_on_common_seeds():
    """A method's failed runs do not touch the tests and contests of two others."""
    frames = [frame(f"b{place}@1") for place in range(8)]
    lacking = pd.concat(frames)
    lacking = lacking[(lacking["method"] != "cts") | (lacking["seed"] != 1)]
    whole, part = (
        BenchmarkGroup.for_means(scores_of(table)) for table in (pd.concat(frames), lacking)
    )
    one, other = compare_pairs(whole), compare_pairs(part)
    assert one is not None and other is not None
    assert one.p_values[0, 1] == other.p_values[0, 1]
    rest = BenchmarkGroup.for_means(scores_of(pd.concat(frames).query("seed != 1")))
    common = compare_pairs(rest)
    assert common is not None
    # The worst loss met, which regrets are relative to, may be one of the left out seed.
    assert other.p_values[0, 2] == pytest.approx(common.p_values[0, 2], abs=0.1)
    np.testing.assert_array_equal(count_all_wins(part).wins[2], count_all_wins(rest).wins[2])
    assert count_all_wins(part).wins[0, 1] == count_all_wins(whole).wins[0, 1]


def test_partly_failed_method_has_no_mean():
    whole = pd.concat([frame("a@1"), frame("b@1")])
    bad_runs = "method == 'bo' and benchmark == 'b@1' and seed > 0"
    planned = runs_of_trials(whole)
    bad, failed = whole.eval(bad_runs), planned.eval(bad_runs)
    planned.loc[failed, "state"] = "failed"
    times = planned.assign(suggestions=10, method_seconds=1.0)
    scores, _ = score_benchmarks(whole[~bad], planned, times[~failed])
    table = leaderboard(scores).set_index(["benchmark", "method"])
    last = table.loc[ALL].iloc[-1]
    assert last.name == "bo"
    assert np.isnan(last["rank"]) and last["wins"] is pd.NA
    assert (last["runs"], last["failed"], last["benchmarks"]) == (10, 4, 1)
    assert last["seconds"] == pytest.approx(0.1)
    assert table.loc[("a@1", "bo"), "rank"] > 0


def test_verdicts_are_of_first_and_last_trial(several):
    assert [verdict.trial for verdict in verdicts(several)] == [1, 6]


def test_verdict_names_significant_leader(several):
    verdict = verdicts(several)[-1]
    assert verdict.leaders == ("cts",)
    assert "random-search" in verdict.better_than
    assert verdict.sentence.startswith("After 6 trials cts leads, with a mean rank of ")
    assert "significant over 8 benchmarks" in verdict.sentence


def test_few_benchmarks_are_not_tested(several):
    verdict = verdicts(several[:3])[-1]
    assert verdict.test is None
    assert verdict.sentence.endswith("There are too few benchmarks for a test.")


def test_chance_gives_no_significant_difference():
    rng = np.random.default_rng(0)
    frames = []
    for number in range(6):
        trials = frame(f"b{number}@1")
        frames.append(trials.assign(loss=rng.random(len(trials))))
    verdict = verdicts(scores_of(*frames))[-1]
    assert "No difference from another method" in verdict.sentence


def test_equal_methods_share_the_rank():
    frames = [frame(f"b{n}@1").assign(loss=1.0, value=1.0, regret=1.0) for n in range(6)]
    verdict = verdicts(scores_of(*frames))[-1]
    assert verdict.sentence == "After 6 trials all 3 methods share the mean rank."


def test_surrogates_may_disagree():
    table = frame("a@1", seeds=8)
    turned = table.assign(surrogate="nearest", loss=-table["loss"], regret=2 - table["loss"])
    computed = surrogate_agreement(scores_of(table, turned, frame("b@1")))
    assert set(computed["benchmark"]) == {"a@1"}
    assert not computed["is_same"].any()
    places = computed.pivot_table(index="method", columns="surrogate", values="place")
    assert places.loc["cts"].to_dict() == {"forest": 1, "nearest": 3}
    same = surrogate_agreement(scores_of(table, table.assign(surrogate="nearest")))
    assert same["is_same"].all()


def test_last_run_attains_worst_regret():
    (item,) = scores_of(frame("a@1"))
    computed = attainment_curves([item], fractions=(0.5, 1.0))
    regret = item.measures["regret"].values
    last = computed.query("trial == 6 and fraction == 1").set_index("method")["level"]
    assert [last[method] for method in item.methods] == [*regret[..., 5].max(axis=(1, 2))]


def test_nothing_to_compare_gives_nothing():
    assert (
        len(leaderboard([]))
        == len(curves([]))
        == len(attainment_curves([]))
        == len(verdicts([]))
        == 0
    )
    (alone,) = scores_of(frame("a@1").query("method == 'bo'"))
    assert len(leaderboard([alone])) == 2
    assert rank_and_compare(BenchmarkGroup.for_means([alone])) is None


def test_unknown_times_stay_unknown():
    whole = pd.concat([frame("a@1"), frame("b@1")])
    times = runs_of_trials(frame("a@1")).assign(suggestions=10, method_seconds=1.0)
    table = leaderboard(score_benchmarks(whole, None, times)[0]).set_index("benchmark")
    np.testing.assert_allclose(table.loc[[ALL, "a@1"], "seconds"], 0.1)
    assert table.loc["b@1", "seconds"].isna().all()
