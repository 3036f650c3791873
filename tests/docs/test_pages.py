"""The pages that are made from the registry."""

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import hpobench_ordered as hbo
from hpobench_ordered.cli import app
from hpobench_ordered.registry import benchmark_spec, method_spec
from hpobench_ordered.surrogates.bundle import read_card

pytestmark = pytest.mark.usefixtures("builders")


def test_benchmark_page_shows_spec():
    import benchmark_pages
    from markdown_text import plain

    page = benchmark_pages.page("xgboost-mnist")
    definition = benchmark_spec("xgboost-mnist").define()
    for parameter in definition.space.parameters:
        assert f"`{parameter.name}`" in page.text
    assert all(f"| `{task.name}` |" in page.text for task in definition.tasks)
    assert definition.provenance.licence in page.text
    limits = read_card(benchmark_spec("xgboost-mnist").artifact).limits
    assert limits and all(plain(limit) in page.text for limit in limits)
    assert page.figure.startswith("<svg")
    absent = benchmark_pages.page("openml-ranger")
    assert absent.figure is None
    assert "There is no figure" in absent.text
    assert "hpobench-ordered generate openml-ranger" in absent.text
    table = benchmark_pages.overview()
    assert all(f"]({name}.md)" in table for name in hbo.list_benchmarks())


@pytest.mark.slow
def test_example_on_a_page_runs():
    import benchmark_pages

    for name in ("xgboost-mnist", "newsvendor", "yahpo-svm-458"):
        code = re.search(r"```python\n(.*?)```", benchmark_pages.page(name).text, re.DOTALL)[1]
        exec(code, {})


@pytest.mark.slow
def test_figure_is_the_same_again():
    from landscape import MeanLandscape

    first, again = (MeanLandscape.of(hbo.load("quadratic")).svg(("x_0", "x_1")) for _ in range(2))
    assert first == again


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
    unit = np.random.default_rng(0).random((DRAWS, 5))
    unit[:, 0] = 3.5 / MAX_CELLS
    unit[:, 1] = 7.5 / MAX_CELLS
    expected = task.evaluate_many(quadratic.space.decode(unit)).mean()
    means = MeanLandscape.of(quadratic).means(task, ("x_0", "x_1"))
    assert means[7, 3] == pytest.approx(expected)


def test_inactive_cells_are_empty():
    from landscape import MeanLandscape

    bench = hbo.load("openml-svm")
    means = MeanLandscape.of(bench).means(bench.tasks[0], ("kernel", "gamma"))
    linear = bench.space["kernel"].choices.index("linear")
    assert np.isnan(means[:, linear]).all()
    assert np.isfinite(np.delete(means, linear, axis=1)).all()


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

    source = 'A = 5\n"""Five."""\nB, C = 1, 2.5\n"""Both."""\nD = 1\ndef f():\n    """No."""\n'
    settings = list(method_pages.settings(source))
    assert settings == [("A", "5", "Five."), ("B, C", "1, 2.5", "Both.")]


def test_command_page_has_every_command():
    import command_page

    text = command_page.text()
    for name in app.commands:
        help_ = CliRunner().invoke(app, [name, "--help"]).output
        assert f"## hpobench-ordered {name}\n" in text
        described = help_.split("\n\n")[1].strip()  # after the lines on usage
        assert described.splitlines()[0].split("...")[0][:40] in text


def test_undescribed_public_names_are_added():
    import public_names

    text = "::: hpobench_ordered.load\n\n<!-- rest: hpobench_ordered -->\n"
    filled = public_names.filled(text)
    assert filled.count("::: hpobench_ordered.load\n") == 1
    assert all(f"::: hpobench_ordered.{name}" in filled for name in hbo.__all__)


@pytest.mark.slow
def test_leaderboards_are_the_reference_results(tmp_path, monkeypatch):
    import leaderboard_page

    text = leaderboard_page.filled("<!-- missing -->\n\n<!-- leaderboards -->\n\nafter")
    section = text.split("### othpo")[1].split("###")[0]
    board = hbo.reference("othpo").leaderboard(5)
    ranks = board[board["benchmark"] == "all"].set_index("method")["rank"]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| [")]
    found = {row[0].split("]")[0][3:]: row[2] for row in rows}
    assert found == {method: f"{rank:.2f}" for method, rank in ranks.items()}
    assert "Left out is yahpo-ranger-4154@1 (forest)" in section
    named = set(re.findall("[a-z-]+", text.partition("###")[0]))
    there = set(re.findall(r"methods/([a-z-]+)\.md", text))
    assert set(hbo.list_methods()) - named == there and not there & named
    written: list[Path] = []
    monkeypatch.setattr(hbo, "report", lambda _, folder: written.append(folder / "report.html"))
    leaderboard_page.write_reports(tmp_path)
    linked = re.findall('href="([^"]+)"', text)
    assert [tmp_path / path for path in linked] == written


def test_formulas_become_mathml():
    import mathml

    page = '<p><span class="arithmatex">\\(a &lt; b\\)</span></p>'
    page += '<div class="arithmatex">\\[\n\\frac{x}{2}\n\\]</div>'
    text = mathml.with_mathml(page)
    tags = re.findall(r"<(\w+)", text)
    assert tags.count("math") == 2 and "mfrac" in tags
    assert "arithmatex" not in text
