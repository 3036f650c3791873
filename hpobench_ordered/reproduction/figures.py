"""The kinds of figures that papers on transfer have: frames of the results, drawn by `plotting`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered import plotting
from hpobench_ordered.analysis.landscape import best_indices, colour_ends, visible_indices
from hpobench_ordered.objective import Direction
from hpobench_ordered.plotting.landscapes import Dimension, Panel, cells
from hpobench_ordered.plotting.theme import STYLES
from hpobench_ordered.reproduction.evidence import FIRST_WITH_HISTORY, Evidence, Landscape
from hpobench_ordered.reproduction.paper import Comparison, Drawing

if TYPE_CHECKING:
    import pandas as pd


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


def score_table(
    evidence: Evidence, comparisons: Iterable[Comparison], trials: Sequence[int]
) -> "pd.DataFrame":
    """Mean scores with two standard errors: one row a benchmark, method, task and trial."""
    import pandas as pd

    frames = []
    for comparison in comparisons:
        scores = evidence.scores(comparison)
        columns = [trial - 1 for trial in trials]
        levels = {
            "benchmark": [comparison.benchmark],
            "surrogate": [evidence.benchmark(comparison.benchmark).surrogate],
            "method": scores.methods,
            "task": range(1, scores.values.shape[2] + 1),
            "trial": trials,
        }
        numbers = {"score": scores.mean, "two_standard_errors": scores.two_standard_errors}
        index = pd.MultiIndex.from_product(levels.values(), names=list(levels))
        table = {name: array[..., columns].ravel() for name, array in numbers.items()}
        frames.append(pd.DataFrame(table, index=index).reset_index())
    return pd.concat(frames, ignore_index=True)


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
    table = score_table(evidence, comparisons, [trial])
    shown = _on_tasks(evidence, table, tasks)
    names = shown["benchmark"] + " (" + shown["surrogate"] + ")"
    chart = plotting.by_task(
        _means(shown, "score").assign(panel=names, task=shown["label"]),
        bars=True,
        columns=1,
        tops=dict(zip(names, shown["benchmark"].map(tops), strict=True)),
        size=(820, 150),
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
    """Draw points with two standard errors on every task with history, a panel a benchmark.

    Args:
        evidence: The results.
        comparisons: The comparisons.
        trials: The trials, counted from 1; panels go by trial first.
        methods: The methods to show.
        columns: Panels in a row.
    """
    table = score_table(evidence, comparisons, trials)
    table = table[table["method"].isin(methods)]
    shown = table[table["task"] > FIRST_WITH_HISTORY].sort_values("trial", kind="stable")
    labels = shown["benchmark"] + " (" + shown["surrogate"] + "), trial "
    frame = _means(shown, "score").assign(panel=labels + shown["trial"].astype(str))
    highest = frame.groupby("panel", sort=False)["mean"].max()
    chart = plotting.by_task(
        frame,
        bars=False,
        columns=columns,
        tops=(1.15 * highest.clip(lower=1.0)).to_dict(),
        size=(215, 140),
        title="normalised score by task",
    )
    return Drawing(chart, table)


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
    table = score_table(evidence, comparisons, trials)
    shown = _means(_on_tasks(evidence, table, tasks), "score")
    labels = shown["benchmark"] + ": task " + shown["label"]
    chart = plotting.curves(
        shown.assign(measure="score", panel=labels).sort_values("task", kind="stable").sort_values(
            "benchmark", key=lambda c: c.map(list(tasks).index), kind="stable"
        ),
        facet="panel",
        columns=max(map(len, tasks.values())),
        bands=False,
        top=top,
        title="normalised score over trials",
    )  # fmt: skip
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
                "benchmark": comparison.benchmark,
                "method": method,
                "trial": np.arange(1, len(errors) + 1),
                "mean_rank": ranks.of(method),
                "two_standard_errors": errors,
            }
            frames.append(pd.DataFrame(columns))
    table = pd.concat(frames, ignore_index=True)
    labels = [f"{name} ({evidence.benchmark(name).surrogate})" for name in table["benchmark"]]
    frame = _means(table, "mean_rank").assign(panel=labels, measure="rank")
    title = f"mean rank of {len(comparisons[0].methods)} methods over trials"
    return Drawing(plotting.curves(frame, measure="rank", facet="panel", title=title), table)


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
    import pandas as pd

    rows, frames = [], []
    for item in slices:
        landscape = evidence.landscape(item.benchmark)
        panels = []
        for task in item.tasks:
            frame = _seen(landscape, item, task)
            scale = list(item.tasks) if common_scale else [task]
            title = f"{item.benchmark}: task {evidence.task_label(item.benchmark, task)}"
            panels.append(_panel(landscape, item, task, frame, title=title, scale=scale))
            frames.append(frame)
        rows.append(panels)
    data = pd.concat(frames, ignore_index=True)
    return Drawing(plotting.landscape(rows, title="landscapes"), data)


def locations(
    evidence: Evidence,
    _: Sequence[Comparison],
    *,
    item: Slice,
    methods: Sequence[str],
    views: Sequence[tuple[int, int]],
) -> Drawing:
    """Draw where methods evaluated, all seeds together, one row a method.

    Args:
        evidence: The results.
        item: Benchmark, hyperparameters and number of crosses.
        methods: The methods, from top to bottom.
        views: The columns: a task, from 0, and how many of the first trials.
    """
    import pandas as pd

    landscape = evidence.landscape(item.benchmark)
    x, y = (Dimension.of_parameter(landscape.benchmark.space[n]) for n in (item.x, item.y))
    rows, frames = [], []
    for method in methods:
        tried = evidence.configurations(item.benchmark, method)
        panels = []
        for task, trials in views:
            seen = tried[(tried["task"] == task) & (tried["trial"] <= trials)]
            frames.append(seen[["seed", "task", "trial", x.name, y.name]].assign(method=method))
            places = {"x": x.coded(seen[x.name]), "y": y.coded(seen[y.name])}
            what = "first evaluation" if trials == 1 else f"first {trials} evaluations"
            panel = Panel(
                f"{method}, task {evidence.task_label(item.benchmark, task)}\n{what}",
                x,
                y,
                crosses=_crosses(landscape, item, task),
                points=seen[["seed", "trial"]].assign(**places),
                colour=STYLES[method].colour,
            )
            panels.append(panel)
        rows.append(panels)
    table = pd.concat(frames, ignore_index=True).drop_duplicates()
    chart = plotting.landscape(rows, title=f"where methods evaluated: {item.benchmark}")
    return Drawing(chart, table.assign(task=table["task"] + 1))


def _on_tasks(
    evidence: Evidence, table: "pd.DataFrame", tasks: Mapping[str, Sequence[int]]
) -> "pd.DataFrame":
    """Rows of some tasks, with the label of each."""
    keys = zip(table["benchmark"], table["task"], strict=True)
    shown = table[[task - 1 in tasks.get(name, ()) for name, task in keys]]
    keys = zip(shown["benchmark"], shown["task"], strict=True)
    return shown.assign(label=[evidence.task_label(name, task - 1) for name, task in keys])


def _means(table: "pd.DataFrame", number: str) -> "pd.DataFrame":
    """With the columns that charts take: mean, low and high."""
    mean, errors = table[number], table["two_standard_errors"]
    return table.assign(mean=mean, low=mean - errors, high=mean + errors)


def _seen(landscape: Landscape, item: Slice, task: int) -> "pd.DataFrame":
    """What is seen from above on a task: one row a point, crossed or not."""
    import pandas as pd

    x, y, losses = landscape.column(item.x), landscape.column(item.y), landscape.losses[task]
    seen = visible_indices(x, y, losses)
    columns = {
        "benchmark": item.benchmark,
        "surrogate": landscape.benchmark.surrogate,
        "task": task + 1,
        "x": item.x,
        "y": item.y,
        "x_value": x[seen],
        "y_value": y[seen],
        "objective": landscape.objective[task][seen],
        "crossed": np.isin(seen, best_indices(losses, item.crosses)),
    }
    return pd.DataFrame(columns)


def _panel(
    landscape: Landscape,
    item: Slice,
    task: int,
    seen: "pd.DataFrame",
    *,
    title: str,
    scale: Sequence[int],
) -> Panel:
    benchmark = landscape.benchmark
    x, y = (Dimension.of_parameter(benchmark.space[name]) for name in (item.x, item.y))
    columns = {"x_value": "x", "y_value": "y", "objective": "value"}
    values = seen[list(columns)].rename(columns=columns)
    if landscape.is_complete:
        values = cells(values.pivot(index="y", columns="x", values="value").to_numpy(), x, y)
    ends = benchmark.objective.losses(np.array(colour_ends(landscape.losses[list(scale)])))
    return Panel(
        title,
        x,
        y,
        values=values,
        value=benchmark.objective.name,
        domain=(float(ends.min()), float(ends.max())),
        maximised=benchmark.objective.direction is Direction.MAXIMIZE,
        crosses=_crosses(landscape, item, task),
    )


def _crosses(landscape: Landscape, item: Slice, task: int) -> "pd.DataFrame":
    import pandas as pd

    best = best_indices(landscape.losses[task], item.crosses)
    return pd.DataFrame({"x": landscape.column(item.x)[best], "y": landscape.column(item.y)[best]})
