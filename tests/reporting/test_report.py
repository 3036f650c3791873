"""The files of a report, and the numbers and texts of its page."""

import base64
import gzip
import html
import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from markupsafe import escape
from reporting_support import HOSTILE, ORDERED, known_runs, made_up_trials

import hpobench_ordered as hbo
from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup, compare_pairs
from hpobench_ordered.analysis.curves import curves
from hpobench_ordered.analysis.labels import join_names
from hpobench_ordered.analysis.leaderboard import leaderboard
from hpobench_ordered.analysis.scoring import group_by_protocol
from hpobench_ordered.analysis.verdict import verdicts
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.experiment.overview import Overview
from hpobench_ordered.reporting import Report, ReportInput, write_report


def page_of(report: Report) -> str:
    return report.page.read_text(encoding="utf-8")


def unpacked(page: str, name: str) -> Any:
    text = re.search(f'id="{name}">([^<]*)<', page)
    assert text is not None
    return json.loads(gzip.decompress(base64.b64decode(text.group(1))))


def test_page_links_to_all_files(page_report):
    folder = page_report.page.parent
    names = {path.relative_to(folder).as_posix() for path in page_report.files}
    data = {"leaderboard.csv", "leaderboard.tex", "means.csv", "pairs.csv", "failures.csv"}
    figures = {name.rpartition(".")[0] for name in names if name.startswith("figures/")}
    files = {f"{name}.{ending}" for name in figures for ending in ("png", "svg", "pdf")}
    assert names == {"report.html", "summary.md", *data, *files}
    linked = set(re.findall(r'href="([^"#]+)"', page_of(page_report)))
    assert linked == names - {"report.html"}


@pytest.mark.parametrize("kind", ["heatmap", "differences-tasks", "attainment"])
@pytest.mark.parametrize(
    ("ending", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<svg")]
)
def test_figures_are_written_in_three_formats(page_report, kind, ending, start):
    folder = page_report.page.parent / "figures"
    (figure,) = folder.glob(f"{kind}-ordered*.{ending}")
    assert figure.read_bytes().startswith(start)


def test_tables_hold_what_analysis_computes(page_report):
    folder = page_report.page.parent
    board = pd.read_csv(folder / "leaderboard.csv")
    pd.testing.assert_series_equal(board["rank"], leaderboard(page_report.benchmarks)["rank"])
    means = pd.read_csv(folder / "means.csv")
    expected = curves(page_report.benchmarks, tasks=False)
    np.testing.assert_allclose(means["mean"], expected["mean"], rtol=1e-15)  # as pandas reads
    pairs = pd.read_csv(folder / "pairs.csv")
    test = compare_pairs(
        BenchmarkGroup.for_means(group_by_protocol(page_report.benchmarks)[ORDERED])
    )
    assert test is not None
    chosen = pairs[(pairs["protocol"] == ORDERED) & (pairs["method"] == test.methods[0])]
    np.testing.assert_allclose(chosen["p_holm_benchmarks"], test.adjusted[0, 1:], rtol=1e-15)


def test_page_shows_what_analysis_computes(page_report):
    page = page_of(page_report)
    leads = page.partition('id="verdict"')[2].partition("</section>")[0]
    summary = (page_report.page.parent / "summary.md").read_text(encoding="utf-8")
    for verdict in verdicts(page_report.benchmarks):
        assert str(escape(join_names(verdict.leaders))) in leads
        assert f"{verdict.mean_rank:.2f}" in leads
        assert f"{verdict.mean_rank:.2f} among {verdict.methods} methods" in summary
    data = unpacked(page, "data")
    (protocol, other) = data["protocols"]
    labels = [f"{name}@1 (forest)" for name in ("newsvendor", "own", "xgboost-mnist")]
    assert [entry["label"] for entry in protocol["entries"]] == ["all 3 benchmarks", *labels]
    assert [entry["trials"] for entry in other["entries"]] == [4]
    for trial in (1, 6):
        board = leaderboard(page_report.benchmarks, trial=trial)
        board = board[board["protocol"] == ORDERED]
        for entry, name in ((0, "all"), (1, "newsvendor@1"), (3, "xgboost-mnist@1")):
            shown = protocol["entries"][entry]
            for row in board[board["benchmark"] == name].to_dict("records"):
                place = protocol["methods"].index(row["method"])
                for measure in ("score", "regret", "rank"):
                    ends = [rows[place] for rows in shown["measures"][measure]]
                    expected = [row[f"{measure}{end}"] for end in ("", "_low", "_high")]
                    if ends[0] is None:
                        assert np.isnan(expected[0])
                    else:
                        found = np.array([end[trial - 1] for end in ends], dtype=float)
                        np.testing.assert_allclose(found, expected, rtol=1e-4)
                wins = shown["wins"][place]
                if wins is not None:
                    assert wins[trial - 1] == [row["wins"], row["ties"], row["losses"]]
                assert shown["failed"][place][1] == f"{row['failed']} of {row['runs']}"


def test_no_runs_give_no_report(tmp_path):
    with pytest.raises(ExperimentError, match="no runs"):
        write_report(ReportInput(made_up_trials("newsvendor@1")[:0]), tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_few_seeds_have_no_interval(page_report):
    """The second protocol has four."""
    shown = unpacked(page_of(page_report), "data")["protocols"][1]["entries"][0]["measures"]
    assert {measure: len(ends) for measure, ends in shown.items()} == dict.fromkeys(shown, 1)
    folder = page_report.page.parent
    last = (folder / "summary.md").read_text(encoding="utf-8").rpartition("| method |")[2]
    assert "2.25 |" in last and " to " not in last
    board = pd.read_csv(folder / "leaderboard.csv")
    ends = [c for c in board.columns if c.endswith(("_low", "_high"))]
    assert len(ends) == 8
    few = board["seeds"] < 5
    assert few.any() and board.loc[few, ends].isna().all(axis=None)


def test_page_has_curves_of_tasks(page_report):
    tasks = unpacked(page_of(page_report), "tasks")[0][1]
    found = {(item.benchmark, item.protocol): item for item in page_report.benchmarks}
    item = found["newsvendor@1", ORDERED]
    assert len(tasks) == 3
    methods = unpacked(page_of(page_report), "data")["protocols"][0]["methods"]
    place = methods.index(item.methods[0])
    for measure in ("regret", "rank", "value"):
        for t, task in enumerate(tasks):
            expected = item.measures[measure].mean[0, t]
            np.testing.assert_allclose(task[measure][0][place], expected, rtol=1e-3)


def test_text_from_results_is_escaped(page_report):
    page = page_of(page_report)
    assert "Not finished, of 76 runs: 1 failed, 4 missing." in page
    assert "2 runs of other versions of a method are there and count nowhere." in page
    assert html.escape("<b onclick=alert(2)>bad</b>") in page and "Linux-6.18.44" in page
    assert "&lt;em&gt;rough&lt;/em&gt; near the edge" in page
    for mark in ("<img", "<b ", "<u>", "<s>", "<em>", "<i>", "</pre><script", "\u2028<"):
        assert mark not in page.partition("<body>")[2].partition('id="data"')[0]
    assert page.count("</script>") == 4
    assert HOSTILE in unpacked(page, "data")["protocols"][0]["methods"]
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert "unsafe-eval" not in policy and "http" not in policy
    summary = (page_report.page.parent / "summary.md").read_text(encoding="utf-8")
    assert re.search(r"(?<!\\)<", summary) is None


@pytest.mark.slow
def test_same_results_give_same_files(page_input, tmp_path):
    trials = made_up_trials("newsvendor@1", trials=3, tasks=2)
    reports = [write_report(ReportInput(trials), tmp_path / name) for name in "ab"]
    for first, second in zip(*(report.files for report in reports), strict=True):
        if first.suffix != ".pdf":  # the parts of a PDF stand in any order
            assert first.read_bytes() == second.read_bytes(), first.name


@pytest.mark.slow
def test_report_without_random_search(tmp_path):
    trials = made_up_trials("newsvendor@1", trials=3, tasks=2)
    is_random, is_bo = trials["method"] == "random-search", trials["method"] == "bo"
    both = pd.concat([trials, trials.assign(surrogate="nearest")])
    page, alone, without = (
        page_of(write_report(ReportInput(part), tmp_path / str(number)))
        for number, part in enumerate((both, trials[is_bo], trials[~is_random]))
    )
    assert "Methods by mean rank on every surrogate" in page and "newsvendor@1 (nearest)" in page
    assert "There is nothing to compare." in alone
    entry = unpacked(without, "data")["protocols"][0]["entries"][0]
    assert set(entry["measures"]) == {"regret", "rank", "value"}
    assert any("The score is not available" in note for note in entry["notes"])


@pytest.mark.slow
def test_landscapes_need_configurations(tmp_path):
    trials = made_up_trials("newsvendor@1", trials=6, tasks=2).assign(surrogate="table")
    runs, space = known_runs(trials), hbo.load("newsvendor").space
    keyed = trials.merge(runs[["method", "seed", "key"]], on=["method", "seed"])
    configs = space.configs(space.decode(space.sample_unit(np.random.default_rng(0), len(keyed))))
    keyed = keyed[["key", "task", "trial", "value", "loss"]].join(pd.DataFrame(configs))
    content = ReportInput(
        trials,
        Overview(runs, 0, (), ()),
        configurations=lambda keys: keyed[keyed["key"].isin(list(keys))],
    )
    page = page_of(write_report(content, tmp_path))
    assert 'id="landscapes"' in page
    (svg,) = (tmp_path / "figures").glob("landscapes-*.svg")
    assert len({*re.findall("price_[0-9]", svg.read_text(encoding="utf-8"))}) == 2
