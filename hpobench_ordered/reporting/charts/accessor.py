"""`Results.plot`: charts of an experiment."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import altair as alt

from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup, rank_and_compare
from hpobench_ordered.analysis.curves import attainment_curves, curves
from hpobench_ordered.analysis.leader_comparison import leader_differences
from hpobench_ordered.analysis.leaderboard import ALL, leaderboard
from hpobench_ordered.analysis.scoring import BenchmarkScores, group_by_protocol
from hpobench_ordered.analysis.verdict import MIN_FAMILIES_OF_TEST
from hpobench_ordered.data.identity import BenchmarkIdentity
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.reporting import charts
from hpobench_ordered.reporting.charts.evaluations import (
    Configurations,
    choose_axes,
    evaluations,
    load_drawable,
    make_panel,
)
from hpobench_ordered.reporting.charts.figures import FIGURES, CaptionedChart, FigureData

if TYPE_CHECKING:
    import pandas as pd

Size = tuple[float, float]

PANELS_IN_ROW = 4
"""Panels of a landscape in a row."""


class Plots:
    """Charts of an experiment; each method returns one, which a notebook shows.

    If there are several protocols, runs of the one with the most benchmarks are drawn. Altair's
    methods restyle a chart; `size` is the width and height of a panel in pixels. A `trial` is
    counted from 1, by default it is the last; `benchmark` may be left out if there is only one.
    Wrong names raise `UnknownNameError`, results that cannot be drawn `ExperimentError`.

    Args:
        scored: Gives scores by benchmark, and why others have none.
        runs: Gives a frame of one row per run.
        configurations: Reads the configurations of runs by their keys.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> result = hbo.run(
        ...     benchmarks=["forrester"],
        ...     methods=["random-search", "bo"],
        ...     seeds=range(2),
        ...     protocol=hbo.Ordered(trials=3, tasks=2),
        ... )
        >>> chart = result.plot.curves("regret", size=(300, 200)).properties(title="my title")
        >>> chart.to_dict()["description"]
        'Curves of the normalised regret of random-search, bo over 3 trials on all, forrester@1.'
    """

    def __init__(
        self,
        scored: Callable[[], tuple[list[BenchmarkScores], list[str]]],
        runs: "Callable[[], pd.DataFrame]",
        configurations: Configurations,
    ) -> None:
        self._load_scores = scored
        self._load_runs = runs
        self._read_configurations = configurations

    def figures(self) -> list[CaptionedChart]:
        """All figures of a report, with their captions: see `charts.figures.FIGURES`."""
        data = FigureData(
            group=self._group,
            board=self._board,
            runs=self._load_runs(),
            configurations=self._read_configurations,
        )
        charts: list[CaptionedChart] = []
        for kind in FIGURES:
            charts += kind.make(data)
        return charts

    def curves(
        self, measure: str = "score", *, benchmark: str | None = None, size: Size | None = None
    ) -> alt.TopLevelMixin:
        """A measure over trials with its 95 % interval, one panel per benchmark.

        Args:
            measure: "score", "regret", "rank" or "value".
            benchmark: A benchmark, whose tasks are drawn, one panel each; "all" for the mean over
                all benchmarks alone; default: that mean and the mean of every benchmark.
            size: Size of a panel.
        """
        frame = self._curves
        methods = self._ranked_methods
        if benchmark is None:
            return charts.curves(frame, measure=measure, methods=methods, size=size)
        if benchmark == ALL:
            overall = frame[frame["benchmark"] == ALL]
            return charts.curves(overall, measure=measure, methods=methods, size=size)

        name = self._find_scores(benchmark).benchmark  # with its version
        of_tasks = frame[(frame["benchmark"] == name) & (frame["task"] != "")]
        title = f"{measure} over trials: {name}"
        return charts.curves(
            of_tasks, measure=measure, facet="task", methods=methods, size=size, title=title
        )

    def ranks(self, *, size: Size | None = None) -> alt.TopLevelMixin:
        """Mean ranks over trials, one panel per benchmark; 1 is best."""
        return self.curves("rank", size=size)

    def leader_differences(self, *, trial: int | None = None) -> alt.TopLevelMixin:
        """How far the method of lowest mean rank is ahead of every other, with intervals."""
        frame = leader_differences(self._group, trial=trial)
        if not len(frame):
            raise ExperimentError("differences need two methods, and seeds or tasks that differ")
        title = f"differences from the leader over {self._group.scope}"
        return charts.leader_differences(frame, title=title)

    def critical_differences(self, *, trial: int | None = None) -> alt.TopLevelMixin:
        """Mean ranks over benchmarks, and which methods cannot be told apart.

        Families of benchmarks are the samples.

        Raises:
            ExperimentError: There are fewer than eight families or two methods, or no benchmark
                with best values.
        """
        n_families = len(self._group.families)
        if n_families < MIN_FAMILIES_OF_TEST:
            raise ExperimentError(
                f"critical differences need {MIN_FAMILIES_OF_TEST} families of benchmarks, but "
                f"there are {n_families}: see `leader_differences`"
            )
        ranking = rank_and_compare(self._group, trial=trial)
        if ranking is None:
            raise ExperimentError("critical differences need two methods on a benchmark")
        title = f"mean ranks over {self._group.scope}"
        return charts.critical_differences(ranking, methods=self._ranked_methods, title=title)

    def heatmap(self, measure: str = "rank", *, trial: int | None = None) -> alt.TopLevelMixin:
        """The "rank", "regret" or "score" of every method on every benchmark."""
        return charts.heatmap(leaderboard(self._scores, trial=trial), measure=measure)

    def attainment(
        self, benchmark: str | None = None, *, size: Size | None = None
    ) -> alt.TopLevelMixin:
        """The normalised regret that half of the runs attain, with quartiles; one panel per method.

        Raises:
            ExperimentError: No best values of the benchmark are known.
        """
        item = self._find_scores(benchmark)
        frame = attainment_curves([item])
        if not len(frame):
            raise ExperimentError(f"no best values of {item.benchmark} are known: no regrets")
        title = f"normalised regret that runs attain: {item.benchmark}"
        return charts.attainment(frame, methods=self._ranked_methods, size=size, title=title)

    def landscape(
        self,
        benchmark: str | None = None,
        task: str | None = None,
        *,
        x: str | None = None,
        y: str | None = None,
        seed: int | None = None,
        size: Size = (170, 140),
    ) -> alt.TopLevelMixin:
        """Where each method looked in one run, one panel per method.

        Its evaluations are points on the objective over two hyperparameters; all others are as in
        the best configuration that any run evaluated.

        Args:
            benchmark: The benchmark.
            task: Name of the task; default: the last.
            x: Hyperparameter of the horizontal axis; default: one that explains much of the losses.
            y: That of the vertical axis; default: the same.
            seed: The run; default: the first.
            size: Size of a panel.
        """
        item = self._find_scores(benchmark)
        task_name = item.task_names[-1] if task is None else str(task)
        if task_name not in item.task_names:
            raise UnknownNameError(f"task of {item.benchmark}", task_name, item.task_names)
        task_number = item.tasks[item.task_names.index(task_name)]
        if seed is None:
            seed = item.seed_numbers[0]

        # Of all runs: the panels are around the best of their evaluations.
        tried = evaluations(
            item,
            self._load_runs(),
            self._read_configurations,
            methods=item.methods,
            seeds=item.seed_numbers,
        )
        tried = tried[tried["task"] == task_number]
        methods = tried.loc[tried["seed"] == seed, "method"].unique()
        if not len(methods):
            raise ExperimentError(f"there are no evaluations of {item.benchmark} with seed {seed}")

        bench = load_drawable(item)
        if bench is None:
            raise ExperimentError(f"{item.label} cannot be evaluated here, or only slowly")
        axes = choose_axes(bench, [tried], x, y)
        if axes is None:
            raise ExperimentError(
                "a landscape needs two hyperparameters that are active together, and an evaluation "
                "on the task that has not failed"
            )

        panels = [
            make_panel(method, bench.tasks[task_number], tried, axes, method, seed)
            for method in methods
        ]
        rows = []
        for first in range(0, len(panels), PANELS_IN_ROW):
            rows.append(panels[first : first + PANELS_IN_ROW])
        title = f"{item.benchmark}, task {task_name}, seed {seed}"
        return charts.landscape(rows, title=title, size=size)

    @cached_property
    def _scores(self) -> list[BenchmarkScores]:
        """Scores under the protocol with the most benchmarks."""
        all_scores, reasons = self._load_scores()
        if not all_scores:
            raise ExperimentError(" ".join(reasons) or "no run is finished")
        scores_of_protocols = list(group_by_protocol(all_scores).values())
        return scores_of_protocols[0]  # the protocol with the most benchmarks is first

    @cached_property
    def _group(self) -> BenchmarkGroup:
        """Scores of the benchmarks that count in means."""
        return BenchmarkGroup.for_means(self._scores)

    @cached_property
    def _board(self) -> "pd.DataFrame":
        """The leaderboard after the last trial."""
        return leaderboard(self._scores)

    @cached_property
    def _ranked_methods(self) -> list[str]:
        """All methods by mean rank, the order that decides their colours in every chart."""
        # The rows of all benchmarks together come first, sorted by mean rank.
        methods = map(str, self._board["method"])
        return list(dict.fromkeys(methods))

    @cached_property
    def _first_surrogates(self) -> dict[str, BenchmarkScores]:
        """Scores of each benchmark on its first surrogate, by the benchmark's name."""
        first_of_benchmark: dict[str, BenchmarkScores] = {}
        for item in self._scores:
            first_of_benchmark.setdefault(item.benchmark, item)
        return first_of_benchmark

    @cached_property
    def _curves(self) -> "pd.DataFrame":
        """Curves of each benchmark on its first surrogate, and of all benchmarks together."""
        frame = curves(self._scores)
        surrogates = {name: item.surrogate for name, item in self._first_surrogates.items()}
        first_surrogate = frame["benchmark"].astype(str).map(surrogates)
        is_on_first_surrogate = frame["surrogate"].astype(str) == first_surrogate
        is_overall = frame["benchmark"] == ALL  # which has no surrogate
        return frame[is_on_first_surrogate | is_overall]

    def _find_scores(self, benchmark: str | None) -> BenchmarkScores:
        """Find the scores of a benchmark on its first surrogate.

        Args:
            benchmark: Its name with or without its version; None if it is the only one.

        Raises:
            UnknownNameError: There is no such benchmark.
            ExperimentError: It is None, but there are several.
        """
        items = self._first_surrogates
        if benchmark is None and len(items) > 1:
            raise ExperimentError(f"name one of the benchmarks: {', '.join(items)}")
        for name, item in items.items():
            name_without_version = BenchmarkIdentity.parse(name).name
            if benchmark in (None, name, name_without_version):
                return item
        raise UnknownNameError("benchmark of these results", str(benchmark), list(items))
