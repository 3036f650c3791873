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
from hpobench_ordered.core.benchmark import Definition, Provenance, TaskDefinition
from hpobench_ordered.core.objective import Direction, Objective
from hpobench_ordered.core.surrogate import Surrogate
from hpobench_ordered.errors import HPOBenchOrderedError
from hpobench_ordered.files.artifact import SUMS, Artifact
from hpobench_ordered.files.raw_evaluations import RawEvaluations
from hpobench_ordered.files.writing import file_sha256
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.surrogates.bundle import BundledSurrogate, read_card, write_bundle
from hpobench_ordered.surrogates.card import Card, TaskQuality, versions_of
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


def values() -> NDArray[np.float64]:
    """Coded values of all 24 configurations of the space, (24, 3)."""
    grid = np.indices((3, 4, 2)).reshape(3, -1).T.astype(np.float64)
    # Sizes are 1 to 3, depths 1 to 4, and the kernels are coded as 0 and 1.
    return grid + [1, 1, 0]


def forest(tasks: int) -> ForestSurrogate:
    """A forest of one or two tasks, with two trees: the first has three leaves, the second two."""
    return ForestSurrogate(
        coding=space_coding(SPACE),
        nodes=np.array([5, 3]),  # of each tree
        # Of each node: the feature that it splits.
        feature=np.array([0, LEAF, 1, LEAF, LEAF, 2, LEAF, LEAF]),
        threshold=np.array([1.5, 0.7, 0.5]),  # of each node that splits
        # Two sets of codes of the five leaves; a code stands for the value offset + step * code.
        codes=np.array([[0, 100, 65535, 7, 9], [5, 4, 3, 2, 1]]),
        offset=np.array([0.5, 0.25]),
        step=np.array([1e-5, 2e-5]),
        # The first task is predicted by the first set, the second by the mean of both.
        tasks=(TaskMix(0, 0), TaskMix(0, 1, 0.5))[:tasks],
    )


def surrogates() -> dict[str, tuple[SurrogateType, Surrogate]]:
    """A surrogate of every kind, with its type, by name; all have two tasks."""
    targets = np.random.default_rng(0).random((24, 2))  # of 24 configurations on two tasks
    nearest = NearestSurrogate.from_evaluations(
        values(), targets, coding=log_coding(SPACE, values())
    )
    table = TableSurrogate.from_values(targets.T.reshape(2, 3, 4, 2), lower=[1, 1, 0])
    return {
        "forest": (SurrogateType.FOREST, forest(2)),
        "nearest": (SurrogateType.NEAREST, nearest),
        "table": (SurrogateType.TABLE, table),
        "apart": (SurrogateType.PER_TASK, PerTaskSurrogate((forest(1), forest(1)))),
    }


def definition(
    space: SearchSpace = SPACE,
    tasks: Mapping[str, Mapping[str, float]] = TASKS,
    **changes: Any,
) -> Definition:
    """A toy benchmark's definition, from the context of each task, with some fields changed."""
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


def card_of(tasks: Iterable[str] = TASKS, **changes: Any) -> Card:
    """A toy's quality card for some tasks, with some fields changed."""
    card = Card(
        benchmark="toy",
        surrogate=SurrogateType.FOREST,
        source="nowhere",
        licence="CC0",
        evaluations=48,
        configurations=24,
        folds=2,
        figures=tuple(TaskQuality(name, -1e3, 0.5, 0.5) for name in tasks),
        limits=("A toy.",),
        command="none",
        versions=versions_of("numpy"),
    )
    return replace(card, **changes)


def write_artifact(folder: Path) -> Path:
    """Write an artifact with surrogates of every kind, and raw evaluations; return its folder."""
    bundled = []
    for name, (_, model) in surrogates().items():
        best_values = [float(model.predict(values(), task).min()) for task in range(2)]
        bundled.append(BundledSurrogate(name, "One.", model, best_values))

    raw = RawEvaluations(
        values=values(),
        objective=np.linspace(0, 1, 24),
        spread=np.full(24, np.nan),  # unknown
        training=np.arange(24),  # each evaluation has its own
    )
    evaluations_of_tasks = [raw, raw]
    write_bundle(folder, definition(), bundled, card_of(), evaluations=evaluations_of_tasks)
    return folder


def copy_artifact(source: Path, folder: Path) -> Path:
    """Make a copy to be damaged, in the place of the last one."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    return folder


def update_hashes(folder: Path) -> None:
    """Write the hashes of the files that are in the folder, so that these count as undamaged."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    names = [name for name in names if name != SUMS]
    lines = [f"{file_sha256(folder / name)}  {name}\n" for name in names]
    (folder / SUMS).write_text("".join(lines))


def replace_file(folder: Path, name: str, data: bytes) -> None:
    """Replace a file, and update its hash."""
    (folder / name).write_bytes(data)
    update_hashes(folder)


def replace_arrays(folder: Path, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Replace an array file, and update its hash; objects are pickled, as by `numpy.savez`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
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
        artifact.check()
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
        assert task.evaluate(first_config) == objective[0]
        assert np.isfinite(objective).all()
    if benchmark.recorded is not None:
        benchmark.recorded()
