"""Choice of the tasks of a benchmark."""

from collections.abc import Sequence

from hpobench_ordered.errors import ExperimentError, UnknownNameError, check_count

Targets = int | tuple[str | int, ...] | None
"""Number of tasks, the first ones; or a list of names or indices; or None for all tasks."""


def checked_targets(tasks: int | Sequence[str | int] | None) -> Targets:
    """Check a choice of tasks as far as possible without their names."""
    if isinstance(tasks, str):
        raise ExperimentError(
            f"tasks must be a number or a list, such as [{tasks!r}], but got {tasks!r}"
        )
    targets = tasks if tasks is None or isinstance(tasks, int) else tuple(tasks)
    if targets is not None:
        check_count("task", len(targets) if isinstance(targets, tuple) else targets)
    return targets


def target_indices(targets: Targets, names: Sequence[str]) -> tuple[int, ...]:
    """Indices of the chosen tasks, unique, in the order chosen."""
    if targets is None or isinstance(targets, int):
        return tuple(range(len(names)))[:targets]
    indices: dict[str | int, int] = {index: index for index in range(len(names))}
    indices |= {name: index for index, name in enumerate(names)}
    for target in targets:
        if target not in indices:
            hint = f" (or an index: there are tasks 0 to {len(names) - 1})"
            raise UnknownNameError("task", target, names, hint=hint)
    return tuple(dict.fromkeys(indices[target] for target in targets))
