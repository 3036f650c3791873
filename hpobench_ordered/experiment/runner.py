"""The runner: asks a method, evaluates, tells it, and writes the finished run."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hpobench_ordered._parameters import Kind, Parameter
from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.benchmark import Benchmark, Evaluations, Task
from hpobench_ordered.errors import MethodError
from hpobench_ordered.experiment.plan import Cell, select
from hpobench_ordered.experiment.store import (
    CELL_COLUMNS,
    CONFIG_PREFIX,
    FORMAT,
    RUN_METADATA,
    Store,
    Timing,
    package_version,
)
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.protocols import Assignment, Protocol
from hpobench_ordered.registry import load

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one method did on one task.

    Attributes:
        optimiser: Name of the method that ran: the cell's, or what the protocol put in its place.
        task: Index of the task.
        task_name: Its name.
        values: Configurations in the order of asking, coded as values, shape (n, d).
        objective: Objective values in their own units, shape (n,).
        losses: Their losses, shape (n,).
        fallbacks: Suggestions made at random so far because a model failed, shape (n,).
        seconds: Time spent inside the method: when it was made, asked and told.
        is_recorded: Whether the trials are results; not those that only make a history.
    """

    optimiser: str
    task: int
    task_name: str
    values: FloatArray
    objective: FloatArray
    losses: FloatArray
    fallbacks: np.ndarray[Any, np.dtype[np.int64]]
    seconds: float
    is_recorded: bool


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    *,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Run what is not in the store yet.

    Each run is written when it is finished; stopping at any moment loses those in flight alone,
    and calling this again continues.

    Args:
        cells: The runs.
        store: Where results go.
        workers: Number of processes.
        progress: Called with the number of finished runs and of all runs.

    Raises:
        StoreError: The store cannot be written.
        MethodError: A method raised, or suggested something that is no configuration.
    """
    from joblib import Parallel, delayed

    store.prepare()
    missing = select(cells, store.keys())
    done = len(cells) - len(missing)
    report = progress or (lambda done, total: None)
    report(done, len(cells))
    parallel = Parallel(n_jobs=min(workers, max(1, len(missing))), return_as="generator_unordered")
    for _ in parallel(delayed(_run_and_write)(cell, store) for cell in missing):
        done += 1
        report(done, len(cells))


def run_cell(cell: Cell) -> "tuple[pa.Table, Timing]":
    """Run one cell.

    Returns:
        One row a recorded trial, with what identifies the run in the metadata: the same in any
        process. And how long all trials took.
    """
    start = time.perf_counter()
    benchmark = _loaded(cell.source, cell.benchmark, cell.surrogate)
    outcomes = list(
        follow(cell.protocol, benchmark, cell.method, rng=cell.rng, protocol_rng=cell.protocol_rng)
    )
    table = _table(cell, benchmark, [outcome for outcome in outcomes if outcome.is_recorded])
    described = cell.describe()
    timing = Timing(
        key=cell.key,
        **{name: described[name] for name in CELL_COLUMNS},
        suggestions=sum(len(outcome.losses) for outcome in outcomes),
        seconds=time.perf_counter() - start,
        method_seconds=sum(outcome.seconds for outcome in outcomes),
    )
    return table, timing


def follow(
    protocol: Protocol,
    benchmark: Benchmark,
    method: MethodSpec,
    *,
    rng: Callable[[int], np.random.Generator],
    protocol_rng: Callable[[int], np.random.Generator],
) -> Iterator[Outcome]:
    """Let a method do, one after the other, what a protocol gives it to do on a benchmark.

    Args:
        protocol: The protocol.
        benchmark: The benchmark.
        method: The method.
        rng: Makes the generator of the method at a position.
        protocol_rng: Makes the generator of the protocol at a position.

    Yields:
        What was done at each position, recorded or not.

    Raises:
        MethodError: As `optimise`.
    """
    own: list[Evaluations] = []
    for position in range(protocol.length(benchmark)):
        assignment = protocol.assignment(
            benchmark, method, position=position, own=own, rng=protocol_rng(position)
        )
        outcome = optimise(assignment, rng(position))
        task = assignment.task
        own.append(Evaluations(task.name, task.context, outcome.values, outcome.losses))
        yield outcome


def optimise(assignment: Assignment, rng: np.random.Generator) -> Outcome:
    """Let a method optimise one task: ask, evaluate, tell.

    With k simulated workers the method is told the first result when k configurations have been
    asked for, and the next one after every further one; results come in the order of asking.

    Raises:
        MethodError: The method raised, or suggested something that is no configuration.
    """
    spec, task, budget = assignment.method, assignment.task, assignment.budget
    ahead = assignment.workers_simulated - 1
    configs: list[Config] = []
    values = np.empty((budget, task.space.dimension))
    measured = np.empty(budget)
    fallbacks = np.empty(budget, dtype=np.int64)
    inside = _Inside(spec, task)
    with inside.during("when it was made"):
        method = spec.method(
            space=task.space,
            rng=rng,
            history=assignment.history,
            context=dict(task.context),
            budget=budget,
        )
    for turn in range(budget + ahead):
        if turn < budget:
            with inside.during(f"trial {turn + 1}"):
                configs.append(method.ask())
                values[turn] = task.space.row(configs[turn])
            measured[turn] = task.evaluate(configs[turn])
            fallbacks[turn] = method.fallbacks
        finished = turn - ahead
        if finished >= 0:
            with inside.during(f"trial {finished + 1}"):
                method.tell(configs[finished], task.objective.loss(measured[finished]))
    losses = task.objective.losses(measured)
    return Outcome(
        optimiser=spec.name,
        task=task.index,
        task_name=task.name,
        values=values,
        objective=measured,
        losses=losses,
        fallbacks=fallbacks,
        seconds=inside.seconds,
        is_recorded=assignment.is_recorded,
    )


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep linear algebra on one thread.

    The matrices are small: with two threads a suggestion takes several times longer, and the last
    bits of its numbers may differ.
    """
    import scipy.linalg  # noqa: F401  only what is loaded by now can be limited
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield


# -- internals -------------------------------------------------------------------------------------


class _Inside:
    """Context of every call into a method: takes its time, and lets what it raises name it."""

    def __init__(self, spec: MethodSpec, task: Task) -> None:
        self.seconds = 0.0
        self._spec, self._task = spec, task
        self._when, self._start = "", 0.0

    def during(self, when: str) -> Self:
        """The same context, for this call."""
        self._when = when
        return self

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.seconds += time.perf_counter() - self._start
        if isinstance(error, Exception):
            who = f"{self._spec.name} on task {self._task.name!r}, {self._when}"
            raise MethodError(f"{who}: {type(error).__name__}: {error}") from error


@lru_cache(maxsize=1)
def _loaded(source: str, identity: str, surrogate: str) -> Benchmark:
    """The benchmark of the last run, which is mostly the next one's too.

    Args:
        source: What it is loaded by.
        identity: What it is, so that nothing else is given in its place.
        surrogate: Name of the surrogate.
    """
    return load(source, surrogate=surrogate)


def _run_and_write(cell: Cell, store: Store) -> None:
    with one_thread():
        table, timing = run_cell(cell)
    store.write(cell.key, table)
    store.write_timing(timing)


def _table(cell: Cell, benchmark: Benchmark, outcomes: Sequence[Outcome]) -> "pa.Table":
    import pyarrow as pa

    lengths = [len(o.losses) for o in outcomes]
    regrets = [_regret(benchmark.tasks[o.task], o.objective) for o in outcomes]
    columns: dict[str, pa.Array] = {
        "task": pa.array(np.repeat([o.task for o in outcomes], lengths), pa.int32()),
        "task_name": pa.array(np.repeat([o.task_name for o in outcomes], lengths).tolist()),
        "trial": pa.array(np.concatenate([np.arange(1, n + 1) for n in lengths]), pa.int32()),
        "value": pa.array(np.concatenate([o.objective for o in outcomes])),
        "loss": pa.array(np.concatenate([o.losses for o in outcomes])),
        "regret": pa.array(np.concatenate(regrets), from_pandas=True),  # unknown ones are null
        "fallbacks": pa.array(np.concatenate([o.fallbacks for o in outcomes]), pa.int32()),
        "optimiser": pa.array(np.repeat([o.optimiser for o in outcomes], lengths).tolist()),
    }
    values = np.concatenate([o.values for o in outcomes])
    for parameter, coded in zip(benchmark.space.parameters, values.T, strict=True):
        columns[CONFIG_PREFIX + parameter.name] = _native(parameter, coded)
    cell_json = {**cell.describe(), "format": FORMAT, "version": package_version()}
    metadata = {RUN_METADATA: json.dumps(cell_json, sort_keys=True).encode()}
    return pa.table(columns).replace_schema_metadata(metadata)


def _regret(task: Task, objective: FloatArray) -> FloatArray:
    """Regret of objective values (n,); NaN where no best value is known."""
    return np.full(len(objective), np.nan) if task.best_value is None else task.regret(objective)


def _native(parameter: Parameter, coded: FloatArray) -> "pa.Array":
    """Native values of a hyperparameter, choices as text; null where it is inactive, shape (n,)."""
    import pyarrow as pa

    active = pa.array(coded, mask=np.isnan(coded))
    if parameter.choices:
        return pa.array(list(map(str, parameter.choices))).take(active.cast(pa.int32()))
    return active.cast(pa.int64()) if parameter.kind is Kind.INTEGER else active
