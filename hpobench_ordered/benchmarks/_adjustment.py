"""Benchmarks whose search space was adjusted between two optimisations (Stoll et al. 2020).

An adjustment is defined by a table as in the paper's appendix C: a row gives a hyperparameter's
range or value and the steps that have it. Step 1 is the search space before the adjustment, step 2
the one after it. Values come from a surrogate of a benchmark on a larger search space, in which
both are embedded; its ordered numbers are coded by whole numbers from 0, as in the paper's table 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Flag, auto
from functools import partial

import numpy as np

from hpobench_ordered._typing import Config, Value
from hpobench_ordered.data.artifact import Artifact
from hpobench_ordered.data.benchmark import Definition, Provenance
from hpobench_ordered.data.objective import Objective
from hpobench_ordered.data.specs import BenchmarkSpec, SurrogateOption
from hpobench_ordered.data.surrogate import Surrogate
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Kind, Parameter
from hpobench_ordered.surrogates.bundle import BENCHMARK
from hpobench_ordered.surrogates.embedded import EmbeddedSurrogate

VERSION = 1
BEST_VALUES = "best_values"
"""Key in the artifact of the best values, by surrogate and step."""
SEARCHED_ON = "searched_on"
"""Key in the artifact of the hash of the surrogate's file that the best values were searched on."""
PAPER = "Stoll et al. (2020), appendix C, table {table}"


class Steps(Flag):
    """Steps of the development that a row of a table applies to."""

    STEP_1 = auto()
    STEP_2 = auto()
    STEPS_1_2 = STEP_1 | STEP_2


@dataclass(frozen=True, slots=True)
class Fixed:
    """A hyperparameter that always has the same value."""

    name: str
    value: Value


Row = tuple[Steps, Parameter | Fixed]


def integers(name: str, lower: int, upper: int) -> Parameter:
    """Whole numbers from lower to upper, uniform."""
    return Parameter.number(name, lower, upper, integer=True)


def uniform(name: str, lower: float, upper: float) -> Parameter:
    """Numbers from lower to upper, uniform."""
    return Parameter.number(name, lower, upper)


def log_uniform(name: str, lower: float, upper: float) -> Parameter:
    """Numbers from lower to upper, log-uniform."""
    return Parameter.number(name, lower, upper, log=True)


def choice(name: str, *choices: Value) -> Parameter:
    """Choices without an order, uniform."""
    return Parameter.choice(name, choices)


@dataclass(frozen=True, eq=False)
class SpaceAdjustment:
    """An adjustment of a search space, as in a table of the paper.

    Attributes:
        name: Name of the benchmark after the adjustment; the one before it is called `name`-old.
        table: Number of the table.
        summary: One line.
        base: The benchmark whose surrogates are evaluated.
        rows: The table.
        tasks: Names of the base benchmark's tasks that are used; default: all.
        surrogates: Names of its surrogates that are used; default: all.
        unlisted: Values of hyperparameters in steps that do not list them; they are not part of
            that step's configurations.
        artifact: Contains the best known values if they were searched beforehand; if None, the
            search spaces are finite and the optima are looked up.
    """

    name: str
    table: int
    summary: str
    base: BenchmarkSpec
    rows: tuple[Row, ...]
    tasks: tuple[str, ...] = ()
    surrogates: tuple[str, ...] = ()
    unlisted: Config = field(default_factory=dict)
    artifact: Artifact | None = None

    def spec(self) -> BenchmarkSpec:
        """The benchmark after the adjustment, with the one before it as `previous`."""
        before = self._spec(Steps.STEP_1)
        return replace(self._spec(Steps.STEP_2), artifact=self.artifact, previous=before)

    def space(self, step: Steps) -> SearchSpace:
        """The search space in a step."""
        parameters = []
        constants = {}
        for steps, item in self.rows:
            if step not in steps:  # the steps that a row of the table applies to
                continue
            if isinstance(item, Fixed):
                constants[item.name] = item.value
            else:
                parameters.append(item)
        return SearchSpace(parameters, constants=constants)

    def definition(self, step: Steps) -> Definition:
        """Search space, objective and tasks in a step."""
        base = self.base.define()
        provenance = base.provenance
        return Definition(
            name=self._name(step),
            version=VERSION,
            summary=self._summary(step),
            space=self.space(step),
            objective=base.objective,
            tasks=tuple(base.tasks[index] for index in self._task_indices(base)),
            provenance=Provenance(
                paper=f"{PAPER.format(table=self.table)}; {provenance.paper}",
                source=provenance.source,
                licence=provenance.licence,
            ),
        )

    def embed(self, step: Steps, surrogate: Surrogate) -> EmbeddedSurrogate:
        """Embed the search space of a step in a surrogate of the base benchmark.

        That one needs a value of every hyperparameter: `unlisted` has those that the step's table
        does not list.
        """
        base = self.base.define()
        space = self.space(step)
        listed_names = {*space.names, *space.constants}
        values_of_unlisted = {
            name: value for name, value in self.unlisted.items() if name not in listed_names
        }
        return EmbeddedSurrogate(
            inner=surrogate,
            whole=code_ordinals_by_index(base.space),
            part=space,
            fixed=values_of_unlisted,
            tasks=self._task_indices(base),
        )

    def _task_indices(self, base: Definition) -> tuple[int, ...]:
        """Indices, among the base benchmark's tasks, of those that are used."""
        names = [task.name for task in base.tasks]
        return tuple(names.index(name) for name in self.tasks or names)

    def _name(self, step: Steps) -> str:
        return self.name if step is Steps.STEP_2 else f"{self.name}-old"

    def _summary(self, step: Steps) -> str:
        return self.summary if step is Steps.STEP_2 else f"{self.name} before the adjustment."

    def _spec(self, step: Steps) -> BenchmarkSpec:
        """The benchmark in a step, without its artifact and the one before it."""
        return BenchmarkSpec(
            name=self._name(step),
            version=VERSION,
            summary=self._summary(step),
            define=partial(self.definition, step),
            surrogates=tuple(
                replace(option, load=partial(self._load, step, option))
                for option in self.base.surrogates
                if self._uses_surrogate(option)
            ),
            # All adjustments of a base benchmark are evaluated on its surrogate.
            family=self.base.family,
        )

    def _uses_surrogate(self, option: SurrogateOption) -> bool:
        """Whether a surrogate of the base benchmark is used; all are if none are listed."""
        return not self.surrogates or option.name in self.surrogates

    def _load(
        self, step: Steps, option: SurrogateOption
    ) -> tuple[EmbeddedSurrogate, Sequence[float | None]]:
        """Load a surrogate in a step, and the best known value of every task."""
        surrogate_of_base, _ = option.load()
        surrogate = self.embed(step, surrogate_of_base)
        if self.artifact is None:  # then the search space is finite
            return surrogate, find_optima(surrogate, self.definition(step).objective)
        return surrogate, self._read_best_values(self.artifact, step, option.name)

    def _read_best_values(self, artifact: Artifact, step: Steps, surrogate: str) -> list[float]:
        """Read best known values; an error if they belong to another version of the surrogate."""
        try:
            stored = artifact.read_json(BENCHMARK)[BEST_VALUES][surrogate]
            searched_on = stored[SEARCHED_ON]
            best_values = [float(value) for value in stored[step.name]]
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise ArtifactError(f"{BENCHMARK} of {artifact} is malformed: {error!r}") from None
        if searched_on != surrogate_hash(self.base, surrogate):
            raise ArtifactError(
                f"best values in {artifact} were found on another surrogate {surrogate!r} than "
                f"that of {self.base.id}: generate {self.name} again"
            )
        return best_values


def surrogate_hash(base: BenchmarkSpec, surrogate: str) -> str:
    """SHA-256 of a surrogate's file in a benchmark's artifact."""
    sums = {} if base.artifact is None else base.artifact.sums()
    try:
        return sums[f"{surrogate}.npz"]
    except KeyError:
        raise ArtifactError(f"the artifact of {base.id} holds no {surrogate}.npz") from None


def code_ordinals_by_index(space: SearchSpace) -> SearchSpace:
    """Return the same space, with ordered choices replaced by their indices as integers.

    The arrays that code configurations stay the same: they contain these indices already.
    """
    parameters = []
    for parameter in space.parameters:
        if parameter.kind is Kind.ORDINAL:
            parameters.append(integers(parameter.name, 0, len(parameter.choices) - 1))
        else:
            parameters.append(parameter)
    return SearchSpace(parameters, conditions=space.conditions, constants=space.constants)


def find_optima(surrogate: EmbeddedSurrogate, objective: Objective) -> list[float]:
    """Return the best value of each task among all configurations of a finite search space.

    The space has N configurations of d hyperparameters, whose codes are consecutive integers.
    """
    parameters = surrogate.part.parameters
    sizes = [int(parameter.size) for parameter in parameters]
    lowest = np.array([parameter.lower for parameter in parameters], dtype=np.float64)
    all_steps = np.indices(sizes).reshape(len(sizes), -1).T  # from the lowest value, (N, d)
    all_values = lowest + all_steps

    best_values = []
    for task in range(len(surrogate.tasks)):
        objective_values = surrogate.predict(all_values, task)
        best_row = objective.losses(objective_values).argmin()
        best_values.append(float(objective_values[best_row]))
    return best_values
