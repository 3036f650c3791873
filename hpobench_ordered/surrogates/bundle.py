"""A benchmark's artifact: `benchmark.json`, one npz file per surrogate, `card.json`, SHA256SUMS.

It may also hold the raw evaluations behind the surrogates, in `evaluations.npz`, and evaluations
that serve as history in their place, in `runs.npz`, and what predicts the seconds that an
evaluation takes, in `costs.npz`. If models are trained on demand there are no
surrogates and no card, only such runs and best known values.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hpobench_ordered.data.arrays import check_arrays
from hpobench_ordered.data.artifact import Artifact, ArtifactWriter
from hpobench_ordered.data.benchmark import Definition
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.data.raw_evaluations import RAW_ARRAYS, STORED_ARRAYS, RawEvaluations
from hpobench_ordered.data.specs import BenchmarkSpec, SurrogateOption
from hpobench_ordered.data.surrogate import Surrogate
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.reading import MALFORMED, read_space
from hpobench_ordered.surrogates.base import StoredSurrogate, SurrogateType, load_stored
from hpobench_ordered.surrogates.card import Card

BENCHMARK = "benchmark.json"
CARD = "card.json"
EVALUATIONS = "evaluations.npz"
RUNS = "runs.npz"
"""Evaluations made by a method, which serve as history instead of those behind the surrogate."""
COSTS = "costs.npz"
"""Nearest neighbours that predict the seconds that an evaluation takes."""
BEST_VALUES = "best_values"


class StoredDescription(msgspec.Struct):
    """What `benchmark.json` says of a surrogate."""

    type: str
    summary: str
    file: str
    best_values: list[int | float]


class BundleContent(msgspec.Struct):
    """What `benchmark.json` holds besides the definition.

    Attributes:
        version: Version of the benchmark.
        summary: One line.
        surrogates: The surrogates by name.
        best_values: Best known values of a benchmark whose models are trained on demand.
    """

    version: int
    summary: str
    surrogates: dict[str, StoredDescription]
    best_values: list[int | float] = msgspec.field(default_factory=list)


@dataclass(frozen=True, slots=True)
class BundledSurrogate:
    """A surrogate to be written into an artifact."""

    name: str
    summary: str
    model: StoredSurrogate
    best_values: Sequence[float]


def write_bundle(
    folder: Path,
    definition: Definition,
    surrogates: Sequence[BundledSurrogate],
    card: Card,
    *,
    evaluations: Sequence[RawEvaluations] | None = None,
    runs: Sequence[RawEvaluations] | None = None,
    costs: StoredSurrogate | None = None,
) -> None:
    """Write a benchmark's artifact atomically.

    Args:
        folder: Folder of the artifact.
        definition: The benchmark: its space, objective and tasks.
        surrogates: Surrogates to store, each in a file of its own.
        card: The quality card, except for the size of the arrays, which is known when they are
            written.
        evaluations: Evaluations of each task to store; None to store none.
        runs: Evaluations of each task that a method made, to store as history; None for none.
        costs: Nearest neighbours that predict the seconds that an evaluation takes; None to store
            none.
    """
    with ArtifactWriter(folder) as writer:
        size = 0  # bytes of all files of arrays
        if runs is not None:
            size += writer.write_arrays(RUNS, _raw_to_arrays(runs, definition))
        if evaluations is not None:
            size += writer.write_arrays(EVALUATIONS, _raw_to_arrays(evaluations, definition))
        if costs is not None:
            size += writer.write_arrays(COSTS, costs.to_arrays())

        descriptions = {}  # of the surrogates, for `benchmark.json`
        for surrogate in surrogates:
            file = f"{surrogate.name}.npz"
            size += writer.write_arrays(file, surrogate.model.to_arrays())
            descriptions[surrogate.name] = {
                "type": surrogate.model.STORED_AS.name,
                "summary": surrogate.summary,
                "file": file,
                "best_values": list(surrogate.best_values),
            }

        content = {**definition_to_json(definition), "surrogates": descriptions}
        writer.write_json(BENCHMARK, content)
        writer.write_json(CARD, replace(card, size=size).to_json())


def write_runs(
    folder: Path,
    definition: Definition,
    runs: Sequence[RawEvaluations],
    best_values: Sequence[float],
) -> None:
    """Write the artifact of a benchmark whose models are trained on demand.

    Args:
        folder: Folder of the artifact.
        definition: The benchmark: its space, objective and tasks.
        runs: Evaluations of each task that a method made, which serve as history.
        best_values: Best known value of each task.
    """
    with ArtifactWriter(folder) as writer:
        writer.write_arrays(RUNS, _raw_to_arrays(runs, definition))
        no_surrogates: dict[str, Any] = {}
        content = {
            **definition_to_json(definition),
            BEST_VALUES: list(best_values),
            "surrogates": no_surrogates,
        }
        writer.write_json(BENCHMARK, content)


def read_best_values(artifact: Artifact) -> list[float]:
    """Read the best known value of each task of a benchmark whose models are trained on demand.

    Raises:
        ArtifactError: The file is malformed.
    """
    return _read_content(artifact).best_values


def bundled_spec(
    name: str,
    *,
    version: int,
    summary: str,
    surrogates: Mapping[str, str],
    more: Sequence[SurrogateOption] = (),
    is_recorded: bool = False,
    has_runs: bool = False,
    has_costs: bool = False,
    family: str = "",
) -> BenchmarkSpec:
    """Make the spec of a benchmark whose artifact is in the package.

    Args:
        name: Name of the benchmark and of its artifact.
        version: Version that the artifact must have.
        summary: One line.
        surrogates: One line on each surrogate of the artifact, by name, the default one first.
        more: Surrogates that are not in the artifact.
        is_recorded: Whether the artifact holds the raw evaluations that surrogates were fitted to;
            they serve as history.
        has_runs: Whether it holds evaluations that a method made; if so, these serve as history.
        has_costs: Whether it holds what predicts the seconds that an evaluation takes.
        family: Name of the benchmark's family.
    """
    artifact = Artifact.packaged(name)
    options = _list_surrogate_options(artifact, surrogates, has_costs=has_costs)
    # No file is read yet. The definition, a surrogate or the history is read when it is used.
    return BenchmarkSpec(
        name=name,
        version=version,
        summary=summary,
        define=partial(_read_expected_definition, artifact, version, name),
        surrogates=(*options, *more),
        artifact=artifact,
        recorded=_find_history(artifact, is_recorded=is_recorded, has_runs=has_runs),
        family=family,
    )


def generated_spec(
    name: str,
    folder: Path,
    *,
    version: int,
    summary: str,
    planned: Callable[[], Definition],
    surrogates: Mapping[str, str],
) -> BenchmarkSpec:
    """Make the spec of a benchmark whose artifact users generate themselves.

    Args:
        name: Name of the benchmark.
        folder: Folder of the artifact, which need not exist yet.
        version: Version that the artifact must have.
        summary: One line.
        planned: Makes the definition as planned, which holds until the artifact is generated.
        surrogates: One line on each surrogate, by name, the default one first.
    """
    artifact = Artifact(folder)
    return BenchmarkSpec(
        name=name,
        version=version,
        summary=summary,
        define=partial(_read_or_plan_definition, artifact, version, name, planned),
        surrogates=_list_surrogate_options(artifact, surrogates, is_user_generated=True),
        artifact=artifact if artifact.exists else None,
        is_local=True,
        recorded=RecordedHistory(artifact),
    )


def folder_spec(folder: Path) -> BenchmarkSpec:
    """Make the spec of an artifact anywhere on disk; the benchmark's name is its absolute path.

    Raises:
        ArtifactError: The folder holds no artifact, or it lists no surrogate.
    """
    try:
        folder = folder.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # such as circular links
        raise ArtifactError(f"{str(folder)!r} is not a path: {error}") from None
    artifact = Artifact(folder)
    content = _read_content(artifact)
    if not content.surrogates:
        raise ArtifactError(f"{BENCHMARK} in {folder} lists no surrogate")

    summaries = {}
    for name, description in content.surrogates.items():
        summaries[name] = description.summary
    hash_of_file = artifact.sums()
    recorded = _find_history(
        artifact, is_recorded=EVALUATIONS in hash_of_file, has_runs=RUNS in hash_of_file
    )
    any_name = None  # the name in the artifact may differ from the folder's
    return BenchmarkSpec(
        name=folder.as_posix(),
        version=content.version,
        summary=content.summary,
        define=partial(_read_expected_definition, artifact, content.version, any_name),
        surrogates=_list_surrogate_options(artifact, summaries, has_costs=COSTS in hash_of_file),
        artifact=artifact,
        recorded=recorded,
    )


def _find_history(
    artifact: Artifact, *, is_recorded: bool, has_runs: bool
) -> "RecordedHistory | None":
    """Find the evaluations of an artifact that serve as history, read when they are used.

    Args:
        artifact: The artifact.
        is_recorded: Whether it holds the raw evaluations that surrogates were fitted to.
        has_runs: Whether it holds evaluations that a method made, which are preferred.

    Returns:
        A history that reads the file of these evaluations; None if there is no such file.
    """
    if has_runs:
        return RecordedHistory(artifact, RUNS)
    if is_recorded:
        return RecordedHistory(artifact, EVALUATIONS)
    return None


def _list_surrogate_options(
    artifact: Artifact,
    surrogates: Mapping[str, str],
    *,
    is_user_generated: bool = False,
    has_costs: bool = False,
) -> tuple[SurrogateOption, ...]:
    """List the surrogates of an artifact as options to load a benchmark with.

    Args:
        artifact: The artifact.
        surrogates: One line on each surrogate, by name.
        is_user_generated: Whether users generate the artifact themselves. It may then be missing,
            and the options say that it must be generated first.
        has_costs: Whether the artifact holds what predicts the seconds that an evaluation takes.
    """
    costs = partial(_load_costs, artifact) if has_costs else None
    artifact_to_generate = artifact if is_user_generated else None
    options = []
    for name, summary in surrogates.items():
        load = partial(_load_surrogate, artifact, name)  # reads the surrogate when it is used
        options.append(
            SurrogateOption(name, summary, load, generated=artifact_to_generate, costs=costs)
        )
    return tuple(options)


def read_definition(artifact: Artifact) -> Definition:
    """Read search space, objective and tasks from an artifact; `ArtifactError` if malformed."""
    with _report_malformed(f"{BENCHMARK} of {artifact}"):
        return definition_from_json(artifact.read_json(BENCHMARK))


def _read_expected_definition(artifact: Artifact, version: int, name: str | None) -> Definition:
    """Read a benchmark's definition from its artifact, and check its name and version.

    Args:
        artifact: The artifact.
        version: Version that the benchmark must have.
        name: Name that the benchmark must have; None allows any.

    Raises:
        ArtifactError: The benchmark has another version or name.
    """
    definition = read_definition(artifact)
    expected_name = definition.name if name is None else name
    if definition.name != expected_name or definition.version != version:
        raise ArtifactError(
            f"{artifact} holds {definition.name}@{definition.version} instead of "
            f"{expected_name}@{version}; generate it again"
        )
    return definition


def _read_or_plan_definition(
    artifact: Artifact, version: int, name: str, planned: Callable[[], Definition]
) -> Definition:
    """Read a definition from an artifact or, before users have generated it, make the planned one.

    Args:
        artifact: The artifact, which may not exist yet.
        version: Version that the artifact must have.
        name: Name of the benchmark that the artifact must have.
        planned: Makes the planned definition.
    """
    if artifact.exists:
        return _read_expected_definition(artifact, version, name)
    return planned()


def read_card(artifact: Artifact) -> Card:
    """Read the quality card of an artifact."""
    return Card.from_json(artifact.read_json(CARD))


def find_card(artifact: Artifact | None) -> Card | None:
    """Read the quality card of an artifact; None if there is no artifact, or no card in it."""
    if artifact is None:
        return None
    hash_of_file = artifact.sums()
    if CARD not in hash_of_file:
        return None
    return read_card(artifact)


class RecordedHistory:
    """The raw evaluations of an artifact as history, read on demand."""

    def __init__(self, artifact: Artifact, file: str = EVALUATIONS) -> None:
        """Remember an artifact's file of evaluations, which is read when the history is used."""
        self._artifact = artifact
        self._file = file

    def __call__(self) -> tuple[Evaluations, ...]:
        """Return the evaluations of every task; they are read once."""
        return self._evaluations

    @cached_property
    def _evaluations(self) -> tuple[Evaluations, ...]:
        """The evaluations of every task, in the order of the benchmark's tasks."""
        definition = read_definition(self._artifact)
        raw_of_tasks = read_evaluations(self._artifact, self._file)
        evaluations = []
        for task, raw in zip(definition.tasks, raw_of_tasks, strict=True):
            evaluations_of_task = Evaluations(
                task.name,
                task.context,
                raw.values,
                raw.objective,
                space=definition.space,
                direction=definition.objective.direction,
            )
            evaluations.append(evaluations_of_task)
        return tuple(evaluations)


def read_evaluations(artifact: Artifact, file: str = EVALUATIONS) -> tuple[RawEvaluations, ...]:
    """Read the raw evaluations of each task from a file of an artifact.

    Raises:
        ArtifactError: The file is malformed, or has configurations outside of the search space.
    """
    definition = read_definition(artifact)
    arrays = artifact.read_arrays(file)
    evaluations = []
    with _report_malformed(f"{file} of {artifact}"):
        check_arrays(arrays, STORED_ARRAYS)  # of the right types and dimensions
        for task in range(len(definition.tasks)):
            raw = RawEvaluations(**_select_arrays_of_task(arrays, task))
            definition.space.values(raw.values)  # checks that they are in the search space
            evaluations.append(raw)
    return tuple(evaluations)


def _select_arrays_of_task(
    arrays: Mapping[str, NDArray[Any]], task: int
) -> dict[str, NDArray[Any]]:
    """Select the arrays of one task's raw evaluations from those that `_raw_to_arrays` returns.

    Args:
        arrays: Arrays by name: TASK/NAME, or NAME for an array that all tasks share.
        task: Index of the task.

    Returns:
        The arrays by NAME alone, such as "values".
    """
    arrays_of_task = {}
    for name in RAW_ARRAYS:
        is_shared = name in arrays
        arrays_of_task[name] = arrays[name] if is_shared else arrays[f"{task}/{name}"]
    return arrays_of_task


def _raw_to_arrays(
    evaluations: Sequence[RawEvaluations], definition: Definition
) -> dict[str, NDArray[Any]]:
    """Collect the arrays of the tasks' evaluations by name, for an npz file.

    Names are TASK/NAME with the index of a task, or NAME for an array that all tasks share, such as
    their configurations.

    Args:
        evaluations: The evaluations of each task.
        definition: The benchmark, which says how many tasks there must be.
    """
    if len(evaluations) != len(definition.tasks):
        raise ValueError(
            f"evaluations must be of {len(definition.tasks)} tasks, but got {len(evaluations)}"
        )
    arrays: dict[str, NDArray[Any]] = {}
    for name in RAW_ARRAYS:  # names of the arrays of `RawEvaluations`, such as "values"
        arrays_of_tasks = [getattr(raw, name) for raw in evaluations]
        first = arrays_of_tasks[0]
        is_shared = all(np.array_equal(array, first, equal_nan=True) for array in arrays_of_tasks)
        if is_shared:
            arrays[name] = first
            continue
        for task, array in enumerate(arrays_of_tasks):
            arrays[f"{task}/{name}"] = array
    return arrays


def _load_surrogate(artifact: Artifact, name: str) -> tuple[Surrogate, Sequence[float]]:
    """Read a surrogate, and the best known value of each task on it.

    Raises:
        ArtifactError: There is no such surrogate, or it does not fit the benchmark.
    """
    content = _read_content(artifact)
    with _report_malformed(f"surrogate {name!r} of {artifact}"):
        stored = content.surrogates[name]
        model = _load_model(artifact, SurrogateType[stored.type], stored.file)
        return model, stored.best_values


def _load_costs(artifact: Artifact) -> Surrogate:
    """Read what predicts the seconds that an evaluation takes; `ArtifactError` if malformed."""
    with _report_malformed(f"{COSTS} of {artifact}"):
        return _load_model(artifact, SurrogateType.NEAREST, COSTS)


def _load_model(artifact: Artifact, kind: SurrogateType, file: str) -> StoredSurrogate:
    """Read a model of all tasks of an artifact's benchmark; `ValueError` if it does not fit."""
    definition = read_definition(artifact)
    return load_stored(
        kind,
        artifact.read_arrays(file),
        space=definition.space,
        n_tasks=len(definition.tasks),
    )


def _read_content(artifact: Artifact) -> BundleContent:
    """Read what `benchmark.json` holds besides the definition; `ArtifactError` if malformed."""
    with _report_malformed(f"{BENCHMARK} of {artifact}"):
        return msgspec.convert(artifact.read_json(BENCHMARK), BundleContent)


@contextmanager
def _report_malformed(subject: str) -> Iterator[None]:
    """Turn the errors that malformed content causes within a `with` block into an `ArtifactError`.

    `subject` says, for the message, what the block reads.
    """
    try:
        yield
    except MALFORMED as error:
        raise ArtifactError(f"{subject} is malformed: {error!r}") from None


def definition_to_json(definition: Definition) -> dict[str, Any]:
    """Convert a definition to JSON, which `definition_from_json` reads."""
    objective = definition.objective
    return {
        "name": definition.name,
        "version": definition.version,
        "summary": definition.summary,
        "objective": {**asdict(objective), "direction": objective.direction.value},
        "provenance": asdict(definition.provenance),
        "tasks": [{"name": task.name, "context": dict(task.context)} for task in definition.tasks],
        "space": definition.space.to_json(),
    }


def definition_from_json(content: Mapping[str, Any]) -> Definition:
    """Build a definition from the JSON that `definition_to_json` returns.

    Malformed content raises one of the errors that `MALFORMED` lists.
    """
    # msgspec builds all but the search space, whose type it does not know.
    definition = msgspec.convert(content, Definition, dec_hook=_decode_space)
    different_names = {task.name for task in definition.tasks}
    if not different_names or len(different_names) < len(definition.tasks):
        raise ValueError("there must be tasks, with different names")
    return definition


def _decode_space(kind: type[Any], description: Any) -> SearchSpace:
    """Build the search space of a definition from its JSON.

    msgspec calls this for each attribute of a type `kind` that it does not know, which is only the
    search space.
    """
    return read_space(description)
