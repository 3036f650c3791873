"""Charts of results: `Results.plot`."""

from pathlib import Path

import pytest

import hpobench_ordered as hbo
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.plotting import specification


@pytest.fixture(scope="module")
def result(tmp_path_factory):
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
def test_every_chart_is_drawn(result, draw):
    """Each has a description, which is a sentence."""
    chart = draw(result.plot)

    assert specification(chart)["description"].endswith(".")


def test_figures_of_reports_are_offered(result):
    names = [figure.name for figure in result.plot.figures()]

    assert names == ["differences", "heatmap", "attainment", "landscapes"]


def test_attainment_in_reports_has_one_band(result):
    """All methods have a line, and the leader alone has a band, from low to high."""
    (figure,) = [figure for figure in result.plot.figures() if figure.name == "attainment"]
    (rows,) = specification(figure.chart)["datasets"].values()
    leader = result.leaderboard()["method"].iloc[0]
    assert {row["method"] for row in rows} == {"random-search", "simple-previous-no-bo"}
    assert {row["method"] for row in rows if row["low"] is not None} == {leader}
    assert f"of {leader}." in figure.caption


@pytest.mark.slow
def test_landscape_has_axes_of_numeric_choices():
    """Batch sizes and numbers of units are choices, not ranges."""
    result = hbo.run(
        benchmarks=["fcnet"],
        methods=["random-search"],
        seeds=[0],
        protocol=hbo.LeaveOneOut(trials=4, tasks=1),
    )

    chart = result.plot.landscape(x="batch_size", y="n_units_1")

    assert "batch_size and n_units_1" in specification(chart)["description"]


def test_attainment_needs_benchmark(result):
    with pytest.raises(ExperimentError, match="name one of the benchmarks"):
        result.plot.attainment()


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["newsvendor@2"], {}, "did you mean 'newsvendor@1'"),
        (["newsvendor", "7"], {}, "task '7' of newsvendor@1"),
        (["newsvendor"], {"x": "price1"}, "did you mean 'price_1'"),
    ],
)
def test_wrong_names_suggest_nearest(result, names, options, message):
    with pytest.raises(UnknownNameError, match=message):
        result.plot.landscape(*names, **options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [("forrester", {}, "two hyperparameters"), ("newsvendor", {"seed": 9}, "with seed 9")],
)
def test_impossible_landscapes_are_refused(result, name, options, message):
    """Of a benchmark with one hyperparameter, and of a seed without runs."""
    with pytest.raises(ExperimentError, match=message):
        result.plot.landscape(name, **options)
