"""Similarities of source tasks to the target as a method estimates them, trial by trial.

The store does not hold them, so runs are repeated with the same random numbers; the similarities
are stored in files.

======  ======  ============================================================
symbol  shape   meaning
======  ======  ============================================================
S       scalar  runs: seeds
M       scalar  trials
n       scalar  source tasks
k       (M, n)  similarity to the target of the last fit before every trial;
                NaN where no model was fitted yet
======  ======  ============================================================
"""

from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from hpobench_ordered import plotting
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.curves import cross_labels
from hpobench_ordered.analysis.samples import two_standard_errors
from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.experiment.runner import setting_of, training_data
from hpobench_ordered.files.writing import write_atomically
from hpobench_ordered.registry import load
from hpobench_ordered.reproduction.evidence import Comparison, Evidence, Measure
from hpobench_ordered.reproduction.figures import PANEL, mean_curves
from hpobench_ordered.reproduction.paper import Check, Drawing, Finding
from hpobench_ordered.runtime.threads import one_thread


@one_thread()
def similarities(cell: Cell, trials: int) -> FloatArray:
    """Repeat the first trials of a run on its first target; gives k, shape (trials, n).

    Its method has `similarities()`, those of the last fit, shape (n,).
    """
    source = load(str(cell.source), surrogate=cell.surrogate)
    work = cell.protocol.assignment(
        source, cell.method, position=0, evaluated=(), rng=cell.protocol_rng(0)
    )
    setting = setting_of(work, training_data(source, work))
    method: Any = cell.method.method(rng=cell.rng(0), **setting)
    found = []
    for _ in range(trials):
        config = method.ask()
        method.tell(config, work.task.objective.loss(work.task.evaluate(config)))
        found.append(method.similarities())
    return np.stack(found)


def over_seeds(evidence: Evidence, benchmark: str, method: str, trials: int) -> FloatArray:
    """Similarities k of every run of a method, shape (S, M, n)."""
    cells = evidence.cells(benchmark, method)
    return np.stack([_found(cell, trials, evidence.folder / "similarities") for cell in cells])


def _found(cell: Cell, trials: int, folder: Path) -> FloatArray:
    """Similarities of a run, from a file that is written if missing."""
    path = folder / f"{cell.key}-{trials}.npy"
    if not path.exists():
        content = BytesIO()
        np.save(content, similarities(cell, trials))
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content.getvalue())
    found: FloatArray = np.load(path)
    return found


def _sources(evidence: Evidence, comparison: Comparison) -> list[str]:
    """Names of the source tasks of runs with one target."""
    name, method = comparison.benchmark, comparison.methods[0]
    (target,) = evidence.configurations(name, method)["task"].unique()
    return [task.name for task in evidence.benchmark(name).tasks if task.index != target]


def similarity_curves(
    evidence: Evidence,
    comparisons: Sequence[Comparison],
    *,
    methods: Sequence[str],
    trials: int,
    values: bool,
) -> Drawing:
    """Mean similarity of each source task to the target over trials, a panel per method."""
    import pandas as pd

    (comparison,) = comparisons
    sources = _sources(evidence, comparison)
    charts, frames = [], []
    if values:
        best = evidence.measured(comparison, Measure.VALUE)
        left = mean_curves(best, Measure.VALUE, name=comparison.benchmark)
        charts, frames = [left.figure], [left.data]
    for method in methods:
        found = over_seeds(evidence, comparison.benchmark, method, trials)
        mean = found.mean(axis=0).T
        errors = two_standard_errors(found.transpose(2, 0, 1))
        levels = {"method": sources, "trial": range(1, trials + 1)}
        frame = cross_labels(levels, mean=mean, low=mean - errors, high=mean + errors)
        frame = frame.assign(benchmark=method, measure="similarity")
        chart = plotting.curves(
            frame,
            measure="similarity",
            methods=sources,
            bands=False,
            ends=False,
            size=PANEL,
            title=method,
        )
        charts.append(chart)
        frames.append(frame.rename(columns={"method": "source"}).assign(method=method))
    data = pd.concat(frames, ignore_index=True).assign(benchmark=comparison.benchmark)
    title = f"{comparison.benchmark}: similarity of source tasks to the target"
    return Drawing(plotting.beside(charts, columns=3, title=title, shared=not values), data)


def only_one_finds(finder: str, others: Iterable[str], *, source: int, trials: int) -> Check:
    """Only one method ranks a source task as the most similar one in its first trials.

    Similarities are means over runs and over those of the first trials with a fitted model; the
    finding also counts the runs in which it is the most similar one.
    """

    def check(evidence: Evidence, comparisons: Sequence[Comparison]) -> list[Finding]:
        name, sources = comparisons[0].benchmark, _sources(evidence, comparisons[0])
        findings = []
        for method in (finder, *others):
            by_trial = over_seeds(evidence, name, method, trials)
            runs = by_trial[:, np.isfinite(by_trial).all(axis=(0, 2))].mean(axis=1)
            mean = runs.mean(axis=0)
            numbers = ", ".join(
                f"{task} {value:.2f}" for task, value in zip(sources, mean, strict=True)
            )
            count = np.count_nonzero(runs.argmax(axis=1) == source)
            numbers += f" (the right one first in {count} of {len(runs)} runs)"
            is_found = int(np.argmax(mean)) == source
            findings.append(Finding(method, numbers, is_found == (method == finder)))
        return findings

    return check
