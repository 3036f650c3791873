"""The runner: asks a method, evaluates, tells it, and writes the finished run."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered._parameters import Kind
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.benchmark import Benchmark, Evaluations, Task
from hpobench_ordered.errors import MethodError
from hpobench_ordered.experiment.plan import Cell, select
from hpobench_ordered.experiment.store import CONFIG_PREFIX, RUN_METADATA, Store
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.protocols import Assignment
from hpobench_ordered.registry import load
from hpobench_ordered.space import SearchSpace

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one method did on one task.

    Attributes:
        optimiser: Name of the method that ran: the cell's, or what the protocol put in its place.
        task: Index of the task.
        task_name: Its name.
        values: Configurations in the order of evaluation, coded as values, shape (n, d).
        objective: Objective values in their own units, shape (n,).
        losses: Their losses, shape (n,).
        fallbacks: Suggestions made at random so far because a model failed, shape (n,).
    """

    optimiser: str
    task: int
    task_name: str
    values: FloatArray
    objective: FloatArray
    losses: FloatArray
    fallbacks: np.ndarray[Any, np.dtype[np.int64]]


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


def run_cell(cell: Cell) -> "pa.Table":
    """Run one cell; the same cell gives the same table in any process.

    Returns:
        One row a trial, with what identifies the run in the metadata.
    """
    benchmark = load(cell.source, surrogate=cell.surrogate)
    return _table(cell, benchmark.space, list(_outcomes(cell, benchmark)))


def optimise(assignment: Assignment, rng: np.random.Generator) -> Outcome:
    """Let a method optimise one task: ask, evaluate, tell.

    Raises:
        MethodError: The method raised, or suggested something that is no configuration.
    """
    task, spec = assignment.task, assignment.method
    space, objective = task.space, task.objective
    values = np.empty((assignment.budget, space.dimension))
    measured = np.empty(assignment.budget)
    fallbacks = np.empty(assignment.budget, dtype=np.int64)
    with _blame(spec, task, "when it was made"):
        method = spec.method(
            space=space,
            rng=rng,
            history=assignment.history,
            context=dict(task.context),
            budget=assignment.budget,
        )
    for trial in range(assignment.budget):
        with _blame(spec, task, f"trial {trial + 1}"):
            config = method.ask()
            values[trial] = space.row(config)
        measured[trial] = task.evaluate(config)
        with _blame(spec, task, f"trial {trial + 1}"):
            method.tell(config, objective.loss(measured[trial]))
        fallbacks[trial] = method.fallbacks
    losses = objective.losses(measured)
    return Outcome(spec.name, task.index, task.name, values, measured, losses, fallbacks)


# -- internals -------------------------------------------------------------------------------------


@contextmanager
def _blame(spec: MethodSpec, task: Task, when: str) -> Iterator[None]:
    """Turn whatever a method raises, or suggests wrongly, into an error that names it."""
    try:
        yield
    except Exception as error:
        who = f"{spec.name} on task {task.name!r}, {when}"
        raise MethodError(f"{who}: {type(error).__name__}: {error}") from error


def _run_and_write(cell: Cell, store: Store) -> None:
    from threadpoolctl import threadpool_limits

    # The matrices are small: with two threads a suggestion takes several times longer.
    with threadpool_limits(limits=1):
        table = run_cell(cell)
    store.write(cell.key, table)


def _outcomes(cell: Cell, benchmark: Benchmark) -> Iterator[Outcome]:
    own: list[Evaluations] = []
    for position in range(cell.protocol.length(benchmark)):
        assignment = cell.protocol.assignment(benchmark, cell.method, position=position, own=own)
        outcome = optimise(assignment, cell.rng(position))
        task = assignment.task
        own.append(Evaluations(task.name, task.context, outcome.values, outcome.losses))
        yield outcome


def _table(cell: Cell, space: SearchSpace, outcomes: Sequence[Outcome]) -> "pa.Table":
    import pyarrow as pa

    lengths = [len(o.losses) for o in outcomes]
    columns: dict[str, pa.Array] = {
        "task": pa.array(np.repeat([o.task for o in outcomes], lengths), pa.int32()),
        "task_name": pa.array(np.repeat([o.task_name for o in outcomes], lengths).tolist()),
        "trial": pa.array(np.concatenate([np.arange(1, n + 1) for n in lengths]), pa.int32()),
        "value": pa.array(np.concatenate([o.objective for o in outcomes])),
        "loss": pa.array(np.concatenate([o.losses for o in outcomes])),
        "fallbacks": pa.array(np.concatenate([o.fallbacks for o in outcomes]), pa.int32()),
        "optimiser": pa.array(np.repeat([o.optimiser for o in outcomes], lengths).tolist()),
    }
    values = np.concatenate([o.values for o in outcomes])
    for j, parameter in enumerate(space.parameters):
        native = [None if np.isnan(v) else parameter.value(v) for v in values[:, j].tolist()]
        kind = {Kind.FLOAT: pa.float64(), Kind.INTEGER: pa.int64()}.get(parameter.kind)
        text = native if kind else [None if v is None else str(v) for v in native]
        columns[CONFIG_PREFIX + parameter.name] = pa.array(text, kind or pa.string())
    cell_json = {**cell.describe(), "version": version("hpobench-ordered")}
    metadata = {RUN_METADATA: json.dumps(cell_json, sort_keys=True).encode()}
    return pa.table(columns).replace_schema_metadata(metadata)
