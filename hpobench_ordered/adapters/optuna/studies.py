"""Optuna's studies as history.

Complete trials have their value. Failed ones have NaN, or are left out if they failed before all of
their parameters were suggested. Pruned ones are left out, as an intermediate value is not the
objective; so are running and waiting ones.

Unless one is given, the search space of a study is inferred from its trials' distributions: numbers
keep their log scale, those with a step become ordinals, and of a range that changed the smallest
that contains all is taken. A parameter that not all trials have is conditional: on the first other
parameter, a categorical or an integer present in all of these trials and more, whose value
determines whether a trial has it.
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
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from hpobench_ordered._typing import Value
from hpobench_ordered.adapters._optuna_space import joined, parameter_of
from hpobench_ordered.adapters._rows import Reader, Rows
from hpobench_ordered.adapters._tables import check_renaming, contexts_of
from hpobench_ordered.adapters.optuna.methods import quiet
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.errors import EvaluationsError, InvalidSpaceError, UnknownNameError
from hpobench_ordered.files.writing import check_file
from hpobench_ordered.space import Compare, Comparison, Condition, Kind, Parameter, SearchSpace
from hpobench_ordered.space.change import SpaceChange
from hpobench_ordered.space.conversion import SpaceLike, to_search_space
from hpobench_ordered.space.differences import Change, allows

if TYPE_CHECKING:
    from optuna.storages import BaseStorage


SQLITE = "sqlite:///"
RANGES = frozenset({Change.GREW, Change.SHRANK, Change.MOVED})
"""Changes that only affect ranges, so configurations are in range, clipped or left out."""


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
        space: The search space of the task at hand. A study with the same ranges is coded by it,
            any other one by its own space (`Evaluations.space`). Default: the common space of all
            studies, or else each one's own.
        drop_invalid: Leave out trials whose parameters or value cannot be used, and say in a
            warning how many, instead of rejecting the studies. A study that differs from `space`
            only in ranges of numbers is then coded by it, as with `clip`.
        clip: Move numbers that are out of range to the nearest bound, and say in a warning how
            many.
        contexts: Numbers known of each task beforehand, by the name of its study.
        rename: New names of parameters by their old ones, such as
            `{"learning_rate": "lr"}`.

    Returns:
        The evaluations of each study with a complete trial.

    Raises:
        EvaluationsError: Two studies have the same name or evaluations, one has several objectives
            or another direction; a value is not finite or a parameter out of range; a search space
            cannot be inferred; or a context is not as described.

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
    checked_studies = _check_studies(studies)
    direction = _common_direction(checked_studies)
    trials_of = _read_trials(checked_studies, rename)
    complete_of = {name: _complete(trials) for name, trials in trials_of.items()}
    used = [name for name, complete in complete_of.items() if complete]
    reader = Reader(drop_invalid, clip, "the studies")
    reader.empty += [f"study {name!r}" for name in trials_of if name not in used]

    space_at_hand = None if space is None else to_search_space(space)
    spaces = _choose_spaces(
        {name: complete_of[name] for name in used},
        space_at_hand,
        any_range=drop_invalid or clip,
    )
    checked_contexts = contexts_of(contexts, used, others=list(trials_of))
    history: list[Evaluations | None] = []
    for name in used:
        rows = _to_rows(name, trials_of[name], spaces[name])
        context = checked_contexts[name]
        history.append(reader.read(rows, spaces[name], direction=direction, context=context))
    return reader.finish(history)


def _read_trials(
    studies: Sequence[Study], rename: Mapping[str, str]
) -> dict[str, list[FrozenTrial]]:
    """Complete and failed trials by the name of their study, with parameters renamed."""
    states = (TrialState.COMPLETE, TrialState.FAIL)
    trials_of: dict[str, list[FrozenTrial]] = {}
    names_of_studies: list[set[str]] = []
    for study in studies:
        trials = study.get_trials(deepcopy=False, states=states)
        names_of_studies.append(set().union(*(trial.params for trial in trials)))
        trials_of[study.study_name] = trials
    check_renaming(rename, *names_of_studies)
    for name, trials in trials_of.items():
        trials_of[name] = [_rename_parameters(trial, rename) for trial in trials]
    return trials_of


def _complete(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    return [trial for trial in trials if trial.state is TrialState.COMPLETE]


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

    `storage` is the storage, its URL, such as "sqlite:///tuning.db", or a file of SQLite; `pattern`
    is as a shell has it, such as "churn-*", and case-sensitive. The options, and warnings, are
    those of `history_from_studies`.

    Returns:
        The evaluations of each study, oldest first.

    Raises:
        EvaluationsError: As there; or the storage cannot be read.
        UnknownNameError: There is no such file, or no name matches.

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
        _load_studies(storage, pattern),
        space=space,
        drop_invalid=drop_invalid,
        clip=clip,
        contexts=contexts,
        rename=rename,
    )


def _load_studies(storage: "str | os.PathLike[str] | BaseStorage", pattern: str) -> list[Study]:
    """The studies of a storage with matching names, by the start of their first trial."""
    opened = _open_storage(storage)
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
                study.get_trials(deepcopy=False)  # fills the cache of the storage
    except Exception as error:  # depends on the database driver
        why = str(error).partition("\n")[0]
        raise EvaluationsError(f"the storage {str(storage)!r} cannot be read: {why}") from error
    if not names:
        raise UnknownNameError("study", pattern, starts)
    return studies


def _open_storage(storage: "str | os.PathLike[str] | BaseStorage") -> "str | BaseStorage":
    """A storage, or its URL; in a file without studies, Optuna would create its tables."""
    if isinstance(storage, optuna.storages.BaseStorage):
        return storage
    if not isinstance(storage, str | os.PathLike):
        raise EvaluationsError(
            f"storage must be an Optuna storage, its URL or a file, but got {storage!r}"
        )
    text = os.fspath(storage)
    url = text if "://" in text else f"{SQLITE}{text}"
    if url.startswith(SQLITE):
        path = Path(url.removeprefix(SQLITE).partition("?")[0])
        check_file(path)
        # Optuna reports another error.
        with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as file:
            if not file.execute("SELECT 1 FROM sqlite_master WHERE name = 'studies'").fetchone():
                raise EvaluationsError(f"{path} has no studies of Optuna")
    return url


def _check_studies(studies: Iterable[Study]) -> list[Study]:
    """Check that there are studies, no two of the same name, each with one objective."""
    several = list(studies) if isinstance(studies, Iterable) else []
    if not several or not all(isinstance(study, Study) for study in several):
        kind = type(studies).__name__
        described = f"a {kind} of other objects" if several else kind
        raise EvaluationsError(f"studies must be a list of at least one study, but got {described}")

    names = [study.study_name for study in several]
    repeated = [repr(name) for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise EvaluationsError(f"several studies have the same name: {', '.join(repeated)}")
    for study in several:
        if len(study.directions) != 1:
            raise EvaluationsError(
                f"study {study.study_name!r} must have one objective, not {len(study.directions)}"
            )
    return several


def _common_direction(studies: Sequence[Study]) -> Direction:
    """The common direction of all studies."""
    directions = {study.study_name: study.direction for study in studies}
    if len(set(directions.values())) > 1:
        said = ", ".join(f"{name!r} to {d.name.lower()}" for name, d in directions.items())
        raise EvaluationsError(f"studies must have the same direction, but got {said}")
    return Direction.of(studies[0].direction.name.lower())


def _rename_parameters(trial: FrozenTrial, rename: Mapping[str, str]) -> FrozenTrial:
    """A trial with its parameters renamed."""
    renamed = copy(trial)
    renamed.params = {rename.get(n, n): value for n, value in trial.params.items()}
    renamed.distributions = {rename.get(n, n): d for n, d in trial.distributions.items()}
    return renamed


def _to_rows(name: str, trials: Iterable[FrozenTrial], space: SearchSpace) -> Rows:
    """The trials of a study, except those that failed before all parameters were suggested."""
    chosen = [t for t in trials if t.state is TrialState.COMPLETE or not _lacks(t.params, space)]
    tuned = (*space.names, *space.constants)
    return Rows(
        name,
        [f"trial {trial.number} of study {name!r}" for trial in chosen],
        {n: np.array([t.params.get(n) for t in chosen], dtype=object) for n in tuned},
        [t.value if t.state is TrialState.COMPLETE else None for t in chosen],
    )


def _choose_spaces(
    complete: Mapping[str, Sequence[FrozenTrial]],
    space_at_hand: SearchSpace | None,
    *,
    any_range: bool,
) -> dict[str, SearchSpace]:
    """Choose the search space of each study, by its name, from its complete trials.

    It is that of the task at hand if the trials fit it, else the study's own; with `any_range` they
    fit too if only ranges of numbers differ. Without a task at hand it is the common space of all
    studies, or else each one's own.
    """
    if space_at_hand is None:
        common = _infer_common_space(complete)
        if common is not None:
            return dict.fromkeys(complete, common)
        return {name: _infer_space(name, trials) for name, trials in complete.items()}

    spaces: dict[str, SearchSpace] = {}
    for name, trials in complete.items():
        if _fits(trials, space_at_hand):
            spaces[name] = space_at_hand
            continue
        own = _infer_space(name, trials)
        changes = set(chain(*SpaceChange(own, space_at_hand).changes.values()))
        is_usable = any_range and changes <= RANGES
        spaces[name] = space_at_hand if is_usable else own
    return spaces


def _fits(trials: Iterable[FrozenTrial], space: SearchSpace) -> bool:
    """Whether all trials were suggested from the space and have all active hyperparameters."""
    return all(
        all(is_same(space, n, d) for n, d in trial.distributions.items())
        and not _lacks(trial.params, space)
        for trial in trials
    )


def is_same(space: SearchSpace, name: str, distribution: BaseDistribution) -> bool:
    """Whether a distribution has the same range or choices as the space."""
    suggested = parameter_of(name, distribution)
    if name in space.constants:
        return suggested.size == 1 and suggested.value(suggested.lower) == space.constants[name]
    if name not in space.names:
        return False
    p = space[name]
    if p.choices or suggested.choices:
        return set(p.choices) == set(suggested.choices)
    range_of = attrgetter("kind", "lower", "upper", "log")
    return bool(range_of(p) == range_of(suggested))


def _lacks(params: Mapping[str, object], space: SearchSpace) -> bool:
    """Whether an active hyperparameter of the space is missing from the parameters."""
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


def _infer_common_space(trials: Mapping[str, Sequence[FrozenTrial]]) -> SearchSpace | None:
    """The common search space of all studies, None if there is none."""
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
        if set(shares) == {0.0, 1.0}:  # only some studies have it: not a condition
            return None
    try:
        return _infer_space("", [trial for of_study in trials.values() for trial in of_study])
    except EvaluationsError:
        return None


def _infer_space(study: str, trials: Sequence[FrozenTrial]) -> SearchSpace:
    """The search space inferred from a study's complete trials."""
    distributions: dict[str, BaseDistribution] = {}
    try:
        for trial in trials:
            for name, d in trial.distributions.items():
                known = distributions.get(name, d)
                distributions[name] = d if known == d else joined(name, known, d)
        constants: dict[str, Value] = {}
        tuned: list[Parameter] = []
        for name, distribution in distributions.items():
            parameter = parameter_of(name, distribution)
            if parameter.size > 1:
                tuned.append(parameter)
            elif _have(name, trials):
                constants[name] = parameter.value(parameter.lower)

        conditions: dict[str, Condition] = {}
        for parameter in tuned:
            if not _have(parameter.name, trials):
                conditions[parameter.name] = _infer_condition(parameter.name, tuned, trials)
        return SearchSpace(tuned, conditions=conditions, constants=constants)
    except InvalidSpaceError as error:
        raise EvaluationsError(
            f"the search space of study {study!r} cannot be inferred: {error}; give it: space=..."
        ) from None


def _have(name: str, trials: Iterable[FrozenTrial]) -> bool:
    """Whether all trials have a parameter."""
    return all(name in trial.params for trial in trials)


def _codes(parameter: Parameter, trials: Iterable[FrozenTrial]) -> set[float]:
    """Codes of the in-range values of a parameter in trials."""
    values = [trial.params[parameter.name] for trial in trials]
    return {parameter.code(value) for value in values if allows(parameter, value)}


def _infer_condition(
    child: str, parameters: Sequence[Parameter], trials: Sequence[FrozenTrial]
) -> Condition:
    """Infer the condition under which a parameter is suggested."""
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
        "other parameter determines in which"
    )
