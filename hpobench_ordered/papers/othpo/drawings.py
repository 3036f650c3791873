"""The figures of Hellan et al. (2023): tables of the results, drawn by `reporting.charts`.

Each function takes the results and the comparisons of a figure, from top to bottom, and the paper's
choices: trials, methods, tasks (from 0), and `top`, the upper end of the plotted range. The data
contain all tasks, also those that are not drawn.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.analysis.curves import cross_labels
from hpobench_ordered.analysis.landscape import best_indices, colour_ends, visible_indices
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.papers import charts as paper_charts
from hpobench_ordered.papers.evidence import Comparisons, Evidence, Landscape, MethodComparison
from hpobench_ordered.papers.paper import Content
from hpobench_ordered.reporting import charts
from hpobench_ordered.reporting.charts.axes import PAPER_SCORE
from hpobench_ordered.reporting.charts.landscapes import Dimension, Panel, cells
from hpobench_ordered.reporting.charts.theme import styles
from hpobench_ordered.space.coded import code_stored

if TYPE_CHECKING:
    import pandas as pd

TasksOfBenchmark = Mapping[str, Sequence[int]]
"""Tasks that are drawn, from 0, by benchmark."""


@dataclass(frozen=True, slots=True)
class Slice:
    """One row of landscapes: two hyperparameters of a benchmark on some tasks."""

    benchmark: str
    x: str  # name of the horizontal hyperparameter
    y: str  # name of the vertical hyperparameter
    tasks: tuple[int, ...]  # counted from 0, one panel each
    crosses: int = 10  # number of the best configurations that are crossed


def score_table(
    evidence: Evidence, comparisons: Iterable[MethodComparison], trials: Sequence[int]
) -> "pd.DataFrame":
    """Tabulate mean scores over seeds, with two standard errors of these means.

    Args:
        evidence: The results.
        comparisons: The comparisons.
        trials: The trials to tabulate, counted from 1.

    Returns:
        A table with one row per benchmark, method, task and trial; tasks are counted from 1.
    """
    import pandas as pd

    indices = [trial - 1 for trial in trials]
    frames = []
    for comparison in comparisons:
        scores = evidence.scores(comparison)
        number_of_tasks = scores.values.shape[2]
        levels = {
            "benchmark": [comparison.benchmark],
            "surrogate": [evidence.benchmark(comparison.benchmark).surrogate],
            "method": scores.methods,
            "task": range(1, number_of_tasks + 1),
            "trial": trials,
        }
        frames.append(
            cross_labels(
                levels,
                score=scores.mean[..., indices],
                two_standard_errors=scores.two_standard_errors[..., indices],
            )
        )
    return pd.concat(frames, ignore_index=True)


def bars(
    evidence: Evidence,
    comparisons: Comparisons,
    *,
    trial: int,
    tops: Mapping[str, float],
    tasks: TasksOfBenchmark,
) -> Content:
    """Draw mean scores after a trial as bars by task, with one panel per benchmark."""
    table = score_table(evidence, comparisons, [trial])
    drawn = _add_interval(_select_tasks(evidence, table, tasks), "score")
    drawn = drawn.assign(
        panel=_name_panels(drawn), top=drawn["benchmark"].map(tops), task=drawn["label"]
    )
    title = f"normalised score after trial {trial}"
    chart = paper_charts.scores_by_task(drawn, bars=True, columns=1, size=(820, 150), title=title)
    return Content(table, chart)


def points(
    evidence: Evidence,
    comparisons: Comparisons,
    *,
    trials: Sequence[int],
    methods: Sequence[str],
    columns: int,
) -> Content:
    """Draw mean scores as points by task with history, with one panel per benchmark and trial.

    There are `columns` panels in a row.
    """
    table = score_table(evidence, comparisons, trials)
    table = table[table["method"].isin(methods)]  # scores are among all methods all the same

    # The first task, number 1, has no history.
    with_history = table[table["task"] > 1].sort_values("trial", kind="stable")
    panels = _name_panels(with_history) + ", trial " + with_history["trial"].astype(str)
    drawn = _add_interval(with_history, "score").assign(panel=panels)
    highest_of_panel = drawn.groupby("panel")["mean"].transform("max")
    drawn["top"] = 1.15 * highest_of_panel.clip(lower=1.0)
    title = "normalised score by task"
    chart = paper_charts.scores_by_task(
        drawn, bars=False, columns=columns, size=(215, 140), title=title
    )
    return Content(table, chart)


def curves(
    evidence: Evidence,
    comparisons: Comparisons,
    *,
    tasks: TasksOfBenchmark,
    top: float,
) -> Content:
    """Draw mean scores over trials as curves, with one row per benchmark and one panel per task."""
    last_trial = evidence.scores(comparisons[0]).values.shape[-1]
    table = score_table(evidence, comparisons, range(1, last_trial + 1))

    drawn = _add_interval(_select_tasks(evidence, table, tasks), "score")
    drawn = drawn.assign(
        measure=PAPER_SCORE,
        panel=drawn["benchmark"] + ": task " + drawn["label"],
        row=drawn["benchmark"].map(list(tasks).index),  # benchmarks in the order of `tasks`
    )
    chart = charts.curves(
        drawn.sort_values(["row", "task"], kind="stable"),
        measure=PAPER_SCORE,
        facet="panel",
        columns=max(map(len, tasks.values())),
        methods=comparisons[0].methods,
        bands=False,
        top=top,
        title="normalised score over trials",
    )
    return Content(table, chart)


def rank_curves(evidence: Evidence, comparisons: Comparisons, *, methods: Sequence[str]) -> Content:
    """Draw mean ranks ± two standard errors over trials as curves, with one panel per benchmark.

    Only some methods are drawn, but all methods of a comparison are ranked.
    """
    import pandas as pd

    frames = []
    for comparison in comparisons:
        ranks = evidence.ranks_of_means(comparison)
        rows = [ranks.methods.index(method) for method in methods]
        last_trial = ranks.values.shape[-1]
        levels = {
            "benchmark": [comparison.benchmark],
            "method": methods,
            "trial": range(1, last_trial + 1),
        }
        frames.append(
            cross_labels(
                levels,
                mean_rank=ranks.mean[rows],
                two_standard_errors=ranks.two_standard_errors[rows],
            )
        )
    table = pd.concat(frames, ignore_index=True)

    surrogate_of_benchmark = {
        comparison.benchmark: evidence.benchmark(comparison.benchmark).surrogate
        for comparison in comparisons
    }
    drawn = table.assign(surrogate=table["benchmark"].map(surrogate_of_benchmark), measure="rank")
    drawn = _add_interval(drawn, "mean_rank").assign(panel=_name_panels(drawn))
    all_methods = comparisons[0].methods
    title = f"mean rank of {len(all_methods)} methods over trials"
    chart = charts.curves(drawn, measure="rank", facet="panel", methods=all_methods, title=title)
    return Content(table, chart)


def landscapes(
    evidence: Evidence,
    _: Comparisons,
    *,
    slices: Sequence[Slice],
    common_scale: bool = True,
) -> Content:
    """Draw configurations coloured by value, with one row per slice and one panel per task.

    The best configurations are on top of others and crossed. With a common scale all panels of a
    row share their colours.
    """
    import pandas as pd

    rows: list[list[Panel]] = []
    tables = []
    for item in slices:
        landscape = evidence.landscape(item.benchmark)
        row = []
        for task in item.tasks:
            table = visible_points(landscape, item, task)
            tasks_of_scale = item.tasks if common_scale else (task,)
            label = evidence.task_label(item.benchmark, task)
            title = f"{item.benchmark}: task {label}"
            row.append(_landscape_panel(landscape, item, table, tasks_of_scale, title=title))
            tables.append(table)
        rows.append(row)
    data = pd.concat(tables, ignore_index=True)
    return Content(data, charts.landscape(rows, title="landscapes"))


def visible_points(landscape: Landscape, item: Slice, task: int) -> "pd.DataFrame":
    """Tabulate the configurations of a task that a slice shows.

    Returns:
        A table with one row per configuration, whose column `crossed` marks the best ones.
    """
    import pandas as pd

    x = landscape.column(item.x)
    y = landscape.column(item.y)
    losses = landscape.losses[task]
    visible = visible_indices(x, y, losses)
    best = best_indices(losses, item.crosses)
    return pd.DataFrame(
        {
            "benchmark": item.benchmark,
            "surrogate": landscape.benchmark.surrogate,
            "task": task + 1,
            "x": item.x,
            "y": item.y,
            "x_value": x[visible],
            "y_value": y[visible],
            "objective": landscape.objective[task][visible],
            "crossed": np.isin(visible, best),
        }
    )


def _landscape_panel(
    landscape: Landscape,
    item: Slice,
    table: "pd.DataFrame",
    tasks_of_scale: Sequence[int],
    *,
    title: str,
) -> Panel:
    """Make the panel of a task: a grid of cells if all configurations are there, else points.

    Crosses mark the best configurations in both.

    Args:
        landscape: The landscape.
        item: The slice that is drawn.
        table: Points of the task, as `visible_points` gives them.
        tasks_of_scale: Tasks whose values are within the scale of colours.
        title: Title of the panel.
    """
    x, y = _dimensions(landscape, item)
    dots = _rename_for_charts(table)
    if landscape.is_complete:
        grid = dots.pivot(index="y", columns="x", values="value")  # both in ascending order
        values = cells(grid.to_numpy(), x, y)
    else:
        values = dots
    objective = landscape.benchmark.objective
    maximised = objective.direction is Direction.MAXIMIZE
    return Panel(
        title,
        x,
        y,
        values=values,
        value=objective.name,
        domain=colour_ends(landscape.losses[list(tasks_of_scale)], maximised=maximised),
        maximised=maximised,
        crosses=dots[table["crossed"]],
    )


def locations(
    evidence: Evidence,
    _: Comparisons,
    *,
    item: Slice,
    methods: Sequence[str],
    views: Sequence[tuple[int, int]],
) -> Content:
    """Draw the configurations that methods evaluated with all seeds, with one row per method.

    Each view is a column: a task, from 0, and a number of first trials.
    """
    import pandas as pd

    landscape = evidence.landscape(item.benchmark)
    space = landscape.benchmark.space
    x, y = _dimensions(landscape, item)
    rows: list[list[Panel]] = []
    tables = []
    for method in methods:
        trials = evidence.configurations(item.benchmark, method)
        coded = code_stored(trials, [space[item.x], space[item.y]])
        trials = trials.assign(method=method, x=coded[:, 0], y=coded[:, 1])
        row = []
        for task, last_trial in views:
            is_in_view = (trials["task"] == task) & (trials["trial"] <= last_trial)
            in_view = trials[is_in_view]
            best = visible_points(landscape, item, task)
            label = evidence.task_label(item.benchmark, task)
            count = "first evaluation" if last_trial == 1 else f"first {last_trial} evaluations"
            panel = Panel(
                f"{method}, task {label}\n{count}",
                x,
                y,
                crosses=_rename_for_charts(best[best["crossed"]]),
                points=in_view[["seed", "trial", "x", "y"]],
                colour=styles(methods)[method].colour,
            )
            row.append(panel)
            tables.append(in_view[["seed", "task", "trial", x.name, y.name, "method"]])
        rows.append(row)
    data = pd.concat(tables, ignore_index=True).drop_duplicates()
    chart = charts.landscape(rows, title=f"where methods evaluated: {item.benchmark}")
    return Content(data.assign(task=data["task"] + 1), chart)


def _name_panels(table: "pd.DataFrame") -> "pd.Series[str]":
    """Return the title of each row's panel: its benchmark and, in parentheses, the surrogate."""
    return table["benchmark"] + " (" + table["surrogate"] + ")"


def _select_tasks(
    evidence: Evidence, table: "pd.DataFrame", tasks: TasksOfBenchmark
) -> "pd.DataFrame":
    """Select the rows of some tasks of each benchmark, and add their labels as a column."""
    label_of_task = {}
    for benchmark, places in tasks.items():
        for place in places:
            # Tasks are counted from 0 in `tasks`, and from 1 in the table.
            label_of_task[benchmark, place + 1] = evidence.task_label(benchmark, place)
    keys = zip(table["benchmark"], table["task"], strict=True)
    labels = [label_of_task.get(key) for key in keys]  # None in the rows of other tasks
    return table.assign(label=labels).dropna(subset=["label"])


def _add_interval(table: "pd.DataFrame", column: str) -> "pd.DataFrame":
    """Add the columns that charts draw: `mean`, and `low` and `high` at two standard errors."""
    mean = table[column]
    errors = table["two_standard_errors"]
    return table.assign(mean=mean, low=mean - errors, high=mean + errors)


def _dimensions(landscape: Landscape, item: Slice) -> tuple[Dimension, Dimension]:
    """Return the horizontal and the vertical axis of a slice."""
    space = landscape.benchmark.space
    return Dimension.of_parameter(space[item.x]), Dimension.of_parameter(space[item.y])


def _rename_for_charts(points: "pd.DataFrame") -> "pd.DataFrame":
    """Return the coordinates and values of points, with the column names that charts expect."""
    new_names = {"x_value": "x", "y_value": "y", "objective": "value"}
    return points[list(new_names)].rename(columns=new_names)
