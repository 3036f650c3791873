"""Results of experiments as history."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered._wording import suggest_allowed
from hpobench_ordered.data.benchmark import Benchmark, Definition
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.data.identity import BenchmarkIdentity
from hpobench_ordered.data.protocol_text import parse_protocol_name
from hpobench_ordered.errors import StoreError, UnknownNameError
from hpobench_ordered.experiment.api import Results
from hpobench_ordered.experiment.overview import State
from hpobench_ordered.experiment.plan import resolve_benchmark
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.experiment.stored_runs import StoredRuns
from hpobench_ordered.space.coded import code_stored

if TYPE_CHECKING:
    import pandas as pd


def history_from_results(
    results: Results | StoredRuns | str | os.PathLike[str],
    *,
    method: str,
    seed: int,
    benchmark: Benchmark | str | os.PathLike[str] | None = None,
    protocol: str | None = None,
) -> tuple[Evaluations, ...]:
    """Read the trials of one run of an experiment as history.

    Args:
        results: What `hpobench_ordered.run` returned, or the folder of its results.
        method: Name of the method whose trials are taken.
        seed: Its seed.
        benchmark: The benchmark, or what `hpobench_ordered.load` takes; needed if there are several
            or it is not registered.
        protocol: The protocol, such as "ordered" or with settings as in the results; needed if
            there are several.

    Returns:
        The evaluations of each task, in the order of the run.

    Raises:
        StoreError: There is no such run, there are several, it is on another benchmark, or the
            results cannot be read.
        UnknownNameError: The benchmark is not registered.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> from hpobench_ordered.tuning import history_from_results
        >>> results = hbo.run(
        ...     benchmarks=["newsvendor"],
        ...     methods=["random-search"],
        ...     seeds=[0],
        ...     protocol=hbo.Ordered(trials=5, tasks=2),
        ... )
        >>> history = history_from_results(results, method="random-search", seed=0)
        >>> [(trials.task, len(trials), trials.direction.value) for trials in history]
        [('0', 5, 'maximize'), ('1', 5, 'maximize')]
    """
    if not isinstance(results, Results):
        store = results if isinstance(results, StoredRuns) else Store(Path(results))
        results = Results(store, ())
    identity = None if benchmark is None else resolve_benchmark(benchmark, {}).identity
    criteria = {"method": method, "seed": seed, "benchmark": identity, "protocol": protocol}
    run = _find_run(results, criteria)
    definition = _define_benchmark(results, run, benchmark)
    trials = results.store.configurations([str(run["key"])])
    objective = trials["value"].to_numpy(dtype=np.float64)
    values = code_stored(trials, definition.space.parameters)
    task_of_trial = trials["task"].to_numpy()

    history = []
    for index in dict.fromkeys(task_of_trial.tolist()):  # each task once, in order
        task = definition.tasks[index]
        is_on_task = task_of_trial == index
        evaluations = Evaluations(
            task.name,
            task.context,
            values[is_on_task],
            objective[is_on_task],
            space=definition.space,
            direction=definition.objective.direction,
        )
        history.append(evaluations)
    return tuple(history)


def _find_run(results: Results, criteria: Mapping[str, object]) -> Mapping[str, Any]:
    """Find the only finished run that meets some criteria.

    Args:
        results: The results.
        criteria: Value by column of `Overview.runs`; None allows all.

    Returns:
        Its key, benchmark and so on.

    Raises:
        StoreError: There are several such runs or none.
    """
    runs = results.overview().runs
    folder = results.store.folder
    runs = runs[runs["state"] == State.DONE.value]
    for column, value in criteria.items():
        if value is None:
            continue
        is_match = runs[column] == value
        if column == "protocol":  # it is also found by its name alone, without settings
            is_match |= runs[column].map(parse_protocol_name) == value
        if not is_match.any():
            stored_values = dict.fromkeys(runs[column].tolist())
            hint = suggest_allowed(str(value), map(str, stored_values))
            raise StoreError(f"there is no finished run of {column} {value!r} in {folder}{hint}")
        runs = runs[is_match]
    if len(runs) > 1:
        raise StoreError(
            f"there are {len(runs)} runs of {criteria['method']} with seed {criteria['seed']} in "
            f"{folder}; say which: {_list_differences(runs)}"
        )
    return dict(runs.iloc[0])


def _list_differences(runs: "pd.DataFrame") -> str:
    """In which benchmarks, surrogates and protocols runs differ, as text."""
    differences = []
    for column in ("benchmark", "surrogate", "protocol"):
        values = sorted(set(runs[column]))
        if len(values) > 1:
            differences.append(f"{column} {' or '.join(map(repr, values))}")
    return ", ".join(differences)


def _define_benchmark(
    results: Results, run: Mapping[str, Any], benchmark: Benchmark | str | os.PathLike[str] | None
) -> Definition:
    """Definition of a run's benchmark.

    Args:
        results: The results.
        run: What identifies the run, by name.
        benchmark: The benchmark; default: that of the plan, or the registered one of its name.

    Raises:
        StoreError: The benchmark is not registered, or has changed since the run.
    """
    name = BenchmarkIdentity.parse(str(run["benchmark"])).id
    source = benchmark
    if source is None:
        # The plan also has benchmarks that are not registered: their path, or the object itself.
        planned_sources = [cell.source for cell in results.cells if cell.key == run["key"]]
        source = planned_sources[0] if planned_sources else name
    surrogate_of_benchmark = {name: run["surrogate"]}  # perhaps not the default one
    try:
        to_run = resolve_benchmark(source, surrogate_of_benchmark)
    except UnknownNameError as error:
        raise StoreError(f"{error}. Give the benchmark of the results: benchmark=...") from None
    if to_run.identity != run["benchmark"]:
        raise StoreError(
            f"the results are on {run['benchmark']!r}, but {name!r} is {to_run.identity!r}. Give "
            "the benchmark of the results: benchmark=..."
        )
    return to_run.spec.define()
