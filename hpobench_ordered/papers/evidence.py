"""Results of finished runs, read from the store when needed, by comparison of methods.

Arrays have the shape (A, S, T, M): methods, seeds, tasks, trials.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.samples import incumbents, trial_arrays
from hpobench_ordered.analysis.scores import (
    Scores,
    normalised_scores,
    ranks_by_seed,
    ranks_of_means,
)
from hpobench_ordered.analysis.scoring import fallback_counts
from hpobench_ordered.benchmarks.registry import load
from hpobench_ordered.data.benchmark import Benchmark
from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.experiment.protocols import Protocol
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.methods.base import MethodSpec

if TYPE_CHECKING:
    import pandas as pd

SAMPLED = 1000
"""Number of random configurations of a landscape, as many as the paper evaluated for XGBoost."""

MAX_ENUMERATED = 20_000
"""Size of the largest discrete search space of which all configurations are shown."""


@dataclass(frozen=True, slots=True)
class MethodComparison:
    """Methods that are compared on one benchmark.

    The normalised score of each depends on all of them: 0 is the best one's final performance.
    Without a protocol they are run in the paper's setting; if one comparison of a benchmark names
    its protocol, all comparisons on that benchmark must.
    """

    benchmark: str
    methods: tuple[str, ...] = ()
    protocol: Protocol | None = None


Comparisons = Sequence[MethodComparison]


class Measure(Enum):
    """Measures of claims and curves; lower is better.

    SCORE: Normalised among the methods of a comparison.
    REGRET: Distance of the best value so far from the best one known, in the objective's own units.
    RANK: Among the methods of a comparison, task by task and seed by seed.
    VALUE: Best value so far in the objective's own units, for curves: higher may be better.
    """

    SCORE = "score"
    REGRET = "regret"
    RANK = "rank"
    VALUE = "best value"


@dataclass(frozen=True)
class Landscape:
    """Many configurations of a benchmark, evaluated on all of its tasks.

    `values` are the configurations, shape (n, d).
    """

    benchmark: Benchmark
    values: FloatArray

    @classmethod
    def of(cls, benchmark: Benchmark) -> "Landscape":
        """Choose the configurations: all of a small discrete space, else a fixed random sample."""
        space = benchmark.space
        if space.size <= MAX_ENUMERATED and not space.conditions:
            axes = [np.arange(p.lower, p.upper + 1) for p in space.parameters]
            grid = np.meshgrid(*axes, indexing="ij")
            return cls(benchmark, np.stack([axis.ravel() for axis in grid], axis=1))
        rng = np.random.default_rng(0)
        return cls(benchmark, space.decode(space.sample_unit(rng, SAMPLED)))

    @cached_property
    def objective(self) -> FloatArray:
        """Objective values in their own units, shape (T, n)."""
        return np.stack([task.evaluate_many(self.values) for task in self.benchmark.tasks])

    @property
    def losses(self) -> FloatArray:
        """The losses, shape (T, n)."""
        return self.benchmark.objective.losses(self.objective)

    @property
    def is_complete(self) -> bool:
        """Whether these are all configurations of the search space."""
        return len(self.values) == self.benchmark.space.size

    def column(self, name: str) -> FloatArray:
        """The values of one hyperparameter, shape (n,)."""
        return np.asarray(self.values[:, self.benchmark.space.names.index(name)])


def count_everything(values: FloatArray) -> FloatArray:
    """Return a quantity, (A, S, T, M), unchanged: all tasks count."""
    return values


class Evidence:
    """The results that figures, tables and claims are computed from.

    `cells` are the runs by benchmark, `surrogates` the surrogates where not the default; `methods`,
    `counted` and `landscape` are those of `Paper`.
    """

    def __init__(
        self,
        store: Store,
        cells: Mapping[str, Sequence[Cell]],
        *,
        surrogates: Mapping[str, str],
        methods: Mapping[str, MethodSpec] = MappingProxyType({}),
        counted: Callable[[FloatArray], FloatArray] = count_everything,
        landscape: Callable[[Benchmark], Landscape] = Landscape.of,
    ) -> None:
        self._store = store
        self._cells = cells
        self._methods = methods
        self._counted = counted
        # Loss and regret of all runs of a method: by benchmark, method and protocol, then by
        # name, shape (S, T, M).
        self._arrays: dict[tuple[str, str, Protocol | None], dict[str, FloatArray]] = {}
        self._fallbacks: Counter[str] = Counter()
        self.benchmark = cache(lambda name: load(name, surrogate=surrogates.get(name)))
        self.landscape = cache(lambda name: landscape(self.benchmark(name)))

    @property
    def folder(self) -> Path:
        """The folder of the reproduction, which contains the store."""
        return self._store.folder.parent

    def cells(self, benchmark: str, method: str) -> tuple[Cell, ...]:
        """The runs of a method on a benchmark, or of the one that stands for it."""
        name = self._name_in_runs(method)
        return tuple(cell for cell in self._cells[benchmark] if cell.method.name == name)

    def _name_in_runs(self, method: str) -> str:
        """Return the name under which a method of a comparison is run."""
        return self._methods[method].name if method in self._methods else method

    def task_label(self, benchmark: str, task: int) -> str:
        """Return a task's number, from 1 as in papers, with its name if it has a proper one.

        The name of a task without a proper one is its number from 0.
        """
        name = self.benchmark(benchmark).tasks[task].name
        return f"{task + 1}" if name == str(task) else f"{task + 1} ({name})"

    def losses(self, comparison: MethodComparison) -> FloatArray:
        """Loss of every trial, shape (A, S, T, M)."""
        return self._stack_methods(comparison, "loss")

    def scores(self, comparison: MethodComparison) -> Scores:
        """Normalised scores among the methods of a comparison, on all tasks."""
        return normalised_scores(self.losses(comparison), comparison.methods)

    def measure(self, comparison: MethodComparison, measure: Measure) -> Scores:
        """A measure of the methods of a comparison, on the tasks that count."""
        values = self._compute(comparison, measure)
        return Scores(comparison.methods, self._counted(values))

    def _compute(self, comparison: MethodComparison, measure: Measure) -> FloatArray:
        """A measure of the methods of a comparison, on all tasks, shape (A, S, T, M)."""
        match measure:
            case Measure.SCORE:
                return self.scores(comparison).values
            case Measure.RANK:
                return ranks_by_seed(self.losses(comparison), comparison.methods).values
            case Measure.VALUE:
                objective = self.benchmark(comparison.benchmark).objective
                best_losses = incumbents(self.losses(comparison))
                return objective.values(best_losses)
            case Measure.REGRET:
                return incumbents(self._stack_methods(comparison, "regret"))

    def measure_by_task(self, comparison: MethodComparison, measure: Measure) -> dict[str, Scores]:
        """Return a measure of the methods on each task, by its name; all tasks must count."""
        scores = self.measure(comparison, measure)
        number_of_tasks = scores.values.shape[2]
        tasks = self.benchmark(comparison.benchmark).tasks[:number_of_tasks]
        return {
            task.name: Scores(scores.methods, scores.values[:, :, [task.index]]) for task in tasks
        }

    def counted_losses(self, comparison: MethodComparison) -> FloatArray:
        """Loss of every trial on the tasks that count, shape (A, S, T, M)."""
        return self._counted(self.losses(comparison))

    def ranks_of_means(self, comparison: MethodComparison) -> Scores:
        """Rank the methods by losses averaged over seeds, on each task that counts.

        In the result, errors are over tasks: the tasks take the place of seeds.
        """
        return ranks_of_means(self.counted_losses(comparison), comparison.methods)

    def configurations(self, benchmark: str, method: str) -> "pd.DataFrame":
        """Tabulate what a method tried: seed, task, trial, and a column per hyperparameter."""
        seed_of_key = {cell.key: cell.seed for cell in self.cells(benchmark, method)}
        trials = self._store.configurations(seed_of_key)
        with_seed = trials.assign(seed=trials["key"].map(seed_of_key))
        return with_seed.drop(columns=["key", "value", "loss"])

    def milliseconds(self, benchmark: str, method: str) -> float:
        """Mean CPU time of a suggestion over all runs of a method, its preparation included.

        NaN if none is recorded.
        """
        keys = [cell.key for cell in self.cells(benchmark, method)]
        timings = self._timings[self._timings["key"].isin(keys)]
        seconds = float(timings["method_cpu_seconds"].sum())
        suggestions = float(timings["suggestions"].sum())
        return 1000 * seconds / suggestions if suggestions else float("nan")

    def milliseconds_of_seeds(self, benchmark: str, method: str) -> FloatArray:
        """Mean CPU time of a suggestion of a method with each seed, in ascending order, shape (S,).

        NaN for a seed if none is recorded.
        """
        seed_of_key = {cell.key: cell.seed for cell in self.cells(benchmark, method)}
        timings = self._timings[self._timings["key"].isin(seed_of_key)]
        seeds = timings["key"].map(seed_of_key)
        totals = timings[["method_cpu_seconds", "suggestions"]].groupby(seeds).sum()
        seconds_of_suggestion = totals["method_cpu_seconds"] / totals["suggestions"]
        return np.asarray(1000 * seconds_of_suggestion.reindex(sorted(set(seed_of_key.values()))))

    def fallbacks(self) -> dict[str, int]:
        """Number of suggestions by method that were random because its model failed."""
        return dict(self._fallbacks)

    @cached_property
    def _timings(self) -> "pd.DataFrame":
        """Timings of the runs whose CPU time is recorded."""
        timings = self._store.records.timings()
        return timings[timings["method_cpu_seconds"].notna()]

    def _stack_methods(self, comparison: MethodComparison, column: str) -> FloatArray:
        """Return the losses or the regrets of a comparison's methods, (A, S, T, M).

        Runs that have not been read yet are read now.
        """
        benchmark, protocol = comparison.benchmark, comparison.protocol
        missing = [
            method
            for method in comparison.methods
            if (benchmark, method, protocol) not in self._arrays
        ]
        if missing:
            self._read(benchmark, missing, protocol)
        arrays = [self._arrays[benchmark, method, protocol] for method in comparison.methods]
        return np.stack([array[column] for array in arrays])

    def _read(self, benchmark: str, methods: Sequence[str], protocol: Protocol | None) -> None:
        """Read losses and regrets of all runs of methods, under one protocol or all (None).

        They are kept by benchmark, method and protocol; fallbacks are counted.
        """
        keys = []
        for method in methods:
            for cell in self.cells(benchmark, method):
                if protocol in (None, cell.protocol):
                    keys.append(cell.key)
        trials = self._store.read(keys)
        names = [self._name_in_runs(method) for method in methods]
        arrays, _ = trial_arrays(trials, names, ["loss", "regret"])
        for place, method in enumerate(methods):
            self._arrays[benchmark, method, protocol] = {
                column: array[place] for column, array in arrays.items()
            }
        self._fallbacks.update(fallback_counts(trials))
