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
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from hpobench_ordered._typing import Value
from hpobench_ordered.adapters._optuna_space import (
    merge_distributions,
    only_value_of,
    parameter_of,
)
from hpobench_ordered.adapters._rows import Reader, Remedies, Rows, warn
from hpobench_ordered.adapters._tables import check_renaming, contexts_of
from hpobench_ordered.adapters.optuna.methods import quiet
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.errors import EvaluationsError, InvalidSpaceError, UnknownNameError
from hpobench_ordered.files.writing import check_file
from hpobench_ordered.space import Compare, Comparison, Condition, Kind, Parameter, SearchSpace
from hpobench_ordered.space.change import SpaceChange
from hpobench_ordered.space.conversion import SpaceLike, to_search_space
from hpobench_ordered.space.differences import CHANGES_OF_RANGE, allows

if TYPE_CHECKING:
    from optuna.storages import BaseStorage


SQLITE_PREFIX = "sqlite:///"


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
        HistoryWarning: Trials (pruned ones among them) or studies were left out, numbers moved, or
            the studies, by the numbers in their names, are not in order.

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
    reader = Reader(drop_invalid, clip, "the studies", remedies=Remedies(clip="clip=True"))
    space_at_hand = None if space is None else to_search_space(space)
    return read_studies(studies, reader, space=space_at_hand, contexts=contexts, rename=rename)


def read_studies(
    studies: Iterable[Study],
    reader: Reader,
    *,
    space: SearchSpace | None,
    contexts: Mapping[str, Mapping[str, float]] | None = None,
    rename: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Evaluations, ...]:
    """Read studies as `history_from_studies` does, with a reader that has the settings.

    Args:
        studies: The studies, oldest first.
        reader: Reads the trials of each study, and collects what is wrong with them.
        space: The search space of the task at hand; None if it is that of the studies.
        contexts: Numbers known of each task, by the name of its study.
        rename: New names of parameters by their old ones.
    """
    checked_studies = _check_studies(studies)
    direction = _common_direction(checked_studies)
    trials_of_study = _read_trials(checked_studies, rename)
    complete_trials_of_study: dict[str, list[FrozenTrial]] = {}
    for name, trials in trials_of_study.items():
        complete = [trial for trial in trials if trial.state is TrialState.COMPLETE]
        if complete:
            complete_trials_of_study[name] = complete
        else:
            reader.unusable_tasks.append(f"study {name!r}")

    any_range = reader.drop_invalid or reader.clip
    spaces = _choose_spaces(complete_trials_of_study, space, any_range=any_range)
    names = list(complete_trials_of_study)
    checked_contexts = contexts_of(contexts, names, others=list(trials_of_study))
    history: list[Evaluations | None] = []
    for name in names:
        rows = _to_rows(name, trials_of_study[name], spaces[name])
        context = checked_contexts[name]
        history.append(reader.read(rows, spaces[name], direction=direction, context=context))
    evaluations = reader.finish(history)
    _warn_of_pruned(checked_studies)
    return evaluations


def _warn_of_pruned(studies: Iterable[Study]) -> None:
    """Warn of pruned trials, which are left out, if there are any."""
    number_of_trials = 0
    number_of_pruned = 0
    for study in studies:
        states = [trial.state for trial in study.get_trials(deepcopy=False)]
        number_of_trials += len(states)
        number_of_pruned += states.count(TrialState.PRUNED)
    if number_of_pruned:
        warn(
            f"{number_of_pruned} of {number_of_trials} trials were pruned and are left out: their "
            "last intermediate value is not the objective, and no method here uses it as a bound"
        )


def _read_trials(
    studies: Sequence[Study], rename: Mapping[str, str]
) -> dict[str, list[FrozenTrial]]:
    """Complete and failed trials by the name of their study, with parameters renamed."""
    states = (TrialState.COMPLETE, TrialState.FAIL)
    trials_of_study: dict[str, list[FrozenTrial]] = {}
    parameters_of_studies: list[set[str]] = []  # their names, for each study
    for study in studies:
        trials = study.get_trials(deepcopy=False, states=states)
        trials_of_study[study.study_name] = trials
        parameters: set[str] = set()
        for trial in trials:
            parameters.update(trial.params)
        parameters_of_studies.append(parameters)

    check_renaming(rename, *parameters_of_studies)
    for name, trials in trials_of_study.items():
        trials_of_study[name] = [_rename_parameters(trial, rename) for trial in trials]
    return trials_of_study


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
    """Read the studies of a storage as history, in the order in which their first trials started.

    Warnings are those of `history_from_studies`.

    Args:
        storage: The storage, its URL, such as "sqlite:///tuning.db", or a file of SQLite.
        pattern: Pattern of the studies' names, as in a shell: "churn-*"; case-sensitive.
        space: As for `history_from_studies`.
        drop_invalid: As for `history_from_studies`.
        clip: As for `history_from_studies`.
        contexts: As for `history_from_studies`.
        rename: As for `history_from_studies`.

    Returns:
        The evaluations of each study, oldest first.

    Raises:
        EvaluationsError: As by `history_from_studies`; or the storage cannot be read.
        UnknownNameError: There is no such file, or no name matches.

    Examples:
        >>> import optuna
        >>> import hpobench_ordered as hbo
        >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
        >>> storage = optuna.storages.InMemoryStorage()
        >>> for name in ("churn-May", "churn-June", "fraud"):
        ...     study = optuna.create_study(study_name=name, storage=storage)
        ...     study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
        >>> [evaluations.task for evaluations in hbo.history_from_storage(storage, "churn-*")]
        ['churn-May', 'churn-June']
    """
    return history_from_studies(
        load_studies(storage, pattern),
        space=space,
        drop_invalid=drop_invalid,
        clip=clip,
        contexts=contexts,
        rename=rename,
    )


def load_studies(storage: "str | os.PathLike[str] | BaseStorage", pattern: str) -> list[Study]:
    """The studies of a storage with matching names, by the start of their first trial."""
    checked_storage = _check_storage(storage)
    try:
        with quiet():
            if isinstance(checked_storage, str):
                checked_storage = optuna.storages.get_storage(checked_storage)
            summaries = optuna.get_all_study_summaries(
                storage=checked_storage, include_best_trial=False
            )
            starts = {summary.study_name: summary.datetime_start for summary in summaries}
            names = [name for name in starts if fnmatch.fnmatchcase(name, pattern)]
            # Studies without a trial come last, by name.
            names.sort(key=lambda name: (starts[name] or datetime.max, name))
            studies: list[Study] = []
            for name in names:
                study = optuna.load_study(study_name=name, storage=checked_storage)
                # Reads all trials into the storage's cache, so that a damaged one fails here.
                study.get_trials(deepcopy=False)
                studies.append(study)
    except Exception as error:  # which one depends on the database driver
        first_line = str(error).partition("\n")[0]
        raise EvaluationsError(
            f"the storage {str(storage)!r} cannot be read: {first_line}"
        ) from error
    if not names:
        raise UnknownNameError("study", pattern, starts)
    return studies


def _check_storage(storage: "str | os.PathLike[str] | BaseStorage") -> "str | BaseStorage":
    """Check a storage, and return it or its URL, to which the path of a file is converted.

    Files of SQLite are checked here, as Optuna would create tables in one without studies.
    """
    if isinstance(storage, optuna.storages.BaseStorage):
        return storage
    if not isinstance(storage, str | os.PathLike):
        raise EvaluationsError(
            f"storage must be an Optuna storage, its URL or a file, but got {storage!r}"
        )
    text = os.fspath(storage)
    url = text if "://" in text else f"{SQLITE_PREFIX}{text}"
    if url.startswith(SQLITE_PREFIX):
        path = Path(url.removeprefix(SQLITE_PREFIX).partition("?")[0])
        check_file(path)
        _check_has_studies(path)
    return url


def _check_has_studies(path: Path) -> None:
    """Raise an `EvaluationsError` if a file of SQLite lacks the table of Optuna's studies."""
    query = "SELECT 1 FROM sqlite_master WHERE name = 'studies'"
    # If the database cannot be read, there is no error here: Optuna reports it when it reads it.
    lacks_table = False
    with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as database:
        lacks_table = database.execute(query).fetchone() is None
    if lacks_table:
        raise EvaluationsError(f"{path} has no studies of Optuna")


def _check_studies(studies: Iterable[Study]) -> list[Study]:
    """Check that there are studies, no two of the same name, each with one objective."""
    items = list(studies) if isinstance(studies, Iterable) else []
    if not items or not all(isinstance(item, Study) for item in items):
        kind = type(studies).__name__
        described = f"a {kind} of other objects" if items else kind
        raise EvaluationsError(f"studies must be a list of at least one study, but got {described}")

    names = [study.study_name for study in items]
    repeated = [repr(name) for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise EvaluationsError(f"several studies have the same name: {', '.join(repeated)}")

    for study in items:
        if len(study.directions) != 1:
            raise EvaluationsError(
                f"study {study.study_name!r} must have one objective, not {len(study.directions)}"
            )
    return items


def _common_direction(studies: Sequence[Study]) -> Direction:
    """The direction of all studies; it is an error if they differ."""
    word_of = {study.study_name: study.direction.name.lower() for study in studies}
    if len(set(word_of.values())) > 1:
        listing = ", ".join(f"{name!r} to {word}" for name, word in word_of.items())
        raise EvaluationsError(f"studies must have the same direction, but got {listing}")
    return Direction.of(word_of[studies[0].study_name])


def _rename_parameters(trial: FrozenTrial, rename: Mapping[str, str]) -> FrozenTrial:
    """Copy a trial with its parameters renamed.

    Args:
        trial: The trial.
        rename: New names by old ones; parameters that it lacks keep their names.
    """
    renamed = copy(trial)
    renamed.params = {rename.get(name, name): value for name, value in trial.params.items()}
    renamed.distributions = {
        rename.get(name, name): distribution for name, distribution in trial.distributions.items()
    }
    return renamed


def _to_rows(name: str, trials: Iterable[FrozenTrial], space: SearchSpace) -> Rows:
    """The trials of a study as rows to read.

    Trials that failed before all parameters were suggested are left out: their configuration is
    unknown. Other failed ones have None as their value.
    """
    chosen: list[FrozenTrial] = []
    values: list[float | None] = []
    for trial in trials:
        is_complete = trial.state is TrialState.COMPLETE
        if is_complete or not _lacks_parameter(trial.params, space):
            chosen.append(trial)
            values.append(trial.value if is_complete else None)

    columns: dict[str, NDArray[np.object_]] = {}
    for parameter in (*space.names, *space.constants):
        cells = [trial.params.get(parameter) for trial in chosen]
        columns[parameter] = np.array(cells, dtype=object)
    labels = [f"trial {trial.number} of study {name!r}" for trial in chosen]
    return Rows(name, labels, columns, values)


def _choose_spaces(
    complete_trials_of_study: Mapping[str, Sequence[FrozenTrial]],
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
        common = _infer_common_space(complete_trials_of_study)
        if common is not None:
            return dict.fromkeys(complete_trials_of_study, common)
        return {
            name: _infer_space(name, trials) for name, trials in complete_trials_of_study.items()
        }

    spaces: dict[str, SearchSpace] = {}
    for name, trials in complete_trials_of_study.items():
        if _fits(trials, space_at_hand):
            spaces[name] = space_at_hand
            continue
        own = _infer_space(name, trials)
        changes_by_parameter = SpaceChange(own, space_at_hand).changes
        kinds_of_changes = set(chain(*changes_by_parameter.values()))
        differs_in_ranges_only = kinds_of_changes <= CHANGES_OF_RANGE
        fits_in_any_range = any_range and differs_in_ranges_only
        spaces[name] = space_at_hand if fits_in_any_range else own
    return spaces


def _fits(trials: Iterable[FrozenTrial], space: SearchSpace) -> bool:
    """Whether all trials were suggested from the space and have all active hyperparameters."""
    for trial in trials:
        for name, distribution in trial.distributions.items():
            if not has_same_range(space, name, distribution):
                return False
        if _lacks_parameter(trial.params, space):
            return False
    return True


def has_same_range(space: SearchSpace, name: str, distribution: BaseDistribution) -> bool:
    """Whether a distribution has the range or choices that the space has for this parameter.

    For a constant of the space, the distribution must have the constant as its only value.
    """
    suggested = parameter_of(name, distribution)
    if name in space.constants:
        has_single_value = suggested.size == 1
        return has_single_value and only_value_of(suggested) == space.constants[name]
    if name not in space.names:
        return False

    parameter = space[name]
    is_either_categorical = parameter.choices or suggested.choices  # () for a range of numbers
    if is_either_categorical:
        return set(parameter.choices) == set(suggested.choices)
    range_of = attrgetter("kind", "lower", "upper", "log")
    return bool(range_of(parameter) == range_of(suggested))


def _lacks_parameter(params: Mapping[str, object], space: SearchSpace) -> bool:
    """Whether an active hyperparameter of the space is missing from a trial's parameters.

    A hyperparameter with a condition is active if the condition holds for the codes of its parents.
    """
    codes = [math.nan] * space.dimension  # stay NaN where inactive or out of range
    for column, condition in space.ordered_conditions.items():  # parents come first
        parameter = space.parameters[column]
        is_active = condition is None or condition.holds_for(codes)
        if not is_active:
            continue
        if parameter.name not in params:
            return True
        value = cast("Value", params[parameter.name])
        if allows(parameter, value):
            codes[column] = parameter.code(value)
    return False


def _infer_common_space(
    complete_trials_of_study: Mapping[str, Sequence[FrozenTrial]],
) -> SearchSpace | None:
    """Infer a search space that all studies share, None if there is none.

    There is none in two cases:

    - The range or choices of a parameter differ between trials.
    - Some studies have a parameter in every trial, and all others have it in no trial: it is a part
      of some spaces only. If it is in some trials of a study, it is conditional, and may be a part
      of all spaces.
    """
    all_trials = list(chain(*complete_trials_of_study.values()))
    text_of_distribution: dict[str, str] = {}
    for trial in all_trials:
        for name, distribution in trial.distributions.items():
            text = repr(distribution)  # the choices True and 1 are equal, but not written alike
            if text_of_distribution.setdefault(name, text) != text:
                return None

    for name in text_of_distribution:
        # One boolean for each study.
        is_in_every_trial = [
            _is_in_all(name, trials) for trials in complete_trials_of_study.values()
        ]
        is_in_no_trial = [_is_in_none(name, trials) for trials in complete_trials_of_study.values()]
        is_unconditional = np.logical_or(is_in_every_trial, is_in_no_trial).all()
        is_missing_somewhere = not all(is_in_every_trial)
        if is_unconditional and is_missing_somewhere:
            return None

    try:
        return _infer_space("all studies", all_trials)  # the name is only for the error's message
    except EvaluationsError:
        return None


def _infer_space(study: str, trials: Sequence[FrozenTrial]) -> SearchSpace:
    """Infer the search space of a study from its complete trials."""
    try:
        constants: dict[str, Value] = {}
        tunable: list[Parameter] = []
        for name, distribution in _merge_all_distributions(trials).items():
            parameter = parameter_of(name, distribution)
            if parameter.size > 1:  # number of different values
                tunable.append(parameter)
            elif _is_in_all(name, trials):  # a space cannot have a constant under a condition
                constants[name] = only_value_of(parameter)

        conditions: dict[str, Condition] = {}
        for parameter in tunable:
            if not _is_in_all(parameter.name, trials):
                conditions[parameter.name] = _infer_condition(parameter.name, tunable, trials)
        return SearchSpace(tunable, conditions=conditions, constants=constants)
    except InvalidSpaceError as error:
        raise EvaluationsError(
            f"the search space of study {study!r} cannot be inferred: {error}; give a search space"
        ) from None


def _merge_all_distributions(trials: Iterable[FrozenTrial]) -> dict[str, BaseDistribution]:
    """The smallest distribution of each parameter that contains those of all trials."""
    merged: dict[str, BaseDistribution] = {}
    for trial in trials:
        for name, distribution in trial.distributions.items():
            earlier = merged.get(name, distribution)
            if distribution == earlier:
                merged[name] = distribution
            else:
                merged[name] = merge_distributions(name, earlier, distribution)
    return merged


def _is_in_all(name: str, trials: Iterable[FrozenTrial]) -> bool:
    """Whether every trial has a parameter of this name."""
    return all(name in trial.params for trial in trials)


def _is_in_none(name: str, trials: Iterable[FrozenTrial]) -> bool:
    """Whether no trial has a parameter of this name."""
    return not any(name in trial.params for trial in trials)


def _codes_in_range(parameter: Parameter, trials: Iterable[FrozenTrial]) -> set[float]:
    """Codes of the values that a parameter has in trials, without those out of its range."""
    values = [trial.params[parameter.name] for trial in trials]
    return {parameter.code(value) for value in values if allows(parameter, value)}


def _infer_condition(
    child: str, parameters: Sequence[Parameter], trials: Sequence[FrozenTrial]
) -> Condition:
    """Infer the condition under which a parameter is suggested.

    It is on the first other parameter, its parent, whose values differ between the trials with the
    child and those without. The parent must be in all trials with the child.
    """
    with_child = [trial for trial in trials if child in trial.params]
    without_child = [trial for trial in trials if child not in trial.params]
    for column, parent in enumerate(parameters):
        # A trial without the parent says nothing about its values.
        comparable = [trial for trial in without_child if parent.name in trial.params]
        if not comparable or not _is_in_all(parent.name, with_child):
            continue

        codes_with = _codes_in_range(parent, with_child)
        codes_without = _codes_in_range(parent, comparable)
        if not codes_with or not codes_without:
            continue

        if parent.choices and codes_with.isdisjoint(codes_without):
            return Compare(column, Comparison.IN, tuple(sorted(codes_with)))
        # An integer determines it if the child was suggested only above, or only below, all
        # values of the trials without the child.
        if parent.kind is Kind.INTEGER and max(codes_without) < min(codes_with):
            return Compare(column, Comparison.GREATER, (max(codes_without),))
        if parent.kind is Kind.INTEGER and max(codes_with) < min(codes_without):
            return Compare(column, Comparison.LESS, (min(codes_without),))

    raise InvalidSpaceError(
        f"{child!r} was suggested in {len(with_child)} of {len(trials)} trials, and the value of "
        "no other parameter determines in which"
    )
