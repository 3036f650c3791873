"""`Results.plot`: charts of an experiment, by the names of what they show."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import altair as alt

from hpobench_ordered import plotting
from hpobench_ordered.analysis.curves import attained, curves
from hpobench_ordered.analysis.landscape import colour_ends, lowest_in_cells
from hpobench_ordered.analysis.leaderboard import leaderboard
from hpobench_ordered.analysis.scoring import BenchmarkScores, by_protocol
from hpobench_ordered.analysis.together import Together, differences_of, wins_of
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.experiment.overview import State
from hpobench_ordered.experiment.scored import scored
from hpobench_ordered.plotting.landscapes import Dimension, Panel, cells
from hpobench_ordered.plotting.theme import drawing_order

if TYPE_CHECKING:
    import pandas as pd

    from hpobench_ordered.experiment.api import Results

CELLS = 24
"""Cells of a landscape along an axis of numbers."""

COLUMNS = 4
"""Panels of a landscape in a row."""

IDENTITY = ("key", "task", "trial", "value", "loss")
"""Columns of configurations that are no hyperparameters."""


class Plots:
    """Charts of an experiment; each method returns one, which a notebook shows.

    Runs of several protocols are drawn of the protocol with the most benchmarks.

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
        >>> chart = result.plot.curves("regret")
        >>> wider = chart.properties(title="my title")  # any of Altair's methods
        >>> chart.to_dict()["description"]
        'Curves of the normalised regret of random-search, bo over 3 trials on all, forrester@1.'
    """

    def __init__(self, results: "Results") -> None:
        self._results = results

    def curves(self, measure: str = "score", *, benchmark: str | None = None) -> alt.TopLevelMixin:
        """A measure over trials with its 95 % interval, one panel a benchmark.

        Args:
            measure: "score", "regret", "rank" or "value".
            benchmark: Draw the tasks of this benchmark, one panel each; default: all benchmarks.

        Raises:
            UnknownNameError: No such measure or benchmark.
            ExperimentError: The measure is not defined.
        """
        frame = self._curves
        if benchmark is None:
            return plotting.curves(frame, measure=measure)
        name = self._benchmark(benchmark)
        chosen = frame[(frame["benchmark"] == name) & (frame["task"] != "")]
        title = f"{measure} over trials: {name}"
        return plotting.curves(chosen, measure=measure, facet="task", title=title)

    def ranks(self) -> alt.TopLevelMixin:
        """Mean ranks over trials, one panel a benchmark; 1 is best."""
        return plotting.ranks(self._curves)

    def critical_differences(self, *, trial: int | None = None) -> alt.TopLevelMixin:
        """Mean ranks over benchmarks, and which methods cannot be told apart.

        Args:
            trial: The trial, counted from 1; default: the last.

        Raises:
            ExperimentError: There are fewer than two methods or benchmarks.
        """
        ranking = differences_of(self._together, trial=trial)
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

    def wins(self, *, trial: int | None = None) -> alt.TopLevelMixin:
        """How often one method is better than another, run by run.

        Args:
            trial: The trial, counted from 1; default: the last.
        """
        return plotting.wins(wins_of(self._together, trial=trial))

    def attainment(self, benchmark: str | None = None) -> alt.TopLevelMixin:
        """The normalised regret that a quarter, half and three quarters of the runs attain.

        Args:
            benchmark: The benchmark; default: the only one.

        Raises:
            UnknownNameError: No such benchmark.
            ExperimentError: There are several to choose from, or no best values are known.
        """
        name = self._benchmark(benchmark)
        frame = attained([item for item in self._scores if item.benchmark == name])
        if not len(frame):
            raise ExperimentError(f"no best values of {name} are known: there are no regrets")
        frame = frame[frame["surrogate"] == frame["surrogate"].iloc[0]]
        return plotting.attainment(frame, title=f"normalised regret that runs attain: {name}")

    def landscape(
        self,
        benchmark: str | None = None,
        task: str | None = None,
        *,
        x: str | None = None,
        y: str | None = None,
        seed: int | None = None,
    ) -> alt.TopLevelMixin:
        """Where each method looked in one run, on the lowest losses that all runs met.

        Args:
            benchmark: The benchmark; default: the only one.
            task: Name of the task; default: the last.
            x: Hyperparameter of the horizontal axis; default: the first that varies.
            y: That of the vertical axis; default: the second that varies.
            seed: The run; default: the first.

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
        x_dim, y_dim = _dimensions(tried, x, y)
        placed = tried.assign(x=x_dim.coded(tried[x_dim.name]), y=y_dim.coded(tried[y_dim.name]))
        placed = placed.dropna(subset=["x", "y", "loss"])
        seed = item.seed_numbers[0] if seed is None else seed
        shown = placed[placed["seed"] == seed]
        if not len(shown):
            raise ExperimentError(f"there are no evaluations of {item.benchmark} with seed {seed}")
        shape = tuple(len(d.choices) or CELLS for d in (y_dim, x_dim))
        lowest = lowest_in_cells(
            x_dim.unit(placed["x"].to_numpy()),
            y_dim.unit(placed["y"].to_numpy()),
            placed["loss"].to_numpy(),
            shape=(shape[0], shape[1]),
        )
        panels = [
            Panel(
                method,
                x_dim,
                y_dim,
                values=cells(lowest, x_dim, y_dim),
                domain=colour_ends(lowest),
                crosses=run.nsmallest(1, "loss")[["x", "y"]],
                points=run[["x", "y", "trial", "loss"]],
            )
            for method in drawing_order(shown["method"])
            for run in [shown[shown["method"] == method]]
        ]
        rows = [panels[n : n + COLUMNS] for n in range(0, len(panels), COLUMNS)]
        return plotting.landscape(rows, title=f"{item.benchmark}, task {task}, seed {seed}")

    # What the charts are made from.

    @cached_property
    def _scores(self) -> list[BenchmarkScores]:
        every, unscored = scored(self._results.store, self._results.overview())
        if not every:
            raise ExperimentError(" ".join(unscored) or "no run is finished")
        return next(iter(by_protocol(every).values()))

    @cached_property
    def _curves(self) -> "pd.DataFrame":
        frame = curves(self._scores)
        first = {item.benchmark: item.surrogate for item in reversed(self._scores)}
        known = frame["surrogate"].astype(str) == frame["benchmark"].astype(str).map(first)
        return frame[known | (frame["benchmark"] == "all")]

    @property
    def _together(self) -> Together:
        return Together.of(self._scores)

    def _item(self, benchmark: str | None) -> BenchmarkScores:
        name = self._benchmark(benchmark)
        return next(item for item in self._scores if item.benchmark == name)

    def _benchmark(self, benchmark: str | None) -> str:
        """Name of a benchmark with its version."""
        names = list(dict.fromkeys(item.benchmark for item in self._scores))
        if benchmark is None:
            if len(names) > 1:
                raise ExperimentError(f"name one of the benchmarks: {', '.join(names)}")
            return names[0]
        for name in names:
            if benchmark in (name, name.partition("@")[0]):
                return name
        raise UnknownNameError("benchmark of these results", benchmark, names)

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


def _dimensions(tried: "pd.DataFrame", x: str | None, y: str | None) -> tuple[Dimension, Dimension]:
    """The axes: the hyperparameters named, else the first that vary."""
    names = [name for name in tried.columns if name not in {*IDENTITY, "method", "seed"}]
    for name in (x, y):
        if name is not None and name not in names:
            raise UnknownNameError("hyperparameter", name, names)
    chosen = _varying(tried, (name for name in names if name not in (x, y)))
    x = x or next(chosen, None)
    y = y or next(chosen, None)
    if x is None or y is None:
        raise ExperimentError("a landscape needs two hyperparameters that vary")
    return Dimension.of_column(x, tried[x]), Dimension.of_column(y, tried[y])


def _varying(tried: "pd.DataFrame", names: Iterable[str]) -> Iterator[str]:
    return (name for name in names if tried[name].nunique() > 1)
