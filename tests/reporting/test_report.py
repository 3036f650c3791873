from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.reporting.scoring import score_benchmarks
from hpobench_ordered.reporting.tables import plus_minus, summary_rows
from hpobench_ordered.reporting.write import write_report


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
    report = write_report(results(), tmp_path)
    assert sorted(report.files) == sorted(tmp_path.iterdir())
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
    assert (
        scored[0].title == "x@1 (forest), ordered(trials=12, tasks=4): 3 seeds, 4 tasks, 12 trials"
    )


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


def test_regret_is_left_out_where_no_best_value_is_known() -> None:
    (item,), _ = score_benchmarks(results(regret=np.nan))
    assert [row[0] for row in summary_rows(item)[1::3]] == ["score", "value", "rank"]
    frame = results()
    frame.loc[frame["task"] == 2, "regret"] = np.nan
    (item,), _ = score_benchmarks(frame)
    assert item.notes() == ["1 task without a regret: no best value is known."]
    assert item.over_tasks("regret", 12).defined == 2


def test_means_as_csv(tmp_path: Path) -> None:
    (item,) = write_report(results(), tmp_path).benchmarks
    table = pd.read_csv(tmp_path / "means.csv")
    assert len(table) == 4 * 12 * 3
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


def test_what_cannot_be_scored_is_named_and_the_rest_is_scored(tmp_path: Path) -> None:
    bad = results(benchmark="y@1", method=lambda f: f["method"].replace("random-search", "rs"))
    report = write_report(pd.concat([results(), bad]), tmp_path)
    assert [item.benchmark for item in report.benchmarks] == ["x@1 (forest)"]
    assert "y@1 (forest), ordered(" in report.unscored[0]
    assert "): the normalised score compares with 'random-search'" in report.unscored[0]
    assert report.unscored[0] in (tmp_path / "summary.md").read_text(encoding="utf-8")
    with pytest.raises(ExperimentError, match=r"y@1 .*'random-search'"):
        write_report(bad, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_no_seed_in_common() -> None:
    frame = results()
    _, (reason,) = score_benchmarks(frame[(frame["method"] != "bo") ^ (frame["seed"] == 1)])
    assert "no seed was run by all of random-search, bo, simple-ordered" in reason


def test_same_results_same_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_report(results(), tmp_path / name)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


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
