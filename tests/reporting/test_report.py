from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.experiment.overview import Overview
from hpobench_ordered.reporting.scoring import runs_of, score_benchmarks
from hpobench_ordered.reporting.tables import best_cells, legend, plus_minus, summary_rows
from hpobench_ordered.reporting.write import ReportInput, write_report


def results(**changes: object) -> pd.DataFrame:
    """Random losses of three methods, as a store gives them."""
    rng = np.random.default_rng(0)
    methods = ["simple-ordered", "bo", "random-search"]
    index = pd.MultiIndex.from_product(
        [methods, range(3), range(4), range(1, 13)], names=["method", "seed", "task", "trial"]
    )
    frame = pd.DataFrame(index=index).reset_index()
    offset = frame["method"].map({"simple-ordered": 0.0, "bo": 0.1, "random-search": 0.3})
    frame = frame.assign(
        benchmark="x@1",
        surrogate="forest",
        protocol="ordered(trials=12, tasks=None)",
        task_name=frame["task"].map("task {}".format),
        loss=rng.random(len(frame)) + offset,
        fallbacks=0,
    )
    frame = frame.assign(value=frame["loss"], regret=frame["loss"] + 0.5)
    return frame.assign(**changes)


def test_files(tmp_path: Path) -> None:
    report = write_report(ReportInput(results()), tmp_path)
    assert sorted(report.files) == sorted(p for p in tmp_path.rglob("*") if p.is_file())
    assert report.page == tmp_path / "report.html"
    assert report.page in report.files
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "| method | trial 1 | trial 10 | trial 12 |" in summary
    table = pd.read_csv(tmp_path / "scores.csv")
    assert len(table) == 3 * 4 * 12
    (item,) = report.benchmarks
    row = table[(table["method"] == "bo") & (table["task"] == "task 2") & (table["trial"] == 5)]
    position = item.scores.methods.index("bo")
    for measure, scores in item.measures.items():
        assert row[measure].item() == pytest.approx(scores.mean[position, 2, 4])


def test_random_search_comes_first() -> None:
    (item,), _ = score_benchmarks(results())
    assert item.scores.methods == ("random-search", "bo", "simple-ordered")


def test_two_benchmarks_are_scored_apart() -> None:
    both = pd.concat([results(), results(benchmark="y@1", loss=lambda f: 5 * f["loss"])])
    (first, second), _ = score_benchmarks(both)
    assert (first.benchmark, second.benchmark) == ("x@1 (forest)", "y@1 (forest)")
    np.testing.assert_allclose(first.scores.values, second.scores.values)


def test_fallbacks_are_told() -> None:
    frame = results()
    where = (frame["method"] == "bo") & (frame["seed"] == 1) & (frame["task"] == 2)
    frame.loc[where & (frame["trial"] >= 5), "fallbacks"] = 2
    (item,), _ = score_benchmarks(frame)
    assert item.notes() == ["bo fell back to 2 random suggestions."]


def test_protocols_are_scored_apart() -> None:
    both = pd.concat([results(), results(protocol="ordered(trials=12, tasks=4)")])
    scored, unscored = score_benchmarks(both)
    assert (len(scored), unscored) == (2, [])
    assert [item.protocol for item in scored] == sorted(set(both["protocol"]))
    assert scored[0].title.startswith("x@1 (forest), ordered, 12 trials, tasks=4: 3 seeds, 4 tasks")
    assert scored[1].title == "x@1 (forest), ordered, 12 trials: 3 seeds, 4 tasks, 12 trials"


def test_the_first_task_counts_unless_tasks_are_ordered() -> None:
    """It has no history in ordered runs."""
    frame = results()
    frame["loss"] += 100 * (frame["task"] == 0)
    frame = frame.assign(value=frame["loss"])
    (ordered,), _ = score_benchmarks(frame)
    (other,), _ = score_benchmarks(frame.assign(protocol="leave-one-out(trials=12)"))
    for item, tasks in ((ordered, 3), (other, 4)):
        for measure in item.measures:
            assert item.over_tasks(measure, 12).tasks == tasks
    assert ordered.over_tasks("value", 12).mean.max() < 1
    assert other.over_tasks("value", 12).mean.min() > 25
    (alone,), _ = score_benchmarks(frame[frame["task"] == 0])
    assert alone.over_tasks("value", 12).tasks == 1


def test_values_regrets_and_ranks_are_those_of_the_best_trial_so_far() -> None:
    frame = results(protocol="adjustment()", value=lambda f: -2 * f["loss"])
    (item,), _ = score_benchmarks(frame)
    assert item.is_maximised
    best = frame.loc[
        frame[frame["trial"] <= 10].groupby(["method", "seed", "task"])["loss"].idxmin()
    ]
    for measure in ("value", "regret"):
        per_seed = best.groupby(["method", "seed"])[measure].mean().unstack()
        found = item.over_tasks(measure, 10)
        for method, mean, errors in zip(
            item.scores.methods, found.mean, found.two_standard_errors, strict=True
        ):
            assert mean == pytest.approx(per_seed.loc[method].mean())
            assert errors == pytest.approx(2 * per_seed.loc[method].sem())
    ranks = best.set_index(["method", "seed", "task"])["loss"].groupby(["seed", "task"]).rank()
    expected = ranks.groupby("method").mean()[list(item.scores.methods)]
    np.testing.assert_allclose(item.over_tasks("rank", 10).mean, expected)


def test_summary_shows_every_measure() -> None:
    (item,), _ = score_benchmarks(results())
    header, *rows = summary_rows(item)
    assert header == ("measure", "method", "trial 1", "trial 10", "trial 12")
    assert [row[0] for row in rows[::3]] == ["score", "value", "regret", "rank"]
    assert [row[1] for row in rows] == ["random-search", "bo", "simple-ordered"] * 4
    (maximised,), _ = score_benchmarks(results(value=lambda f: -f["loss"]))
    assert summary_rows(maximised)[4][0] == "value, maximised"


@pytest.mark.parametrize("sign", [1, -1])
def test_the_best_cells_are_those_of_the_best_means(sign: int) -> None:
    (item,), _ = score_benchmarks(results(value=lambda f: sign * f["loss"]))
    rows = summary_rows(item)[1:]
    best = best_cells(item)
    for block, measure in enumerate(("score", "value", "regret", "rank")):
        for column, trial in enumerate(item.trials, start=2):
            mean = item.over_tasks(measure, trial).mean
            place = int(np.argmax(mean) if (measure, sign) == ("value", -1) else np.argmin(mean))
            assert {row - 3 * block for row, c in best if c == column and row // 3 == block} == {
                place
            }
    assert len(rows) == 12


@pytest.mark.parametrize("measures", [("score", "regret", "rank"), ("score", "value"), ("rank",)])
def test_the_legend_says_what_is_shown_and_no_more(measures: tuple[str, ...]) -> None:
    _, said = legend(measures)
    for measure in ("score", "value", "regret", "rank"):
        assert (f"{measure}:" in said) == (measure in measures)
    assert ("values that are maximised" in said) == ("value" in measures)


def test_regret_is_left_out_where_no_best_value_is_known() -> None:
    (item,), _ = score_benchmarks(results(regret=np.nan))
    assert [row[0] for row in summary_rows(item)[1::3]] == ["score", "value", "rank"]
    frame = results()
    frame.loc[frame["task"] == 2, "regret"] = np.nan
    (item,), _ = score_benchmarks(frame)
    assert item.notes() == ["1 task without a regret: no best value is known."]
    assert item.over_tasks("regret", 12).defined == 2


def test_means_as_csv(tmp_path: Path) -> None:
    (item,) = write_report(ReportInput(results()), tmp_path).benchmarks
    table = pd.read_csv(tmp_path / "means.csv")
    assert len(table) == len(item.measures) * 12 * 3
    chosen = table[(table["measure"] == "regret") & (table["trial"] == 7)].set_index("method")
    expected = item.over_tasks("regret", 7)
    np.testing.assert_allclose(chosen["mean"], expected.mean)
    np.testing.assert_allclose(chosen["two_standard_errors"], expected.two_standard_errors)
    assert set(chosen["tasks"]) == {3}


def test_seeds_that_are_not_complete_are_left_out_and_named() -> None:
    frame = results()
    frame = frame[(frame["method"] != "bo") | (frame["seed"] != 1)]
    (item,), _ = score_benchmarks(frame)
    assert item.seeds == 2
    assert item.notes() == ["Seeds left out, not run by every method: 1."]


def without(frame: pd.DataFrame, method: str, seeds: list[int]) -> pd.DataFrame:
    """The results as if these runs had failed."""
    return frame[(frame["method"] != method) | ~frame["seed"].isin(seeds)]


def test_a_method_with_fewer_than_half_of_the_seeds_is_left_out() -> None:
    frame = results()
    (item,), _ = score_benchmarks(without(frame, "bo", [0, 2]), runs_of(frame))
    assert item.methods == ("random-search", "simple-ordered")
    assert (item.seeds, item.left_out) == (3, ())
    assert item.notes() == [
        "Not compared, for want of half of the planned seeds: bo (finished 1 of 3)."
    ]
    (compared,), _ = score_benchmarks(without(frame, "bo", [2]), runs_of(frame))
    assert compared.methods == ("random-search", "bo", "simple-ordered")
    assert compared.seed_numbers == (0, 1)
    assert compared.left_out == (2,)


@pytest.mark.parametrize("finished", [0, 1])
def test_a_method_that_fails_changes_nothing_of_the_others(finished: int) -> None:
    frame = results()
    others = frame[frame["method"] != "bo"]
    bad = frame[frame["method"] == "bo"]
    planned = pd.concat([runs_of(frame), runs_of(bad).assign(method="worse", state="failed")])
    given = pd.concat([others, bad[bad["seed"] < finished]])
    (item,), unscored = score_benchmarks(given, planned)
    (alone,), _ = score_benchmarks(others)
    assert unscored == []
    assert item.methods == alone.methods
    assert {excluded.method for excluded in item.excluded} == {"bo", "worse"}
    for name, scores in alone.measures.items():
        np.testing.assert_array_equal(item.measures[name].values, scores.values)


def test_a_method_that_was_planned_for_more_seeds_and_fails_changes_nothing() -> None:
    frame = results()
    extra = runs_of(frame)[:1].assign(method="worse", state="failed")
    planned = pd.concat([runs_of(frame), *(extra.assign(seed=seed) for seed in range(20))])
    (item,), _ = score_benchmarks(frame, planned)
    assert item.methods == ("random-search", "bo", "simple-ordered")


def test_without_random_search_there_are_no_scores_but_all_else() -> None:
    frame = results()
    frame = frame[frame["method"] != "random-search"]
    (item,), unscored = score_benchmarks(frame)
    assert unscored == []
    assert [row[0] for row in summary_rows(item)[1::2]] == ["value", "regret", "rank"]
    (note,) = item.notes()
    assert note.startswith("The score is not available: the normalised score compares with")
    assert np.isnan(item.scores.values).all()


def test_normalised_regret_is_relative_to_the_range_of_what_was_met() -> None:
    frame = results()
    (item,), _ = score_benchmarks(frame)
    by_task = frame.groupby("task")["loss"].agg(["max"])
    best = -0.5  # of the fixture: the regret is the loss + 0.5
    found = item.measures["normalised regret"].values
    losses = frame[(frame["method"] == "bo") & (frame["seed"] == 1) & (frame["task"] == 2)]
    worst = by_task.loc[2, "max"]
    expected = (np.minimum.accumulate(losses["loss"].to_numpy()) - best) / (worst - best)
    np.testing.assert_allclose(found[1, 1, 2], expected)
    areas = item.measures["regret over trials"].values[1, 1, 2]
    np.testing.assert_allclose(areas, np.cumsum(expected) / np.arange(1, 13))


def test_no_seed_in_common(tmp_path: Path) -> None:
    frame = results()
    apart = (frame["method"] == "bo") ^ (frame["seed"] == 1)
    frame = frame[apart & (frame["seed"] < 2)]
    scored, (reason,) = score_benchmarks(frame)
    assert scored == []
    assert reason == (
        "x@1 (forest), ordered, 12 trials: no seed was run by all of random-search, "
        "bo, simple-ordered."
    )
    report = write_report(ReportInput(frame), tmp_path)
    assert report.unscored == (reason,)
    assert reason in (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert reason in report.page.read_text(encoding="utf-8")


def test_nothing_at_all(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="no runs"):
        write_report(ReportInput(results()[:0]), tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_same_results_same_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_report(ReportInput(results()), tmp_path / name)
    paths = [path for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert len(paths) > 20
    for path in paths:
        same = tmp_path / "b" / path.relative_to(tmp_path / "a")
        assert path.read_bytes() == same.read_bytes()


@pytest.mark.parametrize(
    ("mean", "errors", "decimals", "text"),
    [
        (1.26, 0.04, 1, "1.3 ± 0.0"),
        (1.2, np.nan, 1, "1.2"),
        (np.nan, 1, 1, "-"),
        (-0.04, 0.1, 1, "0.0 ± 0.1"),
        (0.95678, 0.00123, None, "0.9568 ± 0.0012"),
        (2512.34, 41.7, None, "2512 ± 42"),
        (0.0627041, 6.6e-8, None, "0.062704 ± 0.000000"),
        (-7.0, 0.0, None, "-7.000 ± 0.000"),
        (0.95678, np.nan, None, "0.9568"),
        (0.0, np.nan, None, "0"),
        (0.0, 0.0, None, "0 ± 0"),
        (1.2341e-7, 2.3e-8, None, "1.234e-07 ± 2.3e-08"),
        (np.inf, np.nan, None, "-"),
        (1.2341e-9, np.nan, None, "1.234e-09"),
    ],
)
def test_numbers(mean: float, errors: float, decimals: int | None, text: str) -> None:
    assert plus_minus(mean, errors, decimals=decimals) == text


def test_a_benchmark_of_which_nothing_is_finished_is_named(tmp_path: Path) -> None:
    frame = results()
    other = runs_of(results(benchmark="y@1")).assign(state="failed", key="", method_version="")
    planned = pd.concat([runs_of(frame).assign(key="", method_version=""), other])
    scored, unscored = score_benchmarks(frame, planned)
    assert [item.benchmark for item in scored] == ["x@1 (forest)"]
    assert unscored == ["y@1 (forest), ordered, 12 trials: no run is finished."]
    page = write_report(ReportInput(frame, Overview(planned, 0, (), ())), tmp_path).page
    assert "Not compared: y@1 (forest)" in page.read_text(encoding="utf-8")


def test_the_summary_is_markdown_whatever_names_are_in_it(tmp_path: Path) -> None:
    frame = results(method=lambda f: f["method"].replace("bo", "a|b_c <i>"))
    write_report(ReportInput(frame), tmp_path)
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert r"a\|b\_c \<i\>" in summary
    assert "<i>" not in summary
