"""What the reproduction of a small paper writes, and what it runs."""

from pathlib import Path

import pandas as pd
import pytest

from hpobench_ordered.errors import ExperimentError, StoreError, UnknownNameError
from hpobench_ordered.papers import list_papers, paper, reproduce
from hpobench_ordered.papers.paper import experiments


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where every figure and table of the small paper is written."""
    return tmp_path_factory.mktemp("reproduction")


@pytest.fixture(scope="module")
def result(small_paper, folder):
    """The reproduction of all figures and tables of the small paper.

    They need two methods with three seeds, for three trials on each of nine tasks.
    """
    return reproduce(small_paper, folder=folder)


@pytest.fixture(scope="module")
def results_folder(folder, result):
    """The folder with all figures and tables of the small paper, once they are written."""
    return folder


def read_files(folder: Path) -> dict[str, bytes]:
    """Read the files of a folder, without those in its subfolders, by their names."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.slow
def test_result_lists_all_files(results_folder, result):
    files = [path for path in results_folder.iterdir() if path.is_file()]
    assert sorted(result.setup.files) == sorted(files)


@pytest.mark.slow
def test_figure_is_png(results_folder):
    assert (results_folder / "figure-2.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_every_run_is_stored(results_folder, result):
    """The small paper needs runs of two methods with three seeds; a cell stands for a run."""
    files_of_runs = list((results_folder / "results" / "runs").iterdir())

    assert len(result.cells) == 2 * 3
    assert len(files_of_runs) == 2 * 3


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 3, 5, 6, 7])
def test_gallery_shows_every_figure(small_paper, results_folder, number):
    """The gallery has each figure, and what the paper says of it."""
    gallery = (results_folder / "figures.md").read_text(encoding="utf-8")

    (figure,) = small_paper.select(figures=[number])
    assert figure.says in gallery
    assert f"(figure-{number}.png)" in gallery


@pytest.mark.slow
def test_claims_have_verdicts(result):
    """The small paper claims three things of a method with transfer, against random search.

    The second claim says that it is behind, which is wrong.
    """
    verdicts = {claim.claim.sentence: claim.verdict for claim in result.claims}

    assert verdicts == {
        "transfer is ahead": "holds",
        "and behind": "fails",
        "on most tasks": "holds",
    }


@pytest.mark.slow
def test_findings_are_written(results_folder):
    findings = pd.read_csv(results_folder / "claims.csv")
    assert findings["outcome"].tolist() == ["holds", "fails", "holds"]


@pytest.mark.slow
def test_entries_are_compared_with_published_ones(result):
    """The small paper has "published" two intervals, in percent, for its table.

    One is from -1e6 to 1e6, which contains anything; the other one is below -1e6.
    """
    reduction, improvement = result.entries["table-1"]

    assert reduction.is_inside
    assert not improvement.is_inside


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "2 of 3 hold everywhere",
        "| Figure 2 | 1 | and behind | fails | newsvendor: random-search ",
        "newsvendor: seeds 0 to 2; protocol ordered: trials 3, workers simulated 1.",
        "| reduction in standard error (%) | newsvendor | 0.0 (-1000000.0",
        "newsvendor@1 on table",
        "| random-search | 3 | 81 |",  # runs, and suggestions in them: 3 seeds, 9 tasks, 3 trials
    ],
)
def test_summary_has(results_folder, text):
    assert text in (results_folder / "summary.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_curves_have_all_scores(results_folder):
    """Figure 5 of the small paper has curves of two methods on nine tasks, over three trials."""
    curves = pd.read_csv(results_folder / "figure-5.csv")

    assert len(curves) == 2 * 9 * 3


@pytest.mark.slow
def test_random_search_ends_at_100(results_folder):
    """Scores are scaled so on every task. Figure 5 of the small paper has three trials of each."""
    curves = pd.read_csv(results_folder / "figure-5.csv")

    is_last_of_random_search = (curves["trial"] == 3) & (curves["method"] == "random-search")
    scores = curves.loc[is_last_of_random_search, "score"].dropna()
    assert len(scores) > 0
    assert scores.tolist() == pytest.approx([100] * len(scores))


@pytest.mark.slow
def test_locations_are_on_tasks_shown(results_folder):
    """Figure 7 of the small paper shows the tasks with indices 1 and 8; in figures, 1 is first."""
    locations = pd.read_csv(results_folder / "figure-7.csv")

    assert set(locations["task"]) == {1 + 1, 8 + 1}


@pytest.mark.slow
def test_landscapes_show_whole_grids(results_folder):
    """Figure 1 of the small paper shows two tasks, over two hyperparameters of 21 values each."""
    landscapes = pd.read_csv(results_folder / "figure-1.csv")

    assert len(landscapes) == 2 * 21 * 21


@pytest.mark.slow
def test_landscapes_cross_the_best(results_folder):
    """Figure 1 of the small paper marks the three best configurations of each of two tasks."""
    landscapes = pd.read_csv(results_folder / "figure-1.csv")

    crosses_by_task = landscapes.groupby("task")["crossed"].sum()
    assert crosses_by_task.tolist() == [3, 3]
    crossed = landscapes[landscapes["crossed"]]
    assert crossed["objective"].max() == landscapes["objective"].max()


@pytest.mark.slow
def test_finished_runs_are_not_repeated(results_folder, small_paper):
    """A second reproduction in the same folder writes the same, and leaves runs as they are."""
    files_before = read_files(results_folder)
    files_of_runs = list((results_folder / "results" / "runs").iterdir())
    times_before = [path.stat().st_mtime_ns for path in files_of_runs]

    reproduce(small_paper, folder=results_folder)

    assert read_files(results_folder) == files_before
    assert [path.stat().st_mtime_ns for path in files_of_runs] == times_before


@pytest.mark.slow
def test_selected_figures_equal_those_of_all(results_folder, small_paper, tmp_path):
    """Two figures are the same whether they are made alone or with all others."""
    reproduce(small_paper, folder=tmp_path, figures=[2, 3], workers=2)

    files_of_all = read_files(results_folder)
    files_of_selection = read_files(tmp_path)
    files_that_list_figures = {"summary.md", "figures.md", "claims.csv"}
    for name in files_of_selection.keys() - files_that_list_figures:
        assert files_of_selection[name] == files_of_all[name], name


def test_only_needed_methods_are_run(small_paper, tmp_path):
    """Figure 7 is of one method, while the small paper has two."""
    result = reproduce(small_paper, folder=tmp_path, figures=[7], seeds=[4])

    assert {cell.method.name for cell in result.cells} == {"simple-previous-no-bo"}
    assert "Made: Figure 7." in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_repeated_seed_runs_once(small_paper, tmp_path):
    """Seed 4 is asked for twice; figure 7 needs one run with each seed."""
    result = reproduce(small_paper, folder=tmp_path, figures=[7], seeds=[4, 4, 5])

    assert [cell.seed for cell in result.cells] == [4, 5]
    assert result.setup.settings["newsvendor"].seeds == (4, 5)


def test_simulated_workers_enter_protocol(small_paper, tmp_path):
    """The runs are made under the protocol with two simulated workers: here one run."""
    result = reproduce(small_paper, folder=tmp_path, figures=[7], seeds=[4], workers_simulated=2)

    (cell,) = result.cells
    assert "workers_simulated=2" in cell.describe()["protocol"]


def test_progress_counts_runs_and_figures(small_paper, tmp_path):
    """A step says what is counted, how many of it are finished, and how many there are in all.

    With two seeds, figure 7 needs two runs.
    """
    steps: list[tuple[str, int, int]] = []

    reproduce(
        small_paper,
        folder=tmp_path,
        figures=[7],
        seeds=[4, 5],
        progress=lambda *step: steps.append(step),
    )

    assert ("runs", 2, 2) in steps
    assert steps[-1] == ("figures and tables", 1, 1)


@pytest.mark.slow
def test_landscapes_need_no_runs(small_paper, tmp_path):
    assert reproduce(small_paper, folder=tmp_path, figures=[1]).cells == ()
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
def test_one_seed_leaves_intervals_empty(small_paper, tmp_path):
    """A row of the table is the published interval, which ends at 1e6, then ours and a verdict.

    With a single seed there is no standard error, so the last two are missing: "-".
    """
    reproduce(small_paper, folder=tmp_path, seeds=[0])

    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "nan" not in summary
    assert "1000000.0) | - | - |" in summary


def test_selection_keeps_order_of_paper(small_paper):
    """Figure 5 is asked for before figure 2, but comes after it, as in the paper."""
    chosen = small_paper.select(figures=[5, 2], tables=[1])

    assert [exhibit.title for exhibit in chosen] == ["Figure 2", "Figure 5", "Table 1"]


def test_experiments_are_methods_by_benchmark(small_paper):
    """What exhibits need in common is named once: the same two methods on newsvendor."""
    chosen = small_paper.select(figures=[5, 2], tables=[1])

    assert experiments(chosen) == {"newsvendor": ("random-search", "simple-previous-no-bo")}


def test_papers_have_names():
    assert list_papers() == ["ablr", "abrac", "distbo", "hp-transfer", "othpo"]


def test_unknown_paper_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'othpo'"):
        paper("othp")


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


def test_file_in_place_of_folder_is_named(small_paper, tmp_path):
    """The user names a file as the folder to write to."""
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreError, match="file"):
        reproduce(small_paper, folder=tmp_path / "file", figures=[1])
