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
from reporting_support import HOSTILE, ORDERED, OTHER, made_up_trials, overview_runs

import hpobench_ordered as hbo
from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup
from hpobench_ordered.analysis.labels import join_names
from hpobench_ordered.analysis.leaderboard import leaderboard
from hpobench_ordered.analysis.scoring import score_benchmarks
from hpobench_ordered.analysis.verdict import verdicts
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.experiment.overview import Overview
from hpobench_ordered.reporting.charts.figures import FigureData, make_seconds
from hpobench_ordered.reporting.formats import markdown_text
from hpobench_ordered.reporting.write import Report, ReportInput, write_report


def read_page(report: Report) -> str:
    """Read the page of a report, `report.html`."""
    return report.page.read_text(encoding="utf-8")


def unpack_data(page: str) -> Any:
    """Unpack the data that the page's script reads: protocols, and numbers of their entries."""
    element = re.search('id="data">([^<]*)<', page)
    assert element is not None
    return unpack_json(element.group(1))


def unpack_json(packed: str) -> Any:
    """Unpack what the page and its parts hold: JSON, compressed, in base 64."""
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def read_numbers_of_entry(report: Report, entry: int) -> Any:
    """Read the numbers of an entry, a benchmark or all of them, of the report's first protocol.

    The page itself has those of the first entry. Every other entry has a part, a file beside the
    page, which is named by the numbers of the protocol and of the entry.
    """
    if entry == 0:
        return unpack_data(read_page(report))["parts"]["0-0"]
    return unpack_part(report, f"0-{entry}")


def unpack_part(report: Report, name: str) -> Any:
    """Unpack the data of a part, a script beside the page: it calls `receivePart(name, data)`."""
    script = (report.page.parent / "report_parts" / f"{name}.js").read_text(encoding="utf-8")
    call = re.fullmatch(r'receivePart\("([^"]*)", "([^"]*)"\);\n', script)
    assert call is not None
    name_in_call, packed_data = call.groups()
    assert name_in_call == name
    return unpack_json(packed_data)


def make_small_trials() -> pd.DataFrame:
    """Results of every method on two tasks of a benchmark."""
    return made_up_trials("newsvendor@1", trials=3, tasks=2)


def list_files(report: Report) -> set[str]:
    """List the files of a report by their paths in its folder."""
    folder = report.page.parent
    return {path.relative_to(folder).as_posix() for path in report.files}


def test_report_has_page_summary_and_tables(page_report):
    """Besides figures and parts of the page, a report has exactly these files."""
    names = list_files(page_report)

    tables = {"leaderboard.csv", "leaderboard.tex", "means.csv", "pairs.csv", "failures.csv"}
    without_figures_and_parts = {
        name for name in names if not name.startswith(("figures/", "report_parts/"))
    }
    assert without_figures_and_parts == {"report.html", "summary.md", *tables}


def test_report_has_parts_of_entries(page_report):
    """Each benchmark of each protocol has a file with its numbers, and one with those of its tasks.

    They are named by the number of the protocol and the place of the benchmark on the page. The
    first place, 0-0, is of all benchmarks together, which the page itself has.
    """
    parts = {name for name in list_files(page_report) if name.startswith("report_parts/")}

    expected = set()
    for entry in ("0-1", "0-2", "0-3", "1-0"):
        expected |= {f"report_parts/{entry}.js", f"report_parts/{entry}-tasks.js"}
    assert parts == expected


def test_every_figure_is_in_every_format(page_report):
    """Each figure is there as a PNG, an SVG and a PDF."""
    figure_files = {name for name in list_files(page_report) if name.startswith("figures/")}

    figures = {name.rpartition(".")[0] for name in figure_files}
    expected = set()
    for figure in figures:
        expected |= {f"{figure}.png", f"{figure}.svg", f"{figure}.pdf"}
    assert figure_files == expected


@pytest.mark.parametrize(
    ("benchmarks_with_costs", "expected"),
    [(["x@1", "y@1"], ["rank-over-seconds", "regret-over-seconds"]), (["x@1"], [])],
)
def test_seconds_are_drawn_where_all_have_costs(benchmarks_with_costs, expected):
    trials = pd.concat([made_up_trials("x@1"), made_up_trials("y@1")])
    has_costs = trials["benchmark"].isin(benchmarks_with_costs)
    scores, _ = score_benchmarks(trials.assign(cost=np.where(has_costs, 2.5, np.nan)))
    data = FigureData(
        group=BenchmarkGroup.for_means(scores),
        board=leaderboard(scores),
        runs=overview_runs(trials),
        configurations=None,
    )

    assert [figure.name for figure in make_seconds(data)] == expected


def test_page_links_to_all_files(page_report):
    """The page links to every file, but not to itself nor to the parts that its script loads."""
    linked = set(re.findall(r'href="([^"#]+)"', read_page(page_report)))

    other_files = list_files(page_report) - {"report.html"}
    assert linked == {name for name in other_files if not name.startswith("report_parts/")}


def test_pairs_file_has_wins(page_report):
    """The wins of a method against each other sum to those on the leaderboard.

    All methods are compared on the only benchmark of the second protocol.
    """
    pairs = pd.read_csv(page_report.page.parent / "pairs.csv")

    wins = pairs[pairs["protocol"] == OTHER].groupby("method")["wins"].sum()
    board = leaderboard(page_report.benchmarks)
    overall = board[(board["benchmark"] == "all") & (board["protocol"] == OTHER)]
    assert wins.to_dict() == overall.set_index("method")["wins"].to_dict()


def test_page_says_who_leads(page_report):
    """The section "verdict" has a sentence for each protocol: the best methods, their mean rank."""
    _, _, after_heading = read_page(page_report).partition('id="verdict"')
    section, _, _ = after_heading.partition("</section>")

    for verdict in verdicts(page_report.benchmarks):
        assert str(escape(join_names(verdict.leaders))) in section
        assert f"{verdict.mean_rank:.2f}" in section


def test_summary_says_who_leads(page_report):
    """The summary has the sentence of each protocol's verdict, escaped for Markdown."""
    summary = (page_report.page.parent / "summary.md").read_text(encoding="utf-8")

    for verdict in verdicts(page_report.benchmarks):
        assert markdown_text(verdict.sentence) in summary


def test_page_has_all_benchmarks_of_protocols(page_report):
    """Entries of a protocol are its benchmarks, after all of them together if there are several.

    The first protocol has three benchmarks, the second has one, with four trials.
    """
    first, second = unpack_data(read_page(page_report))["protocols"]

    benchmarks = [f"{name}@1 (forest)" for name in ("newsvendor", "own", "xgboost-mnist")]
    assert [entry["label"] for entry in first["entries"]] == ["all 3 benchmarks", *benchmarks]
    assert [entry["trials"] for entry in second["entries"]] == [4]


with_entries_of_first_protocol = pytest.mark.parametrize(
    ("entry", "benchmark_id"), [(0, "all"), (1, "newsvendor@1"), (3, "xgboost-mnist@1")]
)
"""Numbers of entries, and their benchmarks."""


def get_methods_of_first_protocol(report: Report) -> list[str]:
    """The names of methods in the order in which the page has their numbers."""
    first_protocol, *_ = unpack_data(read_page(report))["protocols"]
    methods: list[str] = first_protocol["methods"]
    return methods


def rows_of_leaderboard(report: Report, benchmark: str, *, trial: int = 6) -> list[dict[str, Any]]:
    """Rows of the leaderboard for a benchmark, or for "all", under the first protocol."""
    table = leaderboard(report.benchmarks, trial=trial)
    is_shown = (table["protocol"] == ORDERED) & (table["benchmark"] == benchmark)
    return table[is_shown].to_dict("records")


@with_entries_of_first_protocol
@pytest.mark.parametrize("trial", [1, 6])
@pytest.mark.parametrize("measure", ["score", "regret", "rank"])
def test_page_has_means_of_leaderboard(page_report, entry, benchmark_id, trial, measure):
    """After each trial, the page has the leaderboard's means and the ends of their intervals."""
    methods = get_methods_of_first_protocol(page_report)
    # Three lists with a curve for each method, or None where a method failed.
    means, lower_ends, upper_ends = read_numbers_of_entry(page_report, entry)["measures"][measure]

    for row in rows_of_leaderboard(page_report, benchmark_id, trial=trial):
        place = methods.index(row["method"])
        if means[place] is None:
            assert np.isnan(row[measure])
            continue
        shown = [curves[place][trial - 1] for curves in (means, lower_ends, upper_ends)]
        expected = [row[measure], row[f"{measure}_low"], row[f"{measure}_high"]]
        # The page rounds to four digits; None, which becomes NaN here, is an undefined number.
        np.testing.assert_allclose(np.array(shown, dtype=float), expected, rtol=1e-4)


@with_entries_of_first_protocol
@pytest.mark.parametrize("trial", [1, 6])
def test_page_has_wins_of_leaderboard(page_report, entry, benchmark_id, trial):
    """After each trial, the page has the wins, ties and losses of each method that has not failed.

    They are counted against all other methods.
    """
    methods = get_methods_of_first_protocol(page_report)
    wins = read_numbers_of_entry(page_report, entry)["wins"]
    wins_of_method = dict(zip(methods, wins, strict=True))

    for row in rows_of_leaderboard(page_report, benchmark_id, trial=trial):
        wins_by_trial = wins_of_method[row["method"]]
        has_failed = wins_by_trial is None
        if not has_failed:
            assert wins_by_trial[trial - 1] == [row["wins"], row["ties"], row["losses"]]


def test_no_runs_give_no_report(tmp_path):
    no_trials = made_up_trials("newsvendor@1").iloc[:0]

    with pytest.raises(ExperimentError, match="no runs"):
        write_report(ReportInput(no_trials), tmp_path / "report")

    assert not (tmp_path / "report").exists()


def test_curves_of_few_seeds_have_no_interval(page_report):
    """The second protocol has four seeds; intervals need five."""
    only_benchmark_of_second_protocol = unpack_part(page_report, "1-0")

    for curves_of_measure in only_benchmark_of_second_protocol["measures"].values():
        assert len(curves_of_measure) == 1  # means, without lower and upper ends


@pytest.mark.parametrize("measure", ["regret", "rank", "value"])
def test_page_has_curves_of_tasks(page_report, measure):
    """The part "0-1-tasks" has the means of each method on each task of newsvendor.

    Checked are those of one method, which the page rounds to three digits.
    """
    tasks_of_newsvendor = unpack_part(page_report, "0-1-tasks")
    scores = {(item.benchmark, item.protocol): item for item in page_report.benchmarks}
    scores_on_newsvendor = scores["newsvendor@1", ORDERED]
    expected_means = scores_on_newsvendor.measures[measure].mean  # (methods, tasks, trials)
    method = scores_on_newsvendor.methods[0]
    place = get_methods_of_first_protocol(page_report).index(method)

    assert len(tasks_of_newsvendor) == 3
    for number, task in enumerate(tasks_of_newsvendor):
        means_of_methods, *_ends = task[measure]
        np.testing.assert_allclose(means_of_methods[place], expected_means[0, number], rtol=1e-3)


def test_page_counts_unfinished_runs(page_report):
    """A run of one method failed, and four runs of another are missing, all on one benchmark."""
    methods = 4
    runs_of_method = 3 * 5 + 4  # three benchmarks with five seeds; another protocol with four
    runs = methods * runs_of_method

    assert f"Not finished, of {runs} runs: 1 failed, 4 missing." in read_page(page_report)


def test_page_shows_failures_machines_and_limits(page_report):
    """The results have a failure, a session's platform and a benchmark's limit with these texts."""
    page = read_page(page_report)

    message_of_failure = "<b onclick=alert(2)>bad</b>"
    platform = "Linux-6.18.44"
    limit_of_benchmark = "<em>rough</em> near the edge"
    assert html.escape(message_of_failure) in page
    assert platform in page
    assert html.escape(limit_of_benchmark) in page


@pytest.mark.parametrize(
    "markup", ["<img", "<b ", "<u>", "<s>", "<em>", "<i>", "</pre><script", "\u2028<"]
)
def test_text_from_results_is_escaped(page_report, markup):
    """Names and messages in the results have this markup, which would become elements of the page.

    The data for the script may have it: they are compressed.
    """
    _, _, body = read_page(page_report).partition("<body>")
    body_before_data, _, _ = body.partition('id="data"')

    assert markup not in body_before_data


def test_data_from_results_close_no_script(page_report):
    """The page has three scripts; the tag "</script>" in a method's name ends none of them."""
    page = read_page(page_report)

    assert "</script>" in HOSTILE
    assert HOSTILE in get_methods_of_first_protocol(page_report)
    assert page.count("</script>") == 3


def test_page_forbids_requests(page_report):
    """The content policy of the page allows no server, and no text to be run as a script."""
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', read_page(page_report))

    assert "unsafe-eval" not in policy
    assert "http" not in policy


@pytest.mark.slow
def test_same_results_give_same_files(tmp_path):
    """A report written twice from the same results has the same files, to the byte.

    Other results have another edition, the end of the addresses of the page's parts: a browser
    keeps files by their addresses, and must not show those of an earlier report.
    """
    trials = make_small_trials()
    other_trials = made_up_trials("newsvendor@1", trials=3, tasks=2, entropy=2)

    first = write_report(ReportInput(trials), tmp_path / "first")
    second = write_report(ReportInput(trials), tmp_path / "second")
    third = write_report(ReportInput(other_trials), tmp_path / "third")

    for path, other in zip(first.files, second.files, strict=True):
        if path.suffix != ".pdf":  # the parts of a PDF stand in any order
            assert path.read_bytes() == other.read_bytes(), path.name
    editions = [unpack_data(read_page(report))["edition"] for report in (first, third)]
    assert editions[0] != editions[1]


@pytest.mark.slow
def test_report_compares_surrogates(tmp_path):
    """A benchmark that was run on two surrogates has its methods ranked on each.

    To make it simple, the trials on both surrogates are the same.
    """
    trials = make_small_trials()
    on_both = pd.concat([trials, trials.assign(surrogate="nearest")])

    page = read_page(write_report(ReportInput(on_both), tmp_path))

    assert "newsvendor@1: mean ranks by surrogate; the order of methods is the same on all." in page
    assert "newsvendor@1 (nearest)" in page


@pytest.mark.slow
def test_report_of_single_method_compares_nothing(tmp_path):
    """A report of bo alone says that there is nothing to compare it with."""
    trials = make_small_trials().query("method == 'bo'")

    page = read_page(write_report(ReportInput(trials), tmp_path))

    assert "There is nothing to compare." in page


@pytest.mark.slow
def test_report_without_random_search_has_no_score(tmp_path):
    """A score of 100 is what random search reaches; without it, a note says that there is none."""
    trials = make_small_trials().query("method != 'random-search'")

    report = write_report(ReportInput(trials), tmp_path)

    (protocol,) = unpack_data(read_page(report))["protocols"]
    (entry,) = protocol["entries"]
    assert set(read_numbers_of_entry(report, 0)["measures"]) == {"regret", "rank", "value"}
    assert any("The score is not available" in note for note in entry["notes"])


def trials_with_configurations() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Made-up trials on newsvendor, and a table of them with configurations, drawn at random.

    The table tells the run of each trial by its key.
    """
    trials = made_up_trials("newsvendor@1", trials=6, tasks=2).assign(surrogate="table")
    key_of_run = overview_runs(trials)[["method", "seed", "key"]]
    evaluations = trials.merge(key_of_run, on=["method", "seed"])
    evaluations = evaluations[["key", "task", "trial", "value", "loss"]]

    space = hbo.load("newsvendor").space
    rng = np.random.default_rng(0)
    configs = [space.sample(rng) for _ in range(len(evaluations))]
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
    """A report that gets the configurations of its trials has a section of landscapes."""
    page = (folder_with_landscapes / "report.html").read_text(encoding="utf-8")

    assert 'id="landscapes"' in page
