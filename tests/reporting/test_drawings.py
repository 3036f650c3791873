"""Drawings, read back from their SVG and PNG."""

import io
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from hpobench_ordered.analysis import Scores
from hpobench_ordered.analysis.bootstrap import Intervals
from hpobench_ordered.analysis.critical_differences import CriticalDifference, PostHoc
from hpobench_ordered.analysis.wins import Wins, count_wins
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.reporting.drawings.attainment import draw_attainment, draw_reach
from hpobench_ordered.reporting.drawings.bars import draw_bars
from hpobench_ordered.reporting.drawings.colours import (
    ON_DARK,
    ON_LIGHT,
)
from hpobench_ordered.reporting.drawings.critical import draw_critical_difference
from hpobench_ordered.reporting.drawings.curves import draw_curves, marked_points
from hpobench_ordered.reporting.drawings.dimensions import Dimension
from hpobench_ordered.reporting.drawings.drawing import Drawing, Subject
from hpobench_ordered.reporting.drawings.landscapes import draw_landscapes
from hpobench_ordered.reporting.drawings.png import to_png
from hpobench_ordered.reporting.drawings.ranks import RankCurves, draw_ranks
from hpobench_ordered.reporting.drawings.scene import (
    INK,
    Anchor,
    Paths,
    Scene,
    Text,
)
from hpobench_ordered.reporting.drawings.svg import inline_svg, to_svg
from hpobench_ordered.reporting.drawings.wins import draw_wins
from hpobench_ordered.reporting.style import STYLES, VARIABLES

SVG = "{http://www.w3.org/2000/svg}"
TOKEN = re.compile(r"[MlhvzL]|-?\d*\.?\d+")
PAIRS = {"h": (1, 0), "v": (0, 1)}


def root_of(drawing: Drawing) -> ElementTree.Element:
    return ElementTree.fromstring(drawing.svg.decode())


def size_of(drawing: Drawing) -> tuple[float, float]:
    root = root_of(drawing)
    return float(root.get("width", "")), float(root.get("height", ""))


def texts_of(drawing: Drawing) -> list[Text]:
    """All lines of text, with what they cover."""
    found = []
    for element in root_of(drawing).iter(f"{SVG}text"):
        turn = re.match(r"rotate\(([-\d.]+) ", element.get("transform", ""))
        found.append(
            Text(
                x=float(element.get("x", "")),
                y=float(element.get("y", "")),
                string=element.text or "",
                size=float(element.get("font-size", "")),
                anchor=Anchor(element.get("text-anchor", "start")),
                angle=-float(turn[1]) if turn else 0.0,
            )
        )
    return found


def lines_of(path: ElementTree.Element) -> list[np.ndarray]:
    """The lines of a path, absolute coordinates, shape (n, 2) each."""
    lines: list[list[np.ndarray]] = []
    for command, numbers in _commands(path.get("d", "")):
        if command == "M":
            lines.append([np.array(numbers)])
            continue
        for move in _moves(command, numbers):
            lines[-1].append(lines[-1][-1] + move)
    return [np.array(line) for line in lines]


def curves_of(drawing: Drawing, method: str) -> list[np.ndarray]:
    """The lines that are drawn for a method, one a panel."""
    for path in root_of(drawing).iter(f"{SVG}path"):
        title = path.find(f"{SVG}title")
        if title is not None and title.text == method and path.get("stroke"):
            return lines_of(path)
    raise AssertionError(f"{method} is not drawn")


def assert_nothing_is_clipped(drawing: Drawing) -> None:
    width, height = size_of(drawing)
    for text in texts_of(drawing):
        left, top, right, bottom = text.bounds
        inside = left >= 0 and top >= 0 and right <= width and bottom <= height
        assert inside, (text, width, height)


def assert_no_texts_overlap(drawing: Drawing) -> None:
    for first, second in combinations([t for t in texts_of(drawing) if not t.angle], 2):
        a, b = first.bounds, second.bounds
        apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
        assert apart, (first, second)


def _commands(text: str) -> Iterator[tuple[str, list[float]]]:
    command, numbers = "", list[float]()
    for token in TOKEN.findall(text):
        if token.isalpha():
            if command:
                yield command, numbers
            command, numbers = token, []
        else:
            numbers.append(float(token))
    yield command, numbers


def _moves(command: str, numbers: list[float]) -> list[np.ndarray]:
    if command in PAIRS:
        return [np.array(PAIRS[command]) * number for number in numbers]
    return list(np.array(numbers).reshape(-1, 2))


METHODS = ("random-search", "bo", "simple-ordered", "mine")
SUBJECT = Subject("x@1 (forest)", "ordered(trials=12)", METHODS, ("a", "1", "c <&> d"), 3)


def intervals(*shape: int, low: float = 0.0, seed: int = 0) -> Intervals:
    """Falling curves with bands around them."""
    rng = np.random.default_rng(seed)
    mean = low - np.sort(-rng.random(shape) * 100, axis=-1)
    return Intervals(mean, mean - 1, mean + 1, 3, 0.95)


def pixels(scene: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(scene)).convert("RGB"))


def evaluations(tasks: int = 3, seeds: int = 2) -> pd.DataFrame:
    """Random evaluations of a number, a wide number and a choice."""
    rng = np.random.default_rng(0)
    levels = [METHODS, range(seeds), range(tasks), range(1, 13)]
    index = pd.MultiIndex.from_product(levels, names=["method", "seed", "task", "trial"])
    n = len(index)
    columns = {
        "loss": rng.random(n),
        "depth": rng.integers(1, 10, n),
        "rate": 10.0 ** rng.uniform(-4, 0, n),
        "kernel": rng.choice(["radial", "linear"], n),
    }
    frame = pd.DataFrame(columns, index=index).reset_index()
    frame.loc[frame["kernel"] == "linear", "depth"] = np.nan  # inactive
    return frame


def ranking(ranks: np.ndarray, methods: tuple[str, ...], **changes: Any) -> CriticalDifference:
    settings: dict[str, Any] = {
        "groups": ((0, len(methods) - 1),),
        "post_hoc": PostHoc.NEMENYI,
        "alpha": 0.05,
        "critical_difference": 1.5,
        "friedman_p_value": 0.01,
        "samples": 20,
    }
    return CriticalDifference(methods, ranks, **settings | changes)


def landscape(x: str = "rate", y: str = "depth", tasks: tuple[int, ...] = (0, 2)) -> Drawing:
    frame = evaluations()
    axes = (Dimension.of_column(name, frame[name]) for name in (x, y))
    return draw_landscapes(SUBJECT, frame, *axes, tasks=tasks, seed=1)


def wins() -> Wins:
    losses = np.random.default_rng(1).random((4, 3, 3, 12)).round(1)
    return count_wins(losses, METHODS, trial=12)


def bars(tasks: int = 3, trial: int = 2) -> Drawing:
    values = np.random.default_rng(0).random((4, 3, tasks, 12)) * 400
    names = tuple(f"task {task}" for task in range(tasks))
    subject = Subject("x@1 (forest)", "ordered(trials=12)", METHODS, names, 3)
    return draw_bars(subject, Scores(METHODS, values), trial=trial)


def attainment(trials: int = 12) -> Drawing:
    levels = np.sort(intervals(3, 4, trials).mean, axis=0)
    return draw_attainment(SUBJECT, "regret", levels, (0.25, 0.5, 0.75))


def reach() -> Drawing:
    shares = np.sort(np.random.default_rng(0).random((4, 12, 2)), axis=1)
    return draw_reach(SUBJECT, "regret", shares, np.array([0.1, 1e-5]))


def ranks(panels: int = 7) -> Drawing:
    curves = [RankCurves(f"b{n}", intervals(4, 12 + n, low=1, seed=n)) for n in range(panels)]
    return draw_ranks(curves, METHODS, about="all")


EXAMPLES: dict[str, Callable[[], Drawing]] = {
    "curves of scores": lambda: draw_curves(
        SUBJECT, "score", intervals(4, 3, 12), intervals(4, 12, seed=1), first_task=1
    ),
    "curves of values": lambda: draw_curves(SUBJECT, "value", intervals(4, 3, 12, low=-50.0)),
    "ranks": ranks,
    "critical difference": lambda: draw_critical_difference(
        ranking(np.array([1.0, 2.5, 2.5001, 4.0]), METHODS), about="all"
    ),
    "bars": bars,
    "wins": lambda: draw_wins(wins(), about="all"),
    "attainment": attainment,
    "reach": reach,
    "landscape": landscape,
    "landscape of choices": lambda: landscape("kernel", "rate"),
}


@pytest.fixture(scope="module", params=EXAMPLES)
def drawing(request: pytest.FixtureRequest) -> Drawing:
    return EXAMPLES[request.param]()


# -- every drawing -----------------------------------------------------------------------------


def test_texts_are_within_the_drawing_and_apart(drawing: Drawing) -> None:
    assert_nothing_is_clipped(drawing)
    assert_no_texts_overlap(drawing)


def test_paths_are_within_the_drawing(drawing: Drawing) -> None:
    width, height = size_of(drawing)
    for path in root_of(drawing).iter(f"{SVG}path"):
        for line in lines_of(path):
            assert (line >= -0.1).all() and (line <= [width + 0.1, height + 0.1]).all()


def test_words_and_numbers_are_there(drawing: Drawing) -> None:
    assert drawing.stem.startswith(drawing.kind.value)
    assert re.fullmatch(r"[a-z0-9-]+", drawing.stem)
    assert drawing.title and drawing.caption.endswith(".") and drawing.alt.endswith(".")
    assert len(drawing.data)


def test_it_is_white_in_png_and_transparent_in_svg(drawing: Drawing) -> None:
    colours = pixels(drawing.png)
    assert (colours[[0, -1, 0, -1], [0, 0, -1, -1]] == 255).all()
    width, height = size_of(drawing)
    assert colours.shape[:2] == (round(height * 200 / 96), round(width * 200 / 96))
    assert (colours < 128).any()
    whole = np.array([[0, 0], [width, 0], [width, height], [0, height]])
    for path in root_of(drawing).iter(f"{SVG}path"):
        assert not any(line.shape == (4, 2) and (line == whole).all() for line in lines_of(path))


def test_lines_are_as_wide_in_png_as_in_svg() -> None:
    scene = Scene(60, 60)
    scene.add(Paths((np.array([[0.0, 30.0], [60.0, 30.0]]),), stroke="#000000", width=12))
    column = pixels(to_png(scene))[:, 60, 0]
    assert (column < 128).sum() == pytest.approx(12 * 200 / 96, abs=1)


def test_it_is_small_and_can_be_inlined(drawing: Drawing) -> None:
    text = inline_svg(drawing)
    root = ElementTree.fromstring(text)
    assert (root.get("role"), root.get("aria-label")) == ("img", drawing.alt)
    assert root.get("width") == "100%" and root.get("viewBox")
    assert INK not in text and "currentColor" in text and "<?xml" not in text
    assert len(text) < 150_000
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(set(ids)) == len(ids)
    assert all(name and name.startswith(drawing.stem) for name in ids)
    hrefs = {element.get("href", "")[1:] for element in root.iter() if element.get("href")}
    assert hrefs == set(ids)
    for colour, variable in VARIABLES.items():
        assert text.count(colour) == text.count(f"var({variable},{colour})")


def test_the_pdf_has_a_page_of_its_size_and_its_texts(drawing: Drawing) -> None:
    pdf = drawing.pdf
    assert pdf.startswith(b"%PDF-") and pdf.rstrip().endswith(b"%%EOF")
    assert pdf.count(b"/Type /Page ") == 1 and b"CreationDate" not in pdf
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", pdf)
    assert box is not None
    points = [float(number) for number in box.groups()]
    assert points == pytest.approx([side * 72 / 96 for side in size_of(drawing)], abs=0.01)
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
    content = next(c for c in map(_inflated, streams) if b"BT" in c)
    shown = b"".join(re.findall(rb"\(((?:\\.|[^\\)])*)\)", content))  # in pieces between kerns
    for unsaid in (b"\x00", b"\\"):  # of codes of two bytes, and before brackets
        shown = shown.replace(unsaid, b"")
    plain = [t.string for t in texts_of(drawing) if t.string.isascii() and "f" not in t.string]
    assert max(plain, key=len).encode() in shown  # "ff" may be one letter
    assert b"/CIDFontType2" in pdf and b"/Type3" not in pdf


def _inflated(stream: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(stream)  # its last byte may look like a line's end
    except zlib.error:
        return b""


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_same_input_gives_the_same_bytes(name: str) -> None:
    first, second = EXAMPLES[name](), EXAMPLES[name]()
    assert (first.svg, first.png) == (second.svg, second.png)
    assert inline_svg(first) == inline_svg(second)


def test_the_same_input_gives_the_same_pdf() -> None:
    assert ranks().pdf == ranks().pdf


# -- curves ------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["score", "value"])
def test_the_numbers_beside_curves_are_those_drawn(measure: str) -> None:
    """Heights in every panel are the numbers in the table, but for where the axis begins."""
    drawing = draw_curves(SUBJECT, measure, intervals(4, 3, 12, low=-50.0))
    for method in METHODS:
        curves = curves_of(drawing, method)
        own = drawing.data[drawing.data["method"] == method]
        for (_, panel), line in zip(own.groupby("panel", sort=False), curves, strict=True):
            trials, mean = panel["trial"].to_numpy(), panel["mean"].to_numpy()
            x = np.interp(np.log(trials), np.log([1, 12]), line[[0, -1], 0])
            y = np.interp(x, line[:, 0], line[:, 1])
            slope, offset = np.polyfit(mean, y, 1)
            assert slope < 0
            np.testing.assert_allclose(slope * mean + offset, y, atol=0.5)


def test_one_panel_a_task_and_one_for_all() -> None:
    titles = {"mean over tasks", "a", "task 1", "c <&> d"}
    drawing = EXAMPLES["curves of scores"]()
    assert titles <= {text.string for text in texts_of(drawing)}
    assert len(curves_of(drawing, "bo")) == 4
    assert set(drawing.data["panel"]) == titles
    assert set(drawing.data["task"]) == {"", *SUBJECT.task_names}
    assert "leaves out the first task, which has no history" in drawing.caption


@pytest.mark.parametrize("kind", ["curves of scores", "bars", "reach", "landscape"])
def test_titles_name_the_protocol_as_people_do(kind: str) -> None:
    drawing = EXAMPLES[kind]()
    assert drawing.title.endswith("x@1 (forest), ordered, 12 trials")
    assert drawing.stem.endswith("x-1-forest-ordered-12-trials")
    assert set(drawing.data["protocol"]) == {"ordered(trials=12)"}


@pytest.mark.parametrize("samples", [4, 5])
def test_only_the_mean_panel_shows_intervals_of_few_seeds(samples: int) -> None:
    by_task, overall = intervals(4, 3, 12), intervals(4, 12, seed=1)
    by_task, overall = replace(by_task, samples=samples), replace(overall, samples=samples)
    drawing = draw_curves(SUBJECT, "score", by_task, overall)
    paths = list(root_of(drawing).iter(f"{SVG}path"))
    areas = [p for p in paths if p.get("fill") in VARIABLES and p.get("opacity")]
    outlines = [p for p in paths if p.get("stroke") in VARIABLES and p.get("opacity")]
    found = [sum(len(lines_of(path)) for path in group) for group in (areas, outlines)]
    panels, methods = 4, len(METHODS)
    assert found == ([0, 2 * methods] if samples < 5 else [panels * methods, 0])
    assert ("panels of tasks have no bands" in drawing.caption) == (samples < 5)


def test_bands_of_more_methods_are_lighter() -> None:
    def opacity(methods: int) -> float:
        names = tuple(f"mine-{number}" for number in range(methods))
        drawing = draw_curves(
            Subject("x", "ordered()", names, ("a",), 9),
            "score",
            replace(intervals(methods, 1, 12), samples=9),
        )
        bands = [p for p in root_of(drawing).iter(f"{SVG}path") if p.get("fill") in VARIABLES]
        return min(float(path.get("opacity", "1")) for path in bands)

    assert opacity(5) == opacity(2) > opacity(8)


def test_markers_stand_along_curves_on_their_points() -> None:
    line = np.stack([np.geomspace(1, 400, 30), np.arange(30.0)], axis=1)
    marked = marked_points(line)
    assert (marked[:, None] == line).all(axis=2).any(axis=1).all()
    assert (marked[0] == line[0]).all() and (marked[-1] == line[-1]).all()
    assert 5 <= len(marked) <= 7 and (np.diff(marked[:, 0]) > 20).all()
    assert (marked_points(line, shift=0.5)[0] != line[0]).any()
    assert len(marked_points(line[:1])) == 1 and marked_points(line[:0]).shape == (0, 2)


def test_undefined_tasks_have_no_panel() -> None:
    curves = intervals(4, 3, 12)
    curves.mean[:, 1] = np.nan
    drawing = draw_curves(SUBJECT, "score", curves)
    assert len(curves_of(drawing, "bo")) == 2
    assert "defined on 2" in drawing.caption
    curves.mean[:] = np.nan
    with pytest.raises(ExperimentError, match="undefined on all tasks"):
        draw_curves(SUBJECT, "score", curves)


def test_many_tasks_methods_and_trials_stay_small_and_readable() -> None:
    methods = (*STYLES,)
    subject = Subject("x", "ordered()", methods, tuple(f"task {n}" for n in range(40)), 5)
    rng = np.random.default_rng(0)
    mean = np.minimum.accumulate(rng.gamma(1, 1, (len(methods), 40, 500)), axis=-1)
    curves = Intervals(mean, 0.8 * mean, 1.2 * mean, 5, 0.95)
    drawing = draw_curves(subject, "value", curves)
    assert len(curves_of(drawing, "bo")) == 28
    assert "28 tasks of 40" in drawing.caption
    assert len(inline_svg(drawing)) < 150_000
    assert drawing.data["trial"].nunique() <= 40
    assert {1, 500} <= set(drawing.data["trial"])
    assert_nothing_is_clipped(drawing)
    assert_no_texts_overlap(drawing)


def test_zero_regret_is_drawn_at_the_lower_end() -> None:
    mean = np.array([[[100.0, 10.0, 1.0, 0.0]]] * 4)
    nothing = np.full_like(mean, np.nan)
    subject = Subject("x", "ordered()", METHODS, ("a",), 1)
    drawing = draw_curves(subject, "regret", Intervals(mean, nothing, nothing, 1, 0.95))
    (line,) = curves_of(drawing, "bo")
    steps = np.diff(line[:, 1])
    assert steps[0] == pytest.approx(steps[1], abs=0.2)  # a decade each
    (zero,) = (text for text in texts_of(drawing) if text.string == "0")
    assert zero.bounds[1] < line[-1, 1] < zero.bounds[3]
    assert "zero" in drawing.caption


def test_rounding_does_not_change_the_kind_of_axis() -> None:
    mean = np.array([[[100.0, 10.0, 1.0, 0.0]]] * 4)
    subject = Subject("x", "ordered()", METHODS, ("a",), 1)
    exact = draw_curves(subject, "regret", Intervals(mean, mean, mean, 1, 0.95))
    mean = mean - 1e-14
    rounded = draw_curves(subject, "regret", Intervals(mean, mean, mean, 1, 0.95))
    assert rounded.svg == exact.svg
    scores = draw_curves(subject, "score", Intervals(mean, mean, mean, 1, 0.95))
    assert "Vertical axes" not in scores.caption


@pytest.mark.parametrize("value", [0.0, 5.0, -1e-9, 1e12])
def test_constant_curves_are_drawn(value: float) -> None:
    mean = np.full((4, 3, 12), value)
    drawing = draw_curves(SUBJECT, "regret", Intervals(mean, mean, mean, 3, 0.95))
    assert_nothing_is_clipped(drawing)
    assert_no_texts_overlap(drawing)


def test_a_single_trial_is_drawn() -> None:
    drawing = draw_curves(SUBJECT, "score", intervals(4, 3, 1))
    assert_nothing_is_clipped(drawing)
    assert set(drawing.data["trial"]) == {1}


# -- ranks and critical differences ------------------------------------------------------------


def test_each_benchmark_has_a_panel_of_ranks_with_its_own_trials() -> None:
    drawing = ranks(panels=3)
    assert len(curves_of(drawing, "mine")) == 3
    assert dict(drawing.data.groupby("panel")["trial"].max()) == {"b0": 12, "b1": 13, "b2": 14}
    assert "3 tasks" in drawing.caption
    assert "each seed ranked by itself" in drawing.caption
    assert "panels of fewer than 5 tasks have none" in drawing.caption


@given(
    count=st.integers(2, 15),
    spread=st.sampled_from([0.0, 1e-9, 1e-3, 0.1, 1.0]),
    seed=st.integers(0, 99),
)
@settings(max_examples=25, deadline=None)
def test_names_never_meet_however_close_ranks_are(count: int, spread: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = tuple(f"method-with-a-long-name-{number}" for number in range(count))
    middle = (count + 1) / 2 + spread * (count - 1) * (rng.random(count) - 0.5)
    drawing = draw_critical_difference(ranking(np.sort(middle), names), about="all")
    assert_nothing_is_clipped(drawing)
    assert_no_texts_overlap(drawing)


def test_bars_join_methods_that_cannot_be_told_apart() -> None:
    ranked = ranking(np.array([1.0, 2.0, 3.0, 4.0]), METHODS, groups=((0, 1), (1, 2), (3, 3)))
    drawing = draw_critical_difference(ranked, about="all")
    thick = [path for path in root_of(drawing).iter(f"{SVG}path") if path.get("fill") == INK]
    bars_drawn = lines_of(thick[-1])
    ends = [(line[:, 0].min() + 3, line[:, 0].max() - 3) for line in bars_drawn]
    (left, middle), (again, right) = ends
    assert middle - left == pytest.approx(right - again, abs=0.2)
    assert again == pytest.approx(middle - 0.0, abs=0.2)
    assert list(drawing.data["groups"]) == ["1", "1 2", "2", ""]
    assert list(drawing.data["mean_rank"]) == [1, 2, 3, 4]
    assert "Nemenyi" in drawing.caption and "critical difference 1.50" in str(drawing.svg)


# -- bars, wins, attainment --------------------------------------------------------------------


def test_bars_are_as_high_as_their_scores() -> None:
    drawing = bars()
    root = root_of(drawing)
    for method in METHODS:
        own = drawing.data[drawing.data["method"] == method]["score"].to_numpy()
        (path,) = (p for p in root.iter(f"{SVG}path") if p.findtext(f"{SVG}title") == method)
        heights = np.array([np.ptp(line[:, 1]) for line in lines_of(path)])
        np.testing.assert_allclose(heights / heights[0], own / own[0], atol=0.01)


def test_many_bars_go_on_in_another_row() -> None:
    drawing = bars(tasks=80)
    assert_no_texts_overlap(drawing)
    axes = [p for p in root_of(drawing).iter(f"{SVG}path") if p.get("opacity") == "0.55"]
    assert len(lines_of(axes[0])) == 2
    assert len(drawing.data) == 4 * 80


def test_counts_of_wins_are_those_given() -> None:
    drawing = EXAMPLES["wins"]()
    counted = wins()
    row = drawing.data[(drawing.data["method"] == "bo") & (drawing.data["opponent"] == "mine")]
    assert row["wins"].item() == counted.wins[1, 3]
    cells = [text.string for text in texts_of(drawing) if " / " in text.string]
    assert len(cells) == len(drawing.data) == 12
    expected = zip(*(drawing.data[name] for name in ("wins", "ties", "losses")), strict=True)
    assert cells == [" / ".join(map(str, counts)) for counts in expected]


def test_attainment_has_a_panel_a_method_and_reach_one_a_level() -> None:
    drawing = attainment()
    assert set(METHODS) <= {text.string for text in texts_of(drawing)}
    assert len(drawing.data) == 3 * 4 * 12
    assert len(curves_of(reach(), "bo")) == 2
    assert any(text.string == "regret ≤ 1e-5" for text in texts_of(reach()))


# -- landscapes --------------------------------------------------------------------------------


def test_points_are_those_of_one_run() -> None:
    drawing = landscape()
    frame = evaluations()
    expected = frame[(frame["seed"] == 1) & frame["task"].isin([0, 2])].dropna()
    assert len(drawing.data) == len(expected)
    assert sorted(drawing.data["loss"]) == sorted(expected["loss"])
    assert set(drawing.data["task"]) == {"a", "c <&> d"}
    edged = [p for p in root_of(drawing).iter(f"{SVG}path") if p.get("stroke") == ON_LIGHT]
    assert sum(len(lines_of(path)) for path in edged) == len(expected)
    runs = expected.groupby(["method", "task"])
    crosses = [p for p in root_of(drawing).iter(f"{SVG}path") if p.get("stroke") == ON_DARK]
    assert len(lines_of(crosses[0])) == runs.ngroups


def test_points_are_where_their_values_are_and_the_cross_is_at_the_best() -> None:
    frame = evaluations(seeds=1)
    frame["width"] = np.random.default_rng(1).random(len(frame))
    axes = (Dimension.of_column(name, frame[name]) for name in ("rate", "width"))
    subject = Subject("x", "ordered()", ("bo",), ("a", "b", "c"), 1)
    drawing = draw_landscapes(subject, frame, *axes, tasks=(1,), seed=0)
    every = list(root_of(drawing).iter(f"{SVG}path"))
    circles = (line for p in every if p.get("stroke") == ON_LIGHT for line in lines_of(p))
    points = np.array([line.mean(axis=0) for line in circles])  # in the order of trials
    own = drawing.data.sort_values("trial")
    for place, numbers in ((0, np.log(own["rate"])), (1, -own["width"])):
        assert np.corrcoef(points[:, place], numbers)[0, 1] > 0.9999
    (cross,) = lines_of(next(p for p in every if p.get("stroke") == ON_DARK))
    middle = (cross.min(axis=0) + cross.max(axis=0)) / 2
    np.testing.assert_allclose(middle, points[own["loss"].to_numpy().argmin()], atol=0.3)


def test_each_task_is_drawn_once_and_repeated_for_every_method() -> None:
    root = root_of(landscape())
    assert len(list(root.iter(f"{SVG}defs"))) == 2
    assert len(list(root.iter(f"{SVG}use"))) == 2 * len(METHODS)


def test_choices_are_named() -> None:
    strings = {text.string for text in texts_of(landscape("kernel", "rate"))}
    assert {"linear", "radial", "kernel", "rate", "0.01"} <= strings
    assert "kernel is categorical" in landscape("kernel", "rate").caption
    assert "categorical" not in landscape().caption


def test_a_task_without_evaluations_is_refused() -> None:
    frame = evaluations(tasks=1)
    axes = (Dimension.of_column(name, frame[name]) for name in ("rate", "depth"))
    with pytest.raises(ExperimentError, match="no evaluations of task 1"):
        draw_landscapes(SUBJECT, frame, *axes, tasks=(0, 1), seed=1)


# -- lines and texts ---------------------------------------------------------------------------


def _distance(point: np.ndarray, line: np.ndarray) -> float:
    """How far a point is from a line of several pieces."""
    starts, moves = line[:-1], np.diff(line, axis=0)
    lengths = np.maximum((moves**2).sum(axis=1), 1e-12)
    along = np.clip(((point - starts) * moves).sum(axis=1) / lengths, 0, 1)
    return float(np.linalg.norm(starts + along[:, None] * moves - point, axis=1).min())


@given(
    st.lists(
        st.tuples(st.sampled_from([10.0, 10.03, 11.0, 40.0]), st.floats(0, 90)),
        min_size=2,
        max_size=60,
    )
)
@example([*[(10.0, 0.0)] * 14, (10.0, 1.0), (10.0, 0.0)])
@settings(deadline=None)
def test_lines_lose_no_corner_that_can_be_seen(corners: list[tuple[float, float]]) -> None:
    """Also where they turn back."""
    scene = Scene(100, 100)
    scene.add(Paths((np.array(corners),), stroke=INK))
    root = ElementTree.fromstring(to_svg(scene, stem="x", title="x").decode())
    (line,) = lines_of(next(root.iter(f"{SVG}path")))
    if len(line) == 1:
        line = np.concatenate([line, line])
    assert max(_distance(np.array(corner), line) for corner in corners) < 0.35


def test_texts_are_escaped() -> None:
    text = 'a "quoted" <b> & c'
    subject = Subject(text, "ordered()", METHODS, ("a", "b", "c"), 3)
    drawing = draw_curves(subject, "score", intervals(4, 3, 12))
    assert text in (root_of(drawing).findtext(f"{SVG}title") or "")
    assert text in (ElementTree.fromstring(inline_svg(drawing)).get("aria-label") or "")
