"""Protocols: the sequence of tasks of a run, and the history and budget of each."""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hpobench_ordered.data.benchmark import Benchmark, Task
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.methods.base import MethodSpec

if TYPE_CHECKING:
    import numpy as np

    from hpobench_ordered.data.specs import BenchmarkSpec


@dataclass(frozen=True, slots=True)
class Assignment:
    """One optimisation of one task by a method.

    Attributes:
        method: The method that runs.
        task: The task to optimise.
        history: Evaluations the method may see, oldest task first.
        budget: Number of trials.
        workers_simulated: Number of trials in flight: that many configurations are asked for before
            the first result is told, then one after every result; 1 means sequential.
        is_recorded: Whether its trials are results; False if they only serve as history.
    """

    method: MethodSpec
    task: Task
    history: tuple[Evaluations, ...]
    budget: int
    workers_simulated: int = 1
    is_recorded: bool = True


class Protocol(typing.Protocol):
    """Decides the sequence of assignments that make up a run."""

    @property
    def name(self) -> str:
        """Its name, such as "ordered"."""
        ...

    def settings(self) -> Mapping[str, Any]:
        """Settings, as JSON: together with the name they identify the protocol."""
        ...

    def check(self, benchmark: "BenchmarkSpec", method: MethodSpec) -> None:
        """Check, before anything runs, that the method can run on the benchmark.

        Raises:
            ExperimentError: It cannot, under this protocol.
        """
        ...

    def length(self, benchmark: Benchmark) -> int:
        """Number of assignments in a run on the benchmark."""
        ...

    def assignment(
        self,
        benchmark: Benchmark,
        method: MethodSpec,
        *,
        position: int,
        evaluated: Sequence[Evaluations],
        rng: "np.random.Generator",
    ) -> Assignment:
        """Make the assignment at a position.

        Args:
            benchmark: The benchmark.
            method: The method.
            position: Which assignment of the run, from 0.
            evaluated: Earlier evaluations of the run, one `Evaluations` per position.
            rng: For random choices of the protocol, such as a history; the same for all methods.
        """
        ...
