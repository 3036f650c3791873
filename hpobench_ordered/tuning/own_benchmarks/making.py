"""Makes benchmarks from tables of evaluations."""

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._wording import suggest_allowed
from hpobench_ordered.data.benchmark import Benchmark, Definition, Provenance, TaskDefinition
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.data.objective import Direction, Objective
from hpobench_ordered.data.raw_evaluations import RawEvaluations
from hpobench_ordered.data.task_data import TaskData
from hpobench_ordered.errors import EvaluationsError, PoorSurrogateWarning
from hpobench_ordered.space.conversion import SpaceLike, to_search_space
from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.tuning.own_benchmarks.fitting import average_repeats, fit_benchmark
from hpobench_ordered.tuning.reading.read import read_surrogate_data
from hpobench_ordered.tuning.reading.sources import open_table
from hpobench_ordered.tuning.reading.tables import Columns

if TYPE_CHECKING:
    from pandas import DataFrame

    from hpobench_ordered.surrogates.pipeline import BenchmarkFit

FEWEST = {SurrogateType.NEAREST: 2, SurrogateType.FOREST: 10}
"""Fewest different configurations per task, by kind of surrogate."""
FEWEST_TO_JUDGE = 50
"""Fewest different configurations per task for judging the quality of a surrogate."""
OF_THE_USER = Provenance("not stated", "evaluations of the user", "not stated")
CHANCE_OVERLAP = 0.1
"""Expected top-decile overlap of a surrogate that ranks configurations at random."""


@dataclass(frozen=True, eq=False)
class FittedEvaluations:
    """The evaluations that a benchmark was made from, by task, and the surrogate fitted to them."""

    evaluations: tuple[Evaluations, ...]
    fit: "BenchmarkFit"

    def __call__(self) -> tuple[Evaluations, ...]:
        """The evaluations of every task."""
        return self.evaluations


def from_evaluations(
    frame: "DataFrame | str | os.PathLike[str]",
    space: SpaceLike,
    *,
    name: str,
    objective: str,
    direction: Direction | str,
    task: str | None = None,
    context: Sequence[str] = (),
    ordered: str | None = None,
    data: Mapping[str, TaskData] | None = None,
    surrogate: SurrogateType | str = SurrogateType.NEAREST,
    drop_invalid: bool = False,
    version: int = 1,
    summary: str = "",
    unit: str = "",
    provenance: Provenance | None = None,
    seed: int = 0,
    workers: int = 1,
) -> Benchmark:
    """Make a benchmark from a table of evaluations.

    The table has a row per evaluation and a column per hyperparameter, with native values, NaN or
    None where it is inactive; further columns hold the task, the objective and the contexts, others
    are ignored. `Benchmark.recorded` are its rows.

    With `SurrogateType.NEAREST` a configuration has the value of the nearest one that was evaluated
    on the task, in standardised hyperparameters, log scales applied, so evaluated ones keep theirs.
    With `SurrogateType.FOREST` it has the average of regression trees; one forest serves all
    tasks if all were evaluated on the same configurations, else each task has its own. Either way
    repeated evaluations of a configuration on a task are averaged first.

    The best value of a task is exact for `NEAREST`: the best of these averages. For `FOREST` it is
    the best that the forest gives for the configurations in the table, 200 000 random ones and
    a refinement around the best of them; a longer search may find better ones.

    The benchmark can be used at once: through `task.evaluate`, or by `hpobench_ordered.run` with
    `benchmarks=[...]`. From a shell, it is named by the path to which `save` has written it.

    Args:
        frame: The table, or a file of it: CSV, perhaps compressed by gzip, or Parquet.
        space: The search space.
        name: Name of the benchmark.
        objective: Column of the objective's value, and the objective's name.
        direction: Whether it is minimised or maximised: "minimize", "maximize", or a `Direction`.
        task: Column of the task's name; default: "task". A table without such a column is one task,
            named after its file.
        context: Columns of numbers that are known of a task beforehand, constant on each.
        ordered: The context that tasks are sorted by, ascending; default: tasks come in the order
            in which they first appear.
        data: Training data of each task, by its name, for methods that use them
            (`MethodSpec.uses_data`); `save` does not write them.
        surrogate: "nearest" or "forest", which needs the extra `generate`; or a `SurrogateType`.
        drop_invalid: Leave out rows whose objective is not finite, or which are outside of the
            search space, instead of rejecting the table.
        version: Version of the benchmark's values.
        summary: One line; default: the number of evaluations.
        unit: The objective's unit.
        provenance: Paper, source and licence of the evaluations.
        seed: Seed of the forest, of the search for its best values, and of the folds of the
            cross-validation when it is saved.
        workers: Number of threads that fit the forest.

    Raises:
        InvalidNameError: The name of the benchmark, a task or the objective cannot be printed or
            be part of a file name.
        EvaluationsError: The table or an argument is invalid; the message says which column, row
            or task.
        MissingExtraError: A forest is asked for, and scikit-learn is not installed.

    Warns:
        HistoryWarning: Rows are left out; or the table has no column of tasks, and other columns
            that are not used.
        PoorSurrogateWarning: In cross-validation nearest neighbours do not tell good configurations
            from others.

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
        ...     direction="minimize",
        ... )
        >>> [task.name for task in bench.tasks]
        ['small', 'large']
        >>> bench.task("large").evaluate({"depth": 9})
        0.1
    """
    _check_contexts(context, ordered)
    kind = parse_surrogate_type(surrogate)
    search_space = to_search_space(space)
    chosen_direction = Direction.of(direction)
    columns = Columns(task, objective, tuple(context))
    evaluations = read_surrogate_data(
        open_table(frame),
        search_space,
        columns,
        direction=chosen_direction,
        drop_invalid=drop_invalid,
    )
    if ordered is not None:
        evaluations = tuple(sorted(evaluations, key=lambda e: e.context[ordered]))

    row_count = sum(len(of_task) for of_task in evaluations)
    definition = Definition(
        name=name,
        version=version,
        summary=summary or f"{row_count} evaluations of {len(evaluations)} tasks.",
        space=search_space,
        objective=Objective(objective, unit, chosen_direction),
        tasks=tuple(TaskDefinition(e.task, e.context) for e in evaluations),
        provenance=provenance or OF_THE_USER,
    )
    # Repeated evaluations of a configuration are averaged.
    averages = [average_repeats(of_task.values, of_task.objective) for of_task in evaluations]
    _check_number_of_configs(definition, averages, kind)
    fit = fit_benchmark(kind, definition, averages, seed=seed, workers=workers)
    fewest_configs = min(len(average) for average in averages)
    if kind is SurrogateType.NEAREST and fewest_configs >= FEWEST_TO_JUDGE:
        _warn_if_poor(fit)

    load_data = None
    if data:
        _check_data(definition, data)
        data_in_order = tuple(data.get(task.name) for task in definition.tasks)
        load_data = data_in_order.__getitem__
    benchmark = Benchmark.build(
        definition,
        surrogate=kind.name.lower(),
        model=fit.model,
        best_values=fit.best_values,
        data=load_data,
    )
    return replace(benchmark, recorded=FittedEvaluations(evaluations, fit))


def _check_contexts(context: Sequence[str], ordered: str | None) -> None:
    """Raise an `EvaluationsError` unless `context` is a list that contains `ordered`."""
    if isinstance(context, str):
        raise EvaluationsError(
            f"context must be a list, such as [{context!r}], but got {context!r}"
        )
    if ordered is not None and ordered not in context:
        hint = suggest_allowed(ordered, context)
        raise EvaluationsError(f"ordered must be one of the contexts, but got {ordered!r}{hint}")


def _warn_if_poor(fit: "BenchmarkFit") -> None:
    """Warn if nearest neighbours rank configurations no better than chance.

    They do if their cross-validated top-decile overlap, the mean over tasks, is at most
    `CHANCE_OVERLAP`.
    """
    overlap = float(np.mean([task.top_decile for task in fit.quality_of_tasks]))
    if overlap <= CHANCE_OVERLAP:
        warnings.warn(
            f"the nearest neighbours of {fit.definition.name} tell good configurations from "
            f"others no better than chance: a cross-validated top-decile overlap of {overlap:.2f}, "
            'on average over the tasks; try from_evaluations(..., surrogate="forest"), or more '
            "evaluations",
            PoorSurrogateWarning,
            stacklevel=3,
        )


def parse_surrogate_type(choice: SurrogateType | str) -> SurrogateType:
    """Return the type of a surrogate that users can choose (the keys of `FEWEST`), by its name."""
    by_name = {kind.name.lower(): kind for kind in FEWEST}
    name = choice.name.lower() if isinstance(choice, SurrogateType) else choice
    if name not in by_name:
        raise EvaluationsError(f"unknown surrogate {name!r}{suggest_allowed(str(name), by_name)}")
    return by_name[name]


def _check_data(definition: Definition, data: Mapping[str, TaskData]) -> None:
    """Raise an `EvaluationsError` if there are data of a task that the benchmark lacks."""
    names = [task.name for task in definition.tasks]
    for name in data:
        if name not in names:
            hint = suggest_allowed(str(name), names)
            raise EvaluationsError(f"data of an unknown task {name!r}{hint}")


def _check_number_of_configs(
    definition: Definition, averages: Sequence[RawEvaluations], kind: SurrogateType
) -> None:
    """Raise an `EvaluationsError` if a task has fewer configurations than a surrogate needs."""
    tasks = definition.tasks
    needed = FEWEST[kind]
    too_few: list[tuple[int, str]] = []
    for task, average in zip(tasks, averages, strict=True):
        if len(average) < needed:
            too_few.append((len(average), task.name))
    if too_few:
        count, name = min(too_few)
        raise EvaluationsError(
            f"surrogate {kind.name.lower()!r} needs evaluations of at least {needed} different "
            f"configurations on every task; {len(too_few)} of {len(tasks)} tasks have fewer, such "
            f"as {name!r} with {count}"
        )
