"""The figures of an experiment, which reports show.

`FIGURES` lists them all. A new figure is a function that makes it and an entry in that list.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import altair as alt

from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup
from hpobench_ordered.analysis.curves import attainment_curves, curves_over_seconds
from hpobench_ordered.analysis.labels import label_protocol
from hpobench_ordered.analysis.leader_comparison import (
    leader_differences as compute_leader_differences,
)
from hpobench_ordered.analysis.leaderboard import ALL
from hpobench_ordered.analysis.scores import RANDOM_SEARCH
from hpobench_ordered.analysis.scoring import BenchmarkScores
from hpobench_ordered.reporting.charts.axes import title_of
from hpobench_ordered.reporting.charts.comparisons import heatmap, leader_differences
from hpobench_ordered.reporting.charts.curves import attainment, curves
from hpobench_ordered.reporting.charts.evaluations import (
    Configurations,
    choose_axes,
    evaluations,
    load_drawable,
    make_panel,
)
from hpobench_ordered.reporting.charts.landscapes import Panel, landscape
from hpobench_ordered.reporting.charts.theme import panel_names

if TYPE_CHECKING:
    import pandas as pd

MAX_CURVES = 5
"""Figures draw curves of at most this many methods; the interactive chart has all of them."""

MAX_ATTAINMENT_PANELS = 12
"""Of more benchmarks, only one of each family is drawn."""

ATTAINMENT_PANELS_IN_ROW = 3
ATTAINMENT_PANEL_SIZE = (325, 210)
"""Width and height of a panel of attainment, in pixels."""

MAX_BENCHMARKS_OF_LANDSCAPES = 2
"""Landscapes are drawn of at most this many benchmarks, each of another family."""

MAX_SEEDS_OF_LANDSCAPES = 3
"""Landscapes show evaluations of at most this many seeds."""


@dataclass(frozen=True)
class CaptionedChart:
    """A figure of an experiment.

    Attributes:
        name: Name of the figure, the same in every experiment, such as "heatmap".
        title: What it shows.
        caption: How to read it.
        chart: The chart, which has the title, too.
    """

    name: str
    title: str
    caption: str
    chart: alt.TopLevelMixin


@dataclass(frozen=True)
class FigureData:
    """What figures are made from: scores, leaderboard and runs under one protocol.

    Attributes:
        group: Scores of the benchmarks that count in means.
        board: The leaderboard, with all benchmarks.
        runs: A row per run, as `Overview.runs`.
        configurations: Reads the configurations of runs; None if they are not known.
        is_one_of_several: Whether titles must say which protocol it is.
    """

    group: BenchmarkGroup
    board: "pd.DataFrame"
    runs: "pd.DataFrame"
    configurations: Configurations | None
    is_one_of_several: bool = False

    @cached_property
    def ranked_methods(self) -> list[str]:
        """The methods by mean rank over all benchmarks, the lowest first."""
        overall = self.board[self.board["benchmark"] == ALL]  # its rows are in this order
        return [str(method) for method in overall["method"]]

    @cached_property
    def best_methods(self) -> list[str]:
        """The `MAX_CURVES` methods of lowest mean rank, and random search."""
        best = self.ranked_methods[:MAX_CURVES]
        if RANDOM_SEARCH in self.ranked_methods and RANDOM_SEARCH not in best:
            best.append(RANDOM_SEARCH)
        return best

    @cached_property
    def one_item_of_each_family(self) -> list[BenchmarkScores]:
        """Scores of the first benchmark of each family; one without a family is its own."""
        first_of_family: dict[str, BenchmarkScores] = {}
        for item in self.group.items:
            first_of_family.setdefault(item.family or item.benchmark, item)
        return list(first_of_family.values())

    def title(self, text: str) -> str:
        """Add the label of the protocol to a figure's title, if there are several protocols."""
        if not self.is_one_of_several:
            return text
        return f"{text}; {label_protocol(self.group.protocol)}"


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure.

    Attributes:
        name: Short name, unique among the kinds.
        heading: Heading above the figures of this kind.
        make: Makes the figures of one protocol; none if they cannot be drawn.
    """

    name: str
    heading: str
    make: Callable[[FigureData], Iterator[CaptionedChart]]


def make_heatmap(data: FigureData) -> Iterator[CaptionedChart]:
    """Make a table of the mean rank of every method on every benchmark."""
    if len(data.group.methods) < 2:
        return

    # Methods are in the order of their mean ranks over all benchmarks.
    is_of_benchmark = data.board["benchmark"] != ALL
    rows_by_method = data.board[is_of_benchmark].set_index("method")
    order = [method for method in data.ranked_methods if method in rows_by_method.index]
    rows = rows_by_method.loc[order].reset_index()

    caption = "After the last trial; 1 is best. Methods are in the order of the leaderboard."
    is_in_means = rows["benchmark"].isin([item.benchmark for item in data.group.items])
    if not is_in_means.all():
        rows["benchmark"] = rows["benchmark"].where(is_in_means, rows["benchmark"] + " *")
        caption += " * Left out of means over benchmarks."

    title = data.title("Mean rank on each benchmark")
    yield CaptionedChart("heatmap", title, caption, heatmap(rows, title=title))


def make_leader_differences(data: FigureData) -> Iterator[CaptionedChart]:
    """Make a chart of the differences of all methods from the one of lowest mean rank."""
    frame = compute_leader_differences(data.group)
    if not len(frame):
        return

    leader = frame["leader"].iloc[0]
    caption = (
        f"After the last trial; to the right of 0 is worse than {leader}. Filled points: "
        f"{leader} is better on these benchmarks, at 5 % for all comparisons together; the "
        "intervals are as wide as this test. Small dots: single families of benchmarks."
    )
    title = data.title(f"How far {leader} is ahead, over {data.group.scope}")
    yield CaptionedChart("differences", title, caption, leader_differences(frame, title=title))


def make_attainment(data: FigureData) -> Iterator[CaptionedChart]:
    """Make curves of the regret that half of the runs attain, one panel per benchmark.

    Of many benchmarks, one of each family is drawn; benchmarks without regrets have no panel.
    """
    items: Sequence[BenchmarkScores] = data.group.items
    is_part = len(items) > MAX_ATTAINMENT_PANELS
    if is_part:
        items = data.one_item_of_each_family
    frame = attainment_curves(items)
    frame = frame[frame["method"].isin(data.best_methods)]
    if not frame["level"].notna().any():
        return

    # All methods have the line of the fraction 0.5. Only the leader has the band between the other
    # fractions, as bands of several methods would hide each other, and the lines.
    leader = data.ranked_methods[0]
    is_drawn = (frame["fraction"] == 0.5) | (frame["method"] == leader)
    frame = frame.assign(level=frame["level"].where(is_drawn))

    caption = "A line: half of the runs are at least as good after so many trials. "
    caption += f"The band: from a quarter to three quarters of the runs of {leader}."
    if len(data.ranked_methods) > MAX_CURVES:
        caption += f" The {MAX_CURVES} methods of lowest mean rank, and random search."
    if is_part:
        caption += " On one benchmark of each family."

    title = data.title("Half of the runs are at least this good")
    frame = frame.assign(name=panel_names(frame))
    chart = attainment(
        frame,
        facet="name",
        columns=ATTAINMENT_PANELS_IN_ROW,
        methods=data.ranked_methods,
        size=ATTAINMENT_PANEL_SIZE,
        title=title,
    )
    yield CaptionedChart("attainment", title, caption, chart)


def make_seconds(data: FigureData) -> Iterator[CaptionedChart]:
    """Make curves of rank and regret over simulated seconds, one panel per benchmark.

    There are none unless the seconds of evaluations are known on all benchmarks. Of many
    benchmarks, one of each family is drawn.
    """
    items: Sequence[BenchmarkScores] = data.group.items
    if any(item.costs is None for item in items):
        return
    is_part = len(items) > MAX_ATTAINMENT_PANELS
    if is_part:
        items = data.one_item_of_each_family
    frame = curves_over_seconds(items)
    frame = frame[frame["method"].isin(data.best_methods)]
    frame = frame.assign(name=panel_names(frame))

    caption = (
        "Seconds that the evaluations on a task take, one after another. Before its first one has "
        "ended, a run counts as the worst; after its last one it stays at its best value."
    )
    if is_part:
        caption += " On one benchmark of each family."
    for measure in dict.fromkeys(frame["measure"]):
        title = data.title(f"{title_of(measure).capitalize()} over simulated seconds")
        chart = curves(
            frame,
            measure=measure,
            over="seconds",
            facet="name",
            columns=ATTAINMENT_PANELS_IN_ROW,
            methods=data.ranked_methods,
            ends=False,
            size=ATTAINMENT_PANEL_SIZE,
            title=title,
        )
        yield CaptionedChart(f"{measure}-over-seconds", title, caption, chart)


def make_landscapes(data: FigureData) -> Iterator[CaptionedChart]:
    """Make landscapes of the objective with the evaluations of the method of lowest mean rank."""
    methods = [method for method in data.best_methods if method in data.group.methods]
    if data.configurations is None or not methods:
        return

    panels: list[Panel] = []
    n_drawn = 0
    for item in data.one_item_of_each_family:
        panels_of_benchmark = _landscape_panels(item, data.runs, data.configurations, methods)
        panels += panels_of_benchmark
        if panels_of_benchmark:
            n_drawn += 1
        if n_drawn == MAX_BENCHMARKS_OF_LANDSCAPES:
            break
    if not panels:
        return

    caption = (
        "The objective by the two hyperparameters that explain most of the losses, all others "
        "as in the best configuration that any run evaluated, the cross; bright is good. "
        f"Points are what {methods[0]} evaluated in one run, darker with the trial."
    )
    title = data.title(f"Where {methods[0]} looked")
    yield CaptionedChart("landscapes", title, caption, landscape([panels], title=title))


def _landscape_panels(
    item: BenchmarkScores,
    runs: "pd.DataFrame",
    configurations: Configurations,
    methods: Sequence[str],
) -> list[Panel]:
    """Make a panel of the first and of the last task of a benchmark.

    A panel shows the objective around the best evaluation of all methods, and as points the
    evaluations of the first method with its first seed. There are no panels if the benchmark cannot
    be evaluated here, or has no two hyperparameters to draw.
    """
    benchmark = load_drawable(item)
    if benchmark is None:
        return []

    seeds_of_first = item.runs[methods[0]].seeds
    seeds = seeds_of_first[:MAX_SEEDS_OF_LANDSCAPES]  # reading more takes long
    tried = evaluations(item, runs, configurations, methods=methods, seeds=seeds)
    shown_tasks = sorted({item.tasks[0], item.tasks[-1]})  # there may be a single task
    tried_on_task = {number: tried[tried["task"] == number] for number in shown_tasks}
    axes = choose_axes(benchmark, list(tried_on_task.values()))
    if axes is None:
        return []

    panels = []
    for number, tried_here in tried_on_task.items():
        task = benchmark.tasks[number]
        title = f"{benchmark.name}, task {task.name}"
        panels.append(make_panel(title, task, tried_here, axes, methods[0], seeds[0]))
    return panels


FIGURES = (
    FigureKind("differences", "Differences from the leader", make_leader_differences),
    FigureKind("heatmap", "Methods by benchmark", make_heatmap),
    FigureKind("attainment", "What runs attain", make_attainment),
    FigureKind("seconds", "Over simulated seconds", make_seconds),
    FigureKind("landscapes", "Landscapes", make_landscapes),
)
"""Every kind of figure, in the order in which reports show them."""
