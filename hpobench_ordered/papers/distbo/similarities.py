"""Similarities of source tasks to the target as a method estimates them, trial by trial.

The store does not hold them, so runs are repeated with the same random numbers; the similarities
are stored in files.

======  ======  ============================================================
symbol  shape   meaning
======  ======  ============================================================
S       scalar  number of runs, one per seed
M       scalar  number of trials
n       scalar  number of source tasks
k       (M, n)  similarity of each source task to the target, by the model that
                was fitted last before a trial; NaN where none was fitted yet
======  ======  ============================================================
"""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.curves import cross_labels
from hpobench_ordered.analysis.samples import two_standard_errors
from hpobench_ordered.benchmarks.registry import load
from hpobench_ordered.data.writing import write_atomically
from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.experiment.runner import list_training_data, make_method_arguments
from hpobench_ordered.papers import charts as paper_charts
from hpobench_ordered.papers.evidence import Comparisons, Evidence, Measure, MethodComparison
from hpobench_ordered.papers.figures import PANEL, mean_curves
from hpobench_ordered.papers.paper import Content
from hpobench_ordered.reporting import charts
from hpobench_ordered.runtime.threads import one_thread


@one_thread()
def compute_similarities(cell: Cell, trials: int) -> FloatArray:
    """Repeat the first trials of a run on its first target, and return similarities k, (trials, n).

    The method must have a function `similarities`, which returns those of its last fit, (n,).
    """
    source = load(str(cell.source), surrogate=cell.surrogate)
    assignment = cell.protocol.assignment(
        source, cell.method, position=0, evaluated=(), rng=cell.protocol_rng(0)
    )
    setting = make_method_arguments(assignment, list_training_data(source, assignment))
    method: Any = cell.method.method(rng=cell.rng(0), **setting)
    task = assignment.task
    similarities_of_trials = []
    for _ in range(trials):
        config = method.ask()
        method.tell(config, task.objective.loss(task.evaluate(config)))
        similarities_of_trials.append(method.similarities())
    return np.stack(similarities_of_trials)


def similarities_of_runs(
    evidence: Evidence, benchmark: str, method: str, trials: int
) -> FloatArray:
    """Return the similarities k of all runs of a method, (S, M, n), from files or computed."""
    folder = evidence.folder / "similarities"
    cells = evidence.cells(benchmark, method)
    return np.stack([read_or_compute(cell, trials, folder) for cell in cells])


def read_or_compute(cell: Cell, trials: int, folder: Path) -> FloatArray:
    """Read the similarities k of a run from its file, which is computed and written if missing."""
    path = folder / f"{cell.key}-{trials}.npy"
    if not path.exists():
        content = BytesIO()
        np.save(content, compute_similarities(cell, trials))
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content.getvalue())
    similarities: FloatArray = np.load(path)
    return similarities


def name_sources(evidence: Evidence, comparison: MethodComparison) -> list[str]:
    """Return the names of the source tasks: all tasks but the only target of the runs."""
    benchmark = comparison.benchmark
    # The runs of all methods have the same target, that of the first method.
    trials = evidence.configurations(benchmark, comparison.methods[0])
    (target,) = trials["task"].unique()
    tasks = evidence.benchmark(benchmark).tasks
    return [task.name for task in tasks if task.index != target]


def similarity_curves(
    evidence: Evidence,
    comparisons: Comparisons,
    *,
    methods: Sequence[str],
    trials: int,
    values: bool,
) -> Content:
    """Draw the mean similarity of each source task over trials, a panel per method.

    Args:
        evidence: The results.
        comparisons: The comparison.
        methods: Its methods that have similarities.
        trials: Number of trials.
        values: Whether the first panel shows the best values of all methods.
    """
    import pandas as pd

    (comparison,) = comparisons
    benchmark = comparison.benchmark
    sources = name_sources(evidence, comparison)
    panels = []
    if values:
        best_values = evidence.measure(comparison, Measure.VALUE)
        panels.append(mean_curves(best_values, Measure.VALUE, name=benchmark))
    for method in methods:
        similarities = similarities_of_runs(evidence, benchmark, method, trials)
        panels.append(_draw_similarities(similarities, sources, method))

    chart = paper_charts.arrange(
        [panel.chart for panel in panels],
        columns=3,
        title=f"{benchmark}: similarity of source tasks to the target",
        shared=not values,
    )
    data = pd.concat([panel.data for panel in panels], ignore_index=True)
    return Content(data.assign(benchmark=benchmark), chart)


def _draw_similarities(similarities: FloatArray, sources: Sequence[str], method: str) -> Content:
    """Draw the similarities of a method, shape (S, M, n), with a curve per source task."""
    mean = similarities.mean(axis=0).T  # (n, M)
    runs_of_source = similarities.transpose(2, 0, 1)  # (n, S, M)
    errors = two_standard_errors(runs_of_source)  # over the runs, (n, M)
    number_of_trials = similarities.shape[1]
    # Curves are told apart by the column `method`, here by source task.
    levels = {"method": sources, "trial": range(1, number_of_trials + 1)}
    table = cross_labels(levels, mean=mean, low=mean - errors, high=mean + errors)
    table = table.assign(benchmark=method, measure="similarity")
    chart = charts.curves(
        table,
        measure="similarity",
        methods=sources,
        bands=False,
        ends=False,
        size=PANEL,
        title=method,
    )
    return Content(table.rename(columns={"method": "source"}).assign(method=method), chart)
