"""From a table of evaluations to a benchmark, and from that to an artifact."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.benchmark import (
    Benchmark,
    Definition,
    Evaluations,
    Provenance,
    TaskDefinition,
)
from hpobench_ordered.errors import EvaluationsError
from hpobench_ordered.objective import Direction, Objective
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.user_benchmarks.fitting import Fit, Table
from hpobench_ordered.user_benchmarks.reading import Columns, TaskEvaluations, read_frame

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace
    from pandas import DataFrame

    from hpobench_ordered.bundle import RawEvaluations
    from hpobench_ordered.surrogates.card import Card, Figures

FEWEST = {SurrogateType.NEAREST: 2, SurrogateType.FOREST: 10}
"""Different configurations that a task needs, by the kinds of surrogates to choose from."""
FOLDS = 10


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a table, which `Benchmark.recorded` gives, and what was made of them.

    Attributes:
        evaluations: The evaluations of every task.
        fit: How the surrogate was fitted to them.
    """

    evaluations: tuple[Evaluations, ...]
    fit: Fit

    def __call__(self) -> tuple[Evaluations, ...]:
        """The evaluations of every task."""
        return self.evaluations


def from_evaluations(
    frame: "DataFrame",
    space: "SearchSpace | ConfigurationSpace",
    *,
    name: str,
    objective: str,
    direction: Direction,
    task: str = "task",
    context: Sequence[str] = (),
    ordered: str | None = None,
    surrogate: SurrogateType = SurrogateType.NEAREST,
    drop_invalid: bool = False,
    version: int = 1,
    summary: str = "",
    unit: str = "",
    provenance: Provenance | None = None,
    seed: int = 0,
    workers: int = 1,
) -> Benchmark:
    """Make a benchmark of a table of evaluations.

    The table has a row an evaluation and a column a hyperparameter, with native values, NaN or None
    where it is inactive; further columns hold the task, the objective and the contexts, others are
    ignored. `Benchmark.recorded` are its rows.

    With `SurrogateType.NEAREST` a configuration has the value of the nearest one that was evaluated
    on the task, in standardised hyperparameters, log scales applied: evaluated ones have their own.
    With `SurrogateType.FOREST` it has the average of regression trees; one forest stands for all
    tasks where all were evaluated on the same configurations, else each task has its own. Either
    way the values of configurations evaluated several times on a task are averaged first.

    The best value of a task is exact for `NEAREST`: the best of these averages. For `FOREST` it is
    the best that the forest gives for the configurations in the table, 200 000 random ones and
    a refinement around the best of them; a longer search may find better ones.

    The benchmark can be used at once: through `task.evaluate`, or with a method and a protocol
    through `hpobench_ordered.experiment.runner.follow`. `hpobench_ordered.run` loads benchmarks by
    name or path: write this one with `save`, and give the path.

    Args:
        frame: The table.
        space: The search space.
        name: Name of the benchmark.
        objective: Column of the objective's value, and the objective's name.
        direction: Whether it is minimised or maximised.
        task: Column of the task's name.
        context: Columns of numbers that are known of a task beforehand, constant on each.
        ordered: The context that tasks are sorted by, ascending; without, tasks come in the order
            in which they first appear.
        surrogate: `SurrogateType.NEAREST` or `SurrogateType.FOREST`, which needs the extra
            `generate`.
        drop_invalid: Leave out evaluations whose objective is not finite, instead of refusing.
        version: Version of the benchmark's values.
        summary: One line; how much of what there is without.
        unit: The objective's unit.
        provenance: Paper, source and licence of the evaluations.
        seed: Seed of the forest, of the search for its best values, and of the folds of the
            cross-validation when it is saved.
        workers: Number of threads that fit the forest.

    Raises:
        EvaluationsError: Something in the table, or asked of it, cannot be used; the message says
            which column, row or task.
        MissingExtraError: A forest is asked for, and scikit-learn is not installed.

    Examples:
        >>> import pandas as pd
        >>> import hpobench_ordered as hbo
        >>> from ConfigSpace import ConfigurationSpace
        >>> frame = pd.DataFrame(
        ...     {
        ...         "task": ["small", "small", "large", "large"],
        ...         "depth": [2, 7, 3, 8],
        ...         "error": [0.3, 0.4, 0.2, 0.1],
        ...     }
        ... )
        >>> bench = hbo.from_evaluations(
        ...     frame,
        ...     ConfigurationSpace({"depth": (1, 9)}),
        ...     name="mine",
        ...     objective="error",
        ...     direction=hbo.Direction.MINIMIZE,
        ... )
        >>> [task.name for task in bench.tasks]
        ['small', 'large']
        >>> bench.task("large").evaluate({"depth": 9})
        0.1
    """
    _check_choices(direction, context, surrogate)
    described = _search_space(space)
    columns = Columns(task, objective, tuple(context), ordered)
    read = read_frame(frame, described, columns, drop_invalid=drop_invalid)
    tables = [Table.of(one.values, one.objective) for one in read]
    _check_enough(read, tables, surrogate)
    definition = Definition(
        name=name,
        version=version,
        summary=summary or f"{sum(len(t.objective) for t in read)} evaluations of own tasks.",
        space=described,
        objective=Objective(objective, unit, direction),
        tasks=tuple(TaskDefinition(one.name, one.context) for one in read),
        provenance=provenance or Provenance("not stated", "own evaluations", "not stated"),
    )
    fit = Fit(surrogate, described, seed, workers)
    model = fit.surrogate(tables)
    return Benchmark.build(
        definition,
        surrogate=surrogate.name.lower(),
        model=model,
        best_values=fit.best_values(model, tables, definition.objective),
        recorded=Rows(tuple(_history(one, definition.objective) for one in read), fit),
    )


def save(benchmark: Benchmark, folder: str | Path) -> Path:
    """Write a benchmark that `from_evaluations` made as an artifact.

    It holds the surrogate, the evaluations, and a quality card of a cross-validation by
    configurations. `hpobench_ordered.load` and `run` take the artifact's path; in the folder
    `hpobench_ordered.registry.local_folder()` it is found by name.

    Args:
        benchmark: The benchmark.
        folder: Folder of the artifact; its last part should be the benchmark's name.

    Returns:
        The folder.

    Raises:
        EvaluationsError: The benchmark was not made by `from_evaluations`.
        ArtifactError: The folder cannot be written.

    Examples:
        >>> import tempfile
        >>> import pandas as pd
        >>> import hpobench_ordered as hbo
        >>> from ConfigSpace import ConfigurationSpace
        >>> frame = pd.DataFrame({"task": "a", "depth": range(1, 21), "error": range(20)})
        >>> bench = hbo.from_evaluations(
        ...     frame,
        ...     ConfigurationSpace({"depth": (1, 20)}),
        ...     name="mine",
        ...     objective="error",
        ...     direction=hbo.Direction.MINIMIZE,
        ... )
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = hbo.save(bench, f"{folder}/mine")
        ...     hbo.load(path).task("a").evaluate({"depth": 3})
        2.0
    """
    from hpobench_ordered.bundle import BundledSurrogate, write_bundle

    rows = benchmark.recorded
    if not isinstance(rows, Rows):
        raise EvaluationsError(f"{benchmark.id} was not made by from_evaluations")
    card = _card(benchmark, rows)
    model = benchmark.tasks[0]._surrogate  # that of all tasks
    bundled = BundledSurrogate(
        name=benchmark.surrogate,
        type=SurrogateType(f"{type(model).__module__}:{type(model).__qualname__}"),
        summary=card.limits[0],
        model=model,
        best_values=[cast("float", t.best_value) for t in benchmark.tasks],
    )
    definition = Definition(
        name=benchmark.name,
        version=benchmark.version,
        summary=benchmark.summary,
        space=benchmark.space,
        objective=benchmark.objective,
        tasks=tuple(TaskDefinition(t.name, t.context) for t in benchmark.tasks),
        provenance=benchmark.provenance,
    )
    raw = [_raw(evaluations, benchmark.objective) for evaluations in rows.evaluations]
    write_bundle(Path(folder), definition, [bundled], card, evaluations=raw)
    return Path(folder)


# -- internals -------------------------------------------------------------------------------------


def _check_choices(direction: Direction, context: Sequence[str], surrogate: SurrogateType) -> None:
    if not isinstance(direction, Direction):
        raise EvaluationsError(
            f"the direction is Direction.MINIMIZE or Direction.MAXIMIZE, got {direction!r}"
        )
    if surrogate not in FEWEST:
        names = " or ".join(f"SurrogateType.{kind.name}" for kind in FEWEST)
        raise EvaluationsError(f"the surrogate is {names}, got {surrogate!r}")
    if isinstance(context, str):
        raise EvaluationsError(f"contexts are given as a list, such as [{context!r}]")


def _search_space(given: "SearchSpace | ConfigurationSpace") -> SearchSpace:
    if isinstance(given, SearchSpace):
        return given
    if not hasattr(given, "to_serialized_dict"):
        raise EvaluationsError(
            "the search space is a SearchSpace or ConfigSpace's ConfigurationSpace, got "
            f"{type(given).__name__}"
        )
    return SearchSpace.from_configspace(given)


def _check_enough(
    tasks: Sequence[TaskEvaluations], tables: Sequence[Table], kind: SurrogateType
) -> None:
    needed = FEWEST[kind]
    few = [(len(t), task.name) for task, t in zip(tasks, tables, strict=True) if len(t) < needed]
    if few:
        count, name = min(few)
        raise EvaluationsError(
            f"{kind.name} needs evaluations of at least {needed} different configurations on every "
            f"task; {len(few)} of {len(tasks)} tasks have fewer, such as {name!r} with {count}"
        )


def _history(task: TaskEvaluations, objective: Objective) -> Evaluations:
    return Evaluations(task.name, task.context, task.values, objective.losses(task.objective))


def _raw(evaluations: Evaluations, objective: Objective) -> "RawEvaluations":
    from hpobench_ordered.bundle import RawEvaluations

    n = len(evaluations)
    return RawEvaluations(
        values=evaluations.values,
        objective=objective.losses(evaluations.losses),
        spread=np.full(n, np.nan),
        training=np.arange(n),
    )


def _card(benchmark: Benchmark, rows: Rows) -> "Card":
    from hpobench_ordered.generation._forest import NOT_OPTIMAL, describe_model
    from hpobench_ordered.surrogates.card import Card, versions_of
    from hpobench_ordered.surrogates.fitting import ForestRecipe

    fit, objective = rows.fit, benchmark.objective
    tables = [Table.of(e.values, objective.losses(e.losses)) for e in rows.evaluations]
    folds = min(FOLDS, *map(len, tables))
    limits = ["The value of the nearest configuration that was evaluated on the task."]
    if fit.kind is SurrogateType.FOREST:
        limits = [describe_model(ForestRecipe()), NOT_OPTIMAL]
    values = np.concatenate([table.values for table in tables])
    return Card(
        benchmark=benchmark.name,
        surrogate=fit.kind,
        source=benchmark.provenance.source,
        licence=benchmark.provenance.licence,
        evaluations=sum(map(len, rows.evaluations)),
        configurations=len(Table.of(values, np.zeros(len(values)))),
        folds=folds,
        figures=_figures(benchmark, tables, fit.cross_validate(tables, folds=folds)),
        limits=tuple(limits),
        command="hpobench_ordered.save",
        versions=versions_of("hpobench-ordered", "numpy", "scikit-learn"),
    )


def _figures(
    benchmark: Benchmark, tables: Sequence[Table], predicted: Sequence[FloatArray]
) -> "tuple[Figures, ...]":
    from hpobench_ordered.surrogates.card import figures

    found: list[Figures] = []
    for task, table, values in zip(benchmark.tasks, tables, predicted, strict=True):
        found += figures(
            table.objective[:, None],
            values[:, None],
            names=[task.name],
            direction=benchmark.objective.direction,
        )
    return tuple(found)
