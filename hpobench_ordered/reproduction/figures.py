"""The figures of papers on transfer: tables of the results, drawn by `plotting`.

Each function takes the results and the comparisons of a figure, from top to bottom, and the paper's
choices: trials, methods, tasks (from 0), and `top`, the upper end of the plotted range. The data
contain all tasks, also those that are not drawn.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered import plotting
from hpobench_ordered.analysis.curves import cross_labels
from hpobench_ordered.analysis.landscape import best_indices, colour_ends, visible_indices
from hpobench_ordered.analysis.scores import Scores
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.plotting.axes import PAPER_SCORE
from hpobench_ordered.plotting.landscapes import Dimension, Panel, cells
from hpobench_ordered.plotting.theme import styles
from hpobench_ordered.reproduction.evidence import Comparison, Evidence, Landscape, Measure
from hpobench_ordered.reproduction.paper import Drawing
from hpobench_ordered.space.coded import code_stored

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

Tasks = Mapping[str, Sequence[int]]

PANEL = (300, 230)
"""Width and height of a large panel, in pixels."""


@dataclass(frozen=True, slots=True)
class Slice:
    """One row of landscapes: two hyperparameters of a benchmark on some tasks."""

    benchmark: str
    x: str
    y: str
    tasks: tuple[int, ...]
    crosses: int = 10


def score_table(
    evidence: Evidence, comparisons: Iterable[Comparison], trials: Sequence[int]
) -> "pd.DataFrame":
    """Mean scores with two standard errors: one row per benchmark, method, task and trial."""
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
        mean, errors = scores.mean[..., columns], scores.two_standard_errors[..., columns]
        frames.append(cross_labels(levels, score=mean, two_standard_errors=errors))
    return pd.concat(frames, ignore_index=True)


def bars(
    evidence: Evidence,
    comparisons: Sequence[Comparison],
    *,
    trial: int,
    tops: Mapping[str, float],
    tasks: Tasks,
) -> Drawing:
    """Bars by task after a trial, one row per benchmark."""
    table = score_table(evidence, comparisons, [trial])
    shown = _means(_on_tasks(evidence, table, tasks), "score")
    shown = shown.assign(panel=_on_surrogate(shown), top=shown["benchmark"].map(tops))
    title = f"normalised score after trial {trial}"
    chart = plotting.by_task(
        shown.assign(task=shown["label"]), bars=True, columns=1, size=(820, 150), title=title
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
    """Points by task with history: one panel per benchmark and trial, `columns` in a row."""
    table = score_table(evidence, comparisons, trials)
    table = table[table["method"].isin(methods)]
    shown = table[table["task"] > 1].sort_values("trial", kind="stable")
    panels = _on_surrogate(shown) + ", trial " + shown["trial"].astype(str)
    frame = _means(shown, "score").assign(panel=panels)
    frame["top"] = 1.15 * frame.groupby("panel")["mean"].transform("max").clip(lower=1.0)
    title = "normalised score by task"
    chart = plotting.by_task(frame, bars=False, columns=columns, size=(215, 140), title=title)
    return Drawing(chart, table)


def curves(
    evidence: Evidence, comparisons: Sequence[Comparison], *, tasks: Tasks, top: float
) -> Drawing:
    """The mean score over trials, one row per benchmark, one panel per task."""
    trials = range(1, evidence.scores(comparisons[0]).values.shape[-1] + 1)
    table = score_table(evidence, comparisons, trials)
    shown = _means(_on_tasks(evidence, table, tasks), "score")
    shown = shown.assign(measure=PAPER_SCORE, panel=shown["benchmark"] + ": task " + shown["label"])
    shown["row"] = shown["benchmark"].map(list(tasks).index)
    chart = plotting.curves(
        shown.sort_values(["row", "task"], kind="stable"),
        measure=PAPER_SCORE,
        facet="panel",
        columns=max(map(len, tasks.values())),
        methods=comparisons[0].methods,
        bands=False,
        top=top,
        title="normalised score over trials",
    )
    return Drawing(chart, table)


def rank_curves(
    evidence: Evidence, comparisons: Sequence[Comparison], *, methods: Sequence[str]
) -> Drawing:
    """Mean ranks among all methods over trials ± two standard errors, one panel per benchmark."""
    import pandas as pd

    frames = []
    for comparison in comparisons:
        ranks = evidence.ranks(comparison)
        chosen = [ranks.methods.index(method) for method in methods]
        mean, errors = ranks.mean[chosen], ranks.two_standard_errors[chosen]
        trials = range(1, mean.shape[-1] + 1)
        levels = {"benchmark": [comparison.benchmark], "method": methods, "trial": trials}
        frames.append(cross_labels(levels, mean_rank=mean, two_standard_errors=errors))
    table = pd.concat(frames, ignore_index=True)
    surrogates = {one.benchmark: evidence.benchmark(one.benchmark).surrogate for one in comparisons}
    frame = table.assign(surrogate=table["benchmark"].map(surrogates), measure="rank")
    frame = _means(frame.assign(panel=_on_surrogate(frame)), "mean_rank")
    title = f"mean rank of {len(comparisons[0].methods)} methods over trials"
    order = comparisons[0].methods
    chart = plotting.curves(frame, measure="rank", facet="panel", methods=order, title=title)
    return Drawing(chart, table)


def progress(
    evidence: Evidence,
    comparisons: Sequence[Comparison],
    *,
    measures: Sequence[Measure] = (Measure.REGRET, Measure.RANK),
    by_task: bool = False,
    times: bool = False,
    over_runs: bool = False,
) -> Drawing:
    """Means after every trial with two standard errors: one row of panels per comparison.

    A column per measure; `by_task` makes a row of each task, and `times` adds the methods' own
    time. Errors are over seeds; `over_runs`, over runs, and ranks have one standard deviation.
    """
    import pandas as pd

    rows: dict[str, list[alt.TopLevelMixin]] = {}
    frames, names = [], _names(comparisons)
    for comparison, measure in itertools.product(comparisons, measures):
        parts = {"mean": evidence.measured(comparison, measure)}
        if by_task:
            parts = evidence.by_task(comparison, measure)
        for part, chosen in parts.items():
            name = f"{names[comparison]}, {part}"
            deviations = over_runs and measure is Measure.RANK
            panel = mean_curves(chosen, measure, name=name, deviations=deviations)
            rows.setdefault(name, []).append(panel.figure)
            frames.append(panel.data)
    for comparison in comparisons if times else ():
        methods, name = comparison.methods, f"{names[comparison]}, mean"
        taken = [evidence.milliseconds(comparison.benchmark, method) for method in methods]
        frame = pd.DataFrame({"method": methods, "milliseconds": taken})
        rows[name].append(plotting.times(frame, methods=methods, title="time"))
        frames.append(frame.assign(benchmark=name, measure="time"))
    title = f"after every trial, mean over {'runs' if over_runs else 'seeds'}"
    data = pd.concat(frames, ignore_index=True)
    data = data.astype({"trial": "Int64"})  # rows of times have no trial
    panels = [*itertools.chain(*rows.values())]
    shared = len({item.methods for item in comparisons}) == 1
    chart = plotting.beside(panels, columns=len(measures) + times, title=title, shared=shared)
    return Drawing(chart, data)


def mean_curves(
    scores: Scores, measure: Measure, *, name: str, deviations: bool = False
) -> Drawing:
    """One panel of `progress`: means with two standard errors over seeds.

    Or with one standard deviation over seeds and tasks.
    """
    trials = range(1, scores.values.shape[-1] + 1)
    means = [scores.over_tasks(trial=trial) for trial in trials]
    mean = np.stack([found.mean for found in means], axis=-1)
    errors = np.stack([found.two_standard_errors for found in means], axis=-1)
    if deviations:
        runs = scores.values.reshape(len(mean), -1, mean.shape[-1])
        errors = runs.std(axis=1, ddof=1) if runs.shape[1] > 1 else np.full(mean.shape, np.nan)
    low = mean - errors
    if (mean >= 0).all():  # keep bands visible on a logarithmic axis
        low = np.maximum(low, mean[mean > 0].min(initial=np.inf) / 1.1)
    levels = {"method": scores.methods, "trial": trials}
    frame = cross_labels(levels, mean=mean, low=np.minimum(low, mean), high=mean + errors)
    frame = frame.assign(benchmark=name, measure=measure.value)
    label = f"mean {measure.value}"
    labelled, methods = frame.assign(measure=label), scores.methods
    chart = plotting.curves(
        labelled, measure=label, methods=methods, ends=False, size=PANEL, title=name
    )
    return Drawing(chart, frame)


def _names(comparisons: Sequence[Comparison]) -> dict[Comparison, str]:
    """Unique names of comparisons: the benchmark, with the first method if necessary."""
    benchmarks = [item.benchmark for item in comparisons]
    return {
        item: item.benchmark
        if benchmarks.count(item.benchmark) == 1
        else f"{item.benchmark}: {item.methods[0]} and others"
        for item in comparisons
    }


def landscapes(
    evidence: Evidence,
    _: Sequence[Comparison],
    *,
    slices: Sequence[Slice],
    common_scale: bool = True,
) -> Drawing:
    """Configurations coloured by value, the best on top and crossed, one row per slice.

    With a common scale all panels of a row share their colours.
    """
    import pandas as pd

    rows: list[list[Panel]] = []
    frames = []
    for item in slices:
        landscape = evidence.landscape(item.benchmark)
        x, y = _axes(landscape, item)
        objective, whole = landscape.benchmark.objective, landscape.is_complete
        maximised = objective.direction is Direction.MAXIMIZE
        rows.append([])
        for task in item.tasks:
            frames.append(_seen(landscape, item, task))
            dots = _dots(frames[-1])
            grid = dots.pivot(index="y", columns="x", values="value") if whole else None
            scale = list(item.tasks) if common_scale else [task]
            panel = Panel(
                f"{item.benchmark}: task {evidence.task_label(item.benchmark, task)}",
                x,
                y,
                values=dots if grid is None else cells(grid.to_numpy(), x, y),
                value=objective.name,
                domain=colour_ends(landscape.losses[scale], maximised=maximised),
                maximised=maximised,
                crosses=dots[frames[-1]["crossed"]],
            )
            rows[-1].append(panel)
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
    """Where methods evaluated, over all seeds: one row per method.

    Each view is a column: a task, from 0, and a number of first trials.
    """
    import pandas as pd

    landscape = evidence.landscape(item.benchmark)
    x, y = _axes(landscape, item)
    rows: list[list[Panel]] = []
    frames = []
    for method in methods:
        tried = evidence.configurations(item.benchmark, method)
        space = landscape.benchmark.space
        coded = code_stored(tried, [space[item.x], space[item.y]])
        tried = tried.assign(method=method, x=coded[:, 0], y=coded[:, 1])
        rows.append([])
        for task, trials in views:
            seen = tried[(tried["task"] == task) & (tried["trial"] <= trials)]
            frames.append(seen[["seed", "task", "trial", x.name, y.name, "method"]])
            best = _seen(landscape, item, task)
            what = "first evaluation" if trials == 1 else f"first {trials} evaluations"
            panel = Panel(
                f"{method}, task {evidence.task_label(item.benchmark, task)}\n{what}",
                x,
                y,
                crosses=_dots(best[best["crossed"]]),
                points=seen[["seed", "trial", "x", "y"]],
                colour=styles(methods)[method].colour,
            )
            rows[-1].append(panel)
    table = pd.concat(frames, ignore_index=True).drop_duplicates()
    chart = plotting.landscape(rows, title=f"where methods evaluated: {item.benchmark}")
    return Drawing(chart, table.assign(task=table["task"] + 1))


def illustration(evidence: Evidence, comparisons: Sequence[Comparison]) -> Drawing:
    """The objective of every task of a benchmark with one hyperparameter."""
    import pandas as pd

    landscape = evidence.landscape(comparisons[0].benchmark)
    (name,) = landscape.benchmark.space.names
    x = landscape.column(name)
    frames = [
        pd.DataFrame({"method": task.name, "x": x, "value": values})
        for task, values in zip(landscape.benchmark.tasks, landscape.objective, strict=True)
    ]
    data = pd.concat(frames, ignore_index=True).sort_values(["method", "x"], ignore_index=True)
    chart = plotting.functions(data, x=name, title=f"{landscape.benchmark.name}: every task")
    return Drawing(chart, data.rename(columns={"method": "task", "x": name}))


def _on_surrogate(table: "pd.DataFrame") -> "pd.Series[str]":
    return table["benchmark"] + " (" + table["surrogate"] + ")"


def _on_tasks(evidence: Evidence, table: "pd.DataFrame", tasks: Tasks) -> "pd.DataFrame":
    """The rows of some tasks, with task labels."""
    labels = {
        (name, task + 1): evidence.task_label(name, task) for name in tasks for task in tasks[name]
    }
    keys = zip(table["benchmark"], table["task"], strict=True)
    return table.assign(label=[labels.get(key) for key in keys]).dropna(subset=["label"])


def _means(table: "pd.DataFrame", number: str) -> "pd.DataFrame":
    """Add the columns of charts: mean, low and high."""
    mean, errors = table[number], table["two_standard_errors"]
    return table.assign(mean=mean, low=mean - errors, high=mean + errors)


def _axes(landscape: Landscape, item: Slice) -> tuple[Dimension, Dimension]:
    space = landscape.benchmark.space
    return Dimension.of_parameter(space[item.x]), Dimension.of_parameter(space[item.y])


def _seen(landscape: Landscape, item: Slice, task: int) -> "pd.DataFrame":
    """The points of a task in the plotted range, one per row, and whether each is crossed."""
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


def _dots(seen: "pd.DataFrame") -> "pd.DataFrame":
    columns = {"x_value": "x", "y_value": "y", "objective": "value"}
    return seen[list(columns)].rename(columns=columns)
