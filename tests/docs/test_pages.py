"""The pages that are made from the registry."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import hpobench_ordered as hbo
from hpobench_ordered.cli import app
from hpobench_ordered.registry import benchmark_spec, method_spec
from hpobench_ordered.surrogates.bundle import read_card

pytestmark = pytest.mark.usefixtures("builders")


def test_benchmark_page_shows_definition():
    import benchmark_pages

    page = benchmark_pages.page("xgboost-mnist")

    definition = benchmark_spec("xgboost-mnist").define()
    for parameter in definition.space.parameters:
        assert f"`{parameter.name}`" in page.text
    for task in definition.tasks:
        assert f"| `{task.name}` |" in page.text
    assert definition.provenance.licence in page.text


def test_benchmark_page_tells_limits():
    import benchmark_pages
    from markdown_text import plain

    page = benchmark_pages.page("xgboost-mnist")

    limits = read_card(benchmark_spec("xgboost-mnist").artifact).limits
    assert limits
    for limit in limits:
        assert plain(limit) in page.text


def test_benchmark_page_has_figure():
    import benchmark_pages

    assert benchmark_pages.page("xgboost-mnist").figure.startswith("<svg")


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
def test_example_on_a_page_runs():
    import benchmark_pages

    for name in ("xgboost-mnist", "newsvendor", "yahpo-svm-458"):
        code = re.search(r"```python\n(.*?)```", benchmark_pages.page(name).text, re.DOTALL)[1]
        exec(code, {})


@pytest.mark.slow
def test_figure_is_the_same_again():
    from landscape import MeanLandscape

    first = MeanLandscape.of(hbo.load("quadratic")).svg(("x_0", "x_1"))
    second = MeanLandscape.of(hbo.load("quadratic")).svg(("x_0", "x_1"))

    assert second == first


def test_effects_of_quadratic_are_alike():
    """A quadratic x'x + 1'x treats its coordinates alike, with no interactions but for ranks."""
    from landscape import MeanLandscape

    effects = MeanLandscape.of(hbo.load("quadratic")).effects
    assert np.ptp(effects) < 0.05
    assert 0.85 < effects.sum() <= 1.02


def test_cells_are_means_over_other_hyperparameters():
    from landscape import DRAWS, MeanLandscape

    from hpobench_ordered.plotting.evaluations import MAX_CELLS

    quadratic = hbo.load("quadratic")
    task = quadratic.tasks[0]
    unit_values = np.random.default_rng(0).random((DRAWS, 5))
    unit_values[:, 0] = 3.5 / MAX_CELLS  # the middle of cell 3 in x_0
    unit_values[:, 1] = 7.5 / MAX_CELLS  # the middle of cell 7 in x_1
    expected = task.evaluate_many(quadratic.space.decode(unit_values)).mean()

    means = MeanLandscape.of(quadratic).means(task, ("x_0", "x_1"))

    assert means[7, 3] == pytest.approx(expected)


def test_inactive_cells_are_empty():
    """A linear kernel has no gamma."""
    from landscape import MeanLandscape

    benchmark = hbo.load("openml-svm")

    means = MeanLandscape.of(benchmark).means(benchmark.tasks[0], ("kernel", "gamma"))

    linear_column = benchmark.space["kernel"].choices.index("linear")
    assert np.isnan(means[:, linear_column]).all()
    assert np.isfinite(np.delete(means, linear_column, axis=1)).all()


@pytest.mark.parametrize("name", hbo.list_methods())
def test_method_page_shows_spec(name, root):
    import method_pages
    from markdown_text import plain

    spec = method_spec(name)
    path = root / "docs" / "methods" / f"{name}.md"
    page = path.read_text() if path.exists() else method_pages.draft(spec)
    text = method_pages.filled(page, spec)
    assert text.startswith(f"# {name}\n")
    assert plain(spec.source) in text
    assert f"::: {spec.method.__module__}.{spec.method.__qualname__}" in text


def test_special_characters_are_shown_as_they_are():
    from markdown_text import plain

    assert plain("a|b *c*\n d_e") == r"a\|b \*c\* d\_e"


def test_numbers_are_set_to_the_right():
    from markdown_text import table

    assert table(("x", ">n"), [("a", "1")]).splitlines()[1] == "| --- | ---: |"


def test_settings_are_the_described_constants():
    import method_pages

    described = 'A = 5\n"""Five."""\nB, C = 1, 2.5\n"""Both."""\n'
    not_described = 'D = 1\ndef f():\n    """No."""\n'

    settings = list(method_pages.settings(described + not_described))

    assert settings == [("A", "5", "Five."), ("B, C", "1, 2.5", "Both.")]


def test_command_page_has_every_command():
    import command_page

    page = command_page.text()

    for name in app.commands:
        assert f"## hpobench-ordered {name}\n" in page


def test_command_page_describes_commands():
    import command_page

    page = command_page.text()

    for name in app.commands:
        help_text = CliRunner().invoke(app, [name, "--help"]).output
        _usage, description, *_ = help_text.split("\n\n")
        first_line = description.strip().splitlines()[0]
        begin = first_line.split("...")[0][:40]  # the page breaks lines elsewhere
        assert begin in page


def test_undescribed_public_names_are_added():
    import public_names

    describes_only_load = "::: hpobench_ordered.load\n\n<!-- rest: hpobench_ordered -->\n"

    page = public_names.filled(describes_only_load)

    assert page.count("::: hpobench_ordered.load\n") == 1
    for name in hbo.__all__:
        assert f"::: hpobench_ordered.{name}" in page


@cache
def build_leaderboards() -> str:
    """The page of leaderboards: methods without reference results by name, then the tables."""
    import leaderboard_page

    return leaderboard_page.filled("<!-- missing -->\n\n<!-- leaderboards -->\n\nafter")


@pytest.mark.slow
def test_leaderboard_has_reference_ranks():
    leaderboards = build_leaderboards()
    board = hbo.reference("othpo").leaderboard()
    ranks = board[board["benchmark"] == "all"].set_index("method")["rank"]

    section = leaderboards.split("### othpo")[1].split("###")[0]
    shown_ranks = {}
    for line in section.splitlines():
        if line.startswith("| ["):  # | [method](link) | rank | score | ...
            cells = line.split(" | ")
            method = cells[0].split("]")[0].removeprefix("| [")
            shown_ranks[method] = cells[1]

    assert shown_ranks == {method: f"{rank:.2f}" for method, rank in ranks.items()}


@pytest.mark.slow
def test_leaderboard_marks_what_means_leave_out():
    section = build_leaderboards().split("### othpo")[1].split("###")[0]
    assert (
        "[`yahpo-ranger-4154`](benchmarks/yahpo-ranger-4154.md)<sup>[i](#left-out)</sup>" in section
    )
    assert "[`yahpo-svm-458`](benchmarks/yahpo-svm-458.md)<sup>[p](#left-out)</sup>" in section


@pytest.mark.slow
def test_suites_of_leaderboard_are_in_order():
    suites = re.findall("^### (.*)$", build_leaderboards(), re.MULTILINE)
    assert suites == ["retrain", "othpo", "wide", "adjustments", "openml", "synthetic"]


@pytest.mark.slow
def test_methods_are_ranked_or_named_missing():
    leaderboards = build_leaderboards()
    before_first_leaderboard = leaderboards.partition("###")[0]
    words_before = set(re.findall("[a-z-]+", before_first_leaderboard))

    linked_methods = set(re.findall(r"methods/([a-z-]+)\.md", leaderboards))

    assert linked_methods == set(hbo.list_methods()) - words_before
    assert not linked_methods & words_before


@pytest.mark.slow
def test_linked_reports_are_written(tmp_path, monkeypatch):
    import leaderboard_page

    leaderboards = build_leaderboards()
    reports: list[Path] = []
    monkeypatch.setattr(hbo, "report", lambda _, folder: reports.append(folder / "report.html"))

    leaderboard_page.write_reports(tmp_path)

    links = re.findall('href="([^"]+)"', leaderboards)
    assert [tmp_path / link for link in links] == reports


def test_figure_names_eight_methods():
    import pandas as pd
    from rank_figure import choose_named_methods

    methods = ["bo", "random-search", *(f"method-{number}" for number in range(10))]
    frame = pd.DataFrame({"method": methods, "trial": 25, "mean": range(12)})

    named = choose_named_methods(frame)

    assert named == [*(f"method-{number}" for number in range(6)), "bo", "random-search"]


@pytest.mark.slow
def test_overview_of_methods_links_each_once():
    import method_pages

    links = re.findall(r"\]\(([a-z-]+)\.md\)", method_pages.overview())

    assert sorted(links) == hbo.list_methods()


def test_formulas_become_mathml():
    import mathml

    in_line = '<p><span class="arithmatex">\\(a &lt; b\\)</span></p>'
    displayed = '<div class="arithmatex">\\[\n\\frac{x}{2}\n\\]</div>'

    page = mathml.with_mathml(in_line + displayed)

    tags = re.findall(r"<(\w+)", page)
    assert tags.count("math") == 2
    assert "mfrac" in tags
    assert "arithmatex" not in page
