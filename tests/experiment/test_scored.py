"""Scores of results: which benchmarks and tasks count, and what a report gets of them."""

from pathlib import Path

import pandas as pd
import pytest

import hpobench_ordered as hbo
from hpobench_ordered import reporting
from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup
from hpobench_ordered.analysis.marks import find_marks
from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment.overview import make_overview
from hpobench_ordered.experiment.scored import explain_left_out, find_families, score_runs
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.reporting import ReportInput

NETWORK = "yahpo-svm-1220@1"
STAND_IN = "yahpo-ranger-40978@1"
IMPLAUSIBLE_STAND_IN = "yahpo-ranger-4154@1"
ALL = {NETWORK, STAND_IN, IMPLAUSIBLE_STAND_IN}
"""Benchmarks: on a published network, and on surrogates that stand in for such networks."""


def run_two_methods(folder: Path, benchmark: str) -> hbo.Results:
    """Run random search and zero-shot with two seeds on the first six tasks of a benchmark."""
    return hbo.run(
        benchmarks=[benchmark],
        methods=["random-search", "zero-shot"],
        seeds=range(2),
        protocol=hbo.Ordered(trials=3, tasks=6),
        folder=folder,
    )


@pytest.fixture(scope="module")
def newsvendor_results(tmp_path_factory) -> hbo.Results:
    return run_two_methods(tmp_path_factory.mktemp("newsvendor"), "newsvendor")


def test_leaderboard_has_means_and_benchmarks(newsvendor_results):
    """The means over benchmarks and the only benchmark have a row for each of two methods."""
    board = newsvendor_results.leaderboard()
    assert list(board["benchmark"]) == ["all", "all", "newsvendor@1", "newsvendor@1"]
    assert (board["seconds"] > 0).all()


def test_leaderboard_is_of_asked_trial(newsvendor_results):
    assert set(newsvendor_results.leaderboard(trial=2)["trial"]) == {2}


def test_short_leaderboard_is_part_of_full(newsvendor_results):
    """By default only the most important columns are shown."""
    short = newsvendor_results.leaderboard()
    full = newsvendor_results.leaderboard(full=True)
    columns_that_fit_a_page = 11
    assert len(short.columns) == columns_that_fit_a_page
    assert len(full.columns) > columns_that_fit_a_page
    pd.testing.assert_frame_equal(short, full[list(short)])


def test_results_are_shown_as_table(newsvendor_results):
    """The second line is a title, the third has names of columns, and rows begin with a method."""
    _, title, _, *rows = str(newsvendor_results).splitlines()
    first_words = {row.split()[0] for row in rows}
    assert title == "all, after trial 3:"
    assert first_words == {"random-search", "zero-shot"}


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    """Runs on a network, and on two stand-ins for networks, one of them implausible."""
    folder = tmp_path_factory.mktemp("three")
    for name in sorted(ALL):
        run_two_methods(folder, name)
    return Store(folder)


def test_every_benchmark_is_scored(store):
    scores, _ = score_runs(store, make_overview(store))
    assert {item.benchmark for item in scores} == ALL


def test_stand_ins_can_be_left_out(store):
    scores, _ = score_runs(store, make_overview(store), measured_only=True)
    assert [item.benchmark for item in scores] == [NETWORK]


def test_interpolated_tasks_can_be_left_out(store):
    """Some tasks of the network's benchmark are interpolated between others, not measured."""
    all_scores, _ = score_runs(store, make_overview(store))
    (scores_on_measured,), _ = score_runs(store, make_overview(store), measured_only=True)
    (scores_on_network,) = [scores for scores in all_scores if scores.benchmark == NETWORK]
    assert set(scores_on_measured.task_names) < set(scores_on_network.task_names)


def test_leaderboard_of_measured_has_network_alone(store):
    """Two methods have a row for the means, and one for the network."""
    board = hbo.Results(store, ()).leaderboard(measured_only=True)
    assert list(board["benchmark"]) == ["all", "all", NETWORK, NETWORK]


def test_implausible_stand_in_is_ranked_alone(store):
    board = hbo.Results(store, ()).leaderboard(full=True)
    assert set(board["benchmark"]) == {"all", *ALL}
    assert board.loc[board["benchmark"] == IMPLAUSIBLE_STAND_IN, "rank"].notna().all()


def test_means_leave_implausible_stand_in_out(store):
    """Of three benchmarks the means are over the network and the plausible stand-in."""
    board = hbo.Results(store, ()).leaderboard(full=True)
    overall = board[board["benchmark"] == "all"]
    plausible = board[board["benchmark"].isin([NETWORK, STAND_IN])]
    expected = plausible.groupby("method")["rank"].mean()
    assert set(overall["benchmarks"]) == {2}
    assert overall.set_index("method")["rank"].to_dict() == pytest.approx(expected.to_dict())


@pytest.mark.slow
@pytest.mark.parametrize("measured_only", [False, True])
def test_report_says_what_means_leave_out(store, tmp_path, measured_only):
    """The stand-ins, if measured tasks alone are asked for; otherwise the implausible one."""
    report = hbo.report(store.folder, tmp_path, measured_only=measured_only)
    for page in (report.page, tmp_path / "summary.md"):
        text = page.read_text(encoding="utf-8")
        assert ("Measured tasks alone" in text) is measured_only
        assert ("implausible" in text) is not measured_only


@pytest.fixture
def make_report_input(store, monkeypatch):
    """A function that returns what `hbo.report` passes on to be written."""

    def make(*, measured_only: bool) -> ReportInput:
        passed: list[ReportInput] = []
        monkeypatch.setattr(reporting, "write_report", lambda content, _: passed.append(content))
        hbo.report(store.folder, measured_only=measured_only)
        return passed[0]

    return make


FIRST_SIX_TASKS = {"5%", "10%", "15%", "20%", "25%", "30%"}
MEASURED_TASKS = {"5%", "25%"}
"""Those of the first six whose values are not interpolated between those of other tasks."""


@pytest.mark.parametrize(
    ("measured_only", "tasks", "benchmarks"),
    [(False, FIRST_SIX_TASKS, ALL), (True, MEASURED_TASKS, {NETWORK})],
    ids=["all", "measured"],
)
def test_report_gets_tasks_and_benchmarks(make_report_input, measured_only, tasks, benchmarks):
    """Those that count, if all are asked for or measured ones alone."""
    content = make_report_input(measured_only=measured_only)
    assert content.measured_only is measured_only
    assert set(content.trials["task_name"]) == tasks
    assert set(content.trials["benchmark"]) == benchmarks
    assert set(content.overview.runs["benchmark"]) == benchmarks


def test_report_gets_reasons_of_what_is_left_out(make_report_input):
    assert list(make_report_input(measured_only=False).left_out) == [
        (IMPLAUSIBLE_STAND_IN, "forest")
    ]
    assert not make_report_input(measured_only=True).left_out


def test_plateau_is_left_out_on_marked_surrogate():
    plateau = "yahpo-svm-458@1"
    # The marks, which call the benchmark a plateau, are of its forest, not of its network.
    pairs = [(plateau, "forest"), (plateau, "onnx"), ("newsvendor@1", "table")]
    reasons = explain_left_out(pd.DataFrame(pairs, columns=["benchmark", "surrogate"]))
    assert reasons == {
        (plateau, "forest"): "A plateau: 12% of random configurations are near the best."
    }


def test_families_are_found_of_registered_benchmarks():
    """A benchmark may have a hash; one that is not registered any more has no family."""
    with_hash = "yahpo-xgboost-458@1+0123456789ab"
    runs = pd.DataFrame({"benchmark": [with_hash, "gone@1", "newsvendor@1"]})
    families = find_families(runs)
    assert families == {with_hash: "rbv2_xgboost", "newsvendor@1": ""}


def test_reference_on_wide_leaves_plateaus_out():
    """Means over the suite wide leave out plateaus and the implausible stand-in."""
    scores, _ = hbo.reference("wide", methods=["random-search", "bo"]).scored()
    plateaus = set()
    for item in scores:
        marks = find_marks(benchmark_spec(item.benchmark))
        if marks and "plateau" in marks.names:
            plateaus.add(item.benchmark)
    assert len(plateaus) == 7
    assert {item.benchmark for item in scores if item.left_out} == plateaus | {IMPLAUSIBLE_STAND_IN}


def test_means_on_wide_have_all_families():
    scores, _ = hbo.reference("wide", methods=["random-search", "bo"]).scored()
    assert BenchmarkGroup.for_means(scores).families == BenchmarkGroup.of_all(scores).families


def test_report_without_measured_runs_is_refused(tmp_path):
    results = run_two_methods(tmp_path, "yahpo-ranger-40978")
    with pytest.raises(StoreError, match="on a stand-in surrogate"):
        hbo.report(results.store.folder, measured_only=True)
