"""The leave-one-out protocol: each task in turn, with evaluations of all the others as history."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hpobench_ordered.data.benchmark import Benchmark
from hpobench_ordered.data.checks import check_count
from hpobench_ordered.data.history import Evaluations
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

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class LeaveOneOut:
    """Each task in turn is the target; the history is evaluations of all the others.

    Horvath et al. (2021), section 5. The history does not depend on the method: with the same seed
    all methods get the same one, in the order of the tasks. It consists of recorded evaluations if
    there are any (`Benchmark.recorded`), else of random configurations.

    Methods for ordered tasks treat the last tasks as the most recent.

    Attributes:
        trials: Evaluations per target.
        history: Evaluations per source task. Default: all that are recorded, or else the
            benchmark's `history_size`.
        tasks: The targets: the first n if a number n, else names or indices. Default: all. Source
            tasks are always all the others.

    Raises:
        ExperimentError: A number below 1.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> protocol = hbo.LeaveOneOut(trials=20, history=50, tasks=["3", "37"])
        >>> protocol.length(hbo.load("openml-xgboost"))
        2
    """

    trials: int = 50
    history: int | None = None
    tasks: Targets = None

    def __post_init__(self) -> None:
        check_count(self.trials, noun="trial per task")
        if self.history is not None:  # a number of evaluations
            check_count(self.history, noun="evaluation per source task")
        # Lists become tuples, so that a protocol can be hashed; a frozen class is set like this.
        object.__setattr__(self, "tasks", check_targets(self.tasks))

    @property
    def name(self) -> str:
        """Name of the protocol."""
        return "leave-one-out"

    def settings(self) -> Mapping[str, Any]:
        """Settings by name: trials, evaluations per source task, and targets."""
        return asdict(self)

    def check(self, benchmark: BenchmarkSpec, method: MethodSpec) -> None:
        """Check that the targets exist, and that there are enough source tasks for the method.

        Raises:
            UnknownNameError: A target does not exist.
            ExperimentError: There are too few source tasks.
        """
        names = [task.name for task in benchmark.define().tasks]
        check_targets_exist(self.tasks, names)
        sources = len(names) - 1  # all tasks but the target
        needed = max(1, method.min_history)  # without a source task there is nothing to transfer
        if sources < needed:
            raise ExperimentError(
                f"{method.name} on {benchmark.id} needs a target and {needed} source task(s), "
                f"but there are {sources}"
            )

    def length(self, benchmark: Benchmark) -> int:
        """Number of targets."""
        return len(self._targets(benchmark))

    def assignment(
        self,
        benchmark: Benchmark,
        method: MethodSpec,
        *,
        position: int,
        evaluated: Sequence[Evaluations],
        rng: "np.random.Generator",
    ) -> Assignment:
        """Assign the target at this position, with evaluations of all other tasks as history.

        `self.history` is the number of evaluations per task; with None the benchmark decides on it.
        What the run itself `evaluated` on earlier targets is no part of the history.
        """
        target = self._targets(benchmark)[position]
        history = [
            benchmark.evaluations(task.index, rng=rng, n=self.history)
            for task in benchmark.tasks
            if task.index != target
        ]
        return Assignment(
            method=method,
            task=benchmark.tasks[target],
            history=tuple(history),
            budget=self.trials,
        )

    def _targets(self, benchmark: Benchmark) -> tuple[int, ...]:
        """Indices of the tasks to optimise, which `self.tasks` chooses by count, name or index."""
        return find_targets(self.tasks, [task.name for task in benchmark.tasks])
