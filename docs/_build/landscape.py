"""The landscape of a benchmark: what its hyperparameters do, on the first, middle and last task.

Notation:
    n       number of random configurations
    d       number of hyperparameters
    K       number of draws of the hyperparameters that are not on an axis
    gx, gy  number of cells along the axes
"""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd

from hpobench_ordered import plotting
from hpobench_ordered._typing import BoolArray, FloatArray
from hpobench_ordered.analysis.landscape import colour_ends
from hpobench_ordered.benchmark import Benchmark, Task
from hpobench_ordered.objective import Direction
from hpobench_ordered.plotting import Dimension, Format, Panel
from hpobench_ordered.plotting.landscapes import CROSS, cells
from hpobench_ordered.plotting.theme import STYLES, configured
from hpobench_ordered.reproduction.papers.othpo import AXES
from hpobench_ordered.space.parameters import Parameter

SEED = 0
SAMPLES = 4000
"""Random configurations from which effects and the best ones are taken, n."""
GROUPS = 16
"""Equally wide parts that a number with many values is divided into, to estimate its effect."""
CELLS = 24
"""Cells along an axis; fewer where a hyperparameter has fewer values."""
DRAWS = 48
"""Draws of the other hyperparameters that every cell averages over, K."""
CROSSES = 10
"""Best random configurations that are marked."""
@dataclass(frozen=True)
class Sample:
    """Random configurations of a benchmark, always the same.

    Attributes:
        benchmark: The benchmark.
        unit: Canonical unit vectors, shape (n, d).
    """

    benchmark: Benchmark
    unit: FloatArray

    @classmethod
    def of(cls, benchmark: Benchmark) -> "Sample":
        """Draw them."""
        rng = np.random.default_rng(SEED)
        return cls(benchmark, benchmark.space.sample_unit(rng, SAMPLES))

    def losses(self, task: Task) -> FloatArray:
        """Their losses on a task, shape (n,)."""
        values = self.benchmark.space.decode(self.unit)
        return self.benchmark.objective.losses(task.evaluate_many(values))


def shown_tasks(benchmark: Benchmark) -> tuple[Task, ...]:
    """The first, the middle and the last task, each once."""
    last = len(benchmark.tasks) - 1
    return tuple(benchmark.tasks[i] for i in sorted({0, last // 2, last}))


def effects(sample: Sample) -> FloatArray:
    """Share of the variance of the ranks that each hyperparameter explains alone, (d,).

    The correlation ratio of the ranks of the losses given the value of one hyperparameter, being
    inactive counting as a value, corrected for the number of groups (epsilon squared; Kelley
    1935); the mean over the tasks that are shown. It is what a Sobol index of the first order
    measures.
    """
    from scipy.stats import rankdata

    ranks = [rankdata(sample.losses(task)) for task in shown_tasks(sample.benchmark)]
    shares = np.zeros(sample.benchmark.space.dimension)
    for j, parameter in enumerate(sample.benchmark.space.parameters):
        groups = min(parameter.size, GROUPS)
        part = np.where(np.isnan(sample.unit[:, j]), -1, np.floor(sample.unit[:, j] * groups))
        shares[j] = np.mean([_explained(y, part) for y in ranks])
    return shares


def _explained(y: FloatArray, part: FloatArray) -> float:
    """Epsilon squared of y (n,) given the group of each (n,)."""
    _, group, counts = np.unique(part, return_inverse=True, return_counts=True)
    means = np.bincount(group, weights=y) / counts
    total = float(np.sum((y - y.mean()) ** 2))
    if total == 0.0 or len(counts) == 1:
        return 0.0
    within = float(np.sum((y - means[group]) ** 2))
    return max(0.0, 1.0 - within / (len(y) - len(counts)) * (len(y) - 1) / total)


def axes_of(benchmark: Benchmark, shares: FloatArray) -> tuple[str, ...]:
    """The hyperparameters on the axes: the paper's choice, else the two with the largest effect.

    Args:
        benchmark: The benchmark.
        shares: The effects, shape (d,).
    """
    family = benchmark.name.rpartition("-")[0]
    published = AXES.get(benchmark.name) or AXES.get(family)
    if published is not None:
        return published
    largest = np.argsort(-shares, kind="stable")[:2]
    return tuple(benchmark.space.names[j] for j in largest)


def table(
    benchmark: Benchmark, task: Task, names: tuple[str, str]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean objective by two hyperparameters, averaged over random draws of all others.

    Args:
        benchmark: The benchmark.
        task: The task.
        names: The hyperparameters on the axes.

    Returns:
        Centres of the cells in the unit interval, (gx,) and (gy,), and the means, (gy, gx); NaN
        where one of the two is never active.
    """
    space = benchmark.space
    jx, jy = (space.names.index(name) for name in names)
    xs, ys = _centres(space.parameters[jx]), _centres(space.parameters[jy])
    others = np.random.default_rng(SEED).random((DRAWS, space.dimension))
    unit = np.broadcast_to(others, (len(ys), len(xs), *others.shape)).copy()
    unit[..., jx] = xs[None, :, None]
    unit[..., jy] = ys[:, None, None]
    canonical = space.canonical(unit.reshape(-1, space.dimension))
    values = task.evaluate_many(space.decode(canonical))
    active = ~np.isnan(canonical[:, [jx, jy]]).any(axis=1)
    return xs, ys, _means(values, active, shape=unit.shape[:3])


def _means(values: FloatArray, active: BoolArray, *, shape: tuple[int, ...]) -> FloatArray:
    """Mean over the last axis of what is active; NaN where nothing is."""
    counts = active.reshape(shape).sum(axis=-1)
    sums = np.where(active, values, 0.0).reshape(shape).sum(axis=-1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _centres(parameter: Parameter) -> FloatArray:
    cells = int(min(parameter.size, CELLS))
    return (np.arange(cells) + 0.5) / cells


def draw(sample: Sample, names: Sequence[str]) -> bytes:
    """Draw the landscape as SVG; the same benchmark gives the same bytes.

    Args:
        sample: Random configurations of the benchmark.
        names: One or two hyperparameters.
    """
    tasks = shown_tasks(sample.benchmark)
    chart = _profiles(sample, tasks) if len(names) == 1 else _maps(sample, tasks, names)
    return plotting.encoded(chart, [Format.SVG])[Format.SVG]


def _title(task: Task) -> str:
    context = ", ".join(f"{k.replace('_', ' ')} {v:.6g}" for k, v in task.context.items())
    if not context or task.name in context or len(context) > 24:
        return f"task {task.name}"[:44]
    return f"task {task.name}: {context}"[:44]


def _profiles(sample: Sample, tasks: Sequence[Task]) -> alt.TopLevelMixin:
    """The objective by a single hyperparameter, crosses on the best."""
    objective, parameter = sample.benchmark.objective, sample.benchmark.space.parameters[0]
    coded = parameter.decode(np.linspace(0.0, 1.0, 401))
    frames = []
    for task in tasks:
        values = task.evaluate_many(coded[:, None])
        best = np.arange(len(coded)) == np.argmin(objective.losses(values))
        columns = {"panel": _title(task), "x": coded, "value": values, "best": best}
        frames.append(pd.DataFrame(columns))
    data = pd.concat(frames, ignore_index=True)
    x = Dimension.of_parameter(parameter).channel(alt.X)
    base = alt.Chart().encode(x=x, y=alt.Y("value:Q", title=objective.name))
    line = base.mark_line(color=STYLES["simple-ordered"].colour, strokeWidth=1.6)
    cross = base.transform_filter("datum.best").mark_point(**CROSS)
    panels = alt.Facet("panel:N", sort=list(data["panel"].unique()), title=None)
    return configured(
        alt.layer(line, cross, data=data).properties(width=190, height=150).facet(panels),
        title=f"{objective.name} by {parameter.name}",
        description=f"Curves of {objective.name} by {parameter.name}.",
    )


def _maps(sample: Sample, tasks: Sequence[Task], names: Sequence[str]) -> alt.TopLevelMixin:
    """Mean objective in every cell, and the best configurations."""
    benchmark = sample.benchmark
    objective, space = benchmark.objective, benchmark.space
    x, y = (Dimension.of_parameter(space[name]) for name in names)
    coded = space.decode(sample.unit)
    panels = []
    for task in tasks:
        _, _, means = table(benchmark, task, (names[0], names[1]))
        ends = objective.losses(np.array(colour_ends(objective.losses(means))))
        best = np.argsort(sample.losses(task), kind="stable")[:CROSSES]
        places = {
            axis: coded[best, space.names.index(name)]
            for axis, name in zip("xy", names, strict=True)
        }
        panel = Panel(
            _title(task),
            x,
            y,
            values=cells(means, x, y),
            value=objective.name,
            domain=(float(ends.min()), float(ends.max())),
            maximised=objective.direction is Direction.MAXIMIZE,
            crosses=pd.DataFrame(places).dropna(),
        )
        panels.append(panel)
    return plotting.landscape([panels])
