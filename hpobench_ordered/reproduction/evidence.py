"""What finished runs show: read from the store when a figure, table or claim asks for it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.samples import incumbents, trial_arrays
from hpobench_ordered.analysis.scores import (
    Ranks,
    Scores,
    mean_ranks,
    normalised_scores,
    ranks_by_seed,
)
from hpobench_ordered.analysis.scoring import fallback_counts
from hpobench_ordered.core.benchmark import Benchmark
from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.protocols import Protocol
from hpobench_ordered.registry import load
from hpobench_ordered.reproduction.comparison import Comparison

if TYPE_CHECKING:
    import pandas as pd

Runs = tuple[str, str, Protocol | None]
"""A benchmark, a method and the protocol that a comparison names."""

SAMPLED = 1000
"""Number of random configurations of a landscape: as many as the paper evaluated of XGBoost."""

ENUMERATED = 20_000
"""Up to so many configurations, a discrete search space is shown as a whole."""


class Measure(Enum):
    """What claims and curves are about; lower is better.

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
    """Many configurations of a benchmark, evaluated on all of its tasks."""

    benchmark: Benchmark
    values: FloatArray

    @cached_property
    def objective(self) -> FloatArray:
        """Objective values in their own units, shape (T, n)."""
        return np.stack([task.evaluate_many(self.values) for task in self.benchmark.tasks])

    @property
    def losses(self) -> FloatArray:
        """Their losses, shape (T, n)."""
        return self.benchmark.objective.losses(self.objective)

    @property
    def is_complete(self) -> bool:
        """Whether these are all configurations there are."""
        return len(self.values) == self.benchmark.space.size

    def column(self, name: str) -> FloatArray:
        """One hyperparameter of every configuration, shape (n,)."""
        return np.asarray(self.values[:, self.benchmark.space.names.index(name)])

    @classmethod
    def of(cls, benchmark: Benchmark) -> "Landscape":
        """All configurations of a small discrete space, else random ones, always the same."""
        space = benchmark.space
        if space.size <= ENUMERATED and not space.conditions:
            axes = [np.arange(p.lower, p.upper + 1) for p in space.parameters]
            grid = np.meshgrid(*axes, indexing="ij")
            return cls(benchmark, np.stack([axis.ravel() for axis in grid], axis=1))
        rng = np.random.default_rng(0)
        return cls(benchmark, space.decode(space.sample_unit(rng, SAMPLED)))


class Evidence:
    """The results that figures, tables and claims are made from."""

    def __init__(
        self,
        store: Store,
        cells: Sequence[Cell],
        *,
        surrogates: Mapping[str, str],
        evaluated: Mapping[tuple[str, str], Callable[[], FloatArray]] = MappingProxyType({}),
        first_task: int = 0,
        drawn: Mapping[str, str] = MappingProxyType({}),
        pooled: bool = False,
    ) -> None:
        self.first_task = first_task
        self.pooled = pooled
        self._store = store
        self._surrogates = dict(surrogates)
        self._evaluated = dict(evaluated)
        self._cells: dict[tuple[str, str], list[Cell]] = {}
        for cell in cells:
            name = str(cell.source).partition("@")[0]
            self._cells.setdefault((drawn.get(name, name), cell.method.name), []).append(cell)
        self._losses: dict[Runs, FloatArray] = {}
        self._regrets: dict[Runs, FloatArray] = {}
        self._fallbacks: dict[Runs, int] = {}
        self._scores: dict[Comparison, Scores] = {}
        self._benchmarks: dict[str, Benchmark] = {}
        self._landscapes: dict[str, Landscape] = {}

    @property
    def folder(self) -> Path:
        """Where everything of the reproduction goes; the store is inside it."""
        return self._store.folder.parent

    def benchmark(self, name: str) -> Benchmark:
        """The benchmark, on the surrogate it was run on."""
        if name not in self._benchmarks:
            self._benchmarks[name] = load(name, surrogate=self._surrogates.get(name))
        return self._benchmarks[name]

    def cells(self, benchmark: str, method: str) -> tuple[Cell, ...]:
        """The runs of a method on a benchmark."""
        return tuple(self._cells[benchmark, method])

    def task_label(self, benchmark: str, task: int) -> str:
        """Number of a task, from 1 as in papers, and its name if that is another."""
        name = self.benchmark(benchmark).tasks[task].name
        return f"{task + 1}" if name == str(task) else f"{task + 1} ({name})"

    def landscape(self, name: str) -> Landscape:
        """Many configurations of a benchmark with their values.

        Those that the paper's authors evaluated, if the surrogate knows them; else all, or random
        ones.
        """
        if name not in self._landscapes:
            benchmark = self.benchmark(name)
            known = self._evaluated.get((name, benchmark.surrogate))
            self._landscapes[name] = (
                Landscape(benchmark, known()) if known else Landscape.of(benchmark)
            )
        return self._landscapes[name]

    def losses(self, comparison: Comparison) -> FloatArray:
        """Loss of every trial, shape (A, S, T, M)."""
        return self._stacked(comparison, self._losses)

    def measured(self, comparison: Comparison, measure: Measure) -> Scores:
        """A measure of the methods of a comparison."""
        if measure is Measure.SCORE:
            return self.scores(comparison)
        if measure is Measure.RANK:
            return ranks_by_seed(self.losses(comparison), comparison.methods)
        if measure is Measure.VALUE:
            objective = self.benchmark(comparison.benchmark).objective
            best = incumbents(self.losses(comparison))
            return Scores(comparison.methods, objective.losses(best))
        regrets = incumbents(self._stacked(comparison, self._regrets))
        return Scores(comparison.methods, regrets)

    def scores(self, comparison: Comparison) -> Scores:
        """Normalised scores among the methods of a comparison."""
        if comparison not in self._scores:
            losses = self.losses(comparison)
            self._scores[comparison] = normalised_scores(losses, comparison.methods)
        return self._scores[comparison]

    def counted(self, scores: Scores) -> Scores:
        """A measure on the tasks that count; if pooled, every run is a seed of one task."""
        values = scores.values[:, :, self.first_task :]
        if self.pooled:
            values = values.reshape(len(values), -1, 1, values.shape[-1])
        return Scores(scores.methods, values)

    def split(self, benchmark: str, scores: Scores) -> dict[str, Scores]:
        """A measure on the first tasks that count, each by itself, by name."""
        tasks = self.benchmark(benchmark).tasks[self.first_task :]
        return {
            tasks[place].name: Scores(scores.methods, scores.values[:, :, [place]])
            for place in range(scores.values.shape[2])
        }

    def ranks(self, comparison: Comparison) -> Ranks:
        """Ranks among the methods of a comparison, averaged over the tasks with history."""
        losses = self.losses(comparison)
        return mean_ranks(losses, comparison.methods, first_task=self.first_task)

    def best_values(self, benchmark: str, method: str) -> FloatArray:
        """Best objective value so far, in its own units, shape (S, T, M)."""
        losses = self.losses(Comparison(benchmark, (method,)))[0]
        return self.benchmark(benchmark).objective.losses(incumbents(losses))

    def configurations(self, benchmark: str, method: str) -> "pd.DataFrame":
        """The configurations a method tried: seed, task, trial, and a column a hyperparameter."""
        seeds = {cell.key: cell.seed for cell in self._cells[benchmark, method]}
        tried = self._store.configurations(seeds)
        return tried.assign(seed=tried["key"].map(seeds)).drop(columns=["key", "value", "loss"])

    def milliseconds(self, benchmark: str, method: str) -> float:
        """What a method needs for a suggestion, its preparation included; the mean over its runs.

        NaN where no run's time is known.
        """
        timings = self._timings
        chosen = timings[timings["key"].isin([c.key for c in self._cells[benchmark, method]])]
        seconds, suggestions = chosen["method_seconds"].sum(), chosen["suggestions"].sum()
        return 1000 * float(seconds) / float(suggestions) if suggestions else float("nan")

    def fallbacks(self) -> dict[str, int]:
        """Suggestions each method made at random because its model failed, in what was read."""
        totals: dict[str, int] = {}
        for (_, method, _), count in self._fallbacks.items():
            totals[method] = totals.get(method, 0) + count
        return totals

    @cached_property
    def _timings(self) -> "pd.DataFrame":
        return self._store.records.timings()

    def _stacked(self, comparison: Comparison, arrays: Mapping[Runs, FloatArray]) -> FloatArray:
        """Those of the methods of a comparison, shape (A, S, T, M)."""
        name, protocol = comparison.benchmark, comparison.protocol
        missing = [m for m in comparison.methods if (name, m, protocol) not in arrays]
        if missing:
            self._read(name, missing, protocol)
        return np.stack([arrays[name, method, protocol] for method in comparison.methods])

    def _read(self, benchmark: str, methods: Sequence[str], protocol: Protocol | None) -> None:
        cells = [
            cell
            for method in methods
            for cell in self._cells[benchmark, method]
            if protocol in (None, cell.protocol)
        ]
        results = self._store.read(cell.key for cell in cells)
        arrays = trial_arrays(results, methods, ["loss", "regret"])
        fallbacks = fallback_counts(results)
        for place, method in enumerate(methods):
            runs = (benchmark, method, protocol)
            self._losses[runs] = arrays["loss"][place]
            self._regrets[runs] = arrays["regret"][place]
            self._fallbacks[runs] = fallbacks[method]
