"""Choice of the tasks of a benchmark."""

from collections.abc import Sequence

from hpobench_ordered.data.checks import check_count
from hpobench_ordered.errors import ExperimentError, UnknownNameError

Targets = int | tuple[str | int, ...] | None
"""Number of tasks, the first ones; or a list of names or indices; or None for all tasks."""


def check_targets(tasks: int | Sequence[str | int] | None) -> Targets:
    """Check a choice of tasks before the benchmark is known; return it, with a list as a tuple.

    The choice is a number of tasks, the first ones; a list of names or indices; or None for all.

    Raises:
        ExperimentError: It is a single name, a number below 1, or an empty list.
    """
    if isinstance(tasks, str):
        raise ExperimentError(
            f"tasks must be a number or a list, such as [{tasks!r}], but got {tasks!r}"
        )
    if tasks is None:
        return None
    if isinstance(tasks, int):
        check_count(tasks, noun="task")
        return tasks
    check_count(len(tasks), noun="task")  # raises an error for an empty list
    return tuple(tasks)


def check_targets_exist(targets: Targets, names: Sequence[str]) -> None:
    """Raise an `UnknownNameError` unless all chosen tasks are among those of a benchmark.

    Args:
        targets: The choice.
        names: Names of all tasks of the benchmark.
    """
    # Finding their indices raises the error; the indices themselves are not needed here.
    find_targets(targets, names)


def find_targets(targets: Targets, names: Sequence[str]) -> tuple[int, ...]:
    """Indices of the chosen tasks, unique, in the order chosen.

    Args:
        targets: A count n: the first n tasks; names or indices of tasks; or None: all tasks.
        names: Names of all tasks of the benchmark.

    Raises:
        UnknownNameError: There is no such task.
    """
    all_indices = tuple(range(len(names)))
    if targets is None:
        return all_indices
    if isinstance(targets, int):
        return all_indices[:targets]

    # A target is a name or an index. They cannot be confused: names are texts, indices numbers.
    index_of_target: dict[str | int, int] = {}
    for index, name in enumerate(names):
        index_of_target[name] = index
        index_of_target[index] = index
    for target in targets:
        if target not in index_of_target:
            hint = f" (or an index: there are tasks 0 to {len(names) - 1})"
            raise UnknownNameError("task", target, names, hint=hint)
    indices = [index_of_target[target] for target in targets]
    return tuple(dict.fromkeys(indices))  # each once, in their order
