"""Charts of results: `Results.plot`."""

from pathlib import Path
from typing import Any

import altair as alt
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.reporting.charts import specification


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Results of two methods with two seeds each on newsvendor and on forrester."""
    folder: Path = tmp_path_factory.mktemp("store")
    return hbo.run(
        benchmarks=["newsvendor", "forrester"],
        methods=["random-search", "simple-previous-no-bo"],
        seeds=range(2),
        protocol=hbo.Ordered(trials=4, tasks=3),
        folder=folder,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "draw",
    [
        lambda plot: plot.curves(size=(300, 200)).properties(title="mine"),
        lambda plot: plot.curves("value", benchmark="newsvendor"),
        lambda plot: plot.ranks(),
        lambda plot: plot.heatmap(trial=1),
        lambda plot: plot.leader_differences(),
        lambda plot: plot.attainment("newsvendor@1"),
        lambda plot: plot.landscape("newsvendor"),
        lambda plot: plot.landscape("newsvendor", "1", x="price_2", y="price_0", seed=1),
    ],
)
def test_every_chart_is_drawn(results, draw):
    """`draw` calls a method of `results.plot`; every chart is described by a sentence."""
    chart = draw(results.plot)

    assert specification(chart)["description"].endswith(".")


def test_figures_of_reports_are_offered(results):
    """The figures of a report, besides its interactive chart, are offered in their order there."""
    names = [figure.name for figure in results.plot.figures()]

    assert names == ["differences", "heatmap", "attainment", "landscapes"]


@pytest.fixture(scope="module")
def attainment_in_report(results):
    """The figure of a report that shows which regret half of the runs attain."""
    (figure,) = [figure for figure in results.plot.figures() if figure.name == "attainment"]
    return figure


def read_rows(chart: alt.TopLevelMixin) -> list[dict[str, Any]]:
    """Read the rows of the only table of data in a chart."""
    (rows,) = specification(chart)["datasets"].values()
    return rows


def test_attainment_in_reports_has_all_methods(attainment_in_report):
    """The figure has a curve of each of the two methods."""
    rows = read_rows(attainment_in_report.chart)

    assert {row["method"] for row in rows} == {"random-search", "simple-previous-no-bo"}


def test_attainment_in_reports_has_band_of_leader(results, attainment_in_report):
    """The bands of all methods would hide each other: the others have no ends of a band."""
    leader = results.leaderboard()["method"].iloc[0]

    rows = read_rows(attainment_in_report.chart)

    methods_with_band = {row["method"] for row in rows if row["low"] is not None}
    assert methods_with_band == {leader}
    assert f"of {leader}." in attainment_in_report.caption


@pytest.mark.slow
def test_landscape_has_axes_of_numeric_choices():
    """Batch sizes and numbers of units of fcnet are listed choices; numbers have ranges."""
    results = hbo.run(
        benchmarks=["fcnet"],
        methods=["random-search"],
        seeds=[0],
        protocol=hbo.LeaveOneOut(trials=4, tasks=1),
    )

    chart = results.plot.landscape(x="batch_size", y="n_units_1")

    assert "batch_size and n_units_1" in specification(chart)["description"]


def test_attainment_needs_benchmark(results):
    with pytest.raises(ExperimentError, match="name one of the benchmarks"):
        results.plot.attainment()


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["newsvendor@2"], {}, "did you mean 'newsvendor@1'"),
        (["newsvendor", "7"], {}, "task '7' of newsvendor@1"),
        (["newsvendor"], {"x": "price1"}, "did you mean 'price_1'"),
    ],
)
def test_wrong_names_suggest_nearest(results, names, options, message):
    """A benchmark, a task or a hyperparameter has a name that the results do not have."""
    with pytest.raises(UnknownNameError, match=message):
        results.plot.landscape(*names, **options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [("forrester", {}, "two hyperparameters"), ("newsvendor", {"seed": 9}, "with seed 9")],
)
def test_impossible_landscapes_are_refused(results, name, options, message):
    """Forrester has a single hyperparameter, so no second axis; seed 9 has no runs."""
    with pytest.raises(ExperimentError, match=message):
        results.plot.landscape(name, **options)
