"""Results of experiments as history."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hpobench_ordered._wording import suggest_allowed
from hpobench_ordered.adapters._tables import contexts_of
from hpobench_ordered.core.benchmark import Benchmark, Definition
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.core.identity import BenchmarkIdentity
from hpobench_ordered.errors import StoreError, UnknownNameError
from hpobench_ordered.experiment.api import Results
from hpobench_ordered.experiment.overview import State
from hpobench_ordered.experiment.plan import source_of
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.experiment.stored_runs import StoredRuns
from hpobench_ordered.protocols import parse_protocol_name
from hpobench_ordered.space.coded import code_stored


def history_from_results(
    results: Results | StoredRuns | str | os.PathLike[str],
    *,
    method: str,
    seed: int,
    benchmark: Benchmark | str | os.PathLike[str] | None = None,
    protocol: str | None = None,
    contexts: Mapping[str, Mapping[str, float]] | None = None,
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
        contexts: What is known of each task beforehand, by its name; default: as in the benchmark.

    Returns:
        The evaluations of each task, in the order of the run.

    Raises:
        StoreError: There is no such run, there are several, it is on another benchmark, or the
            results cannot be read.
        EvaluationsError: The contexts are not those of the tasks.
        UnknownNameError: The benchmark is not registered.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> results = hbo.run(
        ...     benchmarks=["newsvendor"],
        ...     methods=["random-search"],
        ...     seeds=[0],
        ...     protocol=hbo.Ordered(trials=5, tasks=2),
        ... )
        >>> history = hbo.history_from_results(results, method="random-search", seed=0)
        >>> [(one.task, len(one), one.direction.value) for one in history]
        [('0', 5, 'maximize'), ('1', 5, 'maximize')]
    """
    if not isinstance(results, Results):
        results = Results(results if isinstance(results, StoredRuns) else Store(Path(results)), ())
    identity = None if benchmark is None else source_of(benchmark, {})[2]
    named = {"method": method, "seed": seed, "benchmark": identity, "protocol": protocol}
    run = _run(results, {column: value for column, value in named.items() if value is not None})
    defined = _definition(results, run, benchmark)
    trials = results.store.configurations([str(run["key"])])
    if lacking := [name for name in defined.space.names if name not in trials]:
        raise StoreError(f"the results have no hyperparameter {lacking[0]!r}")
    values = code_stored(trials, defined.space.parameters)
    objective, losses = (trials[n].to_numpy(dtype=np.float64) for n in ("value", "loss"))
    if not np.array_equal(losses, defined.objective.losses(objective), equal_nan=True):
        raise StoreError(
            f"the losses in {results.store.folder} must be of an objective to "
            f"{defined.objective.direction.value}, as that of {defined.name}"
        )
    of_trial = trials["task"].to_numpy()
    tasks = {index: defined.tasks[index] for index in dict.fromkeys(of_trial.tolist())}
    known = {t.name: t.context for t in tasks.values()}
    context = contexts_of(known if contexts is None else contexts, list(known))
    return tuple(
        Evaluations(
            task.name,
            context[task.name],
            values[of_trial == index],
            np.where(np.isfinite(objective), objective, np.nan)[of_trial == index],
            space=defined.space,
            direction=defined.objective.direction,
        )
        for index, task in tasks.items()
    )


def _run(results: Results, chosen: Mapping[str, object]) -> Mapping[str, Any]:
    """The one finished run with these values: its key, benchmark and so on, else a `StoreError`."""
    runs, folder = results.overview().runs, results.store.folder
    runs = runs[runs["state"] == State.DONE.value]
    for column, value in chosen.items():
        there = runs[column]
        is_it = there == value
        if column == "protocol":
            is_it |= there.map(parse_protocol_name) == value
        if not is_it.any():
            hint = suggest_allowed(str(value), map(str, dict.fromkeys(there.tolist())))
            raise StoreError(f"there is no finished run of {column} {value!r} in {folder}{hint}")
        runs = runs[is_it]
    if len(runs) > 1:
        different = [
            f"{name} {' or '.join(map(repr, sorted(set(runs[name]))))}"
            for name in ("benchmark", "surrogate", "protocol")
            if runs[name].nunique() > 1
        ]
        raise StoreError(
            f"there are {len(runs)} runs of {chosen['method']} with seed {chosen['seed']} in "
            f"{folder}; say which: {', '.join(different)}"
        )
    return dict(runs.iloc[0])


def _definition(
    results: Results, run: Mapping[str, Any], benchmark: Benchmark | str | os.PathLike[str] | None
) -> Definition:
    """Definition of a run's benchmark; `StoreError` if it is not registered or has changed."""
    made_of = [cell.source for cell in results.cells if cell.key == run["key"]]
    name = BenchmarkIdentity.parse(str(run["benchmark"])).id
    source = benchmark if benchmark is not None else made_of[0] if made_of else name
    try:
        spec, _, identity, _ = source_of(source, {name: run["surrogate"]})
    except UnknownNameError as error:
        raise StoreError(f"{error}. Give the benchmark of the results: benchmark=...") from None
    if identity != run["benchmark"]:
        raise StoreError(
            f"the results are on {run['benchmark']!r}, but {name!r} is {identity!r}. Give the "
            "benchmark of the results: benchmark=..."
        )
    return spec.define()
