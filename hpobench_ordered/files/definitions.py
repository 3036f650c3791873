"""Definitions of benchmarks as JSON: the content of `benchmark.json` without surrogates."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hpobench_ordered.core.benchmark import Definition, Provenance, TaskDefinition
from hpobench_ordered.core.objective import Direction, Objective
from hpobench_ordered.space.reading import numbers, read_space, text_of, whole_number_of


def definition_to_json(definition: Definition) -> dict[str, Any]:
    """Describe a definition as JSON."""
    objective = definition.objective
    return {
        "name": definition.name,
        "version": definition.version,
        "summary": definition.summary,
        "objective": {**asdict(objective), "direction": objective.direction.value},
        "provenance": asdict(definition.provenance),
        "tasks": [{"name": t.name, "context": dict(t.context)} for t in definition.tasks],
        "space": definition.space.to_json(),
    }


def definition_from_json(content: Mapping[str, Any]) -> Definition:
    """Read a definition from JSON."""
    objective, provenance = content["objective"], content["provenance"]
    direction = Direction(objective["direction"])
    return Definition(
        name=text_of(content, "name"),
        version=whole_number_of(content, "version"),
        summary=text_of(content, "summary"),
        space=read_space(content["space"]),
        objective=Objective(text_of(objective, "name"), text_of(objective, "unit"), direction),
        tasks=_tasks(content["tasks"]),
        provenance=Provenance(**{name: text_of(provenance, name) for name in provenance}),
    )


def _tasks(content: Sequence[Mapping[str, Any]]) -> tuple[TaskDefinition, ...]:
    tasks = tuple(TaskDefinition(text_of(t, "name"), numbers(t["context"])) for t in content)
    if len({task.name for task in tasks}) < len(tasks) or not tasks:
        raise ValueError("there must be tasks, with different names")
    return tasks
