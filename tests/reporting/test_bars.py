import numpy as np
from matplotlib.figure import Figure

from hpobench_ordered.analysis import Scores
from hpobench_ordered.reporting.bars import draw_bars
from hpobench_ordered.reporting.style import legend_below, styles

LOOKS = styles(["bo", "cts", "mine"])


def arrows(scores: np.ndarray, *, top: float) -> dict[str, int]:
    """Number of arrows by colour; one method, two seeds, any number of tasks."""
    axes = Figure().add_subplot()
    values = np.array(scores).T[None, :, :, None]
    tasks = range(values.shape[2])
    draw_bars(axes, Scores(("bo",), values), looks=LOOKS, trial=1, tasks=tasks, top=top)
    markers = [line for line in axes.lines if line.get_marker() == "^"]
    return {str(line.get_color()): len(line.get_xdata()) for line in markers}


def test_arrows_say_what_is_above_the_plotted_range() -> None:
    inside, error_above, mean_above = (40.0, 42.0), (60.0, 120.0), (130.0, 132.0)
    found = arrows(np.array([inside, inside, error_above, mean_above]), top=100)
    assert found == {"black": 1, "darkgrey": 1}


def test_a_mean_at_the_top_is_not_above() -> None:
    found = arrows(np.array([(100 + 1e-12, 100.0), (5.0, 5.0)]), top=100)
    assert found == {"black": 0, "darkgrey": 0}


def test_undefined_tasks_are_named() -> None:
    axes = Figure().add_subplot()
    values = np.array([[[[1.0], [np.nan]], [[2.0], [np.nan]]]])
    draw_bars(axes, Scores(("bo",), values), looks=LOOKS, trial=1, tasks=range(2))
    assert [text.get_text() for text in axes.texts] == ["undefined"]


def test_the_legend_names_every_method_once_in_drawing_order() -> None:
    figure = Figure(layout="constrained")
    values = np.ones((2, 2, 1, 1))
    for axes, methods in zip(figure.subplots(2), (("mine", "cts"), ("bo", "cts")), strict=True):
        draw_bars(axes, Scores(methods, values), looks=LOOKS, trial=1, tasks=[0])
    legend_below(figure)
    assert [text.get_text() for text in figure.legends[0].texts] == ["bo", "cts", "mine"]
