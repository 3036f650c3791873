"""Synthetic functions (Horvath et al. 2021, section 5), and versions whose tasks are ordered.

Every seed gives a different, unlimited sequence of tasks; a benchmark has the first T of them.

Notation:
    T           number of tasks
    e[t]        independent standard normal numbers, (3,)
    z[t]        normal scores of the coefficients of task t, (3,)
    r           correlation of consecutive tasks' scores
    Phi         distribution function of the standard normal distribution
    a, b, c     coefficients: the marginal distribution's quantile at Phi(z[t])

    z[0] = e[0],  z[t] = r z[t - 1] + sqrt(1 - r^2) e[t]

This process is stationary: every score is standard normal, scores k tasks apart have correlation
r^k, and every task's coefficients follow the paper's distributions for any r. The paper's tasks are
independent, r = 0.
"""

import itertools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.benchmark import Benchmark, Definition, Provenance, TaskDefinition
from hpobench_ordered.data.objective import Direction, Objective
from hpobench_ordered.data.remote import RemoteFile
from hpobench_ordered.data.specs import BenchmarkSpec, SurrogateOption
from hpobench_ordered.data.surrogate import Surrogate
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.surrogates.analytic import ForresterSurrogate, QuadraticSurrogate

VERSION = 1
CORRELATION = 0.95
"""r of ordered tasks: the correlation is 0.63 after 9 tasks and 0.23 after 29."""
COEFFICIENTS = ("a", "b", "c")


@dataclass(frozen=True, slots=True)
class FunctionFamily:
    """A family of functions.

    Attributes:
        name: Its name.
        formula: The formula.
        papers: The papers that it comes from.
        parameters: The hyperparameters.
        tasks: Number of tasks in the paper, T.
        history_size: Number of evaluations of a source task in the paper.
        stream: Part of the seed, so that the families have different random numbers.
        coefficients: Maps normal scores z to coefficients, (T, 3) to (T, 3).
        surrogate: Computes the values.
    """

    name: str
    formula: str
    papers: str
    parameters: tuple[Parameter, ...]
    tasks: int
    history_size: int
    stream: int
    coefficients: Callable[[FloatArray], FloatArray]
    surrogate: type[ForresterSurrogate] | type[QuadraticSurrogate]


def _compute_forrester_coefficients(scores: FloatArray) -> FloatArray:
    """Turn normal scores into coefficients a ~ Normal(6, 1), b ~ Normal(12, 4), c ~ Uniform(0, 10).

    Scores and coefficients have a row for each of T tasks, (T, 3). The second parameter of Normal
    is the variance, so b has standard deviation 2.
    """
    a = 6.0 + scores[:, 0]
    b = 12.0 + 2.0 * scores[:, 1]
    # The distribution function of a standard normal score is Uniform(0, 1).
    c = 10.0 * _compute_normal_distribution_function(scores[:, 2])
    return np.stack([a, b, c], axis=1)


def _compute_quadratic_coefficients(scores: FloatArray) -> FloatArray:
    """Turn normal scores into coefficients a, b, c ~ Uniform(0.1, 1).

    Scores and coefficients have a row for each of T tasks, (T, 3).
    """
    # The distribution function of a standard normal score is Uniform(0, 1).
    return 0.1 + 0.9 * _compute_normal_distribution_function(scores)


def _compute_normal_distribution_function(scores: FloatArray) -> FloatArray:
    """Compute the probability that a standard normal number is below each score, elementwise."""
    probabilities = [0.5 * math.erfc(-z / math.sqrt(2.0)) for z in scores.ravel().tolist()]
    return np.array(probabilities).reshape(scores.shape)


FORRESTER = FunctionFamily(
    name="forrester",
    formula="(a x - 2)^2 sin(b x - 4) + c",
    papers="Horvath et al. (2021), section 5",
    parameters=(Parameter.number("x", 0, 1),),
    tasks=10,
    history_size=20,
    stream=0,
    coefficients=_compute_forrester_coefficients,
    surrogate=ForresterSurrogate,
)
QUADRATIC = FunctionFamily(
    name="quadratic",
    formula="a x'x + b 1'x + c",
    papers="Horvath et al. (2021), section 5; Perrone et al. (2018)",
    parameters=tuple(Parameter.number(f"x_{j}", -10, 10) for j in range(5)),
    tasks=30,
    history_size=100,
    stream=1,
    coefficients=_compute_quadratic_coefficients,
    surrogate=QuadraticSurrogate,
)
FUNCTIONS = {function.name: function for function in (FORRESTER, QUADRATIC)}


@dataclass(frozen=True, slots=True)
class SyntheticBenchmark:
    """A synthetic benchmark.

    Attributes:
        function: Its family of functions.
        ordered: Whether the coefficients drift from task to task; otherwise tasks are independent.
        seed: Seed of the coefficients, at least 0.
        tasks: Number of tasks.

    Raises:
        ExperimentError: A negative seed, or no task.
    """

    function: FunctionFamily
    ordered: bool
    seed: int
    tasks: int

    def __post_init__(self) -> None:
        """Check that the seed is at least 0, and that there is a task."""
        if self.seed < 0 or self.tasks < 1:
            raise ExperimentError(
                f"the seed of {self.function.name} must be at least 0 and the number of tasks at "
                f"least 1, but got seed {self.seed} and {self.tasks} tasks"
            )

    @property
    def name(self) -> str:
        """Name that `hpobench_ordered.load` takes, such as "forrester-ordered-seed-3-tasks-20".

        It has no number of tasks if this is that of the paper, and then no seed if the seed is 0.
        """
        name = self.function.name
        if self.ordered:
            name += "-ordered"

        has_usual_length = self.tasks == self.function.tasks
        if has_usual_length and self.seed == 0:
            return name
        if has_usual_length:
            return f"{name}-seed-{self.seed}"
        return f"{name}-seed-{self.seed}-tasks-{self.tasks}"

    @property
    def summary(self) -> str:
        """The formula and the kind of its coefficients, in one line."""
        coefficients = "coefficients that drift" if self.ordered else "random coefficients"
        return f"{self.function.formula} with {coefficients}, exact values."

    def draw_coefficients(self) -> FloatArray:
        """Draw the coefficients a, b, c of T tasks, (T, 3); more tasks only append rows.

        Coefficients are made from normal scores z, which have correlation r between consecutive
        tasks:

            z[0] = e[0],  z[t] = r z[t - 1] + sqrt(1 - r^2) e[t],  e standard normal

        The factor of e[t] keeps the variance of z[t] at 1. For tasks without an order, r is 0.
        """
        rng = np.random.default_rng([self.function.stream, int(self.ordered), self.seed])
        e = rng.standard_normal((self.tasks, len(COEFFICIENTS)))
        r = CORRELATION if self.ordered else 0.0

        z = e.copy()
        for t in range(1, self.tasks):
            z[t] = r * z[t - 1] + math.sqrt(1.0 - r * r) * e[t]
        # The function's family turns scores into coefficients with the distributions of the paper.
        return self.function.coefficients(z)

    def define(self) -> Definition:
        """Define the benchmark: search space, objective and tasks.

        The context of a task is its coefficients a, b and c.
        """
        tasks = []
        for index, coefficients in enumerate(self.draw_coefficients().tolist()):
            context = dict(zip(COEFFICIENTS, coefficients, strict=True))
            tasks.append(TaskDefinition(str(index), context))
        # The papers have tasks without an order; the drift of ordered ones is an addition of ours.
        prefix = "after " if self.ordered else ""
        return Definition(
            name=self.name,
            version=VERSION,
            summary=self.summary,
            space=SearchSpace(self.function.parameters),
            objective=Objective("value", "of the function", Direction.MINIMIZE),
            tasks=tuple(tasks),
            provenance=Provenance(
                paper=prefix + self.function.papers,
                source=f"the formula, with coefficients drawn with seed {self.seed}",
                licence="Apache-2.0",
            ),
        )

    @property
    def suite(self) -> str:
        """Name of its suite, one for ordered tasks and one for the others."""
        return "synthetic-ordered" if self.ordered else "synthetic"

    def load(self) -> tuple[Surrogate, Sequence[float]]:
        """Return the function with the coefficients of all tasks, and the minimum of every task."""
        function = self.function.surrogate(self.draw_coefficients())
        return function, function.minima()

    def spec(self) -> BenchmarkSpec:
        """Make the spec of the benchmark, whose only surrogate is the function itself."""
        return BenchmarkSpec(
            name=self.name,
            version=VERSION,
            summary=self.summary,
            define=self.define,
            surrogates=(SurrogateOption("exact", "The function itself.", self.load),),
            history_size=self.function.history_size,
        )


def forrester(*, seed: int = 0, tasks: int = FORRESTER.tasks, ordered: bool = False) -> Benchmark:
    """Make Forrester functions (a x - 2)^2 sin(b x - 4) + c on [0, 1].

    Args:
        seed: Seed of the coefficients.
        tasks: Number of tasks; fewer are the first of more.
        ordered: Let the coefficients drift from task to task; else tasks are independent.

    Raises:
        ExperimentError: A negative seed, or no task.
    """
    benchmark = SyntheticBenchmark(FORRESTER, ordered=ordered, seed=seed, tasks=tasks)
    return benchmark.spec().load()


def quadratic(*, seed: int = 0, tasks: int = QUADRATIC.tasks, ordered: bool = False) -> Benchmark:
    """Make quadratic functions a x'x + b 1'x + c on [-10, 10]^5.

    Args:
        seed: Seed of the coefficients.
        tasks: Number of tasks; fewer are the first of more.
        ordered: Let the coefficients drift from task to task; else tasks are independent.

    Raises:
        ExperimentError: A negative seed, or no task.
    """
    benchmark = SyntheticBenchmark(QUADRATIC, ordered=ordered, seed=seed, tasks=tasks)
    return benchmark.spec().load()


@dataclass(frozen=True, slots=True)
class SyntheticFamily:
    """All seeds and numbers of tasks; seed 0 if the name has none."""

    pattern: str

    def spec(self, name: str) -> BenchmarkSpec | None:
        """Make the spec of a benchmark named like "quadratic-ordered-seed-3-tasks-20".

        A name must have a seed, but may lack "-ordered" and the number of tasks, which is then that
        of the paper. For other names the result is None.
        """
        functions = "|".join(FUNCTIONS)
        seed = "0|[1-9][0-9]{0,17}"  # at most 18 digits, so that it fits into 64 bits
        tasks = "[1-9][0-9]{0,5}"  # less than a million
        match = re.fullmatch(
            rf"(?P<function>{functions})(?P<ordered>-ordered)?-seed-(?P<seed>{seed})"
            rf"(-tasks-(?P<tasks>{tasks}))?",
            name,
        )
        if match is None:
            return None

        function = FUNCTIONS[match["function"]]
        benchmark = SyntheticBenchmark(
            function=function,
            ordered=match["ordered"] is not None,
            seed=int(match["seed"]),
            tasks=int(match["tasks"] or function.tasks),
        )
        return benchmark.spec()

    def files(self) -> tuple[RemoteFile, ...]:
        """Return no files, as these benchmarks need none to be fetched."""
        return ()


BENCHMARKS = tuple(
    SyntheticBenchmark(function, ordered=ordered, seed=0, tasks=function.tasks)
    for ordered, function in itertools.product((False, True), FUNCTIONS.values())
)
SPECS = tuple(benchmark.spec() for benchmark in BENCHMARKS)
FAMILIES = (
    SyntheticFamily(
        "FUNCTION-seed-SEED or FUNCTION-seed-SEED-tasks-TASKS, FUNCTION one of "
        + ", ".join(spec.name for spec in SPECS)
    ),
)
SUITES = tuple((benchmark.suite, benchmark.name) for benchmark in BENCHMARKS)
