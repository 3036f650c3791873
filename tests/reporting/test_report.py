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
from reporting_support import HOSTILE, ORDERED, made_up_trials, overview_runs

import hpobench_ordered as hbo
from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup, compare_pairs
from hpobench_ordered.analysis.curves import curves
from hpobench_ordered.analysis.labels import join_names
from hpobench_ordered.analysis.leaderboard import leaderboard
from hpobench_ordered.analysis.scoring import group_by_protocol, score_benchmarks
from hpobench_ordered.analysis.verdict import verdicts
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.experiment.overview import Overview
from hpobench_ordered.reporting import Report, ReportInput, write_report
from hpobench_ordered.reporting.formats import markdown_text
from hpobench_ordered.reporting.tables import leaderboard_tables


def page_of(report: Report) -> str:
    return report.page.read_text(encoding="utf-8")


def unpack_data(page: str, name: str) -> Any:
    """Data that the script of a page reads from the element of this name."""
    packed = re.search(f'id="{name}">([^<]*)<', page)
    assert packed is not None
    return unpack(packed.group(1))


def unpack(packed: str) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def numbers_of_entry(report: Report, entry: int) -> Any:
    """Numbers of an entry of the first protocol: the page has the first, its parts the others."""
    if entry == 0:
        return unpack_data(page_of(report), "data")["parts"]["0-0"]
    return unpack_part(report, f"0-{entry}")


def unpack_part(report: Report, name: str) -> Any:
    """Data in a file beside the page."""
    script = (report.page.parent / "report_parts" / f"{name}.js").read_text(encoding="utf-8")
    call = re.fullmatch(r'receivePart\("([^"]*)", "([^"]*)"\);\n', script)
    assert call is not None
    assert call.group(1) == name
    return unpack(call.group(2))


def small_trials() -> pd.DataFrame:
    """Results of every method on two tasks of a benchmark."""
    return made_up_trials("newsvendor@1", trials=3, tasks=2)


def names_of_files(report: Report) -> set[str]:
    folder = report.page.parent
    return {path.relative_to(folder).as_posix() for path in report.files}


def test_report_has_tables_and_figures(page_report):
    names = names_of_files(page_report)
    figures = {name.rpartition(".")[0] for name in names if name.startswith("figures/")}
    in_every_format = {f"{name}.{suffix}" for name in figures for suffix in ("png", "svg", "pdf")}
    tables = {"leaderboard.csv", "leaderboard.tex", "means.csv", "pairs.csv", "failures.csv"}
    # All benchmarks of the first protocol, the first of which is in the page; and of the other.
    entries = ("0-1", "0-2", "0-3", "1-0")
    with_tasks = {f"{entry}{part}" for entry in entries for part in ("", "-tasks")}
    parts = {f"report_parts/{name}.js" for name in with_tasks}
    assert names == {"report.html", "summary.md", *tables, *in_every_format, *parts}


def test_page_links_to_all_files(page_report):
    linked = set(re.findall(r'href="([^"#]+)"', page_of(page_report)))
    files = names_of_files(page_report) - {"report.html"}
    assert linked == {name for name in files if not name.startswith("report_parts/")}


@pytest.mark.parametrize("kind", ["heatmap", "differences", "attainment"])
@pytest.mark.parametrize(
    ("ending", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<svg")]
)
def test_figures_are_written_in_three_formats(page_report, kind, ending, start):
    folder = page_report.page.parent / "figures"
    (figure,) = folder.glob(f"{kind}-ordered*.{ending}")
    assert figure.read_bytes().startswith(start)


def test_leaderboard_file_has_ranks(page_report):
    table = pd.read_csv(page_report.page.parent / "leaderboard.csv")
    pd.testing.assert_series_equal(table["rank"], leaderboard(page_report.benchmarks)["rank"])


def test_means_file_has_curves(page_report):
    means = pd.read_csv(page_report.page.parent / "means.csv")
    expected = curves(page_report.benchmarks, tasks=False)
    np.testing.assert_allclose(means["mean"], expected["mean"], rtol=1e-15)  # as pandas reads


def test_pairs_file_has_adjusted_p_values(page_report):
    group = BenchmarkGroup.for_means(group_by_protocol(page_report.benchmarks)[ORDERED])
    test = compare_pairs(group)
    assert test is not None

    pairs = pd.read_csv(page_report.page.parent / "pairs.csv")

    of_first = pairs[(pairs["protocol"] == ORDERED) & (pairs["method"] == test.methods[0])]
    np.testing.assert_allclose(of_first["p_holm_benchmarks"], test.adjusted[0, 1:], rtol=1e-15)


def test_page_and_summary_say_who_leads(page_report):
    section = page_of(page_report).partition('id="verdict"')[2].partition("</section>")[0]
    summary = (page_report.page.parent / "summary.md").read_text(encoding="utf-8")
    for verdict in verdicts(page_report.benchmarks):
        assert str(escape(join_names(verdict.leaders))) in section
        assert f"{verdict.mean_rank:.2f}" in section
        assert markdown_text(verdict.sentence) in summary


def test_page_has_all_benchmarks_of_protocols(page_report):
    ordered, other = unpack_data(page_of(page_report), "data")["protocols"]
    labels = [f"{name}@1 (forest)" for name in ("newsvendor", "own", "xgboost-mnist")]
    assert [entry["label"] for entry in ordered["entries"]] == ["all 3 benchmarks", *labels]
    assert [entry["trials"] for entry in other["entries"]] == [4]


ENTRIES = pytest.mark.parametrize(
    ("entry", "name"), [(0, "all"), (1, "newsvendor@1"), (3, "xgboost-mnist@1")]
)
"""Places of benchmarks among the entries of the first protocol."""


def rows_of_leaderboard(report: Report, benchmark: str, *, trial: int = 6) -> list[dict[str, Any]]:
    """Rows of the leaderboard that the page should show for a benchmark, or for "all"."""
    table = leaderboard(report.benchmarks, trial=trial)
    is_shown = (table["protocol"] == ORDERED) & (table["benchmark"] == benchmark)
    return table[is_shown].to_dict("records")


@ENTRIES
@pytest.mark.parametrize("trial", [1, 6])
@pytest.mark.parametrize("measure", ["score", "regret", "rank"])
def test_page_has_means_of_leaderboard(page_report, entry, name, trial, measure):
    protocol = unpack_data(page_of(page_report), "data")["protocols"][0]
    mean_and_ends = numbers_of_entry(page_report, entry)["measures"][measure]
    for row in rows_of_leaderboard(page_report, name, trial=trial):
        place = protocol["methods"].index(row["method"])
        curves_of_method = [by_method[place] for by_method in mean_and_ends]
        expected = [row[measure], row[f"{measure}_low"], row[f"{measure}_high"]]
        if curves_of_method[0] is None:
            assert np.isnan(row[measure])
        else:
            shown = np.array([curve[trial - 1] for curve in curves_of_method], dtype=float)
            np.testing.assert_allclose(shown, expected, rtol=1e-4)


@ENTRIES
@pytest.mark.parametrize("trial", [1, 6])
def test_page_has_wins_of_leaderboard(page_report, entry, name, trial):
    protocol = unpack_data(page_of(page_report), "data")["protocols"][0]
    wins = numbers_of_entry(page_report, entry)["wins"]
    wins_of_method = dict(zip(protocol["methods"], wins, strict=True))
    for row in rows_of_leaderboard(page_report, name, trial=trial):
        shown = wins_of_method[row["method"]]
        if shown is not None:  # which it is where a method has failed
            assert shown[trial - 1] == [row["wins"], row["ties"], row["losses"]]


@ENTRIES
def test_page_has_failures_of_leaderboard(page_report, entry, name):
    protocol = unpack_data(page_of(page_report), "data")["protocols"][0]
    failures = numbers_of_entry(page_report, entry)["failed"]
    failures_of_method = dict(zip(protocol["methods"], failures, strict=True))
    for row in rows_of_leaderboard(page_report, name):
        _, shown = failures_of_method[row["method"]]  # what the page sorts by, and the text
        assert shown == f"{row['failed']} of {row['runs']}"


def test_no_runs_give_no_report(tmp_path):
    with pytest.raises(ExperimentError, match="no runs"):
        write_report(ReportInput(made_up_trials("newsvendor@1")[:0]), tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_curves_of_few_seeds_have_no_interval(page_report):
    numbers = unpack_part(page_report, "1-0")  # of four seeds
    for mean_and_ends in numbers["measures"].values():
        assert len(mean_and_ends) == 1


def test_summary_of_few_seeds_has_no_interval(page_report):
    summary = (page_report.page.parent / "summary.md").read_text(encoding="utf-8")
    last_table = summary.rpartition("| method |")[2]  # of the protocol with four seeds
    assert "2.25 |" in last_table
    assert " to " not in last_table


def test_leaderboard_of_few_seeds_has_no_interval(page_report):
    """Each of four measures has a lower and an upper end, which need five seeds."""
    table = pd.read_csv(page_report.page.parent / "leaderboard.csv")
    ends = [column for column in table.columns if column.endswith(("_low", "_high"))]
    has_few_seeds = table["seeds"] < 5
    assert len(ends) == 8
    assert has_few_seeds.any()
    assert table.loc[has_few_seeds, ends].isna().all(axis=None)


@pytest.mark.parametrize("measure", ["regret", "rank", "value"])
def test_page_has_curves_of_tasks(page_report, measure):
    page = page_of(page_report)
    methods = unpack_data(page, "data")["protocols"][0]["methods"]
    tasks = unpack_part(page_report, "0-1-tasks")  # of newsvendor, which follows all benchmarks
    items = {(item.benchmark, item.protocol): item for item in page_report.benchmarks}
    item = items["newsvendor@1", ORDERED]
    place = methods.index(item.methods[0])
    assert len(tasks) == 3
    for number, task in enumerate(tasks):
        mean_curves = task[measure][0]
        expected = item.measures[measure].mean[0, number]
        np.testing.assert_allclose(mean_curves[place], expected, rtol=1e-3)


def test_page_counts_unfinished_runs(page_report):
    page = page_of(page_report)
    # Four methods: with five seeds on each of three benchmarks, with four under another protocol.
    assert 4 * (3 * 5 + 4) == 76
    assert "Not finished, of 76 runs: 1 failed, 4 missing." in page
    assert "2 runs of other versions of a method are there and count nowhere." in page


def test_page_shows_failures_machines_and_limits(page_report):
    page = page_of(page_report)
    assert html.escape("<b onclick=alert(2)>bad</b>") in page
    assert "Linux-6.18.44" in page
    assert "&lt;em&gt;rough&lt;/em&gt; near the edge" in page


@pytest.mark.parametrize(
    "mark", ["<img", "<b ", "<u>", "<s>", "<em>", "<i>", "</pre><script", "\u2028<"]
)
def test_text_from_results_is_escaped(page_report, mark):
    body = page_of(page_report).partition("<body>")[2]
    text, _, _ = body.partition('id="data"')
    assert mark not in text


def test_data_from_results_close_no_script(page_report):
    page = page_of(page_report)
    # The page's own are three; the hostile method's name contains such a tag, too.
    assert page.count("</script>") == 3
    assert HOSTILE in unpack_data(page, "data")["protocols"][0]["methods"]


def test_page_forbids_requests(page_report):
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page_of(page_report))
    assert "unsafe-eval" not in policy
    assert "http" not in policy


def test_parts_change_with_their_address(tmp_path):
    """Otherwise a browser might show numbers that it keeps of an earlier report."""
    editions = set()
    for entropy in (1, 2, 2):
        trials = made_up_trials("newsvendor@1", trials=3, tasks=2, entropy=entropy)
        report = write_report(ReportInput(trials), tmp_path)
        editions.add(unpack_data(page_of(report), "data")["edition"])
    assert len(editions) == 2


def test_summary_has_no_html(page_report):
    summary = (page_report.page.parent / "summary.md").read_text(encoding="utf-8")
    unescaped_bracket = r"(?<!\\)<"
    assert re.search(unescaped_bracket, summary) is None


@pytest.mark.slow
def test_same_results_give_same_files(tmp_path):
    trials = small_trials()
    first = write_report(ReportInput(trials), tmp_path / "first")
    second = write_report(ReportInput(trials), tmp_path / "second")
    for path, other in zip(first.files, second.files, strict=True):
        if path.suffix != ".pdf":  # the parts of a PDF stand in any order
            assert path.read_bytes() == other.read_bytes(), path.name


@pytest.mark.slow
def test_report_compares_surrogates(tmp_path):
    trials = small_trials()
    on_both = pd.concat([trials, trials.assign(surrogate="nearest")])
    page = page_of(write_report(ReportInput(on_both), tmp_path))
    assert "Methods by mean rank on every surrogate" in page
    assert "newsvendor@1 (nearest)" in page


@pytest.mark.slow
def test_report_of_single_method(tmp_path):
    trials = small_trials().query("method == 'bo'")
    page = page_of(write_report(ReportInput(trials), tmp_path))
    assert "There is nothing to compare." in page


@pytest.mark.slow
def test_report_without_random_search(tmp_path):
    trials = small_trials().query("method != 'random-search'")
    report = write_report(ReportInput(trials), tmp_path)
    (entry,) = unpack_data(page_of(report), "data")["protocols"][0]["entries"]
    assert set(numbers_of_entry(report, 0)["measures"]) == {"regret", "rank", "value"}
    assert any("The score is not available" in note for note in entry["notes"])


def trials_with_configurations() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Trials on newsvendor, and random configurations of each by the key of its run."""
    trials = made_up_trials("newsvendor@1", trials=6, tasks=2).assign(surrogate="table")
    keys = overview_runs(trials)[["method", "seed", "key"]]
    evaluations = trials.merge(keys, on=["method", "seed"])
    evaluations = evaluations[["key", "task", "trial", "value", "loss"]]

    space = hbo.load("newsvendor").space
    unit_rows = space.sample_unit(np.random.default_rng(0), len(evaluations))
    configs = space.configs(space.decode(unit_rows))
    return trials, evaluations.join(pd.DataFrame(configs))


@pytest.mark.slow
def test_landscapes_need_configurations(tmp_path):
    trials, configurations = trials_with_configurations()
    content = ReportInput(
        trials,
        Overview(overview_runs(trials), 0, (), ()),
        configurations=lambda keys: configurations[configurations["key"].isin(list(keys))],
    )

    page = page_of(write_report(content, tmp_path))

    assert 'id="landscapes"' in page
    (figure,) = (tmp_path / "figures").glob("landscapes-*.svg")
    axes = set(re.findall("price_[0-9]", figure.read_text(encoding="utf-8")))
    assert len(axes) == 2


def test_heading_without_intervals_mentions_no_brackets():
    """Benchmarks of five and of three seeds have no interval together."""
    five_seeds = made_up_trials("a@1", protocol=ORDERED, methods=["bo", "cts"], seeds=5)
    three_seeds = made_up_trials("b@1", protocol=ORDERED, methods=["bo", "cts"], seeds=3)
    scores, _ = score_benchmarks(pd.concat([five_seeds, three_seeds]))
    overall = next(leaderboard_tables(leaderboard(scores)))
    assert overall.caption.endswith("up to 5 seeds.")


TIME_COLUMN = "CPU ms per suggestion"


def test_known_times_have_a_column(page_report):
    tables = leaderboard_tables(leaderboard(page_report.benchmarks))
    assert all(table.header[-1] == TIME_COLUMN for table in tables)
    assert TIME_COLUMN in page_of(page_report)


def test_unknown_times_have_no_column(tmp_path):
    untimed = write_report(ReportInput(made_up_trials("newsvendor@1")), tmp_path)
    tables = leaderboard_tables(leaderboard(untimed.benchmarks))
    assert not any(TIME_COLUMN in table.header for table in tables)
    assert TIME_COLUMN not in page_of(untimed)
