"""The adjustment protocol: the search space was changed after a first optimisation of the task."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hpobench_ordered.benchmarks.registry import benchmark_spec, list_benchmarks
from hpobench_ordered.data.benchmark import Benchmark
from hpobench_ordered.data.checks import check_count
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.data.protocol_text import ADJUSTMENT, DEFAULT_FIRST_METHOD
from hpobench_ordered.data.specs import BenchmarkSpec
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.experiment.protocols._targets import (
    Targets,
    check_targets,
    check_targets_exist,
    find_targets,
)
from hpobench_ordered.experiment.protocols.base import Assignment
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.registry import list_methods, method_spec

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class Adjustment:
    """Each task is optimised on the old search space, then on the new one.

    Stoll et al. (2020). Each task gives two assignments. The first is on the search space before
    the adjustment (`Benchmark.previous`), is not recorded, and is the same for all methods with the
    same seed. In the second the method optimises the task on the new search space; its history is
    the first one's evaluations, coded by the old space (`Evaluations.space`).

    Attributes:
        first_trials: Evaluations per task before the adjustment; 10, 20 and 40 in the paper.
        trials: Evaluations per task after the adjustment.
        first_method: Name of the method before the adjustment.
        tasks: The first n if a number n, else names or indices. Default: all.

    Raises:
        ExperimentError: A number below 1.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> protocol = hbo.Adjustment(first_trials=10, trials=20, tasks=3)
        >>> protocol.length(hbo.load("svm-a"))  # before and after, of 3 tasks
        6
    """

    first_trials: int = 20
    trials: int = 40
    first_method: str = DEFAULT_FIRST_METHOD
    tasks: Targets = None

    def __post_init__(self) -> None:
        check_count(self.first_trials, noun="trial per task")
        check_count(self.trials, noun="trial per task")
        # Lists become tuples, so that a protocol can be hashed; a frozen class is set like this.
        object.__setattr__(self, "tasks", check_targets(self.tasks))

    @property
    def name(self) -> str:
        """Name of the protocol."""
        return ADJUSTMENT

    def settings(self) -> Mapping[str, Any]:
        """Settings by name: trials before and after the adjustment, the method before it, tasks."""
        return asdict(self)

    def check(self, benchmark: BenchmarkSpec, method: MethodSpec) -> None:
        """Check that the search space was adjusted, and that the methods can run before and after.

        Before the adjustment there is no history; after it, the history is of one task, the same
        one on the old search space.

        Raises:
            ExperimentError: The search space was never adjusted, the method does not support
                another space in its history, or a method needs more earlier tasks than there are.
            UnknownNameError: A chosen task does not exist.
        """
        _check_was_adjusted(benchmark)
        _check_supports_changed_spaces(method)
        if method.min_history > 1:
            raise ExperimentError(
                f"{method.name} needs {method.min_history} earlier tasks; after an adjustment "
                "there is only one, the same task on the old search space"
            )
        if method_spec(self.first_method).min_history > 0:
            raise ExperimentError(
                f"{self.first_method} needs earlier tasks; before the adjustment there are none"
            )
        names = [task.name for task in benchmark.define().tasks]
        check_targets_exist(self.tasks, names)

    def length(self, benchmark: Benchmark) -> int:
        """Number of assignments of a run: for each task one before and one after the adjustment."""
        return 2 * len(self._targets(benchmark))

    def assignment(
        self,
        benchmark: Benchmark,
        method: MethodSpec,
        *,
        position: int,
        evaluated: Sequence[Evaluations],
        rng: "np.random.Generator",
    ) -> Assignment:
        """Choose the task, search space and method at a position of the run, from 0.

        Each task has two positions: an even one before the adjustment, then an odd one after it.
        `evaluated` has the run's evaluations at each earlier position; `rng` is not needed.
        """
        if benchmark.previous is None:
            raise ExperimentError(f"the search space of {benchmark.id} was never adjusted")
        target_number = position // 2
        is_before_adjustment = position % 2 == 0
        task_index = self._targets(benchmark)[target_number]
        task = benchmark.tasks[task_index]
        if is_before_adjustment:
            return Assignment(
                method=method_spec(self.first_method),
                task=benchmark.previous.task(task.name),  # the same task on the old search space
                history=(),
                budget=self.first_trials,
                is_recorded=False,
            )
        evaluated_before_adjustment = evaluated[position - 1]
        return Assignment(
            method=method, task=task, history=(evaluated_before_adjustment,), budget=self.trials
        )

    def _targets(self, benchmark: Benchmark) -> tuple[int, ...]:
        """Indices of the tasks to optimise, which `self.tasks` chooses by count, name or index."""
        return find_targets(self.tasks, [task.name for task in benchmark.tasks])


def _check_was_adjusted(benchmark: BenchmarkSpec) -> None:
    """Raise an `ExperimentError` unless the benchmark has a search space before an adjustment."""
    if benchmark.previous is not None:
        return
    adjusted = [name for name in list_benchmarks() if benchmark_spec(name).previous is not None]
    raise ExperimentError(
        f"the search space of {benchmark.id} was never adjusted; benchmarks where it was: "
        f"{', '.join(adjusted) or 'none'}"
    )


def _check_supports_changed_spaces(method: MethodSpec) -> None:
    """Raise an `ExperimentError` unless the method takes a history on another search space."""
    if method.changed_spaces:
        return
    supporting = [name for name in list_methods() if method_spec(name).changed_spaces]
    raise ExperimentError(
        f"{method.name} needs its history on the same search space, which the adjustment "
        f"changes (its spec does not say changed_spaces=True); methods that take a history on "
        f"another search space: "
        f"{', '.join(supporting)}"
    )
