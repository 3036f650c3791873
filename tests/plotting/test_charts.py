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
from hpobench_ordered import plotting
from hpobench_ordered.analysis.significance import critical_difference
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.plotting import Dimension, Panel, theme
from hpobench_ordered.plotting.evaluations import MAX_CELLS, evaluated
from hpobench_ordered.plotting.landscapes import cells
from hpobench_ordered.plotting.saving import POLICY, javascript, save, specification, svg_of

METHODS = ("random-search", "bo", "simple-ordered", "mine.Mine")
STATISTICS = {"aggregate", "bin", "density", "impute", "joinaggregate", "loess", "quantile"}
STATISTICS |= {"regression", "stack", "window"}
MEASURES = ("score", "regret", "rank", "value")


def curve_frame(methods: tuple[str, ...] = METHODS) -> pd.DataFrame:
    benchmarks = ("all", "newsvendor@1", "forrester@1")
    names = ["benchmark", "task", "method", "measure", "trial"]
    rows = itertools.product(benchmarks, [""], methods, MEASURES, range(1, 6))
    frame = pd.DataFrame(rows, columns=names)
    mean = 10.0 * (frame["method"].map(methods.index) + 1) / frame["trial"]
    return frame.assign(mean=mean, low=0.9 * mean, high=1.1 * mean)


def charts() -> Mapping[str, alt.TopLevelMixin]:
    rng = np.random.default_rng(0)
    frame = curve_frame()
    board = frame[(frame["measure"] == "rank") & (frame["trial"] == 5)]
    board = board.assign(rank=frame["mean"], surrogate="forest")
    scores = frame[(frame["measure"] == "score") & (frame["trial"] <= 2)]
    by_task = scores.assign(task=scores["trial"], panel=scores["benchmark"], top=15.0)
    strips = by_task.assign(group=by_task["trial"], value=0.7 * by_task["mean"])
    small: dict[str, Any] = {"columns": 2, "size": (200, 100)}
    looks: dict[str, Any] = {"columns": 2, "size": (200, 100), "title": "scores"}
    x, y = Dimension("rate", 1e-5, 1.0, log=True), Dimension("tree", 0, 1, choices=("a", "it's"))
    tried = pd.DataFrame({"x": [0.1, 0.01], "y": [0.0, 1.0], "trial": [1, 2]})
    means = np.array([[1.0, 2.0, np.nan], [4.0, 5.0, 60.0]])
    panel = Panel("task 1", x, y, cells(means, x, y), domain=(1.0, 50.0), crosses=tried)
    points = Panel("bo", x, y, points=tried, colour="#75974F", crosses=tried)
    shades = Panel("task 2", x, y, cells(means, x, y), domain=(1.0, 50.0), points=tried)
    return {
        **{measure: plotting.curves(frame, measure=measure) for measure in MEASURES},
        "one panel": plotting.curves(frame[frame["benchmark"] == "all"]),
        "critical": plotting.critical_differences(
            critical_difference(rng.normal(size=(10, 4)) + np.arange(4), METHODS)
        ),
        "heatmap": plotting.heatmap(board),
        "bars": plotting.by_task(by_task, bars=True, **looks),
        "points": plotting.by_task(by_task, bars=False, **looks),
        "ratios": plotting.strips(strips, x="task", y="speed-up", log=True, **small),
        "shares": plotting.strips(strips, x="task", y="share", log=False, **small),
        "landscape": plotting.landscape([[panel, shades], [points]]),
    }


CHARTS = charts()


def values_of(spec: Any, key: str) -> Iterator[Any]:
    """What stands under a key, anywhere."""
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
def test_charts_render_without_computing_statistics(name, capfd):
    image = svg_of(CHARTS[name])
    assert image.startswith("<svg") and "NaN" not in image and "undefined" not in image
    assert not capfd.readouterr().err
    spec = specification(CHARTS[name])
    assert spec["description"].endswith(".") and spec["title"]
    computed = {kind for steps in values_of(spec, "transform") for step in steps for kind in step}
    assert not computed & STATISTICS
    assert not list(values_of(spec, "aggregate")) and not list(values_of(spec, "bin"))


def test_marks_show_numbers_of_frame():
    frame = curve_frame()
    (rows,) = specification(plotting.curves(frame, measure="regret"))["datasets"].values()
    columns = ["benchmark", "method", "trial", "mean", "low", "high"]
    expected = frame.loc[frame["measure"] == "regret", columns].reset_index(drop=True)
    pd.testing.assert_frame_equal(pd.DataFrame(rows)[columns], expected)


def test_strips_show_values_and_means():
    rows = [(p, g, m, 2.0**g) for p in "ab" for g in (1, 2) for m in METHODS for _ in range(3)]
    frame = pd.DataFrame(rows, columns=["panel", "group", "method", "value"])
    frame = frame.assign(benchmark="x", mean=frame["value"])
    chart = plotting.strips(frame, x="group", y="ratio", log=True, columns=2, size=(200, 100))
    spec = specification(chart)
    (drawn,) = spec["datasets"].values()
    assert [row["value"] for row in drawn] == frame["value"].tolist()
    assert sum(row["is_mean"] for row in drawn) == 2 * 2 * len(METHODS)
    assert [2.0**power for power in range(-1, 3)] in list(values_of(spec, "values"))


def test_only_first_methods_are_coloured():
    names = [theme.RANDOM_SEARCH, *(f"method-{number:02d}" for number in range(19))]
    looks = theme.styles(names)
    assert looks[theme.RANDOM_SEARCH] == theme.REFERENCE
    assert [looks[name] for name in names[1:9]] == [*theme.PALETTE]
    assert {looks[name].colour for name in names[9:]} == {theme.GREY}
    assert len({(look.colour, look.dashes) for look in looks.values()}) == len(names)


BLINDNESS = {  # linear RGB as seen with each kind (Machado et al. 2009, severity 1)
    "none": np.eye(3),
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def linear(colour: str) -> np.ndarray:
    rgb = np.array([int(colour[n : n + 2], 16) for n in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIELAB of linear RGB."""
    weights = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(weights) @ rgb.clip(0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("page", ["light", "dark"])
def test_colours_are_distinguishable_by_all_readers(page):
    every = (*theme.PALETTE, theme.REFERENCE)
    colours = [look.colour if page == "light" else look.dark for look in every]
    for kind, matrix in BLINDNESS.items():
        seen = [lab(np.array(matrix) @ linear(colour)) for colour in colours]
        for a, b in itertools.combinations(range(len(colours)), 2):
            distance = np.linalg.norm(seen[a] - seen[b])
            assert distance >= 15, (kind, colours[a], colours[b], distance)
    paper = linear(theme.PAGE if page == "light" else theme.DARK_COLOURS[theme.PAGE])
    luminances = [float(rgb @ [0.2126, 0.7152, 0.0722]) for rgb in map(linear, colours)]
    of_page = float(paper @ [0.2126, 0.7152, 0.0722])
    for luminance in luminances:
        low, high = sorted((luminance, of_page))
        assert (high + 0.05) / (low + 0.05) >= 3


@pytest.mark.slow
def test_charts_are_saved_in_every_format(tmp_path):
    starts = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF-", "json": b"{", "html": b"<!DOC"}
    for suffix, start in starts.items():
        path = save(CHARTS["heatmap"], tmp_path / f"chart.{suffix}")
        assert path.read_bytes().startswith(start)
    assert json.loads((tmp_path / "chart.json").read_text())["$schema"].endswith(".json")
    page = (tmp_path / "chart.html").read_text()
    assert POLICY in page and "https://cdn" not in page and page.count("</script>") == 2
    with pytest.raises(UnknownNameError, match="did you mean 'png'"):
        save(CHARTS["heatmap"], tmp_path / "chart.pngg")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["png", "svg", "json", "html"])  # a PDF stands in any order
def test_same_chart_gives_same_bytes(suffix, tmp_path):
    first, second = (
        save(charts()["landscape"], tmp_path / f"{name}.{suffix}").read_bytes() for name in "ab"
    )
    assert first == second


def test_ids_begin_with_prefix():
    image = svg_of(CHARTS["rank"], prefix="one-")
    ids = re.findall(r'(?:id="|#)([a-z_0-9-]*(?:clip|gradient)[a-z_0-9-]*)', image)
    assert ids and all(name.startswith("one-") for name in ids)


@pytest.mark.parametrize("colour", [theme.INK, theme.PAGE, theme.PALETTE[0].colour])
def test_colours_are_exchanged_for_dark_pages(colour):
    light = json.dumps(specification(CHARTS["rank"]))
    dark = theme.recoloured(light, theme.DARK_COLOURS)
    assert f'"{colour}"' in light and f'"{colour}"' not in dark
    assert f'"{theme.DARK_COLOURS[colour]}"' in dark


def test_library_can_stand_in_page():
    library = javascript()
    assert "vegaEmbed" in library and "</script" not in library
    assert len(library) < 1_000_000


def test_unknown_columns_are_refused():
    frame = curve_frame()
    with pytest.raises(UnknownNameError, match="did you mean 'regret'"):
        plotting.curves(frame, measure="regrets")
    with pytest.raises(UnknownNameError, match="did you mean 'benchmark'"):
        plotting.curves(frame, facet="benchmarks")
    with pytest.raises(UnknownNameError, match="column 'ranks'"):
        plotting.heatmap(frame, measure="ranks")
    with pytest.raises(ExperimentError, match="undefined everywhere"):
        plotting.curves(frame.assign(mean=np.nan))


def test_colours_need_positive_values_for_logarithm():
    x, y = Dimension("x", 0, 1), Dimension("y", 0, 1)
    kinds = {}
    for name, least in (("positive", 0.5), ("zero", 0.0), ("negative", -3.0)):
        values = cells(np.array([[least, 5.0], [50.0, 60.0]]), x, y)
        chart = plotting.landscape([[Panel(name, x, y, values, domain=(1.0, 50.0))]])
        assert "NaN" not in svg_of(chart)
        scales = values_of(specification(chart), "scale")
        kinds[name] = next(scale["type"] for scale in scales if "scheme" in scale)
    assert kinds == {"positive": "log", "zero": "linear", "negative": "linear"}


@pytest.mark.parametrize("least", [-1.0, 0.0, 0.01])
def test_regrets_over_decades_are_visible(least):
    frame = curve_frame()
    frame.loc[frame["trial"] == 5, "mean"] = least
    image = svg_of(plotting.curves(frame, measure="regret"))
    assert "NaN" not in image and "Infinity" not in image


def test_axes_end_half_step_beyond_choices():
    kinds = Dimension("kind", 0.0, 1.0, choices=("a", "b"))
    assert kinds.from_unit(np.array([0.0, 0.25, 1.0])) == pytest.approx([-0.5, 0.0, 1.5])
    rate = Dimension("rate", 1e-4, 1.0, log=True)
    assert rate.from_unit(np.array([0.0, 0.5, 1.0])) == pytest.approx([1e-4, 1e-2, 1.0])


def test_landscape_surrounds_best_evaluation():
    bench, rng = hbo.load("quadratic"), np.random.default_rng(0)
    task, configs = bench.tasks[0], [bench.space.sample(rng) for _ in range(20)]
    values = task.evaluate_many(configs)
    tried = pd.DataFrame(configs).assign(
        method="bo", seed=0, trial=range(1, 21), value=values, loss=values
    )
    panel = evaluated("title", task, tried, ("x_1", "x_0"), "bo", 0)
    best = configs[int(values.argmin())]
    assert panel.values is not None and panel.crosses is not None and panel.points is not None
    assert list(panel.crosses["value"]) == [values.min()] and len(panel.points) == 20
    for place in (0, 7, MAX_CELLS + 3):
        middle = (np.array([place % MAX_CELLS, place // MAX_CELLS]) + 0.5) / MAX_CELLS
        x, y = (
            float(axis.from_unit(u)) for axis, u in zip((panel.x, panel.y), middle, strict=True)
        )
        assert panel.values["value"][place] == pytest.approx(
            task.evaluate(best | {"x_1": x, "x_0": y})
        )


@pytest.mark.parametrize(("benchmarks", "has_numbers"), [(10, True), (47, False)])
def test_heatmap_shows_numbers_that_fit(benchmarks, has_numbers):
    names = [f"benchmark-{n}@1" for n in range(benchmarks)]
    frame = pd.DataFrame({"benchmark": names, "surrogate": "forest", "method": "bo", "rank": 9.5})
    frame.loc[0, "rank"] = 10
    image = svg_of(plotting.heatmap(frame))
    assert (">10.00<" in image, ">9.50<" in image) == (has_numbers, has_numbers)
    assert float(re.search(r'width="([0-9.]+)"', image)[1]) < 1240
