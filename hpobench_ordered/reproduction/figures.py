"""The kinds of figures that papers on transfer have: frames of the results, drawn by `plotting`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered import plotting
from hpobench_ordered.analysis.landscape import best_indices, colour_ends, visible_indices
from hpobench_ordered.benchmark import Benchmark
from hpobench_ordered.objective import Direction
from hpobench_ordered.plotting.landscapes import Dimension, Panel, cells
from hpobench_ordered.plotting.theme import styles
from hpobench_ordered.reproduction.evidence import FIRST_WITH_HISTORY, Evidence, Landscape
from hpobench_ordered.reproduction.paper import Comparison, Drawing

if TYPE_CHECKING:
    import pandas as pd


def task_label(benchmark: Benchmark, task: int) -> str:
    """Number of a task, from 1 as in papers, and its name where that is no number of its own."""
    name = benchmark.tasks[task].name
    return f"{task + 1}" if name == str(task) else f"{task + 1} ({name})"


def heading(evidence: Evidence, benchmark: str) -> str:
    """Name of a benchmark with its surrogate."""
    return f"{benchmark} ({evidence.benchmark(benchmark).surrogate})"


def score_table(
    evidence: Evidence,
    comparisons: Iterable[Comparison],
    *,
    trials: Sequence[int],
    methods: Sequence[str] | None = None,
) -> "pd.DataFrame":
    """Mean scores with two standard errors: one row a benchmark, method, task and trial.

    Args:
        evidence: The results.
        comparisons: The comparisons.
        trials: The trials to list, counted from 1.
        methods: The methods to list; default: all.
    """
    import pandas as pd

    frames = []
    for comparison in comparisons:
        scores = evidence.scores(comparison)
        chosen = [scores.methods.index(m) for m in methods or scores.methods]
        columns = [trial - 1 for trial in trials]
        levels = {
            "benchmark": [comparison.benchmark],
            "surrogate": [evidence.benchmark(comparison.benchmark).surrogate],
            "method": [scores.methods[a] for a in chosen],
            "task": range(1, scores.values.shape[2] + 1),
            "trial": trials,
        }
        table = {
            "score": scores.mean[chosen][..., columns].ravel(),
            "two_standard_errors": scores.two_standard_errors[chosen][..., columns].ravel(),
        }
        index = pd.MultiIndex.from_product(levels.values(), names=list(levels))
        frames.append(pd.DataFrame(table, index=index).reset_index())
    return pd.concat(frames, ignore_index=True)


def _means(table: "pd.DataFrame", number: str = "score") -> "pd.DataFrame":
    """The columns that charts take: mean, low and high."""
    errors = table["two_standard_errors"]
    mean = table[number]
    return table.assign(mean=mean, low=mean - errors, high=mean + errors)


def bars(
    evidence: Evidence,
    comparisons: Sequence[Comparison],
    *,
    trial: int,
    tops: Mapping[str, float],
    tasks: Mapping[str, Sequence[int]],
) -> Drawing:
    """Draw bars by task after a trial, one row a benchmark.

    Args:
        evidence: The results.
        comparisons: The comparisons, from top to bottom; all their methods are shown.
        trial: The trial, counted from 1.
        tops: Upper end of the plotted range by benchmark.
        tasks: Tasks to show by benchmark, from 0; the table lists all.
    """
    import pandas as pd

    table = score_table(evidence, comparisons, trials=[trial])
    frames = []
    for comparison in comparisons:
        name = comparison.benchmark
        labels = {task + 1: task_label(evidence.benchmark(name), task) for task in tasks[name]}
        shown = table[(table["benchmark"] == name) & table["task"].isin(list(labels))]
        ordered = shown.assign(task=shown["task"].map(labels), benchmark=heading(evidence, name))
        frames.append(_means(ordered))
    chart = plotting.bars(
        pd.concat(frames),
        tops={heading(evidence, name): top for name, top in tops.items() if name in tasks},
        title=f"normalised score after trial {trial}",
    )
    return Drawing(chart, table)


def points(
    evidence: Evidence,
    comparisons: Sequence[Comparison],
    *,
    trials: Sequence[int],
    methods: Sequence[str],
    columns: int,
) -> Drawing:
    """Draw points with two standard errors on every task with history.

    Panels go by trial, and within a trial by benchmark, row by row.

    Args:
        evidence: The results.
        comparisons: The comparisons.
        trials: The trials, counted from 1.
        methods: The methods to show.
        columns: Panels in a row.
    """
    table = score_table(evidence, comparisons, trials=trials, methods=methods)
    order = [comparison.benchmark for comparison in comparisons]
    shown = table[table["task"] > FIRST_WITH_HISTORY].sort_values(
        ["trial", "benchmark"], key=lambda c: c.map(order.index) if c.name == "benchmark" else c
    )
    names = shown["benchmark"] + " (" + shown["surrogate"] + "), trial "
    frame = _means(shown.assign(panel=names + shown["trial"].astype(str)))
    title = "normalised score by task"
    return Drawing(plotting.points(frame, columns=columns, title=title), table)


def curves(
    evidence: Evidence,
    comparisons: Sequence[Comparison],
    *,
    tasks: Mapping[str, Sequence[int]],
    top: float,
) -> Drawing:
    """Draw the mean score over trials, one row a benchmark, one panel a task.

    Args:
        evidence: The results.
        comparisons: The comparisons; all their methods are shown.
        tasks: Tasks to show by benchmark, from 0, as many for each; the table lists all.
        top: Upper end of the plotted range.
    """
    trials = range(1, evidence.scores(comparisons[0]).values.shape[-1] + 1)
    table = score_table(evidence, comparisons, trials=trials)
    frame = _means(table).assign(measure="score", panel="")
    chosen = []
    for comparison in comparisons:
        name = comparison.benchmark
        for task in tasks[name]:
            rows = frame[(frame["benchmark"] == name) & (frame["task"] == task + 1)]
            label = f"{name}: task {task_label(evidence.benchmark(name), task)}"
            chosen.append(rows.assign(panel=label, mean=rows["mean"].clip(upper=top)))
    chart = plotting.curves(
        _joined(chosen),
        facet="panel",
        columns=max(map(len, tasks.values())),
        bands=False,
        top=top,
        title="normalised score over trials",
    )
    return Drawing(chart, table)


def rank_curves(
    evidence: Evidence, comparisons: Sequence[Comparison], *, methods: Sequence[str]
) -> Drawing:
    """Draw mean ranks over trials with two standard errors, one panel a benchmark.

    Args:
        evidence: The results.
        comparisons: The comparisons; ranks are among all their methods.
        methods: The methods to show.
    """
    import pandas as pd

    frames = []
    for comparison in comparisons:
        ranks = evidence.ranks(comparison)
        for method in methods:
            errors = ranks.two_standard_errors[ranks.methods.index(method)]
            columns = {
                "trial": np.arange(1, len(errors) + 1),
                "mean_rank": ranks.of(method),
                "two_standard_errors": errors,
            }
            labels = {"benchmark": comparison.benchmark, "method": method}
            frames.append(pd.DataFrame(labels | columns))
    table = _joined(frames)
    names = {item.benchmark: heading(evidence, item.benchmark) for item in comparisons}
    frame = _means(table.assign(panel=table["benchmark"].map(names), measure="rank"), "mean_rank")
    title = f"mean rank of {len(comparisons[0].methods)} methods over trials"
    return Drawing(plotting.ranks(frame, facet="panel", title=title), table)


def _joined(frames: Sequence["pd.DataFrame"]) -> "pd.DataFrame":
    import pandas as pd

    return pd.concat(frames, ignore_index=True)


@dataclass(frozen=True, slots=True)
class Slice:
    """One row of landscapes: two hyperparameters of a benchmark on some tasks.

    Attributes:
        benchmark: Name of the benchmark.
        x: Hyperparameter on the horizontal axis.
        y: Hyperparameter on the vertical axis.
        tasks: The tasks, from 0.
        crosses: How many of the best configurations of each task are marked.
    """

    benchmark: str
    x: str
    y: str
    tasks: tuple[int, ...]
    crosses: int = 10


def landscapes(
    evidence: Evidence,
    _: Sequence[Comparison],
    *,
    slices: Sequence[Slice],
    common_scale: bool = True,
) -> Drawing:
    """Draw landscapes: configurations coloured by their value, the best on top and crossed.

    Args:
        evidence: The results.
        slices: The rows, as many tasks in each.
        common_scale: Whether the colours of a row mean the same in all its panels.
    """
    rows, frames = [], []
    for item in slices:
        landscape = evidence.landscape(item.benchmark)
        panels = []
        for task in item.tasks:
            frame = _seen(landscape, item, task)
            shared = list(item.tasks) if common_scale else [task]
            panels.append(_panel(landscape, item, task, frame, shared))
            frames.append(frame.rename(columns={"x": "x_value", "y": "y_value"}))
        rows.append(panels)
    columns = ["benchmark", "surrogate", "task", "x", "y"]
    data = _joined(
        [
            frame.assign(x=item.x, y=item.y)
            for frame, item in zip(
                frames, [item for item in slices for _ in item.tasks], strict=True
            )
        ]
    )
    columns += ["x_value", "y_value", "objective", "crossed"]
    return Drawing(plotting.landscape(rows, title="landscapes"), data[columns])


def _seen(landscape: Landscape, item: Slice, task: int) -> "pd.DataFrame":
    """What is seen from above on a task: one row a point, crossed or not."""
    import pandas as pd

    x, y, losses = landscape.column(item.x), landscape.column(item.y), landscape.losses[task]
    seen = visible_indices(x, y, losses)
    columns = {
        "benchmark": item.benchmark,
        "surrogate": landscape.benchmark.surrogate,
        "task": task + 1,
        "x": x[seen],
        "y": y[seen],
        "objective": landscape.objective[task][seen],
        "crossed": np.isin(seen, best_indices(losses, item.crosses)),
    }
    return pd.DataFrame(columns)


def _panel(
    landscape: Landscape, item: Slice, task: int, frame: "pd.DataFrame", shared: Sequence[int]
) -> Panel:
    objective = landscape.benchmark.objective
    x, y = (Dimension.of_parameter(landscape.benchmark.space[n]) for n in (item.x, item.y))
    values = frame[["x", "y"]].assign(value=frame["objective"])
    if landscape.is_complete:
        values = cells(values.pivot(index="y", columns="x", values="value").to_numpy(), x, y)
    ends = objective.losses(np.array(colour_ends(landscape.losses[list(shared)])))
    return Panel(
        f"{item.benchmark}: task {task_label(landscape.benchmark, task)}",
        x,
        y,
        values=values,
        value=objective.name,
        domain=(float(ends.min()), float(ends.max())),
        maximised=objective.direction is Direction.MAXIMIZE,
        crosses=_crosses(landscape, item, task),
    )


def _crosses(landscape: Landscape, item: Slice, task: int) -> "pd.DataFrame":
    import pandas as pd

    best = best_indices(landscape.losses[task], item.crosses)
    return pd.DataFrame({"x": landscape.column(item.x)[best], "y": landscape.column(item.y)[best]})


@dataclass(frozen=True, slots=True)
class View:
    """One column of sampling locations.

    Attributes:
        task: The task, from 0.
        trials: The first so many trials.
    """

    task: int
    trials: int


def locations(
    evidence: Evidence,
    comparisons: Sequence[Comparison],
    *,
    item: Slice,
    methods: Sequence[str],
    views: Sequence[View],
) -> Drawing:
    """Draw where methods evaluated, all seeds together, one row a method.

    Args:
        evidence: The results.
        comparisons: The comparison with the runs; none other is used.
        item: Benchmark, hyperparameters and number of crosses.
        methods: The methods, from top to bottom.
        views: The columns.
    """
    landscape = evidence.landscape(item.benchmark)
    x, y = (Dimension.of_parameter(landscape.benchmark.space[n]) for n in (item.x, item.y))
    rows, frames = [], []
    for method, look in ((name, styles(methods)[name]) for name in methods):
        tried = evidence.configurations(item.benchmark, method)
        panels = []
        for view in views:
            seen = tried[(tried["task"] == view.task) & (tried["trial"] <= view.trials)]
            frames.append(seen[["seed", "task", "trial", item.x, item.y]].assign(method=method))
            placed = seen[["seed", "trial"]].assign(
                x=x.coded(seen[x.name]), y=y.coded(seen[y.name])
            )
            what = "first evaluation" if view.trials == 1 else f"first {view.trials} evaluations"
            label = f"{method}: task {task_label(landscape.benchmark, view.task)}, {what}"
            crosses = _crosses(landscape, item, view.task)
            panels.append(Panel(label, x, y, crosses=crosses, points=placed, colour=look.colour))
        rows.append(panels)
    table = _joined(frames).drop_duplicates()
    chart = plotting.landscape(rows, title=f"where methods evaluated: {item.benchmark}")
    return Drawing(chart, table.assign(task=table["task"] + 1))
