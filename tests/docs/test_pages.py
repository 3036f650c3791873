"""The pages that are made from the registry."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.cli import app
from hpobench_ordered.methods.registry import method_spec
from hpobench_ordered.surrogates.bundle import read_card

pytestmark = pytest.mark.usefixtures("builders")


def test_benchmark_page_shows_definition():
    """A page lists the hyperparameters and the tasks of a benchmark, and the data's licence."""
    import benchmark_pages

    page = benchmark_pages.page("xgboost-mnist")

    definition = benchmark_spec("xgboost-mnist").define()
    for parameter in definition.space.parameters:
        assert f"`{parameter.name}`" in page.text
    for task in definition.tasks:
        assert f"| `{task.name}` |" in page.text
    assert definition.provenance.licence in page.text


def test_benchmark_page_tells_limits():
    """A page names the limits on its surrogate's card, escaped for Markdown by `plain`."""
    import benchmark_pages
    from markdown_text import plain

    page = benchmark_pages.page("xgboost-mnist")

    limits = read_card(benchmark_spec("xgboost-mnist").artifact).limits
    assert limits
    for limit in limits:
        assert plain(limit) in page.text


def test_page_says_how_to_generate_artifact():
    """The package has no artifact of openml-ranger: there is nothing to draw."""
    import benchmark_pages

    page = benchmark_pages.page("openml-ranger")

    assert page.figure is None
    assert "There is no figure" in page.text
    assert "hpobench-ordered generate openml-ranger" in page.text


def test_overview_links_every_benchmark():
    import benchmark_pages

    overview = benchmark_pages.overview()

    for name in hbo.list_benchmarks():
        assert f"]({name}.md)" in overview


@pytest.mark.slow
@pytest.mark.parametrize("name", ["xgboost-mnist", "newsvendor", "yahpo-svm-458"])
def test_example_on_a_page_runs(name):
    import benchmark_pages

    page = benchmark_pages.page(name)
    (code,) = re.findall(r"```python\n(.*?)```", page.text, re.DOTALL)

    # Fails if it raises an error.
    exec(code, {})


@pytest.mark.slow
def test_figure_is_deterministic():
    """A figure that is drawn twice is the same text, so that pages do not change by chance."""
    from landscape import MeanLandscape

    first = MeanLandscape.of(hbo.load("quadratic")).svg(("x_0", "x_1"))
    second = MeanLandscape.of(hbo.load("quadratic")).svg(("x_0", "x_1"))

    assert second == first


def test_cells_are_means_over_other_hyperparameters():
    """A cell shows the mean over random values of the hyperparameters that are no axis.

    Two of five hyperparameters are axes. The random values of the other three are the same in every
    cell.
    """
    from landscape import DRAWS, MeanLandscape

    from hpobench_ordered.reporting.charts.evaluations import MAX_CELLS

    quadratic = hbo.load("quadratic")
    task = quadratic.tasks[0]
    column, row = 3, 7  # of any cell
    points_in_unit_cube = np.random.default_rng(0).random((DRAWS, 5))
    # x_0 and x_1 are in the middle of the cell.
    points_in_unit_cube[:, 0] = (column + 0.5) / MAX_CELLS
    points_in_unit_cube[:, 1] = (row + 0.5) / MAX_CELLS
    expected_mean = task.evaluate_many(quadratic.space.decode(points_in_unit_cube)).mean()

    means_of_cells = MeanLandscape.of(quadratic).means(task, ("x_0", "x_1"))

    assert means_of_cells[row, column] == pytest.approx(expected_mean)


def test_inactive_cells_are_empty():
    """The column of the linear kernel has no values, as this kernel has no gamma."""
    from landscape import MeanLandscape

    benchmark = hbo.load("openml-svm")

    means = MeanLandscape.of(benchmark).means(benchmark.tasks[0], ("kernel", "gamma"))

    linear_column = benchmark.space["kernel"].choices.index("linear")
    means_of_other_kernels = np.delete(means, linear_column, axis=1)
    assert np.isnan(means[:, linear_column]).all()
    assert np.isfinite(means_of_other_kernels).all()


@pytest.mark.parametrize("name", hbo.list_methods())
def test_method_page_shows_spec(name, root):
    """The page has the source that the spec names, and the docstring of the method's class."""
    import method_pages
    from markdown_text import plain

    spec = method_spec(name)
    path = root / "docs" / "methods" / f"{name}.md"
    # Methods without a page that was written by hand have a draft.
    unfilled_page = path.read_text() if path.exists() else method_pages.draft(spec)

    page = method_pages.filled(unfilled_page, spec)

    assert page.startswith(f"# {name}\n")
    assert plain(spec.source) in page
    directive_for_docstring = f"::: {spec.method.__module__}.{spec.method.__qualname__}"
    assert directive_for_docstring in page


def test_special_characters_are_shown_as_they_are():
    """Characters that make columns, emphasis and subscripts in Markdown get a backslash."""
    from markdown_text import plain

    assert plain("a|b *c*\n d_e") == r"a\|b \*c\* d\_e"


def test_settings_are_the_described_constants():
    """The settings of a method are its module's constants that a docstring follows."""
    import method_pages

    described = 'A = 5\n"""Five."""\nB, C = 1, 2.5\n"""Both."""\n'
    not_described = 'D = 1\ndef f():\n    """No."""\n'
    source = described + not_described

    settings = list(method_pages.settings(source))

    assert settings == [("A", "5", "Five."), ("B, C", "1, 2.5", "Both.")]


def test_command_page_describes_commands():
    """A command's section has the description from the command's own help."""
    import command_page

    page = command_page.text()

    for name in app.commands:
        help_text = CliRunner().invoke(app, [name, "--help"]).output
        # Paragraphs of a help text: usage, description, options.
        _usage, description, *_options = help_text.split("\n\n")
        # The page breaks lines elsewhere, so that only the begin of the description is searched.
        begin = description.strip().splitlines()[0][:40]
        assert begin in page


def test_undescribed_public_names_are_added():
    """A page that describes `load` by hand has a marker for the rest, and no name twice."""
    import public_names

    describes_only_load = "::: hpobench_ordered.load\n\n<!-- rest: hpobench_ordered -->\n"

    page = public_names.filled(describes_only_load)

    assert page.count("::: hpobench_ordered.load\n") == 1
    for name in hbo.__all__:
        assert f"::: hpobench_ordered.{name}" in page


@cache
def read_few_results() -> hbo.Results:
    """The reference results of four methods on the suite othpo, as those of all take long."""
    methods = ["random-search", "bo", "simple-ordered", "ordered-gp"]
    return hbo.reference("othpo", methods=methods)


@pytest.fixture
def page_of_few_results(monkeypatch):
    """The module that builds the page of leaderboards, as if there were no other results."""
    import leaderboard_page

    scores, _ = read_few_results().scored()
    monkeypatch.setattr(leaderboard_page, "_results", lambda: {"othpo": read_few_results()})
    monkeypatch.setattr(leaderboard_page, "_scores", {"othpo": scores}.__getitem__)
    return leaderboard_page


@pytest.fixture
def leaderboards(page_of_few_results):
    """The page of leaderboards, of two parts.

    They are a sentence that names the methods without reference results, and a section with a
    table for each suite.
    """
    markers_to_be_replaced = "<!-- missing -->\n\n<!-- leaderboards -->\n\nafter"
    return page_of_few_results.filled(markers_to_be_replaced)


@pytest.mark.slow
def test_leaderboard_has_reference_ranks(leaderboards):
    """The table has the mean rank of each method in the reference results, to two decimals."""
    board = read_few_results().leaderboard()
    ranks = board[board["benchmark"] == "all"].set_index("method")["rank"]
    expected_ranks = {method: f"{rank:.2f}" for method, rank in ranks.items()}

    # Lines of the table begin with: | [method](link) | rank |
    method_and_rank = r"^\| \[([^]]+)\][^|]*\| ([^ ]+) \|"
    assert dict(re.findall(method_and_rank, leaderboards, re.MULTILINE)) == expected_ranks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mark_of_reason"),
    [
        ("yahpo-ranger-4154", "i"),  # implausible values
        ("yahpo-svm-458", "p"),  # a plateau
    ],
)
def test_leaderboard_marks_benchmarks_left_out(leaderboards, name, mark_of_reason):
    """Means over the suite leave some benchmarks out; a letter after their name says why."""
    link = f"[`{name}`](benchmarks/{name}.md)"

    assert f"{link}<sup>[{mark_of_reason}](#left-out)</sup>" in leaderboards


@pytest.mark.slow
def test_methods_are_ranked_or_named_missing(leaderboards):
    """Each is in a table, or else the sentence before the tables says that it has no results."""
    sentence_on_missing, _, _ = leaderboards.partition("###")  # the heading of the first table
    methods = set(hbo.list_methods())
    words_of_sentence = set(re.findall("[a-z-]+", sentence_on_missing))

    named_missing = methods & words_of_sentence
    ranked = set(re.findall(r"methods/([a-z-]+)\.md", leaderboards))

    assert ranked == methods - named_missing


@pytest.mark.slow
def test_suite_without_method_has_no_row(page_of_few_results):
    """A method is only compared with others on suites where it has results; `tpe` has none here."""
    marker = page_of_few_results.BESIDE_BEST_OTHER
    with_results = page_of_few_results.fill_comparison(marker)
    without_results = page_of_few_results._compare_with_best_other("tpe")

    assert "`othpo`" in with_results
    assert "`othpo`" not in without_results


@pytest.mark.parametrize(("methods", "expected"), [("aab", True), ("abc", False)])
def test_suite_is_shown_with_common_method(methods, expected):
    """A run on each of the benchmarks x and y, and another one on y."""
    import leaderboard_page

    runs = pd.DataFrame({"benchmark": ["x", "y", "y"], "method": list(methods)})

    assert leaderboard_page.has_common_method(runs) is expected


@pytest.mark.slow
def test_linked_reports_are_written(page_of_few_results, leaderboards, tmp_path, monkeypatch):
    """The page of leaderboards links a report of each suite, by its path in the site."""
    links = re.findall('href="([^"]+)"', leaderboards)
    reports: list[Path] = []

    def record_report(_results: hbo.Results, folder: Path) -> None:
        """Record the path instead of writing the report, which takes long."""
        reports.append(folder / "report.html")

    monkeypatch.setattr(hbo, "report", record_report)

    page_of_few_results.write_reports(tmp_path)

    assert reports == [tmp_path / link for link in links]


@pytest.mark.long
def test_all_parts_of_leaderboards_are_made(root):
    """The page of leaderboards has a place for each table and sentence from all results."""
    import leaderboard_page

    source = (root / "docs" / "leaderboard.md").read_text()

    page = leaderboard_page.filled(source)

    for marker in ("leaderboards", "missing", "sentence", "side by side", "submitted", "tools"):
        assert f"<!-- {marker} -->" in source
        assert f"<!-- {marker} -->" not in page


def test_overview_of_methods_links_each_once(monkeypatch):
    """Each method is linked once, with a rank or, as `bo` here, without one."""
    import method_pages

    rank_of_method = {name: 1.0 for name in hbo.list_methods() if name != "bo"}
    monkeypatch.setattr(method_pages, "ranks_after_last_trial", lambda suite: rank_of_method)

    links = re.findall(r"\]\(([a-z-]+)\.md\)", method_pages.overview())

    assert sorted(links) == hbo.list_methods()


def test_formulas_become_mathml():
    """Formulas in TeX, as the extension arithmatex leaves them in HTML, become MathML."""
    import mathml

    formula_in_text = '<p><span class="arithmatex">\\(a &lt; b\\)</span></p>'
    displayed_fraction = '<div class="arithmatex">\\[\n\\frac{x}{2}\n\\]</div>'

    page = mathml.with_mathml(formula_in_text + displayed_fraction)

    tags = re.findall(r"<(\w+)", page)
    assert tags.count("math") == 2
    assert "mfrac" in tags
    assert "arithmatex" not in page
