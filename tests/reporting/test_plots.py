"""Charts of results: `hbo.plots`."""

import pytest

import hpobench_ordered as hbo
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.reporting.charts import specification


@pytest.mark.parametrize(
    "draw",
    [
        lambda results: hbo.plots.curves(results, "value", benchmark="newsvendor"),
        hbo.plots.ranks,
        lambda results: hbo.plots.heatmap(results, trial=1),
        hbo.plots.leader_differences,
        lambda results: hbo.plots.attainment(results, "newsvendor@1"),
        lambda results: hbo.plots.landscape(
            results, "newsvendor", "1", x="price_2", y="price_0", seed=1
        ),
    ],
)
def test_every_chart_is_drawn(finished_results, draw):
    """Every chart is described by a sentence."""
    chart = draw(finished_results)

    assert specification(chart)["description"].endswith(".")


@pytest.mark.slow
def test_landscape_has_axes_of_numeric_choices():
    """Batch sizes and numbers of units of fcnet are listed choices; numbers have ranges."""
    results = hbo.run(
        benchmarks=["fcnet"],
        methods=["random-search"],
        seeds=[0],
        protocol=hbo.LeaveOneOut(trials=4, tasks=1),
    )

    chart = hbo.plots.landscape(results, x="batch_size", y="n_units_1")

    assert "batch_size and n_units_1" in specification(chart)["description"]


def test_attainment_needs_benchmark(finished_results):
    with pytest.raises(ExperimentError, match="name one of the benchmarks"):
        hbo.plots.attainment(finished_results)


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["newsvendor@2"], {}, "did you mean 'newsvendor@1'"),
        (["newsvendor", "7"], {}, "task '7' of newsvendor@1"),
        (["newsvendor"], {"x": "price1"}, "did you mean 'price_1'"),
    ],
)
def test_wrong_names_suggest_nearest(finished_results, names, options, message):
    """A benchmark, a task or a hyperparameter has a name that the results do not have."""
    with pytest.raises(UnknownNameError, match=message):
        hbo.plots.landscape(finished_results, *names, **options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [("forrester", {}, "two hyperparameters"), ("newsvendor", {"seed": 9}, "with seed 9")],
)
def test_impossible_landscapes_are_refused(finished_results, name, options, message):
    """Forrester has a single hyperparameter, so no second axis; seed 9 has no runs."""
    with pytest.raises(ExperimentError, match=message):
        hbo.plots.landscape(finished_results, name, **options)
