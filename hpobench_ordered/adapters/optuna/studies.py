"""Studies of Optuna as history: what was suggested in each trial, and what came of it.

Complete trials have their value. Failed ones have NaN, or are left out if they failed before all of
their parameters were suggested. Pruned ones are left out: a value from the middle of a training is
no value of the objective. So are those that run or wait.

The search space of a study, where it is not the one that is asked for, is made of its trials'
distributions: numbers with their log scale, those with a step as ordinals, and where a range
changed along the way the one that holds all. A parameter that not all trials have is conditional:
on the first other one, a categorical or an integer that is suggested in more trials, whose value
tells whether a trial has it.
"""

import fnmatch
import math
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from copy import copy
from datetime import datetime
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import optuna
from optuna.distributions import BaseDistribution
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from hpobench_ordered._typing import Value
from hpobench_ordered.adapters._optuna_space import joined, parameter_of
from hpobench_ordered.adapters._rows import Reader, Rows, check_renaming, contexts_of
from hpobench_ordered.adapters.optuna.methods import quiet
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.errors import (
    EvaluationsError,
    InvalidSpaceError,
    UnknownNameError,
)
from hpobench_ordered.files.writing import check_file
from hpobench_ordered.space import Compare, Comparison, Condition, Kind, Parameter, SearchSpace
from hpobench_ordered.space.change import SpaceChange
from hpobench_ordered.space.differences import Change, allows
from hpobench_ordered.space.given import search_space

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

    from hpobench_ordered.space.given import SpaceLike

SQLITE = "sqlite:///"
RANGES = frozenset({Change.GREW, Change.SHRANK, Change.MOVED})
"""Changes after which every configuration can be moved into the new space, or is out of it."""


def history_from_studies(
    studies: Iterable[Study],
    *,
    space: "SpaceLike | None" = None,
    drop_invalid: bool = False,
    clip: bool = False,
    contexts: Mapping[str, Mapping[str, float]] | None = None,
    rename: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Evaluations, ...]:
    """Read studies as history, each of them as one task.

    Args:
        studies: The studies, oldest first, each of one objective; all of the same direction.
        space: The search space of the task at hand. A study that suggested its parameters from the
            same ranges is coded by it, any other one by a space of its own (`Evaluations.space`);
            whoever is given both says what differs. Default: the space that all studies have in
            common, or else each one's own.
        drop_invalid: Leave out trials whose parameters or value cannot be used, and say in a
            warning how many, instead of refusing the studies. A study that differs from `space` in
            nothing but ranges of numbers is read by it then, as with `clip`.
        clip: Move numbers that are out of range to the nearest bound, and say in a warning how
            many.
        contexts: What is known of each task beforehand, by the name of its study.
        rename: Parameters that are called otherwise now: new names by old ones, such as
            `{"learning_rate": "lr"}`.

    Returns:
        The evaluations of each study that has any complete trial.

    Raises:
        EvaluationsError: A study comes twice, two are the same, one has several objectives or
            another direction; a value is not finite or a parameter out of range; its search space
            cannot be told; or a context is not as described.

    Warns:
        HistoryWarning: Trials or studies were left out, numbers moved, or the studies, by the
            numbers in their names, are not in order.

    Examples:
        >>> import optuna
        >>> import hpobench_ordered as hbo
        >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
        >>> study = optuna.create_study(study_name="May", direction="maximize")
        >>> study.optimize(lambda trial: -((trial.suggest_float("x", 0, 1) - 0.3) ** 2), n_trials=9)
        >>> (may,) = hbo.history_from_studies([study])
        >>> may.task, len(may), may.names, may.direction.value
        ('May', 9, ('x',), 'maximize')
    """
    given = _checked(studies)
    direction = _direction(given)
    reader = Reader(drop_invalid, clip, "the studies")
    trials = {study.study_name: _finished(study) for study in given}
    check_renaming(rename, *({n for t in of for n in t.params} for of in trials.values()))
    trials = {name: [_renamed(t, rename) for t in of] for name, of in trials.items()}
    used = {n: t for n, t in trials.items() if any(x.state is TrialState.COMPLETE for x in t)}
    reader.empty += [f"study {name!r}" for name in trials if name not in used]
    wanted = None if space is None else search_space(space)
    spaces = _spaces(used, wanted, any_range=drop_invalid or clip)
    context = contexts_of(contexts, list(used), others=list(trials))
    read = [
        reader.read(
            _rows(name, used[name], spaces[name]),
            spaces[name],
            direction=direction,
            context=context[name],
        )
        for name in used
    ]
    return reader.finish(read)


def history_from_storage(
    storage: "str | os.PathLike[str] | BaseStorage",
    pattern: str,
    *,
    space: "SpaceLike | None" = None,
    drop_invalid: bool = False,
    clip: bool = False,
    contexts: Mapping[str, Mapping[str, float]] | None = None,
    rename: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Evaluations, ...]:
    """Read the studies of a storage whose names match a pattern, by the start of their first trial.

    Args:
        storage: The storage, its URL, such as "sqlite:///tuning.db", or a file of SQLite.
        pattern: As a shell has it, such as "churn-*"; capitals matter.
        space: As for `history_from_studies`, as all that follows.
        drop_invalid: Leave out trials that cannot be used.
        clip: Move numbers that are out of range to the nearest bound.
        contexts: What is known of each task beforehand, by the name of its study.
        rename: Parameters that are called otherwise now: new names by old ones, such as
            `{"learning_rate": "lr"}`.

    Returns:
        The evaluations of each study, oldest first.

    Raises:
        EvaluationsError: As `history_from_studies`; or the storage cannot be read.
        UnknownNameError: There is no such file, or no name matches.

    Warns:
        HistoryWarning: As `history_from_studies`.

    Examples:
        >>> import optuna
        >>> import hpobench_ordered as hbo
        >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
        >>> storage = optuna.storages.InMemoryStorage()
        >>> for name in ("churn-May", "churn-June", "fraud"):
        ...     study = optuna.create_study(study_name=name, storage=storage)
        ...     study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
        >>> [one.task for one in hbo.history_from_storage(storage, "churn-*")]
        ['churn-May', 'churn-June']
    """
    return history_from_studies(
        _stored(storage, pattern),
        space=space,
        drop_invalid=drop_invalid,
        clip=clip,
        contexts=contexts,
        rename=rename,
    )


def _stored(storage: "str | os.PathLike[str] | BaseStorage", pattern: str) -> list[Study]:
    """The studies of a storage whose names match, in the order of time.

    Raises:
        EvaluationsError: It cannot be read.
        UnknownNameError: There is no such file or study.
    """
    opened = _opened(storage)
    try:
        with quiet():
            if isinstance(opened, str):
                opened = optuna.storages.get_storage(opened)
            summaries = optuna.get_all_study_summaries(storage=opened, include_best_trial=False)
            starts = {s.study_name: s.datetime_start for s in summaries}
            names = [name for name in starts if fnmatch.fnmatchcase(name, pattern)]
            names.sort(key=lambda name: (starts[name] or datetime.max, name))
            studies = [optuna.load_study(study_name=name, storage=opened) for name in names]
            for study in studies:
                study.get_trials(deepcopy=False)  # which the storage keeps
    except Exception as error:  # whatever its driver raises, the lack of one, or damage
        why = str(error).partition("\n")[0]
        raise EvaluationsError(f"the storage {str(storage)!r} cannot be read: {why}") from error
    if not names:
        raise UnknownNameError("study", pattern, starts)
    return studies


def _opened(storage: "str | os.PathLike[str] | BaseStorage") -> "str | BaseStorage":
    """A storage, or the URL of one; of a file only if it has studies, as Optuna makes tables."""
    if isinstance(storage, optuna.storages.BaseStorage):
        return storage
    if not isinstance(storage, str | os.PathLike):
        raise EvaluationsError(f"a storage is Optuna's, its URL or file; got {storage!r}")
    text = os.fspath(storage)
    url = text if "://" in text else f"{SQLITE}{text}"
    if url.startswith(SQLITE):
        path = Path(url.removeprefix(SQLITE).partition("?")[0])
        check_file(path)
        with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as file:  # else Optuna says so
            if not file.execute("SELECT 1 FROM sqlite_master WHERE name = 'studies'").fetchone():
                raise EvaluationsError(f"{path} has no studies of Optuna")
    return url


def _checked(studies: Iterable[Study]) -> list[Study]:
    """The studies, after checking that they are some, each once, of one objective."""
    given = list(studies) if isinstance(studies, Iterable) else []
    if not given or not all(isinstance(study, Study) for study in given):
        what = f"{type(studies).__name__} of other things" if given else type(studies).__name__
        raise EvaluationsError(f"studies are given as a list of at least one; got {what}")
    names = [study.study_name for study in given]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise EvaluationsError(f"studies of the same name: {', '.join(map(repr, twice))}")
    for study in given:
        if len(study.directions) != 1:
            raise EvaluationsError(
                f"study {study.study_name!r} has {len(study.directions)} objectives, not one"
            )
    return given


def _direction(studies: Sequence[Study]) -> Direction:
    """The direction of all studies."""
    directions = {study.study_name: study.direction for study in studies}
    if len(set(directions.values())) > 1:
        said = ", ".join(f"{name!r} to {d.name.lower()}" for name, d in directions.items())
        raise EvaluationsError(f"the studies are not of one direction: {said}")
    is_maximised = studies[0].direction is StudyDirection.MAXIMIZE
    return Direction.MAXIMIZE if is_maximised else Direction.MINIMIZE


def _finished(study: Study) -> list[FrozenTrial]:
    """The trials that are complete or failed."""
    states = (TrialState.COMPLETE, TrialState.FAIL)
    return cast("list[FrozenTrial]", study.get_trials(deepcopy=False, states=states))


def _renamed(trial: FrozenTrial, rename: Mapping[str, str]) -> FrozenTrial:
    """The trial, its parameters by other names."""
    renamed = copy(trial)
    renamed.params = {rename.get(n, n): value for n, value in trial.params.items()}
    renamed.distributions = {rename.get(n, n): d for n, d in trial.distributions.items()}
    return renamed


def _rows(name: str, trials: Iterable[FrozenTrial], space: SearchSpace) -> Rows:
    """The trials of a study, without those that failed before they had all of their parameters."""
    chosen = [t for t in trials if t.state is TrialState.COMPLETE or not _lacks(t.params, space)]
    return Rows(
        name,
        [f"trial {trial.number} of study {name!r}" for trial in chosen],
        {n: [t.params.get(n) for t in chosen] for n in (*space.names, *space.constants)},
        [t.value if t.state is TrialState.COMPLETE else None for t in chosen],
    )


def _spaces(
    trials: Mapping[str, Sequence[FrozenTrial]], wanted: SearchSpace | None, *, any_range: bool
) -> dict[str, SearchSpace]:
    """The search space of each study, by its name.

    Args:
        trials: The trials of each study.
        wanted: The space of the task at hand; None: the one in common.
        any_range: Whether studies are read by the wanted one, too, if they differ from it in
            nothing but ranges of numbers.
    """
    complete = {
        name: [trial for trial in of_study if trial.state is TrialState.COMPLETE]
        for name, of_study in trials.items()
    }
    if wanted is None:
        wanted = _common(complete)
        return {n: wanted if wanted is not None else _own(n, t) for n, t in complete.items()}
    spaces: dict[str, SearchSpace] = {}
    for name, of_study in complete.items():
        spaces[name] = own = wanted if _fits(of_study, wanted) else _own(name, of_study)
        if any_range and RANGES.issuperset(chain(*SpaceChange(own, wanted).changes.values())):
            spaces[name] = wanted
    return spaces


def _fits(trials: Iterable[FrozenTrial], space: SearchSpace) -> bool:
    """Whether all trials suggested from the space, and have all that is active in it."""
    return all(
        all(is_same(space, n, d) for n, d in trial.distributions.items())
        and not _lacks(trial.params, space)
        for trial in trials
    )


def is_same(space: SearchSpace, name: str, distribution: BaseDistribution) -> bool:
    """Whether a distribution has the range, or the choices, that the space says."""
    suggested = parameter_of(name, distribution)
    if name in space.constants:
        return suggested.size == 1 and suggested.value(suggested.lower) == space.constants[name]
    if name not in space.names:
        return False
    p = space[name]
    if p.choices or suggested.choices:
        return set(p.choices) == set(suggested.choices)
    return (p.kind, p.lower, p.upper, p.log) == (
        suggested.kind,
        suggested.lower,
        suggested.upper,
        suggested.log,
    )


def _lacks(params: Mapping[str, object], space: SearchSpace) -> bool:
    """Whether a hyperparameter is active, given the others, and not among the parameters."""
    coded = [math.nan] * space.dimension
    for j, condition in space.ordered_conditions.items():
        parameter = space.parameters[j]
        if condition is not None and not condition.holds_for(coded):
            continue
        if parameter.name not in params:
            return True
        value = cast("Value", params[parameter.name])
        if allows(parameter, value):
            coded[j] = parameter.code(value)
    return False


def _common(trials: Mapping[str, Sequence[FrozenTrial]]) -> SearchSpace | None:
    """The search space that all studies have in common, None if they have none."""
    distributions = {
        (name, repr(d))
        for of_study in trials.values()
        for t in of_study
        for name, d in t.distributions.items()
    }
    names = [name for name, _ in distributions]
    if len(set(names)) < len(names):  # ranges differ
        return None
    for name in set(names):
        shares = [sum(name in t.params for t in of) / len(of) for of in trials.values()]
        if set(shares) == {0.0, 1.0}:  # no condition: a parameter that some of the studies have
            return None
    try:
        return _own("", [trial for of_study in trials.values() for trial in of_study])
    except EvaluationsError:
        return None


def _own(study: str, trials: Sequence[FrozenTrial]) -> SearchSpace:
    """The search space that a study's complete trials suggest from.

    Raises:
        EvaluationsError: It cannot be told.
    """
    distributions: dict[str, BaseDistribution] = {}
    try:
        for trial in trials:
            for name, d in trial.distributions.items():
                known = distributions.get(name, d)
                distributions[name] = d if known == d else joined(name, known, d)
        whole = [parameter_of(name, d) for name, d in distributions.items()]
        is_everywhere = {p.name: all(p.name in t.params for t in trials) for p in whole}
        tuned = [p for p in whole if p.size > 1]
        conditions = {
            p.name: _condition(p.name, tuned, trials) for p in tuned if not is_everywhere[p.name]
        }
        constants = {
            p.name: p.value(p.lower) for p in whole if p.size == 1 and is_everywhere[p.name]
        }
        return SearchSpace(tuned, conditions=conditions, constants=constants)
    except InvalidSpaceError as error:
        raise EvaluationsError(
            f"the search space of study {study!r} cannot be told: {error}; give it: space=..."
        ) from None


def _codes(parameter: Parameter, trials: Iterable[FrozenTrial]) -> set[float]:
    """Codes of the values that a parameter has in trials, but for those out of range."""
    values = [trial.params[parameter.name] for trial in trials]
    return {parameter.code(value) for value in values if allows(parameter, value)}


def _condition(
    child: str, parameters: Sequence[Parameter], trials: Sequence[FrozenTrial]
) -> Condition:
    """The condition under which a parameter is suggested.

    Raises:
        InvalidSpaceError: No other parameter's value tells.
    """
    having = [trial for trial in trials if child in trial.params]
    for j, parent in enumerate(parameters):
        others = [t for t in trials if parent.name in t.params and child not in t.params]
        if not others or not all(parent.name in trial.params for trial in having):
            continue
        present, absent = _codes(parent, having), _codes(parent, others)
        if not present or not absent:
            continue
        if parent.choices and not present & absent:
            return Compare(j, Comparison.IN, tuple(sorted(present)))
        if parent.kind is Kind.INTEGER and max(absent) < min(present):
            return Compare(j, Comparison.GREATER, (max(absent),))
        if parent.kind is Kind.INTEGER and max(present) < min(absent):
            return Compare(j, Comparison.LESS, (min(absent),))
    raise InvalidSpaceError(
        f"{child!r} was suggested in {len(having)} of {len(trials)} trials, and the value of no "
        "other parameter tells in which"
    )
