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
def test_figures_claims_and_tables_are_written(whole):
    folder, result = whole
    assert sorted(result.setup.files) == sorted(path for path in folder.iterdir() if path.is_file())
    assert len(list((folder / "results" / "runs").iterdir())) == len(result.cells) == 2 * 3
    assert (folder / "figure-2.png").read_bytes().startswith(b"\x89PNG")
    gallery = (folder / "figures.md").read_text(encoding="utf-8")
    for number in (1, 2, 3, 5, 6, 7):
        assert f"says {number}" in gallery and f"(figure-{number}.png)" in gallery
    assert [claim.verdict for claim in result.claims] == ["yes", "no", "yes"]
    summary = (folder / "summary.md").read_text(encoding="utf-8")
    assert "2 of 3 hold everywhere" in summary
    assert "| Figure 2 | 1 | and behind | no | newsvendor: random-search " in summary
    assert "newsvendor: seeds 0 to 2; protocol ordered: trials 3, workers simulated 1." in summary
    assert "| reduction in standard error (%) | newsvendor | 0.0 (-1000000.0" in summary
    assert "newsvendor@1 on table" in summary
    assert "| random-search | 3 | 81 |" in summary
    inside = [entry.is_inside for entry in result.entries["table-1"]]
    assert inside == [True, False]
    findings = pd.read_csv(folder / "claims.csv")
    assert findings["holds"].tolist() == [True, False, True]


@pytest.mark.slow
def test_data_of_a_figure_are_its_scores(whole):
    folder, _ = whole
    table = pd.read_csv(folder / "figure-5.csv")
    assert len(table) == 2 * 9 * 3  # methods, tasks, trials
    last = table[(table["trial"] == 3) & (table["method"] == "random-search")]
    assert last["score"].dropna().tolist() == pytest.approx([100] * last["score"].count())
    assert len(pd.read_csv(folder / "figure-2.csv")) == 2 * 9
    assert set(pd.read_csv(folder / "figure-7.csv")["task"]) == {2, 9}
    landscape = pd.read_csv(folder / "figure-1.csv")
    assert len(landscape) == 2 * 21 * 21
    assert landscape.groupby("task")["crossed"].sum().tolist() == [3, 3]
    crossed = landscape[landscape["crossed"]]
    assert crossed["objective"].max() == landscape["objective"].max()


@pytest.mark.slow
def test_again_runs_nothing_and_elsewhere_gives_the_same_figures(whole, small_paper, tmp_path):
    folder, _ = whole
    first = contents(folder)
    runs = {path: path.stat().st_mtime_ns for path in (folder / "results" / "runs").iterdir()}
    reproduce(small_paper, folder=folder)
    assert contents(folder) == first
    assert {path: path.stat().st_mtime_ns for path in runs} == runs
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
def test_landscapes_need_no_runs_and_one_seed_has_no_error(small_paper, tmp_path):
    assert reproduce(small_paper, folder=tmp_path, figures=[1]).cells == ()
    assert not (tmp_path / "results").exists()
    reproduce(small_paper, folder=tmp_path, seeds=[0])
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "nan" not in summary and "1000000.0) | - | - |" in summary


def test_selection_keeps_the_order_of_the_paper_and_papers_have_names(small_paper):
    chosen = small_paper.select(figures=[5, 2], tables=[1])
    assert [exhibit.title for exhibit in chosen] == ["Figure 2", "Figure 5", "Table 1"]
    assert experiments(chosen) == {"newsvendor": ("random-search", "simple-previous-no-bo")}
    assert list_papers() == ["ablr", "abrac", "distbo", "hp-transfer", "othpo"]
    with pytest.raises(UnknownNameError, match="did you mean 'othpo'"):
        paper("othp")


def test_bad_requests(small_paper, tmp_path):
    for wrong, error, message in (
        ({"figures": [2, 4]}, ExperimentError, "no figure 4 to reproduce, only 1, 2, 3, 5, 6"),
        ({"tables": [2]}, ExperimentError, "no table 2 to reproduce, only 1"),
        ({"surrogate": "tabel"}, UnknownNameError, "'tabel' of the benchmarks of small; did you"),
        ({"workers": 0}, ExperimentError, "at least 1 worker"),
    ):
        with pytest.raises(error, match=message):
            reproduce(small_paper, folder=tmp_path, **wrong)
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        reproduce(small_paper, folder=tmp_path / "file", figures=[1])
