"""The ordered protocol: tasks in sequence; a method's earlier evaluations are its history."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hpobench_ordered.data.benchmark import Benchmark
from hpobench_ordered.data.checks import check_count
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.data.protocol_text import ORDERED
from hpobench_ordered.data.specs import BenchmarkSpec
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.experiment.protocols.base import Assignment
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.registry import method_spec

if TYPE_CHECKING:
    import numpy as np

FIRST_TASKS_METHOD = "bo"
"""Method that runs on the first tasks for methods that need a history (appendix C)."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """Tasks in order; the history is what the method itself evaluated on all earlier tasks.

    Hellan et al. (2023), sections 3 and 5.3, appendix C.

    Attributes:
        trials: Evaluations per task (M in the paper: 25).
        tasks: Number of tasks, from the first on. Default: all.
        workers_simulated: Number of trials in flight. The paper's authors ran four workers: a
            method was asked for four configurations before it was told the first result. Trials
            are assumed to take equally long, so results are told in the order of asking.

    Raises:
        ExperimentError: A number below 1, or tasks that are not a number.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> protocol = hbo.Ordered(trials=10, tasks=5)
        >>> protocol.length(hbo.load("newsvendor"))  # of its 9 tasks
        5
    """

    trials: int = 25
    tasks: int | None = None
    workers_simulated: int = 1

    def __post_init__(self) -> None:
        check_count(self.trials, noun="trial per task")
        # Other protocols also take a list of tasks; here, a number stands for the first tasks.
        if not isinstance(self.tasks, int | None):
            raise ExperimentError(
                f"with ordered tasks, tasks must be a number, but got {self.tasks!r}"
            )
        if self.tasks is not None:
            check_count(self.tasks, noun="task")
        check_count(self.workers_simulated, noun="simulated worker")

    @property
    def name(self) -> str:
        """Name of the protocol."""
        return ORDERED

    def settings(self) -> Mapping[str, Any]:
        """Settings by name: trials, tasks and simulated workers."""
        return asdict(self)

    def check(self, benchmark: BenchmarkSpec, method: MethodSpec) -> None:
        """Check nothing: every method can run, as `bo` runs while the history is too short."""

    def length(self, benchmark: Benchmark) -> int:
        """Number of tasks of a run: at most those of the benchmark."""
        if self.tasks is None:  # no limit was set
            return len(benchmark.tasks)
        return min(self.tasks, len(benchmark.tasks))

    def assignment(
        self,
        benchmark: Benchmark,
        method: MethodSpec,
        *,
        position: int,
        evaluated: Sequence[Evaluations],
        rng: "np.random.Generator",
    ) -> Assignment:
        """Assign the task at this position, with all that was evaluated before as history.

        While there are fewer earlier tasks than the method needs, `bo` runs instead. `evaluated`
        has the run's evaluations of each earlier task; `rng` is not needed.
        """
        has_enough_history = len(evaluated) >= method.min_history
        return Assignment(
            method=method if has_enough_history else method_spec(FIRST_TASKS_METHOD),
            task=benchmark.tasks[position],
            history=tuple(evaluated),
            budget=self.trials,
            workers_simulated=self.workers_simulated,
        )
