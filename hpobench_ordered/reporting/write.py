"""Writes a report of a store: a summary table, all scores, and a figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.analysis import (
    Scores,
    TaskMean,
    fallback_counts,
    loss_array,
    normalised_scores,
)
from hpobench_ordered.analysis.scores import RANDOM_SEARCH
from hpobench_ordered.artifact import write_atomically
from hpobench_ordered.errors import ExperimentError, StoreError
from hpobench_ordered.reporting.figure import draw_scores

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
        left_out: Seeds that some method has not run, and that no score counts.
    """

    benchmark: str
    task_names: tuple[str, ...]
    seeds: int
    scores: Scores
    fallbacks: Mapping[str, int]
    left_out: tuple[int, ...]

    @property
    def title(self) -> str:
        """One line that says what was run."""
        counts = (
            _count(self.seeds, "seed"),
            _count(len(self.task_names), "task"),
            _count(self.scores.values.shape[-1], "trial"),
        )
        return f"{self.benchmark}: {', '.join(counts)}"

    @property
    def trials(self) -> tuple[int, ...]:
        """Trials to show: the paper's, as far as there are so many, and the last."""
        last = self.scores.values.shape[-1]
        return tuple(sorted({t for t in TRIALS_SHOWN if t < last} | {last}))

    def notes(self) -> list[str]:
        """What a reader of the scores must know, one sentence each."""
        summary = self.over_tasks(self.trials[-1])
        undefined = summary.tasks - summary.defined
        notes = [
            f"{method} fell back to {count} random suggestions."
            for method, count in self.fallbacks.items()
            if count
        ]
        if undefined:
            notes.append(
                f"{_count(undefined, 'task')} left out: no method ends better than random search."
            )
        if self.left_out:
            seeds = ", ".join(map(str, self.left_out))
            notes.append(f"Seeds left out, not run by every method: {seeds}.")
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
        unscored: Why others could not be scored, one sentence each.
        files: The files that were written.
    """

    benchmarks: tuple[BenchmarkScores, ...] = field(repr=False)
    unscored: tuple[str, ...]
    files: tuple[Path, ...]


def score_benchmarks(results: "pd.DataFrame") -> tuple[list[BenchmarkScores], list[str]]:
    """Score every benchmark in some results, on the seeds that all methods have run.

    Args:
        results: One row a trial, as `Store.read` gives.

    Returns:
        Scores by benchmark, surrogate and protocol; and why others could not be scored.
    """
    scored, unscored = [], []
    for keys, group in results.groupby(["benchmark", "surrogate", "protocol"]):
        benchmark, surrogate, _ = keys
        try:
            scored.append(_score(f"{benchmark} ({surrogate})", group))
        except ExperimentError as error:
            unscored.append(f"{benchmark} ({surrogate}): {error}.")
    return scored, unscored


def _score(label: str, group: "pd.DataFrame") -> BenchmarkScores:
    # The reference first: False is sorted before True.
    methods = sorted(group["method"].unique(), key=lambda m: (m != RANDOM_SEARCH, m))
    run_by = group.groupby("seed")["method"].nunique()
    complete = run_by.index[run_by == len(methods)]
    left_out = tuple(sorted(set(run_by.index) - set(complete)))
    if not len(complete):
        raise ExperimentError("no seed was run by all of " + ", ".join(methods))
    group = group[group["seed"].isin(complete)]
    scores = normalised_scores(loss_array(group, methods), methods)
    tasks = group.drop_duplicates("task").sort_values("task")["task_name"]
    fallbacks = fallback_counts(group)
    return BenchmarkScores(label, tuple(tasks), len(complete), scores, fallbacks, left_out)


def write_report(results: "pd.DataFrame", folder: Path) -> Report:
    """Write a report: `summary.md`, `scores.csv`, and the figure as PNG and SVG.

    Args:
        results: One row a trial, as `Store.read` gives.
        folder: Where the files go; files of the same names are replaced.

    Raises:
        ExperimentError: Nothing of the results can be scored.
        StoreError: The folder cannot be written.
    """
    scored, unscored = score_benchmarks(results)
    if not scored:
        raise ExperimentError(" ".join(unscored))
    table = _long_table(scored).to_csv(index=False)
    contents = {
        "summary.md": _markdown(scored, unscored).encode(),
        "scores.csv": table.encode(),
        **draw_scores(scored, trial=1),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            write_atomically(folder / name, content)
    except OSError as error:
        raise StoreError(f"cannot write the report to {folder}: {error}") from None
    return Report(tuple(scored), tuple(unscored), tuple(folder / name for name in contents))


def score_rows(item: BenchmarkScores) -> list[tuple[str, ...]]:
    """The summary of a benchmark as a table: a header, then a row a method."""
    means = [item.over_tasks(trial) for trial in item.trials]
    header = ("method", *(f"trial {trial}" for trial in item.trials))
    rows = [
        (method, *(plus_minus(m.mean[a], m.two_standard_errors[a]) for m in means))
        for a, method in enumerate(item.scores.methods)
    ]
    return [header, *rows]


def plus_minus(mean: float, errors: float) -> str:
    """A score with two standard errors, such as "12.3 ± 1.0"."""
    if np.isnan(mean):
        return "-"
    rounded = round(mean, 1) + 0.0  # turns -0.0 into 0.0
    return f"{rounded:.1f}" if np.isnan(errors) else f"{rounded:.1f} ± {errors:.1f}"


def _markdown(scored: Sequence[BenchmarkScores], unscored: Sequence[str]) -> str:
    lines = [
        "Mean normalised score ± two standard errors over seeds, on the tasks with history.",
        "0: the best method after the last trial; 100: random search after the last trial.",
    ]
    for item in scored:
        header, *rows = score_rows(item)
        lines += ["", f"## {item.title}", ""]
        lines += [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows)]
        lines += [line for note in item.notes() for line in ("", note)]
    lines += [line for note in unscored for line in ("", note)]
    return "\n".join(lines) + "\n"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


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
