"""Benchmarks: named families of tasks on one search space."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered._html import key_values, table
from hpobench_ordered._typing import Config, ConfigLike, FloatArray
from hpobench_ordered._wording import join_words
from hpobench_ordered.data.best import find_best_values
from hpobench_ordered.data.citations import format_bibtex
from hpobench_ordered.data.embedded import EmbeddedSurrogate
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.data.identity import DIGITS_OF_CONTENT, BenchmarkIdentity, hash_arrays
from hpobench_ordered.data.names import check_name
from hpobench_ordered.data.objective import Objective
from hpobench_ordered.data.surrogate import Surrogate
from hpobench_ordered.data.task_data import DataSource, TaskData
from hpobench_ordered.errors import (
    EvaluationsError,
    HistoryWarning,
    UnknownNameError,
    warn_user,
)
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.restriction import (
    Restriction,
    adapt_restrictions,
    describe_restrictions,
    restrict_space,
)

if TYPE_CHECKING:
    from pandas import DataFrame


HISTORY_SIZE = 100  # default number of evaluations of a source task in a history
DRAWS_IN_PART = 20_000
"""Random configurations of the search for the best values in a part of the search space."""
N_IDENTIFYING_CONFIGS = 32
"""A benchmark in memory is identified by its values of this many configurations."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a benchmark comes from.

    Attributes:
        paper: Citation of the paper that defines it.
        source: Where its evaluations come from.
        licence: Licence of the evaluations.
    """

    paper: str
    source: str
    licence: str

    @property
    def bibtex(self) -> str:
        """The BibTeX entries of what to cite: papers, data and this package."""
        return format_bibtex(f"{self.paper}; {self.source}")


@dataclass(frozen=True)
class Task:
    """One objective to optimise.

    Attributes:
        name: Its name, unique in the benchmark.
        index: Its position in the benchmark's sequence, from 0.
        context: What is known beforehand, by name: training-set size, index, ...
        best_value: Best value known, in the objective's own units; None if unknown.
        space: The benchmark's search space.
        objective: The benchmark's objective.
        provenance: Where the benchmark comes from, and what to cite (`provenance.bibtex`).

    Examples:
        >>> import hpobench_ordered as hbo
        >>> task = hbo.load("forrester").tasks[0]
        >>> value = task.evaluate({"x": 0.5})
        >>> bool(task.evaluate_many([{"x": 0.5}, {"x": 0.7}])[0] == value)
        True
        >>> bool(task.regret(value) > 0)
        True
    """

    name: str
    index: int
    context: Mapping[str, float]
    best_value: float | None
    space: SearchSpace = field(repr=False)
    objective: Objective
    provenance: Provenance = field(repr=False)
    _surrogate: Surrogate = field(repr=False)  # predicts the values of this task by its index
    # Loads the training data of the task with an index; None if the benchmark has none.
    _data: Callable[[int], TaskData | None] | None = field(default=None, repr=False, compare=False)
    # Predicts the seconds of an evaluation; None if they are unknown.
    _costs: Surrogate | None = field(default=None, repr=False, compare=False)

    def __hash__(self) -> int:
        """Return a hash that is equal for equal tasks.

        It does not tell all tasks apart, as the context, which is a dict, has no hash.
        """
        return hash((self.name, self.index))

    def _repr_html_(self) -> str:
        """Describe the task as an HTML table, which notebooks show."""
        rows = [
            ("index", self.index),
            ("context", key_values(self.context.items())),
            ("objective", f"{self.objective.direction.value} {self.objective.name}"),
            ("unit", self.objective.unit),
            ("best known value", "unknown" if self.best_value is None else self.best_value),
            ("search space", f"{self.space.dimension} hyperparameters"),
        ]
        return table(f"Task {self.name}", ("", ""), rows)

    def evaluate(self, config: ConfigLike) -> float:
        """Evaluate one configuration.

        Args:
            config: Hyperparameters by name; inactive ones and constants may be left out.

        Returns:
            The objective's value in its own units.

        Raises:
            InvalidConfigError: The configuration does not fit the search space.
        """
        return self.evaluate_row(self.space.row(config))

    def evaluate_row(self, row: FloatArray) -> float:
        """Evaluate one configuration that `SearchSpace.row` has checked and coded, shape (d,)."""
        return self._surrogate.predict_one(row, self.index)

    def evaluate_many(self, configs: "FloatArray | DataFrame | Iterable[ConfigLike]") -> FloatArray:
        """Evaluate many configurations at once; the values equal those of `evaluate` exactly.

        Args:
            configs: Dicts; or a DataFrame with a column per hyperparameter; or a float array of
                coded values as `SearchSpace.values` makes them, shape (n, d).

        Returns:
            The objective's values in its own units, shape (n,).

        Raises:
            InvalidConfigError: A configuration does not fit the search space.
        """
        return self._surrogate.predict(self.space.values(configs), self.index)

    def cost(self, config: ConfigLike) -> float | None:
        """Predict the seconds that the evaluation of one configuration takes; None if unknown.

        Raises:
            InvalidConfigError: The configuration does not fit the search space.
        """
        row = self.space.row(config)
        return None if self._costs is None else self._costs.predict_one(row, self.index)

    def costs(self, configs: "FloatArray | DataFrame | Iterable[ConfigLike]") -> FloatArray | None:
        """Predict the seconds of many evaluations, shape (n,); None if they are unknown.

        Args:
            configs: Configurations as for `evaluate_many`.

        Raises:
            InvalidConfigError: A configuration does not fit the search space.
        """
        values = self.space.values(configs)
        return None if self._costs is None else self._costs.predict(values, self.index)

    def evaluated(self, values: FloatArray, objective: FloatArray) -> Evaluations:
        """Make a history of the task from configurations and their objective values.

        Args:
            values: Configurations as coded by the task's space, (n, d).
            objective: Their objective values in their own units, NaN or infinite where the
                evaluation failed, (n,).

        Raises:
            EvaluationsError: They do not fit the task's search space.
        """
        return Evaluations(
            self.name,
            self.context,
            values,
            objective,
            space=self.space,
            direction=self.objective.direction,
        )

    @property
    def data(self) -> TaskData | None:
        """Training data of the task's model; None if the benchmark has none.

        Raises:
            NotFetchedError: They must be fetched first.
        """
        return None if self._data is None else self._data(self.index)

    def regret(self, values: FloatArray) -> FloatArray:
        """Compute how much worse objective values are than the best known one; 0 is best.

        The result has the shape of `values`. It is infinite where the value is not finite, as the
        evaluation failed.

        Raises:
            ValueError: No best value is known for this task.
        """
        if self.best_value is None:
            raise ValueError(
                f"no best value is known for task {self.name!r}: compare objective values, or make "
                "the benchmark with `best_values`, as `Benchmark.build` and `from_evaluations` do"
            )
        differences = np.asarray(values, dtype=np.float64) - self.best_value
        # A difference of losses is that of the values, times -1 if the objective is maximised. So
        # the conversion from values to losses also converts differences.
        regrets = self.objective.losses(differences)
        return regrets + 0.0  # changes -0.0 to 0.0


@dataclass(frozen=True)
class Benchmark:
    """A named set of tasks on one search space, in order.

    Attributes:
        name: Name in the registry.
        version: Version; a benchmark whose values change gets the next one.
        summary: One line.
        surrogate: Name of the surrogate the tasks are evaluated on.
        space: Search space of every task.
        objective: What is measured.
        tasks: The tasks, in order.
        provenance: Where the benchmark comes from.
        previous: The same tasks on the search space before an adjustment; None if there was none.
        history_size: Evaluations of a source task that `evaluations` gives by default where none
            are recorded.
        recorded: Loads the raw evaluations that the surrogate was made of, one `Evaluations` a
            task; None where they are not available.
        trains: Whether a model is trained for every value, which takes milliseconds or longer.
        data: Where the training data of the tasks are; None if there are none, or in memory only.
        source: What `hpobench_ordered.load` takes to load it again: name and version, or the path
            of an artifact; empty for a benchmark that was made, or changed, in memory.
        identity: The name and version, followed by "+" and a hash of the content if these do not
            determine the values (`BenchmarkSpec.identity`); empty like `source`.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> bench = hbo.load("xgboost-mnist")
        >>> bench.id, bench.surrogate, len(bench.tasks)
        ('xgboost-mnist@1', 'forest', 28)
        >>> bench.task("120").context
        {'train_size': 120}
    """

    name: str
    version: int
    summary: str
    surrogate: str
    space: SearchSpace = field(repr=False)
    objective: Objective
    tasks: tuple[Task, ...] = field(repr=False)
    provenance: Provenance = field(repr=False)
    previous: "Benchmark | None" = field(default=None, repr=False)
    history_size: int = HISTORY_SIZE
    recorded: "Callable[[], Sequence[Evaluations]] | None" = field(
        default=None, repr=False, compare=False
    )
    trains: bool = field(default=False, repr=False)
    data: DataSource | None = field(default=None, repr=False, compare=False)
    # `BenchmarkSpec.load` sets both. They are no arguments, so that `dataclasses.replace`, which
    # makes another benchmark, leaves them empty.
    source: str = field(default="", init=False, repr=False, compare=False)
    identity: str = field(default="", init=False, repr=False, compare=False)

    @classmethod
    def build(
        cls,
        definition: "Definition",
        *,
        surrogate: str,
        model: Surrogate,
        best_values: Sequence[float | None],
        data: Callable[[int], TaskData | None] | None = None,
        costs: Surrogate | None = None,
    ) -> "Benchmark":
        """Make a benchmark from its definition and one of its surrogates.

        Args:
            definition: Space, objective and tasks.
            surrogate: Name of the surrogate.
            model: The surrogate.
            best_values: Best known value of each task on this surrogate.
            data: Loads the training data of a task, by its index.
            costs: Predicts the seconds that an evaluation takes; None if they are unknown.

        Raises:
            EvaluationsError: There are more or fewer best values than tasks.
        """
        if len(best_values) != len(definition.tasks):
            raise EvaluationsError(
                f"best_values must have a value, or None, for each of {len(definition.tasks)} "
                f"tasks, but has {len(best_values)}"
            )
        tasks: list[Task] = []
        for defined, best_value in zip(definition.tasks, best_values, strict=True):
            task = Task(
                name=defined.name,
                index=len(tasks),
                context=defined.context,
                best_value=best_value,
                space=definition.space,
                objective=definition.objective,
                provenance=definition.provenance,
                _surrogate=model,
                _data=data,
                _costs=costs,
            )
            tasks.append(task)
        return cls(
            name=definition.name,
            version=definition.version,
            summary=definition.summary,
            surrogate=surrogate,
            space=definition.space,
            objective=definition.objective,
            tasks=tuple(tasks),
            provenance=definition.provenance,
        )

    def __str__(self) -> str:
        """Describe the benchmark in text: its tasks, objective, surrogate and search space."""
        objective = self.objective
        aim = f"{objective.direction.value} {objective.name} ({objective.unit})"
        lines = [
            f"{self.id}: {self.summary}",
            f"{len(self.tasks)} tasks: {', '.join(task.name for task in self.tasks)}",
            f"{aim}, surrogate {self.surrogate!r}",
            repr(self.space),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Describe the benchmark as HTML tables, which notebooks show."""
        rows = []
        for task in self.tasks:
            context = key_values(task.context.items())
            rows.append((task.index, task.name, context, task.best_value))
        aim = f"{self.objective.direction.value} {self.objective.name}"
        caption = f"{self.id}, surrogate {self.surrogate}, {aim}: {self.summary}"
        columns = ("index", "task", "context", "best known value")
        return table(caption, columns, rows) + self.space._repr_html_()

    @property
    def id(self) -> str:
        """Name and version, such as "newsvendor@1"."""
        return BenchmarkIdentity(self.name, self.version).id

    def identify_by_values(self) -> str:
        """Return a text that identifies the benchmark's content, such as "mine@1+0123456789ab".

        After name and version it has a hash of the definition, of the values of 32 configurations
        on each task, and of the recorded evaluations if there are any. It does not depend on how
        the values are computed, so it serves for every kind of surrogate.
        """
        # Numbers of numpy, such as in a context, become floats, since JSON has no type for them.
        description = json.dumps(self._describe_definition(), default=float)
        content = hash_arrays(*self._iter_identifying_arrays(), description=description)
        return str(BenchmarkIdentity(self.name, self.version, content[:DIGITS_OF_CONTENT]))

    def _describe_definition(self) -> list[Any]:
        """Describe all that defines the benchmark except for its values, as JSON.

        This includes the benchmark before an adjustment of the search space, if there was one.
        """
        tasks: list[Any] = []
        hash_of_files = "" if self.data is None else self.data.content
        for task in self.tasks:
            # Files with a stated hash need not be fetched to tell them apart.
            if hash_of_files:
                hash_of_data: str | None = hash_of_files
            else:
                hash_of_data = None if task.data is None else task.data.digest
            tasks.append([task.name, dict(task.context), task.best_value, hash_of_data])
        objective = [self.objective.name, self.objective.direction.value]
        previous = None if self.previous is None else self.previous._describe_definition()
        return [self.space.to_json(), objective, tasks, self.history_size, previous]

    def _iter_identifying_arrays(self) -> Iterator[FloatArray]:
        """Yield values of some configurations on each task, and all recorded evaluations.

        Those of the benchmark before an adjustment follow, if there was one.
        """
        same_in_every_process = np.random.default_rng(0)
        unit = self.space.sample_unit(same_in_every_process, N_IDENTIFYING_CONFIGS)
        configs = self.space.decode(unit)
        for task in self.tasks:
            yield task.evaluate_many(configs)
        if self.recorded is not None:
            for evaluations in self.recorded():
                yield evaluations.values
                yield evaluations.losses
        if self.previous is not None:
            yield from self.previous._iter_identifying_arrays()

    def task(self, name: str | int) -> Task:
        """Find a task by its name, or by its index from 0.

        Raises:
            UnknownNameError: There is no such task.
        """
        for task in self.tasks:
            if name in (task.name, task.index):
                return task
        hint = f" (or an index: there are tasks 0 to {len(self.tasks) - 1})"
        raise UnknownNameError("task", name, [t.name for t in self.tasks], hint=hint)

    def restrict(self, restrictions: Mapping[str, Restriction]) -> "Benchmark":
        """Make the benchmark on a part of its search space.

        The surrogate is the same, and recorded evaluations are those inside the part. The best
        value of each task is searched again, on the surrogate, which takes seconds; where it was
        unknown it stays so. Where a model is trained for every value, it is the best recorded one.

        Results on the part are never mixed with those on the whole: its `identity` in results has a
        hash of its content.

        The search space before an adjustment (`previous`) is restricted to the same values. Where
        it does not tune a hyperparameter, or allows none of the values, it stays as it is.

        Args:
            restrictions: By name, the value at which a hyperparameter is held fixed, and which
                becomes a constant; a narrower range of numbers, such as (0.1, 10); or a list of the
                choices that are left.

        Raises:
            InvalidSpaceError: An unknown hyperparameter, a value that is not allowed, an empty
                range, or nothing is left to tune.

        Warns:
            HistoryWarning: Of some tasks no recorded evaluation is inside; random configurations
                then serve as history of all tasks. Or the search space before an adjustment tunes a
                hyperparameter, but allows none of the values that are left.

        Examples:
            >>> import hpobench_ordered as hbo
            >>> bench = hbo.load("fcn-b").restrict({"batch_size": 1, "n_units_1": (2, 5)})
            >>> bench.space.constants["batch_size"], bench.space["n_units_1"].describe()
            (1, 'an integer in [2, 5]')
        """
        if not restrictions:
            return self
        part = restrict_space(self.space, restrictions)
        # Those that are never active need a value, which does not count: it is replaced by NaN.
        lowest_values: Config = {}
        names_in_part = {*part.names, *part.constants}
        for parameter in self.space.parameters:
            if parameter.name not in names_in_part:
                lowest_values[parameter.name] = parameter.value(parameter.lower)
        surrogate = EmbeddedSurrogate(
            inner=self.tasks[0]._surrogate,
            whole=self.space,
            part=part,
            fixed=lowest_values,
            tasks=tuple(task.index for task in self.tasks),
        )

        recorded = self._select_recorded(part)
        best_values = self._find_best_values(surrogate, recorded)
        costs = self.tasks[0]._costs
        if costs is not None:
            costs = replace(surrogate, inner=costs)
        tasks: list[Task] = []
        for task, best_value in zip(self.tasks, best_values, strict=True):
            task_on_part = replace(
                task, best_value=best_value, space=part, _surrogate=surrogate, _costs=costs
            )
            tasks.append(task_on_part)
        return replace(
            self,
            summary=f"{self.summary} Restricted to {describe_restrictions(restrictions)}.",
            space=part,
            tasks=tuple(tasks),
            previous=self._restrict_previous(restrictions),
            recorded=None if recorded is None else lambda: recorded,
        )

    def _restrict_previous(self, restrictions: Mapping[str, Restriction]) -> "Benchmark | None":
        """Restrict the benchmark before an adjustment, where its search space allows that."""
        if self.previous is None:
            return None
        space = self.previous.space
        adapted = adapt_restrictions(restrictions, space)
        left_whole = [name for name in restrictions if name in space.names and name not in adapted]
        if left_whole:
            warn_user(
                "the search space before the adjustment allows none of the values that are left of "
                f"{join_words(left_whole)}: there it is not restricted",
                HistoryWarning,
            )
        return self.previous.restrict(adapted)

    def _select_recorded(self, part: SearchSpace) -> tuple[Evaluations, ...] | None:
        """Select the recorded evaluations of each task that are in a part of the search space.

        The result is None if none are recorded, or a task has none in the part: the latter with a
        warning.
        """
        if self.recorded is None:
            return None
        selected = tuple(of_task.inside(part) for of_task in self.recorded())
        tasks_without = [repr(of_task.task) for of_task in selected if not len(of_task)]
        if not tasks_without:
            return selected
        warn_user(
            f"no recorded evaluation of {join_words(tasks_without)} is in the restricted search "
            "space: random configurations are evaluated for the history of all tasks instead",
            HistoryWarning,
        )
        return None

    def _find_best_values(
        self, surrogate: EmbeddedSurrogate, recorded: Sequence[Evaluations] | None
    ) -> list[float | None]:
        """Find the best value of each task in a part of the search space; None where unknown.

        Args:
            surrogate: The surrogate on the part.
            recorded: Recorded evaluations of each task that are in the part; None if there are
                none.
        """
        nothing_known: list[float | None] = [None] * len(self.tasks)
        is_known = [task.best_value is not None for task in self.tasks]
        if not any(is_known):
            return nothing_known

        configs = None
        if recorded is not None:
            configs = np.concatenate([of_task.values for of_task in recorded])
        if not self.trains:
            best_values = find_best_values(
                surrogate,
                surrogate.part,
                self.objective,
                n_tasks=len(self.tasks),
                start=configs,
                draws=DRAWS_IN_PART,
            )
        elif recorded is not None:  # a search would take too long
            best_losses = np.array([of_task.losses.min() for of_task in recorded])
            best_values = self.objective.values(best_losses).tolist()
        else:
            return nothing_known

        best_known: list[float | None] = []
        for value, is_known_before in zip(best_values, is_known, strict=True):
            best_known.append(value if is_known_before else None)
        return best_known

    def evaluations(
        self, task: int, *, rng: np.random.Generator, n: int | None = None
    ) -> Evaluations:
        """Return evaluations of a task for use as history.

        These are the recorded ones. If none are recorded, random configurations are evaluated.

        Args:
            task: Index of the task.
            rng: Chooses among the recorded evaluations, or the random configurations.
            n: Number of evaluations. The default is all recorded ones, or `history_size` random
                ones. If fewer than n are recorded, all of them are returned.

        Returns:
            Recorded evaluations in the order of recording, or evaluations of configurations drawn
            uniformly.
        """
        if self.recorded is not None:
            recorded = self.recorded()[task]
            if n is None or n >= len(recorded):
                return recorded
            drawn_rows = rng.choice(len(recorded), size=n, replace=False)
            rows = np.sort(drawn_rows)  # in the order of recording
            return replace(
                recorded, values=recorded.values[rows], objective=recorded.objective[rows]
            )

        n_random = self.history_size if n is None else n
        values = self.space.decode(self.space.sample_unit(rng, n_random))
        objective = self.tasks[task].evaluate_many(values)
        return self.tasks[task].evaluated(values, objective)


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    """Name and context of a task, as written in an artifact.

    Raises:
        InvalidNameError: The name cannot be printed or be part of a file's name.
    """

    name: str
    context: Mapping[str, int | float]

    def __post_init__(self) -> None:
        """Check the name."""
        check_name("task", self.name)


@dataclass(frozen=True, slots=True)
class Definition:
    """A benchmark without its surrogate: the content of an artifact's `benchmark.json`.

    Raises:
        InvalidNameError: The name of it, or of its objective, cannot be printed or be part of a
            file's name.
    """

    name: str
    version: int
    summary: str
    space: SearchSpace
    objective: Objective
    tasks: tuple[TaskDefinition, ...]
    provenance: Provenance

    def __post_init__(self) -> None:
        """Check the names of the benchmark and of its objective."""
        check_name("benchmark", self.name)
        check_name("objective", self.objective.name)
