"""Charts: their data, colours and files."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pytest

import hpobench_ordered as hbo
from hpobench_ordered import Task
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.papers import charts as paper_charts
from hpobench_ordered.reporting import charts
from hpobench_ordered.reporting.charts import Dimension, Panel, theme
from hpobench_ordered.reporting.charts.evaluations import (
    MAX_CELLS,
    choose_axes,
    make_panel,
)
from hpobench_ordered.reporting.charts.landscapes import cells
from hpobench_ordered.reporting.charts.saving import javascript, save, specification, svg_of
from hpobench_ordered.testing.toy import ShiftedQuadratics, toy_benchmark

METHODS = ("random-search", "bo", "simple-ordered", "mine.Mine")
STATISTICAL_TRANSFORMS = {
    "aggregate",
    "bin",
    "density",
    "impute",
    "joinaggregate",
    "loess",
    "quantile",
    "regression",
    "stack",
    "window",
}
"""Transforms of Vega, which draws the charts, that compute statistics."""

MEASURES = ("score", "regret", "rank", "value")


def curve_frame() -> pd.DataFrame:
    """Curves over five trials of every method and measure on two benchmarks and on all.

    Means are 10, 20, 30 or 40 by method, divided by the trial; the intervals end 10 % from them.
    """
    benchmarks = ("all", "newsvendor@1", "forrester@1")
    no_task = [""]
    trials = range(1, 6)
    rows = itertools.product(benchmarks, no_task, METHODS, MEASURES, trials)
    frame = pd.DataFrame(rows, columns=["benchmark", "task", "method", "measure", "trial"])
    mean_at_first_trial = 10.0 * (frame["method"].map(METHODS.index) + 1)
    mean = mean_at_first_trial / frame["trial"]
    return frame.assign(mean=mean, low=0.9 * mean, high=1.1 * mean)


def charts_of_every_kind() -> Mapping[str, alt.TopLevelMixin]:
    """One chart of every kind, by name."""
    curves = curve_frame()
    curves_of_all_benchmarks = curves[curves["benchmark"] == "all"]

    is_last_rank = (curves["measure"] == "rank") & (curves["trial"] == 5)
    last_ranks = curves[is_last_rank]
    leaderboard = last_ranks.assign(rank=last_ranks["mean"], surrogate="forest")

    return {
        **{measure: charts.curves(curves, measure=measure) for measure in MEASURES},
        "one panel": charts.curves(curves_of_all_benchmarks),
        "heatmap": charts.heatmap(leaderboard),
        **charts_by_task(curves),
        "landscape": landscape_chart(),
    }


def charts_by_task(curves: pd.DataFrame) -> Mapping[str, alt.TopLevelMixin]:
    """The charts that have an axis of tasks, by name.

    Strips draw every value as a point, and the means as lines. For want of tasks in the curves, the
    first two trials are taken for tasks.
    """
    is_of_two_trials = (curves["measure"] == "score") & (curves["trial"] <= 2)
    scores = curves[is_of_two_trials]
    # The plotted range ends at 15, below some of the means.
    by_task = scores.assign(task=scores["trial"], panel=scores["benchmark"], top=15.0)
    strips = by_task.assign(group=by_task["task"], value=0.7 * by_task["mean"])
    layout: dict[str, Any] = {"columns": 2, "size": (200, 100)}
    return {
        "bars": paper_charts.scores_by_task(by_task, bars=True, title="scores", **layout),
        "points": paper_charts.scores_by_task(by_task, bars=False, title="scores", **layout),
        "ratios": paper_charts.strips(strips, x="task", y="speed-up", log=True, **layout),
        "shares": paper_charts.strips(strips, x="task", y="share", log=False, **layout),
    }


def landscape_chart() -> alt.TopLevelMixin:
    """Three landscapes: of cells with crosses, of cells with points, and of points alone."""
    x = Dimension("rate", 1e-5, 1.0, log=True)
    y = Dimension("tree", 0, 1, choices=("a", "it's"))
    # One cell has no value, and 60 is beyond the range of the colours.
    means = cells(np.array([[1.0, 2.0, np.nan], [4.0, 5.0, 60.0]]), x, y)
    range_of_colours = (1.0, 50.0)
    tried = pd.DataFrame({"x": [0.1, 0.01], "y": [0.0, 1.0], "trial": [1, 2]})
    with_crosses = Panel("task 1", x, y, means, domain=range_of_colours, crosses=tried)
    with_points = Panel("task 2", x, y, means, domain=range_of_colours, points=tried)
    points_alone = Panel("bo", x, y, points=tried, colour="#75974F", crosses=tried)
    return charts.landscape([[with_crosses, with_points], [points_alone]])


CHARTS = charts_of_every_kind()


def values_of(spec: Any, key: str) -> Iterator[Any]:
    """Iterate over the values of a key anywhere in a chart's specification, but not in its data."""
    if isinstance(spec, dict):
        for name, value in spec.items():
            if name == key:
                yield value
            if name != "datasets":
                yield from values_of(value, key)
    elif isinstance(spec, list):
        for value in spec:
            yield from values_of(value, key)


@pytest.mark.parametrize("name", CHARTS)
def test_charts_are_rendered(name, capfd):
    """A chart becomes an image without undefined numbers, and nothing is said on standard error."""
    image = svg_of(CHARTS[name])

    assert image.startswith("<svg")
    assert "NaN" not in image
    assert "undefined" not in image
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("name", CHARTS)
def test_charts_have_titles_and_descriptions(name):
    """A description, for those who do not see the chart, is a sentence."""
    spec = specification(CHARTS[name])

    assert spec["title"]
    assert spec["description"].endswith(".")


@pytest.mark.parametrize("name", CHARTS)
def test_charts_compute_no_statistics(name):
    """Charts draw the numbers they get: neither transforms nor axes aggregate or bin them."""
    spec = specification(CHARTS[name])

    keys_of_transforms = set()
    for transforms in values_of(spec, "transform"):
        for transform in transforms:
            keys_of_transforms.update(transform)  # one of the keys is the name of the transform
    assert not keys_of_transforms & STATISTICAL_TRANSFORMS
    assert not list(values_of(spec, "aggregate"))
    assert not list(values_of(spec, "bin"))


def test_marks_show_numbers_of_frame():
    """The data of the chart are the rows of one measure, unchanged."""
    all_curves = curve_frame()

    chart = charts.curves(all_curves, measure="regret")

    (rows,) = specification(chart)["datasets"].values()
    columns = ["benchmark", "method", "trial", "mean", "low", "high"]
    is_regret = all_curves["measure"] == "regret"
    expected = all_curves.loc[is_regret, columns].reset_index(drop=True)
    pd.testing.assert_frame_equal(pd.DataFrame(rows)[columns], expected)


def strips_frame() -> pd.DataFrame:
    """Three equal values of each method in two panels of two groups: 2 in group 1, 4 in group 2."""
    panels = ("a", "b")
    groups = (1, 2)
    repetitions = range(3)
    rows = itertools.product(panels, groups, METHODS, repetitions)
    frame = pd.DataFrame(rows, columns=["panel", "group", "method", "repetition"])
    value = 2.0 ** frame["group"]
    return frame.assign(benchmark="any", value=value, mean=value)


def strips_chart() -> alt.TopLevelMixin:
    """The values of `strips_frame` as points beside each other, on a logarithmic axis."""
    return paper_charts.strips(
        strips_frame(), x="group", y="ratio", log=True, columns=2, size=(200, 100)
    )


def test_strips_show_values_of_frame():
    """Strips draw each value as a point: all values of the frame are in the chart."""
    (rows,) = specification(strips_chart())["datasets"].values()

    assert [row["value"] for row in rows] == strips_frame()["value"].tolist()


MANY_METHODS = [f"method-{number:02d}" for number in range(19)]


def test_only_first_methods_are_coloured():
    """The palette has eight colours, for the first methods after random search; others are grey."""
    styles = theme.styles([theme.RANDOM_SEARCH, *MANY_METHODS])

    first_eight, rest = MANY_METHODS[:8], MANY_METHODS[8:]
    assert styles[theme.RANDOM_SEARCH] == theme.REFERENCE
    assert [styles[name] for name in first_eight] == list(theme.PALETTE)
    assert {styles[name].colour for name in rest} == {theme.GREY}


def test_methods_differ_in_colour_or_dashes():
    """There are more methods than colours; those of the same colour have different dashes."""
    names = [theme.RANDOM_SEARCH, *MANY_METHODS]

    styles = theme.styles(names).values()

    assert len({(style.colour, style.dashes) for style in styles}) == len(names)


COLOURS_AS_SEEN = {
    "none": np.eye(3),
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
"""Matrices that turn linear RGB into what people with a kind of colour blindness see.

From Machado et al. (2009), for the highest severity.
"""


def linear_rgb(colour: str) -> np.ndarray:
    """Linear RGB of a colour such as "#0134F7": without the gamma correction of sRGB."""
    two_digits_each = (colour[1:3], colour[3:5], colour[5:7])
    rgb = np.array([int(digits, 16) for digits in two_digits_each]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def cielab(rgb: np.ndarray) -> np.ndarray:
    """CIELAB of linear RGB: a space in which distances are differences that people see.

    The constants are those of CIE 1976, by way of XYZ with the white point D65.
    """
    rgb_to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    white = np.array([0.9505, 1.0, 1.089])
    xyz = np.array(rgb_to_xyz) @ rgb.clip(0, 1) / white
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    lightness = 116 * y - 16
    green_to_red = 500 * (x - y)
    blue_to_yellow = 200 * (y - z)
    return np.array([lightness, green_to_red, blue_to_yellow])


def colours_of(page: str) -> list[str]:
    """The colours of the methods, random search among them, on a "light" or "dark" page."""
    styles = (*theme.PALETTE, theme.REFERENCE)
    return [style.colour if page == "light" else style.dark for style in styles]


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it, from 0 (black) to 1 (white)."""
    return float(linear_rgb(colour) @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("page", ["light", "dark"])
@pytest.mark.parametrize("kind", COLOURS_AS_SEEN)
def test_colours_are_distinguishable_by_all_readers(kind, page):
    """Any two are at least 15 apart in CIELAB, also as seen with a kind of colour blindness."""
    colours = colours_of(page)
    seen_from_linear_rgb = np.array(COLOURS_AS_SEEN[kind])

    seen = {colour: cielab(seen_from_linear_rgb @ linear_rgb(colour)) for colour in colours}

    for first, second in itertools.combinations(colours, 2):
        distance = np.linalg.norm(seen[first] - seen[second])
        assert distance >= 15, (first, second, distance)


@pytest.mark.parametrize("page", ["light", "dark"])
def test_colours_contrast_with_page(page):
    """WCAG asks for a contrast of 3 for parts of graphics."""
    background = theme.PAGE if page == "light" else theme.DARK_COLOURS[theme.PAGE]

    for colour in colours_of(page):
        darker, lighter = sorted((luminance(colour), luminance(background)))
        contrast = (lighter + 0.05) / (darker + 0.05)  # as WCAG defines it
        assert contrast >= 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "first_bytes"),
    [
        ("png", b"\x89PNG"),
        ("svg", b"<svg"),
        ("pdf", b"%PDF-"),
    ],
)
def test_charts_are_saved_in_every_format(suffix, first_bytes, tmp_path):
    """A format is recognised by the first bytes of a file."""
    path = save(CHARTS["heatmap"], tmp_path / f"chart.{suffix}")

    assert path.read_bytes().startswith(first_bytes)


def test_unknown_format_suggests_nearest(tmp_path):
    with pytest.raises(UnknownNameError, match=r"did you mean '\.png'"):
        save(CHARTS["heatmap"], tmp_path / "chart.pngg")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["png", "svg"])  # a PDF has any order inside
def test_same_chart_gives_same_bytes(suffix, tmp_path):
    """A chart that is built and saved twice gives the same file, in one of the formats."""
    first = save(landscape_chart(), tmp_path / f"first.{suffix}")
    second = save(landscape_chart(), tmp_path / f"second.{suffix}")

    assert first.read_bytes() == second.read_bytes()


def test_ids_begin_with_prefix():
    """Several images in one page have different prefixes, so that no id is there twice."""
    image = svg_of(CHARTS["rank"], prefix="one-")

    # Ids are of clips and gradients: they stand in id="..." and are referred to as #...
    ids = re.findall(r'(?:id="|#)([a-z_0-9-]*(?:clip|gradient)[a-z_0-9-]*)', image)
    assert ids
    assert all(name.startswith("one-") for name in ids)


@pytest.mark.parametrize("light_colour", [theme.INK, theme.PAGE, theme.PALETTE[0].colour])
def test_colours_are_exchanged_for_dark_pages(light_colour):
    """The colours of text, page and methods each have another one on dark pages."""
    light_chart = json.dumps(specification(CHARTS["rank"]))

    dark_chart = theme.recoloured(light_chart, theme.DARK_COLOURS)

    dark_colour = theme.DARK_COLOURS[light_colour]
    assert f'"{light_colour}"' in light_chart
    assert f'"{light_colour}"' not in dark_chart
    assert f'"{dark_colour}"' in dark_chart


def test_script_of_vega_can_stand_in_page():
    """A closing tag inside the script would end its element in the page."""
    script = javascript()

    assert "vegaEmbed" in script
    assert "</script" not in script


def test_undefined_curves_are_refused():
    with pytest.raises(ExperimentError, match="undefined everywhere"):
        charts.curves(curve_frame().assign(mean=np.nan))


@pytest.mark.parametrize("lowest_regret", [-1.0, 0.0, 0.01])  # linear, symlog, log
def test_axis_of_regrets_allows_lowest(lowest_regret):
    """A regret of 0 or below cannot be drawn on a logarithmic axis, so that there is another."""
    frame = curve_frame()
    frame.loc[frame["trial"] == 5, "mean"] = lowest_regret

    image = svg_of(charts.curves(frame, measure="regret"))

    assert "NaN" not in image
    assert "Infinity" not in image


@pytest.fixture(scope="module")
def quadratic_task() -> Task:
    """A task of the benchmark quadratic, whose hyperparameters are x_0, x_1 and so on."""
    return hbo.load("quadratic").tasks[0]


@pytest.fixture(scope="module")
def evaluations(quadratic_task) -> pd.DataFrame:
    """Twenty random evaluations of the task, by one run of bo."""
    rng = np.random.default_rng(0)
    configs = [quadratic_task.space.sample(rng) for _ in range(20)]
    values = quadratic_task.evaluate_many(configs)
    return pd.DataFrame(configs).assign(
        method="bo", seed=0, trial=range(1, 21), value=values, loss=values
    )


class FailingBelowMiddle(ShiftedQuadratics):
    """Shifted quadratics that fail where the first hyperparameter is in its lower half."""

    def predict(self, values, task):
        has_failed = self.space.encode(values)[:, 0] < 0.5
        return np.where(has_failed, np.inf, super().predict(values, task))


@pytest.fixture(scope="module")
def landscape(quadratic_task, evaluations) -> Panel:
    """The panel of the task over x_1 and x_0, with the evaluations of the run."""
    x_and_y = ("x_1", "x_0")
    return make_panel("title", quadratic_task, evaluations, x_and_y, method="bo", seed=0)


@pytest.fixture
def evaluations_with_failures(quadratic_task, evaluations) -> pd.DataFrame:
    """The evaluations, of which all but the last failed."""
    has_failed = evaluations["trial"] < len(evaluations)
    return evaluations.assign(
        value=evaluations["value"].mask(has_failed),
        loss=evaluations["loss"].mask(has_failed, np.inf),
    )


def test_failed_evaluations_are_points_of_landscape(quadratic_task, evaluations_with_failures):
    """The cross is the only evaluation that has not failed."""
    panel = make_panel(
        "title", quadratic_task, evaluations_with_failures, ("x_1", "x_0"), method="bo", seed=0
    )

    assert panel.points is not None
    assert panel.crosses is not None
    assert len(panel.points) == len(evaluations_with_failures)
    assert list(panel.crosses["trial"]) == [len(evaluations_with_failures)]


def test_no_landscape_where_all_failed(quadratic_task, evaluations):
    benchmark = toy_benchmark(quadratic_task.space, tasks=1)
    all_failed = evaluations.assign(value=np.nan, loss=np.inf)

    assert choose_axes(benchmark, [evaluations]) is not None
    assert choose_axes(benchmark, [all_failed]) is None


@pytest.mark.parametrize("cell", [0, 7, MAX_CELLS + 3])
def test_landscape_surrounds_best_evaluation(quadratic_task, evaluations, landscape, cell):
    """A cell has the value at its middle; what is no axis is as in the best evaluation.

    Cells are numbered row by row, with `MAX_CELLS` in a row.
    """
    row, column = divmod(cell, MAX_CELLS)
    x = float(landscape.x.from_unit((column + 0.5) / MAX_CELLS))
    y = float(landscape.y.from_unit((row + 0.5) / MAX_CELLS))
    row_of_best = evaluations["value"].idxmin()
    best = evaluations.loc[row_of_best, list(quadratic_task.space.names)].to_dict()

    expected = quadratic_task.evaluate(best | {"x_1": x, "x_0": y})

    assert landscape.values is not None
    assert landscape.values["value"][cell] == pytest.approx(expected)


@pytest.mark.parametrize(("number_of_benchmarks", "has_numbers"), [(10, True), (47, False)])
def test_heatmap_shows_numbers_that_fit(number_of_benchmarks, has_numbers):
    """Cells of many benchmarks are too narrow for the ranks, 10 and 9.5, to two decimals."""
    image = svg_of(charts.heatmap(ranks_of_bo(number_of_benchmarks)))

    assert (">10.00<" in image) == has_numbers
    assert (">9.50<" in image) == has_numbers


@pytest.mark.parametrize("number_of_benchmarks", [10, 47])
def test_heatmap_is_no_wider_than_page(number_of_benchmarks):
    """The cells of a heatmap become narrower if there are many benchmarks."""
    image = svg_of(charts.heatmap(ranks_of_bo(number_of_benchmarks)))

    width_of_page = 1240  # in pixels
    width = float(re.search(r'width="([0-9.]+)"', image)[1])
    assert width < width_of_page


def ranks_of_bo(number_of_benchmarks: int) -> pd.DataFrame:
    """A leaderboard with a single method, bo: its rank is 10 on the first benchmark, else 9.5."""
    names = [f"benchmark-{number}@1" for number in range(number_of_benchmarks)]
    frame = pd.DataFrame({"benchmark": names, "surrogate": "forest", "method": "bo", "rank": 9.5})
    frame.loc[0, "rank"] = 10
    return frame
