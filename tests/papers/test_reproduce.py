"""What the reproduction of a small paper writes, and what it runs."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from hpobench_ordered import papers
from hpobench_ordered.cli import app
from hpobench_ordered.errors import (
    ExperimentError,
    StoreError,
    SuggestionTimeoutError,
    UnknownNameError,
)
from hpobench_ordered.experiment.records import Failure
from hpobench_ordered.papers import list_papers, paper, reproduce
from hpobench_ordered.papers.paper import experiments
from hpobench_ordered.papers.summary import iter_claims

N_TASKS, N_TRIALS = 9, 3


def read_figure(folder: Path, number: int) -> pd.DataFrame:
    """Read the numbers in a figure of the small paper."""
    return pd.read_csv(folder / f"figure-{number}.csv")


def read_files(folder: Path) -> dict[str, bytes]:
    """Read the files of a folder, without those in its subfolders, by their names."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.slow
def test_result_lists_all_files(small_folder, small_result):
    files = [path for path in small_folder.iterdir() if path.is_file()]
    assert sorted(small_result.setup.files) == sorted(files)
    assert (small_folder / "figure-2.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_every_run_is_stored(small_folder, small_result):
    """The small paper needs runs of two methods with twelve seeds; a cell stands for a run."""
    files_of_runs = list((small_folder / "results" / "runs").iterdir())

    assert len(small_result.cells) == 2 * 12
    assert len(files_of_runs) == 2 * 12


@pytest.mark.slow
def test_gallery_shows_every_figure(small_paper, small_folder):
    """The gallery has each figure, and what the paper says of it."""
    gallery = (small_folder / "figures.md").read_text(encoding="utf-8")

    for exhibit in small_paper.exhibits:
        assert exhibit.paper_says in gallery
        assert f"({exhibit.name}.csv)" in gallery


@pytest.mark.slow
def test_claims_have_verdicts(small_result):
    """The small paper claims things of a method with transfer, against random search.

    The second claim says that it is behind, which is wrong.
    """
    first, second = small_result.claims["figure-2"]
    (third,) = small_result.claims["figure-3"]

    assert [first.verdict, second.verdict, third.verdict] == ["holds", "fails", "holds"]


@pytest.mark.slow
def test_findings_are_written(small_folder):
    """A claim by task has a finding for each task with history; every finding has an error."""
    findings = pd.read_csv(small_folder / "claims.csv")

    assert findings["outcome"].tolist()[:3] == ["holds", "fails", "holds"]
    assert (findings["claim"] == "on each task").sum() == N_TASKS - 1
    assert findings["standard_error"].notna().all()
    assert (findings["samples"] == 12).all()


@pytest.mark.slow
def test_entries_are_compared_with_published_ones(small_folder):
    """The small paper has "published" two intervals, in percent, for its table.

    One is from -1e6 to 1e6, which contains anything; the other one is below -1e6.
    """
    entries = pd.read_csv(small_folder / "table-1.csv")
    assert entries["inside"].tolist() == [True, False]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        " of 4 hold everywhere, ",
        "Of those chosen afterwards ",
        "| Figure 2 | 1 | and behind | fails | newsvendor: random-search ",
        "newsvendor: seeds 0 to 11; protocol ordered: trials 3, workers simulated 1.",
        "| reduction in standard error (%) | newsvendor | 0.0 (-1000000.0",
        "newsvendor@1 on table",
        "| random-search | 12 | 324 |",  # runs; suggestions: 12 seeds, 9 tasks, 3 trials
    ],
)
def test_summary_has(small_folder, text):
    assert text in (small_folder / "summary.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_random_search_ends_at_100(small_folder):
    """Figure 5 shows scores of two methods, which are scaled so on every task."""
    curves = read_figure(small_folder, 5)

    assert len(curves) == 2 * N_TASKS * N_TRIALS
    is_last_of_random_search = (curves["trial"] == N_TRIALS) & (curves["method"] == "random-search")
    scores = curves.loc[is_last_of_random_search, "score"].dropna()
    assert scores.tolist() == pytest.approx([100] * len(scores))


@pytest.mark.slow
def test_locations_are_on_tasks_shown(small_folder):
    """Figure 7 of the small paper shows the tasks with indices 1 and 8; in figures, 1 is first."""
    assert set(read_figure(small_folder, 7)["task"]) == {1 + 1, 8 + 1}


@pytest.mark.slow
def test_landscapes_cross_the_best(small_folder):
    """Figure 1 shows two tasks, over two hyperparameters of 21 values, and crosses the three best.

    Of each of the pairs of values the best configuration is shown.
    """
    landscapes = read_figure(small_folder, 1)

    assert len(landscapes) == 2 * 21 * 21
    assert landscapes.groupby("task")["crossed"].sum().tolist() == [3, 3]
    crossed = landscapes[landscapes["crossed"]]
    assert crossed["objective"].max() == landscapes["objective"].max()


@pytest.mark.slow
def test_curves_by_task_have_ranks_and_regrets(small_folder):
    """Figure 8 shows two methods on each task with history: mean ranks add to 3.

    Regret is that of the best trial so far, so it never grows.
    """
    curves = read_figure(small_folder, 8)

    assert (curves["low"] <= curves["mean"]).all()
    ranks = curves[curves["measure"] == "rank"]
    sums = ranks.groupby(["benchmark", "trial"])["mean"].sum()
    assert sums.tolist() == pytest.approx([3] * ((N_TASKS - 1) * N_TRIALS))
    regret = curves[curves["measure"] == "regret"]
    assert (regret.groupby(["benchmark", "method"])["mean"].diff().dropna() <= 0).all()


@pytest.mark.slow
def test_curves_over_tasks_are_means_of_tasks(small_folder):
    """Figure 8 has curves for each task, and figure 9 their means over tasks, and times."""
    labels = ["measure", "method", "trial"]
    by_task = read_figure(small_folder, 8)
    over_tasks = read_figure(small_folder, 9)

    is_time = over_tasks["measure"] == "time"
    assert (over_tasks.loc[is_time, "milliseconds"] > 0).all()
    means = over_tasks[~is_time].set_index(labels)["mean"].sort_index()
    expected = by_task.groupby(labels)["mean"].mean()
    pd.testing.assert_series_equal(means, expected, check_index_type=False)


@pytest.mark.slow
def test_finished_runs_are_not_repeated(small_folder, small_paper, tmp_path):
    """Figures 2 and 3 alone, in a copy of the folder, are the same and need no runs."""
    folder = tmp_path / "copy"
    shutil.copytree(small_folder, folder)
    runs = list((folder / "results" / "runs").iterdir())
    times_before = [path.stat().st_mtime_ns for path in runs]

    reproduce(small_paper, folder=folder, figures=[2, 3], workers=2)

    assert [path.stat().st_mtime_ns for path in runs] == times_before
    files, files_of_all = read_files(folder), read_files(small_folder)
    for name in ("figure-2.csv", "figure-2.svg", "figure-2.png", "figure-3.csv"):
        assert files[name] == files_of_all[name], name
    assert "Made: Figure 2, Figure 3." in (folder / "summary.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_command_prints_results(small_paper, small_folder, tmp_path, monkeypatch):
    """The output has a claim, its verdict, a table, and where the summary is.

    The command runs in a copy of the folder with all runs, with the small paper in the place of the
    package's papers.
    """
    folder = tmp_path / "copy"
    shutil.copytree(small_folder / "results", folder / "results")
    monkeypatch.setattr(papers, "paper", {"small": small_paper}.__getitem__)

    words = ["small", "--figure", "2", "--table", "1", "--seeds", "12", "--output", str(folder)]
    result = CliRunner().invoke(app, ["reproduce", *words])

    assert result.exit_code == 0, result.output
    for part in ("transfer is ahead", "holds", "Table 1: caption.", "summary.md"):
        assert part in result.stdout
    names = {path.name for path in folder.iterdir()}
    assert {"figure-2.png", "figure-2.svg", "figure-2.csv", "table-1.csv", "results"} <= names
    assert "figure-3.png" not in names


def test_selected_figure_runs_what_it_needs(small_paper, tmp_path):
    """Figure 7 is of one of two methods; seed 4 is asked for twice, and runs once.

    A step of the progress says what is counted, how many are finished, and how many there are.
    """
    steps: list[tuple[str, int, int]] = []

    result = reproduce(
        small_paper,
        folder=tmp_path,
        figures=[7],
        seeds=[4, 4, 5],
        workers_simulated=2,
        progress=lambda *step: steps.append(step),
    )

    assert [cell.seed for cell in result.cells] == [4, 5]
    assert {cell.method.name for cell in result.cells} == {"simple-previous-no-bo"}
    assert "workers_simulated=2" in result.cells[0].describe()["protocol"]
    assert ("runs", 2, 2) in steps
    assert steps[-1] == ("figures and tables", 1, 1)


def test_failed_run_is_run_again(small_paper, tmp_path):
    """A run once took too long, as on a busy machine: the same command makes it again."""
    first_result = reproduce(small_paper, folder=tmp_path, figures=[7], seeds=[4])
    (cell,) = first_result.cells
    store = first_result.setup.store
    shutil.rmtree(store.folder / "runs")
    store.records.write_failure(
        Failure.from_error(cell, SuggestionTimeoutError("took longer than 300 s"))
    )

    reproduce(small_paper, folder=tmp_path, figures=[7], seeds=[4])

    assert store.keys() == {cell.key}
    assert not store.records.has_failure(cell.key)


@pytest.mark.slow
def test_landscapes_need_no_runs(small_paper, tmp_path):
    assert reproduce(small_paper, folder=tmp_path, figures=[1]).cells == ()
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
def test_one_seed_leaves_intervals_empty(small_paper, tmp_path):
    """A row of the table is the published interval, which ends at 1e6, then ours and a verdict.

    With a single seed there is no standard error, so the last two are missing: "-".
    """
    result = reproduce(small_paper, folder=tmp_path, figures=[2, 9], tables=[1], seeds=[0])

    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "nan" not in summary
    assert "1000000.0) | - | - |" in summary
    for exhibit, claim in iter_claims(result, result.setup.exhibits):
        assert claim.verdict == "undecided", exhibit.title


def test_selection_keeps_order_of_paper(small_paper):
    """Figure 5 is asked for before figure 2, but comes after it, as in the paper.

    What both need is named once: the same two methods on newsvendor.
    """
    chosen = small_paper.select(figures=[5, 2], tables=[1])

    assert [exhibit.title for exhibit in chosen] == ["Figure 2", "Figure 5", "Table 1"]
    assert experiments(chosen) == {"newsvendor": ("random-search", "simple-previous-no-bo")}


def test_papers_have_names():
    assert list_papers() == ["ablr", "abrac", "distbo", "hp-transfer", "othpo"]


@pytest.mark.parametrize(
    ("wrong_options", "error", "message"),
    [
        ({"figures": [2, 4]}, ExperimentError, "no figure 4 to reproduce, only 1, 2, 3, 5, 6"),
        ({"tables": [2]}, ExperimentError, "no table 2 to reproduce, only 1"),
        ({"surrogate": "tabel"}, UnknownNameError, "'tabel' of the benchmarks of small; did you"),
        ({"workers": -1}, ExperimentError, "at least 1 worker"),
    ],
)
def test_wrong_requests_are_refused(small_paper, tmp_path, wrong_options, error, message):
    """The small paper has no such figure or table; nothing is written then."""
    with pytest.raises(error, match=message):
        reproduce(small_paper, folder=tmp_path, **wrong_options)

    assert not list(tmp_path.iterdir())


def test_trials_in_flight_are_for_ordered_tasks(tmp_path):
    with pytest.raises(ExperimentError, match="not leave-one-out"):
        reproduce(paper("ablr"), folder=tmp_path, workers_simulated=2)


def test_file_in_place_of_folder_is_named(small_paper, tmp_path):
    """The user names a file as the folder to write to."""
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreError, match="file"):
        reproduce(small_paper, folder=tmp_path / "file", figures=[1])
