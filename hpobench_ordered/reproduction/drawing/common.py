"""What the figures share: labels of tasks, and scores as a table."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hpobench_ordered.benchmark import Benchmark
from hpobench_ordered.reproduction.evidence import Evidence
from hpobench_ordered.reproduction.paper import Comparison

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
        methods: The methods to list; all without.
    """
    import pandas as pd

    frames = []
    for comparison in comparisons:
        scores = evidence.scores(comparison)
        chosen = [scores.methods.index(m) for m in methods or scores.methods]
        columns = [trial - 1 for trial in trials]
        tasks = range(1, scores.values.shape[2] + 1)
        index = pd.MultiIndex.from_product(
            [
                [comparison.benchmark],
                [evidence.benchmark(comparison.benchmark).surrogate],
                [scores.methods[a] for a in chosen],
                tasks,
                trials,
            ],
            names=["benchmark", "surrogate", "method", "task", "trial"],
        )
        table = {
            "score": scores.mean[chosen][..., columns].ravel(),
            "two_standard_errors": scores.two_standard_errors[chosen][..., columns].ravel(),
        }
        frames.append(pd.DataFrame(table, index=index).reset_index())
    return pd.concat(frames, ignore_index=True)
