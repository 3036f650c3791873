"""History: evaluations of earlier tasks, and whether they may be given to a method."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import BoolArray, Config, FloatArray, Value
from hpobench_ordered._wording import join_words
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.errors import EvaluationsError, InvalidSpaceError
from hpobench_ordered.space import SearchSpace, SpaceChange
from hpobench_ordered.space.differences import recode

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(slots=True)
class Evaluations:
    """Evaluations of one task, as history for later tasks.

    Attributes:
        task: Name of the task.
        context: What is known of the task beforehand.
        values: Configurations as coded by `space` (`SearchSpace.values`), in the order of
            evaluation, NaN where a hyperparameter is inactive, (n, d).
        objective: Their objective values in their own units, as they were measured, NaN where the
            evaluation failed, (n,). Infinite values that are given become NaN, too.
        space: Search space that codes the values: the task's own, which may differ from that of
            the task at hand, see `is_on`.
        direction: Whether the objective is minimised or maximised.
        losses: The objective values as losses: lower is better, infinite where the evaluation
            failed, (n,).

    All arrays are read-only copies.

    Raises:
        EvaluationsError: Arrays of another shape or not of numbers, a value that the space does not
            allow, or no such direction.

    Examples:
        >>> import numpy as np
        >>> import hpobench_ordered as hbo
        >>> bench = hbo.load("newsvendor")
        >>> history = bench.evaluations(0, rng=np.random.default_rng(0), n=20)
        >>> history.values.shape, history.losses.shape
        ((20, 3), (20,))
        >>> sorted(history.best)
        ['price_0', 'price_1', 'price_2']
    """

    task: str
    context: Mapping[str, float]
    values: FloatArray
    objective: FloatArray
    space: SearchSpace = field(kw_only=True, repr=False)
    direction: Direction = field(kw_only=True)
    losses: FloatArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the arguments, copy the arrays, and set the losses.

        Raises:
            EvaluationsError: An argument has a wrong type, shape or value.
        """
        if not isinstance(self.task, str):
            raise EvaluationsError(f"the name of a task must be text, but got {self.task!r}")
        if not isinstance(self.space, SearchSpace):
            raise EvaluationsError(
                f"the space of task {self.task!r} must be a SearchSpace, but got "
                f"{type(self.space).__name__}"
            )
        direction = Direction.of(self.direction)
        n_rows = len(self.values) if isinstance(self.values, Sized) else 0
        values = self._copy_numbers("values", (n_rows, self.space.dimension))
        values = self.space.move_to_bounds(values)
        objective = self._copy_numbers("objective", (n_rows,))

        if not self.space.allows(values).all():
            raise EvaluationsError(
                f"evaluations of task {self.task!r}: {self.space.describe_invalid(values)}"
            )
        objective[~np.isfinite(objective)] = np.nan
        self._set(self.space, direction, values, objective)

    def __len__(self) -> int:
        """Return the number of evaluations."""
        return len(self.objective)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the hyperparameters, one per column of `values`."""
        return self.space.names

    @property
    def best(self) -> Config | None:
        """The configuration with the lowest loss, the first of equal ones; None if all failed."""
        if np.isinf(self.losses).all():
            return None
        best_row = int(self.losses.argmin())
        (best_config,) = self.space.configs(self.values[[best_row]])
        return best_config

    def is_on(self, space: SearchSpace) -> bool:
        """Whether a search space has the same configurations and codes as that of `values`."""
        return self.space.codes_as(space)

    def frame(self, *, task: str = "task", objective: str = "objective") -> "DataFrame":
        """Make a table of the evaluations, which `hpobench_ordered.read_history` reads.

        Args:
            task: Name of the column that has the task's name.
            objective: Name of the column of the objective's values.

        Returns:
            A table with a row for each evaluation. Its columns are the task's name, the native
            values of each hyperparameter, which are None or NaN where it is inactive, and the
            objective's values.

        Raises:
            EvaluationsError: A hyperparameter has the name of one of the other columns.
        """
        import pandas as pd

        for name in (task, objective):
            if name in self.names:
                raise EvaluationsError(f"{name!r} is a hyperparameter; choose another column name")

        columns: dict[str, object] = {task: [self.task] * len(self)}
        coded_columns = self.values.T.tolist()
        for parameter, coded_column in zip(self.space.parameters, coded_columns, strict=True):
            native_values: list[Value | None] = []
            for coded in coded_column:
                is_active = not math.isnan(coded)
                native_values.append(parameter.value(coded) if is_active else None)
            columns[parameter.name] = native_values
        columns[objective] = self.objective
        return pd.DataFrame(columns)

    def in_shared(self, change: SpaceChange) -> "Evaluations":
        """Restrict the evaluations to the hyperparameters and ranges that two search spaces share.

        This is Stoll et al. (2020), algorithm 1, lines 2 and 3. An evaluation is left out if it
        has no value within the shared range for a hyperparameter that is active there.

        Args:
            change: Two search spaces, one of which is that of these evaluations.

        Returns:
            The remaining evaluations, in their order, on `SpaceChange.shared_space`.

        Raises:
            InvalidSpaceError: Nothing is shared, or the evaluations are on neither of the spaces.
        """
        if not (self.is_on(change.old) or self.is_on(change.new)):
            raise InvalidSpaceError(
                f"the evaluations of task {self.task!r} are neither on the old search space "
                f"nor on the new one; their hyperparameters are {list(self.names)}"
            )
        all_rows = np.ones(len(self), dtype=np.bool_)
        return self._move_to(change.shared_space(), all_rows)

    def inside(self, part: SearchSpace) -> "Evaluations":
        """Select the evaluations whose configurations are in a part of the search space.

        Args:
            part: The part, as `space.restriction.restrict_space` makes it.

        Returns:
            The selected evaluations, in their order, on the part.
        """
        has_constants = np.ones(len(self), dtype=np.bool_)
        for name, value in part.constants.items():
            if name in self.names:  # else it is a constant of the whole space, too
                column = self.values[:, self.names.index(name)]
                is_inactive = np.isnan(column)
                has_constants &= is_inactive | (column == self.space[name].code(value))
        return self._move_to(part, has_constants)

    def _move_to(self, space: SearchSpace, is_selected: BoolArray) -> "Evaluations":
        """Move evaluations to a search space whose hyperparameters are some of those of `space`.

        Args:
            space: The search space.
            is_selected: Whether each evaluation is moved, (n,). Those without an allowed value of a
                hyperparameter that is active in the other space are left out, too.
        """
        values = _recode_values(self, space)  # NaN where inactive or not allowed
        is_active = space.active(values)
        values[~is_active] = np.nan
        lacks_active_value = (is_active & np.isnan(values)).any(axis=1)
        rows = is_selected & ~lacks_active_value
        return replace(self, values=values[rows], objective=self.objective[rows], space=space)

    def copied(self, space: SearchSpace) -> "Evaluations":
        """Copy the evaluations, without checking them again.

        A method gets a copy, so that it cannot change what other methods get.

        Args:
            space: A copy of the search space, which the copy of the evaluations refers to.
        """
        copy = object.__new__(Evaluations)  # skips `__post_init__`, which checks and copies
        copy.task = self.task
        copy.context = dict(self.context)
        copy._set(space, self.direction, self.values.copy(), self.objective.copy())
        return copy

    def _copy_numbers(self, name: str, shape: tuple[int, ...]) -> FloatArray:
        """Copy an attribute that must be an array of numbers.

        Args:
            name: Name of the attribute, "values" or "objective".
            shape: Shape that the array must have.

        Raises:
            EvaluationsError: It has another shape, or is no array of numbers.
        """
        try:
            array = np.asarray(getattr(self, name))
        except ValueError as error:
            raise EvaluationsError(f"the {name} of task {self.task!r}: {error}") from None
        is_numeric = array.dtype.kind in "fiu"  # floats, signed and unsigned integers
        if array.shape != shape or not is_numeric:
            columns = f", one column for each of {list(self.names)}" if name == "values" else ""
            raise EvaluationsError(
                f"the {name} of task {self.task!r} must be numbers of shape {shape}{columns}, got "
                f"{array.dtype} of shape {array.shape}"
            )
        return np.array(array, dtype=np.float64)

    def _set(
        self, space: SearchSpace, direction: Direction, values: FloatArray, objective: FloatArray
    ) -> None:
        """Set the attributes to arguments that are checked, and the losses of the objective.

        Arrays become read-only, since the histories of all later tasks share them.
        """
        self.space = space
        self.direction = direction
        self.values = values
        self.objective = objective
        self.losses = direction.losses(objective)
        for array in (self.values, self.objective, self.losses):
            array.flags.writeable = False


def check_history(
    history: Sequence[Evaluations],
    space: SearchSpace,
    direction: Direction | str,
    *,
    changed_spaces: bool = False,
) -> None:
    """Check that a history fits a task.

    Every function that takes a history from a user calls this; runs under a protocol need not.

    Args:
        history: The history, oldest task first.
        space: Search space of the task.
        direction: Whether the task's objective is minimised or maximised.
        changed_spaces: Whether the method supports a history on another search space
            (`MethodSpec.changed_spaces`).

    Raises:
        EvaluationsError: It is not a list of `Evaluations`, a task occurs twice, an objective has
            the other direction, or a search space is another one and the method does not
            support that, or shares no hyperparameter.

    Examples:
        >>> import numpy as np
        >>> import hpobench_ordered as hbo
        >>> from hpobench_ordered.data import check_history
        >>> bench = hbo.load("newsvendor")  # its objective is a profit
        >>> history = [bench.evaluations(0, rng=np.random.default_rng(0), n=20)]
        >>> check_history(history, bench.space, "maximize")
        >>> check_history(history, bench.space, "minimize")
        Traceback (most recent call last):
            ...
        hpobench_ordered.errors.EvaluationsError: the history does not fit the task:
        - '0': its objective is to maximize, that of the task at hand to minimize
    """
    task_direction = Direction.of(direction)
    checked_history = check_evaluations(history)

    # The message has a line for each problem, which lists all tasks that have the problem.
    tasks_by_problem: dict[str, list[str]] = {}
    counts = Counter(evaluations.task for evaluations in checked_history)
    for task, count in counts.items():
        if count > 1:
            problem = "more than one history of the task"
            tasks_by_problem.setdefault(problem, []).append(repr(task))
    for evaluations in checked_history:
        for problem in _find_problems(
            evaluations, space, task_direction, changed_spaces=changed_spaces
        ):
            tasks_by_problem.setdefault(problem, []).append(repr(evaluations.task))

    if tasks_by_problem:
        lines = ["the history does not fit the task:"]
        for problem, tasks in tasks_by_problem.items():
            lines.append(f"- {join_words(tasks)}: {problem}")
        raise EvaluationsError("\n".join(lines))


def _find_problems(
    evaluations: Evaluations, space: SearchSpace, direction: Direction, *, changed_spaces: bool
) -> Iterator[str]:
    """Yield the reasons, in words, why evaluations do not fit the task at hand.

    Args:
        evaluations: Evaluations of an earlier task.
        space: Search space of the task at hand.
        direction: Direction of the task's objective.
        changed_spaces: Whether the method supports a history on another search space, as long as
            it shares a hyperparameter.
    """
    if evaluations.direction is not direction:
        yield (
            f"its objective is to {evaluations.direction.value}, that of the task at hand to "
            f"{direction.value}"
        )
    if evaluations.is_on(space):
        return
    if not SpaceChange(evaluations.space, space).shared:
        reason = "that shares no hyperparameter with the one at hand"
    elif not changed_spaces:
        reason = "which the method does not support (`MethodSpec.changed_spaces`)"
    else:
        return
    differences = "; ".join(describe_differences(evaluations.space, space))
    yield f"it is on another search space, {reason}: {differences}"


def check_evaluations(history: Sequence[Evaluations]) -> tuple[Evaluations, ...]:
    """Check that a history consists of `Evaluations`, and return them as a tuple.

    Raises:
        EvaluationsError: It is not iterable, or has an item of another type.
    """
    type_name = type(history).__name__
    if isinstance(history, Iterable):
        items = tuple(history)
        other_types = [type(item).__name__ for item in items if not isinstance(item, Evaluations)]
        if not other_types:
            return items
        type_name = f"{type_name} of {other_types[0]}"
    raise EvaluationsError(
        f"a history must be a list of Evaluations, one per task, but got {type_name}"
    )


def align_history(history: Sequence[Evaluations], space: SearchSpace) -> tuple[Evaluations, ...]:
    """Bring the evaluations of a history into the order of a search space.

    A search space that a user writes again may list its hyperparameters, or the choices of one, in
    another order. Evaluations on such a space are coded anew, in the order of `space`. All others
    are returned as they are: those on `space` itself, and those on a space with other
    hyperparameters, ranges or choices.
    """
    aligned = []
    for evaluations in check_evaluations(history):
        has_same_configurations = _have_same_configurations(evaluations.space, space)
        is_in_other_order = has_same_configurations and not evaluations.is_on(space)
        if is_in_other_order:
            values = _recode_values(evaluations, space)
            aligned.append(replace(evaluations, values=values, space=space))
        else:
            aligned.append(evaluations)
    return tuple(aligned)


def _have_same_configurations(old: SearchSpace, new: SearchSpace) -> bool:
    """Whether two spaces differ at most in the order of hyperparameters and unordered choices."""
    changes_by_name = SpaceChange(old, new).changes
    return not any(changes_by_name.values())


def _recode_values(evaluations: Evaluations, space: SearchSpace) -> FloatArray:
    """Return the values of n evaluations as another search space codes them, (n, d).

    A value that the other space does not allow becomes NaN. The space of the evaluations must have
    all d hyperparameters of the other space.
    """
    old = evaluations.space
    columns = []
    for parameter in space.parameters:
        old_column = evaluations.values[:, old.names.index(parameter.name)]
        columns.append(recode(old_column, old[parameter.name], parameter))
    return np.stack(columns, axis=1)


def describe_differences(old: SearchSpace, new: SearchSpace) -> list[str]:
    """Describe how the space of an earlier task differs from that of the task at hand.

    The spaces must be different, at least in the order of hyperparameters or choices.
    """
    if _have_same_configurations(old, new):
        return ["the same hyperparameters, in another order or with their choices in another order"]
    return SpaceChange(old, new).describe()
