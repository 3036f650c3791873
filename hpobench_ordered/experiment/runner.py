"""The runner: runs one cell by asking, evaluating and telling.

A method gets its own copies, so that changing them does not affect other runs.
"""

import pickle
import reprlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np

from hpobench_ordered._typing import Config
from hpobench_ordered.benchmarks.registry import load
from hpobench_ordered.data.benchmark import Benchmark, Task
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.data.task_data import TaskData
from hpobench_ordered.errors import (
    BenchmarkFailedError,
    InvalidConfigError,
    InvalidSuggestionError,
    MethodError,
    SuggestionTimeoutError,
)
from hpobench_ordered.experiment.outcome import Outcome
from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.experiment.protocols import Assignment, Protocol
from hpobench_ordered.experiment.records import Record
from hpobench_ordered.methods.base import Method, MethodSpec
from hpobench_ordered.runtime.child import is_child, step
from hpobench_ordered.runtime.clocks import clock_stopped_by_imports, cpu_clock
from hpobench_ordered.runtime.machine import PACKAGE, package_versions


def run_cell(cell: Cell, *, time_limit: float | None = None) -> tuple[list[Outcome], Record]:
    """Make the run that a cell describes: of a method on a benchmark, with a seed and a protocol.

    Returns:
        What the method did on each task; and how long the run took, a line of the store's timings
        (`TIMING_COLUMNS`).

    Raises:
        MethodError: The run failed.
    """
    start = perf_counter()
    benchmark = load_source(cell)
    outcomes_in_order = follow(
        cell.protocol,
        benchmark,
        cell.method,
        rng=cell.rng,
        protocol_rng=cell.protocol_rng,
        time_limit=time_limit,
    )
    try:
        outcomes = list(outcomes_in_order)
    except (MethodError, KeyboardInterrupt):
        raise
    except BaseException as error:  # not from the method, whose errors are MethodErrors
        message = f"{cell.benchmark}: {describe_error(error)}"
        raise BenchmarkFailedError(message) from error

    timing = {
        "key": cell.key,
        **cell.describe(),
        "suggestions": sum(len(outcome.losses) for outcome in outcomes),
        "seconds": perf_counter() - start,
        "method_cpu_seconds": sum(outcome.cpu_seconds for outcome in outcomes),
        "version": package_versions()[PACKAGE],
    }
    return outcomes, timing


def load_source(cell: Cell) -> Benchmark:
    """Return the benchmark of a cell, which holds it or names the source to load it from."""
    if isinstance(cell.source, Benchmark):
        return cell.source
    return _load_benchmark(cell.source, cell.benchmark, cell.surrogate)


def follow(
    protocol: Protocol,
    benchmark: Benchmark,
    method: MethodSpec,
    *,
    rng: Callable[[int], np.random.Generator],
    protocol_rng: Callable[[int], np.random.Generator],
    time_limit: float | None = None,
) -> Iterator[Outcome]:
    """Follow a protocol: let a method optimise its tasks, one after another.

    Args:
        protocol: Decides which task is next, and what the method may see.
        benchmark: The benchmark.
        method: The method.
        rng: Makes the generator of the method at a position in the sequence.
        protocol_rng: Makes the generator of the protocol at a position.
        time_limit: Seconds that one call into the method may take; None: no limit.

    Yields:
        What the method did on each task.
    """
    evaluated: list[Evaluations] = []
    for position in range(protocol.length(benchmark)):
        assignment = protocol.assignment(
            benchmark, method, position=position, evaluated=evaluated, rng=protocol_rng(position)
        )
        data = list_training_data(benchmark, assignment)
        outcome = optimise(assignment, rng(position), data=data, time_limit=time_limit)
        evaluated.append(assignment.task.evaluated(outcome.values, outcome.objective))
        yield outcome


def list_training_data(benchmark: Benchmark, assignment: Assignment) -> tuple[TaskData | None, ...]:
    """List the training data of each task in the history and, last, of the task to optimise.

    An entry is None if the training data of its task are unknown. The tuple is empty if the method
    does not use training data.
    """
    if not assignment.method.uses_data:
        return ()
    tasks = [benchmark.task(evaluations.task) for evaluations in assignment.history]
    tasks.append(assignment.task)
    return tuple(task.data for task in tasks)


@clock_stopped_by_imports()
def optimise(
    assignment: Assignment,
    rng: np.random.Generator,
    *,
    data: Sequence[TaskData | None] = (),
    time_limit: float | None = None,
) -> Outcome:
    """Let a method optimise one task: ask, evaluate, tell.

    With k simulated workers, k configurations are asked for before the first result is told. Then
    each further configuration is followed by the next result, in the order of asking. The loop has
    one turn per configuration, and k - 1 further turns, in which only results are told.

    Args:
        assignment: The method, the task, its history and the budget.
        rng: Random generator of the method.
        data: Training data of the history's tasks and, last, of the task.
        time_limit: Seconds that one call into the method may take; None: no limit.

    Raises:
        MethodError: The method fails, or suggests an invalid configuration.
    """
    spec = assignment.method
    task = assignment.task
    budget = assignment.budget
    delay = assignment.workers_simulated - 1  # turns from asking for a configuration to telling it
    configs = list[Config]()
    values = np.empty((budget, task.space.dimension))
    objective = np.empty(budget)
    losses = np.empty(budget)
    fallbacks = np.empty(budget, dtype=np.int64)

    calls = _Calls(spec, task, time_limit)  # times the calls into the method, and names its errors
    arguments = make_method_arguments(assignment, data)
    with calls.during("when it was made"):
        method = spec.method(rng=rng, **arguments)

    for turn in range(budget + delay):
        if turn < budget:
            with calls.during(f"trial {turn + 1}"):
                configs.append(method.ask())
                calls.suggested = configs[turn]
                row = task.space.row(configs[turn])
                values[turn] = row
                fallbacks[turn] = _count_fallbacks(method)
            objective[turn] = task.evaluate_row(row)
            losses[turn] = task.objective.loss(objective[turn])

        told_trial = turn - delay
        if told_trial >= 0:  # else too few configurations have been asked for
            with calls.during(f"trial {told_trial + 1}"):
                method.tell(configs[told_trial], losses[told_trial])

    return Outcome(
        optimiser=spec.name,
        task=task.index,
        task_name=task.name,
        values=values,
        objective=task.objective.values(losses),
        losses=losses,
        fallbacks=fallbacks,
        cpu_seconds=calls.cpu_seconds,
        is_recorded=assignment.is_recorded,
    )


def make_method_arguments(
    assignment: Assignment, data: Sequence[TaskData | None] = ()
) -> dict[str, Any]:
    """Make the arguments of a method's constructor, except `rng`.

    All are copies, so that a method that changes them does no harm.

    Args:
        assignment: The task, its history and the budget.
        data: Training data of the history's tasks and, last, of the task. Only methods that use
            training data get them.
    """
    spaces = [assignment.task.space]
    spaces += [evaluations.space for evaluations in assignment.history]
    space, *spaces_of_history = pickle.loads(pickle.dumps(spaces))  # faster than deepcopy
    history = []
    for evaluations, copied_space in zip(assignment.history, spaces_of_history, strict=True):
        history.append(evaluations.copied(copied_space))

    arguments: dict[str, Any] = {
        "space": space,
        "history": tuple(history),
        "context": dict(assignment.task.context),
        "budget": assignment.budget,
    }
    if assignment.method.uses_data:
        arguments["data"] = tuple(map(_copy_data, data))
    return arguments


def _copy_data(data: TaskData | None) -> TaskData | None:
    """Copy training data, so that a method may change them; None, for unknown data, stays None."""
    return None if data is None else replace(data)


def _count_fallbacks(method: Method) -> int:
    """Return how many random suggestions a method has made so far because its model failed.

    A method counts them itself, in its attribute `fallbacks`.

    Raises:
        MethodError: The method has no such attribute, or it is no whole number.
    """
    if not hasattr(method, "fallbacks"):
        raise MethodError(
            "it has no attribute `fallbacks`: its __init__ must call super().__init__(...)"
        )
    count = method.fallbacks
    if not isinstance(count, int | np.integer):
        raise MethodError(f"`fallbacks` must be a count, but got {count!r}")
    return count


def describe_error(error: BaseException) -> str:
    """Describe an exception by its type and message.

    The message of a `MethodError` already says what failed, so its type is left out.
    """
    if isinstance(error, MethodError):
        return str(error)
    return f"{type(error).__name__}: {error}"


class _Calls:
    """Calls into a method: timed, limited in time, and named in errors.

    The limit is of the time that passes, so that a method that waits for ever is ended, too. What
    is added up is CPU time, which does not depend on what else the machine does. It is that of the
    process, as linear algebra, JAX and others have threads of their own: a process makes one run
    at a time, so that no other run's threads are counted. Processes that a method starts are not,
    nor are imports and compilation, which only the first run in a process needs.
    """

    def __init__(self, spec: MethodSpec, task: Task, time_limit: float | None) -> None:
        """Prepare to time the calls into a method on a task; none has been made yet.

        Args:
            spec: The method, named in messages.
            task: The task, named in messages.
            time_limit: Seconds that one call may take; None: no limit.
        """
        self.cpu_seconds = 0.0  # of all calls so far
        self.suggested: object = None  # what the method suggested last, for messages
        self._spec = spec
        self._task = task
        self._time_limit = time_limit

    @contextmanager
    def during(self, when: str) -> Iterator[None]:
        """Time the call in a block, and turn its errors into a `MethodError`.

        A call that returns too late fails here. One that does not return at all is ended by the
        parent process, if there is one: `step` announces each call to it.

        Args:
            when: When the call happened, for messages.
        """
        subject = f"{self._spec.name} on task {self._task.name!r}, {when}"
        place = {"task": self._task.name, "when": when}

        wall_start = perf_counter()
        cpu_start = cpu_clock()
        try:
            with step(step_name(self._task.name, when), self._time_limit):
                yield
        except InvalidConfigError as error:
            message = f"{subject}: {error}; it suggested {reprlib.repr(self.suggested)}"
            raise InvalidSuggestionError(message, **place) from error
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and not is_child():
                raise  # the user stops the experiment; in a child process the method raised it
            raise MethodError(f"{subject}: {describe_error(error)}", **place) from error
        finally:
            elapsed = perf_counter() - wall_start
            self.cpu_seconds += cpu_clock() - cpu_start

        if self._time_limit is not None and elapsed > self._time_limit:
            raise timeout_error(self._spec.name, self._time_limit, **place)


def step_name(task: str, when: str) -> str:
    """Name a call for the parent process, which limits its time.

    The name has two lines: the name of the task, and when the call happens, such as "trial 3".
    """
    return f"{task}\n{when}"


def timeout_error(
    method: str, time_limit: float, *, task: str, when: str
) -> SuggestionTimeoutError:
    """Make the error of a call that took too long.

    Args:
        method: Name of the method.
        time_limit: Seconds that the call was allowed to take.
        task: Name of the task; "" if the call was for no task, such as an import.
        when: When the call happened, such as "trial 3".
    """
    place = f" on task {task!r}, {when}" if task else f", {when}"
    message = f"{method}{place}: took longer than {time_limit:g} s"
    return SuggestionTimeoutError(message, task=task, when=when)


@lru_cache(maxsize=1)
def _load_benchmark(source: str, identity: str, surrogate: str) -> Benchmark:
    """Load a benchmark, or return it from the cache, which holds the benchmark of the last call.

    Args:
        source: Name or path of the benchmark.
        identity: What identifies the benchmark's values. The cache compares all arguments: a
            benchmark that has changed has another identity, and is loaded again.
        surrogate: Name of the surrogate.
    """
    return load(source, surrogate=surrogate)
