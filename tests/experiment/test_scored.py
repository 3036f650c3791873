from pathlib import Path

import pandas as pd
import pytest

import hpobench_ordered as hbo
from hpobench_ordered import reporting
from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup
from hpobench_ordered.analysis.marks import find_marks
from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment.overview import overview
from hpobench_ordered.experiment.scored import families, left_out, scored
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.reporting import ReportInput

SVM, RANGER = "yahpo-svm-1220@1", "yahpo-ranger-4154@1"


def results(folder: Path, benchmark: str) -> hbo.Results:
    return hbo.run(
        benchmarks=[benchmark],
        methods=["random-search", "zero-shot"],
        seeds=range(2),
        protocol=hbo.Ordered(trials=3, tasks=6),
        folder=folder,
    )


def test_results_have_a_readable_form(tmp_path):
    result = results(tmp_path, "newsvendor")
    table = result.leaderboard(trial=2)
    assert list(table["benchmark"]) == ["all", "all", "newsvendor@1", "newsvendor@1"]
    assert set(table["trial"]) == {2} and (table["seconds"] > 0).all()
    short, full = result.leaderboard(), result.leaderboard(full=True)
    assert set(short) < set(full) and len(short.columns) == 11
    pd.testing.assert_frame_equal(short, full[list(short)])
    lines = str(result).splitlines()
    assert lines[1] == "all, after trial 3:" and len(lines) == 5
    assert {lines[3].split()[0], lines[4].split()[0]} == {"random-search", "zero-shot"}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Of a network, and two stand-ins for networks, one of them implausible."""
    folder = tmp_path_factory.mktemp("three")
    for name in (SVM, RANGER, "yahpo-ranger-40978@1"):
        result = results(folder, name)
    return result.store


def test_interpolated_tasks_and_stand_ins_can_be_left_out(store):
    whole = {item.benchmark: item for item in scored(store, overview(store))[0]}
    assert set(whole) == {RANGER, "yahpo-ranger-40978@1", SVM}
    (measured,), _ = scored(store, overview(store), measured_only=True)
    assert measured.benchmark == SVM
    assert set(measured.task_names) < set(whole[SVM].task_names)
    assert len(hbo.Results(store, ()).leaderboard(measured_only=True)) == 4


def test_an_implausible_stand_in_is_left_out_of_means(store):
    table = hbo.Results(store, ()).leaderboard(full=True)
    assert set(table["benchmark"]) == {"all", SVM, RANGER, "yahpo-ranger-40978@1"}
    overall, odd = (table[table["benchmark"] == name] for name in ("all", RANGER))
    assert set(overall["benchmarks"]) == {2}
    assert odd["rank"].notna().all()
    means = table[~table["benchmark"].isin(["all", RANGER])]
    expected = means.groupby("method")["rank"].mean()
    assert overall.set_index("method")["rank"].to_dict() == pytest.approx(expected.to_dict())


@pytest.mark.slow
def test_a_report_says_what_means_leave_out(store, tmp_path):
    for measured_only in (False, True):
        report = hbo.report(store.folder, tmp_path, measured_only=measured_only)
        for page in (report.page, tmp_path / "summary.md"):
            text = page.read_text(encoding="utf-8")
            assert ("Measured tasks alone" in text) is measured_only
            assert ("implausible" in text) is not measured_only


def test_what_a_report_is_made_of(store, monkeypatch):
    made: list[ReportInput] = []
    monkeypatch.setattr(reporting, "write_report", lambda content, _: made.append(content))
    hbo.report(store.folder)
    hbo.report(store.folder, measured_only=True)
    whole, measured = made
    assert set(whole.trials["task_name"]) == {"5%", "10%", "15%", "20%", "25%", "30%"}
    assert set(measured.trials["task_name"]) == {"5%", "25%"}
    for content, names in ((whole, {SVM, RANGER, "yahpo-ranger-40978@1"}), (measured, {SVM})):
        assert content.overview is not None
        assert set(content.overview.runs["benchmark"]) == set(content.trials["benchmark"]) == names
    assert list(whole.left_out) == [(RANGER, "forest")]
    assert not measured.left_out
    assert (whole.measured_only, measured.measured_only) == (False, True)


def test_plateaus_are_left_out_of_means_on_the_surrogate_that_was_looked_at():
    kinds = [("yahpo-svm-458@1", "forest"), ("yahpo-svm-458@1", "onnx"), ("newsvendor@1", "table")]
    names = ["yahpo-xgboost-458@1+0123456789ab", "gone@1", "newsvendor@1"]
    assert families(pd.DataFrame({"benchmark": names})) == {names[0]: "rbv2_xgboost", names[2]: ""}
    found = left_out(pd.DataFrame(kinds, columns=["benchmark", "surrogate"]))
    assert found == {kinds[0]: "A plateau: 12% of random configurations are near the best."}


def test_plateaus_are_what_the_leaderboard_of_wide_leaves_out():
    scores, _ = hbo.reference("wide", methods=["random-search", "bo"]).scored()
    without = {item.benchmark for item in scores if item.left_out}
    marks = {item.benchmark: find_marks(benchmark_spec(item.benchmark)) for item in scores}
    plateaus = {name for name, one in marks.items() if one and "plateau" in one.names}
    assert without == {RANGER, *plateaus} and len(plateaus) == 7
    assert BenchmarkGroup.for_means(scores).families == BenchmarkGroup.of_all(scores).families


def test_nothing_measured_says_so(tmp_path):
    store = results(tmp_path, "yahpo-ranger-40978").store
    with pytest.raises(StoreError, match="on a stand-in surrogate"):
        hbo.report(store.folder, measured_only=True)
