"""The landscape of a benchmark: its objective by hyperparameters, on the first, middle and last task.

Notation:
    n       number of random configurations
    d       number of hyperparameters
    T       number of tasks that are shown
    gx, gy  number of cells along the axes
"""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd

from hpobench_ordered.reporting import charts
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.landscape import best_indices, colour_ends, explained_shares
from hpobench_ordered.data.benchmark import Benchmark, Task
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.reporting.charts import Dimension, Panel
from hpobench_ordered.reporting.charts.evaluations import mean_over_others
from hpobench_ordered.reporting.charts.landscapes import CROSS, cells
from hpobench_ordered.reporting.charts.saving import svg_of
from hpobench_ordered.reporting.charts.theme import PALETTE, configured, facetted
from hpobench_ordered.papers.othpo.paper import AXES

SAMPLES = 4000
"""Random configurations from which effects and the best ones are taken, n."""
BINS = 16
"""Equally wide parts that a number with many values is divided into, to estimate its effect."""
DRAWS = 48
"""Draws of the other hyperparameters that every cell averages over."""
MAX_CONTEXT = 24
"""Characters of the longest context in a title."""
MAX_TITLE = 44
"""Characters of a title; longer ones would overlap the next panel's."""
CROSSES = 10
"""Best random configurations that are marked."""


@dataclass(frozen=True)
class MeanLandscape:
    """A fixed random sample of a benchmark's configurations, with their losses.

    Attributes:
        benchmark: The benchmark.
        tasks: The first, the middle and the last task, each once.
        unit: Canonical unit vectors, shape (n, d); NaN where a hyperparameter is inactive.
        losses: Their losses on the tasks, shape (T, n).
    """

    benchmark: Benchmark
    tasks: tuple[Task, ...]
    unit: FloatArray
    losses: FloatArray

    @classmethod
    def of(cls, benchmark: Benchmark) -> "MeanLandscape":
        """Draw `SAMPLES` configurations, the same for every benchmark of d hyperparameters.

        They are evaluated on the first, the middle and the last task of the benchmark.
        """
        last = len(benchmark.tasks) - 1
        indices = sorted({0, last // 2, last})  # fewer than three if there are one or two tasks
        tasks = tuple(benchmark.tasks[index] for index in indices)
        unit = benchmark.space.sample_unit(np.random.default_rng(0), SAMPLES)
        coded = benchmark.space.decode(unit)
        values = np.stack([task.evaluate_many(coded) for task in tasks])
        return cls(benchmark, tasks, unit, benchmark.objective.losses(values))

    @property
    def effects(self) -> FloatArray:
        """Share of the variance of the ranks that each hyperparameter explains alone, (d,).

        On a task, this is what a Sobol index of the first order measures. The result is the mean
        over the tasks.
        """
        shares_of_tasks = []
        for losses_on_task in self.losses:
            shares_of_tasks.append(explained_shares(self.unit, losses_on_task, bins=BINS))
        return np.mean(shares_of_tasks, axis=0)

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the hyperparameters that the figure is drawn over.

        These are those of the paper's figure, if it has one of the benchmark; otherwise the two
        with the largest effects.
        """
        name = self.benchmark.name
        scenario, _, _ = name.rpartition("-")  # `AXES` has YAHPO's without the number of a data set
        if name in AXES:
            return AXES[name]
        if scenario in AXES:
            return AXES[scenario]
        names = self.benchmark.space.names
        places_by_effect = np.argsort(-self.effects, kind="stable")
        return tuple(names[place] for place in places_by_effect[:2])

    def means(self, task: Task, names: Sequence[str]) -> FloatArray:
        """Mean objective by two hyperparameters, over random values of all others, (gy, gx).

        NaN where one of the two is never active.
        """
        others = np.random.default_rng(0).random((DRAWS, self.benchmark.space.dimension))
        return mean_over_others(task, others, names)

    def svg(self, names: Sequence[str]) -> str:
        """Draw the landscape over one or two hyperparameters; deterministic."""
        if len(names) == 1:
            return svg_of(self._profiles())
        panels = [self._map(task, names) for task in range(len(self.tasks))]
        return svg_of(charts.landscape([panels]))

    def _map(self, task: int, names: Sequence[str]) -> Panel:
        """Mean objective in every cell, and the best configurations."""
        space = self.benchmark.space
        objective = self.benchmark.objective
        maximised = objective.direction is Direction.MAXIMIZE
        means = self.means(self.tasks[task], names)
        best = space.decode(self.unit[best_indices(self.losses[task], CROSSES)])
        columns = [space.names.index(name) for name in names]
        crosses = pd.DataFrame(best[:, columns], columns=["x", "y"])
        x, y = (Dimension.of_parameter(space[name]) for name in names)
        return Panel(
            _title(self.tasks[task]),
            x,
            y,
            values=cells(means, x, y),
            value=objective.name,
            domain=colour_ends(objective.losses(means), maximised=maximised),
            maximised=maximised,
            crosses=crosses.dropna(),
        )

    def _profiles(self) -> alt.TopLevelMixin:
        """The objective by a single hyperparameter, crosses on the best."""
        objective = self.benchmark.objective
        parameter = self.benchmark.space.parameters[0]
        coded = parameter.decode(np.linspace(0.0, 1.0, 401))
        frames = []
        for task in self.tasks:
            values = task.evaluate_many(coded[:, None])
            is_best = np.arange(len(values)) == objective.losses(values).argmin()
            frame = {"panel": _title(task), "x": coded, "value": values, "best": is_best}
            frames.append(pd.DataFrame(frame))
        data = pd.concat(frames, ignore_index=True)
        x = Dimension.of_parameter(parameter).channel(alt.X)
        base = alt.Chart().encode(x=x, y=alt.Y("value:Q", title=objective.name))
        line = base.mark_line(color=PALETTE[0].colour, strokeWidth=1.6)
        cross = base.transform_filter("datum.best").mark_point(**CROSS)
        whole = alt.layer(line, cross, data=data).properties(width=190, height=150)
        return configured(
            facetted(whole, "panel", list(data["panel"].unique()), len(self.tasks)),
            title=f"{objective.name} by {parameter.name}",
            description=f"Curves of {objective.name} by {parameter.name}.",
        )


def _title(task: Task) -> str:
    """The name of a task, with its context if that is short and says more than the name."""
    parts = [f"{name.replace('_', ' ')} {value:.6g}" for name, value in task.context.items()]
    context = ", ".join(parts)
    title = f"task {task.name}"
    if context and task.name not in context and len(context) <= MAX_CONTEXT:
        title += f": {context}"
    return title[:MAX_TITLE]
