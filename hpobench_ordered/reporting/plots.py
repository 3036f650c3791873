"""Charts of the results of an experiment: `hbo.plots.curves(results)` and others.

Each function returns a chart: notebooks show it, its method `save` writes it, and Altair's other
methods restyle it. Results under several protocols are drawn under the one with the most
benchmarks. A `size` is the width and the height of a panel in pixels. A `trial` is counted from 1;
by default it is the last. A `benchmark` may be left out if there is only one.

All functions raise `UnknownNameError` if a name is wrong, and `ExperimentError` if the results
cannot be drawn.

Examples:
    >>> import hpobench_ordered as hbo
    >>> results = hbo.run(
    ...     benchmarks=["forrester"],
    ...     methods=["random-search", "bo"],
    ...     seeds=range(2),
    ...     protocol=hbo.Ordered(trials=3, tasks=2),
    ... )
    >>> chart = hbo.plots.curves(results, "regret", size=(300, 200)).properties(title="my title")
    >>> chart.to_dict()["description"]
    'Curves of the normalised regret of random-search, bo over 3 trials on all, forrester@1.'
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import altair as alt

from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup
from hpobench_ordered.analysis.curves import attainment_curves
from hpobench_ordered.analysis.curves import curves as compute_curves
from hpobench_ordered.analysis.leader_comparison import (
    leader_differences as compute_leader_differences,
)
from hpobench_ordered.analysis.leaderboard import ALL, leaderboard
from hpobench_ordered.analysis.scoring import BenchmarkScores, group_by_protocol
from hpobench_ordered.data.identity import BenchmarkIdentity
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.experiment.api import Results
from hpobench_ordered.reporting import charts
from hpobench_ordered.reporting.charts.evaluations import (
    choose_axes,
    evaluations,
    load_drawable,
    make_panel,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["attainment", "curves", "heatmap", "landscape", "leader_differences", "ranks"]

Size = tuple[float, float]

PANELS_IN_ROW = 4
"""Panels of a landscape in a row."""


def curves(
    results: Results,
    measure: str = "score",
    *,
    benchmark: str | None = None,
    size: Size | None = None,
) -> alt.TopLevelMixin:
    """Draw a measure over trials with its 95 % interval, one panel for each benchmark.

    Args:
        results: The results.
        measure: "score", "regret", "rank" or "value".
        benchmark: A benchmark, whose tasks are drawn, one panel each; "all" for the mean over all
            benchmarks alone; default: that mean and the mean of every benchmark.
        size: The size of a panel.
    """
    scores = score_one_protocol(results)
    frame = _curves_on_first_surrogates(scores)
    methods = _methods_by_rank(scores)
    if benchmark is None:
        return charts.curves(frame, measure=measure, methods=methods, size=size)
    if benchmark == ALL:
        overall = frame[frame["benchmark"] == ALL]
        return charts.curves(overall, measure=measure, methods=methods, size=size)

    name = _find_benchmark(scores, benchmark).benchmark  # with its version
    of_tasks = frame[(frame["benchmark"] == name) & (frame["task"] != "")]
    title = f"{measure} over trials: {name}"
    return charts.curves(
        of_tasks, measure=measure, facet="task", methods=methods, size=size, title=title
    )


def ranks(results: Results, *, size: Size | None = None) -> alt.TopLevelMixin:
    """Draw mean ranks over trials, one panel for each benchmark; 1 is best."""
    return curves(results, "rank", size=size)


def leader_differences(results: Results, *, trial: int | None = None) -> alt.TopLevelMixin:
    """Draw how far the leader, the method of lowest mean rank, is ahead of every other method.

    The differences of mean ranks have intervals.
    """
    group = BenchmarkGroup.for_means(score_one_protocol(results))
    frame = compute_leader_differences(group, trial=trial)
    if not len(frame):
        raise ExperimentError("differences need two methods, and seeds or tasks that differ")
    title = f"differences from the leader over {group.scope}"
    return charts.leader_differences(frame, title=title)


def heatmap(
    results: Results, measure: str = "rank", *, trial: int | None = None
) -> alt.TopLevelMixin:
    """Draw the mean "rank", "regret" or "score" of each method on each benchmark as a table."""
    board = leaderboard(score_one_protocol(results), trial=trial)
    return charts.heatmap(board, measure=measure)


def attainment(
    results: Results, benchmark: str | None = None, *, size: Size | None = None
) -> alt.TopLevelMixin:
    """Draw the regret that half of the runs attain, with quartiles; one panel for each method.

    The regret is normalised: 0 is the best known value, 1 the worst that any method met.
    """
    scores = score_one_protocol(results)
    item = _find_benchmark(scores, benchmark)
    frame = attainment_curves([item])
    if not len(frame):
        raise ExperimentError(f"no best values of {item.benchmark} are known: no regrets")
    title = f"normalised regret that runs attain: {item.benchmark}"
    return charts.attainment(frame, methods=_methods_by_rank(scores), size=size, title=title)


def landscape(
    results: Results,
    benchmark: str | None = None,
    task: str | None = None,
    *,
    x: str | None = None,
    y: str | None = None,
    seed: int | None = None,
    size: Size = (170, 140),
) -> alt.TopLevelMixin:
    """Draw where each method looked in one run, one panel for each method.

    Its evaluations are points on the objective over two hyperparameters; all others are as in the
    best configuration that any run evaluated.

    Args:
        results: The results.
        benchmark: The benchmark.
        task: The name of the task; default: the last.
        x: The hyperparameter of the horizontal axis; default: one that explains much of the losses.
        y: That of the vertical axis; default: the same.
        seed: The run; default: the first.
        size: The size of a panel.
    """
    item = _find_benchmark(score_one_protocol(results), benchmark)
    task_name = item.task_names[-1] if task is None else str(task)
    if task_name not in item.task_names:
        raise UnknownNameError(f"task of {item.benchmark}", task_name, item.task_names)
    task_number = item.tasks[item.task_names.index(task_name)]
    if seed is None:
        seed = item.seed_numbers[0]

    # The evaluations of all runs, as every panel is around the best of them.
    tried = evaluations(
        item,
        results.overview().runs,
        results.joined.configurations,
        methods=item.methods,
        seeds=item.seed_numbers,
    )
    tried = tried[tried["task"] == task_number]
    methods = tried.loc[tried["seed"] == seed, "method"].unique()
    if not len(methods):
        raise ExperimentError(f"there are no evaluations of {item.benchmark} with seed {seed}")

    bench = load_drawable(item)
    if bench is None:
        raise ExperimentError(f"{item.label} cannot be evaluated here, or only slowly")
    axes = choose_axes(bench, [tried], x, y)
    if axes is None:
        raise ExperimentError(
            "a landscape needs two hyperparameters that are active together, and an evaluation "
            "on the task that has not failed"
        )

    panels = [
        make_panel(method, bench.tasks[task_number], tried, axes, method, seed)
        for method in methods
    ]
    rows = []
    for first in range(0, len(panels), PANELS_IN_ROW):
        rows.append(panels[first : first + PANELS_IN_ROW])
    title = f"{item.benchmark}, task {task_name}, seed {seed}"
    return charts.landscape(rows, title=title, size=size)


def score_one_protocol(results: Results) -> list[BenchmarkScores]:
    """Score the finished runs under one protocol, the one with the most benchmarks.

    Raises:
        ExperimentError: No runs can be scored.
    """
    scores, reasons = results.scored()
    if not scores:
        raise ExperimentError(" ".join(reasons) or "no run is finished")
    scores_of_protocols = list(group_by_protocol(scores).values())
    return scores_of_protocols[0]  # the protocol with the most benchmarks is first


def _methods_by_rank(scores: Sequence[BenchmarkScores]) -> list[str]:
    """List all methods by mean rank over all benchmarks.

    This order decides the colours, so that a method has the same colour in every chart.
    """
    # The rows of all benchmarks together come first, sorted by mean rank.
    methods = map(str, leaderboard(scores)["method"])
    return list(dict.fromkeys(methods))


def _first_surrogates(scores: Sequence[BenchmarkScores]) -> dict[str, BenchmarkScores]:
    """Select the scores of each benchmark on its first surrogate, by the benchmark's name."""
    first_of_benchmark: dict[str, BenchmarkScores] = {}
    for item in scores:
        first_of_benchmark.setdefault(item.benchmark, item)
    return first_of_benchmark


def _curves_on_first_surrogates(scores: Sequence[BenchmarkScores]) -> "pd.DataFrame":
    """Compute the curves of each benchmark, on its first surrogate alone, and of all benchmarks."""
    frame = compute_curves(scores)
    surrogates = {name: item.surrogate for name, item in _first_surrogates(scores).items()}
    first_surrogate = frame["benchmark"].astype(str).map(surrogates)
    is_on_first_surrogate = frame["surrogate"].astype(str) == first_surrogate
    is_overall = frame["benchmark"] == ALL  # which has no surrogate
    return frame[is_on_first_surrogate | is_overall]


def _find_benchmark(scores: Sequence[BenchmarkScores], benchmark: str | None) -> BenchmarkScores:
    """Find the scores of a benchmark on its first surrogate.

    Args:
        scores: Scores by benchmark.
        benchmark: Its name with or without its version; None if it is the only one.

    Raises:
        UnknownNameError: There is no such benchmark.
        ExperimentError: It is None, but there are several.
    """
    items = _first_surrogates(scores)
    if benchmark is None and len(items) > 1:
        raise ExperimentError(f"name one of the benchmarks: {', '.join(items)}")
    for name, item in items.items():
        name_without_version = BenchmarkIdentity.parse(name).name
        if benchmark in (None, name, name_without_version):
            return item
    raise UnknownNameError("benchmark of these results", str(benchmark), list(items))
