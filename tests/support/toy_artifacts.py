"""Artifacts to be damaged, and what may come of using one that is."""

import json
import shutil
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.data.artifact import SUMS, Artifact
from hpobench_ordered.data.benchmark import Definition, Provenance, TaskDefinition
from hpobench_ordered.data.identity import hash_file
from hpobench_ordered.data.objective import Direction, Objective
from hpobench_ordered.data.raw_evaluations import RawEvaluations
from hpobench_ordered.data.surrogate import Surrogate
from hpobench_ordered.errors import HPOBenchOrderedError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.surrogates.bundle import BundledSurrogate, read_card, write_bundle
from hpobench_ordered.surrogates.card import Card, TaskQuality, find_versions
from hpobench_ordered.surrogates.coding import space_coding
from hpobench_ordered.surrogates.forest import LEAF, ForestSurrogate, TaskMix
from hpobench_ordered.surrogates.nearest import NearestSurrogate, log_coding
from hpobench_ordered.surrogates.per_task import PerTaskSurrogate
from hpobench_ordered.surrogates.table import TableSurrogate

SPACE = SearchSpace(
    [
        Parameter.number("size", 1, 3, integer=True),
        Parameter.number("depth", 1, 4, integer=True, log=True),
        Parameter.choice("kernel", ("linear", "radial")),
    ]
)
TASKS = {"early": {"age": 0}, "late": {"age": 1}}


GRID_SHAPE = (3, 4, 2)
"""Numbers of sizes, depths and kernels."""
LOWEST_CODES = (1, 1, 0)
"""Sizes and depths are coded as they are, kernels from 0."""
N_CONFIGURATIONS = 24


def code_all_configurations() -> NDArray[np.float64]:
    """Coded values of all configurations of the space, (24, 3)."""
    steps_along_axes = np.indices(GRID_SHAPE).reshape(len(GRID_SHAPE), -1).T
    return steps_along_axes.astype(np.float64) + LOWEST_CODES


def make_forest(tasks: int) -> ForestSurrogate:
    """A forest of one or two tasks, made by hand.

    It has two trees. The first splits at node 0 into a leaf and node 2, which splits into two
    leaves; the second splits once.
    """
    first_output_alone = TaskMix(0, 0)
    mean_of_outputs = TaskMix(0, 1, 0.5)
    return ForestSurrogate(
        coding=space_coding(SPACE),
        nodes=np.array([5, 3]),  # number of nodes of each tree
        feature=np.array([0, LEAF, 1, LEAF, LEAF, 2, LEAF, LEAF]),  # that each node splits
        threshold=np.array([1.5, 0.7, 0.5]),  # of each split
        # Each output has a code for each of the five leaves: it predicts offset + step * code.
        codes=np.array([[0, 100, 65535, 7, 9], [5, 4, 3, 2, 1]]),
        offset=np.array([0.5, 0.25]),
        step=np.array([1e-5, 2e-5]),
        tasks=(first_output_alone, mean_of_outputs)[:tasks],
    )


def make_surrogates() -> dict[str, tuple[SurrogateType, Surrogate]]:
    """Make a surrogate of every kind, with its type, by name; all have two tasks."""
    values = code_all_configurations()
    objective = np.random.default_rng(0).random((N_CONFIGURATIONS, 2))  # a column for each task
    nearest = NearestSurrogate.from_evaluations(values, objective, coding=log_coding(SPACE, values))
    grids_of_tasks = objective.T.reshape(2, *GRID_SHAPE)
    table = TableSurrogate.from_values(grids_of_tasks, lower=list(LOWEST_CODES))
    forests_of_tasks = PerTaskSurrogate((make_forest(1), make_forest(1)))
    return {
        "forest": (SurrogateType.FOREST, make_forest(2)),
        "nearest": (SurrogateType.NEAREST, nearest),
        "table": (SurrogateType.TABLE, table),
        "apart": (SurrogateType.PER_TASK, forests_of_tasks),
    }


def make_definition(
    space: SearchSpace = SPACE,
    tasks: Mapping[str, Mapping[str, float]] = TASKS,
    **changes: Any,
) -> Definition:
    """A toy benchmark's definition, from the context of each task by name; `changes` are fields."""
    toy = Definition(
        name="toy",
        version=1,
        summary="A toy.",
        space=space,
        objective=Objective("error", "%", Direction.MINIMIZE),
        tasks=tuple(TaskDefinition(name, context) for name, context in tasks.items()),
        provenance=Provenance("none", "nowhere", "CC0"),
    )
    return replace(toy, **changes)


def make_card(tasks: Iterable[str] = TASKS, **changes: Any) -> Card:
    """A toy's quality card for tasks of these names; `changes` are fields."""
    quality_of_tasks = []
    for name in tasks:
        quality_of_tasks.append(TaskQuality(name, r2=-1e3, spearman=0.5, top_decile=0.5))
    card = Card(
        benchmark="toy",
        surrogate=SurrogateType.FOREST,
        source="nowhere",
        licence="CC0",
        evaluations=2 * N_CONFIGURATIONS,  # on two tasks
        configurations=N_CONFIGURATIONS,
        folds=2,
        figures=tuple(quality_of_tasks),
        limits=("A toy.",),
        command="none",
        versions=find_versions("numpy"),
    )
    return replace(card, **changes)


def write_artifact(folder: Path) -> Path:
    """Write an artifact with surrogates of every kind, and raw evaluations; return its folder."""
    values = code_all_configurations()
    bundled = []
    for name, (_type, model) in make_surrogates().items():
        best_values = [float(model.predict(values, task).min()) for task in range(len(TASKS))]
        bundled.append(BundledSurrogate(name, "A toy.", model, best_values))

    evaluations_of_task = RawEvaluations(
        values=values,
        objective=np.linspace(0, 1, N_CONFIGURATIONS),
        spread=np.full(N_CONFIGURATIONS, np.nan),  # unknown
        training=np.arange(N_CONFIGURATIONS),  # each evaluation comes from a training of its own
    )
    write_bundle(
        folder,
        make_definition(),
        bundled,
        make_card(),
        evaluations=[evaluations_of_task] * len(TASKS),
    )
    return folder


def copy_artifact(source: Path, folder: Path) -> Path:
    """Copy an artifact into a folder, in the place of whatever is there."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    return folder


def update_hashes(folder: Path) -> None:
    """Write the hashes of the files that are in the folder, so that these count as undamaged."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    names = [name for name in names if name != SUMS]
    lines = [f"{hash_file(folder / name)}  {name}\n" for name in names]
    (folder / SUMS).write_text("".join(lines))


def replace_file(folder: Path, name: str, data: bytes) -> None:
    """Replace a file, and update its hash."""
    (folder / name).write_bytes(data)
    update_hashes(folder)


def replace_arrays(folder: Path, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Replace an array file, and update its hash; arrays of objects are pickled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of formats that older NumPy cannot read
        np.savez(folder / name, **arrays)
    update_hashes(folder)


def change_json(folder: Path, name: str, change: Callable[[Any], Any]) -> None:
    """Replace the content of a JSON file by `change(content)`, and update its hash."""
    content = json.loads((folder / name).read_text())
    replace_file(folder, name, json.dumps(change(content)).encode())


def find_problem(folder: Path) -> str:
    """Use all of an artifact; return the message of the package's error, "" if there is none.

    Exceptions that are not the package's own are not caught.
    """
    try:
        artifact = Artifact(folder)
        read_card(artifact).describe()
        for option in benchmark_spec(folder).surrogates:
            _use_benchmark(hbo.load(folder, surrogate=option.name))
    except HPOBenchOrderedError as error:
        assert str(error)
        return str(error)
    return ""


def _use_benchmark(benchmark: hbo.Benchmark) -> None:
    """Evaluate random configurations on all tasks, and read the recorded evaluations."""
    space = benchmark.space
    random_values = space.decode(space.sample_unit(np.random.default_rng(0), 40))
    (first_config,) = space.configs(random_values[:1])
    for task in benchmark.tasks:
        objective = task.evaluate_many(random_values)
        np.testing.assert_equal(task.evaluate(first_config), objective[0])
    if benchmark.recorded is not None:
        benchmark.recorded()
