"""A benchmark's artifact: `benchmark.json`, one npz file a surrogate, `card.json`, SHA256SUMS."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hpobench_ordered.artifact import Artifact, ArtifactWriter
from hpobench_ordered.benchmark import (
    Definition,
    Direction,
    Objective,
    Provenance,
    TaskDefinition,
)
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.registry import BenchmarkSpec, SurrogateOption
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.surrogates import Surrogate, SurrogateType
from hpobench_ordered.surrogates.card import Card

BENCHMARK = "benchmark.json"
CARD = "card.json"


@dataclass(frozen=True, slots=True)
class BundledSurrogate:
    """A surrogate on its way into an artifact.

    Attributes:
        name: Name of the option, such as "forest".
        type: Its class.
        summary: One line.
        model: The surrogate.
        best_values: Best known value of each task on it, in the objective's own units.
    """

    name: str
    type: SurrogateType
    summary: str
    model: Surrogate
    best_values: Sequence[float]


def write_bundle(
    folder: Path, definition: Definition, surrogates: Sequence[BundledSurrogate], card: Card
) -> None:
    """Write a benchmark's artifact; the folder appears complete or not at all.

    Args:
        folder: Folder of the artifact; its last part should be the benchmark's name.
        definition: Space, objective and tasks.
        surrogates: The surrogates; the first is the default.
        card: Quality report; its size is set to that of the written arrays.
    """
    with ArtifactWriter(folder) as writer:
        size = 0
        listed = {}
        for surrogate in surrogates:
            file = f"{surrogate.name}.npz"
            size += writer.write_arrays(file, surrogate.model.to_arrays())
            listed[surrogate.name] = {
                "type": surrogate.type.name,
                "summary": surrogate.summary,
                "file": file,
                "best_values": list(surrogate.best_values),
            }
        writer.write_json(BENCHMARK, {**definition_to_json(definition), "surrogates": listed})
        writer.write_json(CARD, card.with_size(size).to_json())


def bundled_spec(
    name: str,
    *,
    version: int,
    summary: str,
    surrogates: Mapping[str, str],
    more: Sequence[SurrogateOption] = (),
) -> BenchmarkSpec:
    """Describe a benchmark whose artifact comes with the package.

    Args:
        name: Name of the benchmark and of its artifact.
        version: Version of its values.
        summary: One line.
        surrogates: Surrogates in the artifact with one line each; the first is the default.
        more: Surrogates beside those in the artifact.
    """
    artifact = Artifact.packaged(name)
    define = partial(_define, artifact, version, name)
    return _spec(artifact, name, version, summary, define, surrogates, more)


def folder_spec(folder: Path) -> BenchmarkSpec:
    """Describe the benchmark of an artifact anywhere on disk; its name is the absolute path.

    Raises:
        ArtifactError: The artifact is missing or damaged.
    """
    folder = folder.resolve()
    artifact = Artifact(folder)
    content = artifact.read_json(BENCHMARK)
    with _reading(f"{BENCHMARK} in {folder}"):
        surrogates = {name: str(s["summary"]) for name, s in content["surrogates"].items()}
        version, summary = int(content["version"]), str(content["summary"])
    if not surrogates:
        raise ArtifactError(f"{BENCHMARK} in {folder} lists no surrogate")
    define = partial(_define, artifact, version, None)
    return _spec(artifact, folder.as_posix(), version, summary, define, surrogates, ())


def _spec(
    artifact: Artifact,
    name: str,
    version: int,
    summary: str,
    define: Callable[[], Definition],
    surrogates: Mapping[str, str],
    more: Sequence[SurrogateOption],
) -> BenchmarkSpec:
    options = tuple(
        SurrogateOption(option, line, partial(_load_surrogate, artifact, option))
        for option, line in surrogates.items()
    )
    return BenchmarkSpec(
        name=name,
        version=version,
        summary=summary,
        define=define,
        surrogates=options + tuple(more),
        artifact=artifact,
    )


def read_definition(artifact: Artifact) -> Definition:
    """Read space, objective and tasks from an artifact.

    Raises:
        ArtifactError: The artifact is missing or damaged.
    """
    with _reading(f"{BENCHMARK} of {artifact}"):
        return definition_from_json(artifact.read_json(BENCHMARK))


def _define(artifact: Artifact, version: int, name: str | None) -> Definition:
    """Read a definition and check that it is of the version, and the name if any, expected."""
    found = read_definition(artifact)
    if found.version != version or name not in (None, found.name):
        raise ArtifactError(
            f"{artifact} holds {found.name}@{found.version} instead of "
            f"{name or found.name}@{version}; generate it again"
        )
    return found


def read_card(artifact: Artifact) -> Card:
    """Read the quality report of an artifact.

    Raises:
        ArtifactError: The artifact is missing or damaged.
    """
    return Card.from_json(artifact.read_json(CARD))


def definition_to_json(definition: Definition) -> dict[str, Any]:
    """Describe a definition as JSON."""
    objective, provenance = definition.objective, definition.provenance
    return {
        "name": definition.name,
        "version": definition.version,
        "summary": definition.summary,
        "objective": {
            "name": objective.name,
            "unit": objective.unit,
            "direction": objective.direction.value,
        },
        "provenance": {
            "paper": provenance.paper,
            "source": provenance.source,
            "licence": provenance.licence,
        },
        "tasks": [{"name": t.name, "context": dict(t.context)} for t in definition.tasks],
        "space": definition.space.to_json(),
    }


def definition_from_json(content: Mapping[str, Any]) -> Definition:
    """Read a definition from JSON.

    Raises:
        KeyError, TypeError, ValueError: Something is missing or of another type.
    """
    objective = content["objective"]
    return Definition(
        name=content["name"],
        version=content["version"],
        summary=content["summary"],
        space=SearchSpace.from_json(content["space"]),
        objective=Objective(
            objective["name"], objective["unit"], Direction(objective["direction"])
        ),
        tasks=tuple(TaskDefinition(t["name"], t["context"]) for t in content["tasks"]),
        provenance=Provenance(**content["provenance"]),
    )


def _load_surrogate(artifact: Artifact, name: str) -> tuple[Surrogate, Sequence[float]]:
    content = artifact.read_json(BENCHMARK)
    with _reading(f"surrogate {name!r} of {artifact}"):
        listed = content["surrogates"][name]
        model = SurrogateType[listed["type"]].from_arrays(artifact.read_arrays(listed["file"]))
        return model, [float(value) for value in listed["best_values"]]


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Turn what malformed content raises into an `ArtifactError`."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ArtifactError(f"{what} is malformed: {error!r}") from None
