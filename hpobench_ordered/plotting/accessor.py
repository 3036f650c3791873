"""`Results.plot`: charts of an experiment."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import altair as alt

from hpobench_ordered import plotting
from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup, rank_and_compare
from hpobench_ordered.analysis.curves import attainment_curves, curves
from hpobench_ordered.analysis.leaderboard import leaderboard
from hpobench_ordered.analysis.scoring import BenchmarkScores, group_by_protocol
from hpobench_ordered.core.identity import BenchmarkIdentity
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.plotting.evaluations import (
    Configurations,
    drawable,
    evaluated,
    evaluations,
    telling_axes,
)

if TYPE_CHECKING:
    import pandas as pd

Size = tuple[float, float]

COLUMNS = 4
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
        self._scored, self._runs, self._configurations = scored, runs, configurations

    def curves(
        self, measure: str = "score", *, benchmark: str | None = None, size: Size | None = None
    ) -> alt.TopLevelMixin:
        """A measure over trials with its 95 % interval, one panel per benchmark.

        Args:
            measure: "score", "regret", "rank" or "value".
            benchmark: Draw the tasks of this benchmark, one panel each; "all": only the mean over
                all benchmarks; default: that, and all benchmarks.
            size: Size of a panel.
        """
        frame = self._curves
        if benchmark in (None, "all"):
            chosen = frame if benchmark is None else frame[frame["benchmark"] == "all"]
            return plotting.curves(chosen, measure=measure, methods=self._ranked, size=size)
        name = self._item(benchmark).benchmark
        chosen = frame[(frame["benchmark"] == name) & (frame["task"] != "")]
        title = f"{measure} over trials: {name}"
        return plotting.curves(
            chosen, measure=measure, facet="task", methods=self._ranked, size=size, title=title
        )

    def ranks(self, *, size: Size | None = None) -> alt.TopLevelMixin:
        """Mean ranks over trials, one panel per benchmark; 1 is best."""
        return self.curves("rank", size=size)

    def critical_differences(self, *, trial: int | None = None) -> alt.TopLevelMixin:
        """Mean ranks over benchmarks, and which methods cannot be told apart."""
        together = BenchmarkGroup.for_means(self._scores)
        ranking = rank_and_compare(together, trial=trial)
        if ranking is None:
            raise ExperimentError("critical differences need two methods on a benchmark")
        title = f"mean ranks over {together.scope}"
        return plotting.critical_differences(ranking, methods=self._ranked, title=title)

    def heatmap(self, measure: str = "rank", *, trial: int | None = None) -> alt.TopLevelMixin:
        """The "rank", "regret" or "score" of every method on every benchmark."""
        return plotting.heatmap(leaderboard(self._scores, trial=trial), measure=measure)

    def attainment(
        self, benchmark: str | None = None, *, size: Size | None = None
    ) -> alt.TopLevelMixin:
        """The normalised regret that half of the runs attain, with quartiles; one panel per method.

        Needs the best values of the benchmark.
        """
        item = self._item(benchmark)
        frame = attainment_curves([item])
        if not len(frame):
            raise ExperimentError(f"no best values of {item.benchmark} are known: no regrets")
        title = f"normalised regret that runs attain: {item.benchmark}"
        return plotting.attainment(frame, methods=self._ranked, size=size, title=title)

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
        """Where each method looked in one run, on the objective around the best of all runs.

        Args:
            benchmark: The benchmark.
            task: Name of the task; default: the last.
            x: Hyperparameter of the horizontal axis; default: one that explains much of the losses.
            y: That of the vertical axis; default: the same.
            seed: The run; default: the first.
            size: Size of a panel.
        """
        item = self._item(benchmark)
        task = item.task_names[-1] if task is None else str(task)
        if task not in item.task_names:
            raise UnknownNameError(f"task of {item.benchmark}", task, item.task_names)
        seed = item.seed_numbers[0] if seed is None else seed
        tried = evaluations(
            item, self._runs(), self._configurations, methods=item.methods, seeds=item.seed_numbers
        )
        place = item.tasks[item.task_names.index(task)]
        tried = tried[tried["task"] == place]
        methods = tried.loc[tried["seed"] == seed, "method"].unique()
        if not len(methods):
            raise ExperimentError(f"there are no evaluations of {item.benchmark} with seed {seed}")
        bench = drawable(item)
        if bench is None:
            raise ExperimentError(f"{item.label} cannot be evaluated here, or only slowly")
        axes = telling_axes(bench, [tried], x, y)
        if axes is None:
            raise ExperimentError("a landscape needs two hyperparameters that are active together")
        at = bench.tasks[place]
        panels = [evaluated(method, at, tried, axes, method, seed) for method in methods]
        rows = [panels[n : n + COLUMNS] for n in range(0, len(panels), COLUMNS)]
        title = f"{item.benchmark}, task {task}, seed {seed}"
        return plotting.landscape(rows, title=title, size=size)

    @cached_property
    def _scores(self) -> list[BenchmarkScores]:
        every, unscored = self._scored()
        if not every:
            raise ExperimentError(" ".join(unscored) or "no run is finished")
        return next(iter(group_by_protocol(every).values()))

    @cached_property
    def _ranked(self) -> list[str]:
        """Methods by mean rank, which have the same colours in all charts."""
        board = leaderboard(self._scores)
        return list(dict.fromkeys(map(str, board["method"])))

    @cached_property
    def _curves(self) -> "pd.DataFrame":
        """Curves of each benchmark on its first surrogate."""
        frame = curves(self._scores)
        first = {item.benchmark: item.surrogate for item in reversed(self._scores)}
        is_first = frame["surrogate"].astype(str) == frame["benchmark"].astype(str).map(first)
        return frame[is_first | (frame["benchmark"] == "all")]

    def _item(self, benchmark: str | None) -> BenchmarkScores:
        """Scores of a benchmark, named with or without its version, on its first surrogate."""
        items = {item.benchmark: item for item in reversed(self._scores)}
        if benchmark is None and len(items) > 1:
            raise ExperimentError(f"name one of the benchmarks: {', '.join(reversed(items))}")
        for name, item in items.items():
            if benchmark in (None, name, BenchmarkIdentity.parse(name).name):
                return item
        raise UnknownNameError("benchmark of these results", str(benchmark), list(items))
