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
from hpobench_ordered import Task, plotting
from hpobench_ordered.analysis.significance import critical_difference
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.plotting import Dimension, Panel, theme
from hpobench_ordered.plotting.evaluations import MAX_CELLS, make_panel
from hpobench_ordered.plotting.landscapes import cells
from hpobench_ordered.plotting.saving import POLICY, javascript, save, specification, svg_of

METHODS = ("random-search", "bo", "simple-ordered", "mine.Mine")
STATISTICS = {
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
"""Transforms of Vega that compute statistics, which is left to `analysis`."""

MEASURES = ("score", "regret", "rank", "value")


def curve_frame() -> pd.DataFrame:
    """Curves over five trials of every method and measure on two benchmarks and on all.

    Later methods have higher means, and means fall with the trials.
    """
    benchmarks = ("all", "newsvendor@1", "forrester@1")
    no_task = [""]
    trials = range(1, 6)
    rows = itertools.product(benchmarks, no_task, METHODS, MEASURES, trials)
    frame = pd.DataFrame(rows, columns=["benchmark", "task", "method", "measure", "trial"])
    number_of_method = frame["method"].map(METHODS.index) + 1
    mean = 10.0 * number_of_method / frame["trial"]
    return frame.assign(mean=mean, low=0.9 * mean, high=1.1 * mean)


def charts() -> Mapping[str, alt.TopLevelMixin]:
    """One chart of every kind, by name."""
    frame = curve_frame()
    # Ten benchmarks, four methods; later methods are worse.
    samples = np.random.default_rng(0).normal(size=(10, 4)) + np.arange(4)

    last_ranks = frame[(frame["measure"] == "rank") & (frame["trial"] == 5)]
    board = last_ranks.assign(rank=frame["mean"], surrogate="forest")

    return {
        **{measure: plotting.curves(frame, measure=measure) for measure in MEASURES},
        "one panel": plotting.curves(frame[frame["benchmark"] == "all"]),
        "critical": plotting.critical_differences(critical_difference(samples, METHODS)),
        "heatmap": plotting.heatmap(board),
        **charts_by_task(frame),
        "landscape": landscape_chart(),
    }


def charts_by_task(frame: pd.DataFrame) -> Mapping[str, alt.TopLevelMixin]:
    """Charts of scores by task; the first two trials stand for tasks."""
    scores = frame[(frame["measure"] == "score") & (frame["trial"] <= 2)]
    by_task = scores.assign(task=scores["trial"], panel=scores["benchmark"], top=15.0)
    strips = by_task.assign(group=by_task["trial"], value=0.7 * by_task["mean"])
    size: dict[str, Any] = {"columns": 2, "size": (200, 100)}
    return {
        "bars": plotting.by_task(by_task, bars=True, title="scores", **size),
        "points": plotting.by_task(by_task, bars=False, title="scores", **size),
        "ratios": plotting.strips(strips, x="task", y="speed-up", log=True, **size),
        "shares": plotting.strips(strips, x="task", y="share", log=False, **size),
    }


def landscape_chart() -> alt.TopLevelMixin:
    """Panels of cells with crosses, cells with points, and points alone."""
    x = Dimension("rate", 1e-5, 1.0, log=True)
    y = Dimension("tree", 0, 1, choices=("a", "it's"))
    values = cells(np.array([[1.0, 2.0, np.nan], [4.0, 5.0, 60.0]]), x, y)
    tried = pd.DataFrame({"x": [0.1, 0.01], "y": [0.0, 1.0], "trial": [1, 2]})
    with_crosses = Panel("task 1", x, y, values, domain=(1.0, 50.0), crosses=tried)
    with_points = Panel("task 2", x, y, values, domain=(1.0, 50.0), points=tried)
    points_alone = Panel("bo", x, y, points=tried, colour="#75974F", crosses=tried)
    return plotting.landscape([[with_crosses, with_points], [points_alone]])


CHARTS = charts()


def values_of(spec: Any, key: str) -> Iterator[Any]:
    """The values of a key anywhere in a specification, but not in its data."""
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
    """One chart of every kind, without a word on standard error."""
    image = svg_of(CHARTS[name])

    assert image.startswith("<svg")
    assert "NaN" not in image
    assert "undefined" not in image
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("name", CHARTS)
def test_charts_have_titles_and_descriptions(name):
    """One chart of every kind; its description is a sentence."""
    spec = specification(CHARTS[name])

    assert spec["title"]
    assert spec["description"].endswith(".")


@pytest.mark.parametrize("name", CHARTS)
def test_charts_compute_no_statistics(name):
    """Neither by transforms, nor by aggregated or binned axes."""
    spec = specification(CHARTS[name])

    names_of_transforms = set()
    for transforms in values_of(spec, "transform"):
        for transform in transforms:
            names_of_transforms.update(transform)  # a transform is a dict with its name as a key
    assert not names_of_transforms & STATISTICS
    assert not list(values_of(spec, "aggregate"))
    assert not list(values_of(spec, "bin"))


def test_marks_show_numbers_of_frame():
    """The data of the chart are the rows of one measure, unchanged."""
    frame = curve_frame()

    chart = plotting.curves(frame, measure="regret")

    (rows,) = specification(chart)["datasets"].values()
    columns = ["benchmark", "method", "trial", "mean", "low", "high"]
    expected = frame.loc[frame["measure"] == "regret", columns].reset_index(drop=True)
    pd.testing.assert_frame_equal(pd.DataFrame(rows)[columns], expected)


def strips_frame() -> pd.DataFrame:
    """Three equal values, 2 in group 1 and 4 in group 2, of each method in each of two panels."""
    panels, groups, repetitions = "ab", (1, 2), range(3)
    rows = itertools.product(panels, groups, METHODS, repetitions)
    frame = pd.DataFrame(rows, columns=["panel", "group", "method", "repetition"])
    value = 2.0 ** frame["group"]
    return frame.assign(benchmark="x", value=value, mean=value)


def strips_chart() -> alt.TopLevelMixin:
    """The chart of `strips_frame` on a logarithmic axis."""
    return plotting.strips(
        strips_frame(), x="group", y="ratio", log=True, columns=2, size=(200, 100)
    )


def test_strips_show_values_and_means():
    """The first row of each method in each group of each panel draws the mean, too."""
    (drawn,) = specification(strips_chart())["datasets"].values()

    assert [row["value"] for row in drawn] == strips_frame()["value"].tolist()
    number_of_means = sum(row["is_mean"] for row in drawn)
    panels, groups = 2, 2
    assert number_of_means == panels * groups * len(METHODS)


def test_ratios_have_ticks_at_powers_of_two():
    """Values are 2 and 4."""
    ticks = list(values_of(specification(strips_chart()), "values"))

    assert [0.5, 1.0, 2.0, 4.0] in ticks


MANY_METHODS = [f"method-{number:02d}" for number in range(19)]


def test_only_first_methods_are_coloured():
    """Random search has a style of its own, and the palette eight colours; the rest is grey."""
    styles = theme.styles([theme.RANDOM_SEARCH, *MANY_METHODS])

    first_eight, rest = MANY_METHODS[:8], MANY_METHODS[8:]
    assert styles[theme.RANDOM_SEARCH] == theme.REFERENCE
    assert [styles[name] for name in first_eight] == list(theme.PALETTE)
    assert {styles[name].colour for name in rest} == {theme.GREY}


def test_methods_differ_in_colour_or_dashes():
    names = [theme.RANDOM_SEARCH, *MANY_METHODS]

    styles = theme.styles(names).values()

    assert len({(style.colour, style.dashes) for style in styles}) == len(names)


BLINDNESS = {  # linear RGB as seen with each kind (Machado et al. 2009, severity 1)
    "none": np.eye(3),
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def linear(colour: str) -> np.ndarray:
    """Linear RGB of a colour such as "#0134F7": without the gamma correction of sRGB."""
    two_digits_each = (colour[1:3], colour[3:5], colour[5:7])
    rgb = np.array([int(digits, 16) for digits in two_digits_each]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIELAB of linear RGB: a space in which distances are differences that people see.

    The constants are those of CIE 1976, by way of XYZ with the white point D65.
    """
    weights = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(weights) @ rgb.clip(0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def colours_of(page: str) -> list[str]:
    """The colours of methods on a light or dark page."""
    styles = (*theme.PALETTE, theme.REFERENCE)
    return [style.colour if page == "light" else style.dark for style in styles]


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it, from 0 (black) to 1 (white)."""
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("page", ["light", "dark"])
@pytest.mark.parametrize("kind", BLINDNESS)
def test_colours_are_distinguishable_by_all_readers(kind, page):
    """Any two are at least 15 apart in CIELAB, also as seen with a kind of colour blindness."""
    colours = colours_of(page)
    as_seen = np.array(BLINDNESS[kind])

    lab_of_colour = {colour: lab(as_seen @ linear(colour)) for colour in colours}

    for first, second in itertools.combinations(colours, 2):
        distance = np.linalg.norm(lab_of_colour[first] - lab_of_colour[second])
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
    ("suffix", "start"),
    [
        ("png", b"\x89PNG"),
        ("svg", b"<svg"),
        ("pdf", b"%PDF-"),
        ("json", b"{"),
        ("html", b"<!DOC"),
    ],
)
def test_charts_are_saved_in_every_format(suffix, start, tmp_path):
    """A format is recognised by the first bytes of a file."""
    path = save(CHARTS["heatmap"], tmp_path / f"chart.{suffix}")

    assert path.read_bytes().startswith(start)


@pytest.mark.slow
def test_saved_specification_names_its_schema(tmp_path):
    path = save(CHARTS["heatmap"], tmp_path / "chart.json")

    assert json.loads(path.read_text())["$schema"].endswith(".json")


@pytest.mark.slow
def test_saved_page_needs_no_network(tmp_path):
    """The page has two scripts, the library and the chart, and loads none from a server."""
    page = save(CHARTS["heatmap"], tmp_path / "chart.html").read_text()

    assert POLICY in page
    assert "https://cdn" not in page
    assert page.count("</script>") == 2


def test_unknown_format_suggests_nearest(tmp_path):
    with pytest.raises(UnknownNameError, match="did you mean 'png'"):
        save(CHARTS["heatmap"], tmp_path / "chart.pngg")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["png", "svg", "json", "html"])  # a PDF stands in any order
def test_same_chart_gives_same_bytes(suffix, tmp_path):
    """The chart is built and saved twice, in one format."""
    first = save(landscape_chart(), tmp_path / f"first.{suffix}")
    second = save(landscape_chart(), tmp_path / f"second.{suffix}")
    assert first.read_bytes() == second.read_bytes()


def test_ids_begin_with_prefix():
    """So that several images can stand in one page."""
    image = svg_of(CHARTS["rank"], prefix="one-")

    definitions_and_references = r'(?:id="|#)([a-z_0-9-]*(?:clip|gradient)[a-z_0-9-]*)'
    ids = re.findall(definitions_and_references, image)
    assert ids
    assert all(name.startswith("one-") for name in ids)


@pytest.mark.parametrize("colour", [theme.INK, theme.PAGE, theme.PALETTE[0].colour])
def test_colours_are_exchanged_for_dark_pages(colour):
    """Each colour of text, page and methods has another one for dark pages."""
    light = json.dumps(specification(CHARTS["rank"]))

    dark = theme.recoloured(light, theme.DARK_COLOURS)

    assert f'"{colour}"' in light
    assert f'"{colour}"' not in dark
    assert f'"{theme.DARK_COLOURS[colour]}"' in dark


def test_library_can_stand_in_page():
    """A closing tag inside it would end the script of the page."""
    library = javascript()

    assert "vegaEmbed" in library
    assert "</script" not in library


def test_library_is_small():
    most_characters = 1_000_000

    assert len(javascript()) < most_characters


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "regrets"}, "did you mean 'regret'"),
        ({"facet": "benchmarks"}, "did you mean 'benchmark'"),
    ],
)
def test_unknown_columns_are_refused(options, message):
    with pytest.raises(UnknownNameError, match=message):
        plotting.curves(curve_frame(), **options)


def test_unknown_measure_of_heatmap_is_refused():
    with pytest.raises(UnknownNameError, match="column 'ranks'"):
        plotting.heatmap(curve_frame(), measure="ranks")


def test_undefined_curves_are_refused():
    with pytest.raises(ExperimentError, match="undefined everywhere"):
        plotting.curves(curve_frame().assign(mean=np.nan))


@pytest.mark.parametrize(("lowest", "kind"), [(0.5, "log"), (0.0, "linear"), (-3.0, "linear")])
def test_logarithmic_colours_need_positive_values(lowest, kind):
    """The colours of a landscape are on a linear scale if its lowest value is not positive."""
    x = Dimension("x", 0, 1)
    y = Dimension("y", 0, 1)
    values = cells(np.array([[lowest, 5.0], [50.0, 60.0]]), x, y)

    chart = plotting.landscape([[Panel("task", x, y, values, domain=(1.0, 50.0))]])

    assert "NaN" not in svg_of(chart)
    scales = values_of(specification(chart), "scale")
    (colour_scale,) = [scale for scale in scales if "scheme" in scale]
    assert colour_scale["type"] == kind


@pytest.mark.parametrize("lowest", [-1.0, 0.0, 0.01])  # a linear, symlog and logarithmic axis
def test_axis_of_regrets_allows_lowest(lowest):
    """The axis is linear, symmetrically logarithmic or logarithmic, as the lowest regret allows."""
    frame = curve_frame()
    frame.loc[frame["trial"] == 5, "mean"] = lowest

    image = svg_of(plotting.curves(frame, measure="regret"))

    assert "NaN" not in image
    assert "Infinity" not in image


def test_axis_ends_half_step_beyond_choices():
    """Choices are at 0 and 1."""
    kinds = Dimension("kind", 0.0, 1.0, choices=("a", "b"))

    positions = kinds.from_unit(np.array([0.0, 0.25, 1.0]))

    assert positions == pytest.approx([-0.5, 0.0, 1.5])


def test_middle_of_log_axis_is_geometric_mean():
    rate = Dimension("rate", 1e-4, 1.0, log=True)

    positions = rate.from_unit(np.array([0.0, 0.5, 1.0]))

    assert positions == pytest.approx([1e-4, 1e-2, 1.0])


def evaluated_quadratic() -> tuple[Task, pd.DataFrame, Panel]:
    """A task, 20 random evaluations of it by bo, and their landscape over x_1 and x_0."""
    benchmark = hbo.load("quadratic")
    task = benchmark.tasks[0]
    rng = np.random.default_rng(0)
    configs = [benchmark.space.sample(rng) for _ in range(20)]
    values = task.evaluate_many(configs)
    evaluations = pd.DataFrame(configs).assign(
        method="bo", seed=0, trial=range(1, 21), value=values, loss=values
    )
    panel = make_panel("title", task, evaluations, ("x_1", "x_0"), "bo", 0)
    return task, evaluations, panel


def test_points_of_landscape_are_all_evaluations():
    _, evaluations, panel = evaluated_quadratic()

    assert panel.points is not None
    assert len(panel.points) == len(evaluations)


def test_cross_of_landscape_is_best_evaluation():
    _, evaluations, panel = evaluated_quadratic()

    assert panel.crosses is not None
    assert list(panel.crosses["value"]) == [evaluations["value"].min()]


@pytest.mark.parametrize("cell", [0, 7, MAX_CELLS + 3])
def test_landscape_surrounds_best_evaluation(cell):
    """Hyperparameters that are not axes have their values of the best evaluation."""
    task, evaluations, panel = evaluated_quadratic()
    best = evaluations.loc[evaluations["value"].idxmin(), list(task.space.names)].to_dict()
    row, column = divmod(cell, MAX_CELLS)  # cells are numbered row by row
    x = float(panel.x.from_unit((column + 0.5) / MAX_CELLS))
    y = float(panel.y.from_unit((row + 0.5) / MAX_CELLS))

    expected = task.evaluate(best | {"x_1": x, "x_0": y})

    assert panel.values is not None
    assert panel.values["value"][cell] == pytest.approx(expected)


@pytest.mark.parametrize(("benchmarks", "has_numbers"), [(10, True), (47, False)])
def test_heatmap_shows_numbers_that_fit(benchmarks, has_numbers):
    """Cells of many benchmarks are too narrow for their numbers."""
    image = svg_of(plotting.heatmap(ranks_of_bo(benchmarks)))

    assert (">10.00<" in image) == has_numbers
    assert (">9.50<" in image) == has_numbers


@pytest.mark.parametrize("benchmarks", [10, 47])
def test_heatmap_is_no_wider_than_page(benchmarks):
    """Of few benchmarks and of many."""
    image = svg_of(plotting.heatmap(ranks_of_bo(benchmarks)))

    width_of_page = 1240  # in pixels
    width = float(re.search(r'width="([0-9.]+)"', image)[1])
    assert width < width_of_page


def ranks_of_bo(benchmarks: int) -> pd.DataFrame:
    """The rank of bo on some benchmarks: 10 on the first, and 9.5 on the others."""
    names = [f"benchmark-{number}@1" for number in range(benchmarks)]
    frame = pd.DataFrame({"benchmark": names, "surrogate": "forest", "method": "bo", "rank": 9.5})
    frame.loc[0, "rank"] = 10
    return frame
