"""The files of a report, and the numbers and texts of its page."""

import base64
import gzip
import html
import json
import re
from collections.abc import Iterable
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


def read_page(report: Report) -> str:
    """Read the page of a report, `report.html`."""
    return report.page.read_text(encoding="utf-8")


def unpack_data(page: str, name: str) -> Any:
    """Unpack the data that the page's script reads from the element of this name."""
    element = re.search(f'id="{name}">([^<]*)<', page)
    assert element is not None
    return unpack_json(element.group(1))


def unpack_json(packed: str) -> Any:
    """Unpack what the page and its parts hold: JSON, compressed, in base 64."""
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def read_numbers_of_entry(report: Report, entry: int) -> Any:
    """Numbers of an entry of the first protocol: the page has the first, its parts the others."""
    if entry == 0:
        return unpack_data(read_page(report), "data")["parts"]["0-0"]
    return unpack_part(report, f"0-{entry}")


def unpack_part(report: Report, name: str) -> Any:
    """Unpack the data in a file beside the page, which is a call with its name and the data."""
    script = (report.page.parent / "report_parts" / f"{name}.js").read_text(encoding="utf-8")
    call = re.fullmatch(r'receivePart\("([^"]*)", "([^"]*)"\);\n', script)
    assert call is not None
    name_in_call, packed = call.groups()
    assert name_in_call == name
    return unpack_json(packed)


def make_small_trials() -> pd.DataFrame:
    """Results of every method on two tasks of a benchmark."""
    return made_up_trials("newsvendor@1", trials=3, tasks=2)


def list_files(report: Report) -> set[str]:
    """List the files of a report by their paths in its folder."""
    folder = report.page.parent
    return {path.relative_to(folder).as_posix() for path in report.files}


def test_report_has_page_summary_and_tables(page_report):
    names = list_files(page_report)

    tables = {"leaderboard.csv", "leaderboard.tex", "means.csv", "pairs.csv", "failures.csv"}
    without_figures_and_parts = {
        name for name in names if not name.startswith(("figures/", "report_parts/"))
    }
    assert without_figures_and_parts == {"report.html", "summary.md", *tables}


def test_report_has_parts_of_entries(page_report):
    """Entries are numbered by protocol and place; the page itself holds the first, 0-0."""
    parts = {name for name in list_files(page_report) if name.startswith("report_parts/")}

    expected = set()
    for entry in ("0-1", "0-2", "0-3", "1-0"):
        expected |= {f"report_parts/{entry}.js", f"report_parts/{entry}-tasks.js"}
    assert parts == expected


def test_every_figure_is_in_every_format(page_report):
    figure_files = {name for name in list_files(page_report) if name.startswith("figures/")}
    figures = {name.rpartition(".")[0] for name in figure_files}

    for figure in figures:
        assert {f"{figure}.png", f"{figure}.svg", f"{figure}.pdf"} <= figure_files
    assert len(figure_files) == 3 * len(figures)


def test_page_links_to_all_files(page_report):
    """But for itself, and for its parts, which its script loads."""
    files = list_files(page_report) - {"report.html"}

    linked = set(re.findall(r'href="([^"#]+)"', read_page(page_report)))

    assert linked == {name for name in files if not name.startswith("report_parts/")}


@pytest.mark.parametrize("kind", ["heatmap", "differences", "attainment"])
@pytest.mark.parametrize(
    ("ending", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<svg")]
)
def test_figures_are_written_in_three_formats(page_report, kind, ending, start):
    """A format is recognised by the first bytes of a file."""
    folder = page_report.page.parent / "figures"

    (figure,) = folder.glob(f"{kind}-ordered*.{ending}")

    assert figure.read_bytes().startswith(start)


def test_leaderboard_file_has_ranks(page_report):
    table = pd.read_csv(page_report.page.parent / "leaderboard.csv")

    pd.testing.assert_series_equal(table["rank"], leaderboard(page_report.benchmarks)["rank"])


def test_means_file_has_curves(page_report):
    means = pd.read_csv(page_report.page.parent / "means.csv")

    expected = curves(page_report.benchmarks, tasks=False)
    # pandas does not read the last digit exactly.
    np.testing.assert_allclose(means["mean"], expected["mean"], rtol=1e-15)


def test_pairs_file_has_adjusted_p_values(page_report):
    """Those of the first method against each of the others, under one of two protocols."""
    scores_by_protocol = group_by_protocol(page_report.benchmarks)
    benchmarks = BenchmarkGroup.for_means(scores_by_protocol[ORDERED])
    comparison = compare_pairs(benchmarks)
    assert comparison is not None
    first_method = comparison.methods[0]
    # A matrix of all pairs of methods; its first row begins with the method against itself.
    _against_itself, *expected = comparison.adjusted[0]

    pairs = pd.read_csv(page_report.page.parent / "pairs.csv")

    is_of_first = (pairs["protocol"] == ORDERED) & (pairs["method"] == first_method)
    # Adjusted by Holm's method; benchmarks, not tasks, are the samples.
    p_values = pairs.loc[is_of_first, "p_holm_benchmarks"]
    # pandas does not read the last digit exactly.
    np.testing.assert_allclose(p_values, expected, rtol=1e-15)


def test_page_says_who_leads(page_report):
    """By a sentence for each protocol in its section "verdict"."""
    _, _, after_heading = read_page(page_report).partition('id="verdict"')
    section, _, _ = after_heading.partition("</section>")

    for verdict in verdicts(page_report.benchmarks):
        assert str(escape(join_names(verdict.leaders))) in section
        assert f"{verdict.mean_rank:.2f}" in section


def test_summary_says_who_leads(page_report):
    summary = (page_report.page.parent / "summary.md").read_text(encoding="utf-8")

    for verdict in verdicts(page_report.benchmarks):
        assert markdown_text(verdict.sentence) in summary


def test_page_has_all_benchmarks_of_protocols(page_report):
    """Three benchmarks under the first protocol, and newsvendor with four trials under another."""
    ordered, other = unpack_data(read_page(page_report), "data")["protocols"]

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
    """Of a benchmark, the page has the mean and both ends of its interval, by method and trial.

    It has no curves of a method whose mean is undefined, because it failed. `entry` is the place of
    the benchmark, `name`, on the page.
    """
    protocol, _ = unpack_data(read_page(page_report), "data")["protocols"]
    measures = read_numbers_of_entry(page_report, entry)["measures"]
    means, lower_ends, upper_ends = measures[measure]
    for row in rows_of_leaderboard(page_report, name, trial=trial):
        place = protocol["methods"].index(row["method"])
        if means[place] is None:
            assert np.isnan(row[measure])
            continue
        shown = [curves[place][trial - 1] for curves in (means, lower_ends, upper_ends)]
        expected = [row[measure], row[f"{measure}_low"], row[f"{measure}_high"]]
        # Numbers of the page have four digits; None stands for an undefined one.
        np.testing.assert_allclose(np.array(shown, dtype=float), expected, rtol=1e-4)


@ENTRIES
@pytest.mark.parametrize("trial", [1, 6])
def test_page_has_wins_of_leaderboard(page_report, entry, name, trial):
    """Of the benchmark `name` at the place `entry`; the page has none of a method that failed."""
    protocol, _ = unpack_data(read_page(page_report), "data")["protocols"]
    wins = read_numbers_of_entry(page_report, entry)["wins"]
    wins_of_method = dict(zip(protocol["methods"], wins, strict=True))

    for row in rows_of_leaderboard(page_report, name, trial=trial):
        wins_by_trial = wins_of_method[row["method"]]
        if wins_by_trial is not None:
            assert wins_by_trial[trial - 1] == [row["wins"], row["ties"], row["losses"]]


@ENTRIES
def test_page_has_failures_of_leaderboard(page_report, entry, name):
    """Of the benchmark `name` at the place `entry`, as a number to sort by and a text to show."""
    protocol, _ = unpack_data(read_page(page_report), "data")["protocols"]
    failures = read_numbers_of_entry(page_report, entry)["failed"]
    failures_of_method = dict(zip(protocol["methods"], failures, strict=True))

    for row in rows_of_leaderboard(page_report, name):
        _number, text = failures_of_method[row["method"]]
        assert text == f"{row['failed']} of {row['runs']}"


def test_no_runs_give_no_report(tmp_path):
    no_trials = made_up_trials("newsvendor@1").iloc[:0]

    with pytest.raises(ExperimentError, match="no runs"):
        write_report(ReportInput(no_trials), tmp_path / "report")

    assert not (tmp_path / "report").exists()


def test_curves_of_few_seeds_have_no_interval(page_report):
    """The second protocol has four seeds; intervals need five."""
    numbers = unpack_part(page_report, "1-0")

    for mean_without_ends in numbers["measures"].values():
        assert len(mean_without_ends) == 1


def test_summary_of_few_seeds_has_no_interval(page_report):
    """The last table is of the protocol with four seeds; an interval reads "2.00 to 2.50"."""
    summary = (page_report.page.parent / "summary.md").read_text(encoding="utf-8")

    _, _, last_table = summary.rpartition("| method |")

    assert "2.25 |" in last_table  # a mean rank
    assert " to " not in last_table


def test_leaderboard_of_few_seeds_has_no_interval(page_report):
    """Each of four measures has a lower and an upper end, which need five seeds."""
    table = pd.read_csv(page_report.page.parent / "leaderboard.csv")

    ends = [column for column in table.columns if column.endswith(("_low", "_high"))]
    has_few_seeds = table["seeds"] < 5
    assert len(ends) == 4 * 2
    assert has_few_seeds.any()
    assert table.loc[has_few_seeds, ends].isna().all(axis=None)


@pytest.mark.parametrize("measure", ["regret", "rank", "value"])
def test_page_has_curves_of_tasks(page_report, measure):
    """Those of the first method on the three tasks of newsvendor, to three digits."""
    first_protocol, _ = unpack_data(read_page(page_report), "data")["protocols"]
    tasks_of_newsvendor = unpack_part(page_report, "0-1-tasks")  # it follows all benchmarks, 0-0
    scores = {(item.benchmark, item.protocol): item for item in page_report.benchmarks}
    of_newsvendor = scores["newsvendor@1", ORDERED]
    place_of_first_method = first_protocol["methods"].index(of_newsvendor.methods[0])

    assert len(tasks_of_newsvendor) == 3
    for number, task in enumerate(tasks_of_newsvendor):
        mean_curves, *_ends = task[measure]
        # Means have the shape (methods, tasks, trials).
        expected = of_newsvendor.measures[measure].mean[0, number]
        np.testing.assert_allclose(mean_curves[place_of_first_method], expected, rtol=1e-3)


def test_page_counts_unfinished_runs(page_report):
    """Four methods have five seeds on three benchmarks, and four seeds by another protocol.

    On one benchmark, a run of one method failed, and four of another are missing.
    """
    runs = 4 * (5 * 3 + 4)

    assert f"Not finished, of {runs} runs: 1 failed, 4 missing." in read_page(page_report)


def test_page_counts_runs_of_other_versions(page_report):
    # As the report is told of them.
    sentence = "2 runs of other versions of a method are there and count nowhere."

    assert sentence in read_page(page_report)


def test_page_shows_failures_machines_and_limits(page_report):
    """The results have these texts, which are escaped."""
    page = read_page(page_report)

    message_of_failure = "<b onclick=alert(2)>bad</b>"
    limit_of_benchmark = "<em>rough</em> near the edge"
    assert html.escape(message_of_failure) in page
    assert "Linux-6.18.44" in page  # the platform
    assert html.escape(limit_of_benchmark) in page


@pytest.mark.parametrize(
    "mark", ["<img", "<b ", "<u>", "<s>", "<em>", "<i>", "</pre><script", "\u2028<"]
)
def test_text_from_results_is_escaped(page_report, mark):
    """The results have names and messages with this mark; data for the script are compressed."""
    _, _, body = read_page(page_report).partition("<body>")
    text_before_data, _, _ = body.partition('id="data"')

    assert mark not in text_before_data


def test_data_from_results_close_no_script(page_report):
    """The name of a method contains such a tag, too; the page's own scripts are three."""
    page = read_page(page_report)

    first_protocol, _ = unpack_data(page, "data")["protocols"]
    assert HOSTILE in first_protocol["methods"]
    assert page.count("</script>") == 3


def test_page_forbids_requests(page_report):
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', read_page(page_report))

    assert "unsafe-eval" not in policy
    assert "http" not in policy


def test_parts_change_with_their_address(tmp_path):
    """Otherwise a browser might show numbers that it keeps of an earlier report.

    The edition is in the address; the results of two seeds differ.
    """

    def write_and_read_edition(seed: int) -> str:
        trials = made_up_trials("newsvendor@1", trials=3, tasks=2, entropy=seed)
        report = write_report(ReportInput(trials), tmp_path)
        return unpack_data(read_page(report), "data")["edition"]

    first = write_and_read_edition(seed=1)
    second = write_and_read_edition(seed=2)
    second_again = write_and_read_edition(seed=2)

    assert second != first
    assert second_again == second


def test_summary_has_no_html(page_report):
    summary = (page_report.page.parent / "summary.md").read_text(encoding="utf-8")

    unescaped_bracket = r"(?<!\\)<"
    assert re.search(unescaped_bracket, summary) is None


@pytest.mark.slow
def test_same_results_give_same_files(tmp_path):
    trials = make_small_trials()

    first = write_report(ReportInput(trials), tmp_path / "first")
    second = write_report(ReportInput(trials), tmp_path / "second")

    for path, other in zip(first.files, second.files, strict=True):
        if path.suffix != ".pdf":  # the parts of a PDF stand in any order
            assert path.read_bytes() == other.read_bytes(), path.name


@pytest.mark.slow
def test_report_compares_surrogates(tmp_path):
    trials = make_small_trials()
    on_both = pd.concat([trials, trials.assign(surrogate="nearest")])

    page = read_page(write_report(ReportInput(on_both), tmp_path))

    assert "Methods by mean rank on every surrogate" in page
    assert "newsvendor@1 (nearest)" in page


@pytest.mark.slow
def test_report_of_single_method_compares_nothing(tmp_path):
    trials = make_small_trials().query("method == 'bo'")

    page = read_page(write_report(ReportInput(trials), tmp_path))

    assert "There is nothing to compare." in page


@pytest.mark.slow
def test_report_without_random_search_has_no_score(tmp_path):
    """A score of 100 is what random search reaches."""
    trials = make_small_trials().query("method != 'random-search'")

    report = write_report(ReportInput(trials), tmp_path)

    (protocol,) = unpack_data(read_page(report), "data")["protocols"]
    (entry,) = protocol["entries"]
    assert set(read_numbers_of_entry(report, 0)["measures"]) == {"regret", "rank", "value"}
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


@pytest.fixture(scope="module")
def folder_with_landscapes(tmp_path_factory):
    """The folder of a report whose input has the configurations of all trials."""
    trials, configurations = trials_with_configurations()

    def select_configurations(keys: Iterable[str]) -> pd.DataFrame:
        return configurations[configurations["key"].isin(list(keys))]

    overview = Overview(overview_runs(trials), superseded=0, failures=(), sessions=())
    folder = tmp_path_factory.mktemp("landscapes")
    write_report(ReportInput(trials, overview, configurations=select_configurations), folder)
    return folder


@pytest.mark.slow
def test_page_shows_landscapes_of_configurations(folder_with_landscapes):
    page = (folder_with_landscapes / "report.html").read_text(encoding="utf-8")

    assert 'id="landscapes"' in page


@pytest.mark.slow
def test_landscapes_are_over_two_hyperparameters(folder_with_landscapes):
    """Of the three prices of newsvendor."""
    (figure,) = (folder_with_landscapes / "figures").glob("landscapes-*.svg")

    axes = set(re.findall("price_[0-9]", figure.read_text(encoding="utf-8")))

    assert len(axes) == 2


def test_caption_without_intervals_mentions_no_brackets():
    """Benchmarks of five and of three seeds have no interval together.

    Otherwise the caption goes on: intervals are in brackets.
    """
    five_seeds = made_up_trials("a@1", protocol=ORDERED, methods=["bo", "cts"], seeds=5)
    three_seeds = made_up_trials("b@1", protocol=ORDERED, methods=["bo", "cts"], seeds=3)
    scores, _ = score_benchmarks(pd.concat([five_seeds, three_seeds]))

    table_of_all_benchmarks, *_ = leaderboard_tables(leaderboard(scores))

    assert table_of_all_benchmarks.caption.endswith("up to 5 seeds.")


TIME_COLUMN = "CPU ms per suggestion"


def test_known_times_have_a_column(page_report):
    tables = leaderboard_tables(leaderboard(page_report.benchmarks))

    for table in tables:
        *_, last_heading = table.header
        assert last_heading == TIME_COLUMN
    assert TIME_COLUMN in read_page(page_report)


def test_unknown_times_have_no_column(tmp_path):
    report_without_times = write_report(ReportInput(made_up_trials("newsvendor@1")), tmp_path)

    for table in leaderboard_tables(leaderboard(report_without_times.benchmarks)):
        assert TIME_COLUMN not in table.header
    assert TIME_COLUMN not in read_page(report_without_times)
