"""`Results.plot`: charts of an experiment, by the names of what they show."""

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import altair as alt

from hpobench_ordered import plotting
from hpobench_ordered.analysis.curves import attained, curves
from hpobench_ordered.analysis.landscape import colour_ends, lowest_in_cells
from hpobench_ordered.analysis.leaderboard import leaderboard
from hpobench_ordered.analysis.scoring import BenchmarkScores, by_protocol
from hpobench_ordered.analysis.together import Together, differences_of
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.experiment.overview import State
from hpobench_ordered.experiment.scored import scored
from hpobench_ordered.plotting.landscapes import Dimension, Panel, cells
from hpobench_ordered.plotting.theme import drawing_order

if TYPE_CHECKING:
    import pandas as pd

    from hpobench_ordered.experiment.api import Results

Size = tuple[float, float]

CELLS, COLUMNS = 24, 4
"""Cells of a landscape along an axis of numbers, and its panels in a row."""

NO_HYPERPARAMETERS = frozenset({"key", "task", "trial", "value", "loss", "method", "seed"})


class Plots:
    """Charts of an experiment; each method returns one, which a notebook shows.

    Runs of several protocols are drawn of the protocol with the most benchmarks. Altair's methods
    restyle a chart; the size of panels is an argument, as a chart of several panels has no width.

    Args:
        results: The experiment.

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

    def __init__(self, results: "Results") -> None:
        self._results = results

    def curves(
        self, measure: str = "score", *, benchmark: str | None = None, size: Size | None = None
    ) -> alt.TopLevelMixin:
        """A measure over trials with its 95 % interval, one panel a benchmark.

        Args:
            measure: "score", "regret", "rank" or "value".
            benchmark: Draw the tasks of this benchmark, one panel each; "all": only the mean over
                all benchmarks; default: that, and all benchmarks.
            size: Width and height of a panel, in pixels.

        Raises:
            UnknownNameError: No such measure or benchmark.
            ExperimentError: The measure is not defined.
        """
        frame = self._curves
        if benchmark in (None, "all"):
            chosen = frame if benchmark is None else frame[frame["benchmark"] == "all"]
            return plotting.curves(chosen, measure=measure, size=size)
        name = self._item(benchmark).benchmark
        chosen = frame[(frame["benchmark"] == name) & (frame["task"] != "")]
        title = f"{measure} over trials: {name}"
        return plotting.curves(chosen, measure=measure, facet="task", size=size, title=title)

    def ranks(self, *, size: Size | None = None) -> alt.TopLevelMixin:
        """Mean ranks over trials, one panel a benchmark; 1 is best."""
        return self.curves("rank", size=size)

    def critical_differences(self, *, trial: int | None = None) -> alt.TopLevelMixin:
        """Mean ranks over benchmarks, and which methods cannot be told apart.

        Args:
            trial: The trial, counted from 1; default: the last.

        Raises:
            ExperimentError: There are fewer than two methods or benchmarks.
        """
        ranking = differences_of(Together.of(self._scores), trial=trial)
        if ranking is None:
            raise ExperimentError("critical differences need two methods on a benchmark")
        return plotting.critical_differences(ranking)

    def heatmap(self, measure: str = "rank", *, trial: int | None = None) -> alt.TopLevelMixin:
        """A measure of every method on every benchmark.

        Args:
            measure: "rank", "regret" or "score".
            trial: The trial, counted from 1; default: the last.

        Raises:
            UnknownNameError: No such measure.
            ExperimentError: No such trial.
        """
        frame = leaderboard(self._scores, trial=trial)
        surrogates = frame.groupby("benchmark", observed=True)["surrogate"].transform("nunique")
        names = frame["benchmark"].astype(str)
        labels = names.where(surrogates < 2, names + " (" + frame["surrogate"].astype(str) + ")")
        return plotting.heatmap(frame.assign(benchmark=labels), measure=measure)

    def attainment(
        self, benchmark: str | None = None, *, size: Size | None = None
    ) -> alt.TopLevelMixin:
        """The normalised regret that half of the runs attain, with quartiles; one panel a method.

        Args:
            benchmark: The benchmark; default: the only one.
            size: Width and height of a panel, in pixels.

        Raises:
            UnknownNameError: No such benchmark.
            ExperimentError: There are several to choose from, or no best values are known.
        """
        item = self._item(benchmark)
        frame = attained([item])
        if not len(frame):
            raise ExperimentError(f"no best values of {item.benchmark} are known: no regrets")
        wide = frame.pivot(index=["method", "trial"], columns="fraction", values="level")
        wide = wide.set_axis(["low", "mean", "high"], axis=1).reset_index()
        wide = wide.assign(measure="regret", panel=wide["method"].astype(str))
        title = f"normalised regret that runs attain: {item.benchmark}"
        return plotting.curves(wide, measure="regret", facet="panel", size=size, title=title)

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
        """Where each method looked in one run, on the lowest losses that all runs met.

        Args:
            benchmark: The benchmark; default: the only one.
            task: Name of the task; default: the last.
            x: Hyperparameter of the horizontal axis; default: the first that varies.
            y: That of the vertical axis; default: the second that varies.
            seed: The run; default: the first.
            size: Width and height of a panel, in pixels.

        Raises:
            UnknownNameError: No such benchmark, task or hyperparameter.
            ExperimentError: Fewer than two hyperparameters vary, or there are no such runs.
        """
        item = self._item(benchmark)
        names = list(item.task_names)
        task = names[-1] if task is None else str(task)
        if task not in names:
            raise UnknownNameError(f"task of {item.benchmark}", task, names)
        tried = self._tried(item, item.tasks[names.index(task)])
        across, up = _dimensions(tried, x, y)
        placed = tried.assign(x=across.coded(tried[across.name]), y=up.coded(tried[up.name]))
        placed = placed.dropna(subset=["x", "y", "loss"])
        seed = item.seed_numbers[0] if seed is None else seed
        shown = placed[placed["seed"] == seed]
        if not len(shown):
            raise ExperimentError(f"there are no evaluations of {item.benchmark} with seed {seed}")
        lowest = lowest_in_cells(
            across.unit(placed["x"].to_numpy()),
            up.unit(placed["y"].to_numpy()),
            placed["loss"].to_numpy(),
            shape=(len(up.choices) or CELLS, len(across.choices) or CELLS),
        )
        values, ends = cells(lowest, across, up), colour_ends(lowest)
        panels = []
        for method in drawing_order(shown["method"]):
            points = shown.loc[shown["method"] == method, ["x", "y", "trial", "loss"]]
            best = points.nsmallest(1, "loss")
            panel = Panel(
                method, across, up, values=values, domain=ends, crosses=best, points=points
            )
            panels.append(panel)
        rows = [panels[n : n + COLUMNS] for n in range(0, len(panels), COLUMNS)]
        title = f"{item.benchmark}, task {task}, seed {seed}"
        return plotting.landscape(rows, title=title, size=size)

    @cached_property
    def _scores(self) -> list[BenchmarkScores]:
        every, unscored = scored(self._results.store, self._results.overview())
        if not every:
            raise ExperimentError(" ".join(unscored) or "no run is finished")
        return next(iter(by_protocol(every).values()))

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
            if benchmark in (None, name, name.partition("@")[0]):
                return item
        raise UnknownNameError("benchmark of these results", str(benchmark), list(items))

    def _tried(self, item: BenchmarkScores, task: int) -> "pd.DataFrame":
        """What was evaluated on a task: method, seed, trial, loss and the hyperparameters."""
        runs = self._results.overview().runs
        chosen = runs[
            (runs["state"] == State.DONE.value)
            & (runs["benchmark"] == item.benchmark)
            & (runs["surrogate"] == item.surrogate)
            & (runs["protocol"] == item.protocol)
            & runs["method"].isin(item.methods)
        ]
        tried = self._results.store.configurations(chosen["key"])
        tried = tried[tried["task"] == task].drop(columns=["method", "seed"], errors="ignore")
        return tried.merge(chosen[["key", "method", "seed"]], on="key")


def _dimensions(tried: "pd.DataFrame", *requested: str | None) -> Iterable[Dimension]:
    """The axes: the hyperparameters requested, and the first others that vary."""
    names = [name for name in tried.columns if name not in NO_HYPERPARAMETERS]
    for name in requested:
        if name is not None and name not in names:
            raise UnknownNameError("hyperparameter", name, names)
    others = (n for n in names if n not in requested and tried[n].nunique() > 1)
    chosen = [name or next(others, None) for name in requested]
    if None in chosen:
        raise ExperimentError("a landscape needs two hyperparameters that vary")
    return [Dimension.of_column(str(name), tried[name]) for name in chosen]
