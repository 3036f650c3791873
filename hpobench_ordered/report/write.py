"""Writes a report of a store: a summary table, all scores, and a figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.analysis import Scores, TaskMean, loss_array, normalised_scores
from hpobench_ordered.analysis.scores import RANDOM_SEARCH
from hpobench_ordered.errors import ExperimentError, StoreError
from hpobench_ordered.report.figure import draw_scores

if TYPE_CHECKING:
    import pandas as pd

TRIALS_SHOWN = (1, 10, 25)
"""Trials at which the paper shows scores: figures 5, 14 and 15."""


@dataclass(frozen=True, slots=True)
class BenchmarkScores:
    """Scores of all methods on one benchmark.

    Attributes:
        benchmark: Name and version of the benchmark, with the surrogate.
        task_names: Names of the tasks, in order.
        seeds: Number of seeds.
        scores: The scores.
        fallbacks: Suggestions each method made at random because its model failed.
    """

    benchmark: str
    task_names: tuple[str, ...]
    seeds: int
    scores: Scores
    fallbacks: Mapping[str, int]

    @property
    def trials(self) -> tuple[int, ...]:
        """Trials to show: the paper's, as far as there are so many, and the last."""
        last = self.scores.values.shape[-1]
        return tuple(sorted({t for t in TRIALS_SHOWN if t < last} | {last}))

    def notes(self) -> list[str]:
        """What a reader of the scores must know, one sentence each."""
        summary = self.over_tasks(self.trials[-1])
        left_out = summary.tasks - summary.defined
        notes = [
            f"{method} fell back to {count} random suggestions."
            for method, count in self.fallbacks.items()
            if count
        ]
        if left_out:
            notes.append(f"{left_out} tasks left out: no method ends better than random search.")
        return notes

    def over_tasks(self, trial: int) -> TaskMean:
        """Mean over the tasks with history (task 2 and on), or over the only task."""
        first = 1 if len(self.task_names) > 1 else 0
        return self.scores.over_tasks(trial=trial, first_task=first)


@dataclass(frozen=True, slots=True)
class Report:
    """What a report consists of.

    Attributes:
        benchmarks: Scores by benchmark.
        files: The files that were written.
    """

    benchmarks: tuple[BenchmarkScores, ...]
    files: tuple[Path, ...]


def score_benchmarks(results: "pd.DataFrame") -> list[BenchmarkScores]:
    """Score every benchmark in some results.

    Args:
        results: One row a trial, as `Store.read` gives.

    Raises:
        ExperimentError: Random search is missing, or the methods ran on different seeds.
    """
    scored = []
    for (benchmark, surrogate), group in results.groupby(["benchmark", "surrogate"]):
        # The reference first: False is sorted before True.
        methods = sorted(group["method"].unique(), key=lambda m: (m != RANDOM_SEARCH, m))
        label = f"{benchmark} ({surrogate})"
        try:
            scores = normalised_scores(loss_array(group, methods), methods)
        except ExperimentError as error:
            raise ExperimentError(f"{label}: {error}") from None
        tasks = group.drop_duplicates("task").sort_values("task")["task_name"]
        # The count goes on over the trials of a task.
        counted = group.groupby(["method", "seed", "task"])["fallbacks"].max()
        fallbacks = counted.groupby("method").sum().to_dict()
        seeds = group["seed"].nunique()
        scored.append(BenchmarkScores(label, tuple(tasks), seeds, scores, fallbacks))
    return scored


def write_report(results: "pd.DataFrame", folder: Path) -> Report:
    """Write a report: `summary.md`, `scores.csv`, and the figure as PNG and SVG.

    Args:
        results: One row a trial, as `Store.read` gives.
        folder: Where the files go; files of the same names are replaced.

    Raises:
        ExperimentError: The results cannot be scored.
        StoreError: The folder cannot be written.
    """
    scored = score_benchmarks(results)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        summary = folder / "summary.md"
        summary.write_text(_markdown(scored), encoding="utf-8")
        table = folder / "scores.csv"
        _long_table(scored).to_csv(table, index=False)
        figures = draw_scores(scored, trial=1, folder=folder)
    except OSError as error:
        raise StoreError(f"cannot write the report to {folder}: {error}") from None
    return Report(tuple(scored), (summary, table, *figures))


def plus_minus(mean: float, errors: float) -> str:
    """A score with two standard errors, such as "12.3 ± 1.0"."""
    if np.isnan(mean):
        return "-"
    rounded = round(mean, 1) + 0.0  # turns -0.0 into 0.0
    return f"{rounded:.1f}" if np.isnan(errors) else f"{rounded:.1f} ± {errors:.1f}"


def _markdown(scored: Sequence[BenchmarkScores]) -> str:
    lines = [
        "Mean normalised score ± two standard errors over seeds, on the tasks with history.",
        "0: the best method after the last trial; 100: random search after the last trial.",
    ]
    for item in scored:
        lines += ["", f"## {item.benchmark}: {item.seeds} seeds, {len(item.task_names)} tasks", ""]
        lines.append("| method | " + " | ".join(f"trial {t}" for t in item.trials) + " |")
        lines.append("|---" * (len(item.trials) + 1) + "|")
        means = [item.over_tasks(trial) for trial in item.trials]
        for a, method in enumerate(item.scores.methods):
            cells = [plus_minus(m.mean[a], m.two_standard_errors[a]) for m in means]
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
        lines += [line for note in item.notes() for line in ("", note)]
    return "\n".join(lines) + "\n"


def _long_table(scored: Sequence[BenchmarkScores]) -> "pd.DataFrame":
    """All scores, one row for each benchmark, method, task and trial."""
    import pandas as pd

    frames = []
    for item in scored:
        mean, errors = item.scores.mean, item.scores.two_standard_errors
        index = pd.MultiIndex.from_product(
            [
                [item.benchmark],
                item.scores.methods,
                item.task_names,
                range(1, mean.shape[-1] + 1),
            ],
            names=["benchmark", "method", "task", "trial"],
        )
        columns = {"score": mean.ravel(), "two_standard_errors": errors.ravel()}
        frames.append(pd.DataFrame(columns, index=index).reset_index())
    return pd.concat(frames, ignore_index=True)
