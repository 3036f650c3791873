"""The settings of an optimiser as JSON, and how those of two optimisers differ."""

import json
from collections.abc import Mapping
from typing import Any

from hpobench_ordered.data.history import Evaluations, describe_differences
from hpobench_ordered.data.identity import hash_arrays
from hpobench_ordered.space import SearchSpace

HASH_OF = "hash of "
"""How the name of a setting begins that is a hash, which would tell nobody anything."""
HASH_LENGTH = 16  # hexadecimal digits that are kept of a hash; enough to notice any change


def as_json(content: Mapping[str, Any]) -> dict[str, Any]:
    """Write a value to JSON and read it again, so that it equals what a file would give."""
    read: dict[str, Any] = json.loads(json.dumps(content, default=_as_python_number))
    return read


def _as_python_number(value: Any) -> Any:
    """Convert a NumPy number, which `json.dumps` cannot write, to a Python number."""
    return value.item()


def describe_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Describe each setting that differs from what it was before."""
    changes: list[str] = []
    for name, value in now.items():
        change = describe_change(name, before.get(name), value)
        if change:
            changes.append(change)
    return changes


def describe_change(name: str, before: Any, now: Any) -> str:
    """Describe how a setting has changed; "" if it has not."""
    if name == "space":
        return describe_change_of_space(before, now)
    if before == now:
        return ""
    if name.startswith(HASH_OF):
        return f"other {name.removeprefix(HASH_OF)}"
    if name == "history":
        return describe_change_of_history(before, now)
    return f"{name} was {before!r}, now {now!r}"


def describe_change_of_space(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Describe how two search spaces, as JSON, differ; "" if they code configurations alike."""
    old = SearchSpace.from_json(before)
    new = SearchSpace.from_json(now)
    if new.codes_as(old):  # defaults may differ
        return ""
    return f"the search space differs ({'; '.join(describe_differences(old, new))})"


def describe_change_of_history(before: list[list[str]], now: list[list[str]]) -> str:
    """Describe how two different histories differ.

    A history is a list of pairs: the name of a task and the hash of its evaluations.
    """
    old_tasks = [task for task, _ in before]
    new_tasks = [task for task, _ in now]
    if old_tasks != new_tasks:
        return f"the history was of {old_tasks}, now of {new_tasks}"
    changed: list[str] = []
    for old, new in zip(before, now, strict=True):
        if old != new:
            changed.append(repr(old[0]))  # the name of the task
    return f"the evaluations of {', '.join(changed)} in the history differ"


def hash_evaluations(evaluations: Evaluations) -> str:
    """Hash everything that a method sees of an earlier task: space, context and evaluations."""
    space_and_context = [evaluations.space.to_json(), dict(evaluations.context)]
    description = json.dumps(space_and_context, default=float)
    digest = hash_arrays(evaluations.values, evaluations.losses, description=description)
    return digest[:HASH_LENGTH]
