from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.reporting.write import plus_minus, score_benchmarks, write_report


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
    assert row["score"].item() == pytest.approx(item.scores.mean[position, 2, 4])


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
    assert "y@1 (forest): the normalised score compares with 'random-search'" in report.unscored[0]
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
    ("mean", "errors", "text"),
    [(1.26, 0.04, "1.3 ± 0.0"), (1.2, np.nan, "1.2"), (np.nan, 1, "-"), (-0.04, 0.1, "0.0 ± 0.1")],
)
def test_numbers(mean: float, errors: float, text: str) -> None:
    assert plus_minus(mean, errors) == text
