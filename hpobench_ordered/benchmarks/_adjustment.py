"""Benchmarks whose search space was adjusted between two optimisations (Stoll et al. 2020).

An adjustment is defined by a table as in the paper's appendix C: a row gives a hyperparameter's
range or value and the steps that have it. Step 1 is the search space before the adjustment, step 2
the one after it. Values come from a surrogate of a benchmark on a larger search space, in which
both are embedded; its ordered numbers are coded by whole numbers from 0, as in the paper's table 2.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Flag, auto
from functools import partial

from hpobench_ordered._typing import Config, Value
from hpobench_ordered.data.artifact import Artifact
from hpobench_ordered.data.benchmark import Definition, Provenance
from hpobench_ordered.data.best import find_optima
from hpobench_ordered.data.embedded import EmbeddedSurrogate
from hpobench_ordered.data.specs import BenchmarkSpec, SurrogateOption
from hpobench_ordered.data.surrogate import Surrogate
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Kind, Parameter
from hpobench_ordered.surrogates.bundle import BENCHMARK

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
        """Make the spec of the benchmark after the adjustment.

        Its `previous` is the spec of the benchmark before the adjustment, on the same tasks.
        """
        spec_before = self._make_spec(Steps.STEP_1)
        spec_after = self._make_spec(Steps.STEP_2)
        return replace(spec_after, artifact=self.artifact, previous=spec_before)

    def make_space(self, step: Steps) -> SearchSpace:
        """Make the search space of a step from the rows of the paper's table that apply to it.

        A row with a range adds a hyperparameter, and a row with a fixed value adds a constant.
        """
        parameters = []
        constants = {}
        for steps_of_row, hyperparameter in self.rows:
            applies_to_step = step in steps_of_row
            if not applies_to_step:
                continue
            if isinstance(hyperparameter, Fixed):
                constants[hyperparameter.name] = hyperparameter.value
            else:
                parameters.append(hyperparameter)
        return SearchSpace(parameters, constants=constants)

    def define(self, step: Steps) -> Definition:
        """Define the benchmark in a step: its search space, objective and tasks.

        Objective, tasks, source and licence are those of the base benchmark.
        """
        base = self.base.define()
        tasks = [base.tasks[index] for index in self._find_task_indices(base)]
        provenance = base.provenance
        return Definition(
            name=self._name(step),
            version=VERSION,
            summary=self._summary(step),
            space=self.make_space(step),
            objective=base.objective,
            tasks=tuple(tasks),
            provenance=Provenance(
                paper=f"{PAPER.format(table=self.table)}; {provenance.paper}",
                source=provenance.source,
                licence=provenance.licence,
            ),
        )

    def embed(self, step: Steps, surrogate: Surrogate) -> EmbeddedSurrogate:
        """Let a surrogate of the base benchmark evaluate configurations of a step's search space.

        The surrogate needs a value of every hyperparameter of the base benchmark. The attribute
        `unlisted` has the values of those that the step's table does not list.
        """
        base = self.base.define()
        space = self.make_space(step)
        listed_names = {*space.names, *space.constants}
        values_of_unlisted = {
            name: value for name, value in self.unlisted.items() if name not in listed_names
        }
        return EmbeddedSurrogate(
            inner=surrogate,
            whole=code_ordinals_by_index(base.space),  # the paper's tables state indices of choices
            part=space,
            fixed=values_of_unlisted,
            tasks=self._find_task_indices(base),
        )

    def _find_task_indices(self, base: Definition) -> tuple[int, ...]:
        """Find which of the base benchmark's tasks are used, and return their indices."""
        names_of_base = [task.name for task in base.tasks]
        names_used = self.tasks or names_of_base  # without a list of names, all tasks are used
        return tuple(names_of_base.index(name) for name in names_used)

    def _name(self, step: Steps) -> str:
        return self.name if step is Steps.STEP_2 else f"{self.name}-old"

    def _summary(self, step: Steps) -> str:
        return self.summary if step is Steps.STEP_2 else f"{self.name} before the adjustment."

    def _make_spec(self, step: Steps) -> BenchmarkSpec:
        """Make the spec of the benchmark in a step, without `artifact` and `previous`.

        Its surrogates are those of the base benchmark, embedded in the step's search space.
        """
        surrogates = []
        for option in self.base.surrogates:
            if self._uses_surrogate(option):
                load = partial(self._load_surrogate, step, option)
                costs = None
                if option.costs is not None:
                    costs = partial(self._load_costs, step, option.costs)
                surrogates.append(replace(option, load=load, costs=costs))
        return BenchmarkSpec(
            name=self._name(step),
            version=VERSION,
            summary=self._summary(step),
            define=partial(self.define, step),
            surrogates=tuple(surrogates),
            # All adjustments of a base benchmark are evaluated on its surrogate.
            family=self.base.family,
        )

    def _uses_surrogate(self, option: SurrogateOption) -> bool:
        """Whether a surrogate of the base benchmark is used; all are if none are listed."""
        return not self.surrogates or option.name in self.surrogates

    def _load_surrogate(
        self, step: Steps, option: SurrogateOption
    ) -> tuple[EmbeddedSurrogate, Sequence[float | None]]:
        """Load a surrogate of the base benchmark for the search space of a step.

        Returns:
            The surrogate, and the best known value of each task in that search space.
        """
        # The best values of the base benchmark belong to its own, larger search space.
        surrogate_of_base, _ = option.load()
        surrogate = self.embed(step, surrogate_of_base)
        if self.artifact is not None:
            return surrogate, self._read_best_values(self.artifact, step, option.name)
        # Without an artifact the search space is finite, and the optima can be looked up.
        defined = self.define(step)
        return surrogate, find_optima(
            surrogate, defined.space, defined.objective, n_tasks=len(defined.tasks)
        )

    def _load_costs(self, step: Steps, load: Callable[[], Surrogate]) -> EmbeddedSurrogate:
        """Load the seconds of the base benchmark's evaluations for the search space of a step."""
        return self.embed(step, load())

    def _read_best_values(self, artifact: Artifact, step: Steps, surrogate: str) -> list[float]:
        """Read the best known value of each task in a step's search space from the artifact.

        They were searched on a surrogate of the base benchmark, whose hash is stored beside them.

        Raises:
            ArtifactError: The file is malformed, or another version of the surrogate was searched.
        """
        try:
            stored = artifact.read_json(BENCHMARK)[BEST_VALUES][surrogate]
            searched_on = stored[SEARCHED_ON]
            best_values = [float(value) for value in stored[step.name]]
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise ArtifactError(f"{BENCHMARK} of {artifact} is malformed: {error!r}") from None
        if searched_on != look_up_surrogate_hash(self.base, surrogate):
            raise ArtifactError(
                f"best values in {artifact} were found on another surrogate {surrogate!r} than "
                f"that of {self.base.id}: generate {self.name} again"
            )
        return best_values


def look_up_surrogate_hash(base: BenchmarkSpec, surrogate: str) -> str:
    """Look up the SHA-256 of a surrogate's file among the hashes in a benchmark's artifact.

    Raises:
        ArtifactError: The benchmark has no artifact, or the artifact has no such file.
    """
    hash_of_file = {} if base.artifact is None else base.artifact.sums()
    try:
        return hash_of_file[f"{surrogate}.npz"]
    except KeyError:
        raise ArtifactError(f"the artifact of {base.id} holds no {surrogate}.npz") from None


def code_ordinals_by_index(space: SearchSpace) -> SearchSpace:
    """Return a search space with an integer, the index of the choice, for each ordered choice.

    The arrays that code its configurations are the same as those of `space`, where an ordered
    choice is coded by its index, too.
    """
    parameters = []
    for parameter in space.parameters:
        if parameter.kind is Kind.ORDINAL:
            largest_index = len(parameter.choices) - 1
            parameters.append(integers(parameter.name, 0, largest_index))
        else:
            parameters.append(parameter)
    return SearchSpace(parameters, conditions=space.conditions, constants=space.constants)
