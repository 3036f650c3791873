"""The landscape of a benchmark: what its hyperparameters do, on the first, middle and last task.

Notation:
    n       number of random configurations
    d       number of hyperparameters
    K       number of draws of the hyperparameters that are not on an axis
    gx, gy  number of cells along the axes
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered._typing import BoolArray, FloatArray
from hpobench_ordered.benchmark import Benchmark, Task
from hpobench_ordered.objective import Direction
from hpobench_ordered.reproduction.papers.othpo import AXES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
WORST_ALIKE = 0.05
"""Share of the worst cells that all get the darkest colour."""
WIDE_RANGE = 10.0
"""Objectives whose largest value is so many times the smallest are coloured on a log scale."""
LABELS = 6
"""Tick labels on an axis at most; all of them for up to `CHOICES` choices."""
CHOICES = 8

PAPER_AXES = {
    "newsvendor": ("price_0", "price_1"),
    "xgboost-mnist": ("max_depth", "n_estimators"),
}
"""Axes of Hellan et al. (2023), figures 1 and 4; those of YAHPO's scenarios are `AXES`."""


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
    parts = benchmark.name.split("-")
    if benchmark.name in PAPER_AXES:
        return PAPER_AXES[benchmark.name]
    if parts[0] == "yahpo" and parts[1] in AXES:
        return AXES[parts[1]]
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


# -- drawing ---------------------------------------------------------------------------------------


def draw(sample: Sample, names: Sequence[str]) -> bytes:
    """Draw the landscape as SVG; the same benchmark gives the same bytes.

    Args:
        sample: Random configurations of the benchmark.
        names: One or two hyperparameters.
    """
    from matplotlib.figure import Figure

    tasks = shown_tasks(sample.benchmark)
    figure = Figure(figsize=(0.9 + 2.9 * len(tasks), 2.7), layout="constrained", dpi=100)
    panels = figure.subplots(1, len(tasks), squeeze=False)[0]
    for axes, task in zip(panels, tasks, strict=True):
        if len(names) == 1:
            _draw_line(axes, sample, task)
        else:
            _draw_map(figure, axes, sample, task, (names[0], names[1]))
        context = ", ".join(f"{k.replace('_', ' ')} {v:.6g}" for k, v in task.context.items())
        label = (
            task.name if task.name in context or len(context) > 24 else f"{task.name}: {context}"
        )
        axes.set_title(f"task {label if context else task.name}"[:44], fontsize=9)
    panels[0].set_ylabel(names[1] if len(names) > 1 else sample.benchmark.objective.name)
    return _svg(figure)


def _draw_line(axes: "Axes", sample: Sample, task: Task) -> None:
    """The objective of a single number."""
    parameter = sample.benchmark.space.parameters[0]
    unit = np.linspace(0.0, 1.0, 401)
    values = task.evaluate_many(parameter.decode(unit)[:, None])
    axes.plot(unit, values, c="#141B52", lw=1.5)
    best = int(np.argmin(sample.benchmark.objective.losses(values)))
    axes.plot(unit[best], values[best], "X", c="black", mec="white", ms=8)
    _label(axes, parameter, vertical=False)
    axes.set_xlabel(parameter.name)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)


def _draw_map(
    figure: "Figure", axes: "Axes", sample: Sample, task: Task, names: tuple[str, str]
) -> None:
    """Mean objective in every cell, and the best configurations."""
    from matplotlib.colors import LogNorm, Normalize

    benchmark = sample.benchmark
    maximised = benchmark.objective.direction is Direction.MAXIMIZE
    xs, ys, means = table(benchmark, task, names)
    losses = benchmark.objective.losses(means)
    ends = benchmark.objective.losses(np.nanquantile(losses, [0.0, 1.0 - WORST_ALIKE]))
    low, high = float(ends.min()), float(ends.max())
    positive = float(np.nanmin(means)) > 0
    scale = LogNorm if positive and low * WIDE_RANGE < high else Normalize
    drawn = axes.pcolormesh(
        np.linspace(0, 1, len(xs) + 1),
        np.linspace(0, 1, len(ys) + 1),
        means,
        norm=scale(low, high),
        cmap="viridis" if maximised else "viridis_r",
        rasterized=True,
    )
    best = np.argsort(sample.losses(task), kind="stable")[:CROSSES]
    jx, jy = (benchmark.space.names.index(name) for name in names)
    axes.plot(
        sample.unit[best, jx], sample.unit[best, jy], "X", c="black", mec="white", ms=7, mew=0.8
    )
    axes.set_facecolor("#dddddd")
    for j, vertical in ((jx, False), (jy, True)):
        _label(axes, benchmark.space.parameters[j], vertical=vertical)
    axes.set_xlabel(names[0])
    bar = figure.colorbar(drawn, ax=axes, extend="min" if maximised else "max", aspect=16, pad=0.02)
    bar.ax.tick_params(labelsize=7)
    bar.ax.tick_params(which="minor", labelsize=0, labelright=False)
    bar.ax.set_title(benchmark.objective.name.replace("_", "\n"), fontsize=7)


def _label(axes: "Axes", parameter: Parameter, *, vertical: bool) -> None:
    """Native values along an axis of the unit interval."""
    places, labels = _ticks(parameter)
    axis = axes.yaxis if vertical else axes.xaxis
    axis.set_ticks(places.tolist(), labels)
    (axes.set_ylim if vertical else axes.set_xlim)(0.0, 1.0)
    crowded = not vertical and sum(map(len, labels)) > 30
    axes.tick_params(axis="y" if vertical else "x", labelsize=8, rotation=30 if crowded else 0)


def _ticks(parameter: Parameter) -> tuple[FloatArray, list[str]]:
    """Places in the unit interval and their labels."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    low, high = parameter.lower, parameter.upper
    if parameter.choices:
        step = 1 if parameter.size <= CHOICES else int(np.ceil(parameter.size / LABELS))
        coded = np.arange(0.0, parameter.size, step)
        names = [str(parameter.value(code)) for code in coded]
        return parameter.encode(coded), [
            name if len(name) < 14 else name[:12] + "…" for name in names
        ]
    if parameter.log:
        short = high < WIDE_RANGE**3 * low
        locator = LogLocator(subs=(1, 2, 5) if short else (1,), numticks=LABELS)
    else:
        locator = MaxNLocator(LABELS - 1, integer=parameter.is_discrete)
    found = np.asarray(locator.tick_values(low, high))
    coded = found[(found >= low) & (found <= high)]
    if len(coded) > LABELS:
        coded = coded[:: int(np.ceil(len(coded) / LABELS))]
    return parameter.encode(coded), [f"{value:g}" for value in coded]


def _svg(figure: "Figure") -> bytes:
    """Encode a figure, with neither a date nor random ids."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    content = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "hpobench_ordered"}):
        FigureCanvasSVG(figure).print_svg(content, metadata={"Date": None})
    return content.getvalue()
