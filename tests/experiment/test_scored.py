"""Scores of results: which benchmarks and tasks count, and what a report gets of them."""

from pathlib import Path

import pandas as pd
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup
from hpobench_ordered.analysis.marks import find_marks
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment.overview import make_overview
from hpobench_ordered.experiment.scored import explain_left_out, find_families, score_runs
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.reporting.write import collect_content

MEASURED = "yahpo-svm-1220@1"
STAND_IN = "yahpo-ranger-40978@1"
IMPLAUSIBLE_STAND_IN = "yahpo-ranger-4154@1"
ALL_BENCHMARKS = {MEASURED, STAND_IN, IMPLAUSIBLE_STAND_IN}
"""Benchmarks on surrogates: on one that was measured, and on two stand-ins for networks."""


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
    """Each of two methods has a row for the mean over all benchmarks, and for the only one."""
    board = newsvendor_results.leaderboard()
    assert list(board["benchmark"]) == ["all", "all", "newsvendor@1", "newsvendor@1"]


def test_leaderboard_has_times(newsvendor_results):
    board = newsvendor_results.leaderboard()
    assert (board["seconds"] > 0).all()


def test_leaderboard_is_of_asked_trial(newsvendor_results):
    assert set(newsvendor_results.leaderboard(trial=2)["trial"]) == {2}


def test_short_leaderboard_is_part_of_full(newsvendor_results):
    """By default only the eleven most important columns are shown, which fit a page."""
    short = newsvendor_results.leaderboard()
    full = newsvendor_results.leaderboard(full=True)

    assert len(short.columns) == 11
    assert len(full.columns) > 11
    pd.testing.assert_frame_equal(short, full[list(short)])


def test_results_are_shown_as_table(newsvendor_results):
    """Results as a text have a title, a line of column names, and a row for each method."""
    _, title, _, *rows = str(newsvendor_results).splitlines()

    first_words = {row.split()[0] for row in rows}
    assert title == "all, after trial 3:"
    assert first_words == {"random-search", "zero-shot"}


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    """A store of runs on three benchmarks.

    One has a surrogate of measured evaluations. The surrogates of the two others are stand-ins,
    which model a substitute for what was published; one of them is implausible.
    """
    folder = tmp_path_factory.mktemp("three_benchmarks")
    for name in sorted(ALL_BENCHMARKS):
        run_two_methods(folder, name)
    return Store(folder)


def test_every_benchmark_is_scored(store):
    scores, _ = score_runs(store, make_overview(store))
    assert {item.benchmark for item in scores} == ALL_BENCHMARKS


def test_stand_ins_can_be_left_out(store):
    scores, _ = score_runs(store, make_overview(store), measured_only=True)
    assert [item.benchmark for item in scores] == [MEASURED]


def test_interpolated_tasks_can_be_left_out(store):
    """The values of some tasks are interpolated between those of others, which were measured."""
    all_scores, _ = score_runs(store, make_overview(store))
    (measured_scores,), _ = score_runs(store, make_overview(store), measured_only=True)

    (scores,) = [scores for scores in all_scores if scores.benchmark == MEASURED]
    assert set(measured_scores.task_names) < set(scores.task_names)


def test_leaderboard_of_measured_leaves_stand_ins_out(store):
    """Of three benchmarks one is left, as the surrogates of the others stand in for a network.

    Two methods have a row each for the means, and for this benchmark.
    """
    board = hbo.Results(store, ()).leaderboard(measured_only=True)
    assert list(board["benchmark"]) == ["all", "all", MEASURED, MEASURED]


def test_implausible_stand_in_has_ranks(store):
    """A benchmark that is left out of means still has its own rows on the leaderboard."""
    board = hbo.Results(store, ()).leaderboard(full=True)

    assert set(board["benchmark"]) == {"all", *ALL_BENCHMARKS}
    rows_of_implausible = board[board["benchmark"] == IMPLAUSIBLE_STAND_IN]
    assert rows_of_implausible["rank"].notna().all()


def test_means_leave_implausible_stand_in_out(store):
    """Of three benchmarks, the means over benchmarks are over the two that are plausible."""
    board = hbo.Results(store, ()).leaderboard(full=True)

    means = board[board["benchmark"] == "all"]
    assert set(means["benchmarks"]) == {2}  # how many they are over
    rows_of_plausible = board[board["benchmark"].isin([MEASURED, STAND_IN])]
    mean_ranks = rows_of_plausible.groupby("method")["rank"].mean()
    ranks = means.set_index("method")["rank"]
    assert ranks.to_dict() == pytest.approx(mean_ranks.to_dict())


@pytest.fixture
def write_pages(store, tmp_path):
    """A function that writes a report of the store."""

    def write_pages_of_report(*, measured_only: bool) -> list[str]:
        """Write a report; return the texts of its page and of its summary."""
        report = hbo.report(store.folder, tmp_path, measured_only=measured_only)
        paths = [report.page, tmp_path / "summary.md"]
        return [path.read_text(encoding="utf-8") for path in paths]

    return write_pages_of_report


@pytest.mark.slow
def test_report_says_that_implausible_is_left_out(write_pages):
    """The page and the summary say what means leave out.

    They say nothing of measured tasks alone, as all tasks count here.
    """
    for text in write_pages(measured_only=False):
        assert "implausible" in text
        assert "Measured tasks alone" not in text


@pytest.mark.slow
def test_report_says_that_measured_tasks_count(write_pages):
    """The implausible benchmark is not among the measured ones, so that nothing is said of it."""
    for text in write_pages(measured_only=True):
        assert "Measured tasks alone" in text
        assert "implausible" not in text


FIRST_SIX_TASKS = {"5%", "10%", "15%", "20%", "25%", "30%"}
MEASURED_TASKS = {"5%", "25%"}
"""Those of the first six whose values are not interpolated between those of other tasks."""


@pytest.mark.parametrize(
    ("measured_only", "tasks", "benchmarks"),
    [(False, FIRST_SIX_TASKS, ALL_BENCHMARKS), (True, MEASURED_TASKS, {MEASURED})],
    ids=["all", "measured"],
)
def test_report_gets_tasks_and_benchmarks(store, measured_only, tasks, benchmarks):
    """A report is either of all tasks and benchmarks, or of those that were measured."""
    content = collect_content(hbo.Results(store, ()), measured_only=measured_only)

    assert content.measured_only is measured_only
    assert set(content.trials["task_name"]) == tasks
    assert set(content.trials["benchmark"]) == benchmarks
    assert set(content.overview.runs["benchmark"]) == benchmarks


def test_report_gets_what_means_leave_out(store):
    """Means leave out the implausible benchmark, given by its name and surrogate.

    Of measured benchmarks alone none is left out.
    """
    content = collect_content(hbo.Results(store, ()), measured_only=False)
    assert list(content.left_out) == [(IMPLAUSIBLE_STAND_IN, "forest")]

    content_of_measured = collect_content(hbo.Results(store, ()), measured_only=True)
    assert not content_of_measured.left_out


def test_plateau_is_left_out_on_marked_surrogate():
    """A benchmark is marked as a plateau if many random configurations are nearly the best.

    The mark holds for its forest alone, not for its network; newsvendor has no such mark.
    """
    plateau = "yahpo-svm-458@1"
    pairs = [(plateau, "forest"), (plateau, "onnx"), ("newsvendor@1", "table")]

    reasons = explain_left_out(pd.DataFrame(pairs, columns=["benchmark", "surrogate"]))

    assert reasons == {
        (plateau, "forest"): "A plateau: 12% of random configurations are near the best."
    }


def test_families_are_found_of_registered_benchmarks():
    """A family has similar benchmarks; that of newsvendor, which is alone, is called "".

    A hash after the version makes no difference; what is not registered any more is left out.
    """
    with_hash = "yahpo-xgboost-458@1+0123456789ab"
    runs = pd.DataFrame({"benchmark": [with_hash, "gone@1", "newsvendor@1"]})

    families = find_families(runs)

    assert families == {with_hash: "rbv2_xgboost", "newsvendor@1": ""}


@pytest.fixture(scope="module")
def scores_on_wide():
    """Scores of two methods in the reference results on the suite `wide`."""
    scores, _ = hbo.reference("wide", methods=["random-search", "bo"]).scored()
    return scores


def test_reference_on_wide_leaves_plateaus_out(scores_on_wide):
    """Of the suite `wide`, means leave out plateaus and the implausible stand-in."""
    plateaus = set()
    for scores_on_benchmark in scores_on_wide:
        benchmark = scores_on_benchmark.benchmark
        marks = find_marks(benchmark_spec(benchmark))
        if marks and "plateau" in marks.names:
            plateaus.add(benchmark)

    left_out = {item.benchmark for item in scores_on_wide if item.left_out}
    assert left_out == plateaus | {IMPLAUSIBLE_STAND_IN}
    assert len(plateaus) == 7


def test_means_on_wide_have_all_families(scores_on_wide):
    families_of_means = BenchmarkGroup.for_means(scores_on_wide).families
    assert families_of_means == BenchmarkGroup.of_all(scores_on_wide).families


def test_report_without_measured_runs_is_refused(tmp_path):
    """All runs are on a benchmark whose surrogate stands in for a network."""
    results = run_two_methods(tmp_path, "yahpo-ranger-40978")
    with pytest.raises(StoreError, match="on a stand-in surrogate"):
        hbo.report(results.store.folder, measured_only=True)
