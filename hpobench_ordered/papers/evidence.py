"""Results of finished runs, read from the store when needed, by comparison of methods."""

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

    The normalised score of each method depends on all of them: the best final loss of any of them
    has the score 0.

    Attributes:
        benchmark: Name of the benchmark.
        methods: Names of the methods; none if the benchmark is only shown.
        protocol: The protocol of the runs; None: that of the paper's setting. If one comparison on
            a benchmark has a protocol, all comparisons on this benchmark must have one.
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

    Attributes:
        benchmark: The benchmark.
        values: Values of the hyperparameters, shape (configurations, hyperparameters).
    """

    benchmark: Benchmark
    values: FloatArray

    @classmethod
    def of(cls, benchmark: Benchmark) -> "Landscape":
        """Choose the configurations of a benchmark to evaluate.

        They are all configurations if the space is discrete, has no conditions and is not larger
        than `MAX_ENUMERATED`. Otherwise they are `SAMPLED` random ones.
        """
        space = benchmark.space
        if space.size <= MAX_ENUMERATED and not space.conditions:
            values_of_parameters = [
                np.arange(parameter.lower, parameter.upper + 1) for parameter in space.parameters
            ]
            grid = np.meshgrid(*values_of_parameters, indexing="ij")
            all_configurations = np.stack([values.ravel() for values in grid], axis=1)
            return cls(benchmark, all_configurations)
        rng = np.random.default_rng(0)  # the same configurations every time
        return cls(benchmark, space.decode(space.sample_unit(rng, SAMPLED)))

    @cached_property
    def objective(self) -> FloatArray:
        """Objective values in their own units, shape (tasks, configurations)."""
        return np.stack([task.evaluate_many(self.values) for task in self.benchmark.tasks])

    @property
    def losses(self) -> FloatArray:
        """The losses, which are lower the better, shape (tasks, configurations)."""
        return self.benchmark.objective.losses(self.objective)

    @property
    def is_complete(self) -> bool:
        """Whether these are all configurations of the search space."""
        return len(self.values) == self.benchmark.space.size

    def column(self, name: str) -> FloatArray:
        """Return the values of one hyperparameter, shape (configurations,)."""
        index = self.benchmark.space.names.index(name)
        return np.asarray(self.values[:, index])


def count_everything(values: FloatArray) -> FloatArray:
    """Return all values, (methods, seeds, tasks, trials): every task counts in means."""
    return values


class Evidence:
    """The results that figures, tables and claims are computed from.

    Args:
        store: The store of the runs.
        cells: The runs on each benchmark.
        surrogates: The surrogates of benchmarks that are not on their default surrogate.
        methods: As in `Paper`: methods that are not registered, by their names in comparisons.
        select_counted: As in `Paper`: selects from the values of all tasks those that are averaged.
        landscape: As in `Paper`: chooses the configurations of a benchmark to show.
    """

    def __init__(
        self,
        store: Store,
        cells: Mapping[str, Sequence[Cell]],
        *,
        surrogates: Mapping[str, str],
        methods: Mapping[str, MethodSpec] = MappingProxyType({}),
        select_counted: Callable[[FloatArray], FloatArray] = count_everything,
        landscape: Callable[[Benchmark], Landscape] = Landscape.of,
    ) -> None:
        self._store = store
        self._cells = cells
        self._methods = methods
        self._select_counted = select_counted
        # What has been read so far: for each benchmark, method and protocol, the "loss" and the
        # "regret" of all runs, of the shape (seeds, tasks, trials).
        self._arrays: dict[tuple[str, str, Protocol | None], dict[str, FloatArray]] = {}
        # Number of random suggestions by method, in the runs that have been read.
        self._fallbacks: Counter[str] = Counter()
        # Functions that load a benchmark and its landscape once, by the name of the benchmark.
        self.benchmark = cache(lambda name: load(name, surrogate=surrogates.get(name)))
        self.landscape = cache(lambda name: landscape(self.benchmark(name)))

    @property
    def folder(self) -> Path:
        """The folder of the reproduction, which contains the store."""
        return self._store.folder.parent

    def cells(self, benchmark: str, method: str) -> tuple[Cell, ...]:
        """Return the runs of a method on a benchmark."""
        name = self._name_in_runs(method)
        return tuple(cell for cell in self._cells[benchmark] if cell.method.name == name)

    def _name_in_runs(self, method: str) -> str:
        """Return the name that a method of a comparison has in runs.

        A method of the paper alone has the name of its spec there; a registered method keeps its
        name.
        """
        if method in self._methods:
            return self._methods[method].name
        return method

    def task_label(self, benchmark: str, task: int) -> str:
        """Return a label such as "3 (1989)": a task's number, from 1 as in papers, and its name.

        The argument `task` is counted from 0.
        """
        name = self.benchmark(benchmark).tasks[task].name
        number = f"{task + 1}"
        has_proper_name = name != str(task)  # other tasks are named after their number from 0
        return f"{number} ({name})" if has_proper_name else number

    def losses(self, comparison: MethodComparison) -> FloatArray:
        """Return the loss of every trial, shape (methods, seeds, tasks, trials)."""
        return self._stack_methods(comparison, "loss")

    def scores(self, comparison: MethodComparison) -> Scores:
        """Normalise the scores among the methods of a comparison, on all tasks."""
        return normalised_scores(self.losses(comparison), comparison.methods)

    def measure(self, comparison: MethodComparison, measure: Measure) -> Scores:
        """Compute a measure of the methods of a comparison, on the tasks that the paper averages.

        Which tasks these are differs by paper: one may leave out the first task, for example, as it
        has no history. The function `select_counted` of the constructor selects the tasks.
        """
        values_of_all_tasks = self._measure_all_tasks(comparison, measure)
        counted_values = self._select_counted(values_of_all_tasks)
        return Scores(comparison.methods, counted_values)

    def _measure_all_tasks(self, comparison: MethodComparison, measure: Measure) -> FloatArray:
        """Compute a measure of each method, seed, task and trial, in this order of the axes."""
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
        """Return a measure of the methods on each task, by the name of the task.

        The paper must average all tasks, so that the first value is that of the first task. If runs
        are on the first tasks alone, only these are returned.
        """
        scores = self.measure(comparison, measure)
        number_of_tasks = scores.values.shape[2]
        tasks = self.benchmark(comparison.benchmark).tasks[:number_of_tasks]
        scores_of_task = {}
        for task in tasks:
            values = scores.values[:, :, [task.index]]  # (methods, seeds, 1, trials)
            scores_of_task[task.name] = Scores(scores.methods, values)
        return scores_of_task

    def counted_losses(self, comparison: MethodComparison) -> FloatArray:
        """Return the losses on the tasks that the paper averages; see `measure`.

        They have the shape (methods, seeds, tasks, trials).
        """
        return self._select_counted(self.losses(comparison))

    def ranks_of_means(self, comparison: MethodComparison) -> Scores:
        """Rank the methods by losses averaged over seeds, on each task that the paper averages.

        In the result the tasks take the place of seeds, so that its errors are over tasks.
        """
        return ranks_of_means(self.counted_losses(comparison), comparison.methods)

    def configurations(self, benchmark: str, method: str) -> "pd.DataFrame":
        """Tabulate the configurations that a method evaluated in all of its runs.

        Returns:
            A row per trial, with the columns seed, task and trial and one per hyperparameter.
        """
        seed_of_key = {cell.key: cell.seed for cell in self.cells(benchmark, method)}
        trials = self._store.configurations(seed_of_key)
        with_seed = trials.assign(seed=trials["key"].map(seed_of_key))
        return with_seed.drop(columns=["key", "value", "loss"])

    def milliseconds(self, benchmark: str, method: str) -> float:
        """Compute the mean CPU time of a suggestion, in ms, over all runs of a method.

        The time in which the method is prepared is included. The result is NaN if no time is
        recorded.
        """
        keys = [cell.key for cell in self.cells(benchmark, method)]
        timings = self._timings[self._timings["key"].isin(keys)]
        seconds = float(timings["method_cpu_seconds"].sum())
        suggestions = float(timings["suggestions"].sum())
        return 1000 * seconds / suggestions if suggestions else float("nan")

    def milliseconds_of_seeds(self, benchmark: str, method: str) -> FloatArray:
        """Compute the mean CPU time of a suggestion, in ms, with each seed, shape (seeds,).

        Seeds are in ascending order. A seed without a recorded time has NaN.
        """
        seed_of_key = {cell.key: cell.seed for cell in self.cells(benchmark, method)}
        timings = self._timings[self._timings["key"].isin(seed_of_key)]
        seeds = timings["key"].map(seed_of_key)
        totals = timings[["method_cpu_seconds", "suggestions"]].groupby(seeds).sum()
        seconds_of_suggestion = totals["method_cpu_seconds"] / totals["suggestions"]
        all_seeds = sorted(set(seed_of_key.values()))
        return np.asarray(1000 * seconds_of_suggestion.reindex(all_seeds))

    def fallbacks(self) -> dict[str, int]:
        """Return how many suggestions of each method were random because its model failed.

        Only runs that have been read so far are counted.
        """
        return dict(self._fallbacks)

    @cached_property
    def _timings(self) -> "pd.DataFrame":
        """Timings of the runs whose CPU time is recorded."""
        timings = self._store.records.timings()
        return timings[timings["method_cpu_seconds"].notna()]

    def _stack_methods(self, comparison: MethodComparison, column: str) -> FloatArray:
        """Return the losses or the regrets of a comparison's methods.

        Runs that have not been read yet are read now.

        Args:
            comparison: The comparison.
            column: "loss" or "regret".

        Returns:
            The numbers, shape (methods, seeds, tasks, trials).
        """
        benchmark = comparison.benchmark
        protocol = comparison.protocol
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
        """Read the losses and regrets of methods into `_arrays`, and count their fallbacks.

        Without a protocol, runs under any protocol are read.
        """
        keys = []
        for method in methods:
            for cell in self.cells(benchmark, method):
                if protocol is None or protocol == cell.protocol:
                    keys.append(cell.key)
        trials = self._store.read(keys)
        names = [self._name_in_runs(method) for method in methods]
        # Each array has the shape (methods, seeds, tasks, trials), the methods in order of `names`.
        arrays, _ = trial_arrays(trials, names, ["loss", "regret"])
        for index, method in enumerate(methods):
            self._arrays[benchmark, method, protocol] = {
                "loss": arrays["loss"][index],
                "regret": arrays["regret"][index],
            }
        self._fallbacks.update(fallback_counts(trials))
