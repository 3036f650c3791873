"""History: evaluations of earlier tasks, and whether they may be given to a method."""

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered._wording import join_words
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.errors import EvaluationsError, InvalidSpaceError
from hpobench_ordered.space import SearchSpace, SpaceChange
from hpobench_ordered.space.differences import Change, recode

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, slots=True)
class Evaluations:
    """Evaluations of one task, as history for later tasks.

    Attributes:
        task: Name of the task.
        context: What is known of the task beforehand.
        values: Configurations as coded by `space` (`SearchSpace.values`), in the order of
            evaluation, NaN where a hyperparameter is inactive, (n, d).
        objective: Their objective values in their own units, as they were measured, NaN where the
            evaluation failed, (n,).
        space: Search space that codes the values: the task's own, which may differ from that of
            the task at hand, see `is_on`.
        direction: Whether the objective is minimised or maximised.
        losses: The objective values as losses: lower is better, (n,).

    All arrays are read-only copies.

    Raises:
        EvaluationsError: Arrays of another shape or not of numbers, a value that the space does not
            allow, an infinite objective value, or no such direction.

    Examples:
        >>> import numpy as np
        >>> import hpobench_ordered as hbo
        >>> bench = hbo.load("newsvendor")
        >>> history = bench.evaluations(0, rng=np.random.default_rng(0), n=20)
        >>> history.values.shape, history.losses.shape
        ((20, 3), (20,))
        >>> best = bench.space.configs(history.values[[history.losses.argmin()]])
        >>> sorted(best[0])
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
        if not isinstance(self.task, str):
            raise EvaluationsError(f"the name of a task must be text, but got {self.task!r}")
        if not isinstance(self.space, SearchSpace):
            raise EvaluationsError(
                f"the space of task {self.task!r} must be a SearchSpace, but got "
                f"{type(self.space).__name__}"
            )
        direction = Direction.of(self.direction)
        rows = len(self.values) if isinstance(self.values, Sized) else 0
        values = self._numbers("values", (rows, self.space.dimension))
        objective = self._numbers("objective", (len(values),))
        if not self.space.allows(values).all():
            raise EvaluationsError(
                f"evaluations of task {self.task!r}: {self.space.describe_invalid(values)}"
            )
        if np.isinf(objective).any():
            raise EvaluationsError(
                f"evaluations of task {self.task!r}: the objective of row "
                f"{np.flatnonzero(np.isinf(objective))[0]} is infinite; use NaN for failures"
            )
        self._set(self.space, direction, values, objective)

    def __len__(self) -> int:
        return len(self.objective)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the hyperparameters, one per column of `values`."""
        return self.space.names

    def is_on(self, space: SearchSpace) -> bool:
        """Whether a search space codes configurations like the one of these evaluations."""
        return self.space.codes_as(space)

    def frame(self, *, task: str = "task", objective: str = "objective") -> "DataFrame":
        """The evaluations as a table that `hpobench_ordered.history_from_frame` reads.

        Args:
            task: Column of the task's name.
            objective: Column of the objective's values.

        Returns:
            A row an evaluation; columns of the task's name, of each hyperparameter's native values,
            None or NaN where it is inactive, and of the objective's values.

        Raises:
            EvaluationsError: A hyperparameter has the name of one of the other columns.
        """
        import pandas as pd

        for name in {task, objective} & set(self.names):
            raise EvaluationsError(f"{name!r} is a hyperparameter; choose another column name")
        columns = {
            p.name: [None if np.isnan(x) else p.value(x) for x in column]
            for p, column in zip(self.space.parameters, self.values.T.tolist(), strict=True)
        }
        whole = {task: [self.task] * len(self), **columns, objective: self.objective}
        return pd.DataFrame(whole)

    def in_shared(self, change: SpaceChange) -> "Evaluations":
        """Project the evaluations to the part that two search spaces share.

        Stoll et al. (2020), algorithm 1, lines 2 and 3. An evaluation is left out if a
        hyperparameter that is active in the shared space was inactive, or has a value outside of
        the shared range.

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
        shared = change.shared_space()
        values = _recoded(self, shared)
        active = shared.active(values)
        inside = ~(active & np.isnan(values)).any(axis=1)
        values[~active] = np.nan
        objective = self.objective[inside]
        return replace(self, values=values[inside], objective=objective, space=shared)

    def copied(self, space: SearchSpace) -> "Evaluations":
        """Copy on a copy of the space, without checking again."""
        copy = object.__new__(Evaluations)
        object.__setattr__(copy, "task", self.task)
        object.__setattr__(copy, "context", dict(self.context))
        copy._set(space, self.direction, self.values.copy(), self.objective.copy())
        return copy

    def _numbers(self, name: str, shape: tuple[int, ...]) -> FloatArray:
        """A copy of an array of numbers of this shape."""
        try:
            given = np.asarray(getattr(self, name))
        except ValueError as error:
            raise EvaluationsError(f"the {name} of task {self.task!r}: {error}") from None
        if given.shape != shape or given.dtype.kind not in "fiu":
            columns = f", one column for each of {list(self.names)}" if name == "values" else ""
            raise EvaluationsError(
                f"the {name} of task {self.task!r} must be numbers of shape {shape}{columns}, got "
                f"{given.dtype} of shape {given.shape}"
            )
        return np.array(given, dtype=np.float64)

    def _set(
        self, space: SearchSpace, direction: Direction, values: FloatArray, objective: FloatArray
    ) -> None:
        """Set the checked attributes; arrays are read-only, since all later tasks share them."""
        losses = direction.sign * objective
        for name, array in (("values", values), ("objective", objective), ("losses", losses)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        object.__setattr__(self, "space", space)
        object.__setattr__(self, "direction", direction)


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
        >>> bench = hbo.load("newsvendor")  # its objective is a profit
        >>> history = [bench.evaluations(0, rng=np.random.default_rng(0), n=20)]
        >>> hbo.check_history(history, bench.space, "maximize")
        >>> hbo.check_history(history, bench.space, "minimize")
        Traceback (most recent call last):
            ...
        hpobench_ordered.errors.EvaluationsError: the history does not fit the task:
        - '0': its objective is to maximize, that of the task at hand to minimize
    """
    wanted = Direction.of(direction)
    wrong: dict[str, list[str]] = {}
    for task, count in Counter(e.task for e in listed(history)).items():
        if count > 1:
            wrong.setdefault("more than one history of the task", []).append(repr(task))
    for e in history:
        for problem in _problems(e, space, wanted, changed_spaces=changed_spaces):
            wrong.setdefault(problem, []).append(repr(e.task))
    if wrong:
        said = "".join(f"\n- {join_words(tasks)}: {problem}" for problem, tasks in wrong.items())
        raise EvaluationsError(f"the history does not fit the task:{said}")


def _problems(
    evaluations: Evaluations, space: SearchSpace, direction: Direction, *, changed_spaces: bool
) -> Iterator[str]:
    """Why the evaluations of one task do not fit the task at hand."""
    if evaluations.direction is not direction:
        theirs, ours = evaluations.direction.value, direction.value
        yield f"its objective is to {theirs}, that of the task at hand to {ours}"
    if evaluations.is_on(space):
        return
    if not SpaceChange(evaluations.space, space).shared:
        why = "that shares no hyperparameter with the one at hand"
    elif not changed_spaces:
        why = "which the method does not support (`MethodSpec.changed_spaces`)"
    else:
        return
    said = "; ".join(differences(evaluations.space, space))
    yield f"it is on another search space, {why}: {said}"


def listed(history: Sequence[Evaluations]) -> tuple[Evaluations, ...]:
    """Check that a history is an iterable of `Evaluations`, and return them."""
    what = type(history).__name__
    if isinstance(history, Iterable):
        evaluations = tuple(history)
        others = [type(e).__name__ for e in evaluations if not isinstance(e, Evaluations)]
        if not others:
            return evaluations
        what = f"{what} of {others[0]}"
    raise EvaluationsError(f"a history must be a list of Evaluations, one per task, but got {what}")


def aligned(history: Sequence[Evaluations], space: SearchSpace) -> tuple[Evaluations, ...]:
    """Recode evaluations if only the order of hyperparameters or choices of their space differs."""
    return tuple(
        replace(e, values=_recoded(e, space), space=space)
        if not e.is_on(space) and _has_same_configurations(e.space, space)
        else e
        for e in listed(history)
    )


def _has_same_configurations(old: SearchSpace, new: SearchSpace) -> bool:
    return not any(SpaceChange(old, new).changes.values())


def _recoded(evaluations: Evaluations, space: SearchSpace) -> FloatArray:
    """Values recoded by another space, NaN where it does not allow them, (n, d)."""
    old, values = evaluations.space, evaluations.values
    columns = [recode(values[:, old.names.index(p.name)], old[p.name], p) for p in space.parameters]
    return np.stack(columns, axis=1)


def differences(old: SearchSpace, new: SearchSpace) -> list[str]:
    """How the space of a history differs from that of a task; guesses what was renamed."""
    change = SpaceChange(old, new)
    if _has_same_configurations(old, new):
        return ["the same hyperparameters, in another order or with their choices in another order"]
    removed = [n for n in old.names if Change.REMOVED in change.changes[n]]
    said = change.describe()
    for name in new.names:
        if Change.ADDED in change.changes[name]:
            same = [n for n in removed if old[n].describe() == new[name].describe()]
            near = difflib.get_close_matches(name, removed, n=1) or same[: len(same) == 1]
            said += [f"is {n!r} now called {name!r}? (rename={{{n!r}: {name!r}}})" for n in near]
    return said
