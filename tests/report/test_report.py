from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.report.write import plus_minus, score_benchmarks, write_report


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
        protocol="ordered",
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
    (item,) = score_benchmarks(results())
    assert item.scores.methods == ("random-search", "bo", "simple-ordered")


def test_two_benchmarks_are_scored_apart() -> None:
    both = pd.concat([results(), results(benchmark="y@1", loss=lambda f: 5 * f["loss"])])
    first, second = score_benchmarks(both)
    assert (first.benchmark, second.benchmark) == ("x@1 (forest)", "y@1 (forest)")
    np.testing.assert_allclose(first.scores.values, second.scores.values)


def test_fallbacks_are_told() -> None:
    frame = results()
    where = (frame["method"] == "bo") & (frame["seed"] == 1) & (frame["task"] == 2)
    frame.loc[where & (frame["trial"] >= 5), "fallbacks"] = 2
    (item,) = score_benchmarks(frame)
    assert item.notes() == ["bo fell back to 2 random suggestions."]


def test_incomplete_results_name_the_benchmark() -> None:
    with pytest.raises(ExperimentError, match=r"x@1 \(forest\): results are incomplete"):
        score_benchmarks(results().iloc[:-1])
    with pytest.raises(ExperimentError, match=r"x@1 .*'random-search'"):
        score_benchmarks(results(method=lambda f: f["method"].replace("random-search", "rs")))


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
