from pathlib import Path

import pandas as pd
import pytest

from hpobench_ordered.errors import ExperimentError, StoreError, UnknownNameError
from hpobench_ordered.reproduction import list_papers, paper, reproduce
from hpobench_ordered.reproduction.paper import experiments


@pytest.fixture(scope="module")
def whole(small_paper, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    yield folder, reproduce(small_paper, folder=folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.slow
def test_all_files_are_written(whole):
    folder, result = whole
    assert sorted(result.setup.files) == sorted(path for path in folder.iterdir() if path.is_file())
    assert (folder / "figure-2.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_every_run_is_stored(whole):
    folder, result = whole
    files = list((folder / "results" / "runs").iterdir())
    assert len(files) == len(result.cells) == 2 * 3


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 3, 5, 6, 7])
def test_gallery_shows_every_figure(whole, number):
    gallery = (whole[0] / "figures.md").read_text(encoding="utf-8")
    assert f"says {number}" in gallery
    assert f"(figure-{number}.png)" in gallery


@pytest.mark.slow
def test_claims_have_verdicts(whole):
    folder, result = whole
    assert [claim.verdict for claim in result.claims] == ["yes", "no", "yes"]
    findings = pd.read_csv(folder / "claims.csv")
    assert findings["holds"].tolist() == [True, False, True]


@pytest.mark.slow
def test_entries_are_compared_with_published_ones(whole):
    _, result = whole
    assert [entry.is_inside for entry in result.entries["table-1"]] == [True, False]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "2 of 3 hold everywhere",
        "| Figure 2 | 1 | and behind | no | newsvendor: random-search ",
        "newsvendor: seeds 0 to 2; protocol ordered: trials 3, workers simulated 1.",
        "| reduction in standard error (%) | newsvendor | 0.0 (-1000000.0",
        "newsvendor@1 on table",
        "| random-search | 3 | 81 |",
    ],
)
def test_summary_has(whole, text):
    assert text in (whole[0] / "summary.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_curves_hold_all_scores(whole):
    table = pd.read_csv(whole[0] / "figure-5.csv")
    assert len(table) == 2 * 9 * 3  # methods, tasks, trials
    is_last = (table["trial"] == 3) & (table["method"] == "random-search")
    scores = table.loc[is_last, "score"].dropna()
    assert scores.tolist() == pytest.approx([100] * len(scores))


@pytest.mark.slow
def test_locations_hold_the_tasks_shown(whole):
    assert set(pd.read_csv(whole[0] / "figure-7.csv")["task"]) == {2, 9}


@pytest.mark.slow
def test_landscapes_cross_the_best(whole):
    landscape = pd.read_csv(whole[0] / "figure-1.csv")
    assert len(landscape) == 2 * 21 * 21
    assert landscape.groupby("task")["crossed"].sum().tolist() == [3, 3]
    crossed = landscape[landscape["crossed"]]
    assert crossed["objective"].max() == landscape["objective"].max()


@pytest.mark.slow
def test_finished_runs_are_not_repeated(whole, small_paper):
    folder, _ = whole
    first = contents(folder)
    runs = {path: path.stat().st_mtime_ns for path in (folder / "results" / "runs").iterdir()}
    reproduce(small_paper, folder=folder)
    assert contents(folder) == first
    assert {path: path.stat().st_mtime_ns for path in runs} == runs


@pytest.mark.slow
def test_figures_are_the_same_elsewhere(whole, small_paper, tmp_path):
    first = contents(whole[0])
    reproduce(small_paper, folder=tmp_path, figures=[2, 3], workers=2)
    second = contents(tmp_path)
    for name in second.keys() - {"summary.md", "figures.md", "claims.csv"}:
        assert second[name] == first[name], name


def test_only_what_is_needed_is_run(small_paper, tmp_path):
    seen: list[tuple[str, int, int]] = []
    result = reproduce(
        small_paper,
        folder=tmp_path,
        figures=[7],
        seeds=[4, 4, 5],
        workers_simulated=2,
        progress=lambda *step: seen.append(step),
    )
    assert {cell.method.name for cell in result.cells} == {"simple-previous-no-bo"}
    assert result.setup.settings["newsvendor"].seeds == (4, 5)
    assert all("workers_simulated=2" in cell.describe()["protocol"] for cell in result.cells)
    assert ("runs", 2, 2) in seen and seen[-1] == ("figures and tables", 1, 1)
    assert "Made: Figure 7." in (tmp_path / "summary.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_landscapes_need_no_runs(small_paper, tmp_path):
    assert reproduce(small_paper, folder=tmp_path, figures=[1]).cells == ()
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
def test_one_seed_has_no_error(small_paper, tmp_path):
    reproduce(small_paper, folder=tmp_path, seeds=[0])
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "nan" not in summary and "1000000.0) | - | - |" in summary


def test_selection_keeps_order_of_paper(small_paper):
    chosen = small_paper.select(figures=[5, 2], tables=[1])
    assert [exhibit.title for exhibit in chosen] == ["Figure 2", "Figure 5", "Table 1"]
    assert experiments(chosen) == {"newsvendor": ("random-search", "simple-previous-no-bo")}


def test_papers_have_names():
    assert list_papers() == ["ablr", "abrac", "distbo", "hp-transfer", "othpo"]


def test_unknown_paper_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'othpo'"):
        paper("othp")


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"figures": [2, 4]}, ExperimentError, "no figure 4 to reproduce, only 1, 2, 3, 5, 6"),
        ({"tables": [2]}, ExperimentError, "no table 2 to reproduce, only 1"),
        ({"surrogate": "tabel"}, UnknownNameError, "'tabel' of the benchmarks of small; did you"),
        ({"workers": -1}, ExperimentError, "at least 1 worker"),
    ],
)
def test_wrong_requests_are_refused(small_paper, tmp_path, wrong, error, message):
    with pytest.raises(error, match=message):
        reproduce(small_paper, folder=tmp_path, **wrong)
    assert not list(tmp_path.iterdir())


def test_file_in_place_of_folder_is_named(small_paper, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        reproduce(small_paper, folder=tmp_path / "file", figures=[1])
